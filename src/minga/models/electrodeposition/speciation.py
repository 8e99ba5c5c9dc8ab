"""Ion pairs of a sulphate by local equilibrium, and the properties that they leave to the solution.

    M2+ + SO4 2- = MSO4,    [MSO4] = K g_+ g_- [M] [SO4],    log10 g = -A z^2 s / (1 + B r s) + b I,  s = sqrt(I)

with the ionic strength I of the free ions, and K, the radii r and b of phreeqc.dat of PHREEQC 3. The mobilities of the
free ions are those at infinite dilution times g^a, a = 0.6/sqrt|z| for I < 0.36 |z| and sqrt(I)/|z| above (Appelo 2010,
as described at aqion.de/sd/194). For 0.1 mol/l of CuSO4 half of the copper is in pairs, and this conductivity is 4 %
below that of PHREEQC; for ZnSO4, which also forms Zn(SO4)2 2-, it is 10 % above. Mobilities are scaled to the
conductivities that PHREEQC gives (`CONDUCTIVITIES`).

Gradients move free ions by their activity f g, f being their concentration, and pairs by their concentration:

    d_i = D_i f q / c + D_pair (1 - df/dc),      q = d ln(f g) / d ln c,      g = sqrt(g_+ g_-)

for the two ions; the diffusivity of the salt is (1 - t) d_+ + t d_-.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from minga.compile.portable import functions
from minga.models.electrodeposition.concentrated import Rows
from minga.models.electrodeposition.groups import Salt
from minga.models.electrodeposition.problem import Constants, Species

__all__ = ["MOST", "Pairs", "most_pairs", "pairs_at", "pairs_of", "rows_of", "unknown_pairs"]

LOG_K: Final = {"Zn": 2.37, "Cu": 2.31}
"""Decimal logarithm of the association constant of the sulphate, l/mol (phreeqc.dat)."""
RADII: Final = {"Zn": (5.0, 0.0), "Cu": (6.0, 0.0), "SO4": (5.0, -0.04)}
"""Radius r in angstrom and coefficient b in l/mol of the activity coefficient of an ion (phreeqc.dat)."""
DEBYE: Final = (0.509, 0.328)
"""A in (l/mol)**0.5 and B in (l/mol)**0.5 / angstrom, water at 25 C."""
LN_10: Final = 2.302585092994046
"""Natural logarithm of 10."""
PAIR: Final = 4.45e-10
"""Diffusivity of a pair, m2/s: that of MgSO4 in phreeqc.dat, which has none for zinc and copper."""
MOST: Final = 497.0
"""Concentration up to which properties are known, mol/m3: that of the last of these conductivities."""
CONDUCTIVITIES: Final = {
    "Cu": ((99.69, 0.8634), (497.5, 2.504)),
    "Zn": ((99.70, 0.7226), (498.4, 1.937)),
}
"""Conductivities of the sulphate at concentrations in mol/m3, S/m: 0.1 and 0.5 mol/kg in PHREEQC, at 25 C."""
ROUNDS: Final = 200
"""Rounds of the fixed-point iteration, whose error at least halves in each."""
ROWS: Final = 24
"""Rows of a table of properties, evenly spaced in the root of the concentration."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """The state of a solution with ion pairs.

    Attributes
    ----------
    fraction
        Fraction of the metal in pairs.
    conductivity
        Conductivity, S/m.
    transference
        Fraction of the current that the cation carries.
    diffusivity
        Diffusivity of the salt, m2/s.
    factor
        Thermodynamic factor, d ln(f g) / d ln c.
    """

    fraction: float
    conductivity: float
    transference: float
    diffusivity: float
    factor: float


def pairs_of(species: Sequence[Species], constants: Constants) -> Pairs | None:
    """Return the ion pairs of a bath of one sulphate; None for other baths and concentrated ones."""
    salt = Salt.of(species)
    if salt is None or not _known(salt) or salt.concentration > MOST:
        return None
    return pairs_at(salt, salt.concentration, constants)


def most_pairs(species: Sequence[Species], constants: Constants) -> Pairs | None:
    """Return the ion pairs at `MOST` for a more concentrated bath of one sulphate; None for other baths."""
    salt = Salt.of(species)
    if salt is None or not _known(salt) or salt.concentration <= MOST:
        return None
    return pairs_at(salt, MOST, constants)


def rows_of(species: Sequence[Species], constants: Constants) -> Rows | None:
    """Return the properties of a sulphate with ion pairs by its concentration; None for other baths."""
    salt = Salt.of(species)
    if salt is None or not _known(salt):
        return None
    c = MOST * (np.arange(ROWS + 1) / ROWS) * (np.arange(ROWS + 1) / ROWS)
    found = [pairs_at(salt, float(value), constants) for value in c]
    per_mol = [pair.conductivity / max(value, 1e-300) for pair, value in zip(found, c, strict=True)]
    tiny = 1e-9
    per_mol[0] = pairs_at(salt, tiny, constants).conductivity / tiny
    return Rows(
        c,
        np.array([pair.diffusivity for pair in found]),
        np.array(per_mol),
        np.array([pair.transference for pair in found]),
        np.array([pair.factor for pair in found]),
    )


def pairs_at(salt: Salt, concentration: float, constants: Constants) -> Pairs:
    """Return the ion pairs of a sulphate whose concentration is given in mol/m3."""
    known = CONDUCTIVITIES[salt.cation.name]
    factors = [value / _unscaled(salt, c, constants).conductivity for c, value in known]
    roots = [0.0, *(math.sqrt(c) for c, _ in known)]
    found = _unscaled(salt, concentration, constants)
    scale = float(np.interp(math.sqrt(concentration), roots, [1.0, *factors]))
    return replace(found, conductivity=scale * found.conductivity)


def _unscaled(salt: Salt, concentration: float, constants: Constants) -> Pairs:
    """Return the ion pairs, with the mobilities that follow from activity coefficients."""
    ions, whole, free = (salt.cation, salt.anion), concentration / 1e3, 0.5
    for _ in range(ROUNDS):
        strength = 4.0 * whole * free
        log_k = LOG_K[salt.cation.name] + math.fsum(_activity(ion.name, strength)[0] for ion in ions)
        constant = functions.exp(LN_10 * log_k)
        answer = 2.0 / (1.0 + math.sqrt(1.0 + 4.0 * constant * whole))
        free = 0.5 * (free + answer)
    strength = 4.0 * whole * free
    exponent = 0.6 / math.sqrt(2.0) if strength < 0.72 else 0.5 * math.sqrt(strength)
    logs, slopes = zip(*(_activity(ion.name, strength) for ion in ions), strict=True)
    mobile = [
        free * ion.diffusivity * functions.exp(LN_10 * exponent * log) for ion, log in zip(ions, logs, strict=True)
    ]
    t = mobile[0] / math.fsum(mobile)
    # With p the concentration of pairs and g' = d ln g / d ln f: dp/p = 2 (1 + g') df/f and dc = df + dp.
    growth = 1.0 + 0.5 * math.fsum(slopes)
    released = 1.0 / (1.0 + 2.0 * growth * (1.0 - free) / free)
    factor = growth * released / free
    paired = PAIR * (1.0 - released)
    diffusivities = [ion.diffusivity * free * factor + paired for ion in ions]
    per_mol = constants.faraday * constants.faraday / constants.thermal
    return Pairs(
        1.0 - free,
        4.0 * per_mol * concentration * math.fsum(mobile),
        t,
        (1.0 - t) * diffusivities[0] + t * diffusivities[1],
        factor,
    )


def unknown_pairs(species: Sequence[Species]) -> bool:
    """Return True for a bath of one salt of divalent ions, which forms pairs that are not known here."""
    salt = Salt.of(species)
    return salt is not None and not _known(salt) and salt.cation.charge >= 2 and salt.anion.charge <= -2


def _known(salt: Salt) -> bool:
    return salt.anion.name == "SO4" and salt.cation.name in LOG_K


def _activity(name: str, strength: float) -> tuple[float, float]:
    """Return log10 of the activity coefficient of a divalent ion, and its slope d ln g / d ln I."""
    a, b = DEBYE
    radius, linear = RADII[name]
    root = math.sqrt(strength)
    wide = 1.0 + b * radius * root
    slope = -2.0 * a * root / (wide * wide) + linear * strength
    return -4.0 * a * root / wide + linear * strength, LN_10 * slope
