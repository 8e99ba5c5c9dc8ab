"""Reading the case of a survey, and what is known before its first shot."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from minga.cli.case import Source, arrays_that_fit, find_source, located, merged
from minga.cli.memory import check_shape
from minga.errors import CaseError, suggest
from minga.models.waves.elastic.settings import ElasticSettings
from minga.models.waves.settings import FletcherSettings
from minga.models.waves.survey_case import SurveyCase, make_survey
from minga.models.waves.survey_recording import check_geometry
from minga.output.disk_space import free_bytes
from minga.output.segy_survey import unfinished
from minga.view.amounts import bytes_text

__all__ = ["bytes_of_file", "check_disk", "facts", "read_survey"]

_TABLES = ("model", "name", "grid", "survey")
_MODELS: Final[dict[str, type[Any]]] = {"fletcher": FletcherSettings, "elastic": ElasticSettings}
_HEADS, _TRACE = 3600, 240


def read_survey(target: str, overrides: Sequence[str]) -> tuple[Source, SurveyCase]:
    """Return a case and its survey, all positions checked.

    Parameters
    ----------
    target
        The case.
    overrides
        ``key=value`` of ``--set``.

    Raises
    ------
    CaseError
        If an entry is invalid, or positions are.
    """
    source = find_source(target)
    table, origin = merged(source, overrides)
    with located(source, origin), arrays_that_fit():
        found = _survey(table, source.path.parent)
        check_geometry(found.survey)
    return source, found


def _survey(table: Mapping[str, Any], directory: Path) -> SurveyCase:
    from minga.case.settings import GridSettings
    from minga.models.waves.survey_settings import SurveySettings
    from minga.schema import validate

    model = str(table.get("model"))
    if model not in _MODELS:
        raise CaseError(
            f"a survey needs a model of waves, not {model!r}",
            key="model",
            remedy='write model = "fletcher" or model = "elastic"',
        )
    known = (*_TABLES, model)
    for key in table:
        if key not in known:
            raise CaseError(
                f"unknown table or key {key!r}",
                key=key,
                suggestion=suggest(key, known),
                remedy=f"the case of a survey has {', '.join(known)}",
            )
    for name in (model, "survey"):
        if not isinstance(table.get(name), Mapping):
            raise CaseError(f"the case has no table [{name}]", key=name, remedy=f"add a table [{name}]")
    grid = validate(GridSettings, table.get("grid", {}), "grid")
    check_shape(grid.shape, least=8)
    settings: Any = validate(_MODELS[model], table[model], model)
    return make_survey(settings, validate(SurveySettings, table["survey"], "survey"), grid, directory)


def bytes_of_file(found: SurveyCase) -> int:
    """Return the size of the SEG-Y file."""
    traces = sum(shot.traces for shot in found.survey.shots)
    return _HEADS + traces * (_TRACE + 4 * found.samples)


def check_disk(found: SurveyCase, out: Path) -> None:
    """Raise CaseError if the disk has certainly no room for the file."""
    partial, _ = unfinished(out)
    there = partial.stat().st_blocks * 512 if os.name == "posix" and partial.exists() else 0
    free, size = free_bytes(out.absolute().parent), bytes_of_file(found)
    if free is not None and size - there > free:
        raise CaseError(
            f"the file takes {bytes_text(size)}, and its disk has room for {bytes_text(free)}",
            key="--out",
            remedy="name a file on another disk",
        )


def facts(found: SurveyCase, out: Path, begun: int = 0) -> Iterator[tuple[str, str]]:
    """Yield what is known before the first shot, as pairs of a label and its text; `begun` shots are there already."""
    survey = found.survey
    receivers = [len(shot.receivers.positions) for shot in survey.shots]
    spread = f"{min(receivers)}" if min(receivers) == max(receivers) else f"{min(receivers)} to {max(receivers)}"
    traces = sum(shot.traces for shot in survey.shots)
    of = f" of {', '.join(survey.quantities)}" if survey.quantities != ("p",) else ""
    yield "shots", f"{len(receivers):,} with {spread} receivers{of}, {traces:,} traces"
    every = survey.shots[0].receivers.every
    samples = f"{found.samples:,} samples every {found.interval * 1e3:g} ms, {every} steps"
    yield "records", f"{samples}, from {survey.delay * 1e3:g} ms"
    yield from found.notes
    cells = [survey.cost(number) for number in range(len(receivers))]
    steps = (survey.first + found.samples - 1) * every
    size = f"{min(cells):,}" if min(cells) == max(cells) else f"{min(cells):,} to {max(cells):,}"
    yield "a shot", f"{size} cells beside its layers, {steps:,} steps; in all {sum(cells) * steps:.3g} updates of cells"
    yield "file", f"{bytes_of_file(found):,} bytes: {out}"
    if begun:
        yield "begun", f"{begun:,} of {len(receivers):,} shots are there from an earlier call"
