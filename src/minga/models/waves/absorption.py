"""Contributions of absorbing layers to a step: damping in a sponge, memory variables in perfectly matched layers.

A matched layer replaces each second derivative along its axis by D2 u + D1 psi + zeta, with the memory variables

    psi = b psi + a D1 u,    zeta = b zeta + a (D2 u + D1 psi)

which are fields on the layer and on the few adjacent cells whose stencils reach psi (see
`minga.models.waves.boundary.Cpml`). A step is computed as if there were no layer; each layer then adds the contribution
of its memory variables.
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
"""Fields on one axis, and their values."""
AXES = "zyx"


def record_damping(step: Program, waves: Sequence[Field], sponge: Sponge) -> Profiles:
    """Record the damping of the waves at both time levels in the layers, and return its coefficients."""
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
    """Record the contributions of the memory variables to the next waves, which a step has put in previous slots.

    Parameters
    ----------
    step
        Program of the time step.
    waves
        Fields and coefficients of the model.
    layers
        Parameters of the layers.
    frequency
        Frequency of the sources, Hz, used if the layers do not name one.

    Returns
    -------
    tuple
        The memory fields, and the coefficients of the layers.
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
    """Return the numbers of the waves whose derivatives along an axis enter the equations."""
    if equations.kind == "isotropic":
        return (0,)
    if equations.sigma is None:
        return (1,) if AXES[axis] == "z" else (0,)
    return (0, 1)


def _memory_kernels(equations: Equations, axis: int, used: Sequence[int]) -> tuple[Kernel, Kernel, Kernel]:
    """Return the kernels of both memory variables of a layer, and of their contribution to the next waves."""
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
    """Return the boxes of the first and last `cells` cells along an axis, over the full extent of the others."""
    whole = grid.box
    low, high = list(whole.hi), list(whole.lo)
    low[axis], high[axis] = cells, grid.shape[axis] - cells
    return Box(whole.lo, tuple(low)), Box(tuple(high), whole.hi)


def _profile(name: str, axis: int, grid: Grid, dtype: str) -> Field:
    return Field(f"{name}_{AXES[axis]}", grid, dtype, axes=(axis,))
