"""Starting real MPI ranks on the nodes of a lab, over real TCP, with the launcher that belongs to the MPI library.

    with laboratory("three-ages") as cluster:
        done = cluster.run(["python", "program.py"], ranks=3, mpi="openmpi")

When namespaces of one machine act as nodes, three things go wrong silently, and this module prevents them: ranks
communicate through shared memory although a slow link lies between them (so the transport is set to TCP), all ranks
are bound to core 0, and each process becomes a world of one rank because launcher and library do not match.
"""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from minga.errors import CaseError, LaunchError, RunError
from minga.lab.config import Lab
from minga.lab.state import filing
from minga.launch.implementations import Implementation, find_implementation, outside_jobs
from minga.launch.jobs import end_jobs, start_job
from minga.launch.launch import ask_to_stop
from minga.launch.processes import kill, processes_marked
from minga.launch.signals import GRACE, STOP_SIGNAL, StopRequest, bytes_written, interruptible

__all__ = ["Started", "check_memory", "mpi_command", "mpi_environment", "run", "spread", "start"]

_MARK: Final = "MINGA_LAB_JOB"
_GLANCE: Final = 1.0

_REPORT: Final = 2.0
"""Seconds within which the processes of a failed job end by themselves, or one of them reports a lost node."""
_REMOTE: Final = """\
#!/bin/sh
# Launchers call this like ssh: [options] ADDRESS COMMAND...
while :; do case $1 in -[plioF]) shift 2 ;; -*) shift ;; *) break ;; esac; done
host=$1
shift
case $host in
{nodes}
*)
    echo "minga lab: no node has the address $host" >&2
    exit 255
    ;;
esac
status=$?
[ $status -eq 137 ] && [ ! -e {folder}/lost ] && echo "$node" > {folder}/lost
exit $status
"""

_RANK: Final = """\
#!/bin/sh
# Writes down where a rank was started and becomes its program.
read -r name < /proc/sys/kernel/hostname
rank=${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}
echo "$rank ${{PMI_SIZE:-$OMPI_COMM_WORLD_SIZE}} $$ $name" > {folder}/started.$rank
exec "$@"
"""


class Nodes(Protocol):
    """Part of a cluster that launching needs."""

    @property
    def lab(self) -> Lab: ...
    @property
    def addresses(self) -> tuple[str, ...]: ...
    @property
    def folder(self) -> Path: ...
    def fault(self) -> str | None: ...
    def killed_for_memory(self) -> dict[str, int]: ...
    def command(self, node: int | str, program: Sequence[str]) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Started:
    """A rank as the launcher started it."""

    rank: int
    size: int
    pid: int
    node: str


