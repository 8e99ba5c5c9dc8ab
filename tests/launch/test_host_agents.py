"""Hosts of a run: what is checked before it, what they get, and that nothing stays there."""

from __future__ import annotations

import base64
import hashlib
import json
import platform
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from minga.errors import CaseError, LaunchError
from minga.launch import host_agent
from minga.launch.host_agent import digest_of
from minga.launch.host_agents import Fault, fault_table, host_agents
from minga.launch.hosts import Host, shell_launcher
from minga.launch.launcher import Launcher, library
from minga.launch.machine_id import machine_id
from minga.launch.on_hosts import Part, command_on_hosts
from minga.launch.ranks import MARK, Place, Ranks
from minga.launch.reach import agent, is_here
from minga.output.versions import versions_here

TALKING = """\
#!/bin/sh
case $1 in
gone) echo "ssh: connect to host gone port 22: No route to host" >&2; exit 255 ;;
silent) exec sleep 100 ;;
esac
cat {folder}/$1
read order && cat {folder}/$1.answer
read end
"""


def said_by(folder: Path, name: str, answer: dict[str, Any] | None = None, **facts: Any) -> str:
    """Write what a host says, and return a program that takes the place of ssh."""
    known = {"versions": versions_here(), "mpi_fault": None, "clock": time.time(), "cores": 2, "machine": name}
    known |= {"processor": "Some 3000", "architecture": platform.machine()}
    (folder / name).write_text(json.dumps({"greeting": "minga-host", **known, **facts}) + "\n")
    program = folder / "talk"
    answer = answer or {"missing": [], "back": None, "directory": None}
    (folder / f"{name}.answer").write_text(json.dumps({"answer": answer}) + "\n")
    program.write_text(TALKING.format(folder=folder))
    program.chmod(0o755)
    return str(program)


@pytest.fixture(autouse=True)
def loaded() -> None:
    """The MPI library, whose version hosts are compared by."""
    library()


def faults(shell: str, *hosts: str, launcher: Path = Path("/nowhere/mpiexec")) -> str:
    with pytest.raises(LaunchError) as caught, host_agents([Host(name) for name in hosts], shell) as agents:
        agents.check(Launcher(launcher, "MPICH"))
    return str(caught.value)


def test_all_faults_of_all_hosts_are_in_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minga.launch.host_agents._PATIENCE", 0.5)
    said_by(tmp_path, "old", versions={**versions_here(), "minga": "0.0.1"})
    said_by(tmp_path, "bare", mpi_fault="no MPI library was found")
    answer = {"missing": ["/opt/hydra_pmi_proxy"], "back": None, "directory": "is no directory"}
    shell = said_by(tmp_path, "poor", answer)
    text = faults(shell, "old", "bare", "poor", "gone", "silent")
    assert text.startswith("5 of 5 hosts cannot take part, so nothing was started")
    lines = {line.split()[0]: line for line in text.splitlines()[1:]}
    assert "has minga 0.0.1, this machine" in lines["old"]
    assert "no MPI library was found" in lines["bare"]
    assert "has no /opt/hydra_pmi_proxy" in text
    assert "No route to host" in lines["gone"]
    assert f"try `{shell} gone" in lines["gone"]
    assert "did not answer within 0.5 s" in lines["silent"]


def test_a_clock_that_is_off_is_noted_only(tmp_path: Path) -> None:
    shell = said_by(tmp_path, "late", clock=time.time() - 70)
    with host_agents([Host("late")], shell) as agents:
        (note,) = agents.check(Launcher(Path("/nowhere/mpiexec"), "MPICH"))
        assert not agents.each[0].here
    assert "the clock of late is 70 s behind this machine's" in note


