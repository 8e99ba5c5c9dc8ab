"""Boundaries of the wave model: conditions at its faces, and layers of cells there that suppress reflections.

Layers are added to the requested shape. Beyond the last cell of the grid all waves are 0, unless the face is a free
surface, a rigid wall or periodic. Profiles are rounded to 12 decimals: libraries differ in further bits, and runs must
not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.errors import CaseError
from minga.lang.random import threefry
from minga.models.waves.domain import Domain, axes_of
from minga.models.waves.medium import Floats
from minga.space.box import Box

__all__ = [
    "Boundary",
    "Cpml",
    "Face",
    "Faces",
    "Free",
    "Pairs",
    "Periodic",
    "Random",
    "Release",
    "Rigid",
    "Sponge",
    "depth",
    "domain_of",
    "faces_of",
    "kinds",
    "layer_boxes",
    "scrambled",
]


@dataclass(frozen=True, slots=True)
class Release:
    """No layers: pressure release. Waves are 0 in all cells beyond the end.

    Waves are reflected with the opposite sign, about one cell beyond the end. Differences that reach beyond it lose
    accuracy there; at a `Free` surface they do not.
    """

    cells: ClassVar[int] = 0
    """Number of cells of a layer."""


@dataclass(frozen=True, slots=True)
class Free:
    """Free surface, as that of the sea: the pressure is 0 in the first row of cells, and odd about it.

    For isotropic media and vertical axes of symmetry this is exact to the order of the differences. Sources and
    receivers lie below the surface, where the pressure is not 0.
    """

    cells: ClassVar[int] = 0
    """Number of cells of a layer."""


@dataclass(frozen=True, slots=True)
class Rigid:
    """Rigid wall half a cell beyond the last cell: waves are even about it, and are reflected with their sign."""

    cells: ClassVar[int] = 0
    """Number of cells of a layer."""


@dataclass(frozen=True, slots=True)
class Periodic:
    """Both ends of an axis are joined: what leaves the model at one end enters it at the other."""

    cells: ClassVar[int] = 0
    """Number of cells of a layer."""


@dataclass(frozen=True, slots=True)
class Random:
    """Layers of random velocities, which scatter waves but conserve their energy, so that a run is reversible in time.

    At a distance of d cells from the model the velocity is v (1 - w) + v_max U w, where w = d / cells, v is the
    velocity of the nearest cell of the model, v_max the largest velocity of the model, and U uniform in [0, 1). Source:
    R. G. Clapp, "Reverse time migration with random boundaries", SEG 2009.

    Parameters
    ----------
    cells
        Number of cells of a layer.
    seed
        Seed of U, which depends only on it and on the position of the cell.
    """

    cells: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        _check_cells("random", self.cells)


@dataclass(frozen=True, slots=True)
class Sponge:
    """Layers in which all waves are multiplied by exp(-(strength d / cells)^2) after each step, d cells deep.

    Source: C. Cerjan, D. Kosloff, R. Kosloff, M. Reshef, "A nonreflecting boundary condition for discrete acoustic and
    elastic wave equations", Geophysics 50(4), 1985.

    Parameters
    ----------
    cells
        Cells of the layers.
    strength
        The strength of the damping; None: that with which the fastest waves, straight through a layer and back, are
        multiplied by exp(-0.85 sqrt(cells)) at any time step (`strength_for`).
    """

    cells: int = 40
    strength: float | None = None

    def __post_init__(self) -> None:
        _check_cells("sponge", self.cells)
        if self.strength is not None and not (math.isfinite(self.strength) and self.strength > 0):
            raise CaseError(
                f"the sponge's strength is {self.strength}",
                key="fletcher.boundary.strength",
                remedy="leave it out, or give a positive number",
            )

    def strength_for(self, spacing: float, fastest: float, dt: float) -> float:
        """Return the strength on a grid.

        Where none is given, the damping per unit of time depends on the width of the layer and the largest velocity.
        That is rounded up to one of eight steps in a factor of two: the layers of an inversion stay as they are
        while its velocities change a little.

        Parameters
        ----------
        spacing
            Metres between cells.
        fastest
            The largest velocity, m/s.
        dt
            Seconds of a step.

        Returns
        -------
        float
            The strength.
        """
        if self.strength is not None:
            return self.strength
        share, exponent = math.frexp(fastest)
        speed = math.ldexp(math.ceil(16 * share) / 16, exponent)
        # Through the layer and back waves are multiplied by exp(-2/3 strength^2 cells spacing / (speed dt)).
        return math.sqrt(1.5 * _THROUGH * math.sqrt(self.cells) * speed * dt / (self.cells * spacing))

    def factors(self, away: NDArray[np.int64], spacing: float, fastest: float, dt: float) -> Floats:
        """Return the factors of cells by their depth in the layer.

        Parameters
        ----------
        away
            Depths in cells, 0 outside the layer.
        spacing, fastest, dt
            As for `strength_for`.

        Returns
        -------
        ndarray
            Factors, f8 of the same shape.
        """
        strength = self.strength_for(spacing, fastest, dt)
        return _rounded(portable.exp(-np.square(strength * away / self.cells)))


@dataclass(frozen=True, slots=True)
class Cpml:
    """Perfectly matched layers for media that are isotropic or have a vertical symmetry axis; others as an experiment.

    Source: D. Pasalic, R. McGarry, "Convolutional perfectly matched layer for isotropic and anisotropic acoustic wave
    equations", SEG 2010; parameters by D. Komatitsch, R. Martin, Geophysics 72(5), 2007.

    Parameters
    ----------
    cells
        Number of cells of a layer.
    reflection
        Theoretical reflection coefficient at normal incidence.
    frequency
        Frequency, Hz, at which waves that travel along a layer are damped as well; None: that of the sources.
    experimental
        Whether to allow media in which waves may grow in the layers: tilted axes
        (`minga.models.waves.absorption_tilted`), and delta above epsilon. A run ends when they do
        (`minga.models.waves.watchdog`).
    """

    cells: int = 12
    reflection: float = 1e-5
    frequency: float | None = None
    experimental: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        _check_cells("cpml", self.cells)
        if not 0 < self.reflection < 1:
            raise CaseError(
                f"the reflection of the CPML is {self.reflection}",
                key="fletcher.boundary.reflection",
                remedy="give a number between 0 and 1: 1e-5",
            )
        if not isinstance(self.experimental, bool):
            raise CaseError(
                f"the entry experimental of the CPML is {self.experimental!r}",
                key="fletcher.boundary.experimental",
                remedy="give True or False",
            )

    def coefficients(
        self, away: NDArray[Any], spacing: float, fastest: float, dt: float, frequency: float
    ) -> tuple[Floats, Floats]:
        """Return a and b of cells by their depth: memory = b * memory + a * derivative; a is 0 outside the layer.

        Parameters
        ----------
        away
            Depths in cells, 0 outside the layer; half a cell beyond its last cell they count as its full depth, since
            waves of frequency 0 would grow with a slower decay.
        spacing
            Metres between cells.
        fastest
            The largest velocity, m/s.
        dt
            Seconds of a step.
        frequency
            Frequency, Hz.

        Returns
        -------
        tuple of ndarray
            A and b, f8 of the same shape each.
        """
        width, share = self.cells * spacing, np.minimum(away / self.cells, 1.0)
        damping = -3 * fastest * portable.log(self.reflection) / (2 * width) * (share * share)
        slow = math.pi * frequency * (1 - share)
        b = portable.exp(-(damping + slow) * dt)
        with np.errstate(invalid="ignore"):
            a = np.where(damping > 0, damping / (damping + slow) * (b - 1), 0.0)
        return _rounded(a), _rounded(b)


_THROUGH: Final = 0.85
"""Exponent of the damping by a sponge of one cell; larger values reflect more (docs/decisions/sponges.md)."""

Face = Release | Free | Rigid | Periodic | Random | Sponge | Cpml
"""Boundary of one face of a model."""

Pairs = tuple[tuple[Face, Face], ...]
"""Boundaries of all faces: for each axis those of its low and its high end."""

Entry = Face | tuple[Face, Face] | None


@dataclass(frozen=True, slots=True)
class Faces:
    """A boundary for each face: `Faces(Sponge(), z=(Free(), Sponge()))` is a sea with its surface above.

    Parameters
    ----------
    others
        Boundary of the faces that are not given.
    z, y, x
        Boundary of both ends of an axis, or a pair for its low and its high end; z points down, so that its low end is
        the top of the model.
    """

    others: Face
    z: Entry = None
    y: Entry = None
    x: Entry = None

    def pairs(self, axes: str) -> Pairs:
        """Return the boundaries of the low and the high end of each axis.

        Parameters
        ----------
        axes
            Names of the model's axes.

        Returns
        -------
        tuple of pairs
            One pair for each axis.

        Raises
        ------
        CaseError
            If an axis does not exist, or the boundaries of its ends do not fit together.
        """
        for name in "zyx":
            if name not in axes and getattr(self, name) is not None:
                raise CaseError(
                    f"the boundary names the axis {name}; the model has {', '.join(axes)}",
                    key=f"fletcher.boundary.{name}",
                    remedy="leave it out",
                )
        found = tuple(_pair(getattr(self, name), self.others, name) for name in axes)
        seeds = {face.seed for pair in found for face in pair if isinstance(face, Random)}
        if len(seeds) > 1:
            raise CaseError(
                f"random layers have the seeds {', '.join(map(str, sorted(seeds)))}",
                key="fletcher.boundary.seed",
                remedy="give all faces the same seed",
            )
        return found


Boundary = Face | Faces


def _pair(given: Entry, others: Face, axis: str) -> tuple[Face, Face]:
    pair: Any = others if given is None else given
    if not isinstance(pair, tuple):
        pair = (pair, pair)
    if len(pair) != 2 or not all(isinstance(face, Face) for face in pair):
        raise CaseError(
            f"the boundary along {axis} is {(others if given is None else given)!r}",
            key=f"fletcher.boundary.{axis}",
            remedy=f"give one for both ends, or a pair: {axis}=(Free(), Sponge())",
        )
    low, high = pair
    if isinstance(low, Periodic) != isinstance(high, Periodic):
        raise CaseError(
            f"one end along {axis} is periodic, and the other one is not",
            key=f"fletcher.boundary.{axis}",
            remedy=f"join both ends: {axis}=Periodic()",
        )
    return low, high


def faces_of(boundary: Boundary, ndim: int) -> Pairs:
    """Return the boundaries of all faces of a model with some number of axes."""
    faces = boundary if isinstance(boundary, Faces) else Faces(boundary)
    return faces.pairs(axes_of(ndim))


_Kind = TypeVar("_Kind", Release, Free, Rigid, Periodic, Random, Sponge, Cpml)


def kinds(faces: Pairs, kind: type[_Kind]) -> list[_Kind]:
    """Return the boundaries of one kind, in the order of the faces."""
    return [face for pair in faces for face in pair if isinstance(face, kind)]


_MIRRORS: Final = {Free: -1, Rigid: 1}


def domain_of(shape: tuple[int, ...], spacing: tuple[float, ...], faces: Pairs) -> Domain:
    """Return the domain of a model with some boundaries."""
    low, high = (tuple(pair[end].cells for pair in faces) for end in (0, 1))
    mirrors = tuple((_MIRRORS.get(type(a), 0), _MIRRORS.get(type(b), 0)) for a, b in faces)
    return Domain(shape, spacing, low, high, mirrors, tuple(isinstance(a, Periodic) for a, _ in faces))


def _check_cells(name: str, cells: int) -> None:
    if isinstance(cells, bool) or not isinstance(cells, int) or cells < 1:
        raise CaseError(
            f"the {name} boundary has {cells!r} cells",
            key="fletcher.boundary.cells",
            remedy='give a whole number, 1 or more; boundary = "release" has none',
        )


def _rounded(values: Floats) -> Floats:
    return np.asarray(np.round(values, 12), np.float64)


def depth(index: NDArray[np.int64], length: int, low: int, high: int) -> NDArray[np.int64]:
    """Return the depth of cells of an axis in its layers of `low` and `high` cells: 0 inside, 1 next to the model."""
    return np.maximum(0, np.maximum(low - index, index - (length - 1 - high)))


def layer_boxes(cells: Sequence[int], inside: Box) -> Iterator[Box]:
    """Yield boxes that together cover all cells of a grid outside a box, with each of them in exactly one."""
    yield from Box((0,) * len(cells), tuple(cells)).subtract(inside)


def scrambled(vp: Floats, fastest: float, box: Box, shape: Sequence[int], faces: Pairs) -> Floats:
    """Return the velocities of a box with random layers; `vp` are those of the nearest cells of the model."""
    shares = []
    for pair, lo, hi, n in zip(faces, box.lo, box.hi, shape, strict=True):
        index = np.arange(lo, hi)
        low, high = (face.cells if isinstance(face, Random) else 0 for face in pair)
        shares.append(np.maximum(depth(index, n, low, 0) / max(low, 1), depth(index, n, 0, high) / max(high, 1)))
    weight = np.zeros(box.shape)
    for share in np.ix_(*shares):
        weight = np.maximum(weight, share)
    *outer, row = (np.arange(lo, hi, dtype=np.uint32) for lo, hi in zip(box.lo, box.hi, strict=True))
    number = np.zeros((1,) * len(shape), np.uint32)
    for axis, places in enumerate(outer):
        number = number * np.uint32(shape[axis]) + places.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    given = kinds(faces, Random)[0].seed
    seed = (given & 0xFFFFFFFF, given >> 32 & 0xFFFFFFFF)
    key = (np.full(1, seed[0], np.uint32), np.full(1, seed[1], np.uint32))
    counter = (np.broadcast_to(row, box.shape).copy(), np.broadcast_to(number, box.shape).copy())
    uniform = threefry(key, counter)[0] * 2.0**-32
    return np.where(weight > 0, vp * (1 - weight) + fastest * uniform * weight, vp)
