"""Derivatives of currents and of the gain with respect to parameters of a device, by the adjoint of each solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minga.errors import CaseError
from minga.models.photodiode.solver.changes import Changes
from minga.models.photodiode.solver.coefficients import Coefficients
from minga.models.photodiode.solver.linear import check_linear
from minga.models.photodiode.solver.problem import Problem, suffix
from minga.models.photodiode.structure.device import Device

__all__ = ["Slopes", "slopes"]

Floats = NDArray[np.float64]
Devices = Callable[[Floats], Device]

_STEP: Final = 1e-6
"""Step of a parameter relative to its value."""
_MOVED: Final = 1e-7
"""Change of a boundary's place between two nodes, relative to their distance, that is not round-off."""


@dataclass(frozen=True, slots=True, eq=False)
class Slopes:
    """Currents of a device and their derivatives with respect to its parameters.

    Parameters
    ----------
    V
        Voltages, V, f8 of shape (voltages,).
    values
        ``"J"`` and ``"J_lit"`` in A/cm2 and ``"gain"``, as far as the problem asks for them, f8 of shape (voltages,)
        each.
    slopes
        Derivatives of each by the parameters, per unit of the parameter, f8 of shape (voltages, parameters) each.
    """

    V: Floats
    values: dict[str, Floats]
    slopes: dict[str, Floats]


