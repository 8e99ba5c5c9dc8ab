"""Checks of the points an operation iterates over and of the accesses a kernel makes to its fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from minga.errors import ProgramError
from minga.lang.analysis import reads
from minga.lang.expr import as_node
from minga.lang.graph import KernelGraph, Order
from minga.lang.kernel import FieldType, Kernel, check_graph
from minga.lang.types import is_float
from minga.space.boundary import SIDES
from minga.space.box import Box
from minga.space.field import MARGIN, Constant, Field, Slot
from minga.space.grid import Grid
from minga.space.region import WHOLE, Region

Operand = Slot | Constant


def iterated_axes(slots: Sequence[Slot]) -> tuple[int, ...]:
    """Return the grid axes a kernel iterates over: all axes, except those that every field lacks."""
    axes = {axis for slot in slots for axis in slot.field.axes}
    return tuple(sorted(axes))


def field_type(slot: Slot, iterated: tuple[int, ...]) -> FieldType:
    """Return the type of a kernel parameter for a slot, with the field's axes numbered among the iterated ones."""
    item = slot.field
    return FieldType(
        item.dtype,
        tuple(iterated.index(a) for a in item.axes),
        tuple(item.centre[a] for a in item.axes) if any(item.centre) else (),
        tuple(iterated.index(a) for a in item.axes if item.antiperiodic[a]),
    )


def iteration_grid(kernel: Kernel, slots: Sequence[Slot]) -> Grid:
    """Return the grid a kernel iterates over: the one with the fewest cells."""
    if not slots:
        raise ProgramError(f"apply({kernel.name}): no fields", remedy="pass one field for each positional parameter")
    dims = {slot.field.grid.ndim for slot in slots}
    if len(dims) > 1:
        raise ProgramError(
            f"apply({kernel.name}): fields of grids with {sorted(dims)} axes", remedy="use grids of one dimension"
        )
    return min((slot.field.grid for slot in slots), key=lambda grid: grid.size)


def written_field(graph: KernelGraph, slots: Sequence[Slot]) -> Field | None:
    """Return the field of a graph's first store, or None if it stores nothing."""
    return next((slots[store.param].field for store in graph.stores), None)


def iteration_points(
    kernel: Kernel, graph: KernelGraph, slots: Sequence[Slot], grid: Grid, iterated: tuple[int, ...]
) -> Box:
    """Return the indices a kernel iterates over by default: the points it stores (or else reads) at stride 1."""
    strided = {n.data[0] for n in graph.nodes() if n.op == "read" and any(s > 1 for s in n.data[1])}
    strided |= {s.param for s in graph.stores if any(x > 1 for x in s.strides)}
    stored = [slots[s.param].field for s in graph.stores if s.param not in strided]
    plain = [s.field for i, s in enumerate(slots) if i not in strided and len(s.field.axes) == len(iterated)]
    spaces = {f.project(f.points) if f.replicated else f.points for f in (stored or plain)}
    if not spaces:
        raise ProgramError(
            f"apply({kernel.name}): every field is strided, so the cells to run over are not known",
            remedy="pass a field of the coarse grid as well",
        )
    if stored and len(spaces) > 1:
        raise ProgramError(
            f"apply({kernel.name}): it stores fields with different points: {', '.join(sorted(map(str, spaces)))}",
            remedy="store fields of one kind (cells, or faces of one axis) in one kernel",
        )
    space = next(iter(spaces))
    for other in spaces:
        space = space & other
    return space


def in_region(kernel: Kernel, graph: KernelGraph, cells: Region) -> tuple[KernelGraph, tuple[int, ...]]:
    """Return the graph and the colours of an operation on selected cells. Raise ProgramError for invalid selections."""
    order = graph.order
    if cells.colour is not None:
        if order is not None:
            raise ProgramError(
                f"apply({kernel.name}): a colour of a kernel with an order",
                where=graph.where,
                remedy="drop order=, or apply the kernel without a colour",
            )
        coloured = replace(graph, order=Order("red-black", (0,) * graph.ndim))
        check_graph(coloured)
        return coloured, (cells.colour,)
    chosen = cells.stride is not None or cells.points is not None
    if chosen and order is not None:
        raise ProgramError(
            f"apply({kernel.name}): single cells of a kernel with an order", where=graph.where, remedy="drop order="
        )
    if cells.stride is not None and (graph.locals or any(r.kind != "count" for r in graph.reductions)):
        raise ProgramError(
            f"apply({kernel.name}): a strided region of a kernel with mg.local or reductions other than mg.count",
            where=graph.where,
            remedy="select the cells in the kernel: mg.where(mg.index(axis) % stride == 0, value, 0)",
        )
    return graph, (0, 1) if order is not None and order.kind == "red-black" else (0,)


