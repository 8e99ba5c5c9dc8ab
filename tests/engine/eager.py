"""A Program done eagerly: whole arrays, one operation after the other, ghost cells made anew before each.

What engine tests compare with, to the bit. It shares the recorded Program and the evaluation of one kernel on one box
with the package, and nothing else: no layouts, no halos, no inference. Ghost cells have an implementation of their own,
`Wall`, so that boundary conditions are written twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import minga as mg
from minga.compile.exact import combine, empty_accumulator, finish
from minga.compile.numpy import BoundArray, evaluate
from minga.engine.program import Apply, Call, Let, Move, Program, Refresh, Repeat, Rotate, When
from minga.lang.analysis import reads
from minga.space.boundary import Condition
from minga.space.field import Constant, Field, Register, Slot
from minga.space.grid import Grid

MARGIN = 16

Index = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Wall:
    """A boundary condition twice: for the package, and as a function of whole planes of ghost cells."""

    condition: Condition
    ghost: Callable[[Plane], Any]


@dataclass(frozen=True)
class Plane:
    """All ghost cells of one layer beyond one side, ghost cells of earlier axes included."""

    eager: Eager
    field: Field
    axis: int
    high: bool
    layer: int
    around: np.ndarray
    """The field with its ghost cells so far; element 0 is index `first`."""
    first: Index
    true: list[np.ndarray]
    """Per axis the true index of each cell of the plane: wrapped on periodic axes, beyond the ends on others."""

    def _at(self, index: int) -> tuple[slice, ...]:
        here = index - self.first[self.axis]
        return tuple(slice(here, here + 1) if a == self.axis else slice(None) for a in range(self.around.ndim))

    def inside(self, n: int, of: np.ndarray | None = None) -> np.ndarray:
        """The n-th cells inside, 0 the nearest."""
        points = self.field.points
        index = points.hi[self.axis] - 1 - n if self.high else points.lo[self.axis] + n
        return (self.around if of is None else of)[self._at(index)]

    def other(self, item: Field, n: int) -> np.ndarray:
        """Another field inside; beside the domain's edges: its nearest point."""
        lo = tuple(p - f for p, f in zip(self.field.points.lo, self.first, strict=True))
        hi = tuple(s - a - p for s, a, p in zip(self.around.shape, lo, self.field.points.shape, strict=True))
        return self.inside(n, self.eager.within(item.now, lo, hi)[0])

    def index(self, axis: int) -> np.ndarray:
        return self.true[axis]

    def coordinate(self, axis: int) -> np.ndarray:
        grid, index = self.field.grid, self.true[axis]
        points = grid.faces(axis) if self.field.centre[axis] else grid.centres(axis)
        widths, last = grid.widths(axis), len(points) - 1
        inside = points[np.clip(index, 0, last)]
        return np.where(
            index < 0,
            points[0] - widths[0] * -index,
            np.where(index > last, points[last] + widths[-1] * (index - last), inside),
        )

    def face(self, values: np.ndarray) -> np.ndarray:
        """Values over the face; beside it the nearest one."""
        axes = [a for a in range(self.around.ndim) if a != self.axis]
        points = self.field.points
        where = [np.clip(self.true[a] - points.lo[a], 0, points.shape[a] - 1) for a in axes]
        return values.astype("f8")[tuple(where)]

    def register(self, register: Register) -> Any:
        return self.eager.read(register)


