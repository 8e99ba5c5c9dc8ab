"""PTX: assembled by NVIDIA's assembler, strict in every operation, and run by a small machine to the oracle's bits."""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_kernels import Case, bind, canonical, cases, check, graph_of, limbs, tti_case
from minga.compile.lower import rewrite, uses_fma
from minga.compile.numpy import BoundArray, evaluate
from minga.compile.ptx import BLOCK, gpu_graph, launch, print_ptx
from minga.compile.ptx_map import mapping
from minga.compile.ptx_tile import MOST_BYTES, tile_of
from minga.errors import KernelError
from minga.lang import functions as mg
from minga.lang.cell import local
from minga.lang.expr import Node, cast, where
from minga.lang.graph import KernelGraph
from minga.lang.types import DTYPES, is_float, is_signed
from ptx_assembler import assemble, registers
from ptx_machine import Code, Memory, convert, run
from thinned import thinned

SUITE = {case.name: case for case in cases()}
ARCHITECTURES = ("sm_80", "sm_90")

QUICK = (
    "jacobi f4", "heat", "life", "four axes", "axes missing", "random", "elementary f4", "diffusion", "local chain",
    "prolong coarse", "black", "sweep over x, downwards", "sweep over two axes", "tables", "integers i8", "floats f8",
    "extremes of f4", "casts of f8", "reductions of bool over 2 axes", "reductions of f8 over 1 axes",
    "reductions of i4 over 3 axes",
)  # fmt: skip
"""Kernels that differ most."""

every_kernel = pytest.mark.parametrize("name", SUITE)


@functools.cache
def ptx_of(name: str, arch: str = "sm_80") -> str:
    return print_ptx(SUITE[name].graph, arch)


# Assembled -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arch", "names"),
    thinned(itertools.product(ARCHITECTURES, [QUICK, tuple(SUITE)]), ("sm_90", QUICK)),
    ids=lambda value: value if isinstance(value, str) else f"{len(value)} kernels",
)
def test_every_kernel_assembles(arch, names, tmp_path):
    reports = assemble({name: ptx_of(name, arch) for name in names}, arch, tmp_path, 1)
    assert len(reports) == len(names)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["tti", "heat", "jacobi f8", "elementary f8"])
@pytest.mark.parametrize("arch", thinned(ARCHITECTURES, "sm_80"))
def test_no_register_is_spilled(arch, name, tmp_path):
    report = assemble({name: ptx_of(name, arch)}, arch, tmp_path, 3)[name]
    assert registers(report) <= 128, report


def test_the_assembler_would_notice(tmp_path):
    with pytest.raises(AssertionError, match="error"):
        assemble({"broken": ptx_of("heat").replace("add.rn.f64", "add.rn.f46")}, "sm_80", tmp_path, 1)


# Strict --------------------------------------------------------------------------------------------------------------
ROUNDED = re.compile(r"(?:add|sub|mul|div|fma|sqrt|rcp|mad)\.(?:\w+\.)*f(?:32|64)")
LOOSE = re.compile(r"\.ftz|\.approx|\.full|\.sat\b|\b(?:ex2|lg2|sin|cos|tanh|rsqrt)\.|f16|f32x2")


def loose_instructions(ptx: str, *, fma: bool) -> list[str]:
    """Instructions whose result is not the correctly rounded one of the operation that was written."""
    found = []
    for line in ptx.splitlines():
        op = re.match(r"\s*(?:@!?%p\d+\s+)?([a-z][\w.]*)", line)
        if op is None:
            continue
        sloppy = ROUNDED.fullmatch(op[1]) and ".rn." not in op[1]
        if sloppy or LOOSE.search(op[1]) or (op[1].startswith(("fma.", "mad.f")) and not fma):
            found.append(line.strip())
    return found


@pytest.mark.few(4)
@every_kernel
def test_arithmetic_is_strict(name):
    assert loose_instructions(ptx_of(name), fma=uses_fma(SUITE[name].graph)) == []


