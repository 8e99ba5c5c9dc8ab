"""Files that commands write: one that exists is replaced only where that is asked for."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from command_line import in_process
from minga.cli.outputs import check_output
from minga.errors import CaseError
from minga.space.field import Field
from minga.space.grid import Grid
from run_files import make_run

WRITING = {
    "export": ["export", "part", "--out", "there.npy"],
    "export of all frames": ["export", "part", "--frame", "all", "--out", "all.vtr"],
    "the list of these": ["export", "part", "--frame", "all", "--out", "there.vtr"],
    "NetCDF": ["export", "part", "--frame", "all", "--out", "there.nc"],
    "XDMF": ["export", "part", "--frame", "all", "--out", "there.xmf"],
    "movie": ["movie", "part", "--out", "there.gif"],
    "plan": ["plan", "life", "-n", "1", "--machine", "two-ages", "-o", "there.json"],
    "its picture": ["plan", "life", "-n", "1", "--machine", "two-ages", "--plot", "there.png"],
    "its picture that nobody named": ["plan", "life", "-n", "1", "--machine", "two-ages", "--scaling"],
    "measure": ["measure", "-o", "there.json"],
    "the machine that nobody named": ["measure"],
    "its plot": ["measure", "-o", "new.json", "--plot", "there.png"],
    "its page": ["measure", "-o", "new.json", "--html", "there.html"],
    "matmul": ["matmul", "a.npy", "a.npy", "-o", "there.npy"],
    "matmul on ranks": ["matmul", "a.npy", "a.npy", "-o", "there.npy", "-n", "2"],
    "milano": ["bench", "milano", "--quick", "-o", "there.json"],
    "bounanos": ["bench", "bounanos", "--quick", "--html", "there.html"],
    "tinetti": ["bench", "tinetti", "--quick", "-o", "there.json"],
    "mpi": ["bench", "mpi", "life", "--picture", "there.png"],
    "medium": ["medium", "salt", "new.zarr", "--shape", "4,4,4", "--picture", "there.png"],
    "show": ["medium", "show", "a.npy", "--picture", "there.png"],
}
TAKEN = ["there.npy", "all-1.vtr", "there.pvd", "there.nc", "there.xmf", "there.gif", "there.json", "there.png",
         "there.html", "scaling.png", "machine.json"]  # fmt: skip


@pytest.mark.few(5)
@pytest.mark.parametrize("words", WRITING.values(), ids=WRITING)
def test_nothing_is_replaced_unasked(in_tmp_path: Path, words: list[str]) -> None:
    """And it is said before anything is computed for it."""
    cells = np.zeros((4, 5), "u1")
    make_run(in_tmp_path / "part", Field("cell", Grid((4, 5)), "u1"), {0: cells, 1: cells})
    np.save("a.npy", np.zeros((3, 3)))
    for name in TAKEN:
        Path(name).write_text("precious")
    before = sorted(in_tmp_path.iterdir())
    said = in_process(*words)
    assert said.status == 2, said.err
    assert "exists already" in said.err
    assert "--force" in said.err
    assert {Path(name).read_text() for name in TAKEN} == {"precious"}
    assert sorted(in_tmp_path.iterdir()) == before


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["export", "export of all frames", "movie", "plan", "matmul"])
def test_and_it_is_where_that_is_asked_for(in_tmp_path: Path, name: str) -> None:
    cells = np.eye(4, 5, dtype="u1")
    make_run(in_tmp_path / "part", Field("cell", Grid((4, 5)), "u1"), {0: cells, 1: cells})
    np.save("a.npy", np.ones((3, 3)))
    words = WRITING[name]
    file = Path(words[-1]) if "all.vtr" not in words else Path("all-1.vtr")
    file.write_text("old")
    said = in_process(*words, "--force")
    assert said.status == 0, said.err
    assert file.read_bytes() != b"old"
    assert in_process(*words).status == 2


def test_a_movie_of_its_own_is_made_again(in_tmp_path: Path) -> None:
    """It lies in the run, which it belongs to."""
    cells = np.eye(4, 5, dtype="u1")
    make_run(in_tmp_path / "part", Field("cell", Grid((4, 5)), "u1"), {0: cells, 1: cells})
    for _ in range(2):
        assert in_process("movie", "part").status == 0


def test_what_is_no_file_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("/dev/null", tmp_path / "pipe", tmp_path):
        with pytest.raises(CaseError):
            check_output(Path(name), "-o", force=True)
    with pytest.raises(CaseError, match="exists already"):
        check_output(tmp_path / "link", "-o")
    check_output(tmp_path / "link", "-o", force=True)
