"""Ordered sweeps across blocks that give the bits of one process, executed as a pipeline.

A block waits for the updates of the blocks before it, computes, and sends its own. Each block is cut into units along
an axis, so that the next block can start when the first unit is complete. Old values, ahead of the sweep's front, are
in the halo already because they were exchanged before the sweep.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from minga.engine import command as cmd
from minga.engine.comm import Channel, Envelope
from minga.engine.exchange import box_place, copy_commands, dense_strides, word_holding
from minga.engine.helpers import BoxAddress
from minga.engine.helpers import Copy as BoxCopy
from minga.engine.program import Apply
from minga.engine.reduction import bind_reductions
from minga.engine.regions import Part, lead_field
from minga.errors import ProgramError
from minga.lang.analysis import reads
from minga.lang.graph import RUN
from minga.space.box import Box
from minga.space.field import Field, Slot
from minga.space.layout import Layout
from minga.space.ownership import Ownership
from minga.space.transfer import Copy

if TYPE_CHECKING:
    from minga.engine.bind import Binder

UNIT_CELLS = 1 << 14
"""Minimum number of cells in a unit of the pipeline, so that sending costs less than computing."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """Distance over which a cell reads values already updated by the sweep: widths below and above, for a slot."""

    slot: Slot
    lo: tuple[int, ...]
    hi: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of a block that is computed in one call."""

    block: int
    owner: int
    box: Box


def bind_sweep(binder: Binder, apply: Apply) -> None:
    """Emit the pipeline of one exact sweep."""
    lead = lead_field(apply)
    layout = binder.storage.layout(lead.grid)
    upstream = upstream_reads(apply, split_axes(layout))
    reductions = bind_reductions(binder, apply) if apply.graph.reductions else None
    addresses = reductions.accumulators if reductions else ()
    units = cut_units(apply, lead, layout, binder.comm.size)
    before = dependencies(units, upstream)
    rank = binder.comm.rank
    tags = {
        (source, target): binder.next_tag()
        for target, sources in enumerate(before)
        for source in sources
        if units[source].owner != units[target].owner
    }
    sending: list[Channel] = []
    for number in in_order(units, before):
        unit = units[number]
        sources = [s for s in before[number] if units[s].block != unit.block]
        if unit.owner == rank:
            for source in sources:
                _receive(binder, units[source], unit, upstream, tags.get((source, number), 0))
            box = unit.box & apply.region
            if not box.empty:
                part = Part.of(box)
                binder.part(apply, unit.block, part, addresses, binder.masks.of_part(apply, unit.block, part))
        if unit.owner == rank:
            sending += [
                _send(binder, unit, units[target], upstream, tags[number, target])
                for target in range(len(units))
                if (number, target) in tags
            ]
    # Sends complete at the end: waiting for one at once could deadlock with a rank that waits for a later one.
    for channel in sending:
        binder.emit(cmd.Wait(channel))
    if reductions is not None:
        binder.finish_reductions(apply, reductions)


def split_axes(layout: Layout) -> tuple[bool, ...]:
    """Return True for each axis along which the layout is cut."""
    whole = (layout.lo == np.array(layout.domain.lo)) & (layout.hi == np.array(layout.domain.hi))
    return tuple(bool(x) for x in ~whole.all(axis=0))


def upstream_reads(apply: Apply, split: Sequence[bool]) -> list[Upstream]:
    """Return the reads of updated neighbours. Raise ProgramError if two blocks would have to wait for each other."""
    order = apply.graph.order
    assert order is not None
    found: dict[Slot, tuple[list[int], list[int]]] = {}
    written = {apply.operands[p] for p in apply.graph.written}
    for param, accesses in reads(apply.graph).items():
        slot = apply.operands[param]
        if slot not in written or not isinstance(slot, Slot):
            continue
        for _, offsets in accesses:
            steps = [o * d for o, d in zip(offsets, order.directions, strict=True)]
            first = next((s for s in steps if s), 0)
            across = [s for s, cut in zip(steps, split, strict=True) if cut]
            aside = any(o and cut and not d for o, d, cut in zip(offsets, order.directions, split, strict=True))
            if (first < 0 and (any(s > 0 for s in across) or aside)) or (first > 0 and any(s < 0 for s in across)):
                raise ProgramError(
                    f"apply({apply.label}): the sweep reads {apply.graph.params[param].name}{list(offsets)}, so two "
                    "blocks of this layout would wait for each other row by row",
                    where=apply.graph.where,
                    remedy='cut the grid along one axis only (layout = "slabs"), or declare across="block"',
                )
            if first < 0:
                lo, hi = found.setdefault(slot, ([0] * len(offsets), [0] * len(offsets)))
                for axis, offset in enumerate(offsets):
                    lo[axis], hi[axis] = max(lo[axis], -offset), max(hi[axis], offset)
    return [Upstream(slot, tuple(lo), tuple(hi)) for slot, (lo, hi) in found.items()]


