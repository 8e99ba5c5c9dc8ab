"""``mg.matmul``: a checked product of matrices, in this process alone or on all ranks of a communicator."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from minga.engine.comm import Comm, SerialComm
from minga.errors import CaseError, MingaError
from minga.models.matmul.agreement import agree_on_problem, open_result, separate_c0
from minga.models.matmul.blocks import Block, Task, missing
from minga.models.matmul.check import Check, freivalds
from minga.models.matmul.multiply import Execution, Ledger, Progress, multiply
from minga.models.matmul.operands import Array
from minga.models.matmul.plan import WIDTH, Layout, Plan, Size, break_even, break_even_from_one, make_plan
from minga.models.matmul.problem import Problem, problem_of
from minga.models.matmul.result import ArrayResult, PartialFile, Result
from minga.models.matmul.workers import Wire, Workers, measured
from minga.plan.links import Links
from minga.plan.ranks import RankGroup
from minga.plan.speed import Speed
from minga.plan.topology import seats_of

__all__ = ["Account", "Options", "matmul", "plan_of", "product"]

_SHORTEST: Final = 0.1
_LONGEST: Final = 0.6
"""Bounds of the time spent on timing products, and on timing messages, s."""
_USUAL: Final = 1e10
"""Typical speed of a core, multiply-adds per second."""
_SMALL: Final = 2.0**27
"""Number of multiply-adds below which nothing is measured or planned: 10 ms on one core."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a product.

    Attributes
    ----------
    layout
        "auto", "rows", "columns", "alone" or "equal", see :func:`minga.models.matmul.plan.make_plan`.
    width
        Number of columns of a panel.
    memory
        Bytes of matrices that each rank may hold.
    check
        Whether the result is checked.
    cache
        Whether speeds measured in the last week are reused.
    route
        Route of the panels: "pairwise", "collective", "chain" or "group"; by default the best one for the links.
    overwrite
        Whether the result may replace an existing file.
    """

    layout: Layout = "auto"
    width: int | None = None
    memory: int | None = None
    check: bool = True
    cache: bool = True
    route: str | None = None
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Account:
    """Account of a product: its plan, the time it took and its check.

    Attributes
    ----------
    problem
        The product.
    plan
        The plan of the last part; None if nothing had to be computed.
    workers
        The ranks; None if they were not measured.
    seen, stored
        Whether all ranks read the operands, and whether all ranks store what they compute.
    seconds, measuring, checking
        Time of the product alone, of measuring speeds and planning, and of the check, s.
    ledgers
        Times of each rank, by activity.
    check
        Outcome of the check; None if the result was not checked.
    before
        Fraction of the result that was already there, 0 to 1.
    predicted
        Time of the rest as predicted by the plans, s; 0 if nothing was planned.
    """

    problem: Problem
    plan: Plan | None
    workers: Workers | None
    seen: bool
    stored: bool
    seconds: float
    measuring: float
    checking: float
    ledgers: tuple[Ledger, ...]
    check: Check | None
    before: float = 0.0
    predicted: float = 0.0

    @property
    def flops(self) -> float:
        """Number of floating-point operations that were carried out now."""
        return self.problem.flops_each * self.problem.multiply_adds * (1 - self.before)

    def as_dict(self) -> dict[str, Any]:
        """Return the account as plain data for JSON."""
        problem, workers = self.problem, self.workers
        found: dict[str, Any] = {
            "shape": [problem.rows, problem.columns, problem.depth],
            "dtype": problem.dtype.str[1:],
            "operands_seen_by_all": self.seen,
            "stored_by_all": self.stored,
            "seconds": self.seconds,
            "predicted_seconds": self.predicted or None,
            "measuring_seconds": self.measuring,
            "checking_seconds": self.checking,
            "flop_per_second": self.flops / self.seconds if self.seconds > 0 else None,
            "there_before": self.before,
            "ledger": [ledger.as_dict() for ledger in self.ledgers],
            "check": None if self.check is None else self.check.as_dict(),
            "plan": None if self.plan is None else self.plan.as_dict(),
        }
        if workers is not None:
            found |= described_workers(workers, problem)
        return found


def described_workers(workers: Workers, problem: Problem) -> dict[str, Any]:
    """Return the speeds in flop/s, the network and the sizes at which products break even, as plain data for JSON."""
    alone = break_even_from_one(workers, problem.itemsize)
    return {
        "ranks": [workers.name(rank) for rank in range(workers.ranks)],
        "speeds": (problem.flops_each * workers.rates).tolist(),
        "copying": list(workers.copying),
        "handling": list(workers.handling),
        "route": workers.route,
        "to_all": {"alpha": workers.wire.alpha, "beta": workers.wire.beta, "shared": workers.wire.shared},
        "break_even": break_even(workers, problem.itemsize),
        "break_even_from_one": alone if np.isfinite(alone) else None,
        "speeds_are": workers.origin,
    }


def matmul(
    a: ArrayLike | Path | str | None,
    b: ArrayLike | Path | str | None,
    *,
    alpha: complex = 1.0,
    beta: complex = 0.0,
    c: ArrayLike | Path | str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    out: Array | Path | str | None = None,
    overwrite: bool = False,
    plan: Plan | None = None,
    comm: Comm | None = None,
    memory: int | None = None,
    check: bool = True,
) -> Array | None:
    """Compute C = alpha op(A) op(B) + beta C0 on all ranks of ``comm``, with rows in proportion to their speeds.

    The last bits of the result depend on the BLAS of each rank and on the distribution of the work.

    Parameters
    ----------
    a, b, c
        Matrices of f4, f8, c8 or c16, all of one type, in any byte order: arrays, or ``.npy`` files, which are mapped.
        Either every rank gives the same ones, or rank 0 alone gives them and all others give None; rank 0 then sends
        them what they need, and receives the result.
    alpha, beta
        Finite factors, real for real matrices; ``c`` is not needed if ``beta`` is 0.
    transpose_a, transpose_b
        Whether to multiply with the transpose.
    out
        Destination of the result: an array of its shape and type, or a ``.npy`` file, which appears when it is
        complete. The finished part of an interrupted product is kept beside that file, in ``NAME.partial``, and reused
        the next time. The destination must not share memory or a file with ``a`` or ``b``; if it shares memory with
        ``c``, it replaces its values.
    overwrite
        Whether ``out`` may name an existing file, which is then replaced.
    plan
        Distribution of the work, from :func:`minga.models.matmul.plan.make_plan`; by default it is planned from
        measured speeds.
    comm
        The ranks; the call is collective. By default this process alone.
    memory
        Bytes of matrices that each rank may hold.
    check
        Whether the result is checked (Freivalds).

    Returns
    -------
    ndarray or None
        The result on rank 0, mapped from the file if ``out`` names one; None on other ranks.

    Raises
    ------
    CaseError
        If the operands do not fit together or their types are not supported.
    RunError
        If the check finds that the result is wrong.
    """

    def read() -> Problem:
        left, right = _given("a", a), _given("b", b)
        return problem_of(left, right, alpha=alpha, beta=beta, c=c, transpose_a=transpose_a, transpose_b=transpose_b)

    result, _ = product(
        read,
        out,
        comm or SerialComm(),
        Options(memory=memory, check=check, overwrite=overwrite),
        plan=plan,
        given=a is not None and b is not None,
    )  # fmt: skip
    return result


def product(
    read: Callable[[], Problem],
    out: Array | Path | str | None,
    comm: Comm,
    options: Options | None = None,
    *,
    plan: Plan | None = None,
    given: bool = True,
    progress: Progress | None = None,
    workers: Workers | None = None,
) -> tuple[Array | None, Account | None]:
    """Compute a product like :func:`matmul`; return the result and an account of it, both None except on rank 0.

    Parameters
    ----------
    read
        Reads the product, where its operands can be seen.
    out, comm, plan
        See :func:`matmul`.
    options
        Options of the product.
    given
        Whether this rank has the operands that ``read`` reads.
    progress
        Callback that reports the progress, on rank 0.
    workers
        The ranks, if their speeds are known already.
    """
    options = options or Options()
    problem, seen = agree_on_problem(comm, read, given)
    if isinstance(out, np.ndarray):
        problem = separate_c0(problem, out)
    place = Path(out) if isinstance(out, str) else out
    result, stored = open_result(comm, problem, place, seen, overwrite=options.overwrite)
    try:
        account = _made(comm, problem, result, (seen, stored), options, plan, progress, workers)
        _finished(comm, result)
    except BaseException:
        if isinstance(result, PartialFile):
            with contextlib.suppress(MingaError):
                result.flush()  # keep what has been computed
            if comm.rank == 0 and not result.done():
                result.discard()
        raise
    if comm.rank != 0 or result is None:
        return None, None
    array = result.array if isinstance(result, ArrayResult) else np.load(result.out, mmap_mode="r")
    return array, account


def _made(
    comm: Comm,
    problem: Problem,
    result: Result | None,
    data: tuple[bool, bool],
    options: Options,
    plan: Plan | None,
    progress: Progress | None,
    workers: Workers | None,
) -> Account | None:
    """Plan, multiply and check; return an account on rank 0, None elsewhere."""
    began = time.perf_counter()
    in_memory = problem.a.in_memory
    size = Size(problem.rows, problem.columns, problem.depth, problem.itemsize, *data, in_memory)
    done: list[Block] = comm.bcast(result.done() if comm.rank == 0 and result is not None else None)
    tasks = [] if problem.trivial else missing(problem.rows, problem.columns, done)
    left = sum(task.count * (task.end - task.first) for task in tasks)
    before = 1 - left / (problem.rows * problem.columns) if done else 0.0
    plans = [] if plan is None else [_fitting(plan, task, size, comm.size) for task in tasks]
    if tasks and plan is None:
        workers, plans = _planned(comm, size, problem, tasks, options, workers)
    ledger, means = Ledger(), _means(options, workers, data, progress)
    comm.barrier()
    measuring, began = time.perf_counter() - began, time.perf_counter()
    for task, how in zip(tasks, plans, strict=True):
        multiply(problem, task, how, comm, result, ledger, means)
    if problem.trivial and comm.rank == 0 and result is not None:
        _without_products(problem, result)
    if result is not None:
        result.flush()
    comm.barrier()
    spent, began = time.perf_counter() - began, time.perf_counter()
    check = _checked(comm, problem, result, all(data)) if options.check and not problem.trivial else None
    checking = time.perf_counter() - began
    ledgers = comm.gather(ledger)
    if ledgers is None:
        return None
    chosen = plans[-1] if plans else None
    predicted = sum(how.timing.seconds for how in plans)
    return Account(
        problem, chosen, workers, *data, spent, measuring, checking, tuple(ledgers), check, before, predicted
    )


def plan_of(
    comm: Comm,
    problem: Problem,
    options: Options,
    seen: bool,
    workers: Workers | None = None,
    *,
    stored: bool | None = None,
) -> tuple[Workers, Plan]:
    """Return the speeds of the ranks, measured unless they are known, and the plan of the product. Collective.

    Parameters
    ----------
    comm, problem, options
        The ranks, the product and its options.
    seen
        Whether all ranks read the operands.
    workers
        The ranks, if their speeds are known already.
    stored
        Whether each rank stores its part of the result, as in a file; otherwise, and if the result is an array,
        everything goes to rank 0. By default the same as ``seen``.
    """
    known = workers or _measured(comm, problem, options)
    both = seen if stored is None else stored
    size = Size(problem.rows, problem.columns, problem.depth, problem.itemsize, seen, both)
    return known, make_plan(size, known, layout=options.layout, width=options.width, memory=options.memory)


def _given(name: str, value: Any) -> Any:
    if value is None:
        raise CaseError(f"there is no matrix {name}", key=name, remedy="give both matrices on rank 0")
    return value


# Plans ---------------------------------------------------------------------------------------------------------------
def _measured(comm: Comm, problem: Problem, options: Options) -> Workers:
    width = min(options.width or WIDTH, problem.columns)
    rows = max(1, problem.rows // comm.size)
    seconds = min(_LONGEST, max(_SHORTEST, problem.multiply_adds / _USUAL / comm.size))  # no longer than the product
    return measured(
        comm, problem.dtype, rows, problem.depth, width, seconds=seconds, cache=options.cache, route=options.route,
        memory=options.memory,
    )  # fmt: skip


def _planned(
    comm: Comm, size: Size, problem: Problem, tasks: list[Task], options: Options, workers: Workers | None
) -> tuple[Workers | None, list[Plan]]:
    """Return a plan for each task, made on rank 0."""
    small = comm.size == 1 and problem.multiply_adds < _SMALL and workers is None
    known = _nominal(comm) if small else workers or _measured(comm, problem, options)
    found: list[Plan] | MingaError | None = None
    if comm.rank == 0:
        try:
            found = [
                make_plan(
                    replace(size, rows=task.count, columns=task.end - task.first),
                    known,
                    layout=options.layout,
                    width=options.width,
                    memory=options.memory,
                )
                for task in tasks
            ]
        except MingaError as error:
            found = error
    agreed = comm.bcast(found)
    if isinstance(agreed, MingaError):
        raise agreed
    return (None if small else known), agreed


def _fitting(plan: Plan, task: Task, size: Size, ranks: int) -> Plan:
    """Return a given plan, after checking that it is one for this task."""
    ends = [column.end for column in plan.columns]
    whole = ends[-1] == task.end - task.first and [0, *ends[:-1]] == [column.first for column in plan.columns]
    if not whole or any(sum(column.rows) != task.count for column in plan.columns):
        raise CaseError(
            f"the plan is not for {task.count} rows and {task.end - task.first} columns", key="plan",
            remedy="make a plan for this product, or leave it out",
        )  # fmt: skip
    if max(plan.ranks) >= ranks or (not size.anywhere and (len(plan.columns) > 1 or 0 not in plan.ranks)):
        raise CaseError(
            f"the plan ({plan.describe()}) cannot make this product on {ranks} ranks", key="plan",
            remedy="plan by rows with rank 0, as a result in memory or operands on rank 0 alone require",
        )  # fmt: skip
    return plan


def _nominal(comm: Comm) -> Workers:
    """Return one rank with a nominal speed, for a product that takes less time than measuring the speed."""
    group = RankGroup((Speed.constant(1e9),), np.zeros(1, np.int64), np.full(1, 1 << 62), seats_of(comm), Links(()))
    return Workers(group, (1e-9,), (0.0,), Wire(0.0, 0.0, 1), "taken")


# The end -------------------------------------------------------------------------------------------------------------
def _means(options: Options, workers: Workers | None, data: tuple[bool, bool], progress: Progress | None) -> Execution:
    route = options.route or (workers.route if workers is not None else "auto")
    return Execution(*data, route, progress)


def _without_products(problem: Problem, result: Result) -> None:
    """Store a result without products (a depth of 0, or no rows or columns): beta C0, or zeros."""
    result.array[...] = 0
    if problem.c is not None:
        result.array[...] = problem.dtype.type(problem.beta) * problem.c.whole


def _checked(comm: Comm, problem: Problem, result: Result | None, by_all: bool) -> Check:
    """Check the result, with parts on all ranks or on rank 0 alone; raise the same error on all if it is wrong."""
    if by_all and comm.size > 1:
        assert result is not None
        try:
            return freivalds(problem, result.array, comm)
        except MingaError:
            _forget(comm, result)
            raise
    found: Check | MingaError | None = None
    if comm.rank == 0:
        assert result is not None
        try:
            found = freivalds(problem, result.array)
        except MingaError as error:
            found = error
            _forget(comm, result)
    agreed: Check | MingaError = comm.bcast(found)
    if isinstance(agreed, MingaError):
        raise agreed
    return agreed


def _forget(comm: Comm, result: Result) -> None:
    """Discard a wrong result, because a product resumed from it would be wrong again."""
    if comm.rank == 0 and isinstance(result, PartialFile):
        result.discard()


def _finished(comm: Comm, result: Result | None) -> None:
    error: MingaError | None = None
    if comm.rank == 0 and isinstance(result, PartialFile):
        try:
            result.finish()
        except MingaError as found:
            error = found
    fault = comm.bcast(error)
    if fault is not None:
        raise fault
