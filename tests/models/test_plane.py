"""Automata on an unbounded plane: the same cells as a set of cells without any grid, whatever the windows were."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

import minga as mg
from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.engine.comm import SerialComm
from minga.errors import CaseError
from minga.models.automaton.export import golly_rule
from minga.options import RunOptions
from minga.output.directory import RunDirectory
from minga.output.preview import read_preview
from minga.running.growing import Growing
from minga.running.session import execute

GLIDER = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]
R_PENTOMINO = [[0, 1, 1], [1, 1, 0], [0, 1, 0]]
BUNNIES = [[1, 0, 0, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1, 0, 1], [0, 1, 0, 1, 0, 0, 0, 0]]
STILL = {"progress": False}


def life(cells, steps, born=(3,), kept=(2, 3)):
    """Life of a set of cells of a plane without ends."""
    around = [offset for offset in itertools.product((-1, 0, 1), repeat=2) if any(offset)]
    for _ in range(steps):
        counts = Counter((y + i, x + j) for y, x in cells for i, j in around)
        cells = {cell for cell, n in counts.items() if n in (kept if cell in cells else born)}
    return cells


def cells_of(rows, at=(0, 0)):
    return {(int(y) + at[0], int(x) + at[1]) for y, x in np.argwhere(np.array(rows))}


def on_the_plane(dataset, frame=-1):
    """The live cells of a frame, by the coordinates of the dataset."""
    y, x = np.nonzero(dataset.cell.values[frame])
    return set(zip((dataset.y.values[y] - 0.5).astype(int), (dataset.x.values[x] - 0.5).astype(int), strict=True))


def plane(rows, rule="B3/S23", **more):
    return mg.automaton(rule, np.shape(rows), init=rows, boundary="unbounded", **more)


@pytest.mark.parametrize("storage", ["bytes", "bits"])
def test_cells_are_those_of_a_plane_without_ends(storage):
    run = mg.run(plane(R_PENTOMINO, storage=storage), steps=230, every=115, **STILL)
    wanted = cells_of(R_PENTOMINO)
    for frame in range(3):
        assert on_the_plane(run, frame) == wanted
        wanted = life(wanted, 115)
    assert "edge_step" not in run.attrs


def test_a_window_follows_a_glider():
    model = plane(GLIDER)
    growing = Growing(model)
    outcome = execute(model, SerialComm(), RunOptions.of(steps=8000), (model.field("cell"),), growing=growing)
    assert outcome.observables["population"] == 5
    assert growing.growth.window.size <= model.grid.size * 4
    run = mg.run(plane(GLIDER, observe=["bounding_box"]), steps=4000, every=4000, **STILL)
    assert on_the_plane(run) == cells_of(GLIDER, at=(1000, 1000))
    assert run.attrs["bounding_box"] == [1000, 1000, 1002, 1002]


@pytest.mark.slow
def test_bunnies_leave_as_many_cells_as_is_published():
    run = mg.run(plane(BUNNIES), steps=17332, every=17332, **STILL)
    assert run.attrs["population"] == 1744


def test_results_depend_neither_on_storage_nor_on_ranks_and_threads():
    def digest(comm=None, threads=1, **more):
        return mg.run(plane(R_PENTOMINO, **more), steps=300, threads=threads, comm=comm, **STILL).attrs

    alone = digest()
    others = [digest(threads=2), digest(storage="bytes"), digest(skip_quiet=False)]
    others += mg.run_virtual(3, lambda comm: digest(comm))
    for other in others:
        assert (other["digest"], other["population"]) == (alone["digest"], alone["population"])


def test_a_digest_does_not_depend_on_when_windows_were_replaced(monkeypatch):
    def digest():
        return mg.run(plane(R_PENTOMINO), steps=300, **STILL).attrs["digest"]

    few = digest()
    monkeypatch.setattr("minga.models.automaton.plane.MARGIN", {2: 33})
    assert digest() == few
    shifted = mg.run(plane(np.pad(R_PENTOMINO, ((1, 0), (0, 0)))), steps=300, **STILL).attrs["digest"]
    assert shifted != few


@pytest.mark.parametrize(
    ("rule", "update"),
    [("/2/3", None), ("B2/S34H", None), ("R2,C0,M1,S4..8,B5..7,NM", None), ("B1/S1V", "second-order"),
     ("M0,8,4,3,2,5,9,7,1,6,10,11,12,13,14,15", None)],
)  # fmt: skip
def test_other_rules_agree_with_a_grid_that_is_large_enough(rule, update):
    rows = (np.random.default_rng(3).random((6, 6)) < 0.4).astype(np.uint8)
    steps, side = 40, 400
    run = mg.run(plane(rows, rule, update=update), steps=steps, every=steps, **STILL)
    init = {"pattern": rows, "at": [200, 200]}
    grid = mg.automaton(rule, (side, side), init=init, boundary="fixed", update=update)
    wanted = np.argwhere(mg.run(grid, steps=steps, **STILL).cell.values[-1]) - 200
    assert on_the_plane(run) == set(map(tuple, wanted.tolist()))
    assert len(wanted)


@pytest.mark.slow
def test_lines_and_space_are_unbounded_too():
    line = mg.run(mg.automaton("W90", (1,), init=[1], boundary="unbounded"), steps=1500, **STILL)
    assert line.attrs["population"] == 2 ** bin(1500).count("1")
    ball = np.ones((2, 2, 2), np.uint8)
    space = mg.run(mg.automaton("B4/S4", ball.shape, init=ball, boundary="unbounded"), steps=3, **STILL)
    grid = mg.automaton("B4/S4", (40, 40, 40), init=ball, boundary="fixed")
    assert space.attrs["population"] == mg.run(grid, steps=3, **STILL).attrs["population"] > 0


def test_nothing_left_alive_is_no_error():
    run = mg.run(plane([[1]]), steps=100, every=50, **STILL)
    assert run.attrs["population"] == 0
    assert run.cell.values.sum() == 1


@mg.rule(states=2)
def noisy(cell, near):
    return mg.where(mg.random() < 0.5, cell, near.any(1))


@mg.rule(dtype="f8")
def average(cell, near):
    return near.sum() / 8


@pytest.mark.parametrize(
    ("rule", "more", "words"),
    [("B03/S23", {}, "come alive"), (noisy, {}, "random"), (average, {}, "floats"),
     ("B3/S23", {"update": "coloured"}, "colour"), ("B3/S23", {"observe": ["histogram"]}, "histogram")],
)  # fmt: skip
def test_rules_that_a_plane_cannot_have_are_refused(rule, more, words):
    with pytest.raises(mg.CaseError, match=words):
        mg.automaton(rule, (4, 4), init={"soup": 0.5}, boundary="unbounded", **more)


def test_a_soup_lies_on_the_first_cells_only():
    run = mg.run(
        mg.automaton("B3/S23", (16, 20), init={"soup": 0.5, "seed": 4}, boundary="unbounded"), **STILL, steps=0
    )
    grid = mg.run(mg.automaton("B3/S23", (16, 20), init={"soup": 0.5, "seed": 4}), steps=0, **STILL)
    assert on_the_plane(run) == set(map(tuple, np.argwhere(grid.cell.values[0]).tolist()))


def first_half():
    """An observer that ends a run early, as a signal does."""

    class Half(mg.Observer):
        schedule = mg.Schedule(steps=150)

        def ends(self, simulation):
            return "time limit" if simulation.step == 150 else None

    return Half()


def test_a_run_in_a_directory_resumes_on_other_ranks_where_it_was_interrupted(tmp_path):
    model = plane(R_PENTOMINO)
    whole = mg.run(model, steps=300, every=100, out=tmp_path / "whole", **STILL)

    def part(ranks, **more):
        def run(comm):
            return mg.run(plane(R_PENTOMINO), steps=300, every=100, out=tmp_path / "cut", comm=comm, **more, **STILL)

        return mg.run_virtual(ranks, run)[0]

    part(2, observers=[first_half()])
    cut = part(3, resume=True)
    assert cut.attrs["digest"] == whole.attrs["digest"]
    assert cut.step.values.tolist() == whole.step.values.tolist() == [0, 100, 200, 300]
    for frame in range(4):
        assert on_the_plane(cut, frame) == on_the_plane(whole, frame)
    assert cut.population.values.tolist() == whole.population.values.tolist()
    assert on_the_plane(mg.open(tmp_path / "whole")) == life(cells_of(R_PENTOMINO), 300)


def test_a_case_places_its_pattern_and_exports_true_coordinates(tmp_path):
    (tmp_path / "glider.rle").write_text("#CXRLE Pos=-7,20\nx = 3, y = 3, rule = B3/S23\nbo$2bo$3o!\n")
    case = tmp_path / "case.toml"
    case.write_text('model = "automaton"\n[grid]\nboundary = "unbounded"\n[automaton]\ninit = "glider.rle"\n')
    model = mg.read_case(str(case), ["run.steps=400"]).model
    run = mg.run(model, steps=400, out=tmp_path / "run", **STILL)
    assert on_the_plane(run) == cells_of(GLIDER, at=(120, 93))
    attributes = mg.open(tmp_path / "run").attrs
    rule = golly_rule(attributes)
    assert (rule.text, rule.corner((1, 1))) == ("B3/S23", (int(run.y[0] - 0.5), int(run.x[0] - 0.5)))


def test_a_run_ends_with_its_frames_where_memory_does(monkeypatch):
    monkeypatch.setattr("minga.running.growing.total_memory", lambda: 1 << 20)
    monkeypatch.setattr("minga.models.automaton.plane.MARGIN", {2: 64})
    guns = "patterns/gosper-glider-gun.rle"
    model = mg.automaton("B3/S23", (9, 36), init=guns, boundary="unbounded", storage="bytes")
    run = mg.run(model, steps=20000, every=100, **STILL)
    assert "does not fit in memory" in run.attrs["ended"]
    assert run.attrs["steps"] == run.step.values[-1] < 20000
    assert run.cell.values[-1].sum() == run.population.values[-1]


@pytest.mark.parametrize("at", [(10**20, 0), (0, -(2**60)), (1.5, 0), (float("nan"), 0), (True, 0), (1, 2, 3), "ab"])
def test_places_that_no_plane_has_are_refused(at):
    with pytest.raises(mg.CaseError, match=r"automaton\.init\.at: .*an index for each of 2 axes"):
        mg.automaton("B3/S23", (3, 3), init={"pattern": GLIDER, "at": at}, boundary="unbounded")


def test_a_pattern_far_away_has_exact_coordinates():
    run = mg.run(plane(GLIDER), steps=4, **STILL)
    init = {"pattern": GLIDER, "at": [2**48, -(2**48)]}
    far = mg.run(mg.automaton("B3/S23", (3, 3), init=init, boundary="unbounded"), steps=4, **STILL)
    assert on_the_plane(far) == {(y + 2**48, x - 2**48) for y, x in on_the_plane(run)}


@pytest.mark.parametrize("shape", [(1, 1, 1, 1, 1), (-3, 3)])
def test_shapes_that_no_plane_has_are_refused(shape):
    with pytest.raises(mg.CaseError, match=r"grid\.shape: .*1 to 4 axes"):
        mg.automaton("B3/S23", shape, init={"soup": 0.5}, boundary="unbounded")


@pytest.mark.parametrize(("setting", "key"), [({"region": {"x": (0, 4)}}, "region"), ({"device": "gpu"}, "device")])
def test_settings_that_a_plane_cannot_have_are_refused(setting, key):
    with pytest.raises(mg.CaseError, match=key):
        mg.run(plane(GLIDER), steps=4, **setting, **STILL)


def test_initial_values_that_would_be_cut_off_are_refused():
    history = mg.run(plane(GLIDER), steps=4, every=2, **STILL)
    for initial in (history, {"cell": 1}, {"cell": np.array(GLIDER)}, {"cell": lambda y, x: x < y}):
        with pytest.raises(mg.CaseError, match="an unbounded plane has no shape"):
            mg.run(plane(GLIDER), steps=4, initial=initial, **STILL)
    init = {"pattern": history.cell[-1].values, "at": [int(history[axis][0] - 0.5) for axis in ("y", "x")]}
    longer = mg.run(mg.automaton("B3/S23", None, init=init, boundary="unbounded"), steps=4, **STILL)
    assert on_the_plane(longer) == cells_of(GLIDER, at=(2, 2))


def test_frames_that_do_not_fit_are_refused_with_a_remedy(monkeypatch):
    monkeypatch.setattr("minga.running.growing_frames.total_memory", lambda: 1 << 17)
    with pytest.raises(mg.RunError, match="out="):
        mg.run(plane(GLIDER), steps=1000, every=10, **STILL)


def test_the_live_page_gets_the_present_window(tmp_path, monkeypatch):
    monkeypatch.setattr("minga.output.preview._INTERVAL", 0.0)
    monkeypatch.setattr("minga.models.automaton.plane.MARGIN", {2: 33})
    seen = []

    def look(simulation):
        (tmp_path / "run" / "watching").touch()
        preview = read_preview(RunDirectory(tmp_path / "run"))
        if preview is not None:
            seen.append((simulation.step, preview.step, int(preview.values.any())))

    mg.run(plane(R_PENTOMINO), steps=200, out=tmp_path / "run", observers=[mg.observer(look, steps=20)], **STILL)
    assert seen
    assert all(before <= step and alive for step, before, alive in seen)


def test_rows_on_a_plane_have_their_own_shape(tmp_path):
    rows = [[0, 1, 1], [1, 1, 0], [0, 1, 0]]
    given = mg.automaton("B3/S23", (3, 3), init=rows, boundary="unbounded")
    digest = mg.run(given, 20).attrs["digest"]
    for init in (rows, np.array(rows), {"pattern": rows}):
        own = mg.automaton("B3/S23", None, init=init, boundary="unbounded")
        assert mg.run(own, 20).attrs["digest"] == digest
    table = {"rule": "B3/S23", "init": rows}
    of_case = load_model("automaton", {"automaton": table}, GridSettings(boundary="unbounded"), tmp_path)
    assert mg.run(of_case, 20).attrs["digest"] == digest
    with pytest.raises(CaseError, match="shape=None"):
        mg.automaton("B3/S23", None, init={"soup": 0.5}, boundary="unbounded")
    with pytest.raises(CaseError, match="shape=None"):
        mg.automaton("B3/S23", None, init=rows)
