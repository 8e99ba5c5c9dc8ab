"""Where and when the values of an exported file are: read back at positions and times, whatever the order of the file.

VTK's own readers (`pip install vtk`) agree with the rules by which these files are read here.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray

import minga as mg
from minga.cli.export import export
from minga.errors import ProgramError
from minga.output.store import FrameReader, FrameStore
from minga.output.variables import VELOCITY, variables_of

At = Callable[[float, float, float], float]
"""The value of the cell in which a point (z, y, x) lies, z upwards."""

DEEP = mg.Grid((4, 5, 6), spacing=(10.0, 20.0, 30.0), origin=(-5.0, 0.0, -15.0), units="m", down="z")
FRAMES = [np.random.default_rng(k).random(DEEP.shape).astype("f4") for k in range(3)]
TIMES = [0.0, 0.03, 0.0625]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of a field below ground, whose steps have different lengths."""
    (path := tmp_path / "run").mkdir()
    clock = mg.Clock(time=mg.Register("t"), unit="ms")
    store = FrameStore(path / "fields.zarr", variables_of([mg.Field("p", DEEP, "f4")]), {}, clock)
    for k, values in enumerate(FRAMES):
        store.append(10 * k, {"p": values}, TIMES[k])
    return path


def header(path: Path) -> tuple[ElementTree.Element, bytes]:
    """The XML of a VTK file, and the bytes of its values."""
    head, _, rest = path.read_bytes().partition(b'<AppendedData encoding="raw">\n   _')
    return ElementTree.fromstring(head + b"<AppendedData/></VTKFile>"), rest


def numbers(text: str | None) -> list[float]:
    return [float(word) for word in (text or "").split()]


def rectilinear(path: Path) -> tuple[At, float]:
    root, rest = header(path)

    def array(found: ElementTree.Element) -> np.ndarray:
        start = int(found.get("offset") or 0)
        size = int(np.frombuffer(rest, "u8", 1, start)[0])
        kind = {"Float32": "<f4", "Float64": "<f8"}[found.get("type") or ""]
        return np.frombuffer(rest[start + 8 : start + 8 + size], kind)

    edges = [array(found) for found in root.iterfind(".//Coordinates/DataArray")][::-1]
    assert all((np.diff(edge) > 0).all() for edge in edges)
    (cells,) = root.iterfind(".//CellData/DataArray")
    values = array(cells).reshape([len(edge) - 1 for edge in edges])

    def at(*point: float) -> float:
        return float(values[tuple(int(np.searchsorted(e, p)) - 1 for e, p in zip(edges, point, strict=True))])

    return at, float(root.findtext(".//FieldData/DataArray") or "nan")


def test_depth_is_below_in_vtk(run: Path) -> None:
    export(run, "p", "vtr", run / "p.vtr", "1")
    at, time = rectilinear(run / "p.vtr")
    assert time == TIMES[1]
    for cell in ((0, 0, 0), (3, 4, 5), (1, 2, 4)):
        depth, y, x = (float(DEEP.centres(axis)[index]) for axis, index in enumerate(cell))
        assert at(-depth, y, x) == FRAMES[1][cell]


def test_times_are_those_of_the_model(run: Path) -> None:
    export(run, "p", None, run / "p.xmf", "all")
    assert [float(time.get("Value") or "") for time in ElementTree.parse(run / "p.xmf").iter("Time")] == TIMES
    export(run, "p", None, run / "p.vtr", "all")
    assert [float(e.get("timestep") or "") for e in ElementTree.parse(run / "p.pvd").iter("DataSet")] == TIMES
    assert "p at step 20, t = 0.0625 ms" in export(run, "p", None, run / "p.npy", "-1")
    export(run, "p", None, run / "p.nc", "all")
    for found in (xarray.open_zarr(run / "fields.zarr"), xarray.open_dataset(run / "p.nc", engine="scipy")):
        assert found.time.values.tolist() == TIMES
        assert found.time.attrs["units"] == "ms"
        assert found.p.coords["step"].values.tolist() == [0, 10, 20]
        assert found.z.attrs["positive"] == "down"
        assert np.array_equal(found.p.values, np.stack(FRAMES))
        assert np.array_equal(found.z, DEEP.centres(0))


def test_formats_that_hold_depth_as_it_is(run: Path) -> None:
    """XDMF describes the values where they lie, Madagascar and SEG-Y count depth downwards themselves."""
    said = export(run, "p", None, run / "p.xmf", "-1")
    assert "z is shown upwards" in said
    origin = ElementTree.parse(run / "p.xmf").findall(".//Geometry/DataItem")[0].text
    assert numbers(origin) == [-5.0, 0.0, -15.0]
    export(run, "p", None, run / "p.rsf", "-1")
    text = (run / "p.rsf").read_bytes().split(b"\x0c")[0].decode()
    assert re.findall(r"(n3=4 d3=10.0 o3=0.0 label3=\"z\")", text)


