"""What is exported is what was computed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray
from matplotlib.image import imread

import minga as mg
from command_line import SMALL, in_process, nothing_written
from minga.models.automaton.patterns import read_rle
from minga.models.automaton.picture import read_picture
from minga.output.export import GROUP
from minga.plugins import names
from minga.space.field import Field
from minga.space.grid import Grid
from run_files import make_run


@pytest.fixture
def run(in_tmp_path: Path) -> Path:
    """A finished small run, ``run``, in the working directory."""
    Path("small.toml").write_text(SMALL)
    assert in_process("run", "small.toml", "--out", "run").status == 0
    return in_tmp_path / "run"


@pytest.mark.few(2)
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


@pytest.mark.slow
def test_what_can_be_guessed_may_be_left_out(run: Path) -> None:
    assert in_process("export", "run", "--out", "cells.npy").status == 0
    assert np.load("cells.npy").shape == (40, 64)
    assert in_process("export", "run", "--out", "cells.png").status == 0
    assert imread("cells.png").ndim == 3
    assert in_process("export", "run", "--out", "cells", "--format", "npy").status == 0
    assert np.load("cells").shape == (40, 64)


@pytest.mark.few(2)
@pytest.mark.parametrize("form", names(GROUP))
def test_all_formats_check_field_and_frame_before_they_write(run: Path, form: str) -> None:
    for words, text in ((["--field", "cel"], "did you mean 'cell'"), (["--frame", "3"], "no frame 3: it has 3")):
        with nothing_written(run.parent):
            said = in_process("export", "run", "--out", f"x.{form}", *words)
        assert said.status == 2
        assert text in said.err
        assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("run", "--field", "cel", "--out", "x.npy"), "did you mean 'cell'"),
        (("run", "--field", "cell", "--field", "cel", "--out", "x.nc"), "did you mean 'cell'"),
        (("run", "--out", "x.doc"), "csv, mc, nc, npy, png, rle, rsf, segy, sgy, vtr, xmf"),
        (("run", "--out", "x"), "no suffix"),
        (("run", "--out", "x.vti"), "write vtr"),
        (("run", "--out", "x", "--format", "vtkhdf"), "'vtkhdf' was removed"),
        (("run", "--out", "x.npy", "--format", "pngg"), "did you mean 'png'"),
        (("run", "--out", "x.npy", "--frame", "3"), "no frame 3: it has 3"),
        (("run", "--out", "x.npy", "--frame", "al"), "did you mean 'all'"),
        (("run", "--out", "no/x.npy", "--frame", "all"), "'no' does not exist"),
        (("run", "--out", "no/x.npy"), "'no' does not exist"),
        (("rum", "--out", "x.npy"), "does not exist"),
        ((".", "--out", "x.npy"), "no fields.zarr"),
        (("run", "--out", "x.npy", "--scale", "2"), "only pictures have a scale"),
        (("run", "--out", "x.png", "--scale", "0"), "1 pixel a cell or more"),
        (("run", "--out", "x.png", "--scale", "1000"), "at most 32768"),
        (("run",), "--out"),
    ],
)
def test_mistakes(run: Path, words: tuple[str, ...], text: str) -> None:
    with nothing_written(run.parent):
        said = in_process("export", *words)
    assert said.status == 2
    assert text in said.err
    assert "Traceback" not in said.err


def stored(run: Path) -> np.ndarray:
    with xarray.open_zarr(run / "fields.zarr") as dataset:
        return dataset.cell.values


def test_all_frames_are_files_named_by_their_steps(run: Path) -> None:
    said = in_process("export", "run", "--out", "cells.npy", "--frame", "all")
    assert said.status == 0, said
    assert sorted(p.name for p in Path().glob("cells*")) == ["cells-00.npy", "cells-05.npy", "cells-10.npy"]
    assert (np.stack([np.load(f"cells-{step:02d}.npy") for step in (0, 5, 10)]) == stored(run)).all()


def test_vtk_grids_have_a_collection(run: Path) -> None:
    assert in_process("export", "run", "--out", "cells.vtr", "--frame", "all").status == 0
    entries = [entry.get("file") for entry in ElementTree.parse("cells.pvd").iter("DataSet")]
    assert entries == ["cells-00.vtr", "cells-05.vtr", "cells-10.vtr"]
    assert stored(run)[1][::-1].tobytes() in Path("cells-05.vtr").read_bytes()  # y goes upwards in VTK, rows downwards


def test_a_pattern_comes_back_with_rule_torus_and_step(run: Path) -> None:
    assert in_process("export", "run", "--out", "cells.rle", "--frame", "1").status == 0
    pattern = read_rle(Path("cells.rle").read_text())
    assert (pattern.cells == stored(run)[1]).all()
    assert (pattern.rule, pattern.bounds, pattern.generation) == ("B3/S23", "T64,40", 5)
    assert pattern.position == (-20, -32)


@pytest.mark.skipif(shutil.which("bgolly") is None, reason="needs bgolly: apt-get install golly")
def test_golly_goes_on_where_a_run_ended(run: Path) -> None:
    """From step 5 to step 10 on the same torus, cell for cell."""
    assert in_process("export", "run", "--out", "cells.rle", "--frame", "1").status == 0
    subprocess.run(["bgolly", "-q", "-m", "10", "-o", "later.rle", "cells.rle"], check=True, capture_output=True)
    later = read_rle(Path("later.rle").read_text())
    row, column = later.position or (-20, -32)
    top, left = row + 20, column + 32
    whole = np.zeros((40, 64), "u1")
    whole[top : top + later.cells.shape[0], left : left + later.cells.shape[1]] = later.cells
    assert (whole == stored(run)[2]).all()


@pytest.mark.slow
def test_patterns_of_runs_from_python_name_their_rule(in_tmp_path: Path) -> None:
    def exported(rule: object, name: str) -> str:
        mg.run(mg.automaton(rule, (6, 9), init=np.eye(6, 9, dtype="u1"), boundary="periodic"), steps=0, out=name)
        assert in_process("export", name, "--out", f"{name}.rle").status == 0
        assert (read_rle(Path(f"{name}.rle").read_text()).cells[:6, :6] == np.eye(6)).all()
        return Path(f"{name}.rle").read_text()

    @mg.rule(states=2)
    def mostly_high_life(cell, near):
        return (near.count(1) == 3) | (near.count(1) == 6) | (cell & (near.count(1) == 2))

    @mg.rule(states=2)
    def melting(cell, near):
        return cell & (mg.random() < 0.5)

    assert "x = 9, y = 6, rule = B36/S236:T9,6\n" in exported(mostly_high_life, "named")
    assert exported(melting, "unnamed").splitlines()[:2] == [
        "#C rule: melting; Golly has no name for it, and takes a file without a rule for Life, B3/S23",
        "x = 9, y = 6",
    ]
    make_run(in_tmp_path / "older", Field("cell", Grid((6, 9)), "u1"), {0: np.eye(6, 9, dtype="u1")})
    assert in_process("export", "older", "--out", "older.rle").status == 0
    assert "which names no rule; Golly takes this for Life, B3/S23\nx = 9, y = 6\n" in Path("older.rle").read_text()


@pytest.mark.parametrize(("shape", "dtype"), [((6, 9), "f8"), ((6,), "u1"), ((2, 3, 4), "u1"), ((2, 2), "i4")])
def test_what_is_no_pattern(in_tmp_path: Path, shape: tuple[int, ...], dtype: str) -> None:
    values = np.full(shape, 300 if dtype == "i4" else 1, dtype)
    make_run(in_tmp_path / "other", Field("u", Grid(shape), dtype), {0: values})
    with nothing_written(in_tmp_path):
        said = in_process("export", "other", "--out", "cells.rle")
    assert said.status == 2
    assert "states 0 to 255 on two axes" in said.err


@pytest.mark.few(2)
@pytest.mark.parametrize("states", [2, 5, 16, 17, 256])
def test_a_picture_of_cells_holds_their_states(in_tmp_path: Path, states: int) -> None:
    cells = np.random.default_rng(states).integers(0, states, (20, 31)).astype("u1")
    make_run(in_tmp_path / "other", Field("cell", Grid((20, 31)), "u1"), {0: cells})
    assert in_process("export", "other", "--out", "cells.png", "--scale", "1").status == 0
    assert (read_picture(Path("cells.png"), states, "init") == cells).all()
    assert in_process("export", "other", "--out", "cells.png", "--scale", "3", "--force").status == 0
    assert (read_picture(Path("cells.png"), states, "init") == np.kron(cells, np.ones((3, 3), "u1"))).all()


def test_a_picture_of_floats_without_axes(in_tmp_path: Path) -> None:
    make_run(in_tmp_path / "other", Field("u", Grid((4, 5))), {0: np.arange(20.0).reshape(4, 5) / 19})
    assert in_process("export", "other", "--out", "u.png", "--scale", "2").status == 0
    image = imread("u.png")
    assert image.shape[:2] == (8, 10)
    assert image[-1, 0, 0] < image[0, -1, 0]  # upwards from violet to yellow
