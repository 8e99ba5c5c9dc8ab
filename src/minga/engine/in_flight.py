"""Moves that travel while other operations go on: where their messages leave, and where they are waited for.

A move starts where what it copies is complete and the place it goes to is free, and is finished before the first
operation that looks at that place or stores there. So with two buffers in turn the next panel travels while the present
one is used, though a Program only says what is read and written. Nothing is in flight where a loop begins a round.
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
    """The same items, with moves in two parts where something can be done between them."""
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
    """Every move in two parts, the second where its target is needed first."""
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
    """First parts as early as they can be, but not while an earlier move has yet to be finished: its messages would
    arrive later for it."""
    out: list[Item] = []
    for item in items:
        place = len(out)
        while isinstance(item, StartMove) and place and _may_pass(item.move, out[place - 1]):
            place -= 1
        out.insert(place, item)
    return out


def _may_pass(move: Move, before: Item) -> bool:
    """Whether a move may start before an item that was recorded before it."""
    if isinstance(before, StartMove | FinishMove):
        return False
    use = _use(before)
    if move.number is not None and move.number is use.register:
        return False
    return not (use.touches(move.target) or use.changes(move.source))


def _joined(items: Sequence[Item]) -> list[Item]:
    """Moves between whose parts nothing is left, in one."""
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
    """What an item looks at and what it stores; `renamed`: whose slots it renames; `anything`: nobody knows."""

    reads: frozenset[Slot] = frozenset()
    writes: frozenset[Slot] = frozenset()
    renamed: frozenset[Field] = frozenset()
    register: Register | None = None
    anything: bool = False

    def changes(self, slot: Slot) -> bool:
        return self.anything or slot in self.writes or slot.field in self.renamed

    def touches(self, slot: Slot) -> bool:
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
