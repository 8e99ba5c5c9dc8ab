"""Plans of products: the distribution of rows and columns, the predicted time, and the choice of the best candidate.

The model is that of F. Tinetti (Euro PVM/MPI 2001), with each panel being sent while the previous one is multiplied: a
team of ranks has some columns of C, each member has rows of them in proportion to its speed, and panels of B are sent
to all members in turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.matmul.columns import in_columns
from minga.models.matmul.workers import Workers
from minga.plan.shares import assign
from minga.space.boxes import Ints

__all__ = ["LAYOUTS", "Column", "Plan", "Size", "Timing", "break_even", "break_even_from_one", "make_plan"]

Layout = Literal["auto", "rows", "columns", "alone", "equal"]
LAYOUTS: Final = ("auto", "rows", "columns", "alone", "equal")
"""Names of layouts."""

WIDTH: Final = 256
"""Default number of columns of a panel: BLAS is at its best, and the first panel arrives soon."""
LEAST_WIDTH: Final = 128
"""Smallest number of columns that is fast in BLAS; only a lack of memory makes panels narrower."""
_LATENCIES: Final = 10
"""Least time of multiplying a panel, in units of the time of an empty message."""
_FEWEST_PANELS: Final = 4
"""Least number of panels, unless that would make them too narrow."""
_HELD: Final = 5
"""Number of panels in the memory of a rank that is not alone in its team."""
_MOST_COLUMNS: Final = 8
"""Largest number of columns of rectangles that are tried."""
_MOST_TEAMS: Final = 24
"""Largest number of team sizes that are tried."""


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a product, and where its matrices are.

    Attributes
    ----------
    rows, columns, depth
        Rows and columns of C, and depth of the product.
    itemsize
        Bytes of an element.
    seen
        Whether every rank can read the operands; otherwise rank 0 alone can.
    stored
        Whether every rank stores what it computes; otherwise everything goes to rank 0.
    in_memory
        Whether the operand A is in memory already, so that its rows take no more of it.
    """

    rows: int
    columns: int
    depth: int
    itemsize: int
    seen: bool = True
    stored: bool = True
    in_memory: bool = False

    @property
    def anywhere(self) -> bool:
        """Flag that is set if no rank depends on rank 0."""
        return self.seen and self.stored

    @property
    def multiply_adds(self) -> float:
        """Number of multiply-adds: half the floating-point operations."""
        return float(self.rows) * self.columns * self.depth


@dataclass(frozen=True, slots=True)
class Column:
    """Ranks that share the columns of C from ``first`` to before ``end``, with the number of rows of each."""

    first: int
    end: int
    ranks: tuple[int, ...]
    rows: tuple[int, ...]

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.end - self.first


@dataclass(frozen=True, slots=True)
class Timing:
    """Predicted times in seconds.

    Attributes
    ----------
    seconds
        Time of the whole product.
    panel, sent
        Time to multiply and to send one panel.
    busy
        Time that each rank multiplies, by rank.
    """

    seconds: float
    panel: float = 0.0
    sent: float = 0.0
    busy: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A way to compute a product.

    Parameters
    ----------
    name
        "rows", "columns", "alone" or "equal".
    columns
        Ranks and rows of each range of columns.
    width
        Number of columns of a panel.
    passes
        Number of rounds in which ranks take parts of their rows if memory does not hold all; every round needs all
        panels.
    timing
        Predicted times.
    others
        Other candidates with their predicted seconds, the best first.
    """

    name: str
    columns: tuple[Column, ...]
    width: int
    passes: int
    timing: Timing
    others: tuple[tuple[str, float], ...] = ()

    @property
    def ranks(self) -> tuple[int, ...]:
        """All ranks that take part."""
        return tuple(sorted(rank for column in self.columns for rank in column.ranks))

    def describe(self) -> str:
        """Return a short description: ``rows on 3 ranks``.

        Returns
        -------
        str
            The text.
        """
        count = len(self.ranks)
        ranks = f"{count} rank{'s' if count != 1 else ''}"
        if self.name == "alone":
            return f"rank {self.ranks[0]} alone"
        if self.name == "columns":
            return f"{len(self.columns)} columns of rectangles on {ranks}"
        return f"{'equal ' if self.name == 'equal' else ''}rows on {ranks}"

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as plain data for JSON.

        Returns
        -------
        dict
            Plain data.
        """
        return {
            "name": self.name,
            "columns": [
                {"first": c.first, "end": c.end, "ranks": list(c.ranks), "rows": list(c.rows)} for c in self.columns
            ],
            "width": self.width,
            "passes": self.passes,
            "predicted_seconds": self.timing.seconds,
            "panel_seconds": self.timing.panel,
            "sent_seconds": self.timing.sent,
            "busy_seconds": list(self.timing.busy),
            "others": [list(entry) for entry in self.others],
        }


