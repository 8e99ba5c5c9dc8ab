"""Rule files: tables with variables and symmetries, trees, as Golly reads them; and what is said of wrong ones."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minga as mg
from minga.case.files import SHIPPED
from minga.errors import CaseError
from minga.models.automaton.notation.decision import Diagram, reduced, stages
from minga.models.automaton.patterns import read_pattern
from minga.models.automaton.rules import find_rule, life_like
from model_runs import assert_same, run_model
from rule_oracle import evolve, many_states, seed_cells

VARIABLES = "var a={0,1,2}\nvar b={1,2}\n" + "".join(f"var {name}={{a}}\n" for name in "uvwxy")
TABLES = {
    "vonNeumann": "1,b,0,2,a,a\na,a,1,0,u,a\na,a,b,0,u,a\n2,1,b,0,u,0\n0,0,b,0,u,1\n1,a,0,b,a,a",
    "Moore": "1,b,0,2,a,u,v,a,a,a\na,b,0,a,1,u,2,0,v,a\n0,a,1,a,u,v,w,x,y,a\n2,1,1,a,u,v,w,x,y,a\n"
             "0,1,2,0,u,v,w,x,y,2\n1,2,2,b,u,v,w,x,y,1",
    "hexagonal": "1,b,0,2,a,u,v,a\n1,0,a,0,u,v,w,a\n0,a,2,1,u,2,0,a\nb,0,a,1,u,v,w,a\na,a,b,1,u,v,w,a\n2,0,a,b,u,2,2,a",
    "oneDimensional": "1,b,0,1\n0,a,a,a\na,a,1,a\n0,a,0,a\na,a,b,a\n0,a,2,a",
}  # fmt: skip
GOLLY = [
    ("vonNeumann", "none", [450, 450, 450, 450]), ("vonNeumann", "rotate4", [340, 292, 271, 264]),
    ("vonNeumann", "rotate4reflect", [357, 318, 304, 296]),
    ("vonNeumann", "reflect_horizontal", [445, 445, 445, 445]), ("vonNeumann", "permute", [328, 291, 281, 276]),
    ("Moore", "none", [499, 506, 508, 508]), ("Moore", "rotate4", [526, 581, 608, 645]),
    ("Moore", "rotate8", [529, 589, 607, 669]), ("Moore", "rotate4reflect", [548, 627, 655, 699]),
    ("Moore", "rotate8reflect", [559, 614, 640, 697]), ("Moore", "reflect_horizontal", [514, 536, 542, 544]),
    ("Moore", "permute", [256, 244, 241, 241]), ("hexagonal", "none", [379, 351, 342, 333]),
    ("hexagonal", "rotate2", [310, 261, 240, 233]), ("hexagonal", "rotate3", [282, 216, 196, 187]),
    ("hexagonal", "rotate6", [225, 139, 125, 122]), ("hexagonal", "rotate6reflect", [186, 105, 93, 91]),
    ("hexagonal", "permute", [93, 61, 61, 61]), ("oneDimensional", "none", [765, 937, 1031, 1187]),
    ("oneDimensional", "reflect", [791, 926, 998, 1106]), ("oneDimensional", "permute", [791, 926, 998, 1106]),
]  # fmt: skip
"""Cells that are not 0 after 1, 2, 3 and 8 steps from the portable soup of 3 states on a torus of 32 x 40 cells (in one
dimension: the sum over its rows), by bgolly 3.3, algorithm RuleLoader."""


def table(neighbourhood: str, symmetries: str, transitions: str, states: int = 3, variables: str = VARIABLES) -> str:
    head = f"@RULE made-up\nwords\n@TABLE\nn_states:{states}\nneighborhood:{neighbourhood}\nsymmetries:{symmetries}\n"
    return f"{head}{variables}{transitions}\n@COLORS\n1 255 0 0\n"


def rule(folder: Path, text: str, ndim: int = 2) -> Any:
    (folder / "made-up.rule").write_text(text)
    return find_rule("made-up.rule", ndim, folder)


@pytest.mark.few(3)
@pytest.mark.parametrize(("neighbourhood", "symmetries", "populations"), GOLLY, ids=lambda value: str(value)[:20])
def test_symmetries_as_golly_has_them(
    tmp_path: Path, neighbourhood: str, symmetries: str, populations: list[int]
) -> None:
    one = neighbourhood == "oneDimensional"
    which = rule(tmp_path, table(neighbourhood, symmetries, TABLES[neighbourhood]), 1 if one else 2)
    assert which.name == "made-up"
    soup = many_states((32, 40), 3)
    parts, done, found = list(soup) if one else [soup], 0, []
    for step in (1, 2, 3, 8):
        parts, done = [evolve(which, part, step - done) for part in parts], step
        found.append(sum(np.count_nonzero(part) for part in parts))
    assert found == populations


def test_a_table_without_commas_and_the_first_match(tmp_path: Path) -> None:
    """Comments, digits in a row, exceptions before the general case, and cells that no line fits stay."""
    text = table("oneDimensional", "none", "# first\n0112 # not 1\n01a1\n\n", variables="var a = { 0, 1 , 2 }\n")
    with pytest.raises(CaseError, match="neither a state nor a variable"):
        rule(tmp_path, text.replace("01a1", "0,1,q,1"), 1)
    which = rule(tmp_path, text.replace("01a1", "0,1,a,1"), 1)
    assert evolve(which, np.array([1, 0, 1, 0, 0, 2], "u1"), 1).tolist() == [1, 2, 1, 1, 0, 2]


def test_variables_are_bound(tmp_path: Path) -> None:
    """The example of Golly's help: a signal (2, 3) goes along a wire (1)."""
    text = table("vonNeumann", "rotate4", "a,0,b,1,c,b", 4, "var a={2,3}\nvar b={2,3}\nvar c={a,3}\n")
    which = rule(tmp_path, text)
    cells = np.zeros((5, 6), "u1")
    cells[1:4, 1:4] = [(0, 0, 0), (2, 2, 3), (0, 1, 0)]
    assert evolve(which, cells, 1)[2, 2] == 3
    assert np.rot90(evolve(which, np.rot90(cells), 1), -1)[2, 2] == 3
    assert evolve(which, cells.T.copy(), 1)[2, 2] == 2


