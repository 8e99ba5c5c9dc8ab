"""Runs on hosts that share no files, of which one is cut off, frozen or killed: it is named, and the run continues."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
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

    def start(self, *words: object, program: Sequence[str] = ("-m", "minga")) -> subprocess.Popen[str]:
        """Start ``minga run`` on the first node."""
        command = [sys.executable, *program, "run", *map(str, words), "--hosts", str(self.folder / "hosts")]
        command = self.cluster.command(0, [*self.own, *command, "--shell", f"ssh -F {self.folder}/client"])
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def on(self, node: int, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command on a node as ssh does, asked by the last node."""
        words = ["ssh", "-F", str(self.folder / "client"), f"10.77.0.{node + 1}", command]
        return self.cluster.execute(2, words, capture_output=True, text=True, timeout=100)

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
    own = tmp_path / "work"  # which is another directory on each node
    (tmp_path / "hosts").write_text("".join(f"{name}:1 directory={own}\n" for name in NAMES))
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


def test_a_host_that_returns_is_taken_up_again(nodes: Nodes, case: Path) -> None:
    """A restart is said to take a second, so that it pays; the run is stopped at a checkpoint, and started on all.

    The rest is done on one rank, which needs no messages.
    """
    soon = "import minga.launch.watchdog.comeback as c; c.PAUSE = 2.0; c.RESTART_SECONDS = 1.0"
    program = ["-c", f"{soon}; from minga.cli.main import main; main()"]
    run = case.parent / "run"
    steps = ["--set", "run.steps=8000000", "--set", "output.every=8000000", "--set", "checkpoint.every=50000", "--json"]
    alone = in_process("run", case, "--out", case.parent / "alone", *steps, "-n", 1)
    job = nodes.start(case, "--out", run, *steps, "--set", 'run.on_loss="continue"', program=program)
    try:
        wait_for(lambda: kept(run) or job.poll() is not None)
        nodes.link(2, "down")
        wait_for(lambda: progress(run)["state"] == "waiting" or job.poll() is not None)
        wait_for(lambda: (progress(run)["state"], progress(run)["ranks"]) == ("running", 2) or job.poll() is not None)
        nodes.link(2, "up")
        wait_for(lambda: (progress(run)["state"], progress(run)["ranks"]) == ("running", 3) or job.poll() is not None)
        assert progress(run)["ranks"] == 3
        os.killpg(job.pid, signal.SIGINT)
        _, err = job.communicate(timeout=100)
    finally:
        job.kill()
        job.wait()
    assert "minga: the run continues with host cat" in err
    rest = in_process("run", "--resume", run, "-n", 1, "--json")
    assert json.loads(rest.out)["digest"] == json.loads(alone.out)["digest"]
    sessions = [session["ranks"] for session in json.loads((run / "ledger.json").read_text())["sessions"]]
    assert (sessions[:2], sessions[-1]) == ([3, 2], 1)  # the third start may be too short for a step


SLOWLY = """
import pathlib, time
import minga as mg

run = {"steps": 30000, "halo_depth": 1, "on_loss": "continue"}
output = {"every": 30000, "pictures": 0}
checkpoint = {"every": 1000}


@mg.kernel
def relax(u, new):
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]) + 1e-3 * mg.index(0, "f8")


def model(shape=(480, 640)):
    grid = mg.Grid(shape)
    u = mg.Field("u", grid, slots=2, boundary=mg.fixed(0.0))
    step = mg.Program("step")
    step.apply(relax, u, u.next)

    def work(engine):
        cells = sum(box.size for box, _ in engine.blocks(u))
        pace = 100.0 if pathlib.Path("/tmp/minga-slow", "here").exists() else 1.0
        if engine.comm.size > 1:
            time.sleep(pace * (2e-4 + 3e-3 * cells / grid.size))

    step.call(work, reads=[u])
    step.rotate(u)
    return mg.Model("slowly", grid, (u,), step, initial={u: 1.0}, output=("u",))
"""
"""A case whose ranks sleep a while and for each of their cells, on a host that has a file 100 times as long."""


def test_a_host_that_crawls_is_dropped_and_the_run_continues_without_it(nodes: Nodes) -> None:
    run, work = nodes.folder / "work" / "run", nodes.folder / "work"
    case, mark = work / "slowly.py", work / "slow"
    case.write_text(SLOWLY.replace("/tmp/minga-slow", str(mark)))
    alone = in_process("run", case, "--out", work / "alone", "-n", 1, "--json")
    job = nodes.start(case, "--out", run, "--json")
    try:
        wait_for(lambda: kept(run) or job.poll() is not None)
        assert nodes.on(2, f"mkdir {mark} && touch {mark}/here").returncode == 0
        wait_for(lambda: "without host cat" in happened_in(run) or job.poll() is not None, 200)
        out, err = job.communicate(timeout=300)
    finally:
        job.kill()
        job.wait()
    assert job.returncode == 0, err
    assert json.loads(out)["digest"] == json.loads(alone.out)["digest"]
    assert "the run continues without host cat" in err, (err, happened_in(run), (run / "ledger.json").read_text())
    said = next(line for line in err.splitlines() if "the run continues without host cat" in line)
    assert "times slower than expected: a step takes" in said
    assert [session["ranks"] for session in json.loads((run / "ledger.json").read_text())["sessions"]] == [3, 2]
    assert "the run continues without host cat" in (run / "report.html").read_text()


