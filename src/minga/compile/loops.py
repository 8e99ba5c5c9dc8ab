"""The loops of one kernel in LLVM IR: the cells of a tile in order, locals before them, and reductions row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from minga.compile.abi import ACCUMULATOR_WORDS, BANDED, RESUMED
from minga.compile.alternative import Alternative
from minga.compile.arrange import Stage, arrange, moved
from minga.compile.find_repeats import repeated
from minga.compile.frame import Frame
from minga.compile.held import Held, access_of
from minga.compile.ir import Body
from minga.compile.line import Access, Line
from minga.compile.prefetch import NextPlanes, edge_reads, exceeds, fetch_ahead, fetches_planes, leading_reads
from minga.compile.reduce import CHUNK, fold_function, fold_name, row_bytes
from minga.compile.rows import may_be_together, together, usual_rows
from minga.compile.schedule import Schedule, is_number, is_small, iterates, may_bypass_caches, may_repeat_cells
from minga.compile.scratch import Scratch
from minga.compile.target import Target
from minga.compile.text import Text
from minga.compile.vector import Lanes, may_be_vectors, usual_lanes, widths
from minga.lang.expr import Node
from minga.lang.graph import RUN, KernelGraph, Reduction, topological
from minga.lang.types import is_float, itemsize

STREAMED_ROW: Final = 4096
"""Bytes from which on a row compensates for its ends, which are stored cell by cell."""
Places = Sequence[tuple[str, str | None]]
"""Row of each reduction, and the cell at its place 0; None for the first cell of the innermost loop."""


class Kernel:
    """Printer of one kernel function, and of the functions that fold its reductions.

    lanes     bytes of the processor's vectors
    values    roots, in which repeated parts are loops (see repeats.py)
    loops     True if repeated parts of a large kernel become loops
    widths    numbers of cells that are printed as one vector (see vector.py)
    stores    stores of the rows that are printed at present
    printed   number of these rows
    repeat    True if cells may be computed twice
    hold      True if a line's last vector is computed first, since no cell may be computed after it was stored
    small     True if the code for a vector may be printed twice
    stream    True if the stores of large boxes bypass the caches
    shortest  bytes of the shortest row whose stores bypass the caches
    large     register (an i1) that is true if the memory that the kernel accesses in its box exceeds the caches
    far       the same for the L2 cache, beyond which data is fetched ahead; true in a band; empty if it always is
    """

    def __init__(
        self, graph: KernelGraph, plan: Schedule, target: Target, way: Alternative, *, reductions: bool
    ) -> None:
        self.graph = graph
        self.lanes = target.lanes
        self.plan = plan
        self.reductions = graph.reductions if reductions else ()
        self.stores = graph.stores
        self.roots: list[Node] = [store.value for store in graph.stores] + [item.value for item in self.reductions]
        self.arranged = arrange(graph, self.roots)
        self.loops = may_be_vectors(graph, plan) or not plan.parallel
        found = self._repeated(self.roots)
        self.values = found or self.roots
        self.widths = widths(graph, plan, way.vector or usual_lanes(graph, target), found)
        self.stream = way.stream and may_bypass_caches(graph, plan) and target.triple.startswith("x86_64")
        self.rows_at_once, self.printed = self._rows_at_once(way), 1
        self.repeat = may_repeat_cells(graph)
        self.hold = not self.repeat and not iterates(graph)
        self.small = is_small(graph)
        self.text = Text()
        self.frame = Frame(self.text, graph)
        self.shortest = min(STREAMED_ROW, target.cache)
        self.large = exceeds(self.frame, target.cache)
        self.accumulators = [self._accumulator(number) for number in range(len(self.reductions))]
        self.rows = self._reduction_rows()
        self.first_reads = {} if way.prefetch == "none" else self._first_reads()
        self.far = self._far(target.second) if self.first_reads and way.prefetch == "large" else ""
        self.scratch = Scratch(self.frame, self.arranged.rings, sum(map(row_bytes, self.reductions)))
        if self.arranged.rings:
            self._march()
        else:
            self._nest(0, {}, self.frame.begin, self.frame.end)
        if self.stream:
            with self.text.when(self.large):
                self.text.emit("call void @llvm.x86.sse.sfence()")
        self.text.emit("ret void")

    def folds(self) -> list[str]:
        """Return the functions that this kernel calls."""
        named = {fold_name(item): item for item in self.reductions}
        return [line for item in named.values() for line in ["", *fold_function(item)]]

    # Loops ---------------------------------------------------------------------------------------------------------
    def _nest(
        self, depth: int, outer: dict[int, str], begin: list[str], end: list[str], stage: Stage | None = None
    ) -> None:
        """Print the loops from `depth` inwards over begin..end, for a stage of locals or for the kernel's cells."""
        axis = self.plan.axes[depth]
        if depth == self.graph.ndim - 2 and self.plan.together > 1 and not self.reductions:
            begin = [*begin]
            begin[axis] = self._lines_together(axis, outer, begin, end)
        if depth == self.graph.ndim - 2 and self.rows_at_once > 1 and not stage:
            begin = [*begin]
            begin[axis] = self._rows_together(axis, outer, begin, end)
        if depth < self.graph.ndim - 1:
            with self.text.loop(begin[axis], end[axis], down=self.plan.directions[axis] < 0) as index:
                self._nest(depth + 1, {**outer, axis: index}, begin, end, stage)
            return
        line = Line(self.frame, axis, outer, self.scratch)
        if stage:
            self._local_line(line, stage, begin[axis], end[axis])
        elif self.reductions:
            self._reduced_line(line, begin[axis], end[axis])
        else:
            self._prepare(line)
            self._cells(line, self._begin(line, begin[axis]), end[axis], [])

    def _lines_together(self, axis: int, outer: dict[int, str], begin: list[str], end: list[str]) -> str:
        """Print several lines of a sweep together, which hides latency; return the first line that is left."""
        text, inner, size = self.text, self.plan.axes[-1], self.plan.together
        length = text.larger(text.sub(end[axis], begin[axis]), "0")
        stop = text.add(begin[axis], text.let(f"and i64 {length}, {-size}"))
        scopes = text.scopes(size)
        with text.loop(begin[axis], stop, size) as first:
            lines = [Line(self.frame, inner, {**outer, axis: text.add(first, k)}, self.scratch) for k in range(size)]
            for line, scope in zip(lines, scopes, strict=True):
                line.note = scope
                self._prepare(line)
            down = self.plan.directions[inner] < 0
            with text.loop("0", self._count(begin[inner], end[inner]), down=down) as turn:
                for line in lines:
                    self._cell(line, begin[inner], turn, [])
        return stop

    def _rows_at_once(self, way: Alternative) -> int:
        if self.reductions or not may_be_together(self.graph, self.plan):
            return 1
        return way.rows or usual_rows(self.graph)

    def _rows_together(self, axis: int, outer: dict[int, str], begin: list[str], end: list[str]) -> str:
        """Print several rows together, which share what they read; return the first row that is left."""
        text, rows, single = self.text, self.rows_at_once, (self.stores, self.values, self.printed)
        length = text.larger(text.sub(end[axis], begin[axis]), "0")
        stop = text.add(begin[axis], text.let(f"and i64 {length}, {-rows}"))
        self.stores, self.values = together(self.graph, rows)
        self.printed = rows
        with text.loop(begin[axis], stop, rows) as first:
            line = Line(self.frame, self.plan.axes[-1], {**outer, axis: first}, self.scratch)
            self._prepare(line)
            self._cells(line, self._begin(line, begin[line.inner]), end[line.inner], [])
        self.stores, self.values, self.printed = single
        return stop

    def _march(self) -> None:
        """Print a march by one plane or several; each local is ahead of the cells that need it (arrange.py)."""
        text, begin, end, step = self.text, self.frame.begin, self.frame.end, self.arranged.step
        if self.graph.ndim == 1:
            for stage in self.arranged.ahead:
                self._nest(0, {}, *self._bounds(stage), stage)
            self._nest(0, {}, begin, end)
            return
        early = max(0, *(ring.lead - ring.low[0] for ring in self.arranged.rings))
        early += -early % step
        resumed = text.let(f"icmp ne i64 {text.load_word('%worker', RESUMED)}, 0")
        where = text.let(f"select i1 {resumed}, i64 {begin[0]}, i64 {text.sub(begin[0], early)}")
        with text.loop(where, end[0], step) as plane:
            behind = text.smaller(text.add(plane, step), end[0])
            for stage in self.arranged.ahead:
                first, last = self._bounds(stage)
                lead = stage.rings[0].lead
                start = text.larger(text.add(plane, lead), first[0])
                with text.loop(start, text.add(behind, lead)) as own:
                    self._nest(1, {0: own}, first, last, stage)
            with text.when(text.let(f"icmp sge i64 {plane}, {begin[0]}")):
                self._planes(plane, behind)

    def _planes(self, plane: str, behind: str) -> None:
        """Print the cells of the planes from `plane` to before `behind`."""
        if not self.arranged.beside:
            with self.text.loop(plane, behind) as own:
                self._nest(1, {0: own}, self.frame.begin, self.frame.end)
            return
        self._rows(1, {0: plane}, behind)

    def _rows(self, depth: int, outer: dict[int, str], behind: str) -> None:
        """Print these planes row by row: first the locals that only the row needs, then its cells."""
        text, begin, end = self.text, self.frame.begin, self.frame.end
        if depth < self.graph.ndim - 1:
            with text.loop(begin[depth], end[depth]) as index:
                self._rows(depth + 1, {**outer, depth: index}, behind)
            return
        for stage in self.arranged.beside:
            first, last = self._bounds(stage)
            one_by_one = behind
            if stage.planes > 1:
                together = text.let(f"icmp sge i64 {text.sub(behind, outer[0])}, {stage.planes}")
                one_by_one = text.let(f"select i1 {together}, i64 {outer[0]}, i64 {behind}")
                with text.when(together):
                    self._local_line(Line(self.frame, depth, outer, self.scratch), stage, first[depth], last[depth])
            with text.loop(outer[0], one_by_one) as own:
                line = Line(self.frame, depth, {**outer, 0: own}, self.scratch)
                self._local_line(line, Stage(stage.rings), first[depth], last[depth])
        with text.loop(outer[0], behind) as own:
            self._nest(depth, {**outer, 0: own}, begin, end)

    def _bounds(self, stage: Stage) -> tuple[list[str], list[str]]:
        """Return the half-open bounds of a stage's locals along each axis."""
        ring, frame = stage.rings[0], self.frame
        first = [self.text.add(a, o) for a, o in zip(frame.begin, ring.low, strict=True)]
        return first, [self.text.add(b, o) for b, o in zip(frame.end, ring.high, strict=True)]

    def _repeated(self, roots: Sequence[Node]) -> list[Node] | None:
        return repeated(self.graph, roots) if self.loops else None

    # Lines of cells ------------------------------------------------------------------------------------------------
    def _prepare(self, line: Line) -> None:
        line.prepare(list(topological(self.values)), [access_of(store) for store in self.stores])

    def _local_line(self, line: Line, stage: Stage, begin: str, end: str) -> None:
        """Print one line of a stage's locals.

        The line reads none of its own results, so the last vector may begin early enough to end with the line.
        """
        text = self.text
        definitions = moved(self.graph, [self.graph.locals[ring.number] for ring in stage.rings], stage.planes)
        definitions = self._repeated(definitions) or definitions
        here = (0,) * (self.graph.ndim - 1)
        targets = [(ring, (plane, *here)) for plane in range(stage.planes) for ring in stage.rings]
        line.prepare(list(topological(definitions)), [])
        for ring, place in targets:
            line.local_row(ring.number, place)
        following = self._following(line, stage)
        first = begin
        for width in self.widths:
            last = text.sub(end, width)
            with text.windows(first, last, width, self.frame.begin[-1]) as line.cell:
                following.fetch()
                lanes = Lanes(line, width)
                for (ring, place), value in zip(targets, lanes.values(definitions), strict=True):
                    address = line.local_address(ring.number, place)
                    lanes.store(address, value, ring.dtype, itemsize(ring.dtype))
            first = text.let(f"select i1 {text.let(f'icmp sle i64 {first}, {last}')}, i64 {end}, i64 {first}")
        line.note, note = text.parallel(vectors=not self.widths)
        with text.loop(first, end, 1, note) as line.cell:
            values = Body(text, line.leaf, note=line.note).all(definitions)
            for (ring, place), value in zip(targets, values, strict=True):
                self.frame.store(value, line.local_address(ring.number, place), ring.dtype, line.note)

    def _cells(self, line: Line, begin: str, end: str, rows: Places) -> None:
        """Print the innermost loop from `begin` to before `end` (over every second cell for a red-black kernel)."""
        text, count = self.text, self._count(begin, end)
        if self.stream:
            go = self._streaming(line, begin, count)
            with text.when(go):
                self._stream_cells(line, begin, count, rows)
            with text.when(text.let(f"xor i1 {go}, true")):
                self._cached_cells(line, begin, count, rows)
        else:
            self._cached_cells(line, begin, count, rows)

    def _first_reads(self) -> dict[Stage | None, list[Access]]:
        """Return the reads that are the first to touch new memory, for kernels whose next planes are fetched ahead.

        They are grouped by the stage in whose loops they are made; the key None is for the loops over cells.
        """
        if not fetches_planes(self.graph):
            return {}
        stages: list[tuple[int, Stage | None, list[Node]]] = [(0, None, self.roots)]
        for stage in (*self.arranged.beside, *self.arranged.ahead):
            definitions = [self.graph.locals[ring.number] for ring in stage.rings]
            stages.append((stage.rings[0].lead, stage, definitions))
        places: dict[int, dict[tuple[int, ...], tuple[Stage | None, Access]]] = {}
        for lead, user, roots in stages:
            for access in edge_reads(self.frame, roots):
                number, _, offsets = access
                places.setdefault(number, {})[(offsets[0] + lead, *offsets[1:-1])] = user, access
        found: dict[Stage | None, list[Access]] = {}
        for of_field in places.values():
            last = max(place[0] for place in of_field)
            for place, (user, (number, strides, offsets)) in of_field.items():
                if place[0] == last:
                    for plane in range(user.planes if user else 1):
                        there = (offsets[0] + plane * strides[0], *offsets[1:])
                        found.setdefault(user, []).append((number, strides, there))
        return found

    def _far(self, cache: int) -> str:
        """Return an i1 that is true if the data of the box come from beyond a cache."""
        large, text = exceeds(self.frame, cache), self.text
        banded = text.let(f"icmp ne i64 {text.load_word('%worker', BANDED)}, 0")
        return text.let(f"or i1 {large}, {banded}")

    def _following(self, line: Line, stage: Stage | None) -> NextPlanes:
        """Return the reads to prefetch in a stage's loop, or in the loop over cells."""
        return NextPlanes(line, self._of_rows(self.first_reads.get(stage, [])), self.arranged.step, self.far)

    def _of_rows(self, reads: list[Access]) -> list[Access]:
        """Return the reads of all rows that are printed together at present, given those of the first one."""
        found: dict[Access, None] = {}
        for number, strides, offsets in reads:
            for row in range(self.printed):
                moved = (*offsets[:-2], offsets[-2] + row * strides[-2], offsets[-1]) if row else offsets
                found[number, strides, moved] = None
        return list(found)

    def _cached_cells(self, line: Line, begin: str, count: str, rows: Places) -> None:
        text, done = self.text, "0"
        for width in self.widths:
            done = self._vectors(line, begin, count, done, rows, width)
        many = not self.widths and not is_number(self.graph)
        line.note, note = text.parallel(vectors=many) if self.plan.parallel else ("", "")
        with text.loop(done, count, 1, note, down=self.plan.directions[line.inner] < 0) as turn:
            self._cell(line, begin, turn, rows)

    def _streaming(self, line: Line, begin: str, count: str) -> str:
        """Return an i1 that is true if this line's stores bypass the caches.

        This needs a large box, long rows, and equal alignment of all stored rows.
        """
        text, line.cell = self.text, begin
        size = itemsize(self.stores[0].value.dtype)
        long = text.let(f"icmp sge i64 {count}, {self.shortest // size}")
        go = text.let(f"and i1 {self.large}, {long}")
        first, *others = (line.address(access_of(store)) for store in self.stores)
        word = text.let(f"ptrtoint ptr {first} to i64")
        for other in others:
            differ = text.let(f"xor i64 {word}, {text.let(f'ptrtoint ptr {other} to i64')}")
            same = text.let(f"icmp eq i64 {text.let(f'and i64 {differ}, {self.lanes - 1}')}, 0")
            go = text.let(f"and i1 {go}, {same}")
        return go

    def _stream_cells(self, line: Line, begin: str, count: str, rows: Places) -> None:
        """Print single cells up to an aligned address, then vectors that bypass the caches, then single cells."""
        text, line.cell = self.text, begin
        store = self.stores[0]
        word = text.let(f"ptrtoint ptr {line.address(access_of(store))} to i64")
        short = text.let(f"and i64 {text.let(f'sub i64 0, {word}')}, {self.lanes - 1}")
        size = itemsize(store.value.dtype)
        head = text.smaller(count, text.let(f"sdiv i64 {short}, {size}"))
        width = self.lanes // size
        stop = text.add(head, text.let(f"and i64 {text.sub(count, head)}, {-width}"))
        past = f", !nontemporal {text.note('!{i32 1}')}"
        for first, last in (("0", head), (stop, count)):
            line.note, note = text.parallel(vectors=False)
            with text.loop(first, last, 1, note) as turn:
                self._cell(line, begin, turn, rows)
        reads = self._of_rows(leading_reads(self.frame, self.roots))
        with text.loop(head, stop, width) as turn:
            line.cell = text.add(begin, turn)
            fetch_ahead(line, reads)
            self._vector(line, turn, rows, width, past)

    def _vectors(self, line: Line, begin: str, count: str, done: str, rows: Places, width: int) -> str:
        """Print the cells of a line from number `done` on as vectors; return the number of cells done afterwards.

        The last vector begins early enough to end with the line. Where a cell may not be computed again after it was
        stored, the last vector is computed first.
        """
        text = self.text
        following = self._following(line, None)
        if self.hold:
            return self._held(line, begin, count, done, rows, width)
        left = text.sub(count, done)
        if self.repeat:
            stop = text.let(f"select i1 {text.let(f'icmp sge i64 {left}, {width}')}, i64 {count}, i64 {done}")
        else:
            stop = text.add(done, text.let(f"and i64 {text.larger(left, '0')}, {-width}"))
        with text.loop(text.add(begin, done), text.add(begin, stop), width) as cell:
            line.cell = text.smaller(cell, text.add(begin, text.sub(count, width))) if self.repeat else cell
            following.fetch()
            self._vector(line, text.sub(line.cell, begin), rows, width)
        return stop

    def _held(self, line: Line, begin: str, count: str, done: str, rows: Places, width: int) -> str:
        """Print the same for cells that may not be computed again: their last vector is computed first (held.py)."""
        text, last = self.text, self.text.sub(count, width)
        some = text.let(f"icmp sle i64 {done}, {last}", "c")
        with text.when(some):
            if self.small:
                end = line.cell = text.add(begin, last)
                lanes = Lanes(line, width)
                values = lanes.values(self.values)
                following = self._following(line, None)
                with text.loop(done, last, width) as turn:
                    line.cell = text.add(begin, turn)
                    following.fetch()
                    self._vector(line, turn, rows, width)
                line.cell = end
                self._store(lanes, values, last, rows)
            else:
                following, held = self._following(line, None), Held(text, self.stores, width)
                with held.loop(line, begin, done, count):
                    following.fetch()
                    self._vector(line, text.sub(line.cell, begin), rows, width, held=held)
        return text.let(f"select i1 {some}, i64 {count}, i64 {done}")

    def _vector(
        self, line: Line, turn: str, rows: Places, width: int, past: str = "", held: Held | None = None
    ) -> None:
        """Print `width` cells from the line's current cell on, which has number `turn`.

        `past` is metadata of stores that bypass the caches; these are aligned.
        """
        lanes = Lanes(line, width)
        self._store(lanes, lanes.values(self.values), turn, rows, past, held)

    def _store(
        self, lanes: Lanes, values: list[str], turn: str, rows: Places, past: str = "", held: Held | None = None
    ) -> None:
        """Print the stores of a vector's values, where `held` says, if it is given."""
        line = lanes.line
        for number, (store, value) in enumerate(zip(self.stores, values, strict=False)):
            align = self.lanes if past else itemsize(store.value.dtype)
            place = held.place(line, number) if held else line.address(access_of(store))
            lanes.store(place, value, store.value.dtype, align, past)
        for item, place, value in self._places(line, turn, rows, values):
            lanes.store(place, value, item.value.dtype, itemsize(item.value.dtype))

    def _cell(self, line: Line, begin: str, turn: str, rows: Places) -> None:
        """Print the cell that the innermost loop visits as number `turn`: first all its values, then the stores."""
        text = self.text
        line.cell = text.add(begin, text.mul(turn, self.plan.step))
        values = Body(text, line.leaf, note=line.note).all(self.values)
        for store, value in zip(self.stores, values, strict=False):
            self.frame.store(value, line.address(access_of(store)), store.value.dtype, line.note)
        for item, place, value in self._places(line, turn, rows, values):
            self.frame.store(value, place, item.value.dtype, line.note)

    def _places(self, line: Line, turn: str, rows: Places, values: list[str]) -> Iterator[tuple[Reduction, str, str]]:
        """Yield each reduction, the address of the current cell's value in its row, and that value."""
        for item, (row, origin), value in zip(self.reductions, rows, values[len(self.stores) :], strict=True):
            place = turn if origin is None else self.text.sub(line.cell, origin)
            yield item, self.frame.element(row, item.value.dtype, place), value

    def _count(self, begin: str, end: str) -> str:
        """Return the number of cells that the innermost loop visits; it is not positive if there is none."""
        length = self.text.sub(end, begin)
        return length if self.plan.step == 1 else self.text.let(f"ashr i64 {self.text.add(length, 1)}, 1")

    def _begin(self, line: Line, begin: str) -> str:
        """Return the first cell at or after `begin` that the kernel visits.

        For a red-black kernel this is the first cell of its colour; cells of colour 0 have an even sum of true indices.
        """
        if self.plan.step == 1:
            return begin
        text, total = self.text, self.frame.argument(self.frame.words.colour)
        for axis, index in {**line.outer, line.inner: begin}.items():
            total = text.add(text.add(total, index), self.frame.shift[axis])
        return text.add(begin, text.let(f"and i64 {total}, 1"))

    # Reductions ----------------------------------------------------------------------------------------------------
    def _accumulator(self, number: int) -> str:
        """Return the address of this worker's accumulator words."""
        text = self.text
        base = text.load_pointer("%args", self.frame.words.reductions[number])
        return text.word(base, text.mul(text.load_word("%worker", 0), ACCUMULATOR_WORDS))

    def _reduction_rows(self) -> list[str]:
        if not self.reductions:
            return []
        pointers = [self.text.load_pointer("%worker", 1)]
        for item in self.reductions[:-1]:
            pointers.append(self.frame.element(pointers[-1], "u1", str(row_bytes(item))))
        return pointers

    def _reduced_line(self, line: Line, begin: str, end: str) -> None:
        """Print a line in chunks aligned to true indices: store a chunk's values in scratch rows, then fold them."""
        text, shift = self.text, self.frame.shift[line.inner]
        self._prepare(line)
        first = text.let(f"and i64 {text.add(begin, shift)}, {-CHUNK}")
        length = text.sub(text.add(end, shift), first)
        chunks = text.let(f"sdiv i64 {text.add(length, CHUNK - 1)}, {CHUNK}")
        with text.loop("0", chunks, down=self.plan.directions[line.inner] < 0) as chunk:
            base = text.sub(text.add(first, text.mul(chunk, CHUNK)), shift)
            start, stop = text.larger(begin, base), text.smaller(end, text.add(base, CHUNK))
            own = self._begin(line, start)
            count = self._count(own, stop)
            with text.when(text.let(f"icmp sgt i64 {count}, 0")):
                for item, row in zip(self.reductions, self.rows, strict=True):
                    if _in_runs(item):
                        self._clear_runs(row, text.sub(start, base), text.sub(stop, base))
                origins = [base if _in_runs(item) else None for item in self.reductions]
                self._cells(line, own, stop, list(zip(self.rows, origins, strict=True)))
                for number, item in enumerate(self.reductions):
                    if _in_runs(item):
                        self._fold(number, text.sub(start, base), text.sub(stop, start), "0", "0")
                    else:
                        self._fold(number, "0", count, *self._linear(item, line, own))

    def _fold(self, number: int, first: str, count: str, linear: str, stride: str) -> None:
        row, words = self.rows[number], self.accumulators[number]
        self.text.emit(
            f"call void @{fold_name(self.reductions[number])}"
            f"(ptr {row}, i64 {first}, i64 {count}, ptr {words}, i64 {linear}, i64 {stride})"
        )

    def _linear(self, item: Reduction, line: Line, own: str) -> tuple[str, str]:
        """Return the linear true index of the cell `own` of this line, and its step from cell to cell."""
        if not item.kind.startswith("arg"):
            return "0", "0"
        text, ndim, place = self.text, self.graph.ndim, {**line.outer, line.inner: own}
        linear, weights = "0", ["1"]
        for axis in range(ndim - 1, 0, -1):
            weights.insert(0, text.mul(self.frame.extent[axis], weights[0]))
        for axis in range(ndim):
            true = text.add(place[axis], self.frame.shift[axis])
            linear = text.add(text.mul(true, weights[axis]), linear)
        return linear, text.mul(weights[line.inner], self.plan.step)

    def _clear_runs(self, row: str, first: str, stop: str) -> None:
        """Store zeros for cells of a run that this line does not visit; a fold itself clears beyond the row's end."""
        text, run = self.text, f"<{RUN} x double>"
        start = text.let(f"and i64 {first}, {-RUN}")
        with text.loop(start, stop if self.plan.step == 2 else text.add(start, RUN), RUN) as place:
            text.emit(f"store {run} zeroinitializer, ptr {self.frame.element(row, 'f8', place)}, align 8")


def _in_runs(item: Reduction) -> bool:
    """Return True if a row's cells must be at their places within runs, as for float sums."""
    return item.kind == "sum" and is_float(item.value.dtype)