@pytest.mark.parametrize(("variables", "output", "becomes"), [
    ("a={0,1} b={0,1}", "a", 1), ("a={0,1} b={0,1}", "b", 0), ("a={1,0} b={1,0}", "a", 0), ("a={0,1} b={1,0}", "a", 0),
    ("b={1,0} a={1,0}", "b", 1), ("c={1,0} a={c} b={0,1}", "b", 0),
])  # fmt: skip
def test_of_several_values_that_match_the_first_counts(
    tmp_path: Path, variables: str, output: str, becomes: int
) -> None:
    """A cell with the neighbours 0, 0, 1, 1 matches in two ways; the next states are those of bgolly 3.3."""
    lines = "".join(f"var {word}\n" for word in variables.split())
    which = rule(tmp_path, table("vonNeumann", "permute", f"2,a,a,b,b,{output}", 3, lines))
    cells = np.zeros((5, 5), "u1")
    cells[2, 2], cells[1, 2], cells[2, 3] = 2, 1, 1
    assert evolve(which, cells, 1)[2, 2] == becomes


def test_a_variable_may_be_declared_again(tmp_path: Path) -> None:
    """It has its new values from there on only."""
    text = table("oneDimensional", "none", "0,a,0,2\nvar a={2}\n0,0,a,1", 3, "var a={1}\n")
    assert evolve(rule(tmp_path, text, 1), np.array([1, 0, 0, 2, 0, 0], "u1"), 1).tolist() == [1, 2, 1, 2, 0, 0]


