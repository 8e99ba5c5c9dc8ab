"""Large inputs go to all hosts that lack them in one broadcast where that is faster, and to each apart otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from minga.cli import stage as staging
from minga.errors import LaunchError
from minga.launch.hosts import Host
from minga.output.directory import RunDirectory

BIG = 30_000_000


class Agent:
    """A host that has none of the files, and takes note of what it gets."""

    def __init__(self, name: str) -> None:
        self.host = Host(name)
        self.got: dict[str, Path | str] = {}
        self.rooms: list[str] = []

    def begin(self, name: str, rooms: Sequence[str] = ()) -> str:
        self.rooms = list(rooms)
        return f"/{self.host.name}/{name}"

    def fill(self, files: Mapping[str, Path | str]) -> None:
        self.got = dict(files)


class Agents:
    """The agents of some hosts, of which the last one has all large files."""

    shell = "ssh"

    def __init__(self, count: int) -> None:
        self.each = [Agent(f"h{number}") for number in range(count)]

    def ask_all(self, orders: Mapping[int, Mapping[str, Any]]) -> dict[int, Any]:
        last = len(self.each) - 1
        return {
            number: {"shares": False, "alike": [number == last] * len(order["files"]), "directory": False}
            for number, order in orders.items()
        }

    def at_once(self, numbers: Sequence[int], action: Callable[[int], Any]) -> dict[int, Any]:
        return {number: action(number) for number in numbers}


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    with (tmp_path / "start.npy").open("wb") as stream:
        stream.truncate(BIG)
    run.case.write_text(f'[automaton]\ninit = "{tmp_path}/start.npy"\n')
    return run


def staged(
    monkeypatch: pytest.MonkeyPatch, directory: RunDirectory, count: int, fault: str = ""
) -> tuple[Agents, list[Any], list[str]]:
    sent: list[Any] = []
    notes: list[str] = []

    def send(path: Path, places: Sequence[tuple[Host, str]], shell: str) -> None:
        if fault:
            raise LaunchError(fault)
        sent.append((path.name, [(host.name, place) for host, place in places], shell))

    monkeypatch.setattr(staging, "names", lambda group: ("broadcast",))
    monkeypatch.setattr(staging, "load", lambda group, name, what: send)
    monkeypatch.setattr(staging, "run_id", lambda directory: "name")
    agents = Agents(count)
    copies = staging.stage(agents, range(count), directory, notes.append)  # type: ignore[arg-type]
    assert copies[0].case == "/h0/name/case.toml"
    return agents, sent, notes


def test_many_hosts_get_a_large_file_in_one_broadcast(monkeypatch: pytest.MonkeyPatch, directory: RunDirectory) -> None:
    agents, sent, notes = staged(monkeypatch, directory, 13)
    places = [(f"h{number}", f"/h{number}/name/large/0/start.npy") for number in range(12)]
    assert sent == [("start.npy", places, "ssh")]
    assert notes == [f"minga: {directory.path.parent}/start.npy was sent to 12 hosts in one broadcast"]
    assert agents.each[0].rooms == ["large/0"]
    assert set(agents.each[0].got) == {"case.toml", "id"}
    assert "large/0/start.npy" in str(agents.each[0].got["case.toml"])
    assert "large/0" not in str(agents.each[12].got["case.toml"])


def test_few_hosts_get_it_one_by_one(monkeypatch: pytest.MonkeyPatch, directory: RunDirectory) -> None:
    agents, sent, notes = staged(monkeypatch, directory, 3)
    assert not sent
    assert not notes
    assert agents.each[1].got["large/0/start.npy"] == directory.path.parent / "start.npy"


def test_a_broadcast_that_fails_is_replaced(monkeypatch: pytest.MonkeyPatch, directory: RunDirectory) -> None:
    agents, _, notes = staged(monkeypatch, directory, 13, "no route")
    assert "goes to each host on its own, since a broadcast was not possible: no route" in notes[0]
    assert all("large/0/start.npy" in agent.got for agent in agents.each[:12])
    assert "large/0/start.npy" not in agents.each[12].got
