"""What is to be solved: ions in a cell between two electrodes, in SI units, before anybody says how.

    dc_i/dt + div N_i = 0,      N_i = -D_i grad c_i - (z_i D_i F / RT) c_i grad phi + c_i v
    -div(eps grad phi) = F sum z_i c_i
    rho0 (dv/dt + v . grad v) = -grad p + eta lap v - F sum z_i c_i grad phi + rho0 sum alpha_i (c_i - c_i0) g
    div v = 0

After Milano, Mocskos and Marshall, with two signs mended (see docs/decisions/electrodeposition.md). Axes of the grid
are some of y (from the cathode at the low end to the anode at the high end), z (the gap) and x (the width), in this
order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.space.grid import Grid

FLUID: Final = 0
CATHODE: Final = 1
ANODE: Final = 2
INSULATOR: Final = 3
"""What a cell is, or what lies beyond the ends of the grid: solution, one of the two metals, or glass."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Constants of physics and of the solvent. In scaled problems `faraday` and `thermal` are 1.

    faraday        C/mol
    thermal        R T, J/mol
    permittivity   F/m
    density        kg/m3, of the solvent (rho0)
    viscosity      Pa s (eta)
    """

    faraday: float = 96485.33212
    thermal: float = 8.314462618 * 298.15
    permittivity: float = 78.4 * 8.8541878128e-12
    density: float = 997.0
    viscosity: float = 0.893e-6 * 997.0


@dataclass(frozen=True, slots=True)
class Species:
    """One kind of ion: charge number, diffusivity (m2/s), bulk concentration (mol/m3), density slope alpha (m3/mol)."""

    name: str
    charge: int
    diffusivity: float
    bulk: float
    expansion: float = 0.0


@dataclass(frozen=True, slots=True)
class Held:
    """The concentration at the metal is held at `concentration` (mol/m3)."""

    concentration: float


@dataclass(frozen=True, slots=True)
class Flux:
    """A flux into the solution (mol/m2/s); None: whatever makes the total equal what the other electrode takes out."""

    density: float | None


@dataclass(frozen=True, slots=True)
class ButlerVolmer:
    """Electrode kinetics: flux into the metal = i0/(n F) [(c/reference) exp(-b n F eta/RT) - exp((1-b) n F eta/RT)].

    exchange     i0, A/m2
    reference    mol/m3
    equilibrium  V; eta = metal - solution at the wall - equilibrium
    transfer     b
    electrons    n; None: the charge number of the ion
    """

    exchange: float
    reference: float
    equilibrium: float = 0.0
    transfer: float = 0.5
    electrons: int | None = None


@dataclass(frozen=True, slots=True)
class Reversible:
    """Equilibrium at the outer edge of a double layer that is not resolved: phi = metal - RT/(zF) ln(c/reference)."""

    reference: float


Surface = Held | Flux | ButlerVolmer | Reversible


@dataclass(frozen=True, slots=True)
class Electrode:
    """What happens at a metal: conditions by the name of a species (others do not pass), and a Stern layer (m)."""

    surfaces: Mapping[str, Surface] = field(default_factory=dict)
    stern: float = 0.0


@dataclass(frozen=True, slots=True)
class Growth:
    """Deposits that grow: a cell turns solid whenever the charge passed has deposited its volume.

    volume    m3 of solid metal a mole of the ion
    ion       the species that is deposited
    porosity  share of the deposit that is not metal
    exponent  eta: cells are drawn with probabilities proportional to flux**eta
    """

    ion: str
    volume: float
    porosity: float = 0.0
    exponent: float = 1.0


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps in time.

    end, every  s: the whole time, and that from one frame (and one step of the run) to the next
    first       s: the first time step, or the only one if `adaptive` is False
    tolerance   relative error of one time step, where steps are adaptive
    order       1 (implicit Euler) or 2 (BDF2)
    """

    end: float
    every: float
    first: float
    adaptive: bool = True
    tolerance: float = 1e-3
    order: int = 2


@dataclass(frozen=True, eq=False)
class Problem:
    """A cell and what is done with it.

    grid      1 to 3 of the axes y, z, x; metres, uniform or stretched; x and z may be periodic
    kinds     what every cell is (FLUID, CATHODE, ANODE, INSULATOR), shape of the grid, u1; None: all fluid
    voltage   V of the anode over the cathode; None: galvanostatic
    current   A/m2 of the cathode's plane, positive where cations go to the cathode; None: potentiostatic
    cutoff    V, of either sign: where the current is given, a run ends once the voltage has passed it
    saturation  mol/m3 of an ion above which its salt is not dissolved, by name, where that is known
    gravity   m/s2 along each axis of the grid
    flow      whether the fluid moves
    shape     walls beyond x and z are glass; beyond y the electrodes
    initial   first values by field name, where they are not the bulk's: arrays of the grid's shape
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
    cutoff: float = math.inf
    saturation: Mapping[str, float] = field(default_factory=dict)
    gravity: tuple[float, ...] = ()
    flow: bool = False
    growth: Growth | None = None
    seed: int = 0
    initial: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @property
    def solids(self) -> bool:
        """Whether some cells are solid, or may become so."""
        return self.growth is not None or (self.kinds is not None and bool(np.any(self.kinds != FLUID)))

    @property
    def beta(self) -> float:
        """F / RT, in 1/V."""
        return self.constants.faraday / self.constants.thermal
