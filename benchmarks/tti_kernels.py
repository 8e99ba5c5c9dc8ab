"""The Fletcher model's kernels: pseudo-acoustic waves in a tilted transversely isotropic medium, eighth order in space.

Equations: R. P. Fletcher, X. Du, P. J. Fowler, "Reverse time migration in tilted transversely isotropic (TTI) media",
Geophysics 74(6), 2009. A step takes p and q twice differentiated and writes the next p and q over the ones before.
peers.c has the same operations in the same order.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import minga as mg
from minga.lang.graph import KernelGraph
from minga.lang.kernel import FieldType, ScalarType, Signature

FIRST = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
"""Weights of the cells at distance 1, 2, 3, 4 in a first derivative."""
SECOND = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
"""Weights of the cells at distance 0, 1, 2, 3, 4 in a second derivative."""
Z, Y, X = 0, 1, 2
HERE = (0, 0, 0)
INVERSE_SIGMA = 4 / 3


def total(terms: Iterable[Any]) -> Any:
    """The sum from left to right (Python's begins with 0, which is one operation more)."""
    return reduce(operator.add, terms)


def along(*steps: tuple[int, int]) -> tuple[int, ...]:
    """The offset of so many cells along each of these axes."""
    offset = [0, 0, 0]
    for axis, cells in steps:
        offset[axis] += cells
    return tuple(offset)


def first(u: Any, axis: int) -> Any:
    return total(w * (u[along((axis, k))] - u[along((axis, -k))]) for k, w in enumerate(FIRST, 1))


def second(u: Any, axis: int) -> Any:
    pairs = [SECOND[k] * (u[along((axis, k))] + u[along((axis, -k))]) for k in range(1, 5)]
    return total([SECOND[0] * u[HERE], *pairs])


def cross(u: Any, a: int, b: int) -> Any:
    """The mixed derivative as the full product of two first derivatives: 64 points, equal weights taken together."""
    terms = []
    for k in range(1, 5):
        for m in range(k, 5):
            corners = _corners(u, a, b, k, m)
            if m != k:
                more = [u[along((a, s * m), (b, t * k))] for s in (1, -1) for t in (1, -1)]
                corners = corners + more[0] - more[1] - more[2] + more[3]
            terms.append(FIRST[k - 1] * FIRST[m - 1] * corners)
    return total(terms)


def _corners(u: Any, a: int, b: int, k: int, m: int) -> Any:
    ahead = u[along((a, k), (b, m))] - u[along((a, k), (b, -m))]
    return ahead - u[along((a, -k), (b, m))] + u[along((a, -k), (b, -m))]


def tilted(coefficients: Sequence[Any], straight: Sequence[Any], mixed: Sequence[Any]) -> tuple[Any, Any]:
    """The second derivative along the medium's axis, and the two across it."""
    h1 = total(c * d for c, d in zip(coefficients, [*straight, *mixed], strict=True))
    return h1, total(straight) - h1


def right_sides(velocities: Sequence[Any], p: tuple[Any, Any], q: tuple[Any, Any]) -> tuple[Any, Any]:
    vpx2, vpz2, vsz2, vpn2 = velocities
    (h1p, h2p), (h1q, h2q) = p, q
    return (
        vpx2 * h2p + vpz2 * h1q + vsz2 * (h1p - h1q),
        vpn2 * h2p + vpz2 * h1q - vsz2 * (h2p - h2q),
    )


@mg.kernel
def tti_full(p, q, old_p, old_q, coefficients, velocities, *, inverse, dt):
    """Mixed derivatives as products of 64 points, as in the public codes; `inverse` is 1 / h**2."""

    def both(u: Any) -> tuple[Any, Any]:
        straight = [second(u, axis) * inverse for axis in (X, Y, Z)]
        mixed = [cross(u, a, b) * inverse for a, b in ((X, Y), (Y, Z), (X, Z))]
        return tilted([c[HERE] for c in coefficients], straight, mixed)

    rp, rq = right_sides([v[HERE] for v in velocities], both(p), both(q))
    old_p[HERE] = 2.0 * p[HERE] - old_p[HERE] + dt * dt * rp
    old_q[HERE] = 2.0 * q[HERE] - old_q[HERE] + dt * dt * rq


def factorised(u: Any, coefficients: Sequence[Any]) -> tuple[Any, Any]:
    """Mixed derivatives as first derivatives of first derivatives, which are intermediates."""
    by_x, by_y = mg.local(first(u, X)), mg.local(first(u, Y))
    straight = [second(u, axis) for axis in (X, Y, Z)]
    return tilted(coefficients, straight, [first(by_y, X), first(by_y, Z), first(by_x, Z)])


def advance(p: Any, q: Any, old_p: Any, old_q: Any, coefficients: Sequence[Any], velocities: Sequence[Any]) -> None:
    rp, rq = right_sides(velocities, factorised(p, coefficients), factorised(q, coefficients))
    old_p[HERE] = 2.0 * p[HERE] - old_p[HERE] + rp
    old_q[HERE] = 2.0 * q[HERE] - old_q[HERE] + rq


@mg.kernel
def tti_ten(p, q, old_p, old_q, coefficients, velocities):
    """Ten arrays of coefficients; dt**2 / h**2 is in the velocities."""
    advance(p, q, old_p, old_q, [c[HERE] for c in coefficients], [v[HERE] for v in velocities])


@mg.kernel
def tti_six(p, q, old_p, old_q, axis, vpz2, epsilon, delta):
    """Six arrays: the unit vector of the medium's axis, the squared velocity, and Thomsen's parameters."""
    ax, ay, az = (a[HERE] for a in axis)
    speed, e, d = vpz2[HERE], epsilon[HERE], delta[HERE]
    coefficients = [ax * ax, ay * ay, az * az, 2.0 * ax * ay, 2.0 * ay * az, 2.0 * ax * az]
    shear = speed * abs(e - d) * INVERSE_SIGMA
    velocities = [speed * (1.0 + 2.0 * e), speed, shear, speed * (1.0 + 2.0 * d)]
    advance(p, q, old_p, old_q, coefficients, velocities)


KERNELS: dict[str, tuple[mg.Kernel, tuple[int, ...]]] = {
    "tti_full": (tti_full, (1, 1, 1, 1, 6, 4)),
    "tti_ten": (tti_ten, (1, 1, 1, 1, 6, 4)),
    "tti_six": (tti_six, (1, 1, 1, 1, 3, 1, 1, 1)),
}
"""Each kernel, and how many arrays each of its parameters is (1: a field, more: a list of fields)."""

SCALARS: dict[str, dict[str, float]] = {"tti_full": {"inverse": 0.64, "dt": 0.75}, "tti_ten": {}, "tti_six": {}}


def graph_of(name: str) -> KernelGraph:
    """The kernel, traced for f4 fields."""
    kernel, counts = KERNELS[name]
    one = FieldType("f4", (Z, Y, X))
    fields = tuple(one if count == 1 else (one,) * count for count in counts)
    scalars = tuple((scalar, ScalarType("f4", False)) for scalar in SCALARS[name])
    return kernel.graph(Signature(3, fields, scalars))
