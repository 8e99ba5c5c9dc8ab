"""Updates of automata against NumPy, and the same bits on any layout: asynchronous, coloured, second-order."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import minga as mg
from minga.engine.model import Model
from minga.lang.kernel import _stream
from minga.lang.random import UPDATE_DRAW, threefry, uniform
from minga.lang.rule import Rule
from minga.models.automaton.rules import life_like
from minga.models.automaton.step import _ORDER_STREAM
from model_runs import assert_same, run_model
from rule_oracle import evolve, seed_cells

Array = NDArray[Any]


@mg.rule(states=5, neighbourhood=mg.von_neumann(1))
def sums(cell, near, *, shift=2):
    return (cell + near.sum() + shift) % 5


@mg.rule(states=3, neighbourhood=mg.offsets([(0, 2), (-1, 0)]))
def lopsided(cell, near):
    return (cell + near[0, 2] + 2 * near[-1, 0]) % 3


@mg.rule(neighbourhood=mg.offsets([(1, 0, 0), (0, 0, -1), (-1, 0, 1)]))
def deep(cell, near):
    return near[1, 0, 0] ^ (near[0, 0, -1] | cell) ^ near[-1, 0, 1]


@mg.rule(fields={"u": "u1", "v": "i4"}, neighbourhood=mg.von_neumann(1))
def two(cell, near):
    return {"u": mg.cast(near.sum("u") % 3, "u1"), "v": cell.v + mg.cast(cell.u, "i4") - near["v", 0, 1]}


@mg.rule(neighbourhood=mg.von_neumann(1))
def chancy(cell, near, *, p=0.3):
    return (near.sum() > 1) ^ (mg.random() < p)


def same_everywhere(model: Model, steps: int) -> Any:
    alone = run_model(model, steps)
    for ranks, options in [(2, {"halo_depth": 3}), (4, {"threads": 2}), (6, {"native": False})]:
        assert_same(alone, run_model(model, steps, ranks=ranks, **options))
    return alone.fields if len(alone.fields) > 1 else alone.cell


def in_turn(rule: Rule, cells: Array, masks: list[Array], boundary: str = "periodic") -> Array:
    """One step, colour after colour."""
    for mask in masks:
        cells = np.where(mask, evolve(rule, cells, 1, boundary, radius=2), cells)
    return cells


def checkerboard(shape: tuple[int, ...]) -> list[Array]:
    parity = np.indices(shape).sum(0) % 2
    return [parity == 0, parity == 1]


def every_nth(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[Array]:
    index = np.indices(shape)
    return [
        np.logical_and.reduce([i % n == k for i, n, k in zip(index, strides, first, strict=True)])
        for first in itertools.product(*map(range, strides))
    ]


# Asynchronous
@pytest.mark.slow
@pytest.mark.parametrize("rule", [life_like("B3/S23"), pytest.param(sums, marks=pytest.mark.slow)])
def test_asynchronous(rule: Rule) -> None:
    start = np.random.default_rng(1).integers(0, rule.states, (18, 70)).astype(np.uint8)
    cells = start
    for step in range(6):
        awake = uniform(cells.shape, seed=7, step=step, stream=_stream(rule.name), draw=UPDATE_DRAW) < 0.3
        cells = np.where(awake, evolve(rule, cells, 1), cells)
    model = mg.automaton(rule, start.shape, init=start, update=mg.Asynchronous(0.3), seed=7)
    assert np.array_equal(same_everywhere(model, 6), cells)


@pytest.mark.slow
def test_all_cells_awake_is_synchronous_with_the_same_draws() -> None:
    start = seed_cells((12, 66))
    plain = run_model(mg.automaton(chancy, start.shape, init=start, seed=3), 5)
    assert_same(plain, run_model(mg.automaton(chancy, start.shape, init=start, seed=3, update=mg.Asynchronous(1.0)), 5))


@pytest.mark.slow
def test_an_awake_cell_draws_what_it_would_in_a_synchronous_step() -> None:
    start = seed_cells((12, 66))
    whole = run_model(mg.automaton(chancy, start.shape, init=start, seed=3), 1).cell
    some = run_model(mg.automaton(chancy, start.shape, init=start, seed=3, update={"asynchronous": 0.5}), 1).cell
    awake = uniform(start.shape, seed=3, stream=_stream("chancy"), draw=UPDATE_DRAW) < 0.5
    assert np.array_equal(some, np.where(awake, whole, start))


# Coloured
@pytest.mark.slow
@pytest.mark.parametrize("boundary", [pytest.param("periodic", marks=pytest.mark.slow), "fixed"])
def test_a_checkerboard(boundary: str) -> None:
    start = np.random.default_rng(2).integers(0, 5, (12, 70)).astype(np.uint8)
    cells = start
    for _ in range(4):
        cells = in_turn(sums, cells, checkerboard(cells.shape), boundary)
    model = mg.automaton(sums, start.shape, init=start, update="coloured", boundary=boundary)
    assert np.array_equal(same_everywhere(model, 4), cells)


@pytest.mark.parametrize(
    ("rule", "shape", "strides", "boundary"),
    [
        pytest.param(life_like("B3/S23"), (12, 70), (2, 2), "periodic", marks=pytest.mark.slow),
        pytest.param(life_like("B3/S23"), (7, 33), (2, 2), "fixed", marks=pytest.mark.slow),
        pytest.param(lopsided, (8, 66), (2, 3), "periodic", marks=pytest.mark.slow),
        pytest.param(deep, (4, 3, 34), (2, 1, 2), "periodic", marks=pytest.mark.slow),
        (life_like("B1/S0", 1), (40,), (2,), "periodic"),
    ],
)
def test_colours_by_stride(rule: Rule, shape: tuple[int, ...], strides: tuple[int, ...], boundary: str) -> None:
    start = seed_cells(shape)
    cells = start
    for _ in range(3):
        cells = in_turn(rule, cells, every_nth(shape, strides), boundary)
    model = mg.automaton(rule, shape, init=start, update="coloured", boundary=boundary)
    assert np.array_equal(same_everywhere(model, 3), cells)


@pytest.mark.slow
def test_colours_in_random_order() -> None:
    start, seed = seed_cells((12, 34)), 5
    cells, orders = start, set()
    for step in range(6):
        one = np.uint32(1)
        halves = np.array([step], np.uint32), np.array([_ORDER_STREAM], np.uint32)
        key = threefry((seed * np.ones(1, np.uint32), np.zeros(1, np.uint32)), halves)
        words = [int(threefry(key, (colour * one.reshape(1), np.zeros(1, np.uint32)))[0][0]) for colour in range(4)]
        order = sorted(range(4), key=lambda colour: (words[colour], colour))
        orders.add(tuple(order))
        masks = every_nth(cells.shape, (2, 2))
        cells = in_turn(life_like("B3/S23"), cells, [masks[colour] for colour in order])
    assert len(orders) > 3
    model = mg.automaton("B3/S23", start.shape, init=start, update={"coloured": "random"}, seed=seed)
    assert np.array_equal(same_everywhere(model, 6), cells)


def test_several_fields_by_colours() -> None:
    rng = np.random.default_rng(3)
    start = {"u": rng.integers(0, 3, (8, 66)).astype(np.uint8), "v": rng.integers(-9, 9, (8, 66)).astype(np.int32)}
    state = start
    for mask in checkerboard((8, 66)):
        new = evolve(two, state, 1)
        state = {name: np.where(mask, new[name], state[name]) for name in state}
    found = same_everywhere(mg.automaton(two, (8, 66), init=start, update="coloured"), 1)
    assert all(np.array_equal(found[name], state[name]) for name in state)


@pytest.mark.slow
def test_a_coloured_step_of_random_numbers() -> None:
    model = mg.automaton(chancy, (12, 66), init=seed_cells((12, 66)), update="coloured", seed=11)
    plain = mg.automaton(chancy, (12, 66), init=seed_cells((12, 66)), seed=11)
    found = same_everywhere(model, 3)
    assert not np.array_equal(found, run_model(plain, 3).cell)


# Second order
@pytest.mark.slow
@pytest.mark.parametrize("rule", [life_like("B3/S23"), pytest.param(sums, marks=pytest.mark.slow)])
def test_second_order_goes_back(rule: Rule) -> None:
    start = np.random.default_rng(4).integers(0, rule.states, (12, 70)).astype(np.uint8)
    states = [start, start]
    for _ in range(9):
        states.append(((evolve(rule, states[-1], 1).astype(int) - states[-2]) % rule.states).astype(np.uint8))

    def model(now: Array, before: Array | None = None) -> Model:
        return mg.automaton(rule, start.shape, init=now, before=before, update="second-order")

    assert np.array_equal(same_everywhere(model(start), 9), states[-1])
    backwards = run_model(model(states[-2], states[-1]), 9).cell
    assert np.array_equal(backwards, states[0])


def test_the_update_of_a_rule_and_of_a_case() -> None:
    fredkin = mg.rule(update=mg.SecondOrder())(lambda cell, near: near.sum() % 2 == 1)
    start = seed_cells((8, 10))
    plain = mg.rule(lambda cell, near: near.sum() % 2 == 1)
    named = mg.automaton(plain, start.shape, init=start, update="second-order")
    assert_same(run_model(mg.automaton(fredkin, start.shape, init=start), 4), run_model(named, 4))
    assert repr(fredkin).endswith("second-order>")
    undone = mg.automaton(fredkin, start.shape, init=start, update="synchronous")
    assert_same(run_model(undone, 4), run_model(mg.automaton(plain, start.shape, init=start), 4))


# What cannot be
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"update": "sequential"}, "unknown update"),
        ({"update": {"asynchronous": 1.5}}, "cells more than once per step"),
        ({"update": {"asynchronous": 0}}, "no cell would ever be updated"),
        ({"update": {"coloured": "rainbow"}}, '"fixed" or "random"'),
        ({"update": "coloured", "shape": (8, 9)}, "use 10 cells along axis 1"),
        ({"update": "coloured", "boundary": [{"shift": 1}, "periodic"]}, "meet at the seam"),
        ({"before": {"fill": 0}}, "does not use the state before"),
        (
            {"rule": mg.rule(dtype="f8")(lambda c, n: c), "update": "second-order", "init": {"fill": 1.0}},
            "no number of states",
        ),
    ],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    given = {"rule": "B3/S23", "shape": (8, 8), "init": {"soup": 0.5}} | options
    with pytest.raises(mg.CaseError, match=message) as found:
        mg.automaton(**given)
    assert found.value.key is not None
