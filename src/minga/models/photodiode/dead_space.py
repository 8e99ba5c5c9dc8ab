"""Gain and excess noise with dead space: carriers ionise only after a distance from birth or the last ionisation.

They follow from the recurrences of `minga.models.photodiode.recurrence`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minga.errors import CaseError
from minga.models.photodiode.noise import checked_profile
from minga.models.photodiode.recurrence import Stretch, moments, passage

__all__ = ["DeadSpaceNoise", "dead_space_noise"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class DeadSpaceNoise:
    """Gain and excess noise of pairs born at each node, f8 of shape (N,).

    Electrons injected at the first node are `gain[0]` and `excess[0]`, holes injected at the last one `gain[-1]` and
    `excess[-1]`.

    Parameters
    ----------
    gain
        Mean gain.
    excess
        Excess noise factor.
    """

    gain: Floats
    excess: Floats


def dead_space_noise(
    alpha: ArrayLike,
    beta: ArrayLike,
    lengths: ArrayLike,
    field: ArrayLike,
    threshold_n: float,
    threshold_p: float,
    *,
    local: bool = False,
) -> DeadSpaceNoise:
    """Return gain and excess noise of a region in which carriers first have to gain a threshold energy.

    Electrons move towards larger x.

    Parameters
    ----------
    alpha, beta
        Ionisation coefficients of electrons and holes beyond their dead space on the N - 1 edges between nodes, 1/cm.
    lengths
        Lengths of the edges, cm, of shape (N - 1,). Work grows with N^3; some hundred edges are accurate to 1e-5.
    field
        Absolute field on the edges, V/cm, positive.
    threshold_n, threshold_p
        Threshold energies of electrons and holes, eV, of fits rather than the gap; 0: no dead space.
    local
        Whether `alpha` and `beta` are coefficients without dead space, whose mean free path 1/alpha then includes it.

    Returns
    -------
    DeadSpaceNoise
        The result; NaN beyond breakdown.

    Raises
    ------
    CaseError
        For arrays of other shapes, numbers that are negative or not finite, and dead spaces longer than a mean free
        path if `local` is set.
    """
    h = checked_profile("lengths", lengths)
    a, b, e = (checked_profile(n, v, h.size) for n, v in (("alpha", alpha), ("beta", beta), ("field", field)))
    for name, edges in (("lengths", h), ("field", e)):
        if not (edges > 0.0).all():
            raise CaseError(f"{name} has entries that are 0", key=name, remedy="give positive numbers")
    limits = [
        float(checked_profile(n, [v])[0]) for n, v in (("threshold_n", threshold_n), ("threshold_p", threshold_p))
    ]
    if local:
        a, b = (_enabled(*item) for item in (("alpha", a, e, limits[0]), ("beta", b, e, limits[1])))
    parts = [Stretch(0, *item) for item in ((a, h, e), (b[::-1], h[::-1], e[::-1]))]
    electrons, holes = (passage(h.size + 1, [part], limit) for part, limit in zip(parts, limits, strict=True))
    gain, square = moments(electrons, holes.mirrored())
    return DeadSpaceNoise(gain, square / (gain * gain))


def _enabled(name: str, rate: Floats, field: Floats, threshold: float) -> Floats:
    """Return the coefficient beyond the dead space of one whose mean free path includes it."""
    share = rate * threshold / field
    if (share >= 1.0).any():
        k = int(np.argmax(share))
        raise CaseError(
            f"edge {k}: the dead space is {share[k]:.3g} times the mean free path 1/{name}",
            key=name,
            remedy="give a smaller threshold energy, or coefficients beyond the dead space without local=True",
        )
    found: Floats = rate / (1.0 - share)
    return found
