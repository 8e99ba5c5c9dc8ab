"""Boundary conditions beyond the ends of an axis: small traced functions of the nearest cells inside.

A condition gives the value of ghost cell number `layer` (1 is nearest) of an edge. It is traced like any kernel, so a
wall vorticity or an electrode is written the same way as a mirror.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from minga.errors import LayoutError, MingaError, shown
from minga.lang.expr import Arithmetic, Node, as_node, author_error, cast
from minga.lang.graph import Interner, KernelGraph, Param, Store
from minga.lang.trace import Trace, assemble, tracing
from minga.space.grid import Grid

if TYPE_CHECKING:
    from minga.space.field import Constant, Field

Side = Literal["low", "high"]
SIDES: tuple[Side, Side] = ("low", "high")


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """Boundary condition: `value(edge)` is the expression of a ghost cell; `reads` is False if it uses no cells."""

    name: str
    value: Callable[[Edge], object]
    reads: bool = True

    def __repr__(self) -> str:
        return self.name


ConditionLike = Condition
BoundaryLike = Condition | Mapping[str | int, "Condition | tuple[Condition, Condition] | Sequence[Condition]"] | None


@dataclass(frozen=True, slots=True)
class Boundary:
    """Conditions of a field: for each axis a pair (low, high); None if the axis is periodic or none is given."""

    sides: tuple[tuple[Condition | None, Condition | None], ...]

    def at(self, axis: int, side: Side) -> Condition | None:
        """Return the condition at one end of an axis, or None."""
        return self.sides[axis][side == "high"]


def as_boundary(value: BoundaryLike | Boundary, grid: Grid, name: str) -> Boundary:
    """Return a field's conditions, given one for all sides or a mapping from axes to one or two."""
    if isinstance(value, Boundary):
        return value
    none: tuple[Condition | None, Condition | None] = (None, None)
    if value is None:
        return Boundary((none,) * grid.ndim)
    if isinstance(value, Condition):
        return Boundary(tuple(none if periodic else (value, value) for periodic in grid.periodic))
    if not isinstance(value, Mapping):
        raise LayoutError(
            f"field {name!r}: boundary={shown(value)} is not a condition",
            remedy="use mg.fixed(0.0), mg.reflect('edge'), mg.zero_gradient(), mg.custom(f), or axes mapped to them",
        )
    sides = [none] * grid.ndim
    for axis, pair in value.items():
        number = grid.axis(axis)
        if grid.periodic[number]:
            raise LayoutError(
                f"field {name!r}: axis {grid.axes[number]!r} is periodic and has no boundary",
                remedy="leave the axis out, or make the grid non-periodic along it",
            )
        low, high = (pair, pair) if isinstance(pair, Condition) else pair
        sides[number] = (low, high)
    return Boundary(tuple(sides))


def fixed(value: object) -> Condition:
    """Return a condition with given ghost cells.

    Parameters
    ----------
    value
        A number, a register, a function of the ghost cells' coordinates, or an array over the face.

    Returns
    -------
    Condition
        The boundary condition.
    """
    if isinstance(value, np.ndarray) and value.ndim:
        values = value.copy()
        return Condition("fixed(array)", lambda edge: edge.array(values), reads=False)
    if callable(value) and not isinstance(value, Arithmetic):
        function = value
        return Condition(
            "fixed(function)",
            lambda edge: function(*(edge.coordinate(axis) for axis in range(edge.ndim))),
            reads=False,
        )
    return Condition(f"fixed({value!r})", lambda edge: value, reads=False)


def reflect(about: Literal["edge", "cell"] = "edge") -> Condition:
    """Return a mirror condition.

    Parameters
    ----------
    about
        "edge" mirrors about the edge of the domain (ghost k = cell k - 1, zero flux), "cell" about the last cell (ghost
        k = cell k).

    Returns
    -------
    Condition
        The boundary condition.
    """
    if about not in ("edge", "cell"):
        raise LayoutError(f"reflect({about!r})", remedy='reflect about "edge" or "cell"')
    shift = 1 if about == "edge" else 0
    return Condition(f"reflect({about!r})", lambda edge: edge[edge.layer - shift])


def zero_gradient() -> Condition:
    """Return the condition by which every ghost cell repeats the last cell inside.

    Returns
    -------
    Condition
        The boundary condition.
    """
    return Condition("zero_gradient()", lambda edge: edge[0])


def custom(function: Callable[[Edge], object], name: str | None = None) -> Condition:
    """Return a user-defined condition.

    Parameters
    ----------
    function
        `function(edge)` returns the value of ghost cell `edge.layer`, computed from cells `edge[n]` inside.
    name
        Name in messages and graphs; by default made from the name of the function.

    Returns
    -------
    Condition
        The boundary condition.
    """
    return Condition(name or f"custom({getattr(function, '__name__', 'function')})", function)


@dataclass(frozen=True, slots=True)
class Position:
    """Operand of a fill: the coordinates of points along an axis."""

    axis: int


@dataclass(frozen=True, slots=True, eq=False)
class FaceArray:
    """Operand of a fill: one value for each index along the axes of a face."""

    axes: tuple[int, ...]
    values: np.ndarray


FillOperand: TypeAlias = "Field | Position | FaceArray | Constant"


