"""Sections through a flow: velocities on faces become streamlines and a vorticity that is right."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from minga.output.directory import RunDirectory
from minga.output.store import FrameReader, FrameStore
from minga.output.variables import CONSERVED, LEFT_OUT, VELOCITY, variables_of
from minga.output.velocity import at_centres, velocity_of
from minga.space.field import Field
from minga.space.grid import Grid
from minga.view.flow import flow_pictures, section_of
from minga.view.report import write_report
from run_files import put

OMEGA = 3.0


def turning(grid: Grid, up: str, right: str) -> dict[str, np.ndarray]:
    """A body of fluid that turns from `right` towards `up`, on the faces of a grid."""
    values = {}
    for axis in grid.axes:
        places = [grid.faces(a) if a == axis else grid.centres(a) for a in grid.axes]
        mesh = dict(zip(grid.axes, np.meshgrid(*places, indexing="ij"), strict=True))
        flow = {up: OMEGA * mesh[right], right: -OMEGA * mesh[up]}
        values[f"v_{axis}"] = flow.get(axis, np.zeros([len(p) for p in places]))
    return values


def store(path: Path, grid: Grid, values: dict[str, np.ndarray]) -> FrameReader:
    fields = [Field(f"v_{a}", grid, centre=a, unit="m/s") for a in grid.axes]
    about = {VELOCITY: " ".join(values), CONSERVED: "ions, charge"}
    frames = FrameStore(path, variables_of(fields), about)
    frames.append(0, {name: np.zeros_like(v) for name, v in values.items()})
    frames.append(40, values)
    return FrameReader.open(path)


@pytest.mark.parametrize(("shape", "axes"), [((12, 9), "yz"), ((12, 9, 7), "yzx")])
def test_a_turning_body_has_twice_its_speed_as_vorticity(tmp_path: Path, shape: tuple[int, ...], axes: str) -> None:
    widths = 0.01 * (1 + np.arange(shape[0]) % 3)
    grid = Grid(shape, axes=list(axes), spacing=[widths, *[0.02] * (len(axes) - 1)], units="m")
    reader = store(tmp_path / "fields.zarr", grid, turning(grid, "z", "y"))
    names = velocity_of(reader)
    assert names == tuple(f"v_{a}" for a in axes)
    centres = [next(c for n in names for c in reader.coordinates(n) if c.name == a) for a in axes]
    parts = [at_centres(reader, name, k, centres[k].values) for k, name in enumerate(names)]
    found = section_of(parts, centres, up=1, right=0)
    assert found.axes == ("z", "y")
    assert found.vorticity.shape == (9, 12)
    assert found.vorticity == pytest.approx(2 * OMEGA)
    assert found.where == ("" if len(axes) == 2 else "x = 0.07")


@pytest.mark.slow
def test_the_report_has_the_flow_and_an_audit(tmp_path: Path) -> None:
    grid = Grid((24, 8, 4), axes=list("yzx"), spacing=0.01, units="m")
    values = turning(grid, "z", "y")
    reader = store(tmp_path / "fields.zarr", grid, values)
    pictures = dict(flow_pictures(reader))
    assert [words.rpartition(", ")[2] for words in pictures] == ["x = 0.025", "z = 0.045"]
    for picture in pictures.values():
        assert len(np.unique(np.asarray(PIL.Image.open(io.BytesIO(picture)).convert("RGB")).reshape(-1, 3), axis=0)) > 9
    put(tmp_path / "series.json", {"step": [0, 40], "ions": [4.0, 4.0], "charge": [2.0, 2.5]})
    text = write_report(RunDirectory(tmp_path)).read_text()
    assert "Streamlines over vorticity after step 40" in text
    assert "<td>ions</td><td>4</td><td>4</td><td>none</td>" in text
    assert "<td>charge</td><td>2</td><td>2.5</td><td>+2.50e-01</td>" in text


def test_no_streamline_runs_through_what_is_solid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finger in a fluid that streams along it, and whose velocities, read between faces, do not end at it."""
    from matplotlib.axes import Axes

    drawn = []
    plain = Axes.streamplot

    def seen(self: Axes, *arguments: Any, **options: Any) -> Any:
        drawn.append(plain(self, *arguments, **options))
        return drawn[-1]

    monkeypatch.setattr(Axes, "streamplot", seen)
    grid = Grid((24, 12), axes=["y", "z"], spacing=1.0)
    kinds = np.zeros(grid.shape, np.uint8)
    kinds[6:18, 4:8] = 1
    kind = Field("kind", grid, "u1")
    fields = [Field("v_y", grid, centre="y"), Field("v_z", grid, centre="z"), kind]
    frames = FrameStore(tmp_path / "a.zarr", variables_of(fields), {VELOCITY: "v_y v_z", LEFT_OUT: "kind"})
    frames.append(0, {"v_y": np.ones((25, 12)), "v_z": np.full((24, 13), 0.1), "kind": kinds})
    assert len(dict(flow_pictures(FrameReader.open(tmp_path / "a.zarr")))) == 1
    points = np.concatenate(drawn[0].lines.get_segments())
    assert len(points) > 100
    inside = (points[:, 0] > 6.5) & (points[:, 0] < 17.5) & (points[:, 1] > 4.5) & (points[:, 1] < 7.5)
    assert not inside.any()


def test_runs_without_a_velocity_have_no_pictures_of_one(tmp_path: Path) -> None:
    grid = Grid((6, 5), axes=list("yz"))
    fields = [Field("v_y", grid, centre="y")]
    frames = FrameStore(tmp_path / "a.zarr", variables_of(fields), {VELOCITY: "v_y v_z"})  # v_z was not kept
    frames.append(0, {"v_y": np.zeros((7, 5))})
    reader = FrameReader.open(tmp_path / "a.zarr")
    assert velocity_of(reader) == ()
    assert list(flow_pictures(reader)) == []
