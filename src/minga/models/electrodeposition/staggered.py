"""The staggered grid of the flow: pressure at cell centres, each velocity at the faces across its own axis.

The arrangement is that of Harlow and Welch (Phys. Fluids 8, 1965). Quantities that depend on position are kept in
one-axis arrays, those that depend on the solids in one mask for each velocity. Gradient and divergence are multiplied
by the areas of faces, so that each is the negative transpose of the other, also on stretched grids and between solids.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, cast, where
from minga.lang.functions import abs as cell_abs
from minga.lang.functions import max as cell_max
from minga.lang.functions import sum as cell_sum
from minga.lang.kernel import Kernel
from minga.models.electrodeposition.problem import FLUID
from minga.solve.laplacian import step
from minga.space.boundary import fixed
from minga.space.field import Field, Slot
from minga.space.grid import Grid

Floats = NDArray[np.float64]
Readers = Sequence[CellReader]


@dataclass(frozen=True, eq=False)
class Staggered:
    """Lengths along the axes of a grid, and masks of the faces that fluid passes.

    Attributes
    ----------
    grid, kind
        The grid and the field of the cells' kinds.
    mask
        `kind` if some cells are or may become solid, else None.
    width, per_width
        Widths of the cells, one field for each axis, and their inverses.
    gap, per_gap
        Distances between the centres of two cells, at their face, and their inverses; at a wall, the width of a whole
        cell.
    open
        Masks of type u1, one for each axis, at its faces: 1 between two cells of fluid, else 0.
    initial
        Values of the lengths.
    """

    grid: Grid
    kind: Field
    mask: Field | None = None
    width: tuple[Field, ...] = field(init=False)
    per_width: tuple[Field, ...] = field(init=False)
    gap: tuple[Field, ...] = field(init=False)
    per_gap: tuple[Field, ...] = field(init=False)
    open: tuple[Field, ...] = field(init=False)
    initial: dict[Field, Floats] = field(init=False)

    def __post_init__(self) -> None:
        initial: dict[Field, Floats] = {}

        def one_axis(what: str, axis: int, values: Floats, *, faces: bool) -> Field:
            centre = (axis,) if faces else ()
            item = Field(f"flow {what} {self.grid.axes[axis]}", self.grid, axes=(axis,), centre=centre, unit="m")
            initial[item] = values
            return item

        axes = range(self.grid.ndim)
        widths = [self.grid.widths(a) for a in axes]
        gaps = [face_gaps(w, self.grid.periodic[a]) for a, w in enumerate(widths)]
        put = object.__setattr__
        put(self, "width", tuple(one_axis("width", a, widths[a], faces=False) for a in axes))
        put(self, "per_width", tuple(one_axis("per width", a, 1.0 / widths[a], faces=False) for a in axes))
        put(self, "gap", tuple(one_axis("gap", a, gaps[a], faces=True) for a in axes))
        put(self, "per_gap", tuple(one_axis("per gap", a, 1.0 / gaps[a], faces=True) for a in axes))
        put(self, "open", tuple(self.on_faces(f"open {self.grid.axes[a]}", a, "u1") for a in axes))
        put(self, "initial", initial)

    @property
    def fields(self) -> tuple[Field, ...]:
        """Fields whose values must persist between steps."""
        return (*self.width, *self.per_width, *self.gap, *self.per_gap, *self.open)

    def on_faces(self, name: str, axis: int, dtype: str = "f8", slots: int = 1) -> Field:
        """Declare a field at the faces across an axis, 0 beyond the ends of the grid."""
        return Field(f"flow {name}", self.grid, dtype, centre=(axis,), slots=slots, boundary=fixed(0))

    def at_centres(self, name: str) -> Field:
        """Declare an f8 field at the cells, 0 beyond the ends of the grid."""
        return Field(f"flow {name}", self.grid, boundary=fixed(0.0))

    def setup(self, program: Program) -> None:
        """Record the computation of the masks from `kind`; it is needed again after `kind` has changed."""
        for axis, target in enumerate(self.open):
            program.apply(open_faces(self.grid.ndim, axis), self.kind, target)

    def divergence(self, program: Program, velocity: Sequence[Field | Slot], target: Field | Slot) -> Balance:
        """Record target = inflow of each cell through its faces, m3/s: minus the divergence times the volume."""
        sums = program.apply(inflow(self.grid.ndim), list(velocity), target, list(self.width))
        return Balance(sums.net, sums.gross, sums.worst, sums.fastest)  # type: ignore[union-attr]


@dataclass(frozen=True, slots=True)
class Balance:
    """Registers that summarize the inflow of cells.

    Attributes
    ----------
    net
        Sum of the squares of the net inflows.
    gross
        Sum of the squares of the sums of magnitudes of the flows through the faces of a cell.
    worst
        Largest magnitude of a net inflow.
    fastest
        Largest sum of magnitudes.
    """

    net: Node
    gross: Node
    worst: Node
    fastest: Node


def face_gaps(width: Floats, periodic: bool) -> Floats:
    """Return the distances of neighbouring cell centres by face; beyond a wall lies a cell as wide as the last one."""
    before = np.concatenate((width[-1:] if periodic else width[:1], width))
    after = np.concatenate((width, width[:1] if periodic else width[-1:]))
    gaps = 0.5 * (before + after)
    return gaps[:-1] if periodic else gaps


# In kernels ----------------------------------------------------------------------------------------------------------
def product(factors: Sequence[Node]) -> Node:
    """Return the product of the factors, evaluated from left to right."""
    return functools.reduce(operator.mul, factors)


def area(width: Readers, axis: int) -> Node | float:
    """Return the area of a face across `axis` (per metre of each direction that the grid has no axis for)."""
    others = [w[0] for a, w in enumerate(width) if a != axis]
    return product(others) if others else 1.0


def volume(width: Readers, gap: Readers, axis: int) -> Node:
    """Return the volume of the cell around a face across `axis`, from centre to centre."""
    return gap[axis][0] * area(width, axis)


@functools.cache
def open_faces(ndim: int, axis: int) -> Kernel:
    """Return the kernel that computes the mask of open faces from the kinds."""
    here, below = (0,) * ndim, step(ndim, axis, -1)

    def mark(kind: CellReader, target: CellReader) -> None:
        target[here] = cast((kind[here] == FLUID) & (kind[below] == FLUID), "u1")

    return kernel(mark)


@functools.cache
def inflow(ndim: int) -> Kernel:
    """Return the kernel of the inflow of cells, whose fields are the velocities, the target and widths of cells."""
    here = (0,) * ndim

    def collect(velocity: Readers, target: CellReader, width: Readers) -> dict[str, Reduced]:
        net: Node | None = None
        gross: Node | None = None
        for axis, v in enumerate(velocity):
            low, high = v[here], v[step(ndim, axis, 1)]
            size = area(width, axis)
            into, both = size * (low - high), size * (cell_abs(low) + cell_abs(high))
            net = into if net is None else net + into
            gross = both if gross is None else gross + both
        assert net is not None
        assert gross is not None
        target[here] = net
        return {
            "net": cell_sum(net * net),
            "gross": cell_sum(gross * gross),
            "worst": cell_max(cell_abs(net)),
            "fastest": cell_max(gross),
        }

    return kernel(collect)


@functools.cache
def push(ndim: int, axis: int) -> Kernel:
    """Return the kernel of the force of a pressure, target = area * (p below - p above) on open faces."""
    here, below = (0,) * ndim, step(ndim, axis, -1)

    def difference(p: CellReader, open: CellReader, target: CellReader, width: Readers) -> None:
        target[here] = where(open[here] > 0, area(width, axis) * (p[below] - p[here]), 0.0)

    return kernel(difference)


@functools.cache
def add_push(ndim: int, axis: int) -> Kernel:
    """Return the kernel of target = source + area * (p below - p above) on open faces, 0 on others."""
    here, below = (0,) * ndim, step(ndim, axis, -1)

    def difference(p: CellReader, source: CellReader, open: CellReader, target: CellReader, width: Readers) -> None:
        value = source[here] + area(width, axis) * (p[below] - p[here])
        target[here] = where(open[here] > 0, value, 0.0)

    return kernel(difference)
