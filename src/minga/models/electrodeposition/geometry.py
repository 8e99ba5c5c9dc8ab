"""Geometry of the electrochemical cell: its grid, and which of its cells are metal or glass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.errors import CaseError, LayoutError
from minga.models.electrodeposition.contacts import check_apart, check_joined
from minga.models.electrodeposition.problem import ANODE, CATHODE, FLUID, INSULATOR
from minga.models.electrodeposition.settings import (
    ElectrodepositionSettings,
    FingerSettings,
    SolidSettings,
    StretchSettings,
)
from minga.models.electrodeposition.volumes import read_image, read_volume
from minga.space.grid import Grid

__all__ = ["KINDS", "check_equal_cells", "grid_of", "kinds_of", "widths_of"]

Kinds = NDArray[np.uint8]
Stretch = str | StretchSettings

KINDS: Final = {"cathode": CATHODE, "anode": ANODE, "insulator": INSULATOR}
"""Kinds of solid cells, by name."""
NAMED: Final = {"y": "length", "z": "gap", "x": "width"}
"""Names of the cell's lengths, by axis."""
LEAST: Final = {"y": 4, "z": 2, "x": 2}
"""Smallest useful number of cells along each axis."""

EQUAL: Final = 1e-9
"""Relative difference of widths that still count as equal."""


def grid_of(settings: ElectrodepositionSettings, shape: Sequence[int] | None) -> Grid:
    """Return the grid of a cell, with the axis y, and z and x where the cell has a gap and a width.

    Raises
    ------
    CaseError
        If the shape, the lengths and the options of axes do not fit together.
    """
    lengths = {axis: getattr(settings, name) for axis, name in NAMED.items()}
    if lengths["y"] is None and settings.scaled:
        lengths["y"] = 1.0
    axes = [axis for axis in NAMED if lengths[axis] is not None]
    unit = "L" if settings.scaled else "m"
    if lengths["y"] is None:
        raise CaseError("the cell has no length", key="electrodeposition.length", remedy='write length = "1 cm"')
    if shape is None:
        raise CaseError(
            "the number of cells is missing",
            key="grid.shape",
            remedy=f"give the cells along {', '.join(axes)} in [grid]: shape = {[64] * len(axes)}",
        )
    if len(shape) != len(axes):
        raise CaseError(
            f"the shape has {len(shape)} {'axis' if len(shape) == 1 else 'axes'}, "
            f"but the cell has {_and([NAMED[axis] for axis in axes])}, "
            f"that is the axes {', '.join(axes)}",
            key="grid.shape",
            remedy='give length, gap (z) and width (x) for as many axes: gap = "500 um"; cells in the order y, z, x',
        )
    for axis, cells in zip(axes, shape):
        if cells < LEAST[axis]:
            raise CaseError(
                f"too few cells along {axis}: {cells}", key="grid.shape", remedy=f"give {LEAST[axis]} or more"
            )
    stretched = () if isinstance(settings.stretched, str) else tuple(settings.stretched)
    for name, wanted in (("periodic", settings.periodic), ("stretched", stretched)):
        for axis in wanted:
            if axis not in axes:
                raise CaseError(
                    f"the cell has no axis {axis!r} to be {name} along",
                    key=f"electrodeposition.{name}",
                    remedy=f"its axes are {', '.join(axes)}; give {NAMED[axis]} to have {axis}",
                )
    try:
        return Grid(
            tuple(shape),
            axes=axes,
            spacing=[widths_of(_stretch(settings, axis), n, lengths[axis], axis) for axis, n in zip(axes, shape)],
            units="1" if unit == "L" else unit,
            periodic=[axis in settings.periodic for axis in axes],
        )
    except LayoutError as error:
        raise CaseError(error.message, key="grid", remedy=error.remedy) from error


