"""Time levels that operations store in part: the cells that the next level takes over from the present one.

Slot `next` of a field that rotates holds an old level until something is stored there. Operations that advance part of
a field (a box, a colour, every n-th cell, a branch that is not always taken) leave that old level in the other cells,
and `rotate` would make it the present one. These cells are therefore copied from `now` before the first of the
operations. Operations that only adjust `next`, such as a source or a wall of given values, do not cause a copy.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from minga.engine.operations import Apply, Call, Move, Operation, Repeat, Rotate, When, flat
from minga.errors import ProgramError
from minga.lang.graph import Store, topological
from minga.lang.kernel import Kernel
from minga.space.box import Box
from minga.space.field import Field, Slot

__all__ = ["CopyPoint", "check_levels", "keep", "kept_cells", "untouched"]


@dataclass(frozen=True, slots=True)
class CopyPoint:
    """The position of a copy: before operation `number` of a list, of the cells in some boxes."""

    operations: list[Operation]
    number: int
    boxes: list[Box]


@functools.cache
def keep(ndim: int) -> Kernel:
    """Return the kernel that copies cells from one level to another."""
    here = (0,) * ndim

    def keep(now: Any, new: Any) -> None:
        new[here] = now[here]

    return Kernel(keep)


def kept_cells(item: Field, stack: Sequence[list[Operation]]) -> CopyPoint | None:
    """Return the copy that must precede `rotate(item)` at the end of the operations recorded so far, or None.

    `stack` holds the lists that are being recorded, the innermost last. Raise ProgramError if the copy would overwrite
    values that an operation uses.
    """
    span = list(_since_rotation(item, stack))
    stores = [(inner, operation) for _, operation in span for inner in flat([operation]) if _stores(inner, item.next)]
    branches = _in_branches([operation for _, operation in span])
    doubtful = {o for o in branches if isinstance(o, Apply) and not _uses(o, item.next)}
    if not any(_advances(inner, item, doubtful=inner in doubtful) for inner, _ in stores):
        return None
    left = _outside(_points(item), _covered(item.next, [operation for _, operation in span]))
    if not left:
        return None
    for inner, _ in stores:
        advances = _advances(inner, item, doubtful=inner in doubtful)
        if isinstance(inner, Apply) and advances and _uses(inner, item.next):
            if any(not (inner.region & box).empty for box in left):
                raise ProgramError(
                    f"rotate({item.name}): apply({inner.label}) stores some cells of {item.next!r} from the values "
                    "that they held before, and the other cells would have no values",
                    where=inner.graph.where or None,
                    remedy="store all cells of a box, rotate in the branch that stores, or declare another slot for "
                    "the level before",
                )
    _check_before_loop(item, stack, left)
    first = next(n for n, (_, operation) in enumerate(span) if any(_stores(i, item.next) for i in flat([operation])))
    _check_kept(item, [operation for _, operation in span[first:]], left)
    (operations, number), _ = span[first]
    return CopyPoint(operations, number, left)


def _check_kept(item: Field, operations: Sequence[Operation], left: Sequence[Box]) -> None:
    """Raise ProgramError if operations after the copy change the values that were copied."""
    for operation in flat(operations):
        if not _stores(operation, item.now):
            continue
        if isinstance(operation, Apply) and all((operation.region & box).empty for box in left):
            continue
        label = operation.label if isinstance(operation, Apply | Call) else "move"
        raise ProgramError(
            f"rotate({item.name}): {label!r} changes {item.now!r} in cells that {item.next!r} has already taken "
            "over, because nothing advances them: the change would be lost",
            where=(operation.graph.where or None) if isinstance(operation, Apply) else None,
            remedy=f"record it before the operations that store {item.next!r}, or change {item.next!r} instead",
        )


def _check_before_loop(item: Field, stack: Sequence[list[Operation]], left: Sequence[Box]) -> None:
    """Raise ProgramError if the copy would overwrite values stored before a loop that rotates the field."""
    for operation in flat(_before_loop(item, stack)):
        if not _stores(operation, item.next):
            continue
        if isinstance(operation, Apply) and all((operation.region & box).empty for box in left):
            continue
        label = operation.label if isinstance(operation, Apply | Call) else "move"
        raise ProgramError(
            f"rotate({item.name}): {label!r} stores {item.next!r} before the loop, whose operations advance a part of "
            "it: the other cells keep the present values, so that the stored values would be lost",
            where=(operation.graph.where or None) if isinstance(operation, Apply) else None,
            remedy=f"rotate {item.name} before the loop, store {item.next!r} inside it, or use another field",
        )


def check_levels(operations: Sequence[Operation]) -> None:
    """Raise ProgramError if repeated operations first rotate a field and then advance a part of it."""
    everything = list(flat(operations))
    for rotation in (operation for operation in operations if isinstance(operation, Rotate)):
        for item in rotation.fields:
            if any(_stores(operation, item.next) for operation in everything):
                continue
            late = next((o for o in everything if isinstance(o, Apply) and _advances(o, item, 0)), None)
            if late is not None and _outside(_points(item), _covered(item.now, operations)):
                raise ProgramError(
                    f"{late.label!r} stores a part of {item.now!r} after {item.name!r} was rotated, so the other cells "
                    "hold values of an earlier level",
                    where=late.graph.where or None,
                    remedy=f"store {item.name}.next from {item.name}.now, and rotate afterwards: then they keep their "
                    "value",
                )


def untouched(item: Field, operations: Sequence[Operation]) -> list[Box]:
    """Return the cells of a rotating field that no operation stores in any slot, although other cells are stored."""
    everything = list(flat(operations))
    slots = [item.slot(index) for index in range(item.slots)]
    storing = [operation for operation in everything if any(_stores(operation, slot) for slot in slots)]
    if not any(_rotates(operation, item) for operation in everything):
        return []
    if not storing or not all(isinstance(operation, Apply) for operation in storing):
        return []  # the cells that a call stores are unknown
    return _outside(_points(item), [box for slot in slots for box in _covered(slot, storing)])


def _since_rotation(
    item: Field, stack: Sequence[list[Operation]]
) -> Iterator[tuple[tuple[list[Operation], int], Operation]]:
    """Yield the operations after a field's last rotation with their positions, in order, also from around branches."""
    parts: list[list[tuple[tuple[list[Operation], int], Operation]]] = []
    skip = 0  # the branch that is being recorded is the last operation of the list around it
    for depth in range(len(stack) - 1, -1, -1):
        operations = stack[depth]
        part = [((operations, number), operations[number]) for number in range(len(operations) - skip)]
        rotated = [
            number
            for number, (_, operation) in enumerate(part)
            if any(_rotates(inner, item) for inner in flat([operation]))
        ]
        parts.append(part[rotated[-1] + 1 :] if rotated else part)
        if rotated or depth == 0 or not isinstance(stack[depth - 1][-1], When):
            break
        skip = 1
    for part in reversed(parts):
        yield from part


