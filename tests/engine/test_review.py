"""Order of effects where operations meet: overlap and reductions, early ends, moves within a field, misuse."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.engine.program import Program
from minga.errors import LayoutError, ProgramError
from minga.space.cuts import slabs
from minga.space.layout import Layout

from .running import check, on_layouts

GRID = mg.Grid((12, 5), periodic=True)


def some(ranks: int = 3) -> list[Layout]:
    return [Layout.single(GRID.box, 1), slabs(GRID.box, 2), slabs(GRID.box, ranks)]


@mg.kernel
def double(u, v):
    v[0, 0] = u[0, 0] * 2.0
    return mg.max(u[0, 0])


@mg.kernel
def add(u, w, *, r):
    w[0, 0] = u[0, 0] + r


@mg.kernel
def tally(u, w):
    w[0, 0] = u[0, 0] + 1.0
    return mg.count(u[0, 0] > -1.0)


@mg.kernel
def gather_up(v, w, out):
    out[0, 0] = v[-1, 0] + v[1, 0] + w[-1, 0] + w[1, 0]


def four_fields() -> tuple[mg.Field, ...]:
    return tuple(mg.Field(name, GRID) for name in ("u", "v", "w", "out"))


@pytest.mark.parametrize("named", [False, True])
def test_a_shell_waits_for_the_reduction_whose_result_it_uses(named: bool) -> None:
    u, v, w, out = four_fields()
    program = Program("reduced")
    largest = mg.Register("largest")
    r = program.apply(double, u, v, into=largest if named else None)
    program.apply(add, u, w, r=r)
    program.apply(gather_up, v, w, out)
    initial = {u: np.arange(60.0).reshape(12, 5), v: 0.0, w: 0.0, out: 0.0}
    check([(program, 2)], initial, some())


def test_an_early_end_leaves_no_half_of_another_reduction_behind() -> None:
    u, v, w, out = four_fields()
    program = Program("tally")
    program.apply(double, u, v)
    number = program.apply(tally, u, w)
    program.apply(gather_up, v, w, out)

    def body(comm: mg.engine.comm.Comm) -> tuple[str, str, int]:
        values = np.arange(60.0).reshape(12, 5)
        broken = np.where(values == 7.0, np.nan, values)
        with mg.Engine({GRID: slabs(GRID.box, comm.size)}, comm=comm) as engine:
            engine.set(u, broken)
            first = engine.run(program)
            engine.set(u, values)
            return first.reason, engine.run(program).reason, engine.read(number)

    for ranks in (1, 2, 3):
        assert set(mg.run_virtual(ranks, body)) == {("not finite", "finished", 60)}


def test_a_move_between_slots_of_one_field() -> None:
    u = mg.Field("u", GRID, slots=2)
    program = Program("copy")
    program.move(u.now, u.next)
    values = np.arange(60.0).reshape(12, 5)
    for layout in some():
        found = on_layouts(layout, [(program, 1)], {u: values})
        np.testing.assert_array_equal(found.arrays[u], np.stack([values, values]))


def test_a_called_function_cannot_run_a_program() -> None:
    u, v, *_ = four_fields()
    inner, outer = Program("inner"), Program("outer")
    inner.apply(double, u, v)

    def work(engine: mg.Engine) -> None:
        engine.run(inner)

    outer.call(work, reads=[u], writes=[v])
    with mg.Engine(Layout.single(GRID.box, 1), grid=GRID) as engine:
        with pytest.raises(ProgramError, match=r"'work', which a Program calls, runs Program 'inner'"):
            engine.run(outer)
        assert engine.run(inner).ok


def test_programs_whose_results_would_meet_are_refused_after_one_without_results() -> None:
    u, v, w, _ = four_fields()
    plain, first, second = Program(), Program(), Program()
    plain.apply(add, u, w, r=1.0)
    first.apply(double, u, v)
    second.apply(double, u, v)
    with mg.Engine(Layout.single(GRID.box, 1), grid=GRID) as engine:
        engine.run(plain)
        engine.run(first)
        with pytest.raises(ProgramError, match="two Programs are called 'program'"):
            engine.run(second)


@mg.kernel
def copy(a, b):
    b[0, 0] = a[0, 0]


@mg.kernel
def every_other(a, b):
    b[0, 0] = a.strided(2)[0, 0]


@pytest.mark.parametrize(
    ("kernel", "source", "target"),
    [(copy, (12, 5), (12, 8)), (copy, (12, 8), (12, 5)), (every_other, (12, 8), (6, 5)), (every_other, (4, 4), (9, 9))],
)
def test_grids_that_do_not_lie_on_one_another_are_refused(kernel, source, target) -> None:
    a = mg.Field("a", mg.Grid(source, periodic=True))
    b = mg.Field("b", mg.Grid(target, periodic=True))
    with pytest.raises(ProgramError, match="is accessed at stride"):
        Program("p").apply(kernel, a, b)


@pytest.mark.parametrize("shape", [(12, 8), (11, 7)])
def test_a_coarse_grid_may_round_up(shape) -> None:
    a, b = mg.Field("a", mg.Grid(shape)), mg.Field("b", mg.Grid((6, 4)))
    program = Program("p")
    program.apply(every_other, a, b)
    with mg.Engine({item.grid: Layout.single(item.grid.box, 1) for item in (a, b)}) as engine:
        values = np.arange(float(a.grid.size)).reshape(shape)
        engine.set(a, values)
        engine.run(program)
        np.testing.assert_array_equal(engine.gather(b), values[::2, ::2])


@mg.kernel
def far(row, u):
    u[0, 0] = row.strided(40)[0]


def test_a_row_is_not_read_beyond_what_it_is_continued_to() -> None:
    row, u = mg.Field("row", GRID, axes=[1]), mg.Field("u", GRID)
    with pytest.raises(ProgramError, match="which lacks axes of its grid, is read 156 points away"):
        Program("p").apply(far, row, u)


@mg.kernel
def farthest(q):
    return mg.max(mg.coordinate(0) + 0.0 * q[0])


def test_a_reduction_over_faces_knows_where_they_are() -> None:
    grid = mg.Grid((6,))
    q = mg.Field("q", grid, centre="x")
    program = Program("p")
    position = program.apply(farthest, q)
    with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
        engine.run(program)
        assert engine.read(position) == 6.0


@pytest.mark.parametrize("value", [300, -1, 0.5, np.nan, np.full((12, 5), 256), lambda box: np.full(box.shape, 1.5)])
def test_a_field_is_not_given_what_it_cannot_hold(value) -> None:
    c = mg.Field("c", GRID, "u1")
    with mg.Engine(Layout.single(GRID.box, 1), grid=GRID) as engine:
        with pytest.raises(LayoutError, match="field 'c' is u1, which cannot hold"):
            engine.set(c, value)
        engine.set(c, np.full((12, 5), 255.0))
        assert (engine.gather(c) == 255).all()


def test_an_engine_has_a_thread() -> None:
    with pytest.raises(LayoutError, match="threads is 0"):
        mg.Engine(Layout.single(GRID.box, 1), grid=GRID, threads=0)
