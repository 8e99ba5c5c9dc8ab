"""Preparation of waves: checks of the arguments, and the conversion of a medium to coefficients."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from minga.engine.presentation import FieldStyle
from minga.errors import CaseError
from minga.models.waves.attenuation import Attenuation, Relaxation, relaxation_of, unrelaxed_ratio
from minga.models.waves.boundary import (
    Boundary,
    Cpml,
    Free,
    Pairs,
    Random,
    Release,
    Rigid,
    Sponge,
    domain_of,
    faces_of,
    kinds,
)
from minga.models.waves.density import Staggered, density_walls
from minga.models.waves.domain import AXES, Domain, check_shape, check_spacing
from minga.models.waves.kernels import Equations, Form, Kind
from minga.models.waves.medium import Medium, Sampler, axis_component
from minga.models.waves.stability import LIMITS, Extremes, check_sigma, extremes_of, limit_ratio
from minga.models.waves.stencils import Differences, first_weights
from minga.models.waves.time_step import stable_step
from minga.models.waves.waves import Waves
from minga.space.boundary import Condition, fixed, reflect
from minga.space.field import Field

__all__ = ["prepare", "step_limit"]

INFINITE_SIGMA: Final = 10.0
"""Limit of sigma above which there are no SV waves, as in Fletcher's codes."""
UNTRUSTED: Final = (
    'choose "sponge", which suits all media, or "random"; matched layers are an experiment here: '
    "Cpml(experimental=True), in a case {cpml = 12, experimental = true}"
)
FORMS: Final = ("fletcher", "selfadjoint")
UNITS: Final = {"vp2": "m2 s-2", "rho": "kg m-3"}
ABOUT: Final = {
    "p": "pressure-like wave field",
    "q": "auxiliary wave field",
    "vp2": "P velocity along the axis of symmetry, squared",
    "epsilon": "Thomsen's epsilon",
    "delta": "Thomsen's delta",
    "nz": "z component of the axis of symmetry",
    "ny": "y component of the axis of symmetry",
    "nx": "x component of the axis of symmetry",
    "rho": "density",
}


