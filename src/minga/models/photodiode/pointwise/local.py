"""The scalar equations that the pointwise scheme solves at one node, its neighbours held: as expressions for kernels.

After C. E. Korman and I. D. Mayergoyz, J. Appl. Phys. 68, 1324 (1990): each equation of a node has one root, and
densities stay positive. In densities, not in Slotboom's variables, which overflow beyond 18 V; the same iteration.
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
"""kT/q: Newton's steps for a node's potential end with one that is no longer than this."""

MOST_STEPS: Final = 200
"""Of Newton's method and bisections at a node; bisections alone need no more than 60."""


def potential_change(rate: Node, excess: Node, electrons: Node, holes: Node) -> tuple[Node, Node]:
    """The root x of rate x + excess + electrons (exp(x) - 1) - holes (exp(-x) - 1) = 0, and how many steps it took.

    `rate` > 0, `electrons` and `holes` >= 0 (densities times volume), `excess` is the residual at x = 0. The left side
    rises, and the root lies between 0 and a bound of closed form. Newton's method starts at the bound, and a step that
    leaves the bracket is replaced by halving it, so that nothing overflows.
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
    """What so many more steps of Newton's method would take, with a result of no use: a cost that no data asks for."""

    def step(state: tuple[Node, Node]) -> tuple[Node, Node]:
        left, x = state
        growth = exp(x)
        more, less = electrons * growth, holes / growth
        # Of a function that is flat on both sides: x stays where exp(x) is finite.
        return left - 1, 0.5 - x * ((more + less) / (rate + more + less))

    end: Node = iterate((rounds, rate * 0.0), lambda state: state[0] > 0, step, 2**31 - 1, expected=2).state[1]
    return end


def density_root(out: Node, inflow: Node, source: Node, other: Node, own: Node, across: Node, square: Node) -> Node:
    """The density n at a node where

        out n - inflow + source (n other - square) / (own n + across) = 0,    own, across, source >= 0,

    Shockley-Read-Hall recombination with `other` the density of the other carriers, `square` = nie^2, `own` = 1/tau of
    the own carriers, `across` = nie/tau + (other + nie)/tau', and `source` = volume/(tau tau'). A quadratic equation
    with one positive root, taken in the form in which nothing cancels. Without recombination all three are 0.
    """
    across = mg.where(across > 0.0, across, 1.0)
    a = out * own
    b = out * across - inflow * own + source * other
    c = inflow * across + source * square
    root = sqrt(b * b + 4.0 * a * c)
    return mg.where(b > 0.0, 2.0 * c / (b + root), 0.5 * (root - b) / mg.where(a > 0.0, a, 1.0))
