"""A reference electrode: a point of the solution against which the cathode's potential is measured."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Final

import numpy as np

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.problem import FLUID
from minga.models.electrodeposition.state import State
from minga.space.box import Box
from minga.space.field import Field, Slot
from minga.space.grid import Grid

__all__ = ["Reference"]

LEAST: Final = 1e-6
"""Least response of the potential at the reference to the anode's; solids that screen it would give less."""
MISSED: Final = 1e-2
"""Difference from a given potential, RT/F, from which on it counts as not reached."""


@dataclass(frozen=True, eq=False)
class Reference:
    """A plane of cells parallel to the cathode; its potential is the mean over their solution.

    Attributes
    ----------
    place
        Distance from the cathode's plane, m; the nearest centres of cells count.
    """

    grid: Grid
    state: State
    place: float

    @property
    def plane(self) -> Box:
        """The cells."""
        grid = self.grid
        axis = grid.axis("y")
        centres = grid.centres("y") - float(grid.faces("y")[0])
        nearest = int(np.abs(centres - self.place).argmin())
        low, high = [0] * grid.ndim, list(grid.shape)
        low[axis], high[axis] = nearest, nearest + 1
        return Box(tuple(low), tuple(high))

    def potential(self, program: Program, values: Slot) -> Node:
        """Record the mean of a field in the solution of the plane; return it."""
        found = program.apply(mean_in_solution, self.state.kind, values, region=self.plane)
        assert isinstance(found, SimpleNamespace)
        return as_node(found.total) / mg.max(found.cells, 1.0)

    def shift(self, program: Program, wanted: Node, delta: Field, unit: Field) -> Node:
        """Record the correction of the anode's potential with which the plane has the potential `wanted`."""
        now = self.potential(program, self.state.potential.next)
        missing, response = wanted - now - self.potential(program, delta.now), self.potential(program, unit.now)
        return where(response > LEAST, missing / where(response > LEAST, response, 1.0), 0.0)

    def misses(self, program: Program, wanted: Node, beta: float) -> Node:
        """Record whether the next potential of the plane is not the one that is given; return it.

        An anode without ions, at which no voltage changes the current, cannot bring it there.
        """
        return mg.abs(wanted - self.potential(program, self.state.potential.next)) * beta > MISSED


@kernel
def mean_in_solution(kind: CellReader, values: CellReader) -> dict[str, Reduced]:
    """Return the sum of a field over cells of solution, and their number."""
    here = (0,) * len(kind.axes)
    fluid = kind[here] == FLUID
    return {"total": mg.sum(where(fluid, values[here], 0.0)), "cells": mg.sum(where(fluid, 1.0, 0.0))}