def test_other_processors_are_noted_and_other_architectures_refused(tmp_path: Path) -> None:
    said_by(tmp_path, "ant")
    said_by(tmp_path, "bee")
    shell = said_by(tmp_path, "cat", processor="Other 5")
    with host_agents([Host(name) for name in ("ant", "cat", "bee")], shell) as agents:
        (note,) = agents.check(Launcher(Path("/nowhere/mpiexec"), "MPICH"))
    assert note.endswith("for the same bits: Some 3000 on ant, bee; Other 5 on cat")
    said_by(tmp_path, "dog", architecture="vax")
    assert f"has processors of the architecture vax, this machine of {platform.machine()}" in faults(
        shell, "ant", "dog"
    )


def test_a_table_of_faults() -> None:
    text = fault_table([Fault("pc10", "is down", "start it"), Fault("pc2", "is old", "renew it")], 3)
    assert text.splitlines()[1:] == ["  pc10  is down; start it", "  pc2   is old; renew it"]


def test_this_machine_is_known_by_its_names_and_addresses() -> None:
    assert is_here(Host("localhost"), "./here")
    assert is_here(Host("127.0.0.5"), "./here")
    assert not is_here(Host("192.0.2.1"), "./here")
    assert not is_here(Host("nowhere.invalid"), "./here")
    assert machine_id() == machine_id()


# The agent ------------------------------------------------------------------------------------------------------------
def sent(agent: host_agent._Agent, name: str, content: bytes) -> None:
    agent.carry_out({"do": "file", "name": name})
    for at in range(0, len(content), 3):
        agent.carry_out({"do": "bytes", "data": base64.b64encode(content[at : at + 3]).decode()})


def test_files_arrive_as_they_were_and_are_removed(tmp_path: Path) -> None:
    agent = host_agent._Agent()
    order = {"do": "begin", "directory": str(tmp_path), "name": "run-1", "rooms": ["large/0"]}
    folder = Path(agent.carry_out(order)["folder"])
    assert (folder / "large/0").is_dir()
    sent(agent, "inputs/a.bin", b"\x00\xffabc")
    digest = hashlib.sha256(b"\x00\xffabc").hexdigest()
    assert agent.carry_out({"do": "staged", "digests": {"inputs/a.bin": digest}}) == {"fault": None}
    assert (folder / "inputs/a.bin").read_bytes() == b"\x00\xffabc"
    sent(agent, "inputs/a.bin", b"\x00\xffab")
    fault = agent.carry_out({"do": "staged", "digests": {"inputs/a.bin": digest}})["fault"]
    assert fault == "inputs/a.bin did not arrive as it was sent"
    agent.carry_out({"do": "end"})
    before = signal.getsignal(signal.SIGTERM)
    agent.leave()
    assert signal.getsignal(signal.SIGTERM) is before
    assert list(tmp_path.iterdir()) == []


def test_a_host_without_room_says_so(tmp_path: Path) -> None:
    agent = host_agent._Agent()
    assert (
        "No such file"
        in agent.carry_out({"do": "begin", "directory": str(tmp_path / "none"), "name": "run-1"})["fault"]
    )
    folder = Path(agent.carry_out({"do": "begin", "directory": str(tmp_path), "name": "run-1"})["folder"])
    (folder / "a").write_text("")
    sent(agent, "a/b", b"abc")
    assert "a/b: " in agent.carry_out({"do": "staged", "digests": {"a/b": "0"}})["fault"]


