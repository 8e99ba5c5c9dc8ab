"""Who multiplies which rows and columns, how long that will take, and which of the ways to do it is best.

The model is that of F. Tinetti (Euro PVM/MPI 2001), with a panel on its way while the one before is multiplied: a team
of ranks has some columns of C, each member rows of it in proportion to its speed; panels of B come to all in turn.
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

WIDTH: Final = 256
"""Columns of a panel, where nothing asks for more or less: BLAS is at its best, and the first panel is soon there."""
LEAST_WIDTH: Final = 128
"""Fewer are slow in BLAS; only a lack of memory makes panels narrower."""
_LATENCIES: Final = 10
"""A panel is multiplied for at least so many times as long as an empty message takes."""
_FEWEST_PANELS: Final = 4
_HELD: Final = 5
"""Panels in the memory of a rank that has company."""
_MOST_COLUMNS: Final = 8
_MOST_TEAMS: Final = 24
"""Numbers of ranks that are tried."""


@dataclass(frozen=True, slots=True)
class Size:
    """Rows and columns of C, depth of the product, and bytes of an element.

    seen       every rank can read the operands; else rank 0 alone can
    stored     every rank stores what it computes; else all goes to rank 0
    in_memory  the operand A lies in memory already, so that its rows take no more of it
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
        """Whether no rank needs rank 0."""
        return self.seen and self.stored

    @property
    def multiply_adds(self) -> float:
        """Half the floating-point operations."""
        return float(self.rows) * self.columns * self.depth


@dataclass(frozen=True, slots=True)
class Column:
    """Ranks that share some columns of C, from ``first`` to before ``end``, with how many rows each has."""

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
    """Predicted seconds. ``panel`` and ``sent``: of one panel to be multiplied and to be sent; ``busy`` by rank."""

    seconds: float
    panel: float = 0.0
    sent: float = 0.0
    busy: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A way to make a product.

    name    "rows", "columns", "alone" or "equal"
    width   columns of a panel
    passes  rounds in which ranks take parts of their rows, as memory does not hold more; all panels come in each
    others  what else was looked at: names and predicted seconds, the best first
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
        """A few words: ``rows on 3 ranks``."""
        count = len(self.ranks)
        ranks = f"{count} rank{'s' if count != 1 else ''}"
        if self.name == "alone":
            return f"rank {self.ranks[0]} alone"
        if self.name == "columns":
            return f"{len(self.columns)} columns of rectangles on {ranks}"
        return f"{'equal ' if self.name == 'equal' else ''}rows on {ranks}"

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
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
    """The side of square matrices above which multiplying takes longer than bringing B to all: ``4 beta S`` of f8.

    S is the sum of speeds in flop/s and beta seconds a byte to all; smaller products do not pay.
    """
    return itemsize * workers.wire.slope(workers.ranks) * float(workers.rates.sum())


