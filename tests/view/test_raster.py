"""Images without axes: proportions, directions, means of many cells, small files."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from minga.output.store import FrameReader
from minga.output.variables import Coordinate
from minga.space.field import Field
from minga.space.grid import Grid
from minga.view.colours import colour_scale
from minga.view.raster import equal_cells, field_view, fit, pixels_of, png, raster
from run_files import make_run

TWO = colour_scale((0, 1), np.dtype("u1"), {})
LIGHT, DARK = TWO.palette


def pixels(image: PIL.Image.Image) -> np.ndarray:
    return np.asarray(image.convert("RGB")).astype(int)


def test_cells_are_squares_of_equal_size() -> None:
    values = np.random.default_rng(1).integers(0, 2, (5, 7)).astype("u1")
    image = pixels(raster(values, TWO, (28, 20)))
    assert (image == TWO.palette[np.kron(values, np.ones((4, 4), "u1"))]).all()


def test_floats_may_go_upwards() -> None:
    values = np.array([[0], [1]], "u1")
    assert (pixels(raster(values, TWO, (1, 2), upwards=True))[:, 0] == [DARK, LIGHT]).all()


@pytest.mark.parametrize("shape", [(64, 48), (65, 50), (301, 7), (8, 1000)])
def test_pixels_of_many_cells_are_their_mean(shape: tuple[int, int]) -> None:
    values = np.random.default_rng(2).integers(0, 2, shape).astype("u1")
    size = max(1, shape[1] // 4), max(1, shape[0] // 4)
    image = pixels(raster(values, TWO, size))
    assert image.shape == (size[1], size[0], 3)
    mean = TWO.rgb(values).astype(float).mean(axis=(0, 1))
    assert np.abs(image.mean(axis=(0, 1)) - mean).max() < 8
    if shape == (64, 48):
        exact = TWO.rgb(values).reshape(16, 4, 12, 4, 3).mean(axis=(1, 3))
        assert np.abs(image - exact).max() <= 1


def test_a_large_field_is_averaged_in_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).integers(0, 2, (90, 70)).astype("u1")
    at_once = pixels(raster(values, TWO, (14, 18)))
    monkeypatch.setattr("minga.view.raster._BAND_CELLS", 700)
    assert (pixels(raster(values, TWO, (14, 18))) == at_once).all()


def test_files_are_small_and_exact() -> None:
    values = np.random.default_rng(4).integers(0, 2, (256, 256)).astype("u1")
    file = png(raster(values, TWO, (256, 256)))
    assert len(file) < 256 * 256 // 8 * 1.2  # about a bit a cell
    assert (pixels(PIL.Image.open(io.BytesIO(file))) == TWO.rgb(values)).all()


def test_proportions() -> None:
    assert pixels_of((10, 20), (), (100, 100)) == (100, 50)
    assert pixels_of((10, 20), (), (100, 30)) == (60, 30)
    assert pixels_of((2000, 1000), (), (640, 640)) == (320, 640)
    assert fit((10, 20), 640) == (20, 10)
    assert fit((1000, 2000), 640) == (640, 320)


def test_the_middle_plane_of_every_frame_on_one_scale(tmp_path: Path) -> None:
    field = Field("u", Grid((5, 4, 3), spacing=2.0))
    frames = {step: np.full((5, 4, 3), float(step)) for step in (0, 1, 10)}
    run = make_run(tmp_path / "run", field, frames)
    view = field_view(FrameReader.open(run.fields), "u", [0, 1, 2])
    assert (view.plane.at, view.plane.where, view.shape) == ((2,), ("z = 5",), (4, 3))
    assert (view.scale.low, view.scale.high) == (0.0, 10.0)
    assert view.image(0, (60, 60)).size == (45, 60)
    assert not (pixels(view.image(0, (60, 60))) == pixels(view.image(1, (60, 60)))).all()


def test_cells_of_different_sizes_keep_their_places(tmp_path: Path) -> None:
    """Of widths 1, 1, 2 and 4 um and heights 4, 2 and 1 um what is drawn of each cell is its share."""
    spacing = np.array([4.0, 2.0, 1.0]), np.array([1.0, 1.0, 2.0, 4.0])
    grid = Grid((3, 4), axes=("x", "y"), spacing=spacing, units="um")
    field = Field("u", grid)
    values = np.arange(12.0).reshape(3, 4)
    run = make_run(tmp_path / "run", field, {1: values})
    view = field_view(FrameReader.open(run.fields), "u", [0])
    shown = view.values(0)
    assert view.shape == shown.shape
    faces = [axis.edges for axis in view.axes]
    shares = np.outer(*(np.diff(f) / (f[-1] - f[0]) for f in faces))
    drawn = np.array([[np.mean(shown == v) for v in row] for row in values])
    assert drawn == pytest.approx(shares, abs=0.1)
    width, height = view.image(0, (400, 400)).size
    assert width / height == pytest.approx(np.ptp(faces[1]) / np.ptp(faces[0]), rel=0.1)


def test_equal_cells_are_left_alone() -> None:
    even = Coordinate("x", np.linspace(0.5, 9.5, 10), {})
    assert equal_cells((even, even)) == (None, None)
    assert equal_cells((even,)) == (None,)
    uneven = Coordinate("y", np.array([0.5, 1.5, 3.0, 6.0]), {})
    rows, columns = equal_cells((even, uneven))
    assert rows is not None
    assert columns is not None
    assert rows.tolist() == list(range(10)), "as large as they are"
    # Faces at 0, 1, 2.25, 4.5 and 7.5; middles at 0.47, 1.41, 2.34, 3.28, 4.22, ...
    assert columns.tolist() == [0, 1, 2, 2, 2, 3, 3, 3]