def test_files_that_a_host_has_already(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("text")
    for name in ("same", "other"):
        (tmp_path / name).write_text(name)
    changed = (tmp_path / "same").stat().st_mtime_ns
    digest = digest_of(tmp_path / "same")

    def compared(text: str, *entry: Any) -> tuple[bool, list[bool]]:
        order = {"do": "compare", "token": str(tmp_path / "token"), "text": text, "directory": "/", "files": [entry]}
        found = host_agent._Agent().carry_out(order)
        return found["shares"], found["alike"]

    same, other = str(tmp_path / "same"), str(tmp_path / "other")
    assert compared("text", same, 4, changed, None) == (True, [True])
    assert compared("else", same, 4, changed, None) == (False, [False])
    assert compared("else", same, 4, 0, digest) == (False, [True])
    assert compared("text", other, 5, 0, digest) == (True, [False])
    assert compared("text", str(tmp_path / "none"), 4, changed, digest) == (True, [False])


def test_an_agent_finds_what_is_missing(tmp_path: Path) -> None:
    order = {"do": "check", "mark": "", "needs": ["/nowhere"], "back": ["127.0.0.1", 1], "token": "t"}
    found = host_agent._Agent().carry_out({**order, "directory": "/nowhere"})
    assert found == {"missing": ["/nowhere"], "back": "Connection refused", "directory": "is no directory"}


# Command lines --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("vendor", "words"),
    [
        ("MPICH", ["-launcher", "ssh", "-launcher-exec", "FOLDER/shell", "-hosts", "localhost:1,bee:2"]),
        ("Intel MPI", ["-bootstrap", "ssh", "-bootstrap-exec", "FOLDER/shell", "-machinefile", "FOLDER/machines"]),
        ("Open MPI", ["--prtemca", "plm_ssh_agent", "FOLDER/shell", "--bind-to", "none"]),
    ],
)
def test_each_launcher_starts_parts_on_hosts(
    vendor: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minga.launch.on_hosts.own_address", lambda hosts, shell: None)
    parts = [Part(Host("localhost"), ["a"], "/work"), Part(Host("bee", slots=2), ["b"])]
    command = command_on_hosts(Launcher(Path("mpiexec"), vendor), parts, "ssh", tmp_path, {"MINGA_X": "", "HOME": ""})
    start, rest = command[1 : len(words) + 1], command[len(words) + 1 :]
    assert start == [word.replace("FOLDER", str(tmp_path)) for word in words]
    if vendor == "Open MPI":
        first = ["-n", "1", "--host", "localhost:1", "-x", "MINGA_X", "--wdir", "/work", "a"]
        second = ["-n", "2", "--host", "bee:2", "-x", "MINGA_X", "--wdir", "/", "b"]
    else:
        first, second = ["-n", "1", "-wdir", "/work", "a"], ["-n", "2", "-wdir", "/", "b"]
    assert rest == [*first, ":", *second]


def test_users_and_ports_become_options_of_ssh(tmp_path: Path) -> None:
    host = Host("bee", user="me", port=2222)
    words = list(shell_launcher("ssh -F cfg")(host, ["true"]))
    assert words[-6:] == ["-l", "me", "-p", "2222", "bee", "true"]
    text = agent(tmp_path, "ssh -F cfg", [Host("ant"), host]).read_text()
    assert "  bee) exec ssh -F cfg" in text
    assert "-l me -p 2222" in text
    assert text.splitlines()[-1].startswith("exec ssh -F cfg")
    with pytest.raises(CaseError, match="are options of ssh, but --shell names"):
        agent(tmp_path, "./here", [host])


def test_the_order_of_a_host_has_its_own_paths() -> None:
    places = (Place(Host("localhost")), Place(Host("bee", python="/p"), {"target": "/tmp/x/case.toml"}, "/tmp/x"))
    ranks = Ranks(Launcher(Path("mpiexec"), "MPICH"), 2, places, "./here", mark="m")
    assert ranks.environment()[MARK] == "m"
    with ranks.command({"target": "case.toml", "run": "runs/x"}, {}) as command:
        orders = [json.loads(word) for word in command if word.startswith("{")]
        assert Path(command[command.index("-launcher-exec") + 1]).exists()
    assert [order["target"] for order in orders] == ["case.toml", "/tmp/x/case.toml"]
    assert [order["run"] for order in orders] == ["runs/x"] * 2
    assert command[command.index("/p") - 1] == "/tmp/x"
    assert not Path(command[command.index("-launcher-exec") + 1]).exists()
