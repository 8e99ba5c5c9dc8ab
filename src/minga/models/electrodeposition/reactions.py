"""Fluxes of the ions of reactions that share species, from the cell beside a metal.

Each ion diffuses through the half cell with the conductance k, and the reactions are linear in the concentrations e at
the edge of the double layer. The balance of each ion is a row of M e = k c + s, where s is what metals give:

    (k_i + f_i) e_i - sum over reactions of b e_j = k_i c_i + s_i

Columns of M sum to k plus the loss to metals, so that its inverse G is found from positive numbers alone, however fast
the reactions are. The flux of ion i into the metal is then

    N_i = k_i (c_i - e_i) = leaving c_i - gain c_j - arriving,      leaving = k_i (sum k_j G_ji + sum loss_j G_ji),

with gain = k_i k_j G_ij and arriving = k_i sum G_ij s_j: what one ion of a couple loses, the other gains, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from minga.lang import functions as mg
from minga.lang.expr import Node, as_node, where
from minga.lang.math import exp, log
from minga.models.electrodeposition.reaction import Layer, Reacting, Reaction, group_of

__all__ = ["Half", "Shared", "diffuse_potential", "shared_flux"]

Number = Node | float

FASTEST: Final = 1e9
"""Rate of a reaction in equilibrium, in terms of the conductance of the half cell."""
STEEPEST: Final = 60.0
"""Largest magnitude of exponents."""
POOREST: Final = 1e-9
"""Least concentration, in terms of the reference, for which a reaction has its order."""
ROUNDS: Final = 8
"""Steps of Newton's method for the potential of the diffuse layer, which approach it from one side."""


@dataclass(frozen=True, slots=True, eq=False)
class Half:
    """The half cell beside a metal.

    Attributes
    ----------
    names, charges
        Names and charge numbers of all species.
    cells
        Their concentrations in the cell, mol/m3.
    conductances
        Their conductances, area * D / distance, m3/s.
    area
        Area of the face, m2.
    difference
        Potential of the metal minus that of the cell, V.
    beta, faraday
        F/RT in 1/V, and the Faraday constant in C/mol.
    permittivity
        Permittivity of the solvent, F/m.
    """

    names: Sequence[str]
    charges: Sequence[int]
    cells: Sequence[Node]
    conductances: Sequence[Number]
    area: Number
    difference: Node
    beta: float
    faraday: float
    permittivity: float


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """The flux of an ion into the metal, `leaving * c - gain * partner - arriving`, in mol/s.

    Attributes
    ----------
    leaving, arriving, gain
        Coefficients of the flux, in m3/s, mol/s and m3/s.
    slope
        Derivative of the flux with respect to the potential of the cell, mol/s/V.
    """

    leaving: Number
    arriving: Number
    gain: Number
    slope: Number


@dataclass(frozen=True, slots=True, eq=False)
class _Rate:
    """A reaction: its coefficients forwards and backwards, and their derivatives with respect to the metal."""

    oxidised: int
    reduced: int | None
    forward: Node
    backward: Node
    forward_slope: Node
    backward_slope: Node


def shared_flux(surface: Reacting, name: str, half: Half) -> Shared:
    """Return the flux of an ion into the metal."""
    group = group_of(name, surface.reactions)
    numbers = [half.names.index(n) for n in group]
    own = group.index(name)
    layer = None if surface.layer is None else diffuse_potential(surface.layer, half)
    rates = [_rate(r, group, half, layer) for r in surface.reactions if r.oxidised in group]
    k = [half.conductances[n] for n in numbers]
    loss = [as_node(0.0) for _ in group]
    given = [as_node(0.0) for _ in group]
    flow = [[as_node(0.0) for _ in group] for _ in group]
    for rate in rates:
        if rate.reduced is None:
            loss[rate.oxidised] = loss[rate.oxidised] + rate.forward
            given[rate.oxidised] = given[rate.oxidised] + rate.backward
        else:
            into, out_of = rate.reduced, rate.oxidised
            flow[into][out_of] = flow[into][out_of] + rate.forward
            flow[out_of][into] = flow[out_of][into] + rate.backward
    inverse = _inverse(flow, [k[i] + loss[i] for i in range(len(group))])
    cells = [mg.max(half.cells[n], 0.0) for n in numbers]
    right = [k[i] * cells[i] + given[i] for i in range(len(group))]
    edges = [_sum(inverse[i][j] * right[j] for j in range(len(group))) for i in range(len(group))]
    # The edges move with the metal's potential as if the reactions brought the change of their rates.
    brought = [as_node(0.0) for _ in group]
    for rate in rates:
        back = edges[rate.reduced] if rate.reduced is not None else 1.0
        more = rate.forward_slope * edges[rate.oxidised] - rate.backward_slope * back
        brought[rate.oxidised] = brought[rate.oxidised] - more
        if rate.reduced is not None:
            brought[rate.reduced] = brought[rate.reduced] + more
    moved = k[own] * _sum(inverse[own][j] * brought[j] for j in range(len(group)))
    others = [j for j in range(len(group)) if j != own]
    leaving = _sum(loss[j] * inverse[j][own] for j in range(len(group))) * k[own]
    for j in others:
        leaving = leaving + (k[own] * k[j]) * inverse[j][own]
    gain = _sum((k[own] * k[j]) * inverse[own][j] for j in others)
    return Shared(leaving, k[own] * _sum(inverse[own][j] * given[j] for j in range(len(group))), gain, moved)


