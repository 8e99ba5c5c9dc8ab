"""Compiled kernels against the oracle, class by class; and the kernels that are refused."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from minga import kernel
from minga.compile import target as targets
from minga.compile.alternative import Alternative
from minga.compile.call import Call, run_kernel
from minga.compile.exact import finish
from minga.compile.llvm import compile_kernel, print_llvm, scratch_bytes, suggest_tile
from minga.compile.numpy import BoundArray
from minga.compile.schedule import may_repeat_cells
from minga.compile.target import baseline_target, host_target
from minga.errors import KernelError, LaunchError
from minga.lang import functions as mg
from minga.lang.cell import local
from minga.lang.expr import cast, fused_multiply_add
from minga.lang.types import DTYPES
from thinned import thinned

from .helpers import assert_equal_bits, make_case, oracle, random_array, same_bits, traced

ROWS = [(4, 1), (3, 15), (5, 16), (2, 65), (1, 1100)]


@kernel
def jacobi(u: Any, f: Any, new: Any, *, h: Any) -> None:
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - h * f[0, 0])


@kernel
def life(cell: Any, new: Any) -> None:
    alive = sum(cell[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    new[0, 0] = mg.where((alive == 3) | ((alive == 2) & (cell[0, 0] == 1)), 1, 0)


@pytest.mark.few(3)
@pytest.mark.parametrize("shape", ROWS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_jacobi(dtype: str, shape: tuple[int, ...]) -> None:
    assert_equal_bits(make_case(traced(jacobi, 2, [dtype, dtype, dtype], {"h": dtype}), shape))


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", thinned(DTYPES, "bool", "u1", "i4", "f8"))
def test_life_in_every_type(dtype: str) -> None:
    @kernel
    def rule(cell: Any, new: Any) -> None:
        alive = sum(cast(cell[i, j], "i4") for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        new[0, 0] = cast((alive == 3) | ((alive == 2) & (cell[0, 0] == 1)), dtype)

    assert_equal_bits(make_case(traced(rule, 2, [dtype, dtype]), (9, 131)))


@pytest.mark.few(4)
@pytest.mark.parametrize("width", [1, 15, 16, 17, 31, 33, 63, 64, 65, 127, 130, 200])
def test_rows_of_bytes_end_in_overlapping_blocks(width: int) -> None:
    @kernel
    def step(cell: Any, new: Any) -> dict[str, Any]:
        alive = sum(cast(cell[i, j], "u1") for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        new[0, 0] = (alive == 3) | ((alive == 2) & cell[0, 0])
        return {"alive": mg.count(cell[0, 0]), "first": mg.argmax(cell[0, 0])}

    for reductions in (True, False):
        graph = traced(step, 2, ["bool", "bool"])
        if not reductions:
            graph = dataclasses.replace(graph, reductions=())
        assert may_repeat_cells(graph)
        assert_equal_bits(make_case(graph, (3, width)))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("dtype", "bits"),
    thinned(
        itertools.product(["f8", "f4", "i2", "bool"], [128, 256, 512]),
        *[("f8", 256), ("f4", 128), ("i2", 512), ("bool", 256)],
    ),
)
def test_stores_past_the_caches(dtype: str, bits: int) -> None:
    """Rows begin and end anywhere between aligned addresses; two stored fields may be aligned differently."""
    host = host_target()
    if bits > 8 * host.lanes:
        return

    @kernel
    def step(u: Any, x: Any, y: Any) -> Any:
        x[0, 0] = cast(cast(u[0, 1], "f8") - cast(u[0, 0], "f8"), dtype)
        y[0, 0] = u[-1, 0]
        return mg.sum(cast(u[0, 0], "f8"))

    target = dataclasses.replace(host, cache=0, lanes=bits // 8)
    graph = traced(step, 2, [dtype] * 3)
    assert "nontemporal" in print_llvm(graph, target=target)
    for width in (1, 5, 16, 63, 100, 129):
        case = make_case(graph, (3, width))
        assert_equal_bits(case, on=[target])
        # The same rows, with both stored fields at the same place of a cache line.
        lines = [np.zeros(case.arrays[1].array.nbytes + 128, np.uint8) for _ in range(2)]
        arrays = [case.arrays[0]]
        for bytes_, bound in zip(lines, case.arrays[1:], strict=True):
            start = -bytes_.ctypes.data % 64
            array = bytes_[start : start + bound.array.nbytes].view(bound.array.dtype).reshape(bound.array.shape)
            array[...] = bound.array
            arrays.append(BoundArray(array, bound.origin))
        run_kernel(compile_kernel(graph, target=target), (case.lo, case.hi), arrays, case.scalars)
        for expected, found in zip(oracle(case)[0], arrays, strict=True):
            assert same_bits(expected.array, found.array)


@pytest.mark.parametrize("width", [1, 7, 8, 33])
def test_planes_of_kernels_of_three_axes_are_fetched_ahead(width: int) -> None:
    @kernel
    def wave(u: Any, old: Any, speed: Any) -> None:
        around = u[-2, 0, 0] + u[2, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
        old[0, 0, 0] = 2 * u[0, 0, 0] - old[0, 0, 0] + speed[0, 0, 0] * around

    target = dataclasses.replace(host_target(), second=0)
    graph = traced(wave, 3, ["f4"] * 3)
    assert "llvm.prefetch" in print_llvm(graph, target=target)
    assert "llvm.prefetch" not in print_llvm(graph, target=target, way=Alternative(prefetch="none"))
    assert_equal_bits(make_case(graph, (5, 3, width)), on=[target])


def test_what_is_read_stays_in_the_caches() -> None:
    @kernel
    def wave(u: Any, old: Any) -> None:
        old[0] = 2 * u[0] - old[0] + 0.1 * (u[1] + u[-1])

    assert "nontemporal" not in print_llvm(traced(wave, 1, ["f8", "f8"]))


def test_a_cell_that_may_change_under_its_reader_is_computed_once() -> None:
    """One array may be bound to two parameters where all reads are of the cell itself."""

    @kernel
    def count_up(u: Any, new: Any) -> None:
        new[0] = u[0] + 1

    @kernel
    def beside(u: Any, new: Any) -> None:
        new[0] = u[1] + 1

    graph = traced(count_up, 1, ["u1", "u1"])
    assert not may_repeat_cells(graph)
    assert may_repeat_cells(traced(beside, 1, ["u1", "u1"]))
    array = np.zeros(77, np.uint8)
    both = [BoundArray(array, (0,)), BoundArray(array, (0,))]
    for _ in range(3):
        run_kernel(compile_kernel(graph), ((0,), (77,)), both)
    assert (array == 3).all()


@pytest.mark.parametrize("dtype", ["f8", "i4", "u1"])
def test_one_array_for_two_parameters(dtype: str) -> None:
    """All values of a cell are taken before its stores, whatever the compiler makes of the loop."""

    @kernel
    def rotate(a: Any, b: Any, x: Any, y: Any) -> None:
        x[0] = b[0] + 1
        y[0] = a[0] + 2

    for length in (1, 7, 64, 131):
        first, second = np.arange(length).astype(dtype), np.arange(length).astype(dtype)[::-1].copy()
        expected = second + np.array(1, dtype), first + np.array(2, dtype)
        bound = [BoundArray(item, (0,)) for item in (first, second, first, second)]
        run_kernel(compile_kernel(traced(rotate, 1, [dtype] * 4)), ((0,), (length,)), bound)
        assert (first == expected[0]).all()
        assert (second == expected[1]).all()


@pytest.mark.parametrize("tile", [(1, 1), (2, 7), (5, 64), (100, 100)])
def test_tiles_cover_the_box(tile: tuple[int, int]) -> None:
    assert_equal_bits(make_case(traced(jacobi, 2, ["f8", "f8", "f8"], {"h": "f8"}), (7, 67)), tile=tile)


def test_four_dimensions_and_fields_with_fewer_axes() -> None:
    @kernel
    def step(u: Any, row: Any, plane: Any, column: Any, new: Any) -> None:
        new[0, 0, 0, 0] = u[-1, 0, 0, 1] * row[1] + plane[-1, 0] * column[2] - mg.index(0) + mg.index("x")

    axes = [("f8", (0, 1, 2, 3)), ("f8", (3,)), ("f4", (1, 2)), ("i2", (0,)), ("f8", (0, 1, 2, 3))]
    assert_equal_bits(make_case(traced(step, 4, axes), (2, 3, 2, 19)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtypes", "stride"),
    thinned(
        itertools.product([("f8", "f8"), ("f4", "f8"), ("bool", "i4"), ("u1", "u1"), ("bool", "bool")], [2, 3]),
        *[(("f8", "f8"), 2), (("bool", "i4"), 2)],
    ),
)
def test_reads_with_a_stride(dtypes: tuple[str, str], stride: int) -> None:
    @kernel
    def coarsen(fine: Any, row: Any, coarse: Any, *, s: Any) -> dict[str, Any]:
        own = fine.strided(stride)
        total = sum(cast(own[i, j], "i4") for i in (0, 1) for j in (-1, 0, 3)) + cast(row[0], "i4") + mg.index(1)
        coarse[0, 0] = cast(total + cast(s, "i4"), dtypes[1])
        return {"sum": mg.sum(cast(own[0, 1], "f8")), "count": mg.count(own[0, 0] != own[1, 0])}

    graph = traced(coarsen, 2, [dtypes[0], ("i2", (0,)), dtypes[1]], {"s": "f8"})
    for width in (1, 3, 8, 13, 16, 35, 100):
        assert_equal_bits(make_case(graph, (2, width)))


def test_nothing_behind_a_field_is_read(tmp_path: Any) -> None:
    """Rows end where memory ends: a vector that reached farther would stop the process."""

    @kernel
    def coarsen(fine: Any, coarse: Any) -> None:
        coarse[0] = fine.strided(2)[0]

    import mmap

    page = mmap.PAGESIZE
    graph = traced(coarsen, 1, ["f8", "f8"])
    for cells in (1, 7, 64, 100):
        with mmap.mmap(-1, 4 * page) as memory:
            protect(memory, 2 * page, 2 * page)
            room = np.frombuffer(memory, np.float64, 2 * page // 8)
            fine = room[room.size - (2 * cells - 1) :]
            coarse = np.zeros(cells)
            run_kernel(compile_kernel(graph), ((0,), (cells,)), [BoundArray(fine, (0,)), BoundArray(coarse, (0,))])
            del room, fine


def protect(memory: Any, start: int, length: int) -> None:
    """Make a part of a mapping inaccessible."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    first = ctypes.addressof(ctypes.c_char.from_buffer(memory, start))
    assert libc.mprotect(ctypes.c_void_p(first), ctypes.c_size_t(length), 0) == 0, ctypes.get_errno()


