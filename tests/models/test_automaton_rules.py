"""B/S and elementary rules: how they are spelled, and the generations they are known to give."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError
from minga.models.automaton.patterns import read_rle
from minga.models.automaton.rules import elementary, find_rule, life_like, parse_birth_survival
from rule_oracle import crc, evolve, graph_of, seed_cells

HERE = Path()


@pytest.mark.parametrize(("text", "name"), [
    ("B3/S23", "B3/S23"), ("b3s23", "B3/S23"), ("23/3", "B3/S23"), ("S23/B3", "B3/S23"), (" B3 / S2 3 ", "B3/S23"),
    ("B36/S23", "B36/S23"), ("B63/S32", "B36/S23"), ("B2/S", "B2/S"), ("/2", "B2/S"), ("B0/S8", "B0/S8"),
    ("B2/S13V", "B2/S13V"), ("b2s34h", "B2/S34H"), ("B5/S4,10", "B5/S4,10"), ("B/S", "B/S"),
])  # fmt: skip
def test_spellings(text: str, name: str) -> None:
    parsed = parse_birth_survival(text)
    assert str(parsed) == name
    assert parse_birth_survival(str(parsed)) == parsed


@pytest.mark.parametrize(("text", "suggestion"), [
    ("B3S2S3", None), ("B3-S23", "B3/S23"), ("3/23x", "B3/S23"), ("life", "B3/S23"), ("", None), ("/", None),
    ("B3/S2x", "B3/S2"), ("X", None), ("T777,3", "T777,K3"), ("w30,2", "W30,K2"),
])  # fmt: skip
def test_nonsense_names_the_key(text: str, suggestion: str | None) -> None:
    with pytest.raises(CaseError) as caught:
        find_rule(text, 2, HERE)
    assert caught.value.key == "automaton.rule"
    assert caught.value.suggestion == suggestion
    assert "B3/S23" in str(caught.value)


@pytest.mark.parametrize(("text", "ndim", "words"), [
    ("B9/S23", 2, "a cell has 8 in 2 dimensions"), ("B5/S23V", 2, "a cell has 4"), ("B3/S23", 1, "a cell has 2"),
    ("B2/S34H", 3, "is for 2 dimensions"), ("B5/S4,27", 3, "names 27 live neighbours"), ("W30", 2, "one dimension"),
    ("W256", 1, "W0 .. W255"), ("missing.py:rule", 2, "there is no file"),
])  # fmt: skip
def test_rules_that_do_not_fit(text: str, ndim: int, words: str) -> None:
    with pytest.raises(CaseError, match=r"automaton\.rule") as caught:
        find_rule(text, ndim, HERE)
    assert words in str(caught.value)


# How they act
@pytest.mark.parametrize("text", [
    "B3/S23", "B36/S23", "B2/S", "B0/S8", "B/S", "B012345678/S012345678", "B3678/S34678", "B1357/S02468", "B/S0",
])  # fmt: skip
def test_every_cell_and_count(text: str) -> None:
    """The few byte operations of the kernel mean what the digits say, for each cell and number of live neighbours."""
    parsed = parse_birth_survival(text)
    assert parsed is not None
    plane = np.zeros((18 * 5, 5), "u1")
    ring = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (2, 2)]
    cases = list(itertools.product((0, 1), range(9)))
    for number, (cell, n) in enumerate(cases):
        plane[5 * number + 2, 2] = cell
        for y, x in ring[:n]:
            plane[5 * number + 1 + y, 1 + x] = 1
    found = evolve(life_like(parsed), plane, 1)[2::5, 2]
    assert found.tolist() == [int(n in (parsed.survival if cell else parsed.birth)) for cell, n in cases]


def test_life_is_one_comparison_a_term() -> None:
    graph = graph_of(life_like("B3/S23"), 2)
    assert [node.op for node in graph.nodes()].count("eq") <= 2
    assert {node.dtype for node in graph.nodes()} == {"u1", "bool"}


REFERENCE = [
    ("B3/S23", "periodic", {1: (1555, "dc44f2b9"), 10: (809, "e0da66c1"), 100: (298, "be56a212")}),
    ("B3/S23", "fixed", {1: (1524, "6cfad3d9"), 10: (797, "df5b4777"), 100: (335, "54306830")}),
    ("B36/S23", "periodic", {1: (1617, "7527230e"), 10: (1038, "6adaa39c"), 100: (429, "59abc955")}),
    ("B36/S23", "fixed", {1: (1586, "c599026e"), 10: (1002, "3727e1fa"), 100: (359, "29334185")}),
    ("B2/S", "periodic", {1: (610, "9777b7f7"), 10: (810, "920a9d8a"), 100: (907, "e9b38dde")}),
    ("B2/S", "fixed", {1: (617, "4317062e"), 10: (805, "b95c2402"), 100: (828, "951e53fa")}),
]
"""Population and CRC-32 after so many generations of the portable soup on 64 x 64 cells; NumPy and bgolly agree."""


def test_the_portable_soup() -> None:
    cells = seed_cells((64, 64))
    assert (int(cells.sum()), crc(cells)) == (1501, "31583052")
    assert "".join(map(str, cells[0, :16])) == "0010001000000010"


@pytest.mark.parametrize(("text", "boundary", "expected"), REFERENCE)
def test_reference_generations(text: str, boundary: str, expected: dict[int, tuple[int, str]]) -> None:
    cells, rule, done = seed_cells((64, 64)), life_like(text), 0
    for generation, known in expected.items():
        cells, done = evolve(rule, cells, generation - done, boundary), generation
        assert (int(cells.sum()), crc(cells)) == known


def test_three_dimensions() -> None:
    cells = seed_cells((16, 16, 16), 4, 1)
    assert (int(cells.sum()), crc(cells)) == (1006, "6fb33daf")
    rule = life_like("B5/S45", 3)
    for steps, known in [(1, (777, "30f8b445")), (1, (704, "28edc3f3")), (3, (641, "5fba7783"))]:
        cells = evolve(rule, cells, steps)
        assert (int(cells.sum()), crc(cells)) == known


@pytest.mark.parametrize(("rle", "populations"), [
    ("b2o$2o$bo!", {0: 5, 1: 6, 2: 7, 3: 9, 4: 8, 5: 9, 10: 11, 50: 64}),
    ("6bo$2o$bo3b3o!", {0: 7, 100: 23, 128: 3, 129: 2, 130: 0}),
    ("bo$3bo$2o2b3o!", {0: 7, 10: 30, 100: 76}),
])  # fmt: skip
def test_known_populations(rle: str, populations: dict[int, int]) -> None:
    cells, done = np.zeros((160, 160), "u1"), 0
    pattern = read_rle(rle).cells
    cells[70 : 70 + pattern.shape[0], 70 : 70 + pattern.shape[1]] = pattern
    for generation, population in populations.items():
        cells, done = evolve(life_like("B3/S23"), cells, generation - done), generation
        assert int(cells.sum()) == population


def test_a_glider_comes_back_round_the_torus() -> None:
    cells = np.zeros((9, 9), "u1")
    cells[3:6, 3:6] = read_rle("bo$2bo$3o!").cells
    assert np.array_equal(evolve(life_like("B3/S23"), cells, 4), np.roll(cells, (1, 1), (0, 1)))
    assert np.array_equal(evolve(life_like("B3/S23"), cells, 36), cells)


# One dimension
def history(number: int, steps: int) -> np.ndarray:
    rows = np.zeros((steps + 1, 2 * steps + 3), "u1")
    rows[0, steps + 1] = 1
    for t in range(steps):
        rows[t + 1] = evolve(elementary(number), rows[t], 1)
    return rows


def test_rule_30() -> None:
    rows = history(30, 100)
    assert rows[:16].sum(1).tolist() == [1, 3, 3, 6, 4, 9, 5, 12, 7, 12, 11, 14, 12, 19, 13, 22]
    assert rows[100].sum() == 103
    as_integers = [int("".join(map(str, row)).strip("0") or "0", 2) for row in rows[:8]]
    assert as_integers == [1, 7, 25, 111, 401, 1783, 6409, 28479]
    centre = "1101110011000101100100111010111001110101011000011001010110101011"
    assert "".join(map(str, rows[:64, 101])) == centre


def test_rules_90_and_110() -> None:
    assert history(90, 40).sum(1).tolist() == [2 ** t.bit_count() for t in range(41)]
    assert history(110, 15).sum(1).tolist() == [1, 2, 3, 3, 5, 3, 5, 6, 8, 5, 6, 8, 8, 8, 11, 11]


@pytest.mark.parametrize("density", [0.25, 0.5, 0.75])
def test_traffic_flows_at_its_largest_rate(density: float) -> None:
    """Rule 184 on a ring: the stationary flux is min(density, 1 - density) exactly."""
    cars = np.zeros(128, "u1")
    cars[np.random.default_rng(3).permutation(128)[: int(128 * density)]] = 1
    cars = evolve(elementary(184), cars, 128)
    moving = (cars == 1) & (np.roll(cars, -1) == 0)
    assert moving.sum() == min(density, 1 - density) * 128


# Rules in Python files
def test_rules_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("LIVE = 1\n")
    (tmp_path / "rules.py").write_text(
        "from beside import LIVE\nfrom minga.lang.rule import rule\n"
        "@rule\ndef stay(cell, near):\n    return cell\n"
        "@rule\ndef grow(cell, near):\n    return near.any(LIVE)\n"
    )
    assert find_rule("rules.py:grow", 2, tmp_path).name == "grow"
    with pytest.raises(CaseError, match="'stay', 'grow'"):
        find_rule("rules.py", 2, tmp_path)
    with pytest.raises(CaseError, match="did you mean 'grow'"):
        find_rule("rules.py:gro", 2, tmp_path)


@pytest.mark.parametrize(
    ("text", "words"), [("def f(:\n", "not valid Python"), ("x = 1\ny = 1 / 0\n", "ZeroDivisionError")]
)
def test_files_that_do_not_run(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "rules.py").write_text(text)
    with pytest.raises(CaseError, match=words) as caught:
        find_rule("rules.py:f", 2, tmp_path)
    assert f"rules.py:{text.count(chr(10))}" in str(caught.value)


@pytest.mark.parametrize("words", ["~cell", "-cell", "cell - near[0, 1]", "near.count(1) / 8", "cell + 0.5"])
def test_results_of_two_states_that_are_true_by_arithmetic_are_refused(words: str) -> None:
    rule = mg.rule(states=2)(eval(f"lambda cell, near: {words}"))
    with pytest.raises(mg.MingaError, match="its states are 0 and 1"):
        mg.automaton(rule, (8, 8), init={"soup": 0.3})


@pytest.mark.few(2)
@pytest.mark.parametrize("words", ["1 - cell", "cell ^ 1", "(near.count(1) != 9) & ~cell", "cell == 0"])
def test_ways_to_turn_a_cell_round(words: str) -> None:
    rule = mg.rule(states=2)(eval(f"lambda cell, near: {words}", {}))
    run = mg.run(mg.automaton(rule, (8, 8), init={"soup": 0.3}), steps=1)
    assert (run.cell[0] + run.cell[1] == 1).all()
