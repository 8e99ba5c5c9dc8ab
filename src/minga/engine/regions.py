"""Boxes of a block that an operation computes: shells, interiors, extended frames, periodic images, ghost layers."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from minga.compile.lower import rewrite
from minga.engine.program import Apply
from minga.engine.reach import Ghosts, stencil
from minga.engine.schedule import Stage
from minga.engine.storage import Storage
from minga.errors import LayoutError
from minga.lang.expr import Node
from minga.lang.graph import RUN, KernelGraph, Store
from minga.lang.types import is_float
from minga.space.boundary import SIDES, FaceArray, Fill, FillOperand, Position, Side, trace_fill
from minga.space.box import Box, Point
from minga.space.field import MARGIN, Constant, Field, Slot, coordinate_constant
from minga.space.ownership import Ownership
from minga.space.region import Region


@dataclass(frozen=True, slots=True)
class Part:
    """A box of iteration indices; adding `shift` gives the true index (of the cell that a periodic image stands for).

    With a stride, the box counts selected cells: number k has the index `stride * k + phase`.
    """

    lo: tuple[int, ...]
    hi: tuple[int, ...]
    shift: tuple[int, ...]
    reductions: bool = True
    stride: tuple[int, ...] | None = None
    phase: tuple[int, ...] = ()

    @classmethod
    def of(cls, box: Box, shift: Sequence[int] | None = None, reductions: bool = True) -> Part:
        """Return a part that covers a box, without a stride."""
        return cls(box.lo, box.hi, tuple(shift) if shift is not None else (0,) * box.ndim, reductions)


def lead_field(apply: Apply) -> Field:
    """Return the field whose points an operation iterates over: one stored at stride 1, or else one read so."""
    strided = {s.param for s in apply.graph.stores if any(x > 1 for x in s.strides)}
    stored = [s.param for s in apply.graph.stores if s.param not in strided]
    for param in (*stored, *range(len(apply.operands))):
        operand = apply.operands[param]
        if isinstance(operand, Slot) and not operand.field.replicated and operand.field.grid == apply.grid:
            if param not in strided:
                return operand.field
    raise AssertionError("a distributed operation has a field on its grid")


def own_box(apply: Apply, block: int, storage: Storage) -> Box:
    """Return the points of an operation's iteration space that a block owns."""
    lead = lead_field(apply)
    return Ownership.of(lead.grid, storage.layout(lead.grid), lead.centre, None, lead.on).owned(block)


def inner_box(apply: Apply, block: int, storage: Storage, exchange: object) -> Box | None:
    """Return the box that a split operation computes after its exchange has begun: the block without the cells sent."""
    if boundary_first(apply.graph):
        return _inside_borders(apply, block, storage)
    if exchange is None:
        return None
    own = inner = own_box(apply, block, storage)
    for box in exchange.sent_from(block):  # type: ignore[attr-defined]
        if inner.empty:
            break
        overlap = inner & box
        if overlap.empty:
            continue
        cuts = []
        for axis in range(inner.ndim):
            low = Box(_put(inner.lo, axis, overlap.hi[axis]), inner.hi)
            high = Box(inner.lo, _put(inner.hi, axis, overlap.lo[axis]))
            cuts += [low, high]
        inner = max(cuts, key=lambda cut: cut.size)
    return _whole_runs(inner, own) if sums_floats(apply.graph) else inner


def boundary_first(graph: KernelGraph) -> bool:
    """Return True if an operation updates cells at block borders before all others, regardless of the exchange."""
    return graph.order is not None and graph.order.kind == "boundary-first"


def border_widths(apply: Apply) -> tuple[int, ...]:
    """Return the number of planes per axis that a boundary-first operation updates first: as far as neighbours read."""
    widths = [0] * len(apply.region.lo)
    written = {apply.operands[p] for p in apply.graph.written}
    for slot, reach in stencil(apply).items():
        if slot in written:
            widths = [max(w, lo, hi) for w, lo, hi in zip(widths, reach.lo, reach.hi, strict=True)]
    return tuple(widths)


def _inside_borders(apply: Apply, block: int, storage: Storage) -> Box:
    """Return a block without the planes at its borders with other blocks."""
    own, points = own_box(apply, block, storage), lead_field(apply).points
    lo, hi = list(own.lo), list(own.hi)
    for axis, width in enumerate(border_widths(apply)):
        whole = own.shape[axis] == points.shape[axis]
        around = lead_field(apply).periodic[axis] and not whole
        if around or own.lo[axis] > points.lo[axis]:
            lo[axis] += width
        if around or own.hi[axis] < points.hi[axis]:
            hi[axis] = max(lo[axis], hi[axis] - width)
    return Box(tuple(map(min, lo, hi)), tuple(hi))


