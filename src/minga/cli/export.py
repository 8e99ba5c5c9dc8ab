"""``minga export``: frames of a field in the formats of other programs.

Most formats hold one frame a file. NetCDF holds all that are asked for, and XDMF describes them where they lie.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.cli.export_receivers import RECEIVERS, export_receivers
from minga.cli.export_whole import WHOLE
from minga.errors import CaseError, suggest
from minga.output.directory import RunDirectory, write_whole
from minga.output.store import FrameReader
from minga.paths import check_free

__all__ = ["FORMATS", "export", "frame_number", "only_field"]

ALL = "all"
_OF_ALL = "nc", "vtr"
"""Formats that hold all fields where none is named."""
_MOST_PIXELS = 32768

Values = NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Task:
    """One field of a run that is to be written."""

    run: RunDirectory
    reader: FrameReader
    field: str
    scale: int | None
    every: bool = False
    """Whether no field was named, so that a format of several holds all."""

    def values(self, index: int) -> Values:
        return self.reader.frame(self.field, index)


def export(
    run: Path,
    field: str | Sequence[str] | None,
    kind: str | None,
    out: Path,
    frame: str,
    scale: int | None = None,
    force: bool = False,
) -> str:
    """Write a frame of a field to ``out``, or all of them to files numbered by their steps; what was written, in words.

    ``field`` may be left out where the run has only one, and for ``vtr`` and ``nc``, which then hold all; ``nc`` takes
    several. ``kind`` may be left out where the ending of ``out`` tells it. With ``scale`` the side of a cell is so many
    pixels of a picture, with nothing around. Nothing is written when something is wrong, and no file is replaced
    without ``force``.
    """
    directory = RunDirectory.open(run)
    named = [field] if isinstance(field, str) else list(dict.fromkeys(field or ()))
    kind = kind or out.suffix.lstrip(".")
    if named == [RECEIVERS]:
        return export_receivers(directory, kind, out, force)
    reader = FrameReader.open(directory.fields)
    _check_fields(directory, reader, named)
    _check_format(kind)
    _check_several(named, kind)
    whole = kind in _OF_ALL and not named and bool(reader.fields)
    fields = named or (list(reader.fields) if whole else [only_field(reader)])
    task = _Task(directory, reader, fields[0], scale, whole)
    if scale is not None:
        _check_scale(task, kind)
    indices = list(range(len(reader.steps))) if frame == ALL else [frame_number(frame)]
    if not indices:
        raise CaseError("the run has no frames", key="--frame")
    indices = [reader.number(task.field, index) for index in indices]
    if not out.parent.is_dir():
        raise CaseError(f"the directory {str(out.parent)!r} does not exist", key="--out")
    files = _files(reader, out, indices, several=frame == ALL and kind not in WHOLE)
    collection = out.with_suffix(".pvd") if frame == ALL and kind in ("vti", "vtr") else None
    for path in (*files, *filter(None, [collection])):
        check_free(path, force, key="--out")
    if kind in WHOLE:
        return WHOLE[kind](task.reader, fields, indices, out)
    write = _WRITERS[kind]
    values = task.values(indices[0])
    name = "all fields" if whole else task.field
    for path, index in zip(files, indices, strict=True):
        write(task, index, path)
    shape = f"{' x '.join(map(str, values.shape))} {values.dtype}"
    missing = _left_out(reader) if whole else ""
    if frame != ALL:
        return f"{out}: {name} at {reader.when(indices[0])}, {shape}{missing}"
    said = f"{files[0]} .. {files[-1].name}: {name} at {len(files)} steps, {shape}"
    if collection is not None:
        from minga.output.vtk import pvd

        write_whole(collection, pvd([(reader.times[index], path) for index, path in zip(indices, files, strict=True)]))
        said += f"; {collection} lists them"
    return said + missing


def _left_out(reader: FrameReader) -> str:
    from minga.output.vtr import left_out

    names = left_out(reader)
    return f"\n  left out: {', '.join(names)}, which lie at other points; write them with --field" if names else ""


def _check_fields(directory: RunDirectory, reader: FrameReader, named: Sequence[str]) -> None:
    """CaseError where a run has not all of these fields."""
    known = [*reader.fields, *([RECEIVERS] if directory.traces.is_dir() else [])]
    for name in named:
        if name not in known:
            raise CaseError(
                f"the run has no field {name!r}; it has {', '.join(known)}",
                key="--field",
                suggestion=suggest(name, known),
            )


def _check_several(named: Sequence[str], kind: str) -> None:
    """CaseError where a format has no place for several fields, or one of them is no field of frames."""
    if len(named) < 2:
        return
    if RECEIVERS in named:
        raise CaseError(f"{RECEIVERS} and fields in one file", key="--field", remedy="write them one after the other")
    if kind != "nc":
        raise CaseError(
            f"a file of format {kind!r} holds one of the fields {', '.join(named)}",
            key="--field",
            remedy="write them one after the other, or all to a file of format nc",
        )


def _files(reader: FrameReader, out: Path, indices: Sequence[int], several: bool) -> list[Path]:
    """What an export writes: a file for each frame, or one."""
    steps = reader.steps
    return [numbered(out, steps[index], steps[-1]) for index in indices] if several else [out]


def only_field(reader: FrameReader) -> str:
    """The field of a run that has only one; CaseError where it has several."""
    if len(reader.fields) != 1:
        raise CaseError(f"name one of the fields: {', '.join(reader.fields)}", key="--field")
    return reader.fields[0]


def frame_number(text: str) -> int:
    """A frame as the command line names it; CaseError where that is no number."""
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
    """The name of one file of several: ``cells.npy`` is ``cells-0100.npy`` at step 100 of 1103."""
    return out.with_name(f"{out.stem}-{step:0{len(str(last))}d}{out.suffix}")


def _check_format(kind: str) -> None:
    """CaseError where there is no such format."""
    if kind not in FORMATS:
        raise CaseError(
            f"there is no format {kind!r}; there are {', '.join(FORMATS)}"
            if kind
            else "the format is missing: the name of the file has no ending",
            key="--format",
            suggestion=suggest(kind, FORMATS),
        )


def _write_npy(task: _Task, index: int, path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, task.values(index))
    write_whole(path, stream.getvalue())


def _write_png(task: _Task, index: int, path: Path) -> None:
    from minga.view.pictures import draw

    if task.scale is not None:
        _write_cells(task, index, path, task.scale)
        return
    title = task.reader.when(index)
    attributes, coordinates = task.reader.attributes(task.field), task.reader.coordinates(task.field)
    draw(path, task.values(index), task.field, coordinates, attributes, title=title)


def _check_scale(task: _Task, kind: str) -> None:
    if kind != "png":
        raise CaseError("only pictures have a scale", key="--scale", remedy="leave it out, or write png")
    axes = [len(axis.values) for axis in task.reader.coordinates(task.field)]
    if len(axes) > 2:
        raise CaseError(f"a picture of cells has two axes, {task.field} has {len(axes)}", key="--scale")
    pixels = (task.scale or 1) * max(axes)
    if (task.scale or 0) < 1 or pixels > _MOST_PIXELS:
        raise CaseError(
            f"expected 1 pixel a cell or more, and at most {_MOST_PIXELS} on a side; found {task.scale}", key="--scale"
        )


def _write_cells(task: _Task, index: int, path: Path, scale: int) -> None:
    """Cells as squares of pixels; of states the numbers of the palette's colours are the states."""
    from minga.output.plane import plane_of
    from minga.view.colours import colour_scale, limits_of
    from minga.view.raster import png, raster

    attributes = task.reader.attributes(task.field)
    plane = plane_of(task.reader.coordinates(task.field), attributes)
    values = np.atleast_2d(plane.laid(task.values(index)))
    shown = colour_scale(limits_of([values]), values.dtype, attributes)
    shown = shown if values.dtype.kind == "f" else shown.of_states()
    size = values.shape[1] * scale, values.shape[0] * scale
    write_whole(path, png(raster(values, shown, size, upwards=plane.upwards(values.dtype))))


