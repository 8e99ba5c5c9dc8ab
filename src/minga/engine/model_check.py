"""Checks of a new model for mistakes that would silently give wrong numbers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minga.engine.draws import repeated_draw
from minga.engine.levels import check_levels, untouched
from minga.engine.operations import Apply, Call, Let, Move, Operation, Repeat, Rotate, When, flat
from minga.errors import ProgramError, shown
from minga.lang.analysis import reads
from minga.lang.expr import Arithmetic, Node, as_node
from minga.lang.graph import topological
from minga.lang.types import integer_range, is_float
from minga.space.boundary import SIDES, trace_fill
from minga.space.field import SEED, STEP, TIME, Field, Register, Slot
from minga.space.names import OBSERVED, OF_RESULTS
from minga.space.names import TIME as TIME_AXIS
from minga.space.register import RegisterKey

if TYPE_CHECKING:
    from minga.engine.model import Model
    from minga.engine.program import Program

__all__ = ["check_model", "levels_read"]

_RESULT = re.compile(r"\.\d+\.")
"""Part of the names of registers that Programs make for results of kernels."""


def check_model(model: Model) -> None:
    """Raise ProgramError for a model whose step or observables contain such a mistake."""
    _check_names(model)
    check_levels(model.step.operations)
    _check_declared(model)
    _check_random(model)
    _check_observables(model)
    _check_registers(model)
    _check_paintable(model)
    for item in model.fields:
        if item.slots > 1:
            _check_stored(model, item)
            _check_untouched(model, item)
            _check_start(model, item)


# Names ---------------------------------------------------------------------------------------------------------------
def _check_names(model: Model) -> None:
    """Check that each output field and each observable keeps a name of its own in results."""
    for name in model.output:
        if name in OF_RESULTS:
            raise ProgramError(
                f"model {model.name!r}: the output field {name!r} has the name of {OF_RESULTS[name]} in results",
                remedy="give the field another name",
            )
    fields = {*model.output, *model.grid.axes}
    taken = {*fields, *OF_RESULTS} - {TIME_AXIS}
    for name in model.observables:
        variable = f"{name}_{OBSERVED}" if name in fields else name
        if variable in taken or (variable != name and variable in model.observables):
            raise ProgramError(
                f"model {model.name!r}: the observable {name!r} would be {variable!r} in results, the name of "
                f"{OF_RESULTS.get(variable, 'another variable')}",
                remedy="give the observable, or the field, another name",
            )


# Fields --------------------------------------------------------------------------------------------------------------
def _check_paintable(model: Model) -> None:
    """Check that fields whose cells people may set are fields of cells of the model's grid, with numbers of states."""
    if not isinstance(model.paintable, Mapping):
        raise ProgramError(
            f"model {model.name!r}: paintable={shown(model.paintable)}",
            remedy="give numbers of states by the names of fields: {'cell': 2}",
        )
    for name, states in model.paintable.items():
        item = model.field(name)
        if item not in model.visible or item.bounds != model.grid.box or is_float(item.dtype):
            raise ProgramError(
                f"model {model.name!r}: paintable field {name!r} does not have a whole number in each cell of the grid",
                remedy="name fields of whole numbers on the grid of the model, or leave the field out of paintable",
            )
        most = integer_range(item.dtype)[1] + 1
        if isinstance(states, bool) or not isinstance(states, int) or not 2 <= states <= most:
            raise ProgramError(
                f"model {model.name!r}: paintable={{{name!r}: {shown(states)}}}",
                remedy=f"give the number of states of the field, 2 to {most}",
            )


def _check_declared(model: Model) -> None:
    """Check that kernels read only fields of the model, which can have initial values, or that its Programs store."""
    known = set(model.fields)
    for operation in _operations(model):
        known.update(slot.field for slot in _stores(operation))
    for operation in (o for o in _operations(model) if isinstance(o, Apply)):
        for item in (slot.field for slot in _reads(operation)):
            if item not in known:
                raise ProgramError(
                    f"model {model.name!r}: {operation.label!r} reads field {item.name!r}, which is not a field of "
                    "the model and which nothing stores: it would be 0 everywhere",
                    where=operation.graph.where or None,
                    remedy=f"add it to them: mg.Model(..., fields=(..., {item.name}))",
                )


