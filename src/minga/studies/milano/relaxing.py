"""Runs of the relaxation on blocks, and differences between their results.

The results of a block-hybrid sweep depend only on how the grid is cut into blocks: p blocks give the bits of p ranks.
This is checked on virtual ranks for one case (:mod:`minga.studies.milano.sweeps`); after that, one rank processes all
blocks, without waiting.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.begin import start
from minga.engine.comm import Comm, run_virtual
from minga.engine.engine import Engine
from minga.errors import RunError
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.relaxation.options import RelaxationOptions
from minga.models.electrodeposition.relaxation.scheme import relaxation
from minga.output.velocity import centred
from minga.space.cuts import slabs
from minga.space.layout import Layout

__all__ = ["Arrays", "Relaxed", "difference", "relax", "share"]

Arrays = dict[str, NDArray[np.float64]]

LEAST: Final = 1e-2
"""Fraction of the largest value below which values are compared as if they were that large."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """Results of the relaxations of a problem.

    Attributes
    ----------
    sweeps
        Sweeps of every time step.
    frames
        Fields at cell centres after every step, by name.
    seconds
        Duration.
    """

    sweeps: list[int]
    frames: list[Arrays]
    seconds: float


def cut(layout: Layout, ranks: int) -> Layout:
    """Return the same blocks distributed over ``ranks`` ranks."""
    owner = np.arange(len(layout)) * ranks // len(layout)
    return Layout(layout.domain, ranks, layout.lo, layout.hi, owner)


def relax(problem: Problem, settings: RelaxationOptions, blocks: int, steps: int, ranks: int = 1) -> Relaxed:
    """Run time steps on `blocks` slabs along y, spread over `ranks` virtual ranks."""
    model = relaxation(problem, settings)
    psi = [f for f in model.fields if f.name.startswith("psi_")]
    speeds = [f for f in model.fields if f.name.startswith("v_")]
    sweeps = model.observables["sweeps"]
    assert not isinstance(sweeps, tuple)

    staggered = {"|psi|": psi, "|v|": speeds}

    def body(comm: Comm) -> tuple[list[int], list[Any]]:
        layouts = {grid: cut(slabs(grid.box, blocks, 0, granule=1), ranks) for grid in model.grids}
        counts: list[int] = []
        frames: list[Any] = []
        with Engine(layouts, comm=comm, threads=1) as engine:
            start(model, engine)
            for _ in range(steps):
                outcome = engine.run(model.step)
                if not outcome.ok:
                    raise RunError(
                        f"the relaxation ended with {outcome.reason!r} in {outcome.place or 'its loop'}",
                        remedy="use --quick, or fewer cells",
                    )
                counts.append(int(engine.read(sweeps)))
                plain = {name: engine.gather(model.field(name)) for name in ("C", "A", "potential")}
                sides = {name: [(engine.gather(f), f.centre) for f in parts] for name, parts in staggered.items()}
                if comm.rank == 0:
                    frames.append(plain | {name: _length([_middle(*s) for s in side]) for name, side in sides.items()})
        return counts, frames

    began = time.perf_counter()
    counts, frames = run_virtual(ranks, body)[0]
    return Relaxed(counts, frames, time.perf_counter() - began)


def _middle(values: Any, centre: Sequence[int]) -> NDArray[np.float64]:
    """Return values at faces or edges interpolated to cell centres."""
    for axis, staggered in enumerate(centre):
        if staggered:
            values = centred(values, axis, values.shape[axis] - 1)
    return np.asarray(values)


def _length(parts: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.sqrt(sum((part * part for part in parts), np.zeros_like(parts[0])))


def difference(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the mean over the points of |one - other| / |one|, in %; small values count as `LEAST` of the largest."""
    return 100.0 * float(np.mean(share(one, other)))


def share(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return |one - other| / |one| point by point."""
    floor = max(LEAST * float(np.abs(one).max()), np.finfo(np.float64).tiny)
    return np.asarray(np.abs(one - other) / np.maximum(np.abs(one), floor))
