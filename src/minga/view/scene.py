"""All that a page turns in three dimensions: a solid that grows, fields in moving sections, lines of the flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minga.output.frame_source import FrameSource
from minga.output.variables import Coordinate
from minga.view.flow_lines import FlowLines, flow_lines_of
from minga.view.solid import Solid, solid_of
from minga.view.volumes import Volumes, three_axes, volumes_of

__all__ = ["Scene", "has_scene", "scene_of"]


@dataclass(frozen=True, slots=True)
class Scene:
    """Run on three axes as a page shows it; each part may be missing.

    Attributes
    ----------
    axes
        The axes; the first one is drawn upwards, or downwards if it is a depth.
    solid, volumes, flow
        The parts.
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
        return {"axes": [axis.label for axis in self.axes], "down": self.axes[0].down, "ends": ends, **shown}


def has_scene(reader: FrameSource) -> bool:
    """Return whether a run has fields on the cells of three axes."""
    return three_axes(reader) is not None


def scene_of(reader: FrameSource) -> Scene | None:
    """Return what a run shows in three dimensions; None if it has no field on three axes, or kept no step."""
    axes = three_axes(reader)
    if axes is None or not reader.steps:
        return None
    solid, volumes, flow = solid_of(reader), volumes_of(reader), flow_lines_of(reader)
    if solid is None and volumes is None and flow is None:
        return None
    return Scene(axes, solid, volumes, flow)
