"""The command ``minga export``: write frames of fields, and samples of receivers, in formats of other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from minga.errors import CaseError, suggest
from minga.output.directory import RunDirectory, write_whole
from minga.output.export import GROUP, Export, ExportFormat, export_format
from minga.output.store import FrameReader
from minga.paths import check_free
from minga.plugins import names

__all__ = ["export", "frame_number", "only_field"]

ALL: Final = "all"
RECEIVERS: Final = "receivers"


def export(
    run: Path,
    field: str | Sequence[str] | None,
    kind: str | None,
    out: Path,
    frame: str,
    scale: int | None = None,
    force: bool = False,
) -> str:
    """Write frames of fields, or the samples of receivers.

    Parameters
    ----------
    run
        The directory of a run.
    field
        One or several fields, or "receivers". It may be left out if the run has only one field, and for formats that
        can hold several fields, which then hold all of them.
    kind
        The format; by default the ending of `out`.
    out
        The file to write. If all frames are exported, formats of one frame write files numbered by their steps.
    frame
        The number of a frame, negative to count from the last, or "all".
    scale
        Pixels along the side of a cell, for a picture without axes and colour bar.
    force
        Whether existing files may be replaced. Nothing is written if any check fails.

    Returns
    -------
    str
        A description of what was written.

    Raises
    ------
    CaseError
        If an option is invalid or does not suit the run.
    """
    directory = RunDirectory.open(run)
    named = [field] if isinstance(field, str) else list(dict.fromkeys(field or ()))
    kind = kind or out.suffix.lstrip(".")
    found = export_format(kind)
    if named == [RECEIVERS]:
        return _receivers(directory, kind, found, out, force)
    reader = FrameReader.open(directory.fields)
    _check_fields(directory, reader, named)
    _check_format(kind, found, named, scale)
    whole = found.fields and not named and bool(reader.fields)
    fields = tuple(named or (reader.fields if whole else [only_field(reader)]))
    indices = list(range(len(reader.steps))) if frame == ALL else [frame_number(frame)]
    if not indices:
        raise CaseError("the run has no frames", key="--frame")
    indices = [reader.number(fields[0], index) for index in indices]
    _check_folder(out)
    parts = [tuple(indices)] if found.frames else [(index,) for index in indices]
    files = _files(reader, out, indices, several=frame == ALL and not found.frames)
    listing = out.with_suffix(found.collection[0]) if found.collection and frame == ALL else None
    for path in (*files, *filter(None, [listing])):
        check_free(path, force, key="--out")
    assert found.write is not None
    for path, part in zip(files, parts, strict=True):
        note = found.write(Export(directory, reader, fields, part, path, whole, scale))
    said = _said(reader, fields, whole, indices, files)
    if found.collection is not None and listing is not None:
        times = [(reader.times[index], path) for index, path in zip(indices, files, strict=True)]
        write_whole(listing, found.collection[1](times))
        said += f"; {listing} lists them"
    return f"{said}\n  {note}" if note else said


def _said(
    reader: FrameReader, fields: Sequence[str], whole: bool, indices: Sequence[int], files: Sequence[Path]
) -> str:
    """Describe what was written."""
    name = "all fields" if whole and len(fields) > 1 else ", ".join(fields)
    shape = " x ".join(str(len(axis.values)) for axis in reader.coordinates(fields[0]))
    about = f", {shape} {reader.dtype(fields[0])}" if len(fields) == 1 else ""
    when = reader.when(indices[0]) if len(indices) == 1 else f"{len(indices)} steps"
    where = f"{files[0]} .. {files[-1].name}" if len(files) > 1 else str(files[0])
    return f"{where}: {name} at {when}{about}"


def _receivers(run: RunDirectory, kind: str, found: ExportFormat, out: Path, force: bool) -> str:
    """Write all samples of a run's receivers, and return a description of what was written."""
    from minga.output.traces import read_traces

    if found.write_receivers is None:
        known = [name for name in names(GROUP) if export_format(name).write_receivers is not None]
        raise CaseError(
            f"receivers cannot be written as {kind!r}; the formats for receivers are {', '.join(known)}",
            key="--format",
            suggestion=suggest(kind, known),
        )
    _check_folder(out)
    check_free(out, force, key="--out")
    recorded = read_traces(run.traces)
    rows, columns = recorded.samples.shape
    note = found.write_receivers(out, recorded)
    said = f"{out}: {columns} traces, {rows} samples each, {recorded.interval * 1e3:.6g} ms apart"
    return f"{said}\n  {note}" if note else said


def _check_folder(out: Path) -> None:
    if not out.parent.is_dir():
        raise CaseError(f"the directory {str(out.parent)!r} does not exist", key="--out")


def _check_fields(directory: RunDirectory, reader: FrameReader, named: Sequence[str]) -> None:
    """Raise CaseError if a run lacks one of these fields."""
    known = [*reader.fields, *([RECEIVERS] if directory.traces.is_dir() else [])]
    for name in named:
        if name not in known:
            raise CaseError(
                f"the run has no field {name!r}; it has {', '.join(known)}",
                key="--field",
                suggestion=suggest(name, known),
            )


def _check_format(kind: str, found: ExportFormat, named: Sequence[str], scale: int | None) -> None:
    """Raise CaseError if a format cannot hold several fields, any field at all, or does not support a scale."""
    if len(named) > 1 and RECEIVERS in named:
        raise CaseError(
            f"{RECEIVERS} and fields cannot be written to one file",
            key="--field",
            remedy="write them one after the other",
        )
    if found.write is None:
        raise CaseError(f"{kind!r} is a format for receivers only", key="--format", remedy="add --field receivers")
    if len(named) > 1 and not found.fields:
        several = [name for name in names(GROUP) if export_format(name).fields]
        raise CaseError(
            f"a file of format {kind!r} holds only one of the fields {', '.join(named)}",
            key="--field",
            remedy=f"write them one after the other, or all to a file of format {' or '.join(several)}",
        )
    if scale is not None and not found.scale:
        raise CaseError("only pictures have a scale", key="--scale", remedy="leave it out, or write png")


def _files(reader: FrameReader, out: Path, indices: Sequence[int], several: bool) -> list[Path]:
    """Return the files that an export writes: one for each frame, or a single one."""
    steps = reader.steps
    return [numbered(out, steps[index], steps[-1]) for index in indices] if several else [out]


def only_field(reader: FrameReader) -> str:
    """Return the field of a run that has only one; raise CaseError if it has several."""
    if len(reader.fields) != 1:
        raise CaseError(f"name one of the fields: {', '.join(reader.fields)}", key="--field")
    return reader.fields[0]


def frame_number(text: str) -> int:
    """Return the frame number given on the command line; raise CaseError if it is not a number."""
    try:
        return int(text)
    except ValueError:
        raise CaseError(
            f"expected the number of a frame, found {text!r}",
            key="--frame",
            suggestion=suggest(text, [ALL]),
            remedy="frames are numbered from 0; -1 is the last",
        ) from None


def numbered(out: Path, step: int, last: int) -> Path:
    """Return the name of one file of several: ``cells.npy`` becomes ``cells-0100.npy`` at step 100 of 1103."""
    return out.with_name(f"{out.stem}-{step:0{len(str(last))}d}{out.suffix}")
