"""Directory of a run: the place of all its files, which get there whole or not at all.

========================  =========================================================================
``case.toml``             the resolved case: ``minga run RUN/case.toml`` repeats the run
``inputs/``               copies of the files that the case names
``fields.zarr``           the output fields, Zarr version 3; ``xarray.open_zarr`` opens it
``fields.manifest.jsonl`` a line for each complete frame, with checksums: :mod:`minga.output.snapshots.manifest`
``plan.json``             the work of each rank and the reasons, as settled before the first step
``preflight.json``        facts known before the first step, for models that report some
``result.json``           the result as printed by ``--json``
``ledger.json``           the time of each rank by category
``trace.json.gz``         the time line of each rank, if requested: :mod:`minga.output.trace`
``series.json``           the observables over time
``NAME.csv``              tables of observables, a row a step, of models that have them: ``iv.csv`` of a photodiode
``receivers.zarr``        samples at points over time, of models that have receivers; ``xarray.open_zarr`` opens it
``progress.json``         the progress of the run, or its end; renewed once a second
``happened.jsonl``        losses and returns of hosts, if there were any: :mod:`minga.output.happenings`
``epoch``                 who writes the run: :mod:`minga.output.epoch`
``job.sh``, ``job.log``   the job of a batch system that continues the run, what it says, and
``job.id``, ``jobs.json`` its number, and its jobs so far: :mod:`minga.batch.record`
``id``                    a name that hosts know the run by, if it has been on hosts
``.host``                 says that this is a host's stand-in for the directory: :mod:`minga.launch.stand_in`
``checkpoints/``          the state, from which the run can be resumed: :mod:`minga.output.checkpoint`
``pictures/``             the output fields as PNG
``report.html``           all of it for people, in one file
``watching``              while a live page is open: the field it shows; touched by the page's server
``edits.jsonl``           cells that people set while the run continued: :mod:`minga.output.edits`
``painting.jsonl``        while the run continues, if pages may paint: what they wish
``preview.npz``           while a live page is open: that field at reduced size
========================  =========================================================================
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minga.errors import CaseError, DiskError, DiskFullError, RunError

__all__ = ["RunDirectory", "appearing", "disk_errors", "noticing_removal", "run_id", "write_whole"]


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """Directory of a run, and the names of its contents."""

    path: Path
    parents: tuple[Path, ...] = ()
    """Parent directories that were made for it, innermost first."""

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
        """Store of the output fields."""
        return self.path / "fields.zarr"

    @property
    def plan(self) -> Path:
        """Plan of the run: see :mod:`minga.output.account`."""
        return self.path / "plan.json"

    @property
    def preflight(self) -> Path:
        """Facts known before the first step, as names and amounts in words."""
        return self.path / "preflight.json"

    @property
    def ledger(self) -> Path:
        """Seconds by category, messages and bytes of every rank."""
        return self.path / "ledger.json"

    @property
    def result(self) -> Path:
        """Result as printed by ``--json``."""
        return self.path / "result.json"

    @property
    def trace(self) -> Path:
        """Time line of each rank: see :mod:`minga.output.trace`."""
        return self.path / "trace.json.gz"

    @property
    def series(self) -> Path:
        """Observables over time."""
        return self.path / "series.json"

    def table(self, name: str) -> Path:
        """Return the path of a table of observables: see :mod:`minga.output.tables`."""
        return self.path / f"{name}.csv"

    @property
    def traces(self) -> Path:
        """Samples at points over time: see :mod:`minga.output.traces`."""
        return self.path / "receivers.zarr"

    @property
    def progress(self) -> Path:
        """Progress of the run: see :mod:`minga.output.progress`."""
        return self.path / "progress.json"

    @property
    def happened(self) -> Path:
        """Records of losses, drops and returns of hosts, one per line."""
        return self.path / "happened.jsonl"

    @property
    def epoch(self) -> Path:
        """Number and mark of the process that may write the run: see :mod:`minga.output.epoch`."""
        return self.path / "epoch"

    @property
    def id(self) -> Path:
        """Name of the run on hosts that do not see the directory."""
        return self.path / "id"

    @property
    def host_mark(self) -> Path:
        """File that makes this a host's stand-in for the directory, which has only the case and checkpoints."""
        return self.path / ".host"

    @property
    def stands_in(self) -> bool:
        """True if this is a host's stand-in for the directory."""
        return self.host_mark.is_file()

    @property
    def checkpoints(self) -> Path:
        """State of the run, kept while it is not complete."""
        return self.path / "checkpoints"

    @property
    def pictures(self) -> Path:
        """Folder of the PNG files."""
        return self.path / "pictures"

    @property
    def report(self) -> Path:
        """Report for people."""
        return self.path / "report.html"

    @property
    def watching(self) -> Path:
        """File whose age tells if somebody watches the run; its text is a field: see :mod:`minga.output.preview`."""
        return self.path / "watching"

    @property
    def painting(self) -> Path:
        """Wishes of pages that paint cells, while the run continues: see :mod:`minga.output.edits`."""
        return self.path / "painting.jsonl"

    @property
    def edits(self) -> Path:
        """Record of the cells that people set while the run continued."""
        return self.path / "edits.jsonl"

    @property
    def preview(self) -> Path:
        """The watched field at reduced size."""
        return self.path / "preview.npz"

    @classmethod
    def create(cls, out: Path | None, name: str, replace: bool = False, parent: Path = Path("runs")) -> RunDirectory:
        """Make an empty run directory: ``out``, or the first of ``runs/NAME``, ``runs/NAME-2``, ... that is free.

        Raises
        ------
        CaseError
            If ``out`` is not empty (unless ``replace`` is set and it is a run), or nothing can be written.
        """
        made = tuple(folder for folder in (out.parents if out else (parent, *parent.parents)) if not folder.exists())
        try:
            if out is not None:
                _make_empty(out, replace)
                return cls(out, made)
            parent.mkdir(parents=True, exist_ok=True)
            for path in _numbered(name, parent):
                with contextlib.suppress(FileExistsError):
                    path.mkdir()
                    return cls(path, made)
        except OSError as error:
            place = error.filename or out or parent
            raise CaseError(
                f"cannot write to {place}: {error.strerror}",
                key="--out",
                remedy="name a writable directory with --out DIR",
            ) from error
        raise AssertionError("unreachable: numbers do not end")

    @staticmethod
    def free(name: str, parent: Path = Path("runs")) -> Path:
        """Return the directory that a new run of this name would get without ``out``; nothing is made."""
        return next(path for path in _numbered(name, parent) if not path.exists())

    @staticmethod
    def check_empty(path: Path, replace: bool = False) -> None:
        """Raise CaseError if ``path`` is not empty, unless ``replace`` is set and it is a run."""
        if path.is_dir() and any(path.iterdir()):
            is_run = (path / "case.toml").exists()
            if not (replace and is_run):
                raise CaseError(
                    f"{path} holds {'a run' if is_run else 'files'} already; nothing is overwritten",
                    key="--out",
                    remedy="name another directory" + (", or replace the run with --force" if is_run else ""),
                )

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """Open an existing run.

        Raises
        ------
        CaseError
            If ``path`` is not a run.
        """
        run = cls(path)
        if not path.is_dir():
            raise CaseError(f"{path} is not a run directory: it {'is a file' if path.exists() else 'does not exist'}")
        if not run.fields.exists():
            raise CaseError(
                f"{path} is not a run directory: it has no fields.zarr", remedy="name a directory under runs/"
            )
        return run

    @classmethod
    def open_early(cls, path: Path) -> RunDirectory:
        """Open a run that may still be starting, or writes its frames at the end, so that it has no fields yet.

        Raises
        ------
        CaseError
            If ``path`` is not a run.
        """
        early = cls(path)
        return early if (path / "case.toml").is_file() or early.progress.is_file() else cls.open(path)

    def settle(self) -> None:
        """Remove files used only while the run continues, and incomplete files of a process that was killed."""
        for path in (self.preview, self.watching, self.painting, *self.path.glob(".*.partial")):
            with contextlib.suppress(OSError):
                path.unlink()

    def began(self) -> bool:
        """Return whether a step was done, or a frame, a checkpoint or a result was written."""
        written = (self.fields.with_suffix(".manifest.jsonl"), self.series, self.result, self.ledger, self.trace)
        if any(path.exists() and path.stat().st_size for path in written):
            return True
        if any(path.is_file() for path in self.checkpoints.rglob("*")):
            return True
        try:
            return bool(json.loads(self.progress.read_text())["step"])
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def discard_checkpoints(self, place: Path | None = None) -> None:
        """Remove all checkpoints, which may lie in another place: ``place`` if the link to it may be gone already."""
        shutil.rmtree(place or self.checkpoints.resolve(), ignore_errors=True)
        with contextlib.suppress(OSError):
            self.checkpoints.unlink()  # a link; it is gone otherwise

    def discard(self) -> bool:
        """Remove a run that never began, and the directories made for it, and return whether it was removed.

        A run that has begun stays, and so does whatever is not part of a run.
        """
        if self.began():
            return False
        self.settle()
        manifest = self.fields.with_suffix(".manifest.jsonl")
        for path in (self.case, self.progress, self.epoch, self.id, self.plan, self.preflight, manifest):
            with contextlib.suppress(OSError):
                path.unlink()
        for folder in (self.inputs, self.fields):
            shutil.rmtree(folder, ignore_errors=True)
        self.discard_checkpoints()
        with contextlib.suppress(OSError):
            for folder in (self.path, *self.parents):
                folder.rmdir()
        return True


