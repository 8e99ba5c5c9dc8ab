"""Flux from a cell of solution into a metal, and its slope, for each condition at an electrode.

The flux into the metal is written `leaving * c - arriving`, with c the concentration in the cell, so that an implicit
step can evaluate it at its end: `leaving` >= 0 enters the diagonal, `arriving` the right-hand side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from minga.lang import functions as mg
from minga.lang.expr import Node, as_node
from minga.lang.math import exp, log
from minga.models.electrodeposition.concentrated import Beside
from minga.models.electrodeposition.equilibrium import Mixed
from minga.models.electrodeposition.fluxes import bernoulli_pair, flux_slope
from minga.models.electrodeposition.groups import resolves_charge
from minga.models.electrodeposition.neutral import LARGEST, TINY, Edge, kinetic_edge, reversible_edge
from minga.models.electrodeposition.problem import (
    ButlerVolmer,
    Electrode,
    Flux,
    Held,
    Problem,
    Reversible,
    Species,
    Surface,
)
from minga.models.electrodeposition.reaction import Reacting
from minga.models.electrodeposition.reactions import Half, shared_flux

__all__ = ["ElectrodeFlux", "Wall", "exchange", "surfaces"]

Number = Node | float


@dataclass(frozen=True, slots=True, eq=False)
class Wall:
    """A face between solution and metal, seen from the solution.

    Attributes
    ----------
    area
        Area of the face, m2.
    conductance
        area * D / distance, m3/s.
    share
        Fraction of the potential difference that drops in the solution; the rest drops in the Stern layer.
    difference
        Potential of the metal minus that of the cell, V.
    w
        z (F/RT) times the part of `difference` that drops in the solution.
    cell
        Concentration in the cell, mol/m3.
    given
        Flux into the solution that balances the other electrode, mol/m2/s.
    rho
        Ratio rho of a neutral solution, see `minga.models.electrodeposition.neutral`; None where the solution is not
        neutral in the cell, or where this is not the only ion that passes.
    beside
        Properties of a concentrated solution in the cell; None in a dilute one.
    cells
        Concentrations of all species in the cell, mol/m3.
    """

    area: Number
    conductance: Node
    share: Number
    difference: Node
    w: Node
    cell: Node
    given: Number
    rho: Number | None = None
    beside: Beside | Mixed | None = None
    cells: Sequence[Node] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ElectrodeFlux:
    """The flux into the metal, `leaving * c - arriving`, in mol/s.

    Attributes
    ----------
    leaving, arriving
        Coefficients of the flux, in m3/s and mol/s.
    slope
        Derivative of the flux with respect to the potential of the cell, mol/s/V.
    gain
        Flux out of the metal over the concentration of the ion that forms this one, m3/s.
    """

    leaving: Number
    arriving: Number
    slope: Number
    gain: Number = 0.0


POOREST: Final = 1e-9
"""Least concentration, in terms of the reference, for which a reaction has its order; below, it is of first order."""
NOTHING: Final = ElectrodeFlux(0.0, 0.0, 0.0)
"""The exchange of a species that does not pass."""


def surfaces(problem: Problem, species: Species) -> tuple[Surface | None, Surface | None]:
    """Return the conditions for a species at the cathode and at the anode, None where it does not pass."""
    return problem.cathode.surfaces.get(species.name), problem.anode.surfaces.get(species.name)


def exchange(
    surface: Surface | None, species: Species, electrode: Electrode, problem: Problem, wall: Wall
) -> ElectrodeFlux:
    """Return the flux that a condition lets pass through a face of a metal.

    Parameters
    ----------
    surface
        The condition; None lets nothing pass.
    species, electrode, problem
        The ion, the electrode that the metal belongs to, and the problem they are part of.
    wall
        The face.
    """
    charge = species.charge * problem.beta
    match surface:
        case None:
            return NOTHING
        case Held(concentration) if wall.rho is not None and charge:
            return _reversible(concentration, charge, wall)
        case Held(concentration):
            toward, back = bernoulli_pair(wall.w)
            return ElectrodeFlux(
                wall.conductance * toward,
                wall.conductance * back * concentration,
                charge * wall.share * wall.conductance * flux_slope(wall.w, wall.cell, as_node(concentration)),
            )
        case Flux(density):
            return ElectrodeFlux(0.0, wall.area * (wall.given if density is None else density), 0.0)
        case ButlerVolmer() if electrode.stern == 0.0 and not resolves_charge(problem):
            return _neutral_kinetics(surface, species, problem, wall)
        case ButlerVolmer():
            return _kinetics(surface, species, electrode, problem, wall)
        case Reacting():
            return _shared(surface, species, problem, wall)
        case Reversible(reference):
            return _reversible(reference, charge, wall)


def _shared(surface: Reacting, species: Species, problem: Problem, wall: Wall) -> ElectrodeFlux:
    """Return the flux of reactions that share species, each of which diffuses through the half cell."""
    half = Half(
        [s.name for s in problem.species],
        [s.charge for s in problem.species],
        wall.cells,
        [wall.conductance * (s.diffusivity / species.diffusivity) for s in problem.species],
        wall.area,
        wall.difference,
        problem.beta,
        problem.constants.faraday,
        problem.constants.permittivity,
    )
    found = shared_flux(surface, species.name, half)
    return ElectrodeFlux(found.leaving, found.arriving, found.slope, found.gain)


def _reversible(reference: float, charge: float, wall: Wall) -> ElectrodeFlux:
    """Return the flux to an edge in equilibrium with the metal.

    In a concentrated solution it is one of activities.
    """
    driving = charge * wall.difference
    if wall.beside is not None and reference != 0.0:
        driving = driving - wall.beside.excess(reference)
    return _through(wall, charge, lambda rho: reversible_edge(reference, rho, driving, wall.cell))


def _kinetics(
    surface: ButlerVolmer, species: Species, electrode: Electrode, problem: Problem, wall: Wall
) -> ElectrodeFlux:
    """Return the flux of Butler-Volmer kinetics at the wall, in series with transport from the cell's centre to it.

    Without a Stern layer, the whole potential difference between metal and solution drives the reaction, which is then
    taken to happen at the cell's centre.
    """
    electrons = abs(species.charge) if surface.electrons is None else surface.electrons
    per_volt = electrons * problem.beta
    rate = wall.area * surface.exchange / (electrons * problem.constants.faraday)
    across = wall.difference if electrode.stern == 0.0 else (1.0 - wall.share) * wall.difference
    driving = _clamped(per_volt * (across - surface.equilibrium))
    b = surface.transfer
    # N = into * c_wall - out_of; a higher potential of the cell lowers `across`.
    into = rate / surface.reference * exp(-b * driving) * _richness(surface, wall.cell)
    out_of = rate * exp((1.0 - b) * driving) if surface.anodic else as_node(0.0)
    part = 1.0 if electrode.stern == 0.0 else 1.0 - wall.share
    into_slope, out_slope = b * per_volt * part * into, -(1.0 - b) * per_volt * part * out_of
    if electrode.stern == 0.0:
        return ElectrodeFlux(into, out_of, into_slope * wall.cell - out_slope)
    toward, back = bernoulli_pair(wall.w)
    total = wall.conductance * back + into
    at_wall = (wall.conductance * toward * wall.cell + out_of) / total
    middle = wall.conductance * flux_slope(wall.w, wall.cell, at_wall)
    charge = species.charge * problem.beta
    passed = wall.conductance * back / total
    return ElectrodeFlux(
        wall.conductance * toward * into / total,
        out_of * passed,
        (into / total) * charge * wall.share * middle + passed * (at_wall * into_slope - out_slope),
    )


def _richness(surface: ButlerVolmer, cell: Node) -> Number:
    """Return (c/reference)^(order - 1), which makes a reaction of first order one of another order."""
    if surface.order == 1.0:
        return 1.0
    return exp((surface.order - 1.0) * log(mg.max(cell * (1.0 / surface.reference), POOREST)))


def _neutral_kinetics(surface: ButlerVolmer, species: Species, problem: Problem, wall: Wall) -> ElectrodeFlux:
    """Return the flux of Butler-Volmer kinetics at the outer edge of a double layer that is thinner than any cell.

    Where several ions pass, each diffuses through the half cell by itself.
    """
    electrons = abs(species.charge) if surface.electrons is None else surface.electrons
    charge = species.charge * problem.beta
    rate = wall.area * surface.exchange / (electrons * problem.constants.faraday)
    driving = charge * (wall.difference - surface.equilibrium)
    if wall.beside is not None:
        # The metal is in equilibrium with the activity; the rates vary with the concentration.
        driving = driving - wall.beside.excess(surface.reference)
    scaled = rate / (wall.conductance * (1.0 + _moved(wall)))
    return _through(wall, charge, lambda rho: kinetic_edge(
        scaled, surface.reference, surface.transfer, electrons / species.charge, rho, driving, wall.cell, surface.order,
        anodic=surface.anodic,
    ))  # fmt: skip


def _moved(wall: Wall) -> Number:
    """Return the ratio rho of the flux."""
    if wall.beside is not None:
        return wall.beside.moved(wall.rho)
    return 0.0 if wall.rho is None else wall.rho


def _through(wall: Wall, charge: Number, edge_of: Callable[[Number], Edge]) -> ElectrodeFlux:
    """Return the flux through the half cell to the edge of the double layer, which depends on the ratio rho there."""
    if wall.beside is None:
        edge = edge_of(0.0 if wall.rho is None else wall.rho)
    else:
        edge = edge_of(wall.beside.to_edge(wall.rho))
    if isinstance(wall.beside, Mixed):
        left = 1.0 - edge.leaving + edge.arriving / mg.max(wall.cell, TINY)
        edge = edge_of(wall.beside.to_edge(wall.rho, as_node(left)))
    conductance = wall.conductance * (1.0 + _moved(wall))
    return ElectrodeFlux(conductance * edge.leaving, conductance * edge.arriving, charge * conductance * edge.slope)


def _clamped(exponent: Node) -> Node:
    return mg.min(mg.max(exponent, -LARGEST), LARGEST)
