"""Commands of Slurm: submitting a job, putting it back into the queue, and looking for it there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from minga.errors import LaunchError

__all__ = ["ACTIVE", "check_accepted", "check_installed", "requeue", "state_of", "submit_script"]

ACTIVE: Final = ("PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING", "REQUEUED", "REQUEUE_HOLD", "STOPPED")
"""States of jobs that will run, or do so."""

_PATIENCE: Final = 120.0
"""Seconds in which a command of Slurm must answer; its own limits are shorter."""
_OTHERS: Final = {"qsub": "PBS or Grid Engine", "bsub": "LSF", "oarsub": "OAR"}
"""Commands that submit jobs to other systems."""


def check_installed() -> None:
    """Raise LaunchError if jobs cannot be submitted from here."""
    if shutil.which("sbatch"):
        return
    other = next((name for name in _OTHERS if shutil.which(name)), None)
    found = "" if other is None else f"; {other} is there, of {_OTHERS[other]}, for which minga writes no jobs"
    raise LaunchError(
        f"minga submit needs Slurm, but its command sbatch was not found{found}",
        remedy="log in to a machine from which jobs are submitted, or --dry-run to see the script"
        if other is None
        else 'write a job script, as "In a batch system" in docs/survival.md shows',
    )


def check_accepted(text: str) -> None:
    """Raise LaunchError if Slurm would refuse a script; nothing is submitted."""
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
        file.write(text)
        file.flush()
        done = _call(["sbatch", "--test-only", file.name])
    if done.returncode != 0:
        raise _refused(done)


def submit_script(script: Path, environment: Mapping[str, str] = os.environ) -> str:
    """Submit a script, and return the number of its job.

    Raises
    ------
    LaunchError
        If Slurm refuses it.
    """
    outside = {name: value for name, value in environment.items() if name == "SLURM_CONF" or not _of_a_job(name)}
    done = _call(["sbatch", "--parsable", str(script)], outside)
    if done.returncode != 0 or not (words := done.stdout.split()):
        raise _refused(done)
    return words[-1].partition(";")[0]


def _refused(done: subprocess.CompletedProcess[str]) -> LaunchError:
    return LaunchError(
        f"sbatch has not accepted the job: {_said(done)}",
        remedy="`sinfo` shows partitions and their limits; --dry-run shows the script",
    )


def requeue(job: str) -> None:
    """Put this job back into the queue, where it keeps its number; it is ended here.

    Raises
    ------
    LaunchError
        If Slurm refuses this.
    """
    done = _call(["scontrol", "requeue", job])
    if done.returncode != 0:
        raise LaunchError(f"scontrol has not put job {job} back into the queue: {_said(done)}")


def state_of(job: str) -> str | None:
    """Return the state of a job that Slurm still knows, None for other jobs."""
    try:
        done = _call(["squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T"])
    except LaunchError:
        return None
    words = done.stdout.split() if done.returncode == 0 else []
    return words[0] if words else None


def _of_a_job(name: str) -> bool:
    return name.startswith(("SLURM_", "SLURMD_", "SRUN_"))


def _said(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a command that failed has printed, in one line."""
    lines = [line.removeprefix("sbatch: ").removeprefix("error: ") for line in done.stderr.splitlines() if line.strip()]
    return "; ".join(lines) or f"it ended with status {done.returncode}"


def _call(words: list[str], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
    except OSError as error:
        raise LaunchError(f"{words[0]} cannot be started: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise LaunchError(f"{words[0]} has not answered for {_PATIENCE:g} s") from error
