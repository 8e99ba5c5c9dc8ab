"""The command `minga measure`: machine files of this machine, of hosts, of a job; and what people are told."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from command_line import in_process
from minga.launch.hosts import Host, shell_launcher
from minga.network.measuring.cli.remote import measure_nodes
from minga.plan.machine import survey as surveying
from minga.plan.machine.machine import read_machine
from mpi_launch import run_ranks

NODE = """\
import json, sys
assert sys.argv[1:6] == ["-m", "minga.cli.main", "measure", "--json", "--no-network"], sys.argv
print("Welcome to this host.")
print(json.dumps({"format": "minga machine", "version": 1, "nodes": [{"cores": 2, "speed": 1e9}]}))
"""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes and arrays that take no time."""
    monkeypatch.setattr(surveying, "_sizes", lambda cores: [1 << 16, 1 << 17])
    monkeypatch.setattr(surveying, "_stream_cells", lambda threads: 1 << 16)


def script(file: Path, text: str) -> Path:
    file.write_text(text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


@pytest.mark.usefixtures("small")
def test_this_machine(in_tmp_path: Path) -> None:
    said = in_process("measure", "--no-network", "--seconds", "0.2", "--case", "heat", "--plot", "speeds.svg")
    assert said.status == 0, said.err
    assert "written to machine.json" in said.out
    assert "heat, a core" in said.out
    assert "memory bandwidth" in said.err
    machine = read_machine("machine.json")
    assert machine.rank_group(2, kernel="heat").ranks == 2
    assert {"time", "minga", "load", "seconds"} <= set(machine.measured)
    assert sorted(path.name for path in in_tmp_path.iterdir()) == ["machine.json", "speeds.svg"]


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_json_is_the_machine_and_nothing_else(in_tmp_path: Path) -> None:
    said = in_process("measure", "--no-network", "--seconds", "0.1", "--case", "life", "--json", "--name", "mine")
    assert said.status == 0, said.err
    assert json.loads(said.out)["name"] == "mine"
    assert list(in_tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.mpi
def test_messages_inside_this_machine(in_tmp_path: Path) -> None:
    said = in_process("measure", "--network", "--seconds", "1", "--json")
    assert said.status == 0, said.err
    section = json.loads(said.out)["measured"]["network"]
    assert {link["transport"] for link in section["links"]} == {"mpi"}
    parts = [float(line.split()[2]) for line in said.err.splitlines() if line.startswith("minga: network")]
    assert parts == sorted(parts)
    assert len(set(parts)) > 4, "ranks say how far they are"
    assert parts[-1] == 100.0


def test_an_interrupt_leaves_nothing(in_tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(surveying, "memory_bandwidth", interrupt)
    assert in_process("measure", "--no-network").status == 130
    assert list(in_tmp_path.iterdir()) == []


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--case", "laplac"), "did you mean 'laplace'"),
        (("--case", "heat", "--network"), "leave --network out to time both"),
        (("--seconds", "0"), "give some seconds"),
        (("--seconds", "nan"), "give some seconds"),
        (("-o", "nowhere/m.json"), "nowhere/m.json cannot be written"),
        (("--plot", "m.pdf"), "neither .svg nor .png"),
        (("--html", "nowhere/n.html"), "nowhere/n.html cannot be written"),
        (("--html", "n.html", "--no-network"), "a network that is not measured"),
        (("--hosts", "nowhere.txt"), "cannot be read"),
        (("--hosts", "one.txt"), "a network needs two"),
        (("--hosts", "one.txt", "--no-network"), "network between them"),
    ],
)
def test_mistakes_are_explained(words: tuple[str, ...], expected: str, in_tmp_path: Path) -> None:
    Path("one.txt").write_text("alpha\n")
    said = in_process("measure", *words)
    assert said.status == 2
    assert expected in said.err
    assert "Traceback" not in said.err
    assert [path.name for path in in_tmp_path.iterdir()] == ["one.txt"]


def test_hosts_measure_themselves(in_tmp_path: Path) -> None:
    python = script(in_tmp_path / "python", f"#!{sys.executable}\n{NODE}")
    shell = script(in_tmp_path / "shell", '#!/bin/sh\nshift\nexec sh -c "$*"\n')
    hosts = [Host("alpha", python=str(python)), Host("beta", python=str(python))]
    nodes = measure_nodes(hosts, shell_launcher(str(shell)), ("heat",), 1.0)
    assert nodes == [{"cores": 2, "speed": 1e9, "name": name, "hosts": [name]} for name in ("alpha", "beta")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#!/bin/sh\necho 'no route to host' >&2; exit 255\n", "status 255: no route to host"),
        (None, "could not be started to reach host alpha: No such file"),
    ],
)
def test_a_host_that_cannot_be_reached_is_named(text: str | None, expected: str, in_tmp_path: Path) -> None:
    Path("hosts.txt").write_text("alpha\nbeta\n")
    shell = in_tmp_path / "shell"
    if text is not None:
        script(shell, text)
    said = in_process("measure", "--hosts", "hosts.txt", "--shell", shell, "--seconds", "1")
    assert said.status == 1
    assert "host alpha" in said.err
    assert expected in said.err
    assert not Path("machine.json").exists()


@pytest.mark.slow
@pytest.mark.mpi
def test_a_job_measures_its_own_hosts(tmp_path: Path) -> None:
    words = ("measure", "--network", "--seconds", "0.8", "-o", tmp_path / "m.json")
    job = run_ranks(2, "minga.cli.main", *words, env={"MPIR_CVAR_NUM_CLIQUES": "2"}).check()
    assert "2 nodes" in job.out[0]
    assert job.out[1] == ""
    machine = read_machine(tmp_path / "m.json")
    assert "inter-node" in machine.links
    assert machine.measured["network"]["links"]
