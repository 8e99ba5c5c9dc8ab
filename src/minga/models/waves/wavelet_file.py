"""Wavelet samples from a file: NumPy, or plain text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from minga.case.files import find_file
from minga.errors import CaseError

__all__ = ["read_wavelet", "resampled", "spectrum_peak"]

_MOST = 10_000_000
_TAPS = 8


def read_wavelet(name: str, dt: float | None, directory: Path, key: str) -> tuple[NDArray[np.float64], float]:
    """Return the samples of a wavelet, and the interval between them in s.

    A `.npy` file has one axis. Text has a sample per line, or a time in seconds and a sample, separated by blanks or
    commas; `#` starts a comment. The interval follows from the times in the file if it has any, otherwise it is `dt`.

    Raises
    ------
    CaseError
        If the file is invalid, or `dt` is missing or contradicts it.
    """
    path = find_file(name, directory, key)
    table = _samples(path, key)
    if table.ndim == 2:
        times, samples = table[:, 0], table[:, 1]
        step = float(times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 0.0
        if not step > 0 or np.abs(np.diff(times) - step).max() > 1e-3 * step:
            raise CaseError(f"{path.name}: the times in its first column are not evenly spaced", key=key)
        if dt is not None and abs(dt - step) > 1e-3 * step:
            raise CaseError(f"{path.name} has a sample every {step:g} s, the case states {dt:g} s", key=key)
        return samples, step
    if dt is None:
        raise CaseError(
            f"{path.name} does not state the interval between its samples", key=key, remedy="add dt = 0.001"
        )
    return table, dt


def _samples(path: Path, key: str) -> NDArray[np.float64]:
    try:
        if path.suffix == ".npy":
            table = np.asarray(np.load(path, allow_pickle=False))
        else:
            lines = [line.partition("#")[0].replace(",", " ").split() for line in path.read_text().splitlines()]
            table = np.array([[float(word) for word in line] for line in lines if line])
    except (OSError, ValueError, EOFError) as error:
        raise CaseError(f"cannot read {path.name} as numbers: {error}", key=key) from error
    if table.dtype.kind not in "fiu" or table.size == 0 or table.size > _MOST:
        raise CaseError(f"{path.name} has {table.size} values of type {table.dtype}, expected numbers", key=key)
    table = table.astype("f8")
    if table.ndim == 2 and table.shape[1] == 1:
        table = table[:, 0]
    if table.ndim > 2 or (table.ndim == 2 and table.shape[1] != 2):
        raise CaseError(
            f"{path.name} has {' x '.join(map(str, table.shape))} values",
            key=key,
            remedy="give one sample per line, or a time and a sample",
        )
    wrong = np.argwhere(~np.isfinite(table))
    if len(wrong):
        raise CaseError(f"{path.name}: sample {int(wrong[0][0]) + 1} is {table[tuple(wrong[0])]}", key=key)
    return table


def resampled(samples: NDArray[np.float64], old: float, new: float) -> NDArray[np.float64]:
    """Interpolate samples `old` seconds apart at times `new` seconds apart, starting with the first one.

    Lagrange's polynomial through the eight nearest samples (0 outside) is accurate to 1e-4 if a period has eight
    samples or more, and consists of additions and multiplications only: the same bits everywhere.
    """
    if abs(new - old) <= 1e-9 * old:
        return samples
    count = int(np.floor((len(samples) - 1) * old / new * (1 + 1e-12))) + 1
    place = np.arange(count) * (new / old)
    below = np.floor(place).astype(np.int64)
    off = place - below
    nodes = range(1 - _TAPS // 2, 1 + _TAPS // 2)
    padded = np.concatenate([np.zeros(_TAPS), samples, np.zeros(_TAPS)])
    result = np.zeros(count)
    for node in nodes:
        weight = np.ones(count)
        for other in nodes:
            if other != node:
                weight = weight * (off - other) / (node - other)
        result = result + weight * padded[below + node + _TAPS]
    return result


def spectrum_peak(samples: NDArray[np.float64], dt: float) -> float:
    """Return the frequency at the peak of the amplitude spectrum, Hz, to about a hundredth."""
    size = max(4096, 8 * len(samples))
    spectrum = np.abs(np.fft.rfft(samples, size))
    return max(1, int(np.argmax(spectrum[1:])) + 1) / (size * dt)
