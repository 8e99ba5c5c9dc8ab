"""Labs for users other than root: a process holds a user namespace, in which networks may be created."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from minga.errors import LaunchError
from minga.lab.commands import detached, output
from minga.launch.processes import Process, descendants, kill, process_here

__all__ = ["check_user_namespaces", "hold_namespaces"]

_NEW = ("unshare", "--user", "--map-root-user", "--net", "--mount", "--")

# The script waits for a line of input, so that its parent can first record which process to end. /run/netns must be
# private to the lab; if it does not exist, it can be created only in a separate file system mounted on /run.
_HOLD = """\
read -r go || exit 1
[ -d /run/netns ] || mount -t tmpfs minga /run || exit 1
mkdir -p /run/netns && mount -t tmpfs minga /run/netns && echo ready || exit 1
exec sleep infinity > /dev/null 2>&1 < /dev/null
"""


def check_user_namespaces() -> None:
    """Raise LaunchError unless this user may create user namespaces."""
    try:
        output([*_NEW, "mount", "-t", "tmpfs", "minga", "/run"])
    except LaunchError as error:
        raise LaunchError(
            "a lab without root needs user namespaces, which are not permitted here: " + error.message,
            remedy="run as root, or permit them: "
            + " or ".join(_settings() or ["sysctl user.max_user_namespaces=10000 (in a container, on its host)"]),
        ) from error


def hold_namespaces(note: Callable[[Process], None]) -> Process:
    """Start the process that holds the namespaces; ``note`` is called with it before it does anything."""
    pipe = subprocess.PIPE
    child = detached([*_NEW, "/bin/sh", "-c", _HOLD], stdin=pipe, stdout=pipe, stderr=pipe)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    with child.stdin, child.stdout, child.stderr:
        process = process_here(child.pid)
        if process is not None:
            note(process)
            with contextlib.suppress(BrokenPipeError):
                child.stdin.write("go\n")
                child.stdin.flush()
        if process is None or child.stdout.readline() != "ready\n":
            kill([child.pid, *descendants(child.pid)])
            said = child.stderr.read().strip()
            raise LaunchError(f"namespaces could not be created: {said or 'no reason was given'}")
    return process


def _settings() -> list[str]:
    """Return the sysctl commands that change the settings of this machine that forbid user namespaces."""
    wanted = {
        "kernel/unprivileged_userns_clone": "1",
        "kernel/apparmor_restrict_unprivileged_userns": "0",
    }
    found = []
    for name, value in wanted.items():
        with contextlib.suppress(OSError):
            if Path("/proc/sys", name).read_text().strip() != value:
                found.append(f"sysctl {name.replace('/', '.')}={value}")
    with contextlib.suppress(OSError, ValueError):
        if int(Path("/proc/sys/user/max_user_namespaces").read_text()) == 0:
            found.append("sysctl user.max_user_namespaces=10000")
    return found if os.geteuid() else []