@pytest.mark.slow
def test_langtons_loop() -> None:
    """The published counts of cells that are not 0 (C. G. Langton, Physica D 10 (1984) 135; bgolly agrees)."""
    pattern = read_pattern(SHIPPED / "patterns" / "langtons-loop.rle")
    assert pattern.rule is not None
    which = find_rule(pattern.rule, 2, Path())
    assert which.states == 8
    cells = np.zeros((70, 70), "u1")
    rows, columns = pattern.cells.shape
    cells[30 : 30 + rows, 25 : 25 + columns] = pattern.cells
    known = {0: 86, 1: 86, 10: 88, 100: 138, 151: 171, 152: 170}
    assert {
        step: np.count_nonzero(run_model(mg.automaton(which, cells.shape, init=cells), step).cell) for step in known
    } == known


# Trees
def life_tree() -> str:
    """Life as a tree: nodes count the live neighbours seen so far."""
    lines, numbers = [], {}
    for depth in range(1, 10):
        for count in range(10 - depth):
            if depth == 1:
                children = [int(count == 3), int(count in (2, 3))]
            else:
                children = [numbers[depth - 1, count], numbers[depth - 1, count + 1]]
            numbers[depth, count] = len(lines)
            lines.append(" ".join(map(str, [depth, *children])))
    return f"@RULE life\n@TREE\nnum_states=2\nnum_neighbors=8\nnum_nodes={len(lines)}\n" + "\n".join(lines) + "\n"


def test_a_tree(tmp_path: Path) -> None:
    cells = seed_cells((24, 30))
    which = rule(tmp_path, life_tree())
    assert np.array_equal(evolve(which, cells, 10), evolve(life_like("B3/S23"), cells, 10))


def test_a_tree_asks_the_neighbours_in_gollys_order(tmp_path: Path) -> None:
    """North, west, east, south, centre: the next state is the state of the one that is asked first."""
    lines = ["1 0 0 0", "1 1 1 1", "1 2 2 2"]
    for depth in (2, 3, 4):
        first = 3 * (depth - 2)
        lines += [f"{depth} {first + k} {first + k} {first + k}" for k in range(3)]
    lines.append("5 9 10 11")
    which = rule(tmp_path, "@TREE\nnum_states=3\nnum_neighbors=4\nnum_nodes=13\n" + "\n".join(lines))
    cells = many_states((8, 9), 3)
    assert np.array_equal(evolve(which, cells, 1), np.roll(cells, 1, 0))


# Diagrams
@given(st.integers(0, 2**32), st.integers(2, 4), st.integers(2, 5))
def test_diagrams_and_their_tables_agree(seed: int, states: int, count: int) -> None:
    random = np.random.default_rng(seed)
    sizes = [1, *random.integers(1, 4, count - 1).tolist(), states]
    levels = tuple(
        random.integers(0, size, (nodes, states)).astype(np.int32) for nodes, size in itertools.pairwise(sizes)
    )
    whole = Diagram(states, tuple((0, k) for k in range(count)), levels)
    small = reduced(whole)
    assert all(len(after) <= len(before) for after, before in zip(small.levels, whole.levels))
    values = random.integers(0, states, (50, count))
    assert np.array_equal(small(values), whole(values))
    node = np.zeros(50, np.int64)
    for stage in stages(small):
        for place in range(stage.first, stage.first + stage.asked):
            node = node * states + values[:, place]
        node = stage.table[node].astype(np.int64)
    assert np.array_equal(node, whole(values))


@pytest.mark.slow
def test_large_rules_take_several_tables(tmp_path: Path) -> None:
    """Thirty states and eight neighbours: a full table would have 2e13 entries."""
    transitions = "0,9,9,a,a,a,a,a,a,5\n5,x,x,x,x,x,x,x,x,6\n9,u,v,w,x,y,p,q,r,9"
    every = "{" + ",".join(map(str, range(30))) + "}"
    variables = "".join(f"var {name}={every}\n" for name in "auvwxypqr")
    which = rule(tmp_path, table("Moore", "rotate8", transitions, 30, variables))
    cells = many_states((20, 66), 30)

    def model() -> Any:
        return mg.automaton(which, cells.shape, init=cells)

    alone = run_model(model(), 5)
    assert np.array_equal(alone.cell, evolve(which, cells, 5))
    assert_same(alone, run_model(model(), 5, ranks=3))


