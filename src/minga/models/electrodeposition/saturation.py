"""Detection of concentrations beyond solubility or known properties during a run, reported once with the result."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

from minga.compile.explain import Kernel, kernel
from minga.engine.diagnostics import Diagnostics, Finding
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import as_node, cast, where
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.state import State
from minga.space.field import STEP, Register

__all__ = ["saturation_diagnostics"]


def saturation_diagnostics(step: Program, problem: Problem, state: State) -> Diagnostics | None:
    """Return the check of concentrations against their limits after each step of the run; None if none is known.

    The limit is saturation, or the last row of the properties of a concentrated solution if that is lower. Products of
    the concentrations of ions that form a sparingly soluble salt have limits of their own.
    """
    limits = {
        number: problem.saturation[ion.name]
        for number, ion in enumerate(problem.species)
        if ion.name in problem.saturation
    }
    ends = {} if problem.solution is None else problem.solution.ends
    ends = {n: end for n, end in ends.items() if problem.species[n].charge > 0 and end < limits.get(n, math.inf)}
    limits = ends or limits
    if not limits and not problem.sparing:
        return None
    due, found, place = (Register(f"saturation.{name}", "i8") for name in ("due", "found", "place"))
    ratio, product, corner = (
        Register("saturation.ratio"),
        Register("saturation.product"),
        Register("saturation.at", "i8"),
    )
    program = Program("saturation")
    program.include(step)
    if limits:
        ions = [state.concentration[number].now for number in limits]
        program.apply(_richest(tuple(limits.values())), ions, into={"ratio": ratio, "place": place})
    numbers = {s.name: n for n, s in enumerate(problem.species)}
    salts = tuple((s.product, tuple((numbers[i], k) for i, k in s.ions.items())) for s in problem.sparing)
    if salts:
        every = [c.now for c in state.concentration]
        program.apply(_densest(salts), every, into={"ratio": product, "place": corner})
    most = mg.max(as_node(ratio), as_node(product))
    program.let(found, where(most > 1.0, cast(STEP.node, "i8"), -1))
    names = [problem.species[number].name for number in limits]
    known = ", ".join(f"{n} {v:g} mol/m3" for n, v in zip(names, limits.values(), strict=True))

    def tell(engine: Any) -> Finding:
        at, times = int(engine.read(found)), float(engine.read(ratio))
        if float(engine.read(product)) > times:
            salt = " or ".join(item.name for item in problem.sparing)
            return Finding(
                f"after step {at} the solution may be oversaturated: {engine.read(product):.3g} times the solubility "
                f"product of {salt}, at {problem.grid.place(int(engine.read(corner)))}. It would crystallise there, "
                "which the model does not describe; a bath without one of its ions, or a more dilute bath, avoids this",
                {"saturation_step": at},
            )
        where_ = problem.grid.place(int(engine.read(place)))
        if ends:
            return Finding(
                f"after step {at} the properties of the solution are not known: its concentration is {times:.3g} times "
                f"that of their last row, {known}, at {where_}. They stay constant beyond it; a table with more rows, "
                "a lower current or voltage, or a more dilute bath avoids this",
                {"properties_step": at},
            )
        return Finding(
            f"after step {at} the solution is oversaturated: {times:.3g} times the solubility of {known}, at {where_}. "
            "A salt would crystallise there, which the model does not describe; a lower current or voltage, or a more "
            "dilute bath, avoids this",
            {"saturation_step": at},
        )

    return Diagnostics(program, due, found, tell)


@functools.cache
def _richest(limits: tuple[float, ...]) -> Kernel:
    """Return the kernel of the largest ratio of a concentration to its limit, and of its cell."""

    @kernel
    def richest(ions: list[CellReader]) -> dict[str, Reduced]:
        here = (0,) * len(ions[0].axes)
        parts = [c[here] * (1.0 / limit) for c, limit in zip(ions, limits, strict=True)]
        most = functools.reduce(mg.max, parts[1:], parts[0])
        return {"ratio": mg.max(most), "place": mg.argmax(most)}

    return richest


@functools.cache
def _densest(salts: tuple[tuple[float, tuple[tuple[int, int], ...]], ...]) -> Kernel:
    """Return the kernel of the largest ratio of an ion product to its limit, and of its cell."""

    @kernel
    def densest(ions: list[CellReader]) -> dict[str, Reduced]:
        here = (0,) * len(ions[0].axes)
        parts = []
        for product, members in salts:
            factors = [ions[number][here] for number, count in members for _ in range(count)]
            parts.append(functools.reduce(operator.mul, factors) * (1.0 / product))
        most = functools.reduce(mg.max, parts[1:], parts[0])
        return {"ratio": mg.max(most), "place": mg.argmax(most)}

    return densest
