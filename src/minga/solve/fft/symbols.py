"""Angles of modes, wave numbers, and eigenvalues of differences: one array for each axis.

Sines are polynomials of sums and products, so that the arrays have the same bits on every machine.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from minga.lang.weights import reach, uniform_weights
from minga.solve.fft.lines import LineTransform
from minga.space.grid import Floats

__all__ = ["angles", "cosines", "second_difference", "sines", "spectral_second", "wave_numbers"]

Angles = tuple[np.ndarray, int]
"""Angles in units of pi: numerators, int64, and their common denominator."""

_SINE: Final = [(-1) ** k / math.factorial(2 * k + 1) for k in range(10, -1, -1)]
_COSINE: Final = [(-1) ** k / math.factorial(2 * k) for k in range(10, -1, -1)]


def angles(line: LineTransform) -> Angles:
    """Return the phase between neighbours for each mode of an axis.

    Parameters
    ----------
    line
        The transform of the axis.

    Returns
    -------
    tuple
        Numerators and denominator of the angles in units of pi.
    """
    modes, n = np.arange(line.modes, dtype=np.int64), line.n
    match line.kind:
        case "half":
            return 2 * modes, n
        case "fourier":
            return 2 * np.where(2 * modes <= n, modes, modes - n), n
        case "sine-1" | "cosine-1":
            return modes, n - 1
        case "sine-2":
            return modes + 1, n
        case "cosine-2":
            return modes, n
        case _:
            return 2 * modes + 1, 2 * n


def sines(numerators: np.ndarray, denominator: int) -> Floats:
    """Return sin(pi p / q), exactly odd and symmetric.

    Parameters
    ----------
    numerators, denominator
        The whole numbers p and q.

    Returns
    -------
    ndarray
        f8, with an error of about one unit in the last place.
    """
    turn = np.mod(numerators, 2 * denominator)
    sign = np.where(turn > denominator, -1.0, 1.0)
    half = np.where(turn > denominator, turn - denominator, turn)
    quarter = np.minimum(half, denominator - half)  # sin(pi - a) = sin(a)
    near = 4 * quarter <= denominator
    rest = np.where(near, 2 * quarter, denominator - 2 * quarter)
    x = math.pi * (rest / (2.0 * denominator))
    return sign * np.where(near, x * _polynomial(_SINE, x * x), _polynomial(_COSINE, x * x))


def cosines(numerators: np.ndarray, denominator: int) -> Floats:
    """Return cos(pi p / q), exactly even.

    Parameters
    ----------
    numerators, denominator
        The whole numbers p and q.

    Returns
    -------
    ndarray
        f8, with an error of about one unit in the last place.
    """
    return sines(2 * np.abs(numerators) + denominator, 2 * denominator)


def _polynomial(coefficients: list[float], x: Floats) -> Floats:
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


def second_difference(line: LineTransform, spacing: float, order: int) -> Floats:
    """Return the eigenvalues of the centred second difference of an axis.

    Parameters
    ----------
    line
        The transform of the axis.
    spacing
        The distance of its points.
    order
        Accuracy of the difference.

    Returns
    -------
    ndarray
        One value for each mode, not above 0.
    """
    numerators, denominator = angles(line)
    total = np.zeros(len(numerators))
    far = reach(2, order, False)
    weights = uniform_weights(2, tuple(map(Fraction, range(-far, far + 1))))
    for offset in range(far, 0, -1):
        # w (e^ika - 2 + e^-ika) = -4 w sin(ka/2)^2
        sine = sines(offset * numerators, 2 * denominator)
        total = total - float(4 * weights[far + offset]) * (sine * sine)
    return total / (spacing * spacing)


def wave_numbers(line: LineTransform, spacing: float) -> Floats:
    """Return the wave numbers of the modes of an axis, in radians for each unit of length; signed for "fourier".

    Parameters
    ----------
    line
        The transform of the axis.
    spacing
        The distance of its points.

    Returns
    -------
    ndarray
        One value for each mode.
    """
    numerators, denominator = angles(line)
    return numerators * math.pi / (denominator * spacing)


def spectral_second(line: LineTransform, spacing: float) -> Floats:
    """Return the eigenvalues of the second derivative of an axis, -k^2.

    Parameters
    ----------
    line
        The transform of the axis.
    spacing
        The distance of its points.

    Returns
    -------
    ndarray
        One value for each mode.
    """
    numbers = wave_numbers(line, spacing)
    return -(numbers * numbers)
