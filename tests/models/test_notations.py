"""The notations of rules: canonical names, what they mean (bgolly's populations), and what is said of wrong ones."""

from __future__ import annotations

import itertools
import string
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minga as mg
from minga.errors import CaseError
from minga.lang.block import BlockRule
from minga.lang.updates import SecondOrder
from minga.models.automaton.notation.isotropic import LETTERS, Isotropic, arrangements, parse_isotropic
from minga.models.automaton.notation.larger_than_life import parse_larger_than_life
from minga.models.automaton.rules import find_rule, life_like
from model_runs import assert_same, run_model
from rule_oracle import evolve, many_states, seed_cells

HERE = Path()
LIFE_MAP = "MAPARYXfhZofugWaH7oaIDogBZofuhogOiAaIDogIAAgAAWaH7oaIDogGiA6ICAAIAAaIDogIAAgACAAIAAAAAAAA"

RANDOM_MAP = "MAPArcO7n8aUDm+8H7CNH8GbtCPXcdRJEfjQEMAAmtuVFWUoGVoXWTEmAu41FRKhyGpmgGtIZ61nPahXvbxWh2DCg"


def rule(text: str, ndim: int = 2) -> Any:
    return find_rule(text, ndim, HERE)


# What Golly makes of them --------------------------------------------------------------------------------------------
GOLLY = [
    ("B2cekin/S12", "B2-a/S12", [1318, 1129, 912, 784, 484]),
    ("B3/S2-i34q", "B3/S2-i34q", [1813, 1598, 1426, 1149, 684]),
    ("B3/2a34", "B3/S2a34", [1857, 1803, 1691, 1664, 1594]),
    ("b2c3aei4ajnr5acn/s2-c3acek4anqz5c6", "B2c3aei4ajnr5acn/S2-c3acek4anqz5c6", [1407, 1122, 585, 233, 205]),
    ("B4-qjrtwz/S", "B4aceikny/S", [360, 6, 0, 0, 0]),
    ("B34kz5e7c8/S23-a4ityz5k", "B34kz5e7c8/S23-a4ityz5k", [2063, 1626, 1310, 936, 378]),
    ("B1e2ck/S1c3i", "B1e2ck/S1c3i", [754, 750, 988, 881, 918]),
    ("b2nic_s", "B2cin/S", [242, 64, 0, 0, 0]),
    (LIFE_MAP, LIFE_MAP, [1827, 1557, 1427, 1081, 728]),
    ("MAPFgFoFg", "MAPFgFoFg", [1241, 840, 259, 117, 114]),
    ("MAPHmlphoaaaaaaaaaaaaaaaa==", "MAPHmlphoaaaaaaaaaaaaaaaa", [2515, 2473, 2492, 2450, 2423]),
    ("MAPfJX1wsRRhZr+gNQKo537kg", "MAPfJX1wsRRhZr+gNQKo537kg", [2879, 2584, 2557, 2561, 2537]),
    ("MAPSGSX7g", "MAPSGSX7g", [2332, 2476, 2583, 2596, 2629]),
    (RANDOM_MAP, RANDOM_MAP, [2411, 2409, 2367, 2446, 2451]),
    ("/2/3", "/2/3", [1869, 1700, 1285, 913, 282]),
    ("B2-a/S12/3", "12/2-a/3", [1591, 1586, 1183, 899, 426]),
    ("S345/B2/4", "345/2/4", [1830, 1616, 984, 388, 204]),
    ("234/34678/C24", "234/34678/24", [1780, 1679, 1419, 1014, 0]),
    ("12-ak/2cek3-a/6", "12-ak/2cek3-a/6", [1690, 1393, 534, 148, 55]),
    ("12/2/4V", "12/2/4V", [1436, 861, 443, 400, 342]),
    ("24/2/5H", "24/2/5H", [1653, 1270, 208, 28, 25]),
    (f"{LIFE_MAP}/5", f"{LIFE_MAP}/5", [1439, 989, 85, 44, 40]),
    ("R1,C0,M0,S2..3,B3..3,NM", "R1,C0,M0,S2..3,B3..3,NM", [1827, 1557, 1427, 1081, 728]),
    ("5,34,45,34,58", "R5,C0,M1,S34..58,B34..45,NM", [3679, 88, 0, 0, 0]),
    ("R7,C0,M1,S50..80,B45..60,NC", "R7,C0,M1,S50..80,B45..60,NC", [2823, 674, 905, 674, 891]),
    ("r3,c4,b5..9,s3..8,nn", "R3,C4,M0,S3..8,B5..9,NN", [1617, 1486, 3090, 2655, 2915]),
    ("R2,C5,M1,S0..0,B4..7,NM", "R2,C5,M1,S0..0,B4..7,NM", [1883, 1864, 1768, 1883, 1307]),
    ("R6,C0,M0,S0..20,B12..20,NN", "R6,C0,M0,S0..20,B12..20,NN", [74, 148, 421, 1102, 1123]),
    ("R2,C3,M1,S2..3,B3..3,NC", "R2,C3,M1,S2..3,B3..3,NC", [1681, 1539, 1408, 1354, 1478]),
]  # fmt: skip
"""Text, canonical name, and cells that are not 0 after 1, 2, 5, 10 and 30 steps from the portable soup on a torus of
64 x 80 cells, by bgolly 3.3 (algorithms QuickLife, Generations, Larger than Life)."""


