"""Half-open integer boxes in the index space of a grid, on which regions, blocks, halos and transfers are based.

A box is plain data in Python integers. Thousands of boxes at once are kept as int64 arrays instead (see
:mod:`minga.space.layout`); a ``Box`` is made from these arrays when a person or a copy loop needs one of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from minga.errors import LayoutError

__all__ = ["Box", "Point", "Widths", "directions"]

Point = tuple[int, ...]
"""Index or translation vector, one integer for each axis."""

Widths = int | Sequence[int]
"""One width for each axis, or one width for all axes."""


@dataclass(frozen=True, slots=True)
class Box:
    """All indices ``i`` with ``lo[a] <= i[a] < hi[a]`` on every axis ``a``; empty if ``hi[a] <= lo[a]`` for some axis.

    Axes are ordered as in NumPy: the last one is the innermost, contiguous in memory.

    Parameters
    ----------
    lo, hi
        The first index and the index after the last one, for each axis.
    """

    lo: Point
    hi: Point

    def __post_init__(self) -> None:
        if len(self.lo) != len(self.hi):
            raise LayoutError(f"a box needs as many low as high ends; found lo={self.lo} and hi={self.hi}")

    @classmethod
    def of(cls, shape: Iterable[int]) -> Box:
        """Return the box of an array of this shape: from index zero to ``shape``.

        Parameters
        ----------
        shape
            The extent along each axis.

        Returns
        -------
        Box
            The box from index zero to ``shape``.
        """
        hi = tuple(int(length) for length in shape)
        return cls((0,) * len(hi), hi)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.lo)

    @property
    def shape(self) -> Point:
        """Number of indices along each axis, never negative."""
        return tuple(max(high - low, 0) for low, high in zip(self.lo, self.hi, strict=True))

    @property
    def size(self) -> int:
        """Number of indices in the box."""
        return math.prod(self.shape)

    @property
    def empty(self) -> bool:
        """True if the box contains no index at all."""
        return any(high <= low for low, high in zip(self.lo, self.hi, strict=True))

    def intersect(self, other: Box) -> Box:
        """Return the indices in both boxes; an empty result keeps ``hi >= lo`` so that it stays empty when shifted.

        Parameters
        ----------
        other
            A box with as many axes.

        Returns
        -------
        Box
            The indices in both boxes.
        """
        lo = tuple(map(max, self.lo, other.lo))
        return Box(lo, tuple(map(max, lo, map(min, self.hi, other.hi))))

    __and__ = intersect

    def shift(self, vector: Sequence[int]) -> Box:
        """Return the box moved by ``vector``.

        Parameters
        ----------
        vector
            The offset along each axis.

        Returns
        -------
        Box
            The shifted box.
        """
        return Box(
            tuple(low + v for low, v in zip(self.lo, vector, strict=True)),
            tuple(high + v for high, v in zip(self.hi, vector, strict=True)),
        )

    def grow(self, lo: Widths, hi: Widths) -> Box:
        """Return the box extended by ``lo`` below and ``hi`` above on each axis; negative widths shrink it.

        Parameters
        ----------
        lo, hi
            Widths below and above, one number or one for each axis.

        Returns
        -------
        Box
            The extended box.
        """
        return Box(
            tuple(low - w for low, w in zip(self.lo, _per_axis(lo, self.ndim), strict=True)),
            tuple(high + w for high, w in zip(self.hi, _per_axis(hi, self.ndim), strict=True)),
        )

    def contains(self, other: Box) -> bool:
        """Return whether every index of ``other`` is in this box (true for an empty ``other``).

        Parameters
        ----------
        other
            A box with as many axes.

        Returns
        -------
        bool
            True if all indices of ``other`` are in this box.
        """
        return other.empty or (
            all(a <= b for a, b in zip(self.lo, other.lo, strict=True))
            and all(a >= b for a, b in zip(self.hi, other.hi, strict=True))
        )

    def subtract(self, other: Box) -> list[Box]:
        """Return the indices of this box outside ``other``, as at most ``2 * ndim`` disjoint boxes.

        Axis by axis, the slab below and the slab above are cut off, so outer axes give the largest pieces and the order
        is always the same.

        Parameters
        ----------
        other
            A box with as many axes.

        Returns
        -------
        list of Box
            Disjoint boxes.
        """
        if self.empty:
            return []
        common = self.intersect(other)
        if common.empty:
            return [self]
        pieces = []
        lo, hi = list(self.lo), list(self.hi)
        for axis in range(self.ndim):
            if lo[axis] < common.lo[axis]:
                pieces.append(Box(tuple(lo), (*hi[:axis], common.lo[axis], *hi[axis + 1 :])))
            if common.hi[axis] < hi[axis]:
                pieces.append(Box((*lo[:axis], common.hi[axis], *lo[axis + 1 :]), tuple(hi)))
            lo[axis], hi[axis] = common.lo[axis], common.hi[axis]
        return pieces

    def hull(self, other: Box) -> Box:
        """Return the smallest box that contains both; an empty box adds nothing.

        Parameters
        ----------
        other
            A box with as many axes.

        Returns
        -------
        Box
            The smallest box that contains both.
        """
        if self.empty:
            return other
        if other.empty:
            return self
        return Box(tuple(map(min, self.lo, other.lo)), tuple(map(max, self.hi, other.hi)))

    def slices(self, origin: Sequence[int]) -> tuple[slice, ...]:
        """Return the box as slices of an array whose element 0 has index ``origin``.

        Parameters
        ----------
        origin
            The index of element 0 of the array, for each axis.

        Returns
        -------
        tuple of slice
            One slice for each axis.

        Raises
        ------
        LayoutError
            If the box begins below the array: Python would read the negative slice from the far end.
        """
        if any(low < o for low, o in zip(self.lo, origin, strict=True)) and not self.empty:
            raise LayoutError(f"box {self} begins below its array, whose first element is {tuple(origin)}")
        return tuple(slice(low - o, high - o) for low, high, o in zip(self.lo, self.hi, origin, strict=True))

    def coarsen(self, factor: Widths) -> Box:
        """Return the coarse cells whose first fine cell is in this box; that of coarse cell ``c`` is ``factor * c``.

        Parameters
        ----------
        factor
            Fine cells in a coarse one, one number or one for each axis.

        Returns
        -------
        Box
            The box of coarse cells.
        """
        factors = _per_axis(factor, self.ndim)
        return Box(
            tuple(-(-low // f) for low, f in zip(self.lo, factors, strict=True)),
            tuple(-(-high // f) for high, f in zip(self.hi, factors, strict=True)),
        )

    def refine(self, factor: Widths) -> Box:
        """Return all fine cells of the coarse cells in this box.

        Parameters
        ----------
        factor
            Fine cells in a coarse one, one number or one for each axis.

        Returns
        -------
        Box
            The box of fine cells.
        """
        factors = _per_axis(factor, self.ndim)
        return Box(
            tuple(low * f for low, f in zip(self.lo, factors, strict=True)),
            tuple(high * f for high, f in zip(self.hi, factors, strict=True)),
        )

    def __str__(self) -> str:
        return "[" + ", ".join(f"{low}:{high}" for low, high in zip(self.lo, self.hi, strict=True)) + "]"

    __repr__ = __str__


def directions(ndim: int, faces_only: bool) -> list[Point]:
    """Return the directions to the neighbours of a box, ascending.

    They are all vectors of -1, 0 and +1 except zero, or with `faces_only` only those along one axis.
    """
    around = itertools.product((-1, 0, 1), repeat=ndim)
    return [d for d in around if (sum(map(abs, d)) == 1 if faces_only else any(d))]


def _per_axis(widths: Widths, ndim: int) -> Sequence[int]:
    return (widths,) * ndim if isinstance(widths, int) else widths
