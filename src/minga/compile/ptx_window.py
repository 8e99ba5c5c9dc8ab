"""Fields as a block that marches sees them: addresses of planes that its threads share, and what a thread adds.

The addresses and strides of all fields would take more registers than a thread has. So one thread for each plane that
is accessed keeps its address in shared memory, and a thread of its own 32 bits a field: its place in a plane.
"""

from __future__ import annotations

from dataclasses import dataclass

from minga.compile.ptx_frame import Frame, Offsets, variable
from minga.compile.ptx_march import March, Pointer, Reach
from minga.compile.text import Text
from minga.lang.types import itemsize


@dataclass(frozen=True, slots=True)
class Spot:
    """A cell of the plane that a thread works on, relative to the tile's first cell, along each axis across the march.

    own    it is the thread's own cell of the tile, whose column it keeps in registers
    taken  whether the thread has this cell at all; empty if all threads have
    """

    inside: tuple[str, ...]
    own: bool
    taken: str = ""


class Window:
    """The part of the fields around a tile: its first cell `origin` (by axis), and the margin `low` before it.

    shared: address of the march's shared memory.
    """

    def __init__(self, frame: Frame, march: March, shared: str, origin: dict[int, str], low: Offsets) -> None:
        self.frame = frame
        self.text: Text = frame.text
        self.march = march
        self.origin = origin
        self.low = low
        self._left = [
            self._narrow(self.text.smaller(self.text.sub(frame.hi[axis], origin[axis]), str(length)))
            for axis, length in enumerate(march.tile, 1)
        ]
        self._held: dict[tuple[Spot, Reach], tuple[str, ...]] = {}
        self._within: dict[tuple[int, Spot, Reach], str] = {}
        self._table = frame.element(shared, "u1", str(march.start))
        self._side = variable(self.text, "i64", "0")

    # Cells ---------------------------------------------------------------------------------------------------------
    def held(self, spot: Spot, reach: Reach) -> tuple[str, ...]:
        """A spot, held within what may be read around the cells of the box."""
        if (spot, reach) not in self._held:
            text, found = self.text, []
            for inside, left, low, high in zip(spot.inside, self._left, *reach, strict=True):
                last = text.let(f"add i32 {left}, {high - 1}")
                place = text.let(f"call i32 @llvm.smax.i32(i32 {inside}, i32 {low})")
                found.append(text.let(f"call i32 @llvm.smin.i32(i32 {place}, i32 {last})"))
            self._held[spot, reach] = tuple(found)
        return self._held[spot, reach]

    def index(self, spot: Spot, reach: Reach) -> dict[int, str]:
        """Iteration indices of a spot that is held."""
        wide = [self.text.let(f"sext i32 {place} to i64") for place in self.held(spot, reach)]
        return {axis: self.text.add(self.origin[axis], place) for axis, place in enumerate(wide, 1)}

    def contains(self, spot: Spot) -> list[str]:
        """Whether a spot lies before the end of the box, per axis."""
        return [self.text.let(f"icmp slt i32 {i}, {n}") for i, n in zip(spot.inside, self._left, strict=True)]

    def prepare(self, param: int, spot: Spot, reach: Reach) -> None:
        """Compute before the march what its steps need of a field at a cell that is held so."""
        self._place(param, spot, reach)

    def _place(self, param: int, spot: Spot, reach: Reach) -> str:
        """Bytes from the window's first element in a plane to a spot that is held."""
        if (param, spot, reach) not in self._within:
            text, ndim = self.text, self.frame.graph.ndim
            size, place = itemsize(self.frame.graph.params[param].dtype), ""
            for axis, (inside, low) in enumerate(zip(self.held(spot, reach), self.low, strict=True), 1):
                step = str(size) if axis == ndim - 1 else self._narrow(self._step(param, axis))
                term = text.let(f"mul i32 {text.let(f'sub i32 {inside}, {low}')}, {step}")
                place = text.let(f"add i32 {place}, {term}") if place else term
            self._within[param, spot, reach] = place
        return self._within[param, spot, reach]

    def _narrow(self, word: str) -> str:
        return self.text.let(f"trunc i64 {word} to i32")

    # Planes --------------------------------------------------------------------------------------------------------
    def first(self, pointer: Pointer, plane: str) -> str:
        """Address of the window's first element in the pointer's plane while the cells of `plane` are stored."""
        text, size = self.text, itemsize(self.frame.graph.params[pointer.param].dtype)
        last = self.frame.graph.ndim - 1
        begins = [text.add(plane, pointer.plane)]
        for axis, (low, offset) in enumerate(zip(self.low, pointer.offsets, strict=True), 1):
            begins.append(text.add(self.origin[axis], low + offset))
        distance = text.mul(begins[last], size)
        for axis, begin in enumerate(begins[:last]):
            distance = text.add(distance, text.mul(begin, self._step(pointer.param, axis)))
        return self.frame.element(self.frame.base[pointer.param], "u1", distance)

    def begin(self, plane: str) -> None:
        """Fill the table for the march's first plane; the block's threads must meet before they use it."""
        text, count = self.text, len(self.march.pointers)
        with text.when(text.let(f"icmp eq i64 {self.frame.thread}, 0")):
            for number, pointer in enumerate(self.march.pointers):
                word = text.let(f"ptrtoint ptr {self.first(pointer, plane)} to i64")
                text.emit(f"store i64 {word}, ptr {text.word(self._table, number)}")
                step = self._step(pointer.param, 0)
                text.emit(f"store i64 {step}, ptr {text.word(self._table, 2 * count + number)}")

    def advance(self) -> None:
        """The addresses of the next plane, beside those of this one; between a meeting of the threads and the next."""
        text, count = self.text, len(self.march.pointers)
        with text.when(text.let(f"icmp ult i64 {self.frame.thread}, {count}")):
            own = text.word(self._table, self.frame.thread)
            step = text.load_word(own, 2 * count)
            side = text.let(f"load i64, ptr {self._side}")
            here = text.load_word(text.word(own, side), 0)
            there = text.word(own, text.sub(str(count), side))
            text.emit(f"store i64 {text.add(here, step)}, ptr {there}")

    def turn(self) -> None:
        """Use the addresses of the next plane from now on."""
        side = self.text.let(f"load i64, ptr {self._side}")
        self.text.emit(f"store i64 {self.text.sub(str(len(self.march.pointers)), side)}, ptr {self._side}")

    def element(self, pointer: Pointer, spot: Spot, reach: Reach) -> str:
        """Address of a spot's element in a pointer's plane."""
        text = self.text
        side = text.let(f"load i64, ptr {self._side}")
        here = text.word(text.word(self._table, self.march.pointers.index(pointer)), side)
        plane = self.frame.pointer(here, 0)
        return self.beside(plane, pointer.param, spot, reach)

    def beside(self, plane: str, param: int, spot: Spot, reach: Reach) -> str:
        """Address of a spot's element, given that of its plane."""
        place = self.text.let(f"zext i32 {self._place(param, spot, reach)} to i64")
        return self.frame.element(plane, "u1", place)

    def _step(self, param: int, axis: int) -> str:
        """Bytes from one element to the next along an axis."""
        return self.text.mul(self.frame.stride[param][axis], itemsize(self.frame.graph.params[param].dtype))
