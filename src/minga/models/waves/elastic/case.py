"""Conversion of the [elastic] table of a case to a Model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from minga.case.settings import GridSettings
from minga.engine.model import Model
from minga.errors import CaseError
from minga.models.waves.attenuation import Attenuation
from minga.models.waves.auto_step import auto_step, divided, steps_of, times_of
from minga.models.waves.boundary import Boundary, domain_of, faces_of
from minga.models.waves.case import boundary_of, check_grid, spread_of, wavelet_of
from minga.models.waves.case_medium import attenuation_of, cells_of, check_inside, files_of, spacing_of
from minga.models.waves.domain import Domain, axes_of
from minga.models.waves.elastic.medium import ENTRIES, ElasticMedium, Speeds, coefficients_of, speeds_of
from minga.models.waves.elastic.model import elastic
from minga.models.waves.elastic.settings import ElasticSettings, ElasticSourceSettings
from minga.models.waves.elastic.sources import ElasticSource, Explosion, Force, Moment
from minga.models.waves.elastic.stability import step_limit
from minga.models.waves.keys import keys_of
from minga.models.waves.media import from_volume
from minga.models.waves.media_files import Volume
from minga.models.waves.medium import Quantity
from minga.models.waves.preflight import (
    COARSE,
    ENOUGH,
    FEWEST,
    dispersion_between,
    sampled_notes,
    step_note,
    too_coarse,
    warnings_of,
)
from minga.models.waves.reflection import sponge_notes
from minga.models.waves.settings import QuantityFile
from minga.models.waves.wavelets import Signal

__all__ = ["Inspected", "inspected", "make", "notes_before", "source_of"]


def make(
    settings: ElasticSettings,
    grid: GridSettings,
    directory: Path,
    times: Mapping[str, float | str] | None = None,
    *,
    sample: bool = False,
) -> Model:
    """Make the model that the table [elastic] of a case describes.

    `times` are those that the time step divides, if it is "auto", by their keys in the case.
    With `sample` the model is for planning: only part of a large medium is inspected, and the time step is an estimate.
    """
    check_grid(grid, "elastic")
    with keys_of("elastic"):
        return _made(settings, grid, directory, times or {}, sample)


@dataclass(frozen=True, slots=True, eq=False)
class Inspected:
    """Medium, cells and boundary of a case, with what follows from them."""

    medium: ElasticMedium
    cells: tuple[int, ...]
    spacing: tuple[float, ...]
    boundary: Boundary
    domain: Domain
    speeds: Speeds
    limit: float
    attenuation: Attenuation | None

    def notes(
        self, dt: float, sources: Sequence[ElasticSource], order: int, divided: str = ""
    ) -> Iterator[tuple[str, str]]:
        """Yield notes before a run as pairs of a label and its text; `divided` names times that the step divides."""
        yield from notes_before(self.speeds, self.limit, self.spacing, dt, sources, order, divided)
        faces = faces_of(self.boundary, len(self.cells))
        yield from sponge_notes(faces, self.spacing, self.speeds.fastest_p, dt, sources, staggered=True)


def inspected(
    settings: ElasticSettings, shape: Sequence[int] | None, directory: Path, *, sample: bool = False
) -> Inspected:
    """Return the medium of a case, its extreme velocities and the longest stable time step.

    With `sample` only part of a large medium is inspected, and the time step is an estimate.
    """
    volumes, keys = files_of(settings.medium, ENTRIES, directory, "elastic.medium")
    cells = cells_of(shape, volumes, keys)
    spacing = spacing_of(settings.spacing, axes_of(len(cells)), volumes, keys)
    medium = ElasticMedium(**{name: _entry(settings, name, volumes, keys) for name in ENTRIES})
    boundary = boundary_of(settings.boundary)
    domain = domain_of(cells, spacing, faces_of(boundary, len(cells)))
    attenuation = attenuation_of(settings.attenuation)
    speeds = speeds_of(medium, cells, sample=sample, attenuation=attenuation)
    limit = step_limit(coefficients_of(medium, domain, attenuation), settings.order, sample=sample)
    return Inspected(medium, cells, spacing, boundary, domain, speeds, limit, attenuation)


def _made(
    settings: ElasticSettings, grid: GridSettings, directory: Path, times: Mapping[str, float | str], sample: bool
) -> Model:
    found = inspected(settings, grid.shape, directory, sample=sample)
    cells, spacing, domain, speeds, limit = found.cells, found.spacing, found.domain, found.speeds, found.limit
    times = times_of(times, settings.receivers, "elastic")
    dt = auto_step(limit, times) if settings.dt == "auto" else settings.dt
    sources = [
        _source(source, f"elastic.sources[{number}]", dt, directory) for number, source in enumerate(settings.sources)
    ]
    for number, source in enumerate(settings.sources):
        check_inside(cells, spacing, [source.position], f"elastic.sources[{number}].position", "the source")
    receivers = spread_of(settings.receivers, domain.axes, dt)
    if receivers is not None:
        check_inside(cells, spacing, receivers.positions, "elastic.receivers", "a receiver")
    model = elastic(
        cells, spacing, dt=dt, medium=found.medium, order=settings.order, boundary=found.boundary, sources=sources,
        receivers=receivers, record=settings.record, dtype=settings.dtype, speeds=speeds, limit=limit,
        attenuation=found.attenuation,
    )  # fmt: skip
    notes = (
        *found.notes(dt, sources, settings.order, divided(settings.dt, times)),
        *(sampled_notes(sources, dt * receivers.every) if receivers is not None else ()),
    )
    return replace(
        model,
        notes=notes,
        warnings=(*model.warnings, *warnings_of(notes)),
        steps=steps_of(settings.time, dt),
        window=domain.inside,
    )


def _entry(settings: ElasticSettings, name: str, volumes: dict[str, Volume], keys: dict[str, str]) -> Quantity:
    """Return a quantity of the medium: a number, or the values of a file."""
    given: Any = getattr(settings.medium, name)
    if name not in volumes:
        return float(given)
    unit = given.unit if isinstance(given, QuantityFile) else None
    return from_volume(name, volumes[name], unit, None, keys[name])


def _source(settings: ElasticSourceSettings, key: str, dt: float, directory: Path) -> ElasticSource:
    """Return a source of a case."""
    wavelet = wavelet_of(settings.wavelet, dt, directory, f"{key}.wavelet")
    return source_of(settings.position, settings.force, settings.moment, wavelet, key)


def source_of(
    position: tuple[float, ...],
    force: tuple[float, ...] | None,
    moment: tuple[tuple[float, ...], ...] | None,
    wavelet: Signal,
    key: str,
) -> ElasticSource:
    """Return a source: an explosion, a force or a moment tensor."""
    if force is not None and moment is not None:
        raise CaseError("a source is a force or a moment, not both", key=key, remedy="write two sources")
    if force is not None:
        return Force(position, force, wavelet)
    if moment is not None:
        return Moment(position, moment, wavelet)
    return Explosion(position, wavelet)


def notes_before(
    speeds: Speeds,
    limit: float,
    spacing: Sequence[float],
    dt: float,
    sources: Sequence[ElasticSource],
    order: int,
    divided: str = "",
) -> Iterator[tuple[str, str]]:
    """Yield notes before a run as pairs of a label and its text; `divided` names times that the step divides."""
    yield step_note(dt, limit, divided)
    shear = "no S waves" if speeds.slowest_s is None else f"S from {speeds.slowest_s:.0f} m/s"
    yield "velocities", f"P {speeds.slowest_p:.0f} to {speeds.fastest_p:.0f} m/s; {shear}"
    if not sources:
        yield "sources", "none: waves stay 0"
    peaks = [source.wavelet.peak for source in sources if source.wavelet.peak]
    if peaks:
        slowest = min(speeds.slowest_p, speeds.slowest_s or math.inf)
        points = slowest / (max(peaks) * max(spacing))
        coarse = " (coarse: the grid delays them)" if points < ENOUGH else ""
        yield "slowest waves", f"{points:.3g} points per wavelength at {max(peaks):.3g} Hz{coarse}"
        if points < FEWEST:
            yield COARSE, too_coarse(points)
        ends = slowest, speeds.fastest_p
        yield from dispersion_between(ends, spacing, dt, max(peaks), (order, 2), "waves", staggered=True)
