"""Live cells at the edge of a grid are told, at the step after which it is no unbounded plane any more."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import SerialComm
from minga.options import RunOptions
from minga.output.checkpoint.keeper import Checkpointing
from minga.running.session import execute
from thinned import thinned

GLIDER = np.array([[0, 1, 0], [0, 0, 1], [1, 1, 1]], np.uint8)
SHAPE = (40, 70)


def life(cells):
    """One step of Life on a plane that is dead beyond the array."""
    padded = np.pad(cells, 1)
    around = sum(np.roll(padded, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1))[1:-1, 1:-1]
    return ((around == 3) | ((around == 4) & (cells == 1))).astype(np.uint8)


def first_at_edge(pattern, corner, steps):
    """After which step live cells of an unbounded plane are at which edges of SHAPE."""
    margin = 60
    plane = np.zeros(np.add(SHAPE, 2 * margin), np.uint8)
    rows, columns = (slice(margin + c, margin + c + n) for c, n in zip(corner, pattern.shape, strict=True))
    plane[rows, columns] = pattern
    for step in range(steps):
        grid = plane[margin:-margin, margin:-margin]
        edges = {"upper": grid[0], "lower": grid[-1], "left": grid[:, 0], "right": grid[:, -1]}
        if any(edge.any() for edge in edges.values()):
            return step, ", ".join(name for name, edge in edges.items() if edge.any())
        plane = life(plane)
    return None


def soup(seed):
    return (np.random.default_rng(seed).random((9, 14)) < 0.4).astype(np.uint8)


PATTERNS = [
    (GLIDER, (15, 20)),
    (GLIDER[::-1], (15, 20)),
    (np.rot90(GLIDER, 2), (30, 60)),
    (GLIDER[:, ::-1], (10, 5)),
    *((soup(seed), (15, 27)) for seed in range(4)),
    (np.ones((2, 2), np.uint8), (1, 1)),
    (np.ones((1, 3), np.uint8), (37, 65)),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("number", "storage"),
    thinned(
        itertools.product(range(len(PATTERNS)), ["bytes", "bits"]),
        *((number, "bytes") for number in (0, 3, 5, 9)), *((number, "bits") for number in (1, 2, 4, 8)),
    ),
)  # fmt: skip
def test_the_edge_is_met_when_an_unbounded_plane_has_cells_there(number, storage):
    pattern, corner = PATTERNS[number]
    boundary, halo_depth = ("fixed", None)[number % 2], 1 + number // 2 % 2
    model = mg.automaton("B3/S23", SHAPE, init={"pattern": pattern, "at": corner}, boundary=boundary, storage=storage)
    facts = execute(model, SerialComm(), RunOptions.of(steps=200, halo_depth=halo_depth), ()).facts
    wanted = first_at_edge(pattern, corner, 200)
    assert facts == ({} if wanted is None else dict(zip(("edge_step", "edge_sides"), wanted, strict=True)))


def test_looking_changes_nothing_of_the_run():
    model = mg.automaton("B3/S23", SHAPE, init=soup(1), boundary="fixed")
    field = (model.field("cell"),)
    plain = execute(replace(model, diagnostics=None), SerialComm(), RunOptions.of(steps=200), field)
    assert execute(model, SerialComm(), RunOptions.of(steps=200), field).digest == plain.digest


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("rule", "init", "boundary"),
    [
        ("B3/S23", {"soup": 0.3}, "fixed"),
        ("B3/S23", np.ones(SHAPE, np.uint8), "fixed"),
        ("B3/S23", GLIDER, "periodic"),
        ("B3/S23", GLIDER, "reflect"),
        ("B3/S23", GLIDER, ["fixed", 1]),
        ("B0/S8", GLIDER, "fixed"),
    ],
)
def test_nothing_is_told_of_soups_and_of_ends_that_are_meant(rule, init, boundary):
    model = mg.automaton(rule, SHAPE, init=init, boundary=boundary)
    assert execute(model, SerialComm(), RunOptions.of(steps=120), ()).findings == ()


def test_cells_at_some_edges_from_the_beginning_are_told():
    model = mg.automaton("B3/S23", SHAPE, init={"pattern": GLIDER, "at": [0, 20]}, boundary="fixed")
    assert execute(model, SerialComm(), RunOptions.of(steps=5), ()).facts == {"edge_step": 0, "edge_sides": "upper"}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("rule", "step"),
    [
        ("R2,C0,M0,S1..24,B1..24,NM", 9),  # grows 2 cells a step from the middle of 40: cells 0 and 1 count
        ("/2/3", None),
        ("W254", 19),
        ("M0,8,4,12,2,10,6,14,1,9,5,13,3,11,7,15", 19),  # a lone particle on its diagonal
    ],
)
def test_other_rules_are_watched_by_how_far_they_look(rule, step):
    shape = (40,) if rule.startswith("W") else (40, 40)
    init = [1] if rule.startswith("W") else [[1, 0]] if rule.startswith("M") else [[1]]
    facts = execute(
        mg.automaton(rule, shape, init=init, boundary="fixed"), SerialComm(), RunOptions.of(steps=60), ()
    ).facts
    assert facts.get("edge_step") == step


@pytest.mark.slow
def test_chance_is_watched_where_dead_cells_stay_dead():
    @mg.rule(states=2, neighbourhood=mg.von_neumann(1))
    def eden(cell, near):
        return mg.where((near.count(1) > 0) & (mg.random() < 0.5), 1, cell)

    @mg.rule(states=2)
    def rain(cell, near):
        return mg.where(mg.random() < 0.01, 1, cell)

    def found(rule):
        model = mg.automaton(rule, (30, 30), init=[[1]], boundary="fixed")
        return execute(model, SerialComm(), RunOptions.of(steps=100, stop={"when": "population > 850"}), ()).facts

    assert 14 <= found(eden)["edge_step"] < 60
    assert found(rain) == {}


def test_python_is_told_on_standard_error_and_in_attributes(capsys, tmp_path):
    model = mg.automaton("B3/S23", SHAPE, init=GLIDER, boundary="fixed")
    for out in (None, tmp_path / "run"):
        run = mg.run(model, steps=150, out=out)
        assert (run.attrs["edge_step"], run.attrs["edge_sides"]) == first_at_edge(GLIDER, (18, 33), 200)
        said = capsys.readouterr().err
        assert said.startswith(f"minga: live cells reached the edge of the grid (lower) after step {run.edge_step}")


@pytest.mark.slow
def test_a_run_that_goes_on_tells_of_what_was_met_before(tmp_path):
    model = mg.automaton("B3/S23", SHAPE, init=GLIDER, boundary="fixed")
    schedule = Checkpointing(steps=100, at_end=True)
    wanted = mg.run(model, steps=150).attrs["edge_step"]
    for steps in (40, 70, 150):
        run = mg.run(model, steps=steps, out=tmp_path / "run", checkpoint=schedule, resume=True)
    assert run.attrs["edge_step"] == wanted
