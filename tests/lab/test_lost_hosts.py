"""Runs on hosts that share no files, of which one is cut off, frozen or killed: it is named, and the run continues."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from command_line import SMALL, in_process
from minga.lab.cluster import Cluster, laboratory
from minga.lab.config import Lab, LabNode
from minga.lab.launch import end, start
from minga.launch.implementations import find_implementation
from ssh_nodes import ssh_nodes

pytestmark = [pytest.mark.mpi, pytest.mark.slow]

NAMES = ("ant", "bee", "cat")


@dataclass(frozen=True)
class Nodes:
    """Three nodes with an ssh server each; runs begin on the first one."""

    cluster: Cluster
    folder: Path
    own: list[str]

    def start(self, *words: object) -> subprocess.Popen[str]:
        """Start ``minga run`` on the first node."""
        command = [sys.executable, "-m", "minga", "run", *map(str, words), "--hosts", str(self.folder / "hosts")]
        command = self.cluster.command(0, [*self.own, *command, "--shell", f"ssh -F {self.folder}/client"])
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def link(self, node: int, state: str) -> None:
        """Cut the cable of a node, or put it back."""
        self.cluster.execute(node, ["ip", "link", "set", "eth0", state], check=True)

    def ranks(self, node: int) -> list[int]:
        """Return the processes of ranks on a node."""
        found = []
        for pid in self.cluster.processes()[node]:
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if "minga.cli.rank" in words[:4]:
                found.append(pid)
        return found


@pytest.fixture
def nodes(rights: dict[str, Any], tmp_path: Path) -> Iterator[Nodes]:
    known = "".join(f"10.77.0.{number} {name}\n" for number, name in enumerate(NAMES, 1))
    (tmp_path / "hosts").write_text("ant:1\nbee:1\ncat:1\n")
    with ssh_nodes(NAMES, tmp_path, rights, known) as (cluster, own):
        yield Nodes(cluster, tmp_path, own)


@pytest.fixture
def case(nodes: Nodes) -> Path:
    path = nodes.folder / "work" / "small.toml"
    path.write_text(SMALL.replace("ranks = 1\n", 'layout = "slabs"\nhalo_depth = 1\n'))
    return path


def wait_for(condition: Callable[[], object], seconds: float = 100.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def progress(run: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((run / "progress.json").read_text())
    except OSError:
        return {"state": "", "step": 0}
    return found


def long(case: Path, run: Path, *more: object) -> list[object]:
    """Arguments of a run that takes long, with checkpoints."""
    words = [case, "--out", run, "--set", "run.steps=30000", "--set", "output.every=30000", "--json"]
    return [*words, "--set", "checkpoint.every=1000", *more]


def kept(run: Path) -> bool:
    return any(run.glob("checkpoints/*/checkpoint.json"))


@pytest.mark.parametrize("fault", ["cut", "frozen", "killed"])
def test_a_lost_host_is_named_and_the_run_continues(nodes: Nodes, case: Path, fault: str) -> None:
    run = case.parent / "run"
    alone = in_process("run", *long(case, case.parent / "alone"), "-n", 1)
    job = nodes.start(*long(case, run, "--set", 'run.on_loss="continue"'))
    victims: list[int] = []
    try:
        wait_for(lambda: kept(run) or job.poll() is not None)
        victims = nodes.cluster.processes()[2] if fault == "frozen" else nodes.ranks(2)
        if fault == "cut":
            nodes.link(2, "down")
        for pid in victims if fault != "cut" else ():
            os.kill(pid, signal.SIGSTOP if fault == "frozen" else signal.SIGKILL)
        began = time.monotonic()
        wait_for(lambda: progress(run)["state"] == "waiting" or job.poll() is not None)
        noticed = time.monotonic() - began
        if fault == "cut":
            wait_for(lambda: not nodes.ranks(2), 15)  # it has ended them itself
        out, err = job.communicate(timeout=100)
    finally:
        job.kill()
        job.wait()
        for pid in victims:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue
    assert job.returncode == 0, err
    assert noticed < 12
    result = json.loads(out)
    assert result["digest"] == json.loads(alone.out)["digest"]
    assert "cat" in next(line for line in err.splitlines() if "was lost" in line)


def test_a_short_cut_heals(nodes: Nodes, case: Path) -> None:
    run = case.parent / "run"
    alone = in_process("run", *long(case, case.parent / "alone"), "-n", 1)
    job = nodes.start(*long(case, run))
    try:
        wait_for(lambda: kept(run) or job.poll() is not None)
        nodes.link(2, "down")
        time.sleep(6)
        nodes.link(2, "up")
        out, err = job.communicate(timeout=100)
    finally:
        job.kill()
        job.wait()
    assert job.returncode == 0, err
    assert json.loads(out)["digest"] == json.loads(alone.out)["digest"]


@pytest.mark.parametrize("node", [2, 0])
def test_a_job_of_a_persons_own_ends_when_a_cable_is_cut(rights: dict[str, Any], tmp_path: Path, node: int) -> None:
    """Wherever the cable is, no rank is left, on either side of it, and the run can be resumed."""
    case, run = tmp_path / "small.toml", tmp_path / "run"
    case.write_text(SMALL.replace("ranks = 1\n", 'layout = "slabs"\n'))
    words = ["minga", "run", *map(str, long(case, run)), "--set", "run.steps=100000000"]
    three = tuple(LabNode(name, 1.0, None, None) for name in NAMES)
    with (
        laboratory(Lab("waiting", three), **rights | {"quota": False}) as lab,
        tempfile.TemporaryDirectory(dir=lab.folder) as name,
    ):
        job = start(lab, words, (1, 1, 1), find_implementation(), Path(name))
        try:
            wait_for(lambda: kept(run) or job.poll() is not None)
            time.sleep(1)
            lab.execute(node, ["ip", "link", "set", "eth0", "down"], check=True)
            began = time.monotonic()
            wait_for(lambda: progress(run)["state"] == "lost", 20)
            assert time.monotonic() - began < 11
            wait_for(lambda: not any(lab.processes().values()), 10)
        finally:
            end(job, Path(name))
    steps = json.loads((run / "checkpoints/a/checkpoint.json").read_text())["checkpoint"]["step"] + 3000
    said = in_process("run", "--resume", run, "-n", 1, "--set", f"run.steps={steps}", "--json")
    assert said.status == 0, said
