"""``minga medium``: media into files, what is in them, and mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from command_line import in_process, nothing_written


@pytest.fixture(autouse=True)
def here(in_tmp_path: Path) -> Path:
    return in_tmp_path


@pytest.mark.slow
def test_salt_into_a_store_with_a_picture(here: Path) -> None:
    words = ["medium", "salt", "salt.zarr", "--shape", "12,14,16", "--spacing", "5,10,10"]
    said = in_process(*words, "--picture", "a.png")
    assert said.status == 0, said.err
    assert "12 x 14 x 16 cells of 5 x 10 x 10 m" in said.out
    assert "vp       1500 to 4480 m/s" in said.out
    assert (here / "a.png").read_bytes().startswith(b"\x89PNG")
    shown = in_process("medium", "show", "salt.zarr")
    assert shown.status == 0
    assert "12 x 14 x 16 values along z, y, x; spacing 5, 10, 10 m; axes zyx" in shown.out
    assert "theta" in shown.out


def test_layers_into_files_for_each_quantity(here: Path) -> None:
    words = ["medium", "layered", "m.npy", "--shape", "10x4x4", "--spacing", "10"]
    said = in_process(*words, "--depths", "0,45", "--velocities", "1500,3000")
    assert said.status == 0, said.err
    vp = np.load(here / "m-vp.npy")
    assert vp[:, 0, 0].tolist() == [1500.0] * 5 + [3000.0] * 5
    assert len(list(here.glob("m-*.npy"))) == 5
    shown = in_process("medium", "show", "m-vp.npy")
    assert "spacing unknown; axes zyx (assumed: the file does not say)" in shown.out


def test_a_seed_is_one_medium(here: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        assert in_process("medium", "thrust", f"{name}.rsf", "--shape", "8,8,8", "--seed", seed).status == 0
    data = [(here / f"{name}-vp.rsf@").read_bytes() for name in "abc"]
    assert data[0] == data[1] != data[2]


WRONG = [
    (("salt", "a.txt"), "ends in .zarr"),
    (("salt", "a.zarr", "--shape", "4,4,4,4"), "one to three numbers"),
    (("salt", "a.zarr", "--shape", "4,4,none"), "whole numbers"),
    (("salt", "a.zarr", "--shape", "0,4,4"), "above 0"),
    (("salt", "a.zarr", "--shape", "999999,999999,9999"), "too large"),
    (("salt", "a.zarr", "--spacing", "1,2"), "one for each axis"),
    (("salt", "a.zarr", "--spacing", "-3"), "not negative"),
    (("salt", "a.zarr", "--seed", "-1"), "0 or more"),
    (("salt", "no/a.zarr", "--shape", "4,4,4"), "does not exist"),
    (("salt", "a.zarr", "--picture", "a.doc"), ".png or .svg"),
    (("salt", "a.zarr", "--anisotropy", "9"), "from 0 to 2"),
    (("layered", "a.zarr", "--depths", "0,1"), "2 depths but 0 velocities"),
    (("layered", "a.zarr", "--depths", "5,1", "--velocities", "1500,1600"), "top down"),
    (("layered", "a.zarr", "--dip", "89"), "60 degrees"),
    (("show", "none.zarr"), "there is no file"),
    (("show", "there.txt"), "kind of file"),
    (("show", "there.npy", "--axes", "abc"), "letters z, y, x"),
]


@pytest.mark.parametrize(("words", "text"), WRONG)
def test_mistakes(here: Path, words: tuple[str, ...], text: str) -> None:
    (here / "there.txt").write_text("x")
    np.save(here / "there.npy", np.ones((2, 3, 4)))
    with nothing_written(here):
        said = in_process("medium", *words)
    assert said.status == 2, said
    assert text in said.err
    assert "Traceback" not in said.err
