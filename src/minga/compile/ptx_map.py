"""Assignment of cells to GPU threads: axes distributed to threads, axes looped over by each thread, and launches."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final, Literal, cast

from minga.compile.ptx_choose import Schedule, choose
from minga.compile.ptx_frame import BLOCK, WARP, Offsets
from minga.compile.ptx_march import March
from minga.compile.schedule import schedule
from minga.errors import KernelError
from minga.lang.graph import RUN, KernelGraph
from minga.lang.types import is_float

LANES: Final = 8
"""Number of partial sums of a run of 64 cells: lane j adds the cells j, j + 8, ..., j + 56."""
_MOST_BLOCKS: Final = (2**31 - 1, 65535, 65535)
_REDUCING_BLOCKS: Final = 4096
_BUSY: Final = 2112
"""Sufficient number of blocks for a march: eight times as many as 132 multiprocessors run at once, two each."""
_ROWS: Final = 8
"""Maximum number of rows of cells of a thread of a straight kernel, which share its start."""
_MANY: Final = 8 * _BUSY
"""Number of blocks from which on threads may get several rows."""
_LONG: Final = 4
"""Minimum ratio of the planes of a slab to those that are processed before its first plane is stored."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """The loops of a kernel on a GPU. Any launch is valid: threads step over the region by the launch's size.

    outer     axes that every thread loops over first; all cells are independent of each other
    threads   axes whose cells are distributed to threads, along x, y and z of the launch
    inner     axes that a thread loops over in order, outermost first
    up        for each axis, True if it is visited in ascending order
    runs      handling of the 64-cell runs of float sums along the innermost axis: "none" if there are no float sums,
              "lanes" if LANES threads share a run, "line" if one thread visits the whole line
    coloured  True if only one colour of a red-black kernel is visited
    """

    outer: tuple[int, ...]
    threads: tuple[int, ...]
    inner: tuple[int, ...]
    up: tuple[bool, ...]
    runs: Literal["none", "lanes", "line"]
    coloured: bool


@dataclass(frozen=True, slots=True)
class Launch:
    """Blocks of the grid and threads of a block along x, y and z; block[0] must be a multiple of 32."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]


def mapping(graph: KernelGraph) -> Mapping:
    """Return the distribution of a kernel over threads; raise KernelError if its order allows no parallelism."""
    schedule(graph)  # refuses invalid orders
    order, axes = graph.order, tuple(range(graph.ndim))
    if order is not None and order.kind in ("lexicographic", "boundary-first"):
        raise KernelError(
            f"{graph.name!r} has the {order.kind} order, in which each cell waits for the one before: "
            "it runs on CPUs only",
            where=graph.where,
            remedy='use order="red-black" or a sweep such as {"x": +1} on a GPU, or leave the kernel to a CPU',
        )
    directions = order.directions if order is not None and order.kind == "sweep" else (0,) * graph.ndim
    swept = [axis for axis in axes if directions[axis]]
    crossed = [axis for axis in axes if not directions[axis] and axis in _crossed(graph)] if swept else []
    free = [axis for axis in axes if axis not in swept and axis not in crossed]
    inner = (*swept, *crossed)
    return Mapping(
        outer=tuple(free[:-3]),
        threads=tuple(reversed(free[-3:])),
        inner=inner,
        up=tuple(direction >= 0 for direction in directions),
        runs=_runs(graph, inner),
        coloured=order is not None and order.kind == "red-black",
    )


def _crossed(graph: KernelGraph) -> set[int]:
    """Return the axes along which cells read neighbours of fields that the kernel updates."""
    crossed: set[int] = set()
    for node in graph.nodes():
        if node.op == "read":
            param, _, offsets = cast(tuple[int, Offsets, Offsets], node.data)
            if param in graph.written:
                crossed |= {axis for axis, offset in zip(graph.params[param].axes, offsets, strict=True) if offset}
    return crossed


def _runs(graph: KernelGraph, inner: tuple[int, ...]) -> Literal["none", "lanes", "line"]:
    if not any(item.kind == "sum" and is_float(item.value.dtype) for item in graph.reductions):
        return "none"
    last = graph.ndim - 1
    if last not in inner:
        return "lanes"
    if last != inner[-1]:
        raise KernelError(
            f"{graph.name!r} sums floats while it sweeps the innermost axis outside another one: "
            "on a GPU no thread sees a whole run of 64 cells",
            where=graph.where,
            remedy="return the sum from a separate kernel, applied after this one",
        )
    return "line"


def launch(
    graph: KernelGraph, lo: Sequence[int], hi: Sequence[int], *, reductions: bool = True, schedule: Schedule = "auto"
) -> Launch:
    """Return a launch that covers the box lo..hi once, for the `reductions` and `schedule` given to `print_ptx`."""
    graph = gpu_kernel(graph, reductions)
    plan, kept = mapping(graph), choose(graph, schedule)
    cells = [max(1, hi[axis] - lo[axis]) for axis in plan.threads] + [1] * (3 - len(plan.threads))
    if isinstance(kept, March):
        return _within_limits(graph, _slabs(kept, hi[0] - lo[0], cells), (WARP, BLOCK // WARP, 1))
    if kept is not None:
        counts = [-(-n // length) for n, length in zip(cells, (*reversed(kept.shape), 1, 1))]
        return _within_limits(graph, counts, (WARP, BLOCK // WARP, 1))
    if plan.runs == "lanes":
        cells[0] = ((cells[0] - 1) // RUN + 2) * LANES
    elif plan.coloured:
        cells[0] = (cells[0] + 1) // 2
    width = min(BLOCK, -(-cells[0] // WARP) * WARP)
    if cells[1] > 1:
        width = min(width, 2 * WARP)
    height = min(BLOCK // width, cells[1])
    counts = [-(-cells[0] // width), -(-cells[1] // height), cells[2]]
    counts[1] = -(-counts[1] // max(1, min(_ROWS, prod(counts) // _MANY)))
    return _within_limits(graph, counts, (width, height, 1))


def _slabs(march: March, planes: int, cells: Sequence[int]) -> list[int]:
    """Return the blocks along x, y and z of a march.

    There are enough slabs to keep a GPU busy, but not so many that their first planes cost too much.
    """
    counts = [-(-n // length) for n, length in zip(cells, reversed(march.tile))]
    tiles = prod(counts)
    most = max(1, planes // max(1, _LONG * march.span))
    return [*counts, *[1] * (2 - len(counts)), max(1, min(most, -(-_BUSY // tiles)))]


@functools.lru_cache(maxsize=1024)
def gpu_kernel(graph: KernelGraph, reductions: bool) -> KernelGraph:
    """Return the graph, without its reductions unless they are wanted; equal arguments give the same object."""
    return graph if reductions or not graph.reductions else replace(graph, reductions=())


def _within_limits(graph: KernelGraph, counts: Sequence[int], block: tuple[int, int, int]) -> Launch:
    grid = [min(count, most) for count, most in zip(counts, _MOST_BLOCKS, strict=True)]
    if graph.reductions:
        # Each block adds to the accumulators once, so fewer blocks with more cells each are better.
        for d in (2, 1, 0):
            others = grid[0] * grid[1] * grid[2] // grid[d]
            grid[d] = max(1, min(grid[d], _REDUCING_BLOCKS // others))
    return Launch((grid[0], grid[1], grid[2]), block)
