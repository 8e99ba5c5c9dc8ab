"""Running the system's administration tools, and turning their failures into errors with a remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from minga.errors import LaunchError

__all__ = ["check_tools", "collect", "detached", "lent", "output"]

_TOOLS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "taskset": "util-linux",
    "mount": "mount",
    "hostname": "hostname",
}
_PLACES = "/usr/local/sbin:/usr/sbin:/sbin"
_LIMIT = 60.0

_detached: list[subprocess.Popen[str]] = []

lent: list[int] = []
"""File descriptors that tools inherit, so that a lock is held until the last tool ends, even if this process dies."""


def check_tools() -> None:
    """Raise LaunchError unless all programs that create namespaces and links are installed."""
    if sys.platform != "linux":
        raise LaunchError(f"a lab needs Linux, and this is {sys.platform}", remedy="use it in a virtual machine")
    missing = [tool for tool in _TOOLS if shutil.which(tool, path=environment()["PATH"]) is None]
    if missing:
        packages = sorted({_TOOLS[tool] for tool in missing})
        raise LaunchError(
            f"a lab needs the program{'s' if len(missing) > 1 else ''} {', '.join(missing)}",
            remedy=f"install the package {' and '.join(packages)} (apt-get install {' '.join(packages)})",
        )


def environment() -> dict[str, str]:
    """Return the environment for these tools, with administrator directories, which not every PATH contains."""
    return {**os.environ, "PATH": f"{os.environ.get('PATH', '/usr/bin:/bin')}:{_PLACES}", "LC_ALL": "C"}


def output(command: Sequence[str], text: str = "") -> str:
    """Run a tool with ``text`` as its input and return its output; raise LaunchError if it fails.

    The tool runs in its own session, so Ctrl-C does not reach it.
    """
    try:
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT,
            check=False,
            env=environment(),
            start_new_session=True,
            pass_fds=lent,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchError(f"{' '.join(command)} could not be run: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip() or f"status {done.returncode}"
        raise LaunchError(f"{' '.join(command)} failed: {said}", remedy=_remedy(said))
    return done.stdout


def detached(command: Sequence[str], **streams: Any) -> subprocess.Popen[str]:
    """Start a program that outlives this process; while this process runs, :func:`collect` reaps the program."""
    child = subprocess.Popen(
        command, text=True, errors="replace", env=environment(), cwd="/", start_new_session=True, **streams
    )
    _detached.append(child)
    return child


def collect() -> None:
    """Reap detached programs that have ended, which would otherwise stay defunct while this process lives."""
    _detached[:] = [child for child in _detached if child.poll() is None]


def _remedy(said: str) -> str | None:
    low = said.lower()
    if "not permitted" in low or "permission denied" in low:
        return "run as root, or as a user who may make user namespaces; in a container, give it CAP_SYS_ADMIN"
    if "unknown device type" in low or "unknown qdisc" in low or "not supported" in low:
        return "this kernel lacks veth, bridge or tbf: load the modules veth, bridge and sch_tbf"
    return None
