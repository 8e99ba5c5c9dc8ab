"""The flux of a species through a face, inside a kernel.

Faces between two cells of solution and faces of metals share one expression: a metal counts as a cell whose
concentration is 1, so that every flux reads `up * low - down * high`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from minga.lang import functions as mg
from minga.lang.cell import CellReader
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.concentrated import Beside, Solution
from minga.models.electrodeposition.electrodes import ElectrodeFlux, Wall, exchange, surfaces
from minga.models.electrodeposition.equilibrium import Carrier, Equilibrium, Mixed
from minga.models.electrodeposition.faces import Drive, FaceValues
from minga.models.electrodeposition.fluxes import bernoulli_pair, flux_slope
from minga.models.electrodeposition.groups import resolves_charge
from minga.models.electrodeposition.neutral import fitted, mean_flux, near_mean
from minga.models.electrodeposition.problem import Electrode, Flux, Problem
from minga.solve.laplacian import step

__all__ = ["SpeciesFlux", "species_flux"]

Readers = Sequence[CellReader]
Number = Node | float


@dataclass(frozen=True, slots=True, eq=False)
class SpeciesFlux:
    """The upward flux of a species through a face: `up * low - down * high`, mol/s.

    Here `low` and `high` are the concentrations below and above the face, 1 for a metal.

    Attributes
    ----------
    up, down
        Coefficients of the flux.
    slope
        Minus the derivative with respect to the potential difference, mol/s/V; it has the sign of the charge.
    amount
        The flux, mol/s.
    diffusivity, response
        Diffusivity by which corrections of the potential spread, m2/s, and the relative change of the concentration
        that they cause, in z F/RT.
    gain
        At a metal, flux into the solution over the concentration of the ion that forms this one, m3/s.
    """

    up: Node
    down: Node
    slope: Node
    amount: Node
    diffusivity: Number
    response: Number
    gain: Number = 0.0


def species_flux(
    problem: Problem,
    face: FaceValues,
    number: int,
    concentrations: Readers,
    velocity: Number | None,
    drive: Drive,
    solved: tuple[Node, Node, Node | None] | None = None,
) -> SpeciesFlux:
    """Return the flux of species `number` through a face.

    Parameters
    ----------
    problem, face
        The problem and the face.
    number
        Index of the species.
    concentrations
        Readers of the concentrations of all species.
    velocity
        Velocity through the face, m/s; None without flow.
    drive
        Registers of the anode's potential and the balancing fluxes.
    solved
        The coefficients `up`, `down` and `gain`, if they are already known. The slope then only serves corrections of
        the potential; where a deposit grows, it is that of a mean without a logarithm.
    """
    species = problem.species[number]
    ndim = problem.grid.ndim
    here, down = (0,) * ndim, step(ndim, face.axis, -1)
    share: Number = 1.0
    if not isinstance(face.stern, float):
        share = face.distance / (face.distance + face.stern)
    low, high = concentrations[number][down], concentrations[number][here]
    carriers, spread, response = _carriers(problem, face, number, concentrations)
    roughly = solved is not None and problem.growth is not None
    parts = [_between(problem, face, item, share, concentrations, velocity, (low, high), roughly) for item in carriers]
    up, going_down, steep = (functools.reduce(operator.add, items) for items in zip(*parts, strict=True))
    inner = SpeciesFlux(
        where(face.inside, up, 0.0),
        where(face.inside, going_down, 0.0),
        where(face.inside, steep, 0.0),
        as_node(0.0),
        spread,
        response,
    )
    walls = surfaces(problem, species)
    if face.above is None or face.below is None or face.cathode is None or walls == (None, None):
        up, going_down = (inner.up, inner.down) if solved is None else solved[:2]
        return SpeciesFlux(up, going_down, inner.slope, up * low - going_down * high, spread, response)
    above = face.above

    def at(readers: CellReader) -> Node:
        return where(above, readers[down], readers[here])

    beside = _beside(problem, face, number, concentrations)
    diffusivity, charge = carriers[0].diffusivity, carriers[0].mobility
    if isinstance(beside, Mixed):
        diffusivity, charge = beside.diffusivity, (species.charge * problem.beta) * beside.ratio
    conductance = as_node(face.area * diffusivity / face.distance)
    w = charge * share * face.difference
    if velocity is not None:
        w = w - velocity * face.distance / diffusivity

    # Where both electrodes are alike, their fluxes are evaluated once.
    alike = problem.cathode == problem.anode and not isinstance(walls[0], Flux)
    electrodes = list(zip(walls, (problem.cathode, problem.anode), (drive.at_cathode, drive.at_anode), strict=True))
    sides = [
        exchange(
            surface,
            species,
            electrode,
            problem,
            Wall(
                face.area,
                conductance,
                share,
                _driving(problem, species.name, where(above, face.difference, -face.difference), face.opposed),
                where(above, w, -w),
                at(concentrations[number]),
                given,
                _rho(problem, electrode, number, [at(c) for c in concentrations]),
                beside,
                [at(c) for c in concentrations],
            ),
        )
        for surface, electrode, given in (electrodes[:1] if alike else electrodes)
    ]
    leaving, arriving, slope, gain = (
        pair[0] if alike else where(face.cathode, *pair) for pair in zip(*map(_parts, sides), strict=True)
    )
    up = where(face.inside, inner.up, where(above, leaving, where(face.below, arriving, 0.0)))
    going_down = where(face.inside, inner.down, where(above, arriving, where(face.below, leaving, 0.0)))
    steep = where(face.inside, inner.slope, where(above | face.below, slope, 0.0))
    gain = where(above | face.below, gain, 0.0)
    partner = problem.partners.get(number)
    if solved is not None:
        up, going_down = solved[:2]
    amount = up * where(face.below, 1.0, low) - going_down * where(above, 1.0, high)
    if partner is None:
        return SpeciesFlux(up, going_down, steep, amount, spread, response)
    if solved is not None and solved[2] is not None:
        gain = solved[2]
    amount = amount + where(above, -gain, gain) * at(concentrations[partner])
    return SpeciesFlux(up, going_down, steep, amount, spread, response, gain)


def _between(
    problem: Problem, face: FaceValues, item: Carrier, share: Number, concentrations: Readers, velocity: Number | None,
    ends: tuple[Node, Node], roughly: bool,
) -> tuple[Node, Node, Node]:  # fmt: skip
    """Return the flux of a form of an ion between two cells: the coefficients of the ion, and minus the slope.

    A rough slope serves corrections of the potential only, and takes a mean without a logarithm.
    """
    low, high = ends
    if item.low is not None and item.high is not None:
        low, high = item.low * low, item.high * high
    drop = item.mobility * share * face.difference
    if item.excess is not None:
        drop = drop + item.excess
    w = as_node(drop) if velocity is None else drop - velocity * face.distance / item.diffusivity
    conductance = as_node(face.area * item.diffusivity / face.distance)
    falling, rising = bernoulli_pair(w)
    between = flux_slope(w, low, high)
    if item.charge and not resolves_charge(problem) and roughly:
        between = near_mean(low, high)
    elif item.charge and not resolves_charge(problem):
        moved = (
            (1.0, 1.0) if velocity is None else bernoulli_pair(as_node(-velocity * face.distance / item.diffusivity))
        )
        of_low, of_high, mean = mean_flux(as_node(drop), moved, low, high)
        part = fitted(_widths(problem, face, concentrations))
        falling, rising = part * falling + (1.0 - part) * of_low, part * rising + (1.0 - part) * of_high
        between = part * between + (1.0 - part) * mean
    up, down = conductance * falling, conductance * rising
    if item.low is not None and item.high is not None:
        up, down = up * item.low, down * item.high
    return up, down, item.mobility * conductance * between


def _carriers(
    problem: Problem, face: FaceValues, number: int, concentrations: Readers
) -> tuple[list[Carrier], Number, Number]:
    """Return the forms of an ion at a face, and the diffusivity and the response of corrections of the potential.

    Properties of a concentrated solution are those of the mean of both cells, or of the cell beside a metal.
    """
    solution, species = problem.solution, problem.species[number]
    charge = species.charge * problem.beta
    ndim = problem.grid.ndim
    here, down = (0,) * ndim, step(ndim, face.axis, -1)
    if isinstance(solution, Equilibrium):
        forms = solution.carriers(number, face.equilibrium, down, here, problem.beta)
        spread: Number = functools.reduce(operator.add, (f.diffusivity * f.part for f in forms))
        return forms, spread, 1.0
    if solution is None or number not in solution.counts:
        return [Carrier(species.charge, charge, species.diffusivity)], species.diffusivity, 1.0
    pairs = [(c[down], c[here]) for c in concentrations]
    mean = [0.5 * (low + high) for low, high in pairs]
    if face.above is not None and face.below is not None:
        mean = [
            where(face.inside, middle, where(face.above, low, high))
            for middle, (low, high) in zip(mean, pairs, strict=True)
        ]
    wet = solution.at(number, solution.salt(mean))
    ratio, response = wet.ratio, wet.response
    return [Carrier(species.charge, charge * ratio, wet.diffusivity)], wet.diffusivity * ratio / response, response


def _beside(problem: Problem, face: FaceValues, number: int, concentrations: Readers) -> Beside | Mixed | None:
    """Return the properties of an ion in the cell beside a metal; None in a dilute solution."""
    solution, above = problem.solution, face.above
    ndim = problem.grid.ndim
    here, down = (0,) * ndim, step(ndim, face.axis, -1)
    assert above is not None
    if solution is None:
        return None
    cells, values = ([where(above, f[down], f[here]) for f in fields] for fields in (concentrations, face.equilibrium))
    return solution.beside(number, cells) if isinstance(solution, Solution) else solution.beside(number, values, cells)


def _driving(problem: Problem, ion: str, difference: Node, opposed: Number) -> Node:
    """Return the potential of the metal minus that of the cell, plus that of curvature for the deposited ion."""
    growth = problem.growth
    return difference if growth is None or growth.ion != ion or isinstance(opposed, float) else difference + opposed


def _widths(problem: Problem, face: FaceValues, concentrations: Readers) -> Node:
    """Return the square of the distance between two cells, in units of the local Debye length."""
    ndim = problem.grid.ndim
    here, down = (0,) * ndim, step(ndim, face.axis, -1)
    strength = as_node(0.0)
    for species, c in zip(problem.species, concentrations, strict=True):
        strength = strength + (0.5 * species.charge**2) * (mg.max(c[here], 0.0) + mg.max(c[down], 0.0))
    constants = problem.constants
    return (constants.faraday * problem.beta / constants.permittivity) * (face.distance * face.distance) * strength


def _rho(problem: Problem, electrode: Electrode, number: int, beside: Sequence[Node]) -> Number | None:
    """Return rho, the ratio of z^2 c of an ion to that of all others in the cell beside a metal.

    In a neutral solution it is at most the ratio of the charges. It is None where layers of charge are resolved, or
    where other ions are exchanged with the metal as well.
    """
    ions = [(s.charge, c) for s, c in zip(problem.species, beside, strict=True)]
    own = problem.species[number].charge
    passing = [s for s in problem.species if s.charge and not isinstance(electrode.surfaces.get(s.name), Flux | None)]
    if not own or resolves_charge(problem) or len(passing) > 1:
        return None
    others = [(z, c) for n, (z, c) in enumerate(ions) if n != number and z]
    opposite = [z for z, _ in others if z * own < 0]
    if not opposite:
        return None
    most = abs(own) / min(map(abs, opposite))
    if len(others) == 1:
        return most
    screen = sum(((z * z) * mg.max(c, 0.0) for z, c in others), as_node(0.0))
    there = screen > 0.0
    ratio = (own * own) * mg.max(beside[number], 0.0) / where(there, screen, 1.0)
    return where(there, mg.min(ratio, most), most)


def _parts(item: ElectrodeFlux) -> tuple[Number, Number, Number, Number]:
    return item.leaving, item.arriving, item.slope, item.gain
