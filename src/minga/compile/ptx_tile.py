"""Locals on a GPU: a block computes them in shared memory for its tile and a margin, and then the tile's cells.

Thus a local is computed once per cell, and again in the margins; otherwise each cell would compute it for every offset
at which it is read. The choice of locals and tile depends only on the graph.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Final, cast

from minga.compile.ir import Body
from minga.compile.ptx_frame import Cell, Frame, Offsets, barrier, in_turn
from minga.compile.ptx_locals import inline_locals, read_at_offsets
from minga.compile.scratch import Ring, rings
from minga.lang.expr import Node
from minga.lang.graph import KernelGraph, topological
from minga.lang.types import is_float, itemsize

MOST_BYTES: Final = 40 << 10
"""Maximum bytes of shared memory of a tile: four or more blocks fit on a multiprocessor of compute capability 8.0 or
9.0."""
_LOAD: Final = 8
"""Number of operations that take as long as bringing one element close to the block."""
_CELLS: Final = (256, 2048)
_ROWS: Final = (32, 64, 128, 256)
_OTHER: Final = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Room:
    """A local's place in shared memory, from byte `start` on: a row-major box of `shape` at the tile's origin + low."""

    number: int
    definition: Node
    low: Offsets
    high: Offsets
    shape: tuple[int, ...]
    start: int

    @property
    def pitch(self) -> tuple[int, ...]:
        """Number of elements from one value to the next along each axis."""
        return tuple(prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    @property
    def bytes(self) -> int:
        """Bytes of the local's values."""
        return prod(self.shape) * itemsize(self.definition.dtype)


@dataclass(frozen=True, slots=True)
class Tile:
    """The shape of the box of cells that a block processes at once, and the locals that it keeps for them."""

    shape: tuple[int, ...]
    rooms: tuple[Room, ...]
    work: float
    """Operations per cell, including margins and loads."""

    @property
    def words(self) -> int:
        """64-bit words of shared memory."""
        return (self.rooms[-1].start + self.rooms[-1].bytes + 7) // 8


def with_shared_locals(graph: KernelGraph) -> KernelGraph:
    """Keep only the locals that are read at offsets; inlining the others costs nothing."""
    return inline_locals(graph, read_at_offsets(graph))


def tile_of(graph: KernelGraph) -> Tile | None:
    """Return the tile with the least work; None for kernels without locals, with too large ones, or with float sums."""
    summed = any(item.kind == "sum" and is_float(item.value.dtype) for item in graph.reductions)
    if graph.order is not None or graph.ndim > 3 or summed or not read_at_offsets(graph):
        return None
    graph = with_shared_locals(graph)
    cells = [store.value for store in graph.stores] + [item.value for item in graph.reductions]
    found = rings(graph.ndim, graph.locals, cells)
    if not found:
        return None
    shapes = itertools.product(*[_OTHER] * (graph.ndim - 1), _ROWS)
    tiles = [_tile(graph, found, cells, shape) for shape in shapes if _CELLS[0] <= prod(shape) <= _CELLS[1]]
    return min((tile for tile in tiles if tile.words * 8 <= MOST_BYTES), key=lambda tile: tile.work, default=None)


