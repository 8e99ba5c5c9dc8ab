"""The command ``minga bench mpi``: run a case with every installed MPI library, in a lab, on hosts or here."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from minga.cli.case import Case, find_source, read_case
from minga.cli.layouts import check_ranks
from minga.errors import CaseError, LaunchError, RunError, suggest
from minga.launch.implementations import NAMES, Implementation, find_implementation
from minga.launch.jobs import finished_job
from minga.launch.launcher import Launcher
from minga.launch.ranks import Ranks
from minga.output.directory import RunDirectory

__all__ = ["LibrariesRequest", "compare"]

Say = Callable[[str], None]
Start = Callable[[Implementation, Mapping[str, object], float], "subprocess.CompletedProcess[str]"]
"""Starts ranks with an MPI library; each carries out an order, and all have to end within some seconds."""

_PROGRAM: Final = "minga.studies.cli.mpi_rank"
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
    """Name or file of a lab; None for this machine, or hosts."""
    hosts: Path | None = None
    """Hosts file; None for this machine, or a lab."""
    shell: str = "ssh"
    """Program that reaches these hosts."""
    libraries: tuple[str, ...] = tuple(NAMES)
    """Keys of :data:`minga.launch.implementations.NAMES`."""
    ranks: int | None = None
    """Number of ranks; None for one on each node of a lab, all that the hosts take, or two on this machine."""
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
        start, ranks = _place(request, case, stack, say)
        order: dict[str, Any] = {
            "target": str(case.source.path.absolute()),
            "overrides": list(request.overrides),
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
    hosts = None if request.hosts is None else str(request.hosts)
    return mpi_compared.combined(case.name, request.lab, hosts, ranks, max(1, case.run.steps), found)


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
    if request.lab is not None and request.hosts is not None:
        raise CaseError("ranks cannot be in a lab and on hosts", key="--hosts", remedy="leave out --lab or --hosts")
    if request.lab is None and request.hosts is None:
        check_ranks(request.ranks or _RANKS)


def _place(request: LibrariesRequest, case: Case, stack: contextlib.ExitStack, say: Say) -> tuple[Start, int]:
    """Return the function that starts a job, and the number of its ranks."""
    if request.lab is not None:
        return _in_lab(request.lab, request.ranks, stack)
    if request.hosts is not None:
        prepared = _on_hosts(request, case, stack, say)
        return (lambda mpi, order, timeout: _started(replace(prepared, launcher=_of(mpi)), mpi, order, timeout)), (
            prepared.count
        )
    count = request.ranks or _RANKS
    return (lambda mpi, order, timeout: _started(Ranks(_of(mpi), count, program=_PROGRAM), mpi, order, timeout)), count


def _of(mpi: Implementation) -> Launcher:
    return Launcher(mpi.launcher, mpi.vendor)


def _in_lab(lab: str, count: int | None, stack: contextlib.ExitStack) -> tuple[Start, int]:
    from minga.lab.cluster import laboratory

    cluster = stack.enter_context(laboratory(lab))
    ranks = count or len(cluster.names)

    def start(mpi: Implementation, order: Mapping[str, object], timeout: float) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", _PROGRAM, json.dumps({**order, "ranks": ranks})]
        return cluster.run(words, ranks=ranks, mpi=mpi.name, timeout=timeout)

    return start, ranks


def _on_hosts(request: LibrariesRequest, case: Case, stack: contextlib.ExitStack, say: Say) -> Ranks:
    """Return the ranks on hosts, which have got the case."""
    from minga.cli.start import demand_of, ranks_on_hosts

    assert request.hosts is not None
    start = stack.enter_context(ranks_on_hosts(demand_of(case), request.hosts, request.shell, request.ranks))
    if start.weights is not None and 0.0 in start.weights:
        raise CaseError(
            f"this machine, which has rank 0, is not in {request.hosts}",
            key="--hosts",
            remedy="add a line for it, or start on one of the hosts",
        )
    for note in start.notes:
        say(note)
    directory = RunDirectory(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="minga-bench-"))))
    case.save(directory, start.ranks)
    assert start.prepare is not None  # it has hosts
    return replace(start.prepare(directory, say), program=_PROGRAM)


def _started(
    ranks: Ranks, mpi: Implementation, order: Mapping[str, object], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a job until it ends; if it takes too long, end it and raise RunError."""
    environment = ranks.environment() | mpi.environment
    try:
        with ranks.command(order, environment) as command:
            return finished_job(command, environment, timeout)
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
    done = start(mpi, order, 30 * request.seconds + _SLOW)
    if done.returncode != 0 or not done.stdout.strip():
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise RunError(f"the ranks of {mpi.vendor} ended with status {done.returncode}:\n{said}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
