"""What an automaton reports of itself: population, histogram of states, residual; of floats sum and extremes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.kernel import Kernel
from minga.lang.rule import Rule
from minga.lang.types import is_float
from minga.space.field import STEP, Field, Register

__all__ = ["observe"]

MOST_STATES: Final = 16
"""Rules of more states have no histogram: each state is a reduction of its own."""

STATE: Final = "state_"
Observable = Register | tuple[Register, ...]


def observe(rule: Rule, fields: Mapping[str, Field]) -> tuple[Program, dict[str, Observable]]:
    """A Program that looks at the current step, and the registers it writes, by name.

    For each field (named FIELD_population and so on where there are several):

    population    cells that are not 0 (integers)
    histogram     cells of each state, for rules of at most 16 states
    sum, min, max over all cells (floats)
    residual      the largest change of a cell in the last step (floats), or the number of cells that changed; 0 before
                  the first step
    """
    program = Program("observe")
    observables: dict[str, Observable] = {}
    for name, field in fields.items():
        prefix = f"{name}_" if len(fields) > 1 else ""
        kernel = _floats() if is_float(rule.fields[name]) else _states(rule.states)
        results: Any = program.apply(kernel, field.now, field.previous, step=STEP)
        found: dict[str, Register] = vars(results)
        states = [key for key in found if key.startswith(STATE)]
        observables |= {prefix + key: register for key, register in found.items() if key not in states}
        if states:
            observables[f"{prefix}histogram"] = tuple(found[key] for key in states)
    return program, observables


def _floats() -> Kernel:
    def observe_floats(now: CellReader, before: CellReader, *, step: Any) -> Mapping[str, Reduced]:
        u, old = _centre(now), _centre(before)
        return {
            "sum": mg.sum(u),
            "min": mg.min(u),
            "max": mg.max(u),
            "residual": mg.max(mg.where(step > 0, mg.abs(u - old), u * 0)),
        }

    return Kernel(observe_floats)


def _states(states: int | None) -> Kernel:
    def observe_states(now: CellReader, before: CellReader, *, step: Any) -> Mapping[str, Reduced]:
        cell, old = _centre(now), _centre(before)
        found = {"population": mg.count(cell != 0)}
        if states is not None and states <= MOST_STATES:
            found |= {f"{STATE}{state}": mg.count(cell == state) for state in range(states)}
        return found | {"residual": mg.count((cell != old) & (step > 0))}

    return Kernel(observe_states)


def _centre(field: CellReader) -> Any:
    return field[(0,) * len(field.axes)]