def widths_of(stretch: Stretch, cells: int, length: float, axis: str = "y") -> float | NDArray[np.float64]:
    """Return the widths of the cells along an axis.

    Parameters
    ----------
    stretch
        "uniform"; "cosine", which puts face i at length (1 - cos(pi i / cells)) / 2; or geometric widths, which grow by
        a factor from one end or from both.
    cells
        Number of cells.
    length
        Length of the axis, m.
    axis
        Name of the axis, for error messages.

    Returns
    -------
    float or ndarray
        The width of all cells, or one for each cell, m.
    """
    if stretch == "uniform":
        return length / cells
    if stretch == "cosine":
        faces: NDArray[np.float64] = 0.5 * length * (1 - portable.cos(np.linspace(0, math.pi, cells + 1)))
        return np.diff(faces)
    assert isinstance(stretch, StretchSettings)
    number = np.arange(cells)
    steps = {"low": number, "high": number[::-1], "both": np.minimum(number, number[::-1])}[stretch.at]
    exponent = steps * portable.log(stretch.geometric)
    if exponent.max() > portable.log(1e6):
        raise CaseError(
            f"{cells} cells along {axis} that grow by {stretch.geometric:g} each would differ by more than 1e6",
            key=f"electrodeposition.stretched.{axis}",
            remedy="use a factor nearer to 1",
        )
    widths = portable.exp(exponent)
    return np.asarray(length * widths / widths.sum())


def _stretch(settings: ElectrodepositionSettings, axis: str) -> Stretch:
    """Return how an axis is stretched; a single name applies to y only."""
    if isinstance(settings.stretched, str):
        return settings.stretched if axis == "y" else "uniform"
    return next((stretch for name, stretch in settings.stretched.items() if name == axis), "uniform")


def kinds_of(settings: ElectrodepositionSettings, grid: Grid, directory: Path) -> Kinds | None:
    """Return the kind of every cell, or None where all of them are solution.

    Raises
    ------
    CaseError
        If a solid or a finger is invalid, or the electrodes touch or have no solution between them.
    """
    if not settings.fingers and not settings.solids:
        return None
    kinds = np.full(grid.shape, FLUID, np.uint8)
    for number, solid in enumerate(settings.solids):
        _put_solid(kinds, solid, grid, directory, f"electrodeposition.solids[{number}]")
    for number, finger in enumerate(settings.fingers):
        _put_finger(kinds, finger, grid, f"electrodeposition.fingers[{number}]")
    key = "electrodeposition.fingers" if settings.fingers else "electrodeposition.solids"
    check_apart(kinds, grid, key)
    check_joined(kinds, grid, key)
    return kinds


def _put_finger(kinds: Kinds, finger: FingerSettings, grid: Grid, key: str) -> None:
    y = grid.faces("y")
    if finger.length >= y[-1]:
        raise CaseError(
            f"a finger of length {finger.length:g} in a cell of length {y[-1]:g} makes the electrodes touch",
            key=f"{key}.length",
            remedy="make it shorter than the cell",
        )
    inside = _along(grid, 0, 0.0, finger.length)
    distances = []
    for axis in grid.axes[1:]:
        low, high = grid.faces(axis)[[0, -1]]
        place = finger.place.get(axis, 0.5 * (low + high))  # type: ignore[call-overload]
        if not low + 0.5 * finger.size <= place <= high - 0.5 * finger.size:
            raise CaseError(
                f"a finger of size {finger.size:g} around {axis} = {place:g} leaves the cell, which is "
                f"{high - low:g} along {axis}",
                key=f"{key}.size" if finger.size > high - low else f"{key}.place.{axis}",
                remedy=f"keep it between {low:g} and {high:g}",
            )
        distances.append(_beside(grid, axis, grid.centres(axis) - place))
    for axis in finger.place:
        if axis not in grid.axes:
            raise CaseError(
                f"the cell has no axis {axis}", key=f"{key}.place.{axis}", remedy=f"it has {', '.join(grid.axes)}"
            )
    half = 0.5 * finger.size * (1 + 1e-9)
    if finger.form == "round":
        inside = inside & (sum((d**2 for d in distances), np.zeros(1)) <= half * half)
    else:
        for distance in distances:
            inside = inside & (np.abs(distance) <= half)
    inside = np.broadcast_to(inside, grid.shape)
    if not inside.any():
        raise CaseError(
            "the finger is thinner than the cells of the grid: none has its centre in it",
            key=f"{key}.size",
            remedy="make it wider or longer, or the cells smaller",
        )
    kinds[inside] = CATHODE


