"""Bands: the cells that kernel calls of several rounds access, and widths at which they stay in a cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, prod
from typing import Final

from minga.compile.abi import offsets
from minga.compile.caches import second_cache, third_cache
from minga.compile.rows import USUAL
from minga.engine.backend import KernelCall
from minga.engine.skew import Position, Span, Touch
from minga.lang.analysis import reads
from minga.lang.graph import KernelGraph

__all__ = ["best_bands", "budgets", "slots", "spreads", "touch"]

CACHE_SHARE: Final = 0.75
"""Share of a core's cache that the rows between the first and the last round of a block may fill."""
FARTHER: Final = 6, 12
"""Bytes of an L3 cache that these rows may fill, as multiples of those that they may fill of an L2 cache."""
EDGE: Final = 0.3
"""Cost of reading a cell beside a band again, from a farther cache, compared with reading it from memory."""
LEAST_ROW: Final = 256
"""Fewest cells of a column of a grid with two axes, whose rows are contiguous."""
LEAST_COLUMN: Final = 4
"""Fewest rows along axis 1 of a column of a grid with more axes."""
CALL_CELLS: Final = 8192
"""Cells, at least, that a call computes in a band."""
CALL_BYTES: Final = 128 << 10
"""Bytes of all arrays of the cells that suffice on a grid with more axes, and that are needed, too, on one with two:
small cells take little time, and large ones long."""


def touch(call: KernelCall) -> Touch | None:
    """Return what a call accesses; None if an access is at a stride."""
    found = _spans(call.graph)
    if found is None:
        return None
    arrays = slots(call)
    read: dict[int, Span] = {}
    written: dict[int, Span] = {}
    for into, spans in zip((read, written), found, strict=True):
        for param, span in spans.items():
            known = into.get(arrays[param], span)
            into[arrays[param]] = _hull(known, span)
    return Touch(call.lo, call.hi, read, written)


def _spans(graph: KernelGraph) -> tuple[dict[int, Span], dict[int, Span]] | None:
    """Return the spans of offsets at which each parameter is read and stored; None if one is accessed at a stride."""
    accesses = ([], [])  # type: tuple[list[tuple[int, tuple[int, ...], tuple[int, ...]]], ...]
    accesses[0].extend((p, strides, offset) for p, found in reads(graph).items() for strides, offset in found)
    accesses[1].extend((store.param, store.strides, store.offsets) for store in graph.stores)
    spans: tuple[dict[int, Span], dict[int, Span]] = ({}, {})
    for into, given in zip(spans, accesses, strict=True):
        for param, strides, offset in given:
            if len(graph.params[param].axes) < graph.ndim:
                continue
            if any(stride != 1 for stride in strides):
                return None
            into[param] = _hull(into.get(param, (offset, offset)), (offset, offset))
    return spans


def _hull(one: Span, other: Span) -> Span:
    return tuple(map(min, one[0], other[0])), tuple(map(max, one[1], other[1]))


def slots(call: KernelCall) -> list[int]:
    """Return the address of the slot of each parameter, which identifies an array."""
    return [int(call.args[word]) for word in offsets(call.graph).fields]


def budgets(workers: int) -> list[float]:
    """Return the bytes of a core's caches that a block may use: of the L2 cache, then more and more of the L3 cache."""
    near = CACHE_SHARE * second_cache()
    return [near, *(near * factor for factor in FARTHER if near * factor * workers <= third_cache())]


def best_bands(
    size: Sequence[int],
    cell: float,
    kept: float,
    spreads: Sequence[Sequence[float]],
    workers: int,
    budget: float,
    depths: Sequence[int] | None = None,
    *,
    slanted: bool = False,
) -> tuple[int, int, int] | None:
    """Return the shape of bands and the number of rounds that need the fewest bytes from memory for a round.

    Parameters
    ----------
    size
        Cells of the block along each axis.
    cell
        Bytes of a cell of all arrays.
    kept
        Bytes of locals that a round keeps from row to row of axis 0, for each cell of such a row.
    spreads
        For each number of rounds, from 1 on, the rows along axes 0 and 1 that are in use at a time.
    workers
        Threads that compute a column each, with a cache of their own.
    budget
        Bytes of caches that a thread may use.
    depths
        Numbers of rounds; by default all powers of two.
    slanted
        Whether a row takes cache for the cells of a single round only, since later rounds lie farther left.

    Returns
    -------
    tuple of int or None
        Rows of a band, number of columns and number of rounds; None if the caches hold the whole block, or no several
        rounds.
    """
    if prod(size) * cell <= budget * workers:
        return None
    row, least, together = (1, LEAST_ROW, USUAL) if len(size) == 2 else (prod(size[2:]), LEAST_COLUMN, 1)
    least_cells = (max if len(size) == 2 else min)(CALL_CELLS, int(CALL_BYTES / cell))
    best: tuple[float, tuple[int, int, int]] | None = None
    for depth in depths or [2**k for k in range(1, len(spreads).bit_length())]:
        deep, wide = spreads[depth - 1]
        for columns in (workers * n for n in range(1, max(1, size[1] // (least * workers)) + 1)):
            width = ceil((size[1] + wide) / columns)
            edge = wide if columns > 1 else 0
            rows = -(-least_cells // (width * row))
            rows = -(-rows // together) * together
            cost = (1 + EDGE * edge / width) / depth
            beside = spreads[0][1] if slanted else edge
            used = ((deep + rows) * cell * (width + beside) + 2 * depth * kept * width) * row
            if used <= budget and (best is None or cost < best[0]):
                best = cost, (rows, columns, depth)
    return None if best is None else best[1]


def spreads(
    touches: Sequence[Touch], places: Sequence[Sequence[Position]], weights: Mapping[int, float]
) -> list[float]:
    """Return the rows along axes 0 and 1 between the first cell that calls read and the last that they compute.

    This is the mean over the arrays, weighted by their bytes: many are only read at the computed cell.
    """
    found = []
    for axis, along in enumerate(places):
        lags = [place.place for place in along[: len(touches)] if not place.at_once]
        reach: dict[int, int] = {}
        for touch in touches:
            for array, (low, high) in touch.reads.items():
                reach[array] = max(high[axis] - low[axis], reach.get(array, 0))
        mean = sum(weights.get(array, 0.0) * own for array, own in reach.items()) / sum(weights.values())
        found.append(max(lags, default=0) - min(lags, default=0) + mean)
    return found
