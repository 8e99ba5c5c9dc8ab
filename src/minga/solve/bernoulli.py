"""Bernoulli's function B(u) = u / (exp(u) - 1) as expressions for kernels: the weight of exponential fitting.

Between two points a flux of drift and diffusion is that of a constant field (Scharfetter and Gummel, IEEE Trans.
Electron Devices 16, 1969), B(u) times what is here less B(-u) times what is there.
"""

from __future__ import annotations

from typing import Final

from minga.lang import functions as mg
from minga.lang.expr import Node
from minga.lang.math import expm1

__all__ = ["bernoulli", "bernoulli_pair", "bernoulli_slope", "relative_slope"]

NEAR: Final = 0.03
"""Limit below which slopes are series, whose next term is under 1e-16; above, the closed form loses 2 digits."""


def bernoulli_pair(u: Node) -> tuple[Node, Node]:
    """Return B(u) and B(-u) from one exponential; both to a few ulp for all u, and never negative."""
    size = mg.abs(u)
    # Of |u|, where nothing cancels; 0/0 is not chosen, and beyond the largest exponential B is 0.
    falling = mg.where(size > 0.0, size / expm1(size), 1.0)
    rising = falling + size
    return mg.where(u < 0.0, rising, falling), mg.where(u < 0.0, falling, rising)


def bernoulli(u: Node) -> Node:
    """Return B(u) = u / (exp(u) - 1), which is 1 at 0; B(-u) = B(u) + u."""
    return bernoulli_pair(u)[0]


def bernoulli_slope(u: Node) -> Node:
    """Return dB/du, from -1 at minus infinity through -1/2 at 0 to 0; B'(-u) = -1 - B'(u)."""
    down, up = bernoulli_pair(u)
    size = mg.abs(u)
    falling, rising = mg.where(u < 0.0, up, down), mg.where(u < 0.0, down, up)
    square = size * size
    series = -0.5 + size * (1.0 / 6.0 - square * (1.0 / 180.0 - square / 5040.0))
    slope = mg.where(size < NEAR, series, falling * (1.0 - rising) / size)
    return mg.where(u < 0.0, -1.0 - slope, slope)


def relative_slope(u: Node, opposite: Node) -> Node:
    """Return B'(u) / B(u) = (1 - B(-u)) / u, -1/2 at 0, with `opposite` = B(-u); also where B(u) underflows."""
    near = mg.abs(u) < NEAR
    square = u * u
    series = -0.5 - u * (1.0 / 12.0 - square * (1.0 / 720.0 - square / 30240.0))
    return mg.where(near, series, (1.0 - opposite) / mg.where(near, 1.0, u))
