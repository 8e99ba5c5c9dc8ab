"""Differential operators on cells: differences of any even order, conservative forms, advection.

An operand is a field of the kernel (`u`), a `mg.local`, or an expression of cells, which is moved. Weights are
constants times a scalar of the grid where cells have one width, and tables along the axis elsewhere; the engine
supplies both, so nobody passes a spacing. Sums go from the nearest points outwards, in pairs: mirrored data give
mirrored bits.

Source: B. Fornberg, Math. Comp. 51 (1988) 699 (weights).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Literal

from minga.errors import shown
from minga.lang.cell import CellReader, Local
from minga.lang.expr import Node, as_node, author_error, cast, where
from minga.lang.graph import topological
from minga.lang.limited import van_leer, van_leer_unequal, weno5, weno5_unequal
from minga.lang.shift import shifted
from minga.lang.signed import signed_sum
from minga.lang.trace import Trace, current_trace
from minga.lang.types import is_float
from minga.lang.weights import reach, uniform_averages, uniform_weights

__all__ = [
    "advect", "biharmonic", "curl", "d", "d2", "div", "div_grad", "grad", "gradient_squared", "laplace", "spacing",
]  # fmt: skip

Staggered = Literal["forward", "backward"]
Mean = Literal["arithmetic", "harmonic"]
_HIGHEST: Final = 16
_SCHEMES: Final = ("upwind", "up3", "up5", "c2", "c4", "van_leer", "weno5")


# Differences ---------------------------------------------------------------------------------------------------------
def d(u: object, axis: int | str, n: int = 1, order: int = 2, staggered: Staggered | None = None) -> Node:
    """Return a derivative along an axis by centred differences.

    Parameters
    ----------
    u
        A field, a `mg.local`, or an expression of cells.
    axis
        Name or number of the axis.
    n
        Order of the derivative; 0, with `staggered`, is the value between the points.
    order
        Order of accuracy, even, from 2 to 16. On a stretched axis as many points are used; there the error of an even
        derivative has the same order where the widths change smoothly.
    staggered
        "forward" for the derivative of values on faces at the cells, from offsets 0 and 1 outwards; "backward" for that
        of cells at the faces, from offsets -1 and 0 outwards. None: at the points of `u` itself.

    Returns
    -------
    Node
        The derivative.

    Raises
    ------
    KernelError
        If there is no such derivative, or if the engine does not supply weights here, as in boundary conditions.
    """
    trace = _trace("mg.d")
    number = trace.axis(axis)
    _check_orders("mg.d", n, order)
    if staggered not in (None, "forward", "backward"):
        raise author_error(f"mg.d: staggered={shown(staggered)}", 'write "forward", "backward", or leave it out')
    if n == 0 and staggered is None:
        return as_node(_centre(u, trace))
    half = reach(n, order, staggered is not None)
    if staggered is None or half > 1:
        _check_across(f"mg.d of order {order}", number, trace)
    low, high = {None: (-half, half), "forward": (1 - half, half), "backward": (-half, half - 1)}[staggered]
    kind = _kind(u, number, trace)
    points = {None: kind * 2, "forward": "fc", "backward": "cf"}[staggered]
    values = _values(u, number, low, high, trace)
    if not _uniform(trace, number):
        return _tabled(trace, number, n, points, values)
    shift = {None: Fraction(0), "forward": Fraction(-1, 2), "backward": Fraction(1, 2)}[staggered]
    weights = uniform_weights(n, tuple(Fraction(k) + shift for k in values))
    total = _paired(dict(zip(values, weights, strict=True)), values, n % 2 == 1)
    return total if n == 0 else total * trace.scalar(f"@per_spacing{number}_{n}", "f8", weak=True)


def d2(u: object, first: int | str, second: int | str, order: int = 2) -> Node:
    """Return the mixed second derivative along two axes; along one axis twice, `mg.d(u, axis, 2)`.

    Parameters
    ----------
    u
        A field, a `mg.local`, or an expression of cells.
    first, second
        Names or numbers of the axes.
    order
        Order of accuracy, even, from 2 to 16.

    Returns
    -------
    Node
        The derivative.
    """
    trace = _trace("mg.d2")
    if trace.axis(first) == trace.axis(second):
        return d(u, first, 2, order)
    return d(d(u, first, 1, order), second, 1, order)


def laplace(u: object, order: int = 2) -> Node:
    """Return the Laplacian of a scalar, in the coordinates of the grid.

    In curved coordinates it is the flux through the faces of a cell over its volume for order 2, and
    d2u/dr2 + (k / r) du/dr + ... for higher orders.

    Parameters
    ----------
    u
        A field, a `mg.local`, or an expression of cells.
    order
        Order of accuracy, even, from 2 to 16.

    Returns
    -------
    Node
        The Laplacian.
    """
    trace = _trace("mg.laplace")
    if (trace.metric.geometry != "cartesian" and order == 2) or trace.closed:
        return div_grad(1.0, u, order)
    return _sum([_second(u, axis, order, trace) for axis in range(trace.ndim)])


def _second(u: object, axis: int, order: int, trace: Trace) -> Node:
    """Return an axis' part of the Laplacian."""
    value = d(u, axis, 2, order)
    name = trace.axis_names[axis]
    if trace.metric.geometry == "cartesian" or name == "z":
        return value
    at = _kinds(u, trace)
    if name == "r":
        k = 2 if trace.metric.geometry == "spherical" else 1
        return value + d(u, axis, 1, order) * (float(k) * _per_radius(trace, at))
    if name == "theta":
        value = value + d(u, axis, 1, order) * trace.table(f"@cotangent{axis}_{at[axis]}", axis)
    for other in _scaling(trace, axis):
        factor = _per_scale(trace, other, at[other])
        value = value * factor * factor
    return value


