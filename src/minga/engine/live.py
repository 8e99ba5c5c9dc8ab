"""Determination of the slots that are not needed between two steps, and thus need not move with the work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from minga.engine.model import Model
from minga.engine.program import Apply, Call, Move, Operation, Refresh, Repeat, Rotate, When, flat
from minga.engine.reach import Reach, requirements, stencil
from minga.space.field import Field, Slot

__all__ = ["dead_slots"]


def dead_slots(model: Model) -> frozenset[Slot]:
    """Return the slots that the next step overwrites completely before they are read, such as the next time level.

    Slots read by frames, observables or the detection of repetition are not included, nor are slots whose use is
    unknown.
    """
    scan = _Scan({item: list(range(item.slots)) for item in model.fields})
    scan.operations(model.step.operations)
    kept = set(scan.read)
    kept.update(model.field(name).now for name in model.output if name not in model.packed)
    if model.recurrence is not None:
        kept.update(model.recurrence.slots, model.recurrence.before)
    if model.observe is not None:
        kept.update(_mentioned(model.observe.operations))
    return frozenset(scan.stored - kept)


@dataclass(slots=True)
class _Scan:
    """Scan of one step. Slots have the names they have before it; `places` maps present slots to these."""

    places: dict[Field, list[int]]
    read: set[Slot] = field(default_factory=set)
    stored: set[Slot] = field(default_factory=set)

    def operations(self, operations: Sequence[Operation], certain: bool = True) -> None:
        """Record the accesses of operations; `certain` is True if they are executed exactly once."""
        for operation in operations:
            match operation:
                case Apply():
                    for slot in _reads(operation):
                        self.reads(slot)
                    for slot in _stores(operation):
                        self.stores(slot, certain and _whole(operation, slot))
                case Rotate():
                    for item in operation.fields:
                        self.rotates(item, certain)
                case Move():
                    self.reads(operation.source)
                    self.stores(operation.target, certain and not operation.boxes)
                case Call():
                    self.call(operation, certain)
                case Refresh():
                    self.reads(operation.slot)
                case Repeat() | When():
                    self.operations(operation.body, certain=False)
                case _:
                    pass

    def call(self, operation: Call, certain: bool) -> None:
        """Record the accesses of a call."""
        for slot in operation.fills:
            self.stores(slot, certain)
        for slot in (*operation.reads, *operation.writes):
            self.reads(slot)

    def before(self, slot: Slot) -> Slot:
        """Return the name that a slot had before the step."""
        return Slot(slot.field, self.places.setdefault(slot.field, list(range(slot.field.slots)))[slot.index])

    def reads(self, slot: Slot) -> None:
        """Record that a slot is read."""
        if self.before(slot) not in self.stored:
            self.read.add(self.before(slot))

    def stores(self, slot: Slot, whole: bool) -> None:
        """Record that a slot is stored, completely or in part."""
        if whole:
            self.stored.add(self.before(slot))
        else:
            self.reads(slot)  # the cells that it leaves out keep their values

    def rotates(self, item: Field, certain: bool) -> None:
        """Record that the slots of a field rotate."""
        if certain:
            places = self.places.setdefault(item, list(range(item.slots)))
            places.append(places.pop(0))
        else:  # from here on the order of the slots is unknown
            self.read.update(item.slot(k) for k in range(item.slots))


def _reads(apply: Apply) -> set[Slot]:
    """Return all slots whose values an operation uses, including those that its boundaries read."""
    mask = set() if apply.mask is None else {apply.mask}
    if apply.replicated:
        return {operand for operand in apply.operands if isinstance(operand, Slot)}
    _, ghosts = requirements(apply, Reach.none(apply.grid.ndim))
    found = set(stencil(apply)).union(*(each.others for each in ghosts.values()))
    # Fields that lack some axes take part in no exchange.
    return found | mask | {o for o in apply.operands if isinstance(o, Slot) and o.field.replicated}


def _stores(apply: Apply) -> list[Slot]:
    return [apply.slot(param) for param in sorted(apply.graph.written)]


def _whole(apply: Apply, slot: Slot) -> bool:
    """Return True if an operation stores every point of a slot without reading its old values."""
    cells = apply.cells
    everywhere = not cells.sparse and cells.active is None and apply.region == slot.field.points
    stores = [store for store in apply.graph.stores if apply.slot(store.param) == slot]
    plain = all(set(store.strides) == {1} and not any(store.offsets) for store in stores)
    return everywhere and plain and apply.graph.order is None and not slot.field.replicated


def _mentioned(operations: Sequence[Operation]) -> Iterator[Slot]:
    """Yield all slots that operations name, by their names when the first one begins (or all, once fields rotate)."""
    for operation in flat(operations):
        match operation:
            case Apply():
                yield from _reads(operation)
                yield from _stores(operation)
            case Rotate():
                yield from (item.slot(k) for item in operation.fields for k in range(item.slots))
            case Move():
                yield from (operation.source, operation.target)
            case Call():
                yield from (*operation.reads, *operation.writes)
            case Refresh():
                yield operation.slot
            case _:
                pass
