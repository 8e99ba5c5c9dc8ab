"""Results of a run from Python: an xarray Dataset of frames and observables, from memory or from the disk."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.model import Model
from minga.errors import MingaError
from minga.output.directory import RunDirectory
from minga.output.provenance import COMMAND, origin_of
from minga.output.series import Series
from minga.output.traces import AXES, Recorded, samples_of
from minga.output.variables import (
    CONVENTIONS,
    Variable,
    model_attributes,
    observable_attributes,
    step_attributes,
    time_attributes,
)
from minga.space.names import OBSERVED, OBSERVED_TIMES, RECEIVER, RECEIVER_TIMES, STEP, TIME

if TYPE_CHECKING:
    import xarray

__all__ = [
    "Frames",
    "SeriesContext",
    "attach_dataset",
    "attributes_of",
    "failed_attributes",
    "open_dataset",
    "with_series",
]


class Frames:
    """Frames and observables of a run in the memory of rank 0."""

    def __init__(self, model: Model, variables: Sequence[Variable], command: str) -> None:
        self.model, self.variables, self.series, self._command = model, variables, Series(), command
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
        found = xarray.Dataset(attrs={COMMAND: self._command, **attributes}).assign_coords(
            {TIME: (TIME, self._times, about), STEP: (TIME, self.steps, step_attributes())}
        )
        for variable in self.variables:
            found = found.assign_coords({c.name: (c.name, c.values, c.attributes) for c in variable.coordinates})
            empty = np.empty((0, *variable.shape), variable.dtype)
            stacked = np.stack([arrays[variable.name] for arrays in self._arrays]) if self._arrays else empty
            found[variable.name] = (variable.dims, stacked, variable.attributes)
        return with_series(found, self.series, SeriesContext.of(self.model, self.series))


def open_dataset(
    directory: RunDirectory, model: Model, series: Series, attributes: Mapping[str, Any]
) -> xarray.Dataset:
    """Return the contents of a run's directory; frames are read when they are accessed."""
    import xarray

    dataset = xarray.open_zarr(directory.fields, chunks=None).assign_attrs(attributes)
    return with_series(dataset, series, SeriesContext.of(model, series))


def attributes_of(
    model: Model, steps: int, ended: str, digest: str | None = None, observables: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the attributes of a dataset; the digest is that of a run that has come to its end."""
    found = {"Conventions": CONVENTIONS, **model_attributes(model), **origin_of(model), "steps": steps}
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


@dataclass(frozen=True, slots=True)
class SeriesContext:
    """Facts about observables that their series do not contain.

    Attributes
    ----------
    quantities
        Attributes of observables, by name.
    time_unit
        Unit of the times.
    samples
        The samples at points, if there are any.
    sampled
        Name of the observable that consists of them.
    axes
        Names and units of the axes of their positions.
    """

    quantities: Mapping[str, Mapping[str, Any]]
    time_unit: str = "1"
    samples: Recorded | None = None
    sampled: str | None = None
    axes: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, model: Model, series: Series) -> SeriesContext:
        """Return what a model says about the series of its run."""
        quantities = {name: observable_attributes(model, name) for name in series.values}
        traces, clock = model.traces, model.clock
        here = traces is not None and traces.observable in series.values
        return cls(
            quantities,
            time_unit="1" if clock is None else clock.unit,
            samples=samples_of(traces, series) if traces is not None and here else None,
            sampled=None if traces is None else traces.observable,
            axes=tuple(zip(model.grid.axes, model.grid.units, strict=True)),
        )


def with_series(dataset: xarray.Dataset, series: Series, context: SeriesContext) -> xarray.Dataset:
    """Return the dataset with a variable for each observable; one with a field's name is called ``NAME_observed``."""
    if series.values:
        dataset = dataset.assign_coords(_observed(series, context))
    for name, values in series.values.items():
        about = context.quantities.get(name, {})
        if context.samples is not None and context.sampled == name:
            dataset = dataset.assign_coords(_receivers(context.samples, context.axes))
            dataset[name] = ((RECEIVER_TIMES, RECEIVER), context.samples.samples, about)
            continue
        array = np.asarray(values)
        if array.dtype == object:  # values that were not finite, from before the run was interrupted
            array = np.asarray(values, float)
        across = [f"{name}_{number}" for number in range(1, array.ndim)]
        if array.ndim == 2 and "table" in about:
            across = [f"{about['table']}_row"]  # lists that are columns of one table are of one length
        dataset[name if name not in dataset.variables else f"{name}_{OBSERVED}"] = ((OBSERVED, *across), array, about)
    return dataset


def _observed(series: Series, context: SeriesContext) -> dict[str, Any]:
    """Return the coordinates of observables: steps, and times of models with a clock."""
    found: dict[str, Any] = {OBSERVED: (OBSERVED, series.steps, step_attributes())}
    if None not in series.times:
        about = {"units": context.time_unit, "long_name": "time of the model"}
        found[OBSERVED_TIMES] = (OBSERVED, np.array(series.times), about)
    return found


def _receivers(samples: Recorded, axes: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the times and positions of samples."""
    about = {"units": "s", "long_name": "time of the model"}
    return {RECEIVER_TIMES: (RECEIVER_TIMES, samples.seconds, about)} | {
        f"{RECEIVER}_{axis}": (RECEIVER, samples.positions[:, AXES.index(axis)], {"units": unit}) for axis, unit in axes
    }
