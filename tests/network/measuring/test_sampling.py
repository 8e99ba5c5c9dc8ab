"""Which sizes are measured and how often, with a network that is made up."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from minga.network.measuring import sampling
from minga.network.measuring.sampling import THESIS_SIZES, Sample, between, message_sizes, sample
from minga.network.measuring.transports import Mode


class Made:
    """A pinger whose messages take no real time; the clock that sampling sees is moved instead."""

    transport, least, most = "made up", 0, 1 << 30

    def __init__(self, clock: list[float], noise: float, beta: float = 1e-8) -> None:
        self.clock, self.noise, self.beta = clock, noise, beta
        self.random = np.random.default_rng(0)
        self.asked: list[tuple[int, int]] = []

    def exchange(self, size: int, count: int, mode: Mode = "pingpong") -> list[float]:
        self.asked.append((size, count))
        times = (20e-6 + self.beta * size) * (1 + self.noise * abs(self.random.standard_normal(count)))
        self.clock[0] += 2 * float(times.sum())
        return list(times)

    def close(self) -> None: ...


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(sampling.time, "perf_counter", lambda: now[0])
    return now


def test_the_ladder_has_the_sizes_that_matter() -> None:
    sizes = message_sizes()
    assert set(THESIS_SIZES) <= set(sizes)
    assert {0, 1448, 1449, 1472, 1473, 65536, 65537, 10_000_000} <= set(sizes)
    assert sizes == sorted(set(sizes))
    assert {1021, 1027} <= set(message_sizes(neighbours=True))
    assert max(message_sizes(most=65507)) == 60_000
    assert min(message_sizes(least=8)) == 8


def test_a_quiet_network_is_known_soon_and_a_noisy_one_later(clock: list[float]) -> None:
    sizes = [0, 1000, 100_000]
    quiet = sample(Made(clock, 0.001), sizes, budget=20)
    noisy = sample(Made(clock, 0.5), sizes, budget=20)
    assert [one.size for one in quiet] == sizes
    assert all(len(one.seconds) >= 10 for one in quiet)
    assert sum(len(one.seconds) for one in noisy) > 2 * sum(len(one.seconds) for one in quiet)
    assert all(len(one.warmup) >= 3 for one in quiet)


def test_order_is_random_but_repeatable(clock: list[float]) -> None:
    sizes = [2**k for k in range(12)]

    def order(seed: int) -> list[int]:
        pinger = Made(clock, 0.2)
        sample(pinger, sizes, budget=1, seed=seed)
        return [size for size, _ in pinger.asked][len(sizes) :]

    assert order(1) == order(1) != order(2)
    first = order(1)[: len(sizes)]
    assert sorted(first) == sizes != first


def test_budget_is_kept_and_sizes_that_would_eat_it_are_left_out(clock: list[float]) -> None:
    slow = Made(clock, 0.3, beta=1e-6)  # 1 MB/s
    found = sample(slow, message_sizes(), budget=5)
    assert clock[0] < 7
    assert max(one.size for one in found) < 1_000_000
    assert all(one.seconds for one in found)


def test_nothing_measured_is_thrown_away(clock: list[float]) -> None:
    pinger = Made(clock, 0.3)
    found = sample(pinger, [8, 1000], budget=0.2)
    assert sum(count for _, count in pinger.asked) == sum(len(one.seconds) + len(one.warmup) for one in found)


def test_lost_messages_survive_json() -> None:
    one = Sample(8, (1e-5, math.nan), (2.5e-5,))
    data = one.as_dict()
    assert data == {"bytes": 8, "us": [10.0, None], "warmup_us": [25.0]}
    back = Sample.from_dict(data)
    assert back.summary.lost == 1
    assert back.warmup == pytest.approx(one.warmup)


def test_bisection_around_breaks() -> None:
    assert between([1024, 4096, 65536, 65537], [4096, 65537]) == [2048]


def test_the_order_of_a_sweep_mixes_sizes(clock: list[float]) -> None:
    pinger = Made(clock, 0.5)
    sample(pinger, [1, 10, 100], budget=1)
    runs = Counter(a == b for (a, _), (b, _) in zip(pinger.asked, pinger.asked[1:]))
    assert runs[False] > runs[True]
