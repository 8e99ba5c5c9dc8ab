"""Transforms of complete lines along one axis, by SciPy's pocketfft.

A line alone and a line among others have the same bits, so neither the number of lines of a piece nor that of the
threads matters. Complex lines are pairs of real arrays; pieces that fit into a cache are copied together, transformed
along contiguous lines, and copied back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Kind", "LineTransform", "transform_lines"]

Kind = Literal["fourier", "half", "sine-1", "cosine-1", "sine-2", "cosine-2", "sine-4", "cosine-4"]
"""Transform of an axis: complex Fourier, the half spectrum of real values, sine or cosine transform of a type."""

_PIECE: Final = 1 << 14
"""Numbers of a piece that is transformed at once."""
_BACK: Final = {1: 1, 2: 3, 4: 4}
"""Type of the inverse of a sine or cosine transform, by its type."""


@dataclass(frozen=True)
class LineTransform:
    """The transform of lines of `n` points along an axis, without any scale in either direction.

    Parameters
    ----------
    kind
        The transform.
    axis
        The axis of the lines.
    n
        Number of points of a line.
    """

    kind: Kind
    axis: int
    n: int

    @property
    def modes(self) -> int:
        """Number of modes of a line."""
        return self.n // 2 + 1 if self.kind == "half" else self.n

    @property
    def scale(self) -> float:
        """Factor by which a transform and its inverse have to be multiplied to be the identity."""
        match self.kind:
            case "fourier" | "half":
                return 1.0 / self.n
            case "sine-1":  # the first and last point of a line are its walls
                return 0.5 / (self.n - 1)
            case "cosine-1":
                return 0.5 / (self.n - 1)
            case _:
                return 0.5 / self.n


Arrays = Sequence[NDArray[Any]]


def transform_lines(
    line: LineTransform, sources: Arrays, targets: Arrays, *, inverse: bool = False, scale: float = 1.0,
    threads: int = 1,
) -> None:  # fmt: skip
    """Transform all lines of some arrays.

    Parameters
    ----------
    line
        The transform.
    sources, targets
        One real array, or real and imaginary part; targets may be the sources.
    inverse
        Whether the inverse transform is meant.
    scale
        Factor of the results.
    threads
        Number of threads.
    """
    work = _work(line, inverse)
    given = [np.moveaxis(array, line.axis, -1) for array in sources]
    taken = [np.moveaxis(array, line.axis, -1) for array in targets]

    def piece(part: tuple[slice, ...]) -> None:
        results = work([array[part] for array in given])
        for target, values in zip(taken, results, strict=True):
            np.multiply(values, scale, out=target[part]) if scale != 1.0 else np.copyto(target[part], values)

    parts = list(_parts(given[0].shape[:-1], line.n))
    if threads == 1 or len(parts) == 1:
        for part in parts:
            piece(part)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(piece, parts))


def _parts(shape: tuple[int, ...], n: int) -> Iterator[tuple[slice, ...]]:
    """Yield selections of lines, each of about `_PIECE` numbers or of a single line."""
    lines = max(1, _PIECE // n)
    if not shape:
        yield ()
        return
    rest = int(np.prod(shape[1:], dtype=np.int64))
    together = max(1, lines // max(rest, 1))
    for start in range(0, shape[0], together):
        first = slice(start, min(start + together, shape[0]))
        if together > 1 or rest <= lines:
            yield (first,)
        else:
            yield from ((first, *others) for others in _parts(shape[1:], n))


def _work(line: LineTransform, inverse: bool) -> Callable[[Arrays], Arrays]:
    """Return the function that transforms contiguous lines along the last axis."""
    from scipy import fft

    n = line.n
    if line.kind == "half":
        if inverse:
            return lambda parts: [fft.irfft(_joined(parts), n, norm="forward")]
        return lambda parts: _separate(fft.rfft(np.ascontiguousarray(parts[0])))
    if line.kind == "fourier":
        if inverse:
            return lambda parts: _separate(fft.ifft(_joined(parts), norm="forward", overwrite_x=True))
        return lambda parts: _separate(fft.fft(_joined(parts), overwrite_x=True))
    name, number = line.kind.split("-")
    function = fft.dst if name == "sine" else fft.dct
    kind = _BACK[int(number)] if inverse else int(number)
    if line.kind == "sine-1":
        return lambda parts: [_between_walls(function, part) for part in parts]
    return lambda parts: [function(np.ascontiguousarray(part), type=kind) for part in parts]


def _between_walls(function: Callable[..., Any], part: NDArray[Any]) -> NDArray[Any]:
    """Return the sine transform of type 1 of the points between the first and the last, which become 0."""
    result = np.zeros(part.shape, part.dtype)
    result[..., 1:-1] = function(np.ascontiguousarray(part[..., 1:-1]), type=1)
    return result


def _joined(parts: Arrays) -> NDArray[Any]:
    """Return complex values from their parts."""
    joined = np.empty(parts[0].shape, np.result_type(parts[0], np.complex64))
    joined.real, joined.imag = parts
    return joined


def _separate(values: NDArray[Any]) -> Arrays:
    return values.real, values.imag
