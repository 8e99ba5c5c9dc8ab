"""Rounds of a loop in blocks: the same bits as one by one, for every kind of operation that a block may hold."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minga as mg
from minga.engine import time_blocks
from minga.engine.comm import Comm, SerialComm, run_virtual
from minga.engine.command import Count, Kernel
from minga.engine.helpers import wave_function
from minga.engine.program import Program
from minga.engine.time_blocks import SHORTEST
from minga.space.cuts import slabs
from minga.space.region import Region
from thinned import thinned

from . import test_random_programs
from .worlds import Way, worlds

pytestmark = pytest.mark.filterwarnings("ignore:Program .* draws random numbers")

Shape = tuple[int, int, int]
SHAPES: list[Shape] = [(1, 40, 2), (3, 4, 4), (2, 7, 8), (7, 1, 16)]
"""Rows of a band, columns, and rounds of a block."""


@mg.kernel
def jacobi(u, new):  # type: ignore[no-untyped-def]
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


@mg.kernel
def far(u, new, *, c):  # type: ignore[no-untyped-def]
    new[0, 0] = u[0, 0] + c * (u[-4, 0] + u[3, 0] - u[0, -2] - u[1, 4])


@mg.kernel
def wave(u, old):  # type: ignore[no-untyped-def]
    far = u[-2, 0] + u[2, 0] + u[0, -2] + u[0, 2]
    old[0, 0] = (
        2.0 * u[0, 0] - old[0, 0] + 0.1 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 3.5 * u[0, 0] - 0.125 * far)
    )


@mg.kernel
def add(u, *, amount):  # type: ignore[no-untyped-def]
    u[0, 0] = u[0, 0] + amount * (1.0 + mg.index(0))


@mg.kernel
def cross(v, u):  # type: ignore[no-untyped-def]
    u[0, 0] = u[0, 0] + v[-1, 0] + v[1, 0] + v[0, -1] + v[0, 1]


@mg.kernel
def add_there(u):  # type: ignore[no-untyped-def]
    u[0, 0, 0] = u[0, 0, 0] + 0.75


@mg.kernel
def damp(u, profile):  # type: ignore[no-untyped-def]
    u[0, 0] = u[0, 0] * profile[0]


@mg.kernel
def react(u, v):  # type: ignore[no-untyped-def]
    v[0, 0] = v[0, 0] * 0.5 + u[1, 1] * u[-1, -1]


@mg.kernel
def noise(u, new):  # type: ignore[no-untyped-def]
    new[0, 0] = mg.where(mg.random() < 0.3, u[0, 1], u[1, 0])


@mg.kernel(order="red-black")
def relax(u):  # type: ignore[no-untyped-def]
    u[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


@mg.kernel
def bend(u, new):  # type: ignore[no-untyped-def]
    """Locals of locals, in the margin of a column and some rows ahead of its cells."""
    slope = mg.local(u[0, 1] - u[0, -1])
    twist = mg.local(slope[1, 1] - slope[-1, 0])
    new[0, 0] = 0.9 * u[0, 0] + 0.01 * (twist[2, 0] - twist[-1, 1] + slope[0, -1])


@mg.kernel
def tilt(u, old):  # type: ignore[no-untyped-def]
    """Mixed derivatives by rings of planes, and those of a row, of which two planes are computed together."""
    x, y = mg.local(u[0, 0, 1] - u[0, 0, -1]), mg.local(u[0, 1, 0] - u[0, -1, 0])
    along = mg.local(sum(0.1 * (u[k, 0, 0] + u[-k, 0, 0]) for k in range(1, 5)))
    mixed = x[1, 0, 0] - x[-1, 0, 0] + y[1, 0, 0] - y[-1, 0, 0] + x[0, 1, 0] - x[0, -1, 0]
    old[0, 0, 0] = 2.0 * u[0, 0, 0] - old[0, 0, 0] + 0.05 * (mixed + along[0, 0, 0] - u[0, 0, 0])


Made = tuple[mg.Grid, list[mg.Field], Program]


def plain() -> Made:
    grid = mg.Grid((31, 22))
    u = mg.Field("u", grid, slots=2, boundary=mg.fixed(1.5))
    step = Program("step")
    step.apply(jacobi, u, u.next)
    step.rotate(u)
    return grid, [u], step


def mirrored() -> Made:
    grid = mg.Grid((33, 47))
    u = mg.Field("u", grid, slots=2, boundary=mg.reflect())
    step = Program("step")
    step.apply(far, u, u.next, c=0.01)
    step.rotate(u)
    return grid, [u], step


def waves() -> Made:
    """Second order in time, a source that depends on time, another spread over cells, and damped layers."""
    grid = mg.Grid((40, 23))
    u = mg.Field("u", grid, slots=2, boundary=mg.fixed(0.0))
    profile = mg.Field("profile", grid, axes=(1,))
    time = mg.Register("time", initial=0.25)
    step = Program("step")
    step.apply(wave, u, u.previous)
    step.rotate(u)
    for point in ((0, 0), (15, 7), (16, 5), (39, 22)):
        step.apply(add, u, amount=time * 2.0, region=Region(points=[point]))
    step.apply(add, u, amount=0.125, region=mg.Box((10, 4), (18, 12)))
    step.apply(damp, u, profile, region=mg.Box((0, 0), (6, 23)))
    step.apply(damp, u, profile, region=mg.Box((0, 18), (40, 23)))
    step.let(time, time * 1.25 - 0.125)
    return grid, [u, profile], step


def chain() -> Made:
    """Two fields that act on each other, three slots, and a boundary that follows a register."""
    grid = mg.Grid((24, 37))
    level = mg.Register("level", initial=1.0)

    u = mg.Field("u", grid, slots=3, boundary=mg.fixed(level * 0.5))
    v = mg.Field("v", grid, boundary=mg.zero_gradient())
    step = Program("step")
    step.apply(far, v, u.next, c=level)
    step.apply(react, u, v)
    step.let(level, level + 0.5)
    step.rotate(u)
    return grid, [u, v], step


def stochastic() -> Made:
    grid = mg.Grid((19, 21))
    u = mg.Field("u", grid, slots=2, boundary=mg.fixed(0.0))
    step = Program("step")
    step.apply(noise, u, u.next)
    step.rotate(u)
    step.let(mg.STEP, mg.STEP + 1)
    return grid, [u], step


def bent() -> Made:
    grid = mg.Grid((37, 41))
    u = mg.Field("u", grid, slots=2, boundary=mg.zero_gradient())
    step = Program("step")
    step.apply(bend, u, u.next)
    step.rotate(u)
    return grid, [u], step


def tilted() -> Made:
    """Locals on three axes, and a point at which each round adds something."""
    grid = mg.Grid((19, 43, 7))
    u = mg.Field("u", grid, slots=2, boundary=mg.fixed(0.5))
    step = Program("step")
    step.apply(tilt, u, u.previous)
    step.rotate(u)
    step.apply(add_there, u, region=Region(points=[(9, 20, 3)]))
    return grid, [u], step


def torus() -> Made:
    """Both axes are periodic, and one of several slots is read at several levels."""
    grid = mg.Grid((40, 26), periodic=True)
    u = mg.Field("u", grid, slots=2)
    v = mg.Field("v", grid)
    step = Program("step")
    step.apply(far, u, u.next, c=0.25)
    step.rotate(u)
    step.apply(react, u, v)
    return grid, [u, v], step


def cylinder() -> Made:
    grid = mg.Grid((33, 40), periodic=(False, True))
    u = mg.Field("u", grid, slots=2, boundary={"y": mg.reflect()})
    step = Program("step")
    step.apply(noise, u, u.next)
    step.rotate(u)
    step.apply(add, u, amount=0.5, region=Region(points=[(0, 0), (32, 39)]))
    step.let(mg.STEP, mg.STEP + 1)
    return grid, [u], step


def coloured() -> Made:
    grid = mg.Grid((20, 26))
    u = mg.Field("u", grid, boundary=mg.fixed(2.0))
    step = Program("step")
    step.apply(relax, u)
    return grid, [u], step


PROGRAMS: list[Callable[[], Made]] = [
    *(plain, mirrored, waves, chain, stochastic, coloured, torus, cylinder, bent, tilted),
]


@pytest.fixture
def blocks_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Shape | None], None]:
    def choose(shape: Shape | None) -> None:
        monkeypatch.setattr(time_blocks, "LEAST_REPEATED", 0)
        monkeypatch.setattr(time_blocks, "SHORTEST", 2)
        monkeypatch.setattr(time_blocks, "MOST_KEPT", 1 << 20)
        monkeypatch.setattr(time_blocks, "best_bands", functools.partial(given_bands, shape))

    return choose


def given_bands(
    shape: Shape | None, size: Sequence[int], cell: float, kept: float, spreads: Sequence[Any], *_: Any, **__: Any
) -> Shape | None:
    """Return the given shape instead of the best one, with fewer rounds if there are not so many."""
    if shape is None:
        return None
    depth = shape[2]
    while depth > len(spreads):
        depth //= 2
    return *shape[:2], depth


def result(made: Made, times: list[int], threads: int = 1, native: bool = True) -> tuple[list[bytes], int, int]:
    """Return the bits of all slots and of the registers, the waves that are bound, and the deepest."""
    return on_rank(made, times, mg.Layout.single(made[0].box, 1), SerialComm(), threads, native)


def on_rank(
    made: Made, times: list[int], layout: mg.Layout, comm: Comm, threads: int = 1, native: bool = True, **options: Any
) -> tuple[list[bytes], int, int]:
    grid, fields, step = made
    with mg.Engine(layout, grid=grid, comm=comm, threads=threads, native=native, **options) as engine:
        for number, item in enumerate(fields):
            rng = np.random.default_rng(number)
            for k in range(item.slots):
                engine.set(item.slot(k), rng.random([item.points.shape[axis] for axis in item.axes]))
        for count in times:
            engine.run(step, times=count)
        left = [np.array(engine.gather(item.slot(k))).tobytes() for item in fields for k in range(item.slots)]
        left += [engine.storage.registers[name].tobytes() for name in sorted(engine.storage.registers)]
        commands = [command for known in engine._prepared.values() for command in known.binding.commands]
    waves = sum(isinstance(c, Kernel) and c.function == wave_function() for c in commands)
    return left, waves, max((c.rounds for c in commands if isinstance(c, Count)), default=0)


@pytest.mark.few(2)
@pytest.mark.parametrize("make", PROGRAMS)
@pytest.mark.parametrize(
    "shape", [SHAPES[1], *(pytest.param(shape, marks=pytest.mark.slow) for shape in SHAPES if shape != SHAPES[1])]
)
def test_blocks_give_the_bits_of_single_rounds(make: Callable[[], Made], shape: Shape, blocks_of: Any) -> None:
    times = [7, 2, 37]
    blocks_of(None)
    expected, none, _ = result(make(), times)
    blocks_of(shape)
    found, waves, deepest = result(make(), times)
    assert none == 0
    assert waves > 0
    assert deepest == shape[2]
    assert found == expected


@pytest.mark.few(2)
@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow), pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    "make", thinned([plain, mirrored, waves, chain, stochastic, torus, cylinder, bent, tilted], waves, torus)
)
def test_ranks_execute_blocks_between_exchanges(
    make: Callable[[], Made], axis: int, ranks: int, blocks_of: Any
) -> None:
    times = [7, 2, 21]
    blocks_of(None)
    expected, *_ = result(make(), times)
    blocks_of((3, 4, 4))
    layout = slabs(make()[0].box, ranks, axis, granule=1)
    found = run_virtual(ranks, lambda comm: on_rank(make(), times, layout, comm))
    assert found[0][0] == expected
    assert all(waves > 0 and deepest == 4 for _, waves, deepest in found)


@pytest.mark.slow
@pytest.mark.parametrize("depth", thinned([2, 3, 4], 3))
def test_ranks_execute_blocks_of_a_given_halo_depth(depth: int, blocks_of: Any) -> None:
    blocks_of(None)
    expected, *_ = result(waves(), [7, 2, 21])
    blocks_of((3, 4, depth))
    layout = slabs(waves()[0].box, 2)
    found = run_virtual(2, lambda comm: on_rank(waves(), [7, 2, 21], layout, comm, halo_depth=depth, overlap=False))
    assert found[0][0] == expected
    assert all(count > 0 and deepest == depth for _, count, deepest in found)


def test_a_rank_calls_a_single_kernel_in_all_rounds(blocks_of: Any) -> None:
    """The other rank computes the corner; here ghost cells are filled once, as nothing changes what they repeat."""
    blocks_of((1, 40, 2))
    grid = mg.Grid((2, 1))
    walls = {"y": mg.fixed(1.0), "x": (mg.fixed(1.0), mg.zero_gradient())}
    u, v = mg.Field("u", grid), mg.Field("v", grid, boundary=walls)
    step = Program("step")
    step.apply(cross, v, u, region=mg.Box((0, 0), (1, 1)))
    expected, *_ = result((grid, [u, v], step), [7])
    layout = slabs(grid.box, 2, granule=1)
    found = run_virtual(2, lambda comm: on_rank((grid, [u, v], step), [7], layout, comm, overlap=False))
    assert found[0][0] == expected


@given(st.data(), st.sampled_from(SHAPES))
@settings(max_examples=2)
def test_random_programs_in_blocks(data: st.DataObject, shape: Shape) -> None:
    check_in_blocks(data, shape, 5)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@given(st.data(), st.sampled_from(SHAPES))
@settings(max_examples=500)
def test_many_random_programs_in_blocks(data: st.DataObject, shape: Shape) -> None:
    check_in_blocks(data, shape, 9)


def check_in_blocks(data: st.DataObject, shape: Shape, length: int) -> None:
    world = data.draw(worlds(length=length))
    layout = slabs(
        world.grid.box, data.draw(st.integers(1, 3)), data.draw(st.integers(0, world.grid.ndim - 1)), granule=1
    )
    way = Way(layout, 1, data.draw(st.booleans()), data.draw(st.integers(1, 3)), True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time_blocks, "LEAST_REPEATED", 0)
        patch.setattr(time_blocks, "SHORTEST", 2)
        patch.setattr(time_blocks, "MOST_KEPT", 1 << 20)
        patch.setattr(time_blocks, "best_bands", functools.partial(given_bands, shape))
        patch.setattr(test_random_programs, "TIMES", 7)
        test_random_programs.check(world, way)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 3])
def test_threads_and_the_interpreter_execute_the_same_waves(threads: int, blocks_of: Any) -> None:
    blocks_of(None)
    expected = result(waves(), [13])[0]
    blocks_of((4, 8, 4))
    assert result(waves(), [13], threads)[:2] == (expected, 2)
    assert result(waves(), [13], 1, native=False)[0] == expected


@pytest.mark.few(2)
@pytest.mark.parametrize(("deepest", "blocks"), [(16, 3), (8, 2), (4, 1), (2, 1)])
def test_only_the_best_block_may_be_a_short_one(
    deepest: int, blocks: int, blocks_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of 16, 8 and 4 rounds; of two only if that is best."""
    blocks_of((4, 8, deepest))
    monkeypatch.setattr(time_blocks, "SHORTEST", SHORTEST)
    assert result(waves(), [32])[1] == blocks
