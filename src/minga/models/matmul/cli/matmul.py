"""The command ``minga matmul``: multiply matrices in files, in this process or on ranks, and report the cost."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from minga.cli.outputs import check_output
from minga.errors import CaseError, MingaError
from minga.launch.launcher import Job, surrounding_job, world
from minga.paths import same_file

if TYPE_CHECKING:
    from minga.engine.comm import Comm
    from minga.models.matmul.problem import Problem
    from minga.models.matmul.workers import Workers

__all__ = ["MatmulRequest", "matmul"]

_SAID: Final = 2.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True, slots=True)
class MatmulRequest:
    """The options of the command line."""

    a: Path
    b: Path
    out: Path | None = None
    c: Path | None = None
    alpha: complex = 1.0
    beta: complex = 0.0
    transpose_a: bool = False
    transpose_b: bool = False
    ranks: int | None = None
    hosts: Path | None = None
    shell: str = "ssh"
    machine: Path | None = None
    threads: int | None = None
    memory: str | None = None
    layout: str = "auto"
    width: int | None = None
    route: str | None = None
    from_one: bool = False
    plan: bool = False
    check: bool = True
    as_json: bool = False
    force: bool = False

    def arguments(self) -> list[str]:
        """Return the command line of each rank: this request with full paths, without options for starting ranks."""
        found = [str(self.a.absolute()), str(self.b.absolute()), "--alpha", repr(self.alpha), "--beta", repr(self.beta)]
        for name, value in (("-o", self.out), ("--c", self.c), ("--machine", self.machine)):
            found += [] if value is None else [name, str(value.absolute())]
        for name, word in (("--memory", self.memory), ("--threads", self.threads), ("--width", self.width),
                           ("--route", self.route)):  # fmt: skip
            found += [] if word is None else [name, str(word)]
        flags = (("--transpose-a", self.transpose_a), ("--transpose-b", self.transpose_b), ("--plan", self.plan),
                 ("--no-check", not self.check), ("--json", self.as_json), ("--from-one", self.from_one),
                 ("--force", self.force))  # fmt: skip
        return [*found, "--layout", self.layout, *(name for name, wanted in flags if wanted)]


def matmul(request: MatmulRequest) -> str | None:
    """Carry out a request.

    Return the text to be printed, or None on ranks other than 0 and if the launched ranks have printed it.
    """
    _check(request)
    job = surrounding_job()
    if job is not None and job.size > 1:
        return _in_job(request, job)
    _check_place(request)
    if request.hosts is not None or (request.ranks or 1) > 1:
        if job is not None:
            raise CaseError("ranks cannot be started inside a job", key="-n", remedy="leave -n and --hosts out")
        if not (request.plan and request.machine is not None):
            from minga.models.matmul.cli.launch import launch

            _read(request)  # report mistakes in the files before anything is started
            launch(request)
            return None
    from minga.engine.comm import SerialComm

    _limit_threads(request.threads)
    return _carry_out(request, SerialComm())


def _check(request: MatmulRequest) -> None:
    if request.out is None and not request.plan:
        raise CaseError("no file for the result was given", key="-o", remedy="name a file: -o C.npy")
    if request.out is not None and request.out.suffix != ".npy":
        raise CaseError(f"{request.out} does not end in .npy, the only format for results", key="-o")
    if request.ranks is not None and request.ranks < 1:
        raise CaseError(f"{request.ranks} ranks cannot be started", key="-n", remedy="ask for one rank or more")
    if request.width is not None and request.width < 1:
        raise CaseError(f"panels of {request.width} columns are not possible", key="--width", remedy="give 1 or more")
    if request.threads is not None and request.threads < 1:
        raise CaseError(f"{request.threads} threads are not possible", key="--threads", remedy="give 1 or more")
    if request.hosts is not None and request.ranks is not None:
        raise CaseError("-n and --hosts exclude each other", key="-n", remedy="write slots= into the hosts file")


def _check_place(request: MatmulRequest) -> None:
    """Check that the result can be written here; ranks on other machines need not have access to that directory."""
    if request.out is None:
        return
    for operand in (request.a, request.b):
        if same_file(operand, request.out):
            raise CaseError(
                f"{request.out} is an operand, which the result never replaces", key="-o", remedy="name another file"
            )
    check_output(request.out, "-o", force=request.force or request.plan)


def _memory(request: MatmulRequest) -> int | None:
    if request.memory is None:
        return None
    from minga.plan.machine.units import quantity

    try:
        return int(quantity(float(request.memory) if request.memory.isdigit() else request.memory, "memory"))
    except ValueError as error:
        raise CaseError(
            f"{request.memory!r} is not an amount of memory", key="--memory", remedy=f"give {error}"
        ) from None


def _read(request: MatmulRequest) -> Problem:
    from minga.models.matmul.problem import problem_of

    return problem_of(
        request.a, request.b, alpha=request.alpha, beta=request.beta, c=request.c,
        transpose_a=request.transpose_a, transpose_b=request.transpose_b,
    )  # fmt: skip


def _in_job(request: MatmulRequest, job: Job) -> str | None:
    """Carry out a request as one rank of a job; an error on one rank ends all ranks."""
    from minga.launch.rank_end import end_in_error

    everyone = world(job, job.size)
    if request.ranks not in (None, job.size):
        raise CaseError(f"{job.launcher} started {job.size} ranks, but -n asks for {request.ranks}", key="-n")
    try:
        _take_place(request.threads, job)
        from minga.engine.comm import MPIComm

        comm = MPIComm()
        if comm.rank == 0:
            _check_place(request)
        return _carry_out(request, comm)
    except BaseException as error:
        _leave_if_lost(error, everyone)
        end_in_error(error, everyone)


def _leave_if_lost(error: BaseException, everyone: Any) -> None:
    """End the job as MPI does if a message failed because the other rank has ended; the launcher then continues."""
    from mpi4py import MPI

    from minga.engine.comm import end_job
    from minga.launch.exit_codes import LOST
    from minga.launch.last_words import say_last

    if isinstance(error, MPI.Exception):
        say_last(f"minga: a message between ranks failed: {error}\n", everyone.rank)
        end_job(everyone, LOST)


def _carry_out(request: MatmulRequest, comm: Comm) -> str | None:
    from minga.engine.routes import GROUP
    from minga.models.matmul.plan import LAYOUTS, Layout
    from minga.models.matmul.product import Options, product
    from minga.models.matmul.report import summary
    from minga.plugins import names

    if request.layout not in LAYOUTS:
        raise CaseError(
            f"there is no layout {request.layout!r}", key="--layout", remedy=f"choose among {', '.join(LAYOUTS)}"
        )
    if request.route is not None and request.route not in (routes := names(GROUP)):
        raise CaseError(
            f"there is no route {request.route!r}", key="--route", remedy=f"choose among {', '.join(routes)}"
        )
    options = Options(cast(Layout, request.layout), request.width, _memory(request), request.check, route=request.route,
                      overwrite=request.force)  # fmt: skip
    if request.plan:
        return _planned(request, comm, options)
    workers = _described(request, comm)
    _, account = product(
        lambda: _read(request), request.out, comm, options, given=_sees(request, comm),
        progress=_Progress() if comm.rank == 0 else None, workers=workers,
    )  # fmt: skip
    if account is None:
        return None
    return json.dumps({"out": str(request.out), **account.as_dict()}) if request.as_json else (
        f"{summary(account)}\n  the result is {request.out}"
    )  # fmt: skip


def _planned(request: MatmulRequest, comm: Comm, options: Any) -> str | None:
    """Return the plan of a product without computing it, None on ranks other than 0."""
    from minga.models.matmul.agreement import agree_on_problem
    from minga.models.matmul.product import plan_of
    from minga.models.matmul.report import plan_as_dict, plan_text

    problem, anywhere = agree_on_problem(comm, lambda: _read(request), _sees(request, comm))
    anywhere = anywhere and not request.from_one
    workers = _described(request, comm, request.ranks)
    known, plan = plan_of(comm, problem, options, anywhere, workers)
    if comm.rank != 0:
        return None
    if request.as_json:
        return json.dumps(plan_as_dict(problem, known, plan, anywhere))
    return plan_text(problem, known, plan, anywhere)


def _sees(request: MatmulRequest, comm: Comm) -> bool:
    """Return True if this rank may read the operands; rank 0 always tries, and reports errors."""
    files = [path for path in (request.a, request.b, request.c) if path is not None]
    return comm.rank == 0 or (not request.from_one and all(path.is_file() for path in files))


def _described(request: MatmulRequest, comm: Comm, ranks: int | None = None) -> Workers | None:
    """Return the ranks as the machine file describes them, equal on all ranks; None without a machine file."""
    if request.machine is None:
        return None
    import platform

    from minga.models.matmul.workers import described
    from minga.plan.machine.machine import read_machine

    hosts = comm.gather(platform.node())
    found: Workers | MingaError | None = None
    if hosts is not None:
        try:
            machine = read_machine(request.machine)
            found = described(machine, _read(request).dtype, ranks, hosts if comm.size > 1 else ())
        except MingaError as error:
            found = error
    known: Workers | MingaError = comm.bcast(found)
    if isinstance(known, MingaError):
        raise known
    return known


def _take_place(threads: int | None, job: Job) -> None:
    """Pin this rank to its share of the cores of its node, with as many BLAS threads, before NumPy is imported."""
    from minga.engine.pin import available_cores, local_place, pin

    number, count = local_place(job.rank, job.size)
    said = os.environ.get("OPENBLAS_NUM_THREADS", "")
    mine = threads or (int(said) if said.isdigit() and int(said) else max(1, len(available_cores()) // count))
    _limit_threads(mine)
    pin(number, count, mine)


def _limit_threads(threads: int | None) -> None:
    """Limit the number of BLAS threads, before NumPy is imported."""
    if threads is not None:
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"):
            os.environ[name] = str(threads)


class _Progress:
    """Occasional lines of progress on standard error; each part of the product is counted anew."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._first = 0
        self._last = 0.0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._began is None or done <= self._first:  # the first panel takes longer, and does not predict the others
            self._began, self._first = now, done
            self._last = self._last or now
        elif now - self._last > _SAID and done < total:
            self._last = now
            left = (now - self._began) * (total - done) / (done - self._first)
            sys.stderr.write(f"minga: {done} of {total} panels, about {left:.0f} s left\n")
            sys.stderr.flush()


def rank_command(request: MatmulRequest) -> Sequence[str]:
    """Return the arguments of Python with which each rank is started."""
    return ["-m", "minga.cli.main", "matmul", *request.arguments()]
