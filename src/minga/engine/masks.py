"""Cells behind a mask, which operations skip where that does not change results.

Operations recorded inside `with program.masked(solid)` may skip the cells in which `solid` is not 0. The engine scans
masks when a Program begins and after every operation that stores one, and builds a list of the remaining boxes
(`minga.engine.mask_kernels`). After a list has changed, an operation runs once on all cells, so that the cells skipped
from then on hold the values it stores there. Everything is local to a rank: nothing is exchanged, and values do not
depend on how blocks are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from minga.compile.abi import offsets
from minga.engine import command as cmd
from minga.engine import mask_kernels as words
from minga.engine.backend import KernelCall, copies_of
from minga.engine.exchange import box_place
from minga.engine.helpers import mask_functions
from minga.engine.program import Apply, Call, Move, Operation, Repeat, Rotate, When, flat
from minga.engine.regions import Part, lead_field, own_box
from minga.engine.schedule import FinishMove, Item, Stage
from minga.engine.tiles import PER_WORKER, TILE_BYTES
from minga.space.box import Box
from minga.space.field import Field, Slot

if TYPE_CHECKING:
    from minga.engine.bind import Binder

__all__ = ["Masks", "settle_masks"]

PRICE: Final = 48
"""Cost of a kernel call for one box, in cells; measured as half the cost per cell of an elliptic operator."""


def settle_masks(operations: Sequence[Operation], *, possible: bool = True) -> list[Operation]:
    """Return the same operations with masks kept only where they are useful, or nowhere if they are not `possible`."""
    rotated = {item for operation in flat(operations) if isinstance(operation, Rotate) for item in operation.fields}

    def settled(operation: Operation) -> Operation:
        match operation:
            case Apply() if operation.mask is not None and not (possible and _fits(operation, rotated)):
                return replace(operation, mask=None)
            case Repeat() | When():
                return replace(operation, body=[settled(inner) for inner in operation.body])
            case _:
                return operation

    return [settled(operation) for operation in operations]


def _fits(apply: Apply, rotated: set[Field]) -> bool:
    """Return True if an operation can be computed box by box and the fields it stores do not rotate."""
    graph, mask = apply.graph, apply.mask
    assert mask is not None
    if apply.replicated or apply.grid != mask.field.grid or mask.field in rotated:
        return False
    if apply.cells.sparse or apply.cells.active is not None or graph.locals or lead_field(apply).on is not None:
        return False
    if graph.order is not None and graph.order.kind != "red-black" and _along(apply) is None:
        return False
    if any(reduction.kind in ("argmax", "argmin") for reduction in graph.reductions):
        return False  # skipping cells could change which of several equal values is found first
    stored = {apply.slot(number).field for number in graph.written}
    return not stored & (rotated | {mask.field})


def _along(apply: Apply) -> int | None:
    """Return the axis along which an operation's cells are ordered, if there is exactly one such axis."""
    order = apply.graph.order
    if order is None or order.kind == "red-black":
        return None
    axes = [axis for axis, direction in enumerate(order.directions) if direction]
    along = axes[0] if len(axes) == 1 and order.across == "exact" else None
    return along if along is None or apply.grid.ndim - along < words.AXES else None


Key = tuple[Slot, int, tuple[int, ...], int | None]
"""Mask, block, centre of the computed points, and the axis along which they are ordered."""


def _key(apply: Apply, block: int) -> Key:
    assert apply.mask is not None
    return apply.mask, block, lead_field(apply).centre, _along(apply)


@dataclass(slots=True, eq=False)
class Remaining:
    """The points of one block that remain behind a mask.

    points        points of the block
    scan, target  argument words of scan_mask, and the list
    known         0 if the mask has to be scanned again
    fresh         for each kernel using the list, the address of a word that is non-zero if it must compute all cells
    """

    points: Box
    scan: np.ndarray
    target: np.ndarray
    known: np.ndarray
    fresh: list[int] = field(default_factory=list)

    def around(self, binder: Binder, call: KernelCall, command: cmd.Command) -> list[cmd.Command]:
        """Return commands for a kernel call that skips the cells of its box that do not remain."""
        assert isinstance(command, cmd.Kernel)
        ndim, where = call.graph.ndim, offsets(call.graph)
        one = call.args.copy()
        one[where.tile : where.tile + ndim] = [b - a for a, b in zip(call.lo, call.hi, strict=True)]
        one[where.tiles : where.tiles + ndim] = 1
        boxes = copies_of(one, binder.backend.workers)
        args = np.zeros(words.CALL_WORDS, np.int64)
        fresh = binder.address(np.ones(1, np.int64))
        args[: words.LO] = (
            command.function, command.args, binder.address(boxes), boxes[0].nbytes, fresh, binder.address(self.target),
            command.tiles, ndim,
        )  # fmt: skip
        args[words.LO : words.LO + ndim], args[words.HI : words.HI + ndim] = call.lo, call.hi
        self.fresh.append(fresh)
        if command.site is not None:
            command.site.words.append(args[:1])
        masked = replace(command, function=mask_functions().masked_call, args=binder.address(args), site=None)
        return [masked, cmd.Set(fresh, 0)]

    def close(self, binder: Binder) -> None:
        """Store the table of the kernels that use the list, once all of them are known."""
        table = binder.address(np.array([*self.fresh, 0], np.int64))
        self.scan[words.CALLS], self.scan[words.CALL_FLAGS] = len(self.fresh), table


