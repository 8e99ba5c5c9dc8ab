"""Fluxes of ions in a solution that is neutral in every cell: between two cells, and into a metal next to a cell.

In a neutral solution the field follows from the gradient of the salt, so that it is not constant between two centres.
The flux is then that of the logarithmic mean of the concentrations,

    N = -(D/h) [(c_R - c_L) + z (F/RT) (phi_R - phi_L) c_log],      c_log = (c_R - c_L) / ln(c_R / c_L),

which is exact for the steady state of a binary salt, vanishes in equilibrium, and adds no diffusion in strong fields.
Exponential fitting (`minga.models.electrodeposition.fluxes`) is only of first order where a salt is depleted.

At a metal where one ion passes, all others are in equilibrium between the cell's centre and the edge of the double
layer, half a cell away. With rho = z_m^2 c_m / sum of z^2 c of the others, which is z_m/|z| for a binary salt,

    N = (1 + rho) (D/(h/2)) (c - c_e),      z_m (F/RT) (phi_e - phi) = rho ln(c_e / c),

and the condition at the electrode determines the concentration c_e at the edge. This is exact in one dimension for a
binary salt, up to the limiting current.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from minga.lang import functions as mg
from minga.lang.expr import Node, as_node, where
from minga.lang.math import exp, log

__all__ = ["Edge", "fitted", "kinetic_edge", "limited_exponential", "mean_flux", "near_mean", "reversible_edge"]

Number = Node | float

LAYER: Final = 10.0
"""Distance of cells, in Debye lengths, up to which layers of charge are resolved; above it, fluxes change over to
logarithmic means."""
WIDEST: Final = 1e13
"""Largest ratio of two concentrations in weights."""
NEAR: Final = 0.05
"""Magnitude of that logarithm below which weights are evaluated as series, whose next term is below 1e-16."""
TINY: Final = 1e-100
"""Concentration that replaces 0 in ratios, mol/m3."""
LARGEST: Final = 60.0
"""Largest magnitude of exponents; beyond it, transport alone determines the flux."""
RICHEST: Final = 5.0
"""Logarithm of the edge's concentration over the reference above which a line replaces the exponential, so that
corrections return at once. Salts would not stay dissolved at such concentrations."""


def fitted(widths: Node) -> Node:
    """Return the fraction of a flux that is exponentially fitted; `widths` is the squared distance in Debye lengths."""
    wide = widths > LAYER * LAYER
    return where(wide, LAYER * LAYER / where(wide, widths, 1.0), 1.0)


def _weights(r: Node, ratio: Node, inverse: Node) -> tuple[Node, Node]:
    """Return (exp(r) - 1 - r) / r^2 for r and for -r, with r = ln(ratio): the derivatives of the logarithmic mean.

    The first one is that by the lower argument, the second that by the upper one. Both exponentials are known.
    """
    near = mg.abs(r) < NEAR
    small = where(near, r, 0.0)
    square = small * small
    even = 1.0 / 2 + square * (1.0 / 24 + square * (1.0 / 720 + square * (1.0 / 40320)))
    odd = small * (1.0 / 6 + square * (1.0 / 120 + square * (1.0 / 5040 + square * (1.0 / 362880))))
    by_square = 1.0 / where(near, 1.0, r * r)
    return (
        where(near, even + odd, ((ratio - 1.0) - r) * by_square),
        where(near, even - odd, ((inverse - 1.0) + r) * by_square),
    )


def mean_flux(drop: Node, diffusion: tuple[Number, Number], low: Node, high: Node) -> tuple[Node, Node, Node]:
    """Return the weights a, b of the flux a * low - b * high in units of D/h, and the mean concentration.

    The weights depend on the concentrations. They are those of the tangent (the mean is homogeneous, so its tangent has
    no constant term); where one of them would be negative, both are raised such that the flux stays the same.

    Parameters
    ----------
    drop
        z (F/RT) (phi_R - phi_L).
    diffusion
        Weights without a potential drop: 1 and 1, or those of a moving fluid.
    low, high
        Concentrations below and above the face.

    Returns
    -------
    tuple
        The weights a and b, neither ever negative, and the mean concentration.
    """
    below, above = mg.max(low, TINY), mg.max(high, TINY)
    by_product = 1.0 / (below * above)
    ratio, inverse = (mg.min(mg.max(c * c * by_product, 1.0 / WIDEST), WIDEST) for c in (above, below))
    of_low, of_high = _weights(log(ratio), ratio, inverse)
    up, down = diffusion[0] - drop * of_low, diffusion[1] + drop * of_high
    raised = by_product * mg.max(mg.max(-(up * below), -(down * above)), 0.0)
    return mg.max(up + raised * above, 0.0), mg.max(down + raised * below, 0.0), of_low * below + of_high * above


def near_mean(low: Node, high: Node) -> Node:
    """Return an estimate of the logarithmic mean that needs no logarithm, an upper bound (Carlson, 1972).

    It is two thirds of the geometric and a third of the arithmetic mean: 0.05 % too large where one concentration is
    three times the other, 9 % for a hundred times.
    """
    below, above = mg.max(low, TINY), mg.max(high, TINY)
    return (2.0 / 3.0) * mg.sqrt(below * above) + (1.0 / 6.0) * (below + above)


@dataclass(frozen=True, slots=True)
class Edge:
    """The flux into a metal, leaving * c - arriving, divided by (1 + rho) times the conductance.

    Attributes
    ----------
    leaving, arriving
        Coefficients of the scaled flux.
    slope
        Its derivative with respect to the potential of the cell, divided by z F/RT.
    """

    leaving: Number
    arriving: Number
    slope: Number


def limited_exponential(exponent: Node) -> tuple[Node, Node]:
    """Return the exponential, continued linearly beyond `RICHEST`, and its slope."""
    slope = exp(mg.max(mg.min(exponent, RICHEST), -LARGEST))
    return slope * (1.0 + mg.max(exponent - RICHEST, 0.0)), slope


def reversible_edge(reference: float, rho: Number, driving: Node, cell: Node) -> Edge:
    """Return the flux to an edge in equilibrium with the metal, c_e = reference * exp(driving - rho ln(c_e/c)).

    Here `driving` is z F/RT (metal - cell). A concentration held in the double layer of the metal leads to the same
    condition; a reference of 0 keeps the edge at 0.
    """
    if reference == 0.0:
        return Edge(1.0, 0.0, 0.0)
    c = mg.max(cell, TINY)
    found, slope = limited_exponential((driving + rho * log(c / reference)) / (1.0 + rho))
    edge = reference * found
    # The edge follows the cell along the tangent: less so where the cell would give more than it has, but fully where
    # the edge has the cell's concentration. Otherwise passes would not converge in narrow cells.
    part = rho / (1.0 + rho)
    follows = mg.min(part * edge, (max(part, 0.5) if isinstance(part, float) else mg.max(part, 0.5)) * c)
    return Edge(1.0 - follows / c, edge - follows, reference * slope / (1.0 + rho))


def kinetic_edge(
    rate: Node, reference: float, symmetry: float, order: float, rho: Number, driving: Node, cell: Node,
    power: float = 1.0, *, anodic: bool = True,
) -> Edge:  # fmt: skip
    """Return the flux to an edge with Butler-Volmer kinetics.

    The concentration at the edge is such that the reaction and the half cell have the same flux. With s = ln(c_e/c),
    m = order * rho, the symmetry b and the power p, this is one equation,

        k1 exp((p + b m) s) + exp(s) = 1 + k2 exp(-(1 - b) m s).

    The logarithms of both sides are nearly straight lines; Newton's method starts where their largest terms agree.

    Parameters
    ----------
    rate
        i0 divided by n F and by the conductance (1 + rho) D / (h/2), both per unit of area; mol/m3.
    reference
        Reference concentration, mol/m3.
    symmetry
        Symmetry factor b.
    order
        Number of electrons over the charge of the ion.
    rho
        Ratio rho of the solution.
    driving
        z F/RT (metal - cell - equilibrium).
    cell
        Concentration in the cell, mol/m3.
    power
        Exponent p of the concentration in the first exponential.
    anodic
        Whether there is a second exponential.
    """
    b, m, p = symmetry, order * rho, power
    c = mg.max(cell, TINY)
    into = log(rate / reference) - (b * order) * driving
    if p != 1.0:
        into = into + (p - 1.0) * log(c / reference)
    out = log(rate / c) + ((1.0 - b) * order) * driving if anodic else as_node(NO_LOG)
    first, last = -into / (p + b * m), -into / (p + m) + out / (p + m)
    plain, outwards = as_node(0.0), out / (1.0 + (1.0 - b) * m)
    s = mg.max(mg.min(first, plain), mg.min(last, outwards))
    for _ in range(STEPS if 0.5 <= p <= 2.0 else 2 * STEPS):
        left, right, w, v = _sides(s, into, out, b, m, p)
        s = s - (left - right) / (1.0 + (p - 1.0 + b * m) * w + (1.0 - b) * m * v)
    _, _, w, v = _sides(s, into, out, b, m, p)
    found, slope = limited_exponential(s + log(c / reference))
    moved = order * (b * w + (1.0 - b) * v) / (1.0 + (p - 1.0 + b * m) * w + (1.0 - b) * m * v)
    return Edge(w, reference * found * v, reference * slope * moved)


NO_LOG: Final = -1e30
"""Logarithm that stands for that of 0."""
STEPS: Final = 4
"""Steps of Newton's method, which starts where the largest terms agree; they leave an error of 1e-15. Powers beyond
1/2 and 2 take twice as many."""


def _sides(s: Node, into: Node, out: Node, b: float, m: Number, p: float) -> tuple[Node, Node, Node, Node]:
    """Return the logarithms of both sides, and the fraction of kinetics in each."""
    left, w = _sum(into + (p + b * m) * s, s)
    right, v = _sum(out - (1.0 - b) * m * s, as_node(0.0))
    return left, right, w, v


def _sum(a: Node, b: Node) -> tuple[Node, Node]:
    """Return ln(exp(a) + exp(b)), and the fraction of the first term."""
    small = exp(-mg.abs(a - b))
    share = where(a > b, 1.0, small) / (1.0 + small)
    return mg.max(a, b) + log(1.0 + small), share