def prepare(
    shape: Sequence[int],
    spacing: Sequence[float] | float = 12.5,
    *,
    dt: float | None = None,
    medium: Medium,
    sigma: float = 0.75,
    order: int = 8,
    time_order: int = 2,
    form: Form = "fletcher",
    boundary: Boundary | None = None,
    dtype: str = "f4",
    extremes: Extremes | None = None,
    section: float | None = None,
    attenuation: Attenuation | None = None,
) -> Waves:
    """Return the waves of a model, for use in other Programs; further arguments and errors are those of `fletcher`.

    Parameters
    ----------
    shape
        Cells of the model along z, y, x, along z, x, or along z.
    spacing
        Metres between cells, along each axis or for all.
    dt
        Seconds of a step; None: three quarters of the stability limit.
    medium
        Velocity, anisotropy and axis, or velocity and density.
    sigma
        Determines the SV velocity, as in `fletcher`.
    order
        The order of differences in space: 4, 8, 12 or 16.
    time_order
        The order of steps in time: 2 or 4.
    form
        ``"fletcher"`` or ``"selfadjoint"``.
    boundary
        The boundary; None: Random().
    dtype
        "f4" or "f8".
    extremes
        Result of `extremes_of` for this medium, if it was inspected before.
    section
        Position along y, m, at which pictures of waves on three axes cut the model; None: in the middle.
    attenuation
        Attenuation of the waves; None: none.

    Returns
    -------
    Waves
        The waves.
    """
    lengths = check_shape(shape)
    widths = check_spacing(spacing, len(lengths))
    medium.check(lengths)
    check_sigma(sigma)
    sigma = math.inf if sigma > INFINITE_SIGMA else float(sigma)
    if form not in FORMS:
        raise CaseError(f"there is no form {form!r}", key="fletcher.form", remedy=f"choose one of {', '.join(FORMS)}")
    ends: Boundary = Random() if boundary is None else boundary
    faces = faces_of(ends, len(lengths))
    _check_time_order(time_order)
    kind: Kind = "isotropic" if medium.isotropic else "vertical" if medium.vertical else "tilted"
    reach = len(first_weights(order))  # raises for an invalid order
    least = min(widths)
    steps = [least / h for h in widths]
    staggered = Staggered.of(order, steps) if medium.has_density else None
    _check_faces(faces, kind, form, lengths, reach if staggered is None else staggered.reach)
    domain = domain_of(lengths, widths, faces)
    sampler = Sampler(medium, lengths, domain.low)
    divergence = form == "selfadjoint" and kind == "tilted"
    scrambles = bool(kinds(faces, Random))
    if extremes is None:
        extremes = extremes_of(sampler, widths, order, sigma, divergence=divergence, scrambled=scrambles, domain=domain)
    if _trusted(faces) and extremes.delta_above:
        raise CaseError(
            "matched layers (cpml) where delta exceeds epsilon: waves would slowly grow in them",
            key="fletcher.boundary",
            remedy=UNTRUSTED,
        )
    relaxation = None if attenuation is None else relaxation_of(attenuation, domain)
    dt = stable_step(dt, step_limit(extremes, time_order, faces, relaxation))
    if relaxation is not None and time_order == 4:
        _check_mechanisms(relaxation.attenuation, dt)
    equations = Equations(
        kind, form, domain.axes, Differences.of(order, steps),
        None if math.isinf(sigma) else sigma, (dt / least) * (dt / least),
        _constants(medium, relaxation, varying=scrambles), staggered,
    )  # fmt: skip
    grid = domain.grid()
    wall = fixed(0.0)  # of the medium: values beyond are multiplied by waves that are 0, or are not used
    fields = tuple(
        Field(name, grid, dtype, slots=2, boundary=_walls(domain), description=ABOUT[name]) for name in equations.waves
    )
    coefficients = tuple(
        Field(
            name, grid, dtype, boundary=density_walls(domain) if name == "rho" else wall,
            unit=UNITS.get(name, "1"), description=ABOUT[name],
        )
        for name in equations.stored
    )  # fmt: skip
    increments = tuple(
        Field(f"{name}_increment", grid, dtype, boundary=_walls(domain), description=f"increment of {name} by a step")
        for name in (equations.waves if time_order == 4 or relaxation is not None else ())
    )
    corrections = tuple(
        Field(f"{name}_correction", grid, dtype, boundary=wall, description=f"correction of {name} to fourth order")
        for name in (equations.waves if time_order == 4 and relaxation is not None else ())
    )
    cut = None
    if len(lengths) == 3:
        cut = ("y", 0.5 * (lengths[1] - 1) * widths[1] if section is None else section)
    style = FieldStyle(signed=True, section=cut)
    memories, strength = (
        ((), None) if relaxation is None else relaxation.fields(equations.waves, grid, dtype, time_order)
    )
    return Waves(
        grid, domain, dt, ends, faces, equations, extremes, sampler, fields, coefficients, increments, style,
        relaxation, memories, strength, corrections,
    )  # fmt: skip


def step_limit(extremes: Extremes, time_order: int, faces: Pairs, relaxation: Relaxation | None) -> float:
    """Return the largest stable time step, s.

    Parameters
    ----------
    extremes
        Extreme values of the medium.
    time_order
        Order of the steps in time: 2 or 4.
    faces
        The boundaries.
    relaxation
        The attenuation on the grid; None: none.
    """
    damped = relaxation is not None or bool(kinds(faces, Cpml))
    return limit_ratio(time_order, damped=damped) * extremes.dt_limit / unrelaxed_ratio(relaxation)


def _check_mechanisms(attenuation: Attenuation, dt: float) -> None:
    """Raise CaseError for a mechanism that steps of fourth order do not resolve, with which waves could grow."""
    fastest = max(attenuation.mechanisms)
    if fastest * dt > _MOST_TURNS:
        raise CaseError(
            f"a mechanism of attenuation of {fastest:g} Hz, above {_MOST_TURNS:g} / dt = {_MOST_TURNS / dt:g} Hz, with "
            "steps of fourth order in time",
            key="fletcher.attenuation.frequencies",
            remedy="give a lower band or lower frequencies, or time_order = 2",
        )


