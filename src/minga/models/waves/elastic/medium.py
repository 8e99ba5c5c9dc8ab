"""Isotropic elastic media, and their effective coefficients at the places of the waves.

Densities at velocities are arithmetic means of two cells. Shear moduli at shear stresses are harmonic means of four
cells, 0 where one of them is a fluid, so that fluids may lie beside solids. Source: P. Moczo, J. Kristek, V. Vavrycuk,
R. J. Archuleta, L. Halada, "3D heterogeneous staggered-grid finite-difference modeling of seismic motion with volume
harmonic and arithmetic averaging of elastic moduli and densities", BSSA 92(8), 2002.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.waves.domain import Domain
from minga.models.waves.elastic.layout import Component
from minga.models.waves.medium import HEAVIEST, LIGHTEST, Floats, Quantity, Sampler, check_quantity, sampled_boxes
from minga.space.box import Box

__all__ = ["Coefficients", "ElasticMedium", "Speeds", "speeds_of"]

ENTRIES = ("vp", "vs", "rho")
MOST_SHEAR = 0.75
"""Largest vs2 / vp2: above it the bulk modulus would be negative."""


@dataclass(frozen=True, slots=True, eq=False)
class ElasticMedium:
    """An isotropic elastic medium; each entry is a number, an array of the model's shape, or a function of a Box.

    Parameters
    ----------
    vp
        P velocity, m/s.
    vs
        S velocity, m/s; 0 in fluids.
    rho
        Density, kg/m3.
    """

    vp: Quantity
    vs: Quantity
    rho: Quantity

    @property
    def uniform(self) -> bool:
        """True if each entry is a single number."""
        return all(_single(getattr(self, name)) for name in ENTRIES)

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise CaseError for an entry that is neither a number nor a function nor an array of this shape.

        Parameters
        ----------
        shape
            Cells along each axis.
        """
        for name in ENTRIES:
            check_quantity(getattr(self, name), shape, f"elastic.medium.{name}")


@dataclass(frozen=True, slots=True)
class Speeds:
    """Extreme velocities of a medium, m/s; `slowest_s` is None if all of it is fluid."""

    slowest_p: float
    fastest_p: float
    slowest_s: float | None


