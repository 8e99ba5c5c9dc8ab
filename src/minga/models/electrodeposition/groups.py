"""Dimensionless groups of a cell, and the numbers that electrochemists work out before an experiment.

After Milano, Mocskos and Marshall, with F and mol/m3 in place of e and number densities:

    M_i = mu_i Phi0 / (x0 u0)    Pe_i = x0 u0 / D_i    Po = x0^2 C0 F / (eps Phi0)    Re = x0 u0 / nu
    Ge = F C0 Phi0 / (rho0 u0^2)    Gg_i = x0 C0 g alpha_i / u0^2,    mu_i = z_i D_i F / RT
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from minga.models.electrodeposition.problem import Constants, Held, Problem, Species

__all__ = [
    "Groups",
    "Salt",
    "Scales",
    "conductivity",
    "debye_length",
    "groups_of",
    "limiting_current",
    "permittivity_for",
    "resolves_charge",
]

RESOLVED: Final = 20.0
"""Debye lengths that a cell may be wide while it resolves layers of charge."""


@dataclass(frozen=True, slots=True)
class Scales:
    """What lengths (m), velocities (m/s), potentials (V) and concentrations (mol/m3) are measured in."""

    length: float
    velocity: float
    potential: float
    concentration: float


@dataclass(frozen=True, slots=True)
class Groups:
    """Dimensionless groups; those of the ions in the order of the species."""

    migration: tuple[float, ...]
    peclet: tuple[float, ...]
    poisson: float
    reynolds: float
    coulomb: float
    buoyancy: tuple[float, ...]

    @property
    def force(self) -> float:
        """Ge/Po = eps Phi0^2 / (rho0 u0^2 x0^2): Coulomb's force where charge is written as a Laplacian."""
        return self.coulomb / self.poisson


def groups_of(species: Sequence[Species], constants: Constants, scales: Scales, gravity: float = 9.81) -> Groups:
    """The groups of these ions on these scales; `gravity` in m/s2."""
    beta = constants.faraday / constants.thermal
    x0, u0, phi0, c0 = scales.length, scales.velocity, scales.potential, scales.concentration
    nu = constants.viscosity / constants.density
    return Groups(
        migration=tuple(s.charge * s.diffusivity * beta * phi0 / (x0 * u0) for s in species),
        peclet=tuple(x0 * u0 / s.diffusivity for s in species),
        poisson=x0**2 * c0 * constants.faraday / (constants.permittivity * phi0),
        reynolds=x0 * u0 / nu,
        coulomb=constants.faraday * c0 * phi0 / (constants.density * u0**2),
        buoyancy=tuple(x0 * c0 * gravity * s.expansion / u0**2 for s in species),
    )


def conductivity(species: Sequence[Species], constants: Constants) -> float:
    """Of the bulk, S/m: (F^2/RT) sum z^2 D c, without ion pairing."""
    return constants.faraday**2 / constants.thermal * sum(s.charge**2 * s.diffusivity * s.bulk for s in species)


def debye_length(species: Sequence[Species], constants: Constants) -> float:
    """Of the bulk, m: sqrt(eps RT / (F^2 sum z^2 c))."""
    return math.sqrt(constants.permittivity * constants.thermal / _ionic(species)) / constants.faraday


def permittivity_for(debye: float, species: Sequence[Species], constants: Constants) -> float:
    """The permittivity (F/m) at which the bulk has this Debye length (m)."""
    return (debye * constants.faraday) ** 2 * _ionic(species) / constants.thermal


def _ionic(species: Sequence[Species]) -> float:
    return sum(s.charge**2 * s.bulk for s in species)


def resolves_charge(problem: Problem) -> bool:
    """Whether the narrowest cells are no wider than some Debye lengths, so that layers of charge are in the fields.

    Where they are not, the bath is neutral in every cell. Then fluxes are those of a neutral solution
    (`minga.models.electrodeposition.neutral`), and the Coulomb force is the charge times the field: its osmotic form is
    the gradient of RT sum c but for a share w**2 / 12, w the drop of z F/RT phi across a cell, which is no gradient and
    much more than the weight of the fluid.
    """
    if not any(s.charge and s.bulk for s in problem.species):
        return True
    narrowest = min(float(problem.grid.widths(axis).min()) for axis in range(problem.grid.ndim))
    return narrowest <= RESOLVED * debye_length(problem.species, problem.constants)