@pytest.mark.parametrize(("text", "name", "populations"), GOLLY, ids=[name[:30] for _, name, _ in GOLLY])
def test_as_golly_does(text: str, name: str, populations: list[int]) -> None:
    which = rule(text)
    assert which.name == name
    assert rule(name).name == name
    cells, done = many_states((64, 80), which.states), 0
    radius = max(abs(x) for offset in which.neighbourhood.around(2) for x in offset)
    for step, population in zip((1, 2, 5, 10, 30), populations):
        cells, done = evolve(which, cells, step - done, radius=radius), step
        assert np.count_nonzero(cells) == population, step


# Hensel's letters
def test_the_letters_are_all_arrangements() -> None:
    """Every set of live neighbours has one letter, and the numbers of letters are Burnside's: 1 2 6 10 13 10 6 2 1."""
    assert [max(1, len(LETTERS[count])) for count in range(9)] == [1, 2, 6, 10, 13, 10, 6, 2, 1]
    seen = [set(arrangements(f"{count}{letter}")) for count in range(9) for letter in LETTERS[count] or [""]]
    assert set().union(*seen) == set(range(256))
    assert sum(map(len, seen)) == 256


@pytest.mark.parametrize(("text", "name"), [
    ("B2aceikn3/S", "B23/S"), ("B3/S2-a", "B3/S2-a"), ("B2a2c/S", "B2ac/S"), ("23-a/3", "B3/S23-a"),
    ("B4-cekainyqjrtw/S4-cekainyqjrtwz", "B4z/S"), ("S2-i34q/B3", "B3/S2-i34q"), ("B2-aceikn3a/S", "B3a/S"),
])  # fmt: skip
def test_spellings(text: str, name: str) -> None:
    assert str(parse_isotropic(text)) == name


@given(st.sets(st.sampled_from([f"{n}{letter}" for n in range(9) for letter in LETTERS[n] or [""]])))
def test_written_letters_read_back(conditions: set[str]) -> None:
    which = Isotropic(frozenset(conditions), frozenset(["3a"]))
    assert parse_isotropic(str(which)) == which


def test_letters_of_all_arrangements_are_counts() -> None:
    cells = seed_cells((24, 40))
    letters = rule("B3aceijknqry/S2aceikn3acekinyqjr")
    assert np.array_equal(evolve(letters, cells, 9), evolve(life_like("B3/S23"), cells, 9))


# Larger than Life
def test_ranges_and_counts() -> None:
    which = parse_larger_than_life("R2,C0,M0,S2-3,5,7..9,8..11,B3,NM")
    assert which is not None
    assert str(which) == "R2,C0,M0,S2..3,5..5,7..11,B3..3,NM"
    assert rule("R1,C2,S2..3,B3").name == "R1,C0,M0,S2..3,B3..3,NM"
    cells = seed_cells((20, 30))
    assert np.array_equal(evolve(rule("R1,S2,3,B3"), cells, 6), evolve(life_like("B3/S23"), cells, 6))


