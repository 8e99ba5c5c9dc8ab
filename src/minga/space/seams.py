"""Seams: joins of the ends of a grid that reverse its edges, as on a Klein bottle, a cross-surface or a sphere.

A cell just beyond an end is another name for a cell inside. On a torus the two differ by a translation; at a seam,
cells along an edge lie in the opposite order, or along the other axis. So cells beyond an edge are found line by line.
Source: golly.sourceforge.io/Help/bounded.html.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from minga.errors import LayoutError
from minga.space.box import Box, Point

__all__ = ["Line", "Seam", "lines_beyond"]

Surface = Literal["klein-bottle", "cross-surface", "sphere"]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Seam:
    """Seam of a grid of two axes.

    Attributes
    ----------
    surface
        "klein-bottle": the ends of `axis` are joined with the other axis reversed, those of the other axis as on a
        torus. "cross-surface": the ends of both axes are joined with the other one reversed; cells beyond a corner are
        those in it. "sphere": the first row is joined to the first column, and the last row to the last column.
    axis
        Axis of a Klein bottle that is left through the reversed edges.
    shift
        Cells by which a reversed edge is shifted: beyond row -1, cell x is cell ``N - 1 - shift - x`` of the last row.
    """

    surface: Surface
    axis: int = 0
    shift: int = 0

    def check(self, shape: Sequence[int]) -> None:
        """Raise LayoutError unless a grid of this shape can have the seam."""
        if len(shape) != 2:
            raise LayoutError(f"a {self.surface} has two axes, and the grid has {len(shape)}")
        if self.surface == "sphere" and shape[0] != shape[1]:
            raise LayoutError(
                f"a sphere of {shape[0]} x {shape[1]} cells: its rows are joined to its columns",
                remedy=f"give both axes the same number of cells: {max(shape)} x {max(shape)}",
            )

    def home(self, shape: Sequence[int], index: Numbers) -> Numbers:
        """Return the indices of the cells inside that cells at most one step beyond the ends are.

        Parameters
        ----------
        shape
            Cells along both axes.
        index
            Indices, i8 of shape (n, 2).
        """
        size = np.array(shape)
        beyond = (index < 0) | (index >= size)
        corner = beyond.all(axis=1, keepdims=True)
        reverse = size - 1 - index
        if self.surface == "klein-bottle":
            found = index.copy()
            other = 1 - self.axis
            left = beyond[:, self.axis]
            found[left, other] = reverse[left, other] - self.shift
            return np.asarray(found % size)
        if self.surface == "cross-surface":
            found = np.where(beyond[:, ::-1] & ~corner, reverse, index % size)
        else:
            found = np.where(beyond.any(axis=1, keepdims=True), np.clip(index, 0, size - 1)[:, ::-1], index)
        return np.where(corner, np.clip(index, 0, size - 1), found)


@dataclass(frozen=True, slots=True)
class Line:
    """Cells beyond an end, in a row or a column, which are as many cells inside, in a row or a column.

    Attributes
    ----------
    target, source
        Boxes of the cells beyond the end and of those inside.
    reverse
        True if the two are in opposite orders.
    """

    target: Box
    source: Box
    reverse: bool

    def within(self, target: Box | None = None, source: Box | None = None) -> Line | None:
        """Return the part whose targets and sources lie in boxes; None if there is none."""
        line = self if target is None else self._part(self.target, self.source, self.target & target)
        if line is None or source is None:
            return line
        part = line._part(line.source, line.target, line.source & source)
        return None if part is None else Line(part.source, part.target, part.reverse)

    def _part(self, whole: Box, partner: Box, kept: Box) -> Line | None:
        """Return the line from the cells `kept` of `whole` to those of `partner`."""
        if kept.empty:
            return None
        first = sum(a - b for a, b in zip(kept.lo, whole.lo, strict=True))
        start = partner.size - first - kept.size if self.reverse else first
        along = axis_of(partner)
        lo = tuple(n + start * (axis == along) for axis, n in enumerate(partner.lo))
        hi = tuple(n + (kept.size if axis == along else 1) for axis, n in enumerate(lo))
        return Line(kept, Box(lo, hi), self.reverse)


def axis_of(line: Box) -> int:
    """Return the axis along which a box of one row or column extends."""
    return max(range(line.ndim), key=lambda axis: line.shape[axis])


@functools.lru_cache(maxsize=64)
def lines_beyond(seam: Seam, shape: Point) -> tuple[Line, ...]:
    """Return the lines that make up all cells one step beyond the ends of a grid of this shape."""
    rows, columns = shape
    across, down = np.arange(-1, columns + 1), np.arange(rows)
    edges = [np.stack(np.broadcast_arrays(row, across), axis=1) for row in (-1, rows)]
    edges += [np.stack(np.broadcast_arrays(down, column), axis=1) for column in (-1, columns)]
    return tuple(line for edge in edges for line in _lines(edge, seam.home(shape, edge)))


def _lines(targets: Numbers, sources: Numbers) -> Iterator[Line]:
    """Yield the lines of an edge: longest pieces whose sources follow one another along an axis."""
    steps = np.diff(sources, axis=0)
    first = 0
    while first < len(targets):
        stop = first + 1
        if stop < len(targets) and np.abs(steps[first]).sum() == 1:
            other = (steps[first:] != steps[first]).any(axis=1)
            stop = first + 1 + (int(other.argmax()) if other.any() else len(other))
        reverse = bool(stop - first > 1 and steps[first].sum() < 0)
        yield Line(_box(targets[first:stop]), _box(sources[first:stop]), reverse)
        first = stop


def _box(cells: Numbers) -> Box:
    return Box(tuple(cells.min(axis=0).tolist()), tuple((cells.max(axis=0) + 1).tolist()))
