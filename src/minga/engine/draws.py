"""Detection of repeated random numbers: draws differ only if seed, mg.STEP, kernel, cell or draw differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from minga.engine.operations import Apply, Call, Let, Operation, Repeat, When, flat
from minga.space.field import SEED, STEP

__all__ = ["RepeatedDraw", "drawing", "repeated_draw"]

_ADVANCE: Final = "end the step with step.let(mg.STEP, mg.STEP + 1)"


@dataclass(frozen=True, slots=True)
class RepeatedDraw:
    """An operation that draws the same random numbers as before.

    Parameters
    ----------
    apply
        The operation.
    text
        Reason, as a clause that begins with the operation's name.
    remedy
        Instruction to correct it.
    """

    apply: Apply
    text: str
    remedy: str


def repeated_draw(operations: Sequence[Operation], *, looped: bool) -> RepeatedDraw | None:
    """Return an operation of a Program that draws random numbers again while mg.STEP is the same, or None.

    ``looped`` means that the operations are repeated, as steps are.
    """
    first = drawing(operations)
    if first is None:
        return None
    if looped and not any(map(_advances_step, flat(operations))):
        text = f"{first.label!r} draws random numbers, and no step changes mg.STEP, so that all steps draw the same"
        return RepeatedDraw(first, text, _ADVANCE)
    return _rounds(operations, [], looped=looped)


def drawing(operations: Sequence[Operation]) -> Apply | None:
    """Return the first operation that draws random numbers."""
    return next((o for o in flat(operations) if isinstance(o, Apply) and _draws(o)), None)


def _rounds(operations: Sequence[Operation], drawn: list[Apply], *, looped: bool) -> RepeatedDraw | None:
    """Return a repeated draw of operations, of which those after the last change of mg.STEP precede the next round."""
    return _again(operations, drawn) or (_again(operations, drawn) if looped else None)


def _again(operations: Sequence[Operation], drawn: list[Apply]) -> RepeatedDraw | None:
    found: RepeatedDraw | None = None
    for operation in operations:
        match operation:
            case Apply() if _draws(operation):
                if any(_same_numbers(operation, before) for before in drawn if before is not operation):
                    return _repeated(operation, "is applied twice")
                drawn.append(operation)
            case Repeat(body=body, limit=limit, until=until):
                inside = drawing(body)
                once = isinstance(limit, int) and limit <= 1
                if inside is not None and not once and not any(map(_advances_step, flat(body))):
                    return _repeated(inside, "is repeated")
                last = list(drawn)
                found = found or _rounds(body, last, looped=not once)
                # A loop until a condition holds may do no round; of others, the last round counts.
                certain = until is None and isinstance(limit, int) and limit > 0
                drawn[:] = last if certain else [*drawn, *(o for o in last if o not in drawn)]
            case When(body=body):
                found = found or _again(body, list(drawn))
            case _ if _advances_step(operation):
                drawn.clear()
            case _:
                pass
    return found


def _repeated(apply: Apply, how: str) -> RepeatedDraw:
    return RepeatedDraw(
        apply,
        f"{apply.label!r}, which draws random numbers, {how} while mg.STEP is the same, and draws the same numbers "
        "again",
        "change mg.STEP in between, step.let(mg.STEP, mg.STEP + 1); use a kernel of another name; or, if equal "
        "numbers are meant, store them in a field once",
    )


def _draws(operation: Apply) -> bool:
    return any(scalar.name == SEED.key for scalar in operation.graph.scalars)


def _advances_step(operation: Operation) -> bool:
    return isinstance(operation, Call) or (isinstance(operation, Let) and operation.register.key == STEP.key)


def _same_numbers(one: Apply, other: Apply) -> bool:
    """Return True if two operations draw for the same cells with the same key."""
    if one.label != other.label or one.grid != other.grid or (one.region & other.region).empty:
        return False
    return one.colour == other.colour and (one.cells == other.cells or not (one.cells.sparse or other.cells.sparse))
