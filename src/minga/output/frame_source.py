"""Frames of fields, wherever they are: in a store on the disk, or in a dataset in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from minga.output.variables import Coordinate

__all__ = ["FrameSource", "time_of", "when_of"]


class FrameSource(Protocol):
    """Frames as everything that draws reads them; `minga.output.store.FrameReader` describes the methods."""

    @property
    def steps(self) -> tuple[int, ...]:
        """Number of steps done, for each frame."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields."""

    @property
    def attrs(self) -> Mapping[str, Any]:
        """Attributes of the whole."""

    def when(self, index: int) -> str:
        """Describe the time of a frame."""

    def frame(self, field: str, index: int = -1, at: tuple[int | slice, ...] = ()) -> NDArray[Any]:
        """Return one frame of a field, or the part `at` of it."""

    def dtype(self, field: str) -> np.dtype[Any]:
        """Return the type of the values of a field."""

    def attributes(self, field: str) -> dict[str, Any]:
        """Return the CF attributes of a field."""

    def coordinates(self, field: str) -> tuple[Coordinate, ...]:
        """Return the positions of the points of a field along its axes."""


def time_of(source: FrameSource, index: int) -> str:
    """Return the time of a frame with its unit, ``t = 0.5 s``; empty for models without time."""
    return source.when(index).partition(", ")[2]


def when_of(step: int, time: float, unit: str | None) -> str:
    """Describe the time of a frame: ``step 20``, and the model time if there is one."""
    return f"step {step}" if unit is None else f"step {step}, t = {time:.6g} {unit}".removesuffix(" 1")
