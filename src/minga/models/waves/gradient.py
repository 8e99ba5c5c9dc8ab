"""Gradients of the misfit of a shot by the medium, with the exact adjoint of the time step.

The adjoint of sources, receivers, layers, surfaces and steps of any order is that of the recorded step
(`minga.solve.adjoint`), not a discretisation of an adjoint equation. Layers repeat the outermost cells of the model:
their part of the gradient belongs to those. The time step and the profiles of layers count as constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import numpy as np

from minga.engine.comm import Comm
from minga.engine.engine import Engine
from minga.errors import CaseError
from minga.models.waves.boundary import Random, kinds
from minga.models.waves.domain import folded
from minga.models.waves.elastic.medium import ENTRIES
from minga.models.waves.elastic.sensitivity import ElasticSensitivity
from minga.models.waves.elastic.waves import ElasticWaves
from minga.models.waves.medium import Floats, cosine, sine
from minga.models.waves.misfits import MISFITS, Misfit
from minga.models.waves.shot import AnyWaves, Shot, ShotRun, checked_data
from minga.models.waves.velocity import check_sensitivity
from minga.models.waves.waves import Waves
from minga.solve.adjoint.adjoint import MEMORY, adjoint
from minga.space.box import Box
from minga.space.field import Field

__all__ = [
    "QUANTITIES",
    "PreparedGradient",
    "Sensitivity",
    "fields_of",
    "partials",
    "quantities",
    "sensitivity_of",
    "shot_gradient",
]

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "vp": ("vp2",), "slowness": ("vp2",), "epsilon": ("epsilon",), "delta": ("delta",), "theta": ("nz", "ny", "nx"),
    "phi": ("ny", "nx"), "rho": ("rho",), "inverse_q": ("tau", "vp2"),
}  # fmt: skip

QUANTITIES: Final = tuple(dict.fromkeys((*_FIELDS, *ENTRIES)))
"""Quantities by whose values a misfit is differentiated."""


class Sensitivity(Protocol):
    """Derivatives of the fields of a medium by its quantities."""

    def fields(self, wrt: Sequence[str]) -> dict[str, Field]:
        """Return the fields that vary with some quantities, by name."""

    def changes(self, changes: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the changes of the fields, on the grid, by those of quantities, on the model."""

    def slopes(self, wrt: Sequence[str], slopes: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return derivatives by quantities, on the model, from those by the fields, on the grid: the transpose."""


@dataclass(frozen=True, slots=True, eq=False)
class AcousticSensitivity:
    """Derivatives of the fields of a transversely isotropic medium."""

    waves: Waves

    def fields(self, wrt: Sequence[str]) -> dict[str, Field]:
        """Return the fields that vary with some quantities, by name."""
        return fields_of(self.waves, wrt)

    def changes(self, changes: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return changes of the fields; layers repeat those of the outermost cells of the model."""
        found: dict[str, Floats] = {}
        for name, change in changes.items():
            for part, factor in partials(name, self.waves).items():
                found[part] = found.get(part, np.zeros(self.waves.domain.shape)) + factor * change
        layers = list(zip(self.waves.domain.low, self.waves.domain.high, strict=True))
        return {name: np.pad(values, layers, mode="edge") for name, values in found.items()}

    def slopes(self, wrt: Sequence[str], slopes: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return derivatives by quantities."""
        inside = {name: folded(values, self.waves.domain) for name, values in slopes.items()}
        return {name: _chained(name, inside, self.waves) for name in wrt}


def sensitivity_of(waves: AnyWaves) -> Sensitivity:
    """Return the derivatives of the fields of a medium."""
    if isinstance(waves, ElasticWaves):
        return ElasticSensitivity(waves)
    if isinstance(waves, Waves):
        return AcousticSensitivity(waves)
    raise CaseError(
        f"waves are a {type(waves).__name__}", key="waves", remedy="give the result of prepare() or prepare_elastic()"
    )


def shot_gradient(
    waves: AnyWaves,
    shot: Shot,
    wrt: Sequence[str] = ("vp",),
    *,
    misfit: str | Misfit = "l2",
    memory: int = MEMORY,
    threads: int = 1,
    comm: Comm | None = None,
    layout: str = "slabs",
) -> tuple[float, dict[str, Floats] | None]:
    """Return the misfit of a shot and its gradient; collective.

    Parameters
    ----------
    waves
        Waves in the medium, from `minga.models.waves.prepare`, with any boundary but Random(), or from
        `minga.models.waves.elastic.prepare_elastic`.
    shot
        The shot with its data.
    wrt
        Quantities of the medium by whose values to differentiate, each given as an array or a function of a Box:
        "vp", "slowness" (1 / vp), "epsilon", "delta", "theta", "phi", "rho" (at fixed vp), "inverse_q" (1 / Q of
        the attenuation); of elastic waves "vp", "vs", "rho".
    misfit
        "l2", "normalised" or "envelope" (`minga.models.waves.misfits`), or a function of the computed and the observed
        traces that returns the misfit and its derivative by the computed ones.
    memory
        Bytes of each rank for states of the waves; with fewer, steps are computed again.
    threads
        Threads of each rank.
    comm
        Ranks that compute together; None: this process alone.
    layout
        Layout of the grid over the ranks.

    Returns
    -------
    tuple
        The misfit, and for each quantity an array of the model's shape, f8; None in place of the arrays on other ranks
        than 0.

    Raises
    ------
    CaseError
        If a quantity is not an array, the data do not match the receivers, or a face has random velocities.
    """
    with PreparedGradient(waves, shot, wrt, threads=threads, comm=comm, layout=layout) as prepared:
        return prepared.of(waves, misfit, memory)


class PreparedGradient:
    """The gradient of a shot, whose step, adjoint and engine serve for all waves of the same structure; a context.

    Parameters
    ----------
    waves, shot, wrt, threads, comm, layout
        As for `shot_gradient`.
    """

    def __init__(
        self, waves: AnyWaves, shot: Shot, wrt: Sequence[str], *, threads: int = 1, comm: Comm | None = None,
        layout: str = "slabs",
    ) -> None:  # fmt: skip
        self.fields = sensitivity_of(waves).fields(wrt)
        self.run = ShotRun(waves, shot)
        check_sensitivity(self.run.sensors, wrt)
        self.wrt, self.structure = tuple(wrt), waves.structure
        self.reverse = adjoint(self.run.stepping.step, [*self.fields.values()])
        self.table = self.run.table(len(checked_data(shot)))
        self.observe, self.seed = self.table.sampling(), self.table.injection(self.reverse.of)
        waves.watch(self.observe, shot.sources)
        self.engine = self.run.engine(threads, comm, layout)
        self._begun = False

    def __enter__(self) -> PreparedGradient:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the engine."""
        self.engine.close()

    @property
    def bytes(self) -> int:
        """Bytes of all fields, without the states that a run stores."""
        recording = self.reverse.recording
        values = () if recording.remembered is None else [slot.field for slot in recording.remembered.slots]
        fields = {*self.run.stepping.fields, *self.reverse.of.values(), *recording.workspace, *values}
        return sum(item.points.size * item.slots * np.dtype(item.dtype).itemsize for item in fields)

    def of(self, waves: AnyWaves, misfit: str | Misfit, memory: int) -> tuple[float, dict[str, Floats] | None]:
        """Return the misfit and its gradient, as `shot_gradient` does; the waves have the structure of the first ones.

        Parameters
        ----------
        waves
            The waves.
        misfit, memory
            As for `shot_gradient`.
        """
        measure, data, found = _misfit(misfit), checked_data(self.run.shot), list[float]()
        engine, fields = self.engine, self.fields
        if self._begun:
            self.table.rewind()
            self.run.start(engine, waves.stepping(self.run.shot.sources).initial)
        self._begun = True

        def compare(engine: Engine) -> None:
            number, slopes = measure(self.table.traces(engine.comm), data)
            found.append(float(number))
            self.table.store(np.asarray(slopes, np.float64))

        self.reverse.run(
            engine, self.table.steps, seed=self.seed, observe=self.observe, memory=memory, between=compare
        )  # fmt: skip
        whole = {name: engine.gather(self.reverse.of[item]) for name, item in fields.items()}
        if any(values is None for values in whole.values()):
            return found[0], None
        arrays = {name: np.asarray(values, np.float64) for name, values in whole.items()}
        return found[0], quantities(waves, self.wrt, arrays)


def quantities(waves: AnyWaves, wrt: Sequence[str], slopes: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return derivatives by quantities on the model, from those by the fields of the medium on the grid."""
    return sensitivity_of(waves).slopes(wrt, slopes)


def fields_of(waves: Waves, wrt: Sequence[str]) -> dict[str, Field]:
    """Return the fields of the medium that vary with some quantities; raise CaseError if one of these cannot vary."""
    if kinds(waves.faces, Random):
        raise CaseError(
            "random layers have no gradient: their velocities depend on the largest one of the model",
            key="fletcher.boundary",
            remedy="choose Sponge(), Cpml() or another boundary",
        )
    known = {item.name: item for item in (*waves.medium, *(() if waves.strength is None else (waves.strength,)))}
    found: dict[str, Field] = {}
    for name in wrt:
        if name not in _FIELDS:
            raise CaseError(f"there is no quantity {name!r}", key="wrt", remedy=f"choose from {', '.join(_FIELDS)}")
        needed = [each for each in _FIELDS[name] if each[1:] not in ("y", "x", "z") or each[1:] in waves.domain.axes]
        if not all(each in known for each in needed) or (name == "phi" and "y" not in waves.domain.axes):
            entry = {"slowness": "vp", "inverse_q": "q of the attenuation"}.get(name, name)
            raise CaseError(
                f"{entry} is one number, or does not enter the equations",
                key=f"fletcher.medium.{entry}",
                remedy="prepare the waves with an array of it"
                + ("" if entry in ("vp", "rho") else ", and with the other quantities of anisotropy"),
            )
        found |= {each: known[each] for each in needed}
    return found


def _misfit(misfit: str | Misfit) -> Misfit:
    if callable(misfit):
        return partial(_measured, misfit)
    if not isinstance(misfit, str) or misfit not in MISFITS:
        raise CaseError(f"there is no misfit {misfit!r}", key="misfit", remedy=f"choose from {', '.join(MISFITS)}")
    return MISFITS[misfit]


def _measured(misfit: Misfit, found: Floats, data: Floats) -> tuple[float, Floats]:
    """Return the misfit and the derivative that a function returns; raise CaseError if they are something else."""
    result: Any = misfit(found, data)
    pair = result if isinstance(result, tuple | list) and len(result) == 2 else (None, None)
    try:
        number, slopes = (np.asarray(each) for each in pair)
        right = all(each.dtype.kind in "iuf" and np.isfinite(each).all() for each in (number, slopes))
    except ValueError:  # rows of different lengths
        right = False
    if not right or number.ndim or slopes.shape != found.shape:
        raise CaseError(
            f"the function of the misfit returned a {type(result).__name__}, in place of a finite number and a finite "
            f"array of the shape of the traces, {found.shape}",
            key="misfit",
            remedy="return the misfit and its derivative by the computed traces: (0.5 * (r * r).sum(), r)",
        )
    return float(number), slopes.astype(np.float64)


def _chained(name: str, slopes: Mapping[str, Floats], waves: Waves) -> Floats:
    """Return the gradient by a quantity, from those by the fields that depend on it."""
    total = np.zeros(waves.domain.shape)
    for part, factor in partials(name, waves).items():
        total = total + factor * slopes[part]
    return total


def partials(name: str, waves: Waves) -> dict[str, Floats | float]:
    """Return the derivatives of the fields of the medium by a quantity, cell by cell.

    Parameters
    ----------
    name
        "vp", "slowness", "epsilon", "delta", "theta", "phi", "rho" or "inverse_q".
    waves
        The waves.

    Returns
    -------
    dict
        For each field that varies with it, by name, the derivative: a number or an array of the model's shape.
    """
    whole = Box(tuple(waves.domain.low), waves.domain.inside.hi)

    def entry(quantity: str) -> Floats:
        return waves.sampler.values(quantity, whole)

    relaxed = 1.0 if waves.relaxation is None else waves.relaxation.relaxed(whole)
    if name == "vp":
        return {"vp2": 2.0 * entry("vp") * relaxed}
    if name == "slowness":
        return {"vp2": -2.0 * entry("vp") ** 3 * relaxed}
    if name in ("epsilon", "delta", "rho"):
        return {name: 1.0}
    if name == "inverse_q":
        assert waves.relaxation is not None
        q = waves.relaxation.sampler.values("q", whole)
        tau, ratio = waves.relaxation.attenuation.slopes(waves.relaxation.strength(whole), q)
        return {"tau": tau, "vp2": np.square(entry("vp")) * ratio}
    theta, phi = entry("theta"), entry("phi")
    parts: dict[str, Floats | float] = {
        "nz": -sine(theta), "ny": cosine(theta) * sine(phi), "nx": cosine(theta) * cosine(phi)
    }  # fmt: skip
    if name == "phi":
        parts = {"ny": sine(theta) * cosine(phi), "nx": -sine(theta) * sine(phi)}
    return {part: factor for part, factor in parts.items() if part[1] in waves.domain.axes}
