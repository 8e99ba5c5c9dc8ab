"""Adaptive segments: rows change segments, and segments change ranks, during a run.

This is future work in the paper: rows are redistributed when their costs have changed. Costs are the recent Newton
steps of the rows rather than times, so that cuts and all bits are the same on any number of ranks.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.begin import start
from minga.engine.comm import Comm
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.errors import RunError
from minga.models.photodiode.pointwise.scheme import Pointwise, pointwise
from minga.models.photodiode.pointwise.setup import marks
from minga.models.photodiode.solver.problem import Curve, Problem
from minga.models.photodiode.structure.device import Device
from minga.space.layout import Layout
from minga.studies.bounanos.balancers import refine, round_robin
from minga.studies.bounanos.centralised import Solution
from minga.studies.bounanos.cuts import equal, even, loads
from minga.studies.bounanos.segment import STATE

__all__ = ["Adapted", "solve_adaptive"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Adapted:
    """Result of a run, and its balancing.

    Attributes
    ----------
    solution
        Solution, in the same form as for other organisations.
    cuts
        Ends of segments, initially and after each change.
    pauses
        Part of the run time, s, spent on inspecting costs and moving rows.
    """

    solution: Solution
    cuts: tuple[tuple[int, ...], ...]
    pauses: float


def solve_adaptive(
    device: Device,
    segments: int,
    voltage: float,
    curve: Curve,
    how: Pointwise,
    comm: Comm,
    *,
    window: int,
    rest: float = 2.0,
    least: float = 0.02,
) -> Adapted | None:
    """Solve a device at a voltage with ``segments`` segments; collective.

    Parameters
    ----------
    device, voltage, curve, how
        As in :func:`minga.studies.bounanos.centralised.solve_centralised`.
    segments
        Number of segments, cut evenly at first, and distributed over the ranks for equal work.
    comm
        Ranks of the run.
    window
        Iterations between inspections of the costs.
    rest
        Cost of the other sub-cycles of a row, in Newton steps.
    least
        Smallest reduction of the heaviest segment's cost, as a fraction, that justifies new cuts.

    Returns
    -------
    Adapted or None
        The result on rank 0, None on other ranks.

    Raises
    ------
    RunError
        If values are no longer finite.
    """
    rows = device.grid.shape[0]
    ends = equal(rows, segments)
    ways = replace(how, segments=tuple(ends.tolist()), across="block", limit=min(window, how.limit))
    model = pointwise(device, Problem((voltage,), (curve,), ionisation=False), ways)
    mark = "" if curve == "dark" else f"_{curve}"
    done, cuts, before, pauses = 0, [tuple(ends.tolist())], np.zeros(rows), 0.0
    owner = round_robin(segments, comm.size)
    with Engine(_layouts(model, ends, owner, comm.size), comm=comm, threads=1) as engine:
        start(model, engine)
        engine.prepare(model.step, looped=False)
        comm.barrier()
        began = time.perf_counter()
        while True:
            outcome = engine.run(model.step)
            if not outcome.ok and outcome.reason != "limit":
                raise RunError(
                    f"the pointwise scheme ended with {outcome.reason!r}",
                    remedy="use a smaller over-relaxation weight",
                )
            done += _read(engine, model, f"iterations{mark}")
            if outcome.ok or done >= how.limit:
                break
            paused = time.perf_counter()
            steps = _everywhere(engine, comm, model, f"newton_steps{mark}")
            cost = steps - before + rest * ways.limit
            before = steps
            better = even(cost, segments)
            recut = bool(loads(cost, better).max() <= (1.0 - least) * loads(cost, ends).max())
            if recut:
                ends = better
                cuts.append(tuple(ends.tolist()))
            dealt = refine(loads(cost, ends), owner, comm.size, least)
            if recut or (dealt != owner).any():
                owner = dealt
                engine.relayout(_layouts(model, ends, owner, comm.size))
            if recut:
                for name, values in marks(ends, rows).items():
                    engine.set(model.field(name), values)
            engine.prepare(model.step, looped=False)
            pauses += time.perf_counter() - paused
        seconds = time.perf_counter() - began
        named = {name: engine.gather(model.field(name + mark)) for name in (*STATE, "newton_steps")}
        change = float(_read(engine, model, f"change{mark}"))
    if comm.rank != 0:
        return None
    state = {name: np.asarray(values) for name, values in named.items()}
    return Adapted(Solution(state, done, change, seconds), tuple(cuts), pauses)


def _layouts(model: Model, ends: Ints, owner: Ints, ranks: int) -> dict[Any, Layout]:
    layout = Layout(model.grid.box, ranks, ends[:-1, None], ends[1:, None], owner)
    return dict.fromkeys(model.grids, layout)


def _read(engine: Engine, model: Model, name: str) -> Any:
    register = model.observables[name]
    assert not isinstance(register, Sequence)
    return engine.read(register)


def _everywhere(engine: Engine, comm: Comm, model: Model, name: str) -> Floats:
    """Return the values of a field, on every rank."""
    return np.asarray(comm.bcast(engine.gather(model.field(name))), np.float64)
