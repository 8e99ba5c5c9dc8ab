"""Inference of halo exchanges and boundary fills from the reads of each operation.

The forward pass keeps track, for every slot, of how far around each block its copy is valid; it inserts an exchange
where an operation would read farther. This is correct for any extents, so a backward pass may choose to compute some
operations on extended blocks (a deep halo) and thereby save exchanges. Both passes work on names: rotation renames
slots.

A loop maintains an invariant: at its head everything that the body reads before writing it is valid. An exchange before
the loop establishes it, one at the end of each round (started inside the operation that produces the data) restores it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from minga.engine.active import active_operations
from minga.engine.in_flight import moves_in_flight
from minga.engine.overlap import emit_exchange
from minga.engine.program import Apply, Call, Let, Move, Operation, Refresh, Repeat, Rotate, When, flat
from minga.engine.reach import Ghosts, Reach, requirements, stencil, with_boundary
from minga.engine.schedule import Boundaries, Branch, Item, Loop, Schedule, Stage, Valid
from minga.lang.analysis import reads
from minga.space.field import Field, Slot
from minga.space.grid import Grid

Known = TypeVar("Known")


Closed = Mapping[Grid, tuple[bool, ...]]
"""For each grid, the axes along which no block has a neighbour: nothing is exchanged along them."""


def infer(
    operations: Sequence[Operation],
    *,
    depth: int = 1,
    overlap: bool = True,
    valid: Valid | None = None,
    closed: Closed | None = None,
    rounds: Callable[[Repeat], int] = lambda loop: 1,
) -> Schedule:
    """Place exchanges and boundary fills.

    Parameters
    ----------
    operations
        Operations of a Program.
    depth
        Number of steps that a deep halo lasts.
    overlap
        True to compute interiors while messages travel.
    valid
        Widths that are valid at the start.
    closed
        Axes along which nothing is exchanged; by default none.
    rounds
        Returns the number of rounds of a loop that one exchange lasts, where `depth` is 1.
    """
    pass_ = _Pass(depth, overlap, closed or {}, rounds)
    pass_.valid = dict(valid or {})
    items: list[Item] = []
    pass_.run(operations, items, _in_groups(operations, depth, pass_.closed) if depth > 1 else {})
    masked = tuple(item for item in flat(operations) if isinstance(item, Apply) and item.mask is not None)
    if overlap:
        items = moves_in_flight(items)
    return Schedule(items, pass_.valid, pass_.widest, tuple(active_operations(operations)), masked)


@dataclass(slots=True)
class _Pass:
    depth: int
    overlap: bool
    closed: Closed
    rounds: Callable[[Repeat], int]
    valid: Valid = field(default_factory=dict)
    filled: dict[Slot, Ghosts] = field(default_factory=dict)
    widest: dict[Slot, Reach] = field(default_factory=dict)

    def run(self, operations: Sequence[Operation], out: list[Item], extents: dict[int, Reach]) -> None:
        for number, operation in enumerate(operations):
            match operation:
                case Apply():
                    self.apply(operation, out, extents.get(number))
                case Rotate():
                    self.rotate(operation)
                    out.append(operation)
                case Let():
                    out.append(operation)
                    self.set({operation.register.key})
                case Refresh() if not operation.slot.field.replicated:
                    needs, ghosts = refreshed(operation)
                    self.ensure(needs, out)
                    self.fill(operation.slot, ghosts, out)
                case Call():
                    out.append(operation)
                    for slot in operation.writes:
                        self.invalidate(slot)
                    self.unfill(lambda ghosts: bool(ghosts.registers))
                case Move():
                    out.append(operation)
                    self.invalidate(operation.target)
                case Repeat():
                    self.repeat(operation, out)
                case When():
                    self.when(operation, out)

    # Single operations ---------------------------------------------------------------------------------------------
    def invalidate(self, slot: Slot) -> None:
        """Record that a slot changed: its halo and the ghost cells computed from it are stale."""
        self.valid.pop(slot, None)
        self.stored(slot)

    def stored(self, slot: Slot) -> None:
        """Record that a slot changed: ghost cells computed from it are stale."""
        self.filled.pop(slot, None)
        self.unfill(lambda ghosts: slot in ghosts.others)

    def set(self, registers: set[str]) -> None:
        """Record that registers changed: ghost cells computed from them are stale."""
        self.unfill(lambda ghosts: bool(registers & ghosts.registers))

    def unfill(self, changed: Callable[[Ghosts], bool]) -> None:
        """Discard ghost cells whose values depend on something that changed."""
        self.filled = {slot: ghosts for slot, ghosts in self.filled.items() if not changed(ghosts)}

    def widen(self, slot: Slot, reach: Reach) -> None:
        self.widest[slot] = self.widest.get(slot, Reach.none(slot.field.grid.ndim)).union(reach)

    def ensure(self, needs: Mapping[Slot, Reach], out: list[Item]) -> None:
        """Exchange the slots of `needs` that are not valid."""
        missing: Valid = {}
        for slot, need in needs.items():
            self.widen(slot, need)
            have = self.valid.get(slot, Reach.none(slot.field.grid.ndim))
            if not have.covers(exchanged := _across(slot, need, self.closed)):
                missing[slot] = exchanged
        if missing:
            self.exchange(missing, out)

    def exchange(self, missing: Valid, out: list[Item], overlap: bool | None = None) -> None:
        emit_exchange(missing, out, self.overlap if overlap is None else overlap)
        for slot, need in missing.items():
            have = self.valid.get(slot, need)
            # Around faces widths add up; a wider box would have corners that neither exchange delivers.
            self.valid[slot] = have.union(need) if have.star and need.star else need
            self.stored(slot)

    def fill(self, slot: Slot, ghosts: Ghosts, out: list[Item]) -> None:
        """Fill ghost cells beyond the domain unless they are already filled."""
        self.widen(slot, ghosts.reach)
        have = self.filled.get(slot)
        if have is None or not have.covers(ghosts):
            out.append(Boundaries(slot, ghosts))
            self.filled[slot] = ghosts

    def apply(self, apply: Apply, out: list[Item], extent: Reach | None) -> None:
        ndim = apply.grid.ndim
        if apply.replicated:
            out.append(Stage(apply, Reach.none(ndim)))
            self.set({register.key for register in apply.results})
            return
        extent = extent or Reach.none(ndim)
        needs, ghosts = requirements(apply, extent)
        self.ensure(needs, out)
        for slot, beyond in ghosts.items():
            self.fill(slot, beyond, out)
        for slot, reach in stencil(apply, exchanged=False).items():
            self.widen(slot, reach)
        out.append(Stage(apply, extent))
        self.set({register.key for register in apply.results})
        for store in apply.graph.stores:
            slot = apply.slot(store.param)
            self.stored(slot)
            if _overwrites(apply, store.param):
                self.valid[slot] = extent
            else:
                self.valid[slot] = self.valid.get(slot, Reach.none(ndim)).meet(extent)
            self.widen(slot, extent)
            if any(s > 1 for s in store.strides):
                # The last coarse cell of an odd grid stores beyond the end; the array must extend that far.
                self.widen(slot, Reach((0,) * ndim, store.offsets, False))

    def rotate(self, rotation: Rotate) -> None:
        self.unfill(lambda ghosts: any(other.field in rotation.fields for other in ghosts.others))
        _rename(self.valid, rotation)
        _rename(self.filled, rotation)

    # Loops and branches ---------------------------------------------------------------------------------------------
    def repeat(self, loop: Repeat, out: list[Item]) -> None:
        simple = _simple(loop.body)
        blocks = self.rounds(loop) if simple else 1
        copies = max(self.depth, blocks) if simple else 1
        body = list(loop.body) * copies
        extents = _extents(body, self.closed) if copies > 1 else {}
        head = {s: _across(s, r, self.closed) for s, r in _needed_at_head(body, extents).items()}
        changes = _Changes.of(loop.body)
        self.ensure(head, out)
        still = {slot for slot in head if not changes.touch(slot)}
        for slot in [s for s in self.filled if changes.touch(s)]:
            self.filled.pop(slot)
        self.unfill(changes.remake)
        before, filled = dict(self.valid), dict(self.filled)
        for slot in list(self.valid):
            if changes.touch(slot) and slot not in head:
                self.valid.pop(slot)
        for slot, reach in head.items():
            if slot not in still:
                self.valid[slot] = reach
        rounds: list[list[Item]] = []
        for copy in range(copies):
            items: list[Item] = []
            first = copy * len(loop.body)
            self.run(loop.body, items, {n - first: e for n, e in extents.items() if n >= first})
            rounds.append(items)
        missing = {s: r for s, r in head.items() if not self.valid.get(s, Reach.none(len(r.lo))).covers(r)}
        if missing:
            self.exchange(missing, rounds[-1], overlap=self.overlap and blocks <= 1)
        restore: list[Item] = []
        if copies > 1:
            moving = {s: r for s, r in head.items() if s not in still}
            emit_exchange(moving, restore, False)
        out.append(Loop(tuple(rounds), loop.limit, loop.until, restore, loop.expected))
        self.valid = {s: r for s, r in before.items() if not changes.touch(s)} | {
            s: r for s, r in head.items() if s not in still
        }
        self.filled = {s: r for s, r in filled.items() if not changes.touch(s)}

    def when(self, branch: When, out: list[Item]) -> None:
        before, filled = dict(self.valid), dict(self.filled)
        body: list[Item] = []
        self.run(branch.body, body, {})
        out.append(Branch(body, branch.condition))
        self.valid = {s: r.meet(self.valid[s]) for s, r in before.items() if s in self.valid}
        self.filled = {s: g for s, g in filled.items() if s in self.filled and self.filled[s].covers(g)}


def _rename(table: dict[Slot, Known], rotation: Rotate) -> None:
    """Rename the keys of a mapping as a rotation does: slot k becomes the former slot k + 1."""
    for item in rotation.fields:
        old = [table.pop(Slot(item, k), None) for k in range(item.slots)]
        for k in range(item.slots):
            moved = old[(k + 1) % item.slots]
            if moved is not None:
                table[Slot(item, k)] = moved


def refreshed(refresh: Refresh) -> tuple[dict[Slot, Reach], Ghosts]:
    """Return the requirements of a refresh, as :func:`requirements` does for an operation."""
    width = (refresh.width,) * refresh.slot.field.grid.ndim
    need = Reach(width, width, False)
    return with_boundary(refresh.slot, need, need)


def _overwrites(apply: Apply, param: int) -> bool:
    """Return True if an operation stores every point of a field."""
    slot = apply.slot(param)
    whole = apply.region == slot.field.points and not apply.cells.sparse
    plain = all(set(s.strides) == {1} for s in apply.graph.stores if s.param == param)
    return whole and plain and (apply.graph.order is None or apply.graph.order.kind != "red-black")


def _simple(operations: Sequence[Operation]) -> bool:
    """Return True if extents may be chosen: no order across blocks, one resolution, no nested control."""
    for operation in operations:
        if isinstance(operation, Let | Rotate):
            continue
        if not isinstance(operation, Apply):
            return False
        order = operation.graph.order
        if order is not None and order.kind != "red-black":
            return False
        strides = [s for found in reads(operation.graph).values() for s, _ in found]
        strides += [s.strides for s in operation.graph.stores]
        if any(s > 1 for stride in strides for s in stride):
            return False
        slots = [o for o in operation.operands if isinstance(o, Slot)]
        if any(s.field.grid != operation.grid or s.field.on is not None for s in slots):
            return False
    return True


def _across(slot: Slot, need: Reach, closed: Closed) -> Reach:
    """Return the part of a reach that lies in other blocks, or in periodic images."""
    shut = closed.get(slot.field.grid)
    if shut is None or not any(shut):
        return need
    lo, hi = (tuple(0 if s else w for w, s in zip(end, shut, strict=True)) for end in (need.lo, need.hi))
    return Reach(lo, hi, need.star)


def _extents(operations: Sequence[Operation], closed: Closed) -> dict[int, Reach]:
    """Return extents with which one exchange at the head suffices, by operation number; none if impossible."""
    if not _simple(operations) or any(_has_seam(operation) for operation in operations):
        return {}
    extents: dict[int, Reach] = {}
    need: dict[Slot, Reach] = {}
    for number in range(len(operations) - 1, -1, -1):
        operation = operations[number]
        if isinstance(operation, Rotate):
            for item in operation.fields:
                old = [need.pop(Slot(item, k), None) for k in range(item.slots)]
                for k in range(item.slots):
                    moved = old[(k - 1) % item.slots]
                    if moved is not None:
                        need[Slot(item, k)] = moved
        elif isinstance(operation, Apply) and not operation.replicated:
            extent = Reach.none(operation.grid.ndim)
            for param in operation.graph.written:
                slot = operation.slot(param)
                extent = extent.union(need.get(slot, extent))
                if _overwrites(operation, param):
                    need.pop(slot, None)
            # An extended computation covers whole boxes, corners included.
            extents[number] = extent if extent.empty else Reach(extent.lo, extent.hi, False)
            for slot, reach in requirements(operation, extents[number])[0].items():
                need[slot] = need.get(slot, Reach.none(len(reach.lo))).union(_across(slot, reach, closed))
    return extents


def _has_seam(operation: Operation) -> bool:
    """Return True if cells beyond the ends cannot be computed like others, since edges are joined in reverse."""
    return isinstance(operation, Apply) and operation.grid.seam is not None


def _in_groups(operations: Sequence[Operation], depth: int, closed: Closed) -> dict[int, Reach]:
    """Return the extents outside loops, for one exchange per `depth` operations that read neighbours."""
    extents: dict[int, Reach] = {}
    group: list[Operation] = []
    first = readers = 0
    for number, operation in enumerate([*operations, None]):
        reader = isinstance(operation, Apply) and any(not reach.empty for reach in stencil(operation).values())
        if operation is None or (reader and readers == depth):
            extents |= {first + n: extent for n, extent in _extents(group, closed).items()}
            group, first, readers = [], number, 0
        if operation is not None:
            group.append(operation)
            readers += reader
    return extents


def _needed_at_head(operations: Sequence[Operation], extents: dict[int, Reach]) -> dict[Slot, Reach]:
    """Return what a loop's body reads around blocks before it writes it, under the names at the head."""
    needs = _Needs()
    needs.walk(operations, extents)
    return needs.found


