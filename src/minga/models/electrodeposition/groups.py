"""Dimensionless groups of a cell, and the quantities that electrochemists estimate before an experiment.

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
    "charge_balance",
    "conductivity",
    "debye_length",
    "groups_of",
    "limiting_current",
    "permittivity_for",
    "resolves_charge",
]

RESOLVED: Final = 20.0
"""Width of a cell, in Debye lengths, up to which it resolves layers of charge."""


@dataclass(frozen=True, slots=True)
class Scales:
    """Units of the dimensionless form: a length (m), velocity (m/s), potential (V) and concentration (mol/m3)."""

    length: float
    velocity: float
    potential: float
    concentration: float


@dataclass(frozen=True, slots=True)
class Groups:
    """Dimensionless groups; those of ions are in the order of the species.

    Attributes
    ----------
    migration
        M_i.
    peclet
        Pe_i.
    poisson
        Po.
    reynolds
        Re.
    coulomb
        Ge.
    buoyancy
        Gg_i.
    """

    migration: tuple[float, ...]
    peclet: tuple[float, ...]
    poisson: float
    reynolds: float
    coulomb: float
    buoyancy: tuple[float, ...]

    @property
    def force(self) -> float:
        """Ge/Po = eps Phi0^2 / (rho0 u0^2 x0^2), the group of the Coulomb force with charge written as a Laplacian."""
        return self.coulomb / self.poisson


def groups_of(species: Sequence[Species], constants: Constants, scales: Scales, gravity: float = 9.81) -> Groups:
    """Return the groups of these ions on these scales; `gravity` is in m/s2."""
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
    """Return the conductivity of the bulk in S/m, (F^2/RT) sum z^2 D c, without ion pairing."""
    carried = math.fsum(s.charge**2 * s.diffusivity * s.bulk for s in species)
    return constants.faraday * constants.faraday / constants.thermal * carried


def debye_length(species: Sequence[Species], constants: Constants) -> float:
    """Return the Debye length of the bulk in m, sqrt(eps RT / (F^2 sum z^2 c))."""
    return math.sqrt(constants.permittivity * constants.thermal / _ionic(species)) / constants.faraday


def permittivity_for(debye: float, species: Sequence[Species], constants: Constants) -> float:
    """Return the permittivity (F/m) at which the bulk has a given Debye length (m)."""
    return (debye * constants.faraday) * (debye * constants.faraday) * _ionic(species) / constants.thermal


def _ionic(species: Sequence[Species]) -> float:
    return math.fsum(s.charge**2 * s.bulk for s in species)


def resolves_charge(problem: Problem) -> bool:
    """Return whether the narrowest cells span at most `RESOLVED` Debye lengths, so that they resolve layers of charge.

    If not, the bath is neutral in every cell. Fluxes are then those of a neutral solution
    (`minga.models.electrodeposition.neutral`), and the Coulomb force is the charge times the field, because its osmotic
    form would equal the gradient of RT sum c only up to a fraction w**2 / 12, with w the drop of z F/RT phi across a
    cell. That remainder is not a gradient, and is much larger than the weight of the fluid.
    """
    if not any(s.charge and s.bulk for s in problem.species):
        return True
    narrowest = min(float(problem.grid.widths(axis).min()) for axis in range(problem.grid.ndim))
    return narrowest <= RESOLVED * debye_length(problem.species, problem.constants)


@dataclass(frozen=True, slots=True)
class Salt:
    """A bath of one cation and one anion, which diffuse together."""

    cation: Species
    anion: Species

    @staticmethod
    def of(species: Sequence[Species]) -> Salt | None:
        """Return the salt formed by the only two ions of a bath; None if there are more ions, or fewer."""
        present = [s for s in species if s.bulk > 0 and s.charge]
        signs = {s.charge > 0: s for s in present}
        return Salt(signs[True], signs[False]) if len(present) == len(signs) == 2 else None

    @property
    def concentration(self) -> float:
        """Bulk concentration of the cation, mol/m3 (C0)."""
        return self.cation.bulk

    @property
    def diffusivity(self) -> float:
        """Ambipolar diffusivity, m2/s: (z+ + |z-|) D+ D- / (z+ D+ + |z-| D-)."""
        charges = self.cation.charge - self.anion.charge
        return charges * self.cation.diffusivity * self.anion.diffusivity / self._mobility

    @property
    def transference(self) -> float:
        """Fraction of the current that the cation carries in the bulk."""
        return self.cation.charge * self.cation.diffusivity / self._mobility

    @property
    def expansion(self) -> float:
        """Density slope of the salt, m3 per mole of the cation."""
        ratio = self.anion.bulk / self.cation.bulk
        return self.cation.expansion + ratio * self.anion.expansion

    def limiting_current(self, length: float, faraday: float, *, reservoir: bool = False) -> float:
        """Return the steady current at which the cathode runs out of cations, 2 z+ F D+ C0 (1 + z+/|z-|) / L.

        Parameters
        ----------
        length
            Distance L of the electrodes, m.
        faraday
            The Faraday constant, C/mol.
        reservoir
            Whether anions also pass at the anode, where the bath keeps its concentration; the limit is then half.

        Returns
        -------
        float
            Current density, A/m2.
        """
        z = self.cation.charge
        whole = 2 * z * faraday * self.cation.diffusivity * self.concentration * (1 - z / self.anion.charge) / length
        return whole / 2 if reservoir else whole

    def gradient(self, current: float, faraday: float) -> float:
        """Return the concentration gradient (mol/m4) at an electrode where only the cation passes."""
        return current * (1 - self.transference) / (self.cation.charge * faraday * self.diffusivity)

    def sand(self, current: float, faraday: float) -> float:
        """Return Sand's time (s), pi D (z+ F C0 / (2 i (1 - t+)))^2.

        After that time, the cathode of a long cell runs out of cations.
        """
        depletion = 2 * self.gradient(current, faraday) / math.sqrt(math.pi * self.diffusivity)
        return (self.concentration / (depletion * self.diffusivity)) ** 2

    def roll_velocity(self, gradient: float, gap: float, viscosity: float, gravity: float = 9.81) -> float:
        """Return the largest velocity between horizontal plates, sqrt(3) G h^3 / 216 with G = g alpha gradient / nu.

        Parameters
        ----------
        gradient
            Concentration gradient along the plates, mol/m4.
        gap
            Distance h of the plates, m.
        viscosity
            Kinematic viscosity nu, m2/s.
        gravity
            Gravitational acceleration g, m/s2.

        Returns
        -------
        float
            Velocity, m/s.
        """
        return math.sqrt(3) / 216 * gravity * self.expansion * gradient / viscosity * gap**3

    @property
    def _mobility(self) -> float:
        return self.cation.charge * self.cation.diffusivity - self.anion.charge * self.anion.diffusivity


def limiting_current(problem: Problem) -> float | None:
    """Return the limiting current (A/m2), at which the cathode runs out of cations in a steady state without flow.

    It is None where there is no such number: if the bath is not a single dilute salt, if the cation does not pass at
    both electrodes, or if the anion passes at the cathode.
    """
    salt = Salt.of(problem.species)
    if salt is None or problem.solution is not None:
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


def charge_balance(species: Sequence[Species], metal: Species, volume: float) -> float:
    """Return the porosity of a ramified deposit that follows from the balance of its metal.

    A front that leaves no metal ions behind it deposits those that it meets and those that migrate to it. If the latter
    carry the fraction t of the current, the deposit contains c / (1 - t) of metal, whatever the front's speed.

    Parameters
    ----------
    species
        The ions of the bath.
    metal
        The ion that is deposited.
    volume
        Volume of solid metal per mole of the ion, m3/mol.

    Returns
    -------
    float
        Fraction of the deposit that is not metal; 0 where the bath contains more metal than that.
    """
    carried = [s.charge**2 * s.diffusivity * s.bulk for s in species]
    share = metal.charge**2 * metal.diffusivity * metal.bulk / sum(carried)
    return max(0.0, 1.0 - metal.bulk * volume / (1.0 - share)) if share < 1.0 else 0.0