def _rate(reaction: Reaction, group: Sequence[str], half: Half, layer: tuple[Node, Node] | None) -> _Rate:
    """Return the coefficients of a reaction; `layer` is the potential at its plane, and its derivative."""
    n, b = reaction.electrons, reaction.transfer
    own, other = reaction.references
    number = half.names.index(reaction.oxidised)
    per_volt = n * half.beta
    driving = per_volt * (half.difference - reaction.equilibrium)
    into_by, out_by = -b * per_volt, (1.0 - b) * per_volt
    slopes = as_node(into_by), as_node(out_by)
    frumkin: Number = 0.0
    if layer is not None:
        moved = (b * n - half.charges[number]) * half.beta
        frumkin, slopes = moved * layer[0], (into_by + moved * layer[1], out_by + moved * layer[1])
    if math.isinf(reaction.exchange):
        # Of the two rates, whose ratio is that of equilibrium, the larger one is limited.
        low = mg.min(mg.max(driving, -STEEPEST), STEEPEST)
        fast = FASTEST * as_node(half.conductances[number])
        ratio = exp(-mg.abs(low))
        forward = fast * where(low > 0.0, ratio, 1.0)
        backward = fast * where(low > 0.0, 1.0, ratio) * (own / other)
        slopes = as_node(-per_volt * b), as_node(per_volt * (1.0 - b))
    else:
        rate = half.area * reaction.exchange / (n * half.faraday)
        forward = rate / own * _limited(-b * driving + frumkin) * _richness(reaction, half.cells[number])
        backward = rate / other * _limited((1.0 - b) * driving + frumkin) if reaction.anodic else as_node(0.0)
    return _Rate(
        group.index(reaction.oxidised),
        None if reaction.reduced is None else group.index(reaction.reduced),
        forward,
        backward,
        slopes[0] * forward,
        slopes[1] * backward,
    )


def diffuse_potential(layer: Layer, half: Half) -> tuple[Node, Node]:
    """Return the potential of the plane of reaction against the solution, V, and its derivative by the metal's.

    It is that of Gouy, Chapman and Stern: the diffuse layer has the charge of the compact one,

        sqrt(8 eps RT I) sinh(F phi2/2RT) = C (E - E_zero - phi2),

    with the ionic strength I, which is exact for a salt of two ions of charge 1.
    """
    strength = as_node(0.0)
    for charge, c in zip(half.charges, half.cells, strict=True):
        strength = strength + (0.5 * charge * charge) * mg.max(c, 0.0)
    thermal = half.faraday / half.beta
    ratio = mg.sqrt((8.0 * half.permittivity * thermal) * strength) * (0.25 * half.beta / layer.compact)
    # With x = F phi2/2RT: 2 ratio sinh x + x = goal; Newton's method starts beyond the root of a convex function.
    driven = 0.5 * half.beta * (half.difference - layer.zero)
    goal = mg.abs(driven)
    steep = mg.max(2.0 * ratio, 1e-30)
    far = goal / steep
    x = mg.min(goal, log(far + mg.sqrt(far * far + 1.0)))
    for _ in range(ROUNDS):
        up = exp(mg.min(x, STEEPEST))
        x = x - (0.5 * steep * (up - 1.0 / up) + x - goal) / (0.5 * steep * (up + 1.0 / up) + 1.0)
    up = exp(mg.min(x, STEEPEST))
    size = where(driven < 0.0, -x, x)
    return (2.0 / half.beta) * size, 1.0 / (1.0 + 0.5 * steep * (up + 1.0 / up))


def _inverse(flow: Sequence[Sequence[Node]], sink: Sequence[Node]) -> list[list[Node]]:
    """Return the inverse of the balances of one ion or two; `flow[i][j]` is the rate from j to i."""
    if len(sink) == 1:
        return [[1.0 / sink[0]]]
    to_first, to_second = flow[0][1], flow[1][0]
    second = sink[1] + to_first
    first = sink[0] + to_second * (sink[1] / second)
    one, cross = 1.0 / first, (to_first / second) / first
    return [[one, cross], [(to_second / second) * one, (1.0 + to_second * cross) / second]]


def _limited(exponent: Node) -> Node:
    return exp(mg.min(mg.max(exponent, -STEEPEST), STEEPEST))


def _richness(reaction: Reaction, cell: Node) -> Number:
    """Return (c/reference)^(order - 1), which makes a reaction of first order one of another order."""
    if reaction.order == 1.0:
        return 1.0
    return exp((reaction.order - 1.0) * log(mg.max(cell * (1.0 / reaction.references[0]), POOREST)))


def _sum(parts: object) -> Node:
    total = as_node(0.0)
    for part in parts:  # type: ignore[attr-defined]
        total = total + part
    return total
