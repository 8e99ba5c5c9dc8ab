"""Recombination and generation at the nodes with tunnelling, from band to band and to traps, and at surfaces.

The field of a node is the root of the mean square over its volume, E^2 = sum over the axes of (h_below E_below^2 +
h_above E_above^2) / (h_below + h_above). Tunnelling from band to band generates (Hurkx, Klaassen, Knuvers 1992)

    G D,   G = A E^p exp(-B/E),   D = (nie^2 - n p) / ((n + nie) (p + nie))

which is 0 in equilibrium. In D the densities are those at the ends of a tunnelling path. Where carriers drift, their
quasi-Fermi potential falls along the path as the band does, and a state that a passing carrier would fill at midgap is
empty: n (nie/Nc)^s stands for n and p (nie/Nv)^s for p, with s = min(1, (grad F / E)^2) of their quasi-Fermi potentials
F. Without this, tunnelling would end as soon as a current makes n exceed nie, which in InP takes 1e-5 A/cm2.

A surface recombines (n p - nie^2) / ((n + nie)/Sp + (p + nie)/Sn) per area, which is spread over the node's volume.

Tunnelling to traps divides the lifetimes by 1 + Gamma, see `minga.models.photodiode.structure.tunnelling`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from minga.lang import functions as mg
from minga.lang.cell import CellReader
from minga.lang.derivative import derivative
from minga.lang.expr import Node, as_node, where
from minga.lang.math import cbrt, exp, expm1
from minga.models.photodiode.solver.coefficients import BandTunnelling, NodeCoefficients, Pieces, TrapTunnelling
from minga.models.photodiode.solver.physics import (
    WEAKEST,
    filled,
    ionisation_coefficient,
    recombination,
    recombination_rate,
    through_traps,
)
from minga.solve.laplacian import step

__all__ = ["Local", "Square", "enhancement", "local_models", "recombined"]

Readers = Sequence[CellReader]
Model = BandTunnelling | TrapTunnelling

NODES: Final = 32
"""Nodes of Gauss's rule for Gamma: its relative error is below 2e-7 for traps up to 110 kT deep."""
NEGLIGIBLE: Final = 60.0
"""Exponent beyond which the integrand of Gamma is 0."""


@dataclass(frozen=True, slots=True)
class Square:
    """Mean square of the gradient of an unknown at a node, (V/cm)^2, and its derivatives.

    `own` is that with respect to the node's unknown; `below` and `above` those of its neighbours, one for each axis.
    """

    value: Node
    own: Node
    below: tuple[Node, ...]
    above: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Local:
    """Tunnelling at a node: its coefficients, the models in use, and the squares of gradients that they depend on.

    Attributes
    ----------
    node
        Coefficients with lifetimes as reduced by tunnelling to traps.
    band
        Coefficients of band-to-band tunnelling, or None.
    surface
        Velocities of recombination of electrons and holes at the surface times its area over the volume of the node,
        1/s, and the carrier that the contact at the node does not hold (1 electrons, 2 holes, 0 none); empty without
        surfaces.
    squares
        Squares of the gradients of the potential and, with `band`, of the electron and hole levels.
    """

    node: NodeCoefficients
    band: BandTunnelling | None = None
    squares: tuple[Square, ...] = ()
    surface: tuple[Node, ...] = ()

    def held(self, row: int) -> Node:
        """Return whether a contact holds an unknown: the potential (0), or the level of electrons (1) or holes (2)."""
        held: Node = self.node.contact != 0
        return as_node(held & (self.surface[2] != row)) if row and self.surface else held

    def at_surface(self, n: Node, p: Node) -> Node | None:
        """Return the surface's part of R over n p - nie^2, cm3/s; None without surfaces."""
        if not self.surface:
            return None
        return through_traps(self.surface[0], self.surface[1], self.node.intrinsic, n, p)

    def rate(self, n: Node, p: Node) -> Node:
        """Return R over n p - nie^2 without tunnelling from band to band, cm3/s."""
        rate, further = recombination_rate(self.node, n, p), self.at_surface(n, p)
        return rate if further is None else rate + further

    def pairing(self, n: Node, p: Node) -> tuple[Node, Node]:
        """Return G / ((n + nie) (p + nie)) in cm3/s with the densities of D, and ln of the reduction of their product.

        Band-to-band tunnelling then recombines this times (n p / exp(reduction) - nie^2).
        """
        assert self.band is not None
        band, nie = self.band, self.node.intrinsic
        square = mg.max(self.squares[0].value, WEAKEST * WEAKEST)
        shares = [mg.min(item.value / square, 1.0) for item in self.squares[1:]]
        less = [share * width for share, width in zip(shares, (band.log_n, band.log_p), strict=True)]
        made = ionisation_coefficient(Pieces((band.a,), (band.b,), (1.0,), (band.power,), ()), mg.sqrt(square))
        bottom = (n * exp(-less[0]) + nie) * (p * exp(-less[1]) + nie)
        return made / bottom, less[0] + less[1]


