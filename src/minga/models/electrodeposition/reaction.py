"""Reactions at an electrode whose products may stay in solution, and the ions that they couple."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Layer", "Reacting", "Reaction", "group_of"]


@dataclass(frozen=True, slots=True)
class Reaction:
    """Electrode reaction: oxidised + n electrons = reduced, at the rate below.

    In mol/m2/s, positive where it reduces, the rate is

        i0/(n F) [(c_O/c_O*) exp(-b n F eta/RT) - (c_R/c_R*) exp((1-b) n F eta/RT)].

    Parameters
    ----------
    oxidised
        Name of the species that is reduced.
    reduced
        Name of the species that forms; None for a metal or a gas, whose activity is 1.
    electrons
        Number n of electrons.
    exchange
        Exchange current density i0, A/m2; infinite for a reaction in equilibrium.
    references
        Reference concentrations of both species, mol/m3; the second is 1 where `reduced` is None.
    equilibrium
        Equilibrium potential at the reference concentrations, V; eta = metal - solution - equilibrium.
    transfer
        Transfer coefficient b.
    anodic
        True for a reaction that also runs backwards; otherwise only the first exponential is left (Tafel).
    order
        Exponent of c_O/c_O* in the first term.
    """

    oxidised: str
    reduced: str | None
    electrons: int
    exchange: float = math.inf
    references: tuple[float, float] = (1.0, 1.0)
    equilibrium: float = 0.0
    transfer: float = 0.5
    anodic: bool = True
    order: float = 1.0


@dataclass(frozen=True, slots=True)
class Layer:
    """Diffuse layer in front of the plane of reaction, for Frumkin's correction.

    Parameters
    ----------
    compact
        Capacity of the compact layer between the metal and the plane of reaction, F/m2.
    zero
        Potential of zero charge, metal - solution, V.
    """

    compact: float
    zero: float = 0.0


@dataclass(frozen=True, slots=True)
class Reacting:
    """Condition of an ion that takes part in reactions of an electrode.

    Parameters
    ----------
    reactions
        All reactions of the electrode.
    layer
        Diffuse layer of the electrode; None for rates without Frumkin's correction.
    """

    reactions: tuple[Reaction, ...]
    layer: Layer | None = None


def group_of(name: str, reactions: Sequence[Reaction]) -> tuple[str, ...]:
    """Return the species that reactions connect with a species, itself included, oxidised ones first."""
    found = {name}
    for _ in reactions:
        for reaction in reactions:
            pair = {reaction.oxidised, reaction.reduced} - {None}
            if pair & found:
                found |= pair  # type: ignore[arg-type]
    order = [n for reaction in reactions for n in (reaction.oxidised, reaction.reduced) if n in found]
    return tuple(dict.fromkeys([*order, name])) if order else (name,)
