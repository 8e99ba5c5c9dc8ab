"""All ranks run the same minga, Python and MPI library, or say where they do not."""

from __future__ import annotations

import sys

import pytest

import minga as mg
from minga.engine.comm import Comm
from minga.errors import LaunchError
from minga.output.versions import RankVersions, check_versions, versions_here

SAME = {"minga": "0.1.0", "Python": "3.11", "MPI": "MPICH 4.2.3"}


def checked(entries: list[RankVersions]) -> list[tuple[str, ...]]:
    def check(comm: Comm) -> tuple[str, ...]:
        return check_versions(comm, entries[comm.rank])

    return mg.run_virtual(len(entries), check)


def test_equal_ranks_have_nothing_to_say() -> None:
    assert checked([RankVersions(f"pc{n}", SAME, 1e9 + n) for n in range(3)]) == [(), (), ()]
    assert mg.run_virtual(2, check_versions) == [(), ()]
    assert check_versions(mg.SerialComm()) == ()


@pytest.mark.parametrize(("name", "other"), [("minga", "0.2.0"), ("Python", "3.12"), ("MPI", "Open MPI 5.0.6")])
def test_a_host_with_another_version_is_named_on_every_rank(name: str, other: str) -> None:
    ranks = [RankVersions(host, SAME, 0.0) for host in ("old", "old", "new")]
    ranks[2] = RankVersions("new", SAME | {name: other}, 0.0)
    errors: list[str] = []

    def check(comm: Comm) -> None:
        try:
            check_versions(comm, ranks[comm.rank])
        except LaunchError as error:
            errors.append(str(error))

    mg.run_virtual(3, check)
    assert len(errors) == 3
    assert len(set(errors)) == 1
    assert f"the same {name}: found {SAME[name]} on old; {other} on new" in errors[0]
    assert "install the same versions" in errors[0]


def test_a_clock_that_is_off_is_told_once_for_each_host() -> None:
    clocks = {"here": 100.0, "late": 30.0, "near": 101.0}
    ranks = [RankVersions(host, SAME, clock) for host, clock in clocks.items() for _ in range(2)]
    (notes, *others) = checked(ranks)
    assert all(other == notes for other in others)
    assert len(notes) == 1
    assert "the clock of late is 70 s behind that of here" in notes[0]


def test_the_versions_of_this_process() -> None:
    found = versions_here()
    assert {"minga", "Python"} <= found.keys()
    assert found["Python"].count(".") == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MPICH Version:      4.2.3\nMPICH Release date: ...", "MPICH 4.2.3"),
        ("Open MPI v5.0.6, package: Open MPI root@host", "Open MPI 5.0.6"),
        ("Intel(R) MPI Library 2021.14 for Linux* OS\n", "Intel MPI 2021.14"),
        ("", "unknown"),
    ],
)
def test_libraries_tell_who_they_are(text: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake:
        @staticmethod
        def Get_library_version() -> str:
            return text

    monkeypatch.setitem(sys.modules, "mpi4py.MPI", Fake)
    assert versions_here()["MPI"] == expected
