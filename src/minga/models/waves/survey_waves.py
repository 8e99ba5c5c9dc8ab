"""Waves of a survey as its case states them: medium, stable time step, sources and notes, acoustic or elastic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minga.errors import CaseError
from minga.models.waves.boundary import Boundary
from minga.models.waves.case import inspected
from minga.models.waves.domain import axes_of
from minga.models.waves.elastic import case as elastic_case
from minga.models.waves.elastic.layout import components
from minga.models.waves.elastic.medium import ElasticMedium
from minga.models.waves.elastic.receivers import check_quantities
from minga.models.waves.elastic.settings import ElasticSettings
from minga.models.waves.keys import keys_of
from minga.models.waves.medium import Medium
from minga.models.waves.settings import FletcherSettings
from minga.models.waves.source import PointSource
from minga.models.waves.survey_geometry import Point
from minga.models.waves.survey_settings import SurveySettings
from minga.models.waves.velocity import check_quantities as check_velocities
from minga.models.waves.wavelets import Signal

__all__ = ["SurveyWaves", "waves_of"]

Notes = list[tuple[str, str]]


@dataclass(frozen=True, slots=True, eq=False)
class SurveyWaves:
    """Waves of a survey.

    Attributes
    ----------
    table
        Name of their table.
    medium, shape, spacing, boundary
        The model.
    limit
        The longest stable time step, s.
    slowest
        The lowest P velocity, m/s.
    record
        Quantities that receivers record.
    options
        Further arguments of `Survey`.
    source
        Returns a source at a point with a wavelet.
    notes
        Returns notes for a time step and sources.
    """

    table: str
    medium: Medium | ElasticMedium
    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    boundary: Boundary
    limit: float
    slowest: float
    record: tuple[str, ...]
    options: Mapping[str, Any]
    source: Callable[[Point, Signal], Any]
    notes: Callable[[float, Sequence[Any]], Notes]

    @property
    def axes(self) -> str:
        """Names of the axes."""
        return axes_of(len(self.shape))


def waves_of(
    settings: FletcherSettings | ElasticSettings,
    said: SurveySettings,
    shape: Sequence[int] | None,
    directory: Path,
) -> SurveyWaves:
    """Return the waves of a survey.

    Parameters
    ----------
    settings
        The table of the waves.
    said
        The table [survey].
    shape
        Cells of the model; None: as stated by the medium's files.
    directory
        The directory of the case.

    Raises
    ------
    CaseError
        If an entry is invalid.
    """
    if isinstance(settings, ElasticSettings):
        with keys_of("elastic"):
            return _elastic(settings, said, shape, directory)
    return _acoustic(settings, said, shape, directory)


def _acoustic(
    settings: FletcherSettings, said: SurveySettings, shape: Sequence[int] | None, directory: Path
) -> SurveyWaves:
    """Return acoustic waves."""
    for name in ("force", "moment"):
        if getattr(said, name) is not None:
            raise CaseError(
                f"a {name} is a source of elastic waves", key=f"survey.{name}", remedy='leave it out, or use "elastic"'
            )
    case = inspected(settings, shape, directory)
    found = case.found
    check_velocities(settings.record, axes_of(len(found.shape)))
    return SurveyWaves(
        "fletcher", found.medium, found.shape, found.spacing, case.boundary, case.limit, case.extremes.slowest_p,
        settings.record, case.options,
        lambda point, wavelet: PointSource(point, wavelet, injection=said.injection),
        lambda dt, sources: [*case.notes(dt, sources)],
    )  # fmt: skip


def _elastic(
    settings: ElasticSettings, said: SurveySettings, shape: Sequence[int] | None, directory: Path
) -> SurveyWaves:
    """Return elastic waves."""
    if said.injection != "physical":
        raise CaseError(
            f"the injection {said.injection!r} is one of acoustic waves", key="survey.injection", remedy="leave it out"
        )
    found = elastic_case.inspected(settings, shape, directory)
    check_quantities(settings.record, components(axes_of(len(found.cells))))

    def source(point: Point, wavelet: Signal) -> Any:
        return elastic_case.source_of(point, said.force, said.moment, wavelet, "survey")

    def notes(dt: float, sources: Sequence[Any]) -> Notes:
        return [*found.notes(dt, sources, settings.order)]

    return SurveyWaves(
        "elastic", found.medium, found.cells, found.spacing, found.boundary, found.limit, found.speeds.slowest_p,
        settings.record, {"order": settings.order, "dtype": settings.dtype, "attenuation": found.attenuation},
        source, notes,
    )  # fmt: skip
