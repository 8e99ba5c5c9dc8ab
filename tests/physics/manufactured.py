"""Solutions that are chosen, with the sources that make them exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import minga as mg
from minga.models.electrodeposition.formula import Formula
from minga.models.electrodeposition.iteration import Iteration
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.potential import Poisson
from minga.models.electrodeposition.problem import Constants, Electrode, Held, Problem, Species, Steps
from minga.models.electrodeposition.solvers import Solvers, Unsolved
from minga.models.electrodeposition.state import state_of
from minga.models.electrodeposition.transport import Transport

from .flows import Box, run

Floats = NDArray[np.float64]
PI = np.pi
DEBYE2 = 0.02
"""Of the manufactured ions: the permittivity, with everything else 1."""


@dataclass(frozen=True)
class Waves:
    """even + slope y + sum of A cos(k pi x) cos(l pi z) sin(pi y) cos t: even walls, and no slope at glass.

    waves  (A, k of x, l of z)
    """

    even: float
    slope: float
    waves: tuple[tuple[float, int, int], ...]

    def __call__(self, places: Sequence[Floats], t: float) -> Floats:
        y, z, x = places
        return self.even + self.slope * y + self._sum(lambda a, k, m: a * _cos(k, x) * _cos(m, z) * np.sin(PI * y), t)

    def gradient(self, places: Sequence[Floats], t: float) -> tuple[Floats, ...]:
        y, z, x = places
        return (
            self.slope + self._sum(lambda a, k, m: PI * a * _cos(k, x) * _cos(m, z) * np.cos(PI * y), t),
            self._sum(lambda a, k, m: -PI * m * a * _cos(k, x) * np.sin(PI * m * z) * np.sin(PI * y), t),
            self._sum(lambda a, k, m: -PI * k * a * np.sin(PI * k * x) * _cos(m, z) * np.sin(PI * y), t),
        )

    @property
    def laplace(self) -> Waves:
        return Waves(0.0, 0.0, tuple((-(PI**2) * (1 + k * k + m * m) * a, k, m) for a, k, m in self.waves))

    def rate(self, places: Sequence[Floats], t: float) -> Floats:
        """The derivative by time."""
        return Waves(0.0, 0.0, self.waves)(places, t + 0.5 * PI)

    def _sum(self, term: Any, t: float) -> Floats:
        return np.cos(t) * sum(term(*wave) for wave in self.waves)


def _cos(k: int, x: Floats) -> Floats:
    return np.cos(PI * k * x)


def stream(places: Sequence[Floats], *orders: int) -> Floats:
    """The derivative of that order along each axis of F(y) F(z) F(x), F = sin(pi s)^2: zero with its slope at walls."""
    result = np.ones(())
    for s, order in zip(places, orders, strict=True):
        whole = np.sin(PI * s) ** 2, PI * np.sin(2 * PI * s), 2 * PI**2 * np.cos(2 * PI * s)
        result = result * (*whole, -4 * PI**3 * np.sin(2 * PI * s))[order]
    return result


@dataclass(frozen=True)
class Ions:
    """Two ions and their field, carried by a flow that is given; axes y, x or y, z, x."""

    ndim: int
    strength: float = 0.5

    @property
    def potential(self) -> Waves:
        return Waves(0.0, 1.0, ((0.2, 1, self.ndim - 2),))

    @property
    def anion(self) -> Waves:
        return Waves(1.0, 0.0, ((0.2, 2, self.ndim - 2),))

    @property
    def cation(self) -> Waves:
        """What Poisson's equation asks for."""
        return Waves(1.0, 0.0, (*self.anion.waves, *((-DEBYE2 * a, k, m) for a, k, m in self.potential.laplace.waves)))

    def velocity(self, places: Sequence[Floats]) -> tuple[Floats, Floats, Floats]:
        """Along y, z, x."""
        y, z, x = places
        planar, flat = (y, x), 0.0 * z
        return (self.strength * stream(planar, 0, 1) + flat, 0.0 * y + flat + 0.0 * x,
                -self.strength * stream(planar, 1, 0) + flat)  # fmt: skip

    def source(self, ion: Waves, charge: int, diffusivity: float, places: Sequence[Floats], t: float) -> Floats:
        """dc/dt + div N."""
        c, slopes, phi = ion(places, t), ion.gradient(places, t), self.potential
        drift = sum(a * b for a, b in zip(slopes, phi.gradient(places, t), strict=True)) + c * phi.laplace(places, t)
        carried = sum(v * g for v, g in zip(self.velocity(places), slopes, strict=True))
        spread = diffusivity * (ion.laplace(places, t) + charge * drift)
        return ion.rate(places, t) - spread + carried


