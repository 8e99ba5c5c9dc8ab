"""Solubility products: salts of two ions of a bath that precipitate although each ion's own salt dissolves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["PRODUCTS", "Sparing"]


@dataclass(frozen=True, slots=True)
class Sparing:
    """A sparingly soluble salt.

    Attributes
    ----------
    name
        Formula of the salt.
    ions
        Number of ions of each kind in a formula unit.
    product
        Product of the ions' concentrations, to the powers of their numbers, above which the salt is oversaturated, in
        powers of mol/m3.
    """

    name: str
    ions: Mapping[str, int]
    product: float

    def within(self, names: Iterable[str]) -> bool:
        """Return whether a bath of these ions can form the salt."""
        return set(self.ions) <= set(names)

    def ratio(self, concentrations: Mapping[str, float]) -> float:
        """Return the ion product at these concentrations, mol/m3, over the solubility product."""
        return math.prod(concentrations[ion] ** number for ion, number in self.ions.items()) / self.product


PRODUCTS: Final = (Sparing("Ag2SO4", {"Ag": 2, "SO4": 1}, 1.2e-5 * 1e9),)
"""Known sparingly soluble salts of the known ions: 1.20e-5 mol3/l3 at 25 C (CRC Handbook of Chemistry and Physics,
table of solubility product constants; others give up to 1.5e-5). It is a product of activities: a saturated solution,
8.3 g/l, has an ion product of concentrations 6 times as large."""
