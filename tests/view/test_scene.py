"""Scenes in three dimensions: fields in sections, lines along the flow, and what the browser draws of them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import chromium
from minga.output.directory import RunDirectory
from minga.output.store import FrameReader, FrameStore
from minga.output.variables import LEFT_OUT, VELOCITY, Coordinate, Variable
from minga.output.velocity import at_centres
from minga.view import flow_lines
from minga.view import volumes as module
from minga.view.flow_lines import lines_along
from minga.view.report import write_report
from minga.view.report.scenes import scene_section
from minga.view.scene import scene_of
from run_files import put

SHAPE = (4, 5, 6)


def axes(faces: int | None = None, **first: Any) -> tuple[Coordinate, ...]:
    """Axes of cells of width 1, or of the faces across one of them."""
    return tuple(
        Coordinate(f"{name}_face", np.arange(n + 1.0), {"units": "m"})
        if number == faces
        else Coordinate(name, np.arange(n) + 0.5, {"units": "m", **(first if number == 0 else {})})
        for number, (name, n) in enumerate(zip("zyx", SHAPE, strict=True))
    )


def stored(path: Path, fields: dict[str, np.ndarray], *, velocity: bool = False, **first: Any) -> FrameReader:
    """A store of one frame of fields; those whose names begin with ``v`` lie on faces."""
    names = [name for name in fields if name.startswith("v_")]
    variables = [
        Variable(
            name,
            a.dtype,
            axes("zyx".index(name[2]) if name in names else None, **first),
            {"units": "m/s" if name in names else "1"},
        )
        for name, a in fields.items()
    ]
    attrs = {LEFT_OUT: "kind"} | ({VELOCITY: " ".join(names)} if velocity else {})
    FrameStore(path, variables, attrs).append(7, fields)
    return FrameReader.open(path)


def shear() -> dict[str, np.ndarray]:
    """Flow along x, faster with z, around a solid cell at the fifth x."""
    z = np.arange(4)[:, None, None] + 1.0
    along = np.broadcast_to(z, (4, 5, 7)).copy()
    kind = np.zeros(SHAPE, np.uint8)
    kind[2, 2, 4] = 1
    still = {"v_z": np.zeros((5, 5, 6)), "v_y": np.zeros((4, 6, 6))}
    return {"T": np.arange(120.0).reshape(SHAPE), "kind": kind, **still, "v_x": along}


def test_cells_of_sections_have_the_colours_of_their_values(tmp_path: Path) -> None:
    scene = scene_of(stored(tmp_path / "fields", shear()))
    assert scene is not None
    assert scene.volumes is not None
    data = scene.data["volumes"]
    (field,) = data["fields"]
    cells = np.frombuffer(base64.b64decode(field["cells"]), np.uint8).reshape(SHAPE)
    assert (field["label"], field["low"], field["high"]) == ("T", "0", "119")
    assert cells[0, 0, 0] == 0
    assert cells[3, 4, 5] == len(field["colours"]) - 1
    assert cells[2, 2, 4] == len(field["colours"])  # left out: no colour
    assert (data["across"], data["index"]) == (2, 3)
    assert [len(edges) for edges in data["edges"]] == [5, 6, 7]
    assert scene.data["ends"] == [(0.0, 4.0), (0.0, 5.0), (0.0, 6.0)]
    assert not scene.data["down"]


def test_depth_is_drawn_downwards(tmp_path: Path) -> None:
    scene = scene_of(stored(tmp_path / "fields", {"T": np.zeros(SHAPE)}, positive="down"))
    assert scene is not None
    assert scene.data["down"]
    assert not scene.data["away"]


@pytest.mark.parametrize(
    ("names", "down", "away"), [("yzx", False, False), ("zyx", False, True), ("zyx", True, False), ("yzx", True, True)]
)
def test_axes_are_drawn_right_handed(tmp_path: Path, names: str, down: bool, away: bool) -> None:
    places = tuple(
        Coordinate(name, np.arange(2.0), {"positive": "down"} if down and name == names[0] else {}) for name in names
    )
    FrameStore(tmp_path / "fields", [Variable("T", np.dtype("f8"), places, {})], {}).append(
        0, {"T": np.zeros((2, 2, 2))}
    )
    scene = scene_of(FrameReader.open(tmp_path / "fields"))
    assert scene is not None
    assert scene.data["away"] == away
    # The directions on the screen (right, up, towards the viewer) of the axes by name.
    seen = {
        names[0]: [0, -1 if down else 1, 0],
        names[1]: [0, 0, -1 if scene.data["away"] else 1],
        names[2]: [1, 0, 0],
    }
    assert np.array_equal(np.cross(seen["x"], seen["y"]), seen["z"])


def test_values_beyond_the_colours_are_told(tmp_path: Path) -> None:
    values = np.arange(120.0).reshape(SHAPE)
    values[0, 0, 0] = 1e6
    scene = scene_of(stored(tmp_path / "fields", {"T": values}))
    assert scene is not None
    (field,) = scene.data["volumes"]["fields"]
    assert (field["clipped"] != "") == (float(field["high"]) < 1e6)


def test_solids_lie_between_the_faces_of_unequal_cells(tmp_path: Path) -> None:
    faces = np.array([0.0, 1.0, 4.0, 5.0, 9.0])
    first = {"first_face": 0.0}
    places = tuple(Coordinate(name, 0.5 * (faces[1:] + faces[:-1]), dict(first)) for name in "yzx")
    kind = np.zeros((4, 4, 4), np.uint8)
    kind[1, 1, 1] = 1
    FrameStore(tmp_path / "fields", [Variable("kind", kind.dtype, places, {})], {LEFT_OUT: "kind"}).append(
        0, {"kind": kind}
    )
    scene = scene_of(FrameReader.open(tmp_path / "fields"))
    assert scene is not None
    assert scene.data["solid"]["faces"] == [faces.tolist()] * 3


@pytest.mark.parametrize("values", [np.full(SHAPE, np.nan), np.arange(120).reshape(SHAPE) * 5, np.zeros(SHAPE, bool)])
def test_all_kinds_of_values_have_colours(tmp_path: Path, values: np.ndarray) -> None:
    scene = scene_of(stored(tmp_path / "fields", {"T": values}))
    assert scene is not None
    json.dumps(scene.data, allow_nan=False)
    (field,) = scene.data["volumes"]["fields"]
    cells = np.frombuffer(base64.b64decode(field["cells"]), np.uint8)
    assert ((cells < len(field["colours"])) == np.isfinite(values.ravel())).all()
    assert len(np.unique(cells)) == min(len(np.unique(values)), len(field["colours"]))


def test_large_fields_are_thinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CELLS", 30)
    values = np.arange(120.0).reshape(SHAPE)
    scene = scene_of(stored(tmp_path / "fields", {"T": values}))
    assert scene is not None
    assert scene.volumes is not None
    (field,) = scene.volumes.fields
    assert field.numbers.size <= 30
    strides = [-(-n // kept) for n, kept in zip(SHAPE, field.numbers.shape, strict=True)]
    kept = values[tuple(slice(None, None, n) for n in strides)]
    assert np.array_equal(field.numbers, field.scale.numbers(kept))
    assert [float(edges[-1]) for edges in scene.volumes.edges] == [4.0, 5.0, 6.0]


def test_runs_in_a_plane_have_no_scene(tmp_path: Path) -> None:
    flat = Variable("T", np.dtype("f8"), axes()[:2], {"units": "1"})
    FrameStore(tmp_path / "fields", [flat], {}).append(0, {"T": np.zeros((4, 5))})
    assert scene_section(FrameReader.open(tmp_path / "fields")) is None


def test_lines_end_at_solid_cells_and_at_the_ends_of_the_grid(tmp_path: Path) -> None:
    scene = scene_of(stored(tmp_path / "fields", shear(), velocity=True))
    assert scene is not None
    assert scene.flow is not None
    for line, speeds in zip(scene.flow.lines, scene.flow.speeds, strict=True):
        assert np.allclose(line[:, :2], line[0, :2])
        assert np.allclose(speeds, np.clip(line[:, 0] + 0.5, 1.0, 4.0))
        blocked = 2 <= line[0, 0] < 3 and 2 <= line[0, 1] < 3
        assert line[:, 2].max() <= (4.0 if blocked else 6.0)
        assert line[:, 2].max() > (3.3 if blocked else 5.3)
    assert sum(2 <= line[0, 0] < 3 and 2 <= line[0, 1] < 3 for line in scene.flow.lines) > 0
    data = scene.data["flow"]
    points = np.frombuffer(base64.b64decode(data["points"]), "<u2").reshape(-1, 4)
    assert len(points) == sum(data["lengths"])
    assert data["label"].startswith("speed (m/s)")


def test_lines_follow_every_second_velocity_of_large_grids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_lines, "MOST_CELLS", 40)
    fields = {name: np.zeros_like(values) if name == "kind" else values for name, values in shear().items()}
    scene = scene_of(stored(tmp_path / "fields", fields, velocity=True))
    assert scene is not None
    assert scene.flow is not None
    assert scene.flow.ends == ((0.0, 4.0), (0.0, 5.0), (0.0, 6.0))
    for line, speeds in zip(scene.flow.lines, scene.flow.speeds, strict=True):
        assert np.allclose(line[:, :2], line[0, :2])
        assert np.allclose(speeds, np.clip(line[:, 0] + 0.5, 1.0, speeds.max()))


def test_velocities_of_every_second_face_are_those_of_the_centres(tmp_path: Path) -> None:
    def places(every: int, faces: int) -> tuple[Coordinate, ...]:
        return tuple(
            Coordinate(f"{name}_face", np.arange(9.0), {}).kept(0, 9, every)
            if k == faces
            else Coordinate(name, np.arange(8.0) + 0.5, {}).kept(0, 8, every)
            for k, name in enumerate("zyx")
        )

    for every in (1, 2, 3):
        names = ["v_z", "v_y", "v_x"]
        variables = [Variable(name, np.dtype("f8"), places(every, k), {}) for k, name in enumerate(names)]
        values = {
            v.name: np.broadcast_to(
                v.coordinates[k].values.reshape([-1 if n == k else 1 for n in range(3)]), v.shape
            ).copy()
            for k, v in enumerate(variables)
        }
        store = tmp_path / f"fields-{every}"
        FrameStore(store, variables, {VELOCITY: " ".join(names)}).append(0, values)
        reader = FrameReader.open(store)
        for k, name in enumerate(names):
            centres = np.arange(8.0)[::every] + 0.5
            found = np.moveaxis(at_centres(reader, name, k, centres), k, -1)
            assert np.allclose(found, np.minimum(centres, variables[k].coordinates[k].values[-1]))


def test_lines_close_around_a_vortex() -> None:
    centres = [np.arange(n) + 0.5 for n in (2, 24, 24)]
    edges = [np.arange(n + 1.0) for n in (2, 24, 24)]
    y, x = centres[1][:, None] - 12.0, centres[2][None, :] - 12.0
    turning = np.broadcast_to(np.stack([0.0 * (x + y), x + 0.0 * y, -y - 0.0 * x], -1), (2, 24, 24, 3))
    lines, _ = lines_along(turning, centres, edges, np.zeros((2, 24, 24), bool))
    inner = [line for line in lines if np.hypot(*(line[0, 1:] - 12.0)) < 8.0]
    assert inner
    for line in inner:
        radii = np.hypot(line[:, 1] - 12.0, line[:, 2] - 12.0)
        assert np.ptp(radii) < 1e-3 * radii.mean()


def test_still_water_has_no_lines(tmp_path: Path) -> None:
    fields = {name: values * (name == "kind") for name, values in shear().items()}
    scene = scene_of(stored(tmp_path / "fields", fields, velocity=True))
    assert scene is not None
    assert scene.flow is None


def test_labels_cannot_end_the_script(tmp_path: Path) -> None:
    units = {"units": "</script>"}
    FrameStore(tmp_path / "fields", [Variable("T", np.dtype("f8"), axes(), units)], {}).append(
        0, {"T": np.zeros(SHAPE)}
    )
    section = scene_section(FrameReader.open(tmp_path / "fields"))
    assert section is not None
    assert "<" not in str(section["data"])
    assert json.loads(str(section["data"]))["volumes"]["fields"][0]["label"] == "T (</script>)"
    assert "</script" not in str(section["script"])


@pytest.mark.slow
def test_a_browser_moves_sections_and_shows_lines(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    run.case.write_text('name = "shear"\nmodel = "pde"\n')
    stored(run.fields, shear(), velocity=True)
    put(
        run.result,
        {
            "model": "pde",
            "shape": SHAPE,
            "steps": 7,
            "ranks": 1,
            "threads": 1,
            "seconds": 0.5,
            "cells_per_second": 1e6,
            "digest": "0" * 16,
            "observables": {},
        },
    )
    with chromium() as browser:
        page = browser.open(write_report(run).resolve().as_uri(), width=390)
        if not page.evaluate("!!document.createElement('canvas').getContext('webgl')"):
            pytest.skip("this Chromium has no WebGL; install a Debian chromium with SwiftShader")
        page.until("!!document.querySelector('.scene.turns')")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        part = "document.querySelector('.scene .parts')"
        seen = """(() => {
          const from = document.querySelector('.scene canvas'), to = document.createElement('canvas');
          to.width = from.width; to.height = from.height;
          const pen = to.getContext('2d');
          pen.drawImage(from, 0, 0);
          const d = pen.getImageData(0, 0, to.width, to.height).data;
          let coloured = 0;
          for (let k = 0; k < d.length; k += 4)
            coloured += d[k + 3] > 0 && Math.max(d[k], d[k + 1], d[k + 2]) - Math.min(d[k], d[k + 1], d[k + 2]) > 20;
          return coloured;
        })()"""
        change = "(e => { {0}; e.dispatchEvent(new Event('{1}')); })(" + part + ".querySelectorAll('{2}')[{3}])"

        def do(what: str, event: str, which: str, number: int) -> None:
            script = change.replace("{0}", what).replace("{1}", event).replace("{2}", which).replace("{3}", str(number))
            page.evaluate(script)

        do("e.value = '0'", "change", "select", 0)
        do("e.checked = false", "change", "input[type=checkbox]", 1)
        page.until(f"{seen} > 0", 5)  # the solid cell alone
        alone = page.evaluate(seen)
        do("e.value = '1'", "change", "select", 0)
        page.until(f"{seen} > 2 * {alone}")
        do("e.value = '0'", "change", "select", 1)
        do("e.value = '1'", "input", "input[type=range]", 0)
        assert page.evaluate(f"{part}.querySelector('.step').textContent") == "z (m): 1.5"
        do("e.value = '0'", "change", "select", 0)
        page.until(f"{seen} < 2 * {alone}")
        do("e.checked = true", "change", "input[type=checkbox]", 1)
        page.until(f"{seen} > 1.2 * {alone}")