def spread(nodes: int, ranks: int | None = None, per_node: int | None = None) -> tuple[int, ...]:
    """Return the number of ranks for each node.

    Parameters
    ----------
    nodes
        Number of nodes.
    ranks
        Total number of ranks; by default one for each node, or ``per_node`` for each node. Without ``per_node`` they
        are distributed evenly, and the first nodes get one more if there is a remainder.
    per_node
        Largest number of ranks on a node; nodes are filled in order.

    Raises
    ------
    CaseError
        If a number is not positive, or ``ranks`` do not fit.
    """
    if ranks is not None and ranks < 1:
        raise CaseError(f"{ranks} ranks cannot be started", key="-n", remedy="ask for one rank or more")
    if per_node is not None:
        if per_node < 1:
            raise CaseError(
                f"{per_node} ranks a node cannot be started", key="--per-node", remedy="ask for one or more"
            )
        used = nodes if ranks is None else -(-ranks // per_node)
        if used > nodes:
            raise CaseError(
                f"{ranks} ranks with {per_node} on each of {nodes} nodes do not fit",
                key="-n",
                remedy=f"at most {nodes * per_node}, or more a node",
            )
        total = nodes * per_node if ranks is None else ranks
        return tuple(max(0, min(per_node, total - node * per_node)) for node in range(nodes))
    total = nodes if ranks is None else ranks
    return tuple(total // nodes + (node < total % nodes) for node in range(nodes))


def mpi_environment(mpi: Implementation) -> dict[str, str]:
    """Return variables that make an MPI use TCP between nodes, and make waiting ranks release their core.

    They also keep ranks from binding themselves to cores, because all nodes share the cores of one machine.
    """
    common = {"MINGA_PIN": "off", "MINGA_WAIT": os.environ.get("MINGA_WAIT", "patient"), "PYTHONUNBUFFERED": "1"}
    settings = {
        "mpich": {"MPICH_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "eth0"},
        "impi": {"I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "eth0", "I_MPI_PIN": "0"},
        "openmpi": {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_pml": "ob1",
            "OMPI_MCA_btl": "tcp,self,sm",
            "OMPI_MCA_btl_tcp_if_include": "eth0",
            "OMPI_MCA_mpi_yield_when_idle": "1",
        },
    }
    return common | settings[mpi.name] | mpi.environment


def mpi_command(
    cluster: Nodes, argv: Sequence[str], counts: Sequence[int], mpi: Implementation, folder: Path
) -> list[str]:
    """Return the command line that starts ``counts[node]`` ranks of a program on each node.

    The launcher runs on the first node that has ranks. The scripts that it needs are written into ``folder``.
    """
    remote, rank = _write_scripts(cluster, folder)
    used = [(cluster.addresses[node], count) for node, count in enumerate(counts) if count]
    ranks = ["-n", str(sum(counts))]
    hosts = ",".join(f"{host}:{count}" for host, count in used)
    program = [str(rank), *argv]
    launcher = str(mpi.launcher)
    if mpi.name == "mpich":
        words = [launcher, "-launcher", "ssh", "-launcher-exec", str(remote), "-iface", "eth0", "-hosts", hosts, *ranks]
    elif mpi.name == "impi":
        machines = folder / "machines"
        machines.write_text("".join(f"{host}:{count}\n" for host, count in used))
        words = [launcher, "-bootstrap", "ssh", "-bootstrap-exec", str(remote), "-iface", "eth0"]
        words += ["-machinefile", str(machines), *ranks]
    else:
        words = [launcher, "--prtemca", "plm_ssh_agent", str(remote), "--bind-to", "none", "--host", hosts, *ranks]
    first = next(node for node, count in enumerate(counts) if count)
    return cluster.command(first, [*words, *program])


def start(
    cluster: Nodes,
    argv: Sequence[str],
    counts: Sequence[int],
    mpi: Implementation,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    *,
    capture: bool = False,
) -> subprocess.Popen[str]:
    """Start the ranks and return at once. The caller must end the job with :func:`end`, whatever happens."""
    base = outside_jobs(os.environ) | mpi_environment(mpi) | {"TMPDIR": str(folder), _MARK: folder.name}
    base["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), base.get("PATH", os.defpath)])
    if not argv:
        raise CaseError("no program to run on the nodes was named", remedy="write it after --, as in -- minga run life")
    if shutil.which(argv[0], path=base["PATH"]) is None:
        raise CaseError(f"there is no program {argv[0]!r}", remedy="give its path, or a name that is on the PATH")
    for place in (folder, mpi.launcher):
        if len(str(place).split()) > 1:
            raise LaunchError(
                f"launchers of MPI take no path with a blank in it: {place}",
                remedy="set MINGA_LAB_STATE or --mpi-home to another place",
            )
    pipe = subprocess.PIPE if capture else None
    command = mpi_command(cluster, argv, counts, mpi, folder)
    return start_job(command, base | dict(environment or {}), stdout=pipe, stderr=pipe)


def run(
    cluster: Nodes,
    argv: Sequence[str],
    ranks: int | None = None,
    mpi: str | Implementation = "mpich",
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
    *,
    per_node: int | None = None,
    home: Path | None = None,
    capture: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a program on ranks on the nodes and wait until it ends. Nothing of the job is left running.

    The first Ctrl-C asks ``minga run`` to stop at the next step and ends other programs; the second one ends
    everything.

    Parameters
    ----------
    cluster
        The lab.
    argv
        The program and its arguments.
    ranks, per_node
        See :func:`spread`.
    mpi
        MPI implementation, or its name.
    environment
        Variables to add to the environment of this process.
    timeout
        Time limit in seconds.
    home
        Installation directory of the MPI implementation, if it is given by name.
    capture
        Return the output of the program; otherwise it is shown while the program runs.

    Raises
    ------
    CaseError
        If the numbers of ranks are invalid or the program does not exist.
    LaunchError
        If the ranks that started are not those that were requested.
    RunError
        If a node or the network was lost, a node ran out of memory, or the time limit was exceeded.
    """
    chosen = mpi if isinstance(mpi, Implementation) else find_implementation(mpi, home)
    counts = spread(len(cluster.lab.nodes), ranks, per_node)
    with contextlib.ExitStack() as stack:
        with filing():
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="minga-job-", dir=cluster.folder)))
        killed = cluster.killed_for_memory()
        job = start(cluster, argv, counts, chosen, folder, environment, capture=capture)
        try:
            with _asking_politely(job, folder, any(Path(word).name == "minga" for word in argv)):
                out, err = _outcome(cluster, job, timeout)
            if job.returncode != 0:
                _await_report(folder)
        except subprocess.TimeoutExpired as error:
            raise RunError(f"{shlex.join(argv)} did not end within {timeout:g} seconds and was ended") from error
        finally:
            end(job, folder)
        check_memory(cluster, killed, job.returncode)
        _check(cluster, counts, chosen, folder, job.returncode, err)
    return subprocess.CompletedProcess(list(argv), job.returncode, out, err)


def _outcome(cluster: Nodes, job: subprocess.Popen[str], timeout: float | None) -> tuple[str | None, str | None]:
    """Wait for a job and return its output; raise RunError if the lab breaks, as its ranks would then wait forever."""
    end = math.inf if timeout is None else time.monotonic() + timeout
    while True:
        try:
            return job.communicate(timeout=max(0.0, min(_GLANCE, end - time.monotonic())))
        except subprocess.TimeoutExpired as error:
            if fault := cluster.fault():
                raise RunError(f"the lab broke while it was used: {fault}") from error
            if time.monotonic() >= end:
                raise


def started(folder: Path) -> list[Started]:
    """Return the ranks that have been started, in order."""
    found = []
    for path in folder.glob("started.*"):
        words = path.read_text().split()
        if len(words) == 4:  # else it is being written
            found.append(Started(int(words[0]), int(words[1]), int(words[2]), words[3]))
    return sorted(found, key=lambda one: one.rank)


def end(job: subprocess.Popen[str], folder: Path) -> None:
    """Leave nothing of a job running, on any node."""
    end_jobs([job], also=lambda: left_over(folder))
    for stream in (job.stdout, job.stderr):
        if stream is not None:
            stream.close()


def _await_report(folder: Path) -> None:
    """Wait, not long, until a failed job's processes have ended, or one of them has written which node was lost.

    A launcher may see that a node is lost, and end, before the script that it called for this node.
    """
    lost, limit = folder / "lost", time.monotonic() + _REPORT
    while left_over(folder) and not (lost.exists() and lost.read_text()) and time.monotonic() < limit:
        time.sleep(0.01)


def left_over(folder: Path) -> list[int]:
    """Return the ids of a job's remaining processes, found by the mark in their environment."""
    return processes_marked(f"{_MARK}={folder.name}")


def _write_scripts(cluster: Nodes, folder: Path) -> tuple[Path, Path]:
    quoted = shlex.quote(str(folder))
    nodes = [
        f"{cluster.addresses[number]}) node={shlex.quote(node.name)}; "
        f'{shlex.join(cluster.command(number, ["/bin/sh", "-c"]))} "$*" ;;'
        for number, node in enumerate(cluster.lab.nodes)
    ]
    remote, rank = folder / "remote", folder / "rank"
    with filing():
        remote.write_text(_REMOTE.format(nodes="\n".join(nodes), folder=quoted))
        rank.write_text(_RANK.format(folder=quoted))
        for script in (remote, rank):
            script.chmod(0o755)
    return remote, rank


@contextlib.contextmanager
def _asking_politely(job: subprocess.Popen[str], folder: Path, listening: bool) -> Iterator[None]:
    """Turn the first Ctrl-C or termination signal into a stop request to ranks that listen; the next one interrupts.

    Ranks that do not respond in time are killed. Other programs are interrupted at once: the MPICH library handles the
    signal itself, so it would not end them.
    """
    if not listening or threading.current_thread() is not threading.main_thread():
        with interruptible():
            yield
        return

    def late() -> None:
        sys.stderr.write(f"minga lab: the ranks did not end their step within {GRACE:g} s and are ended\n")
        kill(left_over(folder))

    request = StopRequest(lambda: ask_to_stop([job]), late, lambda: bytes_written(left_over(folder)))
    with request.listening():
        yield
    if request.asked and job.returncode != 0:
        raise KeyboardInterrupt


def check_memory(cluster: Nodes, before: Mapping[str, int], status: int) -> None:
    """Raise RunError if a program failed because its node ran out of memory: the kernel kills it without a message.

    ``before`` contains the number of such kills on each node before the program was started.
    """
    if status == 0:
        return
    for node, count in cluster.killed_for_memory().items():
        if count > before.get(node, 0):
            size = next(known.memory for known in cluster.lab.nodes if known.name == node)
            raise RunError(
                f"node {node!r} ran out of memory: it has {(size or 0) / 1e6:.0f} MB, and a program there was ended",
                remedy=f"raise memory of {node!r} in the lab's file, or give it less work",
            )


def _check(
    cluster: Nodes, counts: Sequence[int], mpi: Implementation, folder: Path, status: int, err: str | None
) -> None:
    """Raise an error if a node was lost, or the ranks that the launcher started are not those requested."""
    _check_nodes(cluster, counts, folder, status)
    expected = [node.name for node, count in zip(cluster.lab.nodes, counts) for _ in range(count)]
    here = started(folder)
    found = [one.node for one in here]
    agree = found == expected and all(one.size == len(expected) for one in here)
    if (status == 0 and not agree) or not found:
        said = f"\n{err.strip()[-2000:]}" if err and err.strip() else ""
        raise LaunchError(
            f"{mpi.vendor} was told to start {len(expected)} ranks on {_places(expected)}, "
            f"and started {len(found)} on {_places(found)}{said}",
            remedy="`minga doctor` shows launcher and library",
        )


def _check_nodes(cluster: Nodes, counts: Sequence[int], folder: Path, status: int) -> None:
    """Raise RunError if the processes of a node were killed. The launcher itself runs on the first node with ranks."""
    lost, node, number = folder / "lost", "", 0
    if status != 0 and lost.exists():
        node, number = lost.read_text().strip(), int(signal.SIGKILL)
    elif status < 0 and -status not in (signal.SIGINT, signal.SIGTERM, STOP_SIGNAL):
        node, number = next(name.name for name, count in zip(cluster.lab.nodes, counts) if count), -status
    if node:
        raise RunError(
            f"node {node!r} was lost: what ran there was ended by signal {number}",
            remedy="look at what the ranks printed; `minga lab status` shows memory and processes of the nodes",
        )


def _places(nodes: Sequence[str]) -> str:
    """Return the names of the nodes, each with the number of its occurrences."""
    counts = {node: list(nodes).count(node) for node in nodes}
    return ", ".join(node if count == 1 else f"{node} ({count})" for node, count in counts.items()) or "no node"