def biharmonic(u: object, order: int = 2) -> Node:
    """Return the Laplacian of the Laplacian of a scalar.

    Parameters
    ----------
    u
        A field, a `mg.local`, or an expression of cells.
    order
        Order of accuracy, even, from 2 to 16.

    Returns
    -------
    Node
        The Laplacian of the Laplacian.
    """
    trace = _trace("mg.biharmonic")
    _check_open("mg.biharmonic", trace)
    if trace.metric.geometry != "cartesian":
        return laplace(laplace(u, order), order)
    terms = [d(u, axis, 4, order) for axis in range(trace.ndim)]
    for a, b in itertools.combinations(range(trace.ndim), 2):
        terms.append(2.0 * d(d(u, a, 2, order), b, 2, order))
    return _sum(terms)


def grad(u: object, order: int = 2) -> tuple[Node, ...]:
    """Return the gradient of a scalar: one component for each axis, in the grid's order and its unit vectors.

    Parameters
    ----------
    u
        A field, a `mg.local`, or an expression of cells.
    order
        Order of accuracy, even, from 2 to 16.

    Returns
    -------
    tuple[Node, ...]
        One component for each axis.
    """
    trace = _trace("mg.grad")
    at = _kinds(u, trace)
    return tuple(_unscaled(d(u, axis, 1, order), axis, at, trace) for axis in range(trace.ndim))


def gradient_squared(u: object, order: int = 2) -> Node:
    """Return the square of the length of the gradient.

    Parameters
    ----------
    u
        A field, a `mg.local`, or an expression of cells.
    order
        Order of accuracy, even, from 2 to 16.

    Returns
    -------
    Node
        The square.
    """
    return _sum([part * part for part in grad(u, order)])