def cut_units(apply: Apply, lead: Field, layout: Layout, ranks: int) -> list[Unit]:
    """Cut blocks along one axis at positions common to all of them; keep whole blocks if there is one rank."""
    order = apply.graph.order
    assert order is not None
    ownership = Ownership.of(lead.grid, layout, lead.centre, None, lead.on)
    boxes = [ownership.owned(block) for block in range(len(layout))]
    split = split_axes(layout)
    # Along a free axis units are independent; along a swept axis that no cut crosses they run in order.
    axis = next((a for a, d in enumerate(order.directions) if not d and not split[a]), None)
    if axis is None:
        axis = next((a for a in range(len(split)) if order.directions[a] and not split[a] and a != 0), None)
    if ranks == 1 or axis is None or _crosses(apply, axis):
        return [Unit(b, int(layout.owner[b]), box) for b, box in enumerate(boxes)]
    extent = lead.points.shape[axis]
    cells = max(box.size for box in boxes)
    pieces = max(1, min(extent, cells // UNIT_CELLS, 4 * ranks))
    # Along the innermost axis whole runs of cells stay together, so that sums of floats stay bitwise identical.
    step = RUN if axis == len(split) - 1 else 1
    inside = {round((lead.points.lo[axis] + extent * k / pieces) / step) * step for k in range(1, pieces)}
    ends = lead.points.lo[axis], lead.points.hi[axis]
    edges = sorted({*ends, *(e for e in inside if ends[0] < e < ends[1])})
    units = []
    for block, box in enumerate(boxes):
        for low, high in itertools.pairwise(edges):
            lo, hi = list(box.lo), list(box.hi)
            lo[axis], hi[axis] = max(lo[axis], low), min(hi[axis], high)
            if lo[axis] < hi[axis]:
                units.append(Unit(block, int(layout.owner[block]), Box(tuple(lo), tuple(hi))))
    return units


def _crosses(apply: Apply, axis: int) -> bool:
    """Return True if an updated neighbour is read diagonally to an axis: units cut along it would need later ones."""
    order = apply.graph.order
    assert order is not None
    written = {apply.operands[p] for p in apply.graph.written}
    return any(
        offsets[axis] and any(o for a, o in enumerate(offsets) if a != axis)
        for param, accesses in reads(apply.graph).items()
        if apply.operands[param] in written
        for _, offsets in accesses
    ) or (not order.directions[axis] and any(
        offsets[axis]
        for param, accesses in reads(apply.graph).items()
        if apply.operands[param] in written
        for _, offsets in accesses
    ))  # fmt: skip


def dependencies(units: Sequence[Unit], upstream: Sequence[Upstream]) -> list[list[int]]:
    """Return, for every unit, the units whose updated cells it reads."""
    before: list[list[int]] = []
    for number, unit in enumerate(units):
        found = []
        for item in upstream:
            reach = unit.box.grow(item.lo, item.hi)
            found += [n for n, other in enumerate(units) if n != number and not (reach & other.box).empty]
        before.append(sorted(set(found)))
    return before


def in_order(units: Sequence[Unit], before: Sequence[Sequence[int]]) -> list[int]:
    """Return an order, the same on all ranks, in which every unit comes after the units it depends on."""
    waiting = [len(b) for b in before]
    after: list[list[int]] = [[] for _ in units]
    for number, sources in enumerate(before):
        for source in sources:
            after[source].append(number)
    ready = [n for n, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        number = heapq.heappop(ready)
        order.append(number)
        for follower in after[number]:
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, follower)
    if len(order) < len(units):
        raise ProgramError(
            "an ordered sweep finds blocks that wait for one another cyclically",
            remedy='use a layout of slabs or an uneven Cartesian one, or declare across="block"',
        )
    return order


def _copies(source: Unit, target: Unit, upstream: Sequence[Upstream]) -> list[tuple[Slot, Copy]]:
    result = []
    for item in upstream:
        box = target.box.grow(item.lo, item.hi) & source.box
        if not box.empty:
            result.append((item.slot, Copy(source.block, target.block, box, (0,) * box.ndim)))
    return result


def _send(binder: Binder, source: Unit, target: Unit, upstream: Sequence[Upstream], tag: int) -> Channel:
    copies = _copies(source, target, upstream)
    buffer = _buffer(copies, binder)
    word = word_holding(buffer, binder.backend)
    packed, used = [], 0
    for slot, copy in copies:
        size = np.dtype(slot.field.dtype).itemsize
        arrays = binder.storage.stored(slot.field).blocks[source.block]
        packed.append(
            BoxCopy(
                box_place(arrays, slot, copy.source_box),
                BoxAddress(word, used, dense_strides(copy, size)),
                copy.source_box.shape,
                size,
            )
        )
        used += copy.source_box.size * size
    channel = binder.comm.channel([Envelope(target.owner, buffer, len(copies))], [], tag)
    binder.channels.append(channel)
    binder.emit(*copy_commands(packed, binder.backend, "pack"), *binder.backend.settled(), cmd.Start(channel))
    return channel


def _receive(binder: Binder, source: Unit, target: Unit, upstream: Sequence[Upstream], tag: int) -> None:
    copies = _copies(source, target, upstream)
    local = source.owner == target.owner
    unpacked, used = [], 0
    buffer = _buffer(copies, binder)
    word = word_holding(buffer, binder.backend)
    for slot, copy in copies:
        size = np.dtype(slot.field.dtype).itemsize
        blocks = binder.storage.stored(slot.field).blocks
        target_place = box_place(blocks[target.block], slot, copy.source_box)
        if local:
            source_place = box_place(blocks[source.block], slot, copy.source_box)
        else:
            source_place = BoxAddress(word, used, dense_strides(copy, size))
            used += copy.source_box.size * size
        unpacked.append(BoxCopy(source_place, target_place, copy.source_box.shape, size))
    if not local:
        channel = binder.comm.channel([], [Envelope(source.owner, buffer)], tag)
        binder.channels.append(channel)
        binder.emit(cmd.Start(channel))
        binder.emit(cmd.Wait(channel))
    binder.emit(*copy_commands(unpacked, binder.backend, "unpack"))


def _buffer(copies: Sequence[tuple[Slot, Copy]], binder: Binder) -> np.ndarray:
    return binder.backend.message(sum(c.source_box.size * np.dtype(s.field.dtype).itemsize for s, c in copies))
