"""When locals are computed on a CPU: which share a loop, which wait, which are done a row or two planes at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minga import kernel
from minga.compile.arrange import Arrangement, arrange
from minga.compile.call import Call
from minga.compile.llvm import compile_kernel, scratch_bytes, suggest_tile
from minga.lang import functions as mg
from minga.lang.cell import local
from minga.lang.graph import KernelGraph
from thinned import thinned

from .helpers import assert_equal_bits, make_case, traced

HERE = (0, 0, 0)


def arranged(graph: KernelGraph) -> Arrangement:
    return arrange(graph, [store.value for store in graph.stores] + [item.value for item in graph.reductions])


def numbers(stages: Any) -> list[list[int]]:
    return [[ring.number for ring in stage.rings] for stage in stages]


def second(u: Any, axis: int, reach: int = 2) -> Any:
    steps = [tuple(k if a == axis else 0 for a in range(3)) for k in range(-reach, reach + 1)]
    return sum((u[step] * (1.5 + k * k) for k, step in enumerate(steps[1:])), u[steps[0]])


def first(u: Any, axis: int, reach: int = 2) -> Any:
    steps = [tuple(k if a == axis else 0 for a in range(3)) for k in range(-reach, reach + 1)]
    return sum((u[b] - u[a] for a, b in zip(steps[:reach], steps[:reach:-1], strict=True)), u[HERE] * 0.0)


@kernel
def waves(u: Any, c: Any, new: Any) -> None:
    """Locals 0 and 2 have the same reads, 1 stands apart, 3 and 4 are differences of local 2."""
    along_y, along_z = local(second(u, 1)), local(second(u, 0))
    by_y = local(first(u, 1))
    mixed = local(first(by_y, 0))
    across = local(first(by_y, 2))
    new[HERE] = c[HERE] * (along_y[HERE] + along_z[HERE]) + mixed[HERE] - across[HERE] + u[HERE]


def test_locals_made_of_the_same_are_filled_together() -> None:
    """One loop for what is needed at the same cells and shares reads; never for a local and one that reads it."""

    @kernel
    def shared(u: Any, v: Any, new: Any) -> None:
        across, product = local(u[0, -1] + u[0, 1]), local(u[0, -1] * u[0, 1])
        of_both = local(across[0, 0] * u[0, 1])
        apart = local(v[0, 0] * 2.0)
        new[0, 0] = sum((item[-1, 0] + item[1, 0] for item in (across, product, of_both, apart)), u[0, 0])

    graph = traced(shared, 2, ["f8"] * 3)
    assert numbers(arranged(graph).ahead) == [[0, 1], [2], [3]]
    assert_equal_bits(make_case(graph, (9, 21), seed=2))


def test_what_is_needed_later_waits_where_it_shares_reads() -> None:
    plan = arranged(traced(waves, 3, ["f4"] * 3))
    assert numbers(plan.ahead) == [[0, 2]]
    early, late = plan.ahead[0].rings
    assert (early.low, early.high, early.lead) == (late.low, late.high, late.lead) == ((-2, 0, -2), (2, 0, 2), 2)
    assert (early.depth, late.depth) == (4, 6)  # two planes at a time


def test_locals_of_their_own_row_are_done_beside_it() -> None:
    plan = arranged(traced(waves, 3, ["f4"] * 3))
    assert numbers(plan.beside) == [[1], [3], [4]]
    assert all(ring.row for stage in plan.beside for ring in stage.rings)
    assert [stage.planes for stage in plan.beside] == [2, 2, 1]  # differences along z share loads from plane to plane
    assert plan.step == 2


@pytest.mark.parametrize("first", [-2, -1, 0])
@pytest.mark.parametrize("shape", [(10, 37), (4, 8), (3, 3)])
def test_four_rows_of_two_axes_go_together(shape: tuple[int, int], first: int) -> None:
    """Differences along z share loads from row to row of cells, however many rows ahead the march begins."""

    @kernel
    def rows(u: Any, v: Any, new: Any) -> None:
        across = local(u[0, 1] - u[0, -1])
        down = local(u[-2, 0] * 3.0 + u[-1, 0] + u[0, 0] + u[1, 0] + u[2, 0])
        mixed = local(sum((across[k, 0] * (2.0 + k) for k in range(first, 2)), v[0, 0]))
        apart = local(v[0, 0] * v[0, 1])
        new[0, 0] = new[0, 0] * 0.5 + down[0, 0] + mixed[0, 0] * v[0, 0] + apart[0, 0]

    graph = traced(rows, 2, ["f4"] * 3)
    plan = arranged(graph)
    assert plan.step == 4
    assert numbers(plan.ahead) == [[0]]
    assert numbers(plan.beside) == [[1], [2], [3]]
    assert [stage.planes for stage in plan.beside][::2] == [4, 1]
    case = make_case(graph, shape)
    assert_equal_bits(case)
    assert_equal_bits(case, tile=(5, 16))


@pytest.mark.slow
@pytest.mark.parametrize("offset", thinned([((1, 0, 0),), ((0, -1, 0),)], ((1, 0, 0),)))
def test_what_is_read_ahead_is_done_ahead(offset: tuple[int, ...]) -> None:
    """A local at its own row of cells, but read by one that is needed elsewhere and shifts it back."""

    @kernel
    def shifted(u: Any, new: Any) -> None:
        value = local(u[HERE] * 2.0 + u[0, 0, 1])
        back = local(value[tuple(-step for step in offset)] + u[HERE])
        new[HERE] = back[offset] + 1.0

    graph = traced(shifted, 3, ["f4", "f4"])
    assert numbers(arranged(graph).ahead) == [[0], [1]]
    assert_equal_bits(make_case(graph, (5, 4, 9)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "shape"),
    thinned(
        [("f4", (5, 6, 37)), ("f4", (4, 3, 8)), ("f4", (1, 2, 3)), ("f8", (3, 4, 21))],
        *[("f4", (5, 6, 37)), ("f8", (3, 4, 21))],
    ),
)
def test_planes_in_pairs_and_one_left(dtype: str, shape: tuple[int, ...]) -> None:
    case = make_case(traced(waves, 3, [dtype] * 3), shape)
    assert_equal_bits(case)
    assert_equal_bits(case, tile=(3, 2, shape[2]))


def test_scratch_is_enough_and_no_more() -> None:
    graph = traced(waves, 3, ["f4"] * 3)
    case = make_case(graph, (5, 4, 35))
    call = Call(compile_kernel(graph), (case.lo, case.hi), case.copies(), extent=case.extent)
    size = scratch_bytes(graph, (5, 4, 35))
    memory = np.full(size + 192, 0xA5, np.uint8)
    start = -memory.ctypes.data % 64 + 64
    call.worker[1] = memory.ctypes.data + start
    call.run()
    assert (memory[:start] == 0xA5).all()
    assert (memory[start + size :] == 0xA5).all()


def test_nothing_outside_of_what_is_read_anyway() -> None:
    """A local is not computed in more cells than it is needed in where it would read beyond the kernel's reach."""

    @kernel
    def far(u: Any, new: Any) -> None:
        wide = local(u[0, 0, 1] + u[0, 0, 2] + u[0, 0, 9])
        near = local(u[0, 0, 1] * u[0, 0, 2])
        new[HERE] = near[0, 0, -3] + near[0, 0, 3] + wide[HERE]

    graph = traced(far, 3, ["f4", "f4"])
    assert numbers(arranged(graph).beside) == [[0], [1]]
    assert_equal_bits(make_case(graph, (7, 3, 21)))


