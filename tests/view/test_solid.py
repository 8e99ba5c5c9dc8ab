"""Surfaces of solids: exact areas and volumes, the time at which cells became solid, the picture and the section."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from PIL import Image

from minga.output.variables import LEFT_OUT, Coordinate
from minga.view import solid as module
from minga.view.solid import Surface, solid_of, solid_picture, surface_of


@dataclass
class Frames:
    """Frames of the kinds of cells, as a reader of a store gives them."""

    kinds: np.ndarray[Any, Any]

    @property
    def attrs(self) -> dict[str, str]:
        return {LEFT_OUT: "kind"}

    @property
    def fields(self) -> tuple[str, ...]:
        return ("kind",)

    @property
    def steps(self) -> tuple[int, ...]:
        return tuple(10 * n for n in range(len(self.kinds)))

    def coordinates(self, field: str) -> tuple[Coordinate, ...]:
        return tuple(
            Coordinate(name, 0.5 + np.arange(length), {})
            for name, length in zip("yzx", self.kinds.shape[1:], strict=False)
        )

    def when(self, index: int) -> str:
        return f"step {self.steps[index]}, t = {index} s"

    def frame(self, field: str, index: int = -1) -> np.ndarray[Any, Any]:
        return self.kinds[index]


def growing(shape: tuple[int, ...] = (5, 4, 6)) -> Frames:
    """A column that gains a cell in each of three frames."""
    kinds = np.zeros((3, *shape), np.uint8)
    for number in range(3):
        kinds[(number, slice(0, number + 1), *[1] * (len(shape) - 1))] = 1
    return Frames(kinds)


def edges(*lengths: int) -> Any:
    return tuple(np.arange(length + 1.0) for length in lengths)


def volume(surface: Surface) -> float:
    """Volume inside, by the divergence theorem; positive only if corners run around faces in one sense."""
    a, b, c, d = (surface.points[surface.quads[:, k]] for k in range(4))
    area = 0.5 * np.cross(c - a, d - b)
    outwards = surface.normals[surface.quads].mean(axis=1)
    area *= np.sign((area * outwards).sum(axis=1, keepdims=True))
    return float((area * (a + b + c + d) / 4).sum() / 3)


def test_the_surface_of_a_block_is_closed_and_rounded() -> None:
    solid = np.zeros((6, 6, 6), bool)
    solid[1:4, 2:4, 1:5] = True
    surface = surface_of(solid, edges(6, 6, 6))
    assert len(surface.quads) == 2 * (3 * 2 + 2 * 4 + 3 * 4)
    assert len(surface.points) - 2 * len(surface.quads) + len(surface.quads) == 2
    # A block has the same shape at the ends of the grid.
    alone = surface_of(np.ones((3, 2, 4), bool), edges(3, 2, 4))
    assert volume(surface) == pytest.approx(volume(alone), rel=1e-12)
    assert 12.0 < volume(surface) < 24.0
    assert np.allclose((surface.normals**2).sum(axis=1), 1.0)
    middle = np.array([2.5, 3.0, 3.0])
    assert ((surface.points - middle) * surface.normals).sum(axis=1).min() > 0
    assert sorted(set(surface.cells.tolist())) == np.flatnonzero(solid).tolist()


def test_one_cell_shrinks_to_a_third_of_its_width() -> None:
    """Each corner of a cube moves to the mean of the middles of its three faces, 1/3 from each of them."""
    surface = surface_of(np.ones((1, 1, 1), bool), edges(1, 1, 1))
    assert sorted(map(tuple, surface.points.round(12).tolist())) == sorted(
        (round(a / 3 + 0.0, 12), round(b / 3, 12), round(c / 3, 12)) for a in (1, 2) for b in (1, 2) for c in (1, 2)
    )
    assert volume(surface) == pytest.approx(1.0 / 27.0, rel=1e-12)


def test_stretched_cells_keep_their_place() -> None:
    faces = (np.array([0.0, 1.0, 4.0]), np.array([0.0, 2.0]), np.array([0.0, 5.0]))
    surface = surface_of(np.ones((2, 1, 1), bool), faces)
    assert surface.points.min(axis=0) == pytest.approx([1 / 3, 0.5, 1.25])
    assert surface.points[:, 0].max() == pytest.approx((4.0 + 2.5 + 2.5) / 3)


def test_cells_know_when_they_became_solid() -> None:
    found = solid_of(growing())
    assert found is not None
    assert found.born[:, 1, 1].tolist() == [1, 2, 3, 0, 0]
    assert (found.born > 0).sum() == 3
    assert (found.steps, found.times) == ((0, 10, 20), ("t = 0 s", "t = 1 s", "t = 2 s"))
    assert found.palette.shape == (3, 3)


def test_other_runs_have_no_solid() -> None:
    assert solid_of(Frames(np.zeros((2, 3, 3, 3), np.uint8))) is None
    assert solid_of(growing((5, 4))) is None
    assert solid_of(Frames(np.zeros((0, 3, 3, 3), np.uint8))) is None


def test_large_grids_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CELLS", 20)
    found = solid_of(growing())
    assert found is not None
    assert found.born.shape == (3, 2, 3)
    assert [e[-1] for e in found.faces] == [5.0, 4.0, 6.0]
    assert found.faces[0].tolist() == [0.0, 2.0, 4.0, 5.0]


def test_the_picture_is_lit_and_coloured_by_time() -> None:
    solid = solid_of(growing())
    assert solid is not None
    image = np.asarray(Image.open(io.BytesIO(solid_picture(solid, 160))).convert("RGBA")).astype(int)
    assert image.shape == (160, 160, 4)
    assert (image[0, 0] == [0, 0, 0, 0]).all()
    shown = image[image[..., 3] > 0]
    # The first cells are purple, the last ones yellow.
    assert ((shown[:, 2] > shown[:, 1] + 20) & (shown[:, 0] < 90)).sum() > 20
    assert ((shown[:, 0] > shown[:, 2] + 60) & (shown[:, 1] > shown[:, 2] + 60)).sum() > 20
