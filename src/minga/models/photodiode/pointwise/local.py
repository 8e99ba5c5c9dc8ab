"""Scalar equations that the pointwise scheme solves at one node with its neighbours fixed, as kernel expressions.

After C. E. Korman and I. D. Mayergoyz, J. Appl. Phys. 68, 1324 (1990): each equation of a node has exactly one root,
and densities stay positive. The iteration is the same, but formulated in densities instead of Slotboom variables,
which overflow beyond 18 V.
"""

from __future__ import annotations

from typing import Final

from minga.lang import functions as mg
from minga.lang.expr import Node
from minga.lang.functions import sqrt
from minga.lang.iterate import iterate
from minga.lang.math import exp, log1p

__all__ = ["density_root", "potential_change", "spent"]

TOLERANCE: Final = 1e-12
"""Length of a Newton step, kT/q, at or below which the iteration for a node's potential ends."""

MOST_STEPS: Final = 200
"""Largest number of Newton and bisection steps at a node; bisection alone needs at most 60."""


def potential_change(rate: Node, excess: Node, electrons: Node, holes: Node) -> tuple[Node, Node]:
    """Return the root x of rate x + excess + electrons (exp(x) - 1) - holes (exp(-x) - 1) = 0, and the number of steps.

    The left side increases with x, and the root lies between 0 and a closed-form bound. Newton's method starts at the
    bound; a step that would leave the bracket is replaced by bisection, so that nothing overflows.

    Parameters
    ----------
    rate
        Positive coefficient of x.
    excess
        Residual at x = 0.
    electrons, holes
        Densities times volume, not negative.
    """
    right = mg.min(-excess / rate, log1p(mg.max(-excess, 0.0) / electrons))
    left = -mg.min(excess / rate, log1p(mg.max(excess, 0.0) / holes))
    rising = excess < 0.0
    low, high = mg.where(rising, 0.0, left), mg.where(rising, right, 0.0)
    level = excess - electrons + holes

    def going(state: tuple[Node, Node, Node, Node]) -> Node:
        return state[3] > TOLERANCE

    def step(state: tuple[Node, Node, Node, Node]) -> tuple[Node, Node, Node, Node]:
        x, low, high, _ = state
        growth = exp(x)
        more, less = electrons * growth, holes / growth
        value = rate * x + level + more - less
        low, high = mg.where(value < 0.0, x, low), mg.where(value < 0.0, high, x)
        newton = x - value / (rate + more + less)
        inside = (newton >= low) & (newton <= high)
        new = mg.where(inside, newton, 0.5 * (low + high))
        return new, low, high, mg.abs(new - x)

    start = mg.where(rising, high, low)
    found = iterate((start, low, high, mg.abs(start) + 1.0), going, step, MOST_STEPS, expected=2)
    return found.state[0], found.rounds


def spent(rate: Node, electrons: Node, holes: Node, rounds: Node) -> Node:
    """Spend the time of `rounds` further Newton steps on a result that is not used."""

    def step(state: tuple[Node, Node]) -> tuple[Node, Node]:
        left, x = state
        growth = exp(x)
        more, less = electrons * growth, holes / growth
        # The function is flat on both sides: x does not move where exp(x) is finite.
        return left - 1, 0.5 - x * ((more + less) / (rate + more + less))

    end: Node = iterate((rounds, rate * 0.0), lambda state: state[0] > 0, step, 2**31 - 1, expected=2).state[1]
    return end


def density_root(out: Node, inflow: Node, source: Node, other: Node, own: Node, across: Node, square: Node) -> Node:
    """Return the density n at a node that solves its continuity equation.

    The equation is

        out n - inflow + source (n other - square) / (own n + across) = 0,    own, across, source >= 0,

    with Shockley-Read-Hall recombination, where `other` is the density of the other carriers, `square` = nie^2, `own` =
    1/tau of the own carriers, `across` = nie/tau + (other + nie)/tau', and `source` = volume/(tau tau'). This quadratic
    equation has one positive root, which is evaluated in the form without cancellation. Without recombination `own`,
    `across` and `source` are 0.
    """
    across = mg.where(across > 0.0, across, 1.0)
    a = out * own
    b = out * across - inflow * own + source * other
    c = inflow * across + source * square
    root = sqrt(b * b + 4.0 * a * c)
    return mg.where(b > 0.0, 2.0 * c / (b + root), 0.5 * (root - b) / mg.where(a > 0.0, a, 1.0))
