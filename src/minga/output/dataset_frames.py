"""Frames of a dataset of xarray that a run has returned, as everything that draws reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError, suggest
from minga.output.frame_source import when_of
from minga.output.variables import STEP, TIME, Coordinate
from minga.space.names import OBSERVED

if TYPE_CHECKING:
    import xarray

__all__ = ["DatasetFrames"]


class DatasetFrames:
    """Frames of a dataset; values are read when they are asked for.

    Parameters
    ----------
    dataset
        A dataset of a run, or what selections have left of it: several times, or a single one.

    Raises
    ------
    CaseError
        If it has no time.
    """

    def __init__(self, dataset: xarray.Dataset) -> None:
        if TIME not in dataset.coords:
            raise CaseError("the dataset has no coordinate 'time'", remedy="take one that mg.run returned")
        self._dataset = dataset.expand_dims(TIME) if dataset[TIME].ndim == 0 else dataset

    @property
    def steps(self) -> tuple[int, ...]:
        """Number of steps done, for each frame."""
        known = self._dataset[STEP if STEP in self._dataset.variables else TIME].values.reshape(-1)
        return tuple(int(step) for step in np.broadcast_to(known, self._dataset.sizes[TIME]))

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields."""
        found = self._dataset.data_vars.items()
        return tuple(str(name) for name, v in found if TIME in v.dims and v.ndim > 1 and OBSERVED not in v.dims)

    @property
    def attrs(self) -> Mapping[str, Any]:
        """Attributes of the dataset."""
        return {str(name): value for name, value in self._dataset.attrs.items()}

    def when(self, index: int) -> str:
        """Describe the time of a frame."""
        time = self._dataset[TIME]
        unit = str(time.attrs.get("units", "1")) if time.dtype.kind == "f" else None
        return when_of(self.steps[index], float(time.values[index]), unit)

    def frame(self, field: str, index: int = -1, at: tuple[int | slice, ...] = ()) -> NDArray[Any]:
        """Return one frame of a field, without the time axis, or the part `at` of it.

        Raises
        ------
        CaseError
            If there is no such field or frame, or the field has an axis of parameters.
        """
        array, count = self._known(field), self._dataset.sizes[TIME]
        if not isinstance(index, int | np.integer) or not -count <= index < count:
            raise CaseError(f"the dataset has no frame {index!r}: it has {count}, numbered from 0")
        values: NDArray[Any] = array[(index % count, *at)].values
        return values

    def dtype(self, field: str) -> np.dtype[Any]:
        """Return the type of the values of a field."""
        dtype: np.dtype[Any] = self._known(field).dtype
        return dtype

    def attributes(self, field: str) -> dict[str, Any]:
        """Return the CF attributes of a field."""
        return {str(name): value for name, value in self._known(field).attrs.items()}

    def coordinates(self, field: str) -> tuple[Coordinate, ...]:
        """Return the positions of the points of a field along its axes; numbers where these are not known."""
        array = self._known(field)
        axes = ((str(dim), array[dim]) for dim in array.dims[1:])
        return tuple(Coordinate(name, np.asarray(axis.values, np.float64), dict(axis.attrs)) for name, axis in axes)

    def _known(self, field: str) -> xarray.DataArray:
        """Return a field; raise CaseError if there is none of this name, or if it is not one run's."""
        if field not in self.fields:
            raise CaseError(
                f"the dataset has no field {field!r}" + (f"; it has {', '.join(self.fields)}" if self.fields else ""),
                suggestion=suggest(field, self.fields),
            )
        array = self._dataset[field]
        others = list(array.dims[: array.dims.index(TIME)])
        if others:
            first = ", ".join(f"{name}=0" for name in others)
            raise CaseError(
                f"{field!r} has the axes {', '.join(map(str, others))} beside time and those of its grid",
                remedy=f"choose one run: history.isel({first})",
            )
        return array
