"""Observables of an automaton: population, histogram of states and residual; for floats the sum and the extremes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, Final

from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang import functions as mg
from minga.lang.block import BlockRule
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, cast, const, where
from minga.lang.kernel import Kernel
from minga.lang.math import log
from minga.lang.neighbourhood import moore
from minga.lang.rule import Rule
from minga.lang.rule_context import Cell, Context, RuleContext
from minga.lang.types import is_float
from minga.models.automaton.observers import KEY, Function, Observers
from minga.space.field import STEP, Field, Register

__all__ = ["Observable", "chosen_names", "observe", "observe_states"]

MOST_STATES: Final = 16
"""Largest number of states with a histogram by default: each state is a reduction of its own."""
TOGETHER: Final = 24
"""Largest number of reductions in one kernel."""

STATE: Final = "state_"
Observable = Register | tuple[Register, ...]
Quantity = Callable[[Any, Any, Any], Reduced]
"""Function that makes a reduction of the cell, its value before the last step, and the number of the step."""


def observe(
    rule: Rule | BlockRule,
    fields: Mapping[str, Field],
    observers: Observers = Observers(),  # noqa: B008 - frozen
    parameters: Mapping[str, Any] | None = None,
) -> tuple[Program, dict[str, Observable]]:
    """Return a Program that observes the current step, and the registers it writes, by name.

    For each field (named FIELD_population and so on if there are several):

    population     cells that are not 0
    histogram      cells of each state (by default for rules of at most 16 states)
    entropy        entropy of the histogram in bits: - sum p log2 p over the states, p being a state's share of the
                   cells
    sum, mean, min, max  over all cells
    changed        cells that changed in the last step; 0 before the first step
    residual       for floats the largest change of a cell in the last step; for integers the same as `changed`
    bounding_box   lowest and highest index along each axis of cells that are not 0: first all lowest, then all highest
                   ones; -1 if there is no such cell

    The default is population, histogram and residual for integers, and sum, min, max and residual for floats. Results
    have the same bits on any layout.

    Raises
    ------
    CaseError
        For quantities that a field does not have, and for functions that cannot be observed.
    """
    program = Program("observe")
    observables: dict[str, Observable] = {}
    for name, field in fields.items():
        prefix = f"{name}_" if len(fields) > 1 else ""
        floats = is_float(rule.fields[name])
        names = chosen_names(observers, rule.states, floats=floats)
        found = _reduce(program, field, _quantities(names, rule.states, field.grid.ndim, floats))
        for key in names:
            observables[prefix + key] = _derived(program, key, found, rule.states, field, prefix)
    for name, function in observers.functions.items():
        for key, register in _own(program, name, function, rule, fields, parameters or {}).items():
            if key in observables:
                raise CaseError(f"two observables are called {key!r}", key=KEY, remedy="rename the function")
            observables[key] = register
    return program, observables


def chosen_names(observers: Observers, states: int | None, *, floats: bool) -> tuple[str, ...]:
    """Return the names from NAMES that are observed of a field; raise CaseError for one the field does not have."""
    if observers.names is None:
        if floats:
            return ("sum", "min", "max", "residual")
        return ("population", *(("histogram",) if states and states <= MOST_STATES else ()), "residual")
    for name in observers.names:
        if name in ("histogram", "entropy") and (floats or not states):
            raise CaseError(
                f"{name!r} of cells without states",
                key=KEY,
                remedy="give the rule a number of states: @mg.rule(states=...)",
            )
    return observers.names


def observe_states(
    program: Program, names: Sequence[str], states: int, field: Field, known: Mapping[str, Observable]
) -> dict[str, Observable]:
    """Derive quantities of NAMES from the known histogram, number of changes and bounding box of an integer field."""
    counts = known["histogram"]
    assert isinstance(counts, tuple)
    found = {f"{STATE}{state}": register for state, register in enumerate(counts)}
    total, least, most = as_node(0), as_node(states - 1), as_node(0)
    for state, count in enumerate(counts):
        total = total + count * state
        most = where(count > 0, state, most)
    for state, count in reversed(list(enumerate(counts))):
        least = where(count > 0, state, least)
    for key, value in {"sum": total, "min": least, "max": most}.items():
        if key in names or (key == "sum" and "mean" in names):
            found[key] = program.let(Register(f"observe.{key}", "i8"), value)
    found |= {key: register for key, register in known.items() if isinstance(register, Register)}
    return {key: _derived(program, key, found, states, field, "") for key in names}


# Reductions ----------------------------------------------------------------------------------------------------------
def _quantities(names: Sequence[str], states: int | None, ndim: int, floats: bool) -> dict[str, Quantity]:
    """Return the reductions that the observables are made of, by name."""
    quantities: dict[str, Quantity] = {}
    for name in names:
        match name:
            case "population":
                quantities[name] = lambda cell, old, step: mg.count(cell != 0)
            case "histogram" | "entropy":
                quantities |= {f"{STATE}{state}": _in_state(state) for state in range(states or 0)}
            case "sum" | "mean":
                quantities["sum"] = lambda cell, old, step: mg.sum(cell)
            case "min":
                quantities[name] = lambda cell, old, step: mg.min(cell)
            case "max":
                quantities[name] = lambda cell, old, step: mg.max(cell)
            case "residual" if floats:
                quantities[name] = lambda cell, old, step: mg.max(mg.where(step > 0, mg.abs(cell - old), cell * 0))
            case "residual" | "changed":
                quantities[name] = lambda cell, old, step: mg.count((cell != old) & (step > 0))
            case "bounding_box":
                for axis in range(ndim):
                    quantities |= {f"low_{axis}": _lowest(axis), f"high_{axis}": _highest(axis)}
    return quantities


def _in_state(state: int) -> Quantity:
    return lambda cell, old, step: mg.count(cell == state)


def _lowest(axis: int) -> Quantity:
    return lambda cell, old, step: mg.min(mg.where(cell != 0, mg.index(axis), const(1 << 62, "i8")))


def _highest(axis: int) -> Quantity:
    return lambda cell, old, step: mg.max(mg.where(cell != 0, mg.index(axis), const(-1, "i8")))


def _reduce(program: Program, field: Field, quantities: Mapping[str, Quantity]) -> dict[str, Register]:
    """Record the reductions, several of them in each kernel."""
    found: dict[str, Register] = {}
    keys = list(quantities)
    for first in range(0, len(keys), TOGETHER):
        group = {key: quantities[key] for key in keys[first : first + TOGETHER]}
        found |= vars(program.apply(_kernel(group), field.now, field.previous, step=STEP))
    return found


def _kernel(quantities: Mapping[str, Quantity]) -> Kernel:
    def observe_cells(now: CellReader, before: CellReader, *, step: Any) -> Mapping[str, Reduced]:
        cell, old = _centre(now), _centre(before)
        return {name: quantity(cell, old, step) for name, quantity in quantities.items()}

    return Kernel(observe_cells)


def _centre(field: CellReader) -> Node:
    return field[(0,) * len(field.axes)]


def _derived(
    program: Program, name: str, found: Mapping[str, Register], states: int | None, field: Field, prefix: str
) -> Observable:
    """Return the registers of one observable, and record here those that are derived from others."""
    match name:
        case "histogram":
            return tuple(found[f"{STATE}{state}"] for state in range(states or 0))
        case "entropy":
            shares = [cast(found[f"{STATE}{state}"], "f8") / field.grid.size for state in range(states or 0)]
            total = as_node(0.0)
            for share in shares:
                total = total - where(share > 0, share * log(where(share > 0, share, 1.0)), 0.0)
            return program.let(Register(f"observe.{prefix}entropy", "f8"), total / log(const(2.0, "f8")))
        case "mean":
            return program.let(Register(f"observe.{prefix}mean", "f8"), cast(found["sum"], "f8") / field.grid.size)
        case "bounding_box":
            return tuple(
                program.let(
                    Register(f"observe.{prefix}{end}_{axis}", "i8"),
                    where(found[f"high_{axis}"] >= 0, found[f"{end}_{axis}"] + int(origin), -1),
                )
                for end in ("low", "high")
                for axis, origin in enumerate(field.grid.origin)
            )
        case "changed" if "changed" not in found:
            return found["residual"]
    return found[name]


# User functions ------------------------------------------------------------------------------------------------------
def _own(
    program: Program,
    name: str,
    function: Function,
    rule: Rule | BlockRule,
    fields: Mapping[str, Field],
    parameters: Mapping[str, Any],
) -> dict[str, Register]:
    """Record the reductions of a function of a cell (and its neighbours, if it takes two arguments)."""
    body = _Body(name, function, rule, parameters)
    scalars = {key: parameters[key] for key in body.scalars}
    results: Any = program.apply(Kernel(body, name=name), *(f.now for f in fields.values()), **scalars)
    if results is None:
        raise CaseError(
            f"observer {name!r} returns nothing",
            key=KEY,
            where=_place(function),
            remedy="return a reduction, mg.sum(...), or a dict of them",
        )
    return {name: results} if isinstance(results, Register) else dict(vars(results))


class _Body:
    """Body of an observer's kernel: makes `cell` and `near` as a rule sees them, and calls the user's function."""

    def __init__(self, name: str, function: Function, rule: Rule | BlockRule, parameters: Mapping[str, Any]) -> None:
        self.function, self.rule = function, rule
        self.__name__ = name
        self.__code__: CodeType | None = getattr(function, "__code__", None)
        given = list(inspect.signature(function).parameters.values())
        self.positional = sum(item.kind is not item.KEYWORD_ONLY for item in given)
        self.scalars = [item.name for item in given if item.kind is item.KEYWORD_ONLY]
        if not 1 <= self.positional <= 2 or any(item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD) for item in given):
            raise CaseError(
                f"observer {name!r} takes neither a cell alone nor a cell and its neighbours",
                key=KEY,
                where=_place(function),
                remedy=f"write def {name}(cell, near): ...",
            )
        for scalar in self.scalars:
            if scalar not in parameters:
                raise CaseError(
                    f"observer {name!r} has a parameter {scalar!r}, which rule {rule.name!r} does not have",
                    key=KEY,
                    where=_place(function),
                    remedy=f"the rule's parameters are {', '.join(parameters)}" if parameters else "the rule has none",
                )
        parameter = inspect.Parameter
        self.__signature__ = inspect.Signature(
            [parameter(f, parameter.POSITIONAL_OR_KEYWORD) for f in rule.fields]
            + [parameter(s, parameter.KEYWORD_ONLY) for s in self.scalars]
        )

    def __call__(self, *readers: CellReader, **scalars: Node) -> object:
        ndim = len(readers[0].axes)
        neighbourhood = self.rule.neighbourhood if isinstance(self.rule, Rule) else moore(1)
        around = neighbourhood.around(ndim)
        fields = dict(zip(self.rule.fields, readers, strict=True))
        context = Context(self.__name__, fields, around, str(neighbourhood), self.rule.states)
        cell: Any = context.here(readers[0]) if len(readers) == 1 else Cell(context)
        return self.function(*(cell, RuleContext(context))[: self.positional], **scalars)


def _place(function: Function) -> tuple[str, int] | None:
    code = getattr(function, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else None
