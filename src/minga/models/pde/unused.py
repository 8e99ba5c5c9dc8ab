"""Parameters that nothing uses: most are misspelt."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from minga.errors import ProgramError, suggest
from minga.models.pde.complex_values import part_names
from minga.models.pde.source import Source, normal_name, parse
from minga.models.pde.system import System
from minga.models.pde.translate import meanings
from minga.space.boundary import Condition

__all__ = ["check_parameters", "conditions_in", "texts_in"]


def check_parameters(
    parameters: Mapping[str, Any], system: System, initial: Iterable[str], conditions: Iterable[Condition]
) -> None:
    """Raise ProgramError for a parameter that no equation, condition, initial value or other parameter uses.

    Parameters
    ----------
    parameters
        The parameters as they were given.
    system
        The equations.
    initial
        Texts of initial values.
    conditions
        Conditions at walls.
    """
    texts = [*initial, *texts_in(parameters), *(text for each in conditions for text in each.texts)]
    used = {name for text in texts for name in parse(text, "text").names}
    for equation in (*system.equations, *system.noise):
        used |= _names_of(equation)
    for given in parameters:
        name = normal_name(given)
        if used.isdisjoint({name, *part_names(name)}):
            others = [normal_name(each) for each in parameters if each != given]
            close = suggest(name, [each for each in others if each in used])
            misspelt = suggest(name, used - {*others, *system.known, *meanings(system.grid.axes, bool(system.complex))})
            remedy = f"did you mean {close!r}?" if close else "remove it, or use it"
            raise ProgramError(
                f"parameter {given!r} is used by no equation, condition or initial value",
                remedy=f"they have {misspelt!r}: one of the two is misspelt" if misspelt else remedy,
            )


def _names_of(equation: object) -> set[str]:
    """Return the names that an equation uses: those in a text, or the parameters of a function."""
    if isinstance(equation, Source):
        return equation.names
    return set(inspect.signature(equation).parameters) if callable(equation) else set()


def texts_in(given: object) -> Iterator[str]:
    """Iterate over the texts in values by name, or in a value alone."""
    for value in given.values() if isinstance(given, Mapping) else (given,):
        if isinstance(value, str):
            yield value


def conditions_in(given: object) -> Iterator[Condition]:
    """Iterate over the conditions in what `boundary` may be."""
    if isinstance(given, Condition):
        yield given
    elif isinstance(given, Mapping | list | tuple):
        for each in given.values() if isinstance(given, Mapping) else given:
            yield from conditions_in(each)
