"""Ownership of cells: disjoint blocks that tile a domain, each with an owner rank.

A layout is three int64 arrays, so that one of 262 144 blocks is built, searched and compared in milliseconds. All
constructors depend on their arguments alone: every rank that calls them gets the same layout without communication.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from minga.errors import LayoutError
from minga.space.box import Box, Widths
from minga.space.boxes import BoxIndex, Ints, first_miscount, merge, volumes

__all__ = ["GRANULE", "Layout"]

GRANULE = 64
"""Cells of the innermost axis that are kept together by default: the run of an exact sum, the lanes of a bit slice."""


@dataclass(frozen=True, eq=False, repr=False)
class Layout:
    """Blocks ``[lo[i], hi[i])`` of rank ``owner[i]`` that cover every cell of ``domain`` exactly once.

    A rank owns any number of blocks, or none. Blocks are never empty. Constructors are :func:`slabs`,
    :func:`cartesian`, :func:`best_cartesian`, :func:`bisection` and :func:`blocks` of :mod:`minga.space.cuts`, and
    :meth:`single`, :meth:`from_boxes` and :meth:`everywhere` here. Only the last makes a layout that is ``replicated``:
    every rank owns one block, the whole domain.

    Parameters
    ----------
    domain
        The box that is divided.
    ranks
        The number of ranks.
    lo, hi
        Ends of the blocks, int64 arrays of shape (blocks, axes).
    owner
        The rank of each block, int64 array of shape (blocks,).
    replicated
        Whether every rank owns the whole domain.
    """

    domain: Box
    ranks: int
    lo: Ints
    hi: Ints
    owner: Ints
    replicated: bool = False

    def __post_init__(self) -> None:
        for name, columns in (("lo", self.domain.ndim), ("hi", self.domain.ndim), ("owner", 0)):
            array = np.ascontiguousarray(getattr(self, name), np.int64)
            array = array.reshape(-1, columns) if columns else array.reshape(-1)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if self.ranks < 1 or not len(self.lo) == len(self.hi) == len(self.owner) > 0:
            raise LayoutError(
                f"a layout needs a rank, and a block with low end, high end and owner; found {self.ranks} ranks, "
                f"{len(self.lo)} low ends, {len(self.hi)} high ends and {len(self.owner)} owners"
            )
        if self.owner.min() < 0 or self.owner.max() >= self.ranks:
            raise LayoutError(
                f"blocks are owned by ranks {self.owner.min()} to {self.owner.max()}, "
                f"but the layout is for ranks 0 to {self.ranks - 1}"
            )
        if self.replicated and not self._whole_everywhere():
            raise LayoutError(
                f"a replicated layout has one block a rank, the domain {self.domain}",
                remedy="Layout.everywhere makes it",
            )
        sizes = volumes(self.lo, self.hi)
        if (sizes == 0).any():
            raise LayoutError(f"block {int(np.argmin(sizes))} of the layout is empty", remedy="leave empty blocks out")
        if int(sizes.sum()) != self.domain.size * (self.ranks if self.replicated else 1):
            self.check()

    @classmethod
    def everywhere(cls, domain: Box, ranks: int) -> Layout:
        """Return the layout with the whole domain on every rank, as one block with the rank's number.

        Data moved to this layout reaches all ranks.

        Parameters
        ----------
        domain
            The box.
        ranks
            The number of ranks.

        Returns
        -------
        Layout
            A replicated layout.
        """
        lo, hi = np.array([domain.lo]), np.array([domain.hi])
        return cls(domain, ranks, lo.repeat(ranks, axis=0), hi.repeat(ranks, axis=0), np.arange(ranks), True)

    @classmethod
    def single(cls, domain: Box, ranks: int, owner: int = 0) -> Layout:
        """Return the layout with the whole domain as one block of one rank.

        Parameters
        ----------
        domain
            The box.
        ranks
            The number of ranks.
        owner
            The rank that owns the block.

        Returns
        -------
        Layout
            A layout with one block.
        """
        return cls(domain, ranks, np.array([domain.lo]), np.array([domain.hi]), np.array([owner]))

    @classmethod
    def from_boxes(cls, domain: Box, boxes: Sequence[Box], owners: Sequence[int], ranks: int) -> Layout:
        """Return a layout of given boxes.

        Parameters
        ----------
        domain
            The box that is divided.
        boxes
            The blocks.
        owners
            The rank of each block.
        ranks
            The number of ranks.

        Returns
        -------
        Layout
            The layout.

        Raises
        ------
        LayoutError
            If a cell is not in exactly one box; the message names the first such cell.
        """
        layout = cls(
            domain, ranks, np.array([b.lo for b in boxes]), np.array([b.hi for b in boxes]), np.array(owners, np.int64)
        )
        layout.check()
        return layout

    def _whole_everywhere(self) -> bool:
        owners = np.array_equal(self.owner, np.arange(self.ranks))
        return owners and bool((self.lo == self.domain.lo).all() and (self.hi == self.domain.hi).all())

    def check(self) -> None:
        """Raise LayoutError unless every cell of the domain is in exactly one block, and no other cell is in any.

        A replicated layout was checked when it was made.
        """
        fault = None if self.replicated else first_miscount(self.lo, self.hi, self.domain)
        if fault is not None:
            cell, count = fault
            found = f"{count} blocks" if count else "no block"
            raise LayoutError(
                f"every cell of the domain {self.domain} must be in exactly one block; cell {cell} is in {found}",
                remedy="make the boxes of the layout tile the domain without gaps or overlaps",
            )

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.domain.ndim

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self.owner)

    def box(self, block: int) -> Box:
        """Return the cells of one block.

        Parameters
        ----------
        block
            The number of the block.

        Returns
        -------
        Box
            Its cells.
        """
        return Box(tuple(self.lo[block].tolist()), tuple(self.hi[block].tolist()))

    def blocks_of(self, rank: int) -> list[int]:
        """Return the blocks that a rank owns, ascending.

        Parameters
        ----------
        rank
            The rank.

        Returns
        -------
        list of int
            Numbers of its blocks.
        """
        order, starts = self._by_owner
        owned: list[int] = order[starts[rank] : starts[rank + 1]].tolist()
        return owned

    def cells_of(self, rank: int) -> int:
        """Return the number of cells that a rank owns.

        Parameters
        ----------
        rank
            The rank.

        Returns
        -------
        int
            The number of its cells.
        """
        mine = self.blocks_of(rank)
        return int(volumes(self.lo[mine], self.hi[mine]).sum())

    def cells(self) -> Ints:
        """Return the number of cells of every rank, shape (ranks,).

        Returns
        -------
        ndarray
            Numbers of cells, int64 of shape (ranks,).
        """
        totals = np.zeros(self.ranks, np.int64)
        np.add.at(totals, self.owner, volumes(self.lo, self.hi))
        return totals

    def overlapping(self, box: Box) -> Ints:
        """Return the blocks that share a cell with ``box``, ascending.

        Parameters
        ----------
        box
            The box.

        Returns
        -------
        ndarray
            Numbers of blocks, int64.
        """
        return self.index.overlapping(box)

    def coarsen(self, factor: Widths = 2) -> Layout:
        """Return the layout of the coarse grid: coarse cell ``c`` goes to the owner of fine cell ``factor * c``.

        Blocks that hold no such cell vanish, so block numbers may differ from those here.

        Parameters
        ----------
        factor
            Fine cells in a coarse one, one number or one for each axis.

        Returns
        -------
        Layout
            The layout of the coarse grid.
        """
        step = np.broadcast_to(np.asarray(factor, np.int64), (self.ndim,))
        lo, hi = -(-self.lo // step), -(-self.hi // step)
        kept = (lo < hi).all(axis=1)
        domain = self.domain.coarsen(factor)
        return Layout(domain, self.ranks, lo[kept], hi[kept], self.owner[kept], self.replicated)

    def gather(self, ranks_to_use: int | Iterable[int]) -> Layout:
        """Return a layout of the same cells on fewer ranks.

        Each of these ranks takes over the blocks of a run of ranks, merged into larger boxes where possible. A number
        spreads that many ranks evenly, each the first of its run, so that its own cells stay in place.

        Parameters
        ----------
        ranks_to_use
            The ranks, or their number.

        Returns
        -------
        Layout
            The layout on fewer ranks.
        """
        if self.replicated:
            raise LayoutError("every rank has the whole domain already", remedy="gather the layout it was moved from")
        if isinstance(ranks_to_use, int):
            count = min(ranks_to_use, self.ranks)
            used = [-(-i * self.ranks // count) for i in range(count)]
        else:
            used = sorted(set(ranks_to_use))
        if not used:
            raise LayoutError("gathering a layout needs at least one rank")
        owner = np.array(used, np.int64)[self.owner * len(used) // self.ranks]
        return Layout(self.domain, self.ranks, *merge(self.lo, self.hi, owner))

    def cut_at(self, places: Sequence[Sequence[int] | None]) -> Layout:
        """Return the layout with its cuts moved to the nearest of the ``places`` that each axis allows (None: any).

        Parameters
        ----------
        places
            For each axis the indices of allowed cuts, or None.

        Returns
        -------
        Layout
            The layout with moved cuts.
        """
        if self.replicated or all(found is None for found in places):
            return self
        lo, hi = self.lo.copy(), self.hi.copy()
        for axis, found in enumerate(places):
            if found is not None:
                allowed = np.unique([self.domain.lo[axis], *found, self.domain.hi[axis]])
                upper = (allowed[1:] + allowed[:-1] + 2) // 2  # the first position that is nearer to the upper place
                for ends in (lo, hi):
                    ends[:, axis] = allowed[np.searchsorted(upper, ends[:, axis], side="right")]
        if np.array_equal(lo, self.lo) and np.array_equal(hi, self.hi):
            return self
        kept = (lo < hi).all(axis=1)
        return Layout(self.domain, self.ranks, lo[kept], hi[kept], self.owner[kept])

    def aligned(self, granule: int = GRANULE) -> bool:
        """Return whether the innermost axis is cut only at multiples of ``granule``, not counting the domain's ends.

        Parameters
        ----------
        granule
            The number of cells.

        Returns
        -------
        bool
            True if all cuts of the innermost axis lie on multiples.
        """
        cuts = self.lo[:, -1]
        return not (cuts[cuts != self.domain.lo[-1]] % granule).any()

    @cached_property
    def cuts(self) -> tuple[tuple[int, ...], ...]:
        """Indices along each axis at which some block begins, the domain's low end first."""
        return tuple(tuple(np.unique(self.lo[:, a]).tolist()) for a in range(self.ndim))

    @cached_property
    def index(self) -> BoxIndex:
        """Spatial index behind :meth:`overlapping`, built on first use."""
        return BoxIndex.build(self.lo, self.hi)

    @cached_property
    def _by_owner(self) -> tuple[Ints, Ints]:
        """All blocks sorted by owner, and the position at which each rank's blocks begin."""
        order = np.argsort(self.owner, kind="stable")
        return order, np.searchsorted(self.owner[order], np.arange(self.ranks + 1))

    @cached_property
    def _digest(self) -> str:
        ends = np.array([self.domain.lo, self.domain.hi, (self.ranks,) * self.ndim])
        arrays = (ends, self.lo, self.hi, self.owner)
        return hashlib.sha256(b"".join(a.astype("<i8").tobytes() for a in arrays)).hexdigest()

    def fingerprint(self) -> str:
        """Return the SHA-256 of the layout's contents, in hexadecimal: equal on all machines for equal layouts.

        Returns
        -------
        str
            The digest in hexadecimal.
        """
        return self._digest

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Layout) and self._digest == other._digest)

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        lengths = " x ".join(map(str, self.domain.shape))
        parts = [len(c) for c in self.cuts]
        pattern = f" ({' x '.join(map(str, parts))})" if self.ndim > 1 and math.prod(parts) == len(self) else ""
        cells = self.cells()
        load = f"{cells.max()}" if cells.min() == cells.max() else f"{cells.min()} to {cells.max()}"
        ranks, count = _counted(self.ranks, "rank"), _counted(len(self), "block")
        return f"Layout({lengths} on {ranks}: {count}{pattern}, {load} cells a rank)"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
