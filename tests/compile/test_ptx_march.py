"""Marches: the oracle's bits from plane to plane, with registers and shared memory as planned."""

from __future__ import annotations

import functools
import operator
import random
import re
from dataclasses import replace

import pytest

from gpu_kernels import MARGIN, Case, bind, case, check, graph_of, tti_case
from minga.compile.ptx import launch, print_ptx, print_ptx_ir
from minga.compile.ptx_choose import choose, straight_work, tile_work
from minga.compile.ptx_march import MOST_BYTES, MOST_QUEUED, March
from minga.compile.ptx_tile import Tile
from minga.errors import KernelError
from minga.lang import functions as mg
from minga.lang.cell import local
from minga.lang.expr import cast
from minga.lang.graph import Reduction
from minga.lang.iterate import iterate
from minga.lang.kernel import Kernel, Signature, infer_signature
from ptx_assembler import assemble, registers
from ptx_machine import Memory, run
from thinned import thinned

WIDE = (-1 / 560, 8 / 315, -1 / 5, 8 / 5)


def laplacian(u, k, new):
    """A wide star without locals, and a field that is read once."""
    far = sum(
        w * sum(u[tuple(s * d if a == axis else 0 for a in range(3))] for axis in range(3) for s in (-1, 1))
        for w, d in zip(WIDE, (4, 3, 2, 1), strict=True)
    )
    new[0, 0, 0] = k[0, 0, 0] * (far - 205 / 24 * u[0, 0, 0])


def fluxes(u, n, new):
    """Locals that read other fields in their margins: the divergence of a flux along an axis that varies."""

    def first(f, axis):
        return sum(
            s * w * f[tuple(s * d if a == axis else 0 for a in range(3))]
            for d, w in ((1, 0.7), (2, 0.1))
            for s in (1, -1)
        )

    slope = sum(n[axis][0, 0, 0] * first(u, axis) for axis in range(3))
    flux = [local(n[axis][0, 0, 0] * slope) for axis in range(3)]
    new[0, 0, 0] = sum(first(flux[axis], axis) for axis in range(3))


def chain(u, v, row, flag, new, more):
    """Locals of locals, ahead by different numbers of planes; reductions, masks, rows, places."""
    g = local(u[1, 0, 0] - u[-2, 0, 1])
    h = local(g[0, 1, 0] * g[1, 0, -1] + row[1])
    few = local(mg.where(flag[0, 0, 0] & flag[0, 0, 1], h[0, 0, 0], v[-1, 0, 0]))
    new[0, 0, 0] = few[1, 0, 0] + few[0, -1, 0] - h[-1, 0, 0] + mg.index(2) * mg.index(0)
    more[0, 0, 0] = cast(g[0, 0, 0], "i8") + mg.index(1)
    return {"largest": mg.max(few[0, 0, 1]), "where": mg.argmin(h[0, 0, 0]), "many": mg.count(flag[1, 0, 0])}


def behind(u, v, new):
    """Nothing is read ahead: one field two planes behind, another far behind."""
    new[0, 0, 0] = u[-2, 0, 0] + u[-2, 0, 1] * v[-5, -1, 0] - v[-3, 0, 0]


def column(u, new):
    """Nothing is read across the march."""
    new[0, 0] = u[-3, 0] + 2 * u[0, 0] - u[2, 0]


def repeated(u, new):
    """Loops inside cells, in a local and in what is stored, while the threads of a block meet at every plane."""
    halved = local(iterate(abs(u[0, 1]), lambda x: x > 2.0, lambda x: x * 0.25, 6).state)
    new[0, 0] = iterate(halved[1, 0] + u[-1, 0], lambda x: x > halved[0, -1], lambda x: x - 0.5, 4).state


def lines(u, k, new):
    """Two axes: a local that is read in its margins."""
    slope = local(u[0, 1] - u[0, -1])
    flux = local(k[0, 0] * slope[1, 0] * mg.min(1.0, abs(slope[-1, 2])))
    new[0, 0] = u[1, 0] + flux[1, 1] - flux[0, -1] + slope[2, 0]


