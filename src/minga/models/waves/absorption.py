"""Contributions of perfectly matched layers to a step, by memory variables.

A matched layer replaces each second derivative along its axis by D2 u + D1 psi + zeta, with the memory variables

    psi = b psi + a D1 u,    zeta = b zeta + a (D2 u + D1 psi)

which are fields on the layer and on the few adjacent cells whose stencils reach psi (see
`minga.models.waves.boundary.Cpml`). A step is computed as if there were no layer; each layer then adds the contribution
of its memory variables.

A step of fourth order applies the operator twice (`minga.models.waves.injection`). The second application has memory
variables of its own, for which u is the increment w of the first. Layers are thus an operator A(z) of the waves'
spectrum in time, z = exp(i omega dt), and a step is (z - 2 + 1 / z) u = A(z) u + A(z)^2 u / 12: a solution that a layer
does not reflect in a step of second order is one of fourth order too, at another frequency.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.program import Program
from minga.lang.expr import flushed
from minga.lang.kernel import Kernel
from minga.models.waves.boundary import Cpml, Face, depth
from minga.models.waves.kernels import Equations, Z, times
from minga.space.boundary import fixed
from minga.space.box import Box
from minga.space.field import Field, Slot
from minga.space.grid import Grid

if TYPE_CHECKING:
    from minga.models.waves.elastic.waves import ElasticWaves
    from minga.models.waves.waves import Waves

__all__ = [
    "MatchedLayer",
    "Profiles",
    "Stretched",
    "add_profiles",
    "depths",
    "layer_ends",
    "layer_profiles",
    "matched_layers",
    "memory_kernels",
    "profile_field",
    "record_matching",
]

Profiles = dict[Field, NDArray[np.float64]]
"""Fields on one axis, and their values."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretched:
    """An operator whose derivatives matched layers replace.

    Parameters
    ----------
    seen
        What it is applied to: the waves, or increments.
    targets
        What the contributions of the layers are added to.
    factor
        Factor of the contributions.
    """

    seen: Sequence[Field]
    targets: Sequence[Field | Slot]
    factor: float = 1.0


