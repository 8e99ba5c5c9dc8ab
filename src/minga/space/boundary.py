"""Boundary conditions beyond the ends of an axis: small traced functions of the nearest cells inside.

A condition gives the value of ghost cell number `layer` (1 is nearest) of an edge. It is traced like any kernel, so a
wall vorticity or an electrode is written the same way as a mirror.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from minga.errors import LayoutError, MingaError, shown
from minga.lang.expr import Arithmetic, Node, as_node, author_error, cast
from minga.lang.graph import Interner, KernelGraph, Param, Store
from minga.lang.math import sin
from minga.lang.signed import signed_sum
from minga.lang.trace import Trace, assemble, tracing
from minga.lang.weights import fornberg
from minga.space.grid import Grid
from minga.space.of_place import TIME_NAME, of_place
from minga.space.register import TIME

if TYPE_CHECKING:
    from minga.space.field import Constant, Field

Side = Literal["low", "high"]
SIDES: tuple[Side, Side] = ("low", "high")
_HIGHEST_ORDER: Final = 16
_REMEDY: Final = (
    "give a condition such as mg.dirichlet(0.0), mg.neumann(0.0), mg.reflect('edge') or mg.custom(f); for an axis a "
    "pair of them, for its low and its high end: {'x': (mg.dirichlet(0.0), mg.neumann(0.0))}"
)


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """Boundary condition: `value(edge)` is the expression of a ghost cell; `reads` is False if it uses no cells.

    It is `homogeneous` if ghost cells are linear in the cells inside, without a constant: both parts of a complex field
    obey it if the field does. `twin` makes the homogeneous condition that differences of two fields with this condition
    obey; a homogeneous condition needs none. `ordered` makes the same condition of another order, if none was chosen.
    Where values are `texts`, `parsed` makes the condition with the functions that something else makes of them.
    `closed` says that no flux of an equation goes through the wall, which only models of equations can see to.
    """

    name: str
    value: Callable[[Edge], object]
    reads: bool = True
    antiperiodic: bool = False
    homogeneous: bool = False
    twin: Callable[[], Condition] | None = None
    ordered: Callable[[int], Condition] | None = None
    parsed: Callable[[Callable[[str], object]], Condition] | None = None
    texts: tuple[str, ...] = ()
    closed: bool = False

    def __repr__(self) -> str:
        return self.name

    def of_order(self, order: int) -> Condition:
        """Return the condition for operators of this order; one whose order was chosen stays as it is."""
        return self if self.ordered is None else self.ordered(order)

    def linear(self) -> Condition | None:
        """Return the condition of differences of two fields that obey this one; None if it is not known."""
        if self.homogeneous:
            return self
        return None if self.twin is None else self.twin()


ConditionLike = Condition
BoundaryLike = (
    Condition
    | Sequence[Condition]
    | Mapping[str | int, "Condition | tuple[Condition, Condition] | Sequence[Condition]"]
    | None
)


@dataclass(frozen=True, slots=True)
class Boundary:
    """Conditions of a field: for each axis a pair (low, high); None if the axis is periodic or none is given."""

    sides: tuple[tuple[Condition | None, Condition | None], ...]

    def at(self, axis: int, side: Side) -> Condition | None:
        """Return the condition at one end of an axis, or None."""
        return self.sides[axis][side == "high"]


def as_boundary(value: BoundaryLike | Boundary, grid: Grid, name: str, closed: bool = False) -> Boundary:
    """Return a field's conditions, given one for all sides or a mapping from axes to one or two.

    Those by which a wall is `closed` are for models of equations alone.
    """
    if isinstance(value, Boundary):
        return value
    found = _sides_of(value, grid, name)
    if not closed and any(each is not None and each.closed for pair in found.sides for each in pair):
        raise LayoutError(
            f"field {name!r}: mg.no_flux() is a condition of equations in mg.pde, which make fluxes 0 at the wall",
            remedy="in programs of your own use mg.neumann, mg.robin or mg.custom, or multiply the flux by 0 there",
        )
    return found


def _sides_of(value: BoundaryLike, grid: Grid, name: str) -> Boundary:
    none: tuple[Condition | None, Condition | None] = (None, None)
    if value is None:
        return Boundary((none,) * grid.ndim)
    if isinstance(value, Condition):
        if value.texts:
            raise _unread(value, f"field {name!r}")
        return Boundary(tuple((value, value) if periodic == value.antiperiodic else none for periodic in grid.periodic))
    by_axis = value if isinstance(value, Mapping) else {0: _of_one_axis(value, grid, name)}
    sides = [none] * grid.ndim
    for axis, given in by_axis.items():
        number = grid.axis(axis)
        low, high = _pair(given, f"field {name!r}: the boundary along axis {grid.axes[number]!r}")
        if grid.periodic[number] and not (low.antiperiodic and high.antiperiodic):
            raise LayoutError(
                f"field {name!r}: axis {grid.axes[number]!r} is periodic and has no boundary",
                remedy="leave the axis out, or make the grid non-periodic along it",
            )
        if not grid.periodic[number] and (low.antiperiodic or high.antiperiodic):
            raise LayoutError(
                f"field {name!r}: axis {grid.axes[number]!r} is antiperiodic, and the grid does not close along it",
                remedy="make the grid periodic along the axis",
            )
        sides[number] = (low, high)
    return Boundary(tuple(sides))


def _of_one_axis(value: Any, grid: Grid, name: str) -> Any:
    """Return a pair of conditions that is given without an axis; raise LayoutError unless the grid has a single one."""
    pair = isinstance(value, Sequence) and len(value) == 2 and all(isinstance(each, Condition) for each in value)
    if not pair:
        raise LayoutError(f"field {name!r}: boundary={shown(value)} is not a condition", remedy=_remedy(value))
    if grid.ndim > 1:
        raise LayoutError(
            f"field {name!r}: boundary={shown(value)} is a pair, and the grid has the axes {', '.join(grid.axes)}",
            remedy=f"say for which axis: boundary={{{grid.axes[-1]!r}: ({value[0]}, {value[1]})}}",
        )
    return value


def _remedy(given: object) -> str:
    """Return the remedy for a value that is no condition; for the name of one, a call of its function."""
    plain = {"no_flux": "no_flux()", "reflect": 'reflect("edge")', "antiperiodic": "antiperiodic()"}
    return f"write mg.{plain[given]}" if isinstance(given, str) and given in plain else _REMEDY


def _unread(condition: Condition, what: str) -> LayoutError:
    """Return the error for a condition with texts where nothing reads them."""
    return LayoutError(
        f"{what}: {condition} has a text as its value, which only mg.pde reads",
        remedy="give a number, an array, or a function of the wall's coordinates and t: lambda x, t: mg.sin(x - t)",
    )


def _pair(given: object, what: str) -> tuple[Condition, Condition]:
    """Return the conditions at the low and the high end of an axis."""
    pair = (given, given) if isinstance(given, Condition) else given
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
        raise LayoutError(f"{what} is {shown(given)}", remedy=_remedy(given))
    for side, condition in zip(SIDES, pair, strict=True):
        if not isinstance(condition, Condition):
            raise LayoutError(f"{what} is {shown(condition)} at the {side} end", remedy=_remedy(condition))
        if condition.texts:
            raise _unread(condition, what)
    return pair[0], pair[1]


def homogeneous(item: Field) -> Boundary:
    """Return the conditions of differences of two fields that obey those of `item`.

    Parameters
    ----------
    item
        The field.

    Returns
    -------
    Boundary
        Conditions by which ghost cells are linear in the cells inside, without a constant.

    Raises
    ------
    LayoutError
        If a condition is a user-defined one, of which no homogeneous form is known.
    """

    def linear(condition: Condition | None, axis: int, side: Side) -> Condition | None:
        found = None if condition is None else condition.linear()
        if condition is not None and found is None:
            raise LayoutError(
                f"field {item.name!r}: the condition {condition} at the {side} end of axis {item.grid.axes[axis]!r} "
                "cannot be linearised",
                remedy="use mg.dirichlet, mg.neumann, mg.robin, mg.reflect or mg.fixed, or an explicit integrator",
            )
        return found

    return Boundary(
        tuple(
            (linear(pair[0], axis, "low"), linear(pair[1], axis, "high"))
            for axis, pair in enumerate(item.boundary.sides)
        )
    )


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
    _check_values("fixed", value, texts=False)
    if isinstance(value, np.ndarray) and value.ndim:
        values = value.copy()
        return Condition("fixed(array)", lambda edge: edge.array(values), reads=False, twin=_nothing)
    if callable(value) and not isinstance(value, Arithmetic):
        function = value
        return Condition("fixed(function)", lambda edge: edge.called(function, edge.coordinate), False, twin=_nothing)
    return Condition(f"fixed({value!r})", lambda edge: value, reads=False, twin=_nothing)


def _nothing() -> Condition:
    """Return the condition that ghost cells are 0."""
    return fixed(0.0)


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
    return Condition(f"reflect({about!r})", lambda edge: edge[edge.layer - shift], homogeneous=True)


def zero_gradient() -> Condition:
    """Return the condition by which every ghost cell repeats the last cell inside.

    In `mg.pde` with operators of higher order, it is `neumann(0.0)` of their order.

    Returns
    -------
    Condition
        The boundary condition.
    """
    repeats = Condition("zero_gradient()", lambda edge: edge[0], homogeneous=True)
    return replace(repeats, ordered=lambda order: neumann(0.0, order))


def no_flux() -> Condition:
    """Return the condition that nothing flows through the wall: all fluxes of an equation in `mg.pde` are 0 in total.

    What its conservative terms (``div(...)``, ``laplace(u)``, ``div_grad(k, u)``, ``advect(v, u)``) say of the flux on
    the wall is 0, drift included, so that the integral of the field changes by sources alone. They are of order 2.
    Cells beyond the wall, which other terms may read, lie on the line through the two nearest cells.

    Returns
    -------
    Condition
        The condition.
    """
    return Condition("no_flux()", _straight, homogeneous=True, closed=True)


def _straight(edge: Edge) -> Node:
    """Return the value of a ghost cell on the line through the two cells beside the wall."""
    if edge.target.points.shape[edge.axis] < 2:
        return edge[0]
    ghost, first, second = edge.distances([-edge.layer, 0, 1])
    share = (first - ghost) / (second - first)
    return signed_sum([(1 + share, edge[0]), (-share, edge[1])])


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


def dirichlet(value: object, order: int | None = None, *, time: Arithmetic | None = None) -> Condition:
    """Return the condition u = value at the wall.

    Parameters
    ----------
    value
        A number, a register, an array over the face, or a function of the wall's coordinates and the time, whose
        parameters are named like axes and ``t``, or are one for each axis in the grid's order and perhaps the time; in
        `mg.pde` also a text of coordinates, ``t`` and parameters.
    order
        Order of accuracy that operators keep beside the wall, even, from 2 to 16. Order p reads p - 1 cells inside. By
        default it is that of the equations in `mg.pde`, and 2 elsewhere.
    time
        Register of the time; by default `mg.TIME`.

    Returns
    -------
    Condition
        The condition.

    Raises
    ------
    LayoutError
        If the order is not an even number from 2 to 16.
    """

    def make(order: int) -> Condition:
        def ghost(edge: Edge, t: Arithmetic) -> Node:
            return _known(edge, order, 1, 0, edge.given(value, t))

        return _wall(f"dirichlet({_said(value)})", order, ghost, time, value, lambda: dirichlet(0.0, order))

    _check_values("dirichlet", value)
    return _of_any_order(make, order, (value,), lambda read: dirichlet(read(value), order, time=time))


def neumann(derivative: object, order: int | None = None, *, time: Arithmetic | None = None) -> Condition:
    """Return the condition that the outward derivative at the wall, by length, is given.

    Parameters
    ----------
    derivative
        A number, a register, an array over the face, or a function of the wall's coordinates and the time, whose
        parameters are named like axes and ``t``, or are one for each axis in the grid's order and perhaps the time; in
        `mg.pde` also a text of coordinates, ``t`` and parameters.
    order
        Order of accuracy that operators keep beside the wall, even, from 2 to 16. Order p reads p cells inside. By
        default it is that of the equations in `mg.pde`, and 2 elsewhere.
    time
        Register of the time; by default `mg.TIME`.

    Returns
    -------
    Condition
        The condition.

    Raises
    ------
    LayoutError
        If the order is not an even number from 2 to 16.
    """

    def make(order: int) -> Condition:
        def ghost(edge: Edge, t: Arithmetic) -> Node:
            return _known(edge, order, 0, 1, _times(edge.given(derivative, t), edge.scale))

        return _wall(f"neumann({_said(derivative)})", order, ghost, time, derivative, lambda: neumann(0.0, order))

    _check_values("neumann", derivative)
    return _of_any_order(make, order, (derivative,), lambda read: neumann(read(derivative), order, time=time))


def robin(a: object, b: object, order: int | None = None, *, time: Arithmetic | None = None) -> Condition:
    """Return the condition du/dn + a u = b at the wall, with the outward derivative du/dn, by length.

    Parameters
    ----------
    a, b
        Each a number, a register, an array over the face, a function or a text as for `mg.dirichlet`.
    order
        Order of accuracy that operators keep beside the wall, even, from 2 to 16. Order p reads p cells inside. By
        default it is that of the equations in `mg.pde`, and 2 elsewhere.
    time
        Register of the time; by default `mg.TIME`.

    Returns
    -------
    Condition
        The condition.

    Raises
    ------
    LayoutError
        If the order is not an even number from 2 to 16.
    """

    def make(order: int) -> Condition:
        def ghost(edge: Edge, t: Arithmetic) -> Node:
            factor, right = (_times(edge.given(each, t), edge.scale) for each in (a, b))
            return _mixed(edge, order, factor, right)

        name = f"robin({_said(a)}, {_said(b)})"
        return _wall(name, order, ghost, time, b, lambda: robin(a, 0.0, order, time=time))

    _check_values("robin", a, b)
    return _of_any_order(make, order, (a, b), lambda read: robin(read(a), read(b), order, time=time))


def antiperiodic() -> Condition:
    """Return the condition that values change their sign where a periodic axis of the grid closes.

    A read across an end gives the negative of the cell there. The values are of a float or a signed type.

    Returns
    -------
    Condition
        The condition.
    """
    return Condition("antiperiodic()", lambda edge: edge[0], antiperiodic=True, homogeneous=True)


def _of_any_order(
    make: Callable[[int], Condition], order: int | None, values: tuple[object, ...],
    with_values: Callable[[Callable[[Any], object]], Condition],
) -> Condition:  # fmt: skip
    """Return a condition of an order, or of order 2 until another one is asked for; texts of it are read later."""
    texts = tuple(value for value in values if isinstance(value, str))
    if not texts:
        return replace(make(2), ordered=make) if order is None else make(order)

    def parsed(read: Callable[[str], object]) -> Condition:
        return with_values(lambda value: read(value) if isinstance(value, str) else value)

    return replace(make(2 if order is None else order), parsed=parsed, texts=texts)


def _check_values(name: str, *values: object, texts: bool = True) -> None:
    """Raise LayoutError for what cannot be the value of a condition, of which some may be `texts`."""
    for value in values:
        number = isinstance(value, int | float | np.number | np.bool_) and not isinstance(value, np.complexfloating)
        known = number or isinstance(value, np.ndarray | Arithmetic) or callable(value)
        known = known or (texts and isinstance(value, str))
        if not known or (number and texts and not math.isfinite(value)):  # type: ignore[arg-type]
            raise LayoutError(
                f"{name}({', '.join(map(shown, values))})",
                remedy="give a finite number, a register, an array over the face, or a function of the coordinates and "
                "t; in mg.pde also a text of them"
                if texts
                else "give a number, a register, an array over the face, or a function of the coordinates",
            )


def _wall(
    name: str, order: int, value: Callable[[Edge, Arithmetic], Node], time: Arithmetic | None, right: object,
    twin: Callable[[], Condition],
) -> Condition:  # fmt: skip
    """Return a condition at a wall, which depends on a register of time, and is homogeneous if its right side is 0."""
    if isinstance(order, bool) or not isinstance(order, int) or order % 2 or not 2 <= order <= _HIGHEST_ORDER:
        raise LayoutError(f"{name}: order={shown(order)}", remedy=f"orders of accuracy are 2, 4, ... {_HIGHEST_ORDER}")
    zero = isinstance(right, int | float) and right == 0
    return Condition(name, lambda edge: value(edge, TIME if time is None else time), homogeneous=zero, twin=twin)


def _said(value: object) -> str:
    if isinstance(value, np.ndarray) and value.ndim:
        return "array"
    return "function" if callable(value) and not isinstance(value, Arithmetic) else repr(value)


def _times(value: object, scale: Node | None) -> object:
    """Return a value times the length of a unit of the coordinate: a derivative by length becomes one by it."""
    if scale is None or (isinstance(value, int | float) and value == 0):
        return value
    return as_node(value) * scale


def _functionals(edge: Edge, order: int, slope: bool) -> tuple[list[int], list[Fraction], list[Fraction]]:
    """Return points inside, and the weights of ghost and points in the value and the inward slope at the wall.

    The value comes from one point fewer than the slope, which makes both exact for the same order. A point on the wall
    is the value there; a condition that gives the value uses the next ones, since that point is what it determines.
    """
    skip = 1 if edge.on_wall and not slope else 0
    count = order if slope else order - 1
    inside = list(range(skip, skip + count))
    ghost, *points = edge.distances([-edge.layer, *inside])
    of_slope = fornberg([ghost, *points], 1) if slope else [Fraction(0)] * (count + 1)
    fewer = points[:-1] if slope else points
    of_value = fornberg([ghost, *fewer], 0) + [Fraction(0)] * (len(points) - len(fewer))
    return inside, of_value, of_slope


def _known(edge: Edge, order: int, a: Fraction | int, slope: int, right: object) -> Node:
    """Return the ghost value for a u + slope du/dn = right with numbers a and slope, each weight rounded once."""
    inside, of_value, of_slope = _functionals(edge, order, bool(slope))
    weights = [a * v - slope * s for v, s in zip(of_value, of_slope, strict=True)]
    if weights[0] == 0:
        raise LayoutError(
            f"the condition at the {edge.side} end of axis {edge.axis} does not determine the ghost cell",
            remedy="refine the grid, or check the sign of a in du/dn + a u = b, where du/dn points outwards",
        )
    terms: list[tuple[Fraction, Node]] = []
    if not (isinstance(right, int | float) and right == 0):
        terms.append((1 / weights[0], as_node(right)))
    factors = [(-weight / weights[0], n) for n, weight in zip(inside, weights[1:], strict=True)]
    return signed_sum([*terms, *((factor, edge[n]) for factor, n in factors if factor)])


def _mixed(edge: Edge, order: int, factor: object, right: object) -> Node:
    """Return the ghost value for du/dn + factor u = right, of which both may be expressions."""
    if isinstance(factor, int | float):
        return _known(edge, order, Fraction(factor), 1, right)
    inside, of_value, of_slope = _functionals(edge, order, True)
    factor = as_node(factor)
    sums = [factor * float(v) - float(s) for v, s in zip(of_value, of_slope, strict=True)]
    total = as_node(right)
    for n, weight in zip(inside, sums[1:], strict=True):
        total = total - weight * edge[n]
    return total / sums[0]


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

    @property
    def on_wall(self) -> bool:
        """True if the field's first point inside lies on the wall."""
        return bool(self.target.centre[self.axis])

    @property
    def wall(self) -> float:
        """Position of the wall along its normal."""
        return float(self._positions([0], faces=True)[0])

    @property
    def scale(self) -> Node | None:
        """Length of a unit of the coordinate along the normal, if it is an angle: r, or r sin(theta)."""
        grid = self.target.grid
        name = grid.axes[self.axis]
        if grid.geometry == "cartesian" or name not in ("theta", "phi"):
            return None
        scale = abs(self.coordinate("r"))
        around = grid.geometry == "spherical" and name == "phi" and "theta" in grid.axes
        return scale * abs(sin(self.coordinate("theta"))) if around else scale

    def distances(self, points: Sequence[int]) -> list[Fraction]:
        """Return the distances of points from the wall, positive inside: point 0 is the first inside, -1 ghost 1."""
        grid = self.target.grid
        if grid.uniform(self.axis):
            width = Fraction(grid.spacing[self.axis])  # type: ignore[arg-type]
            return [width * (n if self.on_wall else Fraction(2 * n + 1, 2)) for n in points]
        wall = Fraction(self.wall)
        found = (Fraction(x) - wall for x in self._positions(points, self.on_wall).tolist())
        return [x if self.side == "low" else -x for x in found]

    def _positions(self, points: Sequence[int], faces: bool) -> np.ndarray:
        """Return positions of points along the normal, counted from the wall inwards."""
        box, numbers = self.target.points, np.array(points)
        if self.side == "low":
            numbers = box.lo[self.axis] + numbers
        elif faces:
            numbers = box.hi[self.axis] - (1 if self.on_wall else 0) - numbers
        else:
            numbers = box.hi[self.axis] - 1 - numbers
        return self.target.grid.continued(self.axis, numbers, faces)

    def given(self, value: object, time: Arithmetic) -> object:
        """Return what a condition was given, at the point of the wall next to the ghost cell.

        A number or an expression stays what it is, an array belongs to the face, and a function is called with
        coordinates and the time.
        """
        if isinstance(value, np.ndarray) and value.ndim:
            return self.array(value)
        if not callable(value) or isinstance(value, Arithmetic):
            return value
        return self.called(value, lambda axis: self.wall if axis == self.axis else self.coordinate(axis), time)

    def called(
        self, function: Callable[..., object], position: Callable[[int], object], time: Arithmetic | None = None
    ) -> object:
        """Return what a function of the place, and of the time if there is one, returns for a position on each axis."""
        axes = self.trace.axis_names
        bound = of_place(function, axes, time is not None)
        if bound is None:
            return function(*map(position, range(self.ndim)))
        taken = {name for name in (*bound.positional, *bound.keywords) if name in axes}
        known = {name: position(axis) for axis, name in enumerate(axes) if name in taken}
        return bound({TIME_NAME: time, **known})

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
    if condition is None or condition.antiperiodic:
        return None
    ndim = target.grid.ndim
    trace = Trace(ndim, target.grid.axes, False, 0, supplied=False)
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