def slopes(
    devices: Devices,
    x: ArrayLike,
    problem: Problem,
    *,
    steps: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> Slopes:
    """Return the currents of a device at the voltages of a problem, and their derivatives by parameters of the device.

    Each curve is solved once, and its adjoint once for each voltage. For each parameter, the equations are then only
    evaluated, at the same state, for two devices that differ a little in that parameter.

    Parameters
    ----------
    devices
        Function that returns the device with given parameters, f8 of shape (parameters,), such as `Varied`. Devices
        with neighbouring parameters must have the same number of nodes.
    x
        The parameters.
    problem
        Voltages, curves and physics; solved by Newton's method.
    steps
        Step of each parameter to either side; by default 1e-6 of its value.
    names
        Names of the parameters for errors; by default the keys of a `Varied`.

    Returns
    -------
    Slopes
        Currents, the gain if the problem asks for it, and their derivatives.

    Raises
    ------
    CaseError
        If the problem is another one than currents at voltages, the contacts are on the same side, or a device cannot
        be made or has other nodes; the error names the parameter.
    RunError
        If a voltage could not be reached, or is beyond breakdown.
    """
    point = _numbers(x, "parameters")
    words = _words(devices, point.size, names)
    device = devices(point)
    check_problem(device, problem)
    width = _steps(point, steps, words)
    pairs = [_pair(devices, device, point, k, width[k], words[k]) for k in range(point.size)]
    changes = Changes(device, problem)
    others = [Coefficients(item, varied=True) for pair in pairs for item in pair]
    for k, other in enumerate(others):
        _check_structure(changes.coefficients, other, words[k // 2])
    currents, predicted = changes.currents(others)
    # The distance that was really walked, after rounding.
    walked = (point + width) - (point - width)
    by = (predicted[..., 0::2] - predicted[..., 1::2]) / walked
    return _named(problem, currents, by)


def check_problem(device: Device, problem: Problem) -> None:
    """Raise CaseError for a problem or a device whose currents have no adjoint here."""
    for name, excluded in (
        ("mode", problem.mode != "iv"),
        ("scheme", problem.scheme != "newton"),
        ("current", bool(problem.current)),
        ("quasistatic_capacitance", problem.quasistatic_capacitance),
    ):
        if excluded:
            raise CaseError(
                f"derivatives in a problem with {name} = {getattr(problem, name)!r}",
                key=f"photodiode.{name}",
                remedy="leave it out: derivatives are those of currents at voltages, by Newton's method",
            )
    check_linear(problem.linear, device.grid, problem.scheme)
    if not device.opposite:
        raise CaseError(
            "derivatives of a device whose contacts are on the same side",
            key="photodiode.contacts",
            remedy="put them on opposite sides",
        )


def _numbers(values: ArrayLike, what: str) -> Floats:
    try:
        found = np.array(values, np.float64)
    except (TypeError, ValueError):
        raise CaseError(f"the {what} are {values!r}", remedy="give a list of numbers") from None
    if found.ndim != 1 or not found.size or not np.isfinite(found).all():
        raise CaseError(f"the {what} are {values!r}", remedy="give a list of one or more finite numbers")
    return found


def _words(devices: Devices, count: int, names: Sequence[str] | None) -> list[str]:
    """Return the name of each parameter."""
    given = getattr(devices, "keys", None) if names is None else names
    found = [f"x[{k}]" for k in range(count)] if given is None else [str(name) for name in given]
    if len(found) != count:
        raise CaseError(f"{count} parameters, but {len(found)} names", remedy="give a value for each parameter")
    return found


def _steps(point: Floats, steps: ArrayLike | None, words: Sequence[str]) -> Floats:
    """Return the step of each parameter to either side."""
    found = _STEP * np.abs(point) if steps is None else _numbers(steps, "steps")
    if found.size != point.size:
        raise CaseError(f"{found.size} steps for {point.size} parameters", remedy="give a step for each parameter")
    for value, at, name in zip(found.tolist(), point.tolist(), words, strict=True):
        if not value > 0.0 or at + value == at:
            raise CaseError(
                f"{name} is {at:g}, and its step {value:g}",
                remedy="give a positive step for each parameter, such as steps=[1e-6]",
            )
    return found


def _pair(devices: Devices, device: Device, point: Floats, k: int, step: float, name: str) -> tuple[Device, Device]:
    """Return the devices a step above and below in one parameter."""
    found = []
    for sign in (1.0, -1.0):
        moved = point.copy()
        moved[k] += sign * step
        try:
            found.append(devices(moved))
        except CaseError as error:
            error.message = f"{name} = {moved[k]:.9g}, a step from {point[k]:.9g}: {error.message}"
            raise
    above, below = found
    if not _alike(device, above) or not _alike(device, below) or _moved(above, below):
        counts = " or ".join(f"{n:,}" for n in sorted({len(d.nodes[0]) for d in (device, above, below)}))
        raise CaseError(
            f"the mesh ({counts} nodes) does not move along with {name}: at {point[k]:g} the number of nodes in a "
            "layer, or the place of a boundary between two nodes, changes abruptly",
            key="photodiode.mesh",
            remedy=f"choose a mesh that grows from the boundaries, [photodiode.mesh] graded, another value of {name}, "
            "or a smaller step",
        )
    return above, below


def _alike(one: Device, other: Device) -> bool:
    """Return whether two devices have the same numbers of nodes in the same layers, and the same contacts."""
    rows = [[(layer.name, layer.first, layer.last) for layer in device.layers] for device in (one, other)]
    return (
        one.grid.shape == other.grid.shape
        and rows[0] == rows[1]
        and all(np.array_equal(a.nodes, b.nodes) for a, b in zip(one.terminals, other.terminals, strict=True))
    )


def _moved(one: Device, other: Device) -> bool:
    """Return whether a boundary of layers lies at another place between its nodes."""
    return any(abs(a - b) > _MOVED for a, b in zip(_places(one), _places(other), strict=True))


def _places(device: Device) -> list[float]:
    """Return where between two nodes each boundary of layers lies, 0 to 1."""
    nodes, lengths = device.nodes[0], device.lengths[0]
    return [float((layer.start - nodes[layer.first - 1]) / lengths[layer.first]) for layer in device.layers[1:]]


def _check_structure(own: Coefficients, other: Coefficients, name: str) -> None:
    """Raise CaseError if a device has other kinds of coefficients, such as no ionisation in a layer."""
    kinds = [
        # Numbers of one byte say which equation a node has.
        [
            (item.name, values.shape, values.tobytes() if values.dtype == np.uint8 else b"")
            for item, values in c.values.items()
        ]
        for c in (own, other)
    ]
    if kinds[0] != kinds[1]:
        raise CaseError(
            f"{name} changes which effects the device includes",
            remedy="vary numbers only: doping, thicknesses, compositions, coefficients",
        )


def _named(problem: Problem, currents: Floats, by: Floats) -> Slopes:
    """Return currents of shape (voltages, curves) and derivatives, and those of the gain, by their names."""
    values, derivatives = {}, {}
    for k, curve in enumerate(problem.curves):
        values[f"J{suffix(curve)}"], derivatives[f"J{suffix(curve)}"] = currents[:, k], by[:, k]
    if problem.gain:
        order = [*problem.curves, *problem.curves]
        dark, lit = order.index("dark"), order.index("lit")
        photo, alone = (currents[:, lit + k] - currents[:, dark + k] for k in (0, 2))
        photo_by, alone_by = (by[:, lit + k] - by[:, dark + k] for k in (0, 2))
        values["gain"] = photo / alone
        derivatives["gain"] = (photo_by - values["gain"][:, None] * alone_by) / alone[:, None]
    return Slopes(np.array(problem.bias), values, derivatives)
