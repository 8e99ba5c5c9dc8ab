"""Complete and missing parts of a result, and the distribution of missing rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from minga.models.matmul.operands import Range, length

__all__ = ["Block", "Task", "missing", "part", "split"]


@dataclass(frozen=True, slots=True)
class Block:
    """A rectangle of C that is computed and stored, as half-open ranges of rows and columns."""

    first_row: int
    end_row: int
    first_column: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Task:
    """Rows that are still to be computed in the columns of C from ``first`` to before ``end``."""

    rows: tuple[Range, ...]
    first: int
    end: int

    @property
    def count(self) -> int:
        """Number of rows."""
        return length(self.rows)


def missing(rows: int, columns: int, done: Iterable[Block]) -> list[Task]:
    """Return the missing parts of a result: strips of columns that lack the same rows, from left to right."""
    blocks = list(done)
    cuts = sorted({0, columns, *(b.first_column for b in blocks), *(b.end_column for b in blocks)})
    tasks: list[Task] = []
    for first, end in pairwise(cuts):
        there = sorted(
            (b.first_row, b.end_row) for b in blocks if b.first_column <= first and end <= b.end_column
        )  # fmt: skip
        lacking = _gaps(rows, there)
        if not lacking:
            continue
        if tasks and tasks[-1].rows == lacking and tasks[-1].end == first:
            tasks[-1] = Task(lacking, tasks[-1].first, end)
        else:
            tasks.append(Task(lacking, first, end))
    return tasks


def _gaps(rows: int, there: Sequence[Range]) -> tuple[Range, ...]:
    """Return the rows in no range; the ranges are in ascending order of their beginnings and may overlap."""
    found, at = [], 0
    for first, end in there:
        if first > at:
            found.append((at, first))
        at = max(at, end)
    if at < rows:
        found.append((at, rows))
    return tuple(found)


def split(ranges: Sequence[Range], counts: Sequence[int]) -> list[tuple[Range, ...]]:
    """Cut ranges into consecutive parts with the given counts of indices, which add up to all indices."""
    bounds = [0]
    for count in counts:
        bounds.append(bounds[-1] + count)
    return [part(ranges, first, end) for first, end in pairwise(bounds)]


def part(ranges: Sequence[Range], first: int, end: int) -> tuple[Range, ...]:
    """Return the part of ranges that holds their indices number ``first`` to before ``end``."""
    found, at = [], 0
    for low, high in ranges:
        here, there = max(first, at), min(end, at + high - low)
        if here < there:
            found.append((low + here - at, low + there - at))
        at += high - low
    return tuple(found)
