"""The command ``minga show``: show a frame of a run as a picture in the terminal, or print the path of a picture."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from minga.cli.export import frame_number, only_field
from minga.errors import CaseError, suggest
from minga.output.directory import RunDirectory, disk_errors
from minga.output.store import FrameReader
from minga.view.pictures import chosen_frames, draw_frame
from minga.view.raster import field_view
from minga.view.terminal import PROTOCOLS, Room, encode, find_protocol, room_of

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["AUTO", "show"]

AUTO = "auto"
_MOST_ROWS = 1024


def show(run: Path, field: str | None, frame: str, protocol: str, stream: TextIO | None = None) -> str:
    """Return the text to print: the picture encoded in ``protocol`` with a caption, or the path of a picture.

    If a run has several fields and none is named, the first is shown.
    """
    stream = stream or sys.stdout
    if protocol not in (AUTO, *PROTOCOLS):
        raise CaseError(
            f"there is no protocol {protocol!r}; the protocols are {', '.join((AUTO, *PROTOCOLS))}",
            key="--protocol",
            suggestion=suggest(protocol, PROTOCOLS),
        )
    directory = RunDirectory.open(run)
    reader = FrameReader.open(directory.fields)
    name = field or (reader.fields[0] if reader.fields else only_field(reader))
    index = frame_number(frame)
    reader.frame(name, index)  # raises if there is no such frame or field
    chosen = find_protocol(stream, sys.stdin, os.environ) if protocol == AUTO else protocol
    if chosen == "none":
        return str(_picture(directory, reader, name, index))
    room = room_of(stream)
    image, where = _image(reader, name, index, chosen, room)
    said = ", ".join((f"{name} after step {reader.steps[index]} of {run}", *where))
    true_colour = os.environ.get("COLORTERM") in ("truecolor", "24bit")
    return encode(image, chosen, true_colour) + said


def _picture(directory: RunDirectory, reader: FrameReader, name: str, index: int) -> Path:
    """Return the file of a frame's picture, which is drawn if the run has none."""
    with disk_errors(directory.pictures):
        directory.pictures.mkdir(exist_ok=True)
    return draw_frame(reader, name, index, directory.pictures)


def _image(reader: FrameReader, name: str, index: int, protocol: str, room: Room) -> tuple[Image, tuple[str, ...]]:
    """Return the frame, as large as fits, and the position of its plane; for one axis, all frames up to this one."""
    size = (room.columns, 2 * room.rows) if protocol == "blocks" else (room.width, room.height)
    count = len(reader.steps)
    if len(reader.coordinates(name)) == 1:
        rows = chosen_frames(index % count + 1, _MOST_ROWS)
        return field_view(reader, name, rows).history(rows, size), ("time downwards",)
    view = field_view(reader, name, [index])
    return view.image(index, size), view.plane.where
