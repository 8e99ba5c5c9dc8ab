"""Waiting for others: at once where asked to be eager, asleep between looks where asked to be patient."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from minga.engine.loop_code import is_supported
from minga.engine.waiting import longest_nap, wait_until
from minga.errors import LaunchError
from mpi_launch import run_ranks

LATE = """\
import json, sys, time
import numpy as np
from minga.engine.command import Allreduce, Start, Wait
from minga.engine.comm import Envelope, MPIComm
from minga.engine.interpret import interpret
from minga.engine.native import NativeLoop
from minga.engine.workers import Workers

comm = MPIComm()
box = [np.full(8, comm.rank, np.uint8), np.zeros(8, np.uint8)]
peer = 1 - comm.rank
channel = comm.channel([Envelope(peer, box[0])], [Envelope(peer, box[1])], 1)
words = np.array([comm.rank + 1], np.int64)
exchange, reduction = [Start(channel), Wait(channel)], [Allreduce(words, "sum")]
spent = {}
with Workers(1) as workers:
    for name, commands in (("wait", exchange), ("reduce", reduction)):
        with NativeLoop(commands + [END], comm, workers) as loop:
            comm.barrier()
            if comm.rank == 0:
                time.sleep(0.4)
            start = time.perf_counter(), time.process_time()
            loop.run()
            spent[name] = time.perf_counter() - start[0], time.process_time() - start[1]
for name, act in (("channel", lambda: (channel.start(), channel.wait())), ("barrier", comm.barrier)):
    comm.barrier()
    if comm.rank == 0:
        time.sleep(0.4)
    start = time.perf_counter(), time.process_time()
    act()
    spent[name] = time.perf_counter() - start[0], time.process_time() - start[1]
assert (box[1] == peer).all() and words[0] == 3
print(json.dumps(spent))
channel.close()
"""


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.skipif(not is_supported(), reason="the native loop exists on Linux only: run it there")
@pytest.mark.parametrize("manner", ["patient", "eager"])
def test_a_patient_rank_leaves_the_core_to_others(manner: str, tmp_path: Path) -> None:
    script = tmp_path / "late.py"
    script.write_text(LATE.replace("END]", "End(1)]").replace("Allreduce, Start", "Allreduce, End, Start"))
    job = run_ranks(2, script, env={"MINGA_WAIT": manner}).check()
    spent = json.loads(job.out[1])
    assert len(spent) == 4
    if manner == "patient":  # 0.05 of the wait; a busy machine makes the wait longer, and the part no larger
        assert all(computed < 0.2 * waited for waited, computed in spent.values()), spent


def test_words_for_the_manner() -> None:
    assert longest_nap({}) == longest_nap({"MINGA_WAIT": "eager"}) == 0
    assert longest_nap({"MINGA_WAIT": "Patient"}) > 0
    with pytest.raises(LaunchError, match="MINGA_WAIT is 'lazy'"):
        longest_nap({"MINGA_WAIT": "lazy"})


def test_short_waits_are_not_slept_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINGA_WAIT", "patient")
    now = [0]

    def clock() -> int:
        now[0] += 10_000
        return now[0]

    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("slept"))
    monkeypatch.setattr(time, "perf_counter_ns", clock)  # the machine may be busy with something else
    wait_until(lambda: now[0] > 150_000)


def test_long_waits_sleep_a_part_of_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINGA_WAIT", "patient")
    now, naps = [0], []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        now[0] += int(seconds * 1e9)

    def clock() -> int:
        now[0] += 10_000
        return now[0]

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "perf_counter_ns", clock)
    wait_until(lambda: now[0] > 20_000_000)
    assert naps == sorted(naps)
    assert naps[0] == pytest.approx(50e-6, rel=0.1)
    assert naps[-1] == 500e-6
