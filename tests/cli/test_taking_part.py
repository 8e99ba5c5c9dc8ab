"""The hosts of a run over all its starts: dropped, absent, tried in vain, and taken up again."""

from __future__ import annotations

from pathlib import Path

import pytest

from minga.cli.start import Start
from minga.cli.taking_part import TakingPart
from minga.launch.hosts import Host
from minga.launch.watchdog.comeback import Comeback
from minga.launch.watchdog.dropped import Dropping
from minga.launch.watchdog.loss import HostsChangedError
from minga.output.directory import RunDirectory
from minga.plan.drop import Drop

HERE, BEE, CAT = Host("localhost", 1), Host("bee", 2), Host("cat", 1)


def asked(folder: Path, reason: str = "asked") -> TakingPart:
    """The hosts of a run that has stopped for a reason."""
    (folder / "result.json").write_text(f'{{"ended": {{"reason": "{reason}"}}}}')
    return TakingPart("ssh", RunDirectory(folder), may_change=True)


def wish(takers: TakingPart) -> Dropping:
    dropping = takers.dropping([HERE, BEE, CAT])
    assert dropping is not None
    assert dropping.hear(Drop((1, 2), slower=50.0, step=2.0, without=0.5, recovered=8.0))
    return dropping


def back(takers: TakingPart, start: Start, *names: str) -> Comeback:
    comeback = takers.comeback(start, {})
    assert comeback is not None
    comeback.back = names
    return comeback


def test_a_slow_host_is_dropped_and_comes_back(tmp_path: Path) -> None:
    takers = asked(tmp_path)
    said = (
        "without host bee, which computes 50 times slower than expected: a step takes 2 s with it, and is predicted to "
    )
    with pytest.raises(HostsChangedError, match=said + "take 0.5 s without it"):
        takers.check_changed(None, wish(takers))
    assert list(takers.slow) == ["bee"]
    start = Start(2, absent={Host("bee"): 0.5})
    takers.started(start)
    comeback = back(takers, start, "bee")
    assert comeback.slow["bee"].factor == 8.0
    assert [host.ranks for host in comeback.hosts] == [2]  # as many threads are timed
    with pytest.raises(HostsChangedError, match=r"^with host bee$"):
        takers.check_changed(comeback, None)
    assert takers.slow == {}


def test_nothing_changes_where_a_run_ended_for_another_reason_or_must_not_change(tmp_path: Path) -> None:
    takers = asked(tmp_path, "steps")
    takers.check_changed(None, wish(takers))
    fixed = TakingPart("ssh", RunDirectory(tmp_path), may_change=False)
    assert fixed.dropping([HERE, BEE]) is None
    assert fixed.comeback(Start(2, absent={BEE: 0.5}), {}) is None
    assert takers.dropping([HERE]) is None


def test_a_host_for_which_the_run_was_stopped_in_vain_twice_is_asked_no_more(tmp_path: Path) -> None:
    takers, start = asked(tmp_path), Start(2, absent={CAT: 0.5})
    for _ in range(2):
        with pytest.raises(HostsChangedError):
            takers.check_changed(back(takers, start, "cat"), None)
        takers.started(start)
    assert takers.comeback(start, {}) is None
    takers.started(Start(3))  # it takes part after all
    assert takers.comeback(start, {}) is not None