@pytest.mark.slow
def test_several_stores_and_strides_between_grids() -> None:
    @kernel
    def prolong(coarse: Any, fine: Any) -> None:
        own = fine.strided(2)
        own[0, 0] = coarse[0, 0]
        own[0, 1] = own[0, 1] + 0.5 * (coarse[0, 0] + coarse[0, 1])
        own[1, 0] = 0.5 * (coarse[0, 0] + coarse[1, 0])
        own[1, 1] = 0.25 * (coarse[0, 0] + coarse[0, 1] + coarse[1, 0] + coarse[1, 1])

    @kernel
    def restrict(fine: Any, coarse: Any) -> None:
        own = fine.strided(2)
        coarse[0, 0] = 0.5 * own[0, 0] + 0.125 * (own[-1, 0] + own[1, 0] + own[0, -1] + own[0, 1])

    for shape in ROWS:
        assert_equal_bits(make_case(traced(prolong, 2, ["f8", "f8"]), shape))
        assert_equal_bits(make_case(traced(restrict, 2, ["f4", "f4"]), shape))


@pytest.mark.few(2)
@pytest.mark.parametrize("colour", [0, 1])
@pytest.mark.parametrize("shift", [(0, 0), (3, 4), pytest.param((4, 4), marks=pytest.mark.slow)])
def test_red_black_updates_one_colour(colour: int, shift: tuple[int, int]) -> None:
    @kernel(order="red-black")
    def relax(u: Any, f: Any) -> dict[str, Any]:
        change = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]) - f[0, 0] - u[0, 0]
        u[0, 0] = u[0, 0] + change
        return {
            "max": mg.max(abs(change)), "where": mg.argmin(change), "sum": mg.sum(change),
            "count": mg.count(change > 0),
        }  # fmt: skip

    graph = traced(relax, 2, ["f8", "f8"])
    for shape in ROWS:
        assert_equal_bits(make_case(graph, shape, colour=colour, shift=shift))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "order",
    thinned(
        [{"y": 1}, {"y": -1}, {"x": 1}, {"x": -1}, {"x": 1, "y": -1}, {"z": 1, "x": -1}, {"z": -1}, "lexicographic"],
        *[{"y": 1}, {"x": -1}, {"z": 1, "x": -1}, "lexicographic"],
    ),
    ids=str,
)
def test_ordered_updates(order: Any) -> None:
    swept = "zyx" if order == "lexicographic" else "".join(order)

    @kernel(order=order)
    def sweep(u: Any, f: Any) -> dict[str, Any]:
        value = f[0, 0, 0] + f[0, 1, -1]
        for axis in swept:
            offset = [int(axis == name) for name in "zyx"]
            value = value + 0.25 * u[tuple(offset)] - 0.5 * u[tuple(-o for o in offset)]
        u[0, 0, 0] = value
        return {"max": mg.max(value), "where": mg.argmax(value)}

    assert_equal_bits(make_case(traced(sweep, 3, ["f8", "f8"]), (2, 6, 67)))
    plain = dataclasses.replace(traced(sweep, 3, ["f8", "f8"]), reductions=())
    for lines in (1, 4, 6, 9):
        assert_equal_bits(make_case(plain, (2, lines, 21)))


