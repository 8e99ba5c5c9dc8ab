"""Local equilibrium in a bath of a sulphate and sulphuric acid: bisulphate and ion pairs in the equations.

    H+ + SO4 2- = HSO4-,    M2+ + SO4 2- = MSO4

The species of the model are the totals of H, M and SO4, which these reactions neither create nor destroy; their charges
are those of the free ions, because HSO4- carries +1 - 2 and a pair +2 - 2. A total moves as its forms do,

    N = sum over its forms of -D_f [c_f grad ln(g_f c_f) + z_f m_f (F/RT) c_f grad phi],    c_f = x_f c,

with the activity coefficient g_f, the mobility D_f m_f, m_f = g_f^a, and the fraction x_f of the total. Constants,
radii and diffusivities are those of `minga.models.electrodeposition.acid`. Fractions are those of the concentrations of
the pass before, so that fluxes stay linear in the totals, which are conserved to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from minga.compile.explain import Kernel, kernel
from minga.lang import functions as mg
from minga.lang.cell import CellReader
from minga.lang.expr import Node, as_node, where
from minga.lang.iterate import iterate
from minga.lang.math import exp, log
from minga.models.electrodeposition.acid import MOBILE, Acid, acid_of, activities, constants_of, slopes
from minga.models.electrodeposition.problem import Constants, Species
from minga.models.electrodeposition.resting import Form, Path, path_of
from minga.models.electrodeposition.speciation import LN_10, LOG_K, PAIR

__all__ = ["Carrier", "Equilibrium", "Mixed", "equilibrium_of", "speciate"]

Number = Node | float
Readers = Sequence[CellReader]

NAMES: Final = ("free metal", "free hydrogen", "free sulphate", "bisulphate", "ionic strength")
"""Fields of the equilibrium: fractions of the metal, of hydrogen, and twice of sulphate; and the strength, mol/l."""
SMALL: Final = 1e-30
"""Concentration that replaces 0, mol/l."""
CLOSE: Final = 1e-14
"""Relative change of the ionic strength that ends its iteration."""
ROUNDS: Final = 40
"""Largest number of its rounds, steps of the secant method."""
STEPS: Final = 8
"""Steps of Newton's method for the free sulphate, which approaches it from below."""


@dataclass(frozen=True, slots=True, eq=False)
class Carrier:
    """A form in which an ion crosses a face; a dilute ion has one.

    Attributes
    ----------
    charge
        Charge number.
    mobility
        z (F/RT) times the mobility over the diffusivity, 1/V.
    diffusivity
        Diffusivity, m2/s.
    excess
        Logarithm of the ratio of the activity coefficients above and below the face; None where they are equal.
    low, high
        Fraction of the ion in this form below and above the face; None for the whole.
    """

    charge: int
    mobility: Number
    diffusivity: Number
    excess: Node | None = None
    low: Node | None = None
    high: Node | None = None

    @property
    def part(self) -> Number:
        """Mean fraction of the ion in this form."""
        return 1.0 if self.low is None or self.high is None else 0.5 * (self.low + self.high)


@dataclass(frozen=True, slots=True, eq=False)
class Mixed:
    """Properties of a total in a cell beside a metal.

    Attributes
    ----------
    diffusivity
        Mean diffusivity of its forms, m2/s.
    activity
        Logarithm of the activity of the free ion over the total concentration.
    ratio
        Mobility over diffusivity of the total.
    charge
        Charge number of the free ion.
    bulk
        `activity` in the bath.
    path
        The path from the cell to the metal where only this total passes. Where others pass as well, what their fluxes
        add to it is neglected.
    """

    diffusivity: Node
    activity: Node
    ratio: Node
    charge: int
    bulk: float
    path: Path

    def excess(self, _reference: float) -> Node:
        """Return the logarithm of the activity coefficient over that in the bath, to which references belong."""
        return self.activity - self.bulk

    def to_edge(self, _rho: Number | None, left: Node | None = None) -> Node:
        """Return what ln(c_e/c) adds to z F/RT (metal - edge), for an estimate of c_e/c."""
        return self.path.to_edge(self.charge, left)

    def moved(self, _rho: Number | None) -> Node:
        """Return the ratio rho of the flux, by which it exceeds that of `diffusivity`."""
        return self.path.diffusivity / self.diffusivity - 1.0


