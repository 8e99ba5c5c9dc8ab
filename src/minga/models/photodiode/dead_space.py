"""Gain and excess noise with dead space: carriers ionise only after a distance from birth or the last ionisation.

The recurrences are those of Hayat, Saleh and Teich (IEEE Trans. Electron Devices 39, 546 (1992)) for the mean and mean
square numbers of carriers, z and z2, that an electron born at x becomes, and y and y2 of a hole: with x* = x + de,

    z(x) = exp(-integral of a from x* to W) + integral from x* of (2 z + y)(s) a exp(-integral of a from x* to s) ds

and the same kernel with 2 z2 + y2 + 4 z y + 2 z^2 for z2; y and y2 are mirrored. They are solved as linear systems,
with exact integrals of linear functions times exponentials.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minga.compile import portable
from minga.errors import CaseError
from minga.models.photodiode.noise import checked_profile

__all__ = ["DeadSpaceNoise", "dead_space_noise", "event_weights", "weights_of"]

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
    survives_n, kernel_n = _kernel(a, h, e, limits[0])
    survives_p, kernel_p = (item[::-1] for item in _kernel(b[::-1], h[::-1], e[::-1], limits[1]))
    kernel_p = kernel_p[:, ::-1]
    count = h.size + 1
    matrix = np.eye(2 * count) - np.block([[2.0 * kernel_n, kernel_n], [kernel_p, 2.0 * kernel_p]])
    first = np.linalg.solve(matrix, np.concatenate((survives_n, survives_p)))
    z, y = first[:count], first[count:]
    pairs = 4.0 * z * y
    sources = (
        survives_n + (kernel_n * (pairs + 2.0 * z * z)).sum(axis=1),
        survives_p + (kernel_p * (pairs + 2.0 * y * y)).sum(axis=1),
    )
    second = np.linalg.solve(matrix, np.concatenate(sources))
    if not (first > 0.0).all():
        return DeadSpaceNoise(np.full(count, np.nan), np.full(count, np.nan))
    whole = z + y
    return DeadSpaceNoise(0.5 * whole, (second[:count] + second[count:] + 2.0 * z * y) / (whole * whole))


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


def _kernel(rate: Floats, lengths: Floats, field: Floats, threshold: float) -> tuple[Floats, Floats]:
    """Return the probability that a carrier born at each node leaves without ionising, and the weights of its kernel.

    The weights, of shape (N, N), integrate a function given at the nodes over the place of the first ionisation.
    """
    count = lengths.size + 1
    free, energy = (np.concatenate(([0.0], np.cumsum(part * lengths))) for part in (rate, field))
    depth = rate * lengths
    # Weights of the nodes of a whole edge, for carriers that enter it.
    low, high = event_weights(depth)
    survives, kernel = np.ones(count), np.zeros((count, count))
    for k in range(count - 1):
        wanted = energy[k] + threshold
        if wanted >= energy[-1]:
            continue
        j = max(int(np.searchsorted(energy, wanted, side="right")) - 1, k)
        begun = min((wanted - energy[j]) / (energy[j + 1] - energy[j]), 1.0)
        part_low, part_high = event_weights(np.array([depth[j] * (1.0 - begun)]))
        kernel[k, j] = float(part_low[0]) * (1.0 - begun)
        kernel[k, j + 1] = float(part_high[0]) + float(part_low[0]) * begun
        start = free[j] + depth[j] * begun
        reached = portable.exp(start - free[j + 1 :])
        kernel[k, j + 1 : -1] += reached[:-1] * low[j + 1 :]
        kernel[k, j + 2 :] += reached[:-1] * high[j + 1 :]
        survives[k] = reached[-1]
    return survives, kernel


def event_weights(depth: Floats) -> tuple[Floats, Floats]:
    """Return the weights of both ends of edges in integrals of a linear function times the rate of a first event."""
    return weights_of(depth, portable.exp(-depth), -portable.expm1(-depth))


def weights_of(depth: Floats, left: Floats, whole: Floats) -> tuple[Floats, Floats]:
    """Return those weights, given exp(-depth) and 1 - exp(-depth)."""
    safe = np.where(depth > 0.0, depth, 1.0)
    series = depth * (0.5 - depth * (1.0 / 3.0 - 0.125 * depth))
    high = np.where(depth < 1e-4, series, (whole - depth * left) / safe)
    return whole - high, high
