"""Lines along the flow in three dimensions, which a page draws as tubes (``sections.js``).

Lines start on a lattice, follow the velocity in both directions by the classical Runge-Kutta scheme in steps of equal
length, and end at solid cells, at the ends of the grid and where hardly anything flows.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.output.frame_source import FrameSource
from minga.output.velocity import at_centres, centres_of, velocity_of
from minga.view.colours import smooth_palette
from minga.view.masked import left_out
from minga.view.thinning import edges_thinned, strides_within, thinned

__all__ = ["FlowLines", "flow_lines_of", "lines_along"]

Floats = NDArray[np.float64]

MOST_CELLS: Final = 2_000_000
"""Largest number of cells whose velocities lines follow; of larger grids every second, third, ... cell."""
_SEEDS: Final = 5
"""Number of lines that start along each axis."""
_STEPS: Final = 240
"""Largest number of steps in each direction."""
_STEP: Final = 0.5
"""Length of a step, in sides of the smallest cell; steps are longer where lines could not reach far otherwise."""
_REACH: Final = 1.5
"""Largest length of a line in each direction, in diagonals of the grid."""
_STILL: Final = 1e-3
"""Speed below which lines end, as a fraction of the largest one."""
_MOST_POINTS: Final = 80
"""Largest number of points of a line that the page receives."""
_LEAST: Final = 3
"""Length below which lines are left out, in sides of the smallest cell."""
_CLIPPED: Final = 98.0
"""Percentage of the speeds that the colours cover, so that one jet does not fade all others."""
_SHADES: Final = 64
"""Number of colours of the speed."""
_WHOLE: Final = 65535
"""Largest number of a position or speed in JSON."""


@dataclass(frozen=True, slots=True)
class FlowLines:
    """Lines along a velocity.

    Attributes
    ----------
    when
        Step and time to which they belong.
    ends
        Lowest and highest position along each axis.
    unit
        Unit of the velocity.
    lines
        For each line its points, shape (points, 3).
    speeds
        For each line the speeds at its points.
    """

    when: str
    ends: tuple[tuple[float, float], ...]
    unit: str
    lines: tuple[Floats, ...]
    speeds: tuple[Floats, ...]

    @property
    def data(self) -> dict[str, Any]:
        """Numbers that ``sections.js`` draws, for JSON; positions and speeds in 65535ths of their ranges, u2."""
        together = np.concatenate(self.speeds)
        loud = float(np.percentile(together, _CLIPPED))
        clipped = f"; clipped, up to {together.max():.3g}" if together.max() > loud else ""
        low, high = (np.array([pair[k] for pair in self.ends]) for k in (0, 1))
        whole = [
            np.column_stack([(line - low) / (high - low), speeds / loud])
            for line, speeds in zip(self.lines, self.speeds, strict=True)
        ]
        points = np.rint(np.clip(np.concatenate(whole), 0.0, 1.0) * _WHOLE).astype("<u2")
        return {
            "when": self.when,
            "label": ("speed" if self.unit == "1" else f"speed ({self.unit})") + clipped,
            "low": "0",
            "high": f"{loud:.4g}",
            "colours": [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in smooth_palette(_SHADES).tolist()],
            "lengths": [len(line) for line in self.lines],
            "points": base64.b64encode(points.tobytes()).decode(),
        }


def flow_lines_of(reader: FrameSource) -> FlowLines | None:
    """Return lines along the velocity after the last step that was kept; None without flow in three dimensions."""
    names = velocity_of(reader)
    if len(names) != 3 or not reader.steps:
        return None
    axes = centres_of(reader, names)
    shape = tuple(len(axis.values) for axis in axes)
    strides = strides_within(shape, MOST_CELLS)
    parts = (at_centres(reader, name, k, axes[k].values) for k, name in enumerate(names))
    velocity = np.stack([thinned(part, strides).copy() for part in parts], -1)
    if not np.isfinite(velocity).all() or not velocity.any() or min(velocity.shape[:3]) < 2:
        return None
    solid = left_out(reader, [axis.name for axis in axes])
    solid = np.zeros(shape, bool) if solid is None else solid
    centres = [axis.values[::stride] for axis, stride in zip(axes, strides, strict=True)]
    edges = [edges_thinned(axis.edges, stride) for axis, stride in zip(axes, strides, strict=True)]
    lines, speeds = lines_along(velocity, centres, edges, thinned(solid, strides))
    if not lines:
        return None
    ends = tuple((float(axis.edges[0]), float(axis.edges[-1])) for axis in axes)
    unit = str(reader.attributes(names[0]).get("units", "1"))
    return FlowLines(reader.when(len(reader.steps) - 1), ends, unit, tuple(lines), tuple(speeds))


def lines_along(
    velocity: Floats, centres: Sequence[Floats], edges: Sequence[Floats], solid: NDArray[np.bool_]
) -> tuple[list[Floats], list[Floats]]:
    """Return lines along a velocity, and the speeds at their points.

    Parameters
    ----------
    velocity
        Velocity at the centres of the cells, shape (..., 3).
    centres, edges
        Positions of the centres and of the edges of cells along each axis.
    solid
        Cells that lines do not enter.
    """
    field = _Field(velocity, tuple(centres), tuple(edges), solid)
    sizes = np.array([place[-1] - place[0] for place in edges])
    smallest = min(float(np.diff(place).min()) for place in edges)
    step = max(_STEP * smallest, _REACH * float(np.linalg.norm(sizes)) / _STEPS)
    seeds = _seeds(edges)
    back, there = (_followed(field, seeds, sign * step) for sign in (-1.0, 1.0))
    found: tuple[list[Floats], list[Floats]] = [], []
    for before, after in zip(back, there, strict=True):
        line = np.concatenate([before[:0:-1], after])
        if (len(line) - 1) * step < _LEAST * smallest:
            continue
        kept = np.unique(np.linspace(0, len(line) - 1, min(len(line), _MOST_POINTS)).round().astype(int))
        found[0].append(line[kept])
        found[1].append(np.linalg.norm(field.at(line[kept]), axis=-1))
    return found


@dataclass(frozen=True, slots=True)
class _Field:
    """Velocity between the centres of cells, linear along each axis, and constant from the last centre to the end."""

    velocity: Floats
    centres: tuple[Floats, ...]
    edges: tuple[Floats, ...]
    solid: NDArray[np.bool_]

    def at(self, points: Floats) -> Floats:
        """Return the velocity at points, shape (n, 3)."""
        lower, share = [], []
        for axis, places in enumerate(self.centres):
            index = np.clip(np.searchsorted(places, points[:, axis]) - 1, 0, len(places) - 2)
            lower.append(index)
            share.append(np.clip((points[:, axis] - places[index]) / (places[index + 1] - places[index]), 0.0, 1.0))
        found = np.zeros((len(points), 3))
        for corner in np.ndindex(2, 2, 2):
            weight = np.prod([s if up else 1.0 - s for s, up in zip(share, corner, strict=True)], axis=0)
            found += weight[:, None] * self.velocity[tuple(i + up for i, up in zip(lower, corner, strict=True))]
        return found

    def free(self, points: Floats) -> NDArray[np.bool_]:
        """Return True for points of the grid outside solid cells."""
        inside = np.ones(len(points), bool)
        index = []
        for axis, places in enumerate(self.edges):
            inside &= (points[:, axis] >= places[0]) & (points[:, axis] <= places[-1])
            index.append(np.clip(np.searchsorted(places, points[:, axis], side="right") - 1, 0, len(places) - 2))
        return inside & ~self.solid[tuple(index)]


def _seeds(edges: Sequence[Floats]) -> Floats:
    """Return the points at which lines start: the middles of boxes of equal size."""
    along = [places[0] + (np.arange(_SEEDS) + 0.5) / _SEEDS * (places[-1] - places[0]) for places in edges]
    return np.stack([part.ravel() for part in np.meshgrid(*along, indexing="ij")], -1)


def _followed(field: _Field, seeds: Floats, step: float) -> list[Floats]:
    """Return the points of lines from seeds, one step apart; where nothing flows a line is its seed alone."""
    still = _STILL * float(np.linalg.norm(field.velocity, axis=-1).max())
    path = [seeds]
    alive = field.free(seeds)
    lengths = np.ones(len(seeds), int)
    for _ in range(_STEPS):
        now = path[-1]
        moved = now.copy()
        moved[alive] += _runge_kutta(field, now[alive], step)
        speed = np.linalg.norm(field.at(moved), axis=-1)
        alive = alive & field.free(moved) & (speed > still)
        if not alive.any():
            break
        lengths += alive
        path.append(moved)
    points = np.stack(path, 1)
    return [line[:length] for line, length in zip(points, lengths, strict=True)]


def _runge_kutta(field: _Field, points: Floats, step: float) -> Floats:
    """Return the change of points along one step of a given length."""

    def direction(there: Floats) -> Floats:
        velocity = field.at(there)
        size = np.linalg.norm(velocity, axis=-1, keepdims=True)
        return velocity / np.where(size > 0, size, 1.0)

    first = direction(points)
    second = direction(points + 0.5 * step * first)
    third = direction(points + 0.5 * step * second)
    fourth = direction(points + step * third)
    return np.asarray(step / 6.0 * (first + 2.0 * second + 2.0 * third + fourth))
