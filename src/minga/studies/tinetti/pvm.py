"""PVM on the nodes of a lab, for comparison; requires Debian's packages ``pvm`` and ``libpvm3``.

Examples
--------
>>> with laboratory("cetad") as cluster, virtual_machine(cluster) as pvm:
...     seconds = pvm.pingpong([8, 1000, 60_000], route="daemon", encoding="xdr")
"""

from __future__ import annotations

import contextlib
import ctypes.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from minga.errors import CaseError, LaunchError, RunError, suggest
from minga.lab.cluster import Cluster
from minga.launch.processes import end, processes_marked
from minga.studies.tinetti import pvm_task
from minga.studies.tinetti.pvm_task import ENCODINGS, ROUTES

__all__ = ["ENCODINGS", "ROUTES", "Pvm", "check_pvm", "virtual_machine"]

_ROOT: Final = Path("/usr/lib/pvm3")
_DAEMON: Final = _ROOT / "lib" / "pvmd"
_PATIENCE: Final = 60.0
_WARM: Final = 2
_MARK: Final = "MINGA_PVM"
_TIMES: Final = ((1000, 50), (60_000, 12), (1_000_000, 4))
"""Largest size in bytes and its number of repetitions; longer messages are repeated twice."""

_REMOTE: Final = """\
#!/bin/sh
# PVM calls this like rsh: HOST [-l USER] [-n] COMMAND...
host=$1
shift
while :; do case $1 in -l) shift 2 ;; -n) shift ;; *) break ;; esac; done
case $host in
{nodes}
*) exit 255 ;;
esac
"""


def check_pvm() -> None:
    """Raise LaunchError if PVM is not installed."""
    if not _DAEMON.exists() or ctypes.util.find_library("pvm3") is None:
        raise LaunchError("PVM is not installed", remedy="on Debian: apt-get install pvm")


@dataclass(frozen=True, slots=True)
class Pvm:
    """A parallel virtual machine whose master is the first node of a lab."""

    cluster: Cluster
    folder: Path
    """Directory of the scripts that PVM starts."""

    def pingpong(
        self,
        sizes: Sequence[int],
        *,
        route: str = "direct",
        encoding: str = "xdr",
        node: int = 1,
        rounds: Mapping[int, int] | None = None,
        warm: int = 2,
        timeout: float = 600.0,
    ) -> dict[int, list[float]]:
        """Measure the one-way times in s between the first node and ``node``, by bytes.

        Parameters
        ----------
        sizes
            Sizes in bytes, rounded down to multiples of 8.
        route, encoding
            One of :data:`ROUTES` and of :data:`ENCODINGS`.
        node
            Number of the node that answers.
        rounds
            Repetitions by size.
        warm
            Number of initial small messages, from which the daemons learn how long to wait.
        timeout
            Time limit, s.
        """
        found = self._measure("pingpong", sizes, route, encoding, [node], rounds, timeout, warm=warm)
        return {int(size): times for size, times in found.items()}

    def broadcast(
        self,
        sizes: Sequence[int],
        receivers: Sequence[int],
        *,
        route: str = "direct",
        encoding: str = "inplace",
        rounds: Mapping[int, int] | None = None,
        timeout: float = 600.0,
    ) -> dict[int, dict[int, list[float]]]:
        """Measure ``pvm_mcast`` from the first node to the next ones until all answered, s, by receivers and bytes."""
        nodes = list(range(1, max(receivers) + 1))
        found = self._measure("broadcast", sizes, route, encoding, nodes, rounds, timeout, receivers=list(receivers))
        return {int(m): {int(size): times for size, times in row.items()} for m, row in found.items()}

    def _measure(
        self,
        task: str,
        sizes: Sequence[int],
        route: str,
        encoding: str,
        nodes: Sequence[int],
        rounds: Mapping[int, int] | None,
        timeout: float,
        **more: Any,
    ) -> dict[str, Any]:
        for word, known in ((route, ROUTES), (encoding, ENCODINGS)):
            if word not in known:
                raise CaseError(
                    f"PVM has no {word!r}", suggestion=suggest(word, known), remedy=f"choose among {', '.join(known)}"
                )
        order = {
            "task": task,
            "hosts": [self.cluster.names[node] for node in nodes],
            "route": route,
            "encoding": encoding,
            "sizes": list(sizes),
            "rounds": {size: (rounds or {}).get(size) or _usual_rounds(size) for size in sizes},
            "program": "child",
            "patience": _PATIENCE,
            "warm": _WARM,
            **more,
        }
        done = self._task("parent", json.dumps(order), timeout=timeout)
        if done.returncode != 0:
            said = (done.stderr.strip().splitlines() or ["without output"])[-1]
            raise RunError(f"PVM failed: {said}")
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return found

    def _task(self, *arguments: str, timeout: float) -> subprocess.CompletedProcess[str]:
        """Run a task on the first node."""
        command = self.cluster.command(
            0, [sys.executable, "-P", pvm_task.__file__, *arguments], _environment(self.folder, 0)
        )
        try:
            return subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise RunError(f"PVM did not end within {timeout:g} seconds and was ended") from error