@dataclass
class Eager:
    """Runs Programs like an engine, slowly. `walls` holds the second implementation of every condition."""

    walls: Mapping[Condition, Wall] = field(default_factory=dict)
    arrays: dict[Slot, np.ndarray] = field(default_factory=dict)
    registers: dict[str, Any] = field(default_factory=dict)
    _words: dict[str, np.ndarray] = field(default_factory=dict)
    _limit: bool = False

    # Values --------------------------------------------------------------------------------------------------------
    def array(self, item: Field | Slot) -> np.ndarray:
        slot = item if isinstance(item, Slot) else item.now
        if slot not in self.arrays:
            self.arrays[slot] = np.zeros(slot.field.bounds.shape, slot.field.dtype)
        return self.arrays[slot]

    def set(self, item: Field | Slot, value: Any) -> None:
        self.array(item)[...] = value

    def gather(self, item: Field | Slot) -> np.ndarray:
        return self.array(item)

    def blocks(self, item: Field | Slot) -> list[tuple[mg.Box, np.ndarray]]:
        slot = item if isinstance(item, Slot) else item.now
        return [(slot.field.bounds, self.array(slot))]

    def write(self, register: Register, value: Any) -> None:
        self.registers[register.key] = np.dtype(register.dtype).type(value)

    def read(self, register: Register) -> Any:
        return self._register(register).item()

    def _register(self, register: Register) -> Any:
        return self.registers.setdefault(register.key, np.dtype(register.dtype).type(register.initial))

    # Running -------------------------------------------------------------------------------------------------------
    def run(self, program: Program, times: int = 1) -> tuple[str, str]:
        """The reason and the place of the end, as in an Outcome."""
        self._limit = False
        for _ in range(times):
            place = self._all(program.operations)
            if place is not None:
                return "not finite", place
        if self._limit:
            return "limit", ""
        return ("converged" if _has_until(program.operations) else "finished"), ""

    def _all(self, operations: Sequence[Any]) -> str | None:
        for operation in operations:
            place = self._one(operation)
            if place is not None:
                return place
        return None

    def _one(self, operation: Any) -> str | None:
        match operation:
            case Apply():
                return self._apply(operation)
            case Let():
                self._let(operation)
            case Rotate():
                for item in operation.fields:
                    old = [self.array(Slot(item, k)) for k in range(item.slots)]
                    for k in range(item.slots):
                        self.arrays[Slot(item, k)] = old[(k + 1) % item.slots]
            case Move():
                self.array(operation.target)[...] = self.array(operation.source)
            case Call():
                operation.function(self)
            case Refresh():
                pass
            case When():
                if self._let(operation.condition):
                    return self._all(operation.body)
            case Repeat():
                return self._repeat(operation)
        return None

    def _repeat(self, loop: Repeat) -> str | None:
        for done in itertools.count():
            if loop.until is not None and self._let(loop.until):
                return None
            limit = self._register(loop.limit) if isinstance(loop.limit, Register) else loop.limit
            if limit is not None and done >= limit:
                self._limit |= loop.until is not None
                return None
            place = self._all(loop.body)
            if place is not None:
                return place
        return None

    def _let(self, let: Let) -> Any:
        memory = np.zeros(1, let.register.dtype)
        scalars = {s.name: self._scalar(s.name, {}, s.dtype, ()) for s in let.graph.scalars}
        evaluate(let.graph, ((0,), (1,)), [BoundArray(memory, (0,))], scalars)
        self.registers[let.register.key] = memory[0]
        return memory[0]

    def _scalar(self, name: str, given: Mapping[str, Any], dtype: str, extent: Index) -> Any:
        if name.startswith("@extent"):
            return extent[int(name[7:])]
        if name.startswith(("@", "$")):
            return self.registers.setdefault(name, np.dtype(dtype).type(0))
        value = given[name]
        return self._register(value) if isinstance(value, Register) else value

    def _apply(self, apply: Apply) -> str | None:
        graph, region = apply.graph, apply.region
        bound: dict[Slot, BoundArray] = {}
        arrays = []
        for operand in apply.operands:
            if isinstance(operand, Constant):
                arrays.append(BoundArray(operand.array, operand.origin))
                continue
            if operand not in bound:
                bound[operand] = self._bound(operand, apply)
            arrays.append(bound[operand])
        axes = sorted({a for o in apply.operands if isinstance(o, Slot) for a in o.field.axes})
        extent = tuple(apply.grid.shape[a] for a in axes)
        scalars = {s.name: self._scalar(s.name, apply.scalars, s.dtype, extent) for s in graph.scalars}
        for box in _chosen(apply):
            words = evaluate(graph, box, arrays, scalars, extent=extent, colour=apply.colour)
            for reduction, register in zip(graph.reductions, apply.results, strict=True):
                so_far = self._words.get(register.key, empty_accumulator(reduction.kind))
                self._words[register.key] = combine(reduction.kind, so_far, words[reduction.name])
        for number in graph.written:
            slot = apply.operands[number]
            assert isinstance(slot, Slot)
            bounds = slot.field.bounds
            self.arrays[slot] = bound[slot].array[bounds.slices(bound[slot].origin)].copy()
        finite = True
        if not apply.done:
            return None
        for reduction, register in zip(graph.reductions, apply.results, strict=True):
            words = self._words.pop(register.key, empty_accumulator(reduction.kind))
            value = finish(reduction.kind, reduction.dtype, words)
            self.registers[register.key] = value
            empty = region.empty and reduction.kind in ("max", "min")
            finite &= empty or not np.issubdtype(np.dtype(reduction.dtype), np.floating) or bool(np.isfinite(value))
        return None if finite or not apply.checked else f"{apply.label}: {', '.join(r.name for r in graph.reductions)}"

    def _bound(self, slot: Slot, apply: Apply) -> BoundArray:
        """A slot with as many ghost cells as an operation can read."""
        target = slot.field
        if target.replicated:
            array = self.array(slot)
            for number, axis in enumerate(target.axes):
                width = [(MARGIN, MARGIN) if a == number else (0, 0) for a in range(array.ndim)]
                array = np.pad(array, width, mode="wrap" if target.periodic[axis] else "edge")
            return BoundArray(array, tuple(lo - MARGIN for lo in target.bounds.lo))
        points, region = target.points, apply.region
        lo, hi = [0] * points.ndim, [0] * points.ndim
        accesses = [a for p, found in reads(apply.graph).items() if apply.operands[p] == slot for a in found]
        accesses += [(s.strides, s.offsets) for s in apply.graph.stores if apply.operands[s.param] == slot]
        if not region.empty:
            for axis in range(points.ndim):
                first = min(s[axis] * region.lo[axis] + o[axis] for s, o in accesses)
                last = max(s[axis] * (region.hi[axis] - 1) + o[axis] for s, o in accesses)
                lo[axis], hi[axis] = max(0, points.lo[axis] - first), max(0, last + 1 - points.hi[axis])
        array, first_index = self.padded(slot, tuple(lo), tuple(hi))
        return BoundArray(array, first_index)

    # Ghost cells ---------------------------------------------------------------------------------------------------
    def within(self, slot: Slot, lo: Index, hi: Index) -> tuple[np.ndarray, Index, list[np.ndarray]]:
        """A slot continued: periodically, elsewhere by its nearest point. Also the first index, and the true ones."""
        target = slot.field
        points = target.points
        first = tuple(p - w for p, w in zip(points.lo, lo, strict=True))
        stop = tuple(p + w for p, w in zip(points.hi, hi, strict=True))
        index = np.meshgrid(*(np.arange(a, b) for a, b in zip(first, stop, strict=True)), indexing="ij")
        true = wrapped(target.grid, target.periodic, index)
        where = tuple(
            true[a] - points.lo[a] if target.periodic[a] else np.clip(true[a] - points.lo[a], 0, points.shape[a] - 1)
            for a in range(points.ndim)
        )
        return self.array(slot)[where], first, true

    def padded(self, slot: Slot, lo: Index, hi: Index) -> tuple[np.ndarray, Index]:
        """A slot with ghost cells beyond its domain, filled axis after axis, and the index of its first element."""
        target = slot.field
        array, first, true = self.within(slot, lo, hi)
        for axis in range(array.ndim):
            if target.periodic[axis]:
                continue
            for high in (False, True):
                condition = target.boundary.at(axis, "high" if high else "low")
                for layer in range(1, (hi if high else lo)[axis] + 1):
                    index = target.points.hi[axis] - 1 + layer if high else target.points.lo[axis] - layer
                    here = index - first[axis]
                    cut = tuple(slice(here, here + 1) if a == axis else slice(None) for a in range(array.ndim))
                    if condition is None:
                        array[cut] = 0x55  # nobody may read this
                        continue
                    plane = Plane(self, target, axis, high, layer, array, first, [t[cut] for t in true])
                    with np.errstate(all="ignore"):
                        array[cut] = np.asarray(self.walls[condition].ghost(plane)).astype(array.dtype)
        return array, first


