"""Reactions of an electrode as a case gives them: a list of tables beside the conditions of single ions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from minga.errors import CaseError, shown, suggest
from minga.models.electrodeposition.problem import Problem, Species
from minga.models.electrodeposition.quantities import quantity
from minga.models.electrodeposition.reaction import Layer, Reacting, Reaction, group_of
from minga.schema import validate

__all__ = ["LayerSettings", "ReactionSettings", "check_reactions", "reacting_of"]

_STRICT = ConfigDict(extra="forbid", frozen=True)
FORM: Final = (
    'write reactions = [{oxidised = "Fe3", reduced = "Fe2", exchange = "10 A/m2"}, {oxidised = "Cu", exchange = '
    '"30 A/m2"}]'
)
"""Advice on how to write reactions."""

Concentration = Annotated[float, BeforeValidator(lambda v: quantity(v, "concentration")), Field(gt=0)]
Voltage = Annotated[float, BeforeValidator(lambda v: quantity(v, "potential"))]
Current = Annotated[float, BeforeValidator(lambda v: quantity(v, "current")), Field(gt=0)]
Capacity = Annotated[float, BeforeValidator(lambda v: quantity(v, "capacity")), Field(gt=0)]


class ReactionSettings(BaseModel):
    """A reaction of an electrode: `{oxidised = "Fe3", reduced = "Fe2", exchange = "10 A/m2"}`."""

    model_config = _STRICT

    oxidised: Annotated[str, Field(description='ion that is reduced: oxidised = "Fe3"')]
    reduced: Annotated[
        str | None, Field(description="ion that forms and stays in solution; without it a metal or a gas forms")
    ] = None
    exchange: Annotated[
        Current | Literal["reversible"],
        Field(description='i0 at the reference concentrations, A/m2, or "reversible" for equilibrium'),
    ] = "reversible"
    equilibrium: Annotated[Voltage, Field(description="equilibrium potential at the reference concentrations, V")] = 0.0
    reference: Annotated[
        Concentration | None,
        Field(description="reference concentration of the oxidised ion, mol/m3; by default that of the bulk"),
    ] = None
    reduced_reference: Annotated[
        Concentration | None,
        Field(description="reference concentration of the reduced ion, mol/m3; by default that of the bulk"),
    ] = None
    transfer: Annotated[float, Field(gt=0, lt=1, description="transfer coefficient")] = 0.5
    electrons: Annotated[
        int | None,
        Field(ge=1, description="where a metal or a gas forms: electrons of the rate, by default the charge"),
    ] = None
    tafel: Annotated[bool, Field(description="true for a reaction that only reduces")] = False
    order: Annotated[float, Field(gt=0, le=4, description="order of the reaction in the oxidised ion")] = 1.0


class LayerSettings(BaseModel):
    """Diffuse layer for Frumkin's correction of reactions: `frumkin = {compact = "20 uF/cm2", zero = "-0.2 V"}`."""

    model_config = _STRICT

    compact: Annotated[Capacity, Field(description='capacity of the compact layer: compact = "20 uF/cm2"')]
    zero: Annotated[Voltage, Field(description="potential of zero charge, metal - solution, V")] = 0.0


def reacting_of(entry: Mapping[str, object], name: str, species: Sequence[Species], key: str) -> dict[str, Reacting]:
    """Return the conditions of the ions in the reactions of an electrode's table, by name.

    Parameters
    ----------
    entry
        The table of the electrode.
    name
        "cathode" or "anode".
    species
        The ions of the bath.
    key
        The entry of the case, for error messages.

    Raises
    ------
    CaseError
        If a reaction is impossible, or connects more than two ions with others.
    """
    given = entry.get("reactions")
    if given is None:
        if "frumkin" in entry:
            raise CaseError(
                "frumkin corrects the rates of reactions, but the electrode has no list of them",
                key=f"{key}.frumkin",
                remedy=FORM,
            )
        return {}
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise CaseError(f"expected a list of tables, found {shown(given)}", key=f"{key}.reactions", remedy=FORM)
    known = {s.name: s for s in species}
    reactions = []
    for number, said in enumerate(given):
        at = f"{key}.reactions[{number}]"
        if not isinstance(said, Mapping):
            raise CaseError(f"expected a table, found {shown(said)}", key=at, remedy=FORM)
        reactions.append(_reaction(validate(ReactionSettings, said, at), known, at))
        if name == "anode" and not reactions[-1].anodic:
            raise CaseError(
                "tafel keeps only the exponential that reduces, so that nothing would oxidise at the anode",
                key=f"{at}.tafel",
                remedy="leave it out: far from equilibrium the full kinetics follow the same line",
            )
    layer = None
    if "frumkin" in entry:
        said = entry["frumkin"]
        if not isinstance(said, Mapping):
            raise CaseError(
                f"expected a table, found {shown(said)}",
                key=f"{key}.frumkin",
                remedy='write frumkin = {compact = "20 uF/cm2", zero = "-0.2 V"}',
            )
        table = validate(LayerSettings, said, f"{key}.frumkin")
        layer = Layer(table.compact, table.zero)
    names = dict.fromkeys(n for r in reactions for n in (r.oxidised, r.reduced) if n is not None)
    for ion in names:
        if ion in entry:
            raise CaseError(
                f"{ion} has a condition of its own and takes part in reactions",
                key=f"{key}.{ion}",
                remedy="give all its reactions in the list",
            )
        group = group_of(ion, reactions)
        check_group(group, f"{key}.reactions")
        _check_equilibria([r for r in reactions if r.oxidised in group], len(group), f"{key}.reactions")
    return dict.fromkeys(names, Reacting(tuple(reactions), layer))


