"""Amounts of ions that pass the electrodes, summed over the steps exactly as the time formula changes the solution."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Final

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.electrode_charge import ElectrodeCharge
from minga.models.electrodeposition.problem import ANODE, CATHODE, FLUID, Problem
from minga.models.electrodeposition.reaction import Reacting
from minga.models.electrodeposition.state import State
from minga.models.electrodeposition.transport import Transport
from minga.solve.laplacian import step
from minga.space.field import Register

__all__ = ["Charges", "Passed"]

Readers = Sequence[CellReader]

CANCELLED: Final = 0.01
"""Sum of currents or charges, as a fraction of that of their sizes, up to which they count as cancelling."""


@dataclass(frozen=True, slots=True, eq=False)
class Passed:
    """Registers of the amount of an ion that enters a metal, in mol.

    Attributes
    ----------
    whole, lately
        Since the beginning, and in the last accepted step.
    attempted
        In the last attempt.
    rate
        The flux at the end of the last attempt, mol/s.
    """

    whole: Register
    lately: Register
    attempted: Register
    rate: Register


@dataclass(frozen=True, eq=False)
class Charges:
    """The ions that pass each electrode.

    Attributes
    ----------
    passed
        Amounts that enter the cathode and the anode, by the number of the ion.
    layers
        The charges of the cathode and the anode, where the deposit grows; that of the cathode, where it has a capacity.
    """

    problem: Problem
    state: State
    transport: Transport
    layers: tuple[ElectrodeCharge, ...] = ()
    passed: dict[int, tuple[Passed, Passed]] = field(init=False)

    def __post_init__(self) -> None:
        problem = self.problem
        metals = {"cathode": problem.cathode, "anode": problem.anode}

        def declare(name: str, metal: str) -> Passed:
            return Passed(
                *(Register(f"{name} into {metal} {item}") for item in ("passed", "lately", "attempted", "rate"))
            )

        numbers = [n for n, s in enumerate(problem.species) if any(s.name in m.surfaces for m in metals.values())]
        found = {n: tuple(declare(problem.species[n].name, metal) for metal in metals) for n in numbers}
        object.__setattr__(self, "passed", found)

    def attempt(self, program: Program) -> None:
        """Record the amounts that pass in an attempt."""
        formula = self.transport.formula
        for layer in self.layers:
            layer.attempt(program)
        for number, pair in self.passed.items():
            for item, flux in zip(pair, self._fluxes(program, number), strict=True):
                program.let(item.rate, flux)
                program.let(item.attempted, (item.rate + formula.before * item.lately) / formula.rate)

    def keep_stage(self, program: Program) -> None:
        """Record what the first of two stages brings, in the place of the amounts of the last step.

        The formula of the second stage counts from the present amount back to that of the first.
        """
        for layer in self.layers:
            layer.keep_stage(program)
        for number, pair in self.passed.items():
            for item, flux in zip(pair, self._fluxes(program, number), strict=True):
                program.let(item.lately, -flux / self.transport.formula.rate)

    def _fluxes(self, program: Program, number: int) -> tuple[Node, Node]:
        """Record the fluxes of an ion into the cathode and the anode at the next level, mol/s, and return them."""
        ups, downs = ([axis[number] for axis in side] for side in (self.transport.up, self.transport.down))
        ions = self.state.concentration[number].next
        gained = self.transport.gained(number)
        found = program.apply(into_metals(self.problem.grid.ndim), self.state.kind, ions, ups, downs, *gained)
        assert isinstance(found, SimpleNamespace)
        return as_node(found.cathode), as_node(found.anode)

    def commit(self, program: Program) -> None:
        """Record the acceptance of the attempt."""
        for layer in self.layers:
            layer.commit(program)
        for pair in self.passed.values():
            for item in pair:
                program.let(item.lately, item.attempted)
                program.let(item.whole, item.whole + item.attempted)

    def observe(self, program: Program, plane: float, at_rest: Node) -> dict[str, Register]:
        """Record the observables of several reactions at the cathode, and return their registers by name.

        They are the current density and the charge density of each ion (A/m2 and C/m2 of a plane of this area), and the
        fractions of the current and of the charge that deposit the metal: NaN where the reactions cancel one another,
        and that of the current also where `at_rest` holds, because no current is given. The current of an ion that
        turns into another one is that of this reaction, and the current of the other that of what deposits it; they add
        up to the current.
        """
        problem = self.problem
        seen: dict[str, Register] = {}

        def value(name: str, expression: Node) -> None:
            seen[name] = Register(f"observed {name}")
            program.let(seen[name], expression)

        metal = problem.metal or problem.species[0].name
        for kind, what, part in (("current", "rate", "current_efficiency"), ("charge", "whole", "charge_efficiency")):
            parts = {}
            for number in self.passed:
                carried = self._carried(number, what)
                if carried is not None:
                    name = problem.species[number].name
                    parts[name] = carried
                    value(f"{kind}_of_{name}", carried * (1.0 / plane))
            if any(problem.species[number].name == metal for number in problem.partners):
                continue
            total = self.charge(what)
            sizes = functools.reduce(operator.add, map(mg.abs, parts.values()))
            there = mg.abs(total) > CANCELLED * sizes
            if kind == "current":
                there = there & ~at_rest
            value(part, where(there, parts.get(metal, as_node(0.0)) / where(there, total, 1.0), math.nan))
        return seen

    def thickness(self, program: Program, plane: float) -> dict[str, Register]:
        """Record the thickness of compact metal on a plane of this area (m2), m; {} where it is not known."""
        volume = self.problem.molar_volume
        name = self.problem.metal or self.problem.species[0].name
        for number, pair in self.passed.items():
            if self.problem.species[number].name == name and volume and number not in self.problem.partners:
                seen = Register("observed thickness")
                program.let(seen, as_node(pair[0].whole) * (volume / plane))
                return {"thickness": seen}
        return {}

    def _carried(self, number: int, what: str) -> Node | None:
        """Return the charge or current of an ion into the cathode; None where it takes no part of its own."""
        problem, ion = self.problem, self.problem.species[number]
        surface = problem.cathode.surfaces.get(ion.name)
        if surface is None:
            return None
        into = as_node(getattr(self.passed[number][0], what))
        per_mol = problem.constants.faraday * ion.charge
        partner = problem.partners.get(number)
        if partner is None or not isinstance(surface, Reacting):
            return per_mol * into
        other, back = problem.species[partner], as_node(getattr(self.passed[partner][0], what))
        if any(r.oxidised == ion.name and r.reduced for r in surface.reactions):
            return (problem.constants.faraday * (ion.charge - other.charge)) * into
        deposits = any(r.oxidised == ion.name and not r.reduced for r in surface.reactions)
        return per_mol * (into + back) if deposits else None

    def current(self, electrode: int = 0) -> Node:
        """Return the current into the cathode (0) or the anode (1) at the end of the last attempt, A.

        It includes the current that charges the electrode, where that is known.
        """
        total = self.charge("rate", electrode)
        for layer in self.layers:
            if layer.cathode == (electrode == 0):
                total = total + layer.rate
        return total

    def charge(self, what: str, electrode: int = 0) -> Node:
        """Return a charge into the cathode (0) or the anode (1) in C, or a current in A.

        Parameters
        ----------
        what
            "whole" for that since the beginning, "attempted" for that of the last attempt, "rate" for the current
            at its end.
        electrode
            Number of the electrode.
        """
        total = as_node(0.0)
        for number, pair in self.passed.items():
            per_mol = self.problem.constants.faraday * self.problem.species[number].charge
            total = total + per_mol * as_node(getattr(pair[electrode], what))
        return total


def into_metals(ndim: int) -> Kernel:
    """Return the kernel of the flux of an ion into the cathode and into the anode, mol/s."""
    here = (0,) * ndim

    @kernel
    def flux_into_metals(
        kind: CellReader, c: CellReader, ups: Readers, downs: Readers, gains: Readers, partner: Readers
    ) -> dict[str, Reduced]:
        sums = {}
        for name, metal in (("cathode", CATHODE), ("anode", ANODE)):
            total = as_node(0.0)
            for axis in range(ndim):
                up, down = step(ndim, axis, 1), step(ndim, axis, -1)
                total = total + where(kind[down] == metal, downs[axis][here] * c[here] - ups[axis][here], 0.0)
                total = total + where(kind[up] == metal, ups[axis][up] * c[here] - downs[axis][up], 0.0)
                for other in partner:
                    total = total - where(kind[down] == metal, gains[axis][here] * other[here], 0.0)
                    total = total - where(kind[up] == metal, gains[axis][up] * other[here], 0.0)
            sums[name] = mg.sum(where(kind[here] == FLUID, total, 0.0))
        return sums

    return flux_into_metals
