"""Map of a survey: its points, where the first cell of the model lies, and in which direction x runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.errors import CaseError
from minga.models.waves.domain import is_number

__all__ = ["Frame", "MapPoint", "MapShot", "placed"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Frame:
    """Place of a model on the map.

    Parameters
    ----------
    origin
        Easting and northing of the first cell, m.
    bearing
        Direction of x, degrees clockwise from north; y runs 90 degrees to its left. By default x runs east, y north.
    datum
        Elevation of the first cell, m.
    """

    origin: tuple[float, float] = (0.0, 0.0)
    bearing: float = 90.0
    datum: float = 0.0

    def __post_init__(self) -> None:
        given: Any = self.origin
        numbers = (
            given
            if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) and len(given) == 2
            else ("",)
        )
        if not all(is_number(value) and math.isfinite(value) for value in (*numbers, self.bearing, self.datum)):
            raise CaseError(
                f"the place of a model is {given!r}, with the bearing {self.bearing!r} and the datum {self.datum!r}",
                key="frame",
                remedy="give Frame((easting, northing), bearing, datum), in metres and degrees",
            )

    @property
    def _along(self) -> tuple[float, float]:
        """East and north parts of a step along x."""
        if self.bearing % 90 == 0:  # exactly along the map's axes
            return ((0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0))[int(self.bearing // 90) % 4]
        angle = math.radians(self.bearing)
        return float(portable.sin(angle)), float(portable.cos(angle))

    def on_map(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return the easting and northing of points of the model.

        Parameters
        ----------
        x, y
            Positions along the axes of the model, m.

        Returns
        -------
        tuple
            Easting and northing, m.
        """
        east, north = self._along
        return self.origin[0] + x * east - y * north, self.origin[1] + x * north + y * east

    def in_model(self, easting: Floats, northing: Floats) -> tuple[Floats, Floats]:
        """Return x and y of points of the map.

        Parameters
        ----------
        easting, northing
            Positions on the map, m.

        Returns
        -------
        tuple
            Positions along x and y, m.
        """
        east, north = self._along
        a, b = easting - self.origin[0], northing - self.origin[1]
        return a * east + b * north, b * east - a * north


@dataclass(frozen=True, slots=True)
class MapPoint:
    """A point on the map, in metres; its elevation is that of the point itself, its depth below ground taken off."""

    easting: float
    northing: float
    elevation: float
    number: float = 0.0


@dataclass(frozen=True, slots=True)
class MapShot:
    """A source and its receivers on the map, the number of the record, and those of its traces in a file."""

    record: int
    source: MapPoint
    receivers: tuple[MapPoint, ...]
    traces: tuple[int, ...] = ()


def placed(points: Sequence[MapPoint], frame: Frame, axes: str) -> tuple[list[tuple[float, ...]], float]:
    """Return points of the map in the model, and the largest distance by which they were moved onto its line.

    Parameters
    ----------
    points
        The points.
    frame
        Place of the model on the map.
    axes
        Names of the model's axes.
    """
    x, y = frame.in_model(np.array([p.easting for p in points]), np.array([p.northing for p in points]))
    z = frame.datum - np.array([p.elevation for p in points])
    whole = {"z": z, "y": y, "x": x}
    # Headers have centimetres: what is nearer to 0 than that is at 0.
    columns = [np.round(whole[name], 3).tolist() for name in axes]
    away = 0.0 if "y" in axes else float(np.abs(y).max())
    return list(zip(*columns, strict=True)), away
