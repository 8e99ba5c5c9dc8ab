"""Fluxes of ions through faces by exponential fitting, as expressions for kernels.

Between two cells the flux is the exact one of a constant field and a constant velocity (Scharfetter and Gummel, IEEE
Trans. Electron Devices 16, 1969): with D the diffusivity, h the distance and L, R the cells below and above the face,

    N = (D/h) [B(w) c_L - B(-w) c_R],    w = z (F/RT) (phi_R - phi_L) - v h/D,    B(w) = w / (exp(w) - 1)

positive from L to R. It is 0 in equilibrium, never makes a concentration negative when taken implicitly, of second
order where |w| is small, and turns to the upwind side where it is not.
"""

from __future__ import annotations

from typing import Final

from minga.lang import functions as mg
from minga.lang.expr import Node
from minga.lang.math import expm1

__all__ = ["bernoulli", "bernoulli_pair", "bernoulli_slope", "drift", "flux", "flux_slope"]

NEAR: Final = 0.03
"""Below it the derivative of B is a series, whose next term is under 1e-16; above, the closed form loses 2 digits."""


def bernoulli_pair(u: Node) -> tuple[Node, Node]:
    """B(u) and B(-u), of one exponential; both to a few ulp for all u, neither ever negative."""
    size = mg.abs(u)
    # Of |u|, where nothing cancels; 0/0 is not chosen, and beyond the largest exponential B is 0.
    falling = mg.where(size > 0.0, size / expm1(size), 1.0)
    rising = falling + size
    return mg.where(u < 0.0, rising, falling), mg.where(u < 0.0, falling, rising)


def bernoulli(u: Node) -> Node:
    """B(u) = u / (exp(u) - 1), 1 at 0; B(-u) = B(u) + u."""
    return bernoulli_pair(u)[0]


def bernoulli_slope(u: Node) -> Node:
    """dB/du, from -1 at minus infinity through -1/2 at 0 to 0; B'(-u) = -1 - B'(u)."""
    down, up = bernoulli_pair(u)
    size = mg.abs(u)
    falling, rising = mg.where(u < 0.0, up, down), mg.where(u < 0.0, down, up)
    square = size * size
    series = -0.5 + size * (1.0 / 6.0 - square * (1.0 / 180.0 - square / 5040.0))
    slope = mg.where(size < NEAR, series, falling * (1.0 - rising) / size)
    return mg.where(u < 0.0, -1.0 - slope, slope)


def drift(charge: Node | float, difference: Node, velocity: Node | None, distance: Node | float) -> Node:
    """w: `charge` is z F/RT (1/V), `difference` phi_R - phi_L (V), `velocity` v/D (1/m), `distance` h (m)."""
    field = charge * difference
    return field if velocity is None else field - velocity * distance


def flux(conductance: Node | float, w: Node, low: Node, high: Node) -> Node:
    """N through a face: `conductance` D/h, `low` and `high` the concentrations below and above it."""
    down, up = bernoulli_pair(w)
    return conductance * (down * low - up * high)


def flux_slope(w: Node, low: Node, high: Node) -> Node:
    """c_SG = -(h/D) dN/dw >= 0: between `low` and `high`, their mean at w = 0, the upwind one where |w| is large."""
    slope = bernoulli_slope(w)
    return (1.0 + slope) * high - slope * low
