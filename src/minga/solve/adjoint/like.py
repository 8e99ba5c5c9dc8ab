"""Fields with the points of other fields."""

from __future__ import annotations

from minga.space.boundary import Boundary as Conditions
from minga.space.boundary import BoundaryLike, fixed
from minga.space.box import Box
from minga.space.field import Field

__all__ = ["field_like"]


def field_like(
    item: Field, name: str, description: str, *, slots: int = 1, dtype: str | None = None, on: Box | None = None,
    boundary: BoundaryLike | Conditions = None,
) -> Field:  # fmt: skip
    """Return a field with the points of another one or on a box `on` of them, by default 0 beyond its ends."""
    walls = fixed(0.0) if boundary is None else boundary
    return Field(
        name, item.grid, item.dtype if dtype is None else dtype, slots=slots, on=on,
        centre=tuple(axis for axis, bit in enumerate(item.centre) if bit),
        axes=item.axes if item.replicated else None, boundary=None if item.replicated else walls,
        description=description,
    )  # fmt: skip
