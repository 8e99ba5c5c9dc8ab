"""The ions of a case: those of a named bath, or those that it lists."""

from __future__ import annotations

from minga.errors import CaseError
from minga.models.electrodeposition.electrolytes import bath, check_species
from minga.models.electrodeposition.problem import Species
from minga.models.electrodeposition.settings import ElectrodepositionSettings

__all__ = ["species_of"]


def species_of(settings: ElectrodepositionSettings) -> tuple[Species, ...]:
    """Return the ions of a named bath, of a table, or the default ions of a scaled problem.

    Raises
    ------
    CaseError
        If the case does not specify its bath, does so twice, or describes an impossible one.
    """
    named = [name for name in ("concentration", "acid", "acid_concentration") if getattr(settings, name) is not None]
    if settings.species is not None:
        for name in ("electrolyte", *named):
            if getattr(settings, name) is not None:
                raise CaseError(
                    f"both species and {name} are given",
                    key=f"electrodeposition.{name}",
                    remedy="specify the bath either by name or ion by ion",
                )
        species = tuple(Species(s.name, s.charge, s.diffusivity, s.bulk, s.expansion) for s in settings.species)
        check_species(species)
        return species
    if settings.electrolyte is None:
        if settings.scaled and not named:
            return Species("cation", 1, 1.0, 1.0), Species("anion", -1, 1.0, 1.0)
        raise CaseError(
            "the case does not say what is in the bath",
            key="electrodeposition.electrolyte",
            remedy='write electrolyte = "ZnSO4" and concentration = "0.1 M", or list the ions as species',
        )
    if settings.scaled:
        raise CaseError(
            f"a scaled case cannot use {settings.electrolyte}, whose diffusivities are in m2/s",
            key="electrodeposition.electrolyte",
            remedy="leave it out, or list scaled species",
        )
    return _bath(settings, settings.electrolyte)


def _bath(settings: ElectrodepositionSettings, salt: str) -> tuple[Species, ...]:
    for name, wanted in (("concentration", True), ("acid_concentration", settings.acid is not None)):
        value = getattr(settings, name)
        key = f"electrodeposition.{name}"
        if wanted and value is None:
            raise CaseError(f"{name!r} is missing", key=key, remedy=f'write {name} = "0.1 M"')
        if not wanted and value is not None:
            raise CaseError("there is no acid", key=key, remedy='write acid = "H2SO4", or leave it out')
        if value is not None and (value < 0 or (value == 0 and name == "concentration")):
            raise CaseError(
                f"invalid concentration: {value:g} mol/m3", key=key, remedy='give a value above 0, such as "0.1 M"'
            )
    species = bath(salt, settings.concentration or 0.0, settings.acid, settings.acid_concentration or 0.0)
    check_species(species, "electrodeposition.electrolyte")
    return species
