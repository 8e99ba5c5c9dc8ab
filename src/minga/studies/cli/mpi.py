"""The command ``minga bench mpi``: run a case with every installed MPI library, in a lab or on this machine."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from minga.cli.case import find_source, read_case
from minga.cli.layouts import check_ranks
from minga.errors import CaseError, LaunchError, RunError, suggest
from minga.launch.implementations import NAMES, Implementation, find_implementation
from minga.launch.jobs import finished_job
from minga.launch.launcher import Launcher

__all__ = ["LibrariesRequest", "compare"]

Say = Callable[[str], None]
Start = Callable[[Implementation, Sequence[str], float], "subprocess.CompletedProcess[str]"]

_RANKS: Final = 2
_SLOW: Final = 180.0
"""Seconds that starting Python, compiling and planning may take on the nodes of a lab."""


@dataclass(frozen=True, slots=True)
class LibrariesRequest:
    """The options of ``minga bench mpi``."""

    target: str
    """The case."""
    overrides: tuple[str, ...] = ()
    """Entries of the case in the form ``key=value``."""
    lab: str | None = None
    """Name or file of a lab; None for this machine."""
    libraries: tuple[str, ...] = tuple(NAMES)
    """Keys of :data:`minga.launch.implementations.NAMES`."""
    ranks: int | None = None
    """Number of ranks; None for one on each node of a lab, or two on this machine."""
    seconds: float = 4.0
    """Seconds for which each variant is timed with each library."""
    sizes: tuple[int, ...] = ()
    """Sizes of messages in bytes; empty for those of the study."""
    rounds: int = 20
    """Repetitions of each message size."""


def compare(request: LibrariesRequest, say: Say) -> dict[str, Any]:
    """Run the jobs, one library after another, and return their results.

    See :mod:`minga.studies.tinetti.mpi_compared` for the contents.

    Raises
    ------
    CaseError
        If the case, the lab or a library is unknown, or another option is invalid.
    LaunchError
        If none of the libraries is installed.
    """
    from minga.studies.tinetti import mpi_compared

    _check(request)
    case = read_case(find_source(request.target), list(request.overrides))
    found: dict[str, dict[str, Any]] = {}
    with contextlib.ExitStack() as stack:
        start, ranks = _place(request, stack)
        order: dict[str, Any] = {
            "target": str(case.source.path.absolute()),
            "overrides": list(request.overrides),
            "ranks": ranks,
            "seconds": request.seconds,
            "sizes": list(request.sizes or mpi_compared.SIZES),
            "rounds": request.rounds,
        }
        for name in request.libraries:
            found[name] = _job(name, start, order, request, say)
            if "layout" in found[name]:
                order.setdefault("layout", found[name]["layout"])
    if all("missing" in one for one in found.values()):
        reasons = "; ".join(f"{NAMES[name]}: {one['missing']}" for name, one in found.items())
        raise LaunchError(f"no MPI implementation could be measured: {reasons}", remedy="`minga doctor` shows them")
    return mpi_compared.combined(case.name, request.lab, ranks, max(1, case.run.steps), found)


def _check(request: LibrariesRequest) -> None:
    for name in request.libraries:
        if name not in NAMES:
            raise CaseError(
                f"unknown MPI library {name!r}",
                key="--mpi",
                suggestion=suggest(name, NAMES),
                remedy=f"choose among {', '.join(NAMES)}",
            )
    if not request.seconds > 0:
        raise CaseError(
            f"{request.seconds:g} seconds are not enough to measure", key="--seconds", remedy="give 1 or more"
        )
    if request.ranks is not None and request.ranks < 2:
        raise CaseError(f"{request.ranks} ranks send no messages", key="-n", remedy="ask for two or more")
    if request.lab is None:
        check_ranks(request.ranks or _RANKS)


def _place(request: LibrariesRequest, stack: contextlib.ExitStack) -> tuple[Start, int]:
    """Return the function that starts a job, and the number of its ranks."""
    if request.lab is None:
        ranks = request.ranks or _RANKS
        return (lambda mpi, words, timeout: _start_here(mpi, ranks, words, timeout)), ranks
    from minga.lab.cluster import laboratory

    cluster = stack.enter_context(laboratory(request.lab))
    ranks = request.ranks or len(cluster.names)
    return (lambda mpi, words, timeout: cluster.run(words, ranks=ranks, mpi=mpi.name, timeout=timeout)), ranks


def _start_here(
    mpi: Implementation, ranks: int, arguments: Sequence[str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a job on this machine until it ends; if it takes too long, end it and raise RunError."""
    launcher = Launcher(mpi.launcher, mpi.vendor)
    try:
        return finished_job([*launcher.command(ranks), *arguments], launcher.environment() | mpi.environment, timeout)
    except subprocess.TimeoutExpired as error:
        raise RunError(f"the ranks of {mpi.vendor} did not end within {timeout:g} seconds and were ended") from error


def _job(name: str, start: Start, order: Mapping[str, Any], request: LibrariesRequest, say: Say) -> dict[str, Any]:
    """Run the job of a library, and return its results, or the reason why the library is missing."""
    try:
        mpi = find_implementation(name)
    except LaunchError as error:
        say(f"{NAMES[name]} is left out: {error.message}")
        return {"missing": error.message}
    say(f"{mpi.vendor} ...")
    words = [sys.executable, "-m", "minga.studies.cli.mpi_rank", json.dumps(order)]
    done = start(mpi, words, 30 * request.seconds + _SLOW)
    if done.returncode != 0 or not done.stdout.strip():
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise RunError(f"the ranks of {mpi.vendor} ended with status {done.returncode}:\n{said}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