def _check_random(model: Model) -> None:
    found = repeated_draw(model.step.operations, looped=True)
    if found is not None:
        raise ProgramError(
            f"model {model.name!r}: {found.text}", where=found.apply.graph.where or None, remedy=found.remedy
        )


# Observables and registers -------------------------------------------------------------------------------------------
def _check_observables(model: Model) -> None:
    if model.observables and model.observe is None:
        raise ProgramError(
            f"model {model.name!r} has observables but no Program that computes them",
            remedy='pass the Program whose results they are: observe = mg.Program("observe"); '
            "seen = observe.apply(...); mg.Model(..., observe=observe, observables={...})",
        )
    known = _set_registers(model)
    for name, value in model.observables.items():
        parts_of: tuple[object, ...] = value if isinstance(value, tuple) else (value,)
        for register in parts_of:
            if not isinstance(register, Register):
                parts = ", ".join(getattr(register, "__dict__", {}))
                raise ProgramError(
                    f"model {model.name!r}: observable {name!r} is {type(register).__name__}, not a register",
                    remedy=f"give one of its registers: {parts}"
                    if parts
                    else "give what an apply of a kernel returned",
                )
            if known is not None and register.key not in known and _RESULT.search(register.name):
                raise ProgramError(
                    f"model {model.name!r}: observable {name!r} is a result of a Program other than step and observe",
                    remedy="give a result of the Program observe=, or a register that the step sets",
                )


def _check_registers(model: Model) -> None:
    for key in model.registers:
        if not isinstance(key, Register):
            raise ProgramError(
                f"model {model.name!r}: registers= has the key {shown(key)}",
                remedy="use the register itself as the key",
            )
    known = _set_registers(model)
    if known is None:
        return
    for operation in (o for o in _operations(model) if isinstance(o, Apply)):
        values = [as_node(value) for value in operation.scalars.values() if isinstance(value, Arithmetic)]
        _check_set(model, known, [*values, *operation.graph.nodes()], repr(operation.label), operation.graph.where)
    for item in (field for field in model.fields if not field.replicated):
        for axis, side in itertools.product(range(item.grid.ndim), SIDES):
            fill = trace_fill(item, axis, side, 1)
            if fill is not None:
                where = f"the boundary condition {fill.graph.name} of field {item.name!r}"
                _check_set(model, known, fill.graph.nodes(), where, "")


def _check_set(model: Model, known: set[str], nodes: Iterable[Node], reader: str, where: str) -> None:
    """Check that each register which an expression reads has a value, and that the time it reads advances."""
    for node in topological(list(nodes)):
        key = node.data if node.op == "scalar" else None
        if not isinstance(key, RegisterKey) or key.startswith("@") or key in known:
            continue
        name = key.removeprefix("$")
        if key == TIME.key:
            raise ProgramError(
                f"model {model.name!r}: {reader} uses mg.TIME, which no step changes: the time would stand still",
                where=where or None,
                remedy="advance it at the end of the step: step.let(mg.TIME, mg.TIME + dt); "
                "step.let(mg.TIME, mg.TIME) says that a constant is meant",
            )
        if key.initial == 0:
            raise ProgramError(
                f"model {model.name!r}: {reader} uses register {name!r}, which nothing sets: it is 0 in all steps",
                where=where or None,
                remedy=f"give its value, mg.Model(..., registers={{{name}: ...}}), or set it in the step with "
                "step.let(...)",
            )


def _set_registers(model: Model) -> set[str] | None:
    """Return the registers that have values; None if a `call` may set any of them."""
    given = {key.key for key in model.registers if isinstance(key, Register)}
    known = {SEED.key, STEP.key, *given} - {TIME.key}  # a given time is where the run begins
    for operation in _operations(model):
        match operation:
            case Apply():
                known.update(register.key for register in operation.results)
            case Let():
                known.add(operation.register.key)
            case Repeat(until=Let() as until):
                known.add(until.register.key)
            case When(condition=condition):
                known.add(condition.register.key)
            case Call():
                return None
            case _:
                pass
    return known


