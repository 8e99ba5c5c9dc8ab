"""Noise of multiplication of carriers that drift through the profile of the field, with ionisation local or not.

With dead space, pairs at each node become clusters whose mean size and mean square follow from the recurrences of
`minga.models.photodiode.recurrence`, and every cluster is an independent event. As currents do
(`minga.models.photodiode.solver.history`), carriers enter each material, and each stretch against whose field they
would have to move, without energy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minga.models.photodiode.noise import noise_of_pairs
from minga.models.photodiode.recurrence import Stretch, moments, passage
from minga.models.photodiode.solver.paths import LEAST
from minga.models.photodiode.solver.physics import WEAKEST
from minga.models.photodiode.solver.thresholds import DeadSpace
from minga.models.photodiode.structure.device import Device

__all__ = ["NoiseProfile"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class NoiseProfile:
    """The function of profiles that a Program calls.

    lengths     of the edges between nodes, cm
    thermal     thermal voltage, V: potentials are in kT/q
    ionising    edges with coefficients of electrons and of holes
    space       threshold energies; None: ionisation is local
    """

    lengths: Floats
    thermal: float
    ionising: tuple[Bools, Bools]
    space: DeadSpace | None

    @classmethod
    def of(cls, device: Device, space: DeadSpace | None) -> NoiseProfile:
        """Return that of a device with one axis."""
        electrons, holes = (own[0].a[0][1:-1] != 0.0 for own in (device.ionisation_n, device.ionisation_p))
        return cls(device.lengths[0][1:-1], device.thermal_voltage, (electrons, holes), space)

    def noise(
        self, alpha: Floats, beta: Floats, generation: Floats, volume: Floats, electrons: Floats, holes: Floats,
        net: Floats, potential: Floats, collected: Floats,
    ) -> tuple[float, ...]:  # fmt: skip
        """Return gain, excess noise factor and collection of the light, intensity of the whole noise, and a direction.

        The direction is that in which electrons drift where the field is strongest: 1 towards larger x, -1 smaller x.
        """
        field = np.diff(potential) * self.thermal / self.lengths
        sign = 1.0 if field[np.argmax(np.abs(field))] >= 0.0 else -1.0
        way = slice(None, None, int(sign))
        rates = alpha[1:-1][way], beta[1:-1][way]
        pairs = generation * volume
        light = np.maximum(pairs * collected, 0.0)[way]
        share = math.fsum(pairs * collected) / math.fsum(pairs)
        primary = -net[way]
        primary[0] -= sign * float(electrons[1:-1][way][0])
        primary[-1] -= sign * float(holes[1:-1][way][-1])
        if self.space is None:
            seen = noise_of_pairs(*rates, self.lengths[way], light)
            whole = noise_of_pairs(*rates, self.lengths[way], primary).intensity
            return seen.gain, seen.excess, share, whole, sign
        gains, squares = self._clusters(self.space, rates, sign * field[way], way)
        total = math.fsum(light)
        gain = math.fsum(light * gains) / total if total > 0.0 else math.nan
        excess = math.fsum(light * squares) / (total * gain * gain) if total > 0.0 else math.nan
        return gain, excess, share, math.fsum(primary * squares), sign

    def _clusters(
        self, space: DeadSpace, rates: tuple[Floats, Floats], field: Floats, way: slice
    ) -> tuple[Floats, Floats]:
        """Return mean size and mean square of the cluster of a pair at each node, in the order of electrons."""
        lengths, passages = self.lengths[way], []
        strength = np.maximum(np.abs(field), LEAST)
        for k, threshold in enumerate((space.electrons, space.holes)):
            order = slice(None, None, -1 if k else 1)
            inside = (self.ionising[k][way] & (field >= 0.0))[order]
            rate = space.beyond(rates[k], np.maximum(strength, WEAKEST), threshold)[0]
            edges = (rate[order], lengths[order], strength[order])
            passages.append(passage(field.size + 1, _stretches(inside, *edges), threshold))
        return moments(passages[0], passages[1].mirrored())


def _stretches(inside: Bools, rate: Floats, lengths: Floats, field: Floats) -> Iterator[Stretch]:
    """Yield the stretches of edges on which carriers ionise."""
    ends = np.concatenate(([0], np.flatnonzero(np.diff(inside)) + 1, [inside.size]))
    for low, high in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        if inside[low]:
            yield Stretch(low, rate[low:high], lengths[low:high], field[low:high])
