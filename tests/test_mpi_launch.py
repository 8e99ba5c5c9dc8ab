"""The helper that other tests rely on to start real ranks must itself notice what goes wrong."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from mpi_launch import run_ranks
from thinned import thinned

pytestmark = pytest.mark.mpi


def script(folder: Path, text: str) -> Path:
    path = folder / "with space.py"
    path.write_text(f"import os, sys, time\nfrom mpi4py import MPI\nworld = MPI.COMM_WORLD\n{text}\n")
    return path


@pytest.mark.parametrize("ranks", thinned([1, 2, 3, 4], 3))
def test_ranks_form_one_world(tmp_path: Path, ranks: int) -> None:
    job = run_ranks(ranks, script(tmp_path, "print(world.allreduce(world.rank + 1), sys.argv[1])"), "a b")
    job.check()
    assert job.out == [f"{ranks * (ranks + 1) // 2} a b\n"] * ranks


def test_modules_run_in_the_directory_that_is_given(tmp_path: Path) -> None:
    (tmp_path / "here.py").write_text("import os\nprint(os.getcwd(), os.environ['COLOUR'])")
    job = run_ranks(2, "here", cwd=tmp_path, env={"COLOUR": "red"}).check()
    assert job.out == [f"{os.path.realpath(tmp_path)} red\n"] * 2


def test_an_aborting_rank_ends_the_job_and_is_reported(tmp_path: Path) -> None:
    job = run_ranks(2, script(tmp_path, "world.barrier()\nworld.Abort(7) if world.rank == 1 else time.sleep(600)"))
    assert set(job.started) <= {(0, 2), (1, 2)}  # what a rank said last may go with it
    assert job.status not in (0, None)
    with pytest.raises(AssertionError, match="asked for 2 ranks"):
        job.check()


@pytest.mark.slow
def test_a_job_that_hangs_is_killed_with_all_its_ranks(tmp_path: Path) -> None:
    hang = "open(f'{sys.argv[1]}/{os.getpid()}.pid', 'w').close()\nworld.barrier()\ntime.sleep(600)"
    job = run_ranks(2, script(tmp_path, hang), tmp_path, timeout=5)
    assert job.status is None
    started = [int(path.stem) for path in tmp_path.glob("*.pid")]
    assert len(started) == 2
    give_up = time.monotonic() + 60
    while any(alive(pid) for pid in started) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not [pid for pid in started if alive(pid)]


def alive(pid: int) -> bool:
    """Whether a process still runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
