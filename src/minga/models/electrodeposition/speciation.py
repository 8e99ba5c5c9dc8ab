"""Ion pairs of a sulphate in its bulk solution, and the conductivity that they leave: an estimate for people.

    M2+ + SO4 2- = MSO4,    [MSO4] = K gamma^2 [M] [SO4],    log10 gamma = -0.509 z^2 (s/(1 + s) - 0.3 I),  s = sqrt(I)

with Davies' activity coefficient, the ionic strength I of the free ions and K of phreeqc.dat of PHREEQC 3. The
conductivity is that of the free ions at infinite dilution times gamma^a, a = 0.6/sqrt|z| for I < 0.36 |z| and
sqrt(I)/|z| above (Appelo 2010, as described at aqion.de/sd/194). It is 0.83 S/m for 0.1 mol/l of CuSO4, where PHREEQC
gives 0.863 S/m with half of the copper in pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from minga.models.electrodeposition.groups import Salt, conductivity
from minga.models.electrodeposition.problem import Constants, Species

__all__ = ["Pairs", "pairs_of"]

LOG_K: Final = {"Zn": 2.26, "Cu": 2.31}
"""Decimal logarithm of the association constant of the sulphate, l/mol (phreeqc.dat)."""
MOST: Final = 250.0
"""Concentration up to which the estimate is given, mol/m3; Davies' formula holds up to about twice that."""
ROUNDS: Final = 200
"""Rounds of the fixed-point iteration, whose error at least halves in each."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """The state of a bulk solution with ion pairs.

    Attributes
    ----------
    fraction
        Fraction of the metal in pairs.
    conductivity
        Conductivity, S/m.
    """

    fraction: float
    conductivity: float


def pairs_of(species: Sequence[Species], constants: Constants) -> Pairs | None:
    """Return the ion pairs of a bath of one sulphate; None for other baths and concentrated ones."""
    salt = Salt.of(species)
    if salt is None or salt.anion.name != "SO4" or salt.cation.name not in LOG_K or salt.concentration > MOST:
        return None
    whole, free = salt.concentration / 1e3, 0.5
    for _ in range(ROUNDS):
        constant = 10.0 ** LOG_K[salt.cation.name] * _activity(4.0 * whole * free) ** 2
        answer = 2.0 / (1.0 + math.sqrt(1.0 + 4.0 * constant * whole))
        free = 0.5 * (free + answer)
    strength = 4.0 * whole * free
    exponent = 0.6 / math.sqrt(2.0) if strength < 0.72 else 0.5 * math.sqrt(strength)
    return Pairs(1.0 - free, conductivity(species, constants) * free * _activity(strength) ** exponent)


def _activity(strength: float) -> float:
    """Return the activity coefficient of a divalent ion at an ionic strength in mol/l."""
    root = math.sqrt(strength)
    return float(10.0 ** (-0.509 * 4.0 * (root / (1.0 + root) - 0.3 * strength)))