@pytest.mark.parametrize(("letter", "size"), [
    ("M", 48), ("N", 24), ("C", 36), ("2", 28), ("+", 12), ("X", 12), ("*", 24), ("#", 24), ("H", 36), ("B", 24),
    ("D", 24),
])  # fmt: skip
def test_neighbourhoods_of_radius_three(letter: str, size: int) -> None:
    assert len(rule(f"R3,C0,M0,S1..2,B2..2,N{letter}").neighbourhood.around(2)) == size


def test_counts_in_any_shape() -> None:
    cells = seed_cells((30, 40))
    padded = np.pad(cells, 4, mode="wrap")
    for letter, ndim in itertools.product("MNC2+X*#HBD", (2,)):
        which = rule(f"R4,C0,M1,S5..9,B7..12,N{letter}", ndim)
        count = (
            sum(padded[4 + y : 34 + y, 4 + x : 44 + x].astype(int) for y, x in which.neighbourhood.around(2)) + cells
        )
        expected = np.where(cells == 1, (count >= 5) & (count <= 9), (count >= 7) & (count <= 12))
        assert np.array_equal(evolve(which, cells, 1, radius=4), expected), letter


def test_larger_than_life_in_one_and_three_dimensions() -> None:
    line = seed_cells((50,))
    padded = np.pad(line, 11, mode="wrap").astype(int)
    count = sum(padded[11 + x : 61 + x] for x in range(-11, 12) if x)
    found = evolve(rule("R11,C0,M0,S6..9,B7..10,NM", 1), line, 1, radius=11)
    assert np.array_equal(found, np.where(line == 1, (count >= 6) & (count <= 9), (count >= 7) & (count <= 10)))
    box = seed_cells((9, 10, 11))
    assert np.array_equal(
        evolve(rule("R1,C0,M0,S4..5,B5..5,NM", 3), box, 4), evolve(life_like("B5/S45", 3), box, 4)
    )  # fmt: skip


# Numbers
def test_elementary_codes_with_more_neighbours_and_colours() -> None:
    """A number spelled for radius 2 or three colours that ignores the rest is the elementary rule."""
    line = seed_cells((60,))
    wide = sum((30 >> (code >> 1 & 7) & 1) << code for code in range(32))
    assert np.array_equal(evolve(rule(f"W{wide},R2", 1), line, 20, radius=2), evolve(rule("W30", 1), line, 20))
    three = sum((30 >> (4 * (a > 0) + 2 * (b > 0) + (c > 0)) & 1) * 3 ** (9 * a + 3 * b + c)
                for a in range(3) for b in range(3) for c in range(3))  # fmt: skip
    assert np.array_equal(evolve(rule(f"W{three},K3", 1), line, 20), evolve(rule("W30", 1), line, 20))


def test_totalistic_code_777() -> None:
    """A New Kind of Science, page 60: code 777 of three colours, by its digits 1001210 in base 3."""
    digits = [0, 1, 2, 1, 0, 0, 1]
    assert sum(digit * 3**place for place, digit in enumerate(digits)) == 777
    line = many_states((80,), 3)
    expected = line
    for _ in range(15):
        total = np.roll(expected, 1).astype(int) + expected + np.roll(expected, -1)
        expected = np.array(digits, np.uint8)[total]
    assert np.array_equal(evolve(rule("T777,K3", 1), line, 15), expected)


def test_outer_totalistic_code_224_is_life() -> None:
    """Code 224 of nine neighbours (Packard and Wolfram, J. Stat. Phys. 38 (1985) 901)."""
    cells = seed_cells((20, 24))
    assert np.array_equal(evolve(rule("O224"), cells, 8), evolve(life_like("B3/S23"), cells, 8))


