"""Incidence of light on a device: the sides and parts of sides on which it can fall."""

from __future__ import annotations

import math

from minga.errors import CaseError
from minga.models.photodiode.structure.mesh import Mesh
from minga.models.photodiode.structure.stack import Light

__all__ = ["check_light", "section_of"]


def section_of(light: Light, mesh: Mesh, across: Mesh | None) -> float:
    """Return the area of the light over that of the device normal to x.

    Parameters
    ----------
    light
        The light.
    mesh, across
        Meshes along x and y.
    """
    if across is None or (light.beam.whole and not light.lateral):
        return 1.0
    side = mesh if light.lateral else across
    lit = math.fsum((light.beam.over(side) * side.sections).tolist())
    return lit / math.fsum(across.sections.tolist())


def check_light(light: Light, mesh: Mesh, across: Mesh | None) -> None:
    """Raise CaseError if there can be no such light in a device.

    Parameters
    ----------
    light
        The light.
    mesh, across
        Meshes along x and y.
    """
    if light.lateral:
        _check_lateral(light, across)
    side = mesh if light.lateral else across
    if side is not None:
        _check_beam(light, side)
    elif not light.beam.whole:
        raise CaseError(
            "light on a part of a device with one axis",
            key="photodiode.light.y" if light.beam.radius is None else "photodiode.light.gaussian",
            remedy="give the device a width and columns, or leave it out",
        )


def _check_lateral(light: Light, across: Mesh | None) -> None:
    """Check that light can come from the left or the right."""
    if across is None or across.radial:
        what, more = (
            ("with one axis", ", or give the device a width and columns")
            if across is None
            else ("that is round", ", perhaps with y = [0.0, 5.0]")
        )
        raise CaseError(
            f"light from the {light.side} of a device {what}",
            key="photodiode.light.side",
            remedy=f'write side = "anode" or "cathode"{more}',
        )
    if light.optics != "beer-lambert":
        raise CaseError(
            f"optics {light.optics!r} of light from the {light.side}, along the layers",
            key="photodiode.light.optics",
            remedy='write optics = "beer-lambert", or side = "anode" or "cathode"',
        )


def _check_beam(light: Light, side: Mesh) -> None:
    """Check that the lit part lies on a side."""
    window, middle = light.beam.window, light.beam.middle
    start, end = side.ends
    if window is not None and not start - side.room <= window[0] < window[1] <= end + side.room:
        raise CaseError(
            f"the light falls on {1e4 * window[0]:g} to {1e4 * window[1]:g} um, the device reaches from "
            f"{1e4 * start:g} to {1e4 * end:g} um",
            key=f"photodiode.light.{'x' if light.lateral else 'y'}",
            remedy="give where it begins and then where it ends, within the device",
        )
    if light.beam.radius is None:
        return
    if side.radial and middle != 0.0:
        raise CaseError(
            f"a Gaussian beam {1e4 * middle:g} um beside the axis of a round device",
            key="photodiode.light.gaussian.middle",
            remedy="write middle = 0.0",
        )
    if not light.beam.over(side).any():
        raise CaseError(
            f"a Gaussian beam around {1e4 * middle:g} um does not reach the device, from {1e4 * start:g} to "
            f"{1e4 * end:g} um",
            key="photodiode.light.gaussian.middle",
            remedy="move its middle there",
        )
