"""``minga export``: one frame of a field as a NumPy file or a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from minga.errors import CaseError, suggest
from minga.record.directory import RunDirectory, disk_errors
from minga.record.store import FrameReader

__all__ = ["FORMATS", "export"]

FORMATS = ("npy", "png")


def export(run: Path, field: str | None, kind: str | None, out: Path, frame: int) -> str:
    """Write one frame of a field to ``out``; what was written, in words.

    ``field`` may be left out where the run has only one, ``kind`` where the ending of ``out`` tells it. Nothing is
    written when something is wrong.
    """
    reader = FrameReader.open(RunDirectory.open(run).fields)
    name = field or _only(reader)
    chosen = kind or out.suffix.lstrip(".")
    if chosen not in FORMATS:
        raise CaseError(
            f"there is no format {chosen!r}; there are {', '.join(FORMATS)}"
            if chosen
            else "the format is missing: the name of the file has no ending",
            key="--format",
            suggestion=suggest(chosen, FORMATS),
        )
    values = reader.frame(name, frame)
    step = reader.steps[frame]
    if not out.parent.is_dir():
        raise CaseError(f"the directory {str(out.parent)!r} does not exist", key="--out")
    if chosen == "npy":
        with disk_errors(out):
            temporary = out.with_name(f".{out.name}.partial")
            with temporary.open("wb") as stream:
                np.save(stream, values)
            temporary.replace(out)
    else:
        from minga.view.pictures import draw

        draw(out, values, name, reader.coordinates(name), reader.attributes(name), title=f"step {step}")
    return f"{out}: {name} at step {step}, {' x '.join(map(str, values.shape))} {values.dtype}"


def _only(reader: FrameReader) -> str:
    if len(reader.fields) != 1:
        raise CaseError(f"name one of the fields: {', '.join(reader.fields)}", key="--field")
    return reader.fields[0]
