"""The command ``minga survey``: check the case, compute its shots here or on ranks, then convert and draw."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from minga.cli.case import Source
from minga.cli.outputs import check_output
from minga.engine.comm import Comm, SerialComm
from minga.errors import CaseError, RunError
from minga.launch.exit_codes import INTERRUPTED, OK
from minga.launch.launcher import Job, surrounding_job, world
from minga.launch.signals import StopRequest
from minga.models.waves.cli.survey_reading import check_disk, facts, read_survey
from minga.models.waves.survey import SurveyProgress
from minga.models.waves.survey_case import SurveyCase
from minga.output.segy_survey import shots_there, unfinished
from minga.view.progress import Listener, LogLines, Progress, progress_display
from minga.view.survey import GAINS

__all__ = ["SurveyRequest", "perform", "survey"]

_PICTURES = ("geometry", "gather", "spectrum", "waves")


@dataclass(frozen=True, slots=True)
class SurveyRequest:
    """A request of the command line."""

    target: str
    out: Path | None = None
    overrides: tuple[str, ...] = ()
    ranks: int | None = None
    threads: int = 1
    check: bool = False
    force: bool = False
    also: tuple[Path, ...] = ()
    pictures: bool = True
    gain: str = "agc"
    hosts: Path | None = None
    shell: str = "ssh"
    weights: tuple[float, ...] | None = None
    """Relative speeds of the ranks before they are measured; None: equal ones."""

    def order(self, source: Source) -> dict[str, object]:
        """Return the request as the order of ranks."""
        given = asdict(self) | {"target": str(source.path), "out": str(self.file(source)), "also": [], "hosts": None}
        return given | {"overrides": list(self.overrides)}

    @classmethod
    def of(cls, order: Mapping[str, Any]) -> SurveyRequest:
        """Return the request of an order."""
        weights = order["weights"]
        return cls(
            order["target"], Path(order["out"]), tuple(order["overrides"]), threads=order["threads"],
            weights=None if weights is None else tuple(weights),
        )  # fmt: skip

    def file(self, source: Source) -> Path:
        """Return the path of the SEG-Y file."""
        return (Path(f"{source.name}.sgy") if self.out is None else self.out).absolute()

    def picture(self, source: Source, name: str) -> Path:
        """Return the path of a picture."""
        file = self.file(source)
        return file.with_name(f"{file.stem}-{name}.png")


def survey(request: SurveyRequest) -> tuple[str, int]:
    """Carry out a request; return the text to be printed, "" on ranks other than 0, and the exit status."""
    job = surrounding_job()
    if job is not None and job.size > 1:
        return _in_job(request, job)
    if request.ranks is not None and request.ranks < 1:
        raise CaseError(f"{request.ranks} ranks cannot be started", key="-n", remedy="ask for one rank or more")
    source, found = read_survey(request.target, request.overrides)
    said = _before(request, source, found)
    _check_outputs(request, source, found)
    if request.check:
        return said, OK
    _remove_replaced(request, source)
    sys.stderr.write(f"{said}\n")
    shots = len(found.survey.shots)
    with progress_display(source.name, shots) as listener:
        if (request.ranks or 1) > 1 or request.hosts is not None:
            from minga.launch.launch import launch
            from minga.models.waves.cli.survey_ranks import survey_ranks

            try:
                with survey_ranks(request, source, shots, listener.note) as (ranks, weights):
                    status = launch(ranks, {**request.order(source), "weights": weights}, listener)
            except KeyboardInterrupt:
                return _stopped(request, source), INTERRUPTED
            if status != OK:  # the ranks have said why
                if shots_there(request.file(source)):
                    listener.note(_stopped(request, source))
                raise SystemExit(status)
        else:
            with StopRequest().listening() as stop:
                if not perform(request, SerialComm(), listener, stop, request.file(source), found):
                    return _stopped(request, source), INTERRUPTED
    return _finished(request, source, found), OK


def perform(
    request: SurveyRequest, comm: Comm, listener: Listener, stop: StopRequest, out: Path, found: SurveyCase
) -> bool:
    """Compute the shots that are missing; collective. Return whether all are there.

    Parameters
    ----------
    request
        The request.
    comm
        The ranks.
    listener
        Receives progress on rank 0.
    stop
        The request to stop, which is met after the shots in progress.
    out
        The SEG-Y file.
    found
        The survey.
    """
    if comm.size > 1:
        from minga.engine.pin import local_place, pin

        pin(*local_place(comm.rank, comm.size), request.threads)
    cells = sum(found.survey.cost(number) for number in range(len(found.survey.shots)))

    def progress(now: SurveyProgress) -> None:
        listener.progress(
            Progress(now.done, now.shots, now.seconds, cells, comm.size, now.updates // cells, word="shot",
                     left=now.seconds_left)
        )  # fmt: skip

    found.survey.record(
        out, found.samples, threads=request.threads, comm=comm, callback=progress, stop=stop, weights=request.weights
    )
    stop.answer()
    done: bool = comm.bcast(out.exists())
    return done


def _in_job(request: SurveyRequest, job: Job) -> tuple[str, int]:
    """Carry out a request as one rank of a job that the user has started."""
    from minga.launch.rank_end import end_in_error, end_late

    if request.hosts is not None:
        raise CaseError(
            f"{job.launcher} has started this command as ranks", key="--hosts", remedy="leave out one of the two"
        )
    if request.ranks not in (None, job.size):
        raise CaseError(f"{job.launcher} started {job.size} ranks, but -n asks for {request.ranks}", key="-n")
    stop = StopRequest(late=end_late)
    with stop.listening():
        everyone = world(job, job.size)
        try:
            from minga.engine.comm import MPIComm

            comm = MPIComm()
            source, found = read_survey(request.target, request.overrides)
            if comm.rank == 0:
                _check_outputs(request, source, found)
            if request.check:
                return (_before(request, source, found) if comm.rank == 0 else ""), OK
            if comm.rank == 0:
                _remove_replaced(request, source)
                sys.stderr.write(f"{_before(request, source, found)}\n")
            comm.barrier()
            done = perform(request, comm, LogLines(source.name, sys.stderr), stop, request.file(source), found)
            if comm.rank != 0:
                return "", OK
            return (_finished(request, source, found), OK) if done else (_stopped(request, source), INTERRUPTED)
        except BaseException as error:
            end_in_error(error, everyone)


def _before(request: SurveyRequest, source: Source, found: SurveyCase) -> str:
    out = request.file(source)
    rows = list(facts(found, out, 0 if request.force else shots_there(out)))
    width = max(len(label) for label, _ in rows)
    return "\n".join([f"{source.name}, before it starts", *(f"  {label:{width}}  {text}" for label, text in rows)])


def _check_outputs(request: SurveyRequest, source: Source, found: SurveyCase) -> None:
    """Raise CaseError for files that cannot be written."""
    out = request.file(source)
    if found.geometry is not None and out.resolve() == found.geometry.resolve():
        raise CaseError(
            f"the survey would replace {out}, from which its geometry is read", key="--out", remedy="name another file"
        )
    if request.gain not in GAINS:
        raise CaseError(f"there is no gain {request.gain!r}", key="--gain", remedy=f"choose one of {', '.join(GAINS)}")
    force = request.force or request.check  # a check writes nothing
    check_output(out, "--out", (".sgy", ".segy"), force=force)
    for path in request.also:
        _check_also(path, found, force)
    pictures = [request.picture(source, name) for name in _PICTURES] if request.pictures else []
    for path in pictures:
        check_output(path, "--pictures", force=force)
    check_disk(found, out)


def _remove_replaced(request: SurveyRequest, source: Source) -> None:
    """Remove the file of an earlier survey, or its beginning, if it is to be replaced."""
    out = request.file(source)
    for path in (*unfinished(out), out) if request.force else ():
        path.unlink(missing_ok=True)


def _check_also(path: Path, found: SurveyCase, force: bool) -> None:
    if path.suffix not in (".rsf", ".zarr"):
        raise CaseError(f"cannot write {path.name!r}", key="--also", remedy="name a file that ends in .rsf or .zarr")
    if path.suffix == ".rsf" or not path.is_dir() or not force:
        check_output(path, "--also", force=force)
    if len({len(shot.receivers.positions) for shot in found.survey.shots}) > 1:
        raise CaseError(
            "shots have different numbers of receivers, which one array cannot hold",
            key="--also",
            remedy="leave --also out: SEG-Y holds all traces",
        )


def _stopped(request: SurveyRequest, source: Source) -> str:
    return f"stopped: the shots so far are kept beside {request.file(source)}; the same command computes the others"


def _finished(request: SurveyRequest, source: Source, found: SurveyCase) -> str:
    """Convert and draw; return what was written."""
    out = request.file(source)
    if not out.exists():
        raise RunError("the ranks have ended without the file", remedy="give the same command again")
    lines = [f"{len(found.survey.shots)} shots in {out}"]
    if request.also:
        from minga.output.survey_cube import read_cube, write_cube

        cube = read_cube(out, found.survey.quantities)
        for path in request.also:
            write_cube(path, cube, source.name)
            lines.append(f"  {path}")
    if request.pictures:
        lines += [f"  {path}" for path in _draw(request, source, found)]
    return "\n".join(lines)


def _draw(request: SurveyRequest, source: Source, found: SurveyCase) -> Sequence[Path]:
    from minga.models.waves.cli.survey_pictures import pictures
    from minga.output.directory import write_whole

    drawn = pictures(found, request.file(source), source.name, request.gain, request.threads)
    paths = [request.picture(source, name) for name in _PICTURES]
    for path, content in zip(paths, drawn, strict=True):
        write_whole(path, content)
    return paths
