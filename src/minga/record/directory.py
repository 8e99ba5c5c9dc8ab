"""The directory of a run: where everything a run leaves lies, and how files get there whole or not at all.

==================  =========================================================================
``case.toml``       the resolved case: ``minga run RUN/case.toml`` repeats the run
``inputs/``         copies of the files that the case names
``fields.zarr``     the output fields, Zarr version 3; ``xarray.open_zarr`` opens it
``result.json``     what ``--json`` prints
``ledger.json``     where each rank's time went
``pictures/``       the output fields as PNG
==================  =========================================================================
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minga.errors import CaseError, RunError

__all__ = ["RunDirectory", "disk_errors", "write_whole"]


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """A run's directory, and the names of what is in it."""

    path: Path
    parents: tuple[Path, ...] = ()
    """Directories that were made on the way to it, innermost first."""

    @property
    def case(self) -> Path:
        """The resolved case."""
        return self.path / "case.toml"

    @property
    def inputs(self) -> Path:
        """Folder of the copied input files."""
        return self.path / "inputs"

    @property
    def fields(self) -> Path:
        """The store of output fields."""
        return self.path / "fields.zarr"

    @property
    def ledger(self) -> Path:
        """Seconds by category, messages and bytes of every rank."""
        return self.path / "ledger.json"

    @property
    def result(self) -> Path:
        """The result as ``--json`` prints it."""
        return self.path / "result.json"

    @property
    def pictures(self) -> Path:
        """Folder of the PNG files."""
        return self.path / "pictures"

    @classmethod
    def create(cls, out: Path | None, name: str, replace: bool = False, parent: Path = Path("runs")) -> RunDirectory:
        """Make an empty run directory: ``out``, or the first of ``runs/NAME``, ``runs/NAME-2``, ... that is free.

        Raises CaseError where ``out`` holds something already (unless ``replace`` is set and it is a run), or where
        nothing can be written.
        """
        made = tuple(folder for folder in (out.parents if out else (parent, *parent.parents)) if not folder.exists())
        try:
            if out is not None:
                _make_empty(out, replace)
                return cls(out, made)
            parent.mkdir(parents=True, exist_ok=True)
            stem = re.sub(r"[^\w.+-]+", "-", name).strip("-.") or "run"
            for number in itertools.count(1):
                path = parent / (stem if number == 1 else f"{stem}-{number}")
                with contextlib.suppress(FileExistsError):
                    path.mkdir()
                    return cls(path, made)
        except OSError as error:
            place = error.filename or out or parent
            raise CaseError(
                f"cannot write to {place}: {error.strerror}",
                key="--out",
                remedy="name a directory that can be written with --out DIR",
            ) from error
        raise AssertionError("unreachable: numbers do not end")

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """An existing run; CaseError where ``path`` is none."""
        run = cls(path)
        if not path.is_dir():
            raise CaseError(f"{path} is no run directory: it {'is a file' if path.exists() else 'does not exist'}")
        if not run.fields.exists():
            raise CaseError(f"{path} is no run directory: it has no fields.zarr", remedy="name a directory under runs/")
        return run

    def discard(self) -> None:
        """Remove a run that never began, and the directories made for it as far as nothing else is in them."""
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            for folder in self.parents:
                folder.rmdir()


def _make_empty(path: Path, replace: bool) -> None:
    if path.is_dir() and any(path.iterdir()):
        is_run = (path / "case.toml").exists()
        if not (replace and is_run):
            raise CaseError(
                f"{path} holds {'a run' if is_run else 'files'} already; nothing is overwritten",
                key="--out",
                remedy="name another directory" + (", or replace the run with --force" if is_run else ""),
            )
        shutil.rmtree(path)
    path.mkdir(parents=True, exist_ok=True)


def write_whole(path: Path, text: str | dict[str, Any]) -> None:
    """Write a file (a dict as JSON) under a temporary name and rename it, so that no reader ever sees half of it."""
    content = text if isinstance(text, str) else json.dumps(text, indent=2, allow_nan=False) + "\n"
    temporary = path.with_name(f".{path.name}.partial")
    with disk_errors(path):
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what the file system refuses into one clear RunError."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise RunError(
            f"cannot write {path}: {error.strerror or error}",
            remedy="make room on the disk, or choose another with --out DIR; what was written before is intact"
            if full
            else "choose a directory that can be written with --out DIR; what was written before is intact",
        ) from error
