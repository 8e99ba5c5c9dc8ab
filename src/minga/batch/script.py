"""The script of a job of Slurm that continues a run."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minga.batch.limit import slurm_time
from minga.errors import CaseError

__all__ = ["LOG", "SCRIPT", "JobScript", "directives"]

SCRIPT: Final = "job.sh"
"""Name of the script in the directory of the run."""
LOG: Final = "job.log"
"""Name of the file to which all jobs of the run add what they print."""

_OURS: Final[Mapping[str, str]] = {
    "--nodes": "--nodes", "-N": "--nodes", "--time": "--time", "-t": "--time", "--partition": "--partition",
    "-p": "--partition", "--ntasks": "-n", "-n": "-n", "--cpus-per-task": "--threads", "-c": "--threads",
    "--signal": "--margin",
}  # fmt: skip
"""Options of sbatch that options of `minga submit` stand for."""
_FIXED: Final = ("--output", "-o", "--open-mode", "--requeue", "--no-requeue", "--array", "-a", "--wrap", "--parsable")
"""Options of sbatch on which a chain of jobs depends."""
_TASKS: Final = ("--ntasks-per-node", "--ntasks-per-gpu", "--ntasks-per-socket", "--ntasks-per-core", "--exclusive")
"""Options of sbatch that say how much of its nodes a job gets."""


def directives(words: Sequence[str]) -> tuple[str, ...]:
    """Return options of sbatch as lines of a script: each begins with its option, and its value follows.

    Raises
    ------
    CaseError
        If the first word is no option, or an option is not free.
    """
    lines: list[list[str]] = []
    for word in words:
        if word.startswith("-"):
            _check_free(word)
            lines.append([word])
        elif lines:
            lines[-1].append(word)
        else:
            raise CaseError(
                f"found {word!r} where an option of sbatch was expected",
                key="SBATCH",
                remedy="write options of sbatch behind --: minga submit CASE --time 2h -- --account=ab12",
            )
    return tuple(map(shlex.join, lines))


def _check_free(word: str) -> None:
    name = _name(word)
    if name in _OURS:
        raise CaseError(f"{word}: minga submit has an option for this", key="SBATCH", remedy=f"write {_OURS[name]}")
    if name in _FIXED:
        raise CaseError(
            f"{word}: minga submit sets this itself, so that jobs can follow one another",
            key="SBATCH",
            remedy="leave it out",
        )


def _name(word: str) -> str:
    """Return the name of an option that may have its value attached, ``--mem=4G`` or ``-A4``."""
    return word.partition("=")[0] if word.startswith("--") else word[:2]


@dataclass(frozen=True, slots=True)
class JobScript:
    """A job that continues a run on some nodes until its time limit comes near.

    Attributes
    ----------
    name
        Name of the job.
    run
        Directory of the run.
    nodes
        Number of nodes.
    limit, margin
        Seconds of the time limit, and seconds before it at which the run is asked to stop.
    partition
        Partition of the cluster; None for the default one.
    ranks, threads
        Number of ranks, None for as many as the nodes have cores, and threads of each.
    extra
        More options of sbatch, a line each.
    python
        The Python that has minga.
    """

    name: str
    run: Path
    nodes: int
    limit: int
    margin: int
    partition: str | None = None
    ranks: int | None = None
    threads: int = 1
    extra: tuple[str, ...] = ()
    python: str = sys.executable

    def __post_init__(self) -> None:
        if self.ranks is not None and self.ranks < self.nodes:
            raise CaseError(
                f"{self.ranks} rank{'s' if self.ranks > 1 else ''} on {self.nodes} nodes would leave nodes idle",
                key="--nodes",
                remedy="ask for fewer nodes, or for more ranks with -n",
            )

    def text(self) -> str:
        """Return the text of the script."""
        log = str(self.run / LOG).replace("\\", "\\\\").replace("%", "%%")
        options = [
            f"--job-name={shlex.quote(self.name)}",
            f"--nodes={self.nodes}",
            *self._share(),
            f"--time={slurm_time(self.limit)}",
            *([] if self.partition is None else [f"--partition={shlex.quote(self.partition)}"]),
            f"--output={shlex.quote(log)}",
            "--open-mode=append",
            "--requeue",
            f"--signal=B:USR1@{self.margin}",
            *self.extra,
        ]
        job = shlex.join([self.python, "-m", "minga.batch.job", str(self.run), str(self.margin)])
        lines = ["#!/bin/bash", *(f"#SBATCH {option}" for option in options)]
        return "\n".join(
            [*lines, "# Continues the run until it is complete, in one job after another.", f"exec {job}\n"]
        )

    def _share(self) -> list[str]:
        """Return how much of its nodes the job gets: all, unless something else is asked for."""
        if self.ranks is not None:
            threads = [f"--cpus-per-task={self.threads}"] if self.threads > 1 else []
            return [f"--ntasks={self.ranks}", *threads]
        return [] if any(_name(line) in _TASKS for line in self.extra) else ["--exclusive"]
