"""Time spent by each rank, and messages between the ranks, from a run's ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from minga.view.report.charts import Bar, matrix, stacked_bars

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = [
    "CATEGORIES",
    "TimeSection",
    "TrafficSection",
    "ranks_of",
    "time_section",
    "traffic_section",
    "waiting_shares",
]

CATEGORIES = {
    "compute": "kernels at work",
    "boundary": "filling cells beyond the boundary",
    "pack": "copying halos into and out of messages",
    "send": "starting messages",
    "wait": "waiting for messages of other ranks",
    "reduce": "sums and agreements over all ranks",
    "call": "Python functions of the model",
    "balance": "moving blocks between ranks",
    "other": "loops and bookkeeping",
    "output": "taking frames and showing fields, while the steps wait",
    "checkpoint": "writing the state from which the run can be resumed",
}
"""Meaning of the ledger's categories of seconds."""

_WAITING = ("wait", "reduce")
_MOST_BARS, _MOST_IN_MATRIX = 64, 64

Rank = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Category:
    """Seconds of all ranks in one category; ``share`` of all seconds, least and most seconds of a rank."""

    name: str
    meaning: str
    total: float
    share: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class TimeSection:
    """Bars for the ranks, a table of categories, and remarks on noticeable facts."""

    bars: Markup
    categories: tuple[Category, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrafficLevel:
    """Messages between ranks at the same distance in the machine; ``copies`` are the boxes of cells in them."""

    name: str
    messages: int
    bytes: int
    copies: int


@dataclass(frozen=True, slots=True)
class TrafficSection:
    """Messages by level, and a matrix of the traffic between ranks if these are few enough for a picture."""

    levels: tuple[TrafficLevel, ...]
    messages: int
    bytes: int
    messages_a_step: float | None
    bytes_a_step: float | None
    matrix: Markup | None


def ranks_of(ledger: object) -> list[Rank]:
    """Return the valid lines of a ledger."""
    lines = ledger.get("ranks") if isinstance(ledger, Mapping) else None
    if not isinstance(lines, Sequence):
        return []
    good = [line for line in lines if isinstance(line, Mapping) and isinstance(line.get("seconds"), Mapping)]
    return sorted(good, key=lambda line: int(line.get("rank", 0)))


def waiting_shares(ranks: Sequence[Rank]) -> dict[int, float]:
    """Return the share of its time in Programs that each rank waited for others."""
    shares = {}
    for number, line in enumerate(ranks):
        seconds = _seconds(line)
        busy = sum(amount for name, amount in seconds.items() if name != "output")
        shares[int(line.get("rank", number))] = sum(seconds.get(n, 0.0) for n in _WAITING) / busy if busy > 0 else 0.0
    return shares


def time_section(ranks: Sequence[Rank]) -> TimeSection | None:
    """Return the section; None if the ledger has no seconds."""
    table = [_seconds(line) for line in ranks]
    names = [name for name in (*CATEGORIES, *_others(table)) if any(seconds.get(name) for seconds in table)]
    if not names:
        return None
    everything = sum(sum(seconds.values()) for seconds in table)
    categories = []
    for name in names:
        column = [seconds.get(name, 0.0) for seconds in table]
        total = sum(column)
        meaning = CATEGORIES.get(name, name)
        categories.append(Category(name, meaning, total, total / everything, min(column), max(column)))
    return TimeSection(
        stacked_bars(_bars(ranks, table, names), "seconds of each rank by category"),
        tuple(categories),
        (*_remarks(table), *_skipped(ranks), *_written(ranks)),
    )


def _bars(ranks: Sequence[Rank], table: Sequence[Mapping[str, float]], names: Sequence[str]) -> list[Bar]:
    """Return a bar for each rank, or for the mean of several consecutive ranks."""
    width = -(-len(table) // _MOST_BARS)
    hosts = {str(line.get("host", "")) for line in ranks}
    bars = []
    for first in range(0, len(table), width):
        group = table[first : first + width]
        parts = [(name, sum(seconds.get(name, 0.0) for seconds in group) / len(group)) for name in names]
        last = first + len(group) - 1
        label = f"rank {first}" if width == 1 else f"ranks {first}\u2013{last}"
        host = str(ranks[first].get("host", ""))
        bars.append(Bar(label, parts, f"{label} on {host}" if len(hosts) > 1 and host else label))
    return bars


def _remarks(table: Sequence[Mapping[str, float]]) -> list[str]:
    compute = [seconds.get("compute", 0.0) for seconds in table]
    remarks = []
    mean = sum(compute) / len(compute)
    if len(compute) > 1 and mean > 0:
        slowest = int(np.argmax(compute))
        excess = max(compute) / mean - 1
        remarks.append(
            f"The kernels of rank {slowest} take longest, {100 * excess:.0f} % longer than those of a rank on average."
            if excess >= 0.05
            else "The kernels take the same time on all ranks, to within 5 %."
        )
        busy = sum(sum(a for n, a in seconds.items() if n != "output") for seconds in table)
        waited = sum(seconds.get(name, 0.0) for seconds in table for name in _WAITING)
        if busy > 0:
            remarks.append(f"Waiting for other ranks is {100 * waited / busy:.0f} % of the time in steps.")
    return remarks


def _skipped(ranks: Sequence[Rank]) -> list[str]:
    """Return a remark on the cells that the ranks left out because nothing could change there."""
    shares = [float(line["skipped"]) for line in ranks if isinstance(line.get("skipped"), int | float)]
    mean = sum(shares) / len(shares) if shares else 0.0
    return [f"{100 * mean:.0f} % of the cells were left out, as nothing could change there."] if mean > 0 else []


def _written(ranks: Sequence[Rank]) -> list[str]:
    """Return a remark on the time that frames took, beside the steps and delaying them."""
    lines = [line["snapshots"] for line in ranks if isinstance(line.get("snapshots"), Mapping)]
    if not lines or not max(line.get("frames", 0) for line in lines):
        return []

    def total(*names: str) -> float:
        return sum(float(line.get(name, 0)) for line in lines for name in names)

    behind, held = total("encode", "write", "fsync", "publish"), max(line.get("stall", 0.0) for line in lines)
    frames, dropped = (max(int(line.get(name, 0)) for line in lines) for name in ("frames", "dropped"))
    said = (
        f"{frames} frames, {total('bytes') / 1e6:.3g} MB, were written in {behind:.3g} s beside the steps; "
        f"{'no step' if held < 0.01 else 'the steps'} waited {'' if held < 0.01 else f'{held:.3g} s '}for the disk."
    )
    return [said + (f" {dropped} more were left out, as all buffers were full." if dropped else "")]


def traffic_section(ledger: object, steps: int) -> TrafficSection | None:
    """Return the section; None if no message was sent."""
    ranks = ranks_of(ledger)
    pairs = [
        (int(line.get("rank", number)), entry)
        for number, line in enumerate(ranks)
        for entry in line.get("traffic", ()) or ()
        if isinstance(entry, Mapping) and int(entry.get("messages", 0))
    ]
    messages = sum(int(line.get("messages", 0)) for line in ranks)
    moved = sum(int(line.get("bytes", 0)) for line in ranks)
    if not messages:
        return None
    return TrafficSection(
        tuple(_levels(ledger)),
        messages,
        moved,
        messages / steps if steps else None,
        moved / steps if steps else None,
        _matrix(pairs, len(ranks)) if pairs and len(ranks) <= _MOST_IN_MATRIX else None,
    )


def _levels(ledger: object) -> list[TrafficLevel]:
    """Return the levels over which messages went, the outermost first."""
    lines = ledger.get("levels") if isinstance(ledger, Mapping) else None
    if not isinstance(lines, Sequence) or not all(isinstance(line, Mapping) for line in lines):
        return []
    levels = [
        TrafficLevel(str(line["name"]), *(int(line.get(k, 0)) for k in ("messages", "bytes", "copies")))
        for line in lines
    ]
    return [level for level in levels if level.messages]


def _matrix(pairs: Sequence[tuple[int, Mapping[str, Any]]], ranks: int) -> Markup | None:
    amounts = np.zeros((ranks, ranks), np.int64)
    for sender, entry in pairs:
        receiver = int(entry.get("to", -1))
        if not (0 <= sender < ranks and 0 <= receiver < ranks):
            return None
        amounts[sender, receiver] += int(entry.get("bytes", 0))
    return matrix(amounts, "bytes", "bytes from each rank to each other one")


def _seconds(line: Rank) -> dict[str, float]:
    return {str(name): max(0.0, float(amount)) for name, amount in line["seconds"].items()}


def _others(table: Sequence[Mapping[str, float]]) -> list[str]:
    return sorted({name for seconds in table for name in seconds} - set(CATEGORIES))