@contextmanager
def virtual_machine(cluster: Cluster) -> Iterator[Pvm]:
    """Run PVM's daemons on all nodes of a lab; all are ended on exit.

    Raises
    ------
    LaunchError
        If PVM is not installed (:func:`check_pvm`) or its daemon does not start.
    """
    check_pvm()
    folder = cluster.folder / f"pvm-{os.getpid()}-{time.monotonic_ns()}"
    _write_scripts(cluster, folder)
    daemon = subprocess.Popen(
        cluster.command(0, [str(_DAEMON), f"-n{cluster.names[0]}", str(folder / "hosts")], _environment(folder, 0)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    pvm = Pvm(cluster, folder)
    try:
        time.sleep(0.2)
        if daemon.poll() not in (None, 0):
            assert daemon.stdout is not None
            raise LaunchError(f"PVM's daemon did not start: {daemon.stdout.read().strip()[-500:]}")
        yield pvm
    finally:
        with contextlib.suppress(RunError):
            pvm._task("halt", timeout=10.0)
        end(lambda: _left_over(folder))
        daemon.wait()
        if daemon.stdout is not None:
            daemon.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)


def _usual_rounds(size: int) -> int:
    return next((count for most, count in _TIMES if size <= most), 2)


def _environment(folder: Path, node: int) -> dict[str, str]:
    """Return the environment of PVM's programs.

    Nodes share files, so each has its own directory for the address of its daemon.
    """
    return {
        "PVM_ROOT": str(_ROOT),
        "PVM_ARCH": "LINUX64",
        "PVM_ALLOW_ROOT": "1",
        "PVM_RSH": str(folder / "remote"),
        "PVM_TMP": str(folder / f"tmp-{node}"),
        "HOME": str(folder),
        _MARK: folder.name,
    }


def _write_scripts(cluster: Cluster, folder: Path) -> None:
    """Write the script that PVM calls instead of rsh, the child program, and the file of hosts."""
    folder.mkdir()
    lines = []
    for number, name in enumerate(cluster.names):
        (folder / f"tmp-{number}").mkdir()
        command = shlex.join(cluster.command(number, ["/bin/sh", "-c"], _environment(folder, number)))
        lines.append(f'{name}) exec {command} "$*" ;;')
    child = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P {shlex.quote(pvm_task.__file__)} "$@"\n'
    hosts = [f"* dx={_DAEMON} ep={folder} wd={folder}", *cluster.names]
    texts = {"remote": _REMOTE.format(nodes="\n".join(lines)), "child": child, "hosts": "\n".join(hosts) + "\n"}
    for name, text in texts.items():
        (folder / name).write_text(text)
    for name in ("remote", "child"):
        (folder / name).chmod(0o755)


def _left_over(folder: Path) -> list[int]:
    """Return the remaining processes of a virtual machine, identified by the mark in their environment."""
    return processes_marked(f"{_MARK}={folder.name}")
