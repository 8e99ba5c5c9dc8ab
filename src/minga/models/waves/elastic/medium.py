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
from minga.models.waves.attenuation import Attenuation
from minga.models.waves.domain import Domain
from minga.models.waves.elastic.layout import Component, components
from minga.models.waves.elastic.relaxation import ElasticRelaxation, refuse_gain
from minga.models.waves.medium import HEAVIEST, LIGHTEST, Floats, Quantity, Sampler, check_quantity, sampled_boxes
from minga.space.box import Box

__all__ = ["Coefficients", "ElasticMedium", "Speeds", "coefficients_of", "speeds_of"]

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


def speeds_of(
    medium: ElasticMedium,
    shape: tuple[int, ...],
    *,
    sample: bool = False,
    attenuation: Attenuation | None = None,
) -> Speeds:
    """Return the extreme velocities of a medium; raise CaseError for values that no medium has.

    Parameters
    ----------
    medium
        The medium.
    shape
        Cells along each axis.
    sample
        Whether to inspect a sample only.
    attenuation
        Attenuation whose Q of P and S waves, if both are given, must go together with the velocities.
    """
    sampler = Sampler(medium, shape, (0,) * len(shape))
    slow, fast, shear = math.inf, 0.0, math.inf
    uniform = medium.uniform and (attenuation is None or ElasticRelaxation(attenuation).uniform)
    for box in sampled_boxes(shape, sample) if not uniform else (Box((0,) * len(shape), (1,) * len(shape)),):
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
        if attenuation is not None:
            quality = Sampler(attenuation, shape, (0,) * len(shape))
            refuse_gain(box, vp, vs, *(attenuation.checked(quality.values(name, box)) for name in ("q", "shear")))
        slow, fast = min(slow, float(vp.min())), max(fast, float(vp.max()))
        if (vs > 0).any():
            shear = min(shear, float(vs[vs > 0].min()))
    return Speeds(slow, fast, None if math.isinf(shear) else shear)


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """Coefficients of the equations on a grid with layers, by name.

    The names are "lambda" and "mu" (at the cells), "mu_xz" and so on (at shear stresses), and "buoyancy_z" and so on,
    the reciprocal densities at velocities. With attenuation there are ratios of S waves, "tau" and "tau_xz" and so on,
    and "tau_p" if P waves have their own.

    Attributes
    ----------
    medium
        The medium.
    domain
        Domain of the waves.
    components
        Components of the waves by name.
    relaxation
        Relaxation of the moduli; None: none.
    """

    medium: ElasticMedium
    domain: Domain
    components: dict[str, Component]
    relaxation: ElasticRelaxation | None = None

    @property
    def uniform(self) -> bool:
        """True if the medium and its attenuation are the same everywhere."""
        return self.medium.uniform and (self.relaxation is None or self.relaxation.uniform)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all coefficients."""
        shears = [c.name[1:] for c in self.components.values() if c.kind == "shear"]
        relaxing = () if self.relaxation is None else ("tau", *(f"tau_{each}" for each in shears))
        own = ("tau_p",) if self.relaxation is not None and self.relaxation.several else ()
        return ("lambda", "mu", *(coefficient(c) for c in self.components.values() if not c.normal), *relaxing, *own)

    @property
    def constants(self) -> dict[str, float]:
        """Coefficients that are uniform, judging by the entries of the medium alone."""
        alike = {"b": self.single("rho"), "t": self.relaxation is not None and self.relaxation.uniform}
        first = Box((0,) * len(self.domain.shape), (1,) * len(self.domain.shape))
        names = [name for name in self.names if alike.get(name[0], self.uniform)]
        return {name: float(self.values(name, first).flat[0]) for name in names}

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
        if name in ("tau", "tau_p"):
            return self._ratio("q" if name == "tau_p" else "shear", box)
        offsets = self.offsets(name)
        velocity = name.startswith("buoyancy")
        whole = Box(box.lo, tuple(hi + last for hi, last in zip(box.hi, offsets[-1], strict=True)))
        relaxing = name.startswith("tau")
        values = (
            self._ratio("shear", whole)
            if relaxing
            else self.entry("rho", whole)
            if velocity
            else self._modulus("mu", whole)
        )
        parts = [values[tuple(slice(o, o + n) for o, n in zip(offset, box.shape, strict=True))] for offset in offsets]
        if relaxing:
            return np.asarray(reduce(np.add, parts) / len(parts))
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
        like = name.replace("tau_", "mu_")
        half = next((c.half for c in self.components.values() if not c.normal and coefficient(c) == like), ())
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
        mu = self.entry("rho", box) * np.square(self.entry("vs", box)) * self.factor("shear", box)
        if name == "mu":
            return mu
        return self.entry("rho", box) * np.square(self.entry("vp", box)) * self.factor("q", box) - 2.0 * mu

    def factor(self, name: str, box: Box) -> Floats | float:
        """Return the modulus of a step divided by the one of the medium; 1 without attenuation.

        Parameters
        ----------
        name
            The quality factor: "q" of P waves, "shear" of S waves.
        box
            The box.
        """
        return 1.0 if self.relaxation is None else self.relaxation.factor(self.entry(name, box))

    def _ratio(self, name: str, box: Box) -> Floats:
        assert self.relaxation is not None
        return self.relaxation.ratio(self.entry(name, box))

    def entry(self, name: str, box: Box, axis: int = 0) -> Floats:
        """Return an entry of the medium on a box that may extend beyond the grid, from some axis on.

        Parameters
        ----------
        name
            The entry: "vp", "vs" or "rho"; "q" or "shear" of the attenuation.
        box
            The box.
        axis
            Number of the first axis along which the box may extend beyond the ends of a periodic grid.
        """
        if axis == len(box.lo):
            given = self.medium if name in ENTRIES or self.relaxation is None else self.relaxation.attenuation
            return Sampler(given, self.domain.shape, self.domain.low).values(name, box)
        length = self.domain.cells[axis]
        if not self.domain.periodic[axis] or (box.lo[axis] >= 0 and box.hi[axis] <= length):
            return self.entry(name, box, axis + 1)
        planes = [self.entry(name, _plane(box, axis, k % length), axis + 1) for k in range(box.lo[axis], box.hi[axis])]
        return np.concatenate(planes, axis=axis)


def coefficients_of(
    medium: ElasticMedium, domain: Domain, attenuation: Attenuation | None, dt: float = 0.0
) -> Coefficients:
    """Return the coefficients of a step of dt, or the unrelaxed ones, which limit it."""
    relaxation = None if attenuation is None else ElasticRelaxation(attenuation, dt)
    return Coefficients(medium, domain, components(domain.axes), relaxation)


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
