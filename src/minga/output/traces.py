"""Samples of receivers over time as a Zarr store that xarray can open.

The store has ``samples`` over (time, receiver), the time of each row in seconds as ``time``, and the positions of the
receivers along the axes of the grid. It is written when a run ends; until then the samples are only in ``series.json``.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.clock import Interval
from minga.engine.model import Model, Traces
from minga.errors import CaseError
from minga.output.directory import disk_errors
from minga.output.series import Series
from minga.output.variables import CONVENTIONS

__all__ = [
    "Recorded",
    "check_observed",
    "codes_of",
    "read_traces",
    "samples_of",
    "traces_to_segy",
    "write_store",
    "write_traces",
]

AXES: Final = "zyx"
_ROWS_A_CHUNK: Final = 4096
_CENTIMETRES: Final = 100
_KINDS: Final = {"p": 11, "vz": 12, "vy": 13, "vx": 14}
"""Codes of traces by what they are: pressure, and the vertical, cross-line and in-line component of velocities."""
_PASCAL, _METRES_A_SECOND = 1, 6
_WORDS: Final = ("quantities", "remarks")
"""Attributes of a store of samples that are lists of words."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Samples at points.

    Attributes
    ----------
    samples
        One row for each time, one column for each point.
    seconds
        Time of each row, in seconds.
    positions
        Position of each point along z, y, x, in metres.
    sources
        Positions of the sources of the waves, likewise.
    quantities
        What the samples of each point are, if that differs.
    remarks
        Sentences about the samples.
    """

    samples: NDArray[np.float64]
    seconds: NDArray[np.float64]
    positions: NDArray[np.float64]
    sources: NDArray[np.float64]
    quantities: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def interval(self) -> float:
        """Interval between rows in seconds; 0 if there is only one row."""
        return float(self.seconds[1] - self.seconds[0]) if len(self.seconds) > 1 else 0.0


def check_observed(model: Model, observe: Interval | None) -> None:
    """Raise CaseError if observing at intervals of `observe` would miss samples of the model's receivers."""
    every = None if model.traces is None else model.traces.every
    if every is not None and observe is not None and (not isinstance(observe, int) or every % observe):
        raise CaseError(
            f"observe={observe}: the receivers record every {every} steps, which is not a multiple of it",
            key="output.observe",
            remedy=f"leave it out, or give {every} or a divisor of it",
        )


def samples_of(traces: Traces, series: Series) -> Recorded:
    """Return the samples in a run's series, at equal intervals.

    Observables are also read at frames, between two samples; these rows are left out.
    """
    rows = [k for k, step in enumerate(series.steps) if step % traces.every == 0]
    samples = np.array([series.values[traces.observable][k] for k in rows], "f8").reshape(len(rows), -1)
    seconds = np.array([series.steps[k] for k in rows]) * traces.dt
    positions, sources = (np.array(p, "f8").reshape(-1, len(AXES)) for p in (traces.positions, traces.sources))
    return Recorded(samples, seconds, positions, sources, traces.quantities, traces.remarks)


def write_traces(path: Path, traces: Traces, series: Series) -> None:
    """Write the samples in a run's series; the store appears when it is complete.

    Raises
    ------
    RunError
        If the disk fails.
    """
    recorded = samples_of(traces, series)
    samples, seconds, positions = recorded.samples, recorded.seconds, recorded.positions
    about = {"long_name": "wave field at receivers", "units": "1", "coordinates": "z y x"}
    arrays: list[tuple[str, NDArray[Any], Sequence[str], Mapping[str, str]]] = [
        ("time", seconds, ("time",), {"units": "s", "long_name": "time of waves"}),
        *((name, positions[:, k], ("receiver",), {"units": "m"}) for k, name in enumerate(AXES)),
        ("samples", samples, ("time", "receiver"), about),
    ]
    attributes: dict[str, Any] = {"Conventions": CONVENTIONS, "sources": [list(s) for s in traces.sources]}
    attributes |= {name: list(words) for name in _WORDS if (words := getattr(traces, name))}
    write_store(path, arrays, attributes)


def write_store(
    path: Path,
    arrays: Sequence[tuple[str, NDArray[Any], Sequence[str], Mapping[str, str]]],
    attributes: Mapping[str, Any],
) -> None:
    """Write arrays as a Zarr store, which appears when it is complete and replaces one of this name.

    Parameters
    ----------
    path
        The store.
    arrays
        Name, values, dimensions and attributes of each array.
    attributes
        Attributes of the store.

    Raises
    ------
    RunError
        If the disk fails.
    """
    partial = path.with_name(f".{path.name}.partial")
    with disk_errors(path):
        shutil.rmtree(partial, ignore_errors=True)
        _write(partial, arrays, attributes)
        shutil.rmtree(path, ignore_errors=True)
        partial.rename(path)


