"""Time line of a run: ``trace.json.gz``, which https://ui.perfetto.dev and chrome://tracing open.

Every rank is a process with tracks: its commands (kernels, boundaries, packing, sends, waits, sums, Python calls), its
output, and the commands executed by its other threads. The format is the Trace Event Format of Chrome's tracing:
complete events (``"ph": "X"``) with ``ts`` and ``dur`` in microseconds since the first event of any rank, ``cat`` a
category of the ledger, and cells, messages and bytes in ``args``. A rank keeps only its last commands.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from minga.engine.comm import Comm
from minga.engine.engine import Engine
from minga.engine.events import Entry, Timeline
from minga.output.directory import appearing

__all__ = ["RankTrace", "Span", "Stopwatch", "events_a_thread", "gather_traces", "write_trace"]

_EVENTS: Final = 1 << 19
"""Number of commands kept by all threads together: some tens of megabytes of text, which viewers open in seconds."""
_FEWEST: Final = 1 << 12
_ROUNDS: Final = 9
"""Number of barriers by which clocks of different machines are compared."""
_COMMANDS, _OUTPUT, _WORKERS = range(3)
"""Tracks of a rank; further workers follow."""


@dataclass(frozen=True, slots=True)
class Span:
    """Piece of work outside of commands: from `start` on, in nanoseconds of `time.perf_counter_ns`."""

    name: str
    start: int
    duration: int
    step: int


@dataclass(frozen=True, slots=True)
class RankTrace:
    """Time line of one rank. `ahead`: nanoseconds to be added to its clock to obtain rank 0's."""

    host: str
    ahead: int
    timeline: Timeline
    spans: tuple[Span, ...]


class Stopwatch:
    """Timer of the output of one rank: `seconds` in all, and individual `spans` if they are kept."""

    def __init__(self, *, keep: bool) -> None:
        self.seconds = 0.0
        self.spans: list[Span] = []
        self._keep = keep

    @contextlib.contextmanager
    def span(self, name: str, step: int) -> Iterator[None]:
        """Time the work inside the ``with`` block."""
        start = time.perf_counter_ns()
        try:
            yield
        finally:
            duration = time.perf_counter_ns() - start
            self.seconds += duration * 1e-9
            if self._keep:
                self.spans.append(Span(name, start, duration, step))


