"""Keywords that a function does not take: the error names the one that was probably meant."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from minga.errors import ProgramError, listed, suggest

__all__ = ["checked_keywords"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def checked_keywords(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return a function that raises ProgramError for keywords that it does not take.

    Parameters
    ----------
    function
        A function without ``**`` parameters.
    """
    names = [*inspect.signature(function).parameters]

    @functools.wraps(function)
    def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        for name in kwargs:
            if name not in names:
                close = suggest(name, names)
                raise ProgramError(
                    f"{function.__name__} takes no keyword {name!r}",
                    remedy=f"did you mean {close!r}?" if close else f"its keywords are {listed(names, len(names))}",
                )
        return function(*args, **kwargs)

    return checked
