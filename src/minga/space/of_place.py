"""Functions of the place, and of the time: which coordinate each of their parameters takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from minga.errors import LayoutError

__all__ = ["TIME_NAME", "OfPlace", "of_place"]

TIME_NAME: Final = "t"
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class OfPlace:
    """A function of the place, with the names of the coordinates that it takes.

    Attributes
    ----------
    function
        The function.
    positional, keywords
        Names of the coordinates, and of the time, that are given by position and by keyword.
    """

    function: Callable[..., Any]
    positional: tuple[str, ...]
    keywords: tuple[str, ...] = ()

    def __call__(self, known: Mapping[str, Any]) -> Any:
        """Return what the function returns for the coordinates of a place."""
        return self.function(
            *(known[name] for name in self.positional), **{name: known[name] for name in self.keywords}
        )


def of_place(
    function: Callable[..., Any], axes: Sequence[str], time: bool = False, box: bool = False
) -> OfPlace | None:
    """Return how a function takes the coordinates of a place.

    Parameters are known by their names if all of those without a default are axes, or ``t`` where there is a time: they
    may come in any order, and some may be left out. Otherwise there is one for each axis, in the order of the axes, and
    where there is a time perhaps one more, the last.

    Parameters
    ----------
    function
        The function.
    axes
        Names of the axes.
    time
        Whether there is a time.
    box
        Whether a function of one parameter that is not named like an axis takes a box of cells instead.

    Returns
    -------
    OfPlace or None
        The function with what it takes; None if it takes something else, or has no known signature.

    Raises
    ------
    LayoutError
        If a parameter by position has the name of another coordinate, or of the time where there is none.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    known = {*axes, *((TIME_NAME,) if time else ())}
    plain = [each for each in parameters if each.kind in _POSITIONAL]
    needed = [each.name for each in plain if each.default is each.empty]
    if needed and known.issuperset(needed):
        optional = (each for each in parameters if each.default is not each.empty)
        keywords = (each.name for each in optional if each.name in known and each.kind != each.POSITIONAL_ONLY)
        return OfPlace(function, tuple(needed), tuple(keywords))
    places = [*axes, TIME_NAME] if time and len(needed) == len(axes) + 1 else list(axes)
    if len(needed) != len(places) or (box and len(places) == 1):
        return None
    for name, place in zip(needed, places, strict=True):
        if name != place and (name in known or name == TIME_NAME):
            raise LayoutError(
                f"a function of ({', '.join(needed)}) is called with {', '.join(places)}, so that its {name!r} would "
                f"be {place}",
                where=_line(function),
                remedy=f"name its parameters {', '.join(places)}, in any order"
                + ("" if time or TIME_NAME not in needed else "; there is no time here"),
            )
    return OfPlace(function, tuple(places))


def _line(function: Callable[..., Any]) -> tuple[str, int] | None:
    """Return the file and line of a function, if it is one of Python's."""
    code = getattr(function, "__code__", None)
    return None if code is None else (code.co_filename, code.co_firstlineno)
