"""Densities at a node, what it holds, and recombination there, in kernels."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from minga.lang.cell import CellReader
from minga.lang.derivative import derivative
from minga.lang.expr import Node, as_node, where
from minga.lang.kernel import Kernel
from minga.lang.math import exp, expm1
from minga.models.photodiode.solver.coefficient_fields import NodeCoefficients
from minga.models.photodiode.solver.coefficient_values import POTENTIAL
from minga.models.photodiode.solver.fermi import activity
from minga.models.photodiode.structure.constants import REFERENCE_DENSITY
from minga.models.photodiode.structure.heavy import NodeDopants

__all__ = [
    "carriers",
    "dopants_at",
    "held_row",
    "neutral_acceptors",
    "neutral_dopants",
    "recombination",
    "recombination_rate",
    "through_traps",
]

Readers = Sequence[CellReader]


@functools.cache
def carriers(ndim: int) -> Kernel:
    """Return the kernel of electron and hole densities, 1/cm3, from a state.

    `states` are those of Coefficients, and empty for Boltzmann statistics. Otherwise `activities` receive ln gamma of
    electrons and holes, and d ln n / d eta of each (see `fermi`).
    """
    here = (0,) * ndim

    def densities(
        state: Readers, theta_n: CellReader, theta_p: CellReader, states: Readers, n: CellReader, p: CellReader,
        activities: Readers, *, bias: Node,
    ) -> None:  # fmt: skip
        potential, electron, hole = (item[here] for item in state)
        levels = [potential + theta_n[here] - electron, (hole - theta_p[here]) + (bias - potential)]
        for k, band in enumerate(states):
            eta = levels[k] - band[here]
            behind = activity(eta)
            activities[k][here] = behind
            activities[2 + k][here] = 1.0 + derivative(behind, eta)
            levels[k] = levels[k] + behind
        n[here] = REFERENCE_DENSITY * exp(levels[0])
        p[here] = REFERENCE_DENSITY * exp(levels[1])

    return Kernel(densities, name="carrier densities")


def neutral_dopants(dopants: Readers, place: tuple[int, ...], n: Node, p: Node, activities: Sequence[Node]) -> Any:
    """Return `NodeDopants.neutral` in a kernel; zeros without such dopants. `activities`: both ln gamma, or empty."""
    if not dopants:
        return 0.0, 0.0, 0.0
    return dopants_at(dopants, place).neutral(*_over_gamma(n, p, activities))


def neutral_acceptors(
    dopants: Readers, place: tuple[int, ...], n: Node, p: Node, activities: Sequence[Node]
) -> Node:  # fmt: skip
    """Return the density of neutral acceptors in a kernel, 1/cm3; the arguments are those of `neutral_dopants`."""
    found = dopants_at(dopants, place)
    return as_node(found.acceptors * found.shares(*_over_gamma(n, p, activities))[1])


def dopants_at(dopants: Readers, place: tuple[int, ...]) -> NodeDopants:
    """Return the dopants of a node in a kernel; the entries are nodes."""
    found: list[Any] = [item[place] for item in dopants]
    return NodeDopants(*found)


def _over_gamma(n: Node, p: Node, activities: Sequence[Node]) -> tuple[Node, Node]:
    return (n * exp(-activities[0]), p * exp(-activities[1])) if activities else (n, p)


def held_row(contact: Node, free: Readers, row: int, place: tuple[int, ...]) -> Node:
    """Return whether a contact holds an unknown: the potential (0), or the level of electrons (1) or holes (2).

    `free` is `Coefficients.free`.
    """
    held = as_node(contact != 0)
    return as_node(held & (free[0][place] != (row or POTENTIAL))) if free else held


def recombination(
    node: NodeCoefficients, n: Node, p: Node, split: Node, behind: Node | None = None, further: Node | None = None
) -> Node:
    """Return R in 1/cm3 s; `split` is Fp - Fn in kT/q, and `behind` the sum of both ln gamma (None: 0).

    `further` is added to `recombination_rate`.
    """
    squared = node.intrinsic * node.intrinsic
    if behind is not None:
        squared = squared * exp(behind)
    rate = recombination_rate(node, n, p)
    return as_node(squared * expm1(split) * (rate if further is None else rate + further))


def recombination_rate(node: NodeCoefficients, n: Node, p: Node) -> Node:
    """Return R over n p - nie^2, cm3/s."""
    shockley = through_traps(node.rate_n, node.rate_p, node.intrinsic, n, p)
    return as_node(shockley + node.radiative + node.auger_n * n + node.auger_p * p)


def through_traps(rate_n: Node, rate_p: Node, intrinsic: Node, n: Node, p: Node) -> Node:
    """Return 1 / (tau_p (n + n1) + tau_n (p + p1)) from 1/tau, valid for infinite lifetimes as well."""
    traps = rate_n * (n + intrinsic) + rate_p * (p + intrinsic)
    return as_node(rate_n * rate_p / where(traps > 0.0, traps, 1.0))