def break_even(workers: Workers, itemsize: int) -> float:
    """Return the side of square matrices above which multiplying takes longer than sending B to all ranks.

    It is ``4 beta S`` for f8, with S the sum of speeds in flop/s and beta the seconds per byte sent to all ranks.
    Smaller products do not pay.
    """
    return itemsize * workers.wire.slope(workers.ranks) * float(workers.rates.sum())


def break_even_from_one(workers: Workers, itemsize: int, root: int = 0) -> float:
    """Return the break-even side if all matrices begin and end on one rank, so that A is sent and C returned as well.

    It follows from ``2 n^3 / s > 2 n^3 / S + 3 itemsize beta n^2``, with s the speed of the root, and is infinite if
    the root has all the speed there is.
    """
    total, own = float(workers.rates.sum()), workers.rate(root)
    if total <= own:
        return math.inf
    return 3 * itemsize * workers.wire.slope(workers.ranks) / (1 / own - 1 / total)


def make_plan(
    size: Size,
    workers: Workers,
    *,
    layout: Layout = "auto",
    width: int | None = None,
    memory: int | None = None,
) -> Plan:
    """Return the plan with the smallest predicted time.

    Parameters
    ----------
    size
        Size of the product.
    workers
        The ranks, with their speeds and network.
    layout
        Restrict the candidates to "rows", "columns" (rectangles), "alone" (one rank) or "equal" (rows regardless of
        speed).
    width
        Number of columns of a panel; by default enough to hide the sending of the next one and to suit BLAS.
    memory
        Bytes of operands and result that each rank may hold; by default the memory of the workers.

    Returns
    -------
    Plan
        The plan.

    Raises
    ------
    CaseError
        If the layout is impossible, or a rank cannot hold six columns of the depth of the product.
    """
    if layout not in LAYOUTS:
        raise CaseError(f"there is no layout {layout!r}", key="layout", remedy=f"choose one of {', '.join(LAYOUTS)}")
    if width is not None and width < 1:
        raise CaseError(f"invalid width: panels of {width} columns", key="width", remedy="give 1 or more")
    caps = workers.group.memory if memory is None else np.minimum(workers.group.memory, memory)
    found = [_sized(size, workers, name, columns, width, caps) for name, columns in _candidates(size, workers, layout)]
    possible = sorted((plan for plan in found if plan is not None), key=lambda plan: plan.timing.seconds)
    if not possible:
        raise _no_room(size, caps)
    best = possible[0]
    named: dict[str, float] = {}
    for plan in possible:
        named.setdefault(plan.describe(), plan.timing.seconds)
    return replace(best, others=tuple(named.items())[1:8])