def events_a_thread(threads: int) -> int:
    """Return the number of commands that each of `threads` threads, of all ranks together, keeps."""
    return max(_FEWEST, _EVENTS // threads)


def gather_traces(engine: Engine, spans: Sequence[Span]) -> list[RankTrace] | None:
    """Return the traces of all ranks on rank 0, None elsewhere; collective. The engine must be made with ``trace``."""
    timeline = engine.events
    assert timeline is not None, "an engine without trace keeps no events"
    ahead = _ahead(engine.comm)
    return engine.comm.gather(RankTrace(platform.node(), ahead, timeline, tuple(spans)))


def _ahead(comm: Comm) -> int:
    """Return the nanoseconds by which rank 0's clock is ahead of this rank's; collective.

    Ranks of one machine read one clock. Others compare the times at which they leave the same barriers, which is
    accurate to the few times ten microseconds that a message takes.
    """
    readings = []
    for _ in range(_ROUNDS):
        comm.barrier()
        readings.append(time.perf_counter_ns())
    machine = _machine()
    first: tuple[str, list[int]] = comm.bcast((machine, readings))
    if machine == first[0]:
        return 0
    differences = sorted(theirs - mine for theirs, mine in zip(first[1], readings, strict=True))
    return differences[_ROUNDS // 2]


def _machine() -> str:
    """Return an identifier of machines with different clocks: a number that Linux draws when it starts."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return platform.node()


# Writing -------------------------------------------------------------------------------------------------------------
def write_trace(path: Path, traces: Sequence[RankTrace]) -> Path:
    """Write the file under a temporary name and rename it.

    Raises
    ------
    RunError
        If the disk refuses.
    """
    with appearing(path) as temporary, temporary.open("wb") as raw:
        with gzip.GzipFile(filename="", mode="wb", compresslevel=5, fileobj=raw, mtime=0) as stream:
            _write(stream, traces)
        raw.flush()
        os.fsync(raw.fileno())
    return path


def _write(stream: gzip.GzipFile, traces: Sequence[RankTrace]) -> None:
    zero = min((start for trace in traces for start in _starts(trace)), default=0)
    lost = {f"rank {rank}": trace.timeline.lost for rank, trace in enumerate(traces)}
    head = {"displayTimeUnit": "ns", "otherData": {"program": "minga", "earlier commands not kept": lost}}
    stream.write(json.dumps(head)[:-1].encode() + b', "traceEvents": [\n')
    for rank, trace in enumerate(traces):
        lines = [json.dumps(event) for event in _names(rank, trace)]
        lines += _commands(rank, trace, zero)
        lines += _outputs(rank, trace, zero)
        stream.write(",\n".join(lines).encode())
        stream.write(b",\n" if rank + 1 < len(traces) else b"\n")
    stream.write(b"]}\n")


def _starts(trace: RankTrace) -> Iterator[int]:
    if len(trace.timeline.rows):
        yield int(trace.timeline.rows[:, 1].min()) + trace.ahead
    yield from (span.start + trace.ahead for span in trace.spans)


def _names(rank: int, trace: RankTrace) -> Iterator[dict[str, Any]]:
    yield {"name": "process_name", "ph": "M", "pid": rank, "args": {"name": f"rank {rank} on {trace.host}"}}
    yield {"name": "process_sort_index", "ph": "M", "pid": rank, "args": {"sort_index": rank}}
    threads = [(_WORKERS + n, f"thread {n + 1}") for n in range(len(trace.timeline.workers))]
    for thread, name in ((_COMMANDS, "commands"), (_OUTPUT, "output"), *threads):
        yield {"name": "thread_name", "ph": "M", "pid": rank, "tid": thread, "args": {"name": name}}


def _commands(rank: int, trace: RankTrace, zero: int) -> Iterator[str]:
    shift = trace.ahead - zero
    heads = [_head(entry) for entry in trace.timeline.entries]
    tracks = [(_COMMANDS, trace.timeline.rows), *enumerate(trace.timeline.workers, _WORKERS)]
    for thread, (number, start, duration, polled) in ((t, row) for t, rows in tracks for row in rows.tolist()):
        head, args = heads[number]
        if polled:
            args = f'{args}{", " if args else ""}"moving messages along (us)": {polled / 1000:.3f}'
        times = f'"ts": {(start + shift) / 1000:.3f}, "dur": {duration / 1000:.3f}'
        yield f'{{{head}, "pid": {rank}, "tid": {thread}, {times}, "args": {{{args}}}}}'


def _head(entry: Entry) -> tuple[str, str]:
    """Return the text of an event's name and category, and that of its arguments, both without their braces."""
    counts = {"cells": entry.cells, "tiles": entry.tiles, "messages": entry.messages, "bytes": entry.bytes}
    shown = {name: count for name, count in counts.items() if count}
    return json.dumps({"name": entry.name, "cat": entry.category, "ph": "X"})[1:-1], json.dumps(shown)[1:-1]


def _outputs(rank: int, trace: RankTrace, zero: int) -> Iterator[str]:
    for span in trace.spans:
        event = {
            "name": span.name,
            "cat": "output",
            "ph": "X",
            "pid": rank,
            "tid": _OUTPUT,
            "args": {"step": span.step},
        }
        start = (span.start + trace.ahead - zero) / 1000
        yield f'{json.dumps(event)[:-1]}, "ts": {start:.3f}, "dur": {span.duration / 1000:.3f}}}'
