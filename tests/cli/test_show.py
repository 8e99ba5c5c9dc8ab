"""Looking at a run: in the terminal, as a movie, as a report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from command_line import in_process, nothing_written
from minga.space.field import Field
from minga.space.grid import Grid
from run_files import make_run


@pytest.fixture(autouse=True)
def run(in_tmp_path: Path) -> Path:
    """A finished run, ``run``, in the working directory: a cell that moves."""
    frames = {step: np.roll(np.eye(20, 30, dtype="u1"), step, axis=1) for step in (0, 50, 100)}
    return make_run(in_tmp_path / "run", Field("cell", Grid((20, 30)), "u1"), frames).path


@pytest.mark.slow
def test_where_there_is_no_terminal_a_path_is_printed(run: Path) -> None:
    said = in_process("show", "run")
    assert said.status == 0, said
    assert said.out.strip() == str(Path("run") / "pictures" / "cell-100.png")
    drawn = Path(said.out.strip())
    before = drawn.stat().st_mtime_ns
    assert in_process("show", "run").out == said.out
    assert drawn.stat().st_mtime_ns == before  # a picture that is there is not drawn again
    assert in_process("show", "run", "--frame", "0").out.strip().endswith("cell-000.png")


@pytest.mark.parametrize(("protocol", "begins"), [("kitty", "\x1b_G"), ("sixel", "\x1bP"), ("blocks", "\x1b[38;")])
def test_each_protocol_draws_and_says_what_it_is(protocol: str, begins: str) -> None:
    said = in_process("show", "run", "--protocol", protocol, "--frame", "1")
    assert said.status == 0, said
    assert said.out.startswith(begins)
    assert said.out.splitlines()[-1] == "cell after step 50 of run"


@pytest.mark.parametrize("dtype", ["u1", "f8"])
def test_one_axis_is_shown_over_time(in_tmp_path: Path, dtype: str) -> None:
    frames = {step: np.eye(10, 30, k=0, dtype=dtype)[step] for step in range(10)}
    make_run(in_tmp_path / "flat", Field("u", Grid((30,)), dtype), frames)
    said = in_process("show", "flat", "--protocol", "blocks")
    assert "time downwards" in said.out
    assert len(said.out.splitlines()) > 5
    assert in_process("show", "flat").out.strip().endswith("u.png" if dtype == "u1" else "u-9.png")


def test_a_movie_lies_in_the_run_unless_said_otherwise(run: Path) -> None:
    said = in_process("movie", "run", "--fps", "5", "--width", "60")
    assert said.status == 0, said
    assert "3 frames of cell, 60 x 40 pixels" in said.out
    with PIL.Image.open(run / "cell.gif") as movie:
        assert (movie.n_frames, movie.info["duration"]) == (3, 200)
    assert in_process("movie", "run", "--out", "other.webp").status == 0
    assert Path("other.webp").exists()


def test_a_report_can_be_written_again(run: Path) -> None:
    said = in_process("report", "run")
    assert said.status == 0, said
    assert said.out.strip() == str(Path("run") / "report.html")
    assert (run / "report.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("show", "nowhere"), "does not exist"),
        (("show", "run", "--protocol", "sixl"), "did you mean 'sixel'"),
        (("show", "run", "--field", "cel"), "did you mean 'cell'"),
        (("show", "run", "--frame", "9"), "no frame 9: it has 3"),
        (("show", "run", "--frame", "last"), "number of a frame"),
        (("movie", "run", "--out", "x.avi"), "one of .gif, .webp"),
        (("movie", "run", "--out", "no/x.gif"), "'no' does not exist"),
        (("movie", "run", "--fps", "0"), "frames per second"),
        (("movie", "run", "--fps", "nan"), "frames per second"),
        (("movie", "run", "--width", "1000000"), "16 to 4096 pixels"),
        (("movie", "run", "--field", "u"), "no field 'u'"),
        (("report", "nowhere"), "does not exist"),
    ],
)
def test_mistakes(in_tmp_path: Path, words: tuple[str, ...], text: str) -> None:
    with nothing_written(in_tmp_path):
        said = in_process(*words)
    assert said.status == 2, said
    assert text in said.err
    assert "Traceback" not in said.err