@dataclass(slots=True)
class Edge:
    """Ghost cell while its condition is traced.

    `edge[n]` is the n-th cell inside, counted from the edge along its normal (0 is nearest); `edge.layer` counts ghost
    cells outwards from 1; `edge.side` is "low" or "high"; `edge.field(other)[n]` reads another field there.
    """

    trace: Trace
    axis: int
    side: Side
    layer: int
    target: Field
    fields: list[FillOperand] = field(default_factory=list)
    depth: dict[int, int] = field(default_factory=dict)
    own: int | None = None
    """Parameter number for reading the field itself; not that of the stored one, as a ghost cell is never read."""

    @property
    def ndim(self) -> int:
        """Number of axes of the grid."""
        return self.target.grid.ndim

    def _read(self, number: int, n: int) -> Node:
        if not isinstance(n, int) or n < 0:
            raise author_error(f"edge[{n!r}]", "count cells inside from 0 (nearest to the edge)")
        self.depth[number] = max(self.depth.get(number, 0), n + 1)
        step = n + self.layer if self.side == "low" else -(n + self.layer)
        offsets = tuple(step if axis == self.axis else 0 for axis in range(self.ndim))
        return Node("read", self.trace.params[number].dtype, data=(number, (1,) * self.ndim, offsets))

    def __getitem__(self, n: int) -> Node:
        if self.own is None:
            self.own = self.field(self.target).number
        return self._read(self.own, n)

    def field(self, other: Field) -> Inside:
        """Return another field with the same points, to be read at the cells inside this edge.

        At corners the nearest cells there are read.
        """
        if other.grid != self.target.grid or other.points != self.target.points or other.replicated:
            raise author_error(
                f"edge.field({other.name!r}) beside {self.target.name!r}: they have different points",
                "use a field on the same grid, with the same axes and centre",
            )
        self.trace.params.append(Param(other.name, other.dtype, tuple(range(self.ndim))))
        self.fields.append(other)
        return Inside(self, len(self.trace.params) - 1)

    def array(self, values: np.ndarray) -> Node:
        """Return the values of an array over the face, with one entry for each index along the other axes."""
        axes = tuple(axis for axis in range(self.ndim) if axis != self.axis)
        if values.ndim != len(axes):
            raise author_error(
                f"a boundary array of {values.ndim} axes on a face of {len(axes)}",
                "give one value for each cell of the face",
            )
        self.trace.params.append(Param("@face", "f8", axes))
        self.fields.append(FaceArray(axes, np.ascontiguousarray(values, "f8")))
        return Node("read", "f8", data=(len(self.trace.params) - 1, (1,) * len(axes), (0,) * len(axes)))

    def coordinate(self, axis: int | str) -> Node:
        """Return the position of the ghost cell along an axis."""
        before = len(self.trace.params)
        node = self.trace.coordinate(self.trace.axis(axis))
        if len(self.trace.params) > before:
            self.fields.append(Position(self.trace.axis(axis)))
        return node

    def index(self, axis: int | str) -> Node:
        """Return the index of the ghost cell along an axis; along the normal it is negative or beyond the end."""
        return Node("index", "i8", data=self.trace.axis(axis))


@dataclass(frozen=True, slots=True)
class Inside:
    """Another field at the cells inside an edge."""

    edge: Edge
    number: int

    def __getitem__(self, n: int) -> Node:
        return self.edge._read(self.number, n)


def _value(condition: Condition, edge: Edge, target: Field) -> object:
    try:
        return condition.value(edge)
    except MingaError:
        raise
    except Exception as error:
        raise LayoutError(
            f"the boundary condition {condition.name} of field {target.name!r} fails: {type(error).__name__}: {error}",
            remedy="fixed(f) calls f with one coordinate for each axis of the grid, custom(f) with the edge",
        ) from error


@dataclass(frozen=True, slots=True)
class Fill:
    """Traced condition of one layer of ghost cells.

    Attributes
    ----------
    graph
        Graph of the kernel.
    operands
        Operands of its parameters.
    depth
        Number of cells inside, counted from the edge, that it may read.
    registers
        Whether it uses registers.
    """

    graph: KernelGraph
    operands: tuple[FillOperand, ...]
    depth: int
    registers: bool


@functools.lru_cache(maxsize=1024)
def trace_fill(target: Field, axis: int, side: Side, layer: int) -> Fill | None:
    """Return the kernel of ghost layer `layer` beyond an end of `target`, or None if that end has no condition."""
    condition = target.boundary.at(axis, side)
    if condition is None:
        return None
    ndim = target.grid.ndim
    trace = Trace(ndim, target.grid.axes, False, 0)
    # The name does not depend on the field, so that fields with equal conditions share machine code.
    trace.params.append(Param("target", target.dtype, tuple(range(ndim))))
    edge = Edge(trace, axis, side, layer, target)
    with tracing(trace):
        value = cast(as_node(_value(condition, edge, target)), target.dtype)
    share = Interner()
    store = Store(0, (1,) * ndim, (0,) * ndim, share(value))
    graph = assemble(condition.name, trace, (store,))
    depth = max(edge.depth.values(), default=0)
    return Fill(graph, (target, *edge.fields), depth, bool(graph.scalars))
