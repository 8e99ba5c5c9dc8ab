"""`minga bench mpi`: what it says of libraries that are there and of those that are not, and one real small run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import in_process
from minga.errors import LaunchError
from minga.launch.implementations import installed
from minga.studies.cli import mpi
from minga.studies.tinetti import mpi_compared
from minga.studies.tinetti.mpi_ranks import WAYS


def job(seconds: dict[str, float], digest: str = "d", alone: float = 0.4) -> dict[str, Any]:
    """What rank 0 of a library's job prints."""
    return {
        "ways": {way: {"samples": [seconds[way]] * 3, "digest": digest} for way in WAYS},
        "alone": alone,
        "calls": {"21504": {"Send": 1.0, "Recv": 2.0, "Isend": 0.125, "Irecv": 0.01}},
    }


MPICH = dict(zip(WAYS, (0.2, 0.1, 0.3), strict=True))
INTEL = dict(zip(WAYS, (0.1, 0.08, 0.1), strict=True))


def test_tables_and_a_figure(tmp_path: Path) -> None:
    jobs = {"mpich": job(MPICH), "openmpi": {"missing": "it was not found"}, "impi": job(INTEL)}
    found = mpi_compared.combined("heat", "three-ages", None, 3, 10, jobs)
    text = mpi_compared.tables(found)
    assert "heat: 3 ranks in the lab three-ages (emulated), 10 steps" in text
    assert "without Open MPI: it was not found" in text
    assert [line.split()[-2:] for line in text.splitlines() if line.strip().startswith("blocking")] == [["2", "1"]]
    assert found["libraries"]["mpich"]["speed_up"]["overlapped"] == pytest.approx(4.0)
    assert found["libraries"]["mpich"]["gain"] == pytest.approx(0.5)
    assert "     21504     1.000     2.000     0.125     0.010" in text
    assert mpi_compared.failed(found) == []
    assert mpi_compared.draw(found, tmp_path / "both.png").read_bytes()[:4] == b"\x89PNG"


def test_other_bits_are_said() -> None:
    found = mpi_compared.combined("heat", None, None, 2, 10, {"mpich": job(MPICH), "impi": job(INTEL, "e")})
    assert len(mpi_compared.failed(found)) == 1
    assert "[DOES NOT HOLD]" in mpi_compared.tables(found)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--mpi", "mpihc"], "did you mean 'mpich'"),
        (["-n", "1"], "1 ranks send no messages"),
        (["--seconds", "0"], "0 seconds are not enough"),
        (["--lab", "three-aegs"], "three-ages"),
        (["-o", "nowhere/found.json"], "nowhere/found.json cannot be written"),
        (["--picture", "both.jpeg"], "neither .png nor .svg"),
    ],
)
def test_what_cannot_be_meant(words: list[str], said: str) -> None:
    found = in_process("bench", "mpi", "heat", *words)
    assert found.status != 0
    assert said in found.err
    assert found.out == ""


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> None:
        raise LaunchError(f"{name} was not found")

    monkeypatch.setattr(mpi, "find_implementation", none)
    found = in_process("bench", "mpi", "heat", "--mpi", "mpich,openmpi")
    assert found.status != 0
    assert "MPICH is left out: mpich was not found" in found.err
    assert "no MPI implementation could be measured" in found.err


@pytest.mark.slow
@pytest.mark.mpi
def test_a_small_run(tmp_path: Path) -> None:
    there = installed()
    if not there:
        pytest.skip("no MPI library is here: pip install mpich")
    out, picture = tmp_path / "found.json", tmp_path / "both.png"
    said = in_process(
        "bench", "mpi", "heat", "--mpi", there[0].name, "--seconds", "0.05", "--set", "grid.shape=[64, 64]",
        "-o", str(out), "--picture", str(picture),
    )  # fmt: skip
    assert said.status == 0, said.err
    assert "[holds] all libraries, blocking and overlapped, come to the same bits" in said.out
    found = json.loads(out.read_text())
    (one,) = found["libraries"].values()
    assert one["vendor"] == there[0].vendor
    assert set(one["seconds"]) == set(WAYS)
    assert all(seconds > 0 for seconds in one["seconds"].values())
    assert set(one["calls"]) == {str(size) for size in mpi_compared.SIZES}
    assert picture.exists()
