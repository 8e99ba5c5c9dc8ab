"""Frames as whole arrays in the memory of rank 0, for users who process them at once in Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.output.snapshots.chunks import chunks_of
from minga.output.snapshots.selection import Selection
from minga.output.snapshots.staging import Staging

__all__ = ["WholeFrames"]


class WholeFrames:
    """Transfer of frames to rank 0, which passes each to a function: step, time, and new arrays by field."""

    def __init__(
        self,
        model: Model,
        kept: Sequence[Selection],
        on_frame: Callable[[int, float, Mapping[str, NDArray[Any]]], None],
    ) -> None:
        """Prepare the transfer; alike on all ranks."""
        self._on_frame, self._clock = on_frame, model.clock
        self._names = [one.field.name for one in kept]
        sizes = [math.prod(one.shape) * np.dtype(one.field.dtype).itemsize for one in kept]
        self._chunks = [chunks_of(one.variable, size or 1) for one, size in zip(kept, sizes, strict=True)]
        self._staging = Staging(model, kept, self._chunks, [np.zeros(1, np.int64)] * len(kept))

    def take(self, step: int, engine: Engine) -> None:
        """Pass on the present state, after ``step`` steps; collective."""
        mine = self._staging.mine(engine.comm.rank)
        arrays = [np.zeros(chunk.shape, chunk.variable.dtype) for chunk in mine]
        for copy in self._staging.fill(engine, arrays):
            copy.wait()
        if engine.comm.rank == 0:
            shaped = [array[chunk.box.slices((0,) * array.ndim)] for array, chunk in zip(arrays, mine, strict=True)]
            time = step if self._clock is None else self._clock.read(step, engine)
            self._on_frame(step, time, dict(zip(self._names, shaped, strict=True)))

    def close(self) -> None:
        """Release the resources of frames, after the last one."""
        self._staging.settle()
        self._staging.close()

    @property
    def written(self) -> None:
        """None, as nothing is written."""
        return None