@dataclass(frozen=True, slots=True)
class Salt:
    """A bath of one cation and one anion, which diffuse together.

    concentration  of the cation, mol/m3 (C0)
    """

    cation: Species
    anion: Species

    @staticmethod
    def of(species: Sequence[Species]) -> Salt | None:
        """The only two ions that a bath has; None where there are more, or fewer."""
        present = [s for s in species if s.bulk > 0 and s.charge]
        signs = {s.charge > 0: s for s in present}
        return Salt(signs[True], signs[False]) if len(present) == len(signs) == 2 else None

    @property
    def concentration(self) -> float:
        return self.cation.bulk

    @property
    def diffusivity(self) -> float:
        """Ambipolar, m2/s: (z+ + |z-|) D+ D- / (z+ D+ + |z-| D-)."""
        charges = self.cation.charge - self.anion.charge
        return charges * self.cation.diffusivity * self.anion.diffusivity / self._mobility

    @property
    def transference(self) -> float:
        """Share of the current that the cation carries in the bulk."""
        return self.cation.charge * self.cation.diffusivity / self._mobility

    @property
    def expansion(self) -> float:
        """Density slope of the salt, m3 a mole of the cation."""
        ratio = self.anion.bulk / self.cation.bulk
        return self.cation.expansion + ratio * self.anion.expansion

    def limiting_current(self, length: float, faraday: float, *, reservoir: bool = False) -> float:
        """Steady current at which the cathode runs out of cations, A/m2: 2 z+ F D+ C0 (1 + z+/|z-|) / L.

        reservoir   the anions come and go at the anode, where the bath keeps its concentration: half of it
        """
        z = self.cation.charge
        whole = 2 * z * faraday * self.cation.diffusivity * self.concentration * (1 - z / self.anion.charge) / length
        return whole / 2 if reservoir else whole

    def gradient(self, current: float, faraday: float) -> float:
        """Concentration gradient at an electrode that only the cation passes, mol/m4."""
        return current * (1 - self.transference) / (self.cation.charge * faraday * self.diffusivity)

    def sand(self, current: float, faraday: float) -> float:
        """Time until the cathode runs out of cations in a long cell, s: pi D (z+ F C0 / (2 i (1 - t+)))^2."""
        depletion = 2 * self.gradient(current, faraday) / math.sqrt(math.pi * self.diffusivity)
        return (self.concentration / (depletion * self.diffusivity)) ** 2

    def roll_velocity(self, gradient: float, gap: float, viscosity: float, gravity: float = 9.81) -> float:
        """Largest velocity (m/s) between level plates under a gradient (mol/m4) along them: sqrt(3) G h^3 / 216.

        viscosity   kinematic, m2/s; G = g alpha gradient / viscosity
        """
        return math.sqrt(3) / 216 * gravity * self.expansion * gradient / viscosity * gap**3

    @property
    def _mobility(self) -> float:
        return self.cation.charge * self.cation.diffusivity - self.anion.charge * self.anion.diffusivity


def limiting_current(problem: Problem) -> float | None:
    """A/m2 at which the cations of a salt run out at the cathode in a steady state without flow; None where there is no
    such number: for other baths than one salt, or where the cation does not pass at both electrodes, or the anion does
    at the cathode."""
    salt = Salt.of(problem.species)
    if salt is None:
        return None
    cathode, anode = problem.cathode.surfaces, problem.anode.surfaces
    if salt.cation.name not in cathode or salt.cation.name not in anode or salt.anion.name in cathode:
        return None
    length, faraday = float(problem.grid.widths("y").sum()), problem.constants.faraday
    if salt.anion.name not in anode:
        return salt.limiting_current(length, faraday)
    held = anode[salt.cation.name]
    if not isinstance(held, Held):
        return None
    return salt.limiting_current(length, faraday, reservoir=True) * held.concentration / salt.concentration
