"""Pictures: which frames, which plane, and that what is drawn can be looked at."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from minga.engine.presentation import FieldStyle
from minga.errors import RunError
from minga.output.plane import plane_of
from minga.output.store import FrameStore
from minga.output.variables import variable_of, variables_of
from minga.space.field import Field
from minga.space.grid import Grid
from minga.view.pictures import chosen_frames, draw, draw_run
from thinned import thinned


@pytest.mark.parametrize(
    ("count", "most", "expected"),
    [
        (0, 12, []),
        (1, 12, [0]),
        (3, 12, [0, 1, 2]),
        (13, 12, [0, 2, 4, 6, 8, 10, 12]),
        (12, 4, [0, 4, 8, 11]),
        (101, 5, [0, 25, 50, 75, 100]),
        (9, 1, [8]),
        (9, 2, [0, 8]),
        (9, 0, []),
    ],
)
def test_first_and_last_are_among_the_chosen_frames(count: int, most: int, expected: list[int]) -> None:
    assert chosen_frames(count, most) == expected


DTYPES = ["bool", "u1", "i4", "u8", "f4", "f8"]
SHAPES = [(7,), (5, 9), (4, 5, 6), (2, 3, 4, 5), (1, 1), (2, 700)]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("dtype", "shape"),
    thinned(
        itertools.product(DTYPES, SHAPES),
        *((dtype, (5, 9)) for dtype in DTYPES),
        *(("f8", shape) for shape in SHAPES if shape != (5, 9)),
    ),
)
def test_every_field_can_be_drawn(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    field = Field("u", Grid(shape), dtype, unit="K")
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    variable = variable_of(field)
    draw(tmp_path / "u.png", values, "u", variable.coordinates, variable.attributes, title="step 0")
    image = imread(tmp_path / "u.png")
    assert 100 <= image.shape[0] <= 1300
    assert 100 <= image.shape[1] <= 1300
    assert [p.name for p in tmp_path.iterdir()] == ["u.png"]


@pytest.mark.parametrize("value", thinned([np.nan, np.inf, 0.0], np.nan))
def test_values_without_a_range_can_be_drawn(tmp_path: Path, value: float) -> None:
    variable = variable_of(Field("u", Grid((3, 4))))
    draw(tmp_path / "u.png", np.full((3, 4), value), "u", variable.coordinates, variable.attributes)
    assert (tmp_path / "u.png").stat().st_size > 0


def test_uneven_cells_are_drawn_where_they_are(tmp_path: Path) -> None:
    """Half of the cells lie in the first tenth of the axis, and so does what they hold."""
    widths = [0.1] * 10 + [0.9] * 10
    grid = Grid((4, 20), spacing=(1.0, widths))
    values = np.tile(np.repeat([0.0, 1.0], 10), (4, 1))
    field = Field("a", grid)
    variable = variable_of(field)
    draw(tmp_path / "a.png", values, "a", variable.coordinates, variable.attributes)
    row = imread(tmp_path / "a.png")[:, :, :3]
    line = row[row.shape[0] // 2]
    first, last = line[80], line[600]
    dark = (np.abs(line - first).sum(axis=1) < 0.02).sum()
    light = (np.abs(line - last).sum(axis=1) < 0.02).sum()
    assert dark < 0.25 * light


def test_few_states_are_drawn_crisp(tmp_path: Path) -> None:
    """A checkerboard has its two colours, every cell with the same whole number of pixels."""
    variable = variable_of(Field("cell", Grid((40, 40)), "u1"))
    values = (np.indices((40, 40)).sum(axis=0) % 2).astype("u1")
    draw(tmp_path / "c.png", values, "cell", variable.coordinates, variable.attributes)
    image = np.round(imread(tmp_path / "c.png")[..., :3] * 255).astype(int)
    dark = abs(image - [0x1F, 0x3B, 0x57]).max(axis=2) <= 2
    light = abs(image - [0xF7, 0xF5, 0xEF]).max(axis=2) <= 2
    for line in (dark | ~light)[600], (dark | ~light)[:, 600]:  # a row and a column through the picture
        lengths = np.diff(np.flatnonzero(np.diff(line.astype(int))))
        assert (lengths == 1100 // 40).sum() >= 36


def test_a_middle_slice_is_shown_of_three_axes() -> None:
    variable = variable_of(Field("u", Grid((5, 3, 4), spacing=2.0)))
    values = np.arange(60.0).reshape(5, 3, 4)
    plane = plane_of(variable.coordinates, variable.attributes)
    assert (values[plane.at] == values[2]).all()
    assert [a.name for a in plane.axes] == ["y", "x"]
    assert (plane.where, plane.shown, plane.down) == (("z = 5",), (1, 2), False)


def test_a_field_says_where_it_is_cut() -> None:
    variable = variable_of(Field("u", Grid((5, 3, 4), spacing=2.0)), FieldStyle(section=("y", 4.4)))
    values = np.arange(60.0).reshape(5, 3, 4)
    plane = plane_of(variable.coordinates, variable.attributes)
    assert (values[plane.at] == values[:, 2]).all()
    assert [a.name for a in plane.axes] == ["z", "x"]
    assert (plane.where, plane.shown, plane.down) == (("y = 5",), (0, 2), True)
    beside = plane_of(variable.coordinates, variable.attributes | {"section": "w = 4.4"})
    assert (beside.where, beside.down) == (("z = 5",), False)


def test_a_field_says_what_is_drawn_to_the_right() -> None:
    grid = Grid((5, 3), axes=list("yz"))
    variable = variable_of(Field("v", grid, centre="y"), FieldStyle(along="y"))
    values = np.arange(18.0).reshape(6, 3)
    plane = plane_of(variable.coordinates, variable.attributes)
    assert [a.name for a in plane.axes] == ["z", "y_face"]
    assert plane.shown == (1, 0)
    assert (plane.laid(values) == values.T).all()
    assert plane.upwards(np.dtype("u1"))
    assert plane.upwards(values.dtype)
    last = plane_of(variable.coordinates, variable_of(Field("v", grid), FieldStyle(along="z")).attributes)
    assert not last.turned
    assert last.upwards(values.dtype)
    assert not last.upwards(np.dtype("u1"))


@pytest.mark.slow
def test_pictures_of_a_run(tmp_path: Path) -> None:
    fields = [Field("a", Grid((8, 8)), "u1"), Field("b", Grid((8, 8)))]
    store = FrameStore(tmp_path / "fields.zarr", variables_of(fields), {})
    for step in range(0, 101, 10):
        store.append(step, {"a": np.zeros((8, 8), "u1"), "b": np.full((8, 8), step, "f8")})
    drawn = draw_run(store.path, tmp_path / "pictures", most=3)
    assert [p.name for p in drawn] == [f"{name}-{step:03d}.png" for name in "ab" for step in (0, 50, 100)]
    (tmp_path / "pictures" / "b-049.png").touch()  # of a part of the run that was gone on with
    (tmp_path / "pictures" / "b-mine.png").touch()
    assert draw_run(store.path, tmp_path / "pictures", most=3) == drawn
    assert {p.name for p in (tmp_path / "pictures").iterdir()} == {"b-mine.png", *(p.name for p in drawn)}
    assert draw_run(store.path, tmp_path / "none", most=0) == []
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot write"):
        draw_run(store.path, tmp_path / "file")


@pytest.mark.slow
def test_one_axis_of_integers_is_a_space_time_diagram(tmp_path: Path) -> None:
    """A glider on one axis: each frame a row from the top, the first and last cells as wide as the others."""
    field = Field("cell", Grid((20,)), "u1")
    store = FrameStore(tmp_path / "fields.zarr", variables_of([field]), {})
    for step in range(20):
        store.append(step, {"cell": (np.arange(20) == step).astype("u1")})
    (path,) = draw_run(store.path, tmp_path / "pictures", most=3)
    assert path.name == "cell.png"
    assert dark_cells(path, 20, 20).tolist() == np.eye(20).tolist()


def test_one_frame_of_one_axis_is_a_strip(tmp_path: Path) -> None:
    variable = variable_of(Field("cell", Grid((20,)), "u1"))
    values = (np.arange(20) % 3 == 0).astype("u1")
    draw(tmp_path / "c.png", values, "cell", variable.coordinates, variable.attributes)
    assert dark_cells(tmp_path / "c.png", 1, 20).tolist() == [values.tolist()]


def dark_cells(path: Path, rows: int, columns: int) -> np.ndarray:
    """Which cells of a picture have the colour of state 1, by the pixels in their middles."""
    image = np.round(imread(path)[..., :3] * 255).astype(int)
    dark = abs(image - [0x1F, 0x3B, 0x57]).max(axis=2) <= 2
    high = max(40, 55 * rows)
    below = image.shape[0] - 50 - high
    middles = np.ix_(
        below + (np.arange(rows) * 2 + 1) * high // (2 * rows), 75 + (np.arange(columns) * 2 + 1) * 55 // 2
    )
    return dark[middles].astype(int)
