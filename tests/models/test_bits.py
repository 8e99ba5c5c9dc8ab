"""Automata stored as bits are the same automata: cells, digests, observables as of bytes, whatever the layout."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.model import Model
from minga.lang.kernel import FieldType, ScalarType, Signature
from minga.models.automaton.bits_rule import CellState, Count, Table, Unsuitable, tabulate
from minga.models.automaton.initial import initial_values
from minga.models.automaton.rules import find_rule
from minga.options import RunOptions
from minga.running.session import execute
from minga.space.box import Box
from model_runs import assert_same, run_model
from rule_oracle import evolve
from thinned import thinned


@mg.rule(states=3)
def brain(cell, near):
    return mg.where(cell == 1, 2, mg.where((cell == 0) & (near.count(1) == 2), 1, 0))


@mg.rule(states=4)
def wire(cell, near):
    heads = near.count(1)
    return mg.where(cell == 3, mg.where((heads == 1) | (heads == 2), 1, 3), mg.where(cell == 0, 0, cell + 1))


@mg.rule(states=5)
def five(cell, near):
    return (near.sum() + cell) % 5


@mg.rule(neighbourhood=mg.moore(3))
def bugs(cell, near):
    n = near.count(1) + cell
    return mg.where(cell == 1, (n >= 16) & (n <= 25), (n >= 16) & (n <= 20))


@mg.rule(neighbourhood=mg.circular(3))
def disc(cell, near):
    return (near.count(1) >= 8) & (near.count(1) <= 14)


@mg.rule(neighbourhood=mg.offsets([(0, -70), (0, 65), (2, 3)]))
def far(cell, near):
    return near[0, -70] ^ near[0, 65] ^ (near[2, 3] & cell)


@mg.rule
def logical(cell, near, *, most=5):
    return near.any(1) & ~near.all(1) & ((near[-1, 0] == 1) | (cell == 0)) & (near.count(1) <= most)


RULES = {rule.name: rule for rule in (brain, wire, five, bugs, disc, far, logical)}


def soup(rule: Any) -> dict[str, Any]:
    states = 2 if isinstance(rule, str) else rule.states
    return {"soup": [0.8 / states] * (states - 1), "seed": 4}


def stored(rule: Any, shape: tuple[int, ...], boundary: Any = "periodic", storage: str = "bits") -> Model:
    """An automaton from a soup."""
    model = mg.automaton(rule, shape, init=soup(rule), boundary=boundary, storage=storage)
    assert set(model.packed) == ({"cell"} if storage == "bits" else set())
    return model


def check(rule: Any, shape: tuple[int, ...], boundary: str = "periodic", steps: int = 6, radius: int = 1) -> None:
    """Stored as bits, a rule gives what NumPy makes of its kernel; so do the observers."""
    chosen = find_rule(rule, len(shape), Path()) if isinstance(rule, str) else rule
    first = initial_values(soup(rule), chosen, shape)["cell"](Box.of(shape))
    before = evolve(chosen, first, steps - 1, boundary, radius=radius)
    after = evolve(chosen, before, 1, boundary, radius=radius)
    left = run_model(stored(rule, shape, boundary), steps)
    assert left.cell.dtype == np.uint8
    assert np.array_equal(left.cell, after)
    assert left.observables["population"] == np.count_nonzero(after)
    assert left.observables["histogram"] == np.bincount(after.ravel(), minlength=chosen.states).tolist()
    assert left.observables["residual"] == np.count_nonzero(after != before)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("boundary", "length"),
    thinned(
        itertools.product(["periodic", "fixed", "reflect", "zero-gradient"], [64, 127]),
        *[("periodic", 64), ("fixed", 127), ("reflect", 127), ("zero-gradient", 64)],
    ),
)
def test_boundaries(boundary: str, length: int) -> None:
    check("B3/S23", (9, length), boundary)


@pytest.mark.few(2)
@pytest.mark.parametrize("boundary", [
    *(pytest.param(boundary, marks=pytest.mark.slow) for boundary in (["fixed", 1], ["reflect", "cell"])),
    [["fixed", "reflect"], [["fixed", 1], "reflect"]],
    ["periodic", ["zero-gradient", ["fixed", 1]]], [{"shift": 64}, "periodic"],
    pytest.param(["periodic", {"shift": 3}], marks=pytest.mark.slow),
])  # fmt: skip
def test_boundaries_of_each_side(boundary: Any) -> None:
    for length in (64,) if "shift" in repr(boundary) else (100, 64):
        bytes_, bits = (stored("B3/S23", (9, length), boundary, storage) for storage in ("bytes", "bits"))
        assert_same(run_model(bytes_, 9), run_model(bits, 9))


@pytest.mark.slow
@pytest.mark.parametrize("boundary", [
    [["reflect", ["fixed", 1]], ["fixed", "fixed"]],
    pytest.param([["fixed", ["fixed", 1]], ["reflect", ["fixed", 1]]], marks=pytest.mark.slow),
])  # fmt: skip
def test_corners_between_fixed_states(boundary: Any) -> None:
    """Beyond two ends the last axis has the last say, also within a last word."""
    for shape in ((6, 3), (5, 70), (6, 64)):
        bytes_, bits = (stored("B1357/S1357", shape, boundary, storage) for storage in ("bytes", "bits"))
        assert_same(run_model(bytes_, 5), run_model(bits, 5))
        assert_same(run_model(bytes_, 5), run_model(bits, 5, ranks=2, halo_depth=2))


@pytest.mark.few(2)
@pytest.mark.parametrize("rule", ["B0/S8", "B2/S34H", "B1/S13V", "B/S012345678", "B/S"])
def test_totalistic_rules(rule: str) -> None:
    check(rule, (7, 90))


@pytest.mark.slow
def test_rules_that_look_at_nothing() -> None:
    check(mg.rule(lambda cell, near: 1), (5, 70), "fixed")
    check(mg.rule(lambda cell, near: ~(cell == 1)), (5, 70))


@pytest.mark.parametrize("length", [2, 10, 63])
def test_rows_of_less_than_a_word(length: int) -> None:
    check("B3/S23", (6, length))


@pytest.mark.slow
@pytest.mark.parametrize("length", [70, 64])
def test_neighbours_in_state_0_are_counted(length: int) -> None:
    """A row that ends within a word has bits that are no cells, and do not count."""
    near_nothing = mg.rule(lambda cell, near: mg.where(near.count(0) > 3, (cell + 1) % 3, cell), states=3)
    check(near_nothing, (7, length))
    check("NN2,NE3,WW1,ME1,EE-3,SW-2,SS3,SE-1,RS-6,RS2,RS5,RS6,RB-2,RB-1,RB4", (7, length))


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "length", "boundary", "radius"), [
    ("brain", 90, "periodic", 1), ("wire", 64, "fixed", 1), ("bugs", 232, "reflect", 3),
    pytest.param("five", 90, "reflect", 1, marks=pytest.mark.slow), ("disc", 128, "periodic", 3),
    ("far", 256, "periodic", 70), ("logical", 90, "zero-gradient", 1),
])  # fmt: skip
def test_rules_in_python(name: str, length: int, boundary: str, radius: int) -> None:
    check(RULES[name], (13, length), boundary, 4, radius)


@pytest.mark.slow
@pytest.mark.parametrize("boundary", ["periodic", "reflect"])
def test_one_dimension(boundary: str) -> None:
    check("W30", (100,), boundary, 30)
    check("W184", (128,), boundary, 30)


@pytest.mark.slow
def test_more_dimensions() -> None:
    check("B4/S4,5", (5, 6, 70), "reflect")
    check("B2/S1,2,3V", (3, 4, 5, 64))


QUICK_WAYS: list[dict[str, Any]] = [
    {"ranks": 4, "layout": "cartesian:2x2"}, {"ranks": 4, "halo_depth": 2, "layout": "cartesian:1x4"}, {"threads": 2},
]  # fmt: skip
WAYS: list[dict[str, Any]] = [
    *QUICK_WAYS, {"native": False}, {"ranks": 3, "layout": "slabs:1"}, {"ranks": 4, "halo_depth": 3},
    {"ranks": 2, "overlap": False}, {"ranks": 3, "layout": "blocks:3"},
]  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("options", thinned(WAYS, *QUICK_WAYS), ids=str)
def test_any_layout(options: dict[str, Any]) -> None:
    for rule, length, boundary in (("B3/S23", 512, "periodic"), (brain, 300, "reflect")):
        bits = stored(rule, (21, length), boundary)
        assert_same(run_model(bits, 7), run_model(bits, 7, **options))


def test_the_digest_is_that_of_the_cells() -> None:
    for length in (128, 200):
        digests = set()
        for storage in ("bytes", "bits"):
            model = stored("B3/S23", (16, length), storage=storage)
            fields = tuple(map(model.field, model.output))
            for ranks in (1, 2):
                outcomes = mg.run_virtual(ranks, lambda comm: execute(model, comm, RunOptions.of(steps=11), fields))
                digests |= {outcome.digest for outcome in outcomes}
        assert len(digests) == 1


def test_frames_are_cells() -> None:
    left, right = (
        mg.run(stored("B3/S23", (16, 128), storage=storage), steps=3, every=1) for storage in ("bits", "bytes")
    )
    assert left.cell.dtype == np.uint8
    assert left.cell.identical(right.cell)
    assert left.attrs["digest"] == right.attrs["digest"]


# What is recognised
def tables(rule: Any, **parameters: Any) -> list[Table]:
    cells = FieldType("u1", (0, 1))
    signature = Signature(2, (cells, cells), tuple((name, ScalarType("i8", True)) for name in parameters))
    return tabulate(rule.kernel.graph(signature), rule.states, parameters)


def test_life_is_recognised_from_its_cells_and_from_its_sum() -> None:
    direct, counted = tables(find_rule("B3/S23", 2, Path()))
    assert [type(variable) for variable in direct.variables] == [CellState] * 9
    assert [type(variable) for variable in counted.variables] == [CellState, Count]
    assert counted.states.tolist() == [[0, 0, 0, 1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0, 0, 0]]


def test_a_totalistic_rule_is_recognised_however_it_is_written() -> None:
    @mg.rule
    def pairs(cell, near):
        values = near.values()
        two = mg.cast(False, "bool")
        three = mg.cast(False, "bool")
        for i, a in enumerate(values):
            for j, b in enumerate(values[:i]):
                two = two | (a & b != 0)
                for c in values[:j]:
                    three = three | (a & b & c != 0)
        return two & ~three

    assert any([type(v) for v in table.variables] == [Count] for table in tables(pairs)) or any(
        [type(v) for v in table.variables] == [CellState, Count] for table in tables(pairs)
    )
    check(pairs, (8, 64))


@mg.rule
def noisy(cell, near):
    return (near.count(1) == 3) & (mg.random() < 0.5)


@mg.rule
def placed(cell, near):
    return (near.count(1) == 3) ^ (mg.index(0) == 0)


@mg.rule(fields={"a": "u1", "b": "u1"})
def double(cell, near):
    return {"a": cell.b, "b": cell.a}


@mg.rule(states=40)
def many(cell, near):
    return (cell + 1) % 40


@mg.rule(neighbourhood=mg.moore(2))
def tangled(cell, near):
    changed = cell
    for value in near.values():
        changed = mg.where(value == changed, 1 - changed, value)
    return changed


@pytest.mark.parametrize(("rule", "reason"), [
    (noisy, "depends on random numbers"), (placed, "position of the cell"), (double, "exactly one field of few states"),
    (many, "40 states; bits are for at most 16"), (tangled, "reads 25 cells, and depends on more"),
])  # fmt: skip
def test_rules_that_bits_cannot_hold(rule: Any, reason: str) -> None:
    init = {"a": {"fill": 0}, "b": {"fill": 0}} if rule is double else {"fill": 0}
    with pytest.raises(mg.CaseError, match=reason) as caught:
        mg.automaton(rule, (8, 64), init=init, storage="bits")
    assert caught.value.key == "automaton.storage"
    assert not mg.automaton(rule, (256, 256), init=init).packed


@pytest.mark.parametrize(("boundary", "shape", "reason"), [
    ([{"shift": 5}, "periodic"], (9, 128), "not whole words"), ("periodic", (9, 100), "fewer than a cell reads"),
])  # fmt: skip
def test_grids_that_bits_cannot_hold(boundary: Any, shape: tuple[int, int], reason: str) -> None:
    with pytest.raises(mg.CaseError, match=reason):
        mg.automaton(far, shape, init={"fill": 0}, boundary=boundary, storage="bits")


def test_an_unknown_storage() -> None:
    with pytest.raises(mg.CaseError, match="'octets'") as caught:
        mg.automaton("B3/S23", (8, 64), init={"fill": 0}, storage="octets")
    assert caught.value.key == "automaton.storage"


def test_bits_are_chosen_where_they_are_faster() -> None:
    assert mg.automaton("B3/S23", (512, 512), init={"fill": 0}).packed
    assert mg.automaton(brain, (512, 512), init={"fill": 0}).packed
    assert mg.automaton("R5,C0,M1,S34..58,B34..45,NM", (512, 512), init={"fill": 0}).packed
    assert not mg.automaton("R5,C0,M1,S34..58,B34..45,NM", (128, 128), init={"fill": 0}).packed
    assert not mg.automaton("B3/S23", (32, 32), init={"fill": 0}).packed
    assert not mg.automaton("B3/S23", (512, 512), init={"fill": 0}, storage="bytes").packed


def test_parameters_are_part_of_the_table() -> None:
    assert tables(logical, most=5)[0].states.sum() > tables(logical, most=1)[0].states.sum()


def test_unsuitable_rules_have_no_table() -> None:
    with pytest.raises(Unsuitable):
        tables(many)
