"""Models on an unbounded plane: their grid is a window that holds everything alive, and is made anew when it is tight.

Cells beyond the window are 0, and stay so while all cells within `Growth.reach` of them are 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minga.space.box import Box

if TYPE_CHECKING:
    from minga.engine.model import Model

__all__ = ["Growth"]


@dataclass(frozen=True, slots=True, eq=False)
class Growth:
    """The window of a model on an unbounded plane.

    Attributes
    ----------
    window
        Cells of the plane that the model's grid holds.
    axes
        Axes along which the window is only a part of the plane; along others the grid ends where the window does.
    reach
        Largest distance by which cells that are not 0 spread in one step.
    moved
        Function that returns the same model on another window, without cells.
    roomy
        Function that returns a window around a box of cells, with room for some steps.
    tight
        Function that returns the smallest window that holds a box of cells.
    """

    window: Box
    axes: tuple[int, ...]
    reach: int
    moved: Callable[[Box], Model]
    roomy: Callable[[Box], Box]
    tight: Callable[[Box], Box]
