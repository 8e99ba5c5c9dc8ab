"""Fluxes of ions through faces by exponential fitting, as expressions for kernels.

Between two cells, the flux is exact for a constant field and a constant velocity (Scharfetter and Gummel, IEEE Trans.
Electron Devices 16, 1969): with D the diffusivity, h the distance and L, R the cells below and above the face,

    N = (D/h) [B(w) c_L - B(-w) c_R],    w = z (F/RT) (phi_R - phi_L) - v h/D,    B(w) = w / (exp(w) - 1)

positive from L to R. It is 0 in equilibrium, never makes a concentration negative when taken implicitly, is of second
order where |w| is small, and tends to the upwind flux where it is large.
"""

from __future__ import annotations

from minga.lang.expr import Node
from minga.solve.bernoulli import bernoulli, bernoulli_pair, bernoulli_slope

__all__ = ["bernoulli", "bernoulli_pair", "bernoulli_slope", "flux", "flux_slope"]


def flux(conductance: Node | float, w: Node, low: Node, high: Node) -> Node:
    """Return the flux N through a face.

    Parameters
    ----------
    conductance
        D/h.
    w
        The exponent w.
    low, high
        Concentrations below and above the face.
    """
    down, up = bernoulli_pair(w)
    return conductance * (down * low - up * high)


def flux_slope(w: Node, low: Node, high: Node) -> Node:
    """Return c_SG = -(h/D) dN/dw >= 0, the concentration by which migration acts.

    It lies between `low` and `high`: it is their mean at w = 0, and the upwind one where |w| is large.
    """
    slope = bernoulli_slope(w)
    return (1.0 + slope) * high - slope * low
