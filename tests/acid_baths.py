"""Copper sulphate with sulphuric acid in plain NumPy: mass action, fluxes, and steady states between copper plates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, root

from minga.models.electrodeposition.problem import Constants

__all__ = ["CHARGES", "MOBILE", "TOTALS", "Path", "Steady", "forms", "log_g", "mobilities", "path", "steady"]

F, RT = Constants().faraday, Constants().thermal
Floats = NDArray[np.float64]
CHARGES = np.array([2, 1, -2, -1, 0])
"""Charges of Cu, H+, SO4, HSO4- and the pair."""
MOBILE = np.array([0.733e-9, 9.31e-9, 1.07e-9, 1.33e-9, 4.45e-10])
TOTALS = np.array([[1, 0, 0, 0, 1], [0, 1, 0, 1, 0], [0, 0, 1, 1, 1]])
"""Rows: Cu, H and SO4 in each form."""


def log_g(strength: float) -> Floats:
    """Natural logarithms of the activity coefficients of the five forms."""
    s = math.sqrt(strength)
    extended = [-0.509 * z * z * s / (1 + 0.328 * r * s) for z, r in ((2, 6.0), (1, 9.0), (2, 5.0))]
    davies = -0.509 * (s / (1 + s) - 0.3 * strength)
    return math.log(10) * np.array([extended[0], extended[1], extended[2] - 0.04 * strength, davies, 0.0])


def forms(metal: float, hydrogen: float, sulphate: float) -> tuple[Floats, float]:
    """Concentrations of the five forms, and the ionic strength, mol/l, by two nested searches."""

    def at(strength: float) -> list[float]:
        g = log_g(strength)
        pair, acid = 10**2.31 * math.exp(g[0] + g[2]), 10**1.988 * math.exp(g[1] + g[2] - g[3])
        s, before = sulphate / (1 + pair * metal + acid * hydrogen), 0.0
        while abs(s - before) > 1e-14 * s:
            m, h = metal / (1 + pair * s), hydrogen / (1 + acid * s)
            off = s * (1 + pair * m + acid * h) - sulphate
            slope = 1 + pair * m / (1 + pair * s) + acid * h / (1 + acid * s)
            before, s = s, s - off / slope
        m, h = metal / (1 + pair * s), hydrogen / (1 + acid * s)
        return [m, h, s, h * acid * s, m * pair * s]

    def missing(strength: float) -> float:
        m, h, s, held, _ = at(strength)
        return 0.5 * (4 * m + h + 4 * s + held) - strength

    found = brentq(missing, 1e-9, 10.0, xtol=1e-15, rtol=1e-13)
    return np.array(at(found)), found


def mobilities(strength: float) -> Floats:
    """Mobilities of the forms, m2/s."""
    z = np.abs(CHARGES[:4])
    power = np.where(strength < 0.36 * z, 0.6 / np.sqrt(z), math.sqrt(strength) / z)
    return np.append(MOBILE[:4] * np.exp(power * log_g(strength)[:4]), 0.0)


@dataclass(frozen=True)
class Path:
    """Changes by the logarithm of one total where the others rest.

    Attributes
    ----------
    totals
        Those of Cu and H, mol/l.
    potential, activity
        Those of F phi / RT, and of the logarithm of the activity of the free ion.
    diffusivity
        Flux of the total over minus its gradient, m2/s.
    """

    totals: Floats
    potential: float
    activity: float
    diffusivity: float


def path(metal: float, hydrogen: float, number: int = 0) -> Path:
    """The path on which all totals but one rest, by differences of the fourth order between neutral baths."""
    base, strength = forms(metal, hydrogen, metal + 0.5 * hydrogen)
    present = [row for row, amount in enumerate((metal, hydrogen)) if amount > 0]
    kept = base > 0

    def logs(row: int, by: float) -> Floats:
        totals = [amount * (1 + by * (n == row)) for n, amount in enumerate((metal, hydrogen))]
        found, at = forms(*totals, totals[0] + 0.5 * totals[1])
        return np.where(kept, np.log(np.where(kept, found, 1.0)) + log_g(at), 0.0)

    step = 1e-4
    ways = [
        (8 * (logs(n, step) - logs(n, -step)) - (logs(n, 2 * step) - logs(n, -2 * step))) / (12 * step) for n in present
    ]
    ways.append(CHARGES * mobilities(strength) / MOBILE)
    fluxes = np.array([[float((TOTALS[r] * MOBILE * base * way).sum()) for way in ways] for r in (*present, 2)])
    own = present.index(number)
    others = [row for row in range(len(fluxes)) if row != own]
    rest = np.linalg.solve(fluxes[others][:, others], -fluxes[others][:, own])
    change = np.insert(rest, own, 1.0)
    totals = np.array([metal, hydrogen])
    totals[present] *= change[:-1]
    activity = sum(way[number] * by for way, by in zip(ways[:-1], change, strict=False))
    return Path(totals, float(change[-1]), float(activity), float(fluxes[own] @ change) / (metal, hydrogen)[number])


@dataclass(frozen=True)
class Steady:
    """A steady state between copper plates.

    Attributes
    ----------
    current, voltage
        In A/m2 and V.
    """

    current: float
    voltage: float


def steady(bottom: float, acid: float, length: float, metal: float = 0.1) -> Steady:
    """The steady state of a bath of `metal` and `acid` (mol/l) with `bottom` mol/l of copper at the cathode.

    H and SO4 rest, so that everything is a function of the concentration of copper.
    """

    def profile(flux: float, hydrogen: float) -> Floats:
        """H, potential, activity, place, and the integrals of copper and H, where the place reaches the anode."""

        def slope(u: float, y: Floats) -> Floats:
            at = path(math.exp(u), float(y[0]))
            dy = at.diffusivity * math.exp(u) / (flux * 1e-9)
            return np.array([at.totals[1], at.potential, at.activity, dy, math.exp(u) * dy, y[0] * dy])

        def end(_: float, y: Floats) -> float:
            return float(y[3] - 1.0)

        end.terminal = True  # type: ignore[attr-defined]
        begin = [hydrogen, 0.0, 0.0, 0.0, 0.0, 0.0]
        found = solve_ivp(slope, (math.log(bottom), 1.0), begin, method="DOP853", rtol=1e-7, atol=1e-9, events=end)
        assert found.status == 1
        return np.asarray(found.y[:, -1])

    def off(x: Floats) -> list[float]:
        found = profile(*map(float, x))
        return [found[4] / metal - 1.0, found[5] / (2 * acid) - 1.0]

    found = root(off, [1.5 * (metal - bottom), 2.1 * acid], tol=1e-8)
    assert np.abs(off(found.x)).max() < 1e-6
    left = profile(*map(float, found.x))
    return Steady(2 * F * found.x[0] * 1e-6 / length, (left[1] + 0.5 * left[2]) * RT / F)
