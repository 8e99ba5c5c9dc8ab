"""Density and viscosity of baths from published data, for people: neither enters the equations by itself.

Sulphates of copper, zinc and nickel and their mixtures with sulphuric acid follow M. Laliberte, J. Chem. Eng. Data 54,
1725 (2009), with the coefficients of its tables as the package chemicals (MIT licence) has them:

    1/rho = w_water/rho_water + sum w_i/rho_i,      rho_i = (c0 s + c1) exp(1e-6 (T + c4)^2) / (s + c2 + c3 T)
    ln eta = w_water ln eta_water + sum w_i ln eta_i,      eta_i = exp((v1 s^v2 + v3) / (v4 T + 1)) / (v5 s^v6 + 1)

with mass fractions w, s = sum w_i, T in C and eta in mPa s. Silver nitrate is interpolated in the table of
concentrative properties of aqueous solutions of the CRC Handbook of Chemistry and Physics, which holds at 20 C.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from minga.models.electrodeposition.problem import Species

__all__ = ["Liquid", "liquid_of", "water_viscosity"]


@dataclass(frozen=True, slots=True)
class Liquid:
    """Properties of a bath.

    Attributes
    ----------
    density
        Density, kg/m3.
    viscosity
        Dynamic viscosity, Pa s.
    celsius
        Temperature at which they hold, C.
    """

    density: float
    viscosity: float
    celsius: float


@dataclass(frozen=True, slots=True)
class Solute:
    """A solute: its molar mass in kg/mol, c0 to c4, v1 to v6, and the largest mass fraction of both fits."""

    mass: float
    density: tuple[float, float, float, float, float]
    viscosity: tuple[float, float, float, float, float, float]
    most: float


SOLUTES: Final = {
    "Cu": Solute(
        0.15963,
        (-1.12078294150285e-6, 6.06850590612117e-7, -0.118863232463814, 0.00378050075860551, 4763.96073964247),
        (
            -129.887304522306,
            4.03019620382679,
            10.0198805903145,
            0.0610164993094959,
            -2125.99296251778,
            9.16965653838287,
        ),
        0.284,
    ),
    "Zn": Solute(
        0.16144,
        (19.3998326251204, 36.9810552705442, -0.088765784769985, 0.0010689313754713, 2058.60217737214),
        (13.5925262742582, 1.35400381043399, 10.5559124347897, 0.00360342454740079, 613.22295280165, 0.195826073391803),
        0.318,
    ),
    "Ni": Solute(
        0.15475,
        (-0.0401410237214016, 0.222743683226075, -0.144336817253579, 0.000986517827689712, 3072.83762271097),
        (26.187439990599, 1.8869958550977, 5.31082558854858, 0.0102519361469226, -0.314588064937243, 0.414650939570491),
        0.353,
    ),
    "H": Solute(
        0.09808,
        (70.8395152347122, 142.352693909248, 0.68779459618793, 0.00649299683206703, 1667.23864629522),
        (7.77699477516578, 1.23443056779035, 1.91643392633129, 0.00563631536944214, 46.0065393457232, 2.83071965329322),
        0.782,
    ),
}
"""Sulphates by their cation; that of H+ is sulphuric acid."""

SILVER_NITRATE: Final = (
    (0.0, 30.0, 59.0, 120.0, 181.0, 243.0, 307.0, 437.0, 571.0, 783.0, 1083.0, 1406.0, 1940.0),
    (998.2, 1002.7, 1007.0, 1015.4, 1023.9, 1032.7, 1041.7, 1059.7, 1078.5, 1107.9, 1149.6, 1194.2, 1267.2),
    (1.002, 1.003, 1.005, 1.009, 1.013, 1.016, 1.020, 1.027, 1.035, 1.049, 1.072, 1.101, 1.154),
)
"""Concentrations of AgNO3 in mol/m3, densities in kg/m3 and viscosities in mPa s, at 20 C."""

ROUNDS: Final = 60
"""Rounds of the fixed-point iteration for the mass of water."""


def liquid_of(species: Sequence[Species], celsius: float = 25.0) -> Liquid | None:
    """Return the density and the viscosity of a bath; None for baths without published data here.

    Parameters
    ----------
    species
        The ions of the bath, by their total concentrations.
    celsius
        Temperature, C; silver nitrate is known at 20 C only, whatever it is.
    """
    amounts = {s.name: s.bulk for s in species if s.bulk}
    if set(amounts) == {"Ag", "NO3"} and amounts["Ag"] <= SILVER_NITRATE[0][-1]:
        density, viscosity = (float(np.interp(amounts["Ag"], SILVER_NITRATE[0], row)) for row in SILVER_NITRATE[1:])
        return Liquid(density, 1e-3 * viscosity, 20.0)
    cations = {name: value for name, value in amounts.items() if name != "SO4"}
    if not cations or "SO4" not in amounts or not set(cations) <= set(SOLUTES) or not 15.0 <= celsius <= 50.0:
        return None
    return _mixture(
        {name: c * (0.5 if name == "H" else 1.0) * SOLUTES[name].mass for name, c in cations.items()}, celsius
    )


def water_viscosity(celsius: float) -> float:
    """Return the viscosity of water at a temperature in C, Pa s."""
    return 1e-3 * (celsius + 246.0) / ((0.05594 * celsius + 5.2842) * celsius + 137.37)


def _mixture(masses: Mapping[str, float], t: float) -> Liquid | None:
    """Return the properties of a solution of sulphates of these masses in kg/m3; None beyond the fits."""
    water = (
        ((((-2.8054253e-10 * t + 1.0556302e-7) * t - 4.6170461e-5) * t - 0.0079870401) * t + 16.945176) * t + 999.83952
    ) / (1.0 + 0.01687985 * t)
    solutes, solvent, share = math.fsum(masses.values()), water, 0.0
    for _ in range(ROUNDS):
        share = solutes / (solvent + solutes)
        taken = math.fsum(mass / _apparent(SOLUTES[name].density, share, t) for name, mass in masses.items())
        solvent = water * (1.0 - taken)
    if not 0.0 <= share <= min(SOLUTES[name].most for name in masses):
        return None
    density = solvent + solutes
    thin = math.log(1e3 * water_viscosity(t))
    parts = [mass * _logarithm(SOLUTES[name].viscosity, share, t) for name, mass in masses.items()]
    return Liquid(density, 1e-3 * math.exp((solvent * thin + math.fsum(parts)) / density), t)


def _apparent(c: Sequence[float], share: float, t: float) -> float:
    """Return the apparent density of a solute, kg/m3."""
    return (c[0] * share + c[1]) * math.exp(1e-6 * (t + c[4]) * (t + c[4])) / (share + c[2] + c[3] * t)


def _logarithm(v: Sequence[float], share: float, t: float) -> float:
    """Return the logarithm of the viscosity of a solute in mPa s."""
    powers = [math.exp(v[n] * math.log(share)) if share else 0.0 for n in (1, 5)]
    return (v[0] * powers[0] + v[2]) / (v[3] * t + 1.0) - math.log(v[4] * powers[1] + 1.0)
