"""Finding the launcher that belongs to the library, and noticing one that does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from minga.errors import LaunchError
from minga.launch.launcher import (
    Launcher,
    Library,
    check_world,
    find_launcher,
    launcher_vendor,
    library,
    surrounding_job,
)


def fake_program(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def no_launchers_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}")
    monkeypatch.delenv("MINGA_MPIEXEC", raising=False)


def test_the_library_of_this_environment_has_its_launcher() -> None:
    found = library()
    assert found.vendor == "MPICH"
    assert found.path is not None
    launcher = find_launcher(found)
    assert launcher.vendor == "MPICH"
    assert launcher.path.parent == Path(sys.prefix, "bin")


def test_the_launcher_beside_the_library_comes_first(tmp_path: Path) -> None:
    fake_program(tmp_path / "path" / "mpiexec", "HYDRA build details")
    ours = fake_program(tmp_path / "mpi" / "bin" / "mpiexec", "HYDRA build details")
    assert find_launcher(Library("MPICH", "5.0", tmp_path / "mpi" / "lib" / "libmpi.so.12")).path == ours


def test_a_launcher_on_the_path_serves_when_it_belongs(tmp_path: Path) -> None:
    other = fake_program(tmp_path / "path" / "mpiexec", "HYDRA build details")
    found = Library("Open MPI", "5.0", tmp_path / "mpi" / "lib" / "libmpi.so.40")
    with pytest.raises(LaunchError, match="no launcher of Open MPI") as caught:
        find_launcher(found)
    assert str(other) in str(caught.value)
    right = fake_program(tmp_path / "path" / "mpirun", "mpirun (Open MPI) 5.0.11")
    assert find_launcher(found).path == right


def test_a_person_can_name_the_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = fake_program(tmp_path / "mine", "Intel(R) MPI Library for Linux* OS")
    monkeypatch.setenv("MINGA_MPIEXEC", str(mine))
    assert find_launcher(Library("MPICH", "5.0", None)) == Launcher(mine, "Intel MPI")
    monkeypatch.setenv("MINGA_MPIEXEC", str(tmp_path / "missing"))
    with pytest.raises(LaunchError, match="MINGA_MPIEXEC"):
        find_launcher(Library("MPICH", "5.0", None))


def test_what_is_no_launcher_has_no_vendor(tmp_path: Path) -> None:
    assert launcher_vendor(tmp_path / "missing") is None


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({}, None),
        ({"PMI_RANK": "1", "PMI_SIZE": "4"}, (1, 4)),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, (0, 2)),
        ({"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8"}, (3, 8)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, None),  # a batch script: no job step yet
    ],
)
def test_a_surrounding_job_is_noticed(environment: dict[str, str], place: tuple[int, int] | None) -> None:
    job = surrounding_job(environment)
    assert (job and (job.rank, job.size)) == place


def test_copies_that_do_not_meet_are_named() -> None:
    check_world(4, 4, "mpiexec")
    with pytest.raises(LaunchError, match=r"mpirun started 4 processes, but .* sees 1 rank: .* do not belong together"):
        check_world(1, 4, "mpirun")


def test_ranks_do_not_inherit_a_surrounding_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_FD", "7")
    environment = Launcher(Path("mpiexec"), "MPICH").environment()
    assert not [name for name in environment if name.startswith("PMI")]
    assert environment["PATH"] == os.environ["PATH"]


def test_command_lines() -> None:
    assert Launcher(Path("/x/mpiexec"), "MPICH").command(3) == ["/x/mpiexec", "-launcher", "fork", "-n", "3"]
    words = Launcher(Path("/x/mpirun"), "Open MPI").command(3)
    assert words[:3] == ["/x/mpirun", "-n", "3"]
    assert words[-2:] == ["--bind-to", "none"]


def test_mpi_starts_after_its_library_was_looked_for() -> None:
    """A program that has run or planned something may still make a communicator of its own."""
    script = "import minga as mg; from minga.launch.launcher import library; library(); print(mg.MPIComm().size)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
