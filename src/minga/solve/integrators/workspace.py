"""Workspace of a recorded integrator, and sums of levels."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minga.solve.krylov import Solution
from minga.solve.rates import most
from minga.space.field import Field, Register

__all__ = ["Recorded", "like", "most", "weighted"]


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
    """

    fields: tuple[Field, ...] = ()
    wish: Register | None = None
    solutions: tuple[Solution, ...] = ()
    failure: str = ""


def weighted(weights: Mapping[str, float], values: Mapping[str, Any]) -> Any:
    """Return a sum of weighted values; weights of 1 cost nothing."""
    terms = (values[name] if weight == 1.0 else weight * values[name] for name, weight in weights.items())
    return functools.reduce(operator.add, terms)


def like(item: Field, name: str, slots: int = 1) -> Field:
    """Return a field of the workspace with the points and conditions of another one."""
    return Field(
        f"{item.name}@{name}", item.grid, item.dtype, slots=slots, centre=_centre(item), on=item.on,
        boundary=item.boundary, unit=item.unit, description=f"workspace of the integrator for {item.name}",
    )  # fmt: skip


def _centre(item: Field) -> tuple[int, ...]:
    return tuple(axis for axis, faces in enumerate(item.centre) if faces)
