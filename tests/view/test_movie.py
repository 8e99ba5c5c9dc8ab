"""Movies hold every frame, on one scale of colours."""

from __future__ import annotations

import errno
import shutil
import stat
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageSequence
import pytest

from minga.errors import CaseError, RunError
from minga.output.store import FrameReader
from minga.space.field import Field
from minga.space.grid import Grid
from minga.view.colours import colour_scale
from minga.view.movie import write_movie
from run_files import make_run

PALETTE = colour_scale((0, 1), np.dtype("u1"), {}).palette.astype(int)


def moving(tmp_path: Path, shape: tuple[int, ...] = (10, 16)) -> tuple[FrameReader, list[np.ndarray]]:
    """A run with a live cell that moves along its last axis."""
    frames = []
    for step in range(8):
        values = np.zeros(shape, "u1")
        values[..., step] = 1
        frames.append(values)
    field = Field("cell", Grid(shape), "u1")
    run = make_run(tmp_path / "run", field, dict(enumerate(frames)))
    return FrameReader.open(run.fields), frames


@pytest.mark.parametrize("ending", [".gif", ".webp", ".png", ".apng"])
def test_every_frame_is_there(tmp_path: Path, ending: str) -> None:
    reader, frames = moving(tmp_path)
    path = tmp_path / f"movie{ending}"
    assert write_movie(reader, "cell", path, fps=10, width=64) == (8, (64, 40))
    assert [p.name for p in tmp_path.iterdir() if "movie" in p.name] == [path.name]
    with PIL.Image.open(path) as movie:
        shown = [np.asarray(frame.convert("RGB")).astype(int) for frame in PIL.ImageSequence.Iterator(movie)]
        assert movie.info.get("loop") == 0
    assert len(shown) == 8
    for image, values in zip(shown, frames, strict=True):
        assert (image[2::4, 2::4] == PALETTE[values]).all()


def test_one_axis_grows_into_its_history(tmp_path: Path) -> None:
    reader, _ = moving(tmp_path, (16,))
    path = tmp_path / "movie.webp"
    assert write_movie(reader, "cell", path, fps=10, width=64) == (8, (64, 32))
    with PIL.Image.open(path) as movie:
        counts = []
        for frame in PIL.ImageSequence.Iterator(movie):
            dark = np.asarray(frame.convert("RGB"))[..., 0] < 100
            counts.append(int(dark.sum()) // 16)
    assert counts == list(range(1, 9))


def test_mp4_needs_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, _ = moving(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CaseError, match="needs ffmpeg"):
        write_movie(reader, "cell", tmp_path / "movie.mp4", fps=10, width=64)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run"]


def script(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ffmpeg"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_ffmpeg_gets_all_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for ffmpeg keeps what it is sent, and what it is told of it."""
    reader, frames = moving(tmp_path)
    script(tmp_path, f'for last; do :; done; echo "$@" > {tmp_path}/said; cat > "$last"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    write_movie(reader, "cell", tmp_path / "movie.mp4", fps=10, width=16)
    pixels = np.frombuffer((tmp_path / "movie.mp4").read_bytes(), np.uint8).reshape(8, 10, 16, 3)
    assert (pixels == PALETTE[np.stack(frames)]).all()
    assert "-s 16x10 -r 10" in (tmp_path / "said").read_text()


def test_what_ffmpeg_says_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, _ = moving(tmp_path)
    script(tmp_path, "echo no such encoder >&2; exit 3")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(RunError, match="no such encoder"):
        write_movie(reader, "cell", tmp_path / "movie.mp4", fps=10, width=16)
    assert not list(tmp_path.glob("*movie*"))


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs ffmpeg: apt-get install ffmpeg")
def test_a_real_mp4(tmp_path: Path) -> None:
    reader, _ = moving(tmp_path, (11, 17))
    write_movie(reader, "cell", tmp_path / "movie.mp4", fps=10, width=17)
    assert (tmp_path / "movie.mp4").read_bytes()[4:8] == b"ftyp"


def test_a_disk_that_takes_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even what was never there can be removed from it."""

    def refuses(*arguments: object, **options: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    reader, _ = moving(tmp_path)
    monkeypatch.setattr("PIL.Image.Image.save", refuses)
    monkeypatch.setattr("pathlib.Path.unlink", refuses)
    with pytest.raises(RunError, match="Read-only"):
        write_movie(reader, "cell", tmp_path / "movie.gif", 10, 320)
