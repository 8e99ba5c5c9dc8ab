"""A real Slurm on the nodes of a lab: one slurmctld, a slurmd on each node, and munge."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import minga
from minga.lab.cluster import Cluster, laboratory
from minga.lab.config import Lab, LabNode

__all__ = ["Slurm", "slurm_nodes"]

_PROGRAMS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "munged": "munge"}
"""What has to be there, and the packages of Debian that bring it."""
_PATIENCE = 60.0
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))

_CONFIGURATION = """\
ClusterName=lab
SlurmctldHost={first}({address})
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=0
MpiDefault=none
ReturnToService=2
MailProg=/bin/true
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@dataclass(frozen=True)
class Slurm:
    """A Slurm whose commands are given on the first node."""

    cluster: Cluster
    folder: Path
    """Files of Slurm."""
    environment: Mapping[str, str]

    def call(self, *words: object, node: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command on a node."""
        command = self.cluster.command(node, list(map(str, words)), self.environment)
        return subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)

    def minga(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run a command of minga on the first node."""
        return self.call(sys.executable, "-m", "minga", *words)

    def told(self, *words: object) -> str:
        """Run a command that has to succeed, and return what it printed."""
        done = self.call(*words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def batch(self, text: str, *options: object) -> str:
        """Submit a script of this text, and return the number of the job."""
        script = self.folder / "script.sh"
        script.write_text(f"#!/bin/bash\n{text}")
        return self.told("sbatch", "--parsable", *options, script)

    def state(self, job: str) -> str:
        """Return the state of a job."""
        return self.entry(job, "JobState")

    def entry(self, job: str, name: str) -> str:
        """Return what Slurm says of a job under a name."""
        words = self.told("scontrol", "--oneliner", "show", "job", job).split()
        return next(word.partition("=")[2] for word in words if word.startswith(f"{name}="))

    def wait(self, job: str, *states: str, limit: float = 100.0) -> str:
        """Wait until a job is in one of the states, by default in one that is final, and return it."""
        wanted = states or ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        self.until(lambda: self.state(job) in wanted, limit, f"job {job} is not {' or '.join(wanted)}")
        return self.state(job)

    def until(self, condition: Callable[[], object], limit: float, fault: str) -> None:
        """Wait for a condition; fail with the end of the logs after ``limit`` seconds."""
        end = time.monotonic() + limit
        while not condition():
            assert time.monotonic() < end, f"{fault}\n{self.logs()}"
            time.sleep(0.2)

    def logs(self) -> str:
        """Return the ends of the logs of all daemons, and what the queue holds."""
        parts = [f"--- {file.name}\n{file.read_text()[-1500:]}" for file in sorted(self.folder.glob("*.log"))]
        return "\n".join([self.call("squeue", "--all").stdout, *parts])


@contextlib.contextmanager
def slurm_nodes(
    names: Sequence[str], folder: Path, rights: Mapping[str, Any], cpus: int = 1, more: str = ""
) -> Iterator[Slurm]:
    """Yield a Slurm on new nodes with ``cpus`` each, and remove it whatever happens; skip where it is not installed.

    ``more`` is added to its configuration. Slurm's files get into ``folder``, which must have a short path.
    """
    missing = {package for name, package in _PROGRAMS.items() if shutil.which(name, path=_PATH) is None}
    if missing:
        pytest.skip(f"needs Slurm: install the Debian packages {', '.join(sorted(missing))}")
    if os.geteuid() != 0:
        pytest.skip("starts Slurm: run the tests as root")
    lab = Lab("slurm", tuple(LabNode(name, 1.0, None, None) for name in names))
    with laboratory(lab, **{**rights, "quota": False}) as cluster, contextlib.ExitStack() as held:
        _configure(cluster, folder, cpus, more)
        environment = {
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": _PATH,
            "PYTHONPATH": os.pathsep.join((str(Path(minga.__file__).parents[1]), os.environ.get("PYTHONPATH", ""))),
        }
        slurm = Slurm(cluster, folder, environment)
        for node, program in _daemons(len(names), folder):
            held.enter_context(_running(cluster.command(node, program, environment)))
        slurm.until(lambda: _idle(slurm) == len(names), _PATIENCE, "not all nodes are ready")
        yield slurm


def _configure(cluster: Cluster, folder: Path, cpus: int, more: str) -> None:
    nodes = zip(cluster.names, cluster.addresses, strict=True)
    lines = [f"NodeName={name} NodeAddr={address} CPUs={cpus} State=UNKNOWN" for name, address in nodes]
    (folder / "state").mkdir()
    (folder / "slurm.conf").write_text(
        _CONFIGURATION.format(
            first=cluster.names[0], address=cluster.addresses[0], folder=folder, nodes="\n".join(lines)
        )
        + more
    )
    (folder / "cgroup.conf").write_text("CgroupAutomount=yes\n")
    key = folder / "munge.key"
    key.touch(0o600)
    key.write_bytes(os.urandom(1024))


def _daemons(nodes: int, folder: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the node and the command line of each daemon."""
    files = {"socket": "munge.socket", "key-file": "munge.key", "pid-file": "munge.pid", "seed-file": "munge.seed",
             "log-file": "munge.log"}  # fmt: skip
    yield 0, ["munged", "--foreground", "--force", *(f"--{option}={folder / name}" for option, name in files.items())]
    yield 0, ["slurmctld", "-D", "-i"]
    for node in range(nodes):
        yield node, ["slurmd", "-D"]


@contextlib.contextmanager
def _running(command: Sequence[str]) -> Iterator[None]:
    daemon = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        daemon.terminate()
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def _idle(slurm: Slurm) -> int:
    nodes = slurm.call("sinfo", "--noheader", "--Node", "--format=%T").stdout.split()
    return nodes.count("idle")