def test_sweeps_read_finished_lines_on_the_diagonal() -> None:
    """The free axis must then run inside the swept one, although that is against the order of memory."""

    @kernel(order={"x": -1})
    def sweep(u: Any) -> None:
        u[0, 0] = u[0, 0] - 0.5 * (u[1, 1] + u[-1, 1]) + u[2, -1]

    assert_equal_bits(make_case(traced(sweep, 2, ["f8"]), (21, 9)))


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", thinned(DTYPES, "bool", "i8", "f8"))
@pytest.mark.parametrize("shape", [(3, 5), (2, 1100)])
def test_reductions_of_every_type(dtype: str, shape: tuple[int, int]) -> None:
    @kernel
    def reduce(u: Any) -> dict[str, Any]:
        v = u[0, 1]
        return {
            "max": mg.max(v), "min": mg.min(v), "argmax": mg.argmax(v), "argmin": mg.argmin(v), "sum": mg.sum(v),
            "count": mg.count(v != 0),
        }  # fmt: skip

    graph = traced(reduce, 2, [dtype])
    for seed in range(3):
        assert_equal_bits(make_case(graph, shape, seed=seed, shift=(seed, 31 * seed)))
    assert_equal_bits(make_case(graph, shape), tile=(1, shape[1]))


@pytest.mark.few(2)
@pytest.mark.parametrize("values", [[0.0, -0.0], [-0.0, -0.0], [np.nan, 1.0], [np.inf, -np.inf], [-np.inf, -np.inf]])
def test_extremes_of_special_values(values: list[float]) -> None:
    @kernel
    def reduce(u: Any) -> dict[str, Any]:
        return {"max": mg.max(u[0]), "min": mg.min(u[0]), "argmax": mg.argmax(u[0]), "argmin": mg.argmin(u[0])}

    case = make_case(traced(reduce, 1, ["f8"]), (40,))
    case.arrays[0].array[...] = np.resize(values, case.arrays[0].array.shape)
    assert_equal_bits(case)


