"""Movies of the frames of a field: GIF, WebP and APNG by Pillow, MP4 by ffmpeg. All frames share one colour scale."""

from __future__ import annotations

import contextlib
import itertools
import math
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from minga.errors import CaseError, RunError, suggest
from minga.output.directory import disk_errors
from minga.output.frame_source import FrameSource
from minga.view.pictures import chosen_frames
from minga.view.raster import FieldView, field_view, with_palette

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["ENDINGS", "check_movie", "write_movie"]

ENDINGS: Final = {".gif": "GIF", ".webp": "WEBP", ".png": "PNG", ".apng": "PNG", ".mp4": "MP4"}
_MOST_FRAMES = 600
_SLOWEST, _FASTEST, _NARROWEST, _WIDEST = 0.1, 50.0, 16, 4096
_EMPTY = (247, 245, 239)


def write_movie(reader: FrameSource, field: str, path: Path, fps: float, width: int) -> tuple[int, tuple[int, int]]:
    """Write a movie of a field, at most 600 frames of at most ``width`` pixels.

    A field on one axis is shown by its history, which grows downwards. The extension of ``path`` is one of ENDINGS.

    Returns
    -------
    frames
        Number of frames.
    size
        Width and height in pixels.

    Raises
    ------
    CaseError
        If ffmpeg is needed and missing.
    RunError
        If ffmpeg or the disk fails; no incomplete file is left.
    """
    chosen = chosen_frames(len(reader.steps), _MOST_FRAMES)
    frames = _Frames(field_view(reader, field, chosen), chosen, width)
    first = next(iter(frames))
    temporary = path.with_name(f".{path.stem}.partial{path.suffix}")
    write = _write_mp4 if path.suffix == ".mp4" else _write_animation
    try:
        with disk_errors(path):
            write(temporary, first, replace(frames, skipped=1), fps)
            temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):  # a disk error has already been raised above
            temporary.unlink(missing_ok=True)
    return len(chosen), first.size


def check_movie(path: Path, fps: float, width: int, dashes: str = "") -> None:
    """Raise CaseError for a file, a speed or a width that movies cannot have; options begin with these dashes."""
    if path.suffix not in ENDINGS:
        raise CaseError(
            f"the suffix of a movie must be one of {', '.join(ENDINGS)}, found {path.name!r}",
            key=f"{dashes}out",
            suggestion=suggest(path.suffix, ENDINGS),
        )
    if not path.parent.is_dir():
        raise CaseError(f"the directory {str(path.parent)!r} does not exist", key=f"{dashes}out")
    if not (math.isfinite(fps) and _SLOWEST <= fps <= _FASTEST):
        raise CaseError(f"expected {_SLOWEST:g} to {_FASTEST:g} frames per second, found {fps:g}", key=f"{dashes}fps")
    if not _NARROWEST <= width <= _WIDEST:
        raise CaseError(f"expected {_NARROWEST} to {_WIDEST} pixels, found {width}", key=f"{dashes}width")


@dataclass(frozen=True, slots=True)
class _Frames:
    """Images that are drawn on demand each time they are iterated over: Pillow iterates twice."""

    view: FieldView
    chosen: Sequence[int]
    width: int
    convert: Callable[[Image], Image] = lambda image: image
    skipped: int = 0

    def __iter__(self) -> Iterator[Image]:
        room = (self.width, self.width)
        if len(self.view.axes) == 1:
            whole = self.view.history(self.chosen, room)
            count = len(self.chosen)
            drawn = (_begun(whole, round(whole.height * number / count)) for number in range(1, count + 1))
            yield from map(self.convert, itertools.islice(drawn, self.skipped, None))
        else:
            for index in self.chosen[self.skipped :]:
                yield self.convert(self.view.image(index, room))


def _begun(whole: Image, rows: int) -> Image:
    """Return the upper rows of an image, with nothing below them."""
    begun = whole.copy()
    begun.paste(0 if whole.mode == "P" else _EMPTY, (0, rows, whole.width, whole.height))
    return begun


def _write_animation(path: Path, first: Image, others: _Frames, fps: float) -> None:
    form = ENDINGS[path.suffix]
    convert = with_palette if form == "GIF" else _full_colour
    options: dict[str, Any] = {"lossless": True} if form == "WEBP" else {"disposal": 1} if form == "GIF" else {}
    convert(first).save(
        path,
        form,
        save_all=True,
        append_images=replace(others, convert=convert),
        duration=max(20, round(1000 / fps)),
        loop=0,
        **options,
    )


def _write_mp4(path: Path, first: Image, others: _Frames, fps: float) -> None:
    """Pipe the frames into ffmpeg, as H.264 that browsers play, with an even number of pixels on each side."""
    program = shutil.which("ffmpeg")
    if program is None:
        raise CaseError(
            "writing mp4 needs ffmpeg, which is not on the PATH",
            key="--out",
            remedy="install ffmpeg, or write a .webp, .gif or .png movie",
        )
    size = f"{first.width}x{first.height}"
    command = [program, "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size]
    command += ["-r", f"{fps:g}", "-i", "-", "-an", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-c:v", "libx264"]
    command += ["-crf", "16", "-pix_fmt", "yuv420p", "-movflags", "+faststart", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            for image in (first, *others):
                process.stdin.write(_full_colour(image).tobytes())
            process.stdin.close()
        except BrokenPipeError:
            pass  # the reason is read from ffmpeg's output below
        said = process.stderr.read().decode(errors="replace").strip()
    if process.returncode:
        raise RunError(f"ffmpeg could not write {path}: {said or f'status {process.returncode}'}")


def _full_colour(image: Image) -> Image:
    return image.convert("RGB")
