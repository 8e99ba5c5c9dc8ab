"""Copies of a run's case for hosts that do not see the files of this machine.

The directory of a run holds its resolved case, with copies of the files that it names, except for large ones. A host
that sees the directory reads it there. Others get the same files in a directory of their own
(:mod:`minga.launch.stand_in`), and of the large ones those that they do not have under the same path. The way is the
connection over which each host is controlled, or, for what is large enough, one broadcast to all hosts that lack it.
"""

from __future__ import annotations

import os
import secrets
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from minga.cli.inputs import named, renamed
from minga.cli.toml import dump
from minga.errors import CaseError, MingaError
from minga.launch.host_agent import digest_of
from minga.launch.host_agents import HostAgents
from minga.output.directory import RunDirectory, disk_errors, run_id
from minga.plugins import load, names

__all__ = ["Copy", "stage"]

_TOKEN: Final = ".seen"
_STREAMS: Final = 88e6
"""Bytes a second of all streams together: those of gigabit Ethernet in base64."""
_WIRE: Final = 110e6
"""Bytes a second of a broadcast."""
_BROADCAST_START: Final = 2.0
"""Seconds in which the members of a broadcast start."""
_HEADER: Final = ".rsf"
"""Suffix of headers that name files with data, which may lie anywhere."""