def break_even_from_one(workers: Workers, itemsize: int, root: int = 0) -> float:
    """The same where all matrices begin and end on one rank, so that A goes out and C comes back as well.

    ``2 n^3 / s > 2 n^3 / S + 3 itemsize beta n^2`` with the root's speed s. Infinite where it is all the speed there
    is.
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
    """The way with the least predicted time.

    Parameters
    ----------
    layout
        Look at these only: "rows", "columns" (rectangles), "alone" (one rank), "equal" (rows regardless of speed).
    width
        Columns of a panel; by default as many as hide the sending of the next one and suit BLAS.
    memory
        Bytes of operands and result that each rank may hold; by default what the workers have.

    CaseError for a layout that is impossible, and where a rank cannot hold six columns of the depth of the product.
    """
    if layout not in LAYOUTS:
        raise CaseError(f"there is no layout {layout!r}", key="layout", remedy=f"choose among {', '.join(LAYOUTS)}")
    if width is not None and width < 1:
        raise CaseError(f"panels of {width} columns", key="width", remedy="give 1 or more")
    caps = workers.crew.memory if memory is None else np.minimum(workers.crew.memory, memory)
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
            remedy="put the files where all ranks see them, or choose rows",
        )
    if layout == "columns" or (layout == "auto" and workers.ranks >= 4 and size.anywhere):
        speeds = [workers.rate(rank) for rank in order]
        most = min(_MOST_COLUMNS, workers.ranks, size.columns)
        if layout == "columns" and most < 2:
            raise CaseError("rectangles in columns need two ranks", key="layout", remedy="use more ranks, or rows")
        for number in range(2, most + 1):
            groups = [[order[place] for place in group] for group in in_columns(speeds, number)]
            yield "columns", _rectangles(size, workers, groups)


def _few(counts: range) -> list[int]:
    """All of them, or some spread over them with the last."""
    if len(counts) <= _MOST_TEAMS:
        return list(counts)
    return sorted({*np.geomspace(counts[0], counts[-1], _MOST_TEAMS).astype(int).tolist(), counts[-1]})


def _column(size: Size, workers: Workers, first: int, end: int, ranks: tuple[int, ...]) -> Column:
    """Rows for these ranks so that all are done at once."""
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
    """Columns for groups of ranks in proportion to their speed together, and rows within each."""
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
    """The candidate with the panels and passes that are quickest within memory; None where nothing fits."""
    most = max(column.width for column in columns)
    tried, best = min(width or _wanted_width(size, workers, columns), most), None
    while tried >= 1:
        passes = _passes(size, columns, tried, caps)
        if passes is not None:
            plan = Plan(name, columns, tried, passes, _timing(size, workers, columns, tried, passes))
            if best is None or plan.timing.seconds < best.timing.seconds:
                best = plan
        # Narrower ones only where memory asks for that: for any at all, or for fewer passes.
        if width is not None or passes == 1 or (best is not None and tried <= LEAST_WIDTH):
            break
        tried //= 2
    return best


def _wanted_width(size: Size, workers: Workers, columns: Sequence[Column]) -> int:
    """Columns of a panel that take ten times the latency to be multiplied, and as long as the next takes to be sent."""
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
    # With fewer panels than four there is little to hide the next one behind.
    return max(1, min(wanted, max(LEAST_WIDTH, -(-size.columns // _FEWEST_PANELS))))


def _passes(size: Size, columns: Sequence[Column], width: int, caps: Ints) -> int | None:
    """Least number of rounds in which all ranks have room for their rows, panels and what comes of them.

    Panels are one that is multiplied, one that comes, one of the rank's own, and two in messages; a rank alone has one.
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
    """Predicted seconds: the teams work side by side, and queue where they share one medium."""
    parts = [_column_timing(size, workers, column, width, passes, columns) for column in columns]
    busy = np.zeros(workers.ranks)
    for column, (_, _, _, each) in zip(columns, parts, strict=True):
        busy[list(column.ranks)] = each
    slowest = max(parts, key=lambda part: part[0])
    return Timing(slowest[0], slowest[1], slowest[2], tuple(busy.tolist()))


def _column_timing(
    size: Size, workers: Workers, column: Column, width: int, passes: int, columns: Sequence[Column]
) -> tuple[float, float, float, list[float]]:
    """Seconds of a team, of a panel to be multiplied and to be sent, and how long each member multiplies."""
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
    """Seconds to send A from rank 0 before, and to bring a part of C back with each panel."""
    if size.anywhere or column.ranks == (0,):
        return 0.0, 0.0
    away = sum(rows for rank, rows in zip(column.ranks, column.rows, strict=True) if rank != 0) * size.itemsize
    slope = workers.wire.slope(2)
    ahead = 0.0 if size.seen else away * size.depth * slope
    return ahead, 0.0 if size.stored else away * column.width * slope / steps


def _no_room(size: Size, caps: Ints) -> CaseError:
    least = (_HELD + 1) * (size.depth + 1) * size.itemsize
    return CaseError(
        f"a rank may hold {int(caps.min()) / 1e6:.3g} MB, which is not enough for a product of depth {size.depth}",
        key="memory",
        remedy=f"allow {least / 1e6:.3g} MB or more, or use more ranks",
    )
