"""Adjoint of a whole Program: what a step does, operation by operation, and its reversal.

A step is taken apart into operations on *buffers*, the slots as they are named when the step begins; rotations only
rename them. The reversal of an operation needs the values that it has read, unless it is linear; those that a later
operation of the step overwrites are kept in further fields, the *tape*. Operations on which no needed value depends are
left out of the step that fills the tape: for a linear step, all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from minga.engine.check import Operand
from minga.engine.operations import Apply, Call, Let, Move, Operation, Refresh, Repeat, Rotate, When
from minga.engine.program import Program
from minga.errors import ProgramError
from minga.lang.graph import topological
from minga.lang.kernel import Kernel
from minga.lang.types import is_float
from minga.solve.adjoint.ghosts import beyond
from minga.solve.adjoint.like import field_like
from minga.solve.adjoint.remembered import Remembered, remembered
from minga.solve.adjoint.transposed import Pool, Values, transposed
from minga.space.boundary import Boundary
from minga.space.field import Field, Register, Slot

__all__ = [
    "Recording",
    "check_registers",
    "companion",
    "ghost_inputs",
    "read_slots",
    "record",
    "stored_slots",
    "used_slots",
]

_MOST: Final = 256
"""Rounds of a loop that are written out."""

Version = tuple[Slot, int]
"""A buffer, and the number of operations that have stored into it before."""


@dataclass(slots=True)
class Recording:
    """A step forwards that fills the tape, and the step backwards.

    Attributes
    ----------
    adjoints
        The adjoint field of each active field.
    taped
        One step forwards, as far as the reversal needs it, from the state at the beginning of a step.
    reverse
        One step backwards: the adjoints of the state after the step become those of the state before it.
    workspace
        Fields for intermediate results of the step backwards.
    changed
        Fields that a step stores into, which together with the registers are its state.
    registers
        Registers that a step changes.
    remembered
        The step that stores what its reversal needs, and what that is; None if there is no such step.
    registers_again
        What makes the registers that `remembered` needs, from those at the beginning of a step.
    """

    adjoints: dict[Field, Field]
    taped: Program
    reverse: Program
    workspace: list[Field]
    changed: list[Field]
    registers: list[Register]
    remembered: Remembered | None
    registers_again: list[Operation]


@dataclass(slots=True)
class _Step:
    """One operation on buffers, with the versions of what it reads and of the registers it uses.

    `origin` is the operation as the step has it.
    """

    operation: Apply | Let
    origin: Apply | Let
    reads: dict[Slot, int] = field(default_factory=dict)
    registers: dict[str, int] = field(default_factory=dict)


def record(step: Program, wanted: Sequence[Field], name: str) -> Recording:
    """Return the adjoint of a step.

    Parameters
    ----------
    step
        The step.
    wanted
        Fields by whose values derivatives are taken.
    name
        Beginning of the names of further fields and registers.

    Raises
    ------
    ProgramError
        If an operation has no adjoint here.
    """
    operations, origins, turns = _on_buffers(step)
    active = _active(operations, turns, wanted)
    check_registers(operations, active)
    fields = dict.fromkeys(slot.field for slot in active)
    adjoints = {item: companion(item, "adjoint") for item in fields}
    steps, last, registers = _versions(operations, origins)
    pool = Pool(name)
    saved = _saved_registers(steps, registers, name)
    renamed = [Rotate((adjoints[f],)) for f in fields for _ in range((f.slots - turns.get(f, 0)) % f.slots)]
    backwards: list[Operation] = [*renamed]

    def adjoint(slot: Slot) -> Slot | None:
        return adjoints[slot.field].slot(slot.index) if slot in active else None

    needed: set[Version] = set()
    used: set[str] = set()
    reversals: list[tuple[_Step, list[Apply]]] = []
    for each in reversed(steps):
        if isinstance(each.operation, Apply):
            known = {key: saved[key, version] for key, version in each.registers.items() if (key, version) in saved}
            made = transposed(each.operation, Values(adjoint, known), pool)
            reversals.append((each, made))
            used |= each.registers.keys() if made else set()
            needed |= {(slot, each.reads[slot]) for one in made for slot in _slots(one.operands) if slot in each.reads}
    forwards, tape = _taped(steps, needed, used, last, saved, name)
    for each, made in reversals:
        for one in made:
            operands = tuple(_on_tape(operand, each.reads, tape) for operand in one.operands)
            backwards.append(replace(one, operands=operands))
    _check_conditions([*forwards, *backwards], operations, active)
    changed = list(
        dict.fromkeys(slot.field for each in operations if isinstance(each, Apply) for slot in _stored(each))
    )
    undone = [(e.origin, e.operation, m) for e, m in reversals]
    own = {*adjoints.values(), *pool.fields.values()}
    found = remembered(step, undone, renamed, set(changed), own, name)
    again = _taped(steps, set(), used, last, saved, name)[0]
    if any(isinstance(each, Apply) for each in again):  # a register is reduced from the state
        found = None
    return Recording(
        adjoints,
        Program(f"{name}.taped", forwards),
        Program(f"{name}.reverse", backwards),
        list(pool.fields.values()),
        changed,
        list({r.key: r for each in operations for r in _results(each)}.values()),
        found,
        again,
    )


# Buffers -------------------------------------------------------------------------------------------------------------
def _on_buffers(step: Program) -> tuple[list[Apply | Let], list[Apply | Let], dict[Field, int]]:
    """Return the operations of a step on the slots as named at its beginning, and as they are recorded.

    The last result tells by how much each field is rotated.
    """
    found: list[Apply | Let] = []
    origins: list[Apply | Let] = []
    turns: dict[Field, int] = {}

    def buffer(operand: Operand) -> Operand:
        if not isinstance(operand, Slot):
            return operand
        return operand.field.slot((operand.index + turns.get(operand.field, 0)) % operand.field.slots)

    def go(operations: Sequence[Operation]) -> None:
        for each in operations:
            match each:
                case Apply():
                    found.append(replace(each, operands=tuple(map(buffer, each.operands))))
                    origins.append(each)
                case Let():
                    found.append(each)
                    origins.append(each)
                case Rotate():
                    for item in each.fields:
                        turns[item] = turns.get(item, 0) + 1
                case Repeat(limit=int(), until=None) if each.limit <= _MOST:  # type: ignore[operator]
                    for _ in range(each.limit):  # type: ignore[arg-type]
                        go(each.body)
                case Refresh() | Call(writes=()):
                    pass
                case _:
                    raise _unsupported(each)

    go(step.operations)
    return found, origins, turns


def _unsupported(operation: Operation) -> ProgramError:
    match operation:
        case Call():
            return ProgramError(
                f"the adjoint of a call of {operation.label}, which writes fields in Python",
                remedy="write it as a kernel",
            )
        case Move():
            return ProgramError("the adjoint of a move between grids", remedy="use fields on one grid")
        case When():
            return ProgramError(
                "the adjoint of operations under a condition",
                remedy="choose values in a kernel: mg.where(condition, ...)",
            )
    return ProgramError(
        "the adjoint of a loop whose number of rounds is not a number, or is large",
        remedy=f"repeat a fixed number of times, {_MOST} at most",
    )


def _slots(operands: Iterable[Operand]) -> list[Slot]:
    return [operand for operand in operands if isinstance(operand, Slot)]


def _stored(operation: Apply) -> list[Slot]:
    return [operation.slot(store.param) for store in operation.graph.stores]


def stored_slots(operations: Iterable[Operation]) -> set[Slot]:
    """Return the slots into which operations store."""
    return {slot for each in operations if isinstance(each, Apply) for slot in _stored(each)}


def used_slots(operations: Iterable[Operation]) -> set[Slot]:
    """Return the slots that operations read or store into."""
    return {slot for each in operations if isinstance(each, Apply) for slot in _slots(each.operands)}


def read_slots(operation: Apply) -> list[Slot]:
    """Return the slots of which a kernel uses values."""
    numbers = {node.data[0] for node in operation.graph.nodes() if node.op == "read"}
    return [o for number, o in enumerate(operation.operands) if number in numbers and isinstance(o, Slot)]


def _results(operation: Operation) -> list[Register]:
    match operation:
        case Apply():
            return list(operation.results)
        case Let():
            return [operation.register]
    return []


def _used(operation: Apply | Let) -> set[str]:
    """Return the keys of the registers that an operation uses."""
    keys = {scalar.name for scalar in operation.graph.scalars}
    if isinstance(operation, Apply):
        keys |= {value.key for value in operation.scalars.values() if isinstance(value, Register)}
    return keys


# Which slots depend on what is wanted --------------------------------------------------------------------------------
def _active(operations: Sequence[Apply | Let], turns: dict[Field, int], wanted: Sequence[Field]) -> set[Slot]:
    """Return the buffers that depend on wanted fields after any number of steps."""
    active = {item.slot(k) for item in wanted for k in range(item.slots)}
    before = -1
    while len(active) != before:
        before = len(active)
        for each in operations:
            if isinstance(each, Apply) and any(slot in active for slot in read_slots(each)):
                active.update(slot for slot in _stored(each) if is_float(slot.field.dtype))
        for slot in list(active):  # after a rotation, another buffer has this name
            if turns.get(slot.field, 0) % slot.field.slots:
                active.update(slot.field.slot(k) for k in range(slot.field.slots))
    return active


def check_registers(operations: Sequence[Apply | Let], active: Collection[Slot], kind: str = "adjoint") -> None:
    """Raise ProgramError if a reduction of active fields decides on what is stored into them."""
    tainted: dict[str, str] = {}
    before = -1
    while len(tainted) != before:  # registers also pass from one step to the next
        before = len(tainted)
        for each in operations:
            used = _used(each) | (ghost_inputs(each)[0] if isinstance(each, Apply) else set())
            found = next((tainted[key] for key in used if key in tainted), None)
            if isinstance(each, Let):
                if found is not None:
                    tainted[each.register.key] = found
            elif found is not None and any(slot in active for slot in _stored(each)):
                raise ProgramError(
                    f"the {kind} of {each.label}: it uses a number that {found} reduces from fields, such as a norm "
                    "or a time step, whose derivative is not taken",
                    remedy="give the number a value that does not depend on the fields",
                )
            elif each.results and any(slot in active for slot in read_slots(each)):
                tainted |= dict.fromkeys((register.key for register in each.results), each.label)


def ghost_inputs(operation: Apply) -> tuple[set[str], set[Field]]:
    """Return the registers and the other fields that make ghost cells which an operation may read."""
    graph = operation.graph
    registers: set[str] = set()
    others: set[Field] = set()
    reach = max((abs(k) for n in graph.nodes() if n.op == "read" for k in n.data[2]), default=0) or 1
    far = {n.data[0] for n in graph.nodes() if n.op == "read" and any(n.data[2])}
    far |= {n.data[0] for local in graph.locals for n in topological([local]) if n.op == "read"}
    for number, operand in enumerate(operation.operands):
        if not isinstance(operand, Slot) or operand.field.replicated:
            continue
        if number in far or not operand.field.points.contains(operation.region):
            more = beyond(operand.field, reach)
            registers |= more[0]
            others |= more[1]
    return registers, others


def _check_conditions(made: Sequence[Operation], step: Sequence[Apply | Let], active: set[Slot]) -> None:
    """Raise ProgramError if ghost cells depend on what the step changes, or on active fields, other than their own."""
    changed = {register.key for each in step for register in _results(each)}
    written = {slot.field for each in step if isinstance(each, Apply) for slot in _stored(each)}
    moving = written | {slot.field for slot in active}
    stores_active = [e for e in step if isinstance(e, Apply) and any(slot in active for slot in _stored(e))]
    for each in made:
        if isinstance(each, Apply):
            number = next((key for key in ghost_inputs(each)[0] if key in changed), None)
            if number is not None:
                raise ProgramError(
                    f"{each.label}: a boundary condition uses {number.lstrip('$')}, which changes in the step",
                    remedy="use conditions that do not change with the time, or kernels that are linear in the fields",
                )
    for each in [*(e for e in made if isinstance(e, Apply)), *stores_active]:
        other = next((item for item in ghost_inputs(each)[1] if item in moving), None)
        if other is not None:
            raise ProgramError(
                f"{each.label}: a boundary condition reads {other.name!r}, which varies",
                remedy="use conditions that read cells of their own field alone, as edge[n]",
            )


def companion(item: Field, kind: str, boundary: Boundary | None = None) -> Field:
    """Return the field for the adjoint or the tangent of another one; by default 0 beyond its ends."""
    if item.dtype not in ("f4", "f8"):
        raise ProgramError(f"the {kind} of {item.name!r}, which is {item.dtype}", remedy="use f4 or f8")
    if item.replicated:
        raise ProgramError(
            f"the {kind} of {item.name!r}, which lacks axes of its grid", remedy="declare it with all axes"
        )
    if any(item.antiperiodic):
        raise ProgramError(f"the {kind} of {item.name!r}, which is antiperiodic", remedy="use periodic fields")
    return field_like(
        item, f"{item.name}_{kind}", f"{kind} of {item.name}", slots=item.slots, on=item.on, boundary=boundary
    )


# The tape ------------------------------------------------------------------------------------------------------------
def _versions(
    operations: Sequence[Apply | Let], origins: Sequence[Apply | Let]
) -> tuple[list[_Step], dict[Slot, int], dict[str, list[Register]]]:
    """Return the operations with the versions that they read, the last versions, and the registers that change."""
    slots: dict[Slot, int] = {}
    numbers: dict[str, int] = {}
    changed: dict[str, list[Register]] = {}
    steps = []
    for each, origin in zip(operations, origins, strict=True):
        reads = {slot: slots.get(slot, 0) for slot in read_slots(each)} if isinstance(each, Apply) else {}
        steps.append(_Step(each, origin, reads, {key: numbers.get(key, 0) for key in _used(each)}))
        for slot in _stored(each) if isinstance(each, Apply) else ():
            slots[slot] = slots.get(slot, 0) + 1
        for register in _results(each):
            numbers[register.key] = numbers.get(register.key, 0) + 1
            changed.setdefault(register.key, []).append(register)
    return steps, slots, changed


def _saved_registers(
    steps: Sequence[_Step], changed: dict[str, list[Register]], name: str
) -> dict[tuple[str, int], Register]:
    """Return registers for the values of others that change after their use."""
    found: dict[tuple[str, int], Register] = {}
    for each in steps:
        for key, version in each.registers.items():
            writes = changed.get(key, [])
            if isinstance(each.operation, Apply) and version < len(writes):
                register = writes[0]
                found[key, version] = Register(f"{name}.{register.name}.{version}", register.dtype)
    return found


def _taped(
    steps: Sequence[_Step],
    needed: set[Version],
    used: set[str],
    last: dict[Slot, int],
    saved: dict[tuple[str, int], Register],
    name: str,
) -> tuple[list[Operation], dict[Version, Slot]]:
    """Return the part of a step on which needed values depend, with copies of those that are overwritten in it."""
    wanted, registers = set(needed), set(used)
    kept: list[bool] = []
    versions = dict(last)
    for each in reversed(steps):
        operation = each.operation
        stored = _stored(operation) if isinstance(operation, Apply) else []
        makes = {(slot, versions[slot]) for slot in stored}
        keep = bool(makes & wanted) or any(r.key in registers for r in _results(operation))
        kept.append(keep)
        for slot in stored:
            versions[slot] -= 1
        if keep:
            wanted |= set(each.reads.items())
            wanted |= {(slot, versions[slot]) for slot in stored}  # cells outside the region keep their values
            registers |= _used(operation)
    kept.reverse()
    overwritten = {slot for each, keep in zip(steps, kept, strict=True) if keep and isinstance(each.operation, Apply)
                   for slot in _stored(each.operation)}  # fmt: skip
    return _with_copies(steps, kept, needed, overwritten, saved, name)


def _with_copies(
    steps: Sequence[_Step], kept: Sequence[bool], needed: set[Version], overwritten: set[Slot],
    saved: dict[tuple[str, int], Register], name: str,
) -> tuple[list[Operation], dict[Version, Slot]]:  # fmt: skip
    """Return the operations that are kept, with copies of needed versions and registers before they change."""
    tape: dict[Version, Slot] = {}
    program = Program("copies")
    found: list[Operation] = []
    versions: dict[Slot, int] = {}
    numbers: dict[str, int] = {}

    def copy(version: Version) -> None:
        if version in needed and version not in tape and version[0] in overwritten:
            slot = version[0]
            kept = slot.field
            item = field_like(
                kept, f"{name}.tape.{len(tape)}", f"values of {kept.name} for the adjoint", on=kept.on,
                boundary=kept.boundary,
            )  # fmt: skip
            tape[version] = item.now
            program.apply(_COPY, slot, item)
            found.append(program.operations.pop())

    def save(register: Register, version: int) -> None:
        if (register.key, version) in saved:
            program.let(saved[register.key, version], register)
            found.append(program.operations.pop())

    for slot in sorted(overwritten, key=lambda slot: (slot.field.name, slot.index)):
        copy((slot, 0))
    for register in {r.key: r for each in steps for r in _results(each.operation)}.values():
        save(register, 0)
    for each, keep in zip(steps, kept, strict=True):
        operation = each.operation
        if keep:
            found.append(operation)
        for slot in _stored(operation) if isinstance(operation, Apply) else ():
            versions[slot] = versions.get(slot, 0) + 1
            copy((slot, versions[slot]))
        for register in _results(operation):
            numbers[register.key] = numbers.get(register.key, 0) + 1
            save(register, numbers[register.key])
    return found, tape


def _on_tape(operand: Operand, reads: dict[Slot, int], tape: dict[Version, Slot]) -> Operand:
    """Return the slot that holds what an operation has read while its adjoint runs."""
    if isinstance(operand, Slot) and operand in reads:
        return tape.get((operand, reads[operand]), operand)
    return operand


def _copy(source: Any, target: Any) -> None:
    here = (0,) * len(target.axes)
    target[here] = source[here]


_COPY = Kernel(_copy, name="copy")