@dataclass(frozen=True, slots=True)
class Copy:
    """The case as a host sees it: its file, the directory of the run, and the working directory for its ranks."""

    case: str
    run: str
    directory: str


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a run: those in its directory, and large ones that it names elsewhere, by their paths."""

    directory: RunDirectory
    large: Mapping[Path, tuple[Path, ...]]
    """The files that belong to each large one: itself, or what lies in a store."""

    @property
    def every_large(self) -> list[Path]:
        """All files that belong to large ones."""
        return [file for files in self.large.values() for file in files]

    def described(self, *, digests: bool) -> list[list[Any]]:
        """Return path, size, time of change and, if wanted, digest of all files that belong to large ones."""
        stats = [(file, file.stat()) for file in self.every_large]
        return [[str(file), s.st_size, s.st_mtime_ns, digest_of(file) if digests else None] for file, s in stats]

    def lacking(self, missing: Collection[Path]) -> dict[Path, str]:
        """Return the large ones of which files are missing on a host, and the names that they get there.

        Raises
        ------
        CaseError
            If that does not suffice, since one names others.
        """
        found = sorted(path for path, files in self.large.items() if not set(files).isdisjoint(missing))
        for path in found:
            if path.suffix == _HEADER:
                raise CaseError(
                    f"the case reads {path}, a header that names other files, which not all hosts have",
                    remedy="copy it and its data to the same paths there, or use a directory that all share",
                )
        return {path: f"large/{number}/{path.name}" for number, path in enumerate(found)}

    def size(self, path: Path) -> int:
        """Return the bytes of a large one."""
        return sum(file.stat().st_size for file in self.large[path])

    def for_host(self, names: Mapping[Path, str], without: Collection[Path]) -> dict[str, Path | str]:
        """Return the files to be copied to a host, by their names there; the large ones have these `names`."""
        table = tomllib.loads(self.directory.case.read_text(encoding="utf-8"))
        found: dict[str, Path | str] = {"case.toml": dump(renamed(table, names)), "id": f"{run_id(self.directory)}\n"}
        inputs = self.directory.inputs
        found |= {f"inputs/{file.name}": file for file in (sorted(inputs.iterdir()) if inputs.is_dir() else ())}
        for path, name in ((path, name) for path, name in names.items() if path not in without):
            found |= {str(Path(name) / file.relative_to(path)): file for file in self.large[path]}
        return found


def stage(
    agents: HostAgents, numbers: Sequence[int], directory: RunDirectory, note: Callable[[str], None]
) -> dict[int, Copy]:
    """Give hosts the case of a run, all at the same time.

    Parameters
    ----------
    agents
        The agents on hosts.
    numbers
        Numbers of the hosts that need the case.
    directory
        The directory of the run, with its case.
    note
        Called with notes for the user.

    Returns
    -------
    dict
        The case as each host sees it, by the number of the host.

    Raises
    ------
    CaseError, LaunchError
        If a host cannot store the files.
    """
    files, name = _files(directory), run_id(directory)
    token, text = directory.path.resolve() / _TOKEN, secrets.token_hex()
    with disk_errors(token):
        token.write_text(text)
    try:
        order = {"do": "compare", "token": str(token), "text": text, "directory": str(Path.cwd())}
        quick = {**order, "files": files.described(digests=False)}
        found = agents.ask_all(dict.fromkeys(numbers, quick))
        if unlike := [number for number, answer in found.items() if not all(answer["alike"])]:
            thorough = {**order, "files": files.described(digests=True)}
            found |= agents.ask_all(dict.fromkeys(unlike, thorough))
    finally:
        token.unlink(missing_ok=True)

    there = str(directory.path.resolve())
    wanted = {
        number: files.lacking([f for f, alike in zip(files.every_large, answer["alike"], strict=True) if not alike])
        for number, answer in found.items()
    }
    lacking = {number: own for number, own in wanted.items() if own or not found[number]["shares"]}

    def begun(number: int) -> str:
        return agents.each[number].begin(name, [str(Path(own).parent) for own in lacking[number].values()])

    folders = agents.at_once(list(lacking), begun)
    sent = _broadcast(agents, files, folders, lacking, note)

    def filled(number: int) -> None:
        agents.each[number].fill(files.for_host(lacking[number], sent[number]))

    agents.at_once(list(lacking), filled)

    def copy(number: int, shares: bool, sees: bool) -> Copy:
        if (folder := folders.get(number)) is not None:
            return Copy(f"{folder}/case.toml", there if shares else folder, folder)
        return Copy(f"{there}/case.toml", there, str(Path.cwd()) if sees else there)

    return {number: copy(number, answer["shares"], answer["directory"]) for number, answer in found.items()}


def _broadcast(
    agents: HostAgents,
    files: _Files,
    folders: Mapping[int, str],
    lacking: Mapping[int, Mapping[Path, str]],
    note: Callable[[str], None],
) -> dict[int, list[Path]]:
    """Send large ones to all hosts that lack them at once, where that is faster; return those that each host got."""
    sent: dict[int, list[Path]] = {number: [] for number in folders}
    for path in sorted({path for own in lacking.values() for path in own}):
        takers = [number for number in folders if path in lacking[number]]
        if not names("minga.copiers") or not _pays(len(takers), files.size(path)):
            continue
        places = [(agents.each[number].host, f"{folders[number]}/{lacking[number][path]}") for number in takers]
        try:
            load("minga.copiers", names("minga.copiers")[0], "way to copy files to hosts")(path, places, agents.shell)
        except MingaError as error:
            note(f"minga: {path} goes to each host on its own, since a broadcast was not possible: {error.message}")
        else:
            note(f"minga: {path} was sent to {len(takers)} hosts in one broadcast")
            for number in takers:
                sent[number].append(path)
    return sent


def _pays(hosts: int, size: int) -> bool:
    """Return True if a broadcast is expected to be faster than a stream to each host, over gigabit Ethernet."""
    return hosts * size / _STREAMS > _BROADCAST_START + size / _WIRE


def _files(directory: RunDirectory) -> _Files:
    table: Any = tomllib.loads(directory.case.read_text(encoding="utf-8"))
    base = directory.path.resolve()
    large = [path for path in dict.fromkeys(named(table, base)) if not path.resolve().is_relative_to(base)]
    return _Files(directory, {path: _parts(path) for path in large})


def _parts(path: Path) -> tuple[Path, ...]:
    if path.is_file():
        return (path,)
    return tuple(sorted(Path(folder, name) for folder, _, names in os.walk(path) for name in names))
