"""The command ``minga run``: check the case, choose the number of ranks, run it, and report the result."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minga.cli.case import Case, Source, find_source, read_case
from minga.cli.finish import finish, leave_unfinished
from minga.cli.inputs import absolute
from minga.cli.job import agreed_case, crowded
from minga.cli.layouts import check_layout, check_mapping, computing_ranks
from minga.cli.preflight import announce
from minga.cli.resume import check_resumed, open_resumed, result_without_end, resume_hint, say, write_case
from minga.cli.start import Start, demand_of, ranks_here, ranks_on_hosts
from minga.cli.taking_part import TakingPart
from minga.errors import CaseError, LaunchError, RunError
from minga.launch.exit_codes import INTERRUPTED, OK, REPORTED, status_of
from minga.launch.launcher import Job, surrounding_job, world
from minga.launch.signals import GRACE, StopRequest
from minga.launch.watchdog.loss import LossError
from minga.launch.watchdog.watched import Watched, watch_limit
from minga.output.directory import RunDirectory
from minga.output.progress import is_active, note_state, read_progress
from minga.running.finishing import reason_of
from minga.running.past import Past
from minga.view.progress import Listener, LogLines, progress_display, ranks_text

if TYPE_CHECKING:
    from minga.launch.watchdog.carry_on import Again

__all__ = ["RunRequest", "check_replaced", "run"]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A request of the command line for a run.

    Attributes
    ----------
    target
        The case, or with `resume` the directory of a run.
    settings
        Values of options that stand for settings of the case, by their keys; None for those that were not given.
    overrides
        Entries of the case in the form ``key=value``.
    hosts, shell
        The file of the hosts to run on, None for this machine, and the program that runs commands there.
    """

    target: str
    settings: Mapping[str, int | str | bool | None] = field(default_factory=dict)
    overrides: Sequence[str] = ()
    out: Path | None = None
    force: bool = False
    serve: bool = False
    resume: bool = False
    hosts: Path | None = None
    shell: str = "ssh"

    @property
    def options(self) -> dict[str, int | str | bool | None]:
        """Settings with absolute paths of files."""
        files = {key: self.settings.get(key) for key in ("run.topology", "run.machine")}
        return {**self.settings, **{key: value and str(absolute(str(value))) for key, value in files.items()}}

    @property
    def ranks(self) -> int | str | bool | None:
        """Number of ranks, None if it was not given."""
        return self.settings.get("run.ranks")


def run(request: RunRequest) -> tuple[dict[str, Any] | None, int]:
    """Carry out a request, and return the result, None on ranks other than 0, and the exit status."""
    job = surrounding_job()
    if job is not None and job.size > 1:
        return _run_in_job(request, job)
    case = read_case(_source(request), request.overrides, request.options)
    if request.resume:
        directory = open_resumed(request.target, request.out, request.force)
        if (result := result_without_end(case, directory)) is not None:
            finish(case, directory, result)
            return result, status_of(result["ended"]["reason"])
    watch_limit(case.run.watch)
    with contextlib.ExitStack() as held:
        start = held.enter_context(_start(request, case, inside=job is not None))
        _check_shares(start, case)
        directory = _make_directory(request, case, start.ranks, case.run.ranks)
        with progress_display(case.name, case.run.steps) as listener:
            _serve(request, directory, listener)
            for note in start.notes:
                listener.note(note)
            if start.prepare is None:
                result = _run_alone(case, directory, listener, request.resume)
            else:
                result = _launched(start, held, request, case, directory, listener)
    finish(case, directory, result)
    return result, status_of(result["ended"]["reason"])


def _check_shares(start: Start, case: Case) -> None:
    """Raise CaseError if the ranks cannot share the cells in the way that the case asks for."""
    computing = computing_ranks(start.ranks, start.options(case))
    check_layout(case.run.layout, case.model, computing)
    check_mapping(case.located.run, case.model, computing)


def _start(
    request: RunRequest,
    case: Case,
    *,
    inside: bool = False,
    barred: Collection[str] | None = None,
    dropped: Collection[str] = (),
) -> contextlib.AbstractContextManager[Start]:
    """Return the ranks that are to be started; the number in the case of a resumed run was that of other machines.

    After a loss, `barred` hosts stay out, and so do hosts that cannot take part, and those that were `dropped`.
    """
    if request.hosts is None:
        return ranks_here(case, inside=inside)
    wanted = request.ranks if request.resume else case.run.ranks
    wanted = None if wanted is None else int(wanted)
    return ranks_on_hosts(demand_of(case), request.hosts, request.shell, wanted, barred, dropped)


def _source(request: RunRequest) -> Source:
    """Return the file of the case, for a resumed run the one in its directory."""
    if request.resume:
        return find_source(str(open_resumed(request.target, request.out, request.force).case))
    return find_source(request.target)


