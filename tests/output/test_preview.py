"""The small picture of a running field: the same however it is cut, taken only while somebody looks."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import minga as mg
from minga.output import preview as module
from minga.output.directory import RunDirectory
from minga.output.preview import Preview, WatchDetector, read_preview, stride_of, take_preview, write_preview


def model(shape: tuple[int, ...], dtype: str, values: np.ndarray) -> mg.Model:
    """A model that does nothing to its one field."""
    u = mg.Field("u", mg.Grid(shape), dtype)
    step = mg.Program("step")
    step.call(lambda engine: None, reads=[u], writes=[u])
    return mg.Model(name="still", grid=u.grid, fields=(u,), step=step, initial={"u": values})


def previews(case: mg.Model, ranks: int, layout: str) -> Preview:
    def body(comm: mg.SerialComm) -> Preview | None:
        with mg.Engine(case.layouts(layout, ranks), comm=comm) as engine:
            mg.drive(case, engine, 0)
            return take_preview(case, engine, 7, "u")

    first, *others = mg.run_virtual(ranks, body)
    assert first is not None
    assert others == [None] * (ranks - 1)
    return first


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((700,), "i4"), ((1023, 40), "u1"), ((3, 513, 40), "i4"), ((513, 70), "f8"), ((40, 530), "bool")],
)
def test_a_preview_is_the_same_however_the_field_is_cut(shape: tuple[int, ...], dtype: str) -> None:
    values = np.random.default_rng(3).integers(-5 if dtype in ("i4", "f8") else 0, 2, shape).astype(dtype)
    plane = values[len(values) // 2] if values.ndim == 3 else values
    stride = stride_of(shape)
    assert stride == 2
    if dtype == "f8":
        expected = plane[tuple(slice(1, None, 2) for _ in plane.shape)]
        odd = [(0, n % 2) for n in plane.shape]  # the last cell stands for itself where it is alone
        filled = np.pad(plane, odd, mode="edge")
        expected = filled[tuple(slice(1, None, 2) for _ in plane.shape)]
    else:
        filled = np.pad(plane, [(0, n % 2) for n in plane.shape], mode="edge")
        expected = filled
        for axis in range(plane.ndim):
            expected = np.maximum.reduceat(expected, np.arange(0, expected.shape[axis], 2), axis)
    for ranks, layout in ((1, "single"), (2, "blocks:3")):
        found = previews(model(shape, dtype, values), ranks, layout)
        assert (found.field, found.step, found.stride) == ("u", 7, 2)
        assert found.values.dtype == values.dtype
        assert (found.values == expected).all(), (ranks, layout)


def test_a_section_is_seen_where_the_field_is_cut() -> None:
    values = np.random.default_rng(4).random((12, 20, 9)).astype("f4")
    u = mg.Field("u", mg.Grid(values.shape, spacing=2.0), "f4")
    step = mg.Program("step")
    step.call(lambda engine: None, reads=[u], writes=[u])
    look = mg.Presentation({"u": mg.FieldStyle(section=("y", 25.2))})
    case = mg.Model(name="still", grid=u.grid, fields=(u,), step=step, initial={"u": values}, presentation=look)
    for ranks, layout in ((1, "single"), (3, "blocks:3")):
        assert (previews(case, ranks, layout).values == values[:, 12]).all(), ranks


def test_packed_cells_are_seen_as_cells() -> None:
    case = mg.automaton("B3/S23", (600, 1024), init={"soup": 0.01, "seed": 2})
    whole = mg.run(case, steps=0).cell.values[0]
    expected = np.maximum.reduceat(np.maximum.reduceat(whole, range(0, 600, 2), 0), range(0, 1024, 2), 1)
    for ranks in (1, 4):

        def body(comm: mg.SerialComm, ranks: int = ranks) -> Preview | None:
            with mg.Engine(case.layouts("cartesian", ranks), comm=comm) as engine:
                mg.drive(case, engine, 0)
                return take_preview(case, engine, 0, "no such field")

        found = mg.run_virtual(ranks, body)[0]
        assert found is not None
        assert found.field == "cell"
        assert (found.values == expected).all()


def test_written_and_read_back(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    assert read_preview(directory) is None
    write_preview(directory, Preview("a field/with=signs", 12, 3, np.arange(6.0).reshape(2, 3)))
    found = read_preview(directory)
    assert found is not None
    assert (found.field, found.step, found.stride) == ("a field/with=signs", 12, 3)
    assert found.values.tolist() == [[0, 1, 2], [3, 4, 5]]
    directory.preview.write_bytes(directory.preview.read_bytes()[:100])
    assert read_preview(directory) is None


def test_a_disk_that_refuses_ends_nothing(tmp_path: Path) -> None:
    write_preview(RunDirectory(tmp_path / "missing"), Preview("u", 0, 1, np.zeros((2, 2))))
    assert not (tmp_path / "missing").exists()


def test_nothing_of_it_is_left_when_a_run_is_over(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    write_preview(directory, Preview("u", 0, 1, np.zeros((2, 2))))
    directory.watching.write_text("u\n")
    directory.series.write_text("{}")
    (tmp_path / ".ledger.json.partial").write_text("{")  # of a process that was killed
    directory.settle()
    assert [path.name for path in tmp_path.iterdir()] == ["series.json"]


def test_looks_are_rare_and_end_with_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    directory = RunDirectory(tmp_path)
    detector = WatchDetector(directory)
    assert not detector()
    directory.watching.write_text("u\n")
    os.utime(directory.watching, (5, 5))  # a clock that is far off on the machine of the reader
    assert not detector()  # asked a moment ago
    now += 1.1
    assert detector()
    assert detector.field == "u"
    assert not detector()
    for _ in range(4):
        now += 1.1
        assert detector()  # within five seconds of the last sign
    now += 1.1
    assert not detector()
    os.utime(directory.watching, (9, 9))
    now += 1.1
    assert detector()
    detector.took(0.5)  # half a second: ten until the next
    now += 9
    os.utime(directory.watching, (10, 10))
    assert not detector()
    now += 2
    assert detector()
    directory.watching.unlink()
    now += 2
    assert not detector()
    assert detector.field == ""
