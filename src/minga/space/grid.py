"""Global grid: the number of cells, their positions in space, and the edges that are joined.

Axes are ordered as in NumPy, the last one innermost. Indices and coordinates are kept apart: ownership and movement of
cells use integer boxes only; spacing, origin and units serve kernels, pictures and files.
"""

from __future__ import annotations

import functools
import graphlib
import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from minga.errors import LayoutError, shown, suggest
from minga.markup import block, table
from minga.space.box import Box, Point, Widths
from minga.space.names import OF_RESULTS
from minga.space.seams import Seam

__all__ = ["Floats", "Grid"]

Floats = NDArray[np.float64]
Spacing = float | Sequence[float] | Floats
"""Spacing along one axis: one width for all cells, or one width for each cell."""

Geometry = Literal["cartesian", "polar", "cylindrical", "spherical"]
"""Coordinates of a grid."""

_LETTERS = "wzyx"
_ANGLE: Final = 1e-9
"""Error of angles that rounding may cause."""
_CURVED: Final = {"polar": ("r", "phi"), "cylindrical": ("r", "phi", "z"), "spherical": ("r", "theta", "phi")}
_MAX_NDIM = len(_LETTERS)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Grid:
    """Structured grid of one to four axes.

    Parameters
    ----------
    shape
        Cells along each axis.
    axes
        A name for each axis; by default the last letters of w, z, y, x.
    spacing
        Cell width: one number for all axes, or one entry for each axis, which is a number (uniform) or an array with
        one width for each cell (stretched). Kept as a float or a tuple of floats for each axis.
    origin
        Coordinate of face 0 along each axis, or one number for all.
    units
        Unit of the coordinates along each axis, or one for all; ``"1"`` is dimensionless.
    periodic
        Whether the two ends of each axis are joined, or one answer for all.
    shift
        Shift of a twisted torus: for a periodic axis, the number of cells by which one is moved along other periodic
        axes on leaving through its high end, as ``{"y": {"x": 5}}`` or ``{"y": (0, 5)}``. Cell ``(y + N, x)`` is cell
        ``(y, x + 5)``, as in Golly's ``:T30+5,20`` (golly.sourceforge.io/Help/bounded.html). Kept as one vector for
        each axis.
    label
        Distinguishes grids of equal shape that have different layouts.
    down
        Axes, by name or number, whose coordinates grow downwards, such as depth, or the rows of a table. Pictures draw
        them so, and files for programs whose z grows upwards store them with the opposite sign; nothing else changes.
    nodes
        For each axis the positions of its points, ascending with one in each cell, or None: in the middle of each cell.
        Control volumes of unequal nodes have theirs elsewhere.
    geometry
        Coordinates: ``"cartesian"``; ``"polar"`` with axes r, phi; ``"cylindrical"`` with r and perhaps phi and z;
        ``"spherical"`` with r and perhaps theta (from the polar axis) and phi. Nothing depends on those of the axes
        that a grid lacks. The axes may come in any order; if `axes` is left out, it is the order given here.
        Operators such as `mg.laplace` carry the metric.
    seam
        Join of the ends of two periodic axes that reverses edges: a Klein bottle, a cross-surface or a sphere. Such
        grids are for cellular automata, whose cells read at most one cell away; None elsewhere.

    Raises
    ------
    LayoutError
        If these do not fit together.
    """

    shape: Point
    axes: tuple[str, ...]
    spacing: tuple[float | tuple[float, ...], ...]
    origin: tuple[float, ...]
    units: tuple[str, ...]
    periodic: tuple[bool, ...]
    shift: tuple[Point, ...]
    label: str
    down: tuple[str, ...] = field(compare=False)
    nodes: tuple[tuple[float, ...] | None, ...]
    geometry: Geometry
    seam: Seam | None

    def __init__(
        self,
        shape: Sequence[int],
        axes: Sequence[str] | None = None,
        spacing: float | Sequence[Spacing] = 1.0,
        origin: float | Sequence[float] = 0.0,
        units: str | Sequence[str] = "1",
        periodic: bool | Sequence[bool] = False,
        shift: Mapping[str | int, Mapping[str | int, int] | Sequence[int]] | Sequence[Sequence[int]] = (),
        label: str = "",
        down: str | Sequence[str | int] = (),
        nodes: Sequence[Sequence[float] | Floats | None] | None = None,
        geometry: Geometry = "cartesian",
        seam: Seam | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "shape", _shape(shape))
        put(self, "label", str(label))
        put(self, "geometry", geometry)
        put(self, "axes", _geometric(geometry, axes, self.ndim))
        put(self, "origin", tuple(map(float, _each("origin", origin, self.ndim))))
        put(self, "units", tuple(_unit(each) for each in _each("units", units, self.ndim)))
        put(self, "periodic", self._periodic(periodic))
        widths = _each("spacing", spacing, self.ndim)
        put(self, "spacing", tuple(_spacing(w, n, a) for w, n, a in zip(widths, self.shape, self.axes, strict=True)))
        put(self, "shift", self._shift(shift))
        names = (down,) if isinstance(down, str) else down
        put(self, "down", tuple(self.axes[self.axis(name)] for name in names))
        given = (None,) * self.ndim if nodes is None else _each("nodes", nodes, self.ndim)
        put(self, "nodes", tuple(self._nodes(axis, found) for axis, found in enumerate(given)))
        if geometry != "cartesian" and "r" in self.axes and self.origin[self.axis("r")] < 0:
            raise LayoutError(
                f"the radius of a {geometry} grid begins at {self.origin[self.axis('r')]}", remedy="begin at 0 or above"
            )
        for axis in range(self.ndim) if geometry != "cartesian" else ():
            _check_angle(self, axis)
        put(self, "seam", seam)
        if seam is not None:
            self._check_seam(seam)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    @property
    def box(self) -> Box:
        """Box of all cells."""
        return Box.of(self.shape)

    @property
    def twisted(self) -> bool:
        """True if crossing some periodic axis also moves along another one, or reverses it."""
        return self.seam is not None or any(map(any, self.shift))

    def axis(self, name: str | int) -> int:
        """Return the number of an axis given by name or number (negative ones count from the innermost).

        Parameters
        ----------
        name
            Name or number of an axis; negative numbers count from the innermost.

        Returns
        -------
        int
            The number of the axis.
        """
        if isinstance(name, str):
            if name in self.axes:
                return self.axes.index(name)
            close = suggest(name, self.axes)
            raise LayoutError(
                f"the grid has no axis {name!r}; its axes are {', '.join(self.axes)}",
                remedy=f"did you mean {close!r}?" if close else None,
            )
        if not -self.ndim <= name < self.ndim:
            raise LayoutError(f"the grid has no axis {name}; it has {self.ndim}, from 0 on ({', '.join(self.axes)})")
        return name % self.ndim

    def widths(self, axis: str | int) -> Floats:
        """Return the width of every cell along an axis, f8 of shape (N,).

        Parameters
        ----------
        axis
            Name or number of the axis.

        Returns
        -------
        ndarray
            Widths, f8 of shape (N,).
        """
        number = self.axis(axis)
        return np.broadcast_to(np.asarray(self.spacing[number], np.float64), (self.shape[number],)).copy()

    def faces(self, axis: str | int) -> Floats:
        """Return the coordinates of the faces between cells along an axis, both ends included, f8 of shape (N + 1,).

        Parameters
        ----------
        axis
            Name or number of the axis.

        Returns
        -------
        ndarray
            Coordinates, f8 of shape (N + 1,).
        """
        number = self.axis(axis)
        width = self.spacing[number]
        if isinstance(width, float):
            distance = np.arange(self.shape[number] + 1, dtype=np.float64) * width
        else:
            distance = np.concatenate(([0.0], np.cumsum(np.asarray(width, np.float64))))
        return self.origin[number] + distance

    def centres(self, axis: str | int) -> Floats:
        """Return the coordinates of the cell centres along an axis, f8 of shape (N,).

        Parameters
        ----------
        axis
            Name or number of the axis.

        Returns
        -------
        ndarray
            Coordinates, f8 of shape (N,).
        """
        number = self.axis(axis)
        width = self.spacing[number]
        if isinstance(width, float):
            return self.origin[number] + (np.arange(self.shape[number], dtype=np.float64) + 0.5) * width
        faces = self.faces(number)
        return 0.5 * (faces[:-1] + faces[1:])

    def positions(self, axis: str | int) -> Floats:
        """Return the coordinates of the points that represent cells along an axis: its nodes, or the cell centres.

        Parameters
        ----------
        axis
            Name or number of the axis.

        Returns
        -------
        ndarray
            Coordinates, f8 of shape (N,).
        """
        number = self.axis(axis)
        nodes = self.nodes[number]
        return self.centres(number) if nodes is None else np.array(nodes)

    def continued(self, axis: str | int, numbers: NDArray[np.integer[Any]], faces: bool = False) -> Floats:
        """Return the positions of cells or faces of any numbers.

        Beyond the ends of an axis the points go on evenly with the width of the last cell; along a periodic one they
        are those of the other end, a period further.

        Parameters
        ----------
        axis
            Name or number of the axis.
        numbers
            Numbers of the cells or faces, any shape.
        faces
            True for faces.

        Returns
        -------
        Floats
            Positions, f8.
        """
        number = self.axis(axis)
        length = self.shape[number]
        points = self.faces(number) if faces else self.positions(number)
        if self.periodic[number]:
            ends = self.faces(number)
            around, inside = np.divmod(numbers, length)
            return np.asarray(points[inside] + around * (ends[-1] - ends[0]))
        widths, last = self.widths(number), len(points) - 1
        low = points[0] + widths[0] * np.minimum(numbers, 0)
        high = points[-1] + widths[-1] * np.maximum(numbers - last, 0)
        known: Floats = np.where(numbers > last, high, points[np.clip(numbers, 0, last)])
        return np.where(numbers < 0, low, known)

    def uniform(self, axis: str | int) -> bool:
        """Return whether all cells along an axis have one width and their points in the middle.

        Parameters
        ----------
        axis
            Name or number of the axis.

        Returns
        -------
        bool
            True if so.
        """
        number = self.axis(axis)
        return isinstance(self.spacing[number], float) and self.nodes[number] is None

    def place(self, cell: int) -> str:
        """Describe the location of a cell: the indices of cell number `cell`, counted row by row, and its position.

        Parameters
        ----------
        cell
            The number of the cell, counted row by row.

        Returns
        -------
        str
            Its indices and position.
        """
        indices = tuple(map(int, np.unravel_index(cell, self.shape)))
        positions = (
            f"{axis} = {self.positions(axis)[index]:.4g} {unit}".removesuffix(" 1")
            for axis, index, unit in zip(self.axes, indices, self.units, strict=True)
        )
        return f"cell {indices} ({', '.join(positions)})"

    def points(self, centre: Sequence[int]) -> Box:
        """Return the box of all points of a field with one ``centre`` bit for each axis.

        Bit 0 means cell centres, N points; bit 1 means cell faces, N + 1 points, or N on a periodic axis, whose last
        face is its first one.

        Parameters
        ----------
        centre
            One bit for each axis: 0 for cell centres, 1 for faces.

        Returns
        -------
        Box
            The box of all points.
        """
        if len(centre) != self.ndim or any(bit not in (0, 1) for bit in centre):
            raise LayoutError(f"centre needs a bit (0 cells, 1 faces) for each axis {self.axes}; found {tuple(centre)}")
        faces = (bit and not p for bit, p in zip(centre, self.periodic, strict=True))
        return Box.of(n + int(extra) for n, extra in zip(self.shape, faces, strict=True))

    def images(self, reach: Box, points: Box) -> list[Point]:
        """Return all periodic translations ``t`` for which ``points`` moved by ``t`` meets ``reach``.

        Images of all points of a periodic axis tile it, so each index of ``reach`` lies in at most one of them, however
        many periods away. The zero translation comes first if it is among them, the others in ascending order.

        Parameters
        ----------
        reach
            The box that images may meet.
        points
            The box that is translated.

        Returns
        -------
        list of tuple of int
            Translations, one number for each axis.
        """
        if reach.empty or points.empty:
            return []
        found = [(0,) * self.ndim]
        for axis in self._crossing_order():
            found = [moved for t in found for moved in self._along(axis, t, reach, points)]
        return sorted(found, key=lambda t: (any(t), t))

    def coarsen(self, factor: Widths = 2) -> Grid:
        """Return the grid of ``ceil(N / factor)`` cells along each axis.

        Each coarse cell is the union of ``factor`` fine ones; the last one may consist of fewer.

        Parameters
        ----------
        factor
            Fine cells in a coarse one, one number or one for each axis.

        Returns
        -------
        Grid
            The coarse grid.

        Raises
        ------
        LayoutError
            For a shifted torus whose shift is not a whole number of coarse cells, and for a grid with a seam.
        """
        if self.seam is not None:
            raise LayoutError(f"a {self.seam.surface} cannot be coarsened", remedy="use a torus")
        factors = _each("factor", factor, self.ndim)
        for vector in self.shift:
            for axis, cells in enumerate(vector):
                if cells and (cells % factors[axis] or self.shape[axis] % factors[axis]):
                    raise LayoutError(
                        f"a torus of {self.shape[axis]} cells along {self.axes[axis]} with a shift of {cells} "
                        f"cannot be coarsened by {factors[axis]}",
                        remedy=f"choose lengths and shifts along {self.axes[axis]} that {factors[axis]} divides",
                    )
        return replace(
            self,
            shape=self.box.coarsen(factors).shape,
            spacing=tuple(map(_coarse_spacing, self.spacing, self.shape, factors)),
            shift=tuple(tuple(map(operator.floordiv, vector, factors)) for vector in self.shift),
            nodes=(None,) * self.ndim,
        )

    def project(self, axes: Sequence[int]) -> Grid:
        """Return the grid along some of the axes, in their order here; shifts from or to other axes are left out.

        Parameters
        ----------
        axes
            Numbers of the axes that are kept.

        Returns
        -------
        Grid
            The grid along these axes.
        """
        return Grid(
            shape=[self.shape[a] for a in axes],
            axes=[self.axes[a] for a in axes],
            spacing=[self.spacing[a] for a in axes],
            origin=[self.origin[a] for a in axes],
            units=[self.units[a] for a in axes],
            periodic=[self.periodic[a] for a in axes],
            shift=[[self.shift[a][b] for b in axes] for a in axes],
            label=self.label,
            down=[self.axes[a] for a in axes if self.axes[a] in self.down],
            nodes=[self.nodes[a] for a in axes],
            geometry=self.geometry if any(self.axes[a] == "r" for a in axes) else "cartesian",
        )

    def relabel(self, label: str) -> Grid:
        """Return the same grid with another label.

        Parameters
        ----------
        label
            The new label.

        Returns
        -------
        Grid
            An otherwise equal grid.
        """
        return replace(self, label=label)

    def __repr__(self) -> str:
        lengths = " x ".join(f"{n} {a}" for n, a in zip(self.shape, self.axes, strict=True))
        widths = [f"{w:g}" if isinstance(w, float) else f"{min(w):g}..{max(w):g}" for w in self.spacing]
        said = [lengths, f"spacing {widths[0] if len(set(widths)) == 1 else ' x '.join(widths)}"]
        if any(self.origin):
            said.append(f"origin {self.origin}")
        if set(self.units) != {"1"}:
            said.append(f"units {', '.join(self.units)}")
        if any(self.periodic):
            said.append("periodic " + ", ".join(itertools.compress(self.axes, self.periodic)))
        for name, vector in zip(self.axes, self.shift, strict=True):
            said += [f"{name} shifts {b} by {cells:+d}" for b, cells in zip(self.axes, vector, strict=True) if cells]
        if self.geometry != "cartesian":
            said.append(self.geometry)
        if self.seam is not None:
            said.append(repr(self.seam))
        if self.label:
            said.append(f"label {self.label!r}")
        return f"Grid({'; '.join(said)})"

    def _repr_html_(self) -> str:
        rows = []
        for axis, name in enumerate(self.axes):
            faces, widths = self.faces(axis), self.widths(axis)
            width = f"{widths.min():g}" if self.uniform(axis) else f"{widths.min():g} to {widths.max():g}"
            unit = "" if self.units[axis] == "1" else self.units[axis]
            joined = "yes" if self.periodic[axis] else "no"
            rows.append((name, self.shape[axis], f"{faces[0]:g}", f"{faces[-1]:g}", width, unit, joined))
        head = ("axis", "cells", "from", "to", "spacing", "unit", "periodic")
        geometry = "" if self.geometry == "cartesian" else f", {self.geometry}"
        return block(f"Grid of {self.size} cells{geometry}", table(head, rows, named=True))

    def _along(self, axis: int, t: Point, reach: Box, points: Box) -> list[Point]:
        """Return ``t`` plus every number of crossings of ``axis`` that can bring ``points`` onto ``reach`` along it."""
        period = self.shape[axis] if self.periodic[axis] and self.seam is None else 0
        low, high = points.lo[axis] + t[axis], points.hi[axis] + t[axis]
        if not period:
            return [t] if low < reach.hi[axis] and high > reach.lo[axis] else []
        first = (reach.lo[axis] - high) // period + 1
        last = -((low - reach.hi[axis]) // period) - 1
        # Leaving through the high end moves one *by* the shift, so the image beyond it lies *back* by the shift.
        step = [-cells for cells in self.shift[axis]]
        step[axis] = period
        return [tuple(a + k * b for a, b in zip(t, step, strict=True)) for k in range(first, last + 1)]

    def _check_seam(self, seam: Seam) -> None:
        """Raise LayoutError unless the grid is a torus but for its seam."""
        seam.check(self.shape)
        if not all(self.periodic) or any(map(any, self.shift)) or self.geometry != "cartesian":
            raise LayoutError(
                f"a {seam.surface} joins all ends of a plane, and some are not periodic, shifted or curved",
                remedy="make both axes periodic, without shift=",
            )

    def _crossing_order(self) -> list[int]:
        """Return the axes, each after those whose crossing moves along it."""
        sources = {a: {b for b in range(self.ndim) if self.shift[b][a]} for a in range(self.ndim)}
        return list(graphlib.TopologicalSorter(sources).static_order())

    def _nodes(self, axis: int, given: Sequence[float] | Floats | None) -> tuple[float, ...] | None:
        """Return the nodes along one axis after checking them; None if they lie in the middle of each cell."""
        if given is None:
            return None
        found, faces = np.asarray(given, np.float64), self.faces(axis)
        near = 1e-9 * (faces[-1] - faces[0])
        inside = found.shape == (self.shape[axis],) and (found >= faces[:-1] - near).all()
        if not inside or not (found <= faces[1:] + near).all() or not (np.diff(found) > 0).all():
            raise LayoutError(
                f"the nodes along axis {self.axes[axis]} do not lie one in each of its {self.shape[axis]} cells",
                remedy="give one position a cell, ascending, between its faces, or None for their middles",
            )
        middles = np.abs(found - self.centres(axis)).max() <= near * 1e-3
        return None if middles else tuple(found.tolist())

    def _periodic(self, given: object) -> tuple[bool, ...]:
        """Return which axes are closed; raise LayoutError for anything but answers: every text counts as True."""
        found = _each("periodic", given, self.ndim)
        for each in found:
            if not (isinstance(each, bool | np.bool_) or (isinstance(each, int | np.integer) and each in (0, 1))):
                names = {given} if isinstance(given, str) else set(map(str, found))
                meant = tuple(name in names for name in self.axes)
                raise LayoutError(
                    f"periodic={shown(given)}: expected True or False, or one of them for each axis",
                    remedy=f"write periodic={meant if any(meant) else True}",
                )
        return tuple(map(bool, found))

    def _shift(
        self, shift: Mapping[str | int, Mapping[str | int, int] | Sequence[int]] | Sequence[Sequence[int]]
    ) -> tuple[Point, ...]:
        """Return the shift as one vector for each axis after checking that it joins periodic axes without a cycle."""
        rows = [[0] * self.ndim for _ in range(self.ndim)]
        given = shift.items() if isinstance(shift, Mapping) else enumerate(shift)
        for crossed, vector in given:
            number = self.axis(crossed)
            entries = vector.items() if isinstance(vector, Mapping) else enumerate(vector)
            for along, cells in entries:
                rows[number][self.axis(along)] = int(cells)
        for crossed, along in itertools.product(range(self.ndim), repeat=2):
            if not rows[crossed][along]:
                continue
            if crossed == along:
                raise LayoutError(f"crossing axis {self.axes[crossed]} cannot shift along itself")
            for axis in (crossed, along):
                if not self.periodic[axis]:
                    raise LayoutError(
                        f"a shift along {self.axes[along]} when crossing {self.axes[crossed]} joins both axes, but "
                        f"{self.axes[axis]} is not periodic",
                        remedy=f"make {self.axes[axis]} periodic or leave the shift out",
                    )
        vectors = tuple(map(tuple, rows))
        object.__setattr__(self, "shift", vectors)
        try:
            self._crossing_order()
        except graphlib.CycleError as error:
            circle = " -> ".join(self.axes[a] for a in error.args[1])
            raise LayoutError(
                f"shifts run in a circle ({circle}), so the images of the grid overlap",
                remedy="shift only one of these axes",
            ) from None
        return vectors


def _shape(shape: Sequence[int]) -> Point:
    if isinstance(shape, int):
        raise LayoutError(f"a grid's shape is a length for each axis; found {shape}", remedy=f"write ({shape},)")
    entries = tuple(shape)
    if not all(hasattr(n, "__index__") for n in entries):
        raise LayoutError(f"a grid's shape consists of whole numbers; found {shown(entries)}", remedy="count cells")
    lengths = tuple(operator.index(n) for n in entries)
    if not 1 <= len(lengths) <= _MAX_NDIM:
        raise LayoutError(f"a grid has 1 to {_MAX_NDIM} axes; found shape {lengths}")
    if min(lengths) < 1:
        raise LayoutError(f"a grid needs at least one cell along each axis; found shape {lengths}")
    return lengths


def _names(axes: Sequence[str] | None, ndim: int) -> tuple[str, ...]:
    names = tuple(axes) if axes is not None else tuple(_LETTERS[_MAX_NDIM - ndim :])
    if len(names) != ndim or len(set(names)) != ndim or not all(isinstance(n, str) and n for n in names):
        raise LayoutError(f"a grid of {ndim} axes needs {ndim} different axis names; found {shown(names)}")
    for name in names:
        if name in OF_RESULTS:
            raise LayoutError(f"axis {name!r} has the name of {OF_RESULTS[name]} in results", remedy="rename the axis")
    return names


def _geometric(geometry: str, axes: Sequence[str] | None, ndim: int) -> tuple[str, ...]:
    """Return the names of the axes of a grid in some coordinates."""
    if geometry == "cartesian":
        return _names(axes, ndim)
    if geometry not in _CURVED:
        raise LayoutError(f"geometry={shown(geometry)}", remedy=f"choose cartesian, {', '.join(_CURVED)}")
    known = _CURVED[geometry]
    default = ("r", "z") if geometry == "cylindrical" and ndim == 2 else known[:ndim]
    names = _names(default if axes is None else axes, ndim)
    if "r" not in names or not set(names) <= set(known):
        raise LayoutError(
            f"a {geometry} grid has axes {', '.join(names)}",
            remedy=f"name them {', '.join(known)}; r is needed, others may be left out",
        )
    return names


def _check_angle(grid: Grid, axis: int) -> None:
    """Raise LayoutError for an angle that no point has, or that does not close where the grid is periodic."""
    name, cells = grid.axes[axis], grid.shape[axis]
    if name not in ("theta", "phi"):
        return
    low, high = map(float, grid.faces(axis)[[0, -1]])
    length = high - low
    if name == "theta":
        if grid.periodic[axis]:
            raise LayoutError("the axis 'theta' of a spherical grid is periodic", remedy="let it end at its poles")
        if low < -_ANGLE or high > math.pi + _ANGLE:
            raise LayoutError(
                f"theta, the angle from the polar axis, runs from {low:g} to {high:g}",
                remedy=f"it lies between 0 and pi: for the whole of it give spacing=numpy.pi / {cells} along theta",
            )
        return
    whole = f"for the whole circle give spacing=2 * numpy.pi / {cells} along phi"
    if length > 2 * math.pi + _ANGLE:
        raise LayoutError(f"phi runs from {low:g} to {high:g}, more than once around", remedy=whole)
    times = 2 * math.pi / length
    if grid.periodic[axis] and abs(times - round(times)) > _ANGLE * times:
        raise LayoutError(f"phi is periodic after {length:g} rad, which is no whole fraction of a circle", remedy=whole)


def _each(what: str, given: Any, ndim: int) -> tuple[Any, ...]:
    """Return one entry for each axis: ``given`` itself if it has one for each, or a single entry repeated."""
    if isinstance(given, str | float | int | bool | np.number | np.bool_):
        return (given,) * ndim
    try:
        entries = tuple(given)
    except TypeError:
        raise LayoutError(
            f"{what}={shown(given)}: expected one entry for all axes, or one for each of {ndim}",
            remedy=f"leave {what} out, or give a value for it",
        ) from None
    if len(entries) != ndim:
        raise LayoutError(
            f"{what} needs one entry for each of {ndim} axes; found {len(entries)}",
            remedy="give cell widths of a stretched axis as an entry of their own: spacing=[widths]"
            if what == "spacing"
            else None,
        )
    return entries


def _unit(given: object) -> str:
    """Return the unit of an axis; raise LayoutError unless it is a text."""
    if not isinstance(given, str):
        raise LayoutError(
            f"units: {shown(given)} is no text", remedy='write units="m", or one for each axis: ("s", "m")'
        )
    return given


def _spacing(width: Spacing, length: int, name: str) -> float | tuple[float, ...]:
    """Return the spacing along one axis as a float (uniform) or a tuple of one float for each cell (stretched)."""
    values = np.asarray(width, np.float64)
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise LayoutError(f"cell widths along axis {name} must be positive and finite; found {width}")
    if values.ndim == 0:
        return float(values)
    if values.shape != (length,):
        raise LayoutError(f"axis {name} has {length} cells, but its spacing has shape {values.shape}")
    return tuple(values.tolist())


def _coarse_spacing(width: float | tuple[float, ...], length: int, factor: int) -> float | tuple[float, ...]:
    if isinstance(width, float):
        if length % factor == 0:
            return width * factor
        width = (width,) * length
    # Added from left to right: Python's sum() compensates rounding since 3.12, so its bits would differ from 3.11.
    return tuple(functools.reduce(operator.add, width[i : i + factor]) for i in range(0, length, factor))
