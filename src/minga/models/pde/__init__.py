"""Partial differential equations from text or functions, integrated in time on any grid.

Names are imported when they are first used::

    model = mg.pde("laplace(u) + u - u**3", grid, initial={"u": "cos(x)"}, dt=0.01)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from minga.models.pde.model import pde
    from minga.models.pde.source import EquationError

__all__ = [
    "EquationError",
    "pde",
]

__getattr__, __dir__ = attach(__name__, __file__)
