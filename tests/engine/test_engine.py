"""The engine: values in and out, runs and their ends, loops and branches, what happens between runs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import SerialComm
from minga.engine.program import Program
from minga.errors import LayoutError, ProgramError
from minga.space.cuts import blocks, cartesian, slabs
from minga.space.layout import Layout
from minga.space.region import Region
from thinned import thinned

from .eager import fixed_number
from .running import check, eagerly, on_layouts, random_array, some_layouts

GRID = mg.Grid((7, 10), periodic=True)


@mg.kernel
def star(u, new):
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1]) + 0.125 * u[0, 1]


@mg.kernel
def relax(u, new):
    value = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
    new[0, 0] = value
    return mg.max(abs(value - u[0, 0]))


@mg.kernel
def add(u, *, amount=1.0):
    u[0, 0] = u[0, 0] + amount


@mg.kernel
def tell(u, *, by):
    before = u[0, 0]
    u[0, 0] = before + by * mg.cast(mg.index(0), "f8") + 0.5 * mg.random()
    return {"many": mg.count(before > 0), "where": mg.argmax(before)}


def step(u: mg.Field) -> Program:
    program = Program("step")
    program.apply(star, u, u.next)
    program.rotate(u)
    return program


def alone(grid: mg.Grid = GRID, **settings: Any) -> mg.Engine:
    return mg.Engine({grid: Layout.single(grid.box, 1)}, **settings)


# Values --------------------------------------------------------------------------------------------------------------
def test_set_and_gather_every_slot() -> None:
    u = mg.Field("u", GRID, slots=3)
    values = [random_array(u, k) for k in range(3)]
    for layout in some_layouts(GRID):

        def body(comm: Any, layout: Layout = layout) -> list[Any]:
            with mg.Engine(layout, grid=GRID, comm=comm) as engine:
                engine.set(u, values[0])
                engine.set(u.next, lambda box: values[1][box.slices((0, 0))])
                engine.set(u.previous, 2.5)
                assert sum(view.size for _, view in engine.blocks(u)) == layout.cells_of(comm.rank)
                return [engine.gather(u.slot(k)) for k in range(3)]

        results = mg.run_virtual(layout.ranks, body)
        for found, expected in zip(results[0], [*values[:2], np.full(GRID.shape, 2.5)], strict=True):
            np.testing.assert_array_equal(found, expected)
        assert all(arrays == [None] * 3 for arrays in results[1:])


def test_arrays_of_other_shapes_are_refused() -> None:
    with alone() as engine, pytest.raises(LayoutError, match=r"has shape \(7, 10\), the array \(10, 7\)"):
        engine.set(mg.Field("u", GRID), np.zeros((10, 7)))


def test_registers_begin_with_their_initial_value() -> None:
    """Also those that are only named in an expression, a kernel or a boundary condition."""
    a, b, c = mg.Register("a", initial=0.5), mg.Register("b", initial=3.0), mg.Register("c", initial=7.0)
    total = mg.Register("total")

    @mg.kernel
    def use(u, new):
        new[0, 0] = u[0, 0] + c + u[1, 0]

    grid = mg.Grid((3, 2))
    u, new = mg.Field("u", grid, boundary=mg.fixed(b)), mg.Field("new", grid)
    program = Program("step")
    program.let(total, a * 2 + b)
    program.apply(use, u, new)
    with alone(grid) as engine:
        engine.run(program)
        assert engine.read(total) == 4.0
        np.testing.assert_array_equal(engine.gather(new), [[7, 7], [7, 7], [10, 10]])
        engine.write(a, 10)
        engine.run(program)
        assert engine.read(total) == 23.0


def test_many_registers_are_written_together() -> None:
    """They share their memory with registers that are read, written and reset one by one."""
    several = mg.Register("a", initial=0.5), mg.Register("b", "i8", initial=3)
    with alone(mg.Grid((3, 2))) as engine:
        engine.write_all(several, [2.5, 7])
        assert [engine.read(each) for each in several] == [2.5, 7]
        engine.write(several[1], 8)
        assert [values[0].item() for values in engine.storage.of_all(several)] == [2.5, 8]
        assert engine.storage.of_all(several) is engine.storage.of_all(several)
        engine.reset_registers()
        assert [values[0].item() for values in engine.storage.of_all(several)] == [0.5, 3]
        with pytest.raises(ProgramError, match=r"register 'b' is i8, the value 1\.5"):
            engine.write_all(several, [1.0, 1.5])
        with pytest.raises(ValueError, match="shorter"):
            engine.write_all(several, [1.0])


def test_registers_of_numbers_are_stored_side_by_side() -> None:
    """Unless one of them has its place already; the values of one too few are refused, not repeated."""
    first, several = mg.Register("a", initial=0.5), tuple(mg.Register(f"x{n}", initial=n) for n in range(3))
    double = mg.Program("double")
    double.let(several[1], several[1] * 2)
    with alone(mg.Grid((3, 2))) as engine:
        engine.write(first, 1.5)
        assert engine.storage.of_all(several).tolist() == [0.0, 1.0, 2.0]  # type: ignore[union-attr]
        engine.write_all(several, np.array([2.5, 7.0, -0.0]))
        engine.run(double)
        assert [engine.read(each) for each in several] == [2.5, 14.0, 0.0]
        assert engine.storage.of_all(several).tolist() == [2.5, 14.0, 0.0]  # type: ignore[union-attr]
        mixed = first, mg.Register("y")
        engine.write_all(mixed, [3.5, 4.5])
        assert [engine.read(each) for each in mixed] == [3.5, 4.5]
        engine.reset_registers()
        assert [engine.read(each) for each in (*several, *mixed)] == [0.0, 1.0, 2.0, 0.5, 0.0]
        with pytest.raises(ValueError, match="reshape"):
            engine.write_all(several, [1.0])


def test_two_registers_of_one_name_and_two_types() -> None:
    program = Program("step")
    program.let(mg.Register("r"), 1.0)
    program.let(mg.Register("r", "i8"), 1)
    with alone() as engine, pytest.raises(ProgramError, match="two registers are called 'r'"):
        engine.run(program)


def test_two_programs_of_one_name() -> None:
    u = mg.Field("u", GRID, slots=2)
    programs = [Program(), Program()]
    for program in programs:
        program.apply(relax, u, u.next)
    with alone() as engine:
        engine.run(programs[0])
        with pytest.raises(ProgramError, match="two Programs are called 'program'"):
            engine.run(programs[1])


def test_layouts_must_fit_the_ranks_and_the_grids() -> None:
    with pytest.raises(LayoutError, match="a layout for 3 ranks, but 1 run"):
        mg.Engine({GRID: slabs(GRID.box, 3)})
    with pytest.raises(LayoutError, match="without its grid"):
        mg.Engine(Layout.single(GRID.box, 1))
    other = mg.Grid((7, 10))
    with alone() as engine, pytest.raises(ProgramError, match="no layout for"):
        engine.set(mg.Field("u", other), 0.0)
    with pytest.raises(LayoutError, match="halo_depth is 0"):
        alone(halo_depth=0)


# Runs ----------------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_many_runs_are_one_long_run() -> None:
    u = mg.Field("u", GRID, slots=2)
    expected = eagerly([(step(u), 12)], {u: random_array(u)}).arrays[u]
    for layout, depth in itertools.product([Layout.single(GRID.box, 1), slabs(GRID.box, 3)], (1, 2, 5)):
        program = step(u)
        runs = [(program, times) for times in (1, 0, 4, 1, 1, 5)]
        left = on_layouts(layout, runs, {u: random_array(u)}, halo_depth=depth)
        np.testing.assert_array_equal(left.arrays[u], expected)


def test_values_set_between_runs_are_seen_by_neighbours() -> None:
    u = mg.Field("u", GRID, slots=2)
    program = step(u)

    def body(comm: Any) -> Any:
        with mg.Engine(slabs(GRID.box, comm.size), grid=GRID, comm=comm) as engine:
            engine.set(u, random_array(u))
            engine.run(program, 2)
            for _, view in engine.blocks(u, write=True):
                view[...] *= 3.0
            engine.run(program)
            engine.set(u, random_array(u, 1))
            engine.run(program)
            return engine.gather(u)

    results = [mg.run_virtual(ranks, body)[0] for ranks in (1, 2, 4)]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    expected = eagerly([(program, 1)], {u: random_array(u, 1)}).arrays[u][0]
    np.testing.assert_array_equal(results[0], expected)


@pytest.mark.slow
def test_a_wider_program_later() -> None:
    """Arrays move when a halo must widen; nothing is lost, and what was bound is bound again."""

    @mg.kernel
    def far(u, new):
        new[0, 0] = 0.5 * u[-3, 2] + 0.25 * u[0, 0]

    u = mg.Field("u", GRID, slots=2)
    wide = Program("wide")
    wide.apply(far, u, u.next)
    wide.rotate(u)
    narrow = step(u)
    runs = [(narrow, 2), (wide, 2), (narrow, 3), (wide, 1), (narrow, 1)]
    check(runs, {u: random_array(u)}, some_layouts(GRID))
    check(runs, {u: random_array(u)}, some_layouts(GRID), halo_depth=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    thinned([{"native": False}, {"overlap": False}, {"threads": 2}, {"halo_depth": 4}], {"threads": 2}),
)
def test_settings_change_nothing(settings: dict[str, Any]) -> None:
    u = mg.Field("u", GRID, slots=2)
    program = step(u)
    found = program.apply(tell, u, by=0.25)
    program.let(mg.STEP, mg.STEP + 1)
    layouts = [*some_layouts(GRID), cartesian(GRID.box, (4, 4), granule=1)]
    check([(program, 6)], {u: random_array(u)}, layouts, registers=[found.many, found.where], **settings)


# Ends ----------------------------------------------------------------------------------------------------------------
def until(u: mg.Field, goal: float, limit: Any) -> tuple[Program, mg.Register, mg.Register]:
    program, rounds, residual = Program("solve"), mg.Register("rounds", "i8"), mg.Register("residual", initial=1e9)
    with program.repeat(until=residual < goal, limit=limit):
        program.apply(relax, u, u.next, into=residual)
        program.rotate(u)
        program.let(rounds, rounds + 1)
    return program, rounds, residual


@pytest.mark.few(2)
@pytest.mark.parametrize("depth", thinned([1, 3, 4], 4))
@pytest.mark.parametrize(
    ("goal", "limit", "reason"), [(0.3, 50, "converged"), (1e-30, 7, "limit"), (1e10, 5, "converged")]
)
def test_loops_end_when_they_converge_or_at_their_limit(depth: int, goal: float, limit: int, reason: str) -> None:
    """Deep halos may be left in the middle; what follows still sees neighbours as they are."""
    u = mg.Field("u", GRID, slots=2)
    program, rounds, residual = until(u, goal, limit)
    program.apply(star, u, u.next)
    program.rotate(u)
    layouts = some_layouts(GRID)
    runs = [(program, 1), (step(u), 2)]
    expected = check(runs, {u: random_array(u)}, layouts, registers=[rounds, residual], halo_depth=depth)
    assert expected.outcomes[0] == (reason, "")
    assert expected.registers[rounds.key] == {"limit": limit}.get(reason, expected.registers[rounds.key])


def test_limits_may_be_registers() -> None:
    u, limit = mg.Field("u", GRID, slots=2), mg.Register("limit", "i8", 3)
    program, rounds, residual = until(u, 1e-30, limit)
    program.let(limit, limit - 1)
    expected = check([(program, 3)], {u: random_array(u)}, some_layouts(GRID)[:3], registers=[rounds, residual, limit])
    assert expected.registers[rounds.key] == 3 + 2 + 1


def test_loops_in_loops_and_branches() -> None:
    u, n, m = mg.Field("u", GRID, slots=2), mg.Register("n", "i8"), mg.Register("m", "i8", 2)
    program = Program("step")
    with program.repeat(3):
        with program.repeat(m):
            program.apply(star, u, u.next)
            program.rotate(u)
            with program.when(n % 2 == 1):
                program.apply(add, u, amount=0.5)
                program.rotate(u)
            program.let(n, n + 1)
        with program.when(n > 4), program.repeat(until=n >= 9, limit=3):
            program.apply(star, u.next, u)
            program.let(n, n + 1)
    program.apply(star, u.next, u)
    for depth in (1, 3):
        check([(program, 2)], {u: random_array(u)}, some_layouts(GRID), registers=[n], halo_depth=depth)


def test_stop_is_heard_at_the_end_of_a_round() -> None:
    u, rounds = mg.Field("u", GRID, slots=2), mg.Register("rounds", "i8")
    program = step(u)
    program.let(rounds, rounds + 1)
    for native in (True, False):
        with alone(native=native) as engine:

            def ask(running: mg.Engine) -> None:
                running.stop[0] = running.read(rounds) == 5

            asking = step(u)
            asking.let(rounds, rounds + 1)
            asking.call(ask)
            with pytest.raises(KeyboardInterrupt):
                engine.run(asking, 100)
            assert engine.read(rounds) == 5
            engine.stop[0] = 0
            assert engine.run(program, 3).ok
            assert engine.read(rounds) == 8


# Calls, moves, regions -----------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_calls_see_and_change_their_own_cells() -> None:
    u = mg.Field("u", GRID, slots=2)

    def triple(engine: Any) -> None:
        for box, view in engine.blocks(u):
            view[...] = view * 3.0 + box.lo[0] * 0.0

    program = step(u)
    program.call(triple, writes=[u])
    program.apply(star, u, u.next)
    program.rotate(u)
    for native in (True, False):
        check([(program, 3)], {u: random_array(u)}, some_layouts(GRID), native=native)


def test_a_call_may_write_registers_that_boundaries_use() -> None:
    level, grid = mg.Register("level", initial=1.0), mg.Grid((4, 3))
    u, new = mg.Field("u", grid, boundary=mg.fixed(level)), mg.Field("new", grid)

    def raise_level(engine: Any) -> None:
        engine.write(level, engine.read(level) + 1)

    program = Program("step")
    program.apply(star, u, new)
    program.call(raise_level)
    program.apply(star, u, new)
    left = on_layouts(slabs(grid.box, 2), [(program, 1)], {u: 0.0, new: 0.0})
    assert left.arrays[new][0][0, 1] == 0.25 * 2.0


@pytest.mark.slow
def test_moves_between_layouts() -> None:
    there = GRID.relabel("there")
    u, w = mg.Field("u", GRID, slots=2), mg.Field("w", there, slots=2)
    program = step(u)
    program.move(u, w)
    program.apply(star, w, w.next)
    program.move(w.next, u)
    expected = eagerly([(program, 3)], {u: random_array(u), w: 0.0}).arrays
    for one, other in itertools.permutations(
        [slabs(GRID.box, 3), slabs(GRID.box, 3, 1, granule=1), Layout.single(GRID.box, 3, 2), blocks(GRID.box, 3, 2)], 2
    ):
        left = on_layouts({GRID: one, there: other}, [(program, 3)], {u: random_array(u), w: 0.0})
        for item, array in expected.items():
            np.testing.assert_array_equal(left.arrays[item], array)


@pytest.mark.parametrize(
    "region",
    [
        pytest.param(Region(stride=2), marks=pytest.mark.slow),
        Region(mg.Box((1, 2), (6, 9)), stride=(2, 3)),
        Region(colour=1),
        pytest.param(Region(points=[(0, 0), (6, 9), (3, 4), (3, 5)]), marks=pytest.mark.slow),
        pytest.param(mg.Box((2, 0), (5, 10)), marks=pytest.mark.slow),
    ],
    ids=["stride", "box", "colour", "points", "plain"],
)
def test_regions(region: Any) -> None:
    """Every n-th cell, a colour, single points, a box: on any layout, computed twice in deep halos or not."""
    grid = mg.Grid((7, 10), periodic=(True, False))
    wall = fixed_number(0.5)
    u = mg.Field("u", grid, slots=2, boundary=wall.condition)
    many = mg.Register("many", "i8")

    @mg.kernel
    def count(u, new):
        new[0, 0] = u[0, 0] * 0.5 + mg.cast(mg.index(1), "f8") + u[1, -1]
        return mg.count(u[0, 0] > 0.0)

    program = Program("step")
    program.apply(star, u, u.next)
    program.apply(count, u, u.next, region=region, into=many)
    program.rotate(u)
    for depth, overlap in ((1, True), (3, False)):
        check(
            [(program, 3)], {u: random_array(u)}, some_layouts(grid), [wall], [many], halo_depth=depth, overlap=overlap
        )


def test_refresh_makes_halos_valid_for_calls() -> None:
    grid = mg.Grid((6, 5))
    wall = fixed_number(2.5)
    u = mg.Field("u", grid, boundary=wall.condition)
    seen: list[np.ndarray] = []

    def look(engine: Any) -> None:
        for arrays in engine.storage.stored(u).blocks.values():
            seen.append(arrays.view(0, arrays.owned.grow((2, 2), (2, 2))).copy())

    program = Program("look")
    program.refresh(u, 2)
    program.call(look, reads=[u])
    values = random_array(u)
    on_layouts(slabs(grid.box, 3), [(program, 1)], {u: values})
    whole = np.pad(values, 2, constant_values=2.5)
    expected = [whole[first : first + 6] for first in (0, 2, 4)]
    assert sorted(map(bytes, seen)) == sorted(np.ascontiguousarray(e).tobytes() for e in expected)


def test_a_run_reports_where_its_time_went() -> None:
    u = mg.Field("u", GRID, slots=2)
    with alone() as engine:
        engine.set(u, 1.0)
        engine.run(step(u), 50)
        seconds = engine.ledger.seconds
    assert seconds["compute"] > 0
    assert isinstance(engine.comm, SerialComm)