def test_code_942_of_five_neighbours() -> None:
    """Born with 1 or 4 live neighbours, live cells stay (page 928): from one cell 1, 5, 9, 21 cells."""
    cells = np.zeros((33, 33), "u1")
    cells[16, 16] = 1
    expected, populations = cells, []
    for step in range(8):
        populations.append(int(expected.sum()))
        n = sum(np.roll(expected, shift, axis).astype(int) for axis in (0, 1) for shift in (1, -1))
        expected = np.where(expected == 1, 1, (n == 1) | (n == 4)).astype("u1")
        assert np.array_equal(evolve(rule("O942,NN"), cells, step + 1), expected)
    assert populations[:4] == [1, 5, 9, 21]


# Blocks, second order, weights
def test_margolus_lists_are_block_tables() -> None:
    """Both spellings of the billiard ball machine are the same rule; three states need 81 entries."""
    ball = "0,8,4,3,2,5,9,7,1,6,10,11,12,13,14,15"
    one, other = rule(f"M{ball}"), rule(f"MS,D{ball.replace(',', ';')}")
    assert isinstance(one, BlockRule)
    assert one.table == other.table
    assert one.name == other.name == f"M{ball}"
    assert rule("M" + ",".join(map(str, range(81)))).states == 3


def test_second_order() -> None:
    line, before = seed_cells((60,)), seed_cells((60,), 8, 2)
    which = rule("W214R", 1)
    assert which.name == "W214R"
    assert which.update == SecondOrder()
    expected, earlier = line, before
    for _ in range(12):
        expected, earlier = evolve(rule("W214", 1), expected, 1) ^ earlier, expected
    left = run_model(mg.automaton("W214R", (60,), init=line, before=before), 12)
    assert np.array_equal(left.cell, expected)
    assert rule("/2/3R").name == "/2/3R"
    assert rule("B3/S23R").update == rule("B2-a/S12R").update == SecondOrder()
    assert rule("B3/S23r").name == "B3/S23r"  # one of Hensel's letters
    with pytest.raises(CaseError):
        rule("W30RR", 1)


def test_weighted_rules() -> None:
    cells = seed_cells((20, 30))
    as_life = rule("NW1,NN1,NE1,WW1,EE1,SW1,SS1,SE1,HI0,RS2,RS3,RB3")
    assert np.array_equal(evolve(as_life, cells, 6), evolve(life_like("B3/S23"), cells, 6))
    which = rule("NN2,EE-1,ME3,SS1,WW1,RS3,RS5,RB1,RB-1")
    n, e, s, w = (np.roll(cells, shift, axis).astype(int) for axis, shift in ((0, 1), (1, -1), (0, -1), (1, 1)))
    total = 2 * n - e + s + w + 3 * cells
    expected = np.where(cells == 1, np.isin(total, [3, 5]), np.isin(total, [1, -1]))
    assert np.array_equal(evolve(which, cells, 1), expected)
    assert which.name == "NW0,NN2,NE0,WW1,ME3,EE-1,SW0,SS1,SE0,HI0,RS3,RS5,RB-1,RB1"
    assert rule(which.name).name == which.name


# The same bits
@pytest.mark.slow
@pytest.mark.parametrize(("text", "shape"), [
    ("R5,C0,M1,S34..58,B34..45,NM", (60, 140)),
    pytest.param("R4,C3,M0,S8..14,B9..13,NC", (40, 75), marks=pytest.mark.slow),
    pytest.param("R6,C0,M1,S20..40,B18..30,NN", (50, 64), marks=pytest.mark.slow), ("B2-a/S12/4", (33, 70)),
])  # fmt: skip
def test_the_same_bits_on_any_layout(text: str, shape: tuple[int, int]) -> None:
    def model() -> Any:
        return mg.automaton(text, shape, init={"soup": 0.45, "seed": 3}, storage="bytes")

    alone = run_model(model(), 6)
    radius = max(abs(x) for offset in rule(text).neighbourhood.around(2) for x in offset)
    start = run_model(model(), 0).cell
    assert np.array_equal(alone.cell, evolve(rule(text), start, 6, radius=radius))
    for options in ({"ranks": 2}, {"ranks": 4, "halo_depth": 2}, {"ranks": 3, "layout": "bisection"}, {"threads": 2}):
        assert_same(alone, run_model(model(), 6, **options))


