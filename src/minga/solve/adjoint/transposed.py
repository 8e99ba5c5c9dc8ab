"""Adjoint of one operation of a Program: kernels that pull the adjoints of what a kernel stores back to what it reads.

For every cell x of its region a kernel stores T(x) = F(S(x + k), ...). With the adjoint t of T, the adjoint s of S
grows by dF/dS(x + k) t(x) in the cell x + k. Two kernels do this without any cell being written by two others:

1. *at the cell*: the adjoints of what was read at the cell itself are updated, and each expression that is needed at
   neighbours, coefficient times t, is stored in a field of its own, which is 0 outside the region;
2. *at neighbours*: s(y) grows by the sum over k of these fields at y - k.

Intermediates (mg.local) that are linear with constant coefficients, such as the inner derivative of a mixed one, stay
intermediates of the second kernel; all others are written out. Ghost cells are no cells: what they would get goes to
the cells that they are made of, through further kernels on the few rows beside the ends.

If a kernel flushes what it stores (see `flushed`), its adjoint does, too: it may be as small beyond the same fronts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from minga.engine.check import Operand, check_reach
from minga.engine.operations import Apply, ScalarValue
from minga.errors import ProgramError
from minga.lang.expr import Node, const, flushed, where
from minga.lang.graph import Interner, KernelGraph, Param, Store, topological
from minga.lang.inline import without_locals
from minga.lang.reverse import Weight, pulled_back, weighted_sum
from minga.lang.shift import shifted, shifted_leaf
from minga.lang.trace import Trace, assemble
from minga.lang.types import is_float
from minga.solve.adjoint.ghosts import Face, faces_of
from minga.solve.adjoint.like import field_like
from minga.space.boundary import Side
from minga.space.box import Box
from minga.space.field import Field, Register, Slot
from minga.space.grid import Grid
from minga.space.region import Region

__all__ = ["Pool", "Renumbered", "Values", "transposed"]

Offset = tuple[int, ...]
Terms = Sequence[tuple[Offset, Node, float]]
"""Expressions with factors, each given by a cell to the one at an offset from it."""


@dataclass(frozen=True, slots=True)
class Values:
    """Places of the operands of an operation while its adjoint runs.

    Attributes
    ----------
    adjoint
        The adjoint of a slot; None if nothing depends on it.
    saved
        Registers that hold the values that others, by their keys, had when the operation was done.
    """

    adjoint: Callable[[Slot], Slot | None]
    saved: Mapping[str, Register]


@dataclass(slots=True)
class Pool:
    """Fields for intermediate results, which successive operations share."""

    name: str
    fields: dict[tuple[object, ...], Field] = field(default_factory=dict)

    def take(self, like: Field, number: int, dtype: str, on: Box | None, cells: object) -> Field:
        """Return field number `number` with the points of another one, or on a box of them; 0 beyond its ends.

        Operations that store different `cells` of a box get different fields: the others must stay 0.
        """
        key = (like.grid, like.centre, dtype, on, cells, number)
        if key not in self.fields:
            name = f"{self.name}.work.{len(self.fields)}"
            self.fields[key] = field_like(like, name, "workspace of the adjoint", dtype=dtype, on=on)
        return self.fields[key]


def transposed(operation: Apply, values: Values, pool: Pool) -> list[Apply]:
    """Return the operations that pull the adjoints back through a kernel; none if nothing active is stored.

    Raises
    ------
    ProgramError
        If the kernel has an order of cells, strides, or another property that is not supported.
    """
    adjoints = {
        number: adjoint
        for number, operand in enumerate(operation.operands)
        if isinstance(operand, Slot) and (adjoint := values.adjoint(operand)) is not None
    }
    if not any(store.param in adjoints for store in operation.graph.stores):
        return []
    _check(operation, adjoints)
    return _Transposed(operation, values, pool, adjoints).operations()


def _check(operation: Apply, adjoints: Mapping[int, Slot]) -> None:
    """Raise ProgramError for a kernel whose adjoint is not known."""
    graph, label = operation.graph, operation.label

    def refuse(what: str, remedy: str) -> ProgramError:
        return ProgramError(f"the adjoint of {label}: {what}", where=graph.where, remedy=remedy)

    if graph.order is not None or operation.cells.colour is not None:
        raise refuse("a kernel with an order of cells", "write the update from one slot to another, without order=")
    if operation.cells.stride is not None or operation.cells.active is not None:
        raise refuse("a region with a stride or with active tiles", "apply the kernel to a box")
    if operation.mask is not None:
        raise refuse(
            "cells are skipped by a mask", "record it without masked(): where they may be skipped, results are equal"
        )
    for store in graph.stores:
        if store.param in adjoints and (any(store.offsets) or any(s != 1 for s in store.strides)):
            raise refuse("it stores cells other than its own", "store u[0, 0] alone, without strided()")
    for node in graph.nodes():
        if node.op == "read" and node.data[0] in adjoints and any(s != 1 for s in node.data[1]):
            raise refuse("it couples grids of different resolution", "leave strided() out")


class _Transposed:
    """The kernels of the adjoint of one operation, while they are made."""

    def __init__(self, operation: Apply, values: Values, pool: Pool, adjoints: Mapping[int, Slot]) -> None:
        self.operation = operation
        self.values = values
        self.pool = pool
        self.adjoints = adjoints
        self.share = Interner()
        graph = operation.graph
        self.kept = _linear_locals(graph, adjoints)
        self.graph = without_locals(graph, self.kept) if graph.locals else graph
        self.params = [*graph.params]
        self.operands: list[Operand] = [*operation.operands]
        self.numbers: dict[Slot, int] = {}

    def operations(self) -> list[Apply]:
        """Return the operations."""
        stored = {self.adjoints[s.param]: s for s in self.graph.stores if s.param in self.adjoints}
        weighted = [(store.value, self._read(slot)) for slot, store in stored.items()]
        here: dict[Slot, Weight] = {slot: Weight() for slot in stored}
        there: list[tuple[Node, Weight]] = []
        for leaf, weight in pulled_back(weighted, self._active, self.share):
            if leaf.op == "read" and not any(leaf.data[2]) and self._has_all_cells(leaf):
                own = here.setdefault(self.adjoints[leaf.data[0]], Weight())
                for node, factor in weight:
                    own.add(node, factor)
            elif any(factor != 0.0 for _, factor in weight):
                there.append((leaf, weight))
        if any(leaf.op == "read" and self.adjoints[leaf.data[0]] in stored for leaf, _ in there):
            raise ProgramError(
                f"the adjoint of {self.operation.label}: it stores a field that it reads at neighbours",
                remedy="store into another slot",
            )
        first, fields = self._at_the_cell(stored, here, there)
        return [first, *self._at_neighbours(there, fields)]

    def _has_all_cells(self, read: Node) -> bool:
        """Return whether a field has all cells of the region: on faces, another one has more of them."""
        return self.adjoints[read.data[0]].field.points.contains(self.operation.region)

    def _active(self, leaf: Node) -> bool:
        return leaf.data[0] in (self.kept if leaf.op == "local" else self.adjoints)

    def _read(self, slot: Slot) -> Node:
        """Return the value of a slot at the cell, as a parameter of the new kernels."""
        if slot not in self.numbers:
            self.numbers[slot] = len(self.params)
            ndim = self.graph.ndim
            self.params.append(Param(f"adjoint {slot.field.name}", slot.field.dtype, tuple(range(ndim))))
            self.operands.append(slot)
        number = self.numbers[slot]
        ndim = self.graph.ndim
        return self.share(Node("read", slot.field.dtype, data=(number, (1,) * ndim, (0,) * ndim)))

    # At the cell ---------------------------------------------------------------------------------------------------
    def _at_the_cell(
        self, stored: Mapping[Slot, Store], here: Mapping[Slot, Weight], there: Sequence[tuple[Node, Weight]]
    ) -> tuple[Apply, dict[int, Slot]]:
        """Return the first kernel, and the fields that it makes for the second, by the identity of expressions."""
        stores: list[tuple[Slot, Node]] = []
        for slot, weight in here.items():
            total = weighted_sum(weight)
            if slot not in stored:
                assert total is not None
                total = self._read(slot) + total
            stores.append((slot, const(0.0, slot.field.dtype) if total is None else total))
        fields: dict[int, Slot] = {}
        like, region = self._target.field, self.operation.region
        whole = like.grid.points(like.centre)
        partial = region != whole or self.operation.cells.points is not None
        ends = zip(region.lo, region.hi, whole.lo, whole.hi, like.grid.periodic, strict=True)
        around = all((lo, hi) == (first, last) for lo, hi, first, last, periodic in ends if periodic)
        on = region if partial and around else None
        for _, weight in there:
            for node, _ in weight:
                if id(node) not in fields:
                    fields[id(node)] = self.pool.take(
                        like, len(fields), node.dtype, on, self.operation.cells.points
                    ).now
                    stores.append((fields[id(node)], node))
        if partial and on is None and fields:
            raise ProgramError(
                f"the adjoint of {self.operation.label}: it reads neighbours, on a part of a periodic axis",
                remedy="apply it to all cells along the axis",
            )
        numbers = self._locals_of([node for _, node in stores])
        definitions = [self.graph.locals[number] for number in numbers]
        return self._apply("at the cell", stores, region, self.operation.cells, definitions, numbers), fields

    def _locals_of(self, nodes: Sequence[Node]) -> list[int]:
        """Return the intermediates of the kernel itself that expressions use, in the order of their definitions."""
        found: set[int] = set()
        waiting = list(nodes)
        while waiting:
            more = {node.data[0] for node in topological(waiting) if node.op == "local"} - found
            found |= more
            waiting = [self.graph.locals[number] for number in more]
        return sorted(found)

    @property
    def _target(self) -> Slot:
        store = next(store for store in self.graph.stores if store.param in self.adjoints)
        return self.operation.slot(store.param)

    # At neighbours -------------------------------------------------------------------------------------------------
    def _at_neighbours(self, there: Sequence[tuple[Node, Weight]], fields: Mapping[int, Slot]) -> Iterator[Apply]:
        """Yield the second kernel, and those that fold ghost cells."""
        if not there:
            return
        locals_: dict[int, Node] = {}
        reads: dict[Slot, list[tuple[Offset, Node, float]]] = {}
        waiting: dict[int, list[tuple[Offset, Node, float]]] = {}

        def sort(leaf: Node, terms: list[tuple[Node, float]]) -> None:
            if leaf.op == "local":
                waiting.setdefault(leaf.data[0], []).extend((leaf.data[1], *term) for term in terms)
            else:
                reads.setdefault(self.adjoints[leaf.data[0]], []).extend((leaf.data[2], *term) for term in terms)

        for leaf, weight in there:
            sort(leaf, [(self._read(fields[id(node)]), factor) for node, factor in weight])
        for number in sorted(self.kept, reverse=True):
            if number not in waiting:
                continue
            total = self._gathered(waiting[number])
            locals_[number] = total
            here = Node("local", total.dtype, data=(number, (0,) * self.graph.ndim))
            for leaf, weight in pulled_back([(self.graph.locals[number], here)], self._active, self.share):
                sort(leaf, [*weight])
        order = sorted(locals_, reverse=True)  # a local is made of those that come after it in the kernel itself
        for slots in _of_equal_points(reads):
            stores = [(slot, self._read(slot) + self._gathered(reads[slot])) for slot in slots]
            box = self._reached(slots, reads, bool(locals_))
            yield self._apply("at neighbours", stores, box, None, [locals_[n] for n in order], order)
        for slot, terms in reads.items():
            for box, total in self._folded(slot, terms, bool(locals_)):
                store = (slot, self._read(slot) + total)
                yield self._apply("folded", [store], box, None, [locals_[n] for n in order], order)

    def _gathered(self, terms: Terms) -> Node:
        """Return the sum of expressions, each at minus its offset."""
        total = weighted_sum(
            (self.share(self._shifted(node, tuple(-k for k in offset))), factor) for offset, node, factor in terms
        )
        assert total is not None
        return total

    def _shifted(self, node: Node, by: Offset) -> Node:
        return shifted_leaf(node, by, [param.axes for param in self.params])

    def _reached(self, slots: Sequence[Slot], reads: Mapping[Slot, Terms], through_locals: bool) -> Box:
        """Return the cells to which the kernel adds something."""
        points, region = slots[0].field.points, self.operation.region
        if through_locals:
            return points
        offsets = [offset for slot in slots for offset, _, _ in reads[slot]]
        low = [lo + min(k[axis] for k in offsets) for axis, lo in enumerate(region.lo)]
        high = [hi + max(k[axis] for k in offsets) for axis, hi in enumerate(region.hi)]
        for axis, around in enumerate(slots[0].field.periodic):
            if around:
                low[axis], high[axis] = points.lo[axis], points.hi[axis]
        return Box(tuple(low), tuple(high)).intersect(points)

    def _folded(self, slot: Slot, terms: Terms, through_locals: bool) -> Iterator[tuple[Box, Node]]:
        """Yield the rows beside ends, and what is added to them because ghost cells are made of them."""
        item, region = slot.field, self.operation.region
        reach: dict[tuple[int, Side], int] = {}
        for axis, (low, high) in enumerate(self._deepest(terms)):
            reach[axis, "low"] = max(0, item.points.lo[axis] - (region.lo[axis] + low))
            reach[axis, "high"] = max(0, region.hi[axis] + high - item.points.hi[axis])
        number = next(number for number, adjoint in self.adjoints.items() if adjoint == slot)
        original = self.operation.slot(number).field
        faces = faces_of(original, reach)
        for count in range(1, len(faces) + 1):
            for chosen in itertools.combinations(faces, count):
                if len({face.axis for face in chosen}) == count:
                    found = self._beside(terms, _Beyond(original, chosen, number), through_locals)
                    if found is not None:
                        yield found

    def _deepest(self, terms: Terms) -> list[tuple[int, int]]:
        """Return the lowest and the highest offset at which the kernel reads along each axis, locals included."""
        found = []
        further = {number: self._extent(number) for number in self.kept}
        for axis in range(self.graph.ndim):
            low = min(min(k[axis] for k, _, _ in terms), 0)
            high = max(max(k[axis] for k, _, _ in terms), 0)
            low += sum(extent[axis][0] for extent in further.values())
            high += sum(extent[axis][1] for extent in further.values())
            found.append((low, high))
        return found

    def _extent(self, number: int) -> list[tuple[int, int]]:
        """Return the lowest and the highest offset along each axis at which a local is read, not beyond 0."""
        offsets = [(0,) * self.graph.ndim] + [
            node.data[1]
            for node in topological([*self.graph.locals, *(s.value for s in self.graph.stores)])
            if node.op == "local" and node.data[0] == number
        ]
        return [(min(k[axis] for k in offsets), max(k[axis] for k in offsets)) for axis in range(self.graph.ndim)]

    def _beside(self, terms: Terms, beyond: _Beyond, through_locals: bool) -> tuple[Box, Node] | None:
        """Return the cells near some ends at once, and what they get from the ghost cells beyond all of these."""
        item, faces = beyond.item, beyond.faces
        lo, hi = list(item.points.lo), list(item.points.hi)
        for face in faces:
            if face.side == "low":
                hi[face.axis] = min(hi[face.axis], lo[face.axis] + face.depth)
            else:
                lo[face.axis] = max(lo[face.axis], hi[face.axis] - face.depth)
        total: Node | None = None
        for cells in itertools.product(*(range(face.depth) for face in faces)):
            part = self._from_ghosts(terms, beyond, cells, through_locals)
            if part is None:
                continue
            chosen: Node | None = None
            for face, cell in zip(faces, cells, strict=True):
                low_end = face.side == "low"
                place = item.points.lo[face.axis] + cell if low_end else item.points.hi[face.axis] - 1 - cell
                equal = Node("index", "i8", data=face.axis) == place
                chosen = equal if chosen is None else chosen & equal
            assert chosen is not None
            part = where(chosen, part, const(0.0, part.dtype))
            total = part if total is None else total + part
        return None if total is None else (Box(tuple(lo), tuple(hi)), total)

    def _from_ghosts(self, terms: Terms, beyond: _Beyond, cells: Offset, through_locals: bool) -> Node | None:
        """Return what a cell gets from all ghost cells that are made of it; `cells` counts from each of the ends."""
        found: Weight = Weight()
        layers = [
            [(layer, made[cell]) for layer, made in face.slopes.items() if cell in made]
            for face, cell in zip(beyond.faces, cells, strict=True)
        ]
        for ghosts in itertools.product(*layers):
            away, slopes, kept = [0] * self.graph.ndim, [], terms
            for face, cell, (layer, slope) in zip(beyond.faces, cells, ghosts, strict=True):
                sign = -1 if face.side == "low" else 1
                away[face.axis] = sign * (cell + layer)
                slopes.append(slope)
                if not through_locals:  # all other terms are those of cells where the kernel stores nothing
                    least = layer - self._beyond_points(beyond.item, face)
                    kept = [term for term in kept if sign * term[0][face.axis] >= least]
            factor, others = self._product(beyond, slopes, away)
            for offset, node, own in kept:
                by = tuple(a - k for a, k in zip(away, offset, strict=True))
                moved = self._shifted(node, by)
                for other in others:
                    moved = moved * other
                found.add(self.share(moved), own * factor)
        return weighted_sum(found)

    def _beyond_points(self, item: Field, face: Face) -> int:
        """Return by how many cells the region goes beyond the points of a field at one end."""
        region, points, axis = self.operation.region, item.points, face.axis
        return points.lo[axis] - region.lo[axis] if face.side == "low" else region.hi[axis] - points.hi[axis]

    def _product(self, beyond: _Beyond, slopes: Sequence[Node], away: Sequence[int]) -> tuple[float, list[Node]]:
        """Return the factors of a ghost cell that lies `away`: a number, and expressions of the cells of a field.

        Beyond corners, ghost cells are made axis by axis: of ghost cells beyond ends of the axes before.
        """
        factor, others = 1.0, []
        for face, slope in zip(beyond.faces, slopes, strict=True):
            if slope.op == "const":
                factor *= float(slope.data)
                continue
            reads = {n.data[0] for n in topological([slope]) if n.op == "read"}
            own = Renumbered({}, {}, dict.fromkeys(reads, beyond.number))(slope)
            seen_from = tuple(a if axis <= face.axis else 0 for axis, a in enumerate(away))
            others.append(shifted(own, seen_from, [param.axes for param in self.params]))
        return factor, others

    # Kernels -------------------------------------------------------------------------------------------------------
    def _apply(
        self, what: str, stores: Sequence[tuple[Slot, Node]], box: Box, cells: Region | None,
        locals_: Sequence[Node] = (), numbers: Sequence[int] = (),
    ) -> Apply:  # fmt: skip
        """Return an operation that stores expressions in slots."""
        for slot, _ in stores:
            self._read(slot)
        place = {number: k for k, number in enumerate(numbers)}
        made = Renumbered(place, {key: register.node for key, register in self.values.saved.items()})
        flushes = any(store.value.op == "flush" for store in self.operation.graph.stores)
        stored = [flushed(node) if flushes else node for _, node in stores]
        nodes = [made(node) for node in locals_], [made(node) for node in stored]
        used = {n.data[0] for n in topological([*nodes[0], *nodes[1]]) if n.op == "read"}
        used |= {self.numbers[slot] for slot, _ in stores}
        ranked = sorted(used, key=lambda number: (not isinstance(self.operands[number], Slot), number))
        order = {number: k for k, number in enumerate(ranked)}
        final = Renumbered({}, {}, order)
        trace = Trace(self.graph.ndim, self.operation.grid.axes, False, 0)
        trace.params = [self.params[number] for number in order]
        one, zero = (1,) * self.graph.ndim, (0,) * self.graph.ndim
        share = Interner()
        graph = assemble(
            f"adjoint of {self.operation.label}, {what}",
            trace,
            tuple(Store(order[self.numbers[s]], one, zero, share(final(n))) for (s, _), n in zip(stores, nodes[1])),
            (),
            tuple(share(final(node)) for node in nodes[0]),
            None,
            self.operation.graph.where,
        )
        operands = tuple(self.operands[number] for number in order)
        known = {scalar.name for scalar in graph.scalars}
        scalars: dict[str, ScalarValue] = {
            name: self.values.saved.get(value.key, value) if isinstance(value, Register) else value
            for name, value in self.operation.scalars.items()
            if name in known
        }
        slots = [operand for operand in operands if isinstance(operand, Slot)]
        check_reach(_Named(graph.name), graph, slots, box)  # type: ignore[arg-type]
        where_ = Region(box) if cells is None else cells
        return replace(
            self.operation, graph=graph, operands=operands, scalars=scalars, region=box, results=(), cells=where_,
            mask=None,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Named:
    """Name of a kernel for messages."""

    name: str


@dataclass(frozen=True, slots=True)
class _Beyond:
    """Ends of several axes at once, and the field whose ghost cells lie beyond them, with its number as a parameter."""

    item: Field
    faces: tuple[Face, ...]
    number: int


class Renumbered:
    """Expressions with other numbers of parameters and locals, and other registers."""

    def __init__(
        self, locals_: Mapping[int, int], scalars: Mapping[str, Node], params: Mapping[int, int] | None = None
    ) -> None:
        self.locals, self.scalars, self.params = locals_, scalars, params
        self.made: dict[int, tuple[Node, Node]] = {}

    def __call__(self, root: Node) -> Node:
        """Return an expression with the other numbers."""
        for node in topological([root]):
            if id(node) not in self.made:
                args = tuple(self.made[id(arg)][1] for arg in node.args)
                self.made[id(node)] = (node, self._of(node, args))
        return self.made[id(root)][1]

    def _of(self, node: Node, args: tuple[Node, ...]) -> Node:
        if node.op == "scalar":
            return self.scalars.get(str(node.data), node)
        if node.op == "local" and node.data[0] in self.locals:
            return replace(node, data=(self.locals[node.data[0]], node.data[1]))
        if node.op == "read" and self.params is not None:
            return replace(node, data=(self.params[node.data[0]], *node.data[1:]))
        same = all(a is b for a, b in zip(args, node.args, strict=True))
        return node if same else replace(node, args=args, of=None)


def _linear_locals(graph: KernelGraph, adjoints: Mapping[int, Slot]) -> frozenset[int]:
    """Return the locals that are linear in active fields with constant coefficients, or in other such locals."""
    linear: set[int] = set()
    active: set[int] = set()
    for number, definition in enumerate(graph.locals):
        leaves = [node for node in topological([definition]) if node.op in ("read", "local")]
        depends = [n for n in leaves if n.data[0] in (adjoints if n.op == "read" else active)]
        if not depends:
            continue
        active.add(number)
        if any(n.op == "local" and n.data[0] not in linear for n in depends) or not is_float(definition.dtype):
            continue
        one = const(1.0, definition.dtype)
        wanted = {id(n) for n in depends}
        weights = pulled_back([(definition, one)], lambda node, wanted=wanted: id(node) in wanted, Interner())  # type: ignore[misc]
        if all(node.op == "const" for _, weight in weights for node, _ in weight):
            linear.add(number)
    return frozenset(linear)


def _of_equal_points(slots: Mapping[Slot, object]) -> list[list[Slot]]:
    groups: dict[tuple[Grid, Box], list[Slot]] = {}
    for slot in slots:
        groups.setdefault((slot.field.grid, slot.field.points), []).append(slot)
    return list(groups.values())
