"""Finding MPI libraries and their launchers, in directories of several kinds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from minga.errors import LaunchError
from minga.launch.implementations import NAMES, find_implementation, installed, outside_jobs

SAYS = {"mpich": "HYDRA build details", "openmpi": "mpirun (Open MPI) 5.0.11", "impi": "Intel(R) MPI Library for Linux"}


def home(path: Path, name: str, library: str | None = None) -> Path:
    """A directory as an installation of that MPI leaves it."""
    (path / "bin").mkdir(parents=True)
    (path / "lib").mkdir()
    (path / "bin" / "mpiexec").write_text(f"#!/bin/sh\necho '{SAYS[name]}'\n")
    (path / "bin" / "mpiexec").chmod(0o755)
    (path / "lib" / (library or ("libmpi.so.40" if name == "openmpi" else "libmpi.so.12"))).touch()
    return path


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.delenv("MINGA_MPI_HOME", raising=False)


@pytest.mark.parametrize("name", NAMES)
def test_a_directory_that_a_person_names(name: str, tmp_path: Path) -> None:
    found = find_implementation(name, home(tmp_path / "mpi", name))
    assert (found.name, found.vendor) == (name, NAMES[name])
    assert found.launcher == tmp_path / "mpi" / "bin" / "mpiexec"
    assert found.environment["MPI4PY_LIBMPI"] == str(found.library)


def test_environments_beside_minga_and_directories_of_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = home(tmp_path / ".venv-openmpi", "openmpi")
    with pytest.raises(LaunchError, match="Open MPI was not found"):
        find_implementation("openmpi")  # it is still being installed
    (beside / ".ready").touch()
    monkeypatch.setenv("MINGA_MPI_HOME", f"{tmp_path / 'none'}:{home(tmp_path / 'intel', 'impi')}")
    assert find_implementation("openmpi").launcher.parent == tmp_path / ".venv-openmpi" / "bin"
    assert find_implementation("impi").launcher.parent == tmp_path / "intel" / "bin"
    assert [found.name for found in installed()] == ["openmpi", "impi"]


def test_mpich_and_intel_mpi_are_told_apart_although_their_libraries_have_one_name(tmp_path: Path) -> None:
    intel = home(tmp_path / "mpi", "impi")
    with pytest.raises(LaunchError, match="MPICH was not found") as caught:
        find_implementation("mpich", intel)
    assert "make mpi-environments" in str(caught.value)


def test_an_unknown_name_is_told() -> None:
    with pytest.raises(LaunchError, match="did you mean 'mpich'"):
        find_implementation("mpic")


def test_what_a_surrounding_job_left_is_dropped() -> None:
    assert outside_jobs({"PMI_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "HOME": "/h", "PMIX_ID": "3"}) == {"HOME": "/h"}