def _make_directory(request: RunRequest, case: Case, ranks: int, asked: int | None) -> RunDirectory:
    """Create the directory of the run with the resolved case in it; leave nothing behind in case of an error.

    Only a number of ranks that was `asked` for is kept: a resumed run has others, such as all of its job's nodes.
    """
    if request.resume:
        directory = open_resumed(request.target, request.out, request.force)
        notes = check_resumed(case, directory, ranks, elsewhere=request.hosts is not None)
        write_case(case, directory, asked)
        announce(case, ranks, directory)
        note_state(directory, "starting")
        say(notes)
        return directory
    if request.force and request.out is not None:
        check_replaced(case, request.out)
    directory = RunDirectory.create(request.out, case.name, request.force)
    try:
        case.save(directory, asked)
        announce(case, ranks, directory)
        note_state(directory, "starting")
    except BaseException:
        directory.discard()
        raise
    return directory


def check_replaced(case: Case, out: Path) -> None:
    """Raise CaseError if the run in ``out`` must not be replaced: it is still active, or the case reads its files."""
    directory = RunDirectory(out)
    progress = read_progress(directory)
    if progress is not None and is_active(directory, progress):
        raise CaseError(
            f"the run in {out} is still active, as process {progress['pid']} on {progress['host']}; "
            "nothing is overwritten",
            key="--out",
            remedy="choose another directory, or end that run first",
        )
    for file in case.files:
        if file.resolve().is_relative_to(out.resolve()):
            raise CaseError(
                f"the case reads {out / file.resolve().relative_to(out.resolve())}, which --force would remove;"
                " nothing is overwritten",
                key="--out",
                remedy="choose another directory",
            )


def _serve(request: RunRequest, directory: RunDirectory, listener: Listener) -> None:
    if request.serve:
        from minga.cli.watch import start_server

        listener.note(start_server(directory))


def _run_alone(case: Case, directory: RunDirectory, listener: Listener, resume: bool) -> dict[str, Any]:
    from minga.cli.perform import perform
    from minga.engine.comm import SerialComm

    def late() -> None:
        """End this process from a thread, while the main thread is in native code."""
        sys.stderr.write(f"minga: the step did not end within {GRACE:g} s; the run is ended\n")
        _leave(case, directory, KeyboardInterrupt(), resume)
        sys.stderr.flush()
        os._exit(INTERRUPTED)

    try:
        with StopRequest(late=late).listening() as stop:
            result = perform(case, SerialComm(), directory, listener, stop, resume, stop.answer)
    except BaseException as error:
        _leave(case, directory, error, resume)
        raise
    assert result is not None  # on rank 0
    return result


def _leave(case: Case, directory: RunDirectory, error: BaseException, resumed: bool) -> None:
    """Finish the output of a run that failed, and print how to resume it."""
    ended = isinstance(error, KeyboardInterrupt)
    kept = leave_unfinished(
        case,
        directory,
        reason_of(error),
        state="stopped" if ended else "lost" if isinstance(error, LossError) else "failed",
        drop=not (resumed or ended),
    )
    if kept and not isinstance(error, CaseError):
        _hint(directory, ended)


def _hint(directory: RunDirectory, ended: bool) -> None:
    """Print how to resume a run; one that the user ended can always be resumed, if only from its first step."""
    hint = resume_hint(directory)
    if hint is None and ended:
        hint = f"no checkpoint was written; minga run --resume {directory.path} starts from the first step"
    if hint:
        sys.stderr.write(f"minga: {hint}\n")


def _launched(
    start: Start,
    held: contextlib.ExitStack,
    request: RunRequest,
    case: Case,
    directory: RunDirectory,
    listener: Listener,
) -> dict[str, Any]:
    """Start the ranks of a run, again after losses if the case says so, and return its result.

    What `held` holds for the ranks is replaced where others are started.
    """
    from minga.launch.watchdog.carry_on import carry_on

    continues = case.run.on_loss == "continue"
    takers = TakingPart(request.shell, directory, continues and case.options.checkpoint.every != "off")
    began = time.monotonic()

    def start_them(again: Again | None) -> int:
        if again is None:
            return _started(start, request, case, directory, listener, request.resume, Past(), takers, {})
        held.close()
        try:
            anew = held.enter_context(_start(request, case, barred=again.barred, dropped=takers.slow))
        except LaunchError:
            takers.slow.clear()  # the hosts that are left may all be gone
            raise
        for note in anew.notes:
            listener.note(note)
        _check_shares(anew, case)
        takers.started(anew)
        past = Past(time.monotonic() - began, again.losses)
        return _started(anew, request, case, directory, listener, True, past, takers, again.barred)

    try:
        status = carry_on(
            start_them, directory, listener.note, continues=continues, leaves_out=request.hosts is not None
        )
    except BaseException as error:
        _leave(case, directory, error, request.resume)
        raise
    if status != 0 or not directory.result.exists():
        said = f"the run on {ranks_text(start.ranks)} ended with status {status}"
        kept = leave_unfinished(case, directory, said, drop=not request.resume and status in REPORTED)
        raise RunError(
            f"{said}; results up to then are in {directory.path}" if kept else said,
            remedy=resume_hint(directory) if kept else None,
        )
    result: dict[str, Any] = json.loads(directory.result.read_text())
    return result