@dataclass(slots=True)
class _Needs:
    """Reads of operations before any write, under the names that slots have at the beginning."""

    found: dict[Slot, Reach] = field(default_factory=dict)
    written: set[Slot] = field(default_factory=set)
    first: dict[Slot, Slot] = field(default_factory=dict)
    """The name at the beginning of each slot that has been renamed since."""

    def walk(self, operations: Sequence[Operation], extents: dict[int, Reach]) -> None:
        """Add the reads of operations; those with an extent are also computed around blocks."""
        for number, operation in enumerate(operations):
            match operation:
                case Apply() if not operation.replicated:
                    extent = extents.get(number) or Reach.none(operation.grid.ndim)
                    self.read(requirements(operation, extent)[0])
                    self.write(operation.slot(param) for param in operation.graph.written)
                case Rotate():
                    self.rotate(operation)
                case Refresh() if not operation.slot.field.replicated:
                    self.read(refreshed(operation)[0])
                case Call():
                    self.write(operation.writes)
                case Move():
                    self.write([operation.target])
                case Repeat() | When():
                    self.walk(operation.body, {})

    def read(self, reaches: Mapping[Slot, Reach]) -> None:
        for slot, reach in reaches.items():
            first = self.first.get(slot, slot)
            if first not in self.written:
                self.found[first] = self.found.get(first, Reach.none(len(reach.lo))).union(reach)

    def write(self, slots: Iterable[Slot]) -> None:
        self.written.update(self.first.get(slot, slot) for slot in slots)

    def rotate(self, rotation: Rotate) -> None:
        for item in rotation.fields:
            slots = [Slot(item, k) for k in range(item.slots)]
            old = [self.first.get(slot, slot) for slot in slots]
            for k, slot in enumerate(slots):
                self.first[slot] = old[(k + 1) % item.slots]