def speeds_of(medium: ElasticMedium, shape: tuple[int, ...], *, sample: bool = False) -> Speeds:
    """Return the extreme velocities of a medium; raise CaseError for values that no medium has.

    Parameters
    ----------
    medium
        The medium.
    shape
        Cells along each axis.
    sample
        Whether to inspect a sample only.
    """
    sampler = Sampler(medium, shape, (0,) * len(shape))
    slow, fast, shear = math.inf, 0.0, math.inf
    for box in sampled_boxes(shape, sample) if not medium.uniform else (Box((0,) * len(shape), (1,) * len(shape)),):
        vp, vs, rho = (sampler.values(name, box) for name in ENTRIES)
        _refuse(box, "vp", vp, ~(np.isfinite(vp) & (vp > 0)), "a P velocity", "it is a positive number, in m/s")
        _refuse(
            box,
            "rho",
            rho,
            ~((rho >= LIGHTEST) & (rho <= HEAVIEST)),
            "a density",
            f"it is {LIGHTEST:g} to {HEAVIEST:g} kg/m3",
        )
        _refuse(
            box, "vs", vs, ~(np.isfinite(vs) & (vs >= 0)), "an S velocity", "it is 0 in fluids and positive elsewhere"
        )
        above = np.square(vs) > MOST_SHEAR * np.square(vp)
        most = f"it is at most sqrt(3) / 2 of vp, {float(math.sqrt(MOST_SHEAR) * vp[_first(above)]):.6g} m/s there"
        _refuse(box, "vs", vs, above, "an S velocity beside this P velocity", most)
        slow, fast = min(slow, float(vp.min())), max(fast, float(vp.max()))
        if (vs > 0).any():
            shear = min(shear, float(vs[vs > 0].min()))
    return Speeds(slow, fast, None if math.isinf(shear) else shear)


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """Coefficients of the equations on a grid with layers, by name.

    The names are "lambda" and "mu" (at the cells), "mu_xz" and so on (at shear stresses), and "buoyancy_z" and so on,
    the reciprocal densities at velocities.

    Attributes
    ----------
    medium
        The medium.
    domain
        Domain of the waves.
    components
        Components of the waves by name.
    """

    medium: ElasticMedium
    domain: Domain
    components: dict[str, Component]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all coefficients."""
        return ("lambda", "mu", *(coefficient(c) for c in self.components.values() if not c.normal))

    @property
    def constants(self) -> dict[str, float]:
        """Coefficients that are uniform, judging by the entries of the medium alone."""
        uniform = self.medium.uniform
        first = Box((0,) * len(self.domain.shape), (1,) * len(self.domain.shape))
        alike = [name for name in self.names if uniform or (name[0] == "b" and self.single("rho"))]
        return {name: float(self.values(name, first).flat[0]) for name in alike}

    def values(self, name: str, box: Box) -> Floats:
        """Return a coefficient on a box, f8; cells beyond the grid have the values of the nearest ones.

        Parameters
        ----------
        name
            Its name.
        box
            The box.
        """
        if name in ("lambda", "mu"):
            return self._modulus(name, box)
        offsets = self.offsets(name)
        velocity = name.startswith("buoyancy")
        whole = Box(box.lo, tuple(hi + last for hi, last in zip(box.hi, offsets[-1], strict=True)))
        values = self.entry("rho", whole) if velocity else self._modulus("mu", whole)
        parts = [values[tuple(slice(o, o + n) for o, n in zip(offset, box.shape, strict=True))] for offset in offsets]
        with np.errstate(divide="ignore"):
            if velocity:
                return np.asarray(len(parts) / reduce(np.add, parts))
            return np.asarray(len(parts) / reduce(np.add, [1.0 / part for part in parts]))

    def offsets(self, name: str) -> list[tuple[int, ...]]:
        """Return the cells around its place from whose values a coefficient follows, relative to the cell.

        Parameters
        ----------
        name
            Its name.
        """
        half = next((c.half for c in self.components.values() if not c.normal and coefficient(c) == name), ())
        return list(itertools.product(*((0, 1) if h else (0,) for h in half or [False] * len(self.domain.shape))))

    def single(self, name: str) -> bool:
        """Return True if an entry of the medium is one number.

        Parameters
        ----------
        name
            The entry: "vp", "vs" or "rho".
        """
        return _single(getattr(self.medium, name))

    def _modulus(self, name: str, box: Box) -> Floats:
        mu = self.entry("rho", box) * np.square(self.entry("vs", box))
        return mu if name == "mu" else self.entry("rho", box) * np.square(self.entry("vp", box)) - 2.0 * mu

    def entry(self, name: str, box: Box, axis: int = 0) -> Floats:
        """Return an entry of the medium on a box that may extend beyond the grid, from some axis on.

        Parameters
        ----------
        name
            The entry: "vp", "vs" or "rho".
        box
            The box.
        axis
            Number of the first axis along which the box may extend beyond the ends of a periodic grid.
        """
        if axis == len(box.lo):
            return Sampler(self.medium, self.domain.shape, self.domain.low).values(name, box)
        length = self.domain.cells[axis]
        if not self.domain.periodic[axis] or (box.lo[axis] >= 0 and box.hi[axis] <= length):
            return self.entry(name, box, axis + 1)
        planes = [self.entry(name, _plane(box, axis, k % length), axis + 1) for k in range(box.lo[axis], box.hi[axis])]
        return np.concatenate(planes, axis=axis)


def coefficient(component: Component) -> str:
    """Return the name of the coefficient in the equation of a velocity or a shear stress."""
    letters = component.name[1:]
    return f"buoyancy_{letters}" if component.velocity else f"mu_{letters}"


def _plane(box: Box, axis: int, at: int) -> Box:
    lo, hi = list(box.lo), list(box.hi)
    lo[axis], hi[axis] = at, at + 1
    return Box(tuple(lo), tuple(hi))


def _single(value: Quantity) -> bool:
    return not callable(value) and np.ndim(value) == 0


def _first(bad: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the indices of the first marked cell."""
    return tuple(map(int, np.unravel_index(int(np.argmax(bad)), bad.shape)))


def _refuse(box: Box, name: str, values: Floats, bad: NDArray[np.bool_], what: str, remedy: str) -> None:
    if bad.any():
        at = _first(bad)
        cell = tuple(index + low for index, low in zip(at, box.lo, strict=True))
        raise CaseError(
            f"{name} is {float(values[at]):g} at cell {cell}: not {what}", key=f"elastic.medium.{name}", remedy=remedy
        )
