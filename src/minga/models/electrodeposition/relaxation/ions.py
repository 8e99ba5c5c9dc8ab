"""One sweep over ions and potential, coupled at each point.

In a cell, every concentration is an explicit function of the cell's own potential, through its implicit balance of
fluxes with the newest values around it:

    c_i(phi) = [c_i_old / dt + sum_f D_i k_f B(-w_f) c_f] / [1 / dt + sum_f D_i k_f B(w_f)]

and the potential is the root of  sum_f eps k_f (phi_f - phi) + F sum_i z_i c_i(phi) = 0,  which decreases with phi,
found by a few Newton steps. Relaxing ions and potential in turn would diverge where cells are wider than two Debye
lengths; the coupled sweep converges for any width. w_f and B are those of
:mod:`minga.models.electrodeposition.fluxes`; k_f is one over the product of the cell's width and the distance across
face f.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from minga.compile.explain import kernel
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, where
from minga.lang.kernel import Kernel
from minga.models.electrodeposition.electrodes import Wall, exchange, surfaces
from minga.models.electrodeposition.faces import has_metal
from minga.models.electrodeposition.fluxes import bernoulli_pair, bernoulli_slope
from minga.models.electrodeposition.lengths import Lengths, Number
from minga.models.electrodeposition.problem import ANODE, CATHODE, FLUID, Problem
from minga.solve.laplacian import step

Readers = Sequence[CellReader]


@dataclass(frozen=True, eq=False)
class Face:
    """One face of a cell, seen from inside.

    Nothing passes the face if neither solution nor a metal lies beyond it.

    Attributes
    ----------
    inside
        Whether solution lies beyond.
    metal
        Whether a metal lies beyond; None where that is impossible.
    cathode
        Whether that metal is the cathode.
    distance
        Distance to the position of the values beyond, m.
    per
        1 / (width of the cell * distance), 1/m2.
    displacing
        permittivity / (width * distance with a Stern layer); 0 where no field passes.
    share
        Fraction of the potential difference that drops in the solution.
    beyond
        Offset of the neighbour.
    potential
        Potential beyond, V.
    velocity
        Outward velocity, m/s; None without flow.
    """

    inside: Node
    metal: Node | None
    cathode: Node
    distance: Number
    per: Number
    displacing: Node
    share: Number
    beyond: tuple[int, ...]
    potential: Node
    velocity: Node | None


def faces(
    problem: Problem,
    lengths: Lengths,
    kind: CellReader,
    phi: CellReader,
    velocity: Readers,
    widths: Readers,
    voltage: Node,
) -> list[Face]:
    """Return the faces of a cell, axis by axis, the low one before the high one."""
    ndim, permittivity = lengths.ndim, problem.constants.permittivity
    found = []
    for axis in range(ndim):
        width = lengths.width(widths, axis)
        for side in (-1, 1):
            beyond = step(ndim, axis, side)
            there = kind[beyond]
            inside, cathode = there == FLUID, there == CATHODE
            moving = None
            if velocity:
                v = velocity[axis]
                moving = v[beyond] if side > 0 else -v[(0,) * ndim]
            distance: Number = lengths.gap(widths, axis, max(side, 0))
            metal, potential = None, phi[beyond]
            share: Number = 1.0
            thick: Number = 0.0
            if has_metal(problem, axis):
                metal = cathode | (there == ANODE)
                distance = where(inside, distance, 0.5 * width)
                potential = where(cathode, 0.0, where(metal, voltage, potential))
                if problem.cathode.stern or problem.anode.stern:
                    thick = where(inside, 0.0, where(cathode, problem.cathode.stern, problem.anode.stern))
                    share = distance / (distance + thick)
            passable = inside if metal is None else inside | metal
            displacing = where(passable, permittivity / (width * (distance + thick)), 0.0)
            per = 1.0 / (width * distance)
            found.append(Face(inside, metal, cathode, distance, per, displacing, share, beyond, potential, moving))
    return found


@dataclass(frozen=True, eq=False)
class Balance:
    """The rate at which an ion leaves a cell, `leaving` * c - `entering`, in mol/m3/s.

    Attributes
    ----------
    leaving, entering
        Coefficients of the rate, in 1/s and mol/m3/s.
    leaving_slope, entering_slope
        Their derivatives with respect to the potential of the cell.
    """

    leaving: Node
    entering: Node
    leaving_slope: Node
    entering_slope: Node


def passing(problem: Problem, number: int, face: Face, phi: Node, ions: Readers, given: Sequence[Number]) -> Balance:
    """Return the exchange of an ion through a face.

    Parameters
    ----------
    problem
        The problem.
    number
        Index of the ion.
    face
        The face.
    phi
        Potential of the cell, V.
    ions
        Readers of the concentrations.
    given
        Fluxes into the solution at cathode and anode that balance the other electrode, mol/m2/s.
    """
    ion, c = problem.species[number], ions[number]
    here = (0,) * len(face.beyond)
    charge = ion.charge * problem.beta
    difference = face.potential - phi
    w = charge * face.share * difference
    if face.velocity is not None:
        w = w - face.velocity * face.distance / ion.diffusivity
    down, up = bernoulli_pair(w)
    slope = bernoulli_slope(w)
    rate = where(face.inside, ion.diffusivity * face.per, 0.0)
    # Slopes by phi: dw/dphi = -charge; B(-w) = B(w) + w has the slope B'(w) + 1 by w.
    inner = Balance(
        rate * down,
        rate * up * c[face.beyond],
        -charge * rate * slope,
        -charge * rate * (1.0 + slope) * c[face.beyond],
    )
    walls = surfaces(problem, ion)
    if face.metal is None or walls == (None, None):
        return inner
    per_area = face.per * face.distance
    conductance = as_node(ion.diffusivity / face.distance)
    sides = []
    for surface, electrode, supply in zip(walls, (problem.cathode, problem.anode), given, strict=True):
        wall = Wall(
            area=1.0,
            conductance=conductance,
            share=face.share,
            difference=difference,
            w=w,
            cell=c[here],
            given=supply,
        )
        sides.append(exchange(surface, ion, electrode, problem, wall))
    leaving, entering, change = (
        where(face.cathode, one, other)
        for one, other in zip(*((s.leaving, s.arriving, s.slope) for s in sides), strict=True)
    )
    zero = as_node(0.0)
    return Balance(
        where(face.metal, per_area * leaving, inner.leaving),
        where(face.metal, per_area * entering, inner.entering),
        where(face.metal, zero, inner.leaving_slope),
        where(face.metal, -per_area * change, inner.entering_slope),
    )


@dataclass(frozen=True, eq=False)
class Point:
    """Ions and charge of a cell at a given potential.

    Attributes
    ----------
    concentrations
        Concentrations of the ions, mol/m3.
    defects
        Residuals of the ions' balances at their present concentrations.
    charge
        Charge density, C/m3.
    slope
        Derivative of the residual of Poisson's equation with respect to the potential.
    """

    concentrations: list[Node]
    defects: list[Node]
    charge: Node
    slope: Node


def sweep(problem: Problem, lengths: Lengths, order: str | None, across: str, newton: int) -> Kernel:
    """Return the kernel of a sweep.

    Its fields are kind, ions and potential (changed in place), ions before the step, velocities, and widths of cells.
    It returns the largest scaled residuals of ions and of the potential that the sweep met, with the newest values
    around and before it corrected them, the largest scaled change, and the cell of the largest residual.

    Parameters
    ----------
    problem, lengths
        The problem and the lengths of its grid.
    order, across
        Order of the cells, and whether blocks wait for one another; see `minga.compile.explain.kernel`.
    newton
        Number of Newton steps for the potential at a point.
    """
    species, constants = problem.species, problem.constants
    here = (0,) * lengths.ndim
    scale = _Scales.of(problem, lengths)

    def relax(
        kind: CellReader,
        ions: Readers,
        phi: CellReader,
        old: Readers,
        velocity: Readers,
        widths: Readers,
        *,
        per_dt: Node,
        voltage: Node,
        at_cathode: Node,
        at_anode: Node,
    ) -> dict[str, Reduced]:
        fluid = kind[here] == FLUID
        around = faces(problem, lengths, kind, phi, velocity, widths, voltage)
        conducting = [f.displacing for f in around]
        spread = sum(conducting[1:], conducting[0])

        def at(value: Node) -> Point:
            found, defects, slopes = [], [], []
            for number, (c, before) in enumerate(zip(ions, old, strict=True)):
                parts = [passing(problem, number, f, value, ions, (at_cathode, at_anode)) for f in around]
                leaving = sum((p.leaving for p in parts), per_dt)
                entering = sum((p.entering for p in parts), per_dt * before[here])
                new = entering / leaving
                found.append(new)
                defects.append(leaving * c[here] - entering)
                falling = sum((p.leaving_slope for p in parts), as_node(0.0))
                rising = sum((p.entering_slope for p in parts), as_node(0.0))
                slopes.append((rising - falling * new) / leaving)
            charge = as_node(constants.faraday * sum(i.charge * c for i, c in zip(species, found, strict=True)))
            slope = constants.faraday * sum(i.charge * s for i, s in zip(species, slopes, strict=True))
            return Point(found, defects, charge, slope - spread)

        def pull(value: Node) -> Node:
            terms = [k * (f.potential - value) for k, f in zip(conducting, around, strict=True)]
            return sum(terms[1:], terms[0])

        value, first = phi[here], None
        for _ in range(newton):
            point = at(value)
            first = first or point
            value = value - (pull(value) + point.charge) / point.slope
        assert first is not None
        present = sum(i.charge * c[here] for i, c in zip(species, ions, strict=True))
        imbalance = pull(phi[here]) + constants.faraday * present
        final = at(value).concentrations
        worst = [mg.abs(d) / (s.bulk * (per_dt + s.rate)) for d, s in zip(first.defects, scale.ions, strict=True)]
        moved = [mg.abs(n - c[here]) / s.bulk for n, c, s in zip(final, ions, scale.ions, strict=True)]
        moved.append(mg.abs(value - phi[here]) / scale.potential)
        charge = mg.abs(imbalance) * per_dt / (scale.potential * (scale.stiffness * per_dt + scale.leak))
        for c, new in zip(ions, final, strict=True):
            c[here] = where(fluid, new, c[here])
        phi[here] = where(fluid, value, phi[here])
        return {
            "ions": mg.max(where(fluid, _largest(worst), 0.0)),
            "potential": mg.max(where(fluid, charge, 0.0)),
            "change": mg.max(where(fluid, _largest(moved), 0.0)),
            "place": mg.argmax(where(fluid, mg.max(charge, *worst), 0.0)),
        }

    return kernel(order=order, across=across)(relax)  # type: ignore[call-overload,no-any-return]


def _largest(values: Sequence[Node]) -> Node:
    return mg.max(*values) if len(values) > 1 else values[0]


@dataclass(frozen=True, slots=True)
class _IonScale:
    bulk: float
    rate: float


@dataclass(frozen=True, slots=True)
class _Scales:
    """Scales of residuals: the residuals that a relative error in the smoothest wave of the cell would cause.

    Attributes
    ----------
    ions
        Reference concentration (mol/m3) and rate (1/s) of each ion.
    potential
        Reference potential, V.
    stiffness, leak
        Charge (C/m3/V) and current (A/m3/V) due to a wave of the potential.
    """

    ions: tuple[_IonScale, ...]
    potential: float
    stiffness: float
    leak: float

    @classmethod
    def of(cls, problem: Problem, lengths: Lengths) -> _Scales:
        wave = lengths.smoothest
        largest = max(s.bulk for s in problem.species)
        ions = tuple(_IonScale(s.bulk or largest, s.diffusivity * wave) for s in problem.species)
        faraday, beta = problem.constants.faraday, problem.beta
        sigma = faraday * beta * math.fsum(s.charge**2 * s.diffusivity * s.bulk for s in problem.species)
        return cls(ions, 1.0 / beta, problem.constants.permittivity * wave, sigma * wave)
