"""The conditions of a field of equations: those of its cells beyond walls, and the walls that are closed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from minga.space.boundary import Boundary, BoundaryLike, Condition, as_boundary, neumann
from minga.space.grid import Grid
from minga.space.poles import poles

__all__ = ["Walls"]


_MIRRORS: Final = ("neumann", "reflect", "zero_gradient")
"""Names of the conditions without a derivative across the wall, if they are homogeneous."""


@dataclass(frozen=True, slots=True)
class Walls:
    """The conditions of a field.

    Attributes
    ----------
    boundary
        The conditions of its cells beyond the ends of axes.
    closed
        The ends through which nothing flows, by axis: "l" for the low one, "h" for the high one, or "lh".
    """

    boundary: Boundary
    closed: Mapping[int, str]

    @classmethod
    def of(cls, given: BoundaryLike, grid: Grid, name: str, order: int) -> Walls:
        """Return the conditions that were given for a field.

        Parameters
        ----------
        given
            The conditions.
        grid
            The grid.
        name
            Name of the field.
        order
            Order of the conditions at the ends that are no walls.

        Returns
        -------
        Walls
            The conditions.
        """
        sides = as_boundary(given, grid, name, closed=True).sides
        closed: dict[int, str] = {}
        found = []
        for axis, pair in enumerate(sides):
            ends = "".join(end for end, each in zip("lh", pair, strict=True) if each is not None and each.closed)
            if ends:
                closed[axis] = ends
            even = poles(grid, axis)
            found.append(tuple(_beyond(each, pole, order) for each, pole in zip(pair, even, strict=True)))
        return cls(Boundary(tuple((low, high) for low, high in found)), closed)

    def mirrored(self, axes: Collection[int]) -> bool:
        """Return whether the derivative across the ends of some axes is 0.

        Parameters
        ----------
        axes
            Numbers of the axes.

        Returns
        -------
        bool
            True if it is at all of them.
        """
        ends = (each for axis in axes for each in self.boundary.sides[axis] if each is not None)
        return all(each.homogeneous and each.name.startswith(_MIRRORS) for each in ends)


def _beyond(condition: Condition | None, pole: bool, order: int) -> Condition | None:
    """Return the condition of cells beyond an end."""
    if condition is None or not condition.closed:
        return condition
    return neumann(0.0, order) if pole else replace(condition, closed=False)
