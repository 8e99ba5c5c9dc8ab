"""Runs in three dimensions as pages turn them: a solid that grows, sections of fields that move, flow lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from minga.output.frame_source import FrameSource
from minga.output.variables import Coordinate
from minga.output.vtk import order_of
from minga.view.flow_lines import FlowLines, flow_lines_of
from minga.view.solid import Solid, solid_of
from minga.view.volumes import Volumes, three_axes, volumes_of

__all__ = ["Scene", "has_scene", "scene_of"]


@dataclass(frozen=True, slots=True)
class Scene:
    """Run on three axes as a page shows it.

    Attributes
    ----------
    axes
        The axes; the first one is drawn upwards, or downwards if it is a depth.
    solid, volumes, flow
        The solid, the fields and the lines along the flow; None if the run has none.
    """

    axes: tuple[Coordinate, ...]
    solid: Solid | None
    volumes: Volumes | None
    flow: FlowLines | None

    @property
    def data(self) -> dict[str, Any]:
        """Numbers that ``scene.js`` draws, for JSON."""
        parts = {"solid": self.solid, "volumes": self.volumes, "flow": self.flow}
        shown = {name: part.data for name, part in parts.items() if part is not None}
        ends = [(float(axis.edges[0]), float(axis.edges[-1])) for axis in self.axes]
        return {
            "axes": [axis.label for axis in self.axes],
            "down": self.axes[0].down,
            "away": _is_mirrored(self.axes),
            "ends": ends,
            **shown,
        }


def has_scene(reader: FrameSource) -> bool:
    """Return True if a run has fields on the cells of three axes."""
    return three_axes(reader) is not None


def scene_of(reader: FrameSource) -> Scene | None:
    """Return the scene of a run; None if it has no field on the cells of three axes, or kept no step."""
    axes = three_axes(reader)
    if axes is None or not reader.steps:
        return None
    solid, volumes, flow = solid_of(reader), volumes_of(reader), flow_lines_of(reader)
    if solid is None and volumes is None and flow is None:
        return None
    return Scene(axes, solid, volumes, flow)


def _is_mirrored(axes: Sequence[Coordinate]) -> bool:
    """Return True if x, y and z are right-handed only where the second axis points away from the viewer.

    The first axis points upwards, or downwards as depth, and the third one to the right.
    """
    even = sum(a > b for a, b in combinations(order_of(axes), 2)) % 2 == 0
    return even != axes[0].down