def _put_solid(kinds: Kinds, solid: SolidSettings, grid: Grid, directory: Path, key: str) -> None:
    given = [name for name in ("box", "image", "file") if getattr(solid, name) is not None]
    if len(given) != 1:
        raise CaseError(
            f"a solid is given by exactly one of box, image and file; found {', '.join(given) or 'none of them'}",
            key=key,
            remedy='write box = {y = [0, "1 mm"]}, image = "mask.png" or file = "mask.npy"',
        )
    if solid.image is None and (solid.plane or solid.across):
        name = "plane" if solid.plane else "across"
        raise CaseError(f"{name} applies only to an image", key=f"{key}.{name}", remedy="leave it out")
    if solid.file is not None:
        found = read_volume(solid.file, grid.shape, directory, f"{key}.file", marks=solid.kind is not None)
        kinds[found != 0] = found[found != 0] if solid.kind is None else KINDS[solid.kind]
        return
    if solid.kind is None:
        raise CaseError("the kind of the solid is missing", key=f"{key}.kind", remedy='write kind = "cathode"')
    inside = _box(solid, grid, key) if solid.box is not None else _extruded(solid, grid, directory, key)
    if not inside.any():
        raise CaseError(
            "no cell of the grid has its centre in the solid", key=key, remedy="make it larger, or the cells smaller"
        )
    kinds[inside] = KINDS[solid.kind]


def _box(solid: SolidSettings, grid: Grid, key: str) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = np.ones((1,) * grid.ndim, bool)
    for axis, (low, high) in (solid.box or {}).items():
        where = f"{key}.box.{axis}"
        if axis not in grid.axes:
            raise CaseError(f"the cell has no axis {axis}", key=where, remedy=f"it has {', '.join(grid.axes)}")
        first, last = grid.faces(axis)[[0, -1]]
        slack = 1e-9 * (last - first)
        if not first - slack <= low < high <= last + slack:
            raise CaseError(
                f"the box extends from {low:g} to {high:g}, but the cell from {first:g} to {last:g}",
                key=where,
                remedy="give two positions inside the cell, the lower one first",
            )
        inside = inside & _along(grid, grid.axis(axis), low, high)
    return np.broadcast_to(inside, grid.shape)


def _extruded(solid: SolidSettings, grid: Grid, directory: Path, key: str) -> NDArray[np.bool_]:
    """Mark the dark parts of an image that covers a plane of the cell, along all or a part of the other axis."""
    plane = solid.plane or ("yx" if "x" in grid.axes else "yz")
    missing = [axis for axis in plane if axis not in grid.axes]
    if missing:
        raise CaseError(
            f"the image lies in the plane {plane}, but the cell has no axis {missing[0]}",
            key=f"{key}.plane",
            remedy=f"the cell has {', '.join(grid.axes)}",
        )
    dark = read_image(solid.image or "", directory, f"{key}.image")
    places = []
    for axis, pixels in zip(plane, dark.shape):
        faces = grid.faces(axis)
        share = (grid.centres(axis) - faces[0]) / (faces[-1] - faces[0])
        places.append(np.minimum((share * pixels).astype(np.int64), pixels - 1))
    sampled = dark[np.ix_(*places)]
    order = [axis for axis in grid.axes if axis in plane]
    if order != list(plane):
        sampled = sampled.T
    inside = sampled.reshape([n if axis in plane else 1 for axis, n in zip(grid.axes, grid.shape)])
    others = [axis for axis in grid.axes if axis not in plane]
    if solid.across is not None:
        if not others:
            raise CaseError(
                "the cell has no axis perpendicular to the image", key=f"{key}.across", remedy="leave it out"
            )
        inside = inside & _along(grid, grid.axis(others[0]), *sorted(solid.across))
    return np.broadcast_to(inside, grid.shape)


def _along(grid: Grid, axis: int, low: float, high: float) -> NDArray[np.bool_]:
    """Mark the cells whose centres lie between two positions along an axis, shaped to broadcast over the grid."""
    centres = grid.centres(axis)
    return _beside(grid, axis, (centres >= low) & (centres <= high))


def _beside(grid: Grid, axis: str | int, values: NDArray) -> NDArray:  # type: ignore[type-arg]
    """Shape values along one axis so that they broadcast over the grid."""
    shape = [1] * grid.ndim
    shape[grid.axis(axis)] = -1
    return values.reshape(shape)


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def check_equal_cells(grid: Grid) -> None:
    """Reject axes with cells of several widths, over which the growth of a deposit cannot average."""
    for name in grid.axes:
        widths = grid.widths(name)
        if float(np.ptp(widths)) > EQUAL * float(widths.max()):
            raise CaseError(
                f"the cells along {name} are {widths.min():g} to {widths.max():g} m wide, but growth averages fluxes "
                "over a radius in cells of equal width only",
                key="electrodeposition.growth.radius",
                remedy=f"leave out the radius, or the stretching along {name}",
            )
