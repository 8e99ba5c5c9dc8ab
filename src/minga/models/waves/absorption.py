"""What absorbing layers add to a step: damping of all waves in a sponge, memories of derivatives in matched layers.

A matched layer replaces each second derivative along its axis by D2 u + D1 psi + zeta, with the memories

    psi = b psi + a D1 u,    zeta = b zeta + a (D2 u + D1 psi)

which are fields on the layer and the few cells beside it that see psi in it (see
`minga.models.waves.boundary.Cpml`). A step is done as if there were no layer, then each layer adds what its memories
say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.program import Program
from minga.lang.kernel import Kernel
from minga.models.waves.boundary import Cpml, Sponge, layer_boxes
from minga.models.waves.kernels import Equations
from minga.models.waves.stencils import HERE
from minga.space.boundary import fixed
from minga.space.box import Box
from minga.space.field import Field
from minga.space.grid import Grid

if TYPE_CHECKING:
    from minga.models.waves.model import Waves

__all__ = ["Profiles", "record_damping", "record_matching"]

Profiles = dict[Field, NDArray[np.float64]]
"""Fields of one axis, and their values."""
AXES = "zyx"


def record_damping(step: Program, waves: Sequence[Field], sponge: Sponge) -> Profiles:
    """Make the waves at both times smaller in the layers."""
    grid, dtype = waves[0].grid, waves[0].dtype
    profiles = {_profile("sponge", axis, grid, dtype): sponge.factors(n) for axis, n in enumerate(grid.shape)}
    for box in layer_boxes(grid.shape, sponge.cells):
        step.apply(_DAMP, [*waves, *(f.previous for f in waves)], *profiles, region=box)
    return profiles


def _damp(waves: Any, z: Any, y: Any, x: Any) -> None:
    factor = z[0] * y[0] * x[0]
    for u in waves:
        u[HERE] = u[HERE] * factor


_DAMP = Kernel(_damp)


def record_matching(step: Program, waves: Waves, layers: Cpml, frequency: float) -> tuple[tuple[Field, ...], Profiles]:
    """Add what the memories say to the next waves, which a step has stored in the previous slots.

    frequency  of the sources, Hz, where the layers name none. Returns the memories, and the layers' coefficients.
    """
    equations, grid = waves.equations, waves.grid
    chosen = frequency if layers.frequency is None else layers.frequency
    memories: list[Field] = []
    profiles: Profiles = {}
    for axis, (length, spacing) in enumerate(zip(grid.shape, waves.spacing, strict=True)):
        dtype = waves.fields[0].dtype
        a, b = (_profile(f"cpml_{name}", axis, grid, dtype) for name in "ab")
        values = layers.coefficients(length, spacing, waves.extremes.fastest_p, waves.dt, chosen)
        profiles |= dict(zip((a, b), values, strict=True))
        used = _used(equations, axis)
        kernels = _memory_kernels(equations, axis, used)
        for side, box in zip(
            ("low", "high"), _ends(grid, axis, layers.cells + equations.differences.reach), strict=True
        ):
            first, second = (
                [
                    Field(
                        f"{name}_{waves.fields[k].name}_{AXES[axis]}_{side}", grid, dtype, on=box, boundary=fixed(0.0)
                    )
                    for k in used
                ]
                for name in ("psi", "zeta")
            )
            memories += [*first, *second]
            seen = [waves.fields[k] for k in used]
            psi, zeta, correct = kernels
            step.apply(psi, seen, first, a, b)
            step.apply(zeta, seen, first, second, a, b)
            after = [f.previous for f in waves.fields]
            medium = [list(waves.medium)] if waves.medium else []
            step.apply(correct, first, second, after, *medium, region=box)
    return tuple(memories), profiles


def _used(equations: Equations, axis: int) -> tuple[int, ...]:
    """Numbers of the waves whose derivatives along an axis take part."""
    if equations.kind == "isotropic":
        return (0,)
    if equations.sigma is None:
        return (1,) if AXES[axis] == "z" else (0,)
    return (0, 1)


def _memory_kernels(equations: Equations, axis: int, used: Sequence[int]) -> tuple[Kernel, Kernel, Kernel]:
    """The two memories of one layer, and what they add to the next waves."""
    d = equations.differences

    def cpml_psi(waves: Any, psis: Any, a: Any, b: Any) -> None:
        for u, psi in zip(waves, psis, strict=True):
            psi[HERE] = b[0] * psi[HERE] + a[0] * d.d1(u, axis)

    def cpml_zeta(waves: Any, psis: Any, zetas: Any, a: Any, b: Any) -> None:
        for u, psi, zeta in zip(waves, psis, zetas, strict=True):
            zeta[HERE] = b[0] * zeta[HERE] + a[0] * (d.d2(u, axis) + d.d1(psi, axis))

    def correct(psis: Any, zetas: Any, after: Any, medium: Sequence[Any]) -> None:
        c = equations.coefficients(lambda k: medium[k][HERE])
        more: list[Any] = [0.0] * len(equations.waves)
        for k, psi, zeta in zip(used, psis, zetas, strict=True):
            more[k] = d.d1(psi, axis) + zeta[HERE]
        if equations.kind == "isotropic":
            rights: Sequence[Any] = (c.vp2 * more[0],)
        else:
            p, q = ((u, 0.0) if AXES[axis] == "z" else (0.0, u) for u in more)
            rights = equations.right_sides(c, p, q)
        for u, right in zip(after, rights, strict=True):
            u[HERE] = u[HERE] + right

    def cpml_correct(psis: Any, zetas: Any, after: Any, medium: Any) -> None:
        correct(psis, zetas, after, medium)

    def cpml_correct_constant(psis: Any, zetas: Any, after: Any) -> None:
        correct(psis, zetas, after, ())

    return Kernel(cpml_psi), Kernel(cpml_zeta), Kernel(cpml_correct if equations.stored else cpml_correct_constant)


def _ends(grid: Grid, axis: int, cells: int) -> tuple[Box, Box]:
    """So many cells at the low and at the high end of an axis, over all of the others."""
    whole = grid.box
    low, high = list(whole.hi), list(whole.lo)
    low[axis], high[axis] = cells, grid.shape[axis] - cells
    return Box(whole.lo, tuple(low)), Box(tuple(high), whole.hi)


def _profile(name: str, axis: int, grid: Grid, dtype: str) -> Field:
    return Field(f"{name}_{AXES[axis]}", grid, dtype, axes=(axis,))
