"""Cells that people set while a run continues, and their files.

``edits.jsonl`` in the directory of a run is the record: one edit a line, with the number of steps done before it. It is
all that a repetition needs. ``painting.jsonl`` is there while pages may paint: its first line describes the fields, and
each line that is added is a wish, which the run reads about five times a second. The first line has room for the reason
why wishes were not done, which is written over it in place, as the disk may be full.

A process locks a file while it adds a line, so that others can tell a line that is being written from the incomplete
line of a process that was killed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.output.directory import write_whole

__all__ = ["MOST", "Canvas", "Edit", "Wishes", "append_line", "read_edits", "recorded_edits", "write_edits"]

MOST: Final = 4096
"""Largest number of cells of one edit."""

Numbers = NDArray[np.int64]

_ROOM: Final = 2048
"""Bytes of the first line of a file of wishes for the reason why they were not done."""


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """States of cells that are set after so many steps.

    Attributes
    ----------
    step
        Number of steps done before.
    field
        Name of the field.
    points, states
        Indices of cells, i8 of shape (n, axes), and their states, i8 of shape (n,). Of a cell that occurs several times
        the last state counts.
    """

    step: int
    field: str
    points: Numbers
    states: Numbers

    @property
    def line(self) -> dict[str, Any]:
        """Form of the edit in a file."""
        cells = np.column_stack([self.points, self.states]).tolist()
        return {"step": self.step, "field": self.field, "cells": cells}


@dataclass(frozen=True, slots=True)
class Canvas:
    """Fields whose cells may be set: all have one shape, each so many states.

    Attributes
    ----------
    shape
        Cells along each axis.
    states
        Number of states of each field, by its name.
    refused
        Reason why the last wishes were not done; empty if they were.
    """

    shape: tuple[int, ...]
    states: Mapping[str, int]
    refused: str = ""

    @classmethod
    def read(cls, painting: Path) -> Canvas | None:
        """Return the canvas that the first line of a file of wishes describes; None if pages may not paint."""
        try:
            with painting.open("rb") as lines, _locked(lines, fcntl.LOCK_SH):
                found = json.loads(lines.readline())
            return cls(tuple(found["shape"]), dict(found["states"]), str(found["refused"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def line(self) -> dict[str, Any]:
        """Form of the canvas in a file."""
        return {"shape": self.shape, "states": self.states, "refused": self.refused}

    def edit(self, entry: object, step: int | None = None) -> Edit:
        """Return the edit that an entry of a file or of a page describes.

        Raises
        ------
        ValueError
            If it is no edit of this canvas; the message says what was found and expected.
        """
        if not isinstance(entry, Mapping):
            raise ValueError("an edit is an object with field and cells")
        field, at = entry.get("field"), entry.get("step") if step is None else step
        if not isinstance(field, str) or field not in self.states:
            raise ValueError(f"field {str(field)[:40]!r}: expected {', '.join(self.states)}")
        if isinstance(at, bool) or not isinstance(at, int) or at < 0:
            raise ValueError("step: expected the number of steps done before, 0 or more")
        cells, width = entry.get("cells"), len(self.shape) + 1
        if (
            not isinstance(cells, Sequence)
            or not 0 < len(cells) <= MOST
            or not all(_is_row(row, width) for row in cells)
        ):
            raise ValueError(f"cells: expected 1 to {MOST} lists of {width} whole numbers, the last one a state")
        limits = (*self.shape, self.states[field])
        wrong = next(
            (row for row in cells if not all(0 <= n < limit for n, limit in zip(row, limits, strict=True))), None
        )
        if wrong is not None:
            raise ValueError(f"{wrong} lies beyond the grid or the states: expected numbers below {list(limits)}")
        table = np.array(cells, np.int64)
        return Edit(at, field, table[:, :-1], table[:, -1])


class Wishes:
    """Wishes of pages, read on rank 0 as they are added."""

    def __init__(self, painting: Path, canvas: Canvas) -> None:
        self._painting, self._canvas = painting, canvas
        painting.write_bytes(self._first_line())
        self._read = painting.stat().st_size

    def refuse(self, reason: str) -> None:
        """Tell pages why the last wishes were not done; an empty reason if they were."""
        with contextlib.suppress(OSError), self._painting.open("r+b", buffering=0) as lines, _locked(lines):
            lines.write(self._first_line(reason))

    def _first_line(self, reason: str = "") -> bytes:
        """Return the first line, whose length does not depend on the reason."""
        empty, line = (_line_of(replace(self._canvas, refused=text).line) for text in ("", reason[: _ROOM // 12]))
        return line.rstrip(b"\n").ljust(len(empty) - 1 + _ROOM) + b"\n"

    def new(self, step: int) -> list[Edit]:
        """Return the wishes that were added, as edits after `step` steps; what is no edit is passed over."""
        try:
            if self._painting.stat().st_size <= self._read:
                return []
            with self._painting.open("rb") as lines:
                lines.seek(self._read)
                added = lines.read()
        except OSError:
            return []
        whole = added[: added.rfind(b"\n") + 1]
        self._read += len(whole)
        found = []
        for line in whole.splitlines():
            try:
                found.append(self._canvas.edit(json.loads(line), step))
            except (ValueError, RecursionError):
                continue
        return found


def append_line(path: Path, entry: Mapping[str, Any], *, lasting: bool = False) -> None:
    """Add an entry to a file; `lasting` waits until it is on the disk.

    Where that fails, as on a full disk, nothing of the entry remains. An incomplete line that another process left is
    removed first.
    """
    line = _line_of(entry)
    with path.open("a+b", buffering=0) as lines, _locked(lines):
        end, size = lines.seek(0, os.SEEK_END), _end_of_lines(lines)
        if size < end:  # only then: without locks others may add a line meanwhile
            lines.truncate(size)
        try:
            if lines.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if lasting:
                os.fsync(lines.fileno())
        except OSError:
            lines.truncate(size)
            raise


@contextlib.contextmanager
def _locked(lines: FileIO | BufferedReader, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Lock a file inside the ``with`` block if its file system has locks."""
    with contextlib.suppress(OSError):
        fcntl.flock(lines, kind)  # closing the file unlocks it
    yield