def _before_loop(item: Field, stack: Sequence[list[Operation]]) -> list[Operation]:
    """Return the operations between the last rotation of a field and the loop that is being recorded.

    There are none if the field has been rotated inside the loop.
    """
    found: list[Operation] = []
    looped = False
    for depth in range(len(stack) - 1, -1, -1):
        # The loop or branch that is being recorded is the last operation of the list around it.
        operations = stack[depth] if depth == len(stack) - 1 else stack[depth][:-1]
        rotated = [n for n, o in enumerate(operations) if any(_rotates(inner, item) for inner in flat([o]))]
        part = operations[rotated[-1] + 1 :] if rotated else operations
        found = [*part, *found] if looped else found
        if rotated:
            break
        looped = looped or (depth > 0 and isinstance(stack[depth - 1][-1], Repeat))
    return found


def _rotates(operation: Operation, item: Field) -> bool:
    return isinstance(operation, Rotate) and item in operation.fields


def _stores(operation: Operation, slot: Slot) -> bool:
    match operation:
        case Apply():
            return any(operation.operands[number] == slot for number in operation.graph.written)
        case Call():
            return slot in operation.writes
        case Move():
            return operation.target == slot
        case _:
            return False


def _in_branches(operations: Sequence[Operation]) -> set[Operation]:
    """Return the operations in branches, which need not be taken."""
    branches = (operation for operation in flat(operations) if isinstance(operation, When))
    return {inner for branch in branches for inner in flat(branch.body)}