def div(v: Sequence[object], order: int = 2) -> Node:
    """Return the divergence of a vector that is given by its components, in the grid's order and its unit vectors.

    A component that lies on the faces across its own axis is differenced between these, others over two cells. In
    curved coordinates the components are multiplied by the areas of faces, and the sum divided by the volume, for
    order 2.

    Parameters
    ----------
    v
        A tuple of components, one for each axis.
    order
        Order of accuracy, even, from 2 to 16.

    Returns
    -------
    Node
        The divergence.
    """
    trace = _trace("mg.div")
    components = _components("mg.div", v, trace)
    return _sum([_divergence(part, axis, order, trace) for axis, part in enumerate(components)])


def _divergence(part: object, axis: int, order: int, trace: Trace) -> Node:
    on_faces = _kind(part, axis, trace) == "f"
    if trace.closed.get(axis):
        flux = as_node(_centre(part, trace)) if on_faces else d(part, axis, 0, order, "backward")
        return _outflow(flux, axis, order, trace)
    if trace.metric.geometry == "cartesian" or trace.axis_names[axis] in ("z", "phi"):
        value = d(part, axis, 1, order, "forward" if on_faces else None)
        at = _kinds(part, trace, cells=axis)
        return _per_volume(value, axis, trace) if order == 2 and "f" not in at else _unscaled(value, axis, at, trace)
    if on_faces and order > 2:
        raise author_error(
            f"mg.div of order {order} of a component on faces across {trace.axis_names[axis]!r} on a "
            f"{trace.metric.geometry} grid",
            "write order=2, or give the components in cells",
        )
    if order == 2:
        flux = as_node(_centre(part, trace)) if on_faces else d(part, axis, 0, order, "backward")
        return _outflow(flux, axis, order, trace)
    at = _kinds(part, trace)
    value = d(part, axis, 1, order)
    here = as_node(_centre(part, trace))
    if trace.axis_names[axis] == "r":
        k = 2 if trace.metric.geometry == "spherical" else 1
        return value + here * (float(k) * _per_radius(trace, at))
    return _unscaled(value + here * trace.table(f"@cotangent{axis}_{at[axis]}", axis), axis, at, trace)


def curl(v: Sequence[object], order: int = 2) -> Node | tuple[Node, ...]:
    """Return the curl of a vector: a number for two axes, one component for each of three.

    The axes x, y, z are right-handed in this order, whichever the grid has, and so are r, phi, z and r, theta, phi in
    curved coordinates; axes with other names are right-handed in alphabetical order. For two axes the number is the
    component of the curl along the third, which the grid lacks: along y for x and z. The components are taken and given
    in the grid's order and its unit vectors.

    Parameters
    ----------
    v
        A tuple of components, one for each axis.
    order
        Order of accuracy, even, from 2 to 16.

    Returns
    -------
    Node or tuple[Node, ...]
        The curl.

    Raises
    ------
    KernelError
        On grids of one or four axes.
    """
    trace = _trace("mg.curl")
    parts = _components("mg.curl", v, trace)
    if trace.ndim not in (2, 3):
        raise author_error(f"mg.curl on a grid of {trace.ndim} axes", "a curl needs two or three axes")
    axes = _right_handed(trace)

    def turned(a: int, b: int) -> Node:
        return _circulation(parts[b], a, b, order, trace) - _circulation(parts[a], b, a, order, trace)

    if trace.ndim == 2:
        return turned(*axes)
    found = {axes[k]: turned(axes[(k + 1) % 3], axes[(k + 2) % 3]) for k in range(3)}
    return tuple(found[axis] for axis in range(3))


_RIGHT_HANDED: Final = {
    "cartesian": ("x", "y", "z"), "polar": ("r", "phi", "z"), "cylindrical": ("r", "phi", "z"),
    "spherical": ("r", "theta", "phi"),
}  # fmt: skip
"""The axes of each geometry in an order that is right-handed."""