# Mistakes
GOOD = table("vonNeumann", "rotate4", "1,a,a,b,u,2")


@pytest.mark.parametrize(("old", "new", "words", "line"), [
    ("@TABLE", "@NOTHING", "neither a @TABLE nor a @TREE", None), ("n_states:3", "n_states:1", "2 .. 256", 4),
    ("n_states:3", "n_states:x", "'x'", 4), ("n_states:3\n", "", "has no entry n_states", 4),
    ("n_states", "n_state", "did you mean 'n_states'", 4), ("vonNeumann", "VonNeuman", "did you mean 'vonNeumann'", 5),
    ("rotate4", "rotate8", "no symmetries 'rotate8'", 6), ("{1,2}", "{1,3}", "0 .. 2", 8),
    ("{1,2}", "{}", "stands for no state", 8), ("{1,2}", "{q}", "neither a state nor a variable", 8),
    ("1,a,a,b,u,2", "1,a,a,b,2", "5 states, expected 6", 14), ("1,a,a,b,u,2", "1,a,a,b,u,v", "could be any", 14),
    ("1,a,a,b,u,2", "1,a,a,b,u,3", "0 .. 2", 14), ("1,a,a,b,u,2", "symmetries:none", "after the first", 14),
])  # fmt: skip
def test_mistakes_in_tables(tmp_path: Path, old: str, new: str, words: str, line: int | None) -> None:
    rule(tmp_path, GOOD)
    with pytest.raises(CaseError, match=r"automaton\.rule") as caught:
        rule(tmp_path, GOOD.replace(old, new, 1))
    assert words in str(caught.value)
    assert line is None or f"made-up.rule:{line}" in str(caught.value)


@pytest.mark.parametrize(("old", "new", "words"), [
    ("num_states=2", "num_states=1", "2 .. 256"), ("num_nodes=45", "", "has no entry num_nodes"),
    ("num_neighbors=8", "num_neighbors=5", "5 neighbors"), ("num_states=2", "num_stats=2", "did you mean 'num_states'"),
    ("1 0 0", "1 0 2", "0 .. 1"), ("1 0 0", "1 0", "expected its depth"), ("1 0 0", "2 0 0", "another depth"),
    ("2 0 1", "2 0 99", "child"), ("9 42 43", "8 42 43", "depth"), ("9 42 43", "", "end with its root"),
])  # fmt: skip
def test_mistakes_in_trees(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = life_tree()
    assert f"{old}\n" in text
    with pytest.raises(CaseError, match=r"automaton\.rule") as caught:
        rule(tmp_path, text.replace(f"{old}\n", f"{new}\n", 1))
    assert words in str(caught.value)


@pytest.mark.slow
def test_what_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="is for 2 dimensions, the grid has 3"):
        rule(tmp_path, GOOD, 3)
    every = "{" + ",".join(map(str, range(200))) + "}"
    many = table("Moore", "permute", "x,y,z,w,x,y,z,w,0,1", 200, "".join(f"var {n}={every}\n" for n in "xyzw"))
    with pytest.raises(CaseError, match="has more than"):
        rule(tmp_path, many)


@given(
    st.text("@TABLERn_states:neighborhoodsymmetries=vonNeumannMoorepermuterotate4 0123456789,{}#\nvar ab", max_size=200)
)
def test_any_text_is_a_rule_file_or_is_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    for content in (text, GOOD + text, life_tree() + text):
        try:
            rule(folder, content)
        except CaseError as error:
            assert error.key == "automaton.rule"  # noqa: PT017