def _advances(operation: Operation, item: Field, index: int = 1, *, doubtful: bool = False) -> bool:
    """Return True if an operation stores some cells of a slot with values computed from another level of the field.

    An operation that is ``doubtful``, because it may not be executed, may also store all of them. One in a branch that
    computes them from the old values is not doubtful: if it is not executed, the two levels change places.
    """
    if not isinstance(operation, Apply) or operation.grid != item.grid:
        return False
    if operation.region == _points(item) and not operation.cells.sparse and not doubtful:
        return False
    stores = [s for s in operation.graph.stores if operation.operands[s.param] == item.slot(index)]
    return any(_level(operation, store) for store in stores)


def _level(operation: Apply, store: Store) -> bool:
    """Return True if the stored value depends on another slot of the same field."""
    slot = operation.operands[store.param]
    assert isinstance(slot, Slot)
    found = (operation.operands[n.data[0]] for n in topological([store.value]) if n.op == "read")
    locals_ = any(n.op == "local" for n in topological([store.value]))
    others = set(operation.operands) if locals_ else set(found)
    return any(isinstance(o, Slot) and o.field is slot.field and o != slot for o in others)


def _uses(operation: Apply, slot: Slot) -> bool:
    """Return True if an operation reads a slot."""
    return any(operation.operands[n.data[0]] == slot for n in operation.graph.nodes() if n.op == "read")


def _adjusts(operation: Apply, slot: Slot) -> bool:
    """Return True if an operation only adjusts the values of a slot, as a source does; others then store its cells."""
    stores = (store for store in operation.graph.stores if operation.operands[store.param] == slot)
    return _uses(operation, slot) and not any(_level(operation, store) for store in stores)


def _points(item: Field) -> Box:
    return item.project(item.points) if item.replicated else item.points


def _covered(slot: Slot, operations: Sequence[Operation]) -> list[Box]:
    """Return boxes all of whose cells the operations store in any case."""
    boxes: list[Box] = []
    colours: dict[Box, set[int]] = {}
    for operation in operations:
        match operation:
            case Repeat(body=body, limit=int() as limit, until=None) if limit > 0:
                boxes += _covered(slot, body)
            case Move() if operation.target == slot and not operation.boxes:
                boxes.append(_points(slot.field))
            case Apply() if _stores(operation, slot):
                if not _dense(operation, slot) or _adjusts(operation, slot):
                    continue
                order = operation.graph.order
                if order is not None and order.kind == "red-black":
                    colours.setdefault(operation.region, set()).add(operation.colour)
                else:
                    boxes.append(operation.region if operation.grid == slot.field.grid else _points(slot.field))
    return boxes + [box for box, found in colours.items() if len(found) == 2]


def _dense(operation: Apply, slot: Slot) -> bool:
    """Return True if an operation stores every cell of its region, or of one colour of it.

    On a coarser grid, all fine cells of the region's cells must be stored.
    """
    if operation.cells.stride is not None or operation.cells.points is not None:
        return False
    stores = [s for s in operation.graph.stores if operation.operands[s.param] == slot]
    if operation.grid == slot.field.grid:
        return any(set(s.strides) == {1} and not any(s.offsets) for s in stores)
    cells = 1
    for stride in stores[0].strides:
        cells *= stride
    return operation.region.shape == operation.extent and len({s.offsets for s in stores}) == cells


def _outside(space: Box, boxes: Sequence[Box]) -> list[Box]:
    """Return the cells of a box that lie in none of the other boxes, as boxes."""
    left = [] if space.empty else [space]
    for box in boxes:
        left = [part for whole in left for part in _without(whole, box)]
    return left


def _without(whole: Box, box: Box) -> Iterator[Box]:
    """Yield the parts of a box outside another one: slabs below and above along each axis in turn."""
    inner = whole & box
    if inner.empty:
        yield whole
        return
    lo, hi = list(whole.lo), list(whole.hi)
    for axis in range(whole.ndim):
        for low, high in ((lo[axis], inner.lo[axis]), (inner.hi[axis], hi[axis])):
            if low < high:
                yield Box((*lo[:axis], low, *lo[axis + 1 :]), (*hi[:axis], high, *hi[axis + 1 :]))
        lo[axis], hi[axis] = inner.lo[axis], inner.hi[axis]
