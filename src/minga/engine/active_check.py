"""Checks of whether operations on active tiles may skip tiles in which nothing can change.

A step `apply(rule, u, u.next); rotate(u)` overwrites the state of two steps before in slot `next`. If it reads the same
values as two steps before, it would store what is there already. It must therefore be certain that nothing else changes
what it reads, or its results: no random numbers, no register that a step sets, no other operation on its fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from minga.engine.check import Operand
from minga.engine.operations import Apply, Call, Let, Move, Operation, Repeat, Rotate, When
from minga.errors import ProgramError
from minga.lang.analysis import reads
from minga.lang.graph import KernelGraph
from minga.lang.kernel import Kernel
from minga.lang.types import itemsize
from minga.space.boundary import SIDES, Fill, trace_fill
from minga.space.box import Box
from minga.space.field import Field, Register, Slot
from minga.space.region import Region

TILE_BYTES = 64
"""Bytes of a default tile along the innermost axis."""
TILE_ROWS = (1024, 16, 8, 4)
"""Cells of a default tile along each other axis, by the number of axes of the grid; in 1-D, bytes of a tile."""


def default_tile(fields: Sequence[Field]) -> tuple[int, ...]:
    """Return the shape of tiles if none is requested."""
    ndim = fields[0].grid.ndim
    wide = TILE_ROWS[0] if ndim == 1 else TILE_BYTES
    return (*[TILE_ROWS[ndim - 1]] * (ndim - 1), max(1, wide // max(itemsize(f.dtype) for f in fields)))


def check_active(kernel: Kernel, graph: KernelGraph, operands: Sequence[Operand], cells: Region, points: Box) -> Region:
    """Return the region of an operation on active tiles, with an explicit shape; raise ProgramError for others."""
    reason = unfit_operation(graph, operands, cells.box == points)
    if reason is not None:
        raise ProgramError(
            f"apply({kernel.name}) cannot be done on active tiles only: {reason}",
            where=graph.where or None,
            remedy="drop region=mg.Region(active=...)",
        )
    if cells.active:
        return cells
    stored = [operand.field for number in graph.written if isinstance(operand := operands[number], Slot)]
    return Region(active=default_tile(stored)).within(points)


def unfit_operation(graph: KernelGraph, operands: Sequence[Operand], whole: bool) -> str | None:
    """Return why an operation cannot run on active tiles only, whatever the rest of its Program; None if it can."""
    slots = [operand for operand in operands if isinstance(operand, Slot)]
    stored = {operand for number in graph.written if isinstance(operand := operands[number], Slot)}
    found = reads(graph)
    if not whole:
        return "its region leaves out cells"
    if graph.order is not None:
        return "its cells have an order"
    if graph.reductions:
        return "it has reductions, to which every cell adds"
    if any(slot.field.on is not None or any(slot.field.centre) for slot in slots):
        return "its fields are not on all cells of the grid"
    if any(slot.field.grid != slots[0].field.grid for slot in slots):
        return "its fields are on several grids"
    if any(slot.field.slots != 2 or slot.index != 1 for slot in stored):
        return "it does not store u.next of fields with slots=2"
    if any(set(strides) != {1} for accesses in found.values() for strides, _ in accesses):
        return "it reads cells at a stride"
    if any(set(store.strides) != {1} or any(store.offsets) for store in graph.stores):
        return "it stores elsewhere than at its own cell"
    if any(operands[number] in stored for number in found):
        return "it reads what it overwrites"
    return _unfit_boundaries(graph, operands)


def _unfit_boundaries(graph: KernelGraph, operands: Sequence[Operand]) -> str | None:
    """Describe a boundary condition that may change cells although no tile near them changes; None if none does."""
    for fill, target in _fills(graph, operands):
        if any(not scalar.name.startswith("@extent") for scalar in fill.graph.scalars):
            return f"the boundary of {target.name!r} depends on a register"
        if any(isinstance(operand, Field) and operand is not target for operand in fill.operands):
            return f"the boundary of {target.name!r} depends on another field"
    return None


def unfit_program(operations: Sequence[Operation], apply: Apply) -> str | None:
    """Return why the rest of a Program prevents an operation from running on active tiles only; None if it does not."""
    fields, used, registers = stored_fields(apply), read_fields(apply), registers_used(apply)
    rotations = 0
    for around, operation in _all(operations):
        match operation:
            case Rotate() if set(operation.fields) & fields:
                beside = any(other is apply for other in around)
                after = beside and _position(around, apply) < _position(around, operation)
                if not after or not fields <= set(operation.fields):
                    return "its fields are not rotated together after it"
                rotations += 1
            case Rotate() if set(operation.fields) & used:
                return "a field that it reads is rotated, but not stored by it"
            case Apply() if operation is not apply:
                written = {operation.slot(number).field for number in operation.graph.written}
                if written & (fields | used):
                    return f"{operation.label!r} stores one of its fields, too"
                if registers & {register.key for register in operation.results}:
                    return f"{operation.label!r} sets a register that it uses"
            case Let() if operation.register.key in registers:
                return f"its register {operation.register.name!r} is set by the Program"
            case Call() if {slot.field for slot in operation.writes} & (fields | used):
                return f"{operation.label!r} writes one of its fields"
            case Move() if operation.target.field in fields | used:
                return "a move writes one of its fields"
            case _:
                pass
    return None if rotations == 1 else "its fields are not rotated exactly once"


def stored_fields(apply: Apply) -> frozenset[Field]:
    """Return the fields that an operation stores."""
    return frozenset(apply.slot(number).field for number in apply.graph.written)


def read_fields(apply: Apply) -> frozenset[Field]:
    """Return the fields that an operation reads."""
    found = (apply.operands[number] for number in reads(apply.graph))
    return frozenset(operand.field for operand in found if isinstance(operand, Slot))


def registers_used(apply: Apply) -> frozenset[str]:
    """Return the registers whose values an operation uses, by their names in graphs."""
    given = {value.key for value in apply.scalars.values() if isinstance(value, Register)}
    return frozenset(given | {scalar.name for scalar in apply.graph.scalars})


def widest_read(graph: KernelGraph, operands: Sequence[Operand]) -> tuple[int, ...]:
    """Return the distance per axis within which other cells influence a cell, including through ghost cells."""
    offsets = [o for number, found in reads(graph).items() if _distributed(operands[number]) for _, o in found]
    widths = [max((abs(o[axis]) for o in offsets), default=0) for axis in range(graph.ndim)]
    for fill, target in _fills(graph, operands):
        store = fill.graph.stores[0]
        assert store.param == 0
        for axis in range(target.grid.ndim):
            widths[axis] = max(widths[axis], fill.depth)
    return tuple(widths)


def _fills(graph: KernelGraph, operands: Sequence[Operand]) -> Iterator[tuple[Fill, Field]]:
    """Yield the boundary conditions of all ghost cells that an operation may read."""
    for number, found in reads(graph).items():
        operand = operands[number]
        if not isinstance(operand, Slot) or operand.field.replicated:
            continue
        for axis in range(graph.ndim):
            if operand.field.periodic[axis]:
                continue
            for layer in range(1, max(abs(offsets[axis]) for _, offsets in found) + 1):
                for side in SIDES:
                    fill = trace_fill(operand.field, axis, side, layer)
                    if fill is not None:
                        yield fill, operand.field


def _distributed(operand: Operand) -> bool:
    return isinstance(operand, Slot) and not operand.field.replicated


def _all(operations: Sequence[Operation]) -> Iterator[tuple[Sequence[Operation], Operation]]:
    """Yield all operations, each with the list that contains it."""
    for operation in operations:
        yield operations, operation
        if isinstance(operation, Repeat | When):
            yield from _all(operation.body)


def _position(operations: Sequence[Operation], wanted: Operation) -> int:
    return next(number for number, operation in enumerate(operations) if operation is wanted)