@dataclass(slots=True, eq=False)
class Masks:
    """The masks of one bound Program."""

    remaining: dict[Key, Remaining] = field(default_factory=dict)

    @classmethod
    def of(cls, binder: Binder, applies: Iterable[Apply]) -> Masks:
        """Prepare the operations that skip cells, and scan their masks."""
        made = cls()
        for apply in applies:
            for block in binder.blocks(apply):
                key, points = _key(apply, block), own_box(apply, block, binder.storage)
                if key not in made.remaining and not points.empty:
                    made.remaining[key] = _remaining(binder, key, points)
        binder.emit(*(cmd.Set(binder.address(each.known), 0) for each in made.remaining.values()))
        made._look(binder, made.remaining)
        return made

    def _look(self, binder: Binder, keys: Iterable[Key]) -> None:
        for key in keys:
            args, label = binder.address(self.remaining[key].scan), f"mask {key[0].field.name}"
            binder.emit(cmd.Kernel(mask_functions().scan_mask, args, 1, cmd.Category.COMPUTE, label))

    def after(self, binder: Binder, item: Item) -> None:
        """Scan the masks again that an item stored."""
        if self.remaining:
            changed = _stored(item)
            self._look(binder, [key for key in self.remaining if key[0] in changed or key[0].field in changed])

    def of_part(self, apply: Apply, block: int | None, part: Part) -> Remaining | None:
        """Return what remains of a part of a block, or None if all of it must be computed."""
        if apply.mask is None or block is None or any(part.shift) or not part.reductions:
            return None
        found = self.remaining.get(_key(apply, block))
        if found is None or not found.points.contains(Box(part.lo, part.hi)):
            return None
        return found

    def close(self, binder: Binder) -> None:
        """Complete all lists; to be called when everything is emitted."""
        for each in self.remaining.values():
            each.close(binder)


def _stored(item: Item) -> set[Slot | Field]:
    """Return the slots and fields that an item has stored once it is complete."""
    match item:
        case Stage() if item.part != "shell":
            return {item.apply.slot(number) for number in item.apply.graph.written}
        case FinishMove():
            return {item.move.target}
        case Move():
            return {item.target}
        case Call():
            return set(item.writes)
        case Rotate():
            return set(item.fields)
        case _:
            return set()


def _remaining(binder: Binder, key: Key, points: Box) -> Remaining:
    """Allocate the memory and arguments of a list."""
    mask, block, centre, along = key
    arrays = binder.storage.stored(mask.field).blocks[block]
    cells, pad = arrays.owned, (1,) * (words.AXES - points.ndim)
    origin = (*(0 for _ in pad), *points.lo)
    shape, wide = (*pad, *cells.shape), (*pad, *points.shape)
    begin = points.lo[-1] // words.SEGMENT

    def segments(end: int) -> int:
        return -(-end // words.SEGMENT) - begin

    flags = np.ones((*(n + 2 for n in shape[:-1]), segments(cells.hi[-1]) + 2), np.uint8)
    grid = mask.field.grid
    for axis in range(grid.ndim):
        for end, there in ((0, cells.lo[axis] == 0), (-1, cells.hi[axis] == grid.shape[axis])):
            if there and not grid.periodic[axis]:
                flags[(slice(None),) * (axis + len(pad)) + (end,)] = 0
    across = segments(points.hi[-1])
    row_bytes = -(-(across + 1) // 8) * 8
    rows = np.zeros(prod(wide[:-1]) * row_bytes + 8, np.uint8)
    target = np.zeros(words.LIST_HEADER + words.BOX_WORDS * prod(wide[:-1]) * -(-across // 2), np.int64)
    known = np.zeros(1, np.int64)
    first = box_place(arrays, mask, cells)
    most = TILE_BYTES // 8
    if binder.backend.workers > 1:
        most = max(1024, min(most, points.size // (PER_WORKER * binder.backend.workers)))
    if along is not None:
        most = points.size  # lines stay whole
    scan = np.zeros(words.SCAN_WORDS, np.int64)
    for word, values in (
        (words.MASK_SLOT, (first.slot, first.offset)),
        (words.MASK_STRIDES, (*(0 for _ in pad), *first.strides[:-1])),
        (words.CELLS, shape), (words.POINTS, wide), (words.ORIGIN, origin),
        (words.CENTRE, (*(0 for _ in pad), *centre)),
        (words.SEGMENTS, (across, binder.address(flags))), (words.FLAG_STRIDES, flags.strides[:-1]),
        (words.ROWS, (binder.address(rows), row_bytes, binder.address(target), binder.address(known))),
        (words.MOST_ROWS, (max(1, most // wide[-1]), max(1, most // (wide[-1] * wide[-2])), PRICE)),
        (words.ALONG, (0 if along is None else along + len(pad),)),
    ):  # fmt: skip
        scan[word : word + len(values)] = values
    return Remaining(points, scan, target, known)
