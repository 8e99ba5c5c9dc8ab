"""Salts and acids by name, and the species of a bath.

Diffusivities are those at 25 C in phreeqc.dat of PHREEQC 3 (U.S. Geological Survey); those of Ni 2+ and Ag+, which it
lacks, are R T l / (z F^2) of the conductivities l at infinite dilution in the CRC Handbook of Chemistry and Physics,
49.6e-4 and 61.9e-4 S m2 for a mole of charge. Density slopes of the sulphates come from tables of densities of aqueous
solutions at 20 C, that of NiSO4 from `liquids`, and that of AgNO3 from 1041.7 kg/m3 at 0.307 mol/l and 20 C (same
handbook), split evenly between both ions; that of H+ is derived likewise from sulphuric acid. Volumes of the metals are
molar mass over density; densities of nickel and silver are those of the same handbook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from minga.errors import CaseError, suggest
from minga.models.electrodeposition.problem import Species

__all__ = ["ACIDS", "METALS", "SALTS", "SATURATION", "bath", "check_species", "metal_of"]

IONS: Final = {
    "Zn": Species("Zn", 2, 0.715e-9, 0.0, 0.8e-4),
    "Cu": Species("Cu", 2, 0.733e-9, 0.0, 0.8e-4),
    "SO4": Species("SO4", -2, 1.07e-9, 0.0, 0.8e-4),
    "Ni": Species("Ni", 2, 0.660e-9, 0.0, 0.8e-4),
    "Ag": Species("Ag", 1, 1.648e-9, 0.0, 0.71e-4),
    "NO3": Species("NO3", -1, 1.9e-9, 0.0, 0.71e-4),
    "H": Species("H", 1, 9.31e-9, 0.0, -0.9e-5),
}
"""Known ions, with a bulk concentration of 0."""


@dataclass(frozen=True, slots=True)
class Electrolyte:
    """A salt or an acid: the number of ions of each kind that one formula unit gives."""

    ions: Mapping[str, int]


SALTS: Final = {
    "ZnSO4": Electrolyte({"Zn": 1, "SO4": 1}),
    "CuSO4": Electrolyte({"Cu": 1, "SO4": 1}),
    "NiSO4": Electrolyte({"Ni": 1, "SO4": 1}),
    "AgNO3": Electrolyte({"Ag": 1, "NO3": 1}),
}
"""Known salts."""
ACIDS: Final = {"H2SO4": Electrolyte({"SO4": 1, "H": 2})}
"""Known acids."""
METALS: Final = {"Zn": 65.38e-3 / 7140, "Cu": 63.55e-3 / 8960, "Ni": 58.693e-3 / 8900, "Ag": 107.868e-3 / 10500}
"""Volume of one mole of solid metal, m3/mol."""

SATURATION: Final = {"Zn": 3.3e3, "Cu": 1.3e3}
"""Concentration of the metal's ion in a saturated solution of its sulphate at 20 to 25 C, mol/m3. CuSO4: 20.3 g in
100 g of water at 20 C. ZnSO4: 54 to 58 g (handbooks differ), 3.4 to 3.6 mol in a kg of water. Acids in the bath lower
both."""

RESERVED: Final = (
    "kind",
    "potential",
    "pressure",
    "charge",
    "time",
    "x",
    "y",
    "z",
    "stern",
    "capacity",
    "reactions",
    "frumkin",
    "film",
)
"""Names of other fields and of axes, which a species cannot have."""

_ROUNDING: Final = 1e-9
"""Relative imbalance of charge below which a bath counts as neutral."""


def bath(salt: str, concentration: float, acid: str | None, acid_concentration: float) -> tuple[Species, ...]:
    """Return the species of a salt and, optionally, of an acid added to it.

    Parameters
    ----------
    salt, acid
        Names of the salt and of the acid; None for no acid.
    concentration, acid_concentration
        Concentrations of the salt and of the acid, mol/m3.

    Raises
    ------
    CaseError
        If the salt or the acid is unknown.
    """
    parts = [(_find(salt, SALTS, "electrolyte"), concentration)]
    if acid is not None:
        parts.append((_find(acid, ACIDS, "acid"), acid_concentration))
    found: dict[str, Species] = {}
    for electrolyte, moles in parts:
        for name, count in electrolyte.ions.items():
            ion = found.get(name, IONS[name])
            found[name] = replace(ion, bulk=ion.bulk + count * moles)
    return tuple(found.values())


def metal_of(species: Sequence[Species], named: str | None) -> Species:
    """Return the cation that is deposited: the one called `named`, or else the first.

    Raises
    ------
    CaseError
        If there is no such species, it is no cation, or no species is one.
    """
    names = [s.name for s in species]
    if named is not None:
        if named not in names:
            raise CaseError(
                f"there is no species {named!r}",
                key="electrodeposition.metal",
                suggestion=suggest(named, names),
                remedy=f"name one of {', '.join(names)}",
            )
        metal = species[names.index(named)]
        if metal.charge <= 0:
            raise CaseError(
                f"{named} has the charge {metal.charge}, but only cations can be deposited",
                key="electrodeposition.metal",
                remedy="name a cation, or leave it out to deposit the first one",
            )
        return metal
    cations = [s for s in species if s.charge > 0]
    if not cations:
        raise CaseError(
            "no species has a positive charge, so nothing can be deposited",
            key="electrodeposition.species",
            remedy='add a cation, such as {name = "Zn", charge = 2, diffusivity = 0.715e-9, bulk = 100.0}',
        )
    return cations[0]


def check_species(species: Sequence[Species], key: str = "electrodeposition.species") -> None:
    """Reject impossible baths: two species of one name, negative concentrations, a bulk that is not neutral."""
    names = [s.name for s in species]
    for number, ion in enumerate(species):
        if ion.name in RESERVED or ion.name.startswith("v_"):
            raise CaseError(
                f"a species cannot be called {ion.name!r}, which is a reserved name",
                key=f"{key}[{number}].name",
                remedy="choose another name",
            )
        if names.count(ion.name) > 1:
            raise CaseError(f"two species are called {ion.name!r}", key=key, remedy="give each a different name")
        if ion.bulk < 0:
            raise CaseError(
                f"the bulk concentration of {ion.name} is {ion.bulk:g} mol/m3",
                key=f"{key}[{number}].bulk",
                remedy="give 0 or more",
            )
        if ion.diffusivity <= 0:
            raise CaseError(
                f"the diffusivity of {ion.name} is {ion.diffusivity:g} m2/s",
                key=f"{key}[{number}].diffusivity",
                remedy="give a number above 0, such as 1e-9",
            )
    if not any(s.bulk for s in species if s.charge):
        raise CaseError(
            "there are no ions: no charged species has a concentration above 0, so nothing conducts",
            key=key,
            remedy="give ions of both signs a bulk concentration above 0",
        )
    total = sum(s.charge * s.bulk for s in species)
    if abs(total) > _ROUNDING * sum(abs(s.charge) * s.bulk for s in species):
        raise CaseError(
            f"the bath is not neutral: its charges sum to {total:+.6g} mol/m3 of elementary charges "
            f"({', '.join(f'{s.charge:+d} x {s.bulk:g} {s.name}' for s in species)})",
            key=key,
            remedy=_neutral(species, total),
        )


def _neutral(species: Sequence[Species], total: float) -> str:
    """Return advice on the concentration that would make a bath neutral."""
    for ion in reversed(species):
        if ion.charge and (wanted := ion.bulk - total / ion.charge) >= 0:
            return f"with {wanted:.6g} mol/m3 of {ion.name} it would be neutral"
    return "add an ion of the opposite sign"


def _find(name: str, known: Mapping[str, Electrolyte], what: str) -> Electrolyte:
    if name not in known:
        raise CaseError(
            f"there is no {what} {name!r}",
            key=f"electrodeposition.{what}",
            suggestion=suggest(name, known),
            remedy=f"name one of {', '.join(known)}, or list the ions: "
            'species = [{name = "Zn", charge = 2, diffusivity = 0.715e-9, bulk = 100.0}, ...]',
        )
    return known[name]
