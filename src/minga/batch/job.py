"""A job of Slurm that continues a run: ``python -m minga.batch.job RUN MARGIN``, started by the script of the job.

The run is started as ``minga run --resume RUN``. Shortly before the time limit Slurm sends SIGUSR1 to this process
alone, which passes it on, so the run writes a checkpoint and ends; then this job is put back into the queue. SIGTERM
ends the run in the same way and the chain of jobs with it, unless it is Slurm that requeues the job.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from minga.batch import slurm
from minga.batch.record import JobEntry, note_entry, note_number, read_entries
from minga.batch.script import SCRIPT
from minga.batch.verdict import Told, Verdict, verdict_of
from minga.errors import CaseError, LaunchError, MingaError, RunError
from minga.launch.exit_codes import OK
from minga.launch.signals import STOP_SIGNAL
from minga.output.checkpoint.head import heads_of
from minga.output.directory import RunDirectory
from minga.output.progress import is_active, note_state, read_progress
from minga.running.run_output import finished_result

__all__ = ["main", "work"]

_LAST: Final = 60.0
"""Seconds before the time limit at which a run that has not stopped is ended."""
_ENDING: Final = 40.0
"""Seconds that a run has to end after SIGTERM."""
_GONE: Final = 120.0
"""Seconds in which a process of the job before must be seen to be gone."""


def work(run: Path, margin: float, environment: Mapping[str, str] = os.environ) -> int:
    """Continue a run in this job, see to the next one, and return the exit status.

    Raises
    ------
    MingaError
        If this is no job, or the run cannot be continued.
    """
    directory, job = RunDirectory(run), environment.get("SLURM_JOB_ID", "")
    if not job:
        raise LaunchError(
            "this is not a job of Slurm", remedy=f"submit {run / SCRIPT} with minga submit --resume {run}"
        )
    if not directory.case.is_file():
        raise CaseError(f"{run} is not a run directory: it has no case.toml")
    if (known := read_entries(run)) and known[-1].then == "complete":
        _say(job, "the run is complete already")
        return OK
    _await_end(directory)
    entry = JobEntry(job, began=time.time(), first=_newest(directory))
    note_entry(run, entry)
    status, told = _computed(run, margin)
    last = _newest(directory)
    found = verdict_of(directory, status, told, entry.first, last)
    if found.then == "complete" and (result := finished_result(directory)) is not None:
        last = result["steps"]  # a complete run has no checkpoints
    note_entry(run, replace(entry, ended=time.time(), last=last, status=status, then=found.then))
    _say(job, found.text)
    _follow(found, directory, job)
    return found.status


def _follow(found: Verdict, directory: RunDirectory, job: str) -> None:
    """Put the job back into the queue if the run goes on; submit another one where this is forbidden."""
    if found.then == "stuck":
        note_state(directory, "failed", found.text)
    if found.then != "next":
        return
    note_state(directory, "stopped", "the time of its job was up; the next job waits in the queue")
    signal.signal(STOP_SIGNAL, signal.SIG_IGN)  # it may come after a run that has ended by itself
    try:
        slurm.requeue(job)
    except LaunchError as error:
        _say(job, error.message)
        try:
            following = slurm.submit_script(directory.path / SCRIPT)
        except LaunchError as refusal:
            note_state(directory, "failed", f"no job continues the run: {refusal.message}")
            raise
        note_number(directory.path, following)
        _say(job, f"job {following} continues the run")


def _computed(run: Path, margin: float) -> tuple[int, Told]:
    """Run ``minga run --resume``, and return its status, and what Slurm has told this process meanwhile."""
    told = Told()
    held = (STOP_SIGNAL, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, held)  # until there is somebody to pass them on to
    child = subprocess.Popen(
        [sys.executable, "-m", "minga", "run", "--resume", str(run)],
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, held),
    )

    def tell(number: int, frame: object) -> None:
        told.limit, told.ended = told.limit or number == STOP_SIGNAL, told.ended or number == signal.SIGTERM
        if child.returncode is None:
            child.send_signal(number)

    before = {number: signal.signal(number, tell) for number in held}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, held)
    try:
        return _waited(child, told, max(margin / 2, margin - _LAST)), told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _waited(child: subprocess.Popen[bytes], told: Told, patience: float) -> int:
    """Wait for a run; end it if it has not stopped in time after it was asked to."""
    asked: float | None = None
    terminated = False  # a second signal would end it before its checkpoint is written
    while True:
        try:
            return child.wait(1.0)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
        if not told.limit:
            continue
        asked = now if asked is None else asked
        if now - asked > patience + _ENDING:
            child.kill()
        elif now - asked > patience and not (told.ended or terminated):
            terminated = True
            child.terminate()


def _await_end(directory: RunDirectory) -> None:
    """Wait until no process of an earlier job is seen: Slurm starts a job again after a node has failed."""
    limit = time.monotonic() + _GONE
    while (progress := read_progress(directory)) is not None and is_active(directory, progress):
        if time.monotonic() > limit:
            raise RunError(f"the run in {directory.path} is still active on {progress.get('host')}")
        time.sleep(1.0)


def _newest(directory: RunDirectory) -> int | None:
    """Return the step of the newest checkpoint, None if there is none."""
    heads, _ = heads_of(directory.checkpoints)
    return heads[0].step if heads else None


def _say(job: str, text: str) -> None:
    sys.stderr.write(f"minga: job {job}: {text}\n")
    sys.stderr.flush()


def main(words: Sequence[str] | None = None) -> int:
    """Carry out the command line, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m minga.batch.job", description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("margin", type=float)
    given = parser.parse_args(words)
    try:
        return work(given.run, given.margin)
    except MingaError as error:
        sys.stderr.write(f"minga: {error}\n")
        return error.exit_status


if __name__ == "__main__":
    sys.exit(main())
