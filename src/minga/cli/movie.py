"""The command ``minga movie``: make a movie from the frames of a field."""

from __future__ import annotations

from pathlib import Path

from minga.cli.export import only_field
from minga.output.directory import RunDirectory
from minga.output.store import FrameReader
from minga.paths import check_free
from minga.view.movie import check_movie, write_movie

__all__ = ["movie"]


def movie(run: Path, field: str | None, out: Path | None, fps: float, width: int, force: bool = False) -> str:
    """Write a movie of a field, by default RUN/FIELD.gif, and return a description of what was written.

    The default file is overwritten each time; any other existing file is replaced only with ``force``.
    """
    directory = RunDirectory.open(run)
    reader = FrameReader.open(directory.fields)
    name = field or only_field(reader)
    reader.frame(name)  # raises if there is no such field, or no frame
    path = out or directory.path / f"{name}.gif"
    check_movie(path, fps, width, dashes="--")
    check_free(path, force or out is None, key="--out")
    frames, (wide, high) = write_movie(reader, name, path, fps, width)
    megabytes = path.stat().st_size / 1e6
    return f"{path}: {frames} frames of {name}, {wide} x {high} pixels, {megabytes:.2g} MB"