def check_mask(mask: Slot) -> Slot:
    """Return the mask. Raise ProgramError unless it is a u1 or bool field with a value for every cell."""
    item = mask.field
    if item.dtype not in ("u1", "bool") or any(item.centre) or item.on is not None or item.replicated:
        raise ProgramError(
            f"{item!r} is not a mask", remedy='declare it as mg.Field(name, grid, "u1"): 0 in cells that are computed'
        )
    return mask


def moved_boxes(source: Slot, target: Slot, box: Box | Sequence[Box] | None, number: object) -> tuple[Box, ...]:
    """Return the source boxes that a move may copy, none for all points. Raise ProgramError for unsuitable fields."""
    a, b = source.field, target.field
    if box is None:
        if a.points != b.points or a.dtype != b.dtype or a.replicated or b.replicated:
            raise ProgramError(f"move from {a!r} to {b!r}", remedy="both need the same points and type, and all axes")
        if number is not None:
            raise ProgramError("move: number= without boxes", remedy="give box= the boxes to choose from")
        return ()
    if number is not None and is_float(as_node(number).dtype):
        raise ProgramError("move: the number of a box is not an integer", remedy='count in an mg.Register(name, "i8")')
    boxes = (box,) if isinstance(box, Box) else tuple(box)
    if a.grid.ndim != b.grid.ndim or a.dtype != b.dtype or a.replicated or b.replicated:
        raise ProgramError(
            f"move of boxes from {a!r} to {b!r}", remedy="both need the same type and number of axes, and all axes"
        )
    if number is None and len(boxes) != 1:
        raise ProgramError(f"move: {len(boxes)} boxes", remedy="select one with number=, a register or expression")
    for each in boxes:
        if not isinstance(each, Box) or each.ndim != a.grid.ndim or not a.points.contains(each):
            raise ProgramError(f"move: {each} is not a box of {a!r}", remedy=f"choose one inside {a.points}")
        if any(n > room for n, room in zip(each.shape, b.points.shape, strict=True)):
            raise ProgramError(
                f"move: {each}, of shape {each.shape}, does not fit into {b!r}", remedy="make the target larger"
            )
    return boxes


def check_aliases(kernel: Kernel, graph: KernelGraph, operands: Sequence[Operand], cells: Region = WHOLE) -> None:
    """Raise ProgramError if a kernel's result would depend on the order of cells.

    One array may be passed to two parameters, or read and stored through one, only cell by cell, in a declared order,
    or at cells of a strided region that are not stored.
    """
    written = {operands[p]: p for p in graph.written}
    if len(written) < len(graph.written):
        raise ProgramError(f"apply({kernel.name}): one field is given to two parameters that are both stored")
    for param, found in reads(graph).items():
        slot = operands[param]
        if slot not in written:
            continue
        alias = written[slot] != param
        stored = next(store.strides for store in graph.stores if store.param == written[slot])
        apart = not alias and cells.stride is not None and all(_between(cells.stride, *read) for read in found)
        if (graph.order is None or alias) and not apart and not all(_own_points(stored, *read) for read in found):
            name = graph.params[param].name
            raise ProgramError(
                f"apply({kernel.name}): {slot!r} is stored and also read at neighbours (as {name!r}), "
                "so the result would depend on the order of cells",
                where=graph.where,
                remedy="store into another slot (slots=2: u.next, then rotate), or declare order=",
            )


def _own_points(stored: Sequence[int], strides: Sequence[int], offsets: Sequence[int]) -> bool:
    """Return True if a read at a stride stays among the points that its own cell, and no other, stores."""
    return tuple(strides) == tuple(stored) and all(0 <= o < s for o, s in zip(offsets, stored, strict=True))


def _between(stride: Sequence[int], strides: Sequence[int], offsets: Sequence[int]) -> bool:
    """Return True if a read from a strided region's cells hits the cell itself or one that the region leaves out."""
    one = all(s == 1 for s in strides)
    return one and (not any(offsets) or any(o % n for o, n in zip(offsets, stride, strict=True)))