def check_reactions(problem: Problem, scheme: str) -> None:
    """Reject reactions and films where the scheme has none, and couples or a bath beside a growing deposit.

    Raises
    ------
    CaseError
        If the scheme or the growth does not have them.
    """
    for name in ("cathode", "anode"):
        electrode = getattr(problem, name)
        reacting = any(isinstance(surface, Reacting) for surface in electrode.surfaces.values())
        if scheme != "semi-implicit" and (reacting or electrode.film):
            entry = "reactions" if reacting else "film"
            raise CaseError(
                f"the scheme {scheme!r} has no {entry}",
                key=f"electrodeposition.{name}.{entry}",
                remedy=f'write scheme = "semi-implicit", or leave {entry} out',
            )
    if problem.growth is not None and len(problem.cathode.surfaces) == len(problem.species) > 1:
        raise CaseError(
            "no metal can grow on a cathode that all ions pass, such as a bath",
            key="electrodeposition.growth",
            remedy="leave growth out, or give the cathode the condition of the metal's ion only",
        )
    if problem.growth is not None and problem.partners:
        raise CaseError(
            "no deposit can grow beside reactions whose product stays in solution",
            key="electrodeposition.growth",
            remedy="leave growth out, or reduced in the list of reactions",
        )


def check_group(group: Sequence[str], key: str) -> None:
    """Reject reactions that connect more than two dissolved ions."""
    if len(group) > 2:
        raise CaseError(
            f"reactions connect the ions {', '.join(group)}, but at most two that turn into one another are supported",
            key=key,
            remedy="leave out a reaction, or join two steps into one of more electrons",
        )


def _check_equilibria(reactions: Sequence[Reaction], ions: int, key: str) -> None:
    """Reject more equilibria than there are concentrations that could satisfy them."""
    pairs = [(r.oxidised, r.reduced) for r in reactions if math.isinf(r.exchange)]
    if len(pairs) > ions or len(set(pairs)) < len(pairs):
        raise CaseError(
            f"{len(pairs)} reversible reactions fix the concentration of {pairs[-1][0]} more than once",
            key=key,
            remedy='keep one of them, or give others rates, such as exchange = "10 A/m2"',
        )


def _reaction(table: ReactionSettings, known: Mapping[str, Species], key: str) -> Reaction:
    pair = {"oxidised": table.oxidised} | ({} if table.reduced is None else {"reduced": table.reduced})
    for entry, ion in pair.items():
        if ion not in known:
            raise CaseError(
                f"there is no species {ion!r}",
                key=f"{key}.{entry}",
                suggestion=suggest(ion, known),
                remedy=f"the species are {', '.join(known)}",
            )
    oxidised, other = known[table.oxidised], None if table.reduced is None else known[table.reduced]
    electrons = oxidised.charge - other.charge if other is not None else table.electrons or oxidised.charge
    if electrons < 1:
        what = f"to {other.name}, whose charge is {other.charge:+d}," if other is not None else "to a metal or a gas"
        raise CaseError(
            f"{oxidised.name}, whose charge is {oxidised.charge:+d}, takes up no electrons on its way {what}",
            key=key,
            remedy="exchange the oxidised and the reduced ion, or correct their charges",
        )
    if other is not None and table.electrons not in (None, electrons):
        raise CaseError(
            f"from {oxidised.name} to {other.name} it takes {electrons} electrons, not {table.electrons}",
            key=f"{key}.electrons",
            remedy="leave it out: the charges of the ions determine it",
        )
    if other is None and table.reduced_reference is not None:
        raise CaseError(
            "a metal or a gas has no reference concentration", key=f"{key}.reduced_reference", remedy="leave it out"
        )
    reversible = table.exchange == "reversible"
    if reversible and (table.tafel or table.order != 1.0):
        raise CaseError(
            "a reversible reaction has no rate, and so neither an order nor a direction",
            key=f"{key}.{'tafel' if table.tafel else 'order'}",
            remedy='leave it out, or give exchange = "10 A/m2"',
        )
    return Reaction(
        oxidised.name,
        table.reduced,
        electrons,
        math.inf if isinstance(table.exchange, str) else table.exchange,
        (
            _reference(oxidised, table.reference, f"{key}.reference"),
            1.0 if other is None else _reference(other, table.reduced_reference, f"{key}.reduced_reference"),
        ),
        table.equilibrium,
        table.transfer,
        not table.tafel,
        table.order,
    )


def _reference(ion: Species, given: float | None, key: str) -> float:
    if given is None and ion.bulk <= 0:
        raise CaseError(
            f"the bath contains no {ion.name}, so its bulk concentration cannot serve as a reference",
            key=key,
            remedy='give the concentration to which the equilibrium potential refers, such as "10 mM"',
        )
    return ion.bulk if given is None else given
