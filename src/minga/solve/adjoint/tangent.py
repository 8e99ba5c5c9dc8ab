"""The tangent of a step: it advances a state together with its derivative in a direction.

Every kernel that stores active fields is replaced by one that also stores their tangents: the derivative of each stored
value in the direction of the tangents that are read at the same cells. Ghost cells of tangents obey the linearised
conditions. The adjoint (`minga.solve.adjoint.adjoint`) is the transpose of this map.

Source: A. Griewank, A. Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, chapter 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from minga.engine.check import Operand
from minga.engine.operations import Apply, Call, Let, Move, Operation, Refresh, Repeat, Rotate, When, flat
from minga.engine.program import Program
from minga.errors import ProgramError
from minga.lang.derivative import directional_derivatives
from minga.lang.expr import Node
from minga.lang.graph import Interner, Param, Store
from minga.lang.trace import Trace, assemble, tracing
from minga.lang.types import is_float
from minga.solve.adjoint.arguments import check_arguments
from minga.solve.adjoint.ghosts import linearised
from minga.solve.adjoint.recording import check_registers, companion, ghost_inputs, read_slots, stored_slots
from minga.solve.adjoint.transposed import Renumbered
from minga.space.field import Field, Slot

__all__ = ["TangentStep", "tangent"]


@dataclass(frozen=True, eq=False)
class TangentStep:
    """A step with its derivative in a direction; `tangent` makes it.

    Parameters
    ----------
    step
        The Program that advances the state and its tangents.
    wrt
        Fields in whose direction derivatives are taken.
    of
        The field of the tangent of each field that depends on them.
    """

    step: Program
    wrt: tuple[Field, ...]
    of: Mapping[Field, Field]

    def __repr__(self) -> str:
        return f"TangentStep {self.step.name!r} with respect to {', '.join(item.name for item in self.wrt)}"


def tangent(step: Program, wrt: Sequence[Field], *, name: str = "tangent") -> TangentStep:
    """Return a step that also advances the derivative of its state in the direction of changes of some fields.

    Parameters
    ----------
    step
        A step of applied kernels, assignments to registers, rotations, and loops of a fixed number of rounds.
    wrt
        Fields that change, f4 or f8: those that the step changes, by their initial values, and those that it only
        reads, by their constant values.
    name
        End of the name of the new step; the tangent of ``u`` is called ``u_tangent``.

    Returns
    -------
    TangentStep
        The step, and the tangents `of` fields: set those of `wrt` (all slots that the step reads) to the direction and
        all others to 0, run the step, and read the tangents of the others.

    Raises
    ------
    ProgramError
        If the step has an operation whose tangent is not supported: a kernel with strides or a mask, a call that writes
        fields, operations under a condition, a loop that a condition ends, a move between grids, a number
        reduced from the fields that enters them again, a field that lacks axes, or a boundary condition that reads
        other fields which matter.

    Notes
    -----
    Functions without a derivative have those of `mg.derivative`. Numbers given to kernels, registers and the values
    that boundary conditions prescribe count as constants. The state is advanced by the same expressions as without
    tangents.

    Examples
    --------
    >>> change = mg.tangent(step, wrt=[k])
    >>> engine.set(change.of[k], direction)
    >>> engine.run(change.step, 100)
    >>> engine.gather(change.of[u])
    """
    check_arguments(step, wrt, "tangent")
    operations = list(flat(step.operations))
    active = _active(operations, wrt)
    applied = [each for each in operations if isinstance(each, Apply | Let)]
    check_registers(applied, {item.slot(k) for item in active for k in range(item.slots)}, "tangent")
    of = {item: companion(item, "tangent", linearised(item)) for item in active}
    return TangentStep(Program(f"{step.name}.{name}", _advanced(step.operations, of)), tuple(wrt), MappingProxyType(of))


def _active(operations: Sequence[Operation], wrt: Sequence[Field]) -> dict[Field, None]:
    """Return the fields that depend on others, in the order in which they are found."""
    found = dict.fromkeys(wrt)
    before = -1
    while len(found) != before:
        before = len(found)
        for each in operations:
            if isinstance(each, Apply) and any(slot.field in found for slot in read_slots(each)):
                found |= dict.fromkeys(
                    each.slot(store.param).field for store in each.graph.stores if is_float(store.value.dtype)
                )
    return found


def _advanced(operations: Sequence[Operation], of: Mapping[Field, Field]) -> list[Operation]:
    """Return operations that also advance tangents."""
    found: list[Operation] = []
    for each in operations:
        match each:
            case Apply():
                found.append(_dual(each, of) if any(s.field in of for s in stored_slots([each])) else each)
            case Rotate():
                found.append(Rotate((*each.fields, *(of[item] for item in each.fields if item in of))))
            case Refresh():
                found.append(each)
                if each.slot.field in of:
                    found.append(Refresh(_companion_slot(each.slot, of), each.width))
            case Repeat(until=None):
                found.append(replace(each, body=_advanced(each.body, of)))
            case Call(writes=()):
                found.append(each)
            case Let():
                found.append(each)
            case _:
                raise _unsupported(each)
    return found


def _unsupported(operation: Operation) -> ProgramError:
    match operation:
        case Call():
            what, remedy = f"of a call of {operation.label}, which writes fields in Python", "write it as a kernel"
        case Move():
            what, remedy = "of a move between grids", "use fields on one grid"
        case When():
            what, remedy = "of operations under a condition", "choose values in a kernel: mg.where(condition, ...)"
        case _:
            what, remedy = "of a loop that ends by a condition", "repeat a fixed number of times"
    return ProgramError(f"the tangent {what}", remedy=remedy)


def _companion_slot(slot: Slot, of: Mapping[Field, Field]) -> Slot:
    return of[slot.field].slot(slot.index)


def _dual(operation: Apply, of: Mapping[Field, Field]) -> Apply:
    """Return a kernel that also stores the tangents of what it stores."""
    _check(operation, of)
    graph = operation.graph
    params, operands = [*graph.params], [*operation.operands]
    tangents: dict[int, int] = {}
    for number, operand in enumerate(operation.operands):
        if isinstance(operand, Slot) and operand.field in of:
            tangents[number] = len(params)
            params.append(Param(f"tangent {params[number].name}", operand.field.dtype, params[number].axes))
            operands.append(_companion_slot(operand, of))
    trace = Trace(graph.ndim, operation.grid.axes, graph.order is not None, 0)
    trace.locals = [*graph.locals]
    stores = [store for store in graph.stores if store.param in tangents]

    def direction(read: Node) -> Node | None:
        number, strides, offsets = read.data
        return Node("read", read.dtype, data=(tangents[number], strides, offsets)) if number in tangents else None

    with tracing(trace):
        changes = directional_derivatives([store.value for store in stores], direction)
    ranked = sorted(range(len(params)), key=lambda number: (not isinstance(operands[number], Slot), number))
    trace.params = [params[number] for number in ranked]
    order = {number: k for k, number in enumerate(ranked)}
    share, made = Interner(), Renumbered({}, {}, order)
    both = [(store.param, store.value, store) for store in graph.stores]
    both += [(tangents[store.param], change, store) for store, change in zip(stores, changes, strict=True)]
    advanced = assemble(
        f"tangent of {operation.label}",
        trace,
        tuple(Store(order[number], s.strides, s.offsets, share(made(value))) for number, value, s in both),
        tuple(replace(item, value=share(made(item.value))) for item in graph.reductions),
        tuple(share(made(node)) for node in trace.locals),
        graph.order,
        graph.where,
    )
    places: tuple[Operand, ...] = tuple(operands[number] for number in ranked)
    return replace(operation, graph=advanced, operands=places)


def _check(operation: Apply, of: Mapping[Field, Field]) -> None:
    """Raise ProgramError for a kernel whose tangent is not known."""
    if operation.mask is not None or operation.cells.active is not None:
        raise ProgramError(
            f"the tangent of {operation.label}: cells are skipped by a mask or by active tiles",
            where=operation.graph.where,
            remedy="record it without them: where cells may be skipped, results are equal",
        )
    other = next((item for item in ghost_inputs(operation)[1] if item in of), None)
    if other is not None:
        raise ProgramError(
            f"the tangent of {operation.label}: a boundary condition reads {other.name!r}, which varies",
            remedy="use conditions that read cells of their own field alone, as edge[n]",
        )
