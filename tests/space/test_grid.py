"""Grids: coordinates, staggered points, periodic images and shifted tori."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minga.errors import LayoutError
from minga.space.box import Box
from minga.space.grid import Grid


def test_axes_are_named_from_the_last_letters():
    assert [Grid((2,) * n).axes for n in (1, 2, 3, 4)] == [
        ("x",), ("y", "x"), ("z", "y", "x"), ("w", "z", "y", "x"),
    ]  # fmt: skip
    grid = Grid((4, 5, 6), axes=("depth", "lat", "lon"))
    assert grid.axis("lat") == grid.axis(1) == grid.axis(-2) == 1
    with pytest.raises(LayoutError, match=r"no axis 'lot'; its axes are depth, lat, lon[\s\S]*'lo"):
        grid.axis("lot")
    with pytest.raises(LayoutError, match="no axis 3"):
        grid.axis(3)


def test_uniform_and_stretched_coordinates():
    widths = np.array([1.0, 2.0, 4.0])
    grid = Grid((4, 3), spacing=(0.5, widths), origin=(1.0, 10.0), units=("m", "s"))
    assert grid.faces("y").tolist() == [1.0, 1.5, 2.0, 2.5, 3.0]
    assert grid.centres("y").tolist() == [1.25, 1.75, 2.25, 2.75]
    assert grid.widths("y").tolist() == [0.5] * 4
    assert grid.faces("x").tolist() == [10.0, 11.0, 13.0, 17.0]
    assert grid.centres("x").tolist() == [10.5, 12.0, 15.0]
    assert grid.widths("x").tolist() == widths.tolist()
    assert all(f("x").dtype == np.float64 for f in (grid.faces, grid.centres, grid.widths))
    assert repr(grid) == "Grid(4 y x 3 x; spacing 0.5 x 1..4; origin (1.0, 10.0); units m, s)"


def test_a_grid_is_a_value():
    grid = Grid((8, 8), periodic=True, shift={"y": {"x": 3}}, label="pressure")
    assert grid == Grid([8, 8], periodic=(True, True), shift=((0, 3), (0, 0)), label="pressure")
    assert hash(grid) == hash(pickle.loads(pickle.dumps(grid)))
    assert grid != grid.relabel("velocity")
    assert grid.relabel("velocity").shift == grid.shift
    assert repr(grid) == "Grid(8 y x 8 x; spacing 1; periodic y, x; y shifts x by +3; label 'pressure')"


def test_coarsening_sums_widths_in_pairs():
    grid = Grid((6, 5, 3), spacing=(0.5, 0.5, (1.0, 2.0, 4.0)), label="level 0")
    coarse = grid.coarsen()
    assert coarse.shape == (3, 3, 2)
    assert coarse.spacing == (1.0, (1.0, 1.0, 0.5), (3.0, 4.0))
    assert coarse.label == "level 0"
    for axis in range(3):
        assert coarse.faces(axis)[-1] == grid.faces(axis)[-1]
        assert coarse.faces(axis)[:-1].tolist() == grid.faces(axis)[:-1:2].tolist()
    assert grid.coarsen((1, 5, 3)).spacing == (0.5, 2.5, (7.0,))


def test_a_shifted_torus_coarsens_only_by_whole_shifts():
    grid = Grid((7, 8), periodic=True, shift={"y": {"x": 6}})
    assert grid.coarsen().shift == ((0, 3), (0, 0))
    with pytest.raises(LayoutError, match="shift of 6 cannot be coarsened by 4"):
        grid.coarsen(4)


def test_points_of_cells_faces_and_nodes():
    grid = Grid((4, 5), periodic=(True, False))
    assert grid.points((0, 0)) == grid.box == Box.of((4, 5))
    assert grid.points((1, 1)) == Box.of((4, 6))
    with pytest.raises(LayoutError, match="centre needs a bit"):
        grid.points((1,))


def test_a_projected_grid_keeps_what_belongs_to_its_axes():
    grid = Grid((4, 5, 6), spacing=(1, 2, 3), periodic=True, shift={"z": {"x": 2, "y": 1}})
    across = grid.project((0, 2))
    assert (across.shape, across.axes, across.spacing) == ((4, 6), ("z", "x"), (1.0, 3.0))
    assert across.shift == ((0, 2), (0, 0))
    assert not grid.project((1, 2)).twisted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": ()}, "1 to 4 axes"),
        ({"shape": (1, 1, 1, 1, 1)}, "1 to 4 axes"),
        ({"shape": (3, 0)}, "at least one cell"),
        ({"shape": (3, 3), "axes": ("x", "x")}, "2 different axis names"),
        ({"shape": (3, 3), "spacing": (1.0,)}, "spacing needs one entry for each of 2 axes; found 1"),
        ({"shape": (3,), "spacing": np.ones(3)}, r"spacing=\[widths\]"),
        ({"shape": (3,), "spacing": [np.ones(4)]}, "has 3 cells, but its spacing has shape"),
        ({"shape": (3,), "spacing": -1.0}, "positive and finite"),
        ({"shape": (3,), "spacing": [(1.0, float("nan"), 1.0)]}, "positive and finite"),
        ({"shape": (3, 3), "shift": {"y": {"x": 1}}, "periodic": (True, False)}, "x is not periodic"),
        ({"shape": (3, 3), "shift": {"y": {"y": 1}}, "periodic": True}, "along itself"),
        ({"shape": (3, 3), "shift": {"y": {"x": 1}, "x": {"y": 1}}, "periodic": True}, "in a circle"),
        ({"shape": (3, 3), "shift": {"z": {"x": 1}}, "periodic": True}, "no axis 'z'"),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(options, message):
    with pytest.raises(LayoutError, match=message):
        Grid(**options)


def test_images_of_an_interior_box_and_of_wide_halos():
    grid = Grid((4, 5), periodic=(True, False))
    assert grid.images(Box((1, 1), (2, 2)), grid.box) == [(0, 0)]
    assert grid.images(Box((-9, 0), (6, 5)), grid.box) == [(0, 0), (-12, 0), (-8, 0), (-4, 0), (4, 0)]
    assert grid.images(Box((4, 0), (5, 9)), grid.box) == [(4, 0)]
    assert grid.images(Box((0, 5), (4, 9)), grid.box) == []
    assert grid.images(Box((0, 0), (0, 5)), grid.box) == []


def around(grid: Grid) -> list[list[int]]:
    """Each cell's number from 0, in a frame one cell wider than the grid on all sides."""
    numbers = np.arange(grid.size).reshape(grid.shape)
    frame = np.full([n + 2 for n in grid.shape], -1)
    for index in np.ndindex(frame.shape):
        cell = tuple(i - 1 for i in index)
        (t,) = grid.images(Box(cell, tuple(c + 1 for c in cell)), grid.box)
        frame[index] = numbers[tuple(c - s for c, s in zip(cell, t, strict=True))]
    return frame.tolist()