# Candidates ----------------------------------------------------------------------------------------------------------
def _candidates(size: Size, workers: Workers, layout: Layout) -> Iterable[tuple[str, tuple[Column, ...]]]:
    everyone = tuple(range(workers.ranks))
    order = sorted(everyone, key=lambda rank: (-workers.rate(rank), rank))
    if layout in ("auto", "alone"):
        alone = order[0] if size.anywhere else 0
        yield "alone", (Column(0, size.columns, (alone,), (size.rows,)),)
    if layout == "equal":
        rows = [size.rows * (rank + 1) // workers.ranks - size.rows * rank // workers.ranks for rank in everyone]
        yield "equal", (Column(0, size.columns, everyone, tuple(rows)),)
    if layout in ("auto", "rows"):
        counts = range(2 if layout == "auto" else 1, workers.ranks + 1)
        for count in _few(counts):
            ranks = order[:count] if size.anywhere or 0 in order[:count] else [*order[: count - 1], 0]
            yield "rows", (_column(size, workers, 0, size.columns, tuple(sorted(ranks))),)
    if layout == "columns" and not size.anywhere:
        raise CaseError(
            "rectangles need operands that every rank can read, and a result that every rank can write",
            key="layout",
            remedy='put the files where all ranks can see them, or use layout "rows"',
        )
    if layout == "columns" or (layout == "auto" and workers.ranks >= 4 and size.anywhere):
        speeds = [workers.rate(rank) for rank in order]
        most = min(_MOST_COLUMNS, workers.ranks, size.columns)
        if layout == "columns" and most < 2:
            raise CaseError(
                "rectangles in columns need at least two ranks", key="layout", remedy='use more ranks, or layout "rows"'
            )
        for number in range(2, most + 1):
            groups = [[order[place] for place in group] for group in in_columns(speeds, number)]
            yield "columns", _rectangles(size, workers, groups)


def _few(counts: range) -> list[int]:
    """Return all counts, or a selection spread over them that includes the last."""
    if len(counts) <= _MOST_TEAMS:
        return list(counts)
    return sorted({*np.geomspace(counts[0], counts[-1], _MOST_TEAMS).astype(int).tolist(), counts[-1]})


def _column(size: Size, workers: Workers, first: int, end: int, ranks: tuple[int, ...]) -> Column:
    """Return the column with rows distributed such that all its ranks finish at the same time."""
    width = min(WIDTH, end - first)
    panels = (end - first) / max(1, width)
    handled = 0.0 if len(ranks) < 2 else float(size.itemsize) * size.depth * (end - first)

    timer, chosen = workers.timer(ranks), list(ranks)
    copying = np.array(workers.copying)[chosen] * size.itemsize * (size.depth + end - first)
    handling = np.array(workers.handling)[chosen] * handled

    def seconds(rows: Ints) -> NDArray[np.float64]:
        return panels * timer(rows.astype(np.float64) * size.depth * width) + copying * rows + handling * (rows > 0)

    return Column(first, end, ranks, tuple(assign(size.rows, seconds, np.zeros(len(ranks), np.int64)).tolist()))


def _rectangles(size: Size, workers: Workers, groups: Sequence[Sequence[int]]) -> tuple[Column, ...]:
    """Return columns for groups of ranks in proportion to their total speed, with rows distributed within each."""
    speeds = np.array([sum(workers.rate(rank) for rank in group) for group in groups])
    widths = assign(size.columns, partial(_time_at, speeds), np.ones(len(groups), np.int64)).tolist()
    ends = np.cumsum(widths).tolist()
    return tuple(
        _column(size, workers, end - width, end, tuple(sorted(group)))
        for group, width, end in zip(groups, widths, ends, strict=True)
    )


def _time_at(speeds: NDArray[np.float64], shares: Ints) -> NDArray[np.float64]:
    times: NDArray[np.float64] = shares / speeds
    return times


# Panels and memory ---------------------------------------------------------------------------------------------------
def _sized(
    size: Size, workers: Workers, name: str, columns: tuple[Column, ...], width: int | None, caps: Ints
) -> Plan | None:
    """Return the candidate with the fastest panels and passes that fit in memory; None if nothing fits."""
    most = max(column.width for column in columns)
    tried, best = min(width or _wanted_width(size, workers, columns), most), None
    while tried >= 1:
        passes = _passes(size, columns, tried, caps)
        if passes is not None:
            plan = Plan(name, columns, tried, passes, _timing(size, workers, columns, tried, passes))
            if best is None or plan.timing.seconds < best.timing.seconds:
                best = plan
        # Try narrower panels only if memory requires them, to fit at all or to need fewer passes.
        if width is not None or passes == 1 or (best is not None and tried <= LEAST_WIDTH):
            break
        tried //= 2
    return best


def _wanted_width(size: Size, workers: Workers, columns: Sequence[Column]) -> int:
    """Return the width at which multiplying a panel takes ten latencies and as long as sending the next one."""
    wanted = WIDTH
    for column in columns:
        count = len(column.ranks)
        if count < 2:
            continue
        rate = sum(workers.rate(rank) for rank in column.ranks)
        compute = size.rows * float(size.depth) / rate  # seconds of a column of C
        transfer = size.depth * size.itemsize * workers.wire.slope(count)
        alpha = workers.wire.time(0, count)
        wanted = max(wanted, math.ceil(_LATENCIES * alpha / compute))
        if compute > transfer:
            wanted = max(wanted, math.ceil(alpha / (compute - transfer)))
    # With fewer than four panels there is little computation to hide the next one behind.
    return max(1, min(wanted, max(LEAST_WIDTH, -(-size.columns // _FEWEST_PANELS))))


def _passes(size: Size, columns: Sequence[Column], width: int, caps: Ints) -> int | None:
    """Return the least number of rounds in which all ranks have room for their rows, panels and results.

    A rank holds five panels: one being multiplied, one arriving, one of its own, and two in messages. A rank that is
    alone holds one. None means that there is not enough memory for any number of rounds.
    """
    needed = 1
    for column in columns:
        for place, (rank, rows) in enumerate(zip(column.ranks, column.rows, strict=True)):
            root = rank == 0
            panels = (_HELD if len(column.ranks) > 1 else 1) * size.depth * min(width, column.width)
            room = int(caps[rank]) // size.itemsize - panels
            blocks = width if size.stored or root else 2 * width
            each = blocks + (0 if size.in_memory and (size.seen or root) else size.depth)
            of_others = (sum(column.rows) - column.rows[place]) * width if root and not size.stored else 0
            load = rows * each + of_others
            if room < min(load, each):
                return None
            needed = max(needed, math.ceil(load / max(1, room)))
    return needed


def _timing(size: Size, workers: Workers, columns: Sequence[Column], width: int, passes: int) -> Timing:
    """Return the predicted times: teams work concurrently, and queue if they share one medium."""
    parts = [_column_timing(size, workers, column, width, passes, columns) for column in columns]
    busy = np.zeros(workers.ranks)
    for column, (_, _, _, each) in zip(columns, parts, strict=True):
        busy[list(column.ranks)] = each
    slowest = max(parts, key=lambda part: part[0])
    return Timing(slowest[0], slowest[1], slowest[2], tuple(busy.tolist()))


def _column_timing(
    size: Size, workers: Workers, column: Column, width: int, passes: int, columns: Sequence[Column]
) -> tuple[float, float, float, list[float]]:
    """Return the seconds of a team, of multiplying and of sending a panel, and of multiplication by each member."""
    wire, count = workers.wire, len(column.ranks)
    panels = math.ceil(column.width / width)
    wide = column.width / panels
    sent = wire.time(size.depth * wide * size.itemsize, count)
    if wire.shared:
        sent *= len(columns)
    compute = [
        float(workers.speed(rank).time(rows / passes * size.depth * wide))
        for rank, rows in zip(column.ranks, column.rows, strict=True)
    ]
    own_panels = passes * size.depth * column.width / count
    copied = [
        workers.copying[rank] * size.itemsize * (rows * (size.depth + column.width) + own_panels)
        + (workers.handling[rank] * passes * size.itemsize * size.depth * column.width if count > 1 else 0.0)
        for rank, rows in zip(column.ranks, column.rows, strict=True)
    ]
    each = [passes * panels * seconds for seconds in compute]
    per_panel = max(seconds + copy / (passes * panels) for seconds, copy in zip(compute, copied, strict=True))
    ahead, back = _from_root(size, workers, column, panels * passes)
    if len(columns) > 1:  # blocks of rows of A go to several columns
        held = sum(sum(other.rows) for other in columns) if wire.shared else max(column.rows)
        ahead = held * size.depth * size.itemsize * wire.slope(2)
    both = sent + back if wire.shared else max(sent, back)
    steps = panels * passes
    seconds = ahead + sent + (steps - 1) * max(per_panel, both) + per_panel + back
    return seconds, max(compute), sent, each


def _from_root(size: Size, workers: Workers, column: Column, steps: int) -> tuple[float, float]:
    """Return the seconds to send A from rank 0 beforehand, and to return a part of C with each panel."""
    if size.anywhere or column.ranks == (0,):
        return 0.0, 0.0
    away = sum(rows for rank, rows in zip(column.ranks, column.rows, strict=True) if rank != 0) * size.itemsize
    slope = workers.wire.slope(2)
    ahead = 0.0 if size.seen else away * size.depth * slope
    return ahead, 0.0 if size.stored else away * column.width * slope / steps


def _no_room(size: Size, caps: Ints) -> CaseError:
    least = (_HELD + 1) * (size.depth + 1) * size.itemsize
    return CaseError(
        f"a rank may hold only {int(caps.min()) / 1e6:.3g} MB, which is not enough for a product of depth {size.depth}",
        key="memory",
        remedy=f"allow {least / 1e6:.3g} MB or more, or use more ranks",
    )