def _right_handed(trace: Trace) -> list[int]:
    """Return the axes in a right-handed order; of two those by which the third, along the curl, comes first or last."""
    names = trace.axis_names
    known = _RIGHT_HANDED[trace.metric.geometry]
    if not set(names) <= set(known):
        return sorted(range(len(names)), key=lambda axis: names[axis])
    missing = next((k for k, name in enumerate(known) if name not in names), 2)
    return [names.index(known[(missing + k) % 3]) for k in (1, 2, 3) if known[(missing + k) % 3] in names]


def _circulation(part: object, along: int, own: int, order: int, trace: Trace) -> Node:
    """Return the derivative along an axis of a component times the length of its own coordinate, by both lengths."""
    value = d(part, along, 1, order)
    if trace.metric.geometry == "cartesian":
        return value
    at, names = _kinds(part, trace), trace.axis_names
    if along in _scaling(trace, own):
        here = as_node(_centre(part, trace))
        stem = "per_scale" if names[along] == "r" else "cotangent"
        value = value + here * _cast(trace.table(f"@{stem}{along}_{at[along]}", along), here)
    return _unscaled(value, along, at, trace)


def spacing(axis: int | str) -> Node:
    """Return the cell's width along an axis, f8, in the grid's units.

    Parameters
    ----------
    axis
        Name or number of the axis.

    Returns
    -------
    Node
        The width.
    """
    trace = _trace("mg.spacing")
    number = trace.axis(axis)
    name = f"@spacing{number}"
    return trace.scalar(name, "f8", weak=True) if _uniform(trace, number) else trace.table(name, number)


# Conservative forms --------------------------------------------------------------------------------------------------
def div_grad(k: object, u: object, order: int = 2, mean: Mean = "arithmetic") -> Node:
    """Return div(k grad u) as what flows through the faces of a cell, over its volume.

    Parameters
    ----------
    k
        Coefficient: a number, a field or an expression; a tuple of one for each axis (a diagonal tensor); or a tuple of
        such tuples (a tensor, row after row).
    u
        A field, a `mg.local`, or an expression of cells, at the same points as k.
    order
        Order of accuracy, even; above 2 on Cartesian grids.
    mean
        Coefficient on a face: "arithmetic" interpolates to `order`; "harmonic" is exact where k jumps on a face.

    Returns
    -------
    Node
        The divergence of the flux.
    """
    trace = _trace("mg.div_grad")
    _check_orders("mg.div_grad", 1, order)
    if mean not in ("arithmetic", "harmonic"):
        raise author_error(f"mg.div_grad: mean={shown(mean)}", 'write "arithmetic" or "harmonic"')
    if order > 2 and (mean == "harmonic" or trace.metric.geometry != "cartesian"):
        raise author_error(
            f"mg.div_grad of order {order} with a {mean} mean on a {trace.metric.geometry} grid", "use order=2"
        )
    rows = _tensor(k, trace)
    return _sum([_flow(row, u, axis, order, mean, trace) for axis, row in enumerate(rows)])


def _tensor(k: object, trace: Trace) -> list[list[object]]:
    """Return the rows of a coefficient; what is None contributes nothing."""
    axes = range(trace.ndim)
    if not isinstance(k, tuple | list):
        return [[k if a == b else None for b in axes] for a in axes]
    parts = _components("mg.div_grad", k, trace)
    if not any(isinstance(part, tuple | list) for part in parts):
        return [[parts[a] if a == b else None for b in axes] for a in axes]
    return [list(_components("mg.div_grad", part, trace)) for part in parts]


def _flow(row: Sequence[object], u: object, axis: int, order: int, mean: Mean, trace: Trace) -> Node:
    """Return the divergence, along one axis, of a row of the tensor times the gradient."""
    backward: Staggered = "backward" if _kind(u, axis, trace) == "c" else "forward"
    at = _kinds(u, trace)
    at[axis] = "f" if backward == "backward" else "c"
    fluxes = []
    for other, k in enumerate(row):
        if k is None or (isinstance(k, int | float) and k == 0):
            continue
        if other == axis:
            slope = d(u, axis, 1, order, backward)
        else:
            slope = d(d(u, other, 1, order), axis, 0, order, backward)
        slope = _unscaled(slope, other, at, trace)
        fluxes.append(_times(_on_face(k, axis, order, mean, backward, trace), slope))
    return _outflow(_sum(fluxes), axis, order, trace, backward) if fluxes else as_node(0.0)


