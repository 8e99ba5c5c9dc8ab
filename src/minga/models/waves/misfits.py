"""Misfits between computed and observed traces, with their derivatives by the computed ones: the adjoint sources.

A misfit is a function of two arrays (samples, receivers) that returns a number and an array of the same shape. Each is
the sum over all receivers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from minga.models.waves.medium import Floats

__all__ = ["MISFITS", "Misfit", "envelope", "l2", "normalised"]

Misfit = Callable[[Floats, Floats], tuple[float, Floats]]


def l2(found: Floats, data: Floats) -> tuple[float, Floats]:
    """Return half the sum of squared differences, and its derivative.

    Parameters
    ----------
    found, data
        Computed and observed traces, of shape (samples, receivers).

    Returns
    -------
    tuple of float and ndarray
        The misfit and its derivative by the computed traces.
    """
    rest = found - data
    return 0.5 * _total(rest * rest), rest


def normalised(found: Floats, data: Floats) -> tuple[float, Floats]:
    """Return the sum over receivers of 1 - cosine of the angle between traces, whatever their size, and its derivative.

    Traces that are 0 everywhere do not count.

    Parameters
    ----------
    found, data
        Computed and observed traces, of shape (samples, receivers).

    Returns
    -------
    tuple of float and ndarray
        The misfit and its derivative by the computed traces.
    """
    own, other = (np.sqrt(_along(traces * traces)) for traces in (found, data))
    used = (own > 0) & (other > 0)
    a, b = found / np.where(used, own, 1.0), data / np.where(used, other, 1.0)
    cosine = _along(a * b)
    slope = (cosine * a - b) / np.where(used, own, 1.0)
    return _total(np.where(used, 1.0 - cosine, 0.0)), np.where(used, slope, 0.0)


def envelope(found: Floats, data: Floats) -> tuple[float, Floats]:
    """Return half the sum of squared differences of envelopes, and its derivative.

    Envelopes vary more slowly than waves, so that inversions depend less on the initial medium. Source: R.-S. Wu, J.
    Luo, B. Wu, "Seismic envelope inversion and modulation signal model", Geophysics 79(3), 2014.

    Parameters
    ----------
    found, data
        Computed and observed traces, of shape (samples, receivers).

    Returns
    -------
    tuple of float and ndarray
        The misfit and its derivative by the computed traces.
    """
    turned = _hilbert(found)
    size, other = np.sqrt(found * found + turned * turned), np.sqrt(np.square(data) + np.square(_hilbert(data)))
    rest = size - other
    ratio = np.divide(rest, size, out=np.zeros_like(rest), where=size > 0)
    # The transpose of the Hilbert transform is its negative.
    return 0.5 * _total(rest * rest), ratio * found - _hilbert(ratio * turned)


MISFITS: Final[Mapping[str, Misfit]] = {"l2": l2, "normalised": normalised, "envelope": envelope}
"""Misfits by name."""


def _hilbert(traces: Floats) -> Floats:
    """Return the Hilbert transform of traces, which are 0 before and after their samples, by a sum over odd distances.

    The kernel is that of an infinite line, 2 / (pi k) for odd k: antisymmetric, and without a period. Distances are
    added one after the other, so that every processor has the same bits.
    """
    total = np.zeros_like(traces)
    for away in range(1, len(traces), 2):
        factor = 2.0 / (np.pi * away)
        total[away:] += factor * traces[:-away]
        total[:-away] -= factor * traces[away:]
    return total


def _along(values: Floats) -> Floats:
    """Return the sum along the samples, one after the other."""
    return np.asarray(np.add.accumulate(values, axis=0)[-1])


def _total(values: Floats) -> float:
    """Return the sum of all values, one after the other: the same bits with any library."""
    return float(np.add.accumulate(values.ravel())[-1]) if values.size else 0.0