def _write(
    path: Path,
    arrays: Sequence[tuple[str, NDArray[Any], Sequence[str], Mapping[str, str]]],
    attributes: Mapping[str, Any],
) -> None:
    import zarr

    group = zarr.open_group(path, mode="w", zarr_format=3)
    group.attrs.update(attributes)
    for name, values, dims, about in arrays:
        chunks = tuple(max(1, min(_ROWS_A_CHUNK, length)) for length in values.shape)
        array = group.create_array(
            name, shape=values.shape, chunks=chunks, dtype=values.dtype, dimension_names=dims, attributes=dict(about)
        )
        array[...] = values
    with warnings.catch_warnings():
        # Zarr warns that consolidated metadata is only a convention; Zarr and xarray both read it.
        warnings.filterwarnings("ignore", message="Consolidated metadata")
        zarr.consolidate_metadata(str(path), zarr_format=3)


def read_traces(path: Path) -> Recorded:
    """Return the samples written by `write_traces`.

    Raises
    ------
    CaseError
        If there are none.
    """
    import zarr

    if not path.is_dir():
        raise CaseError(
            f"there are no receivers' samples: {path} does not exist", remedy="run a model that has receivers"
        )
    group: Any = zarr.open_group(str(path), mode="r", zarr_format=3)
    positions = np.stack([group[name][:] for name in AXES], axis=1)
    sources = np.array(group.attrs.get("sources", []), "f8").reshape(-1, len(AXES))
    quantities, remarks = (tuple(map(str, group.attrs.get(name, ()))) for name in _WORDS)
    return Recorded(group["samples"][:], group["time"][:], positions, sources, quantities, remarks)


def codes_of(quantities: Sequence[str]) -> dict[str, NDArray[np.int16]]:
    """Return the codes of traces of elastic waves for their headers: their kind, and the unit of their samples.

    Parameters
    ----------
    quantities
        What each trace is: "p", "vz", "szz" and so on.
    """
    kinds = [_KINDS.get(name, 1) for name in quantities]
    units = [_METRES_A_SECOND if name.startswith("v") else _PASCAL for name in quantities]
    return {"kind": np.array(kinds, "i2"), "unit": np.array(units, "i2")}


def traces_to_segy(path: Path, recorded: Recorded) -> None:
    """Write samples as a shot record: one trace for each receiver, with its position and that of the first source.

    If receivers record several quantities, the textual header names those of the traces, and so does the code of their
    kind (byte 29) for the pressure and for velocities, and the unit of their samples (byte 203).

    Raises
    ------
    CaseError
        If there are fewer than two samples.
    RunError
        If the disk fails.
    """
    if recorded.interval <= 0:
        raise CaseError("a SEG-Y file needs at least two samples", remedy="run more steps")
    source = recorded.sources[0] if len(recorded.sources) else np.zeros(len(AXES))
    depth, y, x = (np.rint(recorded.positions[:, k] * _CENTIMETRES).astype("i4") for k in range(len(AXES)))
    away = np.hypot(recorded.positions[:, 1] - source[1], recorded.positions[:, 2] - source[2])
    headers = {
        "x": x, "y": y, "elevation": -depth, "source_x": round(source[2] * _CENTIMETRES),
        "source_y": round(source[1] * _CENTIMETRES), "source_depth": round(source[0] * _CENTIMETRES),
        "coordinate_scale": -_CENTIMETRES, "elevation_scale": -_CENTIMETRES, "offset": np.rint(away).astype("i4"),
    }  # fmt: skip
    lines = ["SHOT RECORD BY MINGA", "COORDINATES IN METRES, SCALED BY 100"]
    if recorded.quantities:
        headers |= codes_of(recorded.quantities)
        names = list(dict.fromkeys(recorded.quantities))
        size = len(recorded.quantities) // len(names)
        lines += [f"TRACES {k * size + 1} TO {(k + 1) * size}: {name}" for k, name in enumerate(names)]
    lines += recorded.remarks
    from minga.output.segy import write_segy

    write_segy(path, recorded.samples.T, recorded.interval, headers=headers, text=lines)