def _on_face(k: object, axis: int, order: int, mean: Mean, backward: Staggered, trace: Trace) -> Node:
    """Return a coefficient between two points."""
    node = as_node(_centre(k, trace))
    if not node.reads_cells:
        return node
    straight = d(k, axis, 0, order, backward)
    if mean == "arithmetic":
        return straight
    values = _values(k, axis, *((-1, 0) if backward == "backward" else (0, 1)), trace)
    low, high = values.values()
    return where(straight == 0.0, straight, low * high / straight)


def _outflow(flux: Node, axis: int, order: int, trace: Trace, backward: Staggered = "backward") -> Node:
    """Return what flows out along an axis, over the cell's volume; the flux lies on the lower face (or backward)."""
    forward: Staggered = "forward" if backward == "backward" else "backward"
    name = trace.axis_names[axis]
    if trace.closed.get(axis):
        if order > 2 or backward == "forward":
            raise author_error(
                f"a flux of order {order} through an end of {name!r} where nothing flows (mg.no_flux)", "use order=2"
            )
        flux = where(trace.table(f"@open{axis}_{trace.closed[axis]}", axis) > 0.5, flux, 0.0)
    if trace.metric.geometry == "cartesian" or name == "z":
        return d(flux, axis, 1, order, forward)
    if backward == "forward":
        raise author_error(f"fluxes of values on faces of a {trace.metric.geometry} grid", "give values of cells")
    if name in ("r", "theta"):
        flux = flux * _cast(trace.table(f"@area{axis}", axis), flux)
        above = _moved(flux, axis, 1, trace)
        value = (above - flux) * _cast(trace.table(f"@volume{axis}", axis), flux)
    else:
        value = d(flux, axis, 1, order, forward)
    return _per_volume(value, axis, trace)


def _per_volume(value: Node, axis: int, trace: Trace) -> Node:
    """Return a difference by an angle of what flows, times the areas of faces across it over the volume of the cell."""
    for other in _scaling(trace, axis):
        value = value * _cast(trace.table(f"@slenderness{other}", other), value)
    return value


# Advection -----------------------------------------------------------------------------------------------------------
def advect(velocity: Sequence[object], u: object, scheme: str = "upwind", conservative: bool = True) -> Node:
    """Return div(velocity u), or velocity . grad u, by a scheme for cells that are averages.

    Parameters
    ----------
    velocity
        One component for each axis: a number, a field of cells or of faces across its axis, or an expression.
        Velocities of cells are values at their centres, from which those on faces are interpolated to the order of the
        scheme.
    u
        Averages over cells: a field, a `mg.local`, or an expression.
    scheme
        "upwind" (order 1), "up3", "up5", centred "c2", "c4", "van_leer" (limited, order 2), "weno5".
    conservative
        True: div(velocity u), whose sum over the cells only changes at the ends. False: velocity . grad u, of order 2
        at most where the velocity varies.

    Returns
    -------
    Node
        The rate at which u leaves a cell: an equation has its negative on the right side.

    Raises
    ------
    KernelError
        For an unknown scheme.
    """
    trace = _trace("mg.advect")
    if scheme not in _SCHEMES:
        raise author_error(f"mg.advect: scheme={shown(scheme)}", f"choose one of {', '.join(_SCHEMES)}")
    parts = _components("mg.advect", velocity, trace)
    terms = []
    for axis, part in enumerate(parts):
        if isinstance(part, int | float) and part == 0:
            continue
        terms.append((_advect if conservative else _carried)(part, u, axis, scheme, trace))
    return _sum(terms) if terms else as_node(0.0)


