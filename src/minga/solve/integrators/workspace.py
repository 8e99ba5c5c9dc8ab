"""Workspace of a recorded integrator, and sums of levels."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import Any

from minga.solve.rates import most
from minga.solve.recorded import Recorded
from minga.space.field import Field

__all__ = ["Recorded", "like", "most", "weighted"]


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
