"""Force densities on faces that move the fluid: the Coulomb force on its charge, and its weight.

The Coulomb force is combined with the gradient of the osmotic pressure, which only adds to the pressure: for each ion
it is then RT (grad c + z F/RT c grad phi), its flux without flow divided by its diffusivity, in the same discretisation
(`minga.models.electrodeposition.fluxes`). In equilibrium, where no ion moves, it vanishes to rounding, so that a double
layer at rest stays at rest, however thin it is compared with the cells. The pressure of the flow is therefore
p - RT sum c.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.lang.cell import CellReader
from minga.lang.expr import Node, where
from minga.lang.kernel import Kernel
from minga.models.electrodeposition.fluxes import flux
from minga.models.electrodeposition.groups import resolves_charge
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.staggered import Readers, Staggered
from minga.solve.laplacian import step
from minga.space.field import Field, Slot

__all__ = ["record_forces"]


def record_forces(
    program: Program,
    problem: Problem,
    staggered: Staggered,
    concentration: Sequence[Field | Slot],
    potential: Field | Slot,
    targets: Sequence[Field],
) -> None:
    """Record the force density (N/m3) along each axis on open faces, 0 on others.

    Parameters
    ----------
    program
        The program to record in.
    problem, staggered
        The problem and its staggered grid.
    concentration, potential
        Slots to compute the force from, such as `c.next`.
    targets
        Fields at the faces across each axis: `Flow.force`.
    """
    species, s, constants = problem.species, staggered, problem.constants
    for axis, target in enumerate(targets):
        g = problem.gravity[axis] if problem.gravity else 0.0
        ions = tuple(
            Ion(item.charge * problem.beta, constants.density * g * item.expansion, item.bulk) for item in species
        )
        made = force(s.grid.ndim, axis, ions, constants.thermal, resolves_charge(problem))
        program.apply(made, list(concentration), potential, s.open[axis], target, s.width, s.per_gap)


@dataclass(frozen=True, slots=True)
class Ion:
    """Properties of an ion that determine the force on it.

    Attributes
    ----------
    charge
        z F/RT, 1/V.
    weight
        Weight per mole in excess of `bulk`, N/mol.
    bulk
        Bulk concentration, mol/m3.
    """

    charge: float
    weight: float
    bulk: float


@functools.cache
def force(ndim: int, axis: int, ions: tuple[Ion, ...], thermal: float, osmotic: bool = True) -> Kernel:
    """Return the kernel of the force density along an axis; if `osmotic`, with the gradient of RT sum c.

    Its fields are the concentrations, the potential, the mask, the target, widths and inverse gaps.
    """
    here, below = (0,) * ndim, step(ndim, axis, -1)

    def collect(
        c: Readers, potential: CellReader, open: CellReader, target: CellReader, width: Readers, per_gap: Readers
    ) -> None:
        near = per_gap[axis][0]
        share = 0.5 * near * width[axis][0], 0.5 * near * width[axis][-1]
        difference = potential[here] - potential[below]
        total: Node = 0.0 * difference
        for item, ion in zip(c, ions, strict=True):
            low, high = item[below], item[here]
            if ion.charge and not osmotic:
                total = total - (thermal * ion.charge) * (share[0] * low + share[1] * high) * (near * difference)
            elif ion.charge:
                total = total + thermal * flux(near, ion.charge * difference, low, high)
            if ion.weight:
                total = total + ion.weight * ((share[0] * low + share[1] * high) - ion.bulk)
        target[here] = where(open[here] > 0, total, 0.0)

    return kernel(collect)
