"""Faults of hosts in a lab: each is noticed, and the run continues without the host to the same bits.

Nodes have an ssh server each and share no files. Their processes share this machine's cores, so seconds to the notice
are those of a busy machine.
"""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.reliability.nodes import ssh_nodes
from minga.lab.cluster import Cluster

__all__ = ["lost"]

NAMES: Final = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen")
FAULTS: Final = {
    "cut": "the cable of a node is cut",
    "frozen": "all processes of a node are stopped",
    "dead": "a node loses its cable and all processes of the run",
    "killed": "a rank is killed, as the kernel does where memory is out",
    "full": "the disk of a node has no room",
}
DISK: Final = "48m"
LIMIT: Final = 10.0
"""Seconds in which a fault has to be noticed."""
PATIENCE: Final = 200.0
CASE: Final = """\
model = "automaton"
[grid]
shape = {shape}
boundary = "periodic"
[automaton]
rule = "B3/S23"
storage = "bytes"
init = {{soup = 0.3, seed = 1}}
[run]
steps = {steps}
layout = "slabs"
on_loss = "continue"
[output]
every = {steps}
pictures = 0
report = false
[checkpoint]
every = {every}
"""
SMALL: Final = {"shape": "[40, 64]", "steps": 30000, "every": 500}
LARGE: Final = {"shape": "[1024, 2048]", "steps": 3000, "every": 500}
"""For disks that are full: the parts of each rank are larger than what is left free, 128 KiB."""


def lost(faults: int, folder: Path, seed: int = 1) -> dict[str, Any]:
    """Return what came of runs on 4 to 8 nodes, each with one fault.

    Parameters
    ----------
    faults
        Number of faults; the kinds take turns.
    folder
        An empty directory.
    seed
        Seed of the choice of nodes and moments.
    """
    chance = random.Random(seed)
    known = "".join(f"10.77.0.{number} {name}\n" for number, name in enumerate(NAMES, 1))
    tried: Counter[str] = Counter()
    nodes_of: Counter[int] = Counter()
    noticed: dict[str, list[float]] = {kind: [] for kind in FAULTS}
    problems: list[str] = []
    with ssh_nodes(NAMES, folder, {"rootless": False}, known, disk=DISK) as (cluster, own):
        bench = _Bench(cluster, folder, own)
        for name, numbers in (("small", SMALL), ("large", LARGE)):
            case = folder / "work" / f"{name}.toml"
            case.write_text(CASE.format(**numbers))
            bench.digests[case] = bench.alone(case)
        for number in range(faults):
            kind, size = list(FAULTS)[number % len(FAULTS)], chance.randint(4, len(NAMES))
            case = folder / "work" / ("large.toml" if kind == "full" else "small.toml")
            seconds, problem = bench.trial(case, kind, size, chance)
            tried[kind] += 1
            nodes_of[size] += 1
            if seconds is not None:
                noticed[kind].append(round(seconds, 3))
            if problem or seconds is None or seconds > LIMIT:
                problems.append(f"{number}, {kind} on {size} nodes: {problem or f'noticed after {seconds} s'}")
            print(f"{number + 1}/{faults} {kind} on {size}: {seconds} {problem}", file=sys.stderr, flush=True)
    return {
        "faults": tried.total(), "kinds": {kind: FAULTS[kind] for kind in tried}, "by_kind": dict(tried),
        "by_nodes": {str(size): count for size, count in sorted(nodes_of.items())}, "problems": problems,
        "seconds_to_notice": {
            kind: {"median": statistics.median(found), "largest": max(found)}
            for kind, found in noticed.items()
            if found
        },
    }  # fmt: skip


