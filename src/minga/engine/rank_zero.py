"""Python functions that run on rank 0 alone, with results for all ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from minga.engine.comm import Comm
from minga.errors import RunError

__all__ = ["on_rank_zero"]

Value = TypeVar("Value")


def on_rank_zero(comm: Comm, function: Callable[[], Value], name: str) -> Value:
    """Return what a function returns on rank 0, on all ranks; collective.

    Parameters
    ----------
    comm
        The ranks.
    function
        Called on rank 0.
    name
        The name of the function, for errors.

    Raises
    ------
    RunError
        On the other ranks, if the function fails; on rank 0 its own exception is raised.
    """
    if comm.rank != 0:
        value, failure = comm.bcast(None)
        if failure is not None:
            raise RunError(f"{name} failed on rank 0: {failure}")
        found: Value = value
        return found
    try:
        value = function()
    except BaseException as error:
        comm.bcast((None, f"{type(error).__name__}: {error}"))
        raise
    comm.bcast((value, None))
    return value
