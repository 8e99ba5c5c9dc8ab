"""LogGP and one-way times: what is made up comes out again, and real messages give sensible numbers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from minga.network.measuring import one_way
from minga.network.measuring.one_way import measure_one_way, telling
from minga.network.measuring.trains import Train, loggp, measure_trains
from minga.network.measuring.transports import tcp
from minga.network.measuring.transports.stream import Wire

LATENCY, OVERHEAD, GAP, BYTE = 50e-6, 4e-6, 9e-6, 8e-8
HERE, TOKEN = "127.0.0.1", bytes(16)


def made(size: int, messages: int = 16) -> Train:
    """By the formula of Hoefler, Lichei and Rehm."""
    single = 2 * (LATENCY + 2 * OVERHEAD + (size - 1) * BYTE)
    gap, pause = GAP + (size - 1) * BYTE, single
    return Train(
        size,
        messages,
        single,
        single + (messages - 1) * max(OVERHEAD, gap),
        single + (messages - 1) * max(OVERHEAD + pause, gap),
        pause,
    )


def test_parameters_come_out_of_trains() -> None:
    found = loggp([made(size) for size in (1, 100, 1000, 16_000)])
    assert found.latency == pytest.approx(LATENCY)
    assert found.overhead == pytest.approx(OVERHEAD)
    assert found.gap == pytest.approx(GAP)
    assert found.byte == pytest.approx(BYTE)
    with pytest.raises(ValueError, match="two sizes"):
        loggp([made(100)])


def both_ends(work: Callable[[Wire, bool], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What the first end of a connection finds."""
    options = tcp.Options()
    listener = tcp.listen(HERE, options)
    port = listener.getsockname()[1]

    def other() -> None:
        wire = tcp.accept(listener, TOKEN, options, 10.0)
        work(wire, False)
        wire.close()

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    wire = tcp.connect(HERE, port, TOKEN, options, 10.0)
    found = work(wire, True)
    wire.close()
    thread.join(10)
    assert not thread.is_alive()
    return found


def test_trains_over_the_loopback() -> None:
    sizes = (1, 1000, 20_000)
    found = both_ends(lambda wire, first: measure_trains(wire, first, sizes, 0.3))
    assert [point["bytes"] for point in found] == list(sizes)
    for point in found:
        assert point["single"] > 0
        assert point["close"] > 0
        assert point["spaced"] > (point["messages"] - 1) * point["pause"]
        assert point["overhead"] >= 0
    assert both_ends(lambda wire, first: measure_trains(wire, first, (1 << 20,), 1e-9)) == []  # no time for any


def test_one_way_between_clocks_that_are_one() -> None:
    (point,) = both_ends(lambda wire, first: measure_one_way(wire, first, (2_000_000,), 0.1))
    assert point["there"] > -point["doubt"]
    assert point["back"] > -point["doubt"]
    # Both ends have the same clock: the ways add up to the round trip, whatever the clocks are believed to be.
    assert point["there"] + point["back"] > 0


def test_one_way_between_clocks_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    here = threading.current_thread()

    def clock() -> float:
        return time.perf_counter() + (0.0 if threading.current_thread() is here else 3600.0)

    monkeypatch.setattr(one_way, "perf_counter", clock)
    (point,) = both_ends(lambda wire, first: measure_one_way(wire, first, (2_000_000,), 0.1))
    assert -point["doubt"] < point["there"] < 60
    assert -point["doubt"] < point["back"] < 60


def test_one_way_is_told_only_where_clocks_agree() -> None:
    points = [{"bytes": n, "there": n * 1e-8, "back": n * 1.1e-8, "doubt": 20e-6} for n in (1000, 60_000, 1_000_000)]
    good, said = telling(points)
    assert [point["bytes"] for point in good] == [60_000, 1_000_000]
    assert "within 20 us" in said
    assert "from 60000 bytes on" in said
    none, said = telling(points[:1])
    assert none == []
    assert "not accurately enough" in said