@pytest.mark.parametrize(
    ("line", "fma", "loose"),
    [("add.f32 %r1, %r2, %r3;", True, True), ("add.rn.f32 %r1, %r2, %r3;", False, False),
     ("fma.rn.f64 %rd1, %rd2, %rd3, %rd4;", False, True), ("fma.rn.f64 %rd1, %rd2, %rd3, %rd4;", True, False),
     ("div.full.f32 %r1, %r2, %r3;", True, True), ("sqrt.approx.f32 %r1, %r2;", True, True),
     ("add.rn.ftz.f32 %r1, %r2, %r3;", True, True), ("@%p1 mul.f64 %rd1, %rd2, %rd3;", True, True),
     ("mul.rz.f32 %r1, %r2, %r3;", True, True), ("mad.lo.s64 %rd1, %rd2, %rd3, %rd4;", False, False)],
)  # fmt: skip
def test_the_guard_would_notice(line, fma, loose):
    assert bool(loose_instructions(f"\t{line}", fma=fma)) == loose


@pytest.mark.few(5)
@every_kernel
def test_memory_is_known_to_be_the_devices(name):
    """Generic loads and stores (without .global and the like) are slower."""
    accesses = re.findall(r"\b(?:ld|st|atom)\.[\w.]+", ptx_of(name))
    assert accesses
    assert [op for op in accesses if not re.search(r"\.(global|shared|local|param)\b", op)] == []


# Right ---------------------------------------------------------------------------------------------------------------
def run_case(case: Case, ptx: str, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
    memory, arrays = Memory(1 << 23), case.arrays()
    bound = bind(case, arrays, case.graph, memory.put)
    run(ptx, memory, [bound.args, bound.worker], grid, block)
    check(case, bound, arrays, memory.get)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", thinned(SUITE, *QUICK))
def test_ptx_has_the_oracles_bits(name):
    """Launched with fewer threads than cells, so that threads take several cells, and with some that have none."""
    run_case(SUITE[name], ptx_of(name), (2, 2, 1), (64, 4, 1) if "shared" in ptx_of(name) else (32, 2, 1))


LAUNCHES = list(
    itertools.product(
        ["heat", "red", "sweep over x, downwards", "reductions of f8 over 2 axes", "local chain", "diffusion"],
        [((1, 1, 1), (32, 1, 1)), ((3, 1, 2), (96, 1, 2)), ((1, 5, 1), (32, 8, 1)), None],
    )
)


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "shape"), thinned(LAUNCHES, *LAUNCHES[::3]))
def test_any_launch_has_the_same_bits(name, shape):
    case = SUITE[name]
    suggested = launch(case.graph, case.lo, case.hi)
    run_case(case, ptx_of(name), *(shape or (suggested.grid, suggested.block)))


ORDERS = list(
    itertools.product(
        ["red", "reductions of f8 over 2 axes", "reductions of i4 over 3 axes", "local chain", "diffusion"],
        ["first", "last"],
    )
)


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "order"), thinned(ORDERS, *ORDERS[::3]))
def test_warps_wait_for_each_other(name, order):
    """With the warps of a block as far out of step as barriers let them be."""
    case, memory = SUITE[name], Memory(1 << 23)
    arrays = case.arrays()
    bound = bind(case, arrays, case.graph, memory.put)
    run(ptx_of(name), memory, [bound.args, bound.worker], (2, 1, 1), (64, 2, 1), order=order)
    check(case, bound, arrays, memory.get)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["jacobi f8", "red", "reductions of f8 over 2 axes", "sweep over x, downwards"])
@pytest.mark.parametrize("axis", [0, 1])
def test_an_empty_box_changes_nothing(name, axis):
    case = SUITE[name]
    hi = tuple(case.lo[k] if k == axis else h for k, h in enumerate(case.hi))
    run_case(replace(case, hi=hi), ptx_of(name), (2, 1, 1), (32, 1, 1))


