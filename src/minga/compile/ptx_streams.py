"""Data that a march keeps between its steps, in queues of registers and rings of planes, and cells that use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import pairwise
from math import prod
from types import MappingProxyType
from typing import cast

from minga.compile.operations import REGISTER
from minga.compile.ptx_frame import Cell, Frame, Offsets, variable
from minga.compile.ptx_march import March, Pointer, Reach, Source, Stream, spans
from minga.compile.ptx_window import Spot, Window
from minga.lang.expr import Node
from minga.lang.types import itemsize


def zero(kind: str) -> str:
    """Return the zero of an LLVM type."""
    return {"i1": "false", "float": "0.0", "double": "0.0"}.get(kind, "0")


class StreamState:
    """The data of the streams at one step of the march: registers of queues, and addresses in rings.

    `shared` is the address of the march's shared memory.
    """

    def __init__(self, frame: Frame, march: March, shared: str) -> None:
        self.text = frame.text
        self.frame = frame
        self.march = march
        self.streams = {stream.source: stream for stream in march.streams}
        self._shared = shared
        self._queues = {stream.source: [self._zero(stream) for _ in range(stream.queue)] for stream in march.streams}
        self._turns = {slots: variable(self.text, "i32", "0") for slots in {s.slots for s in march.streams} - {0}}
        self._planes: dict[tuple[int, int], str] = {}
        self._addresses: dict[tuple[Source, int, Spot], str] = {}
        self._offsets: dict[tuple[Spot, Offsets, tuple[int, ...], int], str] = {}

    def _zero(self, stream: Stream) -> str:
        kind = REGISTER[stream.dtype]
        return variable(self.text, kind, zero(kind))

    @contextmanager
    def branch(self, condition: str) -> Iterator[None]:
        """Run the enclosed code only if a condition holds; addresses computed there are forgotten afterwards."""
        planes, addresses = dict(self._planes), dict(self._addresses)
        with self.text.when(condition):
            yield
        self._planes, self._addresses = planes, addresses

    # Queues --------------------------------------------------------------------------------------------------------
    def push(self, stream: Stream, value: str) -> None:
        """Append a new plane's value of the thread's own column to the queue."""
        kind, queue = REGISTER[stream.dtype], self._queues[stream.source]
        for older, newer in pairwise(queue):
            self.text.emit(f"store {kind} {self.text.let(f'load {kind}, ptr {newer}')}, ptr {older}")
        if queue:
            self.text.emit(f"store {kind} {value}, ptr {queue[-1]}")

    def queued(self, stream: Stream, plane: int) -> str | None:
        """Return the value of the thread's own column in a plane, or None if it is not in the queue."""
        place = stream.queue - 1 - (stream.lead - plane)
        if not 0 <= place < stream.queue:
            return None
        return self.text.let(f"load {REGISTER[stream.dtype]}, ptr {self._queues[stream.source][place]}", "q")

    # Rings ---------------------------------------------------------------------------------------------------------
    def prepare(self, spots: Sequence[Spot]) -> None:
        """Compute the positions of spots in a plane; call this before the march, whose steps all use them."""
        for stream in self.march.streams:
            for spot in spots if stream.ring else ():
                self._within(stream, spot)

    def address(self, stream: Stream, plane: int, spot: Spot, offset: Offsets) -> str:
        """Return the address of the element at `spot` + `offset` of a plane."""
        key = (stream.source, plane, spot)
        if key not in self._addresses:
            start = self.text.let(f"add i32 {self._within(stream, spot)}, {self._plane(stream, plane)}")
            start = self.text.let(f"sext i32 {start} to i64")
            base = self.frame.element(self._shared, "u1", str(stream.start))
            self._addresses[key] = self.frame.element(base, "u1", start)
        distance = sum(o * p for o, p in zip(offset, self._pitch(stream), strict=True))
        return self.frame.element(self._addresses[key], stream.dtype, str(distance))

    def advance(self) -> None:
        """Advance to the next step, in which the oldest plane's slot is filled."""
        for slots, turn in self._turns.items():
            following = self.text.let(f"add i32 {self.text.let(f'load i32, ptr {turn}')}, 1")
            over = self.text.let(f"icmp eq i32 {following}, {slots}")
            self.text.emit(f"store i32 {self.text.let(f'select i1 {over}, i32 0, i32 {following}')}, ptr {turn}")

    def _pitch(self, stream: Stream) -> tuple[int, ...]:
        shape = stream.shape(self.march.tile)
        return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))

    def _within(self, stream: Stream, spot: Spot) -> str:
        """Return the bytes from a plane's first element to a spot."""
        size, low, pitch = itemsize(stream.dtype), stream.around[0], self._pitch(stream)
        key = (spot, low, pitch, size)
        if key not in self._offsets:
            places = [self.text.let(f"add i32 {i}, {-a}") for i, a in zip(spot.inside, low, strict=True)]
            terms = [self.text.let(f"mul i32 {i}, {p * size}") for i, p in zip(places, pitch, strict=True)]
            self._offsets[key] = reduce(lambda a, b: self.text.let(f"add i32 {a}, {b}"), terms)
        return self._offsets[key]

    def _plane(self, stream: Stream, plane: int) -> str:
        """Return the bytes from the ring's start to a plane."""
        behind, size = (plane - stream.newest) % stream.slots, prod(stream.shape(self.march.tile))
        key = (stream.slots, behind)
        if key not in self._planes:
            turn = self.text.let(f"load i32, ptr {self._turns[stream.slots]}")
            if behind:
                later = self.text.let(f"add i32 {turn}, {behind}")
                back = self.text.let(f"sub i32 {later}, {stream.slots}")
                turn = self.text.let(f"select i1 {self.text.let(f'icmp sge i32 {back}, 0')}, i32 {back}, i32 {later}")
            self._planes[key] = turn
        return self.text.let(f"mul i32 {self._planes[key]}, {size * itemsize(stream.dtype)}")


