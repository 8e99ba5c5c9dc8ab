"""Copies of this Python environment for hosts that have none: under the same paths, which its scripts hold.

A stream of tar goes to each host, all at the same time. Folders that a host has are left alone; a copy that breaks off
is removed there.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minga.errors import LaunchError
from minga.launch.host_agents import Fault, fault_table
from minga.launch.hosts import Host, Launcher

__all__ = ["Environment", "install"]

_SYSTEM: Final = (Path("/"), Path("/usr"), Path("/usr/local"))
"""Places of a Python that belongs to the system of a host, and is not copied."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A Python, and the folders in which it and its packages lie, which do not contain one another."""

    python: Path
    folders: tuple[Path, ...]

    @classmethod
    def here(cls) -> Environment:
        """Return the environment of this process; sources of minga that lie elsewhere belong to it."""
        found = [Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[1]]
        own = [folder for folder in dict.fromkeys(found) if folder not in _SYSTEM]
        apart = [folder for folder in own if not any(folder != other and folder.is_relative_to(other) for other in own)]
        return cls(Path(sys.executable), tuple(apart))


def install(hosts: Sequence[Host], reach: Launcher, environment: Environment, tell: Callable[[str], object]) -> None:
    """Copy an environment to hosts that do not have it.

    Parameters
    ----------
    hosts
        The hosts; one with a Python of its own is left alone.
    reach
        Returns the command that runs a command on a host.
    environment
        The environment.
    tell
        Called with a line about each host.

    Raises
    ------
    LaunchError
        If a host cannot get it; the message is a table of all faults.
    """
    with ThreadPoolExecutor(max(1, len(hosts))) as pool:
        found = list(pool.map(lambda host: _installed(host, reach, environment), hosts))
    for host, answer in zip(hosts, found, strict=True):
        if not isinstance(answer, Fault):
            tell(f"{host.name}  {answer}")
    if faults := [answer for answer in found if isinstance(answer, Fault)]:
        raise LaunchError(fault_table(faults, len(hosts), "cannot run minga"))


def _installed(host: Host, reach: Launcher, environment: Environment) -> str | Fault:
    """Copy an environment to a host, and return what was done, or why it was not possible."""
    if host.python is not None:
        return f"has a Python of its own, {host.python}"
    python = shlex.quote(str(environment.python))
    there = "; ".join(
        f"if [ -e {name} ]; then echo {number}; fi" for number, name in enumerate(_quoted(environment.folders))
    )
    asked = _on(host, reach, there)
    if asked.returncode:
        return Fault(host.name, f"does not answer: {_last(asked)}", f"try `{shlex.join(reach(host, ['true']))}`")
    known = asked.stdout.split()
    missing = [folder for number, folder in enumerate(environment.folders) if str(number) not in known]
    began = time.monotonic()
    if missing and (fault := _copied(host, reach, missing)) is not None:
        return Fault(host.name, f"could not store a copy: {fault}", "make room there, or install minga by other means")
    tried = _on(host, reach, f"{python} -c 'import minga'")
    if tried.returncode:
        cure = "install the same Python there; what the system has is not copied, and folders that exist are left alone"
        return Fault(host.name, f"cannot use {environment.python}: {_last(tried)}", cure)
    names = ", ".join(map(str, missing))
    return f"got {names} in {time.monotonic() - began:.1f} s" if missing else f"has {environment.python}"


def _copied(host: Host, reach: Launcher, folders: Sequence[Path]) -> str | None:
    """Copy folders to a host that has none of them; return what went wrong, None if nothing did."""
    names = [str(folder.relative_to("/")) for folder in folders]
    remove = " ".join(["rm -rf", *_quoted(folders)])
    words = reach(host, ["sh", "-c", f"tar -C / -xf - || {{ {remove}; exit 1; }}"])
    packing = ["tar", "-C", "/", "-cf", "-", "--exclude=__pycache__", "--", *names]
    with subprocess.Popen(packing, stdout=subprocess.PIPE) as tar:
        try:
            done = subprocess.run(words, stdin=tar.stdout, capture_output=True, text=True, check=False)
        finally:
            tar.kill()
    return _last(done) if done.returncode else None


def _on(host: Host, reach: Launcher, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script on a host."""
    words = reach(host, ["sh", "-c", script])
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def _quoted(folders: Sequence[Path]) -> list[str]:
    return [shlex.quote(str(folder)) for folder in folders]


def _last(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line that a command has printed about its failure."""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"it ended with status {done.returncode}"
