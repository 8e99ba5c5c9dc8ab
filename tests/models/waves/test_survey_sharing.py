"""Shots of a survey shared out over ranks of different speeds."""

from __future__ import annotations

from typing import Any

import pytest

from minga.errors import CaseError
from minga.models.waves.survey_sharing import Speeds, shared_out

EQUAL = dict.fromkeys(range(10), 100)


def test_ranks_of_equal_speed_compute_a_shot_each() -> None:
    assert shared_out(EQUAL, [7.0, 7.0, 7.0]) == [[0], [1], [2]]


def test_a_rank_computes_as_many_shots_as_the_slowest_one_gives_it_time_for() -> None:
    assert shared_out(EQUAL, [1.0, 4.0]) == [[3], [0, 1, 2, 4]]


def test_a_slow_rank_waits_where_the_others_are_done_sooner_without_it() -> None:
    assert shared_out({4: 100, 7: 100}, [1.0, 10.0]) == [[], [4]]


def test_the_largest_shots_come_first() -> None:
    assert shared_out({0: 10, 1: 30, 2: 20}, [1.0, 1.0]) == [[1], [2, 0]]


@pytest.mark.parametrize("speeds", [[1.0], [1.0, 2.5, 7.0], [3.0] * 5])
def test_rounds_end_with_every_shot_computed_once(speeds: list[float]) -> None:
    left, done = {number: 50 + 13 * (number % 7) for number in range(23)}, list[int]()
    while left:
        numbers = [number for own in shared_out(left, speeds) for number in own]
        assert numbers
        left = {number: cost for number, cost in left.items() if number not in numbers}
        done += numbers
    assert sorted(done) == list(range(23))
    assert shared_out({}, speeds) == [[] for _ in speeds]


def test_speeds_are_those_of_the_last_round_with_shots() -> None:
    speeds = Speeds(3)
    assert speeds.each() == [1.0, 1.0, 1.0]
    speeds.measured(0, 100, 2.0)
    speeds.measured(1, 300, 2.0)
    speeds.measured(2, 0, 0.0)
    assert speeds.each() == [50.0, 150.0, 150.0]
    speeds.measured(0, 0, 0.0)
    assert speeds.each()[0] == 50.0


def test_weights_count_until_ranks_are_measured() -> None:
    speeds = Speeds(3, [0.0, 1.0, 4.0])
    assert speeds.each() == [0.0, 1.0, 4.0]
    assert shared_out(EQUAL, speeds.each()) == [[], [3], [0, 1, 2, 4]]
    speeds.measured(2, 100, 0.5)
    assert speeds.each() == [0.0, 50.0, 200.0]
    speeds.measured(1, 100, 1.0)
    assert speeds.each() == [0.0, 100.0, 200.0]


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, float("nan")], ["a", "b"], 2.0])
def test_weights_that_cannot_be_are_refused(weights: Any) -> None:
    with pytest.raises(CaseError, match="the weights of 2 ranks"):
        Speeds(2, weights)
