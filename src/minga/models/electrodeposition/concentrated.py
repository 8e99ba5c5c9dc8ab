"""A concentrated solution of one salt: properties of its ions that reproduce measured tables.

In a solution of one salt, measurements determine the diffusivity D of the salt, the conductivity k, the transference
number t of the cation and the thermodynamic factor q = 1 + d ln g / d ln c of the activity a = g c (Newman's binary
form), all as functions of the concentration c of the salt. The model has ions with

    N_i = -d_i grad c_i - z_i m_i (F/RT) c_i grad phi,      m_i = k t_i RT / (F^2 z_i^2 n_i c)
    d_+ = D + t_+ q (m_+ - m_-),      d_- = D - t_- q (m_+ - m_-)

with n_i the number of its ions in the salt and t_- = 1 - t_+. Where the solution is neutral, (1 - t) d_+ + t d_- = D,
k is the sum of F^2/RT z_i^2 m_i c_i, and the potential that arises from a gradient is that of the activities. Ion pairs
count as ions: c_i is the whole concentration, and the mobility m_i is less than d_i. At a metal, equilibrium is that of
the activity. Constant tables with q = 1 and the ambipolar diffusivity of the ions are those of a dilute solution.

Between rows, all properties are linear in sqrt(c), as those of dilute solutions are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile.portable import functions
from minga.errors import CaseError
from minga.lang import functions as mg
from minga.lang.expr import Node
from minga.models.electrodeposition.groups import Salt
from minga.models.electrodeposition.problem import Constants, Species

__all__ = ["Rows", "Solution", "Wet", "solution_of"]

Floats = NDArray[np.float64]
Number = Node | float
KEY: Final = "electrodeposition.solution"
FIELDS: Final = ("concentration", "diffusivity", "conductivity", "transference", "factor")
"""Names of the columns of a table."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Measured properties of a solution; all arrays have the shape (rows,).

    Parameters
    ----------
    concentration
        Concentration of the salt, mol/m3, increasing; f8. If it begins with 0, that row has the limits of dilution.
    diffusivity
        Diffusivity of the salt, m2/s; f8.
    conductivity
        Conductivity over the concentration of the salt, S m2/mol; f8.
    transference
        Fraction of the current that the cation carries; f8.
    factor
        Thermodynamic factor, 1 + d ln g / d ln c; f8.
    """

    concentration: Floats
    diffusivity: Floats
    conductivity: Floats
    transference: Floats
    factor: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Wet:
    """Properties of an ion at a face or in a cell.

    Attributes
    ----------
    diffusivity
        d of the ion, m2/s.
    ratio
        Mobility over diffusivity, m/d.
    response
        Relative change of the concentration with the potential, in z F/RT, for corrections of the potential: the mean
        of m/d, which it is inside a solution at rest, and 1, which it is beside a metal that holds the concentration.
    """

    diffusivity: Node
    ratio: Node
    response: Node


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """Properties of an ion in a cell beside a metal.

    Attributes
    ----------
    number
        Number of the ion.
    activity
        ln(a/c).
    ratio, other
        Mobility over diffusivity of the ion, and of the other ion.
    factor
        d ln(a) / d ln(c).
    solution
        The solution, which gives the activity at a known concentration.
    """

    number: int
    activity: Node
    ratio: Node
    other: Node
    factor: Node
    solution: Solution

    def excess(self, reference: float) -> Node:
        """Return the logarithm of the activity coefficient over that at a reference concentration, mol/m3."""
        return self.activity - self.solution.activity_at(self.number, reference)

    def to_edge(self, rho: Number | None) -> Number:
        """Return what ln(c_e/c) adds to z F/RT (metal - edge): by the potential, and by the activity coefficient."""
        return (0.0 if rho is None else rho) / self.other + (self.factor - 1.0)

    def moved(self, rho: Number | None) -> Number:
        """Return the ratio rho of the flux; mobilities differ from diffusivities."""
        return (0.0 if rho is None else rho) * self.ratio / self.other


@dataclass(frozen=True, slots=True)
class Solution:
    """Properties of the two ions of a salt by its concentration, in rows; those of an ion by its number.

    Parameters
    ----------
    roots
        Square roots of the concentrations, (mol/m3)**0.5, from 0.
    mobilities, diffusivities
        m and d of each ion, m2/s.
    counts
        Number of ions of each species in the salt.
    factors
        Thermodynamic factors.
    activities
        ln(a/c), 0 in dilute solutions.
    """

    roots: tuple[float, ...]
    mobilities: dict[int, tuple[float, ...]]
    diffusivities: dict[int, tuple[float, ...]]
    counts: dict[int, int]
    factors: tuple[float, ...]
    activities: tuple[float, ...]

    @property
    def ends(self) -> dict[int, float]:
        """Concentration of each ion beyond which its properties stay constant, mol/m3."""
        return {number: self.roots[-1] * self.roots[-1] * count for number, count in self.counts.items()}

    def salt(self, concentrations: Sequence[Node]) -> Node:
        """Return the concentration of the salt, the mean of what its two ions stand for, mol/m3."""
        (one, n), (other, m) = self.counts.items()
        return (0.5 / n) * mg.max(concentrations[one], 0.0) + (0.5 / m) * mg.max(concentrations[other], 0.0)

    def at(self, number: int, salt: Node) -> Wet:
        """Return the properties of an ion where the salt has a concentration."""
        d = self._between(self.diffusivities[number], salt)
        ratio = self._between(self.mobilities[number], salt) / d
        return Wet(d, ratio, 0.5 * (ratio + 1.0))

    def beside(self, number: int, concentrations: Sequence[Node]) -> Beside | None:
        """Return the properties of an ion in a cell beside a metal; None for others than those of the salt."""
        if number not in self.counts:
            return None
        salt = self.salt(concentrations)
        activity = self._between(self.activities, salt)
        own, other = self.at(number, salt), self.at(self.other(number), salt)
        return Beside(number, activity, own.ratio, other.ratio, self._between(self.factors, salt), self)

    def activity_at(self, number: int, concentration: float) -> float:
        """Return ln(a/c) at a known concentration of an ion, mol/m3."""
        return float(np.interp(math.sqrt(concentration / self.counts[number]), self.roots, self.activities))

    def other(self, number: int) -> int:
        """Return the number of the other ion."""
        return next(n for n in self.counts if n != number)

    def conductivity(self, charges: Sequence[int], constants: Constants, salt: float) -> float:
        """Return the conductivity where the salt has a concentration in mol/m3, S/m."""
        root, total = math.sqrt(salt), 0.0
        for number, count in self.counts.items():
            mobility = float(np.interp(root, self.roots, self.mobilities[number]))
            total += charges[number] * charges[number] * count * mobility
        return constants.faraday * constants.faraday / constants.thermal * salt * total

    def transference(self, charges: Sequence[int], salt: float) -> float:
        """Return the fraction of the current that the cation carries where the salt has a concentration in mol/m3."""
        root = math.sqrt(salt)
        carried = {n: abs(charges[n]) * float(np.interp(root, self.roots, self.mobilities[n])) for n in self.counts}
        return next(carried[n] for n in carried if charges[n] > 0) / math.fsum(carried.values())

    def salt_diffusivity(self, charges: Sequence[int], salt: float) -> float:
        """Return the diffusivity of the salt where it has a concentration in mol/m3, m2/s."""
        root, t = math.sqrt(salt), self.transference(charges, salt)
        parts = {n: float(np.interp(root, self.roots, self.diffusivities[n])) for n in self.counts}
        return math.fsum(((1.0 - t) if charges[n] > 0 else t) * parts[n] for n in parts)

    def _between(self, values: Sequence[float], salt: Node) -> Node:
        root = mg.sqrt(salt)
        result: Node = values[0] + 0.0 * root
        for low, high, first, last in zip(self.roots, self.roots[1:], values, values[1:], strict=False):
            if first != last:
                passed = mg.min(mg.max(root - low, 0.0), high - low)
                result = result + ((last - first) / (high - low)) * passed
        return result


def solution_of(rows: Rows, species: Sequence[Species], constants: Constants) -> Solution:
    """Return the solution of a salt with these properties.

    Parameters
    ----------
    rows
        The properties. A row of zero concentration is added where there is none, like the first, with a factor of 1.
    species
        The ions of the bath: one cation and one anion.
    constants
        Physical constants.

    Raises
    ------
    CaseError
        If the bath is not one salt, the numbers are impossible, or the bath is more concentrated than the last row.
    """
    salt = Salt.of(species)
    if salt is None or sum(1 for s in species if s.charge) != 2:
        names = ", ".join(s.name for s in species)
        raise CaseError(
            f"a concentrated solution has one cation and one anion, but the bath has {names}",
            key=KEY,
            remedy="leave out solution, which treats the bath as dilute, or leave out the acid and other ions",
        )
    _check(rows, salt)
    if rows.concentration[0] > 0:
        rows = _diluted(rows)
    cation, anion = list(species).index(salt.cation), list(species).index(salt.anion)
    shared = math.gcd(salt.cation.charge, salt.anion.charge)
    counts = {cation: -salt.anion.charge // shared, anion: salt.cation.charge // shared}
    per_mol = constants.faraday * constants.faraday / constants.thermal
    t = {cation: rows.transference, anion: 1.0 - rows.transference}
    mobility = {
        n: rows.conductivity * t[n] / (per_mol * species[n].charge * species[n].charge * counts[n]) for n in counts
    }
    spread = rows.factor * (mobility[cation] - mobility[anion])
    diffusivity = {cation: rows.diffusivity + t[cation] * spread, anion: rows.diffusivity - t[anion] * spread}
    for n, values in diffusivity.items():
        if not values.min() > 0:
            at = int(values.argmin())
            raise CaseError(
                f"at {rows.concentration[at]:g} mol/m3 the salt's diffusivity is {rows.diffusivity[at]:.4g} m2/s, less "
                f"than its conductivity and its factor {rows.factor[at]:.3g} require of {species[n].name}",
                key=f"{KEY}.diffusivity",
                remedy="check the units of the table, and whether its factor is that of the same concentration",
            )
    roots = np.sqrt(rows.concentration)
    return Solution(
        _numbers(roots),
        {n: _numbers(values) for n, values in mobility.items()},
        {n: _numbers(values) for n, values in diffusivity.items()},
        counts,
        _numbers(rows.factor),
        _activities(roots, rows.factor),
    )


def _numbers(values: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _activities(roots: Floats, factors: Floats) -> tuple[float, ...]:
    """Return ln(a/c), the integral of (q - 1) d ln c where q is linear in the root of c and 1 at 0."""
    total, found = 0.0, [0.0]
    for low, high, first, last in zip(roots, roots[1:], factors - 1.0, factors[1:] - 1.0, strict=False):
        slope = (last - first) / (high - low)
        rest = first - slope * low
        total += 2.0 * slope * (high - low)
        if low > 0:
            total += 2.0 * rest * float(np.asarray(functions.log(np.float64(high / low))))
        found.append(float(total))
    return tuple(found)


def _diluted(rows: Rows) -> Rows:
    """Return the rows after one of zero concentration."""
    first = {"concentration": 0.0, "factor": 1.0}
    parts = [(name, np.asarray(getattr(rows, name), np.float64)) for name in FIELDS]
    return Rows(*(np.concatenate(([first.get(name, values[0])], values)) for name, values in parts))


def _check(rows: Rows, salt: Salt) -> None:
    """Reject impossible rows."""
    for name in FIELDS:
        values, least = getattr(rows, name), -1.0 if name == "concentration" else 0.0
        if len(values) != len(rows.concentration):
            raise CaseError(
                f"{len(values)} values of {name}, but {len(rows.concentration)} concentrations",
                key=f"{KEY}.{name}",
                remedy="give one value for each concentration",
            )
        known = np.isfinite(values) & (values > least)
        if name == "transference":
            known &= values < 1.0
        if not known.all():
            at = int((~known).argmax())
            limits = "between 0 and 1, without both" if name == "transference" else "above 0"
            raise CaseError(
                f"value {at + 1} of {name} is {values[at]:g}", key=f"{KEY}.{name}", remedy=f"give numbers {limits}"
            )
    c = rows.concentration
    if len(c) < 2 or c[0] < 0 or not (np.diff(c) > 0).all():
        raise CaseError(
            "a table needs two or more concentrations in increasing order",
            key=f"{KEY}.concentration",
            remedy="sort the rows by concentration, and leave out repeated ones",
        )
    if salt.concentration > c[-1] * max(1, -salt.anion.charge // math.gcd(salt.cation.charge, salt.anion.charge)):
        raise CaseError(
            f"the bath has {salt.concentration:g} mol/m3, but the table ends at {c[-1]:g} mol/m3",
            key=f"{KEY}.concentration",
            remedy="add rows up to the concentrations that may arise at the anode, or dilute the bath",
        )