CASES = {
    item.name: item
    for item in [
        case("laplacian f4", laplacian, "f4", "f4", "f4", ndim=3),
        case("laplacian f8", laplacian, "f8", "f8", "f8", ndim=3),
        case("chain", chain, "i4", "i4", ("i4", (2,)), "bool", "i4", "i8", ndim=3),
        case("behind", behind, "f4", "f8", "f8", ndim=3),
        case("column", column, "f8", "f8", ndim=2),
        case("repeated", repeated, "f4", "f4", ndim=2),
        case("lines", lines, "f4", "f4", "f4", ndim=2),
        tti_case(),
    ]
}


def fluxes_case() -> Case:
    kinds = infer_signature(3, [("f4", range(3))] * 5).fields
    signature = Signature(3, (kinds[0], kinds[1:4], kinds[4]), ())
    return Case("fluxes", Kernel(fluxes).graph(signature), (2, -3, 5), (5, 3, 40), (0, 5, -2))


CASES["fluxes"] = fluxes_case()
every_march = pytest.mark.parametrize("name", CASES)


@functools.cache
def ptx_of(name: str) -> str:
    return print_ptx(CASES[name].graph, schedule="march")


def run_march(item: Case, ptx: str, grid: tuple[int, int, int], order: str = "together") -> None:
    memory, arrays = Memory(1 << 23), item.arrays()
    bound = bind(item, arrays, item.graph, memory.put)
    run(ptx, memory, [bound.args, bound.worker], grid, (32, 8, 1), order=order)
    check(item, bound, arrays, memory.get)


# Right ---------------------------------------------------------------------------------------------------------------
@pytest.mark.few(2)
@every_march
def test_a_march_has_the_oracles_bits(name):
    item = CASES[name]
    assert isinstance(choose(item.graph, "march"), March)
    run_march(item, ptx_of(name), launch(item.graph, item.lo, item.hi, schedule="march").grid)


BOXES = {3: [((0, 0, 0), (1, 1, 1)), ((-2, 5, 1), (3, 14, 34))], 2: [((5, -300), (6, -299)), ((0, 0), (17, 530))]}


@pytest.mark.few(2)
@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("name", ["laplacian f4", "chain", "behind", "lines"])
def test_boxes_of_any_size(name, number):
    """Fewer blocks than tiles, more slabs than planes, and the other way round."""
    item = CASES[name]
    lo, hi = BOXES[item.graph.ndim][number]
    run_march(replace(item, lo=lo, hi=hi), ptx_of(name), (2, 1, 2))


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["chain", "lines"])
@pytest.mark.parametrize("order", ["first", "last"])
def test_warps_wait_for_each_other(name, order):
    """With the warps of a block as far out of step as barriers let them be."""
    item = CASES[name]
    sizes = (3, 9, 20)[-item.graph.ndim :]
    hi = tuple(min(b, a + n) for a, b, n in zip(item.lo, item.hi, sizes, strict=True))
    run_march(replace(item, hi=hi), ptx_of(name), (1, 1, 1), order)


@pytest.mark.few(2)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_empty_box_changes_nothing(axis):
    item = CASES["chain"]
    hi = tuple(item.lo[k] if k == axis else h for k, h in enumerate(item.hi))
    run_march(replace(item, hi=hi), ptx_of("chain"), (2, 1, 1))


OPERATIONS = (operator.add, operator.sub, operator.mul)


