"""Attribute ``mg`` of datasets: ``history.mg.show()``, ``history.mg.movie()`` and ``history.mg.figure()``."""

from __future__ import annotations

import functools
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minga.errors import CaseError
from minga.extras import require
from minga.output.dataset_frames import DatasetFrames
from minga.view.movie import check_movie, write_movie
from minga.view.papers import paper_figure
from minga.view.picture import Movie, Picture
from minga.view.pictures import chosen_frames, frame_png

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

__all__ = ["DatasetView", "add_to_datasets"]

_adding = threading.Lock()
_COMPARED: Final = 16
"""Most frames that set the colours of a picture."""
_KINDS: Final = {
    ".gif": "image/gif", ".webp": "image/webp", ".png": "image/png", ".apng": "image/png", ".mp4": "video/mp4",
}  # fmt: skip


class DatasetView:
    """Pictures and movies of the frames of a dataset.

    Parameters
    ----------
    dataset
        A dataset of a run, or a selection from it.
    """

    def __init__(self, dataset: xarray.Dataset) -> None:
        self._dataset = dataset

    def show(self, field: str | None = None, frame: int = -1) -> Picture:
        """Return the picture of a frame, which a notebook shows.

        Parameters
        ----------
        field
            Name of the field; by default the first one.
        frame
            Number of the frame, from 0; negative numbers count from the last.

        Returns
        -------
        Picture
            The picture; `save` writes it. All frames of a dataset share their colours.

        Raises
        ------
        CaseError
            If there is no such field or frame.
        """
        frames = DatasetFrames(self._dataset)
        name = _field(frames, field)
        frames.frame(name, frame)  # raises for a frame that does not exist
        count = len(frames.steps)
        compared = sorted({*chosen_frames(count, _COMPARED), frame % count})
        return Picture(frame_png(frames, name, frame, compared), f"{name}, {frames.when(frame)}")

    def movie(
        self, field: str | None = None, out: str | Path | None = None, *, fps: float = 10.0, width: int = 480
    ) -> Movie:
        """Return a movie of a field, which a notebook shows; at most 600 frames are taken.

        Parameters
        ----------
        field
            Name of the field; by default the first one.
        out
            A file that ends in .gif, .webp, .png or .mp4 (which needs ffmpeg), and is replaced if it exists; by default
            a GIF in memory.
        fps
            Frames per second.
        width
            Most pixels along each side.

        Returns
        -------
        Movie
            The movie.

        Raises
        ------
        CaseError
            If there is no such field or no frame, or an argument is invalid.
        RunError
            If the disk refuses.
        """
        frames = DatasetFrames(self._dataset)
        name = _field(frames, field)
        frames.frame(name)  # raises if there is none
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "movie.gif") if out is None else Path(out)
            check_movie(path, fps, width)
            count, _ = write_movie(frames, name, path, fps, width)
            content = path.read_bytes()
        return Movie(content, _KINDS[path.suffix], f"{name}, {count} frames", None if out is None else path)

    def figure(self, name: str | None = None, frame: int = -1, *, width: float = 86.0) -> Figure:
        """Return a figure for a paper: one frame of a field, or an observable over time.

        Text is 8 points high at the figure's size, axes carry units, and ``figure.savefig("u.pdf")`` writes vector
        graphics, in which only the cells of a field are pixels.

        Parameters
        ----------
        name
            Name of a field, or of an observable that is a number; by default the first field.
        frame
            Number of the frame, from 0; negative numbers count from the last.
        width
            Width in mm; 86 is a column of many journals.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, whose axes can be changed before it is saved.

        Raises
        ------
        CaseError
            If there is no such field, observable or frame, or the width is invalid.
        """
        return paper_figure(self._dataset, name, frame, width)


def _field(frames: DatasetFrames, field: str | None) -> str:
    """Return the name of a field, by default the first one."""
    if field is None and not frames.fields:
        raise CaseError("the dataset has no fields", remedy="take one that mg.run returned")
    return frames.fields[0] if field is None else field


def add_to_datasets() -> None:
    """Give all datasets of xarray the attribute ``mg``, once: virtual ranks are threads; raise CaseError without it."""
    require("xarray")
    with _adding:
        _add()


@functools.cache
def _add() -> None:
    import xarray

    xarray.register_dataset_accessor("mg")(DatasetView)  # type: ignore[no-untyped-call]
