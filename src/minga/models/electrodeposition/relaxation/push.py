"""Acceleration of the fluid at a face: by charge in a field, by density differences due to ions, and by vorticity."""

from __future__ import annotations

from minga.compile.explain import kernel
from minga.lang.cell import CellReader
from minga.lang.expr import Node, as_node, where
from minga.lang.kernel import Kernel
from minga.models.electrodeposition.fluxes import flux
from minga.models.electrodeposition.problem import FLUID, Problem
from minga.models.electrodeposition.relaxation.vorticity import Readers, VectorPotential
from minga.solve.laplacian import step


def push_kernel(problem: Problem, flow: VectorPotential, axis: int) -> Kernel:
    """Return the kernel of the acceleration at the inner faces across an axis.

    Its fields are kind, ions, potential, vorticity, velocities, the acceleration and widths. The force on charge is
    sum RT N_i / D_i, with N_i the flux of ion i in fluid at rest: it differs from -rho_e grad phi by a gradient, and is
    0 to rounding where ions are in equilibrium.
    """
    lengths, constants = flow.lengths, problem.constants
    here, below = (0,) * lengths.ndim, step(lengths.ndim, axis, -1)
    gravity = problem.gravity[axis] if problem.gravity else 0.0
    parts = tuple(flow.zeta)

    def accelerate(
        kind: CellReader,
        ions: Readers,
        phi: CellReader,
        zeta: Readers,
        velocity: Readers,
        push: CellReader,
        widths: Readers,
    ) -> None:
        gap = lengths.gap(widths, axis, 0)
        force: Node = as_node(0.0)
        for ion, c in zip(problem.species, ions, strict=True):
            w = (ion.charge * problem.beta) * (phi[here] - phi[below])
            force = force + flux(constants.thermal / gap, w, c[below], c[here])
            if gravity * ion.expansion:
                mean = 0.5 * (c[below] + c[here]) - ion.bulk
                force = force + (constants.density * ion.expansion * gravity) * mean
        value = force / constants.density - flow.turning(axis, dict(zip(parts, zeta, strict=True)), velocity)
        open_ = (kind[here] == FLUID) & (kind[below] == FLUID)
        push[here] = where(open_, value, 0.0)

    return kernel(accelerate)
