"""Division of a frame into chunks, slabs along the first axis, and of the chunks among the ranks that write.

Chunk edges depend only on the shape and the settings, so that a store is the same for any ranks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minga.output.variables import Variable
from minga.space.box import Box

__all__ = ["PAGE", "Chunk", "chunks_of", "slab_shape", "writer_of"]

PAGE = 4096
"""Bytes: files written past the page cache must be multiples of this, in memory and on the disk."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk of one variable in every frame.

    Attributes
    ----------
    variable
        The variable.
    number
        Number among the chunks of the variable, which is its index along the first axis.
    box
        The kept indices it holds.
    shape
        Shape of its array, which at the end of the first axis may reach farther.
    """

    variable: Variable
    number: int
    box: Box
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Size of its array."""
        return math.prod(self.shape) * self.variable.dtype.itemsize

    @property
    def padded(self) -> int:
        """Size of its array, rounded up to whole pages."""
        return -(-self.nbytes // PAGE) * PAGE

    def key(self, frame: int) -> str:
        """Return the name of the file of a frame, within the folder of the variable."""
        return ".".join(["c", str(frame), str(self.number), *["0"] * (len(self.shape) - 1)])


def slab_shape(shape: Sequence[int], itemsize: int, limit: int) -> tuple[int, ...]:
    """Return the shape of slabs along the first axis, which are as few and as even as possible.

    They have at most `limit` bytes, or one row.
    """
    rows, inner = max(1, shape[0]), tuple(max(1, length) for length in shape[1:])
    most = max(1, limit // max(1, math.prod(inner) * itemsize))
    count = -(-rows // most)
    return (-(-rows // count), *inner)


def chunks_of(variable: Variable, limit: int) -> tuple[Chunk, ...]:
    """Return the chunks of a frame of a variable, in order."""
    shape = slab_shape(variable.shape, variable.dtype.itemsize, limit)
    rows, length = shape[0], variable.shape[0]
    return tuple(
        Chunk(
            variable, number, Box((low, *[0] * (len(shape) - 1)), (min(low + rows, length), *variable.shape[1:])), shape
        )
        for number, low in enumerate(range(0, max(1, length), rows))
    )


def writer_of(count: int, writers: Sequence[int]) -> np.ndarray:
    """Return the rank that writes each of `count` chunks: consecutive chunks go to one rank."""
    chosen = np.asarray(writers, np.int64)
    return chosen[np.arange(count) * min(count, len(chosen)) // count]
