"""Automata on the engine: reference generations, boundaries, and the same bits however the work is shared."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.examples import examples
from minga.engine.model import Model
from minga.models.automaton.rules import life_like
from model_runs import assert_same, run_model
from rule_oracle import crc, evolve, seed_cells
from thinned import thinned

RULES, PATTERNS = (examples()["life"].parent / name for name in ("rules", "patterns"))


def automaton(rule: Any, cells: Any, boundary: Any = "periodic", **options: Any) -> Model:
    return mg.automaton(rule, np.shape(cells), init=np.asarray(cells), boundary=boundary, **options)


@pytest.mark.few(2)
@pytest.mark.parametrize(("rule", "boundary", "known"), [
    ("B3/S23", "periodic", (140, "20d02952")), ("B3/S23", "fixed", (120, "56537769")),
    ("B2/S", "periodic", (864, "d377e560")), ("B2/S", "fixed", (856, "f19d95d6")),
])  # fmt: skip
def test_a_thousand_generations(rule: str, boundary: str, known: tuple[int, str]) -> None:
    left = run_model(automaton(rule, seed_cells((64, 64)), boundary), 1000)
    assert (left.observables["population"], crc(left.cell)) == known


@pytest.mark.slow
def test_the_r_pentomino_comes_to_rest() -> None:
    def population(steps: int) -> int:
        model = mg.automaton("B3/S23", (640, 640), init={"pattern": "r-pentomino.rle"}, directory=PATTERNS)
        found: int = run_model(model, steps).observables["population"]
        return found

    known = {0: 5, 10: 11, 100: 121, 200: 120, 500: 174, 1000: 156, 1102: 118, 1103: 116, 1150: 116}
    assert {steps: population(steps) for steps in known} == known


@pytest.mark.few(2)
@pytest.mark.parametrize(("pattern", "known"), [
    ("acorn", {1000: 457}), ("diehard", {100: 23, 130: 0}), ("gosper-glider-gun", {0: 36, 15: 42, 30: 41, 300: 86}),
])  # fmt: skip
def test_known_patterns(pattern: str, known: dict[int, int]) -> None:
    model = mg.automaton("23/3", (700, 700), init=f"{pattern}.rle", directory=PATTERNS)
    assert {steps: run_model(model, steps).observables["population"] for steps in known} == known


def test_the_centre_of_rule_30() -> None:
    """481 of the first thousand cells of the centre column are 1 (Wolfram, A New Kind of Science, p. 871)."""
    model = mg.automaton("W30", (2003,), init=[1])
    with mg.Engine({model.grid: mg.Layout.single(model.grid.box, 1)}) as engine:
        engine.set(model.fields[0], model.initial["cell"])
        ones = 0
        for t in range(1000):
            [(_, cells)] = engine.blocks(model.fields[0])
            ones += int(cells[1001])
            if t == 100:
                assert cells.sum() == 103
            engine.run(model.step)
    assert ones == 481


def test_three_dimensions() -> None:
    model = automaton("B5/S45", seed_cells((16, 16, 16), 4, 1))
    left = run_model(model, 5, ranks=4, layout="cartesian:2x1x2")
    assert (left.observables["population"], crc(left.cell)) == (641, "5fba7783")


# Boundaries
@pytest.mark.few(2)
@pytest.mark.parametrize("boundary", ["periodic", "fixed", "reflect", "zero-gradient"])
def test_boundaries_agree_with_numpy(boundary: str) -> None:
    cells = seed_cells((11, 13))
    for ranks in (1, 3):
        left = run_model(automaton("B36/S23", cells, boundary), 7, ranks=ranks)
        assert np.array_equal(left.cell, evolve(life_like("B36/S23"), cells, 7, boundary))


def test_live_walls_and_two_sides() -> None:
    cells = seed_cells((6, 9))
    expected = cells
    for _ in range(5):
        padded = np.pad(expected, ((1, 1), (0, 0)), constant_values=((1, 0),) * 2)
        padded = np.pad(padded, ((0, 0), (1, 1)), mode="wrap")
        expected = evolve(life_like("B3/S23"), padded, 1)[1:-1, 1:-1]
    left = run_model(automaton("B3/S23", cells, [[["fixed", 1], "fixed"], "periodic"]), 5, ranks=2)
    assert np.array_equal(left.cell, expected)


def test_a_shifted_torus() -> None:
    cells = seed_cells((8, 10))
    expected = cells
    for _ in range(6):
        tall = np.vstack([np.roll(expected[-1:], 3, 1), expected, np.roll(expected[:1], -3, 1)])
        expected = evolve(life_like("B3/S23"), tall, 1)[1:-1]
    for ranks in (1, 2, 5):
        left = run_model(automaton("B3/S23", cells, [{"shift": 3}, "periodic"]), 6, ranks=ranks)
        assert np.array_equal(left.cell, expected)


def test_tiny_tori() -> None:
    for shape in [(1, 1), (1, 5), (2, 2), (2, 7), (3, 1)]:
        cells = seed_cells(shape)
        for ranks in (1, 2):
            left = run_model(automaton("B3/S23", cells), 4, ranks=ranks)
            assert np.array_equal(left.cell, evolve(life_like("B3/S23"), cells, 4)), shape


@mg.rule(states=5, neighbourhood=mg.moore(3))
def far(cell, near):
    return (cell + near.sum()) % 5


@pytest.mark.slow
@pytest.mark.parametrize("shape", thinned([((1,),), ((2,),), ((1, 2),), ((2, 1, 3),)], ((1,),), ((2, 1, 3),)))
def test_neighbourhoods_larger_than_the_grid(shape: tuple[int, ...]) -> None:
    cells = np.random.default_rng(1).integers(0, 5, shape).astype(np.uint8)
    for boundary in ("periodic", "fixed"):
        expected = evolve(far, cells, 3, boundary, radius=3)
        for ranks in (1, 2):
            assert np.array_equal(run_model(automaton(far, cells, boundary), 3, ranks=ranks).cell, expected)
    with pytest.raises(mg.CaseError, match="cells, but there are only"):
        automaton(far, cells, "reflect")


def test_four_dimensions_and_one_sided_neighbourhoods() -> None:
    @mg.rule(states=3, neighbourhood=mg.offsets([(0, 0, 0, 2), (-2, 0, 0, 0), (0, 1, -1, 0)]))
    def one_sided(cell, near):
        return (cell + near[0, 0, 0, 2] + 2 * near[-2, 0, 0, 0] + near[0, 1, -1, 0]) % 3

    cells = np.random.default_rng(2).integers(0, 3, (3, 4, 2, 18)).astype(np.uint8)
    expected = evolve(one_sided, cells, 4, radius=2)
    for ranks in (1, 6):
        assert np.array_equal(run_model(automaton(one_sided, cells), 4, ranks=ranks, halo_depth=2).cell, expected)


# The same bits
@mg.rule(neighbourhood=mg.offsets([(0, 2), (-3, 0), (1, -1)]))
def lopsided(cell, near):
    return near[0, 2] ^ (near[-3, 0] & near[1, -1]) ^ cell


@mg.rule(states=3, neighbourhood=mg.von_neumann(2))
def noisy(cell, near, *, p=0.2):
    chosen = mg.where(mg.random() < p, 2, near.count(1) % 3)
    return mg.where((cell == 2) & (mg.random() < 0.5), 0, chosen)


@mg.rule(dtype="f8", neighbourhood=mg.moore(1))
def relax(cell, near, *, omega=0.3):
    return cell + omega * (near.sum() / len(near) - cell)


def gray_scott() -> Model:
    return mg.automaton(f"{RULES / 'gray_scott.py'}:gray_scott", (37, 29), init=f"{RULES / 'gray_scott.py'}:square")


MODELS = {
    "life": lambda: automaton("B3/S23", seed_cells((37, 153))),
    "lopsided": lambda: automaton(lopsided, seed_cells((9, 331)), "fixed"),
    "noisy": lambda: mg.automaton(noisy, (16, 130), init={"soup": [0.3, 0.2]}, seed=11, parameters={"p": 0.3}),
    "relax": lambda: mg.automaton(relax, (21, 140), init={"soup": 0.5}, seed=5, boundary="reflect"),
    "gray-scott": gray_scott,
}


@cache
def serial(name: str) -> Any:
    return run_model(MODELS[name](), 12)


WAYS: list[dict[str, Any]] = [
    {"ranks": 2, "layout": "blocks:3", "halo_depth": 5}, {"ranks": 3, "native": False}, {"ranks": 4, "halo_depth": 3},
    {"threads": 2}, {"ranks": 2, "layout": "slabs"}, {"ranks": 3, "overlap": False},
    {"ranks": 7, "layout": "bisection"}, {"ranks": 16, "layout": "cartesian"}, {"ranks": 2, "halo_depth": 2},
    {"ranks": 3, "halo_depth": 4, "threads": 2},
]  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "options"),
    thinned(
        itertools.product(MODELS, WAYS),
        *zip(MODELS, [*WAYS[:4], WAYS[0]], strict=True), ("life", WAYS[2]), ("noisy", WAYS[0]),
    ),
    ids=str,
)  # fmt: skip
def test_the_same_bits(name: str, options: dict[str, Any]) -> None:
    assert_same(serial(name), run_model(MODELS[name](), 12, **options))


@pytest.mark.slow
def test_numpy_gives_the_same_bits() -> None:
    cells = np.random.default_rng(0).random((9, 11))
    left = run_model(automaton(relax, cells, "zero-gradient"), 5)
    assert evolve(relax, cells, 5, "zero-gradient").tobytes() == left.cell.tobytes()
    start = seed_cells((9, 12))
    assert np.array_equal(evolve(noisy, start, 5, seed=3, radius=2), run_model(automaton(noisy, start, seed=3), 5).cell)


@pytest.mark.slow
def test_seeds_matter() -> None:
    def cells(seed: int) -> np.ndarray:
        return run_model(mg.automaton(noisy, (20, 20), init=[[1]], seed=seed), 5).cell

    assert np.array_equal(cells(1), cells(1))
    assert not np.array_equal(cells(1), cells(2))


# Observables
@pytest.mark.slow
def test_observables_of_states() -> None:
    model = MODELS["noisy"]()
    before, after = run_model(model, 8), run_model(model, 9)
    found = after.observables
    assert found["histogram"] == np.bincount(after.cell.ravel(), minlength=3).tolist()
    assert found["population"] == np.count_nonzero(after.cell)
    assert found["residual"] == np.count_nonzero(after.cell != before.cell)
    assert run_model(model, 0).observables["residual"] == 0


def test_observables_of_floats() -> None:
    before, after = run_model(gray_scott(), 8), run_model(gray_scott(), 9)
    for name, values in after.fields.items():
        found = {key: after.observables[f"{name}_{key}"] for key in ("sum", "min", "max", "residual")}
        assert found["sum"] == pytest.approx(float(values.sum()), rel=1e-14)
        assert (found["min"], found["max"]) == (values.min(), values.max())
        assert found["residual"] == np.abs(values - before.fields[name]).max() > 0
    assert run_model(gray_scott(), 0).observables["u_residual"] == 0


def test_rules_of_many_states_have_no_histogram() -> None:
    @mg.rule(states=17)
    def stay(cell, near):
        return cell

    assert set(mg.automaton(stay, (4, 4), init=[[16]]).observables) == {"population", "residual"}


# Mistakes
@mg.rule(dtype="f8")
def needs(cell, near, *, rate, bias=0.0):
    return cell * rate + bias


@pytest.mark.parametrize(("options", "key", "words"), [
    ({"rule": needs, "init": {"fill": 1.0}}, "automaton.parameters.rate", "needs a value"),
    ({"rule": needs, "init": {"fill": 1.0}, "parameters": {"rat": 1}}, "automaton.parameters.rat", "'rate'"),
    ({"rule": "B3/S23", "init": [[1]], "parameters": {"p": 1}}, "automaton.parameters.p", "it has none"),
    ({"rule": "B3/S23", "init": [[1]], "boundary": ["fixed", 2]}, "grid.boundary", "0 .. 1"),
    ({"rule": "B3/S23", "init": [[1]], "boundary": ["fixed", 0.5]}, "grid.boundary", "fixed at 0.5"),
    ({"rule": "B3/S2x", "init": [[1]]}, "automaton.rule", "B3/S2"),
    ({"rule": "B3/S23", "init": [[1, 1, 1, 1, 1]]}, "automaton.init", "larger than the grid"),
])  # fmt: skip
def test_mistakes_name_the_key(options: dict[str, Any], key: str, words: str) -> None:
    with pytest.raises(mg.CaseError) as caught:
        mg.automaton(shape=(4, 4), **options)
    assert caught.value.key == key
    assert words in str(caught.value)


def test_an_integer_stands_for_a_float_parameter() -> None:
    model = mg.automaton(needs, (3, 3), init={"fill": 2.0}, parameters={"rate": 3, "bias": 1}, directory=Path())
    assert model.parameters == {"rule": "needs", "bias": 1.0, "rate": 3}
    assert (run_model(model, 1).cell == 7.0).all()


@pytest.mark.parametrize("shape", ["8x8", 8, (8.5, 8), (), (True, 8), None])
def test_a_shape_that_is_none_is_said(shape: Any) -> None:
    with pytest.raises(mg.CaseError, match="a whole number of cells for each axis"):
        mg.automaton("B3/S23", shape, init={"soup": 0.5})


def test_a_rule_that_is_none_is_said() -> None:
    def bare(cell: Any, near: Any) -> Any:
        return cell

    with pytest.raises(mg.CaseError, match=r"(?s)found bare, .*@mg\.rule above def bare"):
        mg.automaton(bare, (8, 8), init={"soup": 0.5})  # type: ignore[arg-type]
    with pytest.raises(mg.KernelError, match="neighbourhood='moore'"):
        mg.rule(neighbourhood="moore")(bare)  # type: ignore[call-overload]


def test_a_parameter_that_is_no_number_is_said() -> None:
    @mg.rule
    def chance(cell: Any, near: Any, *, p: float = 0.5) -> Any:
        return mg.random() < p

    with pytest.raises(mg.CaseError, match=r"automaton\.parameters\.p: expected a number, found 'a'"):
        mg.automaton(chance, (8, 8), init={"soup": 0.5}, parameters={"p": "a"})  # type: ignore[dict-item]