def test_a_shifted_torus_is_golly_s():
    # The diagram beside JoinShiftedEdges in Golly's lifealgo.cpp for :T4+1,3, its letters a..l numbered from 0.
    golly = ["klijkl", "dabcda", "hefghe", "lijkli", "abcdab"]
    grid = Grid((3, 4), periodic=True, shift={"y": {"x": 1}})
    assert around(grid) == [[ord(c) - ord("a") for c in row] for row in golly]
    # Left and right edges shifted instead: the same diagram transposed.
    flipped = Grid((4, 3), periodic=True, shift={"x": {"y": 1}})
    letters = np.array([list(row) for row in golly]).T
    inner = {c: n for n, c in enumerate(letters[1:-1, 1:-1].ravel())}
    assert around(flipped) == [[inner[c] for c in row] for row in letters]


@given(
    shape=st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4)),
    order=st.permutations(range(3)),
    cells=st.tuples(*[st.integers(-7, 7)] * 3),
    low=st.tuples(*[st.integers(-9, 9)] * 3),
)
def test_images_tile_all_of_space_once(shape, order, cells, low):
    a, b, c = order
    shift = np.zeros((3, 3), int)
    shift[a, b], shift[a, c], shift[b, c] = cells
    grid = Grid(shape, periodic=True, shift=shift.tolist())
    reach = Box(low, tuple(l + 3 for l in low))
    images = grid.images(reach, grid.box)
    hits = np.zeros((3, 3, 3), int)
    for t in images:
        piece = grid.box.shift(t) & reach
        assert not piece.empty
        hits[piece.slices(low)] += 1
    assert (hits == 1).all()
    assert images == sorted(images, key=lambda t: (any(t), t))


