"""Bisulphate and ion pairs of a sulphate bath with acid by local equilibrium: the constants, and the state of the bath.

    H+ + SO4 2- = HSO4-,    M2+ + SO4 2- = MSO4

with the constants, radii and diffusivities of phreeqc.dat of PHREEQC 3. Activity coefficients of ions with a radius are
log10 g = -A z^2 s / (1 + B r s) + b I, s = sqrt(I), and that of HSO4- is Davies's. Mobilities at infinite dilution are
multiplied by g^a as in `speciation`. Above an ionic strength of about 1 mol/l, numbers are rough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from minga.compile.portable import functions
from minga.lang.expr import Node
from minga.models.electrodeposition.problem import Constants, Species
from minga.models.electrodeposition.speciation import DEBYE, LN_10, LOG_K, RADII

__all__ = ["MOBILE", "Acid", "acid_of", "activities", "constants_of", "slopes"]

N = TypeVar("N", float, Node)

BISULPHATE: Final = 1.988
"""Decimal logarithm of the association constant of HSO4-, l/mol (phreeqc.dat)."""
MOBILE: Final = 1.33e-9
"""Diffusivity of HSO4-, m2/s (phreeqc.dat)."""
PROTON: Final = (9.0, 0.0)
"""Radius in angstrom and coefficient b of H+ (phreeqc.dat)."""
ROUNDS: Final = 200
"""Rounds of the iteration for the ionic strength."""
HALVINGS: Final = 100
"""Halvings of the interval of the free sulphate."""


@dataclass(frozen=True, slots=True)
class Acid:
    """The state of an acid sulphate bath.

    Attributes
    ----------
    bisulphate
        Fraction of the acid's H+ in HSO4-.
    paired
        Fraction of the metal in pairs with sulphate.
    free
        Free sulphate, mol/l.
    strength
        Ionic strength, mol/l.
    conductivity
        Conductivity, S/m.
    activities
        Logarithms of the activities of metal, H+ and sulphate over their total concentrations.
    """

    bisulphate: float
    paired: float
    free: float
    strength: float
    conductivity: float
    activities: tuple[float, float, float] = (0.0, 0.0, 0.0)


def acid_of(species: Sequence[Species], constants: Constants) -> Acid | None:
    """Return the state of a bath of one sulphate with sulphuric acid; None for other baths."""
    present = {s.name: s for s in species if s.bulk > 0}
    metals = [name for name in LOG_K if name in present]
    if set(present) != {*metals, "H", "SO4"} or len(metals) > 1:
        return None
    proton, sulphate = present["H"], present["SO4"]
    metal = present[metals[0]] if metals else None
    totals = [0.0 if metal is None else metal.bulk / 1e3, proton.bulk / 1e3, sulphate.bulk / 1e3]
    strength, logs, parts = totals[2], (0.0, 0.0, 0.0, 0.0), (0.0, 0.0, totals[2])
    for _ in range(ROUNDS):
        name, root = None if metal is None else metal.name, math.sqrt(strength)
        logs = activities(name, strength, root)
        pair, acid = (
            0.0 if log_k is None else functions.exp(LN_10 * log_k) for log_k in constants_of(name, strength, root)
        )
        free = _free(totals, pair, acid)
        parts = totals[0] / (1.0 + pair * free), totals[1] / (1.0 + acid * free), free
        found = 0.5 * (4.0 * parts[0] + parts[1] + 4.0 * free + (totals[1] - parts[1]))
        strength = 0.5 * (strength + found)
    held = totals[1] - parts[1]
    carriers = [
        (2, 0.0 if metal is None else metal.diffusivity, parts[0], logs[0]),
        (1, proton.diffusivity, parts[1], logs[1]),
        (2, sulphate.diffusivity, parts[2], logs[2]),
        (1, MOBILE, held, logs[3]),
    ]
    per_mol = constants.faraday * constants.faraday / constants.thermal
    carried = math.fsum(
        z * z * d * 1e3 * c * functions.exp(LN_10 * _exponent(z, strength) * log) for z, d, c, log in carriers
    )
    shares = [part / total if total else 1.0 for part, total in zip(parts, totals, strict=True)]
    return Acid(
        held / totals[1],
        1.0 - shares[0],
        parts[2],
        strength,
        per_mol * carried,
        (
            functions.log(shares[0]) + LN_10 * logs[0],
            functions.log(shares[1]) + LN_10 * logs[1],
            functions.log(shares[2]) + LN_10 * logs[2],
        ),
    )


def _free(totals: Sequence[float], pair: float, acid: float) -> float:
    """Return the free sulphate, mol/l, by halving; the sum of its forms grows with it."""
    low, high = 0.0, totals[2]
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        held = totals[0] * pair * middle / (1.0 + pair * middle) + totals[1] * acid * middle / (1.0 + acid * middle)
        low, high = (low, middle) if middle + held > totals[2] else (middle, high)
    return 0.5 * (low + high)


def constants_of(metal: str | None, strength: N, root: N) -> tuple[N | None, N]:
    """Return log10 of the constants for concentrations in mol/l: of pairs (None without a metal) and of HSO4-."""
    logs = activities(metal, strength, root)
    pair = None if metal is None else LOG_K[metal] + logs[0] + logs[2]
    return pair, BISULPHATE + logs[1] + logs[2] - logs[3]


def activities(metal: str | None, strength: N, root: N) -> tuple[N, N, N, N]:
    """Return log10 of the activity coefficients of metal, H+, sulphate and bisulphate.

    Parameters
    ----------
    metal
        Name of the metal's ion; None for none.
    strength, root
        Ionic strength, mol/l, and its square root.
    """
    a, b = DEBYE

    def extended(z: int, radius: float, linear: float) -> N:
        return -a * z * z * root / (1.0 + b * radius * root) + linear * strength

    davies = -a * (root / (1.0 + root) - 0.3 * strength)
    return (
        0.0 * root if metal is None else extended(2, *RADII[metal]),
        extended(1, *PROTON),
        extended(2, *RADII["SO4"]),
        davies,
    )


def slopes(metal: str | None, strength: N, root: N) -> tuple[N, N, N, N]:
    """Return the derivatives of `activities` by the ionic strength, l/mol; the strength must be above 0."""
    a, b = DEBYE

    def extended(z: int, radius: float, linear: float) -> N:
        wide = 1.0 + b * radius * root
        return -0.5 * a * z * z / (root * wide * wide) + linear

    davies = -a * (0.5 / (root * (1.0 + root) * (1.0 + root)) - 0.3)
    return (
        0.0 * strength if metal is None else extended(2, *RADII[metal]),
        extended(1, *PROTON),
        extended(2, *RADII["SO4"]),
        davies,
    )


def _exponent(charge: int, strength: float) -> float:
    """Return the exponent of the activity coefficient in the mobility (Appelo 2010)."""
    return 0.6 / math.sqrt(charge) if strength < 0.36 * charge else math.sqrt(strength) / charge
