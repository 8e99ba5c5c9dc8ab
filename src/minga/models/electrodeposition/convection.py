"""Right-hand side of the momentum equation in a time step: the two previous levels, convection and the force.

Convection is in divergence form, with fluxes and values averaged without weights, which conserves kinetic energy on
any rectilinear grid, stretched or not (Verstappen and Veldman, J. Comput. Phys. 187, 2003). It is extrapolated from the
two levels, as the semi-implicit backward difference formula requires (Ascher, Ruuth and Wetton, SIAM J. Numer. Anal.
32, 1995), here with steps of different lengths.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.lang.cell import CellReader
from minga.lang.expr import Node, where
from minga.lang.kernel import Kernel
from minga.models.electrodeposition.staggered import Readers, area, volume
from minga.solve.laplacian import step
from minga.space.field import Register


@dataclass(frozen=True, slots=True)
class Weights:
    """Registers with the weights of the difference formula, inertia * new - now * v.now - earlier * v.previous.

    All weights are in kg/m3/s.

    Attributes
    ----------
    inertia, now, earlier
        Weights of the new velocity, of the present one and of the previous one.
    ratio
        Length of this step over that of the previous one; 0 if there was none or the formula is of first order.
    """

    inertia: Register = field(default_factory=lambda: Register("flow inertia"))
    now: Register = field(default_factory=lambda: Register("flow weight of now"))
    earlier: Register = field(default_factory=lambda: Register("flow weight of earlier"))
    ratio: Register = field(default_factory=lambda: Register("flow ratio of steps"))

    def record(self, program: Program, dt: Register, last: Register, density: float, order: int) -> None:
        """Record the weights for a step of length `dt` after one of length `last`, both in s (0: no step before)."""
        r = self.ratio
        program.let(r, where(last > 0.0, dt / where(last > 0.0, last, 1.0), 0.0) if order == 2 else 0.0)
        program.let(self.inertia, density * ((1.0 + 2.0 * r) / (1.0 + r)) / dt)
        program.let(self.now, density * (1.0 + r) / dt)
        program.let(self.earlier, -density * (r * r / (1.0 + r)) / dt)


@functools.cache
def carried(ndim: int, axis: int, convection: bool) -> Kernel:
    """Return the kernel of right = volume * (force + weighted levels) - density * (momentum flux out of the cell).

    Its fields are all present velocities, all previous ones, the force, the mask, the target, widths and gaps.
    """
    here = (0,) * ndim

    def away(v: Readers, width: Readers) -> Node:
        """Return the momentum flux, divided by density, out of the cell around the face, in m4/s2."""
        u = v[axis]
        total: Node | None = None
        for b in range(ndim):
            back, ahead = step(ndim, b, -1), step(ndim, b, 1)
            values = 0.5 * (u[back] + u[here]), 0.5 * (u[here] + u[ahead])
            if b == axis:
                fluxes = [area(width, axis) * value for value in values]
            else:
                lower = step(ndim, axis, -1)
                edge = [w[0] for c, w in enumerate(width) if c not in (axis, b)]
                fluxes = []
                for side in (0, 1):
                    above = step(ndim, b, side)
                    corner = tuple(x + y for x, y in zip(above, lower, strict=True))
                    flux = 0.5 * (width[axis][-1] * v[b][corner] + width[axis][0] * v[b][above])
                    fluxes.append(functools.reduce(lambda x, y: x * y, edge, flux))
            term = fluxes[1] * values[1] - fluxes[0] * values[0]
            total = term if total is None else total + term
        assert total is not None
        return total

    def collect(
        now: Readers, before: Readers, force: CellReader, open: CellReader, target: CellReader,
        width: Readers, gap: Readers, *, weight: Node, earlier: Node, ratio: Node, density: Node,
    ) -> None:  # fmt: skip
        value = weight * now[axis][here] + earlier * before[axis][here] + force[here]
        value = volume(width, gap, axis) * value
        if convection:
            value = value - density * ((1.0 + ratio) * away(now, width) - ratio * away(before, width))
        target[here] = where(open[here] > 0, value, 0.0)

    return kernel(collect)


@functools.cache
def extrapolated(ndim: int) -> Kernel:
    """Return the kernel of the extrapolation from two levels: now + ratio * (now - before)."""
    here = (0,) * ndim

    def guess(now: CellReader, before: CellReader, open: CellReader, target: CellReader, *, ratio: Node) -> None:
        value = now[here] + ratio * (now[here] - before[here])
        target[here] = where(open[here] > 0, value, 0.0)

    return kernel(guess)
