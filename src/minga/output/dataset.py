"""Results of a run from Python: an xarray Dataset of frames and observables, from memory or from the disk."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.model import Model, Traces
from minga.errors import MingaError
from minga.output.directory import RunDirectory
from minga.output.series import Series
from minga.output.traces import Recorded, samples_of
from minga.output.variables import (
    CONVENTIONS,
    STEP,
    TIME,
    Variable,
    model_attributes,
    observable_attributes,
    step_attributes,
    time_attributes,
)

if TYPE_CHECKING:
    import xarray

__all__ = ["OBSERVED", "RECEIVER", "Frames", "attach_dataset", "attributes_of", "failed_attributes", "open_dataset"]

OBSERVED = "observed"
"""Dimension of observables over time."""
RECEIVER = "receiver"
"""Dimension of samples at points."""


class Frames:
    """Frames and observables of a run in the memory of rank 0."""

    def __init__(self, model: Model, variables: Sequence[Variable]) -> None:
        self.model, self.variables, self.series = model, variables, Series()
        self.steps: list[int] = []
        self._times: list[float] = []
        self._arrays: list[dict[str, NDArray[Any]]] = []

    def keep(self, step: int, time: float, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Add a frame."""
        self.steps.append(step)
        self._times.append(time)
        self._arrays.append({name: np.array(array) for name, array in arrays.items()})

    def dataset(self, attributes: Mapping[str, Any]) -> xarray.Dataset:
        """Return everything kept so far."""
        import xarray

        clock = self.model.clock
        about = time_attributes(None if clock is None else clock.unit)
        found = xarray.Dataset(attrs=dict(attributes)).assign_coords(
            {TIME: (TIME, self._times, about), STEP: (TIME, self.steps, step_attributes())}
        )
        for variable in self.variables:
            found = found.assign_coords({c.name: (c.name, c.values, c.attributes) for c in variable.coordinates})
            empty = np.empty((0, *variable.shape), variable.dtype)
            stacked = np.stack([arrays[variable.name] for arrays in self._arrays]) if self._arrays else empty
            found[variable.name] = (variable.dims, stacked, variable.attributes)
        return _with_series(found, self.series, self.model)


def open_dataset(
    directory: RunDirectory, model: Model, series: Series, attributes: Mapping[str, Any]
) -> xarray.Dataset:
    """Return the contents of a run's directory; frames are read when they are accessed."""
    import xarray

    dataset = xarray.open_zarr(directory.fields, chunks=None).assign_attrs(attributes)
    return _with_series(dataset, series, model)


def attributes_of(
    model: Model, steps: int, ended: str, digest: str | None = None, observables: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the attributes of a dataset; the digest is that of a run that has come to its end."""
    found = {"Conventions": CONVENTIONS, **model_attributes(model), "steps": steps}
    return found | ({} if digest is None else {"digest": digest}) | {"ended": ended} | dict(observables or {})


def failed_attributes(model: Model, steps: Sequence[int], error: BaseException) -> dict[str, Any]:
    """Return the attributes of the data that a run had kept after these steps when an error ended it."""
    said = error.message if isinstance(error, MingaError) else f"{type(error).__name__}: {error}".removesuffix(": ")
    return attributes_of(model, max(steps, default=0), f"failed: {said}")


def attach_dataset(error: BaseException, dataset: xarray.Dataset, place: str = "") -> None:
    """Attach the data computed so far to the error that ended a run, as its attribute ``dataset``."""
    frames = f"{dataset.sizes.get(TIME, 0)} frames"
    with contextlib.suppress(Exception):  # classes with slots accept no further attribute
        error.dataset = dataset  # type: ignore[attr-defined]
        error.add_note(f"minga: the {frames} so far are this error's attribute `dataset`{place}")


def _with_series(dataset: xarray.Dataset, series: Series, model: Model) -> xarray.Dataset:
    """Return the dataset with a variable for each observable; one with a field's name is called ``NAME_observed``."""
    if series.values:
        dataset = dataset.assign_coords(_observed(series, model))
    for name, values in series.values.items():
        about = observable_attributes(model, name)
        if model.traces is not None and model.traces.observable == name:
            samples = samples_of(model.traces, series)
            dataset = dataset.assign_coords(_receivers(model.traces, model, samples))
            dataset[name] = ((f"{RECEIVER}_{TIME}", RECEIVER), samples.samples, about)
            continue
        array = np.asarray(values)
        if array.dtype == object:  # values that were not finite, from before the run was interrupted
            array = np.asarray(values, float)
        across = [f"{name}_{number}" for number in range(1, array.ndim)]
        dataset[name if name not in dataset.variables else f"{name}_{OBSERVED}"] = ((OBSERVED, *across), array, about)
    return dataset


def _observed(series: Series, model: Model) -> dict[str, Any]:
    """Return the coordinates of observables: steps, and times if these follow from the steps."""
    found: dict[str, Any] = {OBSERVED: (OBSERVED, series.steps, step_attributes())}
    clock = model.clock
    if clock is not None and clock.length is not None and clock.time is None:
        times = np.array([clock.at(step) for step in series.steps])
        found[f"{TIME}_{OBSERVED}"] = (OBSERVED, times, {"units": clock.unit, "long_name": "time of the model"})
    return found


def _receivers(traces: Traces, model: Model, samples: Recorded) -> dict[str, Any]:
    """Return the times and positions of samples."""
    when, about = f"{RECEIVER}_{TIME}", {"units": "s", "long_name": "time of the model"}
    return {when: (when, samples.seconds, about)} | {
        f"{RECEIVER}_{axis}": (RECEIVER, samples.positions[:, number], {"units": unit})
        for number, (axis, unit) in enumerate(zip(model.grid.axes, model.grid.units, strict=True))
    }
