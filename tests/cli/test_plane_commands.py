"""Runs on an unbounded plane from the command line: what the summary says, and pattern files of their last cells."""

from __future__ import annotations

import json
import shutil
import subprocess

import numpy as np
import pytest

from command_line import in_process
from minga.models.automaton.patterns import read_pattern

CASE = """\
model = "automaton"
[grid]
boundary = "unbounded"
shape = [3, 3]
[automaton]
rule = "B3/S23"
init = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]
[run]
steps = {steps}
ranks = 1
[output]
pictures = 0
"""


def glider(at):
    return {(at + y, at + x) for y, x in ((0, 1), (1, 2), (2, 0), (2, 1), (2, 2))}


def placed(path):
    pattern = read_pattern(path)
    top, left = pattern.position
    return {(int(y) + top, int(x) + left) for y, x in np.argwhere(pattern.cells)}


@pytest.fixture
def run(tmp_path):
    (tmp_path / "case.toml").write_text(CASE.format(steps=3000))
    said = in_process("run", tmp_path / "case.toml", "--out", tmp_path / "run")
    assert said.status == 0, said.err
    return tmp_path / "run", said.out


def test_a_summary_names_the_plane_and_the_last_window_and_no_cells_per_second(run):
    directory, said = run
    result = json.loads((directory / "result.json").read_text())
    low, high = result["window"]["lo"], result["window"]["hi"]
    assert all(a <= 750 and b >= 753 for a, b in zip(low, high, strict=True))  # 3000 steps move a glider by 750 cells
    assert min(low) > 0  # the first window, which began at negative indices, has been left
    assert result["shape"] == [b - a for a, b in zip(low, high, strict=True)]
    extent = " x ".join(map(str, result["shape"]))
    assert f"unbounded plane, last window {extent} cells, 3000 steps" in said
    assert "steps/s" in said
    assert "cells/s" not in said
    assert result["cells_per_second"] is None
    assert json.loads((directory / "progress.json").read_text())["cells"] is None
    report = (directory / "report.html").read_text()
    assert "unbounded plane, last window" in report
    assert "cell updates a second" not in report
    assert "on an unbounded plane" in (directory / "case.toml").read_text()
    assert "unbounded plane" in in_process("compare", directory, directory).out


@pytest.mark.parametrize("name", ["last.mc", "last.rle"])
def test_exported_patterns_lie_where_they_are_on_the_plane(run, tmp_path, name):
    said = in_process("export", run[0], "--out", tmp_path / name)
    assert said.status == 0, said.err
    assert placed(tmp_path / name) == glider(750)
    assert ":" not in read_pattern(tmp_path / name).rule
    (tmp_path / "next.toml").write_text(
        CASE.format(steps=8).replace("shape = [3, 3]\n", "").replace("init = [[", f'init = "{name}" # ')
    )
    assert in_process("run", tmp_path / "next.toml", "--out", tmp_path / "next").status == 0
    assert in_process("export", tmp_path / "next", "--out", tmp_path / "next.mc").status == 0
    assert placed(tmp_path / "next.mc") == glider(752)


@pytest.mark.skipif(shutil.which("bgolly") is None, reason="needs bgolly: apt-get install golly")
def test_golly_resumes_from_an_exported_macrocell_file(run, tmp_path):
    assert in_process("export", run[0], "--out", tmp_path / "last.mc").status == 0
    command = ["bgolly", "-a", "HashLife", "-m", "3008", "-i", "8", "-o", "after.mc", "last.mc"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert placed(tmp_path / "after.mc") == glider(752)
