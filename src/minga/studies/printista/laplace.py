"""The benchmark of the paper: relaxation of Laplace's equation on N x N cells, as a cellular automaton of f8."""

from __future__ import annotations

from typing import Any

from minga.engine.program import Program
from minga.lang.kernel import Kernel
from minga.space.boundary import fixed
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["Relaxation"]


def _relax(u: Any, new: Any) -> None:
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


class Relaxation:
    """A square of cells, and the Program of one step.

    Parameters
    ----------
    size
        Cells along an axis.
    periodic
        True to join opposite borders; otherwise the border is held at 1.
    """

    def __init__(self, size: int, *, periodic: bool = False) -> None:
        self.grid = Grid((size, size), periodic=periodic)
        self.u = Field("u", self.grid, "f8", slots=2, boundary=None if periodic else fixed(1.0))
        self.step = Program("step")
        self.step.apply(Kernel(_relax, name="relax"), self.u, self.u.next)
        self.step.rotate(self.u)
