"""A march (compile/ptx_march.py) in LLVM IR: the work of a block's threads from plane to plane.

At each step, the plane that was loaded during the previous step is stored in rings and queues, the threads synchronise,
the loads of the next plane are issued, locals are computed stage by stage, and then the cells of the plane that is
`lead` behind. Only stores depend on conditions of the cell: indices are clamped to the readable range, so that threads
beyond the box compute values that are never used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import cast

from minga.compile.ir import Body
from minga.compile.operations import REGISTER
from minga.compile.ptx_frame import BLOCK, Cell, Frame, Offsets, barrier, in_turn, variable
from minga.compile.ptx_march import MOST_HELD, March, Pointer, Reach, Source, Stream, reads_of, results, spans, words
from minga.compile.ptx_streams import MarchCell, StreamState, zero
from minga.compile.ptx_window import Spot, Window
from minga.compile.text import Text
from minga.lang.graph import KernelGraph, topological


class Walk:
    """Printer of a march.

    `compute` prints the values of a cell, `finish` stores them (under a condition), and `start` is the number of bytes
    of shared memory before the rings.
    """

    def __init__(
        self,
        frame: Frame,
        march: March,
        start: int,
        compute: Callable[[Cell], list[str]],
        finish: Callable[[Cell, list[str]], object],
    ) -> None:
        self.frame = frame
        self.text: Text = frame.text
        self.march = march
        self.graph: KernelGraph = frame.graph
        self.axes = range(1, self.graph.ndim)
        self.shared = frame.element(
            self.text.let("addrspacecast ptr addrspace(3) @shared to ptr", "p"), "u1", str(start)
        )
        self._compute = compute
        self._finish = finish
        self._spots: dict[tuple[Reach, int], Spot] = {}

    def print(self) -> None:
        """Print the loops over the block's tiles and slabs, and the march of each."""
        thread = self.text.let(f"trunc i64 {self.frame.thread} to i32")
        own = self._own(thread)
        for stream in self.march.streams:
            for turn in range(stream.rounds(self.march.tile)):
                self._margin(stream, turn, thread)
        with self._tiles() as (frame, origin), self._slab(frame) as (first, stop):
            Steps(self, frame, own, origin, first, stop).print()
            barrier(self.text)

    # Threads and cells ---------------------------------------------------------------------------------------------
    def _own(self, thread: str) -> Spot:
        inside: list[str] = []
        for length in reversed(self.march.tile):
            inside.insert(0, self.text.let(f"urem i32 {thread}, {length}"))
            thread = self.text.let(f"udiv i32 {thread}, {length}")
        return Spot(tuple(inside), own=True)

    def spots(self, stream: Stream, own: Spot) -> list[Spot]:
        """Return the cells of a stream's plane that a thread processes, its own cell first."""
        key = stream.around
        return [own, *(self._spots[key, turn] for turn in range(stream.rounds(self.march.tile)))]

    def _margin(self, stream: Stream, turn: int, thread: str) -> None:
        """Compute a thread's cell of the margins, numbered by rows before and after the tile, then cells beside it."""
        text, (low, high) = self.text, stream.around
        if (stream.around, turn) in self._spots:
            return
        frame, tile = stream.frame(self.march.tile), self.march.tile
        number = text.let(f"add i32 {thread}, {turn * BLOCK}")
        taken = "" if frame >= (turn + 1) * BLOCK else text.let(f"icmp ult i32 {number}, {frame}")
        width, sides = tile[-1] + high[-1] - low[-1], high[-1] - low[-1]
        across = self._pair(number, width)
        if len(tile) == 1:
            inside = [self._beyond(number, -low[0], tile[0], low[0])]
        elif not sides:
            inside = [self._beyond(across[0], -low[0], tile[0], low[0]), across[1]]
        else:
            rows = high[0] - low[0]
            beside = self._pair(text.let(f"sub i32 {number}, {rows * width}"), sides)
            is_row = text.let(f"icmp ult i32 {number}, {rows * width}")
            y = (self._beyond(across[0], -low[0], tile[0], low[0]), beside[0])
            x = (text.let(f"add i32 {across[1]}, {low[1]}"), self._beyond(beside[1], -low[1], tile[1], low[1]))
            inside = [text.let(f"select i1 {is_row}, i32 {a}, i32 {b}") for a, b in (y, x)]
        self._spots[stream.around, turn] = Spot(tuple(inside), own=False, taken=taken)

    def _pair(self, number: str, length: int) -> tuple[str, str]:
        return self.text.let(f"udiv i32 {number}, {length}"), self.text.let(f"urem i32 {number}, {length}")

    def _beyond(self, number: str, before: int, length: int, low: int) -> str:
        """Return the place of margin cell `number` along an axis; the first `before` cells lie before the tile."""
        place = self.text.let(f"add i32 {number}, {low}")
        after = self.text.let(f"add i32 {place}, {length}")
        first = self.text.let(f"icmp ult i32 {number}, {before}")
        return self.text.let(f"select i1 {first}, i32 {place}, i32 {after}")

    # Tiles and slabs -----------------------------------------------------------------------------------------------
    @contextmanager
    def _tiles(self) -> Iterator[tuple[Frame, dict[int, str]]]:
        """Loop over the block's tiles and yield the first cell of each; blocks along x and y of the launch share them.

        Arguments are loaded again for each tile, so that no register needs to keep them from one tile to the next.
        """
        text, (x, y, _) = self.text, self.frame.block
        number = self._narrow(text.add(text.mul(y, self.frame.blocks[0]), x))
        step = self._narrow(text.mul(self.frame.blocks[0], self.frame.blocks[1]))
        total = reduce(lambda a, b: text.let(f"mul i32 {a}, {b}"), self._counts(self.frame))
        with in_turn(text, number, total, step, "i32") as tile:
            args = text.let("ptrtoint ptr %args to i64")
            args = text.let(f'call i64 asm sideeffect "", "=l,0"(i64 {args}) memory(none)')
            frame, origin = Frame(text, self.graph, self.frame.global_address(args)), {}
            for axis, count in reversed(list(zip(self.axes, self._counts(frame), strict=True))):
                here, tile = text.let(f"urem i32 {tile}, {count}"), text.let(f"udiv i32 {tile}, {count}")
                distance = text.mul(text.let(f"zext i32 {here} to i64"), self.march.tile[axis - 1])
                origin[axis] = text.add(frame.lo[axis], distance)
            yield frame, origin

    def _counts(self, frame: Frame) -> list[str]:
        """Return the number of tiles along each axis across the march."""
        text, counts = self.text, list[str]()
        for axis, length in zip(self.axes, self.march.tile, strict=True):
            cells = text.add(text.sub(frame.hi[axis], frame.lo[axis]), length - 1)
            counts.append(self._narrow(text.let(f"sdiv i64 {cells}, {length}")))
        return counts

    def _narrow(self, word: str) -> str:
        return self.text.let(f"trunc i64 {word} to i32")

    @contextmanager
    def _slab(self, frame: Frame) -> Iterator[tuple[str, str]]:
        """Yield the range of the block's planes, which the launch's blocks along z share evenly."""
        text = self.text
        planes = text.sub(frame.hi[0], frame.lo[0])
        length = text.let(f"udiv i64 {text.add(planes, text.sub(frame.blocks[2], 1))}, {frame.blocks[2]}")
        first = text.add(frame.lo[0], text.mul(frame.block[2], length))
        stop = text.smaller(frame.hi[0], text.add(first, length))
        with text.when(text.let(f"icmp slt i64 {first}, {stop}")):
            yield first, stop

    def values(self, cell: Cell) -> list[str]:
        """Return the cell's results."""
        return self._compute(cell)

    def finish(self, cell: Cell, values: list[str]) -> None:
        """Print the stores and reductions of a cell."""
        self._finish(cell, values)


