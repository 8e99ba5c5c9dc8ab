"""Tunnelling from band to band and to traps: named sets, Kane's formula for direct gaps, and their values at the nodes.

- Kane: G = A E^2 exp(-B/E), A = q^2 sqrt(mr) / (18 pi hbar^2 sqrt(Eg)), B = pi sqrt(mr) Eg^1.5 / (2 hbar q), with half
  of the tunnelling mass as the reduced mass mr (E. O. Kane, J. Phys. Chem. Solids 12, 181 (1959))
- traps: lifetimes are divided by 1 + Gamma, with Gamma = d int_0^1 exp(d u - (F/E) u^1.5) du, d = depth/kT and
  F = (4/3) sqrt(2 m depth^3) / (q hbar); traps lie in the middle of the gap, depth = Eg/2 (G. A. M. Hurkx,
  D. B. M. Klaassen, M. P. G. Knuvers, IEEE Trans. Electron Devices 39, 331 (1992))
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from minga.compile import portable
from minga.models.photodiode.structure.constants import CHARGE, ELECTRON_MASS, PLANCK
from minga.schema import validate

__all__ = [
    "KANE",
    "NodeTunnelling",
    "TunnellingSet",
    "TunnellingSetSettings",
    "kane",
    "nodes_of",
    "shipped_tunnelling",
    "trap_field",
]

Floats = NDArray[np.float64]
_HERE: Final = Path(__file__).parent
_HBAR: Final = PLANCK / (2.0 * math.pi)

KANE: Final = "kane"
"""Name of the set that follows from a direct gap and the tunnelling mass."""


@dataclass(frozen=True, slots=True)
class TunnellingSet:
    """Band-to-band tunnelling from one source, G = a Eg^gap_a E^power exp(-b Eg^gap_b / E) in 1/cm3 s."""

    name: str
    a: float
    b: float
    power: float = 2.0
    gap_a: float = 0.0
    gap_b: float = 0.0
    materials: tuple[str, ...] = ()
    source: str = ""

    def at(self, gap: float) -> tuple[float, float, float]:
        """Return (A, B in V/cm, power) of G = A E^power exp(-B/E) at a gap in eV."""
        a = self.a * float(portable.power(gap, self.gap_a))
        return a, self.b * float(portable.power(gap, self.gap_b)), self.power


@dataclass(frozen=True, slots=True, eq=False)
class NodeTunnelling:
    """Tunnelling at the nodes, f8 of the grid's shape.

    Parameters
    ----------
    band
        (A, B in V/cm, power) of G = A E^power exp(-B/E) in 1/cm3 s, A = 0 where there is none; None if switched off.
    trap
        (depth in kT, F in V/cm) of the enhancement of recombination through traps, depth 0 where there is none; None
        if switched off.
    names
        Names of the sets in use, by material.
    """

    band: tuple[Floats, Floats, Floats] | None
    trap: tuple[Floats, Floats] | None
    names: tuple[tuple[str, str], ...] = ()


def kane(gap: float, mass: float) -> tuple[float, float]:
    """Return Kane's A in 1/cm3 s per (V/cm)^2 and B in V/cm.

    Parameters
    ----------
    gap
        Direct gap, eV.
    mass
        Tunnelling mass, relative to that of the electron; the reduced mass is half of it.
    """
    reduced, energy = 0.5 * mass * ELECTRON_MASS, gap * CHARGE
    a = CHARGE * CHARGE * math.sqrt(reduced) / (18.0 * math.pi * _HBAR * _HBAR * math.sqrt(energy))
    b = math.pi * math.sqrt(reduced * energy) * energy / (2.0 * _HBAR * CHARGE)
    return 1e-2 * a, 1e-2 * b


def trap_field(depth: float, mass: float) -> float:
    """Return F in V/cm of a trap of a depth in eV, for carriers of a mass relative to that of the electron."""
    energy = depth * CHARGE
    return 1e-2 * (4.0 / 3.0) * math.sqrt(2.0 * mass * ELECTRON_MASS * energy) * energy / (CHARGE * _HBAR)


def nodes_of(
    gaps: Floats,
    masses: Sequence[float | None],
    sets: Sequence[TunnellingSet | str | None] | None,
    traps: bool,
    thermal: float,
) -> tuple[tuple[Floats, Floats, Floats] | None, tuple[Floats, Floats] | None]:
    """Return the values of `NodeTunnelling` at nodes along x.

    Parameters
    ----------
    gaps, masses
        Gaps, eV, and tunnelling masses of the nodes.
    sets
        Band-to-band set of each node, `KANE`, or None; None if it is switched off.
    traps
        Whether carriers tunnel to traps.
    thermal
        kT/q, V.
    """
    band = None
    if sets is not None:
        found = np.zeros((3, gaps.size))
        found[1], found[2] = 1.0, 2.0
        for k, (own, mass) in enumerate(zip(sets, masses, strict=True)):
            if isinstance(own, TunnellingSet):
                found[:, k] = own.at(float(gaps[k]))
            elif own == KANE:
                assert mass is not None
                found[:2, k] = kane(float(gaps[k]), mass)
        band = (found[0], found[1], found[2])
    if not traps:
        return band, None
    fields = [
        0.0 if mass is None else trap_field(0.5 * float(gap), mass) for gap, mass in zip(gaps, masses, strict=True)
    ]
    return band, (0.5 * gaps / thermal, np.array(fields))


# Files ---------------------------------------------------------------------------------------------------------------
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Exponent = Annotated[float, Field(ge=-4, le=4)]


class TunnellingSetSettings(BaseModel):
    """A set of band-to-band tunnelling in a file, `{a = 4e14, b = 1.9e7, power = 2.5}`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    a: Annotated[Positive, Field(description="1/cm3 s per (V/cm)^power: a = 4e14")]
    b: Annotated[Positive, Field(description="V/cm: b = 1.9e7")]
    power: Annotated[float, Field(ge=0, le=4, description="power = 2.0")] = 2.0
    gap_a: Annotated[Exponent, Field(description="exponent of the gap in eV in a: gap_a = -0.5")] = 0.0
    gap_b: Annotated[Exponent, Field(description="exponent of the gap in eV in b: gap_b = 1.5")] = 0.0
    materials: tuple[str, ...] = ()
    source: str = ""

    def made(self, name: str) -> TunnellingSet:
        """Return the set under a name."""
        return TunnellingSet(name, **self.model_dump())


@cache
def shipped_tunnelling() -> dict[str, TunnellingSet]:
    """Return the sets shipped with minga, by name."""
    tables = tomllib.loads((_HERE / "tunnelling.toml").read_text(encoding="utf-8"))
    return {name: validate(TunnellingSetSettings, table, name).made(name) for name, table in tables.items()}
