"""Every second, third, ... cell of grids that are too large for a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["edges_thinned", "strides_within", "thinned"]


def strides_within(shape: Sequence[int], most: int) -> tuple[int, ...]:
    """Return strides, the largest along the longest axes, with which at most so many cells remain."""
    strides = [1] * len(shape)
    left = list(shape)
    while np.prod(left) > most:
        axis = int(np.argmax(left))
        strides[axis] += 1
        left[axis] = -(-shape[axis] // strides[axis])
    return tuple(strides)


def thinned(values: NDArray[Any], strides: Sequence[int]) -> NDArray[Any]:
    """Return every n-th value along each of the first axes, from the first one on."""
    return values[tuple(slice(None, None, stride) for stride in strides)]


def edges_thinned(edges: NDArray[np.float64], stride: int) -> NDArray[np.float64]:
    """Return the edges of cells of which each stands for `stride` ones, and the last one for the rest."""
    return np.append(edges[:-1:stride], edges[-1])
