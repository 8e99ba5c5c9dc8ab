"""Fluxes of ions through faces by exponential fitting, as expressions for kernels.

Between two cells the flux is the exact one of a constant field and a constant velocity (Scharfetter and Gummel, IEEE
Trans. Electron Devices 16, 1969): with D the diffusivity, h the distance and L, R the cells below and above the face,

    N = (D/h) [B(w) c_L - B(-w) c_R],    w = z (F/RT) (phi_R - phi_L) - v h/D,    B(w) = w / (exp(w) - 1)

positive from L to R. It is 0 in equilibrium, never makes a concentration negative when taken implicitly, of second
order where |w| is small, and turns to the upwind side where it is not.
"""

from __future__ import annotations

from minga.lang.expr import Node
from minga.solve.bernoulli import bernoulli, bernoulli_pair, bernoulli_slope

__all__ = ["bernoulli", "bernoulli_pair", "bernoulli_slope", "flux", "flux_slope"]


def flux(conductance: Node | float, w: Node, low: Node, high: Node) -> Node:
    """N through a face: `conductance` D/h, `low` and `high` the concentrations below and above it."""
    down, up = bernoulli_pair(w)
    return conductance * (down * low - up * high)


def flux_slope(w: Node, low: Node, high: Node) -> Node:
    """c_SG = -(h/D) dN/dw >= 0: between `low` and `high`, their mean at w = 0, the upwind one where |w| is large."""
    slope = bernoulli_slope(w)
    return (1.0 + slope) * high - slope * low
