"""Curvature of the deposit's surface, and the potential by which its surface energy opposes deposition.

The chemical potential of metal below a surface of curvature k (the sum of both principal curvatures, positive where the
metal bulges) is higher by gamma V_m k. Its equilibrium potential is lower by gamma V_m k / (z F) (Gibbs-Thomson).

The curvature of a surface of cell faces is that of a smooth one: f is the indicator of metal, averaged with a bell
whose standard deviation is half the radius of the growth, and

    k = (grad f . H grad f - |grad f|^2 lap f) / |grad f|^3

is the divergence of its normal, with H the second derivatives of f. At a face of the metal it is the mean of its
values in the two cells beside it. The level surfaces of f around a disc or a ball are round, so that averaging adds no
error of its own; that of the cells' faces falls as cells become narrower than the radius. A curvature above 4 / radius
in each direction, as at the tip of a needle, is limited to it. Metal lies beyond the cathode's plane, and surfaces meet
glass at right angles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang import functions as mg
from minga.lang.cell import CellReader
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.averages import record_averages, rounds_over
from minga.models.electrodeposition.faces import FaceValues
from minga.models.electrodeposition.problem import CATHODE, Flux, Held, Problem
from minga.models.electrodeposition.reaction import Reacting
from minga.solve.laplacian import step
from minga.space.boundary import BoundaryLike, fixed, zero_gradient
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["Curvature", "check_surface_energy", "curved", "per_curvature"]

Readers = Sequence[CellReader]

SHARPEST: Final = 4.0
"""Largest curvature in each direction, in terms of 1 / radius."""
FLAT: Final = 1e-3
"""Gradient of the averaged indicator that stands for none, in terms of 1 / radius, as in pockets of solution."""


@dataclass(frozen=True, eq=False)
class Curvature:
    """Fields of the curvature of the cathode's surface.

    Attributes
    ----------
    metal
        Indicator of the cathode's metal, averaged.
    value
        Curvature, 1/m; it means something beside the surface only.
    """

    problem: Problem
    metal: Field = field(init=False)
    value: Field = field(init=False)

    def __post_init__(self) -> None:
        grid, put = self.problem.grid, object.__setattr__
        put(self, "metal", Field("averaged metal", grid, slots=2, boundary=_beyond(grid)))
        put(self, "value", Field("curvature", grid, unit="1/m", boundary=zero_gradient()))

    @staticmethod
    def of(problem: Problem) -> Curvature | None:
        """Return the curvature that a problem needs; None if its deposit has no surface energy or cannot bend."""
        growth = problem.growth
        return Curvature(problem) if growth is not None and growth.surface_energy and problem.grid.ndim > 1 else None

    def measure(self, program: Program, kind: Field) -> None:
        """Record the curvature of the present surface."""
        assert self.problem.growth is not None
        grid, radius = self.problem.grid, self.problem.growth.radius
        program.apply(indicate, kind, self.metal.now)
        record_averages(program, [self.metal], rounds_over(grid, radius))
        program.apply(bend(grid, radius), self.metal.now, self.value)


def check_surface_energy(problem: Problem) -> None:
    """Reject a surface energy without a radius, or where the condition of the metal's ion has no equilibrium.

    Raises
    ------
    CaseError
        If the growth has such a surface energy.
    """
    growth = problem.growth
    if growth is None or not growth.surface_energy:
        return
    key = "electrodeposition.growth.surface_energy"
    if not growth.radius:
        raise CaseError(
            "the curvature of a surface of cell faces needs a length over which it is measured",
            key=key,
            remedy='give a radius of several cells, such as radius = "40 um"',
        )
    surface = problem.cathode.surfaces[growth.ion]
    frumkin = isinstance(surface, Reacting) and surface.layer is not None
    if isinstance(surface, Held | Flux) or frumkin or problem.cathode.stern:
        found = "a Stern layer" if problem.cathode.stern else "Frumkin's correction" if frumkin else "no equilibrium"
        raise CaseError(
            f"curvature shifts the equilibrium potential of {growth.ion}, but its condition at the cathode has {found}",
            key=key,
            remedy=f'write cathode = "reversible" or cathode = {{{growth.ion} = {{exchange = 30.0}}}}',
        )


def _beyond(grid: Grid) -> BoundaryLike:
    """Return the conditions of the indicator: metal beyond the cathode's plane, none beyond the anode's."""
    return {
        name: (fixed(1.0), fixed(0.0)) if name == "y" else zero_gradient()
        for number, name in enumerate(grid.axes)
        if not grid.periodic[number]
    }


def curved(problem: Problem, face: FaceValues, curvature: Readers) -> FaceValues:
    """Return the face with the potential by which the curvature opposes deposition; `curvature` may be empty."""
    growth = problem.growth
    if not curvature or growth is None or face.cathode is None:
        return face
    (value,) = curvature
    ndim = problem.grid.ndim
    mean = 0.5 * (value[(0,) * ndim] + value[step(ndim, face.axis, -1)])
    return replace(face, opposed=where(face.cathode, per_curvature(problem) * mean, 0.0))


def per_curvature(problem: Problem) -> float:
    """Return the shift of the equilibrium potential per curvature of the deposit, V m."""
    growth = problem.growth
    assert growth is not None
    ion = next(s for s in problem.species if s.name == growth.ion)
    return growth.surface_energy * growth.volume / (ion.charge * problem.constants.faraday)


@kernel
def indicate(kind: CellReader, metal: CellReader) -> None:
    """Store 1 in metal of the cathode, 0 elsewhere."""
    here = (0,) * len(kind.axes)
    metal[here] = where(kind[here] == CATHODE, 1.0, 0.0)


def bend(grid: Grid, radius: float) -> Kernel:
    """Return the kernel of the curvature of the level surfaces of the averaged indicator."""
    ndim = grid.ndim
    here = (0,) * ndim
    widths = [float(grid.widths(axis)[0]) for axis in range(ndim)]
    least, most = (FLAT / radius) * (FLAT / radius), (ndim - 1) * SHARPEST / radius

    def at(*steps: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(map(sum, zip(*steps, strict=True)))

    @kernel
    def curvature_of_metal(metal: CellReader, value: CellReader) -> None:
        ups, downs = ([step(ndim, axis, side) for axis in range(ndim)] for side in (1, -1))
        slopes = [(metal[ups[a]] - metal[downs[a]]) * (0.5 / widths[a]) for a in range(ndim)]
        square, laplacian, along = as_node(0.0), as_node(0.0), as_node(0.0)
        for a in range(ndim):
            second = (metal[ups[a]] - 2.0 * metal[here] + metal[downs[a]]) * (1.0 / (widths[a] * widths[a]))
            square = square + slopes[a] * slopes[a]
            laplacian = laplacian + second
            along = along + slopes[a] * slopes[a] * second
            for b in range(a):
                corners = metal[at(ups[a], ups[b])] + metal[at(downs[a], downs[b])]
                others = metal[at(ups[a], downs[b])] + metal[at(downs[a], ups[b])]
                mixed = (corners - others) * (0.25 / (widths[a] * widths[b]))
                along = along + 2.0 * slopes[a] * slopes[b] * mixed
        steep = square + least
        found: Node = (along - square * laplacian) / (steep * mg.sqrt(steep))
        value[here] = mg.min(mg.max(found, -most), most)

    return curvature_of_metal
