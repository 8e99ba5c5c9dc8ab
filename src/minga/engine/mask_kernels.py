"""Native code for masks: finds the cells of a block to be skipped, and runs kernels without them.

A row of cells is cut into segments where its true indices are multiples of SEGMENT, which never cuts the runs of sums.
A segment is skipped if the mask is non-zero in all its cells. What remains is a list of boxes: consecutive segments of
a row, equal rows, and planes of equal rows. Where cells are ordered along an axis, lines along it are skipped entirely
or not at all.

All functions are called as `void f(int64 *args, int64 unit, int64 *worker)`, like traced kernels.

scan_mask, one unit: scans a mask, rebuilds the list if a segment changed, and tells the kernels that use the list to
    compute all cells the next time, so that the cells skipped from then on hold the values the kernel stores there.
masked_call, unit = number of a tile, or every units-th box of the list: runs a kernel on all tiles of its box, or on
    the parts of the list's boxes that lie in it.

Boxes have four axes; grids with fewer have outer axes of one cell.
"""

from __future__ import annotations

import itertools
from typing import Final

from llvmlite import ir

from minga.engine.emit import Code, Variable, Word
from minga.lang.graph import RUN

SEGMENT: Final = RUN
AXES: Final = 4

LIST_WHOLE, LIST_COUNT = 0, 1
"""Words of a list: non-zero if no cell is skipped; number of boxes."""
LIST_HEADER: Final = 8
BOX_WORDS: Final = 2 * AXES
"""Words of a box: its low ends, then its high ends."""

FUNCTION, TILES_ARGS, BOX_ARGS, BOX_BYTES, FRESH, LIST, UNITS, NDIM, LO = range(9)
"""Words of masked_call: the kernel; its arguments for tiles; its arguments for boxes, one copy per worker, and the
bytes of one copy; the address of a word that is non-zero if all cells must be computed; the list; the number of units;
the number of grid axes; the low ends of the box to be computed along all grid axes, followed by its high ends."""
HI: Final = LO + AXES
CALL_WORDS: Final = HI + AXES

(MASK_SLOT, MASK_OFFSET, MASK_STRIDES, CELLS, POINTS, ORIGIN, CENTRE, SEGMENTS, FLAGS, FLAG_STRIDES, ROWS, ROW_BYTES,
 TARGET, KNOWN, CALLS, CALL_FLAGS, MOST_ROWS, MOST_PLANES, PRICE, ALONG) = (
    0, 1, 2, 5, 9, 13, 17, 21, 22, 23, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,
)  # fmt: skip
"""Words of scan_mask: address of the word that holds the address of the mask, byte offset of the first cell, byte
strides of cells along the three outer axes; cells of the block along each axis, points computed, index of the first
point, 1 along axes on whose faces points lie; segments in a row of points; flags of the cells' segments, their byte
strides along the outer axes; flags of the points' segments and the bytes of a row of them; the list; address of a word
that is 0 while nothing is known; number of kernels that use the list, and address of a table of the addresses of their
FRESH words; maximum rows and planes of a box; overhead of a box, in cells; the axis of lines that are kept whole, 1 to
3, or 0."""
SCAN_WORDS: Final = 36

_ONES: Final = 0x0101010101010101
_TOPS: Final = 0x8080808080808080


def masked_call(module: ir.Module) -> Code:
    """Build the function that runs a kernel without the skipped cells."""
    code = Code(module, "masked_call", 3)
    args, unit, worker = code.arguments

    def word(number: int) -> Word:
        return code.load(args + 8 * number)

    found = word(LIST)
    with code.either(code.load(word(FRESH)) | code.load(found + 8 * LIST_WHOLE)) as (everything, some):
        with everything:
            code.call(word(FUNCTION), word(TILES_ARGS), unit, worker)
        with some:
            call, ndim = word(BOX_ARGS) + code.load(worker) * word(BOX_BYTES), word(NDIM)
            count, at = code.load(found + 8 * LIST_COUNT), code.variable(unit)
            with code.repeat(lambda: at.get() < count):
                box = found + 8 * LIST_HEADER + at.get() * (8 * BOX_WORDS) + (ndim - AXES) * -8
                there = code.variable(1)
                with code.loop(ndim) as axis:
                    own = args + axis * 8
                    low = code.intrinsic("llvm.smax.i64", code.load(box + axis * 8), code.load(own + 8 * LO))
                    high = code.load(box + 8 * AXES + axis * 8)
                    high = code.intrinsic("llvm.smin.i64", high, code.load(own + 8 * HI))
                    code.store(low, call + axis * 8)
                    code.store(high, call + (ndim + axis) * 8)
                    there.set(there.get() & (low < high))
                with code.when(there.get()):
                    code.call(word(FUNCTION), call, 0, worker)
                at.set(at.get() + word(UNITS))
    code.finish()
    return code


