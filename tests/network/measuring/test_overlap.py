"""What is said about overlap, on the numbers of real libraries."""

from __future__ import annotations

import pytest

from minga.network.measuring.overlap import Overlap, Polled, cures, overlapped


def of(size: int, without: float, polled: float, interval: float = 1e-3) -> Overlap:
    return Overlap(size, 0.01, 0.01, 0.02 - without * 0.01, without, (Polled(interval, 0.01, polled),), 1e-6)


def test_the_formula_of_the_intel_benchmarks() -> None:
    assert overlapped(1.0, 1.0, 1.0) == 1
    assert overlapped(1.0, 1.0, 2.0) == 0
    assert overlapped(2.0, 1.0, 2.5) == 0.5
    assert overlapped(1.0, 1.0, 3.0) == 0  # never less than none
    assert overlapped(1.0, 1.0, 0.5) == 1


# Measured at 100 Mb/s: without polls, with polls, and with the library's own thread.
OPEN_MPI = [of(60_000, 0.90, 0.85), of(131_072, 0.04, 0.89), of(1_000_000, 0.17, 1.0), of(4_000_000, 0.0, 0.87)]
MPICH = [of(60_000, 0.98, 0.99), of(1_000_000, 0.95, 0.96), of(4_000_000, 0.21, 1.0, 5e-3)]
UCX = [of(60_000, 0.97, 0.98), of(4_000_000, 0.0, 0.05)]


def test_open_mpi_stands_still_above_its_eager_limit() -> None:
    said = cures(OPEN_MPI, "Open MPI 5.0.11", drain=0.0014)
    assert "131072" in said[0]
    assert "0%" in said[0]
    assert "every 1 ms" in said[1]
    assert "1.4 ms" in said[1]
    assert "btl_tcp_progress_thread 1" in said[2]


def test_others_have_other_switches() -> None:
    assert "MPICH_ASYNC_PROGRESS=1" in cures(MPICH, "MPICH 5.0.2")[-1]
    assert "I_MPI_ASYNC_PROGRESS=1" in cures(MPICH, "Intel MPI 2021.18")[-1]
    assert "polling" not in " ".join(cures(UCX, "MPICH 5.0.2")[1:-1])
    assert "does not help" in cures(UCX, "some MPI 1.0")[-1]


def test_nothing_is_said_where_all_is_well() -> None:
    assert cures(MPICH[:2], "MPICH 5.0.2") == []
    assert cures([], "MPICH 5.0.2") == []


def test_the_longest_interval_that_is_good_enough() -> None:
    polled = (Polled(1e-4, 0.01, 0.97), Polled(1e-3, 0.01, 0.95), Polled(1e-2, 0.01, 0.5))
    best = Overlap(1, 0.01, 0.01, 0.02, 0.0, polled, 1e-6).best
    assert best is not None
    assert best.interval == pytest.approx(1e-3)
