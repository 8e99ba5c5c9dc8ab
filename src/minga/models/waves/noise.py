"""Smooth random functions of position for synthetic media, with the same bits on every processor.

Only additions, multiplications, divisions and square roots are used, whose rounding IEEE 754 defines; the sine of a
library does not have that property. Lattice values come from a hash of (seed, lattice point): there is no state, and
any box can be evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "arctan", "arctan2", "lattice", "noise", "ripple"]

Floats = NDArray[np.float64]

_GOLDEN, _MIX1, _MIX2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def lattice(seed: int, *points: NDArray[np.int64]) -> Floats:
    """Return a number in [-1, 1) per lattice point: the SplitMix64 mixer (Steele, Lea & Flood 2014) axis by axis."""
    with np.errstate(over="ignore"):
        state: NDArray[Any] = _mixed(np.asarray(np.uint64(seed) + _GOLDEN))
        for coordinate in points:
            state = _mixed(state ^ (coordinate.astype(np.uint64) * _GOLDEN + _MIX2))
    return (state >> np.uint64(11)).astype("f8") * 2.0**-52 - 1.0


def _mixed(state: NDArray[Any]) -> NDArray[Any]:
    state = (state ^ (state >> np.uint64(30))) * _MIX1
    state = (state ^ (state >> np.uint64(27))) * _MIX2
    result: NDArray[Any] = state ^ (state >> np.uint64(31))
    return result


def noise(seed: int, *positions: Floats) -> Floats:
    """Return a smooth random function of one to three coordinates, in [-1, 1], with features about one unit wide.

    Lattice values at integer coordinates are joined by the quintic 6t^5 - 15t^4 + 10t^3, so that curvature is
    continuous (K. Perlin, Improving Noise, 2002).
    """
    low = [np.floor(position) for position in positions]
    base = [corner.astype(np.int64) for corner in low]
    fade = [_fade(position - corner) for position, corner in zip(positions, low)]
    return _joined(seed, base, fade, ())


def _joined(
    seed: int, base: Sequence[NDArray[np.int64]], fade: Sequence[Floats], chosen: tuple[NDArray[np.int64], ...]
) -> Floats:
    axis = len(chosen)
    if axis == len(base):
        return lattice(seed, *chosen)
    first = _joined(seed, base, fade, (*chosen, base[axis]))
    second = _joined(seed, base, fade, (*chosen, base[axis] + 1))
    return first + fade[axis] * (second - first)


def _fade(t: Floats) -> Floats:
    result: Floats = t * t * t * (t * (t * 6.0 - 15.0) + 10.0)
    return result


def ripple(position: Floats) -> Floats:
    """Return a smooth sine-like function in [-1, 1] with period 1: alternating quintic rises and falls."""
    phase = position - np.floor(position)
    rising = np.where(phase < 0.5, 2.0 * phase, 2.0 - 2.0 * phase)
    return 2.0 * _fade(rising) - 1.0


def arctan(slope: Floats) -> Floats:
    """Return the angle of a slope in radians, to 1e-13: three halvings of the angle, then its power series."""
    value = slope
    for _ in range(3):
        value = value / (1.0 + np.sqrt(1.0 + value * value))
    square = value * value
    series = np.zeros_like(square)
    for power in range(17, 0, -2):  # 1 - x^2/3 + x^4/5 - ...
        series = series * square + (-1.0) ** (power // 2) / power
    return 8.0 * value * series


def arctan2(y: Floats, x: Floats) -> Floats:
    """Return the angle of the vector (x, y) in radians, in (-pi, pi]; 0 for the null vector."""
    length = np.sqrt(x * x + y * y)
    away = x < 0
    # tan(a / 2) = y / (r + x), and for x < 0 tan((pi - a) / 2): no quotient of small differences.
    half = np.where(length > 0, y / np.where(length > 0, length + np.abs(x), 1.0), 0.0)
    angle = 2.0 * arctan(half)
    return np.where(away, np.where(y < 0, -np.pi, np.pi) - angle, angle)