def test_the_velocity_of_what_rises_points_upwards(tmp_path: Path) -> None:
    grid = mg.Grid((4, 3, 2), down="z")
    fields = [mg.Field(f"v_{axis}", grid, centre=axis) for axis in "zyx"]
    store = FrameStore(tmp_path / "fields.zarr", variables_of(fields), {VELOCITY: "v_z v_y v_x"})
    store.append(0, {f.name: np.full(f.points.shape, k + 1.0) for k, f in enumerate(fields)})
    export(tmp_path, None, None, tmp_path / "all.vtr", "0")
    root, rest = header(tmp_path / "all.vtr")
    found = next(a for a in root.iterfind(".//CellData/DataArray") if a.get("Name") == "velocity")
    start = int(found.get("offset") or 0) + 8
    assert np.frombuffer(rest[start : start + 24], "<f8").tolist() == [3.0, 2.0, -1.0]


def counting(clock: mg.Clock | None) -> mg.Model:
    """Steps of 0.5 from 1 on, which nothing but the register `t` tells."""
    step, u, t = mg.Program("step"), mg.Field("u", mg.Grid((3,)), "u1"), mg.Register("t")
    step.let(t, t + 0.5)
    return mg.Model("counting", u.grid, (u,), step, registers={t: 1.0}, clock=clock)


@pytest.mark.parametrize("out", [None, "run"])
def test_steps_of_unequal_lengths_tell_their_time(tmp_path: Path, out: str | None) -> None:
    where = None if out is None else tmp_path / out
    found = mg.run(counting(mg.Clock(time=mg.Register("t"))), 5, every=2, out=where)
    assert found.time.values.tolist() == [1.0, 2.0, 3.0, 3.5]
    assert found.step.values.tolist() == [0, 2, 4, 5]
    assert found.time.attrs["units"] == "s"


@pytest.mark.parametrize("out", [None, "run"])
def test_without_a_clock_the_time_counts_steps(tmp_path: Path, out: str | None) -> None:
    found = mg.run(counting(None), 3, every=2, out=None if out is None else tmp_path / out)
    assert found.time.dtype == np.int64
    assert found.time.values.tolist() == found.step.values.tolist() == [0, 2, 3]


def test_a_run_of_an_earlier_version_has_steps_alone(tmp_path: Path) -> None:
    mg.run(counting(None), 3, every=2, out=tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "fields.zarr" / "step")
    root = tmp_path / "run" / "fields.zarr" / "zarr.json"
    content = json.loads(root.read_text())
    del content["consolidated_metadata"]["metadata"]["step"]
    root.write_text(json.dumps(content))
    reader = FrameReader.open(tmp_path / "run" / "fields.zarr")
    assert (reader.steps, reader.unit, reader.fields) == ((0, 2, 3), None, ("u",))


@pytest.mark.parametrize("given", [{}, {"dt": 1.0, "target": mg.Register("t")}, {"dt": 0.0}, {"dt": float("nan")}])
def test_clocks_that_cannot_be_meant(given: dict[str, object]) -> None:
    with pytest.raises(ProgramError, match=r"clock|dt="):
        mg.Clock(**given)  # type: ignore[arg-type]


def test_axes_are_those_of_vtk_by_name(tmp_path: Path) -> None:
    """Also where the grid has them in another order, as cells of electrochemists do."""
    grid = mg.Grid((2, 3, 4), axes="yzx", spacing=(1.0, 10.0, 100.0))
    values = np.random.default_rng(5).random(grid.shape).astype("f4")
    store = FrameStore(tmp_path / "fields.zarr", variables_of([mg.Field("p", grid, "f4")]), {})
    store.append(0, {"p": values})
    export(tmp_path, "p", "vtr", tmp_path / "p.vtr", "0")
    at, _ = rectilinear(tmp_path / "p.vtr")
    assert at(25.0, 0.5, 350.0) == values[0, 2, 3]
    assert at(5.0, 1.5, 50.0) == values[1, 0, 0]


def test_a_plane_is_as_thin_as_its_cells(tmp_path: Path) -> None:
    store = FrameStore(tmp_path / "fields.zarr", variables_of([mg.Field("p", mg.Grid((2, 3), spacing=1e-3))]), {})
    store.append(0, {"p": np.zeros((2, 3))})
    for kind in ("vtr", "xmf"):
        export(tmp_path, "p", kind, tmp_path / f"p.{kind}", "0")
    root, rest = header(tmp_path / "p.vtr")
    start = int(root.findall(".//Coordinates/DataArray")[2].get("offset") or 0) + 8
    assert np.frombuffer(rest[start : start + 16], "<f8").tolist() == [0.0, 1e-3]
    steps = ElementTree.parse(tmp_path / "p.xmf").findall(".//Geometry/DataItem")[1].text
    assert numbers(steps) == pytest.approx([1e-3] * 3)


@pytest.mark.parametrize("down", [(), "y"])
def test_cells_of_a_picture_lie_as_the_grid_says(tmp_path: Path, down: str | tuple[str, ...]) -> None:
    from PIL import Image

    field = mg.Field("p", mg.Grid((2, 3), down=down))
    store = FrameStore(tmp_path / "fields.zarr", variables_of([field]), {})
    store.append(0, {"p": np.arange(6.0).reshape(2, 3)})
    export(tmp_path, "p", "png", tmp_path / "p.png", "0", scale=1)
    brightness = np.asarray(Image.open(tmp_path / "p.png").convert("RGB")).astype(int).sum(axis=2)
    top = brightness[0] if down else brightness[-1]
    assert (top < np.sort(brightness.ravel())[3]).all()  # the first row has the lowest values, which are dark
