"""The ranks that ``minga survey`` starts: on this machine, or on the hosts of a file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minga.cli.case import Source, merged
from minga.cli.inputs import kept
from minga.cli.start import Demand, ranks_on_hosts
from minga.cli.toml import dump
from minga.launch.launcher import find_launcher
from minga.launch.ranks import Ranks
from minga.output.directory import RunDirectory, disk_errors, write_whole

if TYPE_CHECKING:
    from minga.models.waves.cli.survey import SurveyRequest

__all__ = ["survey_ranks"]

_PROGRAM: Final = "minga.models.waves.cli.survey_rank"


@contextmanager
def survey_ranks(
    request: SurveyRequest, source: Source, shots: int, note: Callable[[str], None]
) -> Iterator[tuple[Ranks, tuple[float, ...] | None]]:
    """Yield the ranks of a survey, and the relative speeds that the hosts file gives them; None if it gives none.

    Hosts that do not see the case get copies of it and of its files. Rank 0, on this machine, writes the survey's file.

    Parameters
    ----------
    request
        The request.
    source
        The case.
    shots
        Number of shots, the most ranks that have something to do.
    note
        Called with notes for the user.

    Raises
    ------
    CaseError, LaunchError
        If the hosts file is invalid, or a host cannot take part.
    """
    if request.hosts is None:
        yield Ranks(find_launcher(), request.ranks or 1, program=_PROGRAM), None
        return
    with (
        ranks_on_hosts(Demand(request.threads, shots), request.hosts, request.shell, request.ranks) as start,
        tempfile.TemporaryDirectory(prefix="minga-survey-") as folder,
    ):
        for text in start.notes:
            note(text)
        directory = RunDirectory(Path(folder))
        table = merged(source, request.overrides)[0]
        with disk_errors(directory.inputs):
            files = kept(table, (str(table["model"]), "survey"), source.path.parent, directory.inputs)
        write_whole(directory.case, dump({**table, **files}))
        assert start.prepare is not None  # it has hosts
        yield replace(start.prepare(directory, note), program=_PROGRAM), start.weights
