"""Geometry from the trace headers of a SEG-Y file, so that a survey repeats that of field data."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from minga.errors import CaseError
from minga.models.waves.survey_frame import MapPoint, MapShot
from minga.output.segy import SegyFile, metres

__all__ = ["read_geometry"]

_FOOT: Final = 0.3048
_DEAD: Final = 2


def read_geometry(path: Path) -> list[MapShot]:
    """Return the shots of a file, in the order in which their numbers (FFID) first occur; dead traces do not count.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    CaseError
        If the file cannot be read, has no coordinates or angles in their place, or a shot has sources at several
        places.
    """
    try:
        file = SegyFile.open(path)
    except CaseError as error:
        error.key = error.key or "survey.segy.file"
        raise
    alive = np.flatnonzero(np.asarray(file.headers["kind"]) != _DEAD)
    headers = file.headers[alive]
    unit = _FOOT if file.feet else 1.0
    angles = sorted({int(found) for found in headers["coordinate_units"]} - {0, 1})
    if angles:
        raise CaseError(
            f"{path.name} has coordinates of unit {angles[0]} in byte 89 of its trace headers, which are angles",
            key="survey.segy.file",
            remedy="project them on a map: unit 1, a length",
        )
    place = {name: metres(headers, name) * unit for name in ("source_x", "source_y", "x", "y")}
    if not any(values.any() for values in place.values()):
        raise CaseError(
            f"{path.name} has no coordinates in bytes 73 to 88 of its trace headers",
            key="survey.segy.file",
            remedy="name a file with geometry, or describe it in [survey.shots] and [survey.receivers]",
        )
    elevation = metres(headers, "elevation") * unit
    height = (metres(headers, "source_elevation") - metres(headers, "source_depth")) * unit
    records = np.asarray(headers["record"])
    points = np.asarray(headers["source_point"])
    found = []
    for record in dict.fromkeys(records.tolist()):
        own = np.flatnonzero(records == record)
        sources = np.stack([place["source_x"], place["source_y"], height])
        if np.ptp(sources[:, own], axis=1).any():
            raise CaseError(
                f"{path.name}: the traces of shot {record} have sources at several places (bytes 73 to 80)",
                key="survey.segy.file",
                remedy="give each shot a number of its own in bytes 9 to 12",
            )
        east, north, up = map(float, sources[:, own[0]])
        source = MapPoint(east, north, up, float(points[own[0]] or record))
        spread = zip(place["x"][own], place["y"][own], elevation[own], strict=True)
        found.append(
            MapShot(record, source, tuple(MapPoint(*map(float, each)) for each in spread), tuple(alive[own].tolist()))
        )
    return found
