"""State of a lab: a record of everything it creates, written beforehand, so that any later process can remove it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from minga.errors import LaunchError
from minga.lab.commands import lent
from minga.lab.config import Lab
from minga.launch.processes import Process

__all__ = [
    "State",
    "boot_id",
    "filing",
    "folder",
    "forget",
    "locked",
    "names",
    "read_state",
    "write_state",
]

_VERSION: Final = 1
_PATIENCE: Final = 60.0
"""Seconds to wait for another process that is building or removing a lab."""


@dataclass(frozen=True, slots=True)
class State:
    """State of a lab on this machine. ``cores`` is the number of cores that its shares were scaled to."""

    instance: str
    lab: Lab
    token: str
    """Mark in the environment of every process that was started inside the lab."""
    boot: str
    rootless: bool
    cores: float
    quota: bool = True
    built: bool = False
    """False while the lab is being built, and forever if that was interrupted."""
    owner: Process | None = None
    """Process whose end makes the lab stale; None if the lab stays until somebody removes it."""
    holder: Process | None = None
    """Process that holds the namespaces of a rootless lab."""
    hub: Process | None = None
    groups: tuple[tuple[str, ...], ...] = field(default=())
    """Directories of the control groups of each node."""
    cpus: tuple[tuple[int, ...], ...] = field(default=())
    """Processors that each node is bound to; empty if the node may use all."""

    @property
    def folder(self) -> Path:
        """Directory of this lab's files."""
        return folder() / self.instance

    @property
    def prefix(self) -> tuple[str, ...]:
        """Prefix of a command that inspects or changes the lab's namespaces."""
        if self.holder is None:
            return ()
        return ("nsenter", f"--target={self.holder.pid}", "--user", "--mount", "--net", "--preserve-credentials", "--")

    def namespace(self, node: int | None) -> str:
        """Return the name of a node's network namespace; ``node`` None stands for the switch."""
        return f"minga-{self.instance}-{'switch' if node is None else node}"

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Names of all network namespaces, that of the switch first."""
        return tuple(self.namespace(node) for node in (None, *range(len(self.lab.nodes))))

    def namespace_file(self, name: str) -> Path:
        """Return the path of the file that keeps a network namespace alive, as this process sees it."""
        root = "" if self.holder is None else f"/proc/{self.holder.pid}/root"
        return Path(f"{root}/run/netns/{name}")

    def fault(self) -> str | None:
        """Return the reason why the lab can no longer be used, or None if it works."""
        if self.boot != boot_id():
            return "the machine was restarted"
        if not self.built:
            return "it is being built, or that was interrupted"
        if self.owner is not None and not self.owner.lives:
            return f"process {self.owner.pid}, which it belonged to, has ended"
        if self.rootless and (self.holder is None or not self.holder.lives):
            return "the process that held its namespaces has ended"
        if self.hub is not None and not self.hub.lives:
            return f"its {self.lab.wiring} has ended"
        missing = [name for name in self.namespaces if not self.namespace_file(name).exists()]
        if missing:
            return f"its network namespace {missing[0]} is gone"
        ungrouped = [directory for node in self.groups for directory in node if not Path(directory).is_dir()]
        return f"its control group {ungrouped[0]} is gone" if ungrouped else None


def folder() -> Path:
    """Return the directory of all states. It vanishes with a restart, as labs do, and only its owner may write there.

    A rootless lab may mount its own file system on /run, so its state is in /tmp.
    """
    if chosen := os.environ.get("MINGA_LAB_STATE"):
        return Path(chosen).absolute()
    return Path("/run/minga-lab") if os.geteuid() == 0 else Path(f"/tmp/minga-lab-{os.geteuid()}")


def names() -> list[str]:
    """Return the names of the labs that have a state."""
    with filing():
        if not folder().is_dir():
            return []
        return sorted(path.parent.name for path in _own(folder()).glob("*/state.json"))


def read_state(instance: str) -> State | None:
    """Return the state of a lab, or None if there is none.

    Raises
    ------
    LaunchError
        If the state exists but cannot be read; it is not ignored, because it records what has to be removed.
    """
    path = folder() / instance / "state.json"
    with filing():
        if folder().is_dir():
            _own(folder())
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from error
    try:
        if data.pop("version") != _VERSION:
            raise ValueError("it was written by another version of minga")
        return _parse(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _unreadable(path, f"{type(error).__name__}: {error}") from error


def write_state(state: State) -> None:
    """Write a state atomically: completely or not at all."""
    part = state.folder / "state.json.part"
    with filing():
        state.folder.mkdir(exist_ok=True)
        part.write_text(json.dumps({"version": _VERSION, **asdict(state)}, indent=1), encoding="utf-8")
        part.replace(state.folder / "state.json")


def forget(state: State) -> None:
    """Remove the files of a lab."""
    shutil.rmtree(state.folder, ignore_errors=True)


@contextlib.contextmanager
def filing() -> Iterator[None]:
    """Turn errors of the file system into a LaunchError, where a lab's own files are read and written."""
    try:
        yield
    except OSError as error:
        raise LaunchError(
            f"the files of labs cannot be read or written: {error.strerror}",
            where=str(error.filename or folder()),
            remedy="set MINGA_LAB_STATE to a directory of yours, on a disk with free space",
        ) from error


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Hold the lock that lets only one process at a time build or remove labs.

    The lock of a process that was killed becomes free once its tools have ended too, because they inherit it.
    """
    place = folder()
    with filing():
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _own(place)
        lock = (place / "lock").open("w")
    with lock as file:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise LaunchError(
                        f"another process has been building or removing a lab for {_PATIENCE:.0f} seconds",
                        where=str(place / "lock"),
                        remedy=f"find out which one: fuser {place / 'lock'}",
                    ) from None
                time.sleep(0.02)
        lent.append(file.fileno())
        try:
            yield
        finally:
            lent.remove(file.fileno())


def boot_id() -> str:
    """Return the identifier that the kernel chose when this machine was booted; empty if it cannot be read."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _own(place: Path) -> Path:
    """Return the directory if nobody else can write there; its files decide what will be removed."""
    there = place.lstat()
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.geteuid() or there.st_mode & 0o022:
        raise LaunchError(
            f"{place} is not a directory that only you can write to", remedy=f"remove it: rm -r {place}, if it is yours"
        )
    return place


def _parse(data: dict[str, Any]) -> State:
    processes = {
        key: None if data[key] is None else Process(int(data[key]["pid"]), int(data[key]["began"]))
        for key in ("owner", "holder", "hub")
    }
    groups = tuple(tuple(map(str, node)) for node in data["groups"])
    cpus = tuple(tuple(map(int, node)) for node in data["cpus"])
    return State(**{**data, **processes, "lab": Lab.from_dict(data["lab"]), "groups": groups, "cpus": cpus})


def _unreadable(path: Path, why: str) -> LaunchError:
    return LaunchError(
        f"the state of a lab cannot be read: {why}",
        where=str(path),
        remedy=f"remove by hand what the file names (ip netns list), then rm -r {path.parent}",
    )