@mg.kernel
def add_to(c: Any, source: Any, *, factor: Any) -> None:
    """c = c + factor * source."""
    here = (0,) * len(c.axes)
    c[here] = c[here] + factor * source[here]


def errors_of_ions(ndim: int, cells: int, steps: int, end: float = 0.25) -> dict[str, float]:
    """Largest errors of ions and potential at the end, by name, in a unit cube."""
    axes = ("y", "x") if ndim == 2 else ("y", "z", "x")
    grid = mg.Grid((cells,) * ndim, axes=axes, spacing=1.0 / cells)
    held = Electrode({"cation": Held(1.0), "anion": Held(1.0)})
    species = Species("cation", 1, 1.0, 1.0), Species("anion", -1, 0.6, 1.0)
    dt = end / steps
    problem = Problem(
        grid, species, Steps(end, end, dt), Constants(1.0, 1.0, DEBYE2, 1.0, 1.0), cathode=held, anode=held,
        voltage=1.0, flow=True,
    )  # fmt: skip
    state, lengths, formula = state_of(problem), Lengths(grid), Formula()
    drive = {name: mg.Register(f"drive {name}") for name in ("voltage", "at_cathode", "at_anode")}
    unsolved = Unsolved()
    transport = Transport(problem, state, lengths, drive, formula, 1e-11, 500, unsolved.concentrations)
    solvers = Solvers(grid, 500, unsolved.potential)
    poisson = Poisson(problem, state, lengths, drive, formula, solvers.solve, solvers.assembled)
    solvers.prepare(poisson.first, poisson.second)
    iteration = Iteration(problem, state, poisson, transport, formula, drive, 40, 1e-8, solvers.iterations, unsolved)
    sources = [mg.Field(f"source of {s.name}", grid) for s in species]

    step = mg.Program("step")
    iteration.prepare(step)
    formula.record(step, state.dt, state.last / state.dt)
    for sign in (1.0, -1.0):
        # What is added to the old values enters the formula as a source.
        for c, source in zip(state.concentration, sources, strict=True):
            step.apply(add_to, c.now, source, factor=sign / formula.now)
        if sign > 0:
            iteration.record(step)
    step.rotate(*state.concentration, state.potential)
    iteration.commit(step)
    step.let(state.last, state.dt)

    exact = Ions(ndim)
    places = _places(grid)
    waves = exact.cation, exact.anion
    layout = mg.Layout.single(grid.box, 1)
    layouts = {grid: layout}
    for one in solvers.hierarchies:
        layouts |= one.layouts(layout)
    with mg.Engine(layouts) as engine:
        engine.set(state.kind, 0)
        for item, values in lengths.initial.items():
            engine.set(item, values)
        for c, wave in zip(state.concentration, waves, strict=True):
            engine.set(c, wave(places, 0.0))
        engine.set(state.potential, exact.potential(places, 0.0))
        for axis, v in enumerate(state.velocity):
            shown = exact.velocity(_places(grid, axis))[{"y": 0, "z": 1, "x": 2}[axes[axis]]]
            for slot in (v.now, v.previous):
                engine.set(slot, shown)
        engine.write(state.dt, dt)
        engine.write(state.voltage, 1.0)
        for number in range(steps):
            for item, wave, source in zip(species, waves, sources, strict=True):
                engine.set(source, exact.source(wave, item.charge, item.diffusivity, places, (number + 1) * dt))
            outcome = engine.run(step)
            assert outcome.ok, outcome
            assert engine.read(iteration.converged) == 1
        found = {c.name: engine.gather(c) for c in (*state.concentration, state.potential)}
    wanted = {"cation": waves[0], "anion": waves[1], "potential": exact.potential}
    return {name: float(np.abs(found[name] - wave(places, end)).max()) for name, wave in wanted.items()}


