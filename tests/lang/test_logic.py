"""Truth tables as networks of gates: every row that matters, few gates, anything with logic operators."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from minga.lang.logic import ANY, MOST_INPUTS, network
from thinned import thinned


def rows(inputs: int) -> list[np.ndarray]:
    """Each input's value in every row of a table."""
    return [np.arange(1 << inputs) >> i & 1 == 1 for i in range(inputs)]


def agrees(found: np.ndarray, table: np.ndarray) -> bool:
    return bool((found == table)[table != ANY].all())


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_every_function_of_few_inputs(inputs: int) -> None:
    for table in (
        itertools.product((0, 1, ANY), repeat=1 << inputs) if inputs < 3 else itertools.product((0, 1), repeat=8)
    ):
        (value,) = network([table], inputs)(rows(inputs))
        assert agrees(value, np.array(table)), table


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("inputs", "outputs", "any_share"),
    thinned(
        itertools.product([4, 6, 7, 9], [1, 3], [0.0, 0.6]),
        *[(4, 1, 0.0), (4, 3, 0.6), (6, 3, 0.0), (7, 1, 0.6), (7, 3, 0.0), (9, 1, 0.6)],
    ),
)
def test_random_tables(inputs: int, outputs: int, any_share: float) -> None:
    random = np.random.default_rng(inputs)
    tables = random.integers(0, 2, (outputs, 1 << inputs))
    tables[random.random(tables.shape) < any_share] = ANY
    values = network(list(tables), inputs)(rows(inputs))
    assert all(agrees(value, table) for value, table in zip(values, tables, strict=True))


def test_words_of_integers() -> None:
    """The same network on Python integers: 64 rows a word."""
    table = np.random.default_rng(3).integers(0, 2, 64)
    inputs = [sum(1 << r for r in range(64) if r >> i & 1) for i in range(6)]
    (value,) = network([table], 6)(inputs)
    assert value & (1 << 64) - 1 == sum(int(bit) << r for r, bit in enumerate(table))


@pytest.mark.parametrize(("name", "function", "most"), [
    ("parity", lambda *x: sum(x) % 2, 6), ("all", lambda *x: all(x), 6), ("none", lambda *x: not any(x), 6.5),
    ("the fourth", lambda *x: x[3], 0), ("nothing", lambda *x: 0, 0),
    ("a choice", lambda *x: x[1] if x[0] else x[2], 2.5),
])  # fmt: skip
def test_few_gates(name: str, function: object, most: float) -> None:
    table = [int(function(*values[::-1])) for values in itertools.product((0, 1), repeat=7)]  # type: ignore[operator]
    found = network([table], 7)
    assert found.cost <= most
    assert agrees(np.broadcast_to(found(rows(7))[0], 128), np.array(table))


def test_life_from_the_count_of_nine_cells() -> None:
    """Alive next: three of nine, or four and alive; with rows that cannot be, four gates do."""
    table = []
    for total, alive in itertools.product(range(16), range(2)):
        possible = alive <= total <= 8 + alive
        table.append(int(total == 3 or (total == 4 and alive)) if possible else ANY)
    assert len(network([table], 5).gates) == 4


def test_outputs_share_gates() -> None:
    table = np.random.default_rng(5).integers(0, 2, 128)
    assert network([table, table, 1 - table], 7).cost <= network([table], 7).cost + 0.25


@pytest.mark.parametrize(("tables", "inputs", "message"), [
    ([[0, 1]], 2, "has 4 entries"), ([[0, 3]], 1, "entries 0, 1 or 2"),
    ([[]], 0, "1 to 14"), ([], MOST_INPUTS + 1, "1 to 14"),
])  # fmt: skip
def test_what_is_no_table(tables: list[list[int]], inputs: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        network(tables, inputs)


def test_the_number_of_inputs_is_checked() -> None:
    with pytest.raises(ValueError, match="3 inputs are needed, found 2"):
        network([[0] * 8], 3)([0, 1])
