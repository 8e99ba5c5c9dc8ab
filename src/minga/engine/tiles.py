"""Division of a box into tiles: the units that workers take, and between which messages are polled."""

from __future__ import annotations

from collections.abc import Sequence

from minga.lang.graph import KernelGraph
from minga.lang.types import itemsize

TILE_BYTES = 1 << 18
"""Bytes of a field per tile: they take some tens of microseconds, long compared with taking a tile from the counter."""
PER_WORKER = 4


def tile_shape(graph: KernelGraph, shape: Sequence[int], workers: int) -> tuple[int, ...]:
    """Return full rows, cut along the outer axes. Ordered kernels are one tile, because their cells are dependent."""
    if graph.order is not None and graph.order.kind != "red-black":
        return tuple(shape)
    if graph.locals:
        from minga.compile.llvm import suggest_tile

        return tuple(suggest_tile(graph, shape, workers=workers))
    cells = 1
    for length in shape:
        cells *= length
    most = TILE_BYTES // max(itemsize(param.dtype) for param in graph.params)
    target = max(1024, min(most, cells // (workers * PER_WORKER))) if workers > 1 else most
    tile = list(shape)
    for axis in range(len(shape) - 1):
        inner = 1
        for length in shape[axis + 1 :]:
            inner *= length
        tile[axis] = max(1, min(shape[axis], target // max(1, inner)))
        if tile[axis] > 1 or inner <= target:
            break
    return tuple(tile)
