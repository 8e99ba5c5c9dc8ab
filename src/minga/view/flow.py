"""Pictures of the flow in a run: streamlines over the vorticity, in sections through the middle.

Velocities lie on the faces of cells, one field for each axis; a store names them in its attribute ``velocity``.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minga.output.store import FrameReader
from minga.output.variables import Coordinate, faces_of
from minga.output.velocity import at_centres, centres_of, velocity_of
from minga.view.masked import left_out

__all__ = ["Section", "flow_pictures", "picture", "section_of"]

Floats = NDArray[np.float64]
_LINES = 160
"""Points along the longer side of the grid on which streamlines are computed."""
METAL = "#b9b4a8"
"""Colour of solid cells."""
_CLIPPED = 99.0
"""Percentage of the vorticities that the colours cover, so that one corner of the metal does not fade all others."""
_MOST_ASPECT = 8.0
"""Largest ratio of width to height that is drawn in true proportions; longer sections are stretched vertically."""


@dataclass(frozen=True, slots=True)
class Section:
    """Flow in a plane, at the centres of cells.

    Attributes
    ----------
    axes
        Names of the plane's axes: the one drawn upwards, the one drawn to the right.
    places
        Positions along them.
    unit
        Unit of the positions.
    velocity
        Velocity along each of them, (up, right).
    where
        Position of the plane along the other axes, "x = 0.002".
    solid
        Cells of the plane in which nothing flows; None if there are none.
    """

    axes: tuple[str, str]
    places: tuple[Floats, Floats]
    unit: str
    velocity: tuple[Floats, Floats]
    where: str
    solid: NDArray[np.bool_] | None = None

    @property
    def vorticity(self) -> Floats:
        """Vorticity, d up / d right - d right / d up, in 1/s; an axis of one cell contributes 0."""
        up, right = self.velocity
        return _slope(up, self.places[1], 1) - _slope(right, self.places[0], 0)


def flow_pictures(reader: FrameReader) -> Iterator[tuple[str, bytes]]:
    """Yield a caption and a PNG picture for each section at the last frame.

    There are none unless the run kept two or three velocity components.
    """
    names = velocity_of(reader)
    if len(names) < 2 or not reader.steps:
        return
    axes = centres_of(reader, names)
    parts = [at_centres(reader, name, k, axes[k].values) for k, name in enumerate(names)]
    solid = left_out(reader, [axis.name for axis in axes])
    # The first axis is the long one: it lies to the right if it is in the plane.
    for up in range(1, len(axes)):
        found = section_of(parts, axes, up, right=0, solid=solid)
        words = f"Streamlines over vorticity after step {reader.steps[-1]}"
        yield f"{words}, {found.where}" if found.where else words, picture(found)


def section_of(
    parts: Sequence[Floats],
    axes: Sequence[Coordinate],
    up: int,
    right: int,
    solid: NDArray[np.bool_] | None = None,
) -> Section:
    """Return the plane of two axes through the middle of the others.

    Parameters
    ----------
    parts
        Velocity along each axis, at the centres of the cells.
    axes
        Centres of the cells.
    up, right
        Numbers of the axes drawn upwards and to the right.
    solid
        Cells without flow.
    """
    others = [axis for axis in range(len(axes)) if axis not in (up, right)]
    at: list[int | slice] = [slice(None)] * len(axes)
    for axis in others:
        at[axis] = len(axes[axis].values) // 2
    planes = []
    for axis in (up, right):
        plane = parts[axis][tuple(at)]
        planes.append(plane if up < right else plane.T)
    cut = None if solid is None else solid[tuple(at)]
    return Section(
        solid=cut if cut is None or up < right else cut.T,
        axes=(axes[up].name, axes[right].name),
        places=(axes[up].values, axes[right].values),
        unit=axes[right].attributes.get("units", "1"),
        velocity=(planes[0], planes[1]),
        where=", ".join(f"{axes[a].name} = {axes[a].values[len(axes[a].values) // 2]:.4g}" for a in others),
    )


def picture(section: Section) -> bytes:
    """Return a PNG picture of a section."""
    from matplotlib.figure import Figure

    (vertical, horizontal), (up, right) = section.places, section.velocity
    bottom, top = _ends(vertical)
    left, far = _ends(horizontal)
    aspect = (far - left) / (top - bottom)
    stretch = max(1.0, aspect / _MOST_ASPECT)
    figure = Figure(figsize=(9.0, min(9.0, 7.2 / aspect * stretch + 1.1)), layout="constrained")
    axes = figure.subplots()
    turning = section.vorticity
    loud = _loud(turning if section.solid is None else turning[~section.solid])
    seen = turning if section.solid is None else np.ma.masked_array(turning, section.solid)
    axes.set_facecolor(METAL)
    colours = axes.pcolormesh(
        faces_of(horizontal), faces_of(vertical), seen, cmap="RdBu_r", vmin=-loud, vmax=loud, rasterized=True
    )
    speed = np.hypot(up, right)
    fastest = float(speed.max(initial=0.0))
    if fastest > 0 and min(len(vertical), len(horizontal)) > 1:
        # matplotlib requires equal distances, and lengths in the proportions of the picture.
        x = np.linspace(horizontal[0], horizontal[-1], _LINES)
        y = np.linspace(vertical[0], vertical[-1], max(16, int(_LINES / min(aspect, _MOST_ASPECT))))
        u, v = (_resampled(part, vertical, horizontal, y, x) for part in (right, up))
        if section.solid is not None:
            # Lines end at solid cells; between their faces and the next cell centres velocities are only means.
            inside = section.solid[np.ix_(_cell_at(y, vertical), _cell_at(x, horizontal))]
            u, v = (np.ma.masked_array(part, inside) for part in (u, v))
        axes.streamplot(x, y, u, v, color="#22303a", linewidth=0.7, arrowsize=0.7, density=(1.6, 0.9))
    unit = "" if section.unit == "1" else f" ({section.unit})"
    title = f"fastest {fastest:.3g}" + (f" {section.unit}/s" if unit else "")
    axes.set(
        xlabel=section.axes[1] + unit, ylabel=section.axes[0] + unit, xlim=(left, far), ylim=(bottom, top),
        aspect=stretch, title=title + (f"; {section.axes[0]} drawn {stretch:.2g} times longer" if stretch > 1 else ""),
    )  # fmt: skip
    axes.ticklabel_format(scilimits=(-2, 4))
    figure.colorbar(colours, label="vorticity" + (" (1/s)" if unit else ""), shrink=0.9)
    stream = io.BytesIO()
    figure.savefig(stream, dpi=100, format="png", metadata={"Software": None})
    return stream.getvalue()


def _loud(values: Floats) -> float:
    """Return the end of the scale: of magnitudes above 0, the largest hundredth is clipped."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    return float(np.percentile(sizes, _CLIPPED)) if sizes.size else 1.0


def _slope(values: Floats, places: Floats, axis: int) -> Floats:
    return np.zeros_like(values) if len(places) < 2 else np.asarray(np.gradient(values, places, axis=axis))


def _cell_at(points: Floats, centres: Floats) -> NDArray[np.intp]:
    """Return the indices of the cells in which points lie."""
    return np.clip(np.searchsorted(faces_of(centres), points, side="right") - 1, 0, len(centres) - 1)


def _resampled(values: Floats, old_y: Floats, old_x: Floats, y: Floats, x: Floats) -> Floats:
    """Interpolate linearly between the points of a rectangular grid."""
    rows = np.stack([np.interp(x, old_x, row) for row in values])
    return np.stack([np.interp(y, old_y, column) for column in rows.T], axis=1)


def _ends(centres: Floats) -> tuple[float, float]:
    edges = faces_of(centres)
    return float(edges[0]), float(edges[-1])