# Mistakes
@pytest.mark.parametrize(("text", "ndim", "words"), [
    ("B2x/S", 2, "not a rule"), ("B1a/S", 2, "there is no arrangement 1a"), ("B3/S0c", 2, "write it without"),
    ("B2a/S", 3, "is for 2 dimensions"), ("B2a/SV", 2, "not a rule"), ("23/3/1", 2, "has 1 states"),
    ("23/3/257", 2, "2 .. 256"), ("9/2/3", 2, "a cell has 8"), ("2-a/3/3", 1, "is for 2 dimensions"),
    ("R501,C0,M1,S1..2,B1..2,NM", 2, "1 .. 500"), ("R0,S1..2,B1..2", 2, "radius 0"),
    ("R1,C257,S1,B1", 2, "at most 256"),
    ("R1,C0,M2,S1..2,B1..2,NM", 2, "M2"), ("R1,C0,M1,S3..2,B1..2,NM", 2, "range 3..2 is empty"),
    ("R1,C0,M1,S2..10,B1..2,NM", 2, "has 9 with the cell"), ("R1,C0,M1,S2..3,B1..2,NQ", 2, "no neighbourhood NQ"),
    ("R100,S1,B1,NM", 4, "chooses from"), ("R400,S1,B1,NC", 2, "too large"),
    ("R2,S1,B1,N+", 3, "is for 2 dimensions"), ("5,34,45,34", 2, "not a rule"),
    ("W256", 1, "W0 .. W255"), ("T777,K2", 1, "T0 .. T15"), ("T1,K1", 1, "1 states"), ("T1,R0", 1, "radius 0"),
    ("W1,R9", 1, "distinguishes more than"), ("O1,NQ", 2, "NQ"), ("T1,K3,K3", 1, "has K twice"),
    ("T1,KA", 1, "'A' is not a number"),
    ("T1,R400,NN", 3, "distinguishes more than"), ("W30,K3", 2, "one dimension"), ("M1,2,3", 2, "found 3"),
    ("M0,8,4,3,2,5,9,7,1,6,10,11,12,13,14,16", 2, "becomes 16"), ("M0,8,4,3,2,5,9,7,1,6,10,11,12,13,14,15", 3, "2 dim"),
    ("MAPabc", 2, "followed by 3"), (f"{LIFE_MAP}/1", 2, "1 states"), (LIFE_MAP, 1, "2 dimensions"),
    ("NN1,QQ2,RS1", 2, "there is no QQ"), ("NN1,NN2,RS1", 2, "two weights"), ("NN1,RS7", 2, "sums are 0 .. 1"),
    ("ME1,RS1", 2, "no neighbour"), ("NN1,RS1,HI300", 2, "at most 256"), ("NN9999,RS1", 2, "at most 1000"),
    ("B3/S23:T64,64", 2, "grid.shape"), ("nothing.rule", 2, "there is no file"), ("B3/S23RR", 2, "not a rule"),
    ("B2A/S", 2, "not a rule"), ("R5,C0,M1,S34-100..58,B34..45,NM", 2, "no range of counts"),
    ("R5,C0,M1,S34..5899999999995899999999999934..45,NM", 2, "not a rule"),
])  # fmt: skip
def test_mistakes(text: str, ndim: int, words: str) -> None:
    with pytest.raises(CaseError, match=r"automaton\.rule") as caught:
        rule(text, ndim)
    assert words in str(caught.value)
    assert caught.value.remedy


NEAR_RULES = st.text("RCMSBNWTOKHI0123456789.,-/;VceanADPGX+*#:_", max_size=40) | st.text(string.printable, max_size=20)


@given(NEAR_RULES, st.sampled_from([1, 2, 3]))
def test_any_text_is_a_rule_or_is_refused(text: str, ndim: int) -> None:
    make = partial(find_rule, text.replace(".py", ""), ndim, Path("nowhere"))
    try:
        found = make()
    except CaseError as error:
        assert error.key == "automaton.rule"  # noqa: PT017
    else:
        assert found.states is None or 2 <= found.states <= 256