def _end_of_lines(lines: FileIO) -> int:
    """Return the length of a file up to the end of its last complete line."""
    end = lines.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - (1 << 16))
        lines.seek(start)
        found = lines.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def recorded_edits(record: Path, canvas: Canvas) -> list[Edit]:
    """Return the edits of a run's own record in the order of their steps.

    An incomplete last line, which a process that was killed leaves, is removed: its edit was not made.

    Raises
    ------
    CaseError
        If the record cannot be read, or a line is no edit of this canvas.
    """
    with record.open("r+b", buffering=0) as lines, _locked(lines):
        lines.truncate(_end_of_lines(lines))
    return read_edits(record, canvas, key="run.paint")


def write_edits(record: Path, edits: Sequence[Edit]) -> None:
    """Begin the record of a run with edits."""
    write_whole(record, b"".join(_line_of(edit.line) for edit in edits))


def read_edits(path: Path, canvas: Canvas, key: str = "run.edits") -> list[Edit]:
    """Return the edits of a file in the order of their steps.

    Raises
    ------
    CaseError
        If the file cannot be read, or a line is no edit of this canvas.
    """
    try:
        with path.open("rb") as file, _locked(file, fcntl.LOCK_SH):
            lines = file.read().splitlines()
    except OSError as error:
        remedy = "name edits.jsonl in the directory of a run whose cells were painted"
        raise CaseError(f"cannot read {path}: {error.strerror}", key=key, remedy=remedy) from error
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(canvas.edit(json.loads(line)))
        except (ValueError, RecursionError) as error:
            syntax = isinstance(error, json.JSONDecodeError | UnicodeDecodeError | RecursionError)
            text = "no JSON" if syntax else str(error)
            raise CaseError(
                f"line {number} of {path}: {text}",
                key=key,
                remedy='write {"step": 10, "field": "cell", "cells": [[row, column, state], ...]} in each line',
            ) from error
    return sorted(found, key=lambda edit: edit.step)


def _line_of(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def _is_row(row: object, width: int) -> bool:
    """Return True for a list of so many whole numbers."""
    whole = isinstance(row, Sequence) and all(isinstance(n, int) and not isinstance(n, bool) for n in row)
    return whole and not isinstance(row, str | bytes) and len(row) == width  # type: ignore[arg-type]
