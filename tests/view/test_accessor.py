"""Pictures and movies of the datasets that runs return."""

from __future__ import annotations

import contextlib
import io
import re
import threading
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import xarray

import minga as mg
from minga.view import accessor


@pytest.fixture(scope="module")
def history() -> Any:
    """A glider in a box of 8 x 12 cells, 5 frames."""
    start = np.zeros((8, 12), "u1")
    start[1, 2] = start[2, 3] = start[3, 1:4] = 1
    return mg.run(mg.automaton("B3/S23", (8, 12), init=start), steps=8, every=2)


def frames_of(content: bytes) -> list[np.ndarray]:
    with PIL.Image.open(io.BytesIO(content)) as image:
        found = []
        for number in range(getattr(image, "n_frames", 1)):
            image.seek(number)
            found.append(np.asarray(image.convert("L")))
        return found


@pytest.mark.slow
def test_a_movie_shows_every_frame(history: Any) -> None:
    movie = history.mg.movie(width=120)
    shown = frames_of(movie.content)
    assert len(shown) == 5
    for picture, cells in zip(shown, history.cell.values, strict=True):
        assert picture.shape == (80, 120)
        assert np.array_equal(picture[5::10, 5::10] < 128, cells == 1)
    assert repr(movie).startswith("<movie of cell, 5 frames; ")


@pytest.mark.slow
def test_notebooks_show_it_without_another_file(history: Any) -> None:
    for item, kind in ((history.mg.movie(width=24), "gif"), (history.mg.show(), "png")):
        found = re.search(rf'^<img src="data:image/{kind};base64,([^"]+)" alt="cell, ', item._repr_html_())
        assert found
        assert frames_of(b64decode(found[1]))


def test_a_movie_is_written(history: Any, tmp_path: Path) -> None:
    movie = history.mg.movie("cell", tmp_path / "glider.webp", fps=5)
    assert movie.path == tmp_path / "glider.webp"
    assert movie.path.read_bytes() == movie.content
    assert movie.kind == "image/webp"


@pytest.mark.slow
def test_pictures_of_all_frames_share_their_colours() -> None:
    model = mg.pde("-u", mg.Grid((4, 4)), initial=lambda y, x: y, integrator="euler", dt=0.5)
    history = mg.run(model, steps=2, every=1)
    first, last = (frames_of(history.mg.show(frame=n).png)[0] for n in (0, -1))
    alone = frames_of(history.isel(time=-1).mg.show().png)[0]
    assert not np.array_equal(last, alone)
    assert (first != last).any()


def test_a_picture_is_saved(history: Any, tmp_path: Path) -> None:
    picture = history.mg.show("cell", 0)
    assert picture.caption == "cell, step 0"
    assert picture.save(tmp_path / "first.png").read_bytes() == picture.png
    with pytest.raises(mg.CaseError, match=r"a picture is a \.png file, found 'first\.jpg'"):
        picture.save(tmp_path / "first.jpg")


def test_a_selection_of_one_time_has_a_picture(history: Any) -> None:
    assert history.isel(time=1).mg.show().caption == "cell, step 2"


@pytest.mark.slow
def test_frames_on_the_disk_look_the_same(history: Any, in_tmp_path: Path) -> None:
    model = mg.pde("laplace(u)", mg.Grid((4, 6)), initial=lambda y, x: y * x, integrator="euler", dt=0.1)
    memory, disk = mg.run(model, steps=4, every=2), mg.run(model, steps=4, every=2, out="run")
    assert memory.mg.show().png == disk.mg.show().png
    assert memory.mg.movie().content == disk.mg.movie().content


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda h: h.mg.show("cel"), "no field 'cel'; it has cell"),
        (lambda h: h.mg.show(frame=5), "no frame 5: it has 5, numbered from 0"),
        (lambda h: h.mg.movie(fps=0), "fps: expected 0.1 to 50 frames per second"),
        (lambda h: h.mg.movie(width=1), "width: expected 16 to 4096 pixels"),
        (lambda h: h.mg.movie(out="a.avi"), "suffix of a movie"),
        (lambda h: h.drop_vars("cell").mg.show(), "the dataset has no fields"),
        (lambda h: h.expand_dims("D").mg.show(), r"has the axes D beside time"),
        (lambda h: h.drop_vars("time").mg.show(), "no coordinate 'time'"),
    ],
)
def test_errors_say_what_is_wrong(history: Any, call: Any, message: str) -> None:
    with pytest.raises(mg.CaseError, match=message):
        call(history)


@pytest.mark.slow
def test_a_run_that_is_opened_has_pictures(in_tmp_path: Path) -> None:
    made = mg.run(mg.automaton("B3/S23", (8, 8), init=np.eye(8, dtype="u1")), steps=2, out="run")
    assert mg.open("run").mg.show().png == made.mg.show().png


def test_virtual_ranks_add_the_attribute_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread that registers waits for another one, so that two do if two can."""
    both = threading.Barrier(2)
    added = []

    def register(name: str) -> Any:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.2)
        return added.append

    monkeypatch.setattr(xarray, "register_dataset_accessor", register)
    accessor._add.cache_clear()
    threads = [threading.Thread(target=accessor.add_to_datasets) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert added == [accessor.DatasetView]
