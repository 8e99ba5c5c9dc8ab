"""A dataset of a run as one NetCDF file: all fields, observables, coordinates and attributes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minga.output.netcdf import NetcdfVariable, write_netcdf

if TYPE_CHECKING:
    import xarray

__all__ = ["write_dataset"]


def write_dataset(path: Path, dataset: xarray.Dataset) -> None:
    """Write a dataset to a file, which appears only when it is complete.

    Integers of 8 bytes are written with 4 bytes where they fit, which more programs read. Attributes that are lists are
    written as JSON.

    Raises
    ------
    DiskError
        If the disk refuses.
    """
    attributes = {str(name): _plain(value) for name, value in dataset.attrs.items()}
    write_netcdf(path, [_variable(dataset, str(name)) for name in dataset.variables], attributes)


def _variable(dataset: xarray.Dataset, name: str) -> NetcdfVariable:
    """Return a variable, whose values are read in parts along its first axis."""
    variable = dataset.variables[name]
    dims = tuple(map(str, variable.dims))
    attributes = {str(key): _plain(value) for key, value in variable.attrs.items()}
    beside = [str(key) for key in dataset.coords if key not in dataset.dims and set(dataset[key].dims) <= set(dims)]
    if name not in dataset.coords and beside:
        attributes["coordinates"] = " ".join(beside)
    short = variable.dtype == np.int64 and _fits(variable.values)
    dtype = np.dtype("i4") if short else np.dtype(variable.dtype)

    def parts() -> Iterator[NDArray[Any]]:
        rows: Iterable[Any] = (variable[k] for k in range(variable.shape[0])) if variable.ndim > 1 else [variable]
        for row in rows:
            yield np.asarray(row.values, dtype)

    return NetcdfVariable(name, dims, variable.shape, dtype, attributes, parts)


def _fits(values: NDArray[Any]) -> bool:
    return bool(np.all(np.abs(values) < 1 << 31)) if values.size else True


def _plain(value: Any) -> Any:
    """Return an attribute as text or a number."""
    if isinstance(value, np.generic):
        return value.item()
    return json.dumps(value) if isinstance(value, list | tuple | dict) else value
