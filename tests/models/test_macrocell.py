"""Macrocell files: what Golly writes is read as it is, and what is written here is read by Golly and here alike."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

import minga as mg
from minga.models.automaton.macrocell import read_macrocell, write_macrocell
from minga.models.automaton.patterns import PatternError, read_pattern

GOLLY = """[M2] (golly 3.3)
#R B3/S23
#G 64
$$$$.....*$....***$...*..**$...*...*$
4 0 0 1 0
$$...***$.....***$....*.**$.**.*$..***$..*..*$
....**$....*$
4 0 3 0 4
.....*.*$$*....**$***$.******$*$....**.*$..*.*..*$
$$$..**$..**$
...*..**$....***$.....*$
4 6 7 8 0
5 0 2 5 9
"""
"""File of bgolly 3.3: the pattern "bunnies", which began with its first cell at (0, 0), after 64 steps."""
BUNNIES = [[1, 0, 0, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1, 0, 1], [0, 1, 0, 1, 0, 0, 0, 0]]


def placed(pattern):
    top, left = pattern.position
    return {(int(y) + top, int(x) + left, int(pattern.cells[y, x])) for y, x in np.argwhere(pattern.cells)}


def test_a_file_of_golly_holds_the_cells_that_a_run_gives():
    pattern = read_macrocell(GOLLY)
    assert (pattern.rule, pattern.generation) == ("B3/S23", 64)
    run = mg.run(mg.automaton("B3/S23", (4, 8), init=BUNNIES, boundary="unbounded"), steps=64, progress=False)
    y, x = np.nonzero(run.cell.values[-1])
    assert placed(pattern) == {
        (int(run.y[i] - 0.5), int(run.x[j] - 0.5), 1) for i, j in zip(y.tolist(), x.tolist(), strict=True)
    }


@pytest.mark.parametrize("states", [2, 5])
@pytest.mark.parametrize("position", [(0, 0), (-31, 17), (100, -260)])
def test_cells_come_back(states, position):
    cells = np.random.default_rng(states).integers(0, states, (37, 53)).astype(np.uint8)
    cells[:3] = 0
    text = write_macrocell(cells, "345/2/5", ("a comment",), 12, position)
    pattern = read_macrocell(text)
    assert placed(pattern) == {
        (int(y) + position[0], int(x) + position[1], int(cells[y, x])) for y, x in np.argwhere(cells)
    }
    assert (pattern.rule, pattern.generation, pattern.comments) == ("345/2/5", 12, ("a comment",))


def test_nothing_and_repeated_squares():
    assert read_macrocell(write_macrocell(np.zeros((4, 4), np.uint8))).population == 0
    blocks = np.zeros((512, 512), np.uint8)
    blocks[::8, ::8] = blocks[1::8, ::8] = 1
    text = write_macrocell(blocks)
    assert len(text.splitlines()) < 40  # of 4096 squares with cells
    assert read_macrocell(text).population == blocks.sum()


@pytest.mark.skipif(shutil.which("bgolly") is None, reason="needs bgolly: apt-get install golly")
def test_golly_reads_what_is_written(tmp_path):
    (tmp_path / "a.mc").write_text(write_macrocell(np.array(BUNNIES, np.uint8), position=(5, -9)))
    command = ["bgolly", "-a", "HashLife", "-m", "64", "-i", "64", "-o", str(tmp_path / "b.mc"), str(tmp_path / "a.mc")]
    subprocess.run(command, check=True, capture_output=True)
    moved = {(y + 5, x - 9, state) for y, x, state in placed(read_macrocell(GOLLY))}
    assert placed(read_pattern(tmp_path / "b.mc")) == moved


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [("x = 3", 1, "begins with"), ("[M2]\n**x$", 2, "8 x 8"), ("[M2]\n4 1 0 0 0", 2, "quarter"),
     ("[M2]\n*$\n5 1 0 0 0", 3, "quarter"), ("[M2]\n1 0 0 0 256", 2, "256"), ("[M2]\n99 0 0 0 0", 2, "level 99"),
     ("[M2]\nabc", 2, "not a square")],
)  # fmt: skip
def test_other_texts_are_refused_with_their_line(text, line, words):
    with pytest.raises(PatternError) as caught:
        read_macrocell(text)
    assert (caught.value.line, words in str(caught.value)) == (line, True)


def test_patterns_too_large_for_an_array_are_refused():
    levels = "\n".join(f"{level} {level - 3} 0 0 {level - 3}" for level in range(4, 34))
    with pytest.raises(PatternError, match="large"):
        read_macrocell(f"[M2]\n*$\n{levels}\n")