def _numbered(name: str, parent: Path) -> Iterator[Path]:
    """Yield the directories that a run of this name may get, in the order in which they are tried."""
    stem = re.sub(r"[^\w.+-]+", "-", name).strip("-.") or "run"
    for number in itertools.count(1):
        yield parent / (stem if number == 1 else f"{stem}-{number}")


def run_id(directory: RunDirectory) -> str:
    """Return the name by which hosts know a run; it is made where it does not exist.

    Raises
    ------
    RunError
        If the disk refuses.
    """
    with contextlib.suppress(OSError):
        if known := directory.id.read_text(encoding="utf-8").strip():
            return known
    stem = re.sub(r"[^\w.+-]+", "-", directory.path.resolve().name).strip("-.") or "run"
    name = f"{stem}-{secrets.token_hex(4)}"
    write_whole(directory.id, f"{name}\n")
    return name


def _make_empty(path: Path, replace: bool) -> None:
    RunDirectory.check_empty(path, replace)
    if path.is_dir() and any(path.iterdir()):
        RunDirectory(path).discard_checkpoints()
        shutil.rmtree(path)
    path.mkdir(parents=True, exist_ok=True)


def write_whole(path: Path, content: str | bytes | dict[str, Any], *, lasting: bool = True) -> None:
    """Write a file (a dict as JSON) under a temporary name and rename it, so that readers never see a partial file.

    Without ``lasting`` the system decides when the file reaches the disk: for files that are renewed every second.

    Parameters
    ----------
    path
        The file.
    content
        Its content; a dict is written as JSON.
    lasting
        Whether the file is on the disk when this returns.
    """
    text = json.dumps(content, indent=2, allow_nan=False) + "\n" if isinstance(content, dict) else content
    with appearing(path) as temporary, temporary.open("wb") as stream:
        stream.write(text.encode() if isinstance(text, str) else text)
        if lasting:
            stream.flush()
            os.fsync(stream.fileno())


@contextlib.contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """Yield a temporary name for a file that is renamed to `path` when it is complete; nothing is left if that fails.

    Raises
    ------
    DiskError
        If the file system refuses; a DiskFullError if there is no room.
    """
    temporary = path.with_name(f".{path.name}.partial")
    with disk_errors(path):
        try:
            yield temporary
            temporary.replace(path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn errors of the file system into one clear DiskError, or a DiskFullError."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise (DiskFullError if full else DiskError)(
            f"cannot write {path}: {error.strerror or error}",
            remedy="make room on the disk, or choose another, such as with --out; what was written before is intact"
            if full
            else "name a writable place, such as with --out; what was written before is intact",
        ) from error


@contextlib.contextmanager
def noticing_removal(path: Path) -> Iterator[None]:
    """Turn errors of missing files into a clear RunError if the whole directory of a run is gone."""
    try:
        yield
    except (OSError, CaseError, DiskError) as error:
        if path.exists():
            raise
        raise RunError(
            f"{path} was removed while the run went on", remedy="begin the run again; what it had written is gone"
        ) from error