def _operations(model: Model) -> Iterator[Operation]:
    for program in (model.step, model.observe):
        if program is not None:
            yield from flat(program.operations)


# Time levels ---------------------------------------------------------------------------------------------------------
def _check_stored(model: Model, item: Field) -> None:
    """Check that the values which steps store become present values at some time, if the field is output."""
    if item.name not in model.output:
        return
    nested = [o for o in model.step.operations if isinstance(o, Repeat | When)]
    if any(_rotates(o, item) or _stored(o, item) for o in flat(nested)):
        return
    places, stored = list(range(item.slots)), set[int]()
    for _ in range(item.slots + 1):
        for operation in model.step.operations:
            stored.update(places[slot.index] for slot in _stored(operation, item))
            if _rotates(operation, item):
                places.append(places.pop(0))
        if places[0] in stored:
            return
    if stored:
        raise ProgramError(
            f"model {model.name!r}: the step stores {item.name!r}, but {item.name}.now keeps its initial values",
            remedy=f"store {item.name}.next and rotate once a step: step.rotate({item.name})",
        )


def _check_untouched(model: Model, item: Field) -> None:
    """Check that cells which steps never store have equal initial levels, since they cycle through them."""
    cells = untouched(item, model.step.operations)
    levels = [value for slot, value in model.start_values() if slot.field is item]
    if cells and not all(_same(levels[0], level) for level in levels[1:]):
        raise ProgramError(
            f"model {model.name!r}: the step stores only a part of {item.name!r} and rotates it, so that cells of "
            f"{cells[0]} change between different initial levels",
            remedy=f"store all cells of {item.name}.next, or give all levels the same initial values: "
            f"initial={{{item.name}: ..., {item.name}.next: ...}}",
        )


def _same(one: Any, other: Any) -> bool:
    return one is other or (not callable(one) and not callable(other) and np.array_equal(one, other))


def _check_start(model: Model, item: Field) -> None:
    """Check that a step which reads an earlier level, as waves do, has initial values for it as well."""
    given = model.given
    if item.now not in given or (isinstance(given[item.now], int | float) and given[item.now] == 0):
        return
    for slot in levels_read(model.step, item):
        if slot not in given:
            name = f"{item.name}.previous" if slot == item.previous else f"{item.name}.slot({slot.index})"
            raise ProgramError(
                f"model {model.name!r}: the step reads {name}, which has no initial values, while {item.name} has: "
                "it would start at 0",
                remedy=f"give both levels: initial={{{item.name}: ..., {name}: ...}}, 0 if that is meant",
            )


def levels_read(step: Program, item: Field) -> tuple[Slot, ...]:
    """Return the levels of a field, other than the present one, that a step reads before it stores or rotates them."""
    found: dict[Slot, None] = {}
    stored: set[Slot] = set()
    for operation in flat(step.operations):
        if _rotates(operation, item):
            break
        found |= dict.fromkeys(slot for slot in _read(operation, item) if slot.index and slot not in stored)
        stored.update(_stored(operation, item))
    return tuple(found)


def _read(operation: Operation, item: Field) -> set[Slot]:
    """Return the slots of a field that a kernel reads."""
    return {slot for slot in _reads(operation) if slot.field is item}


def _reads(operation: Operation) -> set[Slot]:
    """Return the slots that a kernel reads."""
    if not isinstance(operation, Apply):
        return set()
    found = {operation.operands[number] for number in reads(operation.graph)}
    return {slot for slot in found if isinstance(slot, Slot)}


def _stored(operation: Operation, item: Field) -> list[Slot]:
    """Return the slots of a field that an operation stores."""
    return [slot for slot in _stores(operation) if slot.field is item]


def _stores(operation: Operation) -> list[Slot]:
    """Return the slots that an operation stores."""
    slots: Sequence[object] = ()
    match operation:
        case Apply():
            slots = [operation.operands[number] for number in operation.graph.written]
        case Move():
            slots = [operation.target]
        case Call():
            slots = operation.writes
        case _:
            pass
    return [slot for slot in slots if isinstance(slot, Slot)]


def _rotates(operation: Operation, item: Field) -> bool:
    return isinstance(operation, Rotate) and item in operation.fields
