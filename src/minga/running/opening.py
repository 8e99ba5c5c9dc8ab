"""Opening the directory of a run as a dataset, without its model."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minga.errors import CaseError, shown
from minga.output.dataset import SeriesContext, with_series
from minga.output.directory import RunDirectory
from minga.output.progress import OVER, is_active, read_progress
from minga.output.provenance import COMMAND
from minga.output.series import SeriesFile
from minga.output.traces import read_traces
from minga.output.variables import QUANTITIES, TIME
from minga.view.accessor import add_to_datasets

if TYPE_CHECKING:
    import xarray

__all__ = ["open_run"]


def open_run(path: str | Path) -> xarray.Dataset:
    """Open the directory of a run, made by `minga run` or by `mg.run(out=...)`, as the dataset that `mg.run` returns.

    Parameters
    ----------
    path
        The directory; the run in it may be finished, interrupted or still active.

    Returns
    -------
    xarray.Dataset
        Frames, which are read when they are accessed, observables over ``observed``, and attributes: ``steps``,
        ``ended``, the last observables, ``parameters`` and ``versions`` (both JSON), ``seed``, ``command``, and
        ``digest`` once the run is finished.

    Raises
    ------
    CaseError
        If the path is not a run.

    Examples
    --------
    >>> import minga as mg
    >>> history = mg.open("runs/life")  # doctest: +SKIP
    >>> history.attrs["seed"]  # doctest: +SKIP
    0
    """
    if not isinstance(path, str | Path):
        raise CaseError(f"open({shown(path)}): expected the path of a run", remedy='write mg.open("runs/life")')
    add_to_datasets()
    import xarray

    directory = RunDirectory.open(Path(path))
    dataset = xarray.open_zarr(directory.fields, chunks=None)
    series = SeriesFile(directory)
    series.resume(_last_step(directory))
    dataset = with_series(dataset, series.series, _context(directory, dataset))
    return dataset.assign_attrs(_attributes(directory, dataset))


def _last_step(directory: RunDirectory) -> int:
    """Return a number of steps that no entry of the series exceeds."""
    try:
        return max(json.loads(directory.series.read_text())["step"], default=0)
    except (OSError, ValueError, KeyError):
        return 0


def _context(directory: RunDirectory, dataset: xarray.Dataset) -> SeriesContext:
    """Return what the files of a run say about its series."""
    attributes = dataset.attrs
    samples = read_traces(directory.traces) if directory.traces.is_dir() else None
    return SeriesContext(
        quantities=json.loads(attributes.get(QUANTITIES, "{}")),
        time_unit=str(dataset[TIME].attrs.get("units", "1")),
        samples=samples,
        sampled="receivers" if samples is not None else None,
        axes=tuple((axis, "m") for axis in "zyx"),
    )


def _attributes(directory: RunDirectory, dataset: xarray.Dataset) -> dict[str, Any]:
    """Return the attributes that the store of frames does not have: the end of the run, and its command."""
    result = _read(directory.result)
    found: dict[str, Any] = {}
    if "ended" in result:
        found["ended"] = result["ended"]["text"]
    else:
        frames = dataset["step"].values
        found = {"steps": int(frames[-1]) if len(frames) else 0, "ended": _state(directory)}
    if directory.case.is_file():
        found[COMMAND] = f"minga run {shlex.quote(str(directory.case))}"
    return found


def _state(directory: RunDirectory) -> str:
    """Describe the state of a run without a result."""
    progress = read_progress(directory)
    if progress is None:
        return "not finished"
    if progress["state"] in OVER:
        return f"{progress['state']}: {progress['reason']}".removesuffix(": ")
    return "not finished: still active" if is_active(directory, progress) else "not finished: its process is gone"


def _read(path: Path) -> Mapping[str, Any]:
    """Return the content of a JSON file; nothing if there is none."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
