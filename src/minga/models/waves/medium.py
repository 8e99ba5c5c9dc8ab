"""Medium: vertical P velocity, Thomsen's parameters, the direction of the symmetry axis, and density."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.errors import CaseError
from minga.space.box import Box

__all__ = ["Medium", "Quantity", "Sampler", "axis_component", "check_quantity", "sampled_boxes", "slabs"]

Quantity = float | NDArray[Any] | Callable[[Box], NDArray[Any]]
"""A number, an array of the shape of the model, or a function that returns the values of a Box of the model."""

Floats = NDArray[np.float64]

LIGHTEST, HEAVIEST = 1e-20, 1e20
"""Bounds of densities, kg/m3, within which their products with squares of velocities and their reciprocals are f4."""
_SLAB: Final = 1 << 21
"""Number of cells that are inspected together."""
_BLOCK, _BLOCKS = 16, 8
"""Size of a sample: cells of a block along each axis, and number of blocks along each axis."""


@dataclass(frozen=True, slots=True, eq=False)
class Medium:
    """A tilted transversely isotropic medium; each entry is a number, an array, or a function of a Box.

    Arrays and boxes have the axes of the model: (z, y, x), (z, x) or (z,).

    Source: L. Thomsen, "Weak elastic anisotropy", Geophysics 51(10), 1986.

    Parameters
    ----------
    vp
        P velocity along the symmetry axis, m/s.
    epsilon
        Thomsen's epsilon: P waves across the axis are faster by about this fraction.
    delta
        Thomsen's delta.
    theta
        Angle of the axis from the vertical, radians; on the axes (z, x) from z towards x.
    phi
        Azimuth of the axis from x towards y, radians; 0 unless the model has an axis y.
    rho
        Density, kg/m3. A number has no effect: only ratios of densities matter. Others need an isotropic medium.
    """

    vp: Quantity
    epsilon: Quantity = 0.0
    delta: Quantity = 0.0
    theta: Quantity = 0.0
    phi: Quantity = 0.0
    rho: Quantity = 1000.0

    @property
    def isotropic(self) -> bool:
        """True if epsilon and delta are 0 everywhere, judging by the entries alone."""
        return _is_number(self.epsilon, 0.0) and _is_number(self.delta, 0.0)

    @property
    def vertical(self) -> bool:
        """True if the axis is vertical everywhere, judging by the entries alone."""
        return _is_number(self.theta, 0.0)

    @property
    def has_density(self) -> bool:
        """True if the density is not a single number."""
        return callable(self.rho) or np.ndim(self.rho) > 0

    @property
    def uniform(self) -> bool:
        """True if each entry is a single number."""
        entries = (getattr(self, entry.name) for entry in fields(self))
        return all(not callable(given) and np.ndim(given) == 0 for given in entries)

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise CaseError for an entry that is neither a number nor a function nor an array of this shape.

        Parameters
        ----------
        shape
            Cells along each axis.
        """
        for entry in fields(self):
            check_quantity(getattr(self, entry.name), shape, f"fletcher.medium.{entry.name}")
        if len(shape) < 3 and not _is_number(self.phi, 0.0):
            raise CaseError(
                "phi turns the axis of symmetry towards y, an axis that the model lacks",
                key="fletcher.medium.phi",
                remedy="leave phi out; theta is the angle from z towards x",
            )
        if len(shape) == 1 and not self.isotropic:
            raise CaseError(
                "waves on one axis are isotropic: they run along z alone",
                key="fletcher.medium.epsilon",
                remedy="leave epsilon, delta and theta out",
            )
        if self.has_density and not self.isotropic:
            raise CaseError(
                "a density that varies in an anisotropic medium",
                key="fletcher.medium.rho",
                remedy="leave out rho, or epsilon and delta; of a file with all of them, name some quantities",
            )


@dataclass(frozen=True, slots=True, eq=False)
class Sampler:
    """Values of a medium on a larger grid, where each outer cell has the value of the nearest cell of the medium.

    Attributes
    ----------
    medium
        The medium: an object whose attributes are Quantities.
    shape
        Shape of the medium.
    layers
        Cells that the grid has in addition before the first cell of each axis.
    """

    medium: Any
    shape: tuple[int, ...]
    layers: tuple[int, ...]

    def values(self, name: str, box: Box) -> Floats:
        """Return an entry of the medium on a box of the grid, f8."""
        given = getattr(self.medium, name)
        if not callable(given) and np.ndim(given) == 0:
            return np.full(box.shape, float(given))
        picks = [
            np.clip(np.arange(lo, hi) - layer, 0, n - 1)
            for lo, hi, layer, n in zip(box.lo, box.hi, self.layers, self.shape, strict=True)
        ]
        inside = Box(tuple(int(p[0]) for p in picks), tuple(int(p[-1]) + 1 for p in picks))
        result = given(inside) if callable(given) else _array(given)[inside.slices((0,) * len(self.shape))]
        part = _array(result)
        if part.shape != inside.shape or part.dtype.kind not in "fiu":
            raise CaseError(
                f"the function for {name} returns an array of {_said(result, part)} for a box of shape {inside.shape}",
                key=f"fletcher.medium.{name}",
                remedy="return one number for each cell of the box: box.lo is its first cell, box.hi one past its last",
            )
        at = np.ix_(*(p - lo for p, lo in zip(picks, inside.lo, strict=True)))
        return np.asarray(part[at], np.float64)

    def number(self, name: str) -> float | None:
        """Return an entry that is a single number; None for others."""
        given = getattr(self.medium, name)
        return None if callable(given) or np.ndim(given) else float(given)


