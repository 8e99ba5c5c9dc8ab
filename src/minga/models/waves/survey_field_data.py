"""Geometry from the trace headers of a SEG-Y file, so that a survey repeats that of field data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.waves.survey_sps import MapPoint, MapShot
from minga.output.segy import SegyFile

__all__ = ["read_geometry"]


def read_geometry(path: Path) -> list[MapShot]:
    """Return the shots of a file, in the order in which their numbers (FFID) first occur.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    CaseError
        If the file cannot be read, has no coordinates, or a shot has sources at several places.
    """
    headers = SegyFile.open(path).headers
    place = _scaled(headers, "coordinate_scale", ("source_x", "source_y", "x", "y"))
    if not any(values.any() for values in place.values()):
        raise CaseError(
            f"{path.name} has no coordinates in bytes 73 to 88 of its trace headers",
            key="survey.segy.file",
            remedy="name a file with geometry, or describe it in [survey.shots] and [survey.receivers]",
        )
    height = _scaled(headers, "elevation_scale", ("elevation", "source_elevation", "source_depth"))
    records = np.asarray(headers["record"])
    points = np.asarray(headers["source_point"])
    found = []
    for record in dict.fromkeys(records.tolist()):
        own = np.flatnonzero(records == record)
        sources = np.stack([place["source_x"], place["source_y"], height["source_elevation"] - height["source_depth"]])
        if np.ptp(sources[:, own], axis=1).any():
            raise CaseError(
                f"{path.name}: the traces of shot {record} have sources at several places (bytes 73 to 80)",
                key="survey.segy.file",
                remedy="give each shot a number of its own in bytes 9 to 12",
            )
        source = MapPoint(*(float(value) for value in sources[:, own[0]]), float(points[own[0]] or record))
        spread = zip(place["x"][own], place["y"][own], height["elevation"][own], strict=True)
        found.append(MapShot(record, source, tuple(MapPoint(*map(float, each)) for each in spread)))
    return found


def _scaled(headers: NDArray[Any], scale: str, names: tuple[str, ...]) -> dict[str, NDArray[np.float64]]:
    """Return entries with their scalar applied: a factor if it is positive, a divisor if negative, 0 for none."""
    given = np.asarray(headers[scale], np.float64)
    whole = np.where(given == 0, 1.0, np.abs(given))
    return {
        name: np.where(given < 0, np.asarray(headers[name], np.float64) / whole, headers[name] * whole)
        for name in names
    }