def test_argmax_is_the_first_of_equals() -> None:
    @kernel
    def reduce(u: Any) -> dict[str, Any]:
        return {"max": mg.argmax(u[0, 0]), "min": mg.argmin(u[0, 0])}

    graph = traced(reduce, 2, ["f4"])
    array = np.zeros((5, 3000), np.float32)
    array[2, [700, 2100]] = array[3, 5] = 7
    found = run_kernel(compile_kernel(graph), ((0, 0), array.shape), [BoundArray(array, (0, 0))], extent=(5, 3000))
    assert finish("argmax", "i8", found["max"]) == 2 * 3000 + 700
    assert finish("argmin", "i8", found["min"]) == 0


def test_reductions_can_be_left_out() -> None:
    @kernel
    def step(u: Any, new: Any) -> Any:
        new[0] = u[0] + 1
        return mg.sum(u[0])

    graph = traced(step, 1, ["f8", "f8"])
    case = make_case(graph, (100,))
    arrays = case.copies()
    found = run_kernel(compile_kernel(graph, reductions=False), (case.lo, case.hi), arrays)
    assert same_bits(arrays[1].array, oracle(case)[0][1].array)
    assert not found["value"].any()
    assert "fold" not in print_llvm(graph, reductions=False)


@kernel
def nested(p: Any, c: Any, new: Any) -> Any:
    x = local(c[0, 0, 0] * (p[0, 0, 1] - p[0, 0, -2]))
    z = local(c[0, 0, 0] * (p[1, 0, 0] - p[-1, 0, 0]))
    unused = local(p[7, 7, 7])  # noqa: F841
    flag = local(z[1, 2, -1] - x[0, 0, 1] > 0)
    new[0, 0, 0] = mg.where(flag[0, 0, 1] & flag[-1, -1, -1], x[2, 0, 1] - x[0, 0, 0], z[0, 1, 1] - z[-1, 0, 0])
    return mg.sum(x[1, 0, 0])


