"""A SEG-Y file of shots as one array over shots, receivers and time, for RSF and Zarr."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.output.directory import appearing
from minga.output.rsf import rsf
from minga.output.segy import SegyFile, metres
from minga.output.traces import write_store
from minga.output.variables import CONVENTIONS, Coordinate

__all__ = ["SurveyCube", "read_cube", "write_cube"]

Floats = NDArray[np.float64]

_UNITS: Final = {1: "Pa", 6: "m s-1"}
"""Units by the codes of SEG-Y."""
_ROUNDED = 0.03
"""Metres by which distances of points in whole centimetres may be off."""


@dataclass(frozen=True, slots=True, eq=False)
class SurveyCube:
    """Samples of a survey.

    Attributes
    ----------
    values
        f4 over (quantity, shot, receiver, time).
    quantities
        Names of the quantities.
    units
        Their units.
    seconds
        Time of each sample.
    records
        Number of each shot.
    places
        Positions in metres by name: source_x, source_y, source_depth over (shot,), and x, y, elevation, offset
        (whole metres) over (shot, receiver).
    """

    values: NDArray[np.float32]
    quantities: tuple[str, ...]
    units: tuple[str, ...]
    seconds: Floats
    records: NDArray[np.int64]
    places: dict[str, Floats]

    @property
    def samples(self) -> NDArray[np.float32]:
        """Samples of the first quantity over (shot, receiver, time)."""
        first: NDArray[np.float32] = self.values[0]
        return first


def read_cube(path: Path, quantities: Sequence[str] = ("p",)) -> SurveyCube:
    """Return the traces of a file that is sorted by shots with equally many traces.

    Parameters
    ----------
    path
        The SEG-Y file.
    quantities
        What the traces of a shot are, those of all receivers for one quantity after the other.

    Raises
    ------
    CaseError
        If it cannot be read, or shots have different numbers of traces.
    """
    file = SegyFile.open(path)
    records, counts = np.unique(np.asarray(file.headers["record"]), return_counts=True)
    changes = 1 + np.count_nonzero(np.diff(np.asarray(file.headers["record"], "i8")))
    count, rest = divmod(int(counts[0]), len(quantities))
    if len(set(counts.tolist())) > 1 or changes != len(records) or rest:
        raise CaseError(
            f"{path.name}: shots have {counts.min()} to {counts.max()} traces of {', '.join(quantities)}, "
            "or are not in one piece each",
            remedy="arrays need equally many traces for each shot; SEG-Y does not",
        )
    headers = file.headers.reshape(len(records), len(quantities), count)
    first = headers[:, 0, 0]
    times: Floats = float(first["delay"][0]) * 1e-3 + np.arange(file.samples, dtype="f8") * (file.interval * 1e-6)
    places = {name: metres(first, name) for name in ("source_x", "source_y", "source_depth")}
    places |= {name: metres(headers[:, 0], name) for name in ("x", "y", "elevation")}
    places["offset"] = np.asarray(headers[:, 0]["offset"], "f8")
    values = file.traces(slice(None)).reshape(*headers.shape, file.samples).swapaxes(0, 1)
    units = tuple(_UNITS.get(int(code), "1") for code in headers[0, :, 0]["unit"])
    return SurveyCube(values, tuple(quantities), units, times, np.asarray(first["record"], "i8"), places)


def write_cube(path: Path, cube: SurveyCube, title: str = "") -> None:
    """Write a cube as NAME.rsf or NAME.zarr.

    RSF has n1 time, n2 receiver and n3 shot, and n4 the quantity if there are several; Zarr has an array for each
    quantity. In RSF, receivers are along x in metres if they are evenly spaced on a line from
    west to east and the same for all shots, or by their offset if that is; shots are along x on such a line. Otherwise
    an axis counts from 1.

    Parameters
    ----------
    path
        The file or store.
    cube
        The samples.
    title
        Title of the data.

    Raises
    ------
    CaseError
        For another ending.
    RunError
        If the disk fails.
    """
    if path.suffix == ".zarr":
        _write_zarr(path, cube, title)
        return
    if path.suffix != ".rsf":
        raise CaseError(f"cannot write {path.name!r}", remedy="name a file that ends in .rsf or .zarr")
    places = cube.places
    east_west = not np.ptp(places["y"]) and not np.ptp(places["source_y"])  # then, x is the distance along the line
    fixed = [("receiver", places["x"])] if east_west else []
    chosen = [(name, values[0]) for name, values in (*fixed, ("offset", _offsets(cube))) if _equal(values)]
    count = cube.samples.shape[1]
    axes = [
        _axis("shot", places["source_x"] if east_west else np.zeros(0), len(cube.records)),
        _axis(*chosen[0], count) if chosen else _axis("receiver", np.zeros(0), count),
        Coordinate("time", cube.seconds, {"units": "s"}),
    ]
    samples, names = cube.samples, cube.quantities
    if len(names) > 1:
        samples = cube.values
        axes = [Coordinate("quantity", np.arange(1.0, len(names) + 1), {"units": ""}), *axes]
    content = rsf(", ".join(names), samples.dtype, axes, samples, title)
    with appearing(path) as temporary:
        temporary.write_bytes(content)


def _offsets(cube: SurveyCube) -> Floats:
    """Return the distances of receivers from their sources, with the signs of the headers."""
    away = [cube.places[name] - cube.places[f"source_{name}"][:, None] for name in "xy"]
    return np.copysign(np.hypot(*away), cube.places["offset"])


def _equal(values: Floats) -> bool:
    """Return whether all shots have the same values, as far as coordinates in centimetres can tell."""
    return bool(np.ptp(values, axis=0).max() <= _ROUNDED)


def _axis(name: str, along: Floats, length: int) -> Coordinate:
    """Return an axis in metres where it is regular, as far as coordinates in centimetres can tell; else a count."""
    if len(along) == length > 1:
        step = round((along[-1] - along[0]) / (length - 1), 6)
        regular = along[0] + step * np.arange(length)
        if step and np.abs(along - regular).max() <= _ROUNDED:
            return Coordinate(name, regular, {"units": "m"})
    return Coordinate("receiver" if name == "offset" else name, np.arange(1.0, length + 1), {"units": ""})


def _write_zarr(path: Path, cube: SurveyCube, title: str) -> None:
    arrays: list[Any] = [
        ("time", cube.seconds, ("time",), {"units": "s", "long_name": "time of the records"}),
        ("shot", cube.records, ("shot",), {"long_name": "number of the shot (FFID)"}),
    ]
    for name, values in cube.places.items():
        arrays.append((name, values, ("shot", "receiver")[: values.ndim], {"units": "m"}))
    for name, unit, samples in zip(cube.quantities, cube.units, cube.values, strict=True):
        about = {"long_name": "wave field at receivers", "units": unit, "coordinates": " ".join(cube.places)}
        arrays.append((name, samples, ("shot", "receiver", "time"), about))
    write_store(path, arrays, {"Conventions": CONVENTIONS, "title": title})