def _write_vti(task: _Task, index: int, path: Path) -> None:
    from minga.output.vtk import vti

    reader, field = task.reader, task.field
    write_whole(path, vti(field, task.values(index), reader.coordinates(field), reader.times[index]))


def _write_vtr(task: _Task, index: int, path: Path) -> None:
    from minga.output.vtr import rectilinear

    write_whole(path, rectilinear(task.reader, index, None if task.every else task.field))


def _write_vtkhdf(task: _Task, index: int, path: Path) -> None:
    from minga.output.vtkhdf import write_vtkhdf

    reader, field = task.reader, task.field
    write_vtkhdf(path, field, task.values(index), reader.coordinates(field), reader.times[index])


def _write_segy(task: _Task, index: int, path: Path) -> None:
    from minga.cli.export_segy import write_frame

    write_frame(task.reader, task.field, index, path)


def _write_rsf(task: _Task, index: int, path: Path) -> None:
    from minga.output.rsf import rsf

    reader = task.reader
    raw = reader.raw(task.field, index)
    title = f"{task.field} at {reader.when(index)}"
    data = task.values(index) if raw is None else raw
    write_whole(path, rsf(task.field, reader.dtype(task.field), reader.coordinates(task.field), data, title))


def _write_rle(task: _Task, index: int, path: Path) -> None:
    from minga.cli.golly import golly_rule
    from minga.models.automaton.patterns import write_rle

    cells = task.values(index)
    if cells.ndim != 2 or cells.dtype.kind not in "bui" or (cells.size and not 0 <= cells.min() <= cells.max() <= 255):
        raise CaseError(
            f"run-length encoding is for states 0 to 255 on two axes; {task.field} is {cells.ndim}-dimensional "
            f"{cells.dtype}" + (f" from {cells.min()} to {cells.max()}" if cells.size else ""),
            key="--format",
            remedy="write it as npy",
        )
    step = task.reader.steps[index]
    rule = golly_rule(task.reader.group.attrs)
    write_whole(path, write_rle(cells, rule.text, rule.comments, generation=step, position=rule.corner(cells.shape)))


_WRITERS: Mapping[str, Callable[[_Task, int, Path], None]] = {
    "npy": _write_npy,
    "png": _write_png,
    "rle": _write_rle,
    "rsf": _write_rsf,
    "sgy": _write_segy,
    "vti": _write_vti,
    "vtkhdf": _write_vtkhdf,
    "vtr": _write_vtr,
}
FORMATS = tuple(sorted({**_WRITERS, **WHOLE}))