def happened_in(run: Path) -> str:
    try:
        return (run / "happened.jsonl").read_text()
    except OSError:
        return ""


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


def test_a_run_goes_on_elsewhere_when_the_host_that_started_it_is_lost(nodes: Nodes, case: Path) -> None:
    """With the copies of its parts on the hosts that are left, to the same bits; the frames were on the lost host."""
    run, work = case.parent / "run", case.parent
    alone = in_process("run", *long(case, work / "alone"), "-n", 1)
    job = nodes.start(*long(case, run))
    try:
        wait_for(lambda: kept(run) or job.poll() is not None)
        assert job.poll() is None
        nodes.link(0, "down")
        for pid in (job.pid, *nodes.ranks(0)):
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not nodes.ranks(1) and not nodes.ranks(2), 20)
    finally:
        job.kill()
        job.communicate()
    name = nodes.on(1, f"ls {work}").stdout.strip()
    assert name.startswith("run-")
    hosts = f"bee:1 directory={work}\\ncat:1 directory={work}\\n"
    again = f"{sys.executable} -m minga run --resume {work}/{name} --hosts {work}/hosts --json"
    done = nodes.on(1, f"printf '{hosts}' > {work}/hosts && {again} --shell 'ssh -F {nodes.folder}/client'")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["digest"] == json.loads(alone.out)["digest"]
    assert int(done.stderr.split("resuming after step ")[1].split()[0]) >= 1000
    assert "with it the frames up to step" in done.stderr
    assert nodes.on(2, f"ls {work}").stdout == ""
    assert "result.json" in nodes.on(1, f"ls {work}/{name}").stdout


def test_a_disk_that_is_lost_and_two_that_are_too_many(nodes: Nodes, case: Path) -> None:
    run, work = case.parent / "run", case.parent
    alone = in_process("run", *long(case, work / "alone"), "-n", 1)
    job = nodes.start(*long(case, run))
    try:
        wait_for(lambda: kept(run) or job.poll() is not None)
        os.killpg(job.pid, signal.SIGINT)
        job.communicate(timeout=100)
    finally:
        job.kill()
        job.wait()
    assert job.returncode == 130
    name = (run / "id").read_text().strip()
    shutil.rmtree(run / "checkpoints")
    nodes.on(1, f"mv {work}/{name} {work}/away")
    again = nodes.start("--resume", run, "--json")
    _, err = again.communicate(timeout=100)
    assert again.returncode == 1
    assert "lacks the parts of rank 0 (kept on ant and bee)" in err
    assert nodes.on(1, f"rm -rf {work}/{name} && mv {work}/away {work}/{name}").returncode == 0
    again = nodes.start("--resume", run, "--json")
    out, err = again.communicate(timeout=100)
    assert again.returncode == 0, err
    assert json.loads(out)["digest"] == json.loads(alone.out)["digest"]
    assert json.loads((run / "ledger.json").read_text())["sessions"][-1]["first"] >= 1000
    assert ", from what other hosts have kept" in err
    assert all(nodes.on(node, f"ls {work}").stdout == "" for node in (1, 2))


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


def test_a_large_input_is_broadcast_to_hosts_that_lack_it(nodes: Nodes) -> None:
    work = nodes.folder / "work"
    np.save(work / "start.npy", (np.random.default_rng(3).random((40, 64)) < 0.3).astype("u1"))
    text = SMALL.replace("ranks = 1\n", 'layout = "slabs"\n').replace("{soup = 0.3, seed = 1}", '"start.npy"')
    (work / "case.toml").write_text(text)
    alone = in_process("run", work / "case.toml", "--out", work / "alone", "-n", 1, "--json")
    always = "import minga.cli.inputs as i, minga.cli.stage as s; i._LARGEST = 1; s._BROADCAST_START = -1e9"
    program = ["-c", f"{always}; from minga.cli.main import main; main()"]
    job = nodes.start(work / "case.toml", "--out", work / "run", "--json", program=program)
    out, err = job.communicate(timeout=200)
    assert job.returncode == 0, err
    assert json.loads(out)["digest"] == json.loads(alone.out)["digest"]
    assert "start.npy was sent to 2 hosts in one broadcast" in err


def test_the_benchmark_of_mpi_libraries_runs_on_hosts(nodes: Nodes, case: Path) -> None:
    words = ["bench", "mpi", str(case), "--hosts", str(nodes.folder / "hosts"), "--mpi", "mpich", "--seconds", "0.3"]
    command = [*nodes.own, sys.executable, "-m", "minga", *words, "--shell", f"ssh -F {nodes.folder}/client", "--json"]
    done = nodes.cluster.execute(0, command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["ranks"] == 3
    assert found["hosts"] == str(nodes.folder / "hosts")
    assert found["libraries"]["mpich"]