def _advect(part: object, u: object, axis: int, scheme: str, trace: Trace) -> Node:
    speed = as_node(_centre(part, trace))
    if speed.reads_cells and _kind(part, axis, trace) == "c":
        speed = d(part, axis, 0, _BETWEEN[scheme], "backward")
    if scheme not in ("upwind", "c2"):
        _check_across(f"mg.advect: {scheme}", axis, trace)
    left, right = _sides(u, axis, scheme, trace)
    flux = speed * left if right is None else _upwind(speed, left, right)
    return _outflow(flux, axis, 2, trace)


def _carried(part: object, u: object, axis: int, scheme: str, trace: Trace) -> Node:
    _check_open("mg.advect with conservative=False", trace)
    _check_across("mg.advect with conservative=False", axis, trace)
    speed = as_node(_centre(part, trace))
    if speed.reads_cells and _kind(part, axis, trace) == "f":
        speed = d(part, axis, 0, 2, "forward")
    left, right = _sides(u, axis, scheme, trace)
    slopes = [d(each, axis, 1, 2, "forward") for each in (left, right) if each is not None]
    value = speed * slopes[0] if len(slopes) == 1 else _upwind(speed, *slopes)
    return _unscaled(value, axis, ["c"] * trace.ndim, trace)


def _upwind(speed: Node, left: Node, right: Node) -> Node:
    if speed.op == "const":
        return speed * (left if speed.data > 0 else right)
    return speed * where(speed > 0.0, left, right)


def _sides(u: object, axis: int, scheme: str, trace: Trace) -> tuple[Node, Node | None]:
    """Return the values on the lower face as seen from below and from above; of centred schemes one."""
    if scheme in _STENCILS:
        low, high = _STENCILS[scheme]
        left = _averaged(u, axis, low, high, trace)
        return left, None if low == -high else _averaged(u, axis, low, high, trace, mirrored=True)
    low, high = (-2, 0) if scheme == "van_leer" else (-3, 1)
    from_below, from_above = range(low, high + 1), range(-1 - low, -2 - high, -1)
    return _limited(u, axis, scheme, from_below, trace), _limited(u, axis, scheme, from_above, trace)


def _limited(u: object, axis: int, scheme: str, offsets: Sequence[int], trace: Trace) -> Node:
    """Return the value on the lower face by a limited scheme, from cells in the order in which the flow passes them."""
    values = _values(u, axis, min(offsets), max(offsets), trace)
    if _uniform(trace, axis):
        return (van_leer if scheme == "van_leer" else weno5)(*(values[k] for k in offsets))

    def table(kind: str, *numbers: int) -> Node:
        return _cast(trace.table(f"@{kind}{axis}_{'_'.join(map(_name, numbers))}", axis), values[0])

    return (van_leer_unequal if scheme == "van_leer" else weno5_unequal)(values, offsets, table)


_BETWEEN: Final = {"upwind": 2, "van_leer": 2, "c2": 2, "up3": 4, "c4": 4, "up5": 6, "weno5": 6}
"""Accuracy of the velocity on a face, at least that of the scheme."""
_STENCILS: Final = {"upwind": (-1, 0), "up3": (-2, 1), "up5": (-3, 2), "c2": (-1, 1), "c4": (-2, 2)}
"""Cells from the first to before the last, of which the value on the lower face of cell 0 is made, seen from below."""


