"""Cells that a model leaves out are not in its pictures, and do not stretch the colours of others."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from minga.output.store import FrameReader, FrameStore
from minga.output.variables import LEFT_OUT, variables_of
from minga.space.field import Field
from minga.space.grid import Grid
from minga.view.masked import shown_frame
from minga.view.raster import field_view


def test_solid_cells_have_no_values(tmp_path: Path) -> None:
    grid = Grid((4, 5), axes=("y", "x"))
    fields = [Field("kind", grid, "u1"), Field("c", grid), Field("v", grid, centre="y")]
    store = FrameStore(tmp_path / "fields.zarr", variables_of(fields), {LEFT_OUT: "kind"})
    kind, c = np.zeros((4, 5), "u1"), np.linspace(9.0, 10.0, 20).reshape(4, 5)
    kind[1:3, 2] = 1, 3
    c[kind > 0] = 0.0
    store.append(0, {"kind": kind, "c": c, "v": np.ones((5, 5))})
    reader = FrameReader.open(store.path)
    assert np.array_equal(np.isnan(shown_frame(reader, "c", 0)), kind > 0)
    assert np.array_equal(np.isnan(shown_frame(reader, "c", 0, (2,))), kind[2] > 0)
    assert np.array_equal(shown_frame(reader, "c", 0)[kind == 0], c[kind == 0])
    assert np.array_equal(shown_frame(reader, "kind", 0), kind)
    assert np.isfinite(shown_frame(reader, "v", 0)).all()
    view = field_view(reader, "c", [0])
    assert (view.scale.low, view.scale.high) == (9.0, 10.0)
    assert field_view(reader, "v", [0]).axes[0].axis == "y"
