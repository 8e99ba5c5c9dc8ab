"""Recombination and generation at the nodes with tunnelling, from band to band and to traps, and at surfaces.

The field of a node is the root of the mean square over its volume, E^2 = sum over the axes of (h_below E_below^2 +
h_above E_above^2) / (h_below + h_above). Tunnelling from band to band generates (Hurkx, Klaassen, Knuvers 1992)

    G D,   G = A E^p exp(-B/E),   D = (nie^2 - n* p*) / ((n* + nie) (p* + nie))

which is 0 in equilibrium, with the densities n* and p* at the ends of a tunnelling path. Where carriers drift, their
quasi-Fermi potential falls along the path as the band does, and a state that a passing carrier would fill at midgap is
empty: n* = n (nie/Nc)^s and p* = p (nie/Nv)^s, with s = r (2 - r), r = min(1, (grad F / E)^2) of their quasi-Fermi
potentials F. With n and p, tunnelling would end as soon as a current makes n exceed nie, which in InP takes 1e-5 A/cm2.

Traps emit 1 + Gamma times as fast in a field (see `minga.models.photodiode.structure.tunnelling`), and capture carriers
from both ends of a path as well, n + Gamma n* and p + Gamma p*:

    R = ((n + Gamma n*) (p + Gamma p*) - (1 + Gamma)^2 nie^2)
        / (tau_p (n + Gamma n* + (1 + Gamma) nie) + tau_n (p + Gamma p* + (1 + Gamma) nie))

With n* = n and p* = p this is Hurkx's model, lifetimes divided by 1 + Gamma.

A surface recombines (n p - nie^2) / ((n + nie)/Sp + (p + nie)/Sn) per area, which is spread over the node's volume.
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
from minga.models.photodiode.solver.coefficient_fields import NodeCoefficients, Pieces
from minga.models.photodiode.solver.densities import recombination, recombination_rate, through_traps
from minga.models.photodiode.solver.node_models import BandTunnelling, TrapTunnelling
from minga.models.photodiode.solver.physics import WEAKEST, filled, ionisation_coefficient
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
class Exchange:
    """Recombination rate (capture n p - emission nie^2), rate in cm3/s, of one kind."""

    rate: Node
    capture: Node
    emission: Node


@dataclass(frozen=True, slots=True)
class Local:
    """Tunnelling at a node: its coefficients, the models in use, and the squares of gradients that they depend on.

    Attributes
    ----------
    node
        Coefficients of the node.
    band, trap
        Coefficients of tunnelling from band to band and to traps, or None.
    surface
        Velocities of recombination of electrons and holes at the surface times its area over the volume of the node,
        1/s, and the carrier that the contact at the node does not hold (1 electrons, 2 holes, 0 none); empty without
        surfaces.
    squares
        With tunnelling, squares of the gradients of the potential and of the electron and hole levels.
    """

    node: NodeCoefficients
    band: BandTunnelling | None = None
    trap: TrapTunnelling | None = None
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

    @property
    def plain(self) -> NodeCoefficients:
        """Coefficients without the traps that carriers tunnel to."""
        return self.node if self.trap is None else replace(self.node, rate_n=0.0, rate_p=0.0)

    def rate(self, n: Node, p: Node) -> Node:
        """Return R over n p - nie^2 but for `exchanges`, cm3/s."""
        rate, further = recombination_rate(self.plain, n, p), self.at_surface(n, p)
        return rate if further is None else rate + further

    def exchanges(self, n: Node, p: Node) -> list[Exchange]:
        """Return tunnelling from band to band and through traps."""
        found: list[Exchange] = []
        if not self.squares:
            return found
        node, square = self.node, mg.max(self.squares[0].value, WEAKEST * WEAKEST)
        ratios = [mg.min(item.value / square, 1.0) for item in self.squares[1:]]
        shares = [ratio * (2.0 - ratio) for ratio in ratios]
        for model in (self.band, self.trap):
            if model is None:
                continue
            logs = zip(shares, (model.log_n, model.log_p), strict=True)
            ends = [exp(-share * width) for share, width in logs]
            if isinstance(model, BandTunnelling):
                pieces = Pieces((model.a,), (model.b,), (1.0,), (model.power,), ())
                bottom = (n * ends[0] + node.intrinsic) * (p * ends[1] + node.intrinsic)
                rate = ionisation_coefficient(pieces, mg.sqrt(square)) / bottom
                found.append(Exchange(rate, ends[0] * ends[1], as_node(1.0)))
            else:
                gamma = enhancement(model.depth, model.strength, self.squares[0].value)
                emitted, captured = 1.0 + gamma, [1.0 + gamma * end for end in ends]
                rate = through_traps(
                    node.rate_n, node.rate_p, node.intrinsic * emitted, n * captured[0], p * captured[1]
                )
                found.append(Exchange(rate, captured[0] * captured[1], emitted * emitted))
        return found


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
    models_here = [filled(template, rest, here) for template in templates]
    band = next((item for item in models_here if isinstance(item, BandTunnelling)), None)
    trap = next((item for item in models_here if isinstance(item, TrapTunnelling)), None)
    return Local(node, band, trap, tuple(_square(item, weights, ndim) for item in state[:3]), own_surface)


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
    rate = recombination(local.plain, n, p, split, behind, local.at_surface(n, p))
    squared = local.node.intrinsic * local.node.intrinsic
    if behind is not None:
        squared = squared * exp(behind)
    for item in local.exchanges(n, p):
        # In equilibrium both terms are exactly 0.
        rate = rate + item.rate * squared * (item.capture * expm1(split) + (item.capture - item.emission))
    return rate, [derivative(rate, item.value) for item in local.squares]
