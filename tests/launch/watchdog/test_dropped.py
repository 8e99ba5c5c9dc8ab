"""Hosts that a run continues without because they are slow, and hosts that may take part again."""

from __future__ import annotations

from pathlib import Path

from minga.launch.hosts import Host
from minga.launch.watchdog.comeback import Comeback
from minga.launch.watchdog.dropped import Dropping, SlowHost
from minga.launch.watchdog.tempo import seconds_of_work
from minga.output.directory import RunDirectory
from minga.output.progress import ProgressFile
from minga.plan.drop import Drop

ANT, BEE, CAT = Host("localhost", 1), Host("bee", 2), Host("cat", 1)


def drop(*ranks: int) -> Drop:
    return Drop(ranks, slower=100.0, step=2.0, without=1.0, recovered=10.0)


def test_the_hosts_of_ranks_are_dropped_but_never_that_of_rank_0() -> None:
    dropping = Dropping([ANT, BEE, BEE, CAT])
    assert not dropping.hear(drop(0, 3))
    assert dropping.dropped == ()
    assert dropping.hear(drop(1, 2))
    assert dropping.dropped == (BEE,)
    dropping.forget()
    assert dropping.dropped == ()


def test_a_slow_host_is_compared_with_its_longest_time() -> None:
    slow = SlowHost("bee", 10.0)
    assert [slow.recovered(seconds) for seconds in (None, 2.0, 5.0, 0.6, None, 0.5)] == [False] * 5 + [True]


def test_a_piece_of_work_is_timed() -> None:
    assert 0 < seconds_of_work(2, rounds=1) < 100


class Asking:
    """Hosts that answer as told, and a clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.answers: dict[str, float | None] = {}
        self.asked: list[tuple[str, bool]] = []

    def ask(self, host: Host, shell: str, timed: bool) -> float | None:
        self.asked.append((host.name, timed))
        return self.answers.get(host.name)

    def comeback(self, run: RunDirectory, barred: dict[str, float], slow: dict[str, SlowHost]) -> Comeback:
        return Comeback({BEE: 0.5, CAT: 0.1}, "ssh", run, barred, slow, self.ask, lambda: self.now)


def running(folder: Path, step: int) -> RunDirectory:
    """A run of 1000 steps, which take a second each."""
    run = RunDirectory(folder)
    ProgressFile(run, 1000, 100, 2).last(step, float(step))
    return run


def test_hosts_return_that_answer_if_the_rest_becomes_shorter(tmp_path: Path) -> None:
    asking = Asking()
    comeback = asking.comeback(running(tmp_path, 500), {}, {})
    assert comeback.returned() == ()
    asking.answers = {"cat": 0.0}
    assert comeback.returned() == ("cat",)  # a tenth of 500 s is more than a restart
    running(tmp_path, 900)
    assert comeback.returned() == ()
    asking.answers = {"cat": 0.0, "bee": 0.0}
    assert comeback.returned() == ("bee", "cat")
    asking.asked.clear()
    running(tmp_path, 990)
    assert comeback.returned() == ()
    assert asking.asked == []


def test_hosts_that_are_barred_return_when_their_time_is_over(tmp_path: Path) -> None:
    asking = Asking()
    asking.answers = {"cat": 0.0, "bee": 0.0}
    comeback = asking.comeback(running(tmp_path, 100), {"bee": 60.0}, {})
    assert comeback.returned() == ("cat",)
    asking.now = 61.0
    assert comeback.returned() == ("bee", "cat")


def test_slow_hosts_return_when_they_are_fast_again(tmp_path: Path) -> None:
    asking = Asking()
    asking.answers = {"bee": 3.0}
    comeback = asking.comeback(running(tmp_path, 100), {}, {"bee": SlowHost("bee", 4.0)})
    comeback.begin()
    assert asking.asked == [("bee", True)]
    assert comeback.returned() == ()
    asking.answers = {"bee": 1.0}
    assert comeback.returned() == ()
    asking.answers = {"bee": 0.7}
    assert comeback.returned() == ("bee",)