@dataclass(frozen=True, slots=True)
class _Changes:
    """The slots that operations write or rename, and the registers they set; a `call` may set any register."""

    slots: frozenset[Slot]
    fields: frozenset[Field]
    registers: frozenset[str]
    calls: bool

    @classmethod
    def of(cls, operations: Sequence[Operation]) -> _Changes:
        slots: set[Slot] = set()
        fields: set[Field] = set()
        registers: set[str] = set()
        calls = False
        for operation in flat(operations):
            match operation:
                case Apply():
                    slots.update(operation.slot(param) for param in operation.graph.written)
                    registers.update(register.key for register in operation.results)
                case Let():
                    registers.add(operation.register.key)
                case Rotate():
                    fields.update(operation.fields)
                case Call():
                    slots.update(operation.writes)
                    calls = True
                case Move():
                    slots.add(operation.target)
        return cls(frozenset(slots), frozenset(fields), frozenset(registers), calls)

    def touch(self, slot: Slot) -> bool:
        """Return True if a slot is written or renamed."""
        return slot in self.slots or slot.field in self.fields

    def remake(self, ghosts: Ghosts) -> bool:
        """Return True if something changes that ghost cells depend on, besides their own field."""
        known = self.registers & ghosts.registers or (self.calls and ghosts.registers)
        return bool(known) or any(self.touch(other) for other in ghosts.others)
