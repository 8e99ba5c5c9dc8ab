"""A cellular automaton as a Model: fields, one step, what is observed, and how cells start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from minga.engine.model import Model
from minga.engine.program import Program
from minga.errors import CaseError, suggest
from minga.lang.rule import Rule
from minga.lang.types import integer_range, is_float
from minga.models.automaton.initial import initial_values
from minga.models.automaton.observe import observe
from minga.models.automaton.rules import find_rule
from minga.models.boundary import Boundaries, parse_boundary
from minga.space.field import STEP, Field

__all__ = ["automaton"]

Number = bool | int | float


def automaton(
    rule: Rule | str,
    shape: Sequence[int],
    *,
    init: object,
    boundary: object = "periodic",
    parameters: Mapping[str, Number] | None = None,
    seed: int = 0,
    directory: Path | str = ".",
) -> Model:
    """A cellular automaton on a grid.

        model = mg.automaton("B3/S23", (512, 512), init={"soup": 0.375, "seed": 1})

    rule        a Rule (made by @mg.rule), or what a case may write: "B3/S23", "W30", "file.py:name"
    shape       cells along each of one to four axes
    init        where the cells start: see `minga.models.automaton.initial`; arrays and functions are welcome, too
    boundary    "periodic", "fixed" (at 0), "reflect", "zero-gradient", ["fixed", value], ...: see docs of cases
    parameters  values of the rule's keyword parameters that differ from their defaults
    seed        of mg.random() in the rule, and of soups without a seed
    directory   where relative paths start

    Raises CaseError, with the key a case has for what is wrong.
    """
    base = Path(directory)
    chosen = find_rule(rule, len(shape), base) if isinstance(rule, str) else rule
    values = _parameters(chosen, parameters or {})
    ends = parse_boundary(boundary, len(shape))
    _check_ends(ends, chosen)
    grid = ends.grid(shape)
    fields = {
        name: Field(name, grid, dtype, slots=2, boundary=ends.conditions, description=f"state of rule {chosen.name}")
        for name, dtype in chosen.fields.items()
    }
    step = Program("step")
    now, new = [f.now for f in fields.values()], [f.next for f in fields.values()]
    step.apply(chosen.kernel, *now, *new, **dict[str, Any](values))
    step.rotate(*fields.values())
    step.let(STEP, STEP + 1)
    program, observables = observe(chosen, fields)
    return Model(
        name="automaton",
        grid=grid,
        fields=tuple(fields.values()),
        step=step,
        initial=initial_values(init, chosen, tuple(shape), base, seed),
        output=tuple(fields),
        observe=program,
        observables=observables,
        parameters={"rule": chosen.name, **values},
        seed=seed,
    )


def _parameters(rule: Rule, given: Mapping[str, Number]) -> dict[str, Number]:
    """A value for each parameter of the rule, in the order of its function."""
    known = [*rule.parameters, *rule.required]
    for name in given:
        if name not in known:
            raise CaseError(
                f"rule {rule.name!r} has no parameter {name!r}",
                key=f"automaton.parameters.{name}",
                suggestion=suggest(name, known),
                remedy=f"its parameters are {', '.join(known)}" if known else "it has none",
            )
    for name in rule.required:
        if name not in given:
            raise CaseError(f"rule {rule.name!r} needs a value of {name!r}", key=f"automaton.parameters.{name}")
    return {
        name: _like(given[name], rule.parameters.get(name)) if name in given else rule.parameters[name]
        for name in known
    }


def _like(value: Number, default: Number | None) -> Number:
    """An integer where the default is a float means that float: a parameter's type is part of the kernel."""
    return float(value) if isinstance(default, float) and not isinstance(value, bool) else value


def _check_ends(ends: Boundaries, rule: Rule) -> None:
    for name, dtype in rule.fields.items():
        low, high = (0, rule.states - 1) if rule.states else (0, 0) if is_float(dtype) else integer_range(dtype)
        for value in ends.values:
            if not is_float(dtype) and (value != int(value) or not low <= value <= high):
                raise CaseError(
                    f"cells beyond the end are fixed at {value}; the states of {name!r} are {low} .. {high}",
                    key="grid.boundary",
                )
