"""Products and runs over real ssh between nodes with the hosts file of Debian: the own name is 127.0.1.1 on all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga
from command_line import SMALL, in_process
from minga.lab.cluster import Cluster
from ssh_nodes import ssh_nodes

pytestmark = [pytest.mark.mpi, pytest.mark.slow]

ALIASES = """\
Host other
  HostName 10.77.0.2
"""


@dataclass(frozen=True)
class Nodes:
    """Two nodes, ant and bee, with an ssh server each."""

    cluster: Cluster
    folder: Path
    """Files of ssh, which both see."""
    own: list[str]
    """What puts a command on ant into a world with that hosts file."""

    @property
    def shell(self) -> str:
        return f"ssh -F {self.folder}/client"

    def minga(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run a command of minga on ant that reaches hosts by ssh."""
        return self.cluster.execute(0, self._words(words), timeout=100, capture_output=True, text=True)

    def start(self, *words: object) -> subprocess.Popen[bytes]:
        """Start such a command in a process group of its own."""
        command = self.cluster.command(0, self._words(words))
        return subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)

    def _words(self, words: Sequence[object]) -> list[str]:
        command = [sys.executable, "-m", "minga.cli.main", *map(str, words), "--shell", self.shell]
        return [*self.own, *command]

    def left_on_bee(self) -> str:
        """Return what runs have left on bee: copies, files in the directory of the case, and processes."""
        return self.on_bee(f"ls -A {self.scratch}; ls -A {self.folder}/work; {self.ranks_on_bee}")

    @property
    def scratch(self) -> Path:
        """The directory for copies."""
        return self.folder / "scratch"

    @property
    def ranks_on_bee(self) -> str:
        """A command that lists the ranks that read a copy."""
        return f"pgrep -f '[m]inga.cli.rank.*{self.scratch}'"

    def listed(self, text: str) -> None:
        """Write a hosts file."""
        lines = [f"{line} directory={self.scratch}\n" for line in text.splitlines()]
        (self.folder / "hosts").write_text("".join(lines))

    def on_bee(self, command: str) -> str:
        """Run a command on bee, and return what it printed."""
        words = [*self.own, *self.shell.split(), "bee", command]
        return str(self.cluster.execute(0, words, capture_output=True, text=True).stdout)


@pytest.fixture
def nodes(rights: dict[str, Any], tmp_path: Path) -> Iterator[Nodes]:
    """Both nodes; bee sees nothing of what ant sees in ``tmp_path / "work"``."""
    known = "127.0.1.1 ant\n10.77.0.2 bee\n10.77.0.99 gone\n"
    (tmp_path / "scratch").mkdir()
    with ssh_nodes(("ant", "bee"), tmp_path, rights, known, ALIASES) as (cluster, own):
        yield Nodes(cluster, tmp_path, own)


@pytest.fixture
def case(nodes: Nodes) -> Path:
    """A case in the directory that bee does not see, with a pattern in a file of its own."""
    folder = nodes.folder / "work"
    (folder / "glider.rle").write_text("x = 3, y = 3, rule = B3/S23\nbob$2bo$3o!\n")
    text = SMALL.replace("ranks = 1\n", "").replace("{soup = 0.3, seed = 1}", '{pattern = "glider.rle"}')
    (folder / "small.toml").write_text(text)
    return folder / "small.toml"


@pytest.mark.parametrize("listed", ["ant\nbee\n", "other slots=2\n"], ids=["names", "alias"])
def test_ranks_start_where_the_own_name_is_the_loopback(nodes: Nodes, tmp_path: Path, listed: str) -> None:
    a = np.random.default_rng(1).random((32, 32))
    np.save(tmp_path / "a.npy", a)
    (tmp_path / "hosts").write_text(listed)
    done = nodes.minga("matmul", *[tmp_path / "a.npy"] * 2, "-o", tmp_path / "c.npy", "--hosts", tmp_path / "hosts")
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "c.npy"), a @ a, rtol=1e-13)


