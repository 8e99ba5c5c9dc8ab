"""trace.json.gz: what viewers need of it, and that it tells the same as the ledger."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm, SerialComm
from minga.engine.events import Entry, Timeline
from minga.errors import RunError
from minga.options import OutputSettings, RunOptions
from minga.output.snapshots.selection import selections_of
from minga.output.snapshots.whole import WholeFrames
from minga.output.trace import RankTrace, Span, events_a_thread, write_trace
from minga.running.session import Outcome, execute

Event = dict[str, Any]


def outcome(comm: Comm, trace: bool = True) -> Outcome:
    model = mg.automaton("B3/S23", (64, 64), init={"soup": 0.4, "seed": 1})
    settings = RunOptions.of(steps=20, every=10, layout="slabs", trace=trace)
    fields = [model.field(name) for name in model.output]
    recorder = WholeFrames(model, selections_of(fields, OutputSettings()), lambda step, time, arrays: None)
    return execute(model, comm, settings, fields, recorder=recorder)


def read(path: Path) -> dict[str, Any]:
    with gzip.open(path, "rt") as stream:
        content: dict[str, Any] = json.load(stream)
    return content


def check_schema(content: dict[str, Any]) -> None:
    """The Trace Event Format as far as it is used: complete events and metadata."""
    assert content["displayTimeUnit"] in ("ms", "ns")
    for event in content["traceEvents"]:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["args"], dict)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "process_sort_index", "thread_name")
        else:
            assert event["ph"] == "X"
            assert isinstance(event["cat"], str)
            assert isinstance(event["tid"], int)
            assert event["ts"] >= 0
            assert event["dur"] >= 0


def track(content: dict[str, Any], rank: int, thread: int) -> list[Event]:
    """The events of a track; none begins before the one before is over."""
    found = [e for e in content["traceEvents"] if e["ph"] == "X" and (e["pid"], e["tid"]) == (rank, thread)]
    for event, following in pairwise(found):
        assert following["ts"] >= event["ts"] + event["dur"] - 0.002  # microseconds, rounded to nanoseconds
    return found


def test_a_run_on_three_ranks(tmp_path: Path) -> None:
    first, *others = mg.run_virtual(3, outcome)
    assert first.traces is not None
    assert all(other.traces is None for other in others)
    content = read(write_trace(tmp_path / "trace.json.gz", first.traces))
    check_schema(content)
    names = [e["args"]["name"] for e in content["traceEvents"] if e["name"] == "process_name"]
    assert [name.split(" on ")[0] for name in names] == ["rank 0", "rank 1", "rank 2"]
    assert min(e["ts"] for e in content["traceEvents"] if e["ph"] == "X") == 0
    for rank, entry in enumerate(first.ledger["ranks"]):
        commands, output = track(content, rank, 0), track(content, rank, 1)
        seconds = dict.fromkeys(entry["seconds"], 0.0)
        for event in commands + output:
            seconds[event["cat"]] += event["dur"] * 1e-6
        assert seconds == pytest.approx(entry["seconds"], rel=0.02, abs=1e-4)
        sends = [event["args"] for event in commands if event["cat"] == "send"]
        assert sum(args["messages"] for args in sends) == entry["messages"]
        assert sum(args["bytes"] for args in sends) == entry["bytes"]
        assert [event["args"]["step"] for event in output] == [0, 10, 20, 20]  # the last one: until all are complete
        assert {event["name"] for event in output} == {"frame", "last frames"}


def test_a_run_of_one_rank(tmp_path: Path) -> None:
    traced, plain = outcome(SerialComm()), outcome(SerialComm(), trace=False)
    assert plain.traces is None
    assert traced.digest == plain.digest
    assert traced.traces is not None
    content = read(write_trace(tmp_path / "trace.json.gz", traced.traces))
    check_schema(content)
    assert len(track(content, 0, 0)) >= 40


def some(start: int, ahead: int = 0, lost: int = 0) -> RankTrace:
    timeline = Timeline((Entry('a "kernel"', "compute", tiles=3),), np.array([[0, start, 500, 100]]), lost)
    return RankTrace("host", ahead, timeline, (Span("frame", start + 1000, 250, 7),))


def test_clocks_are_brought_together(tmp_path: Path) -> None:
    """Rank 1's clock shows 4 microseconds less than rank 0's, and its command began one microsecond later."""
    content = read(write_trace(tmp_path / "t.gz", [some(10_000, lost=5), some(7_000, ahead=4_000)]))
    check_schema(content)
    assert [(track(content, rank, 0)[0]["ts"], track(content, rank, 1)[0]["ts"]) for rank in (0, 1)] == [
        (0.0, 1.0),
        (1.0, 2.0),
    ]
    event = track(content, 1, 0)[0]
    assert event["name"] == 'a "kernel"'
    assert event["dur"] == 0.5
    assert event["args"] == {"tiles": 3, "moving messages along (us)": 0.1}
    assert content["otherData"]["earlier commands not kept"] == {"rank 0": 5, "rank 1": 0}


def test_a_run_without_commands(tmp_path: Path) -> None:
    empty = RankTrace("host", 0, Timeline((), np.zeros((0, 4), np.int64), 0), ())
    check_schema(read(write_trace(tmp_path / "t.gz", [empty, empty])))


def test_a_disk_that_refuses_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot write"):
        write_trace(tmp_path / "missing" / "t.gz", [some(1)])
    assert not list(tmp_path.iterdir())


def test_threads_share_the_room() -> None:
    assert events_a_thread(1) == 1 << 19
    assert events_a_thread(64) == 1 << 13
    assert events_a_thread(100_000) == 1 << 12
