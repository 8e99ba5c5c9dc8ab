"""Steps whose adjoints are tested: a number that depends on their last state, and its derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

import minga as mg
from minga.space.cuts import parse_layout

__all__ = [
    "GRID",
    "PROBLEMS",
    "TORUS",
    "Problem",
    "Values",
    "advection",
    "heat",
    "nine_points",
    "problems",
    "reaction",
    "staggered",
    "strip",
]

Values = Mapping[tuple[mg.Field, int], np.ndarray]


class Problem:
    """J = the sum of weights times a field after some steps, and its derivative by other fields."""

    def __init__(
        self,
        step: mg.Program,
        fields: Sequence[mg.Field],
        out: mg.Field,
        steps: int = 3,
        seed: int = 0,
    ) -> None:
        self.step, self.fields, self.out, self.steps = step, fields, out, steps
        self.rng = np.random.default_rng(seed)
        self.weights = self.rng.standard_normal(out.points.shape)
        self.values = {
            (item, k): self.rng.uniform(0.5, 1.5, item.points.shape) for item in fields for k in range(item.slots)
        }

    def engine(self, comm: Any = None, ranks: int = 1, **options: Any) -> mg.Engine:
        grid = self.out.grid
        layout = parse_layout("slabs", grid.box, ranks)
        return mg.Engine({grid: layout}, comm=comm, **options)

    def number(self, values: Values) -> float:
        with self.engine() as engine:
            self.set(engine, values)
            engine.run(self.step, self.steps)
            found = engine.gather(self.out)
        assert found is not None
        return float((self.weights * found).sum())

    def set(self, engine: mg.Engine, values: Values) -> None:
        for (item, k), array in values.items():
            engine.set(item.slot(k), array)

    def gradient(
        self, wrt: Sequence[mg.Field], comm: Any = None, ranks: int = 1, **options: Any
    ) -> dict[tuple[mg.Field, int], np.ndarray]:
        adjoint = mg.adjoint(self.step, wrt)

        def seed(engine: mg.Engine, n: int) -> None:
            if n == self.steps:
                for box, values in engine.blocks(adjoint.of[self.out], write=True):
                    values += self.weights[box.slices(self.out.points.lo)]

        own = {name: options.pop(name) for name in ("threads", "native") if name in options}
        with self.engine(comm, ranks, **own) as engine:
            self.set(engine, self.values)
            adjoint.run(engine, self.steps, seed=seed, **options)
            slots = [(item, k) for item in wrt for k in range(item.slots)]
            return {(i, k): np.array(engine.gather(adjoint.of[i].slot(k))) for i, k in slots}  # type: ignore[arg-type]

    def gradient_by_program(
        self,
        wrt: Sequence[mg.Field],
        comm: Any = None,
        ranks: int = 1,
        memory: int = 1 << 30,
        disk: Any = None,
        **options: Any,
    ) -> dict[tuple[mg.Field, int], np.ndarray]:
        """Return the gradient, seeded by a Program, so that nothing is seen of the states of the steps."""
        adjoint = mg.adjoint(self.step, wrt)
        target, number = adjoint.of[self.out], iter(range(self.steps, -1, -1))
        seed = mg.Program("seed")

        def add(engine: mg.Engine) -> None:
            if next(number) == self.steps:
                for box, values in engine.blocks(target, write=True):
                    values += self.weights[box.slices(self.out.points.lo)]

        seed.call(add, writes=(target,))
        with self.engine(comm, ranks, **options) as engine:
            self.set(engine, self.values)
            adjoint.run(engine, self.steps, seed=seed, memory=memory, disk=disk)
            slots = [(item, k) for item in wrt for k in range(item.slots)]
            return {(i, k): np.array(engine.gather(adjoint.of[i].slot(k))) for i, k in slots}  # type: ignore[arg-type]

    def tangent(self, directions: Values, comm: Any = None, ranks: int = 1) -> np.ndarray:
        """Return the derivative of the last state in a direction."""
        change = mg.tangent(self.step, list(dict.fromkeys(item for item, _ in directions)))
        with self.engine(comm, ranks) as engine:
            self.set(engine, self.values)
            for (item, k), values in directions.items():
                engine.set(change.of[item].slot(k), values)
            engine.run(change.step, self.steps)
            return np.array(engine.gather(change.of[self.out]))

    def asymmetry(self, wrt: Sequence[mg.Field]) -> float:
        """The difference of <w, J d> and <J^T w, d> for a random direction d, relative to the terms of the sums."""
        found = self.gradient(wrt)
        directions = {key: self.rng.standard_normal(slope.shape) for key, slope in found.items()}
        changes = self.tangent(directions)
        here, there = (self.weights * changes), [found[key] * d for key, d in directions.items()]
        size = np.abs(here).sum() + sum(np.abs(part).sum() for part in there)
        return float(abs(here.sum() - sum(part.sum() for part in there)) / size)

    def error(self, wrt: Sequence[mg.Field], h: float = 3e-4) -> float:
        """The difference between the derivative in a random direction and a difference quotient of fourth order."""
        found = self.gradient(wrt)
        directions = {key: self.rng.standard_normal(slope.shape) for key, slope in found.items()}

        def at(s: float) -> float:
            return self.number({**self.values, **{key: self.values[key] + s * d for key, d in directions.items()}})

        quotient = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
        slope = sum(float((found[key] * d).sum()) for key, d in directions.items())
        size = sum(float(np.linalg.norm(found[key]) * np.linalg.norm(d)) for key, d in directions.items())
        return abs(slope - quotient) / (size + abs(quotient))


NOT_LINEAR = mg.custom(lambda edge: 0.4 * edge[0] * edge[1] + 0.1)
CONDITIONS: list[Any] = [
    mg.fixed(0.0), mg.fixed(0.7), mg.dirichlet(0.3), mg.neumann(0.2), mg.reflect("edge"), mg.reflect("cell"),
    mg.robin(1.0, 0.2), mg.zero_gradient(), mg.dirichlet(0.5, 4), mg.neumann(0.0, 4),
    NOT_LINEAR, mg.custom(lambda edge: -edge[edge.layer]),
]  # fmt: skip


@st.composite
def problems(draw: Any, linear: bool = False) -> tuple[Problem, list[mg.Field]]:
    """A step of a random kernel on a random region, with random conditions, points on cells or faces, and locals."""
    ndim = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(7, 9)) for _ in range(ndim))  # ghost cells may repeat the seventh
    periodic = tuple(draw(st.booleans()) for _ in range(ndim))
    grid = mg.Grid(shape, spacing=0.5, periodic=periodic)

    def walls() -> Any:
        pick = st.sampled_from([each for each in CONDITIONS if each is not NOT_LINEAR] if linear else CONDITIONS)
        return {axis: (draw(pick), draw(pick)) for axis in range(ndim) if not periodic[axis]}

    centres = [draw(st.sampled_from([(), (0,)])) for _ in range(2)]
    u = mg.Field("u", grid, slots=2, boundary=walls(), centre=centres[0])
    k = mg.Field("k", grid, boundary=walls(), centre=centres[1])
    reads = draw(st.lists(st.tuples(*[st.integers(-2, 2)] * ndim), min_size=1, max_size=4))
    more = draw(st.lists(st.tuples(*[st.integers(-1, 1)] * ndim), min_size=1, max_size=2))
    through = draw(st.integers(0, 2))
    here = (0,) * ndim

    def combine(u: Any, k: Any, new: Any) -> None:
        inner = sum((0.3 * (n + 1) * u[offset] for n, offset in enumerate(reads)), 0.1 * u[here])
        if through == 1:  # linear with constant coefficients
            inner = sum((mg.local(inner)[offset] for offset in more), 0.5)
        elif through == 2:  # anything else
            inner = sum((mg.local(inner * k[here])[offset] for offset in more), 0.5)
        new[here] = u[here] + 0.05 * (inner * k[more[0]] + 0.2 * mg.sin(u[reads[0]] * k[here]))

    step = mg.Program("step")
    whole = u.points
    low = [0 if around else draw(st.integers(0, 1)) for around in periodic]
    region = mg.Box(tuple(low), whole.hi) if any(low) else None
    step.apply(mg.kernel(combine), u, k, u.next, region=region)
    step.rotate(u)
    return Problem(step, [u, k], u, steps=2, seed=draw(st.integers(0, 99))), [u, k]


GRID = mg.Grid((9, 11), axes=("y", "x"), spacing=0.1)
TORUS = mg.Grid((9, 11), axes=("y", "x"), spacing=0.1, periodic=True)


def heat(steps: int = 4) -> tuple[Problem, list[mg.Field]]:
    """Diffusion that depends on the temperature, with an unknown conductivity."""

    @mg.kernel
    def diffuse(u: Any, k: Any, new: Any) -> None:
        flow = [mg.local(0.5 * (k[0, 0] + k[1, 0]) * (u[1, 0] - u[0, 0])),
                mg.local(0.5 * (k[0, 0] + k[0, 1]) * (u[0, 1] - u[0, 0]))]  # fmt: skip
        new[0, 0] = u[0, 0] + 0.1 * (flow[0][0, 0] - flow[0][-1, 0] + flow[1][0, 0] - flow[1][0, -1]) * mg.exp(-u[0, 0])

    u = mg.Field("u", GRID, slots=2, boundary={"x": (mg.dirichlet(1.0), mg.neumann(0.5)), "y": mg.robin(1.0, 0.5)})
    k = mg.Field("k", GRID, boundary=mg.neumann(0.0))
    step = mg.Program("heat")
    step.apply(diffuse, u, k, u.next)
    step.rotate(u)
    return Problem(step, [u, k], u, steps), [u, k]


def advection() -> tuple[Problem, list[mg.Field]]:
    """Upwind differences with a limiter, in two halves of a step, with a velocity that varies."""

    @mg.kernel
    def half(u: Any, v: Any, new: Any) -> None:
        left, right = mg.min(v[0, 0], 0.0), mg.max(v[0, 0], 0.0)
        back, ahead = u[0, 0] - u[0, -1], u[0, 1] - u[0, 0]
        limited = mg.where(back * ahead > 0.0, mg.min(abs(back), abs(ahead)), 0.0)
        new[0, 0] = u[0, 0] - 0.2 * (right * back + left * ahead) + 0.01 * limited

    u, v = mg.Field("u", TORUS, slots=2), mg.Field("v", TORUS)
    step = mg.Program("advection")
    with step.repeat(2):
        step.apply(half, u, v, u.next)
        step.rotate(u)
    return Problem(step, [u, v], u), [u, v]


def reaction() -> tuple[Problem, list[mg.Field]]:
    """Two species, updated in place one after the other, with a register that changes from step to step."""
    rate = mg.Register("rate", initial=0.3)

    @mg.kernel
    def first(a: Any, b: Any, *, rate: Any) -> None:
        a[0, 0] = a[0, 0] + 0.1 * (rate * a[0, 0] * b[0, 0] - a[0, 0] ** 3)

    @mg.kernel
    def second(a: Any, b: Any, *, rate: Any) -> None:
        b[0, 0] = b[0, 0] + 0.1 * mg.tanh(rate * a[0, 0] / (1.0 + b[0, 0] * b[0, 0]))

    a, b = mg.Field("a", TORUS), mg.Field("b", TORUS)
    step = mg.Program("reaction")
    step.apply(first, a, b, rate=rate)
    step.let(rate, rate * 1.5)
    step.apply(second, a, b, rate=rate * 2.0)
    return Problem(step, [a, b], a), [a, b]


def staggered() -> tuple[Problem, list[mg.Field]]:
    """Pressure on cells, velocities on faces, in place; there are more faces than cells."""

    @mg.kernel
    def push(p: Any, b: Any, vx: Any) -> None:
        vx[0, 0] = vx[0, 0] - 0.2 * (b[0, 0] + b[0, -1]) * (p[0, 0] - p[0, -1])

    @mg.kernel
    def compress(vx: Any, p: Any) -> None:
        p[0, 0] = p[0, 0] - 0.3 * (vx[0, 1] - vx[0, 0])

    p, b = (mg.Field(name, GRID, boundary=mg.neumann(0.0)) for name in "pb")
    vx = mg.Field("vx", GRID, centre="x", boundary=mg.fixed(0.0))
    step = mg.Program("sound")
    step.apply(push, p, b, vx)
    step.apply(compress, vx, p)
    return Problem(step, [p, b, vx], p), [p, b, vx]


def nine_points() -> tuple[Problem, list[mg.Field]]:
    """Neighbours across corners, beyond which ghost cells are made of ghost cells, and not linearly."""

    @mg.kernel
    def mix(u: Any, new: Any) -> None:
        new[0, 0] = u[0, 0] + 0.1 * mg.sin(u[1, 1] * u[-1, 2]) - 0.05 * u[-2, -1]

    u = mg.Field("u", GRID, slots=2, boundary=mg.custom(lambda edge: edge[edge.layer] * edge[0]))
    step = mg.Program("nine")
    step.apply(mix, u, u.next)
    step.rotate(u)
    return Problem(step, [u], u, 2), [u]


def strip() -> tuple[Problem, list[mg.Field]]:
    """Some rows of a channel, of which the kernel reads neighbours around its periodic axis and beyond the rows."""

    @mg.kernel
    def lift(v: Any, k: Any, u: Any) -> None:
        u[0, 0] = u[0, 0] + 0.1 * k[0, 1] * (v[0, 3] - v[2, -2]) * v[-1, 0]

    @mg.kernel
    def follow(u: Any, v: Any) -> None:
        v[0, 0] = v[0, 0] - 0.2 * (u[0, 1] - u[-1, 0])

    grid = mg.Grid((9, 7), axes=("y", "x"), spacing=0.1, periodic=(False, True))
    u, v, k = (mg.Field(name, grid, boundary={"y": mg.neumann(0.0)}) for name in "uvk")
    step = mg.Program("strip")
    step.apply(lift, v, k, u, region=mg.Box((0, 0), (4, 7)))
    step.apply(lift, v, k, u, region=mg.Box((6, 0), (8, 7)))
    step.apply(follow, u, v)
    return Problem(step, [u, v, k], v), [u, v, k]


PROBLEMS: dict[str, Callable[[], tuple[Problem, list[mg.Field]]]] = {
    "heat": heat, "advection": advection, "reaction": reaction, "staggered": staggered, "corners": nine_points,
    "strip": strip,
}  # fmt: skip
