"""Sources: positions, and their addition to the waves in a step.

A physical source s is the right side of p_tt / vp^2 - ... = s(t) delta(x - x0), of p and of q: waves do not depend on
dt or on the cells (`minga.models.waves.injection`). A source with a direction d is a dipole: the right side is
-s(t) d . grad delta(x - x0), the derivative of the waves of a point by its position along d. That is a force s(t) d.
Its weights are those of the point, differentiated by differences of eighth order.

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
from typing import Any, Final, Literal, get_args

import numpy as np

from minga.compile.explain import Kernel
from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang.expr import cast
from minga.lang.functions import index, lookup
from minga.models.waves.domain import Domain, is_number
from minga.models.waves.interpolation import Interpolation, Placed, place
from minga.models.waves.wavelets import Ricker, Signal, check_wavelet
from minga.space.box import Box
from minga.space.field import Field, Register, Slot
from minga.space.region import Region

__all__ = [
    "Injection",
    "PlaneSource",
    "PointSource",
    "Source",
    "add_amount",
    "add_at",
    "add_sources",
    "plane_axis",
    "plane_box",
]

Injection = Literal["physical", "legacy"]
INJECTIONS: Final = get_args(Injection)


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
    direction
        Components along the axes, (z, y, x) or (z, x), of the direction of a dipole, whose length is a factor of the
        amplitude: (1, 0) for a vertical one that pushes down while the wavelet is positive. None: not a dipole.
    """

    position: tuple[float, ...] | None = None
    wavelet: Signal = field(default_factory=Ricker)
    interpolation: Interpolation = "sinc"
    injection: Injection = "physical"
    direction: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        _check_injection(self.injection)
        check_wavelet(self.wavelet, "fletcher")
        if self.direction is None:
            return
        if self.injection == "legacy":
            raise CaseError(
                "a source with a direction and legacy amplitudes",
                key="fletcher.source.direction",
                remedy='choose injection = "physical"',
            )
        object.__setattr__(self, "direction", _direction(self.direction))

    def placed(self, domain: Domain) -> list[tuple[float, Placed]]:
        """Return the places of a source on a grid with their factors: one, or for a dipole one along each axis.

        Parameters
        ----------
        domain
            Domain of the waves.

        Returns
        -------
        list of tuple
            Factor of the amplitude, and cells with their weights.

        Raises
        ------
        CaseError
            If the source lies outside the model, or its direction does not fit the axes.
        """
        point = domain.middle if self.position is None else self.position
        if self.direction is None:
            return [(1.0, place(point, domain, self.interpolation, "source"))]
        if len(self.direction) != len(domain.axes):
            raise CaseError(
                f"the direction of a source is {self.direction}, for a model with the axes {', '.join(domain.axes)}",
                key="fletcher.source.direction",
                remedy=f"give one number for each of {', '.join(domain.axes)}",
            )
        return [
            (part / domain.spacing[axis], place(point, domain, self.interpolation, "source", axis))
            for axis, part in enumerate(self.direction)
            if part
        ]


def _direction(given: Any) -> tuple[float, ...]:
    """Return the components of a direction; raise CaseError unless they are numbers, and not all of them 0."""
    try:
        found = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.ndim != 1 or not np.isfinite(found).all() or not found.any():
        raise CaseError(
            f"the direction of a source is {given!r}",
            key="fletcher.source.direction",
            remedy="give finite numbers along the axes, not all of them 0: (1.0, 0.0) on z, x",
        )
    return tuple(found.tolist())


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
    wavelet: Signal = field(default_factory=Ricker)
    injection: Injection = "physical"

    def __post_init__(self) -> None:
        _check_injection(self.injection)
        check_wavelet(self.wavelet, "fletcher")
        if self.axis not in ("z", "y", "x"):
            raise CaseError(
                f"a plane source along the axis {self.axis!r}", key="fletcher.source.axis", remedy="choose z, y or x"
            )
        if not is_number(self.position) or not math.isfinite(self.position):
            raise CaseError(
                f"a plane source at {self.position!r}", key="fletcher.source.position", remedy="give a number of metres"
            )


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
        step.apply(_spread(None, by), list(waves), *by, amount=amount, region=plane_box(source, domain))
        return
    for part, placed in source.placed(domain):
        add_at(step, placed, waves, amount if part == 1.0 else amount * part, factor)


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


def plane_box(source: PlaneSource, domain: Domain) -> Box:
    """Return the cells of a plane source; raise CaseError if it lies outside the model or on a free surface."""
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