@pytest.mark.slow
def test_planes_stay_single_where_pairs_are_not_the_same() -> None:
    """Indices differ from plane to plane, and reductions go through cells in turn."""

    @kernel
    def indexed(u: Any, new: Any) -> None:
        new[HERE] = local(second(u, 0) + mg.cast(mg.index(0), "f4"))[HERE] * 2.0

    @kernel
    def summed(u: Any, new: Any) -> Any:
        value = local(second(u, 0))
        new[HERE] = value[HERE]
        return {"sum": mg.sum(value[HERE] * u[HERE]), "largest": mg.max(value[HERE])}

    for each in (indexed, summed):
        graph = traced(each, 3, ["f4", "f4"])
        assert arranged(graph).step == 1
        case = make_case(graph, (5, 4, 70))
        assert_equal_bits(case)
        assert_equal_bits(case, tile=(2, 3, 70))


def test_tiles_are_even_and_longer_than_margins() -> None:
    """Rows are divided evenly where they can be; where locals are computed anew at margins, tiles stay longer."""
    graph = traced(waves, 3, ["f4"] * 3)
    rows = suggest_tile(graph, (200, 360, 400))[1]
    assert 4 <= rows < 360
    assert 360 % rows == 0

    @kernel
    def spread(u: Any, new: Any) -> None:
        by_y = local(first(u, 1))
        new[HERE] = first(by_y, 1) + first(by_y, 0)

    assert suggest_tile(traced(spread, 3, ["f4"] * 2), (200, 360, 4000))[1] == 8
