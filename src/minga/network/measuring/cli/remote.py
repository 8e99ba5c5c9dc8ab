"""``minga measure`` on other hosts: all measure their own nodes at the same time and print the result."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from minga.errors import LaunchError, RunError
from minga.launch.hosts import Host, Launcher
from minga.launch.jobs import end_jobs, start_job
from minga.launch.signals import interruptible, uninterrupted

__all__ = ["measure_nodes"]

_PATIENCE = 120.0
"""Seconds that a host may take beyond its time limit: it also compiles kernels."""


def measure_nodes(
    hosts: Sequence[Host], launcher: Launcher, cases: Sequence[str], seconds: float
) -> list[dict[str, Any]]:
    """Return entries of `nodes` of a machine file, one per host, in the order of the hosts.

    Raises LaunchError or RunError, which name the host, if one cannot be reached or its measurement fails; all others
    are then ended.
    """
    started: list[subprocess.Popen[str]] = []
    with interruptible(), tempfile.TemporaryDirectory(prefix="minga-measure-") as folder:
        try:
            for number, host in enumerate(hosts):
                with uninterrupted():
                    started.append(_start(host, launcher, cases, seconds, Path(folder), number))
            deadline = time.monotonic() + 3 * seconds + _PATIENCE
            return [
                _node(host, process, deadline, Path(folder), number)
                for number, (host, process) in enumerate(zip(hosts, started, strict=True))
            ]
        finally:
            end_jobs(started)


def _start(
    host: Host, launcher: Launcher, cases: Sequence[str], seconds: float, folder: Path, number: int
) -> subprocess.Popen[str]:
    wanted = [word for case in cases for word in ("--case", case)]
    command = [
        host.python or sys.executable, "-m", "minga.cli.main", "measure", "--json", "--no-network",
        "--seconds", f"{seconds:g}", *wanted,
    ]  # fmt: skip
    with Path(folder, f"{number}.out").open("w") as out, Path(folder, f"{number}.err").open("w") as err:
        return start_job(
            list(launcher(host, command)), stdout=out, stderr=err,
            purpose=f"to reach host {host.name}", remedy="is ssh installed? --shell names another",
        )  # fmt: skip


def _node(host: Host, process: subprocess.Popen[str], deadline: float, folder: Path, number: int) -> dict[str, Any]:
    try:
        status = process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise RunError(f"host {host.name} did not finish measuring", remedy="measure again when it responds") from None
    said = [line for line in Path(folder, f"{number}.err").read_text(errors="replace").splitlines() if line.strip()]
    if status:
        assert isinstance(process.args, list)
        raise LaunchError(
            f"measuring on host {host.name} ended with status {status}: {said[-1].strip() if said else 'no message'}",
            remedy=f"see what this says: {shlex.join(process.args)}\npython=PATH in the hosts file names "
            "another Python, --case takes cases that are there",
        )
    try:
        # The login shell may print something first.
        text = Path(folder, f"{number}.out").read_text()
        (node,) = json.loads(text[text.index("{") :])["nodes"]
    except (ValueError, KeyError) as error:
        raise RunError(f"host {host.name} printed no machine: {error}") from None
    return {**node, "name": host.name, "hosts": [host.name]}
