"""Multiplication: panels of B are sent to all ranks of a team in turn, each while the previous one is multiplied."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

import numpy as np

from minga.engine.comm import Channel, Comm
from minga.models.matmul.blocks import Task, split
from minga.models.matmul.messages import finished, message, parcels, received
from minga.models.matmul.operands import Array, Range, length
from minga.models.matmul.panels import Panels, while_polling
from minga.models.matmul.plan import Plan
from minga.models.matmul.problem import Problem
from minga.models.matmul.result import Result
from minga.models.matmul.teams import leave, team_of

__all__ = ["Execution", "Ledger", "Progress", "multiply"]

Progress = Callable[[int, int], None]
"""Callback on rank 0 with the number of panels that are done, and of all panels."""

_ROWS_TAG, _BLOCK_TAG = 30_102, 30_103
_PARCEL: Final = 1 << 24
"""Largest size of a piece of A that is sent at a time, in bytes."""
_LOOKS: Final = 64
"""Number of times that a transfer is polled while it is under way."""
_SHORTEST: Final = 5e-4
_LONGEST: Final = 2e-2
"""Bounds of the interval between two polls, s: the system's buffers hold what arrives in between."""


@dataclass(slots=True)
class Ledger:
    """The time that a rank spent on each activity, in seconds.

    Attributes
    ----------
    multiply
        Time in BLAS.
    wait
        Time waiting for panels, rows or blocks of other ranks.
    copy
        Time copying between files and memory.
    """

    multiply: float = 0.0
    wait: float = 0.0
    copy: float = 0.0

    def as_dict(self) -> dict[str, float]:
        """Return the times as plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Execution:
    """The way a product is made, apart from the distribution of work.

    Attributes
    ----------
    seen
        Whether all ranks read the operands; otherwise rank 0 alone does.
    stored
        Whether all ranks store what they compute; otherwise rank 0 stores everything. Unless both `seen` and `stored`
        are set, there is only one team, and rank 0 belongs to it.
    route
        Route of the panels, see :class:`minga.models.matmul.panels.Panels`.
    progress
        Callback that reports the progress, on rank 0.
    """

    seen: bool
    stored: bool
    route: str = "auto"
    progress: Progress | None = None


def multiply(
    problem: Problem, task: Task, plan: Plan, comm: Comm, result: Result | None, ledger: Ledger, means: Execution
) -> None:
    """Compute the part of a product that a task names, as planned. Collective.

    Parameters
    ----------
    problem, task
        The product, and the part of it to compute.
    plan
        Distribution of the work; its columns are counted from the task's first one.
    comm
        The ranks.
    result
        Destination of the blocks; None where this rank stores nothing.
    ledger
        Times of this rank, which are added to.
    means
        The way the product is made.
    """
    team = team_of(comm, [column.ranks for column in plan.columns])
    if team is None:
        return
    column = next(column for column in plan.columns if comm.rank in column.ranks)
    width = min(plan.width, column.width)
    panels = tuple(
        (task.first + at, task.first + min(column.end, at + width)) for at in range(column.first, column.end, width)
    )
    parts = [_in_parts(share, plan.passes) for share in split(task.rows, column.rows)]
    rank = _Rank(problem, comm, column.ranks, team.rank, result, ledger, means, panels)
    rank.interval = min(_LONGEST, max(_SHORTEST, plan.timing.sent / _LOOKS))
    owners = [number % team.size if means.seen else rank.root for number in range(len(panels))]
    sizes = [problem.depth * (end - first) for first, end in panels]
    buffer = _room_for_rows(problem, parts[team.rank])
    moving = None
    if team.size > 1:
        moving = Panels(
            team, problem.dtype, sizes, owners, rank.fill, rank.use, route=means.route
        )  # fmt: skip
    alone = np.empty(max(sizes), problem.dtype) if moving is None else None  # takes memory only where it is filled
    try:
        for number in range(plan.passes):
            rank.begin([share[number] for share in parts], buffer)
            if means.progress is not None and comm.rank == 0:
                rank.progress = _later(means.progress, number * len(panels), plan.passes * len(panels))
            if moving is not None:
                moving.run()
            else:
                assert alone is not None
                for at, size in enumerate(sizes):
                    rank.use_alone(at, alone[:size])
            rank.end()
    finally:
        if moving is not None:
            moving.close()
        leave(team, comm)


@dataclass(slots=True)
class _Rank:
    """The work of this rank on its panels.

    ``members`` are the ranks of ``comm`` in the team, ``place`` is the index of this rank among them.
    """

    problem: Problem
    comm: Comm
    members: tuple[int, ...]
    place: int
    result: Result | None
    ledger: Ledger
    means: Execution
    panels: tuple[Range, ...]
    interval: float = _SHORTEST
    progress: Callable[[int], None] | None = None
    parts: Sequence[tuple[Range, ...]] = ()
    """Rows of each member in this pass."""
    rows: Array = field(default_factory=lambda: np.empty((0, 0)))
    leaving: list[tuple[Channel, Array]] = field(default_factory=list)
    """Blocks of C on their way to rank 0."""
    free: float = 0.0
    """Time from which on this rank could only wait."""

    @property
    def parcel(self) -> int:
        """Number of elements of A that are sent at a time: at most as many as a panel has, and as are useful."""
        first, end = self.panels[0]
        return min(self.problem.depth * (end - first), _PARCEL // self.problem.itemsize)

    @property
    def root(self) -> int:
        """Index of rank 0 among the members."""
        return self.members.index(0)

    @property
    def stores(self) -> bool:
        """Flag that is set if blocks of C are stored here."""
        return self.means.stored or self.comm.rank == 0

    def begin(self, parts: Sequence[tuple[Range, ...]], buffer: Array | None) -> None:
        """Get this rank's rows of A for a pass."""
        self.parts = parts
        self.rows = self._rows_of_a(buffer)
        self.free = time.perf_counter()

    def fill(self, number: int, flat: Array) -> None:
        """Read a panel of B."""
        began = time.perf_counter()
        self.ledger.wait += began - self.free
        self.problem.b.take(1, [self.panels[number]], flat)
        self.free = time.perf_counter()
        self.ledger.copy += self.free - began

    def use_alone(self, number: int, flat: Array) -> None:
        """Multiply with a panel where it lies, or read it first."""
        first, end = self.panels[number]
        there = self.problem.b.columns(first, end)
        if there is None:
            self.fill(number, flat)
            there = self.problem.b.stripe(1, flat, end - first)
        self._multiply(number, there, _nothing_moves)

    def use(self, number: int, flat: Array, progress: Callable[[], bool]) -> None:
        """Multiply with a panel, and store or send the resulting block."""
        first, end = self.panels[number]
        self._multiply(number, self.problem.b.stripe(1, flat, end - first), progress)

    def _multiply(self, number: int, panel: Array, progress: Callable[[], bool]) -> None:
        began = time.perf_counter()
        self.ledger.wait += began - self.free
        first, end = self.panels[number]
        coming = self._expected(end - first)
        transfers = [transfer for transfer, _, _ in coming] + [transfer for transfer, _ in self.leaving]

        def all_there() -> bool:
            return sum([not progress(), *(not transfer.test() for transfer in transfers)]) == 0  # poll all of them

        place = self.result.place(self.parts[self.place], first, end) if self.stores and self.result else None
        block = np.empty((self.rows.shape[0], panel.shape[1]), self.problem.dtype) if place is None else place
        began = time.perf_counter()
        if len(block):
            while_polling(lambda: _multiplied(self.rows, panel, block), all_there, self.interval)
        self.ledger.multiply += time.perf_counter() - began
        self._deliver(first, end, block)
        for transfer, ranges, arrived in coming:
            self.ledger.wait += finished(transfer)
            self._store(ranges, first, end, arrived)
        if self.progress is not None:
            self.progress(number + 1)
        self.free = time.perf_counter()

    def end(self) -> None:
        """Wait until all blocks of a pass have arrived at their destination."""
        self.ledger.wait += time.perf_counter() - self.free
        self._let_go(0)

    # Rows of A, and blocks of C --------------------------------------------------------------------------------------
    def _rows_of_a(self, buffer: Array | None) -> Array:
        """Return this rank's rows of A, which are in memory already, read, or received from rank 0."""
        operand, mine = self.problem.a, self.parts[self.place]
        began = time.perf_counter()
        waited = self.ledger.wait
        if not self.means.seen and self.comm.rank == 0:
            self._send_rows()
        rows = operand.view(mine) if mine else None
        if rows is None:
            flat = np.empty(0, operand.dtype) if buffer is None else buffer[: length(mine) * self.problem.depth]
            if self.means.seen or self.comm.rank == 0:
                rows = operand.take(0, mine, flat)
            else:
                for piece in received(operand, flat, length(mine), self.parcel):
                    self.ledger.wait += finished(message(self.comm, 0, piece, _ROWS_TAG, send=False))
                rows = operand.stripe(0, flat, length(mine))
        self.ledger.copy += time.perf_counter() - began - (self.ledger.wait - waited)
        return rows

    def _send_rows(self) -> None:
        """Send each member its rows of A, one after the other."""
        for member, ranges in zip(self.members, self.parts, strict=True):
            if member != self.comm.rank and ranges:
                for piece in parcels(self.problem.a, ranges, self.parcel):
                    self.ledger.wait += finished(message(self.comm, member, piece, _ROWS_TAG, send=True))

    def _expected(self, width: int) -> list[tuple[Channel, tuple[Range, ...], Array]]:
        """Start receiving the blocks of C that other members send for a panel, where rank 0 stores all."""
        if self.means.stored or self.comm.rank != 0:
            return []
        found = []
        for member, ranges in zip(self.members, self.parts, strict=True):
            if member != self.comm.rank and ranges:
                block = np.empty((length(ranges), width), self.problem.dtype)
                found.append((message(self.comm, member, block, _BLOCK_TAG, send=False), ranges, block))
        return found

    def _deliver(self, first: int, end: int, block: Array) -> None:
        """Store a block of C, or start sending it to rank 0 after all but the last earlier block have been sent."""
        if not len(block):
            return
        if self.stores:
            self._store(self.parts[self.place], first, end, block)
            return
        self._let_go(1)
        self.leaving.append((message(self.comm, 0, block, _BLOCK_TAG, send=True), block))

    def _let_go(self, kept: int) -> None:
        """Complete the sending of all blocks except the last ``kept``."""
        while len(self.leaving) > kept:
            transfer, _ = self.leaving.pop(0)
            self.ledger.wait += finished(transfer)

    def _store(self, rows: tuple[Range, ...], first: int, end: int, block: Array) -> None:
        """Scale a block, add C0 and store it; the block is overwritten."""
        problem, began = self.problem, time.perf_counter()
        assert self.result is not None
        if problem.alpha != 1:
            block *= problem.dtype.type(problem.alpha)
        if problem.c is not None:
            at = 0
            for low, high in rows:
                block[at : at + high - low] += problem.dtype.type(problem.beta) * problem.c.whole[low:high, first:end]
                at += high - low
        self.result.store(rows, first, end, block)
        self.ledger.copy += time.perf_counter() - began


def _later(progress: Progress, before: int, total: int) -> Callable[[int], None]:
    return lambda done: progress(before + done, total)


def _multiplied(rows: Array, panel: Array, product: Array) -> None:
    """Multiply without warnings, which some BLAS raise for infinite operands; the check of the result reports those."""
    with np.errstate(all="ignore"):
        np.matmul(rows, panel, out=product)


def _nothing_moves() -> bool:
    return True


def _in_parts(rows: Sequence[Range], passes: int) -> list[tuple[Range, ...]]:
    """Split rows into ``passes`` consecutive parts of sizes as equal as possible."""
    count = length(rows)
    return split(rows, [count * (n + 1) // passes - count * n // passes for n in range(passes)])


def _room_for_rows(problem: Problem, parts: Sequence[tuple[Range, ...]]) -> Array | None:
    """Allocate memory for the rows of A of the largest pass; return None if they are in memory already."""
    if all(problem.a.view(rows) is not None for rows in parts if rows):
        return None
    return np.empty(max(length(rows) for rows in parts) * problem.depth, problem.dtype)
