"""Effects of dopants beside their charge: they narrow the gap where there are many, and keep carriers where it is cold.

- gap narrowing in the form of Slotboom and de Graaff, E (ln(N/Nref) + sqrt(ln^2(N/Nref) + constant)), or of Jain and
  Roulston, a N^(1/3) + b N^(1/4) + c N^(1/2) for n and for p; half of it lies in each band
- incomplete ionisation: a donor is neutral with the probability x/(1 + x), x = g exp(energy/kT) n/Nc, and an acceptor
  likewise; its energy falls with N^(1/3)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable

__all__ = ["JainRoulston", "Level", "NodeDopants", "Slotboom", "dopants_of", "narrowing_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Slotboom:
    """Gap narrowing energy (ln(N/reference) + sqrt(ln^2(N/reference) + constant)), eV, of all impurities N in 1/cm3."""

    energy: float
    reference: float
    constant: float = 0.5

    def at(self, impurities: Floats, donors: NDArray[np.bool_]) -> Floats:
        """Return the narrowing in eV; `donors` has the nodes where donors prevail."""
        del donors
        log = portable.log(np.maximum(impurities, 1.0) / self.reference)
        found: Floats = self.energy * (log + np.sqrt(log * log + self.constant))
        return found


@dataclass(frozen=True, slots=True)
class JainRoulston:
    """Gap narrowing a N^(1/3) + b N^(1/4) + c N^(1/2), eV, with (a, b, c) of n and of p, N in 1/cm3."""

    n: tuple[float, float, float]
    p: tuple[float, float, float]

    def at(self, impurities: Floats, donors: NDArray[np.bool_]) -> Floats:
        """Return the narrowing in eV; `donors` has the nodes where donors prevail."""
        powers = [portable.power(np.maximum(impurities, 1.0), k) for k in (1.0 / 3.0, 0.25, 0.5)]
        sides = [sum(c * x for c, x in zip(side, powers, strict=True)) for side in (self.n, self.p)]
        return np.where(impurities > 0.0, np.where(donors, sides[0], sides[1]), 0.0)


@dataclass(frozen=True, slots=True)
class Level:
    """Level of a dopant: its energy below the band in eV, less reduction N^(1/3), and its degeneracy."""

    energy: float
    degeneracy: float
    reduction: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class NodeDopants:
    """Dopants at the nodes that are not all ionised, f8 of the grid's shape.

    Parameters
    ----------
    donors, acceptors
        Densities, 1/cm3; 0 where all are ionised.
    bound_n, bound_p
        g exp(energy/kT) / Nc and g exp(energy/kT) / Nv, cm3: times n or p it is x.
    """

    donors: Floats
    acceptors: Floats
    bound_n: Floats
    bound_p: Floats

    def shares(self, n: Any, p: Any) -> list[Any]:
        """Return the shares of donors and of acceptors that are neutral at densities n and p over gamma."""
        return [x / (1.0 + x) for x in (self.bound_n * n, self.bound_p * p)]

    def gained(self, n: Any, p: Any, grown: Sequence[Any]) -> list[Any]:
        """Return the increases of neutral donors and acceptors as n and p over gamma become 1 + `grown` times as large.

        The entries may also be nodes of a kernel.
        """
        levels = ((self.donors, self.bound_n * n, grown[0]), (self.acceptors, self.bound_p * p, grown[1]))
        return [density * (x * more) / ((1.0 + x) * (1.0 + x * (1.0 + more))) for density, x, more in levels]

    def neutral(self, n: Any, p: Any) -> tuple[Any, Any, Any]:
        """Return neutral donors less neutral acceptors at densities n and p over gamma, and how each changes per kT.

        The entries may also be nodes of a kernel.
        """
        shares = self.shares(n, p)
        donors, acceptors = self.donors * shares[0], self.acceptors * shares[1]
        return donors - acceptors, donors * (1.0 - shares[0]), acceptors * (1.0 - shares[1])


def narrowing_of(models: Sequence[Slotboom | JainRoulston | None], doping: Floats, impurities: Floats) -> Floats:
    """Return the gap narrowing at the nodes in eV, 0 where a row's model is None.

    Parameters
    ----------
    models
        Model of each node along x.
    doping, impurities
        Donors minus acceptors, and their sum, 1/cm3.
    """
    found = np.zeros(doping.shape)
    for model in dict.fromkeys(models):
        if model is not None:
            rows = np.array([item == model for item in models])
            found[rows] = model.at(impurities[rows], doping[rows] >= 0.0)
    return found


def dopants_of(
    levels: Sequence[tuple[Level | None, Level | None]], doping: Floats, impurities: Floats, states: Sequence[Floats],
    thermal: float,
) -> NodeDopants:  # fmt: skip
    """Return the dopants at the nodes.

    Parameters
    ----------
    levels
        Levels of donors and acceptors of each node along x; None: all are ionised.
    doping, impurities
        Donors minus acceptors, and their sum, 1/cm3.
    states
        Nc and Nv, 1/cm3.
    thermal
        kT/q, V.
    """
    made: list[Floats] = []
    for side, sign in enumerate((1.0, -1.0)):
        density, bound = np.zeros(doping.shape), np.zeros(doping.shape)
        for level in dict.fromkeys(pair[side] for pair in levels):
            if level is None:
                continue
            rows = np.array([pair[side] == level for pair in levels])
            density[rows] = 0.5 * (impurities[rows] + sign * doping[rows]).clip(0.0)
            energy = level.energy - level.reduction * portable.power(np.maximum(impurities[rows], 1.0), 1.0 / 3.0)
            bound[rows] = level.degeneracy * portable.exp(energy / thermal) / states[side][rows]
        made += [density, bound]
    return NodeDopants(made[0], made[2], made[1], made[3])