class Steps:
    """The march of one tile and slab, which stores the planes from `first` to before `stop`."""

    def __init__(self, walk: Walk, frame: Frame, own: Spot, origin: dict[int, str], first: str, stop: str) -> None:
        self.walk = walk
        self.text = walk.text
        self.frame = frame
        self.march = walk.march
        self.own = own
        self.first = first
        self.stop = stop
        self.fields = [stream for stream in self.march.streams if stream.is_field]
        self.spots = {stream.source: walk.spots(stream, own) for stream in self.march.streams}
        self.none = (0,) * len(walk.axes)
        low = tuple(map(min, *(stream.low[1:] for stream in self.march.streams), self.none))
        self.window = Window(self.frame, self.march, walk.shared, origin, low)
        self.nowhere = self.none, self.none
        self._loaded: dict[object, str] = {}
        self._prepare()
        self.kept = StreamState(self.frame, self.march, walk.shared)
        for stream in self.march.streams:
            self.kept.prepare(self.spots[stream.source])

    def _prepare(self) -> None:
        """Compute the parts of the fields' addresses that do not change from plane to plane."""
        self.window.held(self.own, self.nowhere)
        for pointer in self.march.pointers:
            stream = self.kept_field(pointer.param)
            if stream is None:
                self.window.prepare(pointer.param, self.own, self.nowhere)
            else:
                for spot in self.spots[stream.source]:
                    self.window.prepare(pointer.param, spot, stream.reach)
        for stream in self.march.streams:
            if not stream.is_field:
                others = {number for kind, number in self._read(stream) if kind == "field"}
                for spot in self.spots[stream.source]:
                    self.window.held(spot, stream.reach)
                    for param in others:
                        if self.kept_field(param) is None:
                            self.window.prepare(param, spot, stream.reach)

    def _read(self, stream: Stream) -> set[Source]:
        return {source for source, _ in reads_of(self.walk.graph, [self.walk.graph.locals[stream.number]])}

    def kept_field(self, param: int) -> Stream | None:
        """Return the stream of a field, or None if the field is not kept."""
        return next((stream for stream in self.fields if stream.number == param), None)

    def print(self) -> None:
        """Print the loop over the march's steps."""
        text, window = self.text, self.window
        span = self.march.span
        start = text.sub(self.first, span)
        count = text.let(f"trunc i64 {text.sub(self.stop, start)} to i32")
        window.begin(start)
        waiting = {stream.source: self._waiting(stream, start) for stream in self.fields}
        with in_turn(text, "0", count, "1", "i32") as step:
            plane = text.add(start, text.let(f"zext i32 {step} to i64"))
            for stream in self.fields:
                for spot, place in zip(self.spots[stream.source], waiting[stream.source], strict=True):
                    with self._taken(spot):
                        self._keep(stream, spot, text.let(f"load {REGISTER[stream.dtype]}, ptr {place}"))
            barrier(text)
            window.advance()
            with self._needed(0, step):
                self._load_others(plane)
            following = text.let(f"add i32 {step}, 1")
            with text.when(text.let(f"icmp slt i32 {following}, {count}")):
                for stream in self.fields:
                    self._load(stream, waiting[stream.source], following)
            for stage in range(1, self.march.stages):
                for stream in self.march.streams:
                    if stream.stage == stage:
                        with self._needed(stream.span, step):
                            self._fill(stream, plane)
                if self.march.meets(stage):
                    barrier(text)
            with self._needed(0, step):
                self._results(plane)
            self.kept.advance()
            window.turn()

    @contextmanager
    def _needed(self, span: int, step: str) -> Iterator[None]:
        """Run the enclosed code only from the step on in which the first needed plane arrives.

        `span` is the number of planes that must arrive before the first cell can be stored. Streams that need fewer
        planes than others must not be read earlier.
        """
        before = self.march.span - span
        if not before:
            yield
            return
        with self.kept.branch(self.text.let(f"icmp sge i32 {step}, {before}")):
            yield

    @contextmanager
    def _taken(self, spot: Spot) -> Iterator[None]:
        """Run the enclosed code only in threads that have a cell."""
        if not spot.taken:
            yield
            return
        with self.kept.branch(spot.taken):
            yield

    # Fields --------------------------------------------------------------------------------------------------------
    def _waiting(self, stream: Stream, start: str) -> list[str]:
        """Return variables for a field's elements that arrive next; they hold the first ones if `start` needs them."""
        kind = REGISTER[stream.dtype]
        places = [variable(self.text, kind, zero(kind)) for _ in self.spots[stream.source]]
        for spot, place in zip(self.spots[stream.source], places, strict=True):
            lead, span = self._arrival(stream, spot)
            if span == self.march.span:
                plane = self.window.first(Pointer(stream.number, lead, self.none), start)
                with self._taken(spot):
                    address = self.window.beside(plane, stream.number, spot, stream.reach)
                    self.text.emit(f"store {kind} {self.frame.load(address, stream.dtype)}, ptr {place}")
        return places

    def _load(self, stream: Stream, places: list[str], step: str) -> None:
        """Load the elements of a field that arrive with a step."""
        for spot, place in zip(self.spots[stream.source], places, strict=True):
            lead, span = self._arrival(stream, spot)
            pointer = Pointer(stream.number, lead + 1, self.none)
            with self._needed(span, step), self._taken(spot):
                value = self.frame.load(self.window.element(pointer, spot, stream.reach), stream.dtype)
                self.text.emit(f"store {REGISTER[stream.dtype]} {value}, ptr {place}")

    def _arrival(self, stream: Stream, spot: Spot) -> tuple[int, int]:
        """Return the lead of a spot's elements, and the planes of them needed before the first cell can be stored."""
        return (stream.lead, stream.span) if spot.own else (stream.newest, stream.ring_span)

    def _load_others(self, plane: str) -> None:
        """Load values of fields that are not kept, so that they arrive while locals are computed.

        Only as many are loaded early as there are registers for.
        """
        used = self.march.registers
        cell = MarchCell(self.kept, self.window, self.own, plane, 0, self.nowhere)
        for node in topological(results(self.walk.graph)):
            if node.op != "read":
                continue
            param, strides, _ = cast(tuple[int, Offsets, Offsets], node.data)
            if not spans(self.walk.graph, strides) or self.kept_field(param) is not None:
                continue
            used += words(node.dtype)
            if used <= MOST_HELD:
                kind = REGISTER[node.dtype]
                self._loaded.setdefault(node.data, variable(self.text, kind, zero(kind)))
                self.text.emit(f"store {kind} {cell.leaf(node)}, ptr {self._loaded[node.data]}")

    # Cells ---------------------------------------------------------------------------------------------------------
    def _keep(self, stream: Stream, spot: Spot, value: str) -> None:
        """Store an element that has arrived in the ring and the queue."""
        if spot.own:
            self.kept.push(stream, value)
        if stream.ring:
            address = self.kept.address(stream, stream.newest, spot, self.none)
            older = self.kept.queued(stream, stream.newest) if spot.own and stream.late else None
            self.frame.store(older or value, address, stream.dtype)

    def _fill(self, stream: Stream, plane: str) -> None:
        """Compute a plane of a local."""
        definition = self.walk.graph.locals[stream.number]
        for spot in self.spots[stream.source]:
            with self._taken(spot):
                here = self.text.add(plane, stream.lead)
                cell = MarchCell(self.kept, self.window, spot, here, stream.lead, stream.reach)
                self._keep(stream, spot, Body(self.text, cell.leaf)(definition))

    def _results(self, plane: str) -> None:
        cell = MarchCell(self.kept, self.window, self.own, plane, 0, self.nowhere, self._loaded)
        values = self.walk.values(cell)
        inside = reduce(lambda a, b: self.text.let(f"and i1 {a}, {b}"), self.window.contains(self.own))
        with self.text.when(inside):
            self.walk.finish(cell, values)
