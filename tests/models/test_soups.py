"""A census of soups: names of objects as they are published, and the same counts however the soups are shared."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
import typer

import minga as mg
from minga.errors import CaseError, DiskError
from minga.models.automaton.cli.soups_command import soups
from minga.models.automaton.patterns import read_rle
from minga.models.automaton.soups.apgcode import apgcode, as_array, wechsler
from minga.models.automaton.soups.census import SYMMETRIES, Search, cells_of_soup, census, run_soup
from minga.models.automaton.soups.objects import Laboratory, objects


def _app():
    app = typer.Typer()
    app.command()(soups)
    return app


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["3", "--out", "/nope/x.json"], "/nope/x.json cannot be written"),
        (["3", "--workers", "0"], "leave it out: one for each core"),
        (["abc"], "give a whole number: minga soups 1000"),
    ],
)
def test_wrong_arguments_of_the_command_are_refused_at_once(words, expected):
    with pytest.raises(CaseError) as raised:
        typer.main.get_command(_app()).main(words, standalone_mode=False)
    assert expected in str(raised.value)


def test_a_census_that_cannot_be_written_is_printed(monkeypatch, capsys, tmp_path):
    def full(path, content):
        raise DiskError("no room")

    monkeypatch.setattr("minga.output.directory.write_whole", full)
    with pytest.raises(DiskError):
        typer.main.get_command(_app()).main(["1", "--out", str(tmp_path / "x.json")], standalone_mode=False)
    text = capsys.readouterr().out
    assert json.loads(text[text.index("{") :])["soups"] == 1


LIFE = Laboratory(frozenset({3}), frozenset({2, 3}))

# Names: conwaylife.com/wiki/Apgcode, and the pages of the objects there.
PUBLISHED = {
    "xs4_33": "2o$2o!",
    "xp2_7": "3o!",
    "xs6_696": "b2o$o2bo$b2o!",
    "xs7_2596": "b2o$o2bo$bobo$2bo!",
    "xq4_153": "bo$2bo$3o!",
    "xq4_27deee6": "3b2o$bo4bo$o$o5bo$6o!",
    "xp15_4r4z4r4": "2bo4bo$2ob4ob2o$2bo4bo!",
}


def cells(text, at=(0, 0)):
    return frozenset((int(y) + at[0], int(x) + at[1]) for y, x in np.argwhere(read_rle(text).cells))


def later(found, steps=240):
    for _ in range(steps):
        found = LIFE.after(found)
    return found


@pytest.mark.parametrize("name", PUBLISHED)
def test_objects_have_the_names_of_catagolue(name):
    pattern = cells(PUBLISHED[name], at=(-3, 11))
    assert LIFE.names(pattern) == (name,)
    turned = frozenset((x, -y) for y, x in pattern)
    assert LIFE.names(later(turned, 7)) == (name,)


def test_long_runs_of_zeros_are_abbreviated():
    row = frozenset({(0, 0), (0, 2), (0, 5), (0, 9), (0, 30)})
    assert wechsler(as_array(row)) == "101w1x1yg1"
    assert apgcode("p", 2, [frozenset({(0, 0), (0, 50), (50, 0)})]) == "ov_p2"


def test_objects_side_by_side_are_told_apart_and_others_are_not():
    two = cells("2ob2o$2ob2o!")
    assert objects(LIFE, two, two, 240) == {"xs4_33": 2}
    quarter = "2b3o3b3o2$o4bobo4bo$o4bobo4bo$o4bobo4bo$2b3o3b3o2$2b3o3b3o$o4bobo4bo$o4bobo4bo$o4bobo4bo2$2b3o3b3o!"
    (pulsar,) = LIFE.names(cells(quarter))
    assert pulsar.startswith("xp3_")
    blinkers = cells("3o!") | cells("3o!", at=(40, 40))
    assert objects(LIFE, blinkers, later(blinkers), 240) == {"xp2_7": 2}


def test_ash_is_not_settled_while_a_glider_flies_at_something():
    glider, block = cells(PUBLISHED["xq4_153"]), cells("2o$2o!", at=(300, 300))
    assert objects(LIFE, glider | block, later(glider | block), 240) is None
    aside = cells("2o$2o!", at=(300, 330))
    assert objects(LIFE, glider | aside, later(glider | aside), 240) == {"xq4_153": 1, "xs4_33": 1}
    behind = cells("2o$2o!", at=(-300, -300))
    assert objects(LIFE, glider | behind, later(glider | behind), 240) == {"xq4_153": 1, "xs4_33": 1}
    assert objects(LIFE, cells("b2o$2o$bo!"), later(cells("b2o$2o$bo!")), 240) is None


@pytest.mark.slow
def test_counts_do_not_depend_on_who_shares_the_soups():
    search = Search(seed=5)
    whole = census(search, range(30)).as_data(search)
    assert census(search, range(30), workers=2).as_data(search) == whole
    first, second = census(search, range(12)), census(search, range(12, 30))
    assert first.counts + second.counts == whole["counts"]


@pytest.mark.slow
def test_soups_leave_as_many_objects_as_those_of_catagolue():
    # 209 617 450 420 454 objects of 9 708 017 955 331 soups: conwaylife.com/wiki/Catagolue as of November 25, 2017.
    search, each = Search(seed=1), 120
    found = [run_soup(search, number, LIFE) for number in range(each)]
    totals = [sum(counts.values()) for counts in found]
    published = 209617450420454 / 9708017955331
    assert abs(np.mean(totals) - published) < 3 * np.std(totals) / each**0.5
    together = sum(map(Counter, found), Counter())
    assert {name for name, _ in together.most_common(4)} == {"xs4_33", "xp2_7", "xs6_696", "xq4_153"}
    assert "zz_UNSETTLED" not in together


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_soups_have_their_symmetry(symmetry):
    found = cells_of_soup(Search(symmetry=symmetry, size=6), 3)
    kept = {"C1": lambda a: a, "C2_4": lambda a: np.rot90(a, 2), "C4_4": np.rot90, "D2_+2": np.flipud}
    kept["D4_+4"] = lambda a: np.flipud(np.fliplr(a))
    assert np.array_equal(kept[symmetry](found), found)
    assert not np.array_equal(found, cells_of_soup(Search(symmetry=symmetry, size=6), 4))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"rule": "B0/S8"}, "birth from none"), ({"rule": "W30"}, "neighbours"), ({"symmetry": "C2_5"}, "C2_4"),
     ({"density": 1.5}, "probability"), ({"size": 0}, "1 to 256"), ({"steps": 1}, "at least")],
)  # fmt: skip
def test_searches_that_cannot_be_are_refused(wrong, words):
    with pytest.raises(mg.CaseError) as caught:
        Search(**wrong)
    assert words in str(caught.value)
