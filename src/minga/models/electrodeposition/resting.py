"""The half cell at a metal, in a bath with local equilibrium: one total passes, the others rest.

The forms f of the totals have the concentrations c_f, the activities a_f = g_f c_f, and the fluxes

    N_f = -D_f c_f (grad ln a_f + z_f m_f grad psi),      psi = F phi/RT,

and ln a of a compound changes by the sum of what those of its free ions do. With a change of 1 of ln a of the free
passing ion, the conditions that the fluxes of all other totals vanish and that the solution stays neutral are linear
equations for the changes of the other free ions and of psi. They give the path on which the composition moves from the
cell to the edge of the double layer: the total C of the passing ion, its diffusivity, and by ln C its activity and the
potential. A change of the ionic strength I follows from those of the concentrations,

    d ln c_f = d ln a_f - (d ln g_f / dI) dI.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from minga.lang import functions as mg
from minga.lang.expr import Node, as_node, where
from minga.lang.math import log

__all__ = ["Form", "Path", "path_of"]

Number = Node | float
LEAST: Final = 1e-9
"""Least ratio of concentrations, and least change of the screening."""
NEAR: Final = 1e-6
"""Difference of that ratio from 1 below which the tangent serves."""


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A form of one total or of two in a cell.

    Attributes
    ----------
    totals
        Numbers of the totals that it is made of.
    charge, diffusivity, mobility
        Charge number, diffusivity in m2/s, and mobility over diffusivity.
    amount
        Concentration, mol/l.
    steepness
        d ln g / d I of its activity coefficient, l/mol.
    """

    totals: tuple[int, ...]
    charge: int
    diffusivity: float
    mobility: Number
    amount: Node
    steepness: Number


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """The path on which all totals but one rest.

    Attributes
    ----------
    diffusivity
        Flux of the passing total over minus its gradient, m2/s.
    activity, potential
        Change of the logarithm of its free ion's activity, and of psi, by the logarithm of the total.
    screening
        The same of the logarithm of S, the sum of z^2 c of all other forms.
    """

    diffusivity: Node
    activity: Node
    potential: Node
    screening: Node

    def to_edge(self, charge: int, left: Node | None) -> Node:
        """Return what ln(c_e/c) adds to z F/RT (metal - edge), by the potential and the activity coefficient.

        Parameters
        ----------
        charge
            Charge number z of the free ion.
        left
            c_e/c; None for the tangent at 1. Where less is left, the changes by ln C are proportional to C/S, with S
            linear in C.
        """
        tangent = charge * self.potential + (self.activity - 1.0)
        if left is None:
            return tangent
        t = mg.max(mg.min(self.screening, 1.0), LEAST)
        far = mg.abs(left - 1.0) > NEAR
        x = where(far, mg.max(left, LEAST), 2.0)
        return where(far, tangent * log(1.0 + t * (x - 1.0)) / (t * log(x)), tangent)


@dataclass(frozen=True, slots=True, eq=False)
class _Change:
    """Changes of ln a of the free ions, and those of all forms that follow: of ln a and of ln c."""

    activities: list[Node]
    logs: list[Node]


def path_of(number: int, forms: Sequence[Form], shares: Sequence[Node]) -> Path:
    """Return the path on which all totals but that of a number rest.

    Parameters
    ----------
    number
        Number of the total that passes.
    forms
        All forms of the solution.
    shares
        Fractions of the passing total in those of `forms` that contain it.
    """
    others = sorted({n for form in forms for n in form.totals} - {number})
    matrix = [[_sum(_conductance(f) for f in forms if {r, n} <= set(f.totals)) for n in others] for r in others]
    by_ion = [_sum(_conductance(f) for f in forms if {r, number} <= set(f.totals)) for r in others]
    by_field = [_sum(f.charge * (_conductance(f) * f.mobility) for f in forms if r in f.totals) for r in others]
    first = _changes(forms, {number: as_node(1.0)} | dict(zip(others, _solved(matrix, by_ion), strict=True)))
    more = _changes(forms, dict(zip(others, _solved(matrix, by_field), strict=True)))
    charge, by_psi = (
        _sum(f.charge * (f.amount * log) for f, log in zip(forms, part.logs, strict=True)) for part in (first, more)
    )
    psi = -charge / by_psi
    found, flux, screened, screen = (as_node(0.0) for _ in range(4))
    for form, log_first, log_more in zip(forms, first.logs, more.logs, strict=True):
        if form.totals != (number,):
            weight = (form.charge * form.charge) * form.amount
            screened = screened + weight * (log_first + log_more * psi)
            screen = screen + weight
    places = [place for place, form in enumerate(forms) if number in form.totals]
    for place, share in zip(places, shares, strict=True):
        form = forms[place]
        found = found + share * (first.logs[place] + more.logs[place] * psi)
        driven = first.activities[place] + (more.activities[place] + form.charge * form.mobility) * psi
        flux = flux + (form.diffusivity * share) * driven
    return Path(flux / found, 1.0 / found, psi / found, screened / (screen * found))


def _changes(forms: Sequence[Form], free: dict[int, Node]) -> _Change:
    """Return the changes of all forms by those of ln a of the free ions."""
    activities = [_sum(free[n] for n in form.totals if n in free) for form in forms]
    halves = [(0.5 * form.charge * form.charge) * form.amount for form in forms]
    gained = _sum(half * change for half, change in zip(halves, activities, strict=True))
    strength = gained / (1.0 + _sum(half * form.steepness for half, form in zip(halves, forms, strict=True)))
    return _Change(activities, [a - f.steepness * strength for f, a in zip(forms, activities, strict=True)])


def _solved(matrix: Sequence[Sequence[Node]], known: Sequence[Node]) -> list[Node]:
    """Return x of matrix x + known = 0, for one row or two of a symmetric positive matrix."""
    if len(matrix) == 1:
        return [-known[0] / matrix[0][0]]
    (a, b), (_, d) = matrix
    inverse = 1.0 / (a * d - b * b)
    return [(b * known[1] - d * known[0]) * inverse, (b * known[0] - a * known[1]) * inverse]


def _conductance(form: Form) -> Node:
    return form.diffusivity * form.amount


def _sum(parts: Iterable[Node]) -> Node:
    total = as_node(0.0)
    for part in parts:
        total = total + part
    return total
