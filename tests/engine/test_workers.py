"""Threads that share the tiles of a kernel."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from minga.engine.loop_code import is_supported
from minga.engine.workers import Workers, nanoseconds_per_tick
from native_kernels import kernels

TEAMS = [True, False] if is_supported() else [False]


@pytest.mark.parametrize("native", TEAMS)
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("tiles", [0, 1, 2, 3, 64, 1000])
def test_every_tile_is_done_once(native: bool, count: int, tiles: int) -> None:
    table = np.zeros(tiles + 1, np.int64)
    args = np.array([table.ctypes.data, 0])
    with Workers(count, native=native) as workers:
        for dispatch in range(1, 6):
            workers.run(kernels().visit, args.ctypes.data, tiles)
            assert (table[:tiles] == dispatch).all()
    assert table[tiles] == 0


@pytest.mark.parametrize("native", TEAMS)
def test_other_threads_do_tiles_too(native: bool) -> None:
    table = np.zeros(1, np.int64)
    args = np.array([table.ctypes.data, 0])
    seen = 0
    with Workers(3, native=native) as workers:
        for _ in range(200):  # a single dispatch may be over before the others wake
            table = np.zeros(20_000, np.int64)
            args[0] = table.ctypes.data
            workers.run(kernels().visit, args.ctypes.data, len(table))
            assert (table == 1).all()
            seen = int(args[1])
            if seen:
                break
    assert seen > 0


@pytest.mark.parametrize("native", TEAMS)
def test_many_small_dispatches_lose_nothing(native: bool) -> None:
    table = np.zeros(3, np.int64)
    args = np.array([table.ctypes.data, 0])
    rounds = 3000
    with Workers(4, native=native) as workers:
        for _ in range(rounds):
            workers.run(kernels().visit, args.ctypes.data, 3)
    assert table.tolist() == [rounds] * 3


@pytest.mark.parametrize("native", TEAMS)
def test_scratch_is_aligned_and_grows(native: bool) -> None:
    with Workers(3, 100, native=native) as workers:
        for size in (100, 1000, 50, 4096):
            workers.reserve(size)
            spans = []
            for worker in range(3):
                words = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_int64 * 3).from_address(workers.words(worker)))
                assert words[0] == worker
                assert words[1] % 64 == 0
                assert words[2] >= size
                spans.append((words[1], words[1] + words[2]))
            spans.sort()
            assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


@pytest.mark.parametrize("native", TEAMS)
def test_closing_ends_the_threads(native: bool) -> None:
    before = threading.active_count()
    workers = Workers(3, native=native)
    assert threading.active_count() == before + 2
    workers.close()
    assert threading.active_count() == before
    workers.close()


@pytest.mark.parametrize("native", TEAMS)
def test_forgotten_workers_end_with_their_owner(native: bool) -> None:
    before = threading.active_count()
    workers = Workers(2, native=native)
    del workers
    assert threading.active_count() == before


@pytest.mark.parametrize("native", TEAMS)
def test_the_interpreter_ends_with_open_workers(native: bool) -> None:
    code = f"from minga.engine.workers import Workers; keep = Workers(3, native={native}); print('end')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads can be pinned on Linux only")
@pytest.mark.parametrize("native", TEAMS)
def test_threads_are_pinned_and_the_caller_is_not_moved(native: bool) -> None:
    own = os.sched_getaffinity(0)
    cpu = max(own)
    with Workers(2, cpus=[min(own), cpu], native=native) as workers:
        table, args = np.zeros(1, np.int64), np.zeros(2, np.int64)
        args[0] = table.ctypes.data
        workers.run(kernels().visit, args.ctypes.data, 1)
        thread = next(t for t in threading.enumerate() if t.name == "minga worker 1")
        assert thread.native_id is not None
        for _ in range(1000):  # the thread pins itself when it begins
            if os.sched_getaffinity(thread.native_id) == {cpu}:
                break
            Path("/proc/self/stat").read_text()
        assert os.sched_getaffinity(thread.native_id) == {cpu}
    assert os.sched_getaffinity(0) == own


def test_senseless_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Workers(0)
    with pytest.raises(ValueError, match="as many cores"):
        Workers(3, cpus=[0])


@pytest.mark.skipif(not is_supported(), reason="the native clock is read on Linux only")
def test_the_clock_has_a_sensible_rate() -> None:
    assert 0.1 < nanoseconds_per_tick() < 100
