"""Statement of the problem, independent of its solution: ions in a cell between two electrodes, in SI units.

    dc_i/dt + div N_i = 0,      N_i = -D_i grad c_i - (z_i D_i F / RT) c_i grad phi + c_i v
    -div(eps grad phi) = F sum z_i c_i
    rho0 (dv/dt + v . grad v) = -grad p + eta lap v - F sum z_i c_i grad phi + rho0 sum alpha_i (c_i - c_i0) g
    div v = 0

The equations are those of Milano, Mocskos and Marshall with two signs corrected (see
docs/decisions/electrodeposition.md). The axes of the grid are one or more of y (from the cathode at the low end to the
anode at the high end), z (the gap) and x (the width), in this order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from minga.models.electrodeposition.protocols.segments import Part, segments_of
from minga.models.electrodeposition.reaction import Reacting, group_of
from minga.models.electrodeposition.solubility import Sparing
from minga.space.grid import Grid

if TYPE_CHECKING:
    from minga.models.electrodeposition.concentrated import Solution
    from minga.models.electrodeposition.equilibrium import Equilibrium

FLUID: Final = 0
CATHODE: Final = 1
ANODE: Final = 2
INSULATOR: Final = 3
"""Kinds of cells, also beyond the ends of the grid: solution, one of the two metals, or glass."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Physical constants and properties of the solvent.

    Parameters
    ----------
    faraday
        Faraday constant, C/mol; 1 in scaled problems.
    thermal
        R T, J/mol; 1 in scaled problems.
    permittivity
        Permittivity of the solvent, F/m.
    density
        Density of the solvent (rho0), kg/m3.
    viscosity
        Dynamic viscosity (eta), Pa s.
    """

    faraday: float = 96485.33212
    thermal: float = 8.314462618 * 298.15
    permittivity: float = 78.4 * 8.8541878128e-12
    density: float = 997.0
    viscosity: float = 0.893e-6 * 997.0


@dataclass(frozen=True, slots=True)
class Species:
    """One kind of ion.

    Parameters
    ----------
    name
        Name of the ion.
    charge
        Charge number.
    diffusivity
        Diffusivity, m2/s.
    bulk
        Bulk concentration, mol/m3.
    expansion
        Density slope alpha, m3/mol.
    """

    name: str
    charge: int
    diffusivity: float
    bulk: float
    expansion: float = 0.0


@dataclass(frozen=True, slots=True)
class Held:
    """A condition that holds the concentration at the metal at `concentration` (mol/m3).

    Parameters
    ----------
    concentration
        Concentration, mol/m3.
    """

    concentration: float


@dataclass(frozen=True, slots=True)
class Flux:
    """A prescribed flux into the solution.

    Parameters
    ----------
    density
        Flux, mol/m2/s; None for the flux whose total over the electrode balances what the other electrode removes.
    """

    density: float | None


@dataclass(frozen=True, slots=True)
class ButlerVolmer:
    """Electrode kinetics: flux into the metal = i0/(n F) [(c/reference) exp(-b n F eta/RT) - exp((1-b) n F eta/RT)].

    Parameters
    ----------
    exchange
        Exchange current density i0, A/m2.
    reference
        Reference concentration, mol/m3.
    equilibrium
        Equilibrium potential, V; eta = metal - solution at the wall - equilibrium.
    transfer
        Transfer coefficient b.
    electrons
        Number n of electrons; None for the charge number of the ion.
    anodic
        Whether the reaction also runs backwards; if not, only the first exponential is left (Tafel).
    order
        Exponent of c/reference in the first term.
    """

    exchange: float
    reference: float
    equilibrium: float = 0.0
    transfer: float = 0.5
    electrons: int | None = None
    anodic: bool = True
    order: float = 1.0


@dataclass(frozen=True, slots=True)
class Reversible:
    """Equilibrium at the outer edge of a double layer that is not resolved: phi = metal - RT/(zF) ln(c/reference).

    Parameters
    ----------
    reference
        Concentration at which the difference of potential is 0, mol/m3.
    """

    reference: float


Surface = Held | Flux | ButlerVolmer | Reversible | Reacting


@dataclass(frozen=True, slots=True)
class Electrode:
    """Conditions at a metal.

    Parameters
    ----------
    surfaces
        Conditions by the name of the species; other species do not pass.
    stern
        Thickness of the Stern layer, m.
    capacity
        Capacity of a double layer that is not resolved, F/m2; 0 for the layers that the ions form by themselves.
    film
        Resistance of a film in series with the reactions, ohm m2.
    """

    surfaces: Mapping[str, Surface] = field(default_factory=dict)
    stern: float = 0.0
    capacity: float = 0.0
    film: float = 0.0


@dataclass(frozen=True, slots=True)
class Growth:
    """Growth of the deposit: a cell turns solid whenever the charge that has passed has deposited its volume.

    Parameters
    ----------
    ion
        Name of the species that is deposited.
    volume
        Volume of solid metal per mole of the ion, m3/mol.
    porosity
        Fraction of the deposit that is not metal.
    exponent
        Exponent eta: cells are drawn with probabilities proportional to flux**eta.
    radius
        Radius over which these fluxes are averaged, m; 0: each cell counts by itself.
    onset
        The deposit is compact until the ion's concentration at the cathode is below this fraction of the bulk's, and
        porous from then on; None: it is porous from the beginning.
    surface_energy
        Surface energy of the metal, J/m2, by which curvature shifts its equilibrium potential; it needs a radius.
    grain
        Width of the blocks of cells that share their random numbers, m; 0: each cell draws by itself.
    """

    ion: str
    volume: float
    porosity: float = 0.0
    exponent: float = 1.0
    radius: float = 0.0
    onset: float | None = None
    surface_energy: float = 0.0
    grain: float = 0.0


@dataclass(frozen=True, slots=True)
class Steps:
    """Time steps.

    Parameters
    ----------
    end
        Duration of the run, s.
    every
        Interval from one frame, and one step of the run, to the next, s.
    first
        Length of the first time step, or of every time step if `adaptive` is False, s.
    adaptive
        Whether the lengths of time steps follow the error.
    tolerance
        Relative error of one time step, where steps are adaptive.
    order
        1 (implicit Euler) or 2 (BDF2).
    flow_tolerance
        Error of the velocity in one time step, relative to its largest magnitude; None if it is not controlled.
    """

    end: float
    every: float
    first: float
    adaptive: bool = True
    tolerance: float = 1e-3
    order: int = 2
    flow_tolerance: float | None = None

    @property
    def count(self) -> int:
        """Number of steps of the run, the last of which is shorter if `every` does not divide `end`."""
        return math.ceil(self.end / self.every * (1.0 - 1e-9))


@dataclass(frozen=True, eq=False)
class Problem:
    """An electrochemical cell and how it is driven.

    The walls at the ends of x and z are glass; the ends of y are the electrodes.

    Parameters
    ----------
    grid
        Grid with 1 to 3 of the axes y, z, x, in metres, uniform or stretched; x and z may be periodic.
    species
        The ions.
    steps
        The time steps.
    constants
        Physical constants and properties of the solvent.
    kinds
        Kind of every cell (FLUID, CATHODE, ANODE, INSULATOR), of the grid's shape and type u1; None if all are fluid.
    cathode, anode
        Conditions at the electrodes.
    voltage
        Potential of the anode relative to the cathode, V; None in galvanostatic operation.
    current
        Current density over the cathode's plane, A/m2, positive where cations move to the cathode; None in
        potentiostatic operation.
    protocol
        A program of currents and voltages in place of `voltage` and `current`.
    reference
        Distance of a reference electrode from the cathode's plane, m, against which the voltages of `protocol` are
        potentials of the cathode; None if they are those of the anode relative to the cathode.
    metal
        Name of the ion that is deposited; None for the first.
    cutoff
        Cut-off voltage, V, of either sign: a run with a given current ends once the voltage has passed it.
    solution
        Properties of a concentrated solution of one salt, or the local equilibrium of a sulphate with acid; None for
        free ions of constant diffusivities.
    saturation
        Concentration of an ion, by name, above which its salt is oversaturated, mol/m3, where it is known.
    sparing
        Sparingly soluble salts that the ions can form.
    molar_volume
        Volume of a mole of compact metal, m3/mol; None where it is not known.
    gravity
        Gravity along each axis of the grid, m/s2.
    flow
        Whether the fluid moves.
    growth
        Growth of the deposit; None if it does not grow.
    seed
        Seed of the random numbers.
    initial
        Initial values by field name, where they are not those of the bulk: arrays of the grid's shape.
    """

    grid: Grid
    species: tuple[Species, ...]
    steps: Steps
    constants: Constants = Constants()
    kinds: NDArray[np.uint8] | None = None
    cathode: Electrode = Electrode()
    anode: Electrode = Electrode()
    voltage: float | None = None
    current: float | None = None
    protocol: tuple[Part, ...] = ()
    reference: float | None = None
    metal: str | None = None
    cutoff: float = math.inf
    solution: Solution | Equilibrium | None = None
    saturation: Mapping[str, float] = field(default_factory=dict)
    sparing: tuple[Sparing, ...] = ()
    molar_volume: float | None = None
    gravity: tuple[float, ...] = ()
    flow: bool = False
    growth: Growth | None = None
    seed: int = 0
    initial: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @property
    def solids(self) -> bool:
        """Flag that is set if any cell is solid or may become solid."""
        return self.growth is not None or (self.kinds is not None and bool(np.any(self.kinds != FLUID)))

    @property
    def competing(self) -> bool:
        """Flag that is set if several ions pass at the cathode, so that only a part of the current deposits metal."""
        return len(self.cathode.surfaces) > 1

    @property
    def partners(self) -> dict[int, int]:
        """Numbers of the ions that a reaction turns into one another, both ways."""
        numbers = {s.name: n for n, s in enumerate(self.species)}
        found = {}
        for electrode in (self.cathode, self.anode):
            for name, surface in electrode.surfaces.items():
                for other in group_of(name, surface.reactions) if isinstance(surface, Reacting) else ():
                    if other != name:
                        found[numbers[name]] = numbers[other]
        return found

    @property
    def galvanostatic(self) -> bool:
        """Flag that is set if the current is given, always or at times."""
        return self.current is not None or any(s.control == "current" for s in segments_of(self.protocol))

    @property
    def beta(self) -> float:
        """Inverse thermal voltage F / RT, 1/V."""
        return self.constants.faraday / self.constants.thermal


def largest_given(problem: Problem, number: int) -> float:
    """Return the largest concentration prescribed for a species anywhere, mol/m3; 1 if it is 0.

    Species that a reaction turns into one another count as one.
    """
    partner = problem.partners.get(number)
    found = max(_largest(problem, n) for n in (number, partner) if n is not None)
    return found or 1.0


def _largest(problem: Problem, number: int) -> float:
    """Return the largest concentration prescribed for a species anywhere, mol/m3."""
    species = problem.species[number]
    given = [species.bulk]
    for electrode in (problem.cathode, problem.anode):
        surface = electrode.surfaces.get(species.name)
        if isinstance(surface, Held):
            given.append(surface.concentration)
    if species.name in problem.initial:
        given.append(float(problem.initial[species.name].max()))
    return max(given)
