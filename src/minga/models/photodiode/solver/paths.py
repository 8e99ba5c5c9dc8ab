"""Functions of whole fields that ionisation with dead space follows from: the paths of carriers through a device.

They solve the equation of `minga.models.photodiode.solver.history` edge after edge, in the order that carriers pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.models.photodiode.recurrence import weights_of
from minga.models.photodiode.solver.physics import WEAKEST
from minga.models.photodiode.solver.thresholds import DeadSpace

__all__ = ["LEAST", "Paths", "Starts", "ionised", "totals"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SLIGHT: Final = 1e-3
"""Energy in eV at which a carrier has entered the field."""
_ROOM: Final = 1e-9
"""Relative difference up to which energies may differ by rounding."""
LEAST: Final = 1e-3
"""Field in V/cm below which the energy that carriers gain is that of this field: nothing in neutral layers."""


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """The functions of whole fields that a Program calls.

    ionising    edges between nodes with coefficients of electrons and of holes
    pieces      number of pieces of the coefficient of electrons
    space       threshold energies
    """

    ionising: tuple[Bools, Bools]
    pieces: int
    space: DeadSpace

    def depths(self, half: Floats, step: Floats, *rates: Floats) -> tuple[Floats | float, ...]:
        """Return the depths of both carriers, the longest dead space in mean free paths, and its edge."""
        slope = step[1:-1]
        longest = np.zeros(slope.size)
        found: list[Floats] = []
        for k, (threshold, local) in enumerate(zip(self.thresholds, rates, strict=True)):
            depth = np.zeros(local.size)
            if threshold > 0.0:
                rate, free = self.space.beyond(local[1:-1], np.maximum(np.abs(slope), WEAKEST), threshold)
                longest = np.maximum(longest, free)
                for part, lengths, strength in self.stretches(k, slope, half):
                    depth[1:-1][part] = _depth(rate[part], lengths, strength, threshold)
            found.append(depth)
        worst = int(np.argmax(longest))
        return *found, float(longest[worst]), worst

    def shares(
        self, half: Floats, electrons: Floats, holes: Floats, step: Floats, *others: Floats
    ) -> tuple[Floats, ...]:
        """Return the coefficients `a` of both carriers, times the shares of the pairs with dead space.

        `others` are the known fields of both carriers, then their coefficients of the local model.
        """
        slope, known, given = step[1:-1], others[:8], others[8:]
        found: list[Floats] = []
        for k, (flux, threshold) in enumerate(zip((electrons, holes), self.thresholds, strict=True)):
            local, *passing = (item[1:-1] for item in known[4 * k : 4 * k + 4])
            share = np.ones(slope.size)
            if threshold > 0.0:
                share[self.ionising[k]] = 0.0
                size = np.abs(flux[1:-1])
                for part, lengths, strength in self.stretches(k, slope, half):
                    events = _events([item[part] for item in passing], lengths, strength, size[part], threshold)
                    plain = local[part] * lengths * size[part]
                    share[part] = np.where(plain > 0.0, events / np.where(plain > 0.0, plain, 1.0), 0.0)
            own = given[self.pieces :] if k else given[: self.pieces]
            found += [np.concatenate((one[:1], one[1:-1] * share, one[-1:])) for one in own]
        return tuple(found)

    @property
    def thresholds(self) -> tuple[float, float]:
        """Threshold energies of electrons and holes, eV."""
        return self.space.electrons, self.space.holes

    def stretches(self, k: int, slope: Floats, half: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
        """Yield the stretches of carrier `k`, with the lengths of their edges and the field on them.

        `half` has half the length of each edge, the outer ones included.
        """
        gained, edges = np.maximum(np.abs(slope), LEAST), 2.0 * half[1:-1]
        toward = -slope if k else slope
        for part in _stretches(self.ionising[k], toward, gained * edges, self.thresholds[k]):
            yield part, edges[part], gained[part]


def _stretches(ionising: Bools, slope: Floats, energy: Floats, threshold: float) -> Iterator[slice]:
    """Yield stretches of edges with coefficients through which carriers move one way, in the order they pass them.

    Carriers move to larger x where `slope` is positive. Stretches on which they gain less than the threshold energy are
    left out; there are many in neutral layers.
    """
    kind = np.where(ionising, np.where(slope >= 0.0, 1, -1), 0)
    ends = np.concatenate(([0], np.flatnonzero(np.diff(kind)) + 1, [kind.size]))
    enough = np.add.reduceat(energy, ends[:-1]) > threshold * (1.0 - _ROOM)
    for k in np.flatnonzero(enough & (kind[ends[:-1]] != 0)):
        low, high = int(ends[k]), int(ends[k + 1])
        yield slice(low, high) if kind[low] > 0 else slice(high - 1, low - 1 if low else None, -1)


def ionised(rate: Floats, lengths: Floats, strength: Floats, flux: Floats, threshold: float) -> Floats:
    """Return the pairs that carriers generate on each edge, per unit of time and area of the flux.

    Parameters
    ----------
    rate
        Ionisation coefficient of carriers beyond their dead space, 1/cm, on edges in the order they are passed.
    lengths, strength
        Lengths of the edges, cm, and field on them, V/cm, positive.
    flux
        Flux of the carriers on the edges.
    threshold
        Energy to gain before each ionisation, eV.

    Returns
    -------
    NDArray
        The pairs, f8 of the shape of `rate`.
    """
    depth = _depth(rate, lengths, strength, threshold)
    return _events([depth, portable.exp(-depth), -portable.expm1(-depth)], lengths, strength, flux, threshold)


def _depth(rate: Floats, lengths: Floats, strength: Floats, threshold: float) -> Floats:
    """Return the mean number of ionisations on each edge by a carrier that passes it, 0 before the threshold energy."""
    energy = np.cumsum(strength * lengths)
    found: Floats = rate * lengths * np.clip((energy - threshold) / (strength * lengths), 0.0, 1.0)
    return found


def _events(passing: Sequence[Floats], lengths: Floats, strength: Floats, flux: Floats, threshold: float) -> Floats:
    """Return the pairs on each edge as `ionised`; `passing` are depth, left and whole of `_Carrier`."""
    depth, left, whole = passing
    if not depth.any():
        return np.zeros(lengths.size)
    found: Floats = np.diff(np.array(totals(depth, left, whole, Starts.of(lengths, strength, flux, threshold))[0]))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Starts:
    """Starts of the carriers that gain the threshold energy up to the end of each edge.

    nodes, energy    places of the nodes, cm, and energy gained up to them, eV
    middles          places at which fluxes are known: the ends and the middles of edges
    begun            where the carriers began: in an edge of number `edge`, after a `share` of it
    start            place from which on carriers count
    passed           flux there
    """

    nodes: Floats
    energy: Floats
    middles: Floats
    begun: Floats
    edge: NDArray[np.int64]
    share: Floats
    start: float
    passed: Floats

    @classmethod
    def of(cls, lengths: Floats, strength: Floats, flux: Floats, threshold: float) -> Starts:
        """Return the starts on a stretch."""
        nodes, energy = (np.concatenate(([0.0], np.cumsum(part))) for part in (lengths, strength * lengths))
        middles = np.concatenate((nodes[:1], 0.5 * (nodes[1:] + nodes[:-1]), nodes[-1:]))
        begun = np.interp(energy[1:] - threshold, energy, nodes)
        edge = np.minimum(np.searchsorted(nodes, begun, side="right") - 1, np.arange(lengths.size))
        share = (begun - nodes[edge]) / lengths[edge]
        # Carriers come from where the field begins: those in a neutral layer before it may flow back to a contact.
        start = float(np.interp(min(SLIGHT, threshold), energy, nodes))
        passed = np.interp(np.maximum(begun, start), middles, np.concatenate((flux[:1], flux, flux[-1:])))
        return cls(nodes, energy, middles, begun, edge, share, start, passed)


def totals(depth: Floats, left: Floats, whole: Floats, starts: Starts) -> tuple[list[float], list[float]]:
    """Return the ionisations Q up to each node, and J(x*) + Q(x*) at the end of each edge."""
    late, early = weights_of(depth, left, whole)
    # On the edges before `begin` nothing ionises.
    begin = int(np.argmax(depth > 0.0))
    known = (left, early, late, starts.edge, starts.share, starts.passed)
    steps = zip(*(item[begin:].tolist() for item in known), strict=True)
    total, source = [0.0] * (begin + 1), float(starts.passed[max(begin - 1, 0)])
    sources = [source] * begin
    for k, (stays, first, last, j, part, through) in enumerate(steps, begin):
        # dQ/dx = a (S - Q) with a linear S = J(x*) + Q(x*); where x* is on the same edge, Q(x*) depends on its end.
        now, rest = total[k], total[k] * stays + first * source
        if j < k:
            source = through + total[j] + part * (total[j + 1] - total[j])
            end = rest + last * source
        else:
            end = (rest + last * (through + now * (1.0 - part))) / (1.0 - last * part)
            source = through + now + part * (end - now)
        total.append(max(end, now))
        sources.append(source)
    return total, sources