@dataclass
class _Bench:
    """The nodes, on the first of which runs are started."""

    cluster: Cluster
    folder: Path
    own: list[str]
    digests: dict[Path, str] = field(default_factory=dict)
    stopped: list[int] = field(default_factory=list)

    def alone(self, case: Path) -> str:
        """Return the digest of the run on one rank of this machine."""
        words = [
            sys.executable,
            "-m",
            "minga",
            "run",
            str(case),
            "--out",
            str(case.with_suffix("")),
            "-n",
            "1",
            "--json",
        ]
        return str(json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)["digest"])

    def trial(self, case: Path, kind: str, size: int, chance: random.Random) -> tuple[float | None, str]:
        """Do one run with one fault; return the seconds until it was noticed, and what was wrong, or nothing."""
        run = case.parent / f"run-{time.monotonic_ns()}"
        (self.folder / "hosts").write_text("".join(f"{name}:1 directory={run.parent}\n" for name in NAMES[:size]))
        words = [sys.executable, "-m", "minga", "run", str(case), "--out", str(run), "--json"]
        words += ["--hosts", str(self.folder / "hosts"), "--shell", f"ssh -F {self.folder}/client"]
        log = self.folder / "log"
        victim = chance.randrange(1, size)
        if kind == "full":
            self.on(victim, f"head -c 100M /dev/zero > {run.parent}/filling; truncate -s -128K {run.parent}/filling")
        with log.open("w") as said:
            job = subprocess.Popen(
                self.cluster.command(0, [*self.own, *words]), stdout=subprocess.PIPE, stderr=said, text=True,
                start_new_session=True,
            )  # fmt: skip
        begun = "progress.json" if kind == "full" else "checkpoints/*/checkpoint.json"
        try:
            if not _wait(lambda: any(run.glob(begun)) or job.poll() is not None):
                return None, "nothing begins"
            time.sleep(0.0 if kind == "full" else chance.uniform(0.0, 1.0))
            if job.poll() is not None:
                return None, f"the run was too short: {log.read_text()[-300:]}"
            began = time.monotonic()
            self.break_(kind, victim)
            told = "No space left" if kind == "full" else "was lost"
            seen = _wait(lambda: job.poll() is not None or told in log.read_text())
            seconds = time.monotonic() - began
            if not seen or told not in log.read_text():
                return None, "never noticed"
            out, _ = job.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return seconds, f"did not end: {log.read_text()[-300:]}"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
            job.wait()
            self.mend(victim, run.parent)
        if job.returncode:
            return seconds, f"ended with status {job.returncode}: {log.read_text()[-600:]}"
        found = json.loads(out)["digest"]
        return seconds, "" if found == self.digests[case] else f"digest {found}, expected {self.digests[case]}"

    def break_(self, kind: str, node: int) -> None:
        """Make a fault; a full disk is full from the beginning."""
        if kind in ("cut", "dead"):
            self.link(node, "down")
        if kind == "frozen":
            self.stopped = self.cluster.processes()[node]
        victims = {"frozen": self.stopped, "dead": self.of_run(node), "killed": self.of_run(node, ranks=True)[:1]}
        for pid in victims.get(kind, ()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP if kind == "frozen" else signal.SIGKILL)

    def mend(self, node: int, work: Path) -> None:
        """Put everything back, and end what is left on the nodes."""
        self.link(node, "up")
        for pid in self.stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.stopped = []
        self.on(node, f"rm -f {work}/filling")
        _wait(lambda: not any(self.of_run(each) for each in range(len(NAMES))), 30.0)
        for each in range(len(NAMES)):
            for pid in self.of_run(each):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if each:
                self.on(each, f"rm -rf {work}/*")

    def link(self, node: int, state: str) -> None:
        """Cut the cable of a node, or put it back."""
        self.cluster.execute(node, ["ip", "link", "set", "eth0", state], check=True)

    def on(self, node: int, command: str) -> None:
        """Run a command on a node, where its own disk is seen; nothing if it does not answer."""
        words = ["ssh", "-F", str(self.folder / "client"), "-o", "ConnectTimeout=5", f"10.77.0.{node + 1}", command]
        self.cluster.execute(0, [*self.own, *words], capture_output=True, timeout=60)

    def of_run(self, node: int, ranks: bool = False) -> list[int]:
        """Return the processes of minga on a node, or its ranks only."""
        found = []
        for pid in self.cluster.processes()[node]:
            with suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes()
                if (b"minga.cli.rank" in words) if ranks else (b"minga" in words and b"sshd" not in words):
                    found.append(pid)
        return found


def _wait(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True
