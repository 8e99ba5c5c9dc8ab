"""The demo: its parts name what exists, and the page shows what the runs left."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from minga.case.examples import examples
from minga.cli.doctor import Finding
from minga.errors import CaseError
from minga.studies.demo.page import write_page
from minga.studies.demo.parts import PARTS, Part, Show
from minga.studies.demo.play import chosen, play

SMALL = Part(
    "small",
    "A small run",
    "A glider and more.",
    (
        Show(
            "run life --set grid.shape='[32, 48]' --set run.steps=20 --set output.every=5 -n 1",
            fields=("cell",),
            numbers=(("population", "live cells"),),
        ),
    ),
    (("minga run highlife", "another rule"),),
)


def test_parts_run_examples_that_exist() -> None:
    for part in PARTS:
        for show in part.shows:
            words = shlex.split(show.command)
            assert words[len(words) - words[::-1].index("run")] in examples()


def test_a_part_leaves_a_page(tmp_path: Path) -> None:
    outcome = play(SMALL, tmp_path)
    assert not outcome.failed
    page = write_page(tmp_path, [outcome], "0").read_text(encoding="utf-8")
    assert page.count('class="stage"') == 5
    assert "A small run" in page
    assert "live cells" in page
    assert 'href="small/report.html"' in page
    assert (tmp_path / "small" / "report.html").is_file()


def test_a_part_that_fails_is_named_on_the_page(tmp_path: Path) -> None:
    broken = Part("broken", "Broken", "It fails.", (Show("run no-such-example"),), ())
    outcome = play(broken, tmp_path)
    assert "no-such-example" in (tmp_path / "broken.log").read_text()
    assert str(tmp_path / "broken.log") in outcome.failed
    assert "This part failed" in write_page(tmp_path, [outcome], "0").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "finding",
    [
        Finding("labs", "note", "not possible: no rights", {"possible": False}),
        Finding("labs", "ok", "possible without root, no quotas", {"possible": True, "rootless": True, "version": 0}),
    ],
)
def test_a_part_that_needs_labs_is_left_out_without_them(tmp_path: Path, finding: Finding) -> None:
    cluster = next(part for part in PARTS if part.needs_labs)
    outcome = play(cluster, tmp_path, lambda: finding)
    assert outcome.skipped == finding.text
    assert not list(tmp_path.iterdir())
    assert finding.text in write_page(tmp_path, [outcome], "0").read_text(encoding="utf-8")


def test_parts_are_chosen_by_name() -> None:
    assert [part.name for part in chosen(["waves", "deposit"])] == ["deposit", "waves"]
    assert chosen(None) == list(PARTS)
    with pytest.raises(CaseError, match="there is no part 'wave'"):
        chosen(["wave"])


@pytest.mark.slow
def test_the_whole_demo(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "minga", "demo", "--out", str(tmp_path / "demo")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) <= 30
    again = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert again.returncode == 2
    assert "not empty" in again.stderr