def random_case(seed: int) -> Case:
    """A kernel of any shape: fields of several types, locals of fields and locals, read at random offsets."""
    numbers = random.Random(seed)
    ndim = numbers.choice((2, 3, 3))

    def reads(things: int, reach: int) -> list[tuple[int, tuple[int, ...], int]]:
        """Which thing is read, at what offsets, and how it joins what was read before."""
        places = [[numbers.choice((0, 0, numbers.randint(-reach, reach))) for _ in range(ndim)] for _ in range(5)]
        return [(numbers.randrange(things), tuple(place), numbers.randrange(3)) for place in places]

    locals_ = [reads(3 + n, 2) for n in range(numbers.randint(0, 3))]
    result = reads(3 + len(locals_), 3)

    def kernel(a, b, c, new):
        things = [a, b, c]

        def value(recipe):
            first, *others = [(things[n][place], OPERATIONS[op]) for n, place, op in recipe]
            return functools.reduce(lambda x, other: other[1](x, other[0]), others, first[0])

        for recipe in locals_:
            things.append(local(value(recipe)))
        new[(0,) * ndim] = cast(value(result), "f8")

    dtypes = [numbers.choice(("f4", "f8", "i4", "i8")) for _ in range(3)]
    graph = graph_of(kernel, *dtypes, "f8", ndim=ndim)
    lo = tuple(numbers.randint(-9, 9) for _ in range(ndim))
    sizes = (numbers.randint(1, 12), *(numbers.randint(1, 18) for _ in range(ndim - 2)), numbers.randint(1, 70))
    return Case(f"random {seed}", graph, lo, tuple(a + n for a, n in zip(lo, sizes, strict=True)), (0,) * ndim)


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", [0, 2, 31, 43, 63, 110])
def test_random_kernels(seed):
    item = random_case(seed)
    march = choose(item.graph, "march")
    assert isinstance(march, March)
    assert max(abs(o) for stream in march.streams for o in (*stream.low, *stream.high)) <= MARGIN[item.graph.ndim]
    run_march(item, print_ptx(item.graph, schedule="march"), (1, 1, 2))


# Planned -------------------------------------------------------------------------------------------------------------
def planned(graph) -> March:
    march = choose(graph, "march")
    assert isinstance(march, March)
    return march


def test_what_the_seismic_kernel_keeps():
    """Columns of p and q and of their derivatives in registers; in shared memory what is read across."""
    march = planned(CASES["tti"].graph)
    kept = {stream.source: (stream.queue, stream.ring, stream.lead) for stream in march.streams}
    fields = dict.fromkeys([("field", 0), ("field", 1)], (9, 5, 4))
    by_x, by_y = (9, 0, 4), (9, 5, 4)
    assert kept == {**fields, ("local", 0): by_x, ("local", 1): by_y, ("local", 2): by_x, ("local", 3): by_y}
    assert (march.span, march.stages, march.registers) == (8, 2, 6 * 9 + 2 * 3)
    assert march.bytes <= MOST_BYTES
    assert f"shared[{march.bytes}]" in ptx_of("tti")


def test_a_star_has_one_plane_in_shared_memory():
    """What is read across its middle waits in the queue of the column until then."""
    (u,) = planned(CASES["laplacian f4"].graph).streams
    assert (u.queue, u.lead, u.newest, u.ring, u.slots) == (9, 4, 0, 1, 2)
    assert (u.span, u.ring_span) == (8, 0)


def test_a_plane_that_arrives_replaces_none_that_is_read():
    """Fields arrive before the threads meet, and have a slot more than planes are read; locals come after."""
    for stream in planned(CASES["chain"].graph).streams:
        assert stream.slots == stream.ring + (1 if stream.ring and stream.is_field else 0)


def test_columns_without_room_in_registers_lie_in_shared_memory():
    def many(fields, new):
        new[0, 0, 0] = sum(u[d, 0, 0] for u in fields for d in range(-4, 5))

    kinds = infer_signature(3, [("f8", range(3))] * 5).fields
    march = planned(Kernel(many).graph(Signature(3, (kinds[:4], kinds[4]), ())))
    assert march.registers <= MOST_QUEUED
    assert min(stream.queue for stream in march.streams) == 0
    assert all(stream.ring >= 9 for stream in march.streams if not stream.queue)


