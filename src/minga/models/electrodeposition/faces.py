"""A face of the grid inside a kernel: its neighbours, area and distance, and the potential across it.

Faces between two cells of solution and faces of metals are described alike: at a metal, the distance ends half a cell
away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minga.lang.cell import CellReader
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.problem import ANODE, CATHODE, FLUID, INSULATOR, Problem
from minga.solve.laplacian import step

__all__ = ["Drive", "FaceValues", "displacement", "face_values", "has_metal", "moving"]

Readers = Sequence[CellReader]
Number = Node | float


def has_metal(problem: Problem, axis: int) -> bool:
    """Return whether any face across an axis may belong to a metal: the ends of y, or all axes if there are solids."""
    solids = problem.growth is not None or (problem.kinds is not None and bool(np.any(_metals(problem.kinds))))
    return solids or problem.grid.axes[axis] == "y"


def _metals(kinds: np.ndarray) -> np.ndarray:
    return np.asarray((kinds != FLUID) & (kinds != INSULATOR))


@dataclass(frozen=True, slots=True, eq=False)
class Drive:
    """Registers that drive the faces.

    Attributes
    ----------
    voltage
        Potential of the anode, V.
    at_cathode, at_anode
        Fluxes into the solution that balance the other electrode, mol/m2/s.
    """

    voltage: Node
    at_cathode: Node
    at_anode: Node


@dataclass(frozen=True, slots=True, eq=False)
class FaceValues:
    """The face below the cell at which a kernel is evaluated.

    Attributes
    ----------
    inside
        Whether solution lies on both sides.
    above, below
        Whether a metal lies on that side of the solution; None where no metal can.
    cathode
        Whether that metal is the cathode.
    area
        Area of the face, m2.
    distance
        Distance between the centres, or from a centre to the metal, m.
    difference
        Potential above minus potential below, V.
    stern
        Thickness of the Stern layer, m; 0 inside the solution.
    opposed
        Potential by which the curvature of the cathode opposes deposition, V; 0 elsewhere.
    equilibrium
        Readers of the local equilibrium, where the solution has one.
    """

    axis: int
    inside: Node
    above: Node | None
    below: Node | None
    cathode: Node | None
    area: Number
    distance: Number
    difference: Node
    stern: Number
    opposed: Number = 0.0
    equilibrium: Readers = ()

    @property
    def passable(self) -> Node:
        """Condition under which an electric field crosses the face."""
        return self.inside if self.above is None else self.inside | self.above | self.below


def face_values(
    problem: Problem, lengths: Lengths, axis: int, kind: CellReader, phi: CellReader, widths: Readers, drive: Drive
) -> FaceValues:
    """Return the face below the cell, across `axis`."""
    ndim = lengths.ndim
    here, down = (0,) * ndim, step(ndim, axis, -1)
    low, high = kind[down], kind[here]
    inside = (low == FLUID) & (high == FLUID)
    area: Number = 1.0
    for other in range(ndim):
        if other != axis:
            area = lengths.width(widths, other) * area
    if not has_metal(problem, axis):
        gap = lengths.gap(widths, axis)
        return FaceValues(axis, inside, None, None, None, area, gap, phi[here] - phi[down], 0.0)
    above = (low == FLUID) & ((high == CATHODE) | (high == ANODE))
    below = (high == FLUID) & ((low == CATHODE) | (low == ANODE))
    cathode = (low == CATHODE) | (high == CATHODE)
    half = where(below, lengths.width(widths, axis), lengths.width(widths, axis, -1)) * 0.5
    distance = where(inside, lengths.gap(widths, axis), half)

    def potential(what: Node, value: Node) -> Node:
        return where(what == CATHODE, 0.0, where(what == ANODE, drive.voltage, value))

    stern: Number = 0.0
    if problem.cathode.stern or problem.anode.stern:
        stern = where(inside, 0.0, where(cathode, problem.cathode.stern, problem.anode.stern))
    difference = potential(high, phi[here]) - potential(low, phi[down])
    return FaceValues(axis, inside, above, below, cathode, area, distance, difference, stern)


def displacement(problem: Problem, face: FaceValues) -> Node:
    """Return permittivity * area / distance (in F), Stern layers included; 0 where no field crosses.

    At a metal with a double layer that is not resolved, it is the layer's capacity.
    """
    value = problem.constants.permittivity * face.area / (face.distance + face.stern)
    capacities = problem.cathode.capacity, problem.anode.capacity
    if face.cathode is not None and any(capacities):
        ends = [value if capacity == 0.0 else face.area * as_node(capacity) for capacity in capacities]
        value = where(face.inside, value, where(face.cathode, *ends))
    return where(face.passable, value, 0.0)


def moving(velocity: Readers, previous: Readers, axis: int, ratio: Node) -> Node | None:
    """Return the velocity through a face, extrapolated from the last two steps to the end of this one.

    It is None without flow.
    """
    if not velocity:
        return None
    here = (0,) * len(velocity[axis].axes)
    now = velocity[axis][here]
    return now + ratio * (now - previous[axis][here])
