"""What is kept, how it is cut, and as which bytes."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import numpy as np
import pytest
import xarray

import minga as mg
from minga.errors import CaseError
from minga.options import OutputSettings, RunOptions
from minga.output.snapshots.chunks import chunks_of, slab_shape, writer_of
from minga.output.snapshots.codec import check_snapshots, encoder
from minga.output.snapshots.selection import selections_of
from minga.output.snapshots.snapshots import Snapshots
from minga.output.variables import variable_of
from minga.space.box import Box
from minga.space.field import Field
from minga.space.grid import Grid

GRID = Grid((8, 9), spacing=(0.5, 2.0))


def test_slabs_are_as_few_and_as_even_as_may_be() -> None:
    assert slab_shape((10, 4), 4, 1 << 20) == (10, 4)
    assert slab_shape((10, 4), 4, 64) == (4, 4)  # three slabs of at most 4 rows
    assert slab_shape((10, 4), 4, 1) == (1, 4)
    assert slab_shape((0, 5), 8, 100) == (1, 5)
    for rows in range(1, 40):
        chunks = chunks_of(variable_of(Field("u", Grid((rows, 3)), "f8")), 5 * 24)
        assert [c.box.lo[0] for c in chunks[1:]] == [c.box.hi[0] for c in chunks[:-1]]
        assert (chunks[0].box.lo[0], chunks[-1].box.hi[0]) == (0, rows)
        assert len(chunks) == -(-rows // 5)


def test_chunks_in_a_row_go_to_one_writer() -> None:
    assert writer_of(5, [0]).tolist() == [0] * 5
    assert writer_of(5, [6, 7]).tolist() == [6, 6, 6, 7, 7]
    assert writer_of(2, [3, 4, 5]).tolist() == [3, 4]


def test_kept_points_have_the_positions_of_the_grid() -> None:
    field = Field("flux", GRID, centre="x", on=Box((2, 1), (8, 10)))
    (kept,) = selections_of([field], OutputSettings(region={"y": (3, 7), "x": (0, 4)}, decimate=2))
    assert kept.box == Box((3, 1), (7, 5))
    assert kept.shape == (2, 2)
    assert [c.values.tolist() for c in kept.variable.coordinates] == [[1.75, 2.75], [2.0, 6.0]]
    values = np.arange(72).reshape(8, 9)
    # A block that begins in the middle of a stride.
    mine = kept.indices(Box((4, 2), (8, 9)))
    assert mine == Box((1, 1), (2, 2))
    assert values[kept.slices(mine, (0, 0))].tolist() == [[5 * 9 + 3]]


@pytest.mark.parametrize(("settings", "text"), [
    ({"region": {"xx": (0, 1)}}, "no axis 'xx'"),
    ({"decimate": {"z": 2}}, "no axis 'z'"),
    ({"region": {"x": (4, 4)}}, "0 to 9"),
    ({"region": {"x": (0, 10)}}, "not part of its cells"),
    ({"region": {"y": (0, 2)}}, "no point of the field 'part'"),
    ({"codec": "zfp"}, "type f4 and f8, found uint8"),
])  # fmt: skip
def test_what_cannot_be_kept(settings: dict[str, object], text: str) -> None:
    part = Field("part", GRID, "u1", on=Box((4, 0), (8, 9)))
    with pytest.raises(CaseError, match=text):
        check_snapshots([part], OutputSettings(**settings))  # type: ignore[arg-type]


def test_numbers_that_make_no_sense() -> None:
    for name, value in (("buffers", 1), ("writers", -1)):
        with pytest.raises(CaseError, match=rf"{name}={value}: expected a whole number of at least"):
            RunOptions.of(steps=1, **{name: value})


def test_without_the_library_zfp_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zfpy", None)
    with pytest.raises(CaseError, match="zfp needs the library zfpy") as caught:
        check_snapshots([Field("u", GRID, "f4")], OutputSettings(codec="zfp"))
    assert "zfpy==1.0.1" in str(caught.value)


def test_the_tolerance_of_zfp_is_part_of_the_largest_magnitude(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, bool]] = []

    def compress_numpy(values: np.ndarray, tolerance: float, write_header: bool) -> bytes:
        asked.append((tolerance, write_header))
        return b"x"

    monkeypatch.setitem(sys.modules, "zfpy", types.SimpleNamespace(compress_numpy=compress_numpy))
    monkeypatch.setitem(sys.modules, "numcodecs.zfpy", types.SimpleNamespace(ZFPY=None))
    encode = encoder(OutputSettings(codec="zfp", accuracy=1e-3), np.dtype("f4"))
    assert encode is not None
    encode(np.array([1.0, -4.0], "f4"))
    encode(np.zeros(3, "f4"))
    assert asked == [(4e-3, True), (1.0, True)]
    with pytest.raises(CaseError, match="not finite"):
        encode(np.array([np.nan], "f4"))


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr")
def test_zfp_keeps_its_accuracy(tmp_path: Path) -> None:
    pytest.importorskip("zfpy", reason="needs zfpy: pip install zfpy==1.0.1", exc_type=ImportError)
    model = mg.Model(
        name="still", grid=GRID, fields=(field := Field("u", GRID, "f4"),), step=mg.Program("step"), initial={"u": 0.0}
    )
    snapshots = Snapshots(
        tmp_path / "s.zarr", model, [field], OutputSettings(codec="zfp", accuracy=1e-3), mg.SerialComm()
    )
    values = np.random.default_rng(2).normal(0, 50, GRID.shape).astype("f4")
    with mg.Engine(model.layouts("single", 1)) as engine:
        engine.set(field, values)
        snapshots.take(0, engine)
        snapshots.close()
    with xarray.open_zarr(tmp_path / "s.zarr") as found:
        assert np.abs(found.u[0].values - values).max() <= 1e-3 * np.abs(values).max()
    assert snapshots.counters.bytes < snapshots.counters.raw_bytes