def check_reach(kernel: Kernel, graph: KernelGraph, slots: Sequence[Slot], region: Box) -> None:
    """Raise ProgramError if a read outside a field's points meets neither a boundary condition nor a periodic axis."""
    for param, found in reads(graph).items():
        if param >= len(slots):
            continue
        target = slots[param].field
        _check_seam(kernel, graph, param, target)
        if target.replicated:
            _check_margin(kernel, graph, param, target, region)
            continue
        for axis in range(target.grid.ndim):
            if target.periodic[axis] or region.empty:
                continue
            low = min(s[axis] * region.lo[axis] + o[axis] for s, o in found)
            high = max(s[axis] * (region.hi[axis] - 1) + o[axis] for s, o in found) + 1
            for side, beyond in zip(SIDES, (low < target.points.lo[axis], high > target.points.hi[axis]), strict=True):
                if beyond and target.boundary.at(axis, side) is None:
                    raise ProgramError(
                        f"apply({kernel.name}): {target.name!r} is read beyond the {side} end of axis "
                        f"{target.grid.axes[axis]!r}, where it has no boundary condition",
                        where=graph.where,
                        remedy="give the field boundary=mg.fixed(...) or another condition, make the axis periodic, "
                        "or restrict the region",
                    )


def _check_seam(kernel: Kernel, graph: KernelGraph, param: int, target: Field) -> None:
    """Raise ProgramError if cells are read that a field does not have beyond a seam."""
    seam = target.grid.seam
    farthest = max((abs(n) for _, offsets in reads(graph)[param] for n in offsets), default=0)
    if seam is not None and farthest > (0 if target.replicated else 1):
        which = "beside the cell, and it lacks axes of its grid" if target.replicated else "beyond the next cells"
        raise ProgramError(
            f"apply({kernel.name}): {target.name!r} is read {which}, on a {seam.surface}",
            where=graph.where,
            remedy="use a torus, or read the nearest cells only, of fields with all axes",
        )


def _check_margin(kernel: Kernel, graph: KernelGraph, param: int, target: Field, region: Box) -> None:
    """Raise ProgramError if a field that lacks axes is read too far beyond its ends.

    Such a field is extended by MARGIN points: periodically, or with its last value.
    """
    if region.empty:
        return
    axes, bounds = graph.params[param].axes, target.bounds
    farthest = 0
    for strides, offsets in reads(graph)[param]:
        for number, (axis, stride, offset) in enumerate(zip(axes, strides, offsets, strict=True)):
            first, last = stride * region.lo[axis] + offset, stride * (region.hi[axis] - 1) + offset
            farthest = max(farthest, abs(offset), bounds.lo[number] - first, last + 1 - bounds.hi[number])
    if farthest > MARGIN:
        raise ProgramError(
            f"apply({kernel.name}): {target.name!r}, which lacks axes of its grid, is read {farthest} points away",
            where=graph.where,
            remedy=f"read it at most {MARGIN} points away and beyond its ends, or give it all axes",
        )


def check_resolution(kernel: Kernel, graph: KernelGraph, slots: Sequence[Slot], grid: Grid) -> None:
    """Raise ProgramError unless a field accessed at stride s has s cells for each cell of the iteration grid."""
    accesses = [(param, strides) for param, found in reads(graph).items() for strides, _ in found]
    accesses += [(store.param, store.strides) for store in graph.stores]
    for param, strides in accesses:
        if param >= len(slots) or slots[param].field.replicated:
            continue
        shape = slots[param].field.grid.shape
        if tuple(-(-n // s) for n, s in zip(shape, strides, strict=True)) != grid.shape:
            raise ProgramError(
                f"apply({kernel.name}): {slots[param].field.name!r} of a grid of shape {shape} is accessed at stride "
                f"{tuple(strides)}, and other fields have a grid of shape {grid.shape}",
                where=graph.where,
                remedy="at stride s a grid has s times as many cells (the last may lack some): use field.strided(s), "
                "or fields of one grid",
            )


def check_colours(kernel: Kernel, slots: Sequence[Slot], graph: KernelGraph) -> None:
    """Raise ProgramError if cells of one colour read each other, including where a torus closes."""
    found = reads(graph)
    for store in graph.stores:
        target = slots[store.param].field
        aside = [o for p, s in enumerate(slots) if s == slots[store.param] for _, o in found.get(p, ()) if any(o)]
        if not aside:
            continue
        if target.grid.seam is not None:
            raise ProgramError(
                f"apply({kernel.name}): red-black on a {target.grid.seam.surface}: cells of one colour meet where "
                "edges are joined in reverse",
                remedy="use a torus",
            )
        for axis in range(target.grid.ndim):
            if target.periodic[axis] and target.grid.shape[axis] % 2 and any(o[axis] for o in aside):
                raise ProgramError(
                    f"apply({kernel.name}): red-black on periodic axis {target.grid.axes[axis]!r} of "
                    f"{target.grid.shape[axis]} cells: cells of one colour meet where the axis closes",
                    remedy="use an even number of cells along periodic axes",
                )
        if target.grid.twisted and any(sum(v) % 2 for v in target.grid.shift):
            raise ProgramError(
                f"apply({kernel.name}): red-black on a torus shifted by an odd number of cells",
                remedy="shift by an even number of cells",
            )
