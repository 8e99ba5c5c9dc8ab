"""Progress: the numbers, the lines of a log and the bar of a terminal."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re

import pytest

from minga.view.progress import LogLines, Progress, Timed, progress_display, rate_text, time_text


def test_a_run_to_a_time_is_told_by_its_time() -> None:
    progress = Progress(300, 900, 6.0, 1000, 2, timed=Timed(1.25, 5.0, " s"))
    assert progress.share == 0.25
    assert progress.remaining == 18.0
    stream = io.StringIO()
    LogLines("waves", stream, interval=0.0).progress(progress)
    assert stream.getvalue().startswith("waves: time 1.25 of 5 s, step 300 (25 %), ")
    assert Progress(0, 900, 0.0, 1000, 1, timed=Timed(0.0, 5.0)).remaining is None


@pytest.mark.parametrize(
    ("rate", "text"), [(12.3, "12.3 cells/s"), (4.56e6, "4.56 Mcells/s"), (7.2e9, "7.2 Gcells/s"), (0, "0 cells/s")]
)
def test_rates(rate: float, text: str) -> None:
    assert rate_text(rate) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.852, "0.85 s"), (42.1, "42 s"), (187, "3:07"), (3723, "1:02:03")])
def test_times(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


def test_rate_and_remaining_time() -> None:
    progress = Progress(step=25, steps=100, seconds=5.0, cells=1000, ranks=2)
    assert progress.rate == 5000
    assert progress.remaining == 15
    assert Progress(0, 100, 0.0, 1000, 1).remaining is None


def test_a_log_gets_one_line_an_interval() -> None:
    stream = io.StringIO()
    lines = LogLines("life", stream, interval=0.0)
    lines.progress(Progress(25, 100, 5.0, 1000, 2))
    assert stream.getvalue() == "life: step 25 of 100 (25 %), 5 kcells/s on 2 ranks, 15 s left\n"
    quiet = io.StringIO()
    LogLines("life", quiet, interval=3600.0).progress(Progress(25, 100, 5.0, 1000, 2))
    assert quiet.getvalue() == ""


def test_no_bar_without_a_terminal() -> None:
    stream = io.StringIO()
    with progress_display("life", 100, stream) as listener:
        listener.progress(Progress(100, 100, 1.0, 10, 1))
        listener.note("a note")
    assert stream.getvalue() == "a note\n"


def _all_of(leader: int) -> str:
    """What was written to a terminal that is closed by now."""
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal is an error
        while part := os.read(leader, 1 << 16):
            shown += part
    return shown.decode()


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as stream, progress_display("life", 100, stream) as listener:
        listener.progress(Progress(50, 100, 1.0, 2_000_000, 3))
        listener.note("[a] note")
    shown = _all_of(leader)
    os.close(leader)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert "[a] note" in plain
    assert re.search(r"life .* step 50 of 100 100 Mcells/s .* 3 ranks", plain), plain
