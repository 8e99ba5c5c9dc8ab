"""Hosts files of minga, of MPI and of batch systems."""

from __future__ import annotations

from pathlib import Path

import pytest

from minga.errors import CaseError
from minga.launch.hosts import Host
from minga.launch.hosts_file import read_hosts


def read(folder: Path, text: str) -> list[Host]:
    file = folder / "hosts"
    file.write_text(text)
    return read_hosts(file)


def test_a_hosts_file(tmp_path: Path) -> None:
    text = "# the laboratory\nana slots=4  # new\n\nberta address=10.0.0.2 python=/opt/bin/python3\n"
    text += "carla user=me port=2222 directory=/scratch weight=1.5 cores=2\n"
    assert read(tmp_path, text) == [
        Host("ana", slots=4, line=2),
        Host("berta", address="10.0.0.2", python="/opt/bin/python3", line=4),
        Host("carla", user="me", port=2222, directory="/scratch", weight=1.5, cores=2, line=5),
    ]


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("ana:2\nberta:1\n", {"ana": 2, "berta": 1}),
        ("ana slots=2 max_slots=4\nberta\n", {"ana": 2, "berta": None}),
        ("ana\nana\nberta\ncarla\n", {"ana": 2, "berta": 1, "carla": 1}),
        ("ana:2\nana:3 python=/p\n", {"ana": 5}),
        ("node[1-2,07-08]:3\n", {"node1": 3, "node2": 3, "node07": 3, "node08": 3}),
    ],
    ids=["MPICH", "Open MPI", "PBS and OAR", "added", "Slurm"],
)
def test_node_files_of_others(tmp_path: Path, text: str, slots: dict[str, int | None]) -> None:
    file = tmp_path / "hosts"
    file.write_text(text)
    assert {host.name: host.slots for host in read_hosts(file, 1)} == slots


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a\nb slots=0\n", 2, "slots=0"),
        ("a\nb slots=x\n", 2, "slots=x"),
        ("a slot=2\nb\n", 1, "did you mean 'slots'"),
        ("a 4\nb\n", 1, "'4' is not understood"),
        ("a:2 slots=2\nb\n", 1, "two numbers of ranks"),
        ("a slots=2 slots=3\nb\n", 1, "slots is given twice"),
        ("a port=99999\nb\n", 1, "port=99999"),
        ("a weight=-1\nb\n", 1, "weight=-1"),
        ("a weight=nan\nb\n", 1, "weight=nan"),
        ("a directory=here\nb\n", 1, "no absolute path"),
        ("a user=-oProxyCommand=x\nb\n", 1, "begins with -"),
        ("a python=/p\nb\na python=/q\n", 3, "python=/p in line 1, and python=/q here"),
        ("slots=3\nb\n", 1, "no name of a host"),
        ("-oProxyCommand=x\nb\n", 1, "no name of a host"),
        ("n[1-\nb\n", 1, "is not a list of names"),
        ("# nobody\nonly\n", 0, "1 host; a network needs two"),
        ("", 0, "0 hosts"),
    ],
)
def test_mistakes_in_a_hosts_file(tmp_path: Path, text: str, line: int, words: str) -> None:
    with pytest.raises(CaseError) as caught:
        read(tmp_path, text)
    assert words in str(caught.value)
    assert f"hosts{f':{line}' if line else ''}" in str(caught.value)


def test_a_hosts_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="No such file"):
        read_hosts(tmp_path / "absent")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CaseError, match="not a text file"):
        read_hosts(tmp_path / "binary")