def check_quantity(value: Quantity, shape: tuple[int, ...], key: str) -> None:
    """Raise CaseError for an entry of a medium that is neither a number nor a function nor an array.

    Parameters
    ----------
    value
        The entry.
    shape
        Shape of the model.
    key
        Key of the entry in a case, which ends with its name.
    """
    found = np.zeros(()) if callable(value) else _array(value)
    if found.dtype.kind not in "fiu" or found.shape not in ((), shape):
        raise CaseError(
            f"{key.rpartition('.')[2]} is an array of {_said(value, found)}; the model has shape {shape}",
            key=key,
            remedy="give a number, an array of one number a cell, or a function of a Box",
        )


def _array(given: Any) -> NDArray[Any]:
    """Return an array: of objects for rows of different lengths, and for values some of which are masked."""
    try:
        return np.asarray(given, object if np.ma.is_masked(given) else None)
    except ValueError:
        return np.asarray(given, object)


def _said(given: Any, found: NDArray[Any]) -> str:
    return f"{'masked values' if np.ma.is_masked(given) else found.dtype} and shape {found.shape}"


def slabs(shape: tuple[int, ...]) -> Iterator[Box]:
    """Yield boxes of whole planes that cover a grid, each small enough to be inspected at once."""
    planes = max(1, _SLAB // math.prod(shape[1:]))
    for first in range(0, shape[0], planes):
        yield Box((first, *(0 for _ in shape[1:])), (min(first + planes, shape[0]), *shape[1:]))


def blocks(shape: tuple[int, ...], least: int) -> Iterator[Box]:
    """Yield boxes that cover a grid, each small enough to be inspected at once.

    Those that are cut have `least` cells or more along each axis, but for the last ones: with cells read around them,
    few are read repeatedly.
    """
    sizes = list(shape)
    for axis, n in enumerate(shape):
        others = math.prod(sizes) // n
        sizes[axis] = min(n, max(least, _SLAB // others))
    for low in itertools.product(*(range(0, n, size) for n, size in zip(shape, sizes, strict=True))):
        yield Box(low, tuple(min(a + size, n) for a, size, n in zip(low, sizes, shape, strict=True)))


def sampled_boxes(shape: tuple[int, ...], sample: bool, least: int = 1) -> list[Box] | Iterator[Box]:
    """Return the boxes of a grid in which a medium is inspected: all of it, or a `sample` of bounded size.

    Boxes around which cells are read have `least` cells or more along each axis, see `blocks`.

    The sample of a large grid consists of blocks in rows and columns, including those at its corners.
    """
    if not sample or math.prod(shape) <= _BLOCKS ** len(shape) * _BLOCK ** len(shape):
        return slabs(shape) if least == 1 else blocks(shape, least)
    ends = [sorted({(n - min(n, _BLOCK)) * k // (_BLOCKS - 1) for k in range(_BLOCKS)}) for n in shape]
    lows = itertools.product(*ends)
    return [Box(low, tuple(min(a + _BLOCK, n) for a, n in zip(low, shape, strict=True))) for low in lows]


def axis_component(axis: str, theta: Any, phi: Any) -> Any:
    """Return the component of the unit vector of the symmetry axis along z, y or x."""
    return cosine(theta) if axis == "z" else sine(theta) * (sine(phi) if axis == "y" else cosine(phi))


def sine(angle: Any) -> Any:
    """Return sin rounded to 12 decimals."""
    return _rounded(portable.sin, angle)


def cosine(angle: Any) -> Any:
    """Return cos rounded to 12 decimals."""
    return _rounded(portable.cos, angle)


def _rounded(function: Callable[[Any], Any], angle: Any) -> Any:
    return round(function(float(angle)), 12) if np.ndim(angle) == 0 else np.round(function(angle), 12)


def _is_number(value: Quantity, number: float) -> bool:
    return not callable(value) and np.ndim(value) == 0 and float(np.asarray(value)) == number
