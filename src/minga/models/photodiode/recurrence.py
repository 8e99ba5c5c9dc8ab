"""Recurrences of Hayat, Saleh and Teich for carriers with dead space: mean and mean square numbers of pairs.

IEEE Trans. Electron Devices 39, 546 (1992). An electron born at x becomes on average z(x) carriers, with the mean
square z2, and a hole y and y2. With x* as the place where an electron born at x has gained the threshold energy, and S
as the probability that it reaches W without ionising,

    z(x) = S(x) + integral from x* to W of (2 z + y)(s) a exp(-integral of a from x* to s) ds

and the same kernel with 2 z2 + y2 + 4 z y + 2 z^2 for z2; y and y2 are mirrored. They are solved as linear systems,
with exact integrals of linear functions times exponentials. A carrier that leaves a material in which it ionises enters
the next one without energy: with this place as W, S is multiplied by z(W), or z2(W).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.solve.refinement import Term, refined

__all__ = ["Passage", "Stretch", "moments", "passage", "weights_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Edges of one material in the order in which a carrier passes them.

    begin     node at which the first one begins, counted in this order
    rate      ionisation coefficient beyond the dead space, 1/cm
    lengths   cm
    field     V/cm, positive
    """

    begin: int
    rate: Floats
    lengths: Floats
    field: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """Fate of a carrier that begins at each of N nodes.

    kernel    (N, N) weights that integrate a function given at the nodes over the place of the first ionisation
    onward    (N, N) probability of passing without ionising to a node, from where it begins anew
    leaves    (N,) probability of leaving the device
    """

    kernel: Floats
    onward: Floats
    leaves: Floats

    def mirrored(self) -> Passage:
        """Return it with nodes in the opposite order."""
        return Passage(self.kernel[::-1, ::-1], self.onward[::-1, ::-1], self.leaves[::-1])


def passage(count: int, stretches: Iterable[Stretch], threshold: float) -> Passage:
    """Return the passage of carriers through `count` nodes; between the stretches they do not ionise."""
    kernel, onward = np.zeros((count, count)), np.zeros((count, count))
    leaves, last = np.zeros(count), 0
    for part in stretches:
        onward[last : part.begin, part.begin] = 1.0
        last = part.begin + part.rate.size
        inside = slice(part.begin, last)
        survives, weights = _kernel(part.rate, part.lengths, part.field, threshold)
        kernel[inside, part.begin : last + 1] = weights[:-1]
        if last < count - 1:
            onward[inside, last] = survives[:-1]
        else:
            leaves[inside] = survives[:-1]
    leaves[last:] = 1.0
    return Passage(kernel, onward, leaves)


def moments(electrons: Passage, holes: Passage) -> tuple[Floats, Floats]:
    """Return mean and mean square of the pairs that a pair at each node becomes, itself included; NaN beyond breakdown.

    Parameters
    ----------
    electrons, holes
        Passage of both carriers, with nodes in the same order.
    """
    n, p = electrons.kernel, holes.kernel
    count = len(n)
    system = _System.of(np.block([[2.0 * n + electrons.onward, n], [p, 2.0 * p + holes.onward]]))
    leaves = np.concatenate((electrons.leaves, holes.leaves))
    first = system.solved(leaves)
    if not (first > 0.0).all():
        return np.full(count, np.nan), np.full(count, np.nan)
    z, y = first[:count], first[count:]
    pairs = 4.0 * z * y
    sources = ((n * (pairs + 2.0 * z * z)).sum(axis=1), (p * (pairs + 2.0 * y * y)).sum(axis=1))
    second = system.solved(leaves + np.concatenate(sources))
    return 0.5 * (z + y), 0.25 * (second[:count] + second[count:] + 2.0 * z * y)


@dataclass(frozen=True, slots=True, eq=False)
class _System:
    """Equations x = source + matrix x, of which those for the places where something begins are solved.

    used      these places
    onto      columns of the matrix for them
    entries   1 minus their part of the matrix
    inverse   its inverse, to round-off; NaN if it has none
    """

    used: NDArray[np.int64]
    onto: Floats
    entries: Sequence[Term]
    inverse: Floats

    @classmethod
    def of(cls, matrix: Floats) -> _System:
        """Return the system of a matrix."""
        used = np.flatnonzero(matrix.any(axis=0))
        inner = np.eye(used.size) - matrix[np.ix_(used, used)]
        every = (slice(None),)
        entries = [Term(0, 0, every, (slice(k, k + 1),), inner[:, k].copy()) for k in range(used.size)]
        try:
            inverse = np.linalg.inv(inner).astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            inverse = np.full_like(inner, np.nan)
        return cls(used, matrix[:, used], entries, inverse)

    def solved(self, source: Floats) -> Floats:
        """Return the solution for a source, with the same bits on every processor."""
        if not self.used.size:
            return source
        begun = refined(self.entries, source[None, self.used], lambda right: (self.inverse @ right[0])[None])
        found: Floats = source + (self.onto * begun[0]).sum(axis=1)
        return found


def _kernel(rate: Floats, lengths: Floats, field: Floats, threshold: float) -> tuple[Floats, Floats]:
    """Return the probability that a carrier born at each node leaves without ionising, and the weights of its kernel.

    The weights, of shape (N, N), integrate a function given at the nodes over the place of the first ionisation.
    """
    count = lengths.size + 1
    free, energy = (np.concatenate(([0.0], np.cumsum(part * lengths))) for part in (rate, field))
    depth = rate * lengths
    # Weights of the nodes of a whole edge, for carriers that enter it.
    low, high = _event_weights(depth)
    survives, kernel = np.ones(count), np.zeros((count, count))
    for k in range(count - 1):
        wanted = energy[k] + threshold
        if wanted >= energy[-1]:
            continue
        j = max(int(np.searchsorted(energy, wanted, side="right")) - 1, k)
        begun = min((wanted - energy[j]) / (energy[j + 1] - energy[j]), 1.0)
        part_low, part_high = _event_weights(np.array([depth[j] * (1.0 - begun)]))
        kernel[k, j] = float(part_low[0]) * (1.0 - begun)
        kernel[k, j + 1] = float(part_high[0]) + float(part_low[0]) * begun
        start = free[j] + depth[j] * begun
        reached = portable.exp(start - free[j + 1 :])
        kernel[k, j + 1 : -1] += reached[:-1] * low[j + 1 :]
        kernel[k, j + 2 :] += reached[:-1] * high[j + 1 :]
        survives[k] = reached[-1]
    return survives, kernel


def _event_weights(depth: Floats) -> tuple[Floats, Floats]:
    """Return the weights of both ends of edges in integrals of a linear function times the rate of a first event."""
    return weights_of(depth, portable.exp(-depth), -portable.expm1(-depth))


def weights_of(depth: Floats, left: Floats, whole: Floats) -> tuple[Floats, Floats]:
    """Return those weights, given exp(-depth) and 1 - exp(-depth)."""
    safe = np.where(depth > 0.0, depth, 1.0)
    series = depth * (0.5 - depth * (1.0 / 3.0 - 0.125 * depth))
    high = np.where(depth < 1e-4, series, (whole - depth * left) / safe)
    return whole - high, high