def _tile(graph: KernelGraph, found: tuple[Ring, ...], cells: list[Node], shape: tuple[int, ...]) -> Tile:
    rooms: list[Room] = []
    work, start = float(_operations(cells)), 0
    for ring in found:
        size = tuple(n + b - a for n, a, b in zip(shape, ring.low, ring.high, strict=True))
        room = Room(ring.number, graph.locals[ring.number], ring.low, ring.high, size, start)
        rooms.append(room)
        work += _operations([room.definition]) * prod(size) / prod(shape)
        start = -(-(start + room.bytes) // 8) * 8
    return Tile(shape, tuple(rooms), work + _LOAD * _loaded(graph, rooms, cells, shape) / prod(shape))


def _loaded(graph: KernelGraph, rooms: Sequence[Room], cells: list[Node], shape: tuple[int, ...]) -> int:
    """Return the number of elements of fields that a tile reads."""
    own = (0,) * graph.ndim
    users = [(cells, own, own), *(([room.definition], room.low, room.high) for room in rooms)]
    first: dict[int, tuple[int, ...]] = {}
    last: dict[int, tuple[int, ...]] = {}
    for roots, low, high in users:
        for node in topological(roots):
            if node.op == "read":
                param, strides, offsets = cast(tuple[int, Offsets, Offsets], node.data)
                axes = graph.params[param].axes
                begin = tuple(s * low[a] + o for a, s, o in zip(axes, strides, offsets, strict=True))
                end = tuple(s * (shape[a] - 1 + high[a]) + o for a, s, o in zip(axes, strides, offsets, strict=True))
                first[param] = tuple(map(min, begin, first.get(param, begin)))
                last[param] = tuple(map(max, end, last.get(param, end)))
    return sum(prod(b - a + 1 for a, b in zip(first[param], last[param], strict=True)) for param in first)


def _operations(roots: list[Node]) -> int:
    return sum(1 for _ in topological(roots))


Bases = dict[int, tuple[Room, str]]
"""Room of each local, by number, and its address."""


class TileCell(Cell):
    """A cell whose locals lie in shared memory; `inside` is its place relative to the tile's first cell."""

    def __init__(self, frame: Frame, index: dict[int, str], inside: list[str], bases: Bases) -> None:
        super().__init__(frame, index)
        self._inside = inside
        self._bases = bases
        self._rooms: dict[int, str] = {}

    def leaf(self, node: Node) -> str:
        """Return the value of a leaf; locals are read from shared memory."""
        if node.op != "local":
            return super().leaf(node)
        number, offsets = cast(tuple[int, Offsets], node.data)
        room, base = self._bases[number]
        if number not in self._rooms:
            steps = [self.text.mul(i, p) for i, p in zip(self._inside, room.pitch, strict=True)]
            self._rooms[number] = self.frame.element(base, node.dtype, reduce(self.text.add, steps))
        distance = sum((o - a) * p for o, a, p in zip(offsets, room.low, room.pitch, strict=True))
        return self.frame.load(self.frame.element(self._rooms[number], node.dtype, str(distance)), node.dtype)


class Tiles:
    """Printer of a block's tiles: locals in order, then cells. `start` is the first byte of the locals."""

    def __init__(self, frame: Frame, tile: Tile, start: int, compute: Callable[[TileCell], object]) -> None:
        self.frame = frame
        self.text = frame.text
        self.tile = tile
        self._compute = compute
        shared = self.text.let("addrspacecast ptr addrspace(3) @shared to ptr", "p")
        self._bases = {room.number: (room, frame.element(shared, "u1", str(start + room.start))) for room in tile.rooms}

    def print(self) -> None:
        """Print the loop over the block's tiles."""
        with self._origins(2, {}) as origin:
            for room in self.tile.rooms:
                self._fill(room, origin)
                barrier(self.text)
            hi = self.frame.hi
            with self._cells((0,) * len(self.tile.shape), self.tile.shape, origin, hi) as (_, cell):
                self._compute(cell)
            barrier(self.text)

    @contextmanager
    def _origins(self, d: int, origin: dict[int, str]) -> Iterator[dict[int, str]]:
        """Loop over the block's tiles and yield the first cell of each; directions d .. 0 of the launch remain."""
        if d < 0:
            yield origin
            return
        text, frame, axis = self.text, self.frame, len(self.tile.shape) - 1 - d
        if axis < 0:
            with text.when(text.let(f"icmp eq i64 {frame.block[d]}, 0")), self._origins(d - 1, origin) as found:
                yield found
            return
        length = self.tile.shape[axis]
        start = text.add(frame.lo[axis], text.mul(frame.block[d], length))
        step = text.mul(frame.blocks[d], length)
        with in_turn(text, start, frame.hi[axis], step) as here, self._origins(d - 1, {**origin, axis: here}) as found:
            yield found

    def _fill(self, room: Room, origin: dict[int, str]) -> None:
        """Compute a local at the cells where it is needed by those cells of the tile that lie in the box."""
        stop = [self.text.add(hi, high) for hi, high in zip(self.frame.hi, room.high, strict=True)]
        with self._cells(room.low, room.shape, origin, stop) as (number, cell):
            definition = self.frame.graph.locals[room.number]  # in the graph that is printed
            value, dtype = Body(self.text, cell.leaf)(definition), definition.dtype
            self.frame.store(value, self.frame.element(self._bases[room.number][1], dtype, number), dtype)

    @contextmanager
    def _cells(
        self, low: Offsets, shape: tuple[int, ...], origin: dict[int, str], stop: list[str]
    ) -> Iterator[tuple[str, TileCell]]:
        """Distribute the cells of a box at origin + low to the block's threads; yield those before `stop`, numbered."""
        text = self.text
        thread, threads = (text.let(f"trunc i64 {count} to i32") for count in (self.frame.thread, self.frame.threads))
        with in_turn(text, thread, str(prod(shape)), threads, "i32") as number:
            rest, inside = number, list[str]()
            for length, first in zip(reversed(shape), reversed(low), strict=True):
                place = text.let(f"urem i32 {rest}, {length}")
                rest = text.let(f"udiv i32 {rest}, {length}")
                inside.insert(0, text.add(text.let(f"zext i32 {place} to i64"), first))
            index = {axis: text.add(origin[axis], place) for axis, place in enumerate(inside)}
            tests = [text.let(f"icmp slt i64 {index[axis]}, {limit}") for axis, limit in enumerate(stop)]
            with text.when(reduce(lambda a, b: text.let(f"and i1 {a}, {b}"), tests)):
                yield text.let(f"zext i32 {number} to i64"), TileCell(self.frame, index, inside, self._bases)
