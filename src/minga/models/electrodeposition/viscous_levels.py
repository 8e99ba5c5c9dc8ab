"""Multigrid for one velocity on its faces, where viscosity acts across many cells within a time step.

Faces 0 to N - 1 of an axis, where face N is a wall or the same as face 0, are the cells of a separate operator. It has
the conductances between neighbouring open faces and, in its diagonal, inertia and the links to solids and walls.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.lang.cell import CellReader
from minga.lang.expr import Node, where
from minga.lang.kernel import Kernel
from minga.models.electrodeposition.staggered import Readers, area, product, volume
from minga.models.electrodeposition.viscosity import Momentum, links
from minga.solve.elliptic import Elliptic
from minga.solve.elliptic_multigrid import EllipticMultigrid
from minga.solve.krylov import copy
from minga.solve.laplacian import step
from minga.space.field import Field, Register, Slot


@dataclass(frozen=True, eq=False)
class ViscousLevels:
    """A V-cycle for the operator `momentum`, as a preconditioner.

    Attributes
    ----------
    made
        Register with the inertia that the levels were computed for; negative if there are none.
    """

    momentum: Momentum
    elliptic: Elliptic = field(init=False)
    cycle: EllipticMultigrid = field(init=False)
    made: Register = field(init=False)
    source: Field = field(init=False)
    target: Field = field(init=False)

    def __post_init__(self) -> None:
        s, put = self.momentum.staggered, object.__setattr__
        name = f"viscous {s.grid.axes[self.momentum.axis]}"
        put(self, "elliptic", Elliptic(s.grid, f"flow {name}"))
        cycle = EllipticMultigrid(self.elliptic, solids=s.mask is not None, name=f"flow {name} levels")
        put(self, "cycle", cycle)
        put(self, "made", Register(f"flow {name} made", initial=-1.0))
        put(self, "source", s.at_centres(f"{name} residual"))
        put(self, "target", s.at_centres(f"{name} correction"))

    @property
    def fields(self) -> tuple[Field, ...]:
        """Fields that must persist between steps."""
        return (*self.elliptic.fields, *self.cycle.fields)

    def invalidate(self, program: Program) -> None:
        """Record the invalidation of all levels, because solids have changed."""
        program.let(self.made, -1.0)

    def setup(self, program: Program) -> None:
        """Record the computation of all levels, unless they are already those of this inertia and these solids."""
        m, s = self.momentum, self.momentum.staggered
        ndim, opening = s.grid.ndim, s.open[m.axis]
        with program.when(self.made != m.inertia):
            program.let(self.made, m.inertia)
            for across, face in enumerate(self.elliptic.faces):
                made = conductance(ndim, m.axis, across)
                program.apply(made, opening, face, s.width, s.per_width, s.gap, s.per_gap, viscosity=m.viscosity)
            program.apply(
                held(ndim, m.axis), opening, m.wall, self.elliptic.diagonal,
                s.width, s.per_width, s.gap, s.per_gap, inertia=m.inertia, viscosity=m.viscosity,
            )  # fmt: skip
            self.cycle.setup(program)

    def __call__(self, program: Program, residual: Field | Slot, correction: Field | Slot) -> None:
        """Record correction = M residual."""
        program.apply(copy, residual, self.source)
        self.cycle(program, self.source, self.target)
        program.apply(copy, self.target, correction)


# In kernels ----------------------------------------------------------------------------------------------------------
@functools.cache
def conductance(ndim: int, axis: int, across: int) -> Kernel:
    """Return the kernel of viscosity * area / distance between a face of `axis` and the one below it along `across`.

    It is 0 unless both faces are open.
    """
    here, below = (0,) * ndim, step(ndim, across, -1)

    def make(
        open: CellReader, k: CellReader, width: Readers, per_width: Readers, gap: Readers, per_gap: Readers,
        *, viscosity: Node,
    ) -> None:  # fmt: skip
        if across == axis:
            value = area(width, axis) * per_width[axis][-1]
        else:
            edge = [w[0] for b, w in enumerate(width) if b not in (axis, across)]
            value = product([gap[axis][0], *edge, per_gap[across][0]])
        k[here] = where((open[here] > 0) & (open[below] > 0), viscosity * value, 0.0)

    return kernel(make)


@functools.cache
def held(ndim: int, axis: int) -> Kernel:
    """Return the kernel of inertia plus the links to neighbours held at 0; 0 where the face itself is not open."""
    here = (0,) * ndim

    def make(
        open: CellReader, wall: CellReader, diagonal: CellReader,
        width: Readers, per_width: Readers, gap: Readers, per_gap: Readers, *, inertia: Node, viscosity: Node,
    ) -> None:  # fmt: skip
        own = volume(width, gap, axis)
        total = inertia * own + viscosity * wall[here]
        for offset, link in links(axis, ndim, per_width, per_gap):
            total = total + where(open[offset] > 0, 0.0, viscosity * own * link)
        diagonal[here] = where(open[here] > 0, total, 0.0)

    return kernel(make)
