"""Planes with ends along one axis: strips and tubes beside long tori, and beside Golly's bgolly."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.models.automaton.export import golly_rule
from minga.models.automaton.patterns import read_rle, write_rle

STEPS = 60
SIZES = [13, 64, 70]


def soup(shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, 2, shape, np.uint8)


def cells_of(run: Any) -> set[tuple[int, int]]:
    """The live cells of the last frame, by their indices on the plane."""
    y, x = np.nonzero(run.cell.values[-1])
    rows, columns = (np.floor(axis.values).astype(int) for axis in (run.y, run.x))
    return set(zip(rows[y].tolist(), columns[x].tolist(), strict=True))


def on_torus(cells: np.ndarray, axis: int, end: str, steps: int) -> set[tuple[int, int]]:
    """The same on a torus so long that nothing gets around it, along the axis without ends."""
    longer = [(0, 0), (0, 0)]
    longer[axis] = (steps + 2, steps + 2)
    init = np.pad(cells, longer)
    boundary = [end, end]
    boundary[axis] = "periodic"
    model = mg.automaton("B36/S23", init.shape, init=init, boundary=boundary)
    y, x = np.nonzero(mg.run(model, steps=steps).cell.values[-1])
    shift = [0, 0]
    shift[axis] = steps + 2
    return set(zip((y - shift[0]).tolist(), (x - shift[1]).tolist(), strict=True))


@pytest.mark.parametrize("storage", ["bytes", "bits"])
@pytest.mark.parametrize("end", ["fixed", "periodic"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("size", SIZES)
def test_a_strip_is_a_part_of_a_long_torus(
    size: int, axis: int, end: str, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its window is replaced many times."""
    monkeypatch.setattr("minga.models.automaton.plane.MARGIN", {2: 40})
    shape = (9, size) if axis == 0 else (size, 9)
    boundary = ["unbounded", end] if axis == 0 else [end, "unbounded"]
    cells = soup(shape)
    model = mg.automaton("B36/S23", shape, init=cells, boundary=boundary, storage=storage)
    run = mg.run(model, steps=STEPS)
    wanted = on_torus(cells, axis, end, STEPS)
    assert cells_of(run) == wanted
    assert run.attrs["population"] == len(wanted)
    if end == "fixed" and storage == "bits":
        found = mg.run_virtual(3, lambda comm: str(mg.run(model, steps=STEPS, comm=comm).digest))
        assert set(found) == {str(run.digest)}


class Half(mg.Observer):
    """End a run half-way, as a signal does."""

    schedule = mg.Schedule(steps=STEPS // 2)

    def ends(self, simulation: mg.Simulation) -> str | None:
        return "time limit" if simulation.step == STEPS // 2 else None


@pytest.mark.parametrize(("boundary", "ranks"), [(["fixed", "unbounded"], (2, 3)), (["unbounded", "periodic"], (3, 1))])
def test_an_interrupted_strip_or_tube_resumes_with_the_same_cells(
    boundary: list[str], ranks: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With windows that have grown before the checkpoint, and on other ranks."""
    monkeypatch.setattr("minga.models.automaton.plane.MARGIN", {2: 2})
    monkeypatch.setattr("minga.models.automaton.plane.SHARE", 100)
    shape = (9, 60) if boundary[1] == "unbounded" else (62, 9)
    model = mg.automaton("B36/S23", shape, init=soup(shape), boundary=boundary)
    assert model.growth is not None
    whole = mg.run(model, steps=STEPS, every=10, out=tmp_path / "whole", progress=False)

    def part(count: int, **more: Any) -> Any:
        def run(comm: Any) -> Any:
            return mg.run(model, steps=STEPS, every=10, out=tmp_path / "cut", comm=comm, progress=False, **more)

        return mg.run_virtual(count, run)[0]

    half = part(ranks[0], observers=[Half()])
    first = model.growth.window
    assert any(
        not all(low <= n < high for low, n, high in zip(first.lo, cell, first.hi, strict=True))
        for cell in cells_of(half)
    ), "no cell left its window"
    resumed = part(ranks[1], resume=True)
    assert resumed.attrs["digest"] == whole.attrs["digest"]
    assert resumed.step.values.tolist() == whole.step.values.tolist() == list(range(0, STEPS + 1, 10))
    assert resumed.population.values.tolist() == whole.population.values.tolist()
    assert cells_of(resumed) == cells_of(whole) != set()


@pytest.mark.skipif(shutil.which("bgolly") is None, reason="needs bgolly: apt-get install golly")
@pytest.mark.parametrize("suffix", ["P0,13", "P13,0", "T0,13", "T13,0", "T0,70", "T70,0", "P0,64", "P70,0"])
def test_agrees_with_golly(suffix: str, tmp_path: Path) -> None:
    """Cells after 200 generations, from a file and into a file."""
    width, height = (int(n) for n in suffix[1:].split(","))
    name = f"B3/S23:{suffix}"
    cells = soup((height or 20, width or 20))
    at = (-(height // 2), -(width // 2))
    (tmp_path / "soup.rle").write_text(write_rle(cells, name, position=at))
    command = ["bgolly", "-a", "QuickLife", "-m", "200", "-r", name, "-o", "left.rle", "soup.rle"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    golly = read_rle((tmp_path / "left.rle").read_text())
    model = load_model("automaton", {"automaton": {"rule": name, "init": "soup.rle"}}, GridSettings(), tmp_path)
    found = mg.run(model, steps=200).cell.values[-1]
    low, high = np.argwhere(found).min(axis=0), np.argwhere(found).max(axis=0) + 1
    assert np.array_equal(golly.cells, found[low[0] : high[0], low[1] : high[1]])
    assert golly_rule(model.about).text == name


def test_first_cells_of_a_strip_in_a_case(tmp_path: Path) -> None:
    """Rows, or a number of columns for the first cells; rows of another number are refused."""
    rows = [[0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 1, 1, 1, 0], [0] * 5, [0] * 5]
    strip = load_model("automaton", {"automaton": {"rule": "B3/S23:P0,5", "init": rows}}, GridSettings(), tmp_path)
    assert cells_of(mg.run(strip, steps=0)) == {(0, 2), (1, 3), (2, 1), (2, 2), (2, 3)}
    given = {"rule": "B3/S23:T0,5", "init": {"pattern": rows, "at": [0, 1000]}}
    tube = load_model("automaton", {"automaton": given}, GridSettings(shape=(5, 9)), tmp_path)
    assert tube.growth is not None
    assert cells_of(mg.run(tube, steps=20)) == {(0, 1007), (1, 1008), (2, 1006), (2, 1007), (2, 1008)}
    high = {"rule": "B3/S23:P0,4", "init": [*rows[:4], [1] * 5]}
    with pytest.raises(mg.CaseError, match="larger than the grid"):
        load_model("automaton", {"automaton": high}, GridSettings(), tmp_path)


def test_an_end_that_a_plane_cannot_have_is_refused() -> None:
    for boundary in (["reflect", "unbounded"], [["fixed", 1], "unbounded"], [{"shift": 1}, "unbounded"]):
        with pytest.raises(mg.CaseError, match="beside an unbounded axis"):
            mg.automaton("B3/S23", (4, 4), init={"fill": 0}, boundary=boundary)
