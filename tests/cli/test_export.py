"""What is exported is what was computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray
from matplotlib.image import imread

from command_line import SMALL, in_process, nothing_written


@pytest.fixture(autouse=True)
def run(in_tmp_path: Path) -> Path:
    """A finished small run, ``run``, in the working directory."""
    Path("small.toml").write_text(SMALL)
    assert in_process("run", "small.toml", "--out", "run").status == 0
    return in_tmp_path / "run"


@pytest.mark.parametrize(("words", "frame"), [((), 2), (("--frame", "1"), 1), (("--frame", "-3"), 0)])
def test_a_frame_comes_back_as_numpy(run: Path, words: tuple[str, ...], frame: int) -> None:
    said = in_process("export", "run", "--field", "cell", "--format", "npy", "--out", "cells.npy", *words)
    assert said.status == 0, said
    assert f"step {frame * 5}" in said.out
    with xarray.open_zarr(run / "fields.zarr") as dataset:
        expected = dataset.cell.values[frame]
    found = np.load("cells.npy")
    assert found.dtype == expected.dtype
    assert (found == expected).all()


def test_what_can_be_guessed_may_be_left_out(run: Path) -> None:
    assert in_process("export", "run", "--out", "cells.npy").status == 0
    assert np.load("cells.npy").shape == (40, 64)
    assert in_process("export", "run", "--out", "cells.png").status == 0
    assert imread("cells.png").ndim == 3
    assert in_process("export", "run", "--out", "cells", "--format", "npy").status == 0
    assert np.load("cells").shape == (40, 64)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("run", "--field", "cel", "--out", "x.npy"), "did you mean 'cell'"),
        (("run", "--out", "x.doc"), "npy, png"),
        (("run", "--out", "x"), "no ending"),
        (("run", "--out", "x.npy", "--format", "pngg"), "did you mean 'png'"),
        (("run", "--out", "x.npy", "--frame", "3"), "no frame 3: it has 3"),
        (("run", "--out", "no/x.npy"), "'no' does not exist"),
        (("rum", "--out", "x.npy"), "does not exist"),
        ((".", "--out", "x.npy"), "no fields.zarr"),
        (("run",), "--out"),
    ],
)
def test_mistakes(in_tmp_path: Path, words: tuple[str, ...], text: str) -> None:
    with nothing_written(in_tmp_path):
        said = in_process("export", *words)
    assert said.status == 2
    assert text in said.err
    assert "Traceback" not in said.err
