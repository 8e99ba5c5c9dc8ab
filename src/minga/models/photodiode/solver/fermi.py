"""Fermi-Dirac statistics: deviation of densities from Boltzmann statistics.

n = Nc F(eta) = Nc exp(eta) gamma(eta) with the complete integral F of order 1/2. The logarithm of the activity gamma is
a polynomial on each of three pieces (fitted to the integral by the trapezoid rule, which converges exponentially here),
a series in exp(eta) below them, and Sommerfeld's expansion above. The error is below 2e-10 up to eta = 20, and 2e-8
beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.lang import functions as mg
from minga.lang.expr import Node
from minga.lang.math import exp, log

__all__ = ["activity", "activity_of", "reduced_level"]

Floats = NDArray[np.float64]

SERIES: Final = (
    -0.35355339059302643, 0.1299500896410078, -0.07169000021793676, 0.04687959880401976, -0.03367055838480438,
    0.025533466874789936, -0.01910071465716201, 0.010570366287686884, -3.354371781828e-06,
)  # fmt: skip
"""Coefficients of ln gamma / z in powers of z = exp(eta), for eta < -2."""
PIECES: Final = (
    (-2.0, 2.0, (
        -0.2676872746671206, -0.4188695145150022, -0.2564396705931468, -0.04652134936666621, 0.02427518891809555,
        0.008968362767055869, -0.004909732646838881, -0.0022065045050575147, 0.0012391188963827595,
        0.0006077280655874709, -0.0003333112228475244, -0.00016992791946480258, 7.859362008944528e-05,
        4.019117808771e-05, -1.0849502795095176e-05, -5.431657427640455e-06,
    )),
    (2.0, 7.0, (
        -2.4663365583673076, -1.736379150404452, -0.17436393088139027, 0.04582791494341337, -0.010839732178865845,
        0.0016865302005987946, 0.0001963450998167425, -0.0003117017360069147, 0.00016057007909003543,
        -5.568555833851786e-05, 1.2224255893208526e-05, 4.984357530311607e-07, -2.776464994740165e-06,
        1.7699886749297976e-06, -3.8096843515142995e-07, -3.2248287864289914e-08,
    )),
    (7.0, 20.0, (
        -9.873868101471801, -5.784319598434392, -0.16912895386362006, 0.05275250781828063, -0.01830049741150306,
        0.006681667815026455, -0.00250070989252921, 0.0009432834013726811, -0.00035104915905270843,
        0.00012735759183784998, -4.8216772800626105e-05, 1.79596710028576e-05, -3.5968951013758346e-06,
        -2.0736189756367708e-07,
    )),
)  # fmt: skip
"""Ranges of eta: their ends, and the coefficients of ln gamma in powers of a variable from -1 to 1."""
SOMMERFELD: Final = (1.0, 1.2337005501361697, 1.0654119331844014, 9.701518554959124)
"""Coefficients of F / (4/(3 sqrt(pi)) eta^1.5) in powers of 1/eta^2: pi^2/8, 7 pi^4/640, 31 pi^6/3072."""
LEADING: Final = -0.2846828704729191
"""ln(4 / (3 sqrt(pi)))."""


def activity(eta: Node) -> Node:
    """Return ln gamma, for kernels; d ln n / d eta is 1 plus its `mg.derivative`."""
    found: Node = _activity(eta, exp, log, mg.where, mg.min, mg.max)
    return found


def activity_of(eta: Floats) -> Floats:
    """Return ln gamma of an array."""
    found: Floats = _activity(eta, portable.exp, portable.log, np.where, np.minimum, np.maximum)
    return found


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    value: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value


def _activity(
    eta: Any,
    exp_: Callable[[Any], Any],
    log_: Callable[[Any], Any],
    where_: Callable[..., Any],
    least: Callable[..., Any],
    most: Callable[..., Any],
) -> Any:
    small = exp_(least(eta, PIECES[0][0]))
    found = small * _polynomial(SERIES, small)
    for low, high, coefficients in PIECES:
        inside = (least(most(eta, low), high) - 0.5 * (low + high)) * (2.0 / (high - low))
        found = where_(eta >= low, _polynomial(coefficients, inside), found)
    large = most(eta, PIECES[-1][1])
    square = 1.0 / (large * large)
    above = (LEADING + 1.5 * log_(large) - large) + log_(_polynomial(SOMMERFELD, square))
    return where_(eta >= PIECES[-1][1], above, found)


def reduced_level(logarithm: Floats) -> Floats:
    """Return eta at which ln F has a given value, by Newton's method from the Boltzmann or Sommerfeld limit."""
    given = np.asarray(logarithm, np.float64)
    eta = np.where(given < 0.0, given, portable.exp((np.maximum(given, 0.0) - LEADING) / 1.5))
    for _ in range(60):
        step = 1e-5
        slope = 1.0 + (activity_of(eta + step) - activity_of(eta - step)) / (2.0 * step)
        change = (given - eta - activity_of(eta)) / slope
        eta = eta + np.clip(change, -2.0, 2.0)
        if float(np.abs(change).max(initial=0.0)) < 1e-13:
            break
    return eta
