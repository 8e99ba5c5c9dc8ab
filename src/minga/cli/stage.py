"""Copies of a run's case for hosts that do not see the files of this machine.

The directory of a run holds its resolved case, with copies of the files that it names, except for large ones. A host
that sees the directory reads it there. Others get the same files in a directory of their own
(:mod:`minga.launch.stand_in`), and of the large ones those that they do not have under the same path.
"""

from __future__ import annotations

import os
import secrets
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from minga.cli.inputs import named, renamed
from minga.cli.toml import dump
from minga.errors import CaseError
from minga.launch.host_agent import digest_of
from minga.launch.host_agents import HostAgents
from minga.output.directory import RunDirectory, disk_errors, run_id

__all__ = ["Copy", "stage"]

_TOKEN: Final = ".seen"
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

    def for_host(self, missing: set[Path]) -> dict[str, Path | str]:
        """Return the files to be copied to a host that lacks some of the large ones, by their names there."""
        lacking = {path for path, files in self.large.items() if missing.intersection(files)}
        for path in lacking:
            if path.suffix == _HEADER:
                raise CaseError(
                    f"the case reads {path}, a header that names other files, which not all hosts have",
                    remedy="copy it and its data to the same paths there, or use a directory that all share",
                )
        names = {path: f"large/{number}/{path.name}" for number, path in enumerate(sorted(lacking))}
        table = tomllib.loads(self.directory.case.read_text(encoding="utf-8"))
        found: dict[str, Path | str] = {"case.toml": dump(renamed(table, names)), "id": f"{run_id(self.directory)}\n"}
        inputs = self.directory.inputs
        found |= {f"inputs/{file.name}": file for file in (sorted(inputs.iterdir()) if inputs.is_dir() else ())}
        for path, name in names.items():
            found |= {str(Path(name) / file.relative_to(path)): file for file in self.large[path]}
        return found


def stage(agents: HostAgents, numbers: Sequence[int], directory: RunDirectory) -> dict[int, Copy]:
    """Give hosts the case of a run, all at the same time.

    Parameters
    ----------
    agents
        The agents on hosts.
    numbers
        Numbers of the hosts that need the case.
    directory
        The directory of the run, with its case.

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

    def copied(number: int) -> Copy:
        answer = found[number]
        there = str(directory.path.resolve())
        missing = {file for file, alike in zip(files.every_large, answer["alike"], strict=True) if not alike}
        if answer["shares"] and not missing:
            return Copy(f"{there}/case.toml", there, str(Path.cwd()) if answer["directory"] else there)
        folder = agents.each[number].send(files.for_host(missing), name)
        return Copy(f"{folder}/case.toml", there if answer["shares"] else folder, folder)

    return agents.at_once(list(numbers), copied)


def _files(directory: RunDirectory) -> _Files:
    table: Any = tomllib.loads(directory.case.read_text(encoding="utf-8"))
    base = directory.path.resolve()
    large = [path for path in dict.fromkeys(named(table, base)) if not path.resolve().is_relative_to(base)]
    return _Files(directory, {path: _parts(path) for path in large})


def _parts(path: Path) -> tuple[Path, ...]:
    if path.is_file():
        return (path,)
    return tuple(sorted(Path(folder, name) for folder, _, names in os.walk(path) for name in names))
