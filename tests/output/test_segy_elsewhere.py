"""Volumes in SEG-Y, as segyio reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import minga as mg
from minga.output.directory import RunDirectory
from minga.output.segy_frame import write_frame
from minga.output.store import FrameReader


@pytest.mark.filterwarnings("default")  # of other tools
def test_segyio_reads_a_volume(tmp_path: Path) -> None:
    segyio = pytest.importorskip("segyio", reason="needs segyio: pip install segyio")
    values = np.random.default_rng(3).random((4, 5, 6))
    grid = mg.Grid((4, 5, 6), spacing=(2.0, 3.0, 5.0))
    model = mg.Model("still", grid, (mg.Field("u", grid),), mg.Program("step"), initial={"u": values})
    mg.run(model, steps=1, out=tmp_path / "run")
    write_frame(FrameReader.open(RunDirectory(tmp_path / "run").fields), "u", -1, tmp_path / "u.sgy")
    with segyio.open(str(tmp_path / "u.sgy")) as file:
        assert np.array_equal(segyio.tools.cube(file), values.transpose(1, 2, 0).astype("f4"))
        assert (file.ilines.tolist(), file.xlines.tolist()) == ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6])
        key = segyio.TraceField
        assert np.diff(file.samples).tolist() == [2.0, 2.0, 2.0]
        scale = -np.unique(file.attributes(key.SourceGroupScalar)[:]).item()
        y, x = (file.attributes(name)[:] / scale for name in (key.CDP_Y, key.CDP_X))
        assert x.tolist() == np.tile(2.5 + 5 * np.arange(6), 5).tolist()
        assert y.tolist() == np.repeat(1.5 + 3 * np.arange(5), 6).tolist()
