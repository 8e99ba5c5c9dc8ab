"""In(1-x)Ga(x)As(y)P(1-y), lattice-matched to InP, as a function of y."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from minga.compile import portable
from minga.models.photodiode.structure.materials import CaugheyThomas, Material

__all__ = ["quaternary"]

Pair = tuple[float, float]

_KNOWN = 0.6  # y of the material InGaAsP in materials.toml


def quaternary(y: float, materials: Mapping[str, Material]) -> Material:
    """Return InGaAsP with an arsenic fraction y from 0 (InP) to 1 (InGaAs).

    Notes
    -----
    - gap: 1.35 - 0.72 y + 0.12 y^2 eV (Pearsall)
    - affinity: 40 % of the difference of the gap to that of InP lies in the conduction band
    - permittivity: 12.5 + 1.44 y (ioffe.ru)
    - mobilities: 5400 - 7750 y + 14400 y^2 and 200 - 400 y + 500 y^2 cm2/Vs (matprop.ru GaInAsP, upper limits)
    - all others: interpolated between InP, InGaAsP (y = 0.6) and InGaAs, linearly in the logarithm
    """
    inp, middle, ingaas = (materials[name] for name in ("InP", "InGaAsP", "InGaAs"))
    low, high, share = (inp, middle, y / _KNOWN) if y <= _KNOWN else (middle, ingaas, (y - _KNOWN) / (1 - _KNOWN))
    gap = 1.35 - 0.72 * y + 0.12 * y * y
    changes: dict[str, Any] = {
        name: portable.exp((1 - share) * portable.log(getattr(low, name)) + share * portable.log(getattr(high, name)))
        for name in ("nc", "nv", "tau_n", "tau_p", "radiative", "auger_n", "auger_p")
    }
    electrons = 5400.0 - 7750.0 * y + 14400.0 * y * y
    holes = 200.0 - 400.0 * y + 500.0 * y * y
    return replace(
        middle,
        narrowing=None,
        donor=None,
        acceptor=None,
        tunnelling_mass=_mean((low.tunnelling_mass, high.tunnelling_mass), share),
        varshni=_between(low.varshni, high.varshni, share),
        gap=gap,
        affinity=inp.affinity + 0.4 * (inp.gap - gap),
        permittivity=12.5 + 1.44 * y,
        mobility_n=electrons,
        mobility_p=holes,
        caughey_thomas_n=_up_to(middle.caughey_thomas_n, electrons),
        caughey_thomas_p=_up_to(middle.caughey_thomas_p, holes),
        **changes,
    )


def _between(low: Pair | None, high: Pair | None, share: float) -> Pair | None:
    """Interpolate Varshni's parameters linearly between two materials; None if either has none."""
    if low is None or high is None:
        return None
    return (1 - share) * low[0] + share * high[0], (1 - share) * low[1] + share * high[1]


def _mean(ends: tuple[float | None, float | None], share: float) -> float | None:
    """Interpolate linearly between two materials; None if the value of either is unknown."""
    low, high = ends
    return None if low is None or high is None else (1 - share) * low + share * high


def _up_to(model: CaugheyThomas | None, largest: float) -> CaugheyThomas | None:
    """Return the doping dependence with another mobility of the pure material."""
    return None if model is None else replace(model, max=largest)
