"""Electrode conditions as a case gives them, by name or as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from minga.errors import CaseError, suggest
from minga.models.electrodeposition.problem import (
    ButlerVolmer,
    Electrode,
    Flux,
    Held,
    Reversible,
    Species,
    Surface,
)
from minga.models.electrodeposition.quantities import Kind, quantity
from minga.models.electrodeposition.reacting import reacting_of
from minga.models.electrodeposition.settings import CONDITION_FORM, ConditionSettings
from minga.schema import validate

__all__ = ["check_pair", "electrode_of"]

WORDS: Final = ("held", "sink", "reversible", "butler-volmer", "balance", "blocked", "bath")
"""Names of conditions."""
LAYERS: Final[Mapping[str, tuple[Kind, str]]] = {
    "stern": ("length", "0.5 nm"),
    "capacity": ("capacity", "20 uF/cm2"),
    "film": ("resistance", "1 ohm cm2"),
}
"""Kind and example of the quantities of the layers at a metal."""
REACTING: Final = ("reactions", "frumkin")
"""Entries of an electrode that concern reactions of several ions."""
EXCHANGE: Final = 30.0
"""Exchange current density of copper in 10 mol/m3 of its sulphate, A/m2 (LLNL's echemfem, after Bortels 1996)."""


def electrode_of(entry: object, name: str, species: Sequence[Species], metal: Species, default: str) -> Electrode:
    """Return an electrode from a case's entry.

    Parameters
    ----------
    entry
        The name of a condition for the metal's ion, a table with one entry for each ion that passes, or None for
        `default`.
    name
        "cathode" or "anode", for error messages.
    species
        The ions of the bath.
    metal
        The ion that is deposited.
    default
        Name of the condition to use where the case gives none.
    """
    key = f"electrodeposition.{name}"
    if entry is None:
        entry = default
    if isinstance(entry, str):
        if entry == "bath":
            return Electrode({ion.name: Held(ion.bulk) for ion in species})
        surface = _word(entry, metal, key)
        return Electrode({} if surface is None else {metal.name: surface})
    if not isinstance(entry, Mapping):
        raise CaseError(f"expected a string or a table, found {entry!r}", key=key, remedy=CONDITION_FORM)
    known = {s.name: s for s in species}
    surfaces: dict[str, Surface] = {**reacting_of(entry, name, species, key)}
    for ion, said in entry.items():
        if ion in LAYERS or ion in REACTING:
            continue
        if ion not in known:
            raise CaseError(
                f"there is no species {ion!r}",
                key=f"{key}.{ion}",
                suggestion=suggest(ion, [*known, *LAYERS, *REACTING]),
                remedy=f"the species are {', '.join(known)}; stern is the thickness of a Stern layer, capacity that of "
                "a double layer, and film the resistance of a film",
            )
        found = _surface(said, known[ion], f"{key}.{ion}")
        if name == "anode" and isinstance(found, ButlerVolmer) and not found.anodic:
            raise CaseError(
                "tafel keeps only the exponential that deposits, so that nothing would dissolve at the anode",
                key=f"{key}.{ion}.tafel",
                remedy="leave it out: far from equilibrium the full kinetics follow the same line",
            )
        if found is not None:
            surfaces[ion] = found
    stern, capacity, film = (_layer(entry, layer, f"{key}.{layer}") for layer in LAYERS)
    if stern and capacity:
        raise CaseError(
            f"the {name} has both a Stern layer and a capacity",
            key=f"{key}.capacity",
            remedy="give stern where cells resolve the double layer, and capacity where they do not",
        )
    if film and (stern or capacity):
        raise CaseError(
            f"the {name} has a film and a {'Stern layer' if stern else 'capacity'}",
            key=f"{key}.film",
            remedy="leave out one of them",
        )
    return Electrode(surfaces, stern, capacity, film)


def check_pair(cathode: Electrode, anode: Electrode, current: float | None) -> None:
    """Reject electrodes of which each is to balance the other, and a current that no ion can carry."""
    for ion, surface in cathode.surfaces.items():
        if surface == Flux(None) and anode.surfaces.get(ion) == Flux(None):
            raise CaseError(
                f'{ion} has "balance" at both electrodes, so that neither determines its flux',
                key=f"electrodeposition.anode.{ion}",
                remedy='use "held", "reversible", "butler-volmer" or a flux at one of them',
            )
    for name, one, other in (("cathode", cathode, anode), ("anode", anode, cathode)):
        balancing = [ion for ion, surface in one.surfaces.items() if surface == Flux(None)]
        if len(balancing) > 1:
            raise CaseError(
                f'{" and ".join(balancing)} have "balance" at the {name}',
                key=f"electrodeposition.{name}.{balancing[1]}",
                remedy="only one ion balances; give the conditions of the others",
            )
        if current is not None and balancing:
            raise CaseError(
                f'{balancing[0]} has "balance" at the {name} and the current is given, which leaves the voltage '
                "undetermined",
                key=f"electrodeposition.{name}.{balancing[0]}",
                remedy='use "held", "reversible" or "butler-volmer" there, or give the voltage',
            )
        if current is not None and one.surfaces and all(isinstance(s, Flux) for s in one.surfaces.values()):
            raise CaseError(
                f"all fluxes at the {name} are prescribed, so the current follows from them and cannot also be given",
                key=f"electrodeposition.{name}",
                remedy='give a voltage instead of the current, or use "held", "reversible" or "butler-volmer" for an '
                "ion there",
            )
        for ion, surface in one.surfaces.items():
            if surface == Flux(None) and ion not in other.surfaces:
                raise CaseError(
                    f'{ion} has "balance" at the {name}, but it does not pass at the other electrode',
                    key=f"electrodeposition.{name}",
                    remedy="give its condition at the other electrode",
                )
    if current and not (cathode.surfaces and anode.surfaces):
        name = "anode" if cathode.surfaces else "cathode"
        raise CaseError(
            f"a current of {current:g} A/m2 is given, but no ion passes at the {name}",
            key=f"electrodeposition.{name}",
            remedy=CONDITION_FORM,
        )


def _surface(said: object, ion: Species, key: str) -> Surface | None:
    if isinstance(said, str):
        return _word(said, ion, key)
    if not isinstance(said, Mapping):
        raise CaseError(f"expected a string or a table, found {said!r}", key=key, remedy=CONDITION_FORM)
    table = validate(ConditionSettings, said, key)
    given = [name for name in ("held", "flux", "exchange", "reversible") if getattr(table, name) is not None]
    if len(given) != 1:
        raise CaseError(
            f"a condition has exactly one of held, flux, exchange and reversible; found {', '.join(given) or 'none'}",
            key=key,
            remedy=CONDITION_FORM,
        )
    kinetic = [
        name
        for name in ("reference", "equilibrium", "transfer", "electrons", "tafel", "order")
        if getattr(table, name) is not None
    ]
    if kinetic and table.exchange is None:
        raise CaseError(
            f"{kinetic[0]} applies only to exchange (Butler-Volmer kinetics)",
            key=f"{key}.{kinetic[0]}",
            remedy="leave it out",
        )
    if table.held is not None:
        return Held(table.held)
    if table.flux is not None:
        return Flux(None if table.flux == "balance" else float(table.flux))
    if table.reversible is not None:
        return Reversible(_bulk(ion, key) if table.reversible == "bulk" else float(table.reversible))
    electrons = ion.charge if table.electrons is None else table.electrons
    if ion.charge < 0 or electrons <= 0:
        more = "they are for cations" if ion.charge < 0 else "give the number of electrons: electrons = 1"
        raise CaseError(
            f"Butler-Volmer kinetics cannot be used for {ion.name}, whose charge is {ion.charge}",
            key=key,
            remedy=f"{more}; hold the concentration of other ions, or prescribe their flux",
        )
    return ButlerVolmer(
        float(table.exchange or 0.0),
        _bulk(ion, key) if table.reference is None else table.reference,
        table.equilibrium or 0.0,
        0.5 if table.transfer is None else table.transfer,
        table.electrons,
        not table.tafel,
        1.0 if table.order is None else table.order,
    )


def _word(word: str, ion: Species, key: str) -> Surface | None:
    match word:
        case "held":
            return Held(ion.bulk)
        case "sink":
            return Held(0.0)
        case "reversible":
            return Reversible(_bulk(ion, key))
        case "butler-volmer":
            return ButlerVolmer(EXCHANGE, _bulk(ion, key))
        case "balance":
            return Flux(None)
        case "blocked":
            return None
        case "bath":
            return Held(ion.bulk)
    raise CaseError(f"unknown condition {word!r}", key=key, suggestion=suggest(word, WORDS), remedy=CONDITION_FORM)


def _bulk(ion: Species, key: str) -> float:
    if ion.bulk <= 0:
        raise CaseError(
            f"the bath contains no {ion.name}, so its bulk concentration cannot serve as a reference",
            key=key,
            remedy="give a concentration: {reversible = 100.0}, or {exchange = 30.0, reference = 100.0}",
        )
    return ion.bulk


def _layer(entry: Mapping[str, object], name: str, key: str) -> float:
    value, (kind, example) = entry.get(name, 0.0), LAYERS[name]
    try:
        found = quantity(value, kind)
    except ValueError as error:
        raise CaseError(f"expected {error}, found {value!r}", key=key, remedy=f'write {name} = "{example}"') from error
    if found < 0:
        what = {"stern": "thickness of the Stern layer", "film": "resistance of the film"}
        found_as = what.get(name, "capacity of the double layer")
        raise CaseError(f"negative {found_as}: {found:g}", key=key, remedy="give 0 or more")
    return found
