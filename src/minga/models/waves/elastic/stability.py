"""The stable time step of elastic waves.

Let W be the sum of the magnitudes of the staggered weights, S_a = (2 W / h_a)^2, and S the sum of S_a over the axes.
By the inequality of Cauchy and Schwarz the elastic energy of velocities v is at most half the sum, over all v_a, of
v_a^2 times

    avg_a(max(lambda, 0) S + 2 mu S_a) + sum over b != a of 2 S_b avg_b(mu_ab)

(a negative lambda only takes from the energy) where the averages are over the stresses that use v_a, with the
magnitudes of the weights. Steps are stable while this,
times the buoyancy there and dt^2, is at most 4 everywhere, in any medium. In uniform media with lambda >= 0 it is
vp^2 S dt^2 <= 4, which is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from minga.models.waves.elastic.layout import Component
from minga.models.waves.elastic.medium import Coefficients, coefficient
from minga.models.waves.elastic.stencils import staggered_weights
from minga.models.waves.medium import Floats, sampled_boxes
from minga.space.box import Box

__all__ = ["step_limit"]


def step_limit(coefficients: Coefficients, order: int, *, sample: bool = False) -> float:
    """Return the longest stable time step, s.

    Parameters
    ----------
    coefficients
        Coefficients of the equations.
    order
        Order of the differences in space.
    sample
        Whether to inspect a sample of the medium only.
    """
    weights = [abs(float(w)) for w in staggered_weights(order)]
    total = sum(weights)
    squares = [(2 * total / h) * (2 * total / h) for h in coefficients.domain.spacing]
    shares = [w / (2 * total) for w in weights]
    shape = coefficients.domain.shape
    uniform = coefficients.uniform
    largest = 0.0
    for part in (Box((0,) * len(shape), (1,) * len(shape)),) if uniform else sampled_boxes(shape, sample):
        box = part.shift(coefficients.domain.low)
        for each in coefficients.components.values():
            if each.velocity:
                largest = max(largest, float(_frequency2(coefficients, each, box, shares, squares).max()))
    return 2 / math.sqrt(largest)


def _frequency2(
    coefficients: Coefficients, velocity: Component, box: Box, shares: Sequence[float], squares: Sequence[float]
) -> Floats:
    """Return the bound of the squared frequencies at the places of a velocity."""
    (a,) = velocity.axes
    reach = len(shares)
    total = sum(squares)
    wide = _wider(box, a, reach - 1, reach)
    modulus = np.maximum(coefficients.values("lambda", wide), 0.0)  # if negative, shear beside it need not pay it back
    normal = modulus * total + coefficients.values("mu", wide) * (2 * squares[a])
    bound = _average(normal, a, shares, box.shape[a])
    for stress in coefficients.components.values():
        if stress.kind == "shear" and a in stress.axes:
            (b,) = (axis for axis in stress.axes if axis != a)
            shear = coefficients.values(coefficient(stress), _wider(box, b, reach, reach - 1))
            bound = bound + 2 * squares[b] * _average(shear, b, shares, box.shape[b])
    return bound * coefficients.values(coefficient(velocity), box)


def _wider(box: Box, axis: int, below: int, above: int) -> Box:
    lo, hi = list(box.lo), list(box.hi)
    lo[axis] -= below
    hi[axis] += above
    return Box(tuple(lo), tuple(hi))


def _average(values: Floats, axis: int, shares: Sequence[float], length: int) -> Floats:
    """Return averages of 2 m values along an axis each, whose shares fall from the middle to both sides."""
    m = len(shares)
    moved = np.moveaxis(values, axis, 0)
    found = np.zeros((length, *moved.shape[1:]))
    for k in range(2 * m):
        found = found + shares[m - 1 - k if k < m else k - m] * moved[k : k + length]
    return np.moveaxis(found, 0, axis)