def depths(pair: tuple[Face, Face], length: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the depths of the cells of an axis in its layers at the low and at the high end."""
    index = np.arange(length)
    return depth(index, length, pair[0].cells, 0), depth(index, length, 0, pair[1].cells)


def record_matching(
    step: Program, waves: Waves, frequency: float, stretched: Stretched, profiles: Profiles
) -> tuple[Field, ...]:
    """Record the contributions of the memory variables to the next waves; return the memory fields.

    Parameters
    ----------
    step
        Program of the time step.
    waves
        Fields and coefficients of the model.
    frequency
        Frequency of the sources, Hz, used by layers that do not name one.
    stretched
        What the layers see, and what their contributions are added to.
    profiles
        Coefficients of the layers, to which those that it lacks are added.

    Returns
    -------
    tuple of Field
        The memory fields.
    """
    equations = waves.equations
    memories: list[Field] = []
    for layer in matched_layers(waves, equations.differences.reach):
        axis, used = layer.axis, _used(equations, layer.axis)
        seen = [stretched.seen[k] for k in used]
        a, b = layer_profiles(waves, axis, frequency, profiles)
        first, second = (layer.memories(name, seen) for name in ("psi", "zeta"))
        memories += [*first, *second]
        psi, zeta = memory_kernels(equations, axis)
        step.apply(psi, seen, first, a, b)
        step.apply(zeta, seen, first, second, a, b)
        medium = [list(waves.medium)] if waves.medium else []
        correct = _correction_kernel(equations, axis, used, stretched.factor)
        step.apply(correct, first, second, list(stretched.targets), *medium, region=layer.box)
    return tuple(memories)


@dataclass(frozen=True, slots=True, eq=False)
class MatchedLayer:
    """A matched layer, with the cells beside it that its memory variables reach.

    Parameters
    ----------
    waves
        The waves.
    axis, end
        Axis of the layer, and 0 or 1 for its low or high end.
    face
        The boundary.
    box
        Cells of the memory variables.
    """

    waves: Waves | ElasticWaves
    axis: int
    end: int
    face: Cpml
    box: Box

    @property
    def name(self) -> str:
        """Name of the end."""
        return f"{self.waves.grid.axes[self.axis]}_{('low', 'high')[self.end]}"

    def memories(self, name: str, seen: Sequence[Field]) -> list[Field]:
        """Return fields of memory variables, one for each of the waves that a layer sees."""
        return [Field(f"{name}_{u.name}_{self.name}", u.grid, u.dtype, on=self.box, boundary=fixed(0.0)) for u in seen]

    def profiles(self, fastest: float, frequency: float, *, half: bool) -> Profiles:
        """Return the coefficients a and b of staggered differences, as fields with their values.

        Parameters
        ----------
        fastest
            The largest velocity, m/s.
        frequency
            Frequency of the sources, Hz, used by a layer that does not name one.
        half
            Whether the coefficients are those half a cell above the cells; otherwise those at the cells.
        """
        grid, face = self.waves.grid, self.face
        length = grid.shape[self.axis]
        places = np.arange(length) + (0.5 if half else 0.0)
        away: Any = np.maximum(0.0, places - (length - 1 - face.cells) if self.end else face.cells - places)
        chosen = frequency if face.frequency is None else face.frequency
        found = face.coefficients(away, self.waves.domain.spacing[self.axis], fastest, self.waves.dt, chosen)
        name = f"{self.name}_{'half' if half else 'cell'}"
        return {
            Field(f"cpml_{letter}_{name}", grid, self.waves.fields[0].dtype, axes=(self.axis,)): each
            for letter, each in zip("ab", found, strict=True)
        }


def matched_layers(waves: Waves | ElasticWaves, low: int, high: int | None = None) -> Iterator[MatchedLayer]:
    """Yield the matched layers of waves, axis by axis.

    Parameters
    ----------
    waves
        The waves.
    low, high
        Cells of the model that belong to a layer at the low and at the high end of an axis; None: as many at both.
    """
    beside = (low, low if high is None else high)
    for axis, pair in enumerate(waves.faces):
        boxes = layer_ends(waves.grid, axis, [face.cells + more for face, more in zip(pair, beside, strict=True)])
        for end, (face, box) in enumerate(zip(pair, boxes, strict=True)):
            if isinstance(face, Cpml):
                yield MatchedLayer(waves, axis, end, face, box)


def layer_profiles(waves: Waves, axis: int, frequency: float, profiles: Profiles) -> tuple[Field, Field]:
    """Return the fields of the coefficients a and b of the matched layers of an axis; add them if they are not known.

    Parameters
    ----------
    waves
        The waves.
    axis
        Axis of the layers.
    frequency
        Frequency of the sources, Hz, used by layers that do not name one.
    profiles
        The coefficients known so far, with their values.
    """
    grid, dtype = waves.grid, waves.fields[0].dtype
    values = _matching(waves, waves.faces[axis], grid.shape[axis], waves.spacing[axis], frequency)
    fields = (profile_field(f"cpml_{name}", axis, grid, dtype) for name in "ab")
    a, b = add_profiles(dict(zip(fields, values, strict=True)), profiles)
    return a, b


def add_profiles(more: Profiles, profiles: Profiles) -> list[Field]:
    """Add coefficients to the known ones, except those whose names are known; return the known fields of all names."""
    known = {field.name: field for field in profiles}
    for field, values in more.items():
        if field.name not in known:
            profiles[field] = values
    return [known.get(field.name, field) for field in more]


def _matching(
    waves: Waves, pair: tuple[Face, Face], length: int, spacing: float, frequency: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the coefficients a and b of all cells of an axis, in its matched layers at either end."""
    a, b = np.zeros(length), np.zeros(length)
    for face, away in zip(pair, depths(pair, length), strict=True):
        if isinstance(face, Cpml):
            chosen = frequency if face.frequency is None else face.frequency
            own_a, own_b = face.coefficients(away, spacing, waves.extremes.fastest_p, waves.dt, chosen)
            a, b = np.where(away > 0, own_a, a), np.where((away > 0) | (b == 0), own_b, b)
    return a, b


def _used(equations: Equations, axis: int) -> tuple[int, ...]:
    """Return the numbers of the waves whose derivatives along an axis enter the equations."""
    if equations.kind == "isotropic":
        return (0,)
    if equations.sigma is None:
        return (1,) if axis == Z else (0,)
    return (0, 1)


def memory_kernels(equations: Equations, axis: int) -> tuple[Kernel, Kernel]:
    """Return the kernels of both memory variables of a layer: those of the waves, of each one that the layer sees."""
    d, here = equations.differences, equations.differences.here

    def cpml_psi(waves: Any, psis: Any, a: Any, b: Any) -> None:
        for u, psi in zip(waves, psis, strict=True):
            psi[here] = flushed(b[0] * psi[here] + a[0] * d.d1(u, axis))

    def cpml_zeta(waves: Any, psis: Any, zetas: Any, a: Any, b: Any) -> None:
        for u, psi, zeta in zip(waves, psis, zetas, strict=True):
            zeta[here] = flushed(b[0] * zeta[here] + a[0] * (d.d2(u, axis) + d.d1(psi, axis)))

    return Kernel(cpml_psi), Kernel(cpml_zeta)


def _correction_kernel(equations: Equations, axis: int, used: Sequence[int], factor: float) -> Kernel:
    """Return the kernel of what the memory variables of a layer contribute to the next waves."""
    d, here = equations.differences, equations.differences.here

    def correct(psis: Any, zetas: Any, after: Any, medium: Sequence[Any]) -> None:
        c = equations.coefficients(lambda k: medium[k][here])
        more: list[Any] = [0.0] * len(equations.waves)
        for k, psi, zeta in zip(used, psis, zetas, strict=True):
            more[k] = d.d1(psi, axis) + zeta[here]
        if equations.kind == "isotropic":
            rights: Sequence[Any] = (c.vp2 * more[0],)
        else:
            p, q = ((u, 0.0) if axis == Z else (0.0, u) for u in more)
            rights = equations.right_sides(c, p, q)
        for u, right in zip(after, rights, strict=True):
            u[here] = u[here] + times(factor, right)

    def cpml_correct(psis: Any, zetas: Any, after: Any, medium: Any) -> None:
        correct(psis, zetas, after, medium)

    def cpml_correct_constant(psis: Any, zetas: Any, after: Any) -> None:
        correct(psis, zetas, after, ())

    return Kernel(cpml_correct if equations.stored else cpml_correct_constant)


def layer_ends(grid: Grid, axis: int, cells: Sequence[int]) -> tuple[Box, Box]:
    """Return the boxes of the first and last cells along an axis, so many each, over the full extent of the others."""
    whole = grid.box
    low, high = list(whole.hi), list(whole.lo)
    low[axis], high[axis] = cells[0], grid.shape[axis] - cells[1]
    return Box(whole.lo, tuple(low)), Box(tuple(high), whole.hi)


def profile_field(name: str, axis: int, grid: Grid, dtype: str) -> Field:
    """Return the field of a coefficient that varies along one axis."""
    return Field(f"{name}_{grid.axes[axis]}", grid, dtype, axes=(axis,))