def _chosen(apply: Apply) -> list[mg.Box]:
    """The boxes an operation does, all cells of each at once."""
    cells, box = apply.cells, apply.region
    if cells.points is not None:
        return [mg.Box(p, tuple(i + 1 for i in p)) for p in cells.points]
    if cells.stride is not None:
        steps = [range(lo, hi, s) for lo, hi, s in zip(box.lo, box.hi, cells.stride, strict=True)]
        return [mg.Box(p, tuple(i + 1 for i in p)) for p in itertools.product(*steps)]
    return [box]


def wrapped(grid: Grid, periodic: Sequence[bool], index: Sequence[np.ndarray]) -> list[np.ndarray]:
    """True indices on a torus that may be shifted: cell (y + N, x) is cell (y, x + shift)."""
    true = [i.copy() for i in index]
    while any(periodic[a] and ((true[a] < 0) | (true[a] >= grid.shape[a])).any() for a in range(grid.ndim)):
        for a in range(grid.ndim):
            if not periodic[a]:
                continue
            turns = true[a] // grid.shape[a]
            true[a] = true[a] - turns * grid.shape[a]
            for b in range(grid.ndim):
                if grid.shift[a][b]:
                    true[b] = true[b] + turns * grid.shift[a][b]
    return true


def _has_until(operations: Sequence[Any]) -> bool:
    return any(
        isinstance(o, Repeat | When) and (_has_until(o.body) or (isinstance(o, Repeat) and o.until is not None))
        for o in operations
    )


