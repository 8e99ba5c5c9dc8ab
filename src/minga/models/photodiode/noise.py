"""Noise of multiplication by ionisation that depends on the local field alone.

Electrons drift towards larger x. A pair that is generated at x becomes on average M(x) pairs,

    M(x) = M(0) exp(-integral of (alpha - beta) from 0 to x),
    M(0) = 1 / (1 - integral of alpha exp(-integral of (alpha - beta) from 0 to x))

and every pair, whether of light or of ionisation, is an independent event of this size, so that

    F = [integral of (g + alpha Jn + beta Jp) M^2] / (I0 M^2),    S = 2 q I0 M^2 F

with the primary pairs g, their sum I0 and their mean gain M. For a constant ratio of coefficients this is McIntyre's
formula (IEEE Trans. Electron Devices 13, 164 (1966)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minga.compile import portable
from minga.errors import CaseError

__all__ = ["LocalNoise", "checked_profile", "local_noise", "noise_of_pairs"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LocalNoise:
    """Gain and noise of a multiplying region.

    Parameters
    ----------
    profile
        M(x) at the nodes, f8 of shape (N,).
    gain
        Mean gain of the primary pairs.
    excess
        Excess noise factor F.
    intensity
        I0 M^2 F in the unit of the primary pairs: the spectral density of the current's noise is 2 q times this.
    """

    profile: Floats
    gain: float
    excess: float
    intensity: float


def local_noise(
    alpha: ArrayLike,
    beta: ArrayLike,
    lengths: ArrayLike,
    primary: ArrayLike,
    electrons: ArrayLike | None = None,
    holes: ArrayLike | None = None,
) -> LocalNoise:
    """Return gain and excess noise of a region from ionisation coefficients that depend on the local field.

    Parameters
    ----------
    alpha, beta
        Ionisation coefficients of electrons, which move towards larger x, and of holes on the N - 1 edges between
        nodes, 1/cm.
    lengths
        Lengths of the edges, cm, of shape (N - 1,).
    primary
        Primary pairs at the N nodes per area, in any unit of a current. Electrons injected at the first node and holes
        injected at the last one count as pairs there.
    electrons, holes
        Absolute currents of both carriers on the edges in the same unit; by default those of drift alone.

    Returns
    -------
    LocalNoise
        The result; NaN beyond breakdown, and without primary pairs.

    Raises
    ------
    CaseError
        For arrays of other shapes, and numbers that are negative or not finite.
    """
    a, b, h = (checked_profile(name, value) for name, value in (("alpha", alpha), ("beta", beta), ("lengths", lengths)))
    g = checked_profile("primary", primary, h.size + 1)
    for name, item in (("alpha", a), ("beta", b)):
        checked_profile(name, item, h.size)
    if electrons is None or holes is None:
        return noise_of_pairs(a, b, h, g)
    jn, jp = (checked_profile(name, v, h.size) for name, v in (("electrons", electrons), ("holes", holes)))
    return noise_of_pairs(a, b, h, g, (jn, jp))


def noise_of_pairs(
    a: Floats, b: Floats, h: Floats, g: Floats, currents: tuple[Floats, Floats] | None = None
) -> LocalNoise:
    """Return what `local_noise` does, of unchecked arrays.

    Primary pairs may be negative: those that are lost where others of the same gain are generated.
    """
    decrease = (a - b) * h
    level = portable.exp(-np.concatenate(([0.0], np.cumsum(decrease))))
    rest = 1.0 - math.fsum(a * h * level[:-1] * _mean_exponential(-decrease))
    total = math.fsum(g)
    if not rest > 0.0 or not total > 0.0:
        return LocalNoise(np.full(g.shape, np.nan), math.nan, math.nan, math.nan)
    profile: Floats = level / rest
    jn, jp = currents or _drift(a, b, h, g, math.fsum(g * profile))
    squares = profile[:-1] * profile[:-1] * _mean_exponential(-2.0 * decrease)
    gain = math.fsum(g * profile) / total
    intensity = math.fsum(np.concatenate((g * profile * profile, (a * jn + b * jp) * h * squares)))
    return LocalNoise(profile, gain, intensity / (total * gain * gain), intensity)


def checked_profile(name: str, value: ArrayLike, size: int | None = None) -> Floats:
    """Return an array of numbers that are not negative, of this size or any.

    Raises
    ------
    CaseError
        If the value is no such array; the error names the argument.
    """
    try:
        found = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        found = np.zeros((0, 0))
    if found.ndim != 1 or found.size == 0 or (size is not None and found.size != size):
        wanted = "one or more numbers" if size is None else f"{size} numbers"
        raise CaseError(f"{name} has the shape {np.shape(value)}", key=name, remedy=f"give a list of {wanted}")
    if not (np.isfinite(found) & (found >= 0.0)).all():
        raise CaseError(f"{name} has entries that are negative or not finite", key=name, remedy="give numbers >= 0")
    return found


def _mean_exponential(exponent: Floats) -> Floats:
    """Return the mean of exp(t) for t from 0 to each exponent."""
    safe = np.where(exponent == 0.0, 1.0, exponent)
    found: Floats = np.where(exponent == 0.0, 1.0, portable.expm1(safe) / safe)
    return found


def _drift(a: Floats, b: Floats, h: Floats, g: Floats, total: float) -> tuple[Floats, Floats]:
    """Return the mean currents of electrons and holes on the edges if all carriers drift, and their sum is `total`."""
    growth = (a - b) * h
    factor, mean = portable.exp(growth), _mean_exponential(growth)
    electrons = np.empty(h.size)
    now = 0.0
    for k in range(h.size):
        begin = now + float(g[k])
        now = begin * float(factor[k]) + float(b[k] * h[k] * mean[k]) * total
        electrons[k] = 0.5 * (begin + now)
    return electrons, np.maximum(total - electrons, 0.0)