def _started(
    start: Start,
    request: RunRequest,
    case: Case,
    directory: RunDirectory,
    listener: Listener,
    resume: bool,
    past: Past,
    takers: TakingPart,
    barred: Mapping[str, float],
) -> int:
    """Start the ranks of a run once, and return their status.

    Raises
    ------
    HostsChangedError
        If they were stopped to continue with other hosts.
    """
    from minga.launch.launch import launch

    counts = {"run.ranks": start.ranks, "run.threads": case.run.threads}
    # A run that is resumed has all of its case in its directory; the user's file may have changed.
    given: tuple[Path, Sequence[str], Mapping[str, Any]] = (directory.case, (), {})
    target, overrides, options = given if resume else (case.source.path, request.overrides, request.options)
    order: dict[str, object] = {
        "target": str(target.absolute()),
        "overrides": list(overrides),
        "options": {**options, **counts} | ({} if start.weights is None else {"run.weights": start.weights}),
        "run": str(directory.path.absolute()),
        "resume": resume,
        "drops": takers.may_change,
        "past": asdict(past),
    }
    assert start.prepare is not None
    ranks, limit = start.prepare(directory, listener.note), watch_limit(case.run.watch)
    watched = None if limit is None else Watched.of(directory.path, limit, ranks)
    comeback, dropping = takers.comeback(start, barred), takers.dropping(ranks.hosts)
    status = launch(ranks, order, listener, watched, comeback, dropping)
    if status == OK:
        takers.check_changed(comeback, dropping)
    return status


def _run_in_job(request: RunRequest, job: Job) -> tuple[dict[str, Any] | None, int]:
    """Run as one rank of a job that the user started with another launcher."""
    from minga.launch.rank_end import end_late

    leaves: list[Callable[[], None]] = []
    stop = StopRequest(late=lambda: end_late(*leaves))
    with stop.listening():
        done = _perform_in_job(request, job, stop, leaves)
    if done is None:
        return None, 0
    case, directory, result = done
    finish(case, directory, result)
    return result, status_of(result["ended"]["reason"])


def _perform_in_job(
    request: RunRequest, job: Job, stop: StopRequest, leaves: list[Callable[[], None]]
) -> tuple[Case, RunDirectory, dict[str, Any]] | None:
    """Run as one of several ranks, and return on rank 0 the case, its directory and the result.

    On rank 0 a function is added to ``leaves``, to be called if the run is ended from outside.
    """
    from minga.cli.job_watch import job_watch
    from minga.cli.perform import perform
    from minga.engine.comm import MPIComm
    from minga.launch.rank_end import end_in_error
    from minga.output.versions import check_versions

    everyone = world(job, job.size)
    comm = MPIComm()
    notes = check_versions(comm)
    case = agreed_case(comm, lambda: _case_of_job(request, job))
    notes += crowded(comm, case.run.threads)
    if request.resume:
        directory = open_resumed(request.target, request.out, request.force)
        result = comm.bcast(result_without_end(case, directory) if comm.rank == 0 else None)
        if result is not None:
            return (case, directory, result) if comm.rank == 0 else None
    directory = _agreed_directory(comm, request, case)
    if comm.rank == 0:
        leaves.append(lambda: _leave(case, directory, KeyboardInterrupt(), request.resume))
    try:
        with job_watch(comm, case, directory, lambda error: _leave(case, directory, error, request.resume)) as hearts:
            if comm.rank != 0:
                log = LogLines(case.name, sys.stderr)
                perform(case, comm, directory, log, stop, request.resume, stop.answer, hearts)
                return None
            with progress_display(case.name, case.run.steps) as listener:
                _serve(request, directory, listener)
                for note in notes:
                    listener.note(note)
                result = perform(case, comm, directory, listener, stop, request.resume, stop.answer, hearts)
    except BaseException as error:
        fault = error
        leave = (lambda: _leave(case, directory, fault, request.resume)) if comm.rank == 0 else None
        end_in_error(error, everyone, leave)
    assert result is not None  # on rank 0
    return case, directory, result


def _case_of_job(request: RunRequest, job: Job) -> Case:
    """Read the case on this rank."""
    if request.hosts is not None:
        raise CaseError(
            "the ranks of a job run where its launcher has started them", key="--hosts", remedy="leave --hosts out"
        )
    if request.ranks not in (None, job.size):
        raise CaseError(f"{job.launcher} started {job.size} ranks, but -n asks for {request.ranks}", key="-n")
    case = read_case(_source(request), request.overrides, request.options)
    computing = computing_ranks(job.size, case.options)
    check_layout(case.run.layout, case.model, computing)
    check_mapping(case.located.run, case.model, computing)
    return case


def _agreed_directory(comm: Any, request: RunRequest, case: Case) -> RunDirectory:
    """Return the directory of the run, which rank 0 creates; collective."""
    answer: RunDirectory | Exception | None = None
    if comm.rank == 0:
        try:
            answer = _make_directory(request, case, comm.size, comm.size)
        except Exception as error:
            answer = error
    agreed = comm.bcast(answer)
    if isinstance(agreed, RunDirectory):
        return agreed
    raise agreed  # on all ranks, so that all end; only rank 0 reports the reason
