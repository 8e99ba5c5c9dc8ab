"""Addresses of fields in a march: addresses of planes, which a block's threads share, and offsets of each thread.

The addresses and strides of all fields would take more registers than a thread has. Therefore the address of each
accessed plane is kept in shared memory, by one thread per plane, and each thread keeps only 32 bits per field: its
offset within a plane.
"""

from __future__ import annotations

from dataclasses import dataclass

from minga.compile.ptx_frame import Frame, Offsets, variable
from minga.compile.ptx_march import March, Pointer, Reach
from minga.compile.text import Text
from minga.lang.types import itemsize


@dataclass(frozen=True, slots=True)
class Spot:
    """A cell of the plane that a thread works on.

    inside  its place relative to the tile's first cell, along each axis across the march
    own     True if it is the thread's own cell of the tile, whose column it keeps in registers
    taken   register (an i1) that is true if the thread has this cell; empty if all threads have one
    """

    inside: tuple[str, ...]
    own: bool
    taken: str = ""


class Window:
    """The part of the fields around a tile.

    origin  the tile's first cell, by axis
    low     the margin before it
    shared  address of the march's shared memory
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
        """Return the place of a spot, clamped to what may be read around the cells of the box."""
        if (spot, reach) not in self._held:
            text, found = self.text, []
            for inside, left, low, high in zip(spot.inside, self._left, *reach, strict=True):
                last = text.let(f"add i32 {left}, {high - 1}")
                place = text.let(f"call i32 @llvm.smax.i32(i32 {inside}, i32 {low})")
                found.append(text.let(f"call i32 @llvm.smin.i32(i32 {place}, i32 {last})"))
            self._held[spot, reach] = tuple(found)
        return self._held[spot, reach]

    def index(self, spot: Spot, reach: Reach) -> dict[int, str]:
        """Return the iteration indices of a clamped spot."""
        wide = [self.text.let(f"sext i32 {place} to i64") for place in self.held(spot, reach)]
        return {axis: self.text.add(self.origin[axis], place) for axis, place in enumerate(wide, 1)}

    def contains(self, spot: Spot) -> list[str]:
        """Return, for each axis, an i1 that is true if a spot lies before the end of the box."""
        return [self.text.let(f"icmp slt i32 {i}, {n}") for i, n in zip(spot.inside, self._left, strict=True)]

    def prepare(self, param: int, spot: Spot, reach: Reach) -> None:
        """Compute, before the march, the offset of a clamped spot in a field's plane, which the steps need."""
        self._place(param, spot, reach)

    def _place(self, param: int, spot: Spot, reach: Reach) -> str:
        """Return the bytes from the window's first element in a plane to a clamped spot."""
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
        """Return the address of the window's first element in the pointer's plane if `plane` is the stored one."""
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
        """Fill the table for the march's first plane; the block's threads must synchronise before they use it."""
        text, count = self.text, len(self.march.pointers)
        with text.when(text.let(f"icmp eq i64 {self.frame.thread}, 0")):
            for number, pointer in enumerate(self.march.pointers):
                word = text.let(f"ptrtoint ptr {self.first(pointer, plane)} to i64")
                text.emit(f"store i64 {word}, ptr {text.word(self._table, number)}")
                step = self._step(pointer.param, 0)
                text.emit(f"store i64 {step}, ptr {text.word(self._table, 2 * count + number)}")

    def advance(self) -> None:
        """Store the addresses for the next plane beside the current ones; run this between two barriers."""
        text, count = self.text, len(self.march.pointers)
        with text.when(text.let(f"icmp ult i64 {self.frame.thread}, {count}")):
            own = text.word(self._table, self.frame.thread)
            step = text.load_word(own, 2 * count)
            side = text.let(f"load i64, ptr {self._side}")
            here = text.load_word(text.word(own, side), 0)
            there = text.word(own, text.sub(str(count), side))
            text.emit(f"store i64 {text.add(here, step)}, ptr {there}")

    def turn(self) -> None:
        """Switch to the addresses of the next plane."""
        side = self.text.let(f"load i64, ptr {self._side}")
        self.text.emit(f"store i64 {self.text.sub(str(len(self.march.pointers)), side)}, ptr {self._side}")

    def element(self, pointer: Pointer, spot: Spot, reach: Reach) -> str:
        """Return the address of a spot's element in a pointer's plane."""
        text = self.text
        side = text.let(f"load i64, ptr {self._side}")
        here = text.word(text.word(self._table, self.march.pointers.index(pointer)), side)
        plane = self.frame.pointer(here, 0)
        return self.beside(plane, pointer.param, spot, reach)

    def beside(self, plane: str, param: int, spot: Spot, reach: Reach) -> str:
        """Return the address of a spot's element, given the address of its plane."""
        place = self.text.let(f"zext i32 {self._place(param, spot, reach)} to i64")
        return self.frame.element(plane, "u1", place)

    def _step(self, param: int, axis: int) -> str:
        """Return the bytes from one element to the next along an axis."""
        return self.text.mul(self.frame.stride[param][axis], itemsize(self.frame.graph.params[param].dtype))