def _check_faces(faces: Pairs, kind: Kind, form: Form, lengths: tuple[int, ...], reach: int) -> None:
    """Raise CaseError for boundaries that the equations or the number of cells do not allow."""
    if _trusted(faces) and kind == "tilted":
        raise CaseError(
            "matched layers (cpml) are not known to be stable with a tilted axis", key="fletcher.boundary",
            remedy=UNTRUSTED,
        )  # fmt: skip
    mirrored = bool(kinds(faces, Free)) or bool(kinds(faces, Rigid))
    if kinds(faces, Cpml) and kind == "tilted" and (mirrored or form == "selfadjoint"):
        raise CaseError(
            "experimental matched layers with a tilted axis beside "
            + ("a free surface or a rigid wall" if mirrored else 'the form "selfadjoint"'),
            key="fletcher.boundary" if mirrored else "fletcher.form",
            remedy='choose "sponge" for the layers' + (', or "release"' if mirrored else ', or the form "fletcher"'),
        )
    if mirrored and kind == "tilted" and form == "selfadjoint":
        raise CaseError(
            'free surfaces and rigid walls with a tilted axis need the form "fletcher"',
            key="fletcher.form",
            remedy='choose form = "fletcher", or the boundary "release"',
        )
    for name, pair, cells in zip(AXES[len(lengths)], faces, lengths, strict=True):
        special = [face for face in pair if not isinstance(face, Release | Random | Sponge)]
        if special and cells < reach + 1:
            raise CaseError(
                f"{cells} cells along {name}, where the boundary {special[0]!r} needs {reach + 1} or more",
                key="grid.shape",
                remedy=f"give the model {reach + 1} cells or more along {name}, or choose a lower order",
            )


def _trusted(faces: Pairs) -> bool:
    """Return whether there are matched layers that are not experimental."""
    return any(not face.experimental for face in kinds(faces, Cpml))


def _walls(domain: Domain) -> Mapping[str | int, tuple[Condition, Condition]]:
    """Return the conditions beyond the ends of all axes that are not periodic."""
    conditions = {0: fixed(0.0), -1: _ODD, 1: reflect("edge")}
    return {
        name: (conditions[low], conditions[high])
        for name, (low, high), periodic in zip(domain.axes, domain.mirrors, domain.periodic, strict=True)
        if not periodic
    }


_MOST_TURNS = 0.45
"""Largest frequency of a mechanism times dt in steps of fourth order, which are stable up to 0.477 or more."""
_ODD = Condition("free surface", lambda edge: -edge[edge.layer], homogeneous=True)


def _check_time_order(order: object) -> None:
    if order not in LIMITS or not isinstance(order, int | np.integer):
        raise CaseError(
            f"there is no order {order!r} of steps in time", key="fletcher.time_order", remedy="choose 2 or 4"
        )


def _constants(medium: Medium, relaxation: Relaxation | None, *, varying: bool) -> tuple[tuple[str, float], ...]:
    """Return the coefficients that are uniform; `varying`: the velocity is not, whatever its entry."""
    sampler = Sampler(medium, (1,), (0,))
    vp, theta, phi = (sampler.number(name) for name in ("vp", "theta", "phi"))
    found: dict[str, float] = {}
    if vp is not None and not varying:
        if relaxation is None:
            found["vp2"] = vp * vp
        elif relaxation.uniform is not None:
            found["vp2"] = vp * vp * float(relaxation.attenuation.relaxed(np.array(relaxation.uniform)))
    for name in ("epsilon", "delta"):
        if (number := sampler.number(name)) is not None:
            found[name] = number
    if theta is not None:
        found["nz"] = float(axis_component("z", theta, 0.0))
        if phi is not None or theta == 0.0:
            found |= {f"n{axis}": float(axis_component(axis, theta, phi or 0.0)) for axis in "yx"}
    return tuple(found.items())
