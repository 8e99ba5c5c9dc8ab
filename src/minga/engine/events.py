"""Events: the times at which a rank executed each command, for viewing a run in time rather than in sums.

The native loop and the interpreter write the same rows to a ring, so that a long run keeps its last commands. Native
workers other than the first write to rings of their own. Switched off, events cost one comparison per command; switched
on, one or two nanoseconds more.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.command import Allreduce, Call, Category, Command, Fetch, Kernel, Launch, Start, Synchronise, Wait
from minga.engine.loop_code import EVENT_WORDS, RING_COUNT, RING_MASK, loop_functions
from minga.engine.workers import Workers, nanoseconds_per_tick

__all__ = ["Entry", "EventLog", "Timeline"]

_LONG: Final = 100_000_000
"""Nanoseconds after which two readings give a clock's rate more accurately than its calibration."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Entry:
    """The properties shared by all events of one command.

    `messages` and `bytes` count what a start sends; `cells` and `tiles` what a kernel covers.
    """

    name: str
    category: str
    messages: int = 0
    bytes: int = 0
    tiles: int = 0
    cells: int = 0


@dataclass(frozen=True, slots=True)
class Timeline:
    """The events of one rank, in order of their starts.

    `rows` has int64 columns: number of the entry, start and duration in nanoseconds of `time.perf_counter_ns`, and the
    nanoseconds of the duration that were spent on progressing messages (the ledger counts these as sending). `lost` is
    the number of earlier events that were overwritten. `workers` are such rows of the other threads: the time that each
    spent on tiles of a command, which lies within the event of that command.
    """

    entries: tuple[Entry, ...]
    rows: Rows
    lost: int
    workers: tuple[Rows, ...] = ()

    def seconds(self) -> dict[str, float]:
        """Return the seconds by category, as the ledger counts them."""
        total = dict.fromkeys((c.name.lower() for c in Category), 0.0)
        for entry, _, duration, polled in self.rows.tolist():
            total[self.entries[entry].category] += (duration - polled) * 1e-9
            total["send"] += polled * 1e-9
        return total


class EventLog:
    """Storage for the last `capacity` events (rounded up to a power of two) of one engine, and of each worker.

    native      the clock is the one that native code reads; otherwise `time.perf_counter_ns`
    """

    def __init__(self, capacity: int, workers: Workers, *, native: bool) -> None:
        rings = workers.count if native else 1
        self._rings = [_Ring(capacity) for _ in range(rings)]
        self._table = np.array([ring.address for ring in self._rings], np.int64)
        self._entries: list[Entry] = []
        self._ticks = ctypes.CFUNCTYPE(ctypes.c_int64)(loop_functions().ticks) if native else None
        self._start = self._anchor()
        if native:
            workers.note(int(self._table.ctypes.data))

    @property
    def address(self) -> int:
        """Address of the header through which native code writes the events of commands."""
        return self._rings[0].address

    def register(self, commands: Sequence[Command]) -> int:
        """Register the commands; return the number of the first one's entry."""
        first = len(self._entries)
        self._entries += [_entry(command) for command in commands]
        return first

    def add(self, entry: int, start: int, end: int) -> None:
        """Record one event, given by readings of the clock."""
        self._rings[0].add(entry, start, end)

    def add_ended(self, entry: int, nanoseconds: int) -> None:
        """Record one event that has just ended, given its duration."""
        end = self._now()
        self.add(entry, end - round(nanoseconds / self._calibrated()), end)

    def timeline(self) -> Timeline:
        """Return the events kept now, in nanoseconds."""
        (tick0, ns0), (tick1, ns1) = self._start, self._anchor()
        pace = (ns1 - ns0) / (tick1 - tick0) if ns1 - ns0 > _LONG else self._calibrated()
        commands, *workers = [_in_nanoseconds(ring.rows(), tick0, ns0, pace) for ring in self._rings]
        return Timeline(tuple(self._entries), commands, self._rings[0].lost, tuple(workers))

    def _now(self) -> int:
        return int(self._ticks()) if self._ticks is not None else time.perf_counter_ns()

    def _calibrated(self) -> float:
        """Return the nanoseconds of a tick."""
        return 1.0 if self._ticks is None else nanoseconds_per_tick()

    def _anchor(self) -> tuple[int, int]:
        """Return simultaneous readings of both clocks."""
        return self._now(), time.perf_counter_ns()


class _Ring:
    """A ring of event rows; `minga.engine.loop_code` describes the words of `header`."""

    def __init__(self, capacity: int) -> None:
        room = 1 << max(0, capacity - 1).bit_length()
        self._rows = np.zeros((room, EVENT_WORDS), np.int64)
        self._header = np.array([0, room - 1, self._rows.ctypes.data], np.int64)
        self.address = int(self._header.ctypes.data)

    @property
    def lost(self) -> int:
        """Number of events that were overwritten."""
        return max(0, int(self._header[RING_COUNT]) - len(self._rows))

    def add(self, entry: int, start: int, end: int) -> None:
        """Record one event."""
        self._rows[self._header[RING_COUNT] & self._header[RING_MASK]] = entry, start, end, 0
        self._header[RING_COUNT] += 1

    def rows(self) -> Rows:
        """Return the kept rows, oldest first."""
        written = int(self._header[RING_COUNT])
        if written <= len(self._rows):
            return self._rows[:written].copy()
        return np.roll(self._rows, -(written & int(self._header[RING_MASK])), axis=0)


def _in_nanoseconds(rows: Rows, tick: int, start: int, pace: float) -> Rows:
    """Convert rows of clock readings to starts and durations in nanoseconds; the clock read `tick` at `start`."""
    ticks = np.stack([rows[:, 1] - tick, rows[:, 2] - rows[:, 1], rows[:, 3]], axis=1)
    times = np.rint(ticks * pace).astype(np.int64)
    return np.column_stack([rows[:, 0], times + np.array([start, 0, 0])])


def _entry(command: Command) -> Entry:
    match command:
        case Kernel():
            return Entry(command.label, command.category.name.lower(), tiles=command.tiles, cells=command.cells)
        case Launch():
            return Entry(command.label, command.category.name.lower(), cells=command.cells)
        case Synchronise() | Fetch():
            return Entry("wait for the GPU", "compute")
        case Start():
            sends = command.channel.sends
            return Entry("send", "send", len(sends), sum(envelope.buffer.nbytes for envelope in sends))
        case Wait():
            return Entry("wait", "wait")
        case Allreduce():
            return Entry(f"reduce {command.operation}", "reduce", bytes=command.words.nbytes)
        case Call(category=category):
            return Entry(command.label, category.name.lower())
        case _:
            return Entry(type(command).__name__.lower(), "other")  # takes no significant time