def test_kernels_get_the_schedule_with_the_least_work():
    def seven(u, new):
        new[0, 0, 0] = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]

    def limited(u, k, new):
        slope = local(u[0, 1] - u[0, -1])
        flux = local(k[0, 0] * slope[0, 0] * mg.min(1.0, abs(slope[0, 1])))
        new[0, 0] = u[0, 0] + flux[0, 1] - flux[0, -1]

    def diffused(u, new):
        curved = local(sum(u[a, b] for a in range(-2, 3) for b in range(-2, 3)) - 25.0 * u[0, 0])
        new[0, 0] = sum(curved[a, b] for a in range(-2, 3) for b in range(-2, 3))

    assert isinstance(choose(CASES["tti"].graph), March)
    assert isinstance(choose(CASES["laplacian f4"].graph), March)
    assert choose(graph_of(seven, "f4", "f4", ndim=3)) is None
    assert choose(graph_of(limited, "f4", "f4", "f4", ndim=2)) is None
    assert isinstance(choose(graph_of(limited, "f4", "f4", "f4", ndim=2), "tile"), Tile)
    nested = graph_of(diffused, "f8", "f8", ndim=2)
    assert isinstance(choose(nested), Tile | March)
    assert straight_work(nested) > 2 * tile_work(choose(nested, "tile"))


def test_a_kernel_that_cannot_march_has_tiles_or_neither():
    def summed(u, new):
        slope = local(u[0, 1] - u[0, -1])
        new[0, 0] = slope[1, 0] - slope[-1, 0]
        return mg.sum(slope[0, 0])

    def swept(u, v):
        u[0, 0] = v[0, 0] - 0.5 * u[-1, 0]

    def one_axis(u, new):
        slope = local(u[1] - u[-1])
        new[0] = slope[1] - slope[-1]

    assert choose(graph_of(swept, "f8", "f8", ndim=2, order={"y": 1}), "march") is None
    assert isinstance(choose(graph_of(one_axis, "f8", "f8", ndim=1), "march"), Tile)
    graph = graph_of(summed, "f8", "f8", ndim=2)
    assert choose(graph, "march") is None
    assert isinstance(choose(replace(graph, reductions=()), "march"), March)


def test_an_unknown_schedule_is_refused():
    with pytest.raises(KernelError, match="fastest") as error:
        print_ptx(CASES["tti"].graph, schedule="fastest")
    assert "march" in str(error.value)


def test_slabs_keep_a_gpu_busy_and_are_long():
    graph = CASES["tti"].graph
    large = launch(graph, (0, 0, 0), (504, 504, 504), schedule="march")
    assert large.grid[:2] == (16, 63)
    assert large.grid[0] * large.grid[1] * large.grid[2] >= 2 * 2 * 132
    assert 504 // large.grid[2] >= 4 * planned(graph).span
    assert launch(graph, (0, 0, 0), (16, 504, 504), schedule="march").grid == (16, 63, 1)
    assert launch(graph, (0, 0, 0), (504, 8, 32), schedule="march").grid[2] > 8
    assert launch(graph, (0, 0, 0), (1, 1, 1), schedule="march").grid == (1, 1, 1)


def test_many_reductions_are_given_room():
    graph = CASES["tti"].graph
    value = graph.stores[0].value
    many = tuple(Reduction(f"r{number}", "argmax", value, value.dtype) for number in range(44))
    kinds = []
    for count in (8, 44):
        graph = replace(graph, reductions=many[:count])
        kinds.append(type(choose(graph, "march")))
        (words,) = re.findall(r"@shared = .* \[(\d+) x i64\]", print_ptx_ir(graph, "march"))
        assert 8 * int(words) <= 48 << 10
    assert kinds == [March, Tile]


# Assembled -----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("arch", thinned(("sm_80", "sm_90"), "sm_90"))
def test_marches_need_no_more_registers_than_there_are(arch, tmp_path):
    """Two blocks on a multiprocessor, and no register kept in memory."""
    reports = assemble({name: print_ptx(CASES[name].graph, arch, "march") for name in CASES}, arch, tmp_path, 3)
    assert all(registers(report) <= 128 for report in reports.values())
