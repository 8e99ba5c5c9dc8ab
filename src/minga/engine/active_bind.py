"""Binding of operations on active tiles, and of halo exchanges that track which tiles changed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from minga.engine import active_kernels as words
from minga.engine import command as cmd
from minga.engine.active import Activity, TileCut
from minga.engine.active_kernels import TILES_HEADER
from minga.engine.backend import LINE_WORDS, Backend, Host, copies_of
from minga.engine.helper_kernels import COPY_WORDS, HEADER_WORDS
from minga.engine.helpers import BoxAddress, Copy, active_tiles, copy_args
from minga.engine.program import Apply
from minga.engine.regions import Part
from minga.engine.tiles import PER_WORKER, TILE_BYTES
from minga.lang.graph import KernelGraph
from minga.lang.types import itemsize
from minga.space.box import Box, Point
from minga.space.field import Slot

if TYPE_CHECKING:
    from minga.engine.bind import Binder

SEGMENT_TILES: Final = 64
"""Maximum number of tiles of a row that one worker takes at a time."""


def bind_begin(binder: Binder, apply: Apply, activity: Activity) -> None:
    """Emit the command that clears the flags of the slot about to be stored."""
    stored = apply.slot(min(apply.graph.written)).index
    args = [
        binder.address(activity.state),
        binder.address(activity.counters),
        binder.backend.workers,
        len(activity.blocks),
    ]
    for flags in activity.blocks.values():
        table = binder.address(flags.table)
        args += [table + 8 * stored, flags.arrays[0].nbytes // 8]
    place = binder.address(np.array(args, np.int64))
    host = _host(binder.backend)
    binder.emit(cmd.Kernel(host.helpers.begin_step, place, 1, cmd.Category.OTHER, "begin step"))


def bind_active(
    binder: Binder,
    apply: Apply,
    activity: Activity,
    block: int,
    part: Part,
    operands: Sequence[tuple[int, int, tuple[int, ...]]],
    scalars: Mapping[str, int],
) -> None:
    """Emit a kernel call that examines the flags of one box's tiles and computes the active ones."""
    graph, flags, host = apply.graph, activity.blocks[block], _host(binder.backend)
    shape = tuple(b - a for a, b in zip(part.lo, part.hi, strict=True))
    if min(shape) <= 0:
        return
    first = [flags.cut.tile(axis, low) for axis, low in enumerate(part.lo)]
    tiles = [flags.cut.tile(axis, high - 1) - first[axis] + 1 for axis, high in enumerate(part.hi)]
    segments = -(-tiles[-1] // SEGMENT_TILES)
    rows = _rows(graph, flags.cut, tiles, host.workers)
    # Upper bound of the cells computed in one call.
    run = min(shape[-1], SEGMENT_TILES * flags.cut.size[-1] + flags.cut.largest[-1])
    largest = [*map(min, flags.cut.largest[:-1], shape[:-1]), run]
    kept = int(np.prod(largest))
    if rows > 1:
        largest[-2] = min(shape[-2], rows * flags.cut.size[-2] + flags.cut.largest[-2])
    call = binder.arguments(graph, part, largest, operands, scalars, apply.extent)
    calls = copies_of(call, host.workers)
    stored = [(number, apply.slot(number)) for number in sorted(graph.written)]
    kept *= sum(itemsize(slot.field.dtype) for _, slot in stored)
    saved = np.zeros((host.workers, -(-kept // (8 * LINE_WORDS)) * LINE_WORDS), np.int64)

    now = binder.address(flags.table)
    after = now + 8 * stored[0][1].index
    header = np.zeros(TILES_HEADER, np.int64)
    header[: words.ROWS + 1] = (
        host.compiled(graph, False).address, binder.address(calls), calls[0].nbytes, now, after,
        binder.address(activity.counters), binder.address(saved), saved[0].nbytes, len(stored), segments,
        SEGMENT_TILES, binder.address(activity.state), flags.wake, rows,
    )  # fmt: skip
    cut, box = flags.cut, flags.cut.box
    axes = [
        (
            first[a], tiles[a], cut.size[a], box.lo[a], cut.count[a], box.hi[a],
            part.lo[a], part.hi[a], flags.strides[a], activity.reach[a],
        )
        for a in range(graph.ndim)
    ]  # fmt: skip
    arrays = []
    for number, _ in stored:
        slot, start, strides = operands[number]
        size = itemsize(graph.params[number].dtype)
        arrays.append((slot, start * size, *(stride * size for stride in strides)))
    args = np.concatenate([header, np.ravel(axes), np.ravel(arrays)]).astype(np.int64)
    units = segments * int(np.prod(tiles[:-2])) * (-(-tiles[-2] // rows) if len(tiles) > 1 else 1)
    function = active_tiles(graph.ndim)
    host.scratch = max(host.scratch, host.compiled(graph, False).scratch_bytes(largest))
    binder.emit(
        cmd.Kernel(
            function, binder.address(args), units, cmd.Category.COMPUTE, apply.label, binder.polls, block=binder.timed
        )
    )


def _rows(graph: KernelGraph, cut: TileCut, tiles: Sequence[int], workers: int) -> int:
    """Return the number of rows of tiles that a worker takes at a time."""
    if graph.ndim == 1:
        return 1
    size = max(itemsize(param.dtype) for param in graph.params)
    row = min(tiles[-1], SEGMENT_TILES) * cut.size[-1] * cut.size[-2] * size
    fair = int(np.prod(tiles[:-1])) // (PER_WORKER * workers)
    return max(1, min(TILE_BYTES // row, fair if workers > 1 else tiles[-2]))


@dataclass(frozen=True, slots=True)
class NotedCopy:
    """A copy into ghost cells that is recorded in flags.

    source  address of the word that holds the address of the source's flags, and the byte offset of a flag
    target  such an address for the target, and the byte offsets of flags
    """

    copy: Copy
    source: tuple[int, int]
    target: tuple[int, list[int]]


def noted_copies(
    copy: Copy, box: Box, slot: Slot, activity: Activity, target: int, source: int | None = None, shift: Point = ()
) -> Iterator[NotedCopy]:
    """Yield a copy into a box of a slot's ghost cells, cut at the ends of tiles on both sides.

    target, source  blocks; the source is None for data brought by a message, and where ghost cells may be older
                    than two steps
    shift           index i - shift of the source becomes index i
    """
    into = activity.blocks[target]
    whence = None if source is None else activity.blocks[source]
    ends = []
    for axis in range(box.ndim):
        cuts = set(into.cut.cuts(axis))
        if whence is not None:
            cuts |= {cut + shift[axis] for cut in whence.cut.cuts(axis)}
        inside = sorted(cut for cut in cuts if box.lo[axis] < cut < box.hi[axis])
        ends.append(list(itertools.pairwise([box.lo[axis], *inside, box.hi[axis]])))
    for sides in itertools.product(*ends):
        piece = Box(tuple(a for a, _ in sides), tuple(b for _, b in sides))
        moved = [a - b for a, b in zip(piece.lo, box.lo, strict=True)]
        part = Copy(_moved(copy.source, moved), _moved(copy.target, moved), piece.shape, copy.itemsize)
        known = 0, 0
        if whence is not None:
            tile = [whence.cut.tile(a, piece.lo[a] - shift[a]) for a in range(box.ndim)]
            known = int(whence.table.ctypes.data) + 8 * slot.index, whence.place(tile)
        woken = into.decided_by(piece, activity.reach)
        yield NotedCopy(part, known, (int(into.table.ctypes.data) + 8 * slot.index, woken))


def noted_commands(copies: Sequence[NotedCopy], backend: Backend, label: str) -> list[cmd.Command]:
    """Return one command for all copies of a phase."""
    if not copies:
        return []
    args = copy_args([noted.copy for noted in copies])
    records = args[HEADER_WORDS:].reshape(-1, COPY_WORDS)
    lists = np.concatenate([[len(noted.target[1]), *noted.target[1]] for noted in copies]).astype(np.int64)
    start = int(lists.ctypes.data)
    for record, noted in zip(records, copies, strict=True):
        record[16:20] = (*noted.source, noted.target[0], start)
        start += 8 * (1 + len(noted.target[1]))
    host = _host(backend)
    host.keep.append(lists)
    return [cmd.Kernel(host.helpers.copy_noted, host.address(args), len(copies), cmd.Category.PACK, label)]


def _host(backend: Backend) -> Host:
    """Return the host backend, the only one that skips tiles."""
    assert isinstance(backend, Host)
    return backend


def _moved(place: BoxAddress, cells: Sequence[int]) -> BoxAddress:
    return replace(place, offset=place.offset + sum(n * s for n, s in zip(cells, place.strides, strict=True)))
