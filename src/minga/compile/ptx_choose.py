"""Choice of a kernel's schedule on a GPU by estimated work: straight, tiles of locals in shared memory, or a march."""

from __future__ import annotations

import functools
from math import prod
from typing import Final, Literal, cast, get_args

from minga.compile.ptx_frame import Offsets
from minga.compile.ptx_locals import inline_locals
from minga.compile.ptx_march import LOAD, March, march_of, operations, results
from minga.compile.ptx_tile import Tile, tile_of
from minga.errors import KernelError
from minga.lang.graph import KernelGraph, topological

Schedule = Literal["auto", "straight", "tile", "march"]

_GAIN: Final = 0.8
"""Share of the other schedules' work below which a march is chosen: small boxes have too few planes for it."""
_FILL: Final = 20
"""Number of operations that compute the place of one value of a local in a tile."""
_BLOCK: Final = (4, 64)
"""Cells of a block of threads of a straight kernel, along the last two axes."""


@functools.lru_cache(maxsize=1024)
def choose(graph: KernelGraph, schedule: Schedule = "auto") -> Tile | March | None:
    """Choose the data that the kernel keeps in shared memory and registers; None if each thread works alone.

    A schedule that the kernel cannot use is replaced by the next simpler one: a march by tiles, tiles by none.
    """
    if schedule not in get_args(Schedule):
        raise KernelError(
            f"no schedule {schedule!r} for GPUs",
            where=graph.where,
            remedy=f"use one of {', '.join(get_args(Schedule))}",
        )
    tile = tile_of(graph) if schedule in ("auto", "tile", "march") else None
    march = march_of(graph) if schedule in ("auto", "march") else None
    if schedule == "auto" and (tile is not None or march is not None):
        least = straight_work(graph)
        if tile is not None and tile_work(tile) < least:
            least = tile_work(tile)
        else:
            tile = None
        if march is not None and march.work >= _GAIN * least:
            march = None
    return tile if march is None else march


def tile_work(tile: Tile) -> float:
    """Return the operations per cell of a tile, on the scale of `straight_work`."""
    return tile.work + _FILL * sum(prod(room.shape) for room in tile.rooms) / prod(tile.shape)


@functools.lru_cache(maxsize=1024)
def straight_work(graph: KernelGraph) -> float:
    """Return the operations per cell of the straight schedule, on the scale of `Tile.work` and `March.work`."""
    graph = inline_locals(graph)
    roots = results(graph)
    rows: dict[tuple[int, Offsets], tuple[int, int]] = {}
    shape = (1,) * max(0, graph.ndim - 2) + _BLOCK[2 - min(2, graph.ndim) :]
    for node in topological(roots):
        if node.op != "read":
            continue
        param, _, offsets = cast(tuple[int, Offsets, Offsets], node.data)
        axes = graph.params[param].axes
        if not axes:
            continue
        lengths = [shape[axis] for axis in axes]
        for row in range(lengths[-2] if len(axes) > 1 else 1):
            place = offsets[:-1] if len(axes) == 1 else (*offsets[:-2], offsets[-2] + row)
            first, last = rows.get((param, place), (offsets[-1], offsets[-1]))
            rows[param, place] = min(first, offsets[-1]), max(last, offsets[-1])
    width = shape[-1]
    loaded = sum(width + last - first for first, last in rows.values())
    return operations(roots) + LOAD * loaded / prod(shape)
