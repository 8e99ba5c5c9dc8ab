"""Formats of ``minga export``, which packages add through the group ``minga.formats``; minga's own among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minga.errors import CaseError
from minga.plugins import load, names

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from minga.output.directory import RunDirectory
    from minga.output.store import FrameReader
    from minga.output.traces import Recorded

__all__ = ["GROUP", "Export", "ExportFormat", "export_format"]

GROUP = "minga.formats"
"""The group of entry points whose names are the endings of files; each is an ExportFormat."""

REMOVED = {"vti": "vtr", "vtkhdf": "vtr"}
"""Endings of earlier versions, and those that have taken their place."""


@dataclass(frozen=True, slots=True)
class Export:
    """The content of one file that is to be written.

    Parameters
    ----------
    run
        The directory of the run.
    reader
        The frames of the run.
    fields
        Names of the fields; one for formats that hold one.
    frames
        Numbers of the frames from 0; one for formats that hold one.
    path
        The file to write.
    every
        Whether these are all fields because none was named.
    scale
        Pixels of the side of a cell, for pictures of cells alone; None otherwise.
    """

    run: RunDirectory
    reader: FrameReader
    fields: tuple[str, ...]
    frames: tuple[int, ...]
    path: Path
    every: bool = False
    scale: int | None = None

    @property
    def field(self) -> str:
        """The first field."""
        return self.fields[0]

    @property
    def frame(self) -> int:
        """The number of the first frame."""
        return self.frames[0]

    @property
    def step(self) -> int:
        """The step after which the first frame was taken."""
        return self.reader.steps[self.frame]

    @property
    def time(self) -> float:
        """The time of the first frame by the model's clock; its step, if the model has no clock."""
        return self.reader.times[self.frame]

    def values(self) -> NDArray[Any]:
        """Read the values of the first field in the first frame.

        Returns
        -------
        ndarray
            The values.
        """
        return self.reader.frame(self.field, self.frame)


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format of files for other programs; the name of its entry point is the ending of the files.

    Parameters
    ----------
    description
        One line for lists of formats: the programs that read it.
    write
        ``write(export)`` writes a file, and may return a line to be told. It raises CaseError before it writes anything
        where the format cannot hold the field. None for formats of receivers' samples alone.
    frames
        Whether one file holds several frames; otherwise ``--frame all`` writes a file for each.
    fields
        Whether one file holds several fields, and all where none is named.
    write_receivers
        ``write_receivers(path, recorded)`` writes the samples of receivers, likewise; None if the format has no place
        for them.
    scale
        Whether the format takes ``--scale``.
    collection
        The ending of a file that lists those of several frames, and a function that makes its text of times and files.
    """

    description: str
    write: Callable[[Export], str | None] | None = None
    frames: bool = False
    fields: bool = False
    write_receivers: Callable[[Path, Recorded], str | None] | None = None
    scale: bool = False
    collection: tuple[str, Callable[[Sequence[tuple[float, Path]]], str]] | None = None


def export_format(name: str) -> ExportFormat:
    """Return a format by the ending of its files; CaseError if there is none."""
    if not name:
        raise CaseError("the format is missing: the name of the file has no ending", key="--format", remedy=_known())
    if name in REMOVED and name not in names(GROUP):
        raise CaseError(
            f"the format {name!r} has been removed: {REMOVED[name]!r} holds the same, all fields and unequal cells",
            key="--format",
            remedy=f"write {REMOVED[name]}",
        )
    found: ExportFormat = load(GROUP, name, "format", key="--format")
    return found


def _known() -> str:
    return f"give one of {', '.join(names(GROUP))}"
