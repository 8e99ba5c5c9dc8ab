"""The command ``minga submit``: check the case, make the directory of its run, and submit the first job."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from minga.batch import record, slurm
from minga.batch.limit import limit_of, margin_of, slurm_time
from minga.batch.script import LOG, SCRIPT, JobScript, directives
from minga.cli.case import Case, find_source, read_case
from minga.cli.layouts import check_ranks
from minga.cli.resume import check_resumed, open_resumed, write_case
from minga.cli.run import check_replaced
from minga.errors import CaseError
from minga.output.checkpoint.keeper import checkpointing_of
from minga.output.directory import RunDirectory, write_whole

__all__ = ["Submission", "SubmitRequest", "submit"]


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """The options of the command line."""

    target: str
    time: str
    nodes: int = 1
    partition: str | None = None
    ranks: int | None = None
    threads: int | None = None
    margin: str | None = None
    overrides: Sequence[str] = ()
    out: Path | None = None
    force: bool = False
    resume: bool = False
    dry_run: bool = False
    sbatch: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Submission:
    """A job that was submitted; one that was not has no number."""

    script: JobScript
    job: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the submission for JSON."""
        return {
            "run": str(self.script.run),
            "job": self.job,
            "nodes": self.script.nodes,
            "seconds": self.script.limit,
            "script": self.script.text(),
        }

    def text(self) -> str:
        """Return what people read: the script of a job that was not submitted, else what was done."""
        if self.job is None:
            return self.script.text()
        nodes = f"{self.script.nodes} node{'s' if self.script.nodes > 1 else ''}"
        limit = slurm_time(self.script.limit)
        return (
            f"job {self.job} runs {self.script.name} on {nodes}, at most {limit} at a time, until it is complete\n"
            f"  everything is in {self.script.run}; what the run says is in its {LOG}\n"
            f"  scancel {self.job} ends it with a checkpoint\n"
        )


def submit(request: SubmitRequest) -> Submission:
    """Carry out a request; nothing is left behind if it is invalid, or if Slurm refuses the job.

    Raises
    ------
    CaseError
        If the case or an option is invalid.
    LaunchError
        If there is no Slurm, or it refuses the job.
    """
    limit, extra = limit_of(request.time), directives(request.sbatch)
    margin = margin_of(request.margin, limit)
    source = find_source(str(_resumed(request).case) if request.resume else request.target)
    options = {"run.ranks": request.ranks, "run.threads": request.threads}
    case = read_case(source, request.overrides, options, here=False)
    if checkpointing_of(case.options).off:
        raise CaseError(
            'a run in several jobs needs checkpoints, but checkpoint.every is "off"',
            key="checkpoint.every",
            remedy="leave it out: one is written every five minutes, and before the time limit",
        )
    ranks = request.ranks if request.resume else case.run.ranks
    if ranks is not None:
        check_ranks(ranks)
    script = JobScript(
        name=case.name,
        run=_place(request, case).resolve(),
        nodes=request.nodes,
        limit=limit,
        margin=margin,
        partition=request.partition,
        ranks=ranks,
        threads=case.run.threads,
        extra=extra,
    )
    if request.dry_run:
        return Submission(script)
    slurm.check_installed()
    if script.run.exists():  # which would be replaced, or get another case
        _check_no_job(_place(request, case))
        slurm.check_accepted(script.text())
    with _directory(request, case, ranks) as directory:
        script = replace(script, run=directory.path.resolve())
        write_whole(directory.path / SCRIPT, script.text())
        job = slurm.submit_script(directory.path / SCRIPT)
    record.note_number(directory.path, job)
    return Submission(script, job)


def _place(request: SubmitRequest, case: Case) -> Path:
    """Return the directory that the run will have."""
    if request.resume:
        return _resumed(request).path
    if request.out is None:
        return RunDirectory.free(case.name)
    RunDirectory.check_empty(request.out, request.force)
    return request.out


def _resumed(request: SubmitRequest) -> RunDirectory:
    """Return the directory of an interrupted run, if no job is to continue it already."""
    _check_no_job(Path(request.target))
    return open_resumed(request.target, request.out, request.force)


def _check_no_job(run: Path) -> None:
    """Raise CaseError if a job of the run waits or computes."""
    job = record.read_number(run)
    if job is not None and (state := slurm.state_of(job)) in slurm.ACTIVE:
        raise CaseError(
            f"job {job} of the run in {run} is {str(state).lower()}; nothing is submitted",
            key="CASE",
            remedy=f"wait until it has ended, or end it with scancel {job}",
        )


@contextlib.contextmanager
def _directory(request: SubmitRequest, case: Case, ranks: int | None) -> Iterator[RunDirectory]:
    """Yield the directory of the run with its case; a new one is removed in case of an error."""
    if request.resume:
        directory = _resumed(request)
        check_resumed(case, directory, ranks)
        write_case(case, directory, ranks)
        record.reopen(directory.path)
        yield directory
        return
    if request.force and request.out is not None:
        check_replaced(case, request.out)
        _check_no_job(request.out)
    directory = RunDirectory.create(request.out, case.name, request.force)
    try:
        case.save(directory, ranks)
        yield directory
    except BaseException:
        with contextlib.suppress(OSError):
            (directory.path / SCRIPT).unlink()
        directory.discard()
        raise