# Conditions in pairs -------------------------------------------------------------------------------------------------
def fixed_number(value: float) -> Wall:
    return Wall(mg.fixed(value), lambda p: value)


def fixed_register(register: Register) -> Wall:
    return Wall(mg.fixed(register), lambda p: p.register(register))


def fixed_function(ndim: int) -> Wall:
    """The sum of the coordinates, weighted: exact in f8 when spacings are powers of two."""

    def value(*coordinates: Any) -> Any:
        total = 0.25
        for number, x in enumerate(coordinates):
            total = total + x * (number + 1)
        return total

    return Wall(mg.fixed(value), lambda p: value(*(p.coordinate(a) for a in range(ndim))))


def fixed_array(values: np.ndarray) -> Wall:
    return Wall(mg.fixed(values), lambda p: p.face(values))


def reflect_edge() -> Wall:
    return Wall(mg.reflect("edge"), lambda p: p.inside(p.layer - 1))


def reflect_cell() -> Wall:
    return Wall(mg.reflect("cell"), lambda p: p.inside(p.layer))


def zero_gradient() -> Wall:
    return Wall(mg.zero_gradient(), lambda p: p.inside(0))


def odd_about(value: float) -> Wall:
    return Wall(
        mg.custom(lambda edge: 2 * value - edge[edge.layer - 1], "odd"), lambda p: 2 * value - p.inside(p.layer - 1)
    )


def beside(other: Field) -> Wall:
    """Reads another field, and knows its layer."""
    return Wall(
        mg.custom(lambda edge: 0.5 * edge.field(other)[0] - 0.25 * edge[0] + edge.layer, "beside"),
        lambda p: 0.5 * p.other(other, 0) - 0.25 * p.inside(0) + p.layer,
    )


def by_index(axis: int) -> Wall:
    """Knows where it is along an axis."""
    return Wall(
        mg.custom(lambda edge: edge[0] + 0.125 * mg.cast(edge.index(axis), "f8"), f"by index {axis}"),
        lambda p: p.inside(0) + 0.125 * p.index(axis).astype("f8"),
    )
