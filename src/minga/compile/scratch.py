"""Memory of a kernel's locals while a tile is computed: rings of planes in the worker's scratch memory.

A kernel with locals marches through its tile along axis 0. Before plane i of the tile is computed, each local is
computed for plane i + lead, as far ahead as it is read, and kept for as many planes as it is still read afterwards.
Thus nothing is computed twice along axis 0; along the other axes, a local covers the tile and the margin in which it is
read. Kernels of one axis have no planes: their locals are computed for the whole tile first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, cast

from minga.compile.abi import SCRATCH
from minga.compile.frame import Frame
from minga.lang.expr import Node
from minga.lang.graph import topological
from minga.lang.types import DType, itemsize

LINE: Final = 64
"""Bytes of a cache line. Rows consist of an odd number of lines, so that rows of a plane do not compete for cache
sets."""
_BEFORE: Final = 1 << 40
"""Number of planes before all of a grid. The place of a plane in a ring does not depend on the tile, so that a march
can continue another."""


@dataclass(frozen=True, slots=True)
class Ring:
    """The memory of one local.

    low, high  the local is needed on tile.lo + low .. tile.hi + high, along each axis
    lead       number of planes (axis 0) that it is computed ahead of the tile's plane
    depth      number of planes that are kept
    row        True if only one row of a plane is kept
    """

    number: int
    dtype: DType
    low: tuple[int, ...]
    high: tuple[int, ...]
    lead: int
    depth: int
    row: bool = False

    @property
    def front(self) -> int:
        """Bytes before the first value of a row, which make the tile's own first cell begin a cache line."""
        return self.low[-1] * itemsize(self.dtype) % LINE

    def row_bytes(self, length: int) -> int:
        """Return the bytes from row to row for a tile with `length` cells along the innermost axis."""
        size = self.front + (length + self.high[-1] - self.low[-1]) * itemsize(self.dtype)
        return (-(-size // LINE) * LINE) | LINE

    def bytes(self, tile_shape: Sequence[int]) -> int:
        """Return the bytes of scratch that this local takes for tiles of this shape."""
        shape = [n + b - a for n, a, b in zip(tile_shape, self.low, self.high, strict=True)]
        return self.depth * (1 if self.row else prod(shape[1:-1])) * self.row_bytes(tile_shape[-1])


def rings(ndim: int, definitions: Sequence[Node], roots: Sequence[Node]) -> tuple[Ring, ...]:
    """Return the rings of all locals that `roots` need, in the order in which they must be computed."""
    reads: dict[int, list[tuple[int | None, tuple[int, ...]]]] = {}
    _collect(reads, None, roots)
    found: dict[int, Ring] = {}
    for number in reversed(range(len(definitions))):
        if number not in reads:
            continue
        low, high, back = [], [], []
        for reader, offsets in reads[number]:
            user = None if reader is None else found[reader]
            low.append(offsets if user is None else tuple(a + o for a, o in zip(user.low, offsets, strict=True)))
            high.append(offsets if user is None else tuple(a + o for a, o in zip(user.high, offsets, strict=True)))
            back.append(offsets[0] + (0 if user is None else user.lead))
        lows, highs = tuple(map(min, zip(*low, strict=True))), tuple(map(max, zip(*high, strict=True)))
        depth = 1 if ndim == 1 else highs[0] - min(back) + 1
        found[number] = Ring(number, definitions[number].dtype, lows, highs, highs[0], depth)
        _collect(reads, number, [definitions[number]])
    return tuple(found[number] for number in sorted(found))


def _collect(
    reads: dict[int, list[tuple[int | None, tuple[int, ...]]]], reader: int | None, roots: Sequence[Node]
) -> None:
    for node in topological(roots):
        if node.op == "local":
            number, offsets = cast(tuple[int, tuple[int, ...]], node.data)
            reads.setdefault(number, []).append((reader, offsets))


class Scratch:
    """The rings of one kernel as printed code. `offset` is the number of bytes of scratch before them."""

    def __init__(self, frame: Frame, places: Sequence[Ring], offset: int) -> None:
        self.frame = frame
        self._rings = {ring.number: ring for ring in places}
        self._origin: dict[int, list[str]] = {}
        self._strides: dict[int, list[str]] = {}
        self._base: dict[int, str] = {}
        if places:
            free = frame.element(frame.text.load_pointer("%worker", SCRATCH), "u1", str(offset))
            for ring in places:
                free = self._allot(ring, free)

    def _allot(self, ring: Ring, base: str) -> str:
        """Give `ring` the memory from `base` on; return the address of its end."""
        text, shape, ndim = self.frame.text, self.frame.tile_shape, self.frame.ndim
        spans = [b - a for a, b in zip(ring.low, ring.high, strict=True)]
        row = text.mul(text.add(shape[-1], spans[-1]), itemsize(ring.dtype))
        row = text.let(f"and i64 {text.add(row, ring.front + LINE - 1)}, {-LINE}")
        row = text.let(f"or i64 {row}, {LINE}")
        strides = [row]
        for axis in range(ndim - 2, 0, -1):
            strides.insert(0, strides[0] if ring.row else text.mul(strides[0], text.add(shape[axis], spans[axis])))
        self._base[ring.number] = self.frame.element(base, "u1", str(ring.front))
        self._strides[ring.number] = strides
        self._origin[ring.number] = [text.add(a, o) for a, o in zip(self.frame.begin, ring.low, strict=True)]
        return self.frame.element(base, "u1", text.mul(strides[0], ring.depth))

    def row(self, number: int, place: Sequence[str]) -> str:
        """Return the address of a local's value with innermost index 0, in the row at `place` on the other axes."""
        text, ring, origin = self.frame.text, self._rings[number], self._origin[number]
        shift = text.mul(origin[-1], itemsize(ring.dtype))
        index = text.let(f"sub nsw i64 0, {shift}")
        for axis, (here, stride) in enumerate(zip(place, self._strides[number], strict=False)):
            if axis and ring.row:
                continue
            if axis == 0:
                steps = text.let(f"urem i64 {text.add(here, _BEFORE)}, {ring.depth}") if ring.depth > 1 else "0"
            else:
                steps = text.sub(here, origin[axis])
            index = text.add(index, text.mul(steps, stride))
        return self.frame.element(self._base[number], "u1", index)
