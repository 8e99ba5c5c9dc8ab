"""What an automaton is called in Golly's pattern files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import minga as mg
from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.errors import CaseError
from minga.models.automaton.golly import NOTE, PATTERN
from minga.models.automaton.patterns import read_rle, write_rle

SHAPE = (20, 30)


@mg.rule(states=2)
def life(cell, near):
    return (near.count(1) == 3) | ((near.count(1) == 2) & (cell == 1))


@mg.rule(states=2)
def exactly(cell, near, *, k=3):
    return near.count(1) == k


@mg.rule(states=2, neighbourhood=mg.von_neumann(1))
def parity(cell, near):
    return (near.count(1) + cell) % 2


@mg.rule(states=2, neighbourhood=mg.hex())
def hexagonal(cell, near):
    return near.count(1) == 2


@mg.rule(states=2)
def eastwards(cell, near):
    return near[0, -1] & ~near[1, 1] | (cell & near[-1, -1])


@mg.rule(states=3)
def three(cell, near):
    return mg.where(cell == 2, 0, cell)


@mg.rule(states=2, neighbourhood=mg.moore(2))
def far(cell, near):
    return near.count(1) > 9


@mg.rule(states=2)
def chance(cell, near):
    return mg.where(mg.random() < 0.1, 1, cell)


@mg.rule(states=2)
def placed(cell, near):
    return mg.where(mg.index(0) == 3, 1, cell)


def about(rule, **said):
    return mg.automaton(rule, SHAPE, init={"soup": 0.3}, **said).about


@pytest.mark.parametrize(
    ("rule", "said", "name"),
    [
        (life, {}, "B3/S23:T30,20"),
        (life, {"boundary": "fixed"}, "B3/S23:P30,20"),
        (exactly, {"parameters": {"k": 2}}, "B2/S2:T30,20"),
        (parity, {}, "B13/S024V:T30,20"),
        (hexagonal, {}, "B2/S2H:T30,20"),
        ("B2cekin/S12", {}, "B2-a/S12:T30,20"),
        ("/2/3", {}, "/2/3:T30,20"),
        ("B3/S23", {"boundary": [{"shift": 3}, "periodic"]}, "B3/S23:T30+3,20"),
        ("B3/S23", {"boundary": ["periodic", {"shift": -2}]}, "B3/S23:T30,20-2"),
        ("langtons-loop", {}, "langtons-loop:T30,20"),
        ("rules/langtons-loop.rule", {}, "langtons-loop:T30,20"),
    ],
)
def test_names(rule, said, name):
    assert about(rule, **said).get(PATTERN) == name
    assert NOTE not in about(rule, **said)


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ("R1,C0,M0,S3..5,B4..4,NL", "R1,C0,M0,S3..5,B4..4,NL:T30,20"),
        ("R1,C0,S5-9,B6,8,NW123401323", "R1,C2,S5-9,B6,8,NW123401323:T30,20"),
        ("R2,C0,M0,S3..5,7..9,B3..4,NM", "R2,C2,S3-5,7-9,B3-4,NM:T30,20"),
        ("R2,C0,M1,S3..5,B3..4,N+", "R2,C0,M1,S3..5,B3..4,N+:T30,20"),
    ],
)
def test_large_neighbourhoods_have_golly_s_names(rule, name):
    assert about(rule)[PATTERN] == name
    assert NOTE not in about(rule)
    plain = name.partition(":")[0]
    cells = (np.indices(SHAPE).sum(0) * 7 % 5 < 2) * 1
    runs = [mg.run(mg.automaton(text, SHAPE, init=cells), steps=4, progress=False) for text in (rule, plain)]
    assert runs[0].attrs["digest"] == runs[1].attrs["digest"]


def test_a_grid_of_triangles_is_four_times_as_wide_as_the_radius():
    assert NOTE in mg.automaton("R3,C0,M0,S3..5,B4..4,NL", (11, 30), init={"soup": 0.3}).about
    assert NOTE not in mg.automaton("R3,C0,M0,S3..5,B4..4,NL", (12, 30), init={"soup": 0.3}).about


@pytest.mark.parametrize("rule", [three, far, chance, placed, "B3/S23R", "O942,NN", "R2,C0,M1,S3..5,7..9,B3..4,NM"])
def test_what_golly_has_no_name_for(rule):
    found = about(rule)
    assert PATTERN not in found
    assert found[NOTE].startswith(f"rule: {found['rule']}")
    assert "Life, B3/S23" in found[NOTE]
    assert "update coloured" in about(life, update="coloured")[NOTE]


@pytest.mark.parametrize("boundary", ["reflect", ["fixed", 1], ["periodic", "fixed"]])
def test_ends_that_golly_does_not_have(boundary):
    found = about("B3/S23", boundary=boundary)
    assert (found[PATTERN], "unbounded" in found[NOTE]) == ("B3/S23", True)


def test_a_grid_that_golly_would_widen():
    rule = "R11,C0,M1,S34..58,B34..45,NM"
    assert (about(rule)[PATTERN], "22 cells" in about(rule)[NOTE]) == (rule, True)
    case = {"rule": f"{rule}:T30,21", "init": {"soup": 0.3}}
    with pytest.raises(CaseError, match=r"widens to at least 22[^$]*\n.*shape = \[21, 30\]"):
        load_model("automaton", {"automaton": case}, GridSettings(), Path())
    assert load_model("automaton", {"automaton": case}, GridSettings(shape=[21, 30]), Path()).grid.shape == (21, 30)
    assert load_model(
        "automaton", {"automaton": {**case, "rule": f"{rule}:T30,22"}}, GridSettings(), Path()
    ).grid.shape == (22, 30)


@pytest.mark.skipif(shutil.which("bgolly") is None, reason="needs bgolly: apt-get install golly")
@pytest.mark.parametrize("rule", [life, parity, hexagonal, eastwards, "R3,C0,M0,S10..20,B12..17,NM"])
@pytest.mark.parametrize("shape", [(6, 11), (8, 6)])
def test_golly_makes_the_same_of_the_name(rule, shape, tmp_path):
    """On narrow tori, too: six cells are twice the radius of the last one, what Golly has at least."""
    cells = (np.random.default_rng(3).random(shape) < 0.4).astype("u1")
    model = mg.automaton(rule, shape, init=cells)
    (tmp_path / "in.rle").write_text(
        write_rle(cells, model.about[PATTERN], position=(-(shape[0] // 2), -(shape[1] // 2)))
    )
    kind = "Larger than Life" if isinstance(rule, str) else "QuickLife"
    command = ["bgolly", "-a", kind, "-r", model.about[PATTERN], "-m", "1", "-o", "out.rle", "in.rle"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    golly, found = read_rle((tmp_path / "out.rle").read_text()).cells, mg.run(model, steps=1).cell.values[-1]
    alive = np.argwhere(found)
    low, high = alive.min(axis=0), alive.max(axis=0) + 1
    assert np.array_equal(found[low[0] : high[0], low[1] : high[1]], golly)
