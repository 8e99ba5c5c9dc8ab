"""Metadata of a Zarr store, version 3, as documents: the contents of ``zarr.json``.

Source: Zarr core specification 3.0 (zarr-specs.readthedocs.io), and the output of zarr-python. Chunks of all arrays
have flat names (``c.12.0.0.0``), so that a frame makes one file for each chunk and no folders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from minga.output.variables import CONVENTIONS, STEP, TIME, Coordinate, step_attributes, time_attributes

__all__ = ["TIMES_A_CHUNK", "array_document", "coordinate_document", "group_document", "time_documents"]

TIMES_A_CHUNK: Final = 1024
_PLAIN: Final = [{"name": "bytes", "configuration": {"endian": "little"}}]


def array_document(
    shape: Sequence[int],
    chunk: Sequence[int],
    dtype: np.dtype[Any],
    dims: Sequence[str],
    attributes: Mapping[str, Any],
    codecs: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the document of one array; a missing chunk reads as NaN, or 0 for whole numbers."""
    return {
        "shape": list(shape),
        "data_type": dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": "NaN" if dtype.kind == "f" else False if dtype.kind == "b" else 0,
        "codecs": list(codecs),
        "attributes": dict(attributes),
        "dimension_names": list(dims),
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }


def coordinate_document(coordinate: Coordinate) -> dict[str, Any]:
    """Return the document of the positions along one axis, in one chunk."""
    values = coordinate.values
    chunk = [max(1, len(values))]
    return array_document(values.shape, chunk, values.dtype, [coordinate.name], coordinate.attributes, _PLAIN)


def time_documents(frames: int, unit: str | None) -> dict[str, dict[str, Any]]:
    """Return the documents of the time axis of `frames` frames and of the steps; without a unit time is the steps."""

    def along(dtype: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
        return array_document([frames], [TIMES_A_CHUNK], np.dtype(dtype), [TIME], attributes, _PLAIN)

    time = along("i8" if unit is None else "f8", time_attributes(unit))
    return {TIME: time, STEP: along("i8", step_attributes())}


def group_document(attributes: Mapping[str, Any], arrays: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the document of the store, with the metadata of its arrays consolidated: readers begin here."""
    return {
        "attributes": {"Conventions": CONVENTIONS, **attributes},
        "zarr_format": 3,
        "node_type": "group",
        "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": dict(arrays)},
    }
