"""Ways to cut a domain into blocks: slabs, Cartesian parts, bisection, several blocks a rank, or by name in a case.

The innermost axis is cut only at multiples of a granule, 64 cells by default (exact sums add runs of 64 cells, so a cut
inside a run would split it in two); ``granule=1`` lifts that if no float is summed. Other axes are cut anywhere. If
there are more parts than granules, some ranks own nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from minga.errors import LayoutError, suggest
from minga.space.box import Box, Point
from minga.space.boxes import Ints
from minga.space.layout import GRANULE, Layout

__all__ = [
    "best_cartesian",
    "bisection",
    "blocks",
    "cartesian",
    "cut_positions",
    "factorings",
    "parse_layout",
    "slabs",
]

MOST_BLOCKS: Final = 1 << 21
"""Largest number of blocks of a layout; more take minutes to be placed and compared."""


def cut_positions(low: int, high: int, weights: Sequence[float], granule: int = 1) -> Ints:
    """Return the ends of parts of ``[low, high)`` in proportion to ``weights``, shape (parts + 1,).

    Each inner end is the multiple of ``granule`` nearest to its exact place (the upper of two), so equal weights give
    parts that differ by at most one granule.
    """
    shares = _weights(weights)
    before = np.concatenate(([0.0], np.cumsum(shares)))
    ends = _nearest(low + (high - low) * (before / before[-1]), granule)
    ends[0], ends[-1] = low, high
    return np.clip(ends, low, high)


def slabs(
    domain: Box, ranks: int, axis: int = 0, weights: Sequence[float] | None = None, granule: int = GRANULE
) -> Layout:
    """Cut slabs across one axis, one for each rank, with thickness in proportion to ``weights`` (not negative).

    Parameters
    ----------
    domain
        The box that is divided.
    ranks
        The number of ranks.
    axis
        The number of the axis that is cut.
    weights
        The relative work of each rank; by default equal.
    granule
        Cuts of the innermost axis lie on multiples of this many cells.

    Returns
    -------
    Layout
        The layout.
    """
    parts = [1] * domain.ndim
    parts[_axis(axis, domain)] = ranks
    along = [weights if a == axis % domain.ndim else None for a in range(domain.ndim)]
    return cartesian(domain, parts, along, granule)


def cartesian(
    domain: Box,
    parts: Sequence[int],
    weights: Sequence[Sequence[float] | None] | None = None,
    granule: int = GRANULE,
) -> Layout:
    """Cut ``parts[a]`` parts along each axis, with ranks numbered in row-major order.

    ``weights`` has for each axis one number for each part, or None for equal parts.

    Parameters
    ----------
    domain
        The box that is divided.
    parts
        The number of parts along each axis.
    weights
        For each axis one number a part, or None for equal parts.
    granule
        Cuts of the innermost axis lie on multiples of this many cells.

    Returns
    -------
    Layout
        The layout.
    """
    if len(parts) != domain.ndim or min(parts) < 1:
        raise LayoutError(f"a Cartesian layout needs a number of parts for each of {domain.ndim} axes; found {parts}")
    ends = []
    for axis, count in enumerate(parts):
        along = weights[axis] if weights is not None else None
        if along is not None and len(along) != count:
            raise LayoutError(f"axis {axis} is cut into {count} parts, but has {len(along)} weights")
        step = granule if axis == domain.ndim - 1 else 1
        ends.append(cut_positions(domain.lo[axis], domain.hi[axis], [1.0] * count if along is None else along, step))
    lo = _row_major([e[:-1] for e in ends])
    hi = _row_major([e[1:] for e in ends])
    kept = np.flatnonzero((lo < hi).all(axis=1))
    return Layout(domain, math.prod(parts), lo[kept], hi[kept], kept)


def best_cartesian(domain: Box, ranks: int, granule: int = GRANULE, halo: int = 1) -> Layout:
    """Return the Cartesian layout whose largest block, with a halo of ``halo`` cells on the cut axes, is smallest.

    Parameters
    ----------
    domain
        The box that is divided.
    ranks
        The number of ranks.
    granule
        Cuts of the innermost axis lie on multiples of this many cells.
    halo
        Cells of the halo.

    Returns
    -------
    Layout
        The layout.
    """

    def cost(parts: Point) -> tuple[int, Point]:
        extended = 1
        for axis, count in enumerate(parts):
            extended *= longest[axis, count] + (2 * halo if count > 1 else 0)
        return extended, parts[::-1]

    candidates: list[Point] = list(factorings(ranks, domain.ndim))
    longest: dict[tuple[int, int], int] = {}
    for axis, count in {(a, n) for parts in candidates for a, n in enumerate(parts)}:
        step = granule if axis == domain.ndim - 1 else 1
        ends = cut_positions(domain.lo[axis], domain.hi[axis], [1.0] * count, step)
        longest[axis, count] = int(np.diff(ends).max())
    best: Point = min(candidates, key=cost)
    return cartesian(domain, best, granule=granule)


def bisection(domain: Box, weights: Sequence[float], granule: int = GRANULE) -> Layout:
    """Cut one block for each rank, in proportion to ``weights``, by halving the ranks and cutting their box.

    Parameters
    ----------
    domain
        The box that is divided.
    weights
        The relative work of each rank.
    granule
        Cuts of the innermost axis lie on multiples of this many cells.

    Returns
    -------
    Layout
        The layout.
    """
    lo, hi = _bisect(domain, _weights(weights), granule)
    kept = np.flatnonzero((lo < hi).all(axis=1))
    return Layout(domain, len(weights), lo[kept], hi[kept], kept)


def blocks(
    domain: Box, ranks: int, blocks_per_rank: int, weights: Sequence[float] | None = None, granule: int = GRANULE
) -> Layout:
    """Cut ``blocks_per_rank`` blocks for each rank, near one another, together in proportion to ``weights``.

    Parameters
    ----------
    domain
        The box that is divided.
    ranks
        The number of ranks.
    blocks_per_rank
        The number of blocks of a rank.
    weights
        The relative work of each rank; by default equal.
    granule
        Cuts of the innermost axis lie on multiples of this many cells.

    Returns
    -------
    Layout
        The layout.
    """
    if blocks_per_rank < 1:
        raise LayoutError(f"a rank needs at least one block; found {blocks_per_rank} blocks a rank")
    if ranks * blocks_per_rank > MOST_BLOCKS:
        raise LayoutError(
            f"{blocks_per_rank} blocks on each of {ranks} ranks are {ranks * blocks_per_rank}, more than {MOST_BLOCKS}",
            remedy=f"give each rank at most {MOST_BLOCKS // ranks}" if ranks <= MOST_BLOCKS else "take fewer ranks",
        )
    shares = np.repeat(_weights([1.0] * ranks if weights is None else weights), blocks_per_rank)
    lo, hi = _bisect(domain, shares, granule)
    kept = np.flatnonzero((lo < hi).all(axis=1))
    return Layout(domain, ranks, lo[kept], hi[kept], kept // blocks_per_rank)


_OPTIONS = (
    "slabs (across the first axis), slabs:AXIS, cartesian (the best), cartesian:2x3 (parts an axis), "
    "bisection, blocks:NUMBER (several blocks a rank), single (all on rank 0)"
)


def parse_layout(text: str, domain: Box, ranks: int, granule: int = GRANULE) -> Layout:
    """Return the layout that a text in a case names, such as ``"slabs"``, ``"cartesian:2x3"`` or ``"blocks:4"``.

    Parameters
    ----------
    text
        The description.
    domain
        The box that is divided.
    ranks
        The number of ranks.
    granule
        Cuts of the innermost axis lie on multiples of this many cells.

    Returns
    -------
    Layout
        The layout.

    Raises
    ------
    LayoutError
        If the description is invalid.
    """
    kind, _, detail = text.strip().lower().partition(":")
    numbers = [int(n) for n in detail.split("x")] if re.fullmatch(r"\d+(x\d+)*", detail) else []
    match kind, numbers, bool(detail) and not numbers:
        case "slabs", [], False:
            return slabs(domain, ranks, granule=granule)
        case "slabs", [axis], False:
            return slabs(domain, ranks, axis, granule=granule)
        case "cartesian", [], False:
            return best_cartesian(domain, ranks, granule)
        case "cartesian", [*parts], False:
            if math.prod(parts) != ranks or len(parts) != domain.ndim:
                raise LayoutError(
                    f"layout {text!r} has {math.prod(parts)} parts on {len(parts)} axes, "
                    f"but the run has {ranks} ranks and the grid {domain.ndim} axes",
                    remedy=f"give {domain.ndim} numbers whose product is {ranks}, or just 'cartesian'",
                )
            return cartesian(domain, parts, granule=granule)
        case "bisection", [], False:
            return bisection(domain, [1.0] * ranks, granule)
        case "blocks", [count], False:
            return blocks(domain, ranks, count, granule=granule)
        case "single", [], False:
            return Layout.single(domain, ranks)
    close = suggest(kind, ("slabs", "cartesian", "bisection", "blocks", "single"))
    hint = f"did you mean {close!r}? " if close and close != kind else ""
    raise LayoutError(f"{text!r} is not a layout", remedy=f"{hint}Write one of: {_OPTIONS}")


def _bisect(domain: Box, shares: np.ndarray, granule: int) -> tuple[Ints, Ints]:
    """Return the boxes of all leaves, shape (leaves, ndim), including empty ones."""
    leaves, ndim = len(shares), domain.ndim
    before = np.concatenate(([0.0], np.cumsum(shares)))
    out_lo, out_hi = np.empty((leaves, ndim), np.int64), np.empty((leaves, ndim), np.int64)
    lo, hi = np.array([domain.lo]), np.array([domain.hi])
    first, last = np.array([0]), np.array([leaves])
    while len(first):
        middle = (first + last) // 2
        total = before[last] - before[first]
        share = np.divide(before[middle] - before[first], total, out=np.zeros(len(first)), where=total > 0)
        axis, cut = _best_cut(lo, hi, share, granule)
        low_hi, high_lo = hi.copy(), lo.copy()
        rows = np.arange(len(first))
        low_hi[rows, axis], high_lo[rows, axis] = cut, cut
        whole = last - first == 1
        out_lo[first[whole]], out_hi[first[whole]] = lo[whole], hi[whole]
        split = ~whole
        lo, hi = np.concatenate((lo[split], high_lo[split])), np.concatenate((low_hi[split], hi[split]))
        first, last = (
            np.concatenate((first[split], middle[split])),
            np.concatenate((middle[split], last[split])),
        )
    return out_lo, out_hi


def _best_cut(lo: Ints, hi: Ints, share: np.ndarray, granule: int) -> tuple[Ints, Ints]:
    """Return for each box the axis to cut and the index to cut at, so that about ``share`` of its cells lie below."""
    length = np.maximum(hi - lo, 0)
    ideal = lo + share[:, None] * length
    cut = _nearest(ideal, 1)
    cut[:, -1] = _nearest(ideal[:, -1], granule)
    cut = np.clip(cut, lo, np.maximum(lo, hi))
    across = np.stack([np.prod(np.delete(length, a, axis=1), axis=1) for a in range(lo.shape[1])], axis=1)
    cost = (np.abs(cut - ideal) + 1.0) * across
    # A cut at an end leaves one half empty; it is used only if no axis has a better one.
    inside = (lo < cut) & (cut < hi)
    cost[~inside & inside.any(axis=1, keepdims=True)] = np.inf
    axis = np.argmin(cost, axis=1)
    return axis, cut[np.arange(len(lo)), axis]


def _nearest(place: np.ndarray, granule: int) -> Ints:
    if granule < 1:
        raise LayoutError(f"a granule is at least one cell; found {granule}")
    return np.floor(place / granule + 0.5).astype(np.int64) * granule


def _weights(weights: Sequence[float] | np.ndarray) -> np.ndarray:
    shares = np.asarray(weights, np.float64)
    if shares.ndim != 1 or not len(shares) or not np.isfinite(shares).all() or (shares < 0).any() or not shares.any():
        raise LayoutError(
            "weights must be finite numbers, none negative and not all zero", where=f"weights {np.array2string(shares)}"
        )
    return shares


def _axis(axis: int, domain: Box) -> int:
    if not -domain.ndim <= axis < domain.ndim:
        raise LayoutError(f"slabs across axis {axis} of a domain with {domain.ndim} axes, counted from 0")
    return axis % domain.ndim


def _row_major(columns: Sequence[Ints]) -> Ints:
    """Return all combinations of one entry of each column, the last varying fastest, shape (combinations, columns)."""
    return np.stack([m.ravel() for m in np.meshgrid(*columns, indexing="ij")], axis=1)


def factorings(number: int, count: int) -> Iterator[Point]:
    """Yield all ways to write ``number`` as an ordered product of ``count`` factors."""
    if count == 1:
        yield (number,)
        return
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    for factor in sorted({*small, *(number // d for d in small)}):
        for rest in factorings(number // factor, count - 1):
            yield (factor, *rest)
