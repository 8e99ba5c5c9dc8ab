"""The loops of a GPU kernel in LLVM IR: the work of one thread, from its first cell to its last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Final

from minga.compile.ir import Body
from minga.compile.ptx_frame import WARP, Cell, Frame, in_turn, variable
from minga.compile.ptx_map import LANES, Mapping
from minga.compile.ptx_march import March
from minga.compile.ptx_reduce import Reducer, shuffle_down
from minga.compile.ptx_tile import Tile, Tiles
from minga.compile.ptx_walk import Walk
from minga.compile.text import Text
from minga.lang.graph import RUN, KernelGraph

Index = dict[int, str]
Level = Callable[[Index], AbstractContextManager[Index]]

_TREE: Final = (4, 2, 1)


class Nest:
    """Printer of one kernel function, which needs `shared_words` words of shared memory."""

    def __init__(self, text: Text, graph: KernelGraph, plan: Mapping, kept: Tile | March | None) -> None:
        self.text = text
        self.graph = graph
        self.plan = plan
        self.frame = Frame(text, graph)
        self.reducer = Reducer(self.frame, graph.reductions)
        self.last = graph.ndim - 1
        self._roots = [store.value for store in graph.stores] + self.reducer.roots
        self.shared_words = self.reducer.shared_words
        start = 8 * self.shared_words
        if kept is None:
            self._loops()
        else:
            self.shared_words += kept.words
            if isinstance(kept, March):
                Walk(self.frame, kept, start, self._values, self._finish).print()
            else:
                Tiles(self.frame, kept, start, self._compute).print()
        self.reducer.finish()
        text.emit("ret void")

    # Loops ---------------------------------------------------------------------------------------------------------
    def _loops(self) -> None:
        innermost: dict[str, Callable[[Index], object]] = {"none": self._cell, "lanes": self._lanes, "line": self._line}
        with ExitStack() as stack:
            index: Index = {}
            for level in self._levels():
                index = index | stack.enter_context(level(index))
            innermost[self.plan.runs](index)

    def _levels(self) -> Iterator[Level]:
        """Yield the loops and conditions around the innermost part, outermost first."""
        for axis in self.plan.outer:
            yield partial(self._ordered, axis)
        for d in (2, 1, 0):
            if d >= len(self.plan.threads):
                yield partial(self._first_only, d)
            elif d == 0 and self.plan.runs == "lanes":
                yield self._runs
            else:
                yield partial(self._threads, d)
        for axis in self.plan.inner:
            if not (self.plan.runs == "line" and axis == self.last):
                yield partial(self._ordered, axis)

    @contextmanager
    def _ordered(self, axis: int, _: Index) -> Iterator[Index]:
        with self.text.loop(self.frame.lo[axis], self.frame.hi[axis], down=not self.plan.up[axis]) as here:
            yield {axis: here}

    @contextmanager
    def _first_only(self, d: int, _: Index) -> Iterator[Index]:
        """Let only the first threads work along a direction of the launch that has no axis."""
        with self.text.when(self.text.let(f"icmp eq i64 {self.frame.place[d]}, 0")):
            yield {}

    @contextmanager
    def _threads(self, d: int, index: Index) -> Iterator[Index]:
        """Distribute the cells of an axis to the launch's threads along x, y or z in turn."""
        text, frame, axis = self.text, self.frame, self.plan.threads[d]
        start, place, step = frame.lo[axis], frame.place[d], frame.places[d]
        if d == 0 and self.plan.coloured:
            start = text.add(start, self._off_colour({**index, axis: start}))
            place, step = text.mul(place, 2), text.mul(step, 2)
        with in_turn(text, text.add(start, place), frame.hi[axis], step) as here:
            yield {axis: here}

    def _off_colour(self, index: Index) -> str:
        """Return 0 if the cell has the colour to visit, otherwise 1."""
        total = self.frame.colour
        for axis in range(self.graph.ndim):
            total = self.text.add(self.text.add(total, index[axis]), self.frame.shift[axis])
        return self.text.let(f"and i64 {total}, 1")

    # Runs of float sums --------------------------------------------------------------------------------------------
    @contextmanager
    def _runs(self, _: Index) -> Iterator[Index]:
        """Loop over runs of the innermost axis, with LANES threads each; yield the index of each thread's first cell.

        All threads of a warp must take part in shuffles, so they all step while the warp's first run lies in the box.
        """
        text, place = self.text, self.frame.place[0]
        warp, lane = text.let(f"and i64 {place}, {-WARP}"), text.let(f"and i64 {place}, {LANES - 1}")
        first, stop = self._run_range()
        start = text.add(first, text.let(f"lshr i64 {warp}, 3"))
        within = text.let(f"lshr i64 {text.sub(place, warp)}, 3")
        with in_turn(text, start, stop, text.let(f"lshr i64 {self.frame.places[0]}, 3")) as run:
            true = text.add(text.mul(text.add(run, within), RUN), lane)
            yield {self.last: text.sub(true, self.frame.shift[self.last])}

    def _run_range(self) -> tuple[str, str]:
        """Return the half-open range of the numbers of the runs that the box touches."""
        text, lo, hi = self.text, self.frame.lo[self.last], self.frame.hi[self.last]
        shift = self.frame.shift[self.last]
        first = text.let(f"ashr i64 {text.add(lo, shift)}, 6")
        last = text.let(f"ashr i64 {text.sub(text.add(hi, shift), 1)}, 6")
        return first, text.add(last, 1)

    def _lanes(self, index: Index) -> None:
        """Print a thread's share of one run: its cells in order, then the summation tree over the run's threads."""
        text, axis = self.text, self.last
        totals = [variable(text, "double", "0.0") for _ in self.reducer.limbs]
        with text.loop("0", str(RUN), LANES) as turn:
            here = {**index, axis: text.add(index[axis], turn)}
            inside = self._inside(here[axis])
            if self.plan.coloured:
                inside = text.let(f"and i1 {inside}, {text.let(f'icmp eq i64 {self._off_colour(here)}, 0')}")
            with text.when(inside):
                for total, value in zip(totals, self._cell(here), strict=True):
                    before = text.let(f"load double, ptr {total}")
                    text.emit(f"store double {text.let(f'fadd double {before}, {value}')}, ptr {total}")
        first = text.let(f"icmp eq i64 {text.let(f'and i64 {self.frame.place[0]}, {LANES - 1}')}, 0")
        for total, limbs in zip(totals, self.reducer.limbs, strict=True):
            value = text.let(f"load double, ptr {total}")
            for distance in _TREE:
                bits = shuffle_down(text, text.let(f"bitcast double {value} to i64"), distance)
                value = text.let(f"fadd double {value}, {text.let(f'bitcast i64 {bits} to double')}")
            with text.when(first):
                limbs.add(value)

    def _inside(self, here: str) -> str:
        text, lo, hi = self.text, self.frame.lo[self.last], self.frame.hi[self.last]
        above, below = text.let(f"icmp sge i64 {here}, {lo}"), text.let(f"icmp slt i64 {here}, {hi}")
        return text.let(f"and i1 {above}, {below}")

    def _line(self, index: Index) -> None:
        """Print the innermost axis in order for one thread: values are kept until their run is complete."""
        text, axis, up = self.text, self.last, self.plan.up[self.last]
        shift, kind = self.frame.shift[axis], f"[{RUN} x double]"
        kept = [variable(text, kind, "zeroinitializer") for _ in self.reducer.limbs]
        first, stop = self._run_range()
        with text.loop(first, stop, down=not up) as run:
            for place in kept:
                text.emit(f"store {kind} zeroinitializer, ptr {place}")
            start = text.sub(text.mul(run, RUN), shift)
            begin = text.larger(start, self.frame.lo[axis])
            end = text.smaller(text.add(start, RUN), self.frame.hi[axis])
            with text.loop(begin, end, down=not up) as here:
                slot = text.sub(here, start)
                for place, value in zip(kept, self._cell({**index, axis: here}), strict=True):
                    text.emit(f"store double {value}, ptr {text.let(f'getelementptr double, ptr {place}, i64 {slot}')}")
            for place, limbs in zip(kept, self.reducer.limbs, strict=True):
                limbs.add(self._tree(place))

    def _tree(self, kept: str) -> str:
        """Return the sum of the 64 kept values, by lanes and a tree."""
        text, totals = self.text, ["0.0"] * LANES
        for slot in range(RUN):
            value = text.let(f"load double, ptr {text.let(f'getelementptr double, ptr {kept}, i64 {slot}')}")
            totals[slot % LANES] = text.let(f"fadd double {totals[slot % LANES]}, {value}")
        for half in _TREE:
            totals = [text.let(f"fadd double {totals[k]}, {totals[k + half]}") for k in range(half)]
        return totals[0]

    # A cell --------------------------------------------------------------------------------------------------------
    def _cell(self, index: Index) -> list[str]:
        return self._compute(Cell(self.frame, index))

    def _compute(self, cell: Cell) -> list[str]:
        """Print a cell, first its values, then its stores; return its terms of the float sums."""
        return self._finish(cell, self._values(cell))

    def _values(self, cell: Cell) -> list[str]:
        """Return the values to store and the terms of the reductions."""
        return Body(self.text, cell.leaf).all(self._roots)

    def _finish(self, cell: Cell, values: list[str]) -> list[str]:
        """Print the stores and reductions of a cell; return its terms of the float sums."""
        count = len(self.graph.stores)
        for store, value in zip(self.graph.stores, values[:count], strict=True):
            self.frame.store(value, cell.address(store.param, store.strides, store.offsets), store.value.dtype)
        return self.reducer.add(cell, values[count:])