@pytest.mark.parametrize(
    ("listed", "cells"),
    [
        ("ant\nbee slots=2\n", [True] * 3),
        ("other slots=2\n", [False, True, True]),
        ("bee weight=1\nant weight=3\n", [3, 1]),
    ],
    ids=["both", "other", "weights"],
)
def test_a_run_on_hosts_that_share_no_files(nodes: Nodes, case: Path, listed: str, cells: list[int]) -> None:
    alone = json.loads(in_process("run", case, "--out", case.parent / "alone", "--json").out)
    nodes.listed(listed)
    out = case.parent / "run"
    done = nodes.minga("run", case, "--out", out, "--hosts", nodes.folder / "hosts", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["digest"] == alone["digest"]
    ranks = json.loads((out / "ledger.json").read_text())["ranks"]
    assert [line["host"] for line in ranks] == ["ant", *["bee"] * (len(cells) - 1)]
    held = [line["cells"] for line in ranks]
    assert [bool(count) for count in held] == [bool(count) for count in cells]
    if cells == [3, 1]:
        assert held[0] > 2 * held[1]
    assert nodes.left_on_bee() == ""


def test_hosts_without_this_python_get_it(nodes: Nodes) -> None:
    python, hosts = nodes.folder / "work/own/bin/python", nodes.folder / "hosts"
    make = [sys.executable, "-m", "venv", "--without-pip", str(nodes.folder / "work/own")]
    subprocess.run(make, check=True)
    (packages,) = (nodes.folder / "work/own/lib").glob("python*/site-packages")
    places = [*(path for path in sys.path if "site-packages" in path), str(Path(minga.__file__).parents[1])]
    (packages / "others.pth").write_text("\n".join(places))
    hosts.write_text("ant\nbee\n")
    words = [str(python), "-m", "minga.cli.main", "install", "--hosts", str(hosts), "--shell", nodes.shell]
    for said in (f"bee  got {nodes.folder}/work/own in ", f"bee  has {python}"):
        done = nodes.cluster.execute(0, [*nodes.own, *words], timeout=100, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(said)
    assert nodes.on_bee(f"{python} -c 'import sys, minga; print(sys.prefix)'").strip() == f"{nodes.folder}/work/own"


def test_every_fault_of_hosts_is_named_at_once(nodes: Nodes, case: Path) -> None:
    (nodes.folder / "hosts").write_text(
        "ant\nbee python=/nowhere/python\ngone\nunknown\nother directory=/nowhere port=2222 user=root\n"
    )
    began = time.monotonic()
    done = nodes.minga("run", case, "--out", case.parent / "run", "--hosts", nodes.folder / "hosts")
    assert done.returncode == 1
    lines = {line.split()[0]: line for line in done.stderr.splitlines() if line.startswith("  ")}
    assert "/nowhere/python" in lines["bee"]
    assert "No route to host" in lines["gone"] or "did not answer" in lines["gone"]
    assert "unknown" in lines["unknown"]
    assert "/nowhere is no directory" in lines["other"]
    assert "4 of 5 hosts cannot take part" in done.stderr
    assert not (case.parent / "run").exists()
    assert time.monotonic() - began < 30


def test_a_run_is_resumed_on_other_hosts(nodes: Nodes, case: Path) -> None:
    out = case.parent / "run"
    whole = json.loads(in_process("run", case, "--out", case.parent / "alone", "--set", "run.steps=20", "--json").out)
    words = ["--out", out, "--set", "checkpoint.at_end=true"]
    nodes.listed("bee slots=1\n")
    done = nodes.minga("run", case, *words, "--hosts", nodes.folder / "hosts")
    assert done.returncode == 0, done.stderr
    nodes.listed("ant:1\nbee:1\n")
    again = ["--resume", out, "--set", "run.steps=20", "--hosts", nodes.folder / "hosts", "--json"]
    done = nodes.minga("run", *again)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["digest"], result["ranks"]) == (whole["digest"], 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_whatever_ends_a_run_leaves_nothing_on_hosts_but_its_checkpoint(nodes: Nodes, case: Path, number: int) -> None:
    out = case.parent / "run"
    nodes.listed("bee:1\n")
    words = ["run", case, "--out", out, "--hosts", nodes.folder / "hosts"]
    words += ["--set", "run.steps=1000000000", "--set", "output.every=1000000000", "--set", "checkpoint.every=1000"]
    job = nodes.start(*words)
    try:
        limit = time.monotonic() + 100
        while not heads(out) and time.monotonic() < limit:
            time.sleep(0.1)
        assert nodes.on_bee(nodes.ranks_on_bee)
        os.killpg(job.pid, number)
        assert job.wait(100) == (130 if number == signal.SIGINT else -number)
        while nodes.on_bee(nodes.ranks_on_bee) and time.monotonic() < limit:
            time.sleep(0.1)
        assert nodes.on_bee(nodes.ranks_on_bee) == ""
        if number == signal.SIGINT:
            assert state_of(out) == "stopped"
    finally:
        job.kill()
        job.wait()
    (kept,) = nodes.scratch.iterdir()
    assert kept.name == (out / "id").read_text().strip()
    found = heads(kept)
    assert found if number == signal.SIGKILL else found == heads(out)
    steps = max(found) + 5000
    done = nodes.minga("run", "--resume", out, "--set", f"run.steps={steps}", "--hosts", nodes.folder / "hosts")
    assert done.returncode == 0, done.stderr
    assert nodes.left_on_bee() == ""


def heads(run: Path) -> set[int]:
    """Return the steps of the checkpoints in a directory."""
    files = run.glob("checkpoints/*/checkpoint.json")
    return {json.loads(file.read_text())["checkpoint"]["step"] for file in files}


def state_of(run: Path) -> str:
    """Return what the progress of a run says."""
    try:
        return str(json.loads((run / "progress.json").read_text())["state"])
    except OSError:
        return ""
