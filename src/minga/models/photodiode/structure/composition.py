"""In(1-x)Ga(x)As(y)P(1-y) lattice matched to InP as a function of y."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from minga.models.photodiode.structure.materials import CaugheyThomas, Material

__all__ = ["quaternary"]

Pair = tuple[float, float]

_KNOWN = 0.6  # the y of the material InGaAsP in the file


def quaternary(y: float, materials: Mapping[str, Material]) -> Material:
    """InGaAsP with a share y of arsenic, 0 (InP) to 1 (InGaAs).

    gap            1.35 - 0.72 y + 0.12 y^2 eV (Pearsall)
    affinity       40 % of the difference of gaps to InP lies in the conduction band
    permittivity   12.5 + 1.44 y (ioffe.ru)
    mobilities     5400 - 7750 y + 14400 y^2 and 200 - 400 y + 500 y^2 cm2/Vs (matprop.ru GaInAsP, upper limits)
    the others     between InP, InGaAsP (y = 0.6) and InGaAs, linear in the logarithm
    """
    inp, middle, ingaas = (materials[name] for name in ("InP", "InGaAsP", "InGaAs"))
    low, high, share = (inp, middle, y / _KNOWN) if y <= _KNOWN else (middle, ingaas, (y - _KNOWN) / (1 - _KNOWN))
    gap = 1.35 - 0.72 * y + 0.12 * y * y
    changes: dict[str, Any] = {
        name: math.exp((1 - share) * math.log(getattr(low, name)) + share * math.log(getattr(high, name)))
        for name in ("nc", "nv", "tau_n", "tau_p", "radiative", "auger_n", "auger_p")
    }
    electrons = 5400.0 - 7750.0 * y + 14400.0 * y * y
    holes = 200.0 - 400.0 * y + 500.0 * y * y
    return replace(
        middle,
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
    """Varshni's numbers between two materials, linear; None where one of them is not known."""
    if low is None or high is None:
        return None
    return (1 - share) * low[0] + share * high[0], (1 - share) * low[1] + share * high[1]


def _up_to(model: CaugheyThomas | None, largest: float) -> CaugheyThomas | None:
    """The dependence on doping with another mobility of pure material."""
    return None if model is None else replace(model, max=largest)
