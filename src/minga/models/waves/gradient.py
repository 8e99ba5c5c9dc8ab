"""Gradients of the misfit of a shot by the medium, with the exact adjoint of the time step.

The adjoint of sources, receivers, layers, surfaces and steps of any order is that of the recorded step
(`minga.solve.adjoint`), not a discretisation of an adjoint equation. Layers repeat the outermost cells of the model:
their part of the gradient belongs to those. The time step and the profiles of layers count as constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm, SerialComm
from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.errors import CaseError
from minga.models.waves.boundary import Random, kinds
from minga.models.waves.medium import Floats, cosine, sine
from minga.models.waves.misfits import MISFITS, Misfit
from minga.models.waves.model import Waves, stepping_of
from minga.models.waves.point_table import PointTable
from minga.models.waves.receivers import Receivers, Taps
from minga.models.waves.source import Source
from minga.solve.adjoint.adjoint import MEMORY, adjoint
from minga.space.box import Box
from minga.space.cuts import parse_layout
from minga.space.field import STEP, Field

__all__ = [
    "QUANTITIES",
    "Shot",
    "ShotRun",
    "checked_data",
    "fields_of",
    "partials",
    "shot_gradient",
    "shot_traces",
]

QUANTITIES: Final = ("vp", "slowness", "epsilon", "delta", "theta", "phi", "density")
"""Quantities by whose values a misfit is differentiated."""

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "vp": ("vp2",), "slowness": ("vp2",), "epsilon": ("epsilon",), "delta": ("delta",), "theta": ("nz", "ny", "nx"),
    "phi": ("ny", "nx"), "density": ("rho",),
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Shot:
    """Sources and receivers of a shot, and what was recorded.

    Parameters
    ----------
    sources
        The sources.
    receivers
        The receivers.
    data
        Observed samples of shape (samples, receivers): data[k] after k * receivers.every steps, the first one at the
        start. None: not known yet.
    """

    sources: Sequence[Source]
    receivers: Receivers
    data: NDArray[Any] | None = None


def shot_traces(
    waves: Waves, shot: Shot, samples: int, *, threads: int = 1, comm: Comm | None = None, layout: str = "slabs"
) -> Floats:
    """Return the traces of a shot; collective.

    Parameters
    ----------
    waves
        Waves in the medium, from `minga.models.waves.prepare`.
    shot
        The shot, whose data are not used.
    samples
        Number of samples, the first of them at the start.
    threads
        Threads of each rank.
    comm
        Ranks that compute together; None: this process alone.
    layout
        Layout of the grid over the ranks.

    Returns
    -------
    ndarray
        Samples, f8 of shape (samples, receivers), on all ranks.
    """
    run = ShotRun(waves, shot)
    with run.engine(threads, comm, layout) as engine:
        return run.record(engine, run.stepping.step, waves.fields[0], samples)


def shot_gradient(
    waves: Waves,
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
        Waves in the medium, from `minga.models.waves.prepare`, with any boundary but Random().
    shot
        The shot with its data.
    wrt
        Quantities of the medium by whose values to differentiate, each given as an array or a function of a Box:
        "vp", "slowness" (1 / vp), "epsilon", "delta", "theta", "phi", "density" (at fixed vp).
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
    fields = fields_of(waves, wrt)
    measure = _misfit(misfit)
    data = checked_data(shot)
    run = ShotRun(waves, shot)
    reverse = adjoint(run.stepping.step, [*fields.values()])
    table, p = run.table(len(data)), waves.fields[0]
    observe, seed = run.sampling(table, p), run.injection(table, reverse.of[p])
    found: list[float] = []

    def compare(engine: Engine) -> None:
        table.combine(engine.comm)
        number, slopes = measure(table.values.copy(), data)
        found.append(float(number))
        table.values[...] = slopes

    with run.engine(threads, comm, layout) as engine:
        reverse.run(engine, table.steps, seed=seed, observe=observe, memory=memory, between=compare)
        whole = {name: engine.gather(reverse.of[item]) for name, item in fields.items()}
    if any(values is None for values in whole.values()):
        return found[0], None
    slopes = {name: _folded(np.asarray(values, np.float64), waves) for name, values in whole.items()}
    return found[0], {name: _chained(name, slopes, waves) for name in wrt}


class ShotRun:
    """Step and receivers of a shot, and the samples taken so far.

    Parameters
    ----------
    waves
        The waves.
    shot
        The shot.
    """

    def __init__(self, waves: Waves, shot: Shot) -> None:
        if not len(shot.receivers.positions):
            raise CaseError("a shot without receivers", key="shot", remedy="give one or more positions")
        self.waves, self.shot = waves, shot
        self.stepping = stepping_of(waves, shot.sources)
        self.taps = Taps.of(shot.receivers.placed(waves.domain))

    def engine(self, threads: int, comm: Comm | None, layout: str) -> Engine:
        """Return an engine with the state at the start, and 0 in all other fields."""
        ranks = comm or SerialComm()
        grid = self.waves.grid
        engine = Engine({grid: parse_layout(layout, grid.box, ranks.size)}, comm=ranks, threads=threads)
        for item in self.stepping.fields:
            for slot in range(item.slots):
                engine.set(item.slot(slot), self.stepping.initial.get(item.name, 0.0))
        engine.write(STEP, 0)
        return engine

    def table(self, samples: int) -> PointTable:
        """Return a table for a number of samples, whose positions are steps."""
        return PointTable(self.taps, samples, self.shot.receivers.every)

    def injection(self, table: PointTable, field: Field) -> Program:
        """Return a Program that adds the rows of a table to a field at the receivers, from the last to the first."""
        program = Program("inject")
        program.call(table.injection(field), reads=(field,), writes=(field,))
        return program

    def sampling(self, table: PointTable, field: Field) -> Program:
        """Return a Program that samples a field at the receivers into a table each time it has run `table.every` times.

        The first time counts as 0.
        """
        program = Program("sample")
        if self.taps.reach:
            program.refresh(field, self.taps.reach)
        program.call(table.sampling(field), reads=(field,))
        return program

    def record(self, engine: Engine, step: Program, field: Field, samples: int) -> Floats:
        """Return the samples of a field at the receivers while a step is repeated from the present state."""
        table = self.table(samples)
        sampling = self.sampling(table, field)
        interval = Program("interval")
        interval.include(step)
        interval.include(sampling)
        engine.run(sampling)
        if table.steps:
            engine.run(interval, table.steps)
        table.combine(engine.comm)
        return table.values


def fields_of(waves: Waves, wrt: Sequence[str]) -> dict[str, Field]:
    """Return the fields of the medium that vary with some quantities; raise CaseError if one of these cannot vary."""
    if kinds(waves.faces, Random):
        raise CaseError(
            "random layers have no gradient: their velocities depend on the largest one of the model",
            key="fletcher.boundary",
            remedy="choose Sponge(), Cpml() or another boundary",
        )
    known = {item.name: item for item in waves.medium}
    found: dict[str, Field] = {}
    for name in wrt:
        if name not in QUANTITIES:
            raise CaseError(f"there is no quantity {name!r}", key="wrt", remedy=f"choose from {', '.join(QUANTITIES)}")
        needed = [each for each in _FIELDS[name] if each[1:] not in ("y", "x", "z") or each[1:] in waves.domain.axes]
        if not all(each in known for each in needed) or (name == "phi" and "y" not in waves.domain.axes):
            entry = {"slowness": "vp", "density": "rho"}.get(name, name)
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
        return misfit
    if misfit not in MISFITS:
        raise CaseError(f"there is no misfit {misfit!r}", key="misfit", remedy=f"choose from {', '.join(MISFITS)}")
    return MISFITS[misfit]


def checked_data(shot: Shot) -> Floats:
    """Return the data of a shot; raise CaseError if they do not match its receivers."""
    data = np.asarray(shot.data, np.float64) if shot.data is not None else np.zeros((0, 0))
    if data.ndim != 2 or len(data) < 2 or data.shape[1] != len(shot.receivers.positions):
        raise CaseError(
            f"the data have shape {data.shape}, for {len(shot.receivers.positions)} receivers",
            remedy="give a row for each sample, two or more, and a column for each receiver",
        )
    if not np.isfinite(data).all():
        raise CaseError("the data have values that are not finite", remedy="mute those traces: set them to 0")
    return data


def _folded(values: Floats, waves: Waves) -> Floats:
    """Return the gradient by the cells of the model, each with that of the cells of layers which repeat it."""
    for axis, (low, n) in enumerate(zip(waves.domain.low, waves.domain.shape, strict=True)):
        values = np.moveaxis(values, axis, 0)
        inside = values[low : low + n].copy()
        inside[0] += np.add.accumulate(values[:low], axis=0)[-1] if low else 0.0
        rest = values[low + n :]
        inside[-1] += np.add.accumulate(rest, axis=0)[-1] if len(rest) else 0.0
        values = np.moveaxis(inside, 0, axis)
    return values


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
        An entry of QUANTITIES.
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
    if name in ("epsilon", "delta"):
        return {name: 1.0}
    if name == "density":
        return {"rho": 1.0}
    theta, phi = entry("theta"), entry("phi")
    parts: dict[str, Floats | float] = {
        "nz": -sine(theta), "ny": cosine(theta) * sine(phi), "nx": cosine(theta) * cosine(phi)
    }  # fmt: skip
    if name == "phi":
        parts = {"ny": sine(theta) * cosine(phi), "nx": -sine(theta) * sine(phi)}
    return {part: factor for part, factor in parts.items() if part[1] in waves.domain.axes}