def local_models(
    node: NodeCoefficients,
    templates: Sequence[Model],
    models: Readers,
    weights: Readers,
    surface: Readers,
    state: Readers,
    ndim: int,
) -> Local:
    """Return tunnelling and surfaces at the node of a kernel.

    Parameters
    ----------
    templates
        `Coefficients.tunnelling`.
    models
        Their fields, in the order of `fields_of`.
    weights
        `Coefficients.gradients`, two for each axis.
    surface
        `Coefficients.surface`.
    state
        Potential, electron level, hole level.
    """
    here, rest = (0,) * ndim, list(models)
    own_surface = tuple(item[here] for item in surface)
    if not templates:
        return Local(node, surface=own_surface)
    band = None
    squares: tuple[Square, ...] = (_square(state[0], weights, ndim),)
    for template in templates:
        own = filled(template, rest, here)
        if isinstance(own, BandTunnelling):
            band = own
            squares = (squares[0], *(_square(item, weights, ndim) for item in state[1:3]))
        else:
            more = 1.0 + enhancement(own.depth, own.strength, squares[0].value)
            node = replace(node, rate_n=node.rate_n * more, rate_p=node.rate_p * more)
    return Local(node, band, squares, own_surface)


def _square(unknown: CellReader, weights: Readers, ndim: int) -> Square:
    here = (0,) * ndim
    value: Any = 0.0
    own: Any = 0.0
    below, above = [], []
    for axis in range(ndim):
        low, high = (unknown[step(ndim, axis, side)] - unknown[here] for side in (-1, 1))
        by_low, by_high = (weights[2 * axis + k][here] * change for k, change in enumerate((low, high)))
        value = value + (by_low * low + by_high * high)
        own = own - 2.0 * (by_low + by_high)
        below.append(2.0 * by_low)
        above.append(2.0 * by_high)
    return Square(value, own, tuple(below), tuple(above))


def enhancement(depth: Node, strength: Node, square: Node) -> Node:
    """Return Gamma of traps with a depth in kT and a field F in V/cm at the square of a field, (V/cm)^2.

    With u = (r t)^2 the integrand is smooth in t from 0 to 1; beyond r it is 0 or ends at the band. Below `WEAKEST`
    Gamma falls to 0 with the square of the field, without a kink where it grows as E^(2/3).
    """
    strong = mg.max(square, WEAKEST * WEAKEST)
    reach = strength / mg.sqrt(strong)
    end = mg.min(mg.max(2.0 * depth / reach, cbrt(NEGLIGIBLE / reach)), 1.0)
    points, shares = np.polynomial.legendre.leggauss(NODES)
    total: Any = 0.0
    for x, share in zip(points.tolist(), shares.tolist(), strict=True):
        t = 0.5 * (x + 1.0)
        u = end * end * (t * t)
        total = total + (share * t) * exp(u * (depth - reach * (end * t)))
    found = depth * (end * end) * total
    low = mg.min(square * (1.0 / (WEAKEST * WEAKEST)), 1.0)
    return as_node(where(square < WEAKEST * WEAKEST, found * (low * (5.0 - 2.0 * low) / 3.0), found))


def recombined(local: Local, n: Node, p: Node, split: Node, behind: Node | None = None) -> tuple[Node, list[Node]]:
    """Return `recombination` with tunnelling and surfaces, and its derivatives by the squares of `Local`."""
    rate = recombination(local.node, n, p, split, behind, local.at_surface(n, p))
    if local.band is not None:
        paired, reduction = local.pairing(n, p)
        squared = local.node.intrinsic * local.node.intrinsic
        if behind is not None:
            squared = squared * exp(behind)
        rate = rate + paired * squared * expm1(split - reduction)
    return rate, [derivative(rate, item.value) for item in local.squares]