@dataclass(frozen=True, slots=True)
class Equilibrium:
    """Local equilibrium of the species of a bath.

    Parameters
    ----------
    names
        Names of the species.
    charges
        Their charges.
    diffusivities
        Diffusivities of the free ions, m2/s.
    bath
        The state of the bath.
    """

    names: tuple[str, ...]
    charges: tuple[int, ...]
    diffusivities: tuple[float, ...]
    bath: Acid

    @property
    def ends(self) -> dict[int, float]:
        """Concentrations beyond which properties stay constant: none."""
        return {}

    @property
    def metal(self) -> int | None:
        """Number of the metal's ion; None in pure acid."""
        return next((n for n, name in enumerate(self.names) if name in LOG_K), None)

    def carriers(
        self, number: int, fields: Readers, low: tuple[int, ...], high: tuple[int, ...], beta: float
    ) -> list[Carrier]:
        """Return the forms of an ion at the face between two cells, whose offsets are given."""
        below, above = _Cell.at(self, fields, low), _Cell.at(self, fields, high)
        strength = 0.5 * (below.strength + above.strength)
        mean = self._logs(strength)
        found = []
        for place, (form, charge, diffusivity) in enumerate(self._forms(number)):
            fractions = below.fractions(self, number)[place], above.fractions(self, number)[place]
            if form is None:
                found.append(Carrier(0, 0.0, diffusivity, None, *fractions))
                continue
            mobility = (charge * beta) * _mobility(charge, strength, mean[form])
            excess = as_node(LN_10 * (above.logs[form] - below.logs[form]))
            found.append(Carrier(charge, mobility, diffusivity, excess, *fractions))
        return found

    def beside(self, number: int, values: Sequence[Node], concentrations: Sequence[Node]) -> Mixed:
        """Return the properties of an ion in a cell beside a metal.

        Parameters
        ----------
        number
            Number of the ion.
        values, concentrations
            Fields of the equilibrium and concentrations of all species in the cell, mol/m3.
        """
        cell = _Cell.of(self, values)
        diffusion, migration = as_node(0.0), as_node(0.0)
        for (form, charge, diffusivity), part in zip(self._forms(number), cell.fractions(self, number), strict=True):
            diffusion = diffusion + diffusivity * part
            if form is not None:
                mobile = _mobility(charge, cell.strength, cell.logs[form])
                migration = migration + (charge / self.charges[number] * diffusivity) * (mobile * part)
        form = self._forms(number)[0][0]
        assert form is not None
        activity = log(mg.max(cell.fractions(self, number)[0], SMALL)) + LN_10 * cell.logs[form]
        path = path_of(self._roles[number], self._all_forms(cell, concentrations), cell.fractions(self, number))
        bulk = self.bath.activities[self._roles[number]]
        return Mixed(diffusion, activity, migration / diffusion, self.charges[number], bulk, path)

    def _all_forms(self, cell: _Cell, concentrations: Sequence[Node]) -> list[Form]:
        """Return all forms in a cell, those of each total in the order of `_forms`."""
        name = None if self.metal is None else self.names[self.metal]
        strength = mg.max(cell.strength, SMALL)
        steepness = slopes(name, strength, mg.sqrt(strength))
        totals = {role: mg.max(c, 0.0) * 1e-3 for role, c in zip(self._roles, concentrations, strict=True)}
        found = {}
        for number, role in enumerate(self._roles):
            parts = zip(self._forms(number), cell.fractions(self, number), strict=True)
            for (form, charge, diffusivity), part in parts:
                made_of = {None: (0, 2), 3: (1, 2)}.get(form, (role,))
                amount = mg.max(totals[role] * part, SMALL)
                mobile: Number = 0.0 if form is None else _mobility(charge, cell.strength, cell.logs[form])
                found[made_of] = Form(
                    made_of, charge, diffusivity, mobile, amount, 0.0 if form is None else LN_10 * steepness[form]
                )
        return [found[made_of] for made_of in sorted(found)]

    @property
    def _roles(self) -> tuple[int, ...]:
        """The role of each species: 0 the metal, 1 hydrogen, 2 sulphate."""
        return tuple({"H": 1, "SO4": 2}.get(name, 0) for name in self.names)

    def _forms(self, number: int) -> list[tuple[int | None, int, float]]:
        """Return the forms of a total: the place of its activity coefficient (None: 1), charge and diffusivity."""
        role = self._roles[number]
        free = (role, self.charges[number], self.diffusivities[number])
        bound: tuple[int | None, int, float] = (3, -1, MOBILE)
        pair: tuple[int | None, int, float] = (None, 0, PAIR)
        pairs = [] if self.metal is None else [pair]
        return [free, *({0: pairs, 1: [bound], 2: [bound, *pairs]}[role])]

    def _logs(self, strength: Node) -> tuple[Number, ...]:
        name = None if self.metal is None else self.names[self.metal]
        return activities(name, strength, mg.sqrt(strength))


