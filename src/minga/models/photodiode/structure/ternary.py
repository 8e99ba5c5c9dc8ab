"""AlGaAs, InGaAs and InAlAs as functions of their composition x: the share of Al, Ga and Al."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from minga.compile import portable
from minga.models.photodiode.structure.constants import thermal_voltage
from minga.models.photodiode.structure.materials import CaugheyThomas, Material
from minga.models.photodiode.structure.vurgaftman import alloy_gap, alloy_valence, compound_valence, valley_gap

__all__ = ["MATCHED", "SUBSTRATE", "ternary"]

SUBSTRATE: Final = {"AlGaAs": "GaAs", "InGaAs": "InP", "InAlAs": "InP"}
"""Material to which the band edges of each alloy are aligned."""
_ROOM: Final = 300.0
MATCHED: Final = {"InGaAs": (0.46, 0.49), "InAlAs": (0.46, 0.50)}
"""Compositions for which the optical properties and ionisation coefficients of the lattice-matched alloy hold."""


def ternary(name: str, x: float, materials: Mapping[str, Material]) -> Material:
    """Return an alloy with a composition x from 0 to 1.

    Notes
    -----
    - gap and valence band: Vurgaftman, Meyer and Ram-Mohan (2001), without strain
    - affinity: that of the substrate, InP or GaAs, with the offsets that follow from both valence bands and gaps
    - AlGaAs: permittivity, densities of states, mobilities and the radiative coefficient depend on x, see `_algaas`
    - all others: those of the material of this name; its optical properties and ionisation coefficients are left out
      for compositions outside `MATCHED`
    """
    base, substrate = materials[name], materials[SUBSTRATE[name]]
    gap = alloy_gap(name, x, _ROOM)
    edge = substrate.gap + compound_valence(substrate.name)
    changes: dict[str, Any] = _algaas(x, base, substrate) if name == "AlGaAs" else {}
    low, high = MATCHED.get(name, (0.0, 1.0))
    if not low <= x <= high:
        changes |= {"absorption": None, "index": None, "ionisation": None}
    affinity = substrate.affinity + edge - (gap + alloy_valence(name, x))
    return replace(base, gap=gap, affinity=affinity, varshni=None, alloy=(name, x), **changes)


def _algaas(x: float, base: Material, gaas: Material) -> dict[str, Any]:
    """Return the parameters of AlGaAs that depend on x, continuous with those of GaAs but for the radiative one.

    Masses and the permittivity are those of the NSM archive; electrons are distributed over the direct and the X
    valley, and those in the direct valley recombine radiatively. Mobilities are those of Sotoodeh, Khalid and Rezazadeh
    (2000), with the gaps of Vurgaftman et al.
    """
    vt = thermal_voltage(_ROOM)
    apart = (valley_gap("AlGaAs", x, _ROOM, "gamma") - valley_gap("AlGaAs", x, _ROOM, "x")) / vt
    direct, indirect = portable.exp(-max(apart, 0.0)), portable.exp(min(apart, 0.0))
    mass, heavy = (0.063 + 0.083 * x) / 0.063, (0.85 - 0.14 * x) / 0.063
    electrons, holes = _mobilities(x, apart)
    return {
        "radiative": base.radiative / (1 + portable.exp(apart) * portable.power(heavy / mass, 1.5)),
        "permittivity": gaas.permittivity - 2.84 * x,
        "nc": gaas.nc * (direct * portable.power(mass, 1.5) + indirect * portable.power(heavy, 1.5)),
        "nv": gaas.nv * portable.power((0.51 + 0.25 * x) / 0.51, 1.5),
        # As far below the largest ones as those of GaAs.
        "mobility_n": electrons.max * gaas.mobility_n / 9400.0,
        "mobility_p": holes.max * gaas.mobility_p / 491.5,
        "caughey_thomas_n": electrons,
        "caughey_thomas_p": holes,
    }


def _mobilities(x: float, apart: float) -> tuple[CaugheyThomas, CaugheyThomas]:
    """Return Sotoodeh's mobilities; `apart`: the direct valley above the X valley, kT."""
    static, fast = _mixed(x, 10.06, 12.90), _mixed(x, 8.16, 10.92)
    light, heavy = 0.150 * x + 0.065 * (1 - x), 0.71 * x + 0.85 * (1 - x)
    polar = (1 / 10.92 - 1 / 12.90) / (1 / fast - 1 / static) * portable.power(0.065 / light, 1.5)
    share = 1 / (1 + portable.exp(apart) * portable.power(heavy / light, 1.5))
    warm = 1 + x * (1 - x)
    electrons = CaugheyThomas(
        9400.0 * polar * share + 400.0 * (1 - share),
        500.0 * polar * share + 10.0 * (1 - share),
        portable.exp((1 - x) * portable.log(6e16) + x * portable.log(5.46e17)),
        x + 0.394 * (1 - x),
        2.1 / warm,
        3.0,
    )
    # Parabolas through GaAs, x = 0.3 and AlAs.
    holes = CaugheyThomas(
        _through(x, 491.5, 240.0, 200.0),
        _through(x, 20.0, 5.0, 10.0),
        portable.exp(_through(x, *map(portable.log, (1.48e17, 1e17, 3.84e17)))),
        _through(x, 0.38, 0.324, 0.488),
        (2.24 * x + 2.2 * (1 - x)) / warm,
        3.0,
    )
    return electrons, holes


def _mixed(x: float, last: float, first: float) -> float:
    """Interpolate a permittivity after Clausius and Mossotti."""
    mean = x * (last - 1) / (last + 2) + (1 - x) * (first - 1) / (first + 2)
    return (1 + 2 * mean) / (1 - mean)


def _through(x: float, first: float, middle: float, last: float) -> float:
    """Interpolate by the parabola through the values at x = 0, 0.3 and 1."""
    line = x * last + (1 - x) * first
    return line - x * (1 - x) * ((0.3 * last + 0.7 * first - middle) / 0.21)