def sums_floats(graph: KernelGraph) -> bool:
    """Return True if a kernel sums floats, in which case runs along the innermost axis must not be cut."""
    return any(r.kind == "sum" and is_float(r.value.dtype) for r in graph.reductions)


def _whole_runs(inner: Box, own: Box) -> Box:
    """Return the part of an inner box that can be summed separately from the rest of its block."""
    lo, hi = inner.lo[-1], inner.hi[-1]
    lo = lo if lo == own.lo[-1] else -(-lo // RUN) * RUN
    hi = hi if hi == own.hi[-1] else hi // RUN * RUN
    return Box((*inner.lo[:-1], lo), (*inner.hi[:-1], max(lo, hi)))


def _put(values: Point, axis: int, value: int) -> Point:
    return (*values[:axis], value, *values[axis + 1 :])


def stage_parts(apply: Apply, block: int, storage: Storage, stage: Stage, inner: Box | None) -> Iterator[Part]:
    """Yield the kernel calls of one block in one stage, or in one part of a stage."""
    own = own_box(apply, block, storage)
    wide = own if stage.extent.empty else own.grow(stage.extent.lo, stage.extent.hi)
    if own.empty:
        return
    split = [Box(own.lo, own.hi)] if inner is None else [inner]
    frames = [] if wide == own else wide.subtract(own)
    if stage.part == "all" and boundary_first(apply.graph):
        for box in own.subtract(split[0]):
            yield from images(apply, box)
        if not split[0].empty:
            yield from images(apply, split[0])
    elif stage.part == "all":
        if not frames or (not apply.graph.reductions and apply.mask is None):
            yield from images(apply, wide)
            return
        yield from images(apply, own)
    elif stage.part == "shell":
        for box in own.subtract(split[0]) if not split[0].empty else [own]:
            yield from images(apply, box)
        return
    else:
        if not split[0].empty:
            yield from images(apply, split[0])
    for box in frames:
        yield from images(apply, box, reductions=False)


def select(part: Part, cells: Region) -> Iterator[Part]:
    """Yield the selected cells of a part: the part itself, one part per point, or one that counts every n-th cell."""
    if cells.points is not None:
        for point in cells.points:
            at = tuple(p - s for p, s in zip(point, part.shift, strict=True))
            if all(lo <= a < hi for lo, a, hi in zip(part.lo, at, part.hi, strict=True)):
                yield Part(at, tuple(a + 1 for a in at), part.shift, part.reductions)
    elif cells.stride is not None:
        assert cells.box is not None
        phase = tuple((b - s) % n for b, s, n in zip(cells.box.lo, part.shift, cells.stride, strict=True))
        lo = tuple(-(-(a - p) // n) for a, p, n in zip(part.lo, phase, cells.stride, strict=True))
        hi = tuple(-(-(b - p) // n) for b, p, n in zip(part.hi, phase, cells.stride, strict=True))
        yield Part(lo, hi, part.shift, part.reductions, cells.stride, phase)
    else:
        yield part


def every_nth(graph: KernelGraph, stride: Sequence[int], phase: Sequence[int], shift: Sequence[int]) -> KernelGraph:
    """Return a kernel that updates cell `stride * k + phase` in iteration k."""

    def along(param: int, values: Sequence[int]) -> tuple[int, ...]:
        return tuple(values[a] for a in graph.params[param].axes)

    def rule(node: Node) -> Node:
        if node.op == "read":
            param, strides, offsets = node.data
            n, p = along(param, stride), along(param, phase)
            moved = tuple(s * q + o for s, q, o in zip(strides, p, offsets, strict=True))
            return Node("read", node.dtype, data=(param, tuple(s * m for s, m in zip(strides, n, strict=True)), moved))
        if node.op == "index":
            axis = node.data
            # The true index: the shift is part of it here, as the compiled kernel would add it to k.
            count: Node = Node("index", "i8", data=axis) * stride[axis]
            true: Node = count + (phase[axis] + shift[axis] * (1 - stride[axis]))
            return true
        return node

    moved = rewrite(graph, rule)
    stores = []
    for store in moved.stores:
        n, p = along(store.param, stride), along(store.param, phase)
        strides = tuple(s * m for s, m in zip(store.strides, n, strict=True))
        offsets = tuple(s * q + o for s, q, o in zip(store.strides, p, store.offsets, strict=True))
        stores.append(Store(store.param, strides, offsets, store.value))
    return replace(moved, stores=tuple(stores))


def images(apply: Apply, box: Box, reductions: bool = True) -> Iterator[Part]:
    """Yield a box that may extend into periodic images of the region as parts with one shift each."""
    lead = lead_field(apply)
    periodic = lead.periodic
    if apply.region == lead.points and not _indexes_truly(apply):
        inside = Box(
            tuple(lo if p else max(lo, r) for lo, r, p in zip(box.lo, apply.region.lo, periodic, strict=True)),
            tuple(hi if p else min(hi, r) for hi, r, p in zip(box.hi, apply.region.hi, periodic, strict=True)),
        )
        if not inside.empty:
            yield from select(Part.of(inside, None, reductions), apply.cells)
        return
    for t in lead.grid.images(box, lead.points):
        piece = box & apply.region.shift(t)
        if not piece.empty:
            yield from select(Part.of(piece, [-s for s in t], reductions), apply.cells)


def _indexes_truly(apply: Apply) -> bool:
    """Return True if a cell's value depends on its index, so that periodic images need the true index."""
    whole = any(isinstance(o, Constant) or o.field.replicated for o in apply.operands)
    return (
        whole
        or apply.cells.sparse
        or apply.graph.order is not None
        or any(node.op == "index" for node in apply.graph.nodes())
    )


def ghost_parts(target: Field, position: Box, stored: Box, ghosts: Ghosts) -> Iterator[GhostPart]:
    """Yield the fills of a block's ghost cells beyond the domain, in order: axis by axis, nearest layer first.

    `position` holds the points that the block would own if the field existed everywhere; `stored` is the box that it
    stores, which may be empty for a partial field. Each fill comes with the index at which other fields are read, for
    parts that lie outside the domain along other axes too.
    """
    points, periodic = target.points, target.periodic
    limits = points.grow(ghosts.layers.lo, ghosts.layers.hi)
    wide = _within(target, position.grow(ghosts.reach.lo, ghosts.reach.hi), limits) & stored
    if wide.empty:
        return
    for axis in range(target.grid.ndim):
        if periodic[axis]:
            continue
        around = wide
        for other in range(target.grid.ndim):
            if ghosts.reach.star and other != axis:
                around = _cut(around, other, position)
            elif other > axis and not periodic[other]:
                around = _cut(around, other, points)
        for side in SIDES:
            beyond = points.lo[axis] - wide.lo[axis] if side == "low" else wide.hi[axis] - points.hi[axis]
            for layer in range(1, beyond + 1):
                fill = trace_fill(target, axis, side, layer)
                if fill is None:
                    continue
                _check_depth(target, axis, side, fill)
                at = points.lo[axis] - layer if side == "low" else points.hi[axis] - 1 + layer
                box = Box(_put(around.lo, axis, at), _put(around.hi, axis, at + 1))
                if not wide.lo[axis] <= at < wide.hi[axis] or box.empty:
                    continue
                bound = _with_constants(target, axis, fill, max(MARGIN, *ghosts.layers.lo, *ghosts.layers.hi))
                for piece, nearest in _beside(target, axis, box, fill):
                    yield from ((bound, part, nearest) for part in _ghost_images(target, axis, piece, fill))


GhostPart = tuple[Fill, Part, Mapping[int, int]]


def merged(parts: Iterable[GhostPart]) -> list[GhostPart]:
    """Return the same fills in fewer parts: layers stored without reading anything are joined into one box."""
    found: list[GhostPart] = []
    for fill, part, nearest in parts:
        if found and found[-1][2] == nearest and _alike(found[-1][0], fill):
            box = _joined(found[-1][1], part)
            if box is not None:
                found[-1] = found[-1][0], box, nearest
                continue
        found.append((fill, part, nearest))
    return found


def _alike(one: Fill, other: Fill) -> bool:
    """Return True if two fills store the same values, independently of the position."""
    if any(node.op == "read" for node in one.graph.nodes()) or one.graph.digest() != other.graph.digest():
        return False
    return len(one.operands) == len(other.operands) and all(map(operator.is_, one.operands, other.operands))


def _joined(one: Part, other: Part) -> Part | None:
    """Return two parts as one if their union is a box, otherwise None."""
    if one.shift != other.shift or one.stride is not None or other.stride is not None:
        return None
    differ = [a for a in range(len(one.lo)) if (one.lo[a], one.hi[a]) != (other.lo[a], other.hi[a])]
    if len(differ) != 1:
        return None
    axis = differ[0]
    if one.lo[axis] != other.hi[axis] and one.hi[axis] != other.lo[axis]:
        return None
    return replace(one, lo=tuple(map(min, one.lo, other.lo)), hi=tuple(map(max, one.hi, other.hi)))


def _within(target: Field, box: Box, limits: Box) -> Box:
    """Clip a box to limits along the axes that are not periodic."""
    for axis in range(box.ndim):
        if not target.periodic[axis]:
            box = _cut(box, axis, limits)
    return box


def _cut(box: Box, axis: int, limits: Box) -> Box:
    lo, hi = max(box.lo[axis], limits.lo[axis]), min(box.hi[axis], limits.hi[axis])
    return Box(_put(box.lo, axis, lo), _put(box.hi, axis, hi))


def _beside(target: Field, axis: int, box: Box, fill: Fill) -> list[tuple[Box, dict[int, int]]]:
    """Split a ghost box where it lies outside the domain along other axes, if the condition reads other fields there.

    Those fields have no valid ghost cells at that time; they are read at the nearest index instead.
    """
    pieces: list[tuple[Box, dict[int, int]]] = [(box, {})]
    if not any(isinstance(operand, Field) and operand is not target for operand in fill.operands):
        return pieces
    for other in range(axis):
        if target.periodic[other]:
            continue
        lo, hi = target.points.lo[other], target.points.hi[other]
        cuts = []
        for piece, nearest in pieces:
            below, above = Box(piece.lo, _put(piece.hi, other, lo)), Box(_put(piece.lo, other, hi), piece.hi)
            cuts += [(below, nearest | {other: lo}), (_cut(piece, other, target.points), nearest)]
            cuts += [(above, nearest | {other: hi - 1})]
        pieces = [(piece, nearest) for piece, nearest in cuts if not piece.empty]
    return pieces


def _check_depth(target: Field, axis: int, side: Side, fill: Fill) -> None:
    extent = target.points.shape[axis]
    if fill.depth > extent:
        raise LayoutError(
            f"the {side} boundary of {target.name!r} along {target.grid.axes[axis]!r} reads {fill.depth} cells inside, "
            f"but there are only {extent}",
            remedy="use more cells along the axis, a smaller stencil, or a boundary that reads fewer cells",
        )


def _ghost_images(target: Field, axis: int, box: Box, fill: Fill) -> Iterator[Part]:
    """Yield a ghost box, split at periodic images along the other axes if the condition depends on the position."""
    depends = any(isinstance(operand, Position | FaceArray) for operand in fill.operands)
    depends |= any(node.op == "index" for node in fill.graph.nodes())
    if not depends or not any(target.periodic):
        yield Part.of(box)
        return
    # The position of the ghost along non-periodic axes does not affect which images it lies in.
    inside = Box(
        tuple(b if p else a for a, b, p in zip(target.points.lo, box.lo, target.periodic, strict=True)),
        tuple(b if p else a + 1 for a, b, p in zip(target.points.lo, box.hi, target.periodic, strict=True)),
    )
    for t in target.grid.images(inside, target.points):
        shifted = target.points.shift(t)
        lo = tuple(
            b if a == axis or not target.periodic[a] else max(b, s)
            for a, (b, s) in enumerate(zip(box.lo, shifted.lo, strict=True))
        )
        hi = tuple(
            b if a == axis or not target.periodic[a] else min(b, s)
            for a, (b, s) in enumerate(zip(box.hi, shifted.hi, strict=True))
        )
        piece = Box(lo, hi)
        if not piece.empty:
            yield Part.of(piece, [-s for s in t])


def _with_constants(target: Field, axis: int, fill: Fill, margin: int) -> Fill:
    """Return a fill in which descriptions of coordinates and face arrays are replaced by constants."""
    operands: list[FillOperand] = []
    for operand in fill.operands:
        match operand:
            case Position():
                operands.append(coordinate_constant(target.grid, operand.axis, target.centre[operand.axis], margin))
            case FaceArray():
                operands.append(_face_constant(target, axis, operand, margin))
            case _:
                operands.append(operand)
    return Fill(fill.graph, tuple(operands), fill.depth, fill.registers)


def _face_constant(target: Field, axis: int, face: FaceArray, margin: int) -> Constant:
    """Return the values of a face as a constant, extended beyond its edges for the corners."""
    expected = tuple(target.points.shape[a] for a in face.axes)
    if face.values.shape != expected:
        raise LayoutError(
            f"the boundary array of {target.name!r} along {target.grid.axes[axis]!r} has shape {face.values.shape}",
            remedy=f"give one value for each cell of the face: {expected}",
        )
    origin = tuple(target.points.lo[a] - margin for a in face.axes)
    return Constant("@face", face.axes, origin, np.pad(face.values, margin, mode="edge"))