def _places(grid: mg.Grid, faces_across: int | None = None) -> list[Floats]:
    """y, z, x of all points, shaped to be broadcast over each other; 0 along an axis that is not there."""
    result = {name: np.zeros((1,) * grid.ndim) for name in ("y", "z", "x")}
    for axis, name in enumerate(grid.axes):
        values = grid.faces(axis) if axis == faces_across else grid.centres(axis)
        result[name] = np.asarray(values).reshape([-1 if a == axis else 1 for a in range(grid.ndim)])
    return [result[name] for name in ("y", "z", "x")]


@mg.kernel
def write_force(moved: Any, carried: Any, rest: Any, force: Any, *, time: Any) -> None:
    """The force that makes velocities `moved` cos t exact: moved' + (v . grad) v cos2 t + what grows with cos t."""
    here = (0,) * len(force.axes)
    part = mg.cos(time)
    force[here] = -mg.sin(time) * moved[here] + part * (part * carried[here] + rest[here])


def errors_of_flow(ndim: int, cells: int, steps: int, end: float = 0.5, viscosity: float = 0.05) -> tuple[float, float]:
    """Largest errors of velocity and pressure (less its mean) at the end, in a closed unit box."""
    grid = mg.Grid((cells,) * ndim, axes=("y", "z", "x")[:ndim], spacing=1.0 / cells)
    box = Box(grid, 1.0, viscosity, end / steps)
    parts = [
        [mg.Field(f"{name} {axis}", grid, centre=axis) for name in ("moved", "carried", "rest")] for axis in grid.axes
    ]
    initial: dict[Any, Any] = {}
    exact = []
    for axis, (moved, carried, rest) in enumerate(parts):
        v, inertia, friction = _flow(_places(grid, axis)[:ndim], axis)
        push = _push(_places(grid, axis)[:ndim], axis)
        initial |= {moved: v, carried: inertia, rest: push - viscosity * friction, box.state.velocity[axis]: v}
        exact.append(v)

    def forces(box: Box, program: mg.Program) -> None:
        program.let(time, box.state.time + box.state.dt)
        for fields, force in zip(parts, box.flow.force, strict=True):
            program.apply(write_force, *fields, force, time=time)

    time = mg.Register("time of the force")
    found = run(box, steps, before=forces, initial=initial)
    shape = grid.shape
    worst = max(
        float(np.abs(v - np.broadcast_to(e, v.shape) * np.cos(end)).max())
        for v, e in zip(found.velocity, exact, strict=True)
    )
    pressure = found.pressure - np.broadcast_to(_pressure(_places(grid)[:ndim]), shape) * np.cos(end)
    return worst, float(np.abs(pressure - pressure.mean()).max())


def _flow(places: Sequence[Floats], axis: int) -> tuple[Floats, Floats, Floats]:
    """Of (d/dz, -d/dy, 0) of `stream`: the velocity along an axis, (v . grad) v and the Laplacian."""
    ndim = len(places)

    def d(*orders: int) -> Floats:
        return stream(places, *(*orders, 0)[:ndim])

    if axis == 2:
        zero = np.zeros(np.broadcast_shapes(*(p.shape for p in places)))
        return zero, zero, zero
    if axis == 0:
        v, inertia, friction = d(0, 1), d(0, 1) * d(1, 1) - d(1, 0) * d(0, 2), d(2, 1) + d(0, 3)
    else:
        v, inertia, friction = -d(1, 0), -d(0, 1) * d(2, 0) + d(1, 0) * d(1, 1), -d(3, 0) - d(1, 2)
    if ndim == 3:
        friction = friction + (stream(places, 0, 1, 2) if axis == 0 else -stream(places, 1, 0, 2))
    return v, inertia, friction


def _pressure(places: Sequence[Floats]) -> Floats:
    result = np.ones(())
    for s in places:
        result = result * np.cos(PI * s)
    return result


def _push(places: Sequence[Floats], axis: int) -> Floats:
    """The pressure's gradient."""
    result = -PI * np.ones(())
    for number, s in enumerate(places):
        result = result * (np.sin(PI * s) if number == axis else np.cos(PI * s))
    return result