@dataclass(frozen=True, slots=True, eq=False)
class _Cell:
    """The equilibrium in a cell: its fields, and log10 of the activity coefficients."""

    values: Sequence[Node]
    strength: Node
    logs: tuple[Number, ...]

    @staticmethod
    def at(solution: Equilibrium, fields: Readers, place: tuple[int, ...]) -> _Cell:
        return _Cell.of(solution, [f[place] for f in fields])

    @staticmethod
    def of(solution: Equilibrium, values: Sequence[Node]) -> _Cell:
        return _Cell(values, values[4], solution._logs(values[4]))

    def fractions(self, solution: Equilibrium, number: int) -> list[Node]:
        metal, hydrogen, sulphate, bisulphate, _ = self.values
        pair = [] if solution.metal is None else [1.0 - metal]
        rest = [] if solution.metal is None else [1.0 - sulphate - bisulphate]
        return [
            [metal, *pair],
            [hydrogen, 1.0 - hydrogen],
            [sulphate, bisulphate, *rest],
        ][solution._roles[number]]


def _mobility(charge: int, strength: Node, log_g: Number) -> Node:
    """Return the mobility over that at infinite dilution (Appelo 2010)."""
    size = abs(charge)
    low = strength < 0.36 * size
    exponent = where(low, 0.6 / SQRT[size], mg.sqrt(strength) * (1.0 / size))
    return exp(LN_10 * exponent * log_g)


SQRT: Final = {1: 1.0, 2: 1.4142135623730951}
"""Square roots of charges."""


def equilibrium_of(species: Sequence[Species], constants: Constants) -> Equilibrium | None:
    """Return the local equilibrium of a bath of one sulphate with sulphuric acid; None for other baths."""
    state = acid_of(species, constants)
    charges = {"H": 1, "SO4": -2}
    if state is None or any(s.bulk <= 0.0 or s.charge != charges.get(s.name, 2) for s in species):
        return None
    return Equilibrium(
        tuple(s.name for s in species), tuple(s.charge for s in species), tuple(s.diffusivity for s in species), state
    )


def speciate(solution: Equilibrium, ndim: int) -> Kernel:
    """Return the kernel of the fields of the equilibrium in every cell."""
    here = (0,) * ndim
    roles = solution._roles
    name = None if solution.metal is None else solution.names[solution.metal]

    @kernel
    def local_equilibrium(c: Readers, result: Readers) -> None:
        totals = [as_node(0.0)] * 3
        for role, reader in zip(roles, c, strict=True):
            totals[role] = mg.max(reader[here], 0.0) * 1e-3
        metal, hydrogen, sulphate = totals

        def parts(strength: Node) -> tuple[Node, Node, Node, Node]:
            """Return the fractions of free metal, hydrogen and sulphate, and that of sulphate in HSO4-."""
            root = mg.sqrt(strength)
            pair, acid = (
                exp(LN_10 * log_k) if log_k is not None else as_node(0.0)
                for log_k in constants_of(name, strength, root)
            )
            free = sulphate / (1.0 + metal * pair + hydrogen * acid)
            for _ in range(STEPS):
                of_metal, of_acid = 1.0 / (1.0 + pair * free), 1.0 / (1.0 + acid * free)
                off = free * (1.0 + metal * pair * of_metal + hydrogen * acid * of_acid) - sulphate
                slope = 1.0 + metal * pair * (of_metal * of_metal) + hydrogen * acid * (of_acid * of_acid)
                free = free - off / slope
            of_metal, of_acid = 1.0 / (1.0 + pair * free), 1.0 / (1.0 + acid * free)
            held = acid * (hydrogen * of_acid)
            of_sulphate = 1.0 / (1.0 + pair * (metal * of_metal) + held)
            return of_metal, of_acid, of_sulphate, held * of_sulphate

        def strength_of(strength: Node) -> Node:
            x = parts(strength)
            acid = hydrogen * x[1]
            return 0.5 * (4.0 * metal * x[0] + acid + 4.0 * sulphate * x[2] + (hydrogen - acid))

        def secant(state: tuple[Node, Node, Node]) -> tuple[Node, Node, Node]:
            before, off_before, now = state
            off = strength_of(now) - now
            change = off - off_before
            there = change != 0.0
            following = where(there, now - off * (now - before) / where(there, change, 1.0), now)
            return now, off, where(following > 0.0, following, 0.5 * now)

        first = 0.5 * (4.0 * metal + hydrogen + 4.0 * sulphate)
        found = iterate(
            (first, strength_of(first) - first, 0.5 * first),
            lambda state: mg.abs(state[2] - state[0]) > CLOSE * state[2],
            secant, limit=ROUNDS,
        ).state  # fmt: skip
        strength = found[2]
        for target, value in zip(result, (*parts(strength), strength), strict=True):
            target[here] = value

    return local_equilibrium