@pytest.mark.few(2)
@pytest.mark.parametrize("tile", [None, (9, 11, 34), (1, 3, 34), (4, 1, 34)])
def test_locals_of_locals(tile: tuple[int, ...] | None) -> None:
    assert_equal_bits(make_case(traced(nested, 3, ["f8", "f8", "f8"]), (9, 11, 34)), tile=tile)


@pytest.mark.slow
@pytest.mark.parametrize("ndim", thinned([1, 2, 3, 4], 1, 3))
def test_locals_read_far_away(ndim: int) -> None:
    """Offsets of one sign only: what is needed lies beside the tile, not around it."""

    @kernel
    def far(u: Any, new: Any) -> None:
        a = local(u[(1,) * ndim] - u[(-2,) * ndim])
        b = local(a[(-4,) * ndim] - a[(-2,) * ndim])
        new[(0,) * ndim] = b[(3,) * ndim] - b[(5,) * ndim]

    shape = (3, 2, 7, 65)[-ndim:]
    graph = traced(far, ndim, ["i2", "i2"])
    assert_equal_bits(make_case(graph, shape))
    assert_equal_bits(make_case(graph, shape), tile=tuple(max(1, n // 2) for n in shape))


def test_scratch_is_enough_and_no_more() -> None:
    """Bytes behind the scratch stay as they are, and a kernel without locals and reductions needs none."""
    graph = traced(nested, 3, ["f8", "f8", "f8"])
    case = make_case(graph, (6, 7, 33))
    call = Call(compile_kernel(graph), (case.lo, case.hi), case.copies(), extent=case.extent)
    size = scratch_bytes(graph, (6, 7, 33))
    assert call.worker[2] == size > scratch_bytes(graph, (6, 7, 33), reductions=False) > 0
    memory = np.full(size + 128, 0xA5, np.uint8)
    start = -memory.ctypes.data % 64
    call.worker[1] = memory.ctypes.data + start
    call.run()
    assert (memory[start + size :] == 0xA5).all()
    assert scratch_bytes(traced(jacobi, 2, ["f8"] * 3, {"h": "f8"}), (100, 100)) == 0


def test_suggested_tiles_fit() -> None:
    graph = traced(nested, 3, ["f8", "f8", "f8"])
    tile = suggest_tile(graph, (200, 300, 400), memory=1 << 20)
    assert tile[2] == 400
    assert 1 <= tile[1] < 300
    assert scratch_bytes(graph, tile) < 1.1 * (1 << 20)
    assert suggest_tile(traced(jacobi, 2, ["f8"] * 3, {"h": "f8"}), (100, 200)) == (100, 200)
    many = suggest_tile(traced(jacobi, 2, ["f8"] * 3, {"h": "f8"}), (100, 200), workers=4)
    assert many[1] == 200
    assert -(-100 // many[0]) >= 16


# Refused -------------------------------------------------------------------------------------------------------------
def test_in_place_neighbours_are_refused() -> None:
    @kernel
    def smear(u: Any) -> None:
        u[0] = u[-1]

    with pytest.raises(KernelError, match="neighbour") as caught:
        compile_kernel(traced(smear, 1, ["f8"]))
    assert "order=" in str(caught.value)
    assert "test_llvm.py" in str(caught.value)


def test_locals_of_a_stored_field_are_refused() -> None:
    @kernel
    def smooth(u: Any) -> None:
        twice = local(2 * u[0])
        u[0] = twice[-1] + twice[1]

    with pytest.raises(KernelError, match="locals"):
        compile_kernel(traced(smooth, 1, ["f8"]))


def test_sweeps_refuse_cells_of_the_same_step() -> None:
    @kernel(order={"y": 1})
    def sweep(u: Any) -> None:
        u[0, 0] = u[-1, 0] + u[0, 1]

    with pytest.raises(KernelError, match="same step"):
        compile_kernel(traced(sweep, 2, ["f8"]))


def test_sums_need_the_innermost_axis_inside() -> None:
    @kernel(order={"x": 1})
    def sweep(u: Any) -> Any:
        u[0, 0] = u[0, 0] - u[1, -1]
        return mg.sum(u[0, 0])

    with pytest.raises(KernelError, match="sums floats"):
        compile_kernel(traced(sweep, 2, ["f8"]))
    assert_equal_bits(make_case(traced(sweep, 2, ["i4"]), (5, 9)))


def test_fma_needs_the_instruction() -> None:
    @kernel
    def fused(u: Any, new: Any) -> None:
        new[0] = fused_multiply_add(u[0], u[1], u[-1])

    graph = traced(fused, 1, ["f8", "f8"])
    with pytest.raises(KernelError, match=r"mg\.fma"):
        compile_kernel(graph, target=baseline_target(), cache=None)
    host = host_target()
    if host.fma:
        assert_equal_bits(make_case(graph, (50,)), on=[host])
    with pytest.raises(KernelError):
        compile_kernel(graph, target=dataclasses.replace(host, fma=False), cache=None)


def test_a_compiled_kernel_shows_its_source() -> None:
    graph = traced(jacobi, 2, ["f8"] * 3, {"h": "f8"})
    assert "define void @kernel(ptr %args, i64 %tile, ptr %worker)" in compile_kernel(graph).source


def test_random_arrays_hold_the_corners() -> None:
    array = random_array(np.random.default_rng(0), "f8", (500,))
    assert np.isnan(array).any()
    assert np.isinf(array).any()
    assert (array == 0).any()


def test_the_processor_is_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINGA_TARGET", "native")
    host = host_target()
    monkeypatch.delenv("MINGA_TARGET")
    assert host_target() is host
    monkeypatch.setenv("MINGA_TARGET", "pentium")
    with pytest.raises(LaunchError, match=r"MINGA_TARGET is 'pentium'(.|\n)*native or one of x86-64, x86-64-v3"):
        host_target()
    targets._chosen.cache_clear()
    monkeypatch.setattr(targets, "missing_features", lambda level: ["avx512f"])
    monkeypatch.setenv("MINGA_TARGET", "x86-64-V4")
    with pytest.raises(LaunchError, match="lacks avx512f"):
        host_target()
    monkeypatch.setattr(targets, "missing_features", lambda level: [])
    monkeypatch.setenv("MINGA_TARGET", "x86-64")
    assert host_target() == dataclasses.replace(baseline_target(), cache=host.cache, second=host.second)
