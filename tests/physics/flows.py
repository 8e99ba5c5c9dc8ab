"""Flows in boxes for tests: what is around them, what is carried by them, and steps until nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import minga as mg
from minga.engine.comm import Comm
from minga.models.electrodeposition.flow import Flow, Lids
from minga.models.electrodeposition.problem import Constants, Problem, Species, Steps
from minga.models.electrodeposition.state import State, state_of
from minga.space.cuts import slabs

Floats = NDArray[np.float64]
Recorder = Callable[["Box", mg.Program], None]


@dataclass(frozen=True, eq=False)
class Box:
    """A flow in a box of fluid, in units of the test's choice."""

    grid: mg.Grid
    density: float
    viscosity: float
    dt: float
    lids: Lids = field(default_factory=dict)
    species: tuple[Species, ...] = ()
    gravity: tuple[float, ...] = ()
    constants: Mapping[str, float] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    problem: Problem = field(init=False)
    state: State = field(init=False)
    flow: Flow = field(init=False)

    def __post_init__(self) -> None:
        scaled = {"faraday": 1.0, "thermal": 1.0, "permittivity": 1.0, **self.constants}
        constants = Constants(density=self.density, viscosity=self.viscosity, **scaled)
        steps = Steps(end=1.0, every=self.dt, first=self.dt)
        problem = Problem(self.grid, self.species, steps, constants, gravity=self.gravity, flow=True)
        put = object.__setattr__
        put(self, "problem", problem)
        put(self, "state", state_of(problem))
        put(self, "flow", Flow(problem, self.state, **{"lids": self.lids, **self.options}))


@dataclass(frozen=True, eq=False)
class Found:
    """What was left after the last step."""

    velocity: tuple[Floats, ...]
    pressure: Floats
    passes: int
    iterations: tuple[int, int]
    divergence: float
    others: Mapping[str, Any]


def run(
    box: Box,
    steps: int,
    *,
    before: Recorder | None = None,
    after: Recorder | None = None,
    initial: Mapping[Any, Any] | None = None,
    ends: Sequence[mg.Field | mg.Register] = (),
    ranks: int = 1,
    dts: Sequence[float] = (),
) -> Found:
    """So many steps, each after what `before` records (forces) and before what `after` does (what is carried)."""
    flow, state = box.flow, box.state
    setup, step = mg.Program("setup"), mg.Program("step")
    flow.setup(setup)
    if before is not None:
        before(box, step)
    flow.step(step)
    if after is not None:
        after(box, step)
    step.rotate(*state.velocity)
    step.let(state.last, state.dt)
    step.let(state.time, state.time + state.dt)

    def work(comm: Comm | None) -> Found:
        layouts = {box.grid: slabs(box.grid.box, ranks, granule=1)}
        for one in flow.hierarchies:
            layouts.update(one.layouts(layouts[box.grid]))
        with mg.Engine(layouts, comm=comm) as engine:
            for item, values in {**flow.initial, **(initial or {})}.items():
                engine.set(item, values)
            assert engine.run(setup).ok
            for number in range(steps):
                engine.write(state.dt, dts[number] if dts else box.dt)
                outcome = engine.run(step)
                assert outcome.ok, (number, outcome)
            effort = flow.effort
            return Found(
                tuple(engine.gather(v) for v in state.velocity),
                engine.gather(state.pressure),
                engine.read(effort.passes),
                (engine.read(effort.velocity), engine.read(effort.poisson)),
                engine.read(effort.divergence),
                {e.name: engine.read(e) if isinstance(e, mg.Register) else engine.gather(e) for e in ends},
            )

    return work(None) if ranks == 1 else mg.run_virtual(ranks, work)[0]


def extremum(values: Floats, at: int) -> float:
    """The top of a parabola through a value and its neighbours."""
    a, b, c = values[at - 1 : at + 2]
    return float(b - (c - a) ** 2 / (8.0 * (a - 2.0 * b + c)))


def highest(values: Floats) -> float:
    return extremum(values, int(values.argmax()))


def lowest(values: Floats) -> float:
    return extremum(values, int(values.argmin()))


def extrapolated(coarse: float, fine: float) -> float:
    """Richardson's: what two grids, one twice as fine, let expect of a method of second order."""
    return fine + (fine - coarse) / 3.0
