"""Agents on hosts that are all this machine: a real measurement, and everything that can go wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from minga.errors import LaunchError, RunError
from minga.launch.hosts import Host, ssh
from minga.network.measuring.exchanges import Ends, both_sides, sample_message_sizes
from minga.network.measuring.host_team import HostTeam, agents
from minga.network.measuring.measure import measure_hosts

LOOPBACK = "127.0.0.1"
PAIR = [Host("one", address=LOOPBACK), Host("two", address=LOOPBACK)]
# An agent is the same program with something changed before it starts.
CHANGED = """
import runpy, sys, time
{}
runpy.run_module("minga.network.measuring.agent", run_name="__main__", alter_sys=True)
"""
JUMP = "real = time.time; calls = iter(range(99)); time.time = lambda: real() + 3600 * (next(calls) >= 2)"


def here(host: Host, command: Sequence[str]) -> list[str]:
    return list(command)


def changed(text: str, only: str = "two"):
    def launcher(host: Host, command: Sequence[str]) -> list[str]:
        return [sys.executable, "-c", CHANGED.format(text)] if host.name == only else list(command)

    return launcher


def nothing_left(team: HostTeam) -> None:
    assert all(member.process.popen.poll() is not None for member in team.members)


def test_ssh_never_asks_and_quotes_what_it_runs() -> None:
    command = ssh(Host("ana"), ["/a b/python", "-m", "x"])
    assert command[0] == "ssh"
    assert command[-2:] == ["ana", "'/a b/python' -m x"]
    assert "BatchMode=yes" in command


@pytest.mark.slow
def test_measuring_over_hosts() -> None:
    told: list[tuple[float, str]] = []
    found = measure_hosts(PAIR, here, 1.5, lambda part, what: told.append((part, what)), transports=("udp", "tcp"))
    assert json.loads(json.dumps(found)) == found
    assert [entry["transport"] for entry in found["links"]] == ["udp", "tcp"]
    for entry in found["links"]:
        assert entry["fit_median"]["zero"] > 0
        assert all(sample["us"] for sample in entry["samples"])
    assert found["pairs"]["medium"]["kind"] == "unknown"  # messages do not leave the machine
    assert found["crossed"]["enough"]
    assert found["overhead"][0]["points"][0]["send"] > 0
    parts = [part for part, _ in told]
    assert parts == sorted(parts)
    assert (parts[0], parts[-1]) == (0.0, 1.0)


@pytest.mark.slow
def test_both_sides_and_what_is_said_when_one_fails() -> None:
    with agents(PAIR, here) as team:
        points = both_sides(team, Ends(0, 1, LOOPBACK), "overhead", "tcp", sizes=[1, 1000])
        assert [point["bytes"] for point in points] == [1, 1000]
        assert "does not know" in team.run({0: {"do": "dance"}})[0]["failed"]
        with pytest.raises(RunError, match=r"two: .*does not know"):
            both_sides(team, Ends(0, 1, LOOPBACK), "dance", "tcp")
    nothing_left(team)


def test_a_host_that_cannot_be_reached() -> None:
    def launcher(host: Host, command: Sequence[str]) -> list[str]:
        refused = ["sh", "-c", "echo 'ssh: connect to host two port 22: Connection refused' >&2; exit 255"]
        return refused if host.name == "two" else list(command)

    with pytest.raises(LaunchError) as caught, agents(PAIR, launcher):
        pass
    assert "host two" in str(caught.value)
    assert "Connection refused" in str(caught.value)
    with pytest.raises(LaunchError, match="no-such-ssh"), agents(PAIR, lambda host, command: ["no-such-ssh"]):
        pass


@pytest.mark.slow
def test_a_host_that_is_silent() -> None:
    with pytest.raises(LaunchError, match="did not answer within"):  # noqa: SIM117
        with agents(PAIR, lambda host, command: ["sleep", "1000"], patience=0.2):
            pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("import importlib.metadata as m; m.version = lambda name: '9.9'", "host two has minga 9.9, but host one has"),
        pytest.param(
            "import platform; platform.python_version = lambda: '2.7.18'", "host two has Python 2.7",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "import minga.network.measuring.environment as e; e.mpi_library = lambda: 'LAM 7.1'",
            "host two has MPI LAM 7.1", marks=pytest.mark.slow,
        ),
        ("real = time.time; time.time = lambda: real() + 7200", "s ahead of this machine's"),
    ],
)  # fmt: skip
def test_hosts_that_differ(change: str, words: str) -> None:
    with pytest.raises(LaunchError) as caught, agents(PAIR, changed(change)):
        pass
    assert words in str(caught.value)
    assert "fix: " in str(caught.value)


@pytest.mark.slow
def test_a_clock_that_jumps_while_measuring() -> None:
    with (
        agents(PAIR, changed(JUMP)) as team,
        pytest.raises(RunError, match=r"clock of host two jumped by \+3600"),
    ):
        sample_message_sizes(team, Ends(1, 0, LOOPBACK), "tcp", [1, 1000], 0.1, 0)
    nothing_left(team)


@pytest.mark.slow
def test_an_agent_killed_in_the_middle() -> None:
    with agents(PAIR, here) as team:
        victim = team.members[1].process.popen.pid
        threading.Timer(0.3, os.kill, (victim, signal.SIGKILL)).start()
        with pytest.raises(RunError) as caught:  # long before it has measured all that is asked for
            sample_message_sizes(team, Ends(0, 1, LOOPBACK), "tcp", list(range(1, 4000)), 1000.0, 0)
    assert "host two" in str(caught.value) or "closed the connection" in str(caught.value)
    nothing_left(team)


@pytest.mark.slow
def test_agents_end_when_whoever_measures_is_killed(tmp_path: Path) -> None:
    program = f"""
import time
from minga.network.measuring.host_team import agents
from minga.launch.hosts import Host
with agents([Host("one"), Host("two")], lambda host, command: list(command)) as team:
    print(*(member.process.popen.pid for member in team.members), flush=True)
    team.run({{0: {{"do": "echo", "transport": "tcp", "token": "00", "address": "{LOOPBACK}"}}}})
    time.sleep(60)
"""
    whoever = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert whoever.stdout is not None
    pids = [int(word) for word in whoever.stdout.readline().split()]
    assert len(pids) == 2
    whoever.send_signal(signal.SIGKILL)
    whoever.wait(60)
    whoever.stdout.close()
    deadline = time.monotonic() + 60
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < deadline, "an agent outlived whoever started it"
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z" and os.path.exists(f"/proc/{pid}")
