"""Overlap: starting an exchange inside the operations that produce its data, so that computing hides it."""

from __future__ import annotations

from collections.abc import Sequence

from minga.engine.program import Apply, Let, Rotate
from minga.engine.reach import Reach, stencil
from minga.engine.regions import border_widths, boundary_first, lead_field
from minga.engine.schedule import Begin, Finish, HaloExchange, Item, Stage, Valid
from minga.space.field import Register, Slot


def emit_exchange(missing: Valid, out: list[Item], overlap: bool) -> None:
    """Append an exchange; with overlap, start it inside the trailing operations that produce the data.

    These operations are split: their shells are computed first, the messages are sent, then their interiors are
    computed. A stage can be split if it is unordered, and if no later stage of the group reads what it stores at
    neighbours, or what it reduces. A boundary-first stage is split at its own border, so it forms a group of its own.
    """
    slots = tuple(missing)
    reaches = tuple(missing.values())
    position = len(out)
    names = list(slots)
    while position and isinstance(out[position - 1], Rotate | Let):
        previous = out[position - 1]
        if isinstance(previous, Rotate):
            names = [_before(previous, slot) for slot in names]
        position -= 1
    first = position
    while overlap and first:
        item = out[first - 1]
        if not isinstance(item, Stage) or not _splittable(item, out[first:position], names, reaches):
            break
        first -= 1
        if boundary_first(item.apply.graph):
            break
    exchange = HaloExchange(tuple(names) if first < position else slots, slots, reaches)
    if first == position:
        out += [Begin(exchange), Finish(exchange)]
        return
    group = [item for item in out[first:position] if isinstance(item, Stage)]
    behind = out[position:]
    out[first:] = [
        *(Stage(s.apply, s.extent, "shell", exchange) for s in group),
        Begin(exchange),
        *(Stage(s.apply, s.extent, "interior", exchange) for s in group),
        *behind,
        Finish(exchange),
    ]


def _before(rotation: Rotate, slot: Slot) -> Slot:
    """Return the name that a slot had before a rotation."""
    if slot.field not in rotation.fields:
        return slot
    return Slot(slot.field, (slot.index + 1) % slot.field.slots)


def _covered(apply: Apply, names: Sequence[Slot], reaches: Sequence[Reach]) -> bool:
    """Return True if a boundary-first operation computes all cells of its fields that are sent before the others."""
    widths = border_widths(apply)
    written = {apply.operands[p] for p in apply.graph.written}
    sent = [reach for name, reach in zip(names, reaches, strict=True) if name in written]
    return all(max(lo, hi) <= width for r in sent for lo, hi, width in zip(r.lo, r.hi, widths, strict=True))


def _splittable(stage: Stage, later: Sequence[Item], names: Sequence[Slot], reaches: Sequence[Reach]) -> bool:
    apply = stage.apply
    if boundary_first(apply.graph) and (later or not _covered(apply, names, reaches)):
        return False
    if (
        stage.part != "all"
        or apply.replicated
        or (apply.graph.order is not None and apply.graph.order.kind not in ("red-black", "boundary-first"))
    ):
        return False
    strided = any(s > 1 for store in apply.graph.stores for s in store.strides)
    written = {apply.operands[p] for p in apply.graph.written}
    if strided or not written & set(names):
        return False
    if any(n.field.grid != apply.grid for n in names):
        return False
    for item in later:
        assert isinstance(item, Stage)
        if lead_field(item.apply).points != lead_field(apply).points:
            return False  # their shells would consist of different cells
        if any(not reach.empty for slot, reach in stencil(item.apply).items() if slot in written):
            return False
        # A later shell must not overwrite what this interior still reads either.
        stored = {item.apply.operands[p] for p in item.apply.graph.written}
        if any(not reach.empty for slot, reach in stencil(apply).items() if slot in stored):
            return False
        # It must not use a register that is complete only after this interior either.
        if _registers(item.apply) & {register.key for register in apply.results}:
            return False
    return True


def _registers(apply: Apply) -> set[str]:
    """Return the registers whose values an operation uses, by their names in graphs."""
    given = {value.key for value in apply.scalars.values() if isinstance(value, Register)}
    return given | {scalar.name for scalar in apply.graph.scalars}
