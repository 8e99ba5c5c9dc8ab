"""One sweep over ions and potential, coupled at each point.

At a cell every concentration is an explicit function of the cell's own potential, through its implicit balance of
fluxes with the newest values around:

    c_i(phi) = [c_i_old / dt + sum_f D_i k_f B(-w_f) c_f] / [1 / dt + sum_f D_i k_f B(w_f)]

and the potential is the root of  sum_f eps k_f (phi_f - phi) + F sum_i z_i c_i(phi) = 0,  which falls with phi, found
by a few Newton steps. Relaxing ions and potential in turn instead diverges where cells are wider than two Debye
lengths; this converges for any width. w_f and B are those of :mod:`minga.models.electrodeposition.fluxes`, k_f is one
over the cell's width and the distance across face f.
"""

from __future__ import annotations

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

    inside      whether solution lies beyond
    metal       whether a metal does; None where that cannot be. Neither: nothing passes
    cathode     whether that metal is the cathode
    distance    to where the values beyond are; `per`, 1 / (width of the cell * distance)
    displacing  permittivity / (width * distance with a Stern layer), 0 where no field passes
    share       of a difference of potential that lies in the solution
    beyond      offset of the neighbour
    potential   beyond
    velocity    outwards, None without flow
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
    """The faces of a cell, axis by axis, low before high."""
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
    """What leaves a cell of one ion, 1/s: `leaving` * c - `entering`, and their slopes by the potential."""

    leaving: Node
    entering: Node
    leaving_slope: Node
    entering_slope: Node


def passing(problem: Problem, number: int, face: Face, phi: Node, ions: Readers, given: Sequence[Number]) -> Balance:
    """The exchange of ion `number` through a face; `given` balances the other electrode, at cathode and anode."""
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
    """Ions and charge of a cell at one value of its potential."""

    concentrations: list[Node]
    defects: list[Node]
    charge: Node
    slope: Node


def sweep(problem: Problem, lengths: Lengths, order: str | None, across: str, newton: int) -> Kernel:
    """The kernel of a sweep: kind, ions and potential (in place), ions before the step, velocities, widths of cells.

    Returns the largest scaled residuals that the sweep met, of ions and of the potential, before it mended them with
    the newest values around, where, and the largest scaled change.
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
    """What residuals are measured by: what a relative error of the smoothest wave of the cell would leave.

    ions       reference concentration (mol/m3) and rate (1/s) of each
    potential  V; stiffness, leak: of a wave of 1 V, charge at once (C/m3) and current (A/m3)
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
        sigma = faraday * beta * sum(s.charge**2 * s.diffusivity * s.bulk for s in problem.species)
        return cls(ions, 1.0 / beta, problem.constants.permittivity * wave, sigma * wave)
