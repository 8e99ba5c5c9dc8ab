"""Check of what adjoints and tangents are given."""

from __future__ import annotations

from collections.abc import Sequence

from minga.engine.program import Program
from minga.errors import ProgramError
from minga.space.field import Field

__all__ = ["check_arguments"]


def check_arguments(step: object, wrt: object, what: str) -> None:
    """Raise ProgramError for a step that is not a Program, and for fields that are not in a list.

    Parameters
    ----------
    step, wrt
        The arguments.
    what
        Name of the function to which they were given.
    """
    if not isinstance(step, Program):
        raise ProgramError(
            f"{what}: the step is a {type(step).__name__}", remedy="record it: step = mg.Program(); step.apply(...)"
        )
    listed = isinstance(wrt, Sequence) and len(wrt) and all(isinstance(item, Field) for item in wrt)
    if not listed:
        raise ProgramError(
            f"{what}: wrt is not a list of fields",
            remedy="give those by whose values derivatives are wanted, wrt=[u]; slots of time levels belong to them",
        )
