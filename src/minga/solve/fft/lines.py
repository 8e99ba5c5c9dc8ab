"""Transforms of complete lines along one axis, by SciPy's pocketfft.

A line alone and a line among others have the same bits, so neither the number of lines of a piece nor that of the
threads matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from minga.extras import require

__all__ = ["Arrays", "Kind", "LineTransform", "filter_lines", "transform_lines"]

Kind = Literal["fourier", "half", "sine-1", "cosine-1", "sine-2", "cosine-2", "sine-4", "cosine-4"]
"""Transform of an axis: complex Fourier, the half spectrum of real values, sine or cosine transform of a type."""
Arrays = Sequence[NDArray[Any]]
"""Values: one array, which is real or complex, or two of real and imaginary parts."""

_PIECE: Final = 1 << 16
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
            case "sine-1" | "cosine-1":  # the first and the last point of a line are its walls
                return 0.5 / (self.n - 1)
            case _:
                return 0.5 / self.n


def transform_lines(
    line: LineTransform, source: Arrays, target: Arrays, *, inverse: bool = False, scale: float = 1.0, threads: int = 1
) -> None:
    """Transform all lines of some values.

    Parameters
    ----------
    line
        The transform.
    source
        The values; a complex array may be overwritten.
    target
        The results; it may be the source.
    inverse
        Whether the inverse transform is meant.
    scale
        Factor of the results.
    threads
        Number of threads.
    """
    work = _work(line, inverse)
    room = target[0] if line.kind == "fourier" and len(target) == 1 else None

    def piece(part: tuple[slice, ...]) -> None:
        _store(work(_load(source, part, room)), target, part, scale)

    _in_pieces(piece, line, source, threads)


def filter_lines(line: LineTransform, source: Arrays, factors: Arrays, target: Arrays, *, threads: int = 1) -> None:
    """Transform all lines, multiply the modes by factors, and transform them back.

    Parameters
    ----------
    line
        The transform.
    source
        The values; a complex array may be overwritten.
    factors
        The real factor of each mode, or its real and imaginary part.
    target
        The results; it may be the source.
    threads
        Number of threads.
    """
    there, back = _work(line, False), _work(line, True)

    def piece(part: tuple[slice, ...]) -> None:
        modes = there(_load(source, part))
        _store(back(_multiplied(modes, [factor[part] for factor in factors])), target, part, 1.0)

    _in_pieces(piece, line, source, threads)


def _in_pieces(piece: Callable[[tuple[slice, ...]], None], line: LineTransform, source: Arrays, threads: int) -> None:
    """Call a function for selections of all lines."""
    parts = list(_parts(source[0].shape, line.axis, threads))
    if threads == 1 or len(parts) == 1:
        for part in parts:
            piece(part)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(piece, parts))


def _parts(shape: tuple[int, ...], axis: int, threads: int) -> Iterator[tuple[slice, ...]]:
    """Yield selections of lines along an axis: ranges of the first of the other axes."""
    if len(shape) == 1:
        yield (slice(None),)
        return
    across = 1 if axis == 0 else 0
    count = shape[across]
    rest = math.prod(shape) // count
    together = max(1, min(_PIECE // rest, -(-count // threads)))
    for start in range(0, count, together):
        yield tuple(slice(start, start + together) if a == across else slice(None) for a in range(len(shape)))


def _load(source: Arrays, part: tuple[slice, ...], room: NDArray[Any] | None = None) -> NDArray[Any]:
    """Return the values of a piece; real and imaginary parts are joined in `room`, if that is given."""
    if len(source) == 1:
        view: NDArray[Any] = source[0][part]
        return view
    re, im = (array[part] for array in source)
    joined = np.empty(re.shape, np.result_type(re, np.complex64)) if room is None else room[part]
    joined.real, joined.imag = re, im
    return joined


def _store(values: NDArray[Any], target: Arrays, part: tuple[slice, ...], scale: float) -> None:
    parts = (values,) if len(target) == 1 else (values.real, values.imag)
    for array, each in zip(target, parts, strict=True):
        here = array[part]
        if scale != 1.0:
            np.multiply(each, each.real.dtype.type(scale), out=here)
        elif not np.may_share_memory(here, each):
            np.copyto(here, each)


def _multiplied(modes: NDArray[Any], factors: Arrays) -> NDArray[Any]:
    """Return modes times factors, by products and sums that are rounded one by one."""
    if len(factors) == 1:  # the product with a real number is rounded once, fused or not
        modes *= factors[0]
        return modes
    (a, b), (x, y) = factors, (modes.real, modes.imag)
    re = a * x - b * y
    modes.imag = a * y + b * x
    modes.real = re
    return modes


def _work(line: LineTransform, inverse: bool) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return the function that transforms the lines of an array."""
    require("scipy")
    from scipy import fft

    n, axis = line.n, line.axis
    if line.kind == "half":
        if inverse:
            return lambda values: fft.irfft(values, n, axis, norm="forward")
        return lambda values: fft.rfft(values, axis=axis)
    if line.kind == "fourier":
        if inverse:
            return lambda values: fft.ifft(values, axis=axis, norm="forward", overwrite_x=True)
        return lambda values: fft.fft(values, axis=axis, overwrite_x=True)
    name, number = line.kind.split("-")
    function = fft.dst if name == "sine" else fft.dct
    kind = _BACK[int(number)] if inverse else int(number)
    inside = slice(1, -1) if line.kind == "sine-1" else slice(None)  # values on walls have no modes

    def real(values: NDArray[Any]) -> NDArray[Any]:
        if inside == slice(None):
            result: NDArray[Any] = function(values, kind, axis=axis)
            return result
        result = np.zeros_like(values)
        between = tuple(inside if a == axis else slice(None) for a in range(values.ndim))
        result[between] = function(values[between], kind, axis=axis)
        return result

    def each(values: NDArray[Any]) -> NDArray[Any]:
        if not np.iscomplexobj(values):
            return real(values)
        result = np.empty_like(values)
        result.real, result.imag = real(values.real), real(values.imag)
        return result

    return each
