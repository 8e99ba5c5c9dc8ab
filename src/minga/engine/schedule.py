"""Schedules: the operations of a Program with exchanges and boundary fills in place, for any layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from minga.engine.compiled_call import CompiledCall
from minga.engine.program import Apply, Call, Let, Move, Rotate
from minga.engine.reach import Ghosts, Reach
from minga.space.field import Register, Slot


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """An operation on every block, extended by `extent`.

    A split stage appears twice: its shell (the cells that `exchange` sends) before the exchange begins, its interior
    after.
    """

    apply: Apply
    extent: Reach
    part: Literal["all", "shell", "interior"] = "all"
    exchange: HaloExchange | None = None


@dataclass(frozen=True, slots=True, eq=False)
class HaloExchange:
    """A halo exchange of several slots, named as at its start and at its finish (a rotation may lie between them)."""

    start: tuple[Slot, ...]
    finish: tuple[Slot, ...]
    reaches: tuple[Reach, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Begin:
    """The start of an exchange."""

    exchange: HaloExchange


@dataclass(frozen=True, slots=True, eq=False)
class Finish:
    """The end of an exchange."""

    exchange: HaloExchange


@dataclass(frozen=True, slots=True, eq=False)
class StartMove:
    """The start of a move's messages. From here on its source may change."""

    move: Move


@dataclass(frozen=True, slots=True, eq=False)
class FinishMove:
    """The end of a move's messages. Until here nothing reads its target."""

    move: Move


@dataclass(frozen=True, slots=True, eq=False)
class Boundaries:
    """Filling of the ghost cells of a slot beyond the domain."""

    slot: Slot
    ghosts: Ghosts


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop over `rounds` (lists of items, executed in turn); `restore` re-establishes validity on leaving early."""

    rounds: tuple[list[Item], ...]
    limit: int | Register | None
    until: Let | None
    restore: list[Item]
    expected: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """Items that are executed only if a condition holds."""

    body: list[Item]
    condition: Let


Item = Stage | Begin | Finish | Boundaries | Loop | Branch | Let | Rotate | Move | StartMove | FinishMove | Call
Valid = dict[Slot, Reach]


@dataclass(slots=True)
class Schedule:
    """The result of inference.

    items   stages, exchanges and other items in order
    valid   validity at the end
    widest  the widest reach of every slot, which must be allocated
    active  operations on active tiles only
    masked  operations that skip cells behind a mask
    """

    items: list[Item]
    valid: Valid
    widest: dict[Slot, Reach]
    active: tuple[Apply, ...] = ()
    masked: tuple[Apply, ...] = ()


def sets_register(item: Item, register: Register) -> bool:
    """Return True if an item may change a register's value."""
    match item:
        case Let():
            return item.register.key == register.key
        case Stage():
            return any(result.key == register.key for result in item.apply.results)
        case Call(function=CompiledCall() as function):
            return function.banded is None
        case Call():
            return True
        case Loop():
            inside = [inner for items in (*item.rounds, item.restore) for inner in items]
            return any(sets_register(inner, register) for inner in inside)
        case Branch():
            return any(sets_register(inner, register) for inner in item.body)
    return False