def _averaged(u: object, axis: int, low: int, high: int, trace: Trace, mirrored: bool = False) -> Node:
    """Return the value on the lower face for averages over cells; mirrored, for those on the other side of the face."""
    first, last = (-high, -low - 1) if mirrored else (low, high - 1)
    found = _values(u, axis, first, last, trace)
    place = {k: -1 - k if mirrored else k for k in range(low, high)}
    values = {k: found[place[k]] for k in place}
    if high - low == 1:
        return values[low]
    if _uniform(trace, axis):
        weights = dict(zip(values, uniform_averages(low, high), strict=True))
        denominator = math.lcm(*(weight.denominator for weight in weights.values()))
        total = _paired({k: w * denominator for k, w in weights.items()}, values, False, low == -high)
        return total * float(Fraction(1, denominator))
    stem = f"@average{axis}_{_name(first)}_{_name(last + 1)}"
    outwards = sorted(values, key=lambda k: abs(2 * k + 1))
    return _sum([values[k] * _cast(trace.table(f"{stem}_{_name(place[k])}", axis), values[k]) for k in outwards])


# Helpers -------------------------------------------------------------------------------------------------------------
def _trace(what: str) -> Trace:
    trace = current_trace(what)
    if not trace.supplied:
        raise author_error(f"{what} in a boundary condition", "a condition computes with the cells edge[n]")
    return trace


def _check_orders(what: str, n: int, order: int) -> None:
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= _HIGHEST:
        raise author_error(f"{what}: the derivative of order {shown(n)}", "give a whole number, from 1 on")
    if isinstance(order, bool) or not isinstance(order, int) or order % 2 or not 2 <= order <= _HIGHEST:
        raise author_error(f"{what}: order={shown(order)}", f"accuracies are 2, 4, ... {_HIGHEST}")


def _check_across(what: str, axis: int, trace: Trace) -> None:
    """Raise an author error where cells beyond an end are not those that lie there, but at another angle."""
    if trace.metric.across and trace.metric.across[axis]:
        name = trace.axis_names[axis]
        place = "r = 0" if name == "r" else "a pole"
        raise author_error(
            f"{what} along {name!r} reads across {place}, where the cells beyond lie at another angle",
            f"use what flows through faces, nothing at {place}: mg.laplace, mg.div_grad and mg.div of order 2, or "
            'mg.advect with "upwind" or "c2"; or begin the grid beside it, or leave out the angles',
        )


def _check_open(what: str, trace: Trace) -> None:
    """Raise an author error for an operator that is no flux where nothing may flow."""
    if trace.closed:
        raise author_error(
            f"{what} of a field with mg.no_flux(), which closes the walls for fluxes alone",
            "write what flows as mg.div, mg.div_grad, mg.laplace or the conservative mg.advect",
        )


def _components(what: str, v: object, trace: Trace) -> Sequence[object]:
    if not isinstance(v, tuple | list) or len(v) != trace.ndim:
        found = f"{len(v)} components" if isinstance(v, tuple | list) else shown(v)
        raise author_error(f"{what} of {found}", f"give a tuple of {trace.ndim}: one for each axis of the grid")
    return v


def _uniform(trace: Trace, axis: int) -> bool:
    return not trace.metric.uniform or trace.metric.uniform[axis]


def _centre(u: object, trace: Trace) -> object:
    """Return an operand's value at the cell itself."""
    return u[(0,) * len(u.axes)] if isinstance(u, CellReader) else u


def _values(u: object, axis: int, low: int, high: int, trace: Trace) -> dict[int, Node]:
    """Return an operand's values from offset `low` to `high` along an axis."""
    found = {}
    for offset in range(low, high + 1):
        by = tuple(offset if a == axis else 0 for a in range(trace.ndim))
        if isinstance(u, CellReader) and len(u.axes) == trace.ndim:
            found[offset] = u[tuple(map(_product, by, u.strides))]
        elif isinstance(u, Local):
            found[offset] = u[by]
        else:
            found[offset] = shifted(as_node(_centre(u, trace)), by, [param.axes for param in trace.params])
        if not is_float(found[offset].dtype):
            found[offset] = cast(found[offset], "f8")
    return found


def _product(a: int, b: int) -> int:
    return a * b


