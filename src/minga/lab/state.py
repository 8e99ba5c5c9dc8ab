"""What a lab has made on this machine, written down before it is made, so that any later process can remove it."""

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

__all__ = [
    "Process",
    "State",
    "boot_id",
    "filing",
    "folder",
    "forget",
    "locked",
    "names",
    "process_here",
    "read_state",
    "write_state",
]

_VERSION: Final = 1
_PATIENCE: Final = 60.0
"""Seconds to wait for another process that builds or removes a lab."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process by its number and the time it began, in clock ticks since boot: numbers are used again."""

    pid: int
    began: int

    @property
    def lives(self) -> bool:
        """Whether this very process is still there and is no zombie."""
        return process_here(self.pid) == self


@dataclass(frozen=True, slots=True)
class State:
    """A lab on this machine. ``cores`` are what its shares were scaled to."""

    instance: str
    lab: Lab
    token: str
    """Is in the environment of every process that was started inside."""
    boot: str
    rootless: bool
    cores: float
    quota: bool = True
    built: bool = False
    """False while it is being made, and for ever where that was interrupted."""
    owner: Process | None = None
    """Whose end makes the lab stale; None where it stays until somebody removes it."""
    holder: Process | None = None
    """Keeps the namespaces of a lab without root."""
    hub: Process | None = None
    groups: tuple[tuple[str, ...], ...] = field(default=())
    """For each node the directories of its control groups."""
    cpus: tuple[tuple[int, ...], ...] = field(default=())
    """For each node the processors that it keeps to; none where it may use all."""

    @property
    def folder(self) -> Path:
        """Where this lab's files are."""
        return folder() / self.instance

    @property
    def prefix(self) -> tuple[str, ...]:
        """Words before a command that looks at or changes the lab's namespaces."""
        if self.holder is None:
            return ()
        return ("nsenter", f"--target={self.holder.pid}", "--user", "--mount", "--net", "--preserve-credentials", "--")

    def namespace(self, node: int | None) -> str:
        """Name of a node's network namespace; None is the switch."""
        return f"minga-{self.instance}-{'switch' if node is None else node}"

    @property
    def namespaces(self) -> tuple[str, ...]:
        """All of them, the switch first."""
        return tuple(self.namespace(node) for node in (None, *range(len(self.lab.nodes))))

    def namespace_file(self, name: str) -> Path:
        """The file that keeps a network namespace, as this process sees it."""
        root = "" if self.holder is None else f"/proc/{self.holder.pid}/root"
        return Path(f"{root}/run/netns/{name}")

    def fault(self) -> str | None:
        """Why nobody can use the lab any more, or None where it works."""
        if self.boot != boot_id():
            return "the machine was restarted"
        if not self.built:
            return "it is being built, or that was interrupted"
        if self.owner is not None and not self.owner.lives:
            return f"process {self.owner.pid}, which it was for, has ended"
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
    """Where states are kept: it is gone after a restart, like the labs, and nobody else may write there.

    Labs without root may have a file system of their own on /run, so theirs are in /tmp.
    """
    if chosen := os.environ.get("MINGA_LAB_STATE"):
        return Path(chosen).absolute()
    return Path("/run/minga-lab") if os.geteuid() == 0 else Path(f"/tmp/minga-lab-{os.geteuid()}")


def names() -> list[str]:
    """The labs that have left a state."""
    with filing():
        if not folder().is_dir():
            return []
        return sorted(path.parent.name for path in _own(folder()).glob("*/state.json"))


def read_state(instance: str) -> State | None:
    """The state of a lab, None where there is none. One that cannot be read is an error: it tells what to remove."""
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
    """Write a state whole or not at all."""
    part = state.folder / "state.json.part"
    with filing():
        state.folder.mkdir(exist_ok=True)
        part.write_text(json.dumps({"version": _VERSION, **asdict(state)}, indent=1), encoding="utf-8")
        part.replace(state.folder / "state.json")


def forget(state: State) -> None:
    """Remove a lab's files."""
    shutil.rmtree(state.folder, ignore_errors=True)


@contextlib.contextmanager
def filing() -> Iterator[None]:
    """Where a lab's own files are read and written: what the file system refuses becomes a LaunchError."""
    try:
        yield
    except OSError as error:
        raise LaunchError(
            f"the files of labs cannot be kept: {error.strerror}",
            where=str(error.filename or folder()),
            remedy="set MINGA_LAB_STATE to a directory of yours, on a disk with room",
        ) from error


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Only one process at a time builds or removes labs; the lock of one that was killed is free.

    Then its tools have ended too: they hold the lock with it.
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
                        remedy=f"see which one: fuser {place / 'lock'}",
                    ) from None
                time.sleep(0.02)
        lent.append(file.fileno())
        try:
            yield
        finally:
            lent.remove(file.fileno())


def boot_id() -> str:
    """Identifies the time since this machine was started."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def process_here(pid: int) -> Process | None:
    """The process that has a number now; None for none, and for one that has ended and waits to be collected."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if after_name[0] in "ZX" else Process(pid, int(after_name[19]))


def _own(place: Path) -> Path:
    """The directory, if nobody else can write there: what it says is to be removed will be removed."""
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
        remedy=f"remove what it names by hand (ip netns list), then rm -r {path.parent}",
    )
