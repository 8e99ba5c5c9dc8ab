"""The workspace that the recording of an integrator returns."""

from __future__ import annotations

from dataclasses import dataclass

from minga.engine.follow import Hierarchy
from minga.solve.krylov import Solution
from minga.space.field import Field, Register

__all__ = ["Recorded"]


@dataclass(frozen=True)
class Recorded:
    """Workspace of a recorded integrator.

    Parameters
    ----------
    fields
        The fields of the workspace, which belong to the fields of the model.
    wish
        The register of the step that an adaptive method would take next.
    solutions
        The linear systems of a step.
    failure
        What is wrong where a step ends the run with "limit", for methods of given steps that may fail.
    before
        The register of the length of the step before, for methods that use the state before; a Program that changes the
        fields between steps lets it be 0, and the next step uses the present state alone.
    hierarchies
        Grids that follow that of the fields, for ``mg.Model(..., hierarchies=...)``.
    """

    fields: tuple[Field, ...] = ()
    wish: Register | None = None
    solutions: tuple[Solution, ...] = ()
    failure: str = ""
    before: Register | None = None
    hierarchies: tuple[Hierarchy, ...] = ()
