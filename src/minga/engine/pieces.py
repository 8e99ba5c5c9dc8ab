"""Division of an ordered kernel's box into consecutive calls, between which messages in flight are polled.

The cells of a lexicographic sweep depend on those before them, so it is no set of tiles. It may pause after any row:
its calls cover the same cells in the same order, and their results have the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from minga.engine.regions import Part
from minga.lang.analysis import flops
from minga.lang.graph import KernelGraph

__all__ = ["in_pieces"]

_OPERATIONS: Final = 1 << 18
"""Floating-point operations of a piece: some tenths of a millisecond, since such kernels are not vectorised."""
_MOST: Final = 256
"""Number of pieces that a part has at most, or little more."""


def in_pieces(graph: KernelGraph, part: Part) -> Iterator[Part]:
    """Yield a part of a lexicographic kernel in consecutive pieces of full rows; of other kernels the part itself."""
    shape = [hi - lo for lo, hi in zip(part.lo, part.hi, strict=True)]
    ordered = graph.order is not None and graph.order.kind in ("lexicographic", "boundary-first")
    if not ordered or part.stride is not None or min(shape) <= 0:
        yield part
        return
    cells = max(_OPERATIONS // max(1, flops(graph)), math.prod(shape) // _MOST)
    yield from _cut(part, 0, shape, cells)


def _cut(part: Part, axis: int, shape: list[int], cells: int) -> Iterator[Part]:
    """Yield a part in pieces of about so many cells, cut along an axis or the ones after it, but never the last."""
    inner = math.prod(shape[axis + 1 :])
    if axis == len(shape) - 1:
        yield part
        return
    length = max(1, cells // inner)
    for lo in range(part.lo[axis], part.hi[axis], length):
        hi = min(lo + length, part.hi[axis])
        piece = replace(
            part, lo=(*part.lo[:axis], lo, *part.lo[axis + 1 :]), hi=(*part.hi[:axis], hi, *part.hi[axis + 1 :])
        )
        if inner > cells:
            yield from _cut(piece, axis + 1, shape, cells)
        else:
            yield piece
