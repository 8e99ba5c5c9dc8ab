"""Parameters that depend on the time: expressions that stand in equations in place of their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from minga.lang.expr import as_node
from minga.lang.functions import coordinate
from minga.models.pde.complex_values import Pair
from minga.models.pde.source import Source, parse
from minga.models.pde.translate import Names, translate
from minga.space.of_place import TIME_NAME, OfPlace, of_place

__all__ = ["Timed", "timed"]


@dataclass(frozen=True, slots=True)
class Timed:
    """A parameter that depends on the time, and perhaps on the place and other parameters.

    Attributes
    ----------
    given
        Its text, or its function.
    axes
        Names of the grid's axes.
    """

    given: Source | OfPlace
    axes: tuple[str, ...]

    @property
    def names(self) -> set[str]:
        """All names in its text."""
        return self.given.names if isinstance(self.given, Source) else set()

    def value(self, parameters: Mapping[str, Any], t: Any) -> Any:
        """Return its value while a kernel is traced.

        Parameters
        ----------
        parameters
            Values of the other parameters, which do not depend on the time.
        t
            The time.

        Returns
        -------
        Node
            The expression.
        """
        if isinstance(self.given, Source):
            found = translate(self.given, Names(parameters, self.axes, as_node(t), operators=False))
            assert not isinstance(found, Pair)
            return as_node(found)
        taken = {*self.given.positional, *self.given.keywords}
        known = {axis: coordinate(axis) for axis in self.axes if axis in taken}
        return as_node(self.given({TIME_NAME: as_node(t), **known}))


def timed(name: str, given: str | Callable[..., Any], axes: Sequence[str]) -> Timed | None:
    """Return a parameter that depends on the time; None if a text or a function does not.

    Parameters
    ----------
    name
        Its name, for messages.
    given
        The text or the function.
    axes
        Names of the grid's axes.

    Returns
    -------
    Timed or None
        The parameter.
    """
    if isinstance(given, str):
        source = parse(given, name)
        return Timed(source, tuple(axes)) if TIME_NAME in source.names else None
    bound = of_place(given, axes, time=True)
    if bound is None or TIME_NAME not in (*bound.positional, *bound.keywords):
        return None
    return Timed(bound, tuple(axes))
