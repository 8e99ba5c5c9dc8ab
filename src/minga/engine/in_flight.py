"""Moves in flight during other operations: selection of the points where messages are sent and waited for.

A move starts where its source is complete and its target is free, and is finished before the first operation that reads
or stores the target. With two alternating buffers, the next panel thus travels while the present one is used, although
a Program only states what is read and written. Nothing is in flight at the start of a loop's iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from minga.engine.program import Call, Let, Move, Rotate
from minga.engine.schedule import Begin, Boundaries, Branch, Finish, FinishMove, Item, Loop, Stage, StartMove
from minga.space.field import Field, Register, Slot

__all__ = ["moves_in_flight"]


def moves_in_flight(items: Sequence[Item]) -> list[Item]:
    """Return the same items, with moves split in two where other items can run between the two parts."""
    return _joined(_started_early(_finished_late([_inside(item) for item in items])))


def _inside(item: Item) -> Item:
    match item:
        case Loop():
            rounds = tuple(moves_in_flight(each) for each in item.rounds)
            return replace(item, rounds=rounds, restore=moves_in_flight(item.restore))
        case Branch():
            return replace(item, body=moves_in_flight(item.body))
        case _:
            return item


def _finished_late(items: Sequence[Item]) -> list[Item]:
    """Split every move in two, the second part placed just before its target is first needed."""
    behind: list[Item] = []
    for item in reversed(items):
        if not isinstance(item, Move):
            behind.insert(0, item)
            continue
        place = next((n for n, later in enumerate(behind) if _use(later).touches(item.target)), len(behind))
        behind.insert(place, FinishMove(item))
        behind.insert(0, StartMove(item))
    return behind


def _started_early(items: Sequence[Item]) -> list[Item]:
    """Place first parts as early as possible, but not before an earlier move is finished.

    They would delay its messages otherwise.
    """
    out: list[Item] = []
    for item in items:
        place = len(out)
        while isinstance(item, StartMove) and place and _may_pass(item.move, out[place - 1]):
            place -= 1
        out.insert(place, item)
    return out


def _may_pass(move: Move, before: Item) -> bool:
    """Return True if a move may start before an item that was recorded before it."""
    if isinstance(before, StartMove | FinishMove):
        return False
    use = _use(before)
    if move.number is not None and move.number is use.register:
        return False
    return not (use.touches(move.target) or use.changes(move.source))


def _joined(items: Sequence[Item]) -> list[Item]:
    """Join the parts of moves that have nothing left between them."""
    out: list[Item] = []
    for item in items:
        last = out[-1] if out else None
        if isinstance(item, FinishMove) and isinstance(last, StartMove) and last.move is item.move:
            out[-1] = item.move
        else:
            out.append(item)
    return out


@dataclass(frozen=True, slots=True)
class _Use:
    """Slots that an item reads and stores.

    `renamed` holds the fields whose slots it renames, `register` the register it sets; `anything` is True if its
    accesses are unknown.
    """

    reads: frozenset[Slot] = frozenset()
    writes: frozenset[Slot] = frozenset()
    renamed: frozenset[Field] = frozenset()
    register: Register | None = None
    anything: bool = False

    def changes(self, slot: Slot) -> bool:
        """Return True if the item may change a slot."""
        return self.anything or slot in self.writes or slot.field in self.renamed

    def touches(self, slot: Slot) -> bool:
        """Return True if the item may read or change a slot."""
        return slot in self.reads or self.changes(slot)


_ANYTHING: Final = _Use(anything=True)


def _use(item: Item) -> _Use:
    match item:
        case Stage():
            apply = item.apply
            slots = {operand for operand in apply.operands if isinstance(operand, Slot)}
            mask = set() if apply.mask is None else {apply.mask}
            return _Use(frozenset(slots | mask), frozenset(apply.slot(param) for param in apply.graph.written))
        case Begin() | Finish():
            slots = {*item.exchange.start, *item.exchange.finish}
            return _Use(frozenset(slots), frozenset(slots))
        case Boundaries():
            return _Use(frozenset(item.ghosts.others), frozenset({item.slot}))
        case StartMove() | FinishMove():
            source = {item.move.source} if isinstance(item, StartMove) else set()
            return _Use(frozenset(source), frozenset({item.move.target}))
        case Move():
            return _Use(frozenset({item.source}), frozenset({item.target}))
        case Let():
            return _Use(register=item.register)
        case Rotate():
            return _Use(renamed=frozenset(item.fields))
        case Call() if item.reads or item.writes:
            return _Use(frozenset(item.reads), frozenset(item.writes))
        case _:
            return _ANYTHING