class MarchCell(Cell):
    """A cell of a plane, whose streams are kept.

    lead    number of planes that it is ahead of the plane whose cells are stored
    reach   the margin to which its position is clamped
    loaded  variables that hold values read earlier from other fields
    """

    def __init__(
        self,
        kept: StreamState,
        window: Window,
        spot: Spot,
        plane: str,
        lead: int,
        reach: Reach,
        loaded: Mapping[object, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(window.frame, {0: plane, **window.index(spot, reach)})
        self._kept = kept
        self._window = window
        self._spot = spot
        self._lead = lead
        self._reach = reach
        self._loaded = loaded

    def leaf(self, node: Node) -> str:
        """Return the value of a leaf, from a queue, a ring or a loaded variable if possible."""
        source, offsets = _source(node)
        stream = self._kept.streams.get(source) if source is not None else None
        if stream is None:
            if node.op == "read" and node.data in self._loaded:
                return self.text.let(f"load {REGISTER[node.dtype]}, ptr {self._loaded[node.data]}")
            return super().leaf(node)
        plane = self._lead + offsets[0]
        if self._spot.own and not any(offsets[1:]):
            value = self._kept.queued(stream, plane)
            if value is not None:
                return value
        address = self._kept.address(stream, plane, self._spot, offsets[1:])
        return self.frame.load(address, node.dtype)

    def address(self, param: int, strides: Offsets, offsets: Offsets) -> str:
        """Return the address of the element of a field that the cell accesses."""
        if not spans(self.frame.graph, strides):
            return super().address(param, strides, offsets)
        pointer = Pointer(param, self._lead + offsets[0], offsets[1:])
        return self._window.element(pointer, self._spot, self._reach)


def _source(node: Node) -> tuple[Source | None, Offsets]:
    """Return the stream that a leaf may read (or None) and the offsets of the read."""
    if node.op == "local":
        number, offsets = cast(tuple[int, Offsets], node.data)
        return ("local", number), offsets
    if node.op == "read":
        param, strides, offsets = cast(tuple[int, Offsets, Offsets], node.data)
        if set(strides) <= {1}:
            return ("field", param), offsets
    return None, ()
