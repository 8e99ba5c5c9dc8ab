"""What ranks say when they fail reaches the person who waits, even where MPI ends the launcher's streams first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from minga.launch.last_words import collected, say_last


def test_they_are_collected_in_the_order_of_ranks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    environment: dict[str, str] = {}
    with collected(environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        say_last("ten\n", 10)
        say_last("two\n", 2)
        say_last("and two\n", 2)
        assert capsys.readouterr().err == ""
    assert capsys.readouterr().err == "two\nand two\nten\n"


def test_they_are_collected_where_the_run_ends_with_an_exception(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    environment: dict[str, str] = {}

    def interrupted() -> None:
        with collected(environment):
            for name, value in environment.items():
                monkeypatch.setenv(name, value)
            say_last("one\n", 1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert capsys.readouterr().err == "one\n"


def test_without_a_launcher_that_collects_they_go_to_the_error_stream(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    environment: dict[str, str] = {}
    with collected(environment):
        pass
    for name in environment:
        monkeypatch.setenv(name, str(tmp_path / "of another machine"))
    say_last("one\n", 1)
    assert capsys.readouterr().err == "one\n"
    assert os.listdir(tmp_path) == []