def scan_mask(module: ir.Module) -> Code:
    """Build the function that scans a mask and rebuilds its list of boxes."""
    return _Scan(module).build()


class _Scan:
    """Builder of the code of `scan_mask`."""

    def __init__(self, module: ir.Module) -> None:
        self.code = Code(module, "scan_mask", 3)
        self.args = self.code.arguments[0]
        self.points = [self.word(POINTS + axis) for axis in range(AXES)]
        self.flag_strides = [*(self.word(FLAG_STRIDES + axis) for axis in range(AXES - 1)), self.code.word(1)]

    def word(self, number: int) -> Word:
        """Return argument word `number`."""
        return self.code.load(self.args + 8 * number)

    def build(self) -> Code:
        """Emit the function."""
        code = self.code
        changed = self.look()
        with code.when(changed | code.load(self.word(KNOWN)).equals(0)):
            code.store(1, self.word(KNOWN))
            self.flag_points()
            for axis in range(1, AXES):
                with code.when(self.word(ALONG).equals(axis)):
                    self.flag_lines(axis)
            self.make_list()
            with code.loop(self.word(CALLS)) as number:
                code.store(1, code.load(self.word(CALL_FLAGS) + number * 8))
        code.finish()
        return code

    def look(self) -> Word:
        """Set the flags of the cells' segments; return 1 if one of them changed."""
        code, changed = self.code, self.code.variable(0)
        first = code.load(self.word(MASK_SLOT)) + self.word(MASK_OFFSET)
        cells = [self.word(CELLS + axis) for axis in range(AXES)]
        strides = [self.word(MASK_STRIDES + axis) for axis in range(AXES - 1)]
        inside = self.word(ORIGIN + AXES - 1) & (SEGMENT - 1)
        segments = (inside + cells[-1] + (SEGMENT - 1)).quotient(SEGMENT)
        with code.loop(cells[0]) as i, code.loop(cells[1]) as j, code.loop(cells[2]) as k, code.loop(segments) as s:
            row = first + i * strides[0] + j * strides[1] + k * strides[2]
            start = code.intrinsic("llvm.smax.i64", s * SEGMENT - inside, 0)
            stop = code.intrinsic("llvm.smin.i64", s * SEGMENT - inside + SEGMENT, cells[-1])
            here = code.variable(0)
            words = (stop - start) >> 3
            with code.loop(words) as n:
                value = code.load_unaligned(row + start + n * 8)
                # Non-zero if one of the eight bytes is 0.
                here.set(here.get() | ((value - _ONES) & (value ^ -1) & _TOPS))
            with code.loop(stop - start - words * 8) as n:
                here.set(here.get() | code.load(row + start + words * 8 + n, bits=8).equals(0))
            flag, place = here.get().differs(0), self.flag([i, j, k, s])
            changed.set(changed.get() | (flag ^ code.load(place, bits=8)))
            code.store(flag, place, bits=8)
        return changed.get()

    def flag(self, segment: list[Word]) -> Word:
        """Return the address of the flag of a segment of cells; a margin of flags that are 1 surrounds them."""
        place = self.word(FLAGS)
        for number, stride in zip(segment, self.flag_strides, strict=True):
            place = place + (number + 1) * stride
        return place

    def row(self, i: Word, j: Word, k: Word) -> Word:
        """Return the address of the flags of a row of points."""
        return self.word(ROWS) + ((i * self.points[1] + j) * self.points[2] + k) * self.word(ROW_BYTES)

    def flag_points(self) -> None:
        """Set the flags of the points' segments: a face is computed if a cell next to it is."""
        code, points = self.code, self.points
        centre = [self.word(CENTRE + axis) for axis in range(AXES)]
        segments = self.word(SEGMENTS)
        with code.loop(points[0]) as i, code.loop(points[1]) as j, code.loop(points[2]) as k, code.loop(segments) as s:
            value = code.word(0)
            for corner in itertools.product((0, 1), repeat=AXES):
                beside = [n - c if o else n for n, c, o in zip((i, j, k, s), centre, corner, strict=True)]
                value = value | code.load(self.flag(beside), bits=8)
            code.store(value, self.row(i, j, k) + s, bits=8)

    def flag_lines(self, axis: int) -> None:
        """Set the flags of whole lines in which one flag is set."""
        code, size = self.code, self.word(ROW_BYTES)
        strides = {1: self.points[2] * size, 2: size, 3: code.word(1)}
        counts = {1: self.points[1], 2: self.points[2], 3: self.word(SEGMENTS)}
        one, other = (a for a in strides if a != axis)
        with code.loop(self.points[0]) as i, code.loop(counts[one]) as m, code.loop(counts[other]) as n:
            line = self.row(i, code.word(0), code.word(0)) + m * strides[one] + n * strides[other]
            found = code.variable(0)
            with code.loop(counts[axis]) as k:
                found.set(found.get() | code.load(line + k * strides[axis], bits=8))
            with code.loop(counts[axis]) as k:
                code.store(found.get(), line + k * strides[axis], bits=8)

    def make_list(self) -> None:
        """Write the boxes, and record if using them pays off."""
        code, target = self.code, self.word(TARGET)
        count, cells, most = code.variable(0), code.variable(0), self.code.variable(1)
        for length in self.points:
            most.set(most.get() * length)
        plane = self.points[2] * self.word(ROW_BYTES)
        with code.loop(self.points[0]) as i:
            j = code.variable(0)
            with code.repeat(lambda: j.get() < self.points[1]):
                begin = j.get()
                end = self.alike(self.row(i, begin, code.word(0)), plane, self.points[1] - begin, MOST_PLANES)
                j.set(begin + end)
                self.rows(i, begin, j.get(), count, cells)
        worthless = cells.get() + count.get() * self.word(PRICE) >= most.get()
        code.store(worthless, target + 8 * LIST_WHOLE)
        code.store(count.get(), target + 8 * LIST_COUNT)

    def rows(self, i: Word, first_plane: Word, last_plane: Word, count: Variable, cells: Variable) -> None:
        """Write the boxes of a group of equal planes."""
        code, k = self.code, self.code.variable(0)
        segments = self.word(SEGMENTS)
        with code.repeat(lambda: k.get() < self.points[2]):
            begin = k.get()
            row = self.row(i, first_plane, begin)
            k.set(begin + self.alike(row, self.word(ROW_BYTES), self.points[2] - begin, MOST_ROWS))
            s = code.variable(0)
            with code.repeat(lambda: s.get() < segments):
                start = s.get()
                # Rows end with bytes that are 0.
                with code.repeat(lambda: code.load(row + s.get(), bits=8)):
                    s.set(s.get() + 1)
                with code.when(s.get() > start):
                    self.box((i, first_plane, begin, start), (i + 1, last_plane, k.get(), s.get()), count, cells)
                with code.when(s.get().equals(start)):
                    s.set(start + 1)

    def alike(self, first: Word, size: Word, left: Word, most: int) -> Word:
        """Return the number of successive pieces of `size` bytes equal to the first, at most `left` and word `most`."""
        code, number, same = self.code, self.code.variable(1), self.code.variable(1)
        limit = code.intrinsic("llvm.smin.i64", left, self.word(most))
        with code.repeat(lambda: same.get() & (number.get() < limit)):
            at = code.variable(0)
            other = first + number.get() * size
            with code.repeat(lambda: same.get() & (at.get() < size)):
                same.set(code.load(first + at.get()).equals(code.load(other + at.get())))
                at.set(at.get() + 8)
            number.set(number.get() + same.get())
        return number.get()

    def box(self, first: tuple[Word, ...], last: tuple[Word, ...], count: Variable, cells: Variable) -> None:
        """Write a box given by row and segment numbers of the block."""
        code = self.code
        place = self.word(TARGET) + 8 * LIST_HEADER + count.get() * (8 * BOX_WORDS)
        size = code.word(1)
        for axis in range(AXES):
            origin = self.word(ORIGIN + axis)
            low, high = origin + first[axis], origin + last[axis]
            if axis == AXES - 1:
                begin = origin & -SEGMENT
                low = code.intrinsic("llvm.smax.i64", begin + first[axis] * SEGMENT, origin)
                high = code.intrinsic("llvm.smin.i64", begin + last[axis] * SEGMENT, origin + self.points[axis])
            code.store(low, place + 8 * axis)
            code.store(high, place + 8 * (AXES + axis))
            size = size * (high - low)
        cells.set(cells.get() + size)
        count.set(count.get() + 1)
