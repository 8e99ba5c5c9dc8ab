"""Formats of ``minga export``, including minga's own, which packages add through the group ``minga.formats``."""

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
"""Entry-point group of formats: the name of each entry point is a file suffix, and its object an ExportFormat."""

REMOVED = {"vti": "vtr", "vtkhdf": "vtr"}
"""Suffixes of earlier versions, and those that have replaced them."""


@dataclass(frozen=True, slots=True)
class Export:
    """The content of one file to be written.

    Parameters
    ----------
    run
        The directory of the run.
    reader
        The frames of the run.
    fields
        Names of the fields; a single one for formats that hold one field.
    frames
        Numbers of the frames, from 0; a single one for formats that hold one frame.
    path
        The file to write.
    every
        True if these are all fields because none was named.
    scale
        Pixels along the side of a cell, for pictures without axes and colour bar; otherwise None.
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
        """Name of the first field."""
        return self.fields[0]

    @property
    def frame(self) -> int:
        """Number of the first frame."""
        return self.frames[0]

    @property
    def step(self) -> int:
        """Step after which the first frame was taken."""
        return self.reader.steps[self.frame]

    @property
    def time(self) -> float:
        """Time of the first frame on the model's clock, or its step if the model has no clock."""
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
    """A file format of other programs; the name of its entry point is the suffix of the files.

    Parameters
    ----------
    description
        One line for lists of formats: the programs that read it.
    write
        ``write(export)`` writes a file, and may return a line to be shown to the user. If the format cannot hold the
        field, it raises CaseError before it writes anything. None for formats that only hold samples of receivers.
    frames
        Whether one file holds several frames; otherwise ``--frame all`` writes one file for each frame.
    fields
        Whether one file holds several fields, and all fields if none is named.
    write_receivers
        ``write_receivers(path, recorded)`` writes the samples of receivers in the same way; None if the format does not
        support them.
    scale
        Whether the format supports ``--scale``.
    collection
        The suffix of a file that lists the files of several frames, and a function that makes its text from pairs of
        time and file.
    """

    description: str
    write: Callable[[Export], str | None] | None = None
    frames: bool = False
    fields: bool = False
    write_receivers: Callable[[Path, Recorded], str | None] | None = None
    scale: bool = False
    collection: tuple[str, Callable[[Sequence[tuple[float, Path]]], str]] | None = None


def export_format(name: str) -> ExportFormat:
    """Return a format by the suffix of its files; raise CaseError if there is none."""
    if not name:
        raise CaseError("the format is missing: the file name has no suffix", key="--format", remedy=_known())
    if name in REMOVED and name not in names(GROUP):
        raise CaseError(
            f"the format {name!r} was removed; {REMOVED[name]!r} replaces it, with all fields and stretched grids",
            key="--format",
            remedy=f"write {REMOVED[name]}",
        )
    found: ExportFormat = load(GROUP, name, "format", key="--format")
    return found


def _known() -> str:
    return f"give one of {', '.join(names(GROUP))}"