def test_nodes_lie_in_cells_where_they_are_given() -> None:
    grid = Grid((3, 4), spacing=[1.0, [0.5, 2.0, 2.0, 0.5]], nodes=[[0.5, 1.5, 2.5], [0.0, 1.0, 4.0, 5.0]])
    assert grid.nodes == (None, (0.0, 1.0, 4.0, 5.0))  # the middles of cells are no news
    assert list(grid.positions("x")) == [0.0, 1.0, 4.0, 5.0]
    assert list(grid.centres("x")) == [0.25, 1.5, 3.5, 4.75]
    assert list(grid.positions("y")) == list(grid.centres("y"))
    assert grid.place(4) == "cell (1, 0) (y = 1.5, x = 0)"
    assert grid.project([1]).nodes == (grid.nodes[1],)
    assert grid.coarsen().nodes == (None, None)
    for wrong in ([0.0, 1.0, 4.0], [0.0, 0.2, 4.0, 5.0], [0.0, 1.0, 4.0, 5.1]):
        with pytest.raises(LayoutError, match="nodes along axis x"):
            Grid((3, 4), spacing=[1.0, [0.5, 2.0, 2.0, 0.5]], nodes=[None, wrong])


# Angles --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("geometry", "axes", "spacing", "origin", "periodic", "says"),
    [
        ("polar", ("r", "phi"), 1.0, 0.0, (False, True), "phi runs from 0 to 20, more than once around"),
        (
            "cylindrical",
            ("r", "phi"),
            (1.0, 0.2),
            0.0,
            (False, True),
            "periodic after 4 rad, which is no whole fraction",
        ),
        ("spherical", ("r", "theta"), 1.0, 0.0, False, "theta, the angle from the polar axis, runs from 0 to 20"),
        ("spherical", ("r", "theta"), (1.0, 0.01), (0.0, -0.1), False, "runs from -0.1 to 0.1"),
        ("spherical", ("r", "theta"), (1.0, np.pi / 20), 0.0, (False, True), "'theta' of a spherical grid is periodic"),
    ],
)
def test_angles_that_are_none_or_do_not_close(
    geometry: Any, axes: tuple[str, ...], spacing: Any, origin: Any, periodic: Any, says: str
) -> None:
    with pytest.raises(LayoutError, match=says) as error:
        Grid((4, 20), axes, spacing=spacing, origin=origin, periodic=periodic, geometry=geometry)
    assert error.value.remedy


@pytest.mark.parametrize("part", [1, 2, 3, 6])
def test_a_whole_fraction_of_a_circle_is_periodic(part: int) -> None:
    uniform = Grid((4, 7), spacing=(1.0, 2 * np.pi / part / 7), periodic=(False, True), geometry="polar")
    widths = np.linspace(1.0, 2.0, 7)
    uneven = Grid(
        (4, 7), spacing=(1.0, widths / widths.sum() * 2 * np.pi / part), origin=(0.0, -np.pi), periodic=(False, True),
        geometry="polar",
    )  # fmt: skip
    assert uniform.periodic[1]
    assert uneven.periodic[1]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"periodic": "x"}, r"periodic=\(False, True\)"),
        ({"periodic": ("y", "x")}, r"periodic=\(True, True\)"),
        ({"periodic": (0, 3)}, "expected True or False"),
        ({"periodic": None}, "expected one entry for all axes"),
        ({"units": 3}, "3 is no text"),
        ({"units": None}, "expected one entry for all axes"),
        ({"units": ("m", None)}, "None is no text"),
    ],
)
def test_answers_and_units_are_no_other_values(options, expected):
    with pytest.raises(LayoutError, match=expected):
        Grid((20, 24), **options)
    assert Grid((20, 24), periodic=(1, np.bool_(False))).periodic == (True, False)