def test_reductions_can_be_left_out():
    case = SUITE["red"]
    ptx = print_ptx(case.graph, reductions=False)
    assert "atom" not in ptx
    assert "shfl" not in ptx
    memory, arrays = Memory(1 << 23), case.arrays()
    bound = bind(case, arrays, case.graph, memory.put)
    run(ptx, memory, [bound.args, bound.worker], (2, 2, 1), (32, 2, 1))
    expected, _ = case.expected()
    got = memory.get(bound.arrays[0], arrays[0].array.base)[..., : arrays[0].array.shape[-1]]
    np.testing.assert_array_equal(canonical(got), canonical(expected[0].array))


@every_kernel
def test_the_printed_graph_means_the_same(name):
    """What is printed, without locals and with divisions, shifts and casts spelled out, by the oracle."""
    case = SUITE[name]
    printed = gpu_graph(case.graph)
    assert printed.locals == () or tile_of(case.graph)
    arrays, words = case.expected(rewrite(printed, as_language))
    expected, expected_words = case.expected()
    for got, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(canonical(got.array), canonical(wanted.array))
    for item in case.graph.reductions:
        assert limbs(item.kind, words[item.name]) == limbs(item.kind, expected_words[item.name])


def as_language(node: Node) -> Node:
    """The printers' own operations in those of the language."""
    if node.op in ("shift_left", "shift_right"):
        return Node("shl" if node.op == "shift_left" else "shr", node.dtype, node.args)
    if node.op == "truncate":
        return cast(node.args[0], node.dtype)
    if node.op == "quotient":
        a, b = node.args
        up = ((a < 0) ^ (b < 0)) & (a % b != 0) if is_signed(node.dtype) else where(False, a < b, a > a)
        return where(up, a // b + 1, a // b)
    return node


@st.composite
def operands(draw):
    dtype = draw(st.sampled_from([t for t in DTYPES if t != "bool" and not is_float(t)]))
    info = np.iinfo(dtype)
    corners = (info.min, info.max, info.min + 1, -1, 0, 1, 7, 31, 32, 63, 64)
    edges = st.sampled_from([v for v in corners if info.min <= v <= info.max])
    pairs = draw(st.lists(st.tuples(*[st.integers(int(info.min), int(info.max)) | edges] * 2), min_size=1, max_size=30))
    return np.array([a for a, _ in pairs], dtype), np.array([b for _, b in pairs], dtype)


@functools.cache
def integer_graph(dtype: str) -> KernelGraph:
    def every(a, b, quotient, remainder, left, right):
        quotient[0], remainder[0] = a[0] // b[0], a[0] % b[0]
        left[0], right[0] = a[0] << b[0], a[0] >> b[0]

    return graph_of(every, *[dtype] * 6, ndim=1)


@given(operands())
def test_spelled_out_integer_operations(pair):
    """Every value, also those for which processors leave the result open."""
    a, b = pair
    graph = integer_graph(str(a.dtype.str[1:]))
    results = []
    for version in (graph, rewrite(gpu_graph(graph), as_language)):
        new = [np.zeros_like(a) for _ in range(4)]
        evaluate(version, ((0,), a.shape), [BoundArray(x, (0,)) for x in (a, b, *new)])
        results.append(new)
    np.testing.assert_array_equal(results[0], results[1])


# Mapping, launches, errors -------------------------------------------------------------------------------------------
def test_axes_are_given_to_threads_and_loops():
    plans = {name: mapping(SUITE[name].graph) for name in SUITE}
    assert plans["heat"].threads == (2, 1, 0)
    assert (plans["four axes"].outer, plans["four axes"].threads) == ((0,), (3, 2, 1))
    assert (plans["sweep over y"].threads, plans["sweep over y"].inner) == ((1,), (0,))
    crossed = plans["sweep that is crossed"]
    assert (crossed.threads, crossed.inner) == ((1,), (0, 2))
    assert plans["sweep over two axes"].up == (True, False, True)
    assert [plans[n].runs for n in ("heat", "red", "sweep over x, downwards")] == ["none", "lanes", "line"]


@pytest.mark.parametrize("shape", [(1, 1, 1), (512, 512, 512), (3, 1000000, 70), (70000, 5, 9), (1, 1, 10**9)])
@pytest.mark.parametrize("name", ["heat", "sweep over two axes", "reductions of i4 over 3 axes"])
def test_launches_are_within_the_limits(name, shape):
    found = launch(SUITE[name].graph, (0, 0, 0), shape)
    assert found.block[0] % 32 == 0
    assert np.prod(found.block) <= BLOCK
    assert all(1 <= count <= most for count, most in zip(found.grid, (2**31 - 1, 65535, 65535), strict=True))
    if name != "heat":
        assert np.prod(found.grid) <= 4096 or not SUITE[name].graph.reductions


def test_locals_lie_in_shared_memory():
    graph = tti_case().graph
    tile = tile_of(graph)
    assert tile
    assert [room.number for room in tile.rooms] == [0, 1, 2, 3]
    assert tile.words * 8 <= MOST_BYTES
    assert f"shared[{8 * tile.words}]" in print_ptx(graph, schedule="tile")
    for room in tile.rooms:
        assert room.shape == tuple(n + b - a for n, a, b in zip(tile.shape, room.low, room.high, strict=True))
    first, second = tile.rooms[:2]
    assert (first.low, first.high) == ((-4, 0, 0), (4, 0, 0))
    assert second.start >= first.start + first.bytes


def test_locals_that_are_too_wide_are_written_out():
    def wide(u, new):
        near = local(u[0, 0] + u[0, 1])
        new[0, 0] = near[-90, 0] + near[90, 0]

    graph = graph_of(wide, "f8", "f8", ndim=2)
    assert tile_of(graph) is None
    assert gpu_graph(graph).locals == ()


def test_lexicographic_kernels_are_refused():
    def relax(u):
        u[0, 0] = 0.5 * (u[-1, 0] + u[0, -1])

    with pytest.raises(KernelError, match="CPUs only") as error:
        print_ptx(graph_of(relax, "f8", ndim=2, order="lexicographic"))
    assert "test_ptx.py" in str(error.value)


def test_sums_across_the_order_of_a_sweep_are_refused():
    def sweep(u):
        u[0, 0] = u[0, 0] + u[1, -1]
        return mg.sum(u[0, 0])

    graph = graph_of(sweep, "f8", ndim=2, order={"x": 1})
    with pytest.raises(KernelError, match="sums floats"):
        print_ptx(graph)
    assert "entry" in print_ptx(graph, reductions=False)


@pytest.mark.parametrize("arch", ["sm_70", "gfx90a", "80"])
def test_other_architectures_are_refused(arch):
    with pytest.raises(KernelError, match="GPU architecture"):
        print_ptx(SUITE["heat"].graph, arch)


def test_the_entry_is_the_promised_one():
    ptx = ptx_of("heat")
    assert re.search(r"\.visible \.entry kernel\(\s*\.param \.u64 [^,]*,\s*\.param \.u64 [^,]*\)", ptx)
    assert ".target sm_80" in ptx
    assert f".maxntid {BLOCK}" in ptx


# The machine ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("op", "word", "result"),
    [("cvt.rzi.s32.f64", np.float64(-1.9).view("u8"), 2**32 - 1),
     ("cvt.rzi.u16.f32", np.float32(7e4).view("u4"), 65535),
     ("cvt.s64.s32", np.uint64(2**32 - 2), 2**64 - 2), ("cvt.u64.u32", np.uint64(2**33 + 5), 5),
     ("cvt.rni.f64.f64", np.float64(2.5).view("u8"), int(np.float64(2.0).view("u8"))),
     ("cvt.rn.f32.u64", np.uint64(2**24 + 1), int(np.float32(2**24).view("u4"))),
     ("cvt.s16.s8", np.uint64(0x80), 0xFF80)],
)  # fmt: skip
def test_the_machine_converts_as_ptx_says(op, word, result):
    assert convert(tuple(op.split(".")), np.array([word], np.uint64)).tolist() == [result]


def test_the_machine_takes_code_apart():
    code = Code.parse(ptx_of("reductions of f8 over 2 axes"))
    assert {"shfl", "bar", "atom", "ret"} <= {item.op[0] for item in code.instructions}
    assert all(re.match(r"\$L__BB0_\d+$", label) for label in code.labels)
    assert set(code.shared) == {"shared"}
