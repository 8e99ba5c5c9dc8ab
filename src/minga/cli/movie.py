"""The command ``minga movie``: make a movie from the frames of a field."""

from __future__ import annotations

import math
from pathlib import Path

from minga.cli.export import only_field
from minga.errors import CaseError, suggest
from minga.output.directory import RunDirectory
from minga.output.store import FrameReader
from minga.paths import check_free
from minga.view.movie import ENDINGS, write_movie

__all__ = ["movie"]

_SLOWEST, _FASTEST, _NARROWEST, _WIDEST = 0.1, 50.0, 16, 4096


def movie(run: Path, field: str | None, out: Path | None, fps: float, width: int, force: bool = False) -> str:
    """Write a movie of a field, by default RUN/FIELD.gif, and return a description of what was written.

    The default file is overwritten each time; any other existing file is replaced only with ``force``.
    """
    directory = RunDirectory.open(run)
    reader = FrameReader.open(directory.fields)
    name = field or only_field(reader)
    reader.frame(name)  # raises if there is no such field, or no frame
    path = out or directory.path / f"{name}.gif"
    if path.suffix not in ENDINGS:
        raise CaseError(
            f"the suffix of a movie must be one of {', '.join(ENDINGS)}, found {path.name!r}",
            key="--out",
            suggestion=suggest(path.suffix, ENDINGS),
        )
    if not path.parent.is_dir():
        raise CaseError(f"the directory {str(path.parent)!r} does not exist", key="--out")
    check_free(path, force or out is None, key="--out")
    if not (math.isfinite(fps) and _SLOWEST <= fps <= _FASTEST):
        raise CaseError(f"expected {_SLOWEST:g} to {_FASTEST:g} frames per second, found {fps:g}", key="--fps")
    if not _NARROWEST <= width <= _WIDEST:
        raise CaseError(f"expected {_NARROWEST} to {_WIDEST} pixels, found {width}", key="--width")
    frames, (wide, high) = write_movie(reader, name, path, fps, width)
    megabytes = path.stat().st_size / 1e6
    return f"{path}: {frames} frames of {name}, {wide} x {high} pixels, {megabytes:.2g} MB"
