"""Inertia and viscosity of one velocity on its faces: A u = volume * (inertia * u - viscosity * Laplace u), symmetric.

Solids hold the velocity at 0: those across the face's own axis at the next face, those beside it (and the walls of the
cell) half a cell away. Where only one of the two cells at a neighbouring face is solid, half of that face is treated as
wall.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, cast, where
from minga.lang.functions import index
from minga.lang.functions import sum as cell_sum
from minga.lang.kernel import Kernel
from minga.models.electrodeposition.problem import FLUID
from minga.models.electrodeposition.staggered import Readers, Staggered, product, volume
from minga.solve.laplacian import step
from minga.space.field import Field, Register, Slot


@dataclass(frozen=True, eq=False)
class Momentum:
    """The operator A of the velocity along `axis`, and its diagonal as a preconditioner.

    Attributes
    ----------
    viscosity
        Dynamic viscosity, Pa s.
    inertia
        Density over time step, weighted by the time scheme, kg/m3/s.
    wall
        Contribution of the walls beside a face to the diagonal, as area over distance, m.
    """

    staggered: Staggered
    axis: int
    viscosity: float
    inertia: Register
    wall: Field = field(init=False)

    def __post_init__(self) -> None:
        name = self.staggered.grid.axes[self.axis]
        object.__setattr__(self, "wall", self.staggered.on_faces(f"walls beside {name}", self.axis))

    def setup(self, program: Program) -> None:
        """Record the computation of `wall` from the kinds of cells."""
        s = self.staggered
        program.apply(beside_walls(s.grid.ndim, self.axis), s.kind, self.wall, s.width, s.per_width, s.gap, s.per_gap)

    def __call__(self, program: Program, source: Field | Slot, target: Field | Slot) -> Register:
        """Record target = A source; return the register of the sum of source * target."""
        s = self.staggered
        product_ = program.apply(
            momentum(s.grid.ndim, self.axis), source, target, s.open[self.axis], self.wall,
            s.width, s.per_width, s.gap, s.per_gap, inertia=self.inertia, viscosity=self.viscosity,
        )  # fmt: skip
        assert isinstance(product_, Register)
        return product_

    def precondition(self, program: Program, residual: Field | Slot, correction: Field | Slot) -> None:
        """Record correction = residual / diagonal of A."""
        s = self.staggered
        program.apply(
            scaled(s.grid.ndim, self.axis), residual, correction, s.open[self.axis], self.wall,
            s.width, s.per_width, s.gap, s.per_gap, inertia=self.inertia, viscosity=self.viscosity,
        )  # fmt: skip

    def moving_wall(self, program: Program, target: Field | Slot, across: int, high: bool, speed: float) -> None:
        """Record the drag of a moving wall, which is added to the target.

        Parameters
        ----------
        program
            The program to record in.
        target
            Field that the force is added to, N.
        across, high
            The wall lies at the low or the high end of axis `across`.
        speed
            Speed of the wall along the axis of the velocity, m/s.
        """
        s = self.staggered
        program.apply(
            pull(s.grid.ndim, self.axis, across, s.grid.shape[across] - 1 if high else 0),
            target, s.open[self.axis], s.width, s.per_width, s.gap, speed=speed, viscosity=self.viscosity,
        )  # fmt: skip


# In kernels ----------------------------------------------------------------------------------------------------------
def links(axis: int, ndim: int, per_width: Readers, per_gap: Readers) -> list[tuple[tuple[int, ...], Node]]:
    """Return the offsets of the neighbours and the factors of their differences, per volume (1/m2)."""
    found: list[tuple[tuple[int, ...], Node]] = []
    for b in range(ndim):
        if b == axis:
            low, high = per_width[b][-1] * per_gap[b][0], per_width[b][0] * per_gap[b][0]
        else:
            low, high = per_gap[b][0] * per_width[b][0], per_gap[b][1] * per_width[b][0]
        found += [(step(ndim, b, -1), low), (step(ndim, b, 1), high)]
    return found


@functools.cache
def momentum(ndim: int, axis: int) -> Kernel:
    """Return the kernel of target = A u, which also returns the sum of u * A u."""
    here = (0,) * ndim

    def image(
        u: CellReader, target: CellReader, open: CellReader, wall: CellReader,
        width: Readers, per_width: Readers, gap: Readers, per_gap: Readers, *, inertia: Node, viscosity: Node,
    ) -> Reduced:  # fmt: skip
        terms = [link * (u[here] - u[offset]) for offset, link in links(axis, ndim, per_width, per_gap)]
        friction = viscosity * functools.reduce(lambda a, b: a + b, terms)
        value = volume(width, gap, axis) * (inertia * u[here] + friction) + viscosity * wall[here] * u[here]
        value = where(open[here] > 0, value, 0.0)
        target[here] = value
        return cell_sum(u[here] * value)

    return kernel(image)


@functools.cache
def scaled(ndim: int, axis: int) -> Kernel:
    """Return the kernel of z = r / diagonal of A."""
    here = (0,) * ndim

    def divide(
        r: CellReader, z: CellReader, open: CellReader, wall: CellReader,
        width: Readers, per_width: Readers, gap: Readers, per_gap: Readers, *, inertia: Node, viscosity: Node,
    ) -> None:  # fmt: skip
        total = functools.reduce(lambda a, b: a + b, (link for _, link in links(axis, ndim, per_width, per_gap)))
        diagonal = volume(width, gap, axis) * (inertia + viscosity * total) + viscosity * wall[here]
        z[here] = where(open[here] > 0, r[here] / diagonal, 0.0)

    return kernel(divide)


@functools.cache
def beside_walls(ndim: int, axis: int) -> Kernel:
    """Return the kernel of the contribution of walls beside faces.

    It is area * (1 / half a cell - 1 / distance of the neighbour), for the part of the face that is wall.
    """
    here = (0,) * ndim

    def collect(
        kind: CellReader, wall: CellReader, width: Readers, per_width: Readers, gap: Readers, per_gap: Readers
    ) -> None:
        own = volume(width, gap, axis)
        shares = 0.5 * width[axis][-1] * per_gap[axis][0], 0.5 * width[axis][0] * per_gap[axis][0]
        total: Node | None = None
        for b in (b for b in range(ndim) if b != axis):
            for side in (-1, 1):
                near, far = step(ndim, b, side), list(step(ndim, b, side))
                far[axis] = -1
                solid = [cast(cast(kind[o] != FLUID, "u1"), "f8") for o in (tuple(far), near)]
                part = shares[0] * solid[0] + shares[1] * solid[1]
                more = part * (2.0 * per_width[b][0] - per_gap[b][0 if side < 0 else 1])
                term = own * per_width[b][0] * more
                total = term if total is None else total + term
        assert total is not None
        wall[here] = total

    return kernel(collect)


@functools.cache
def pull(ndim: int, axis: int, across: int, row: int) -> Kernel:
    """Return the kernel of target += viscosity * area / half a cell * speed, in the row of cells at the wall."""
    here = (0,) * ndim

    def drag(
        target: CellReader, open: CellReader, width: Readers, per_width: Readers, gap: Readers,
        *, speed: Node, viscosity: Node,
    ) -> None:  # fmt: skip
        own = per_width[across][0]
        force = viscosity * speed * (product([volume(width, gap, axis), own, own]) * 2.0)
        target[here] = target[here] + where((open[here] > 0) & (index(across) == row), force, 0.0)

    return kernel(drag)