def _moved(node: Node, axis: int, by: int, trace: Trace) -> Node:
    return _values(node, axis, by, by, trace)[by]


def _kind(u: object, axis: int, trace: Trace) -> str:
    """Return c or f: on what an operand's points lie along an axis."""
    if isinstance(u, Local):
        u = u.definition
    if isinstance(u, CellReader):
        centre = trace.centres.get(u.parameter, ())
        return "f" if centre and axis in u.axes and centre[u.axes.index(axis)] else "c"
    for node in topological([as_node(u)]):
        if node.op != "read":
            continue
        axes, centre = trace.params[node.data[0]].axes, trace.centres.get(node.data[0], ())
        if centre and axis in axes:
            return "f" if centre[axes.index(axis)] else "c"
    return "c"


def _kinds(u: object, trace: Trace, cells: int | None = None) -> list[str]:
    return ["c" if axis == cells else _kind(u, axis, trace) for axis in range(trace.ndim)]


def _name(offset: int) -> str:
    return f"m{-offset}" if offset < 0 else str(offset)


def _cast(table: Node, like: Node) -> Node:
    """Return a table's value in the type of what it multiplies."""
    return table if like.weak else cast(table, like.dtype)


def _tabled(trace: Trace, axis: int, n: int, points: str, values: dict[int, Node]) -> Node:
    """Return a derivative with weights from tables; of differences, so that constants give exactly 0."""
    low, high = min(values), max(values)
    nearest = (low + high) // 2
    terms = []
    for offset in sorted(values, key=lambda k: (abs(2 * k - low - high), k)):
        if n and offset == nearest:
            continue
        value = values[offset] - values[nearest] if n else values[offset]
        name = f"@weight{axis}_{n}_{points}_{_name(low)}_{_name(high)}_{_name(offset)}"
        terms.append(value * _cast(trace.table(name, axis), value))
    return _sum(terms)


def _paired(weights: dict[int, Fraction], values: dict[int, Node], odd: bool, symmetric: bool = True) -> Node:
    """Return a weighted sum, from the middle outwards, of what lies equally far on both sides taken together."""
    low, high = min(values), max(values)
    parts: list[tuple[Fraction, Node]] = []
    done: set[int] = set()
    for k in sorted(values, key=lambda k: (abs(2 * k - low - high), k)):
        mirror = low + high - k
        if k in done or not weights[k]:
            continue
        if symmetric and mirror != k:
            done.add(mirror)
            pair = values[mirror] - values[k] if odd else values[k] + values[mirror]
            parts.append((weights[mirror], pair))
        else:
            parts.append((weights[k], values[k]))
    return signed_sum(parts)


def _sum(terms: Sequence[Node]) -> Node:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _times(factor: Node, value: Node) -> Node:
    return value if factor.op == "const" and factor.data == 1 else factor * value


# Curved coordinates --------------------------------------------------------------------------------------------------
def _scaling(trace: Trace, axis: int) -> list[int]:
    """Return the axes whose scales make up the length of a unit step along an axis."""
    name, names = trace.axis_names[axis], trace.axis_names
    if trace.metric.geometry == "cartesian" or name in ("r", "z"):
        return []
    needed = ("r", "theta") if trace.metric.geometry == "spherical" and name == "phi" else ("r",)
    return [names.index(each) for each in needed if each in names]


def _unscaled(value: Node, axis: int, at: Sequence[str], trace: Trace) -> Node:
    """Return a derivative by a coordinate as one by length."""
    for other in _scaling(trace, axis):
        value = value * _cast(_per_scale(trace, other, at[other]), value)
    return value


def _per_scale(trace: Trace, axis: int, kind: str) -> Node:
    return trace.table(f"@per_scale{axis}_{kind}", axis)


def _per_radius(trace: Trace, at: Sequence[str]) -> Node:
    axis = trace.axis_names.index("r")
    return _per_scale(trace, axis, at[axis])
