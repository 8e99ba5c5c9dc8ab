"""Time limits of jobs."""

from __future__ import annotations

import pytest

from minga.batch.limit import limit_of, margin_of, slurm_time


@pytest.mark.parametrize(
    ("text", "seconds", "again"),
    [
        ("2h", 7200, "02:00:00"),
        ("90 min", 5400, "01:30:00"),
        ("1.5 d", 129600, "1-12:00:00"),
        ("02:00:30", 7230, "02:00:30"),
        ("1-12:00:00", 129600, "1-12:00:00"),
        ("36:00:00", 129600, "1-12:00:00"),
        ("60 s", 60, "00:01:00"),
    ],
)
def test_limits(text: str, seconds: int, again: str) -> None:
    assert limit_of(text) == seconds
    assert slurm_time(seconds) == again
    assert limit_of(again) == seconds


def test_margins() -> None:
    assert [margin_of(None, limit) for limit in (60, 180, 3600, 7200, 86400)] == [30, 90, 180, 360, 600]
    assert margin_of("5 min", 7200) == 300
