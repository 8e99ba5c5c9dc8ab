"""Conversion of the [fletcher] table of a case to a Model: look-up, checks and assembly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from minga.case.settings import GridSettings
from minga.engine.model import Model
from minga.errors import CaseError, suggest
from minga.models.waves.auto_step import auto_step, divided, sample_steps, steps_of, times_of
from minga.models.waves.boundary import (
    Boundary,
    Cpml,
    Face,
    Faces,
    Free,
    Pairs,
    Periodic,
    Random,
    Release,
    Rigid,
    Sponge,
    domain_of,
    faces_of,
)
from minga.models.waves.case_medium import FoundMedium, attenuation_of, find_medium
from minga.models.waves.keys import keys_of
from minga.models.waves.medium import sampled_boxes
from minga.models.waves.model import fletcher
from minga.models.waves.preflight import dispersion_of, notes_of, sampled_notes, warnings_of
from minga.models.waves.receivers import Receivers
from minga.models.waves.reflection import sponge_notes
from minga.models.waves.settings import (
    BOUNDARY_FORM,
    BoundarySettings,
    FletcherSettings,
    ReceiverSettings,
    SourceSettings,
    WaveletSettings,
)
from minga.models.waves.source import PlaneSource, PointSource, Source, plane_box
from minga.models.waves.stability import Extremes
from minga.models.waves.wavelet_file import read_wavelet, resampled, spectrum_peak
from minga.models.waves.wavelets import Ormsby, Ricker, Signal, Wavelet
from minga.schema import validate

__all__ = ["boundary_of", "check_grid", "inspected", "make", "receivers_of", "spread_of", "wavelet_of"]

KEY: Final = "fletcher.boundary"
_FACES: Final[Mapping[str, Callable[[], Face]]] = {
    "sponge": Sponge, "random": Random, "cpml": Cpml, "free": Free, "release": Release, "rigid": Rigid,
    "periodic": Periodic,
}  # fmt: skip

Point = tuple[float, ...]


def make(
    settings: FletcherSettings,
    grid: GridSettings,
    directory: Path,
    times: Mapping[str, float | str] | None = None,
    *,
    sample: bool = False,
) -> Model:
    """Make the model that the table [fletcher] of a case describes.

    `times` are those that the time step divides, if it is "auto", by their keys in the case.
    With `sample` the model is for planning: only part of a large medium is inspected, and the time step is an estimate.
    """
    check_grid(grid, "fletcher")
    case = inspected(settings, grid.shape, directory, sample=sample)
    found, limit, domain = case.found, case.limit, domain_of(case.found.shape, case.found.spacing, case.faces)
    intervals = times_of(times or {}, settings.receivers, "fletcher")
    dt = auto_step(limit, intervals) if settings.dt == "auto" else settings.dt
    sources: list[Source] = []
    for number, source in enumerate(settings.sources):
        with keys_of(f"fletcher.sources[{number}]", instead_of="fletcher.source"):
            made = _source(source, number, dt, found, directory)
            # This raises for a source on a free surface.
            plane_box(made, domain) if isinstance(made, PlaneSource) else made.placed(domain)
            sources.append(made)
    receivers = spread_of(settings.receivers, found.axes, dt)
    if receivers is not None:
        found.check_inside(receivers.positions, "fletcher.receivers", "a receiver")
    model = fletcher(
        found.shape,
        found.spacing,
        dt=dt,
        medium=found.medium,
        boundary=case.boundary,
        sources=sources,
        receivers=receivers,
        extremes=case.extremes,
        record=settings.record,
        **case.options,
    )
    notes = case.notes(dt, sources, divided(settings.dt, intervals))
    if receivers is not None:
        notes = (*notes, *sampled_notes(sources, dt * receivers.every))
    return replace(
        model,
        warnings=(*model.warnings, *warnings_of(notes)),
        notes=(*notes, *(_sampled(found) if sample else ())),
        steps=steps_of(settings.time, dt),
        window=domain.inside,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Inspected:
    """Medium and boundary of a case, with what follows from them, and arguments that models and surveys share."""

    found: FoundMedium
    boundary: Boundary
    faces: Pairs
    extremes: Extremes
    limit: float
    options: Mapping[str, Any]

    def notes(self, dt: float, sources: Sequence[Source], divided: str = "") -> tuple[tuple[str, str], ...]:
        """Return notes before a run as pairs of a label and its text; `divided` names times that the step divides."""
        medium, spacing, options = self.found.medium, self.found.spacing, self.options
        notes = [
            *notes_of(self.extremes, self.limit, spacing, dt, sources, divided),
            *sponge_notes(self.faces, spacing, self.extremes.fastest_p, dt, sources),
        ]
        if options["form"] == "selfadjoint" and not (medium.isotropic or medium.vertical):
            return tuple(notes)
        orders = options["order"], options["time_order"]
        more = dispersion_of(self.extremes, spacing, dt, sources, orders, staggered=medium.has_density)
        return (*notes, *more)


def inspected(
    settings: FletcherSettings, shape: Sequence[int] | None, directory: Path, *, sample: bool = False
) -> Inspected:
    """Return the medium of a case, its extreme values and the longest stable time step.

    With `sample` only part of a large medium is inspected, and the time step is an estimate.
    """
    found = find_medium(settings, shape, directory, sample=sample)
    boundary = boundary_of(settings.boundary)
    sigma = math.inf if settings.sigma == "infinite" else float(settings.sigma)
    found.medium.check(found.shape)
    faces = faces_of(boundary, len(found.shape))
    extremes = found.extremes(settings.order, sigma, settings.form, faces, sample=sample)
    attenuation = attenuation_of(settings.attenuation)
    limit = found.limit(extremes, settings.time_order, attenuation, faces)
    names = ("order", "time_order", "form", "dtype")
    options = {name: getattr(settings, name) for name in names} | {"sigma": sigma, "attenuation": attenuation}
    return Inspected(found, boundary, faces, extremes, limit, options)


def check_grid(grid: GridSettings, table: str) -> None:
    """Raise CaseError if the table [grid] has a boundary, which waves have in their own."""
    if grid.boundary is not None:
        raise CaseError(
            f"the boundary of waves is set in [{table}]", key="grid.boundary", remedy='write boundary = "sponge" there'
        )


def _sampled(found: FoundMedium) -> Iterator[tuple[str, str]]:
    """Yield a note that the preceding results follow from some of the cells only."""
    seen, cells = sum(box.size for box in sampled_boxes(found.shape, sample=True)), math.prod(found.shape)
    if seen < cells and not found.medium.uniform:
        yield "medium", f"{seen:,} of {cells:,} cells were inspected for these notes; a run inspects all of them first"


def boundary_of(entry: object) -> Boundary:
    """Return the boundary of the model."""
    if isinstance(entry, str) and entry in _FACES:
        return _FACES[entry]()
    if not isinstance(entry, Mapping):
        close = suggest(entry, _FACES) if isinstance(entry, str) else None
        raise CaseError(f"there is no boundary {entry!r}", key=KEY, suggestion=close, remedy=BOUNDARY_FORM)
    said = validate(BoundarySettings, entry, KEY)
    named = {axis: ends for axis in "zyx" if (ends := getattr(said, axis)) is not None}
    layers = _layers(said, bool(named))
    others = next(iter(layers.values()), Sponge())
    if not named:
        return others

    def face(name: str) -> Face:
        return layers.get(name) or _FACES[name]()

    pairs: dict[str, Any] = {
        axis: face(ends) if isinstance(ends, str) else tuple(map(face, ends)) for axis, ends in named.items()
    }
    return Faces(others, **pairs)


def _layers(said: BoundarySettings, faces: bool) -> dict[str, Face]:
    """Return the layer that a table gives a width, by its name; with named `faces` none is needed."""
    given = {name: width for name in ("sponge", "random", "cpml") if (width := getattr(said, name)) is not None}
    if len(given) > 1 or not (given or faces):
        raise CaseError(
            f"a boundary is one of sponge, random, cpml; found {', '.join(given) or 'none of them'}",
            key=KEY,
            remedy=BOUNDARY_FORM,
        )
    if said.experimental and "cpml" not in given:
        raise CaseError(
            "an experimental boundary without the width of matched layers",
            key=f"{KEY}.experimental",
            remedy="write {cpml = 12, experimental = true}, or leave it out",
        )
    if said.strength is not None and "sponge" not in given:
        raise CaseError(
            f"a boundary {next(iter(given), 'without a sponge of a given width')} has no strength",
            key=f"{KEY}.strength",
            remedy="leave it out, or write {sponge = 40, strength = 0.25}",
        )
    if said.seed and "random" not in given:
        raise CaseError(
            f"a boundary {next(iter(given), 'without random layers')} has no seed",
            key=f"{KEY}.seed",
            remedy="leave it out, or write random = 16",
        )
    made: dict[str, Callable[[int], Face]] = {
        "sponge": lambda width: Sponge(width) if said.strength is None else Sponge(width, said.strength),
        "random": lambda width: Random(width, said.seed),
        "cpml": lambda width: Cpml(width, experimental=said.experimental),
    }
    return {name: made[name](width) for name, width in given.items()}


def _source(settings: SourceSettings, number: int, dt: float, found: FoundMedium, directory: Path) -> Source:
    key = f"fletcher.sources[{number}]"
    if (settings.position is None) == (settings.plane is None):
        raise CaseError(
            "a source has a position or a plane" + ("" if settings.position is None else ", not both"),
            key=key,
            remedy=f"write position = [{', '.join(found.axes)}] in metres, or plane = {{z = 20.0}}",
        )
    wavelet = wavelet_of(settings.wavelet, dt, directory, f"{key}.wavelet")
    if settings.position is not None:
        found.check_inside([settings.position], f"{key}.position", "the source")
        return PointSource(
            settings.position, wavelet, injection=settings.injection, direction=_direction(settings, found.axes, key)
        )
    if settings.direction is not None:
        raise CaseError("a plane has no direction", key=f"{key}.direction", remedy="leave it out, or give a position")
    ((axis, place),) = (settings.plane or {}).items()
    if axis in found.axes:
        point = tuple(place if name == axis else 0.0 for name in found.axes)
        found.check_inside([point], f"{key}.plane.{axis}", "the source's plane")
    return PlaneSource(axis, place, wavelet, settings.injection)


def _direction(settings: SourceSettings, axes: str, key: str) -> Point | None:
    """Return the direction of a dipole."""
    given = settings.direction
    if given is not None and (len(given) != len(axes) or not any(given)):
        raise CaseError(
            f"the direction of a source is {list(given)}",
            key=f"{key}.direction",
            remedy=f"give a number for each of {', '.join(axes)}, not all of them 0",
        )
    return given


def wavelet_of(settings: WaveletSettings, dt: float, directory: Path, key: str) -> Signal:
    """Return a wavelet with a sample for each step if it is a file."""
    given = [name for name in ("ricker", "ormsby", "file") if getattr(settings, name) is not None]
    if len(given) != 1:
        raise CaseError(
            f"a wavelet is one of ricker, ormsby, file; found {', '.join(given) or 'none of them'}",
            key=key,
            remedy='write {ricker = 15.0}, {ormsby = [5, 10, 40, 60]}, or {file = "wavelet.txt", dt = 0.001}',
        )
    if settings.file is None and settings.dt is not None:
        raise CaseError(f"a wavelet {given[0]} has no dt", key=f"{key}.dt", remedy="leave it out")
    if settings.ricker is not None:
        return Ricker(settings.ricker, settings.delay, settings.scale)
    if settings.ormsby is not None:
        try:
            return Ormsby(settings.ormsby, settings.delay, settings.scale)
        except CaseError as error:
            raise CaseError(error.message, key=f"{key}.ormsby", remedy=error.remedy) from error
    if settings.delay is not None:
        raise CaseError("a wavelet from a file has no delay", key=f"{key}.delay", remedy="put zeros before it")
    samples, step = read_wavelet(settings.file or "", settings.dt, directory, f"{key}.file")
    if not samples.any():
        raise CaseError(f"{settings.file}: all samples are 0", key=f"{key}.file")
    return Wavelet(resampled(samples, step, dt) * settings.scale, spectrum_peak(samples, step))


def receivers_of(settings: ReceiverSettings, axes: str, every: int, key: str = "fletcher.receivers") -> Receivers:
    """Return receivers at points, on a line or on a grid, with `every` steps between samples."""
    line = (settings.first, settings.last, settings.count)
    if (settings.positions is None) == all(entry is None for entry in line):
        raise CaseError(
            "receivers have positions, or first, last and count",
            key=key,
            remedy=f"write first, last and count, or positions, each of them [{', '.join(axes)}] in metres",
        )
    if settings.positions is not None:
        return Receivers(settings.positions, every)
    if settings.first is None or settings.last is None or settings.count is None:
        missing = [name for name, entry in zip(("first", "last", "count"), line) if entry is None]
        raise CaseError(f"{' and '.join(missing)} missing: a line has first, last and count", key=key)
    return Receivers([*_points(settings.first, settings.last, settings.count, axes, key)], every)


def spread_of(settings: ReceiverSettings | None, axes: str, dt: float) -> Receivers | None:
    """Return receivers whose samples are at steps of `dt` seconds; None without any."""
    if settings is None:
        return None
    return receivers_of(settings, axes, sample_steps(settings.every, dt, "fletcher.receivers.every"))


def _points(first: Point, last: Point, count: int | tuple[int, ...], axes: str, key: str) -> Iterator[Point]:
    """Yield the positions of a line of receivers or, with two counts, of a level grid along y and x."""
    for name, point in (("first", first), ("last", last)):
        if len(point) != len(axes):
            raise CaseError(
                f"{list(point)} is no point of the model, which has the axes {', '.join(axes)}",
                key=f"{key}.{name}",
                remedy=f"write {name} = [{', '.join(axes)}] in metres",
            )
    if isinstance(count, int):
        if count == 1 and first != last:
            raise CaseError("one receiver cannot be at two places", key=f"{key}.count", remedy="make it 2 or more")
        for number in range(count):
            yield tuple(a + (b - a) * number / max(1, count - 1) for a, b in zip(first, last))
        return
    if axes != "zyx":
        raise CaseError(
            "a grid of receivers needs the axes z, y, x", key=f"{key}.count", remedy="give one number for a line"
        )
    if first[0] != last[0]:
        raise CaseError("a grid of receivers is level: first and last need the same depth", key=f"{key}.last")
    if math.prod(count) > 1_000_000:
        raise CaseError(f"{math.prod(count)} receivers are too many", key=f"{key}.count")
    rows, columns = (np.linspace(first[a], last[a], count[a - 1]).tolist() for a in (1, 2))
    yield from ((first[0], y, x) for y in rows for x in columns)
