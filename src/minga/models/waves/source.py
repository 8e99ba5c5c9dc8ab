"""Sources: wavelets, positions, and their addition to the waves in a step.

A physical source s is the right side of p_tt / vp^2 - ... = s(t) delta(x - x0), of p and of q: waves do not depend on
dt or on the cells (`minga.models.waves.injection`).

A legacy source is that of Fletcher's codes: before step number k (from 0) the value of the wavelet at k dt is added to
p and q of the source's cells, without any factor of dt or of the volume. In terms of the equations this is a force
(h^3 / dt^2) s(t + dt) / vp^2 at a point, so amplitudes are comparable at equal dt, cells and velocity only.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.compile.explain import Kernel
from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang.expr import as_node, cast, where
from minga.lang.functions import index, lookup
from minga.lang.math import exp
from minga.models.waves.domain import Domain, is_number
from minga.models.waves.interpolation import Interpolation, Placed, place
from minga.space.box import Box
from minga.space.field import STEP, Field, Register, Slot
from minga.space.region import Region

__all__ = [
    "Injection",
    "PlaneSource",
    "PointSource",
    "Ricker",
    "Source",
    "Wavelet",
    "add_amount",
    "add_at",
    "add_sources",
    "plane_axis",
]

Injection = Literal["physical", "legacy"]
INJECTIONS: Final = get_args(Injection)


@dataclass(frozen=True, slots=True)
class Ricker:
    """Ricker wavelet, (1 - 2 e) exp(-e) with e = (pi frequency (t - delay))^2.

    Parameters
    ----------
    frequency
        Peak frequency of the spectrum, Hz; the highest significant frequency is three times as high.
    delay
        Time of the largest value, s; None: 2 sqrt(pi) / (3 frequency), so that the wavelet is below 1e-5 before 0.
    amplitude
        Largest value.
    """

    frequency: float = 40 / 3
    delay: float | None = None
    amplitude: float = 1.0

    def __post_init__(self) -> None:
        if not (is_number(self.frequency) and math.isfinite(self.frequency) and self.frequency > 0):
            raise CaseError(
                f"the frequency is {self.frequency!r}", key="fletcher.source.frequency", remedy="give a number of Hz"
            )
        for name, value in (("delay", 0.0 if self.delay is None else self.delay), ("amplitude", self.amplitude)):
            if not (is_number(value) and math.isfinite(value)):
                raise CaseError(
                    f"the {name} is {value!r}", key=f"fletcher.source.{name}", remedy="give a finite number"
                )

    @property
    def starts(self) -> float:
        """Delay in seconds."""
        return 2 * math.sqrt(math.pi) / (3 * self.frequency) if self.delay is None else self.delay

    @property
    def peak(self) -> float:
        """Peak frequency of the spectrum, Hz."""
        return self.frequency

    @property
    def highest(self) -> float:
        """Highest significant frequency, Hz."""
        return 3 * self.frequency

    def at(self, time: Any) -> Any:
        """Return the values at times in seconds, computed by NumPy.

        Parameters
        ----------
        time
            Times in seconds.

        Returns
        -------
        ndarray
            Values.
        """
        e = np.square(math.pi * self.frequency * (np.asarray(time) - self.starts))
        return self.amplitude * (1 - 2 * e) * portable.exp(-e)

    def value(self, dt: float, later: int = 0) -> Any:
        """Return the value at the present step or some steps later, an expression of registers.

        Parameters
        ----------
        dt
            Seconds of a step.
        later
            Number of steps.

        Returns
        -------
        Node
            The value.
        """
        late = cast(_step(later), "f8") * dt - self.starts
        e = late * late * (math.pi * self.frequency * (math.pi * self.frequency))
        return (1.0 - 2.0 * e) * exp(-e) * self.amplitude


@dataclass(frozen=True, slots=True, eq=False)
class Wavelet:
    """Samples, one for each step from the first; 0 after the last.

    Parameters
    ----------
    samples
        Values, or a file of them: .npy, or text with a number per line.
    frequency
        Peak frequency of the spectrum, Hz, for notes about wavelengths; None: unknown.

    Attributes
    ----------
    values
        The samples as an array.
    """

    samples: Sequence[float] | NDArray[Any] | str | Path
    frequency: float | None = None
    values: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        given = self.samples
        try:
            values = _read(Path(given)) if isinstance(given, str | Path) else np.asarray(given, np.float64)
        except (TypeError, ValueError):
            values = np.zeros(0)
        if values.ndim != 1 or not values.size or not np.isfinite(values).all():
            raise CaseError(
                f"the wavelet has shape {values.shape}"
                if values.ndim != 1 or not values.size
                else "the wavelet has a value that is not finite",
                key="fletcher.source.wavelet",
                remedy="give one finite number for each step",
            )
        object.__setattr__(self, "values", values)

    @property
    def peak(self) -> float | None:
        """Peak frequency of the spectrum, Hz; None: unknown."""
        return self.frequency

    @property
    def highest(self) -> float | None:
        """Highest significant frequency, Hz; None: unknown."""
        return None if self.frequency is None else 3 * self.frequency

    def value(self, dt: float, later: int = 0) -> Any:
        """Return the value at the present step or some steps later, an expression of registers.

        Parameters
        ----------
        dt
            Seconds of a step.
        later
            Number of steps.

        Returns
        -------
        Node
            The value; 0 before the first sample and after the last.
        """
        step = _step(later)
        inside = step < len(self.values) if later >= 0 else (step >= 0) & (step < len(self.values))
        return where(inside, lookup(self.values, step), 0.0)


def _step(later: int) -> Any:
    """Return the number of the step, or of one some steps later."""
    return cast(as_node(STEP), "i8") + later if later else as_node(STEP)


def _read(path: Path) -> NDArray[np.float64]:
    try:
        values = np.load(path) if path.suffix == ".npy" else np.loadtxt(path, ndmin=1)
        return np.asarray(values, np.float64)
    except (OSError, ValueError) as error:
        raise CaseError(
            f"cannot read the wavelet {path.name}: {error}",
            key="fletcher.source.wavelet",
            where=str(path),
            remedy="give a .npy file, or text with a number per line",
        ) from error


@dataclass(frozen=True, slots=True)
class PointSource:
    """A source at a point.

    Parameters
    ----------
    position
        Position along each axis, (z, y, x) or (z, x), in m from the first cell of the model (cell i lies at i *
        spacing); None: the middle.
    wavelet
        Signal that is added.
    interpolation
        Interpolation for a point between cells: "sinc" (see `minga.models.waves.interpolation`) or "linear".
    injection
        "physical" or "legacy": the meaning of the wavelet's amplitude (see this module).
    """

    position: tuple[float, ...] | None = None
    wavelet: Ricker | Wavelet = field(default_factory=Ricker)
    interpolation: Interpolation = "sinc"
    injection: Injection = "physical"

    def __post_init__(self) -> None:
        _check_injection(self.injection)


@dataclass(frozen=True, slots=True)
class PlaneSource:
    """A source on a plane of cells that extends from end to end of the grid.

    Parameters
    ----------
    axis
        Axis normal to the plane.
    position
        Position along that axis in m from the first cell of the model; the nearest plane of cells is used.
    wavelet
        Signal that is added.
    injection
        "physical" or "legacy": the meaning of the wavelet's amplitude; a physical source is s(t) delta(z - z0)
        for a plane normal to z.
    """

    axis: Literal["z", "y", "x"]
    position: float
    wavelet: Ricker | Wavelet = field(default_factory=Ricker)
    injection: Injection = "physical"

    def __post_init__(self) -> None:
        _check_injection(self.injection)


def _check_injection(injection: object) -> None:
    if injection not in INJECTIONS:
        raise CaseError(
            f"there is no injection {injection!r}",
            key="fletcher.source.injection",
            remedy=f"choose one of {', '.join(INJECTIONS)}",
        )


Source = PointSource | PlaneSource


def add_sources(
    step: Program,
    sources: Sequence[Source],
    waves: Sequence[Field | Slot],
    domain: Domain,
    dt: float,
    *,
    sign: float = 1.0,
) -> None:
    """Record the addition of the values of wavelets to waves, unscaled: that of legacy sources.

    Parameters
    ----------
    step
        Program of the time step.
    sources
        Sources to add.
    waves
        Fields or slots to which they are added.
    domain
        Domain of the waves.
    dt
        Time step, s.
    sign
        Factor of the amplitudes; -1 removes the sources.

    Raises
    ------
    CaseError
        If a source is physical or lies outside the model.
    """
    if any(source.injection == "physical" for source in sources):
        raise CaseError(
            "physical sources are scaled by the medium and the step",
            key="fletcher.source.injection",
            remedy='use record_advance, which adds them, or sources with injection="legacy"',
        )
    for number, source in enumerate(sources):
        amount = step.let(Register(f"{step.name}.source.{number}"), source.wavelet.value(dt) * sign)
        add_amount(step, source, waves, amount, domain)


def add_amount(
    step: Program,
    source: Source,
    waves: Sequence[Field | Slot],
    amount: Any,
    domain: Domain,
    factor: Field | None = None,
) -> None:
    """Record the addition of an amount to the cells of a source, each with its weight and its value of a factor."""
    if isinstance(source, PlaneSource):
        by = () if factor is None else (factor,)
        step.apply(_spread(None, by), list(waves), *by, amount=amount, region=_plane(source, domain))
    else:
        placed = place(source.position or domain.middle, domain, source.interpolation, "source")
        add_at(step, placed, waves, amount, factor)


def add_at(
    step: Program, placed: Placed, waves: Sequence[Field | Slot], amount: Any, factor: Field | None = None
) -> None:
    """Record the addition of an amount to the cells of a point, each with its weight and its value of a factor."""
    by = () if factor is None else (factor,)
    whole = placed.single and placed.products[0] == 1
    region: Box | Region = Region(points=[placed.first]) if placed.single else placed.box
    step.apply(_spread(None if whole else placed, by), list(waves), *by, amount=amount, region=region)


def _spread(placed: Placed | None, by: Sequence[Field]) -> Kernel:
    """Return the kernel that adds a value to cells, with weights around a point, and times a field if there is one."""

    def weighted(amount: Any) -> Any:
        if placed is None:
            return amount
        factors = [lookup(w, index(axis) - placed.first[axis]) for axis, w in enumerate(placed.weights)]
        return reduce(operator.mul, factors) * amount

    def add(waves: Any, share: Any) -> None:
        for u in waves:
            here = (0,) * len(u.axes)
            u[here] = u[here] + cast(share, u.dtype)

    def spread(waves: Any, *, amount: Any) -> None:
        add(waves, weighted(amount))

    def spread_times(waves: Any, factor: Any, *, amount: Any) -> None:
        add(waves, weighted(amount) * cast(factor[(0,) * len(factor.axes)], "f8"))

    return Kernel(spread_times if by else spread)


def plane_axis(source: PlaneSource, domain: Domain) -> int:
    """Return the number of the axis normal to a plane; raise CaseError if the model has no such axis."""
    if source.axis not in domain.axes:
        raise CaseError(
            f"a source's plane is normal to {source.axis}; the model has the axes {', '.join(domain.axes)}",
            key="fletcher.source.axis",
            remedy=f"choose one of {', '.join(domain.axes)}",
        )
    return domain.axes.index(source.axis)


def _plane(source: PlaneSource, domain: Domain) -> Box:
    axis = plane_axis(source, domain)
    inside = math.isfinite(source.position)
    plane = round(source.position / domain.spacing[axis]) if inside else -1
    if not 0 <= plane < domain.shape[axis]:
        raise CaseError(
            f"a source's plane lies at {source.axis} = {source.position:g} m, outside the model",
            key="fletcher.source.position",
            remedy=f"give 0 .. {domain.ends[axis]:g}",
        )
    lo, hi = (list(corner) for corner in domain.without_surfaces)
    at = plane + domain.low[axis]
    if not lo[axis] <= at < hi[axis]:
        raise CaseError(
            f"a source's plane lies at {source.axis} = {source.position:g} m, on a free surface, where p is 0",
            key="fletcher.source.position",
            remedy="choose a plane below the surface",
        )
    lo[axis], hi[axis] = at, at + 1
    return Box(tuple(lo), tuple(hi))
