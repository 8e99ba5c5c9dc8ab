"""What is observed of automata: names against NumPy, functions of an author, avalanches; the same on any layout."""

from __future__ import annotations

from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.models.automaton.observers import NAMES
from minga.models.automaton.rules import life_like
from model_runs import assert_same, run_model
from rule_oracle import evolve, seed_cells
from thinned import thinned


def observed(rule: Any, cells: Any, steps: int, observe: Any, **options: Any) -> dict[str, Any]:
    """The observables after so many steps, which must not depend on the ranks."""
    model = mg.automaton(rule, np.shape(cells), init=cells, observe=observe, **options)
    alone = run_model(model, steps)
    for ranks in (2, 6):
        assert_same(alone, run_model(model, steps, ranks=ranks))
    return dict(alone.observables)


def box(cells: Any) -> list[int]:
    where = np.argwhere(cells)
    return [*where.min(0).tolist(), *where.max(0).tolist()] if len(where) else [-1] * 2 * cells.ndim


def test_every_name() -> None:
    start = np.zeros((30, 70), np.uint8)
    start[5:12, 20:60] = np.random.default_rng(1).integers(0, 4, (7, 40))
    found = observed(mg.rule(states=4)(lambda cell, near: near.sum() % 4), start, 3, list(NAMES))
    before, now = (
        run_model(mg.automaton(mg.rule(states=4)(lambda c, n: n.sum() % 4), start.shape, init=start), steps).cell
        for steps in (2, 3)
    )
    histogram = np.bincount(now.ravel(), minlength=4)
    shares = histogram[histogram > 0] / now.size
    changed = int((now != before).sum())
    assert found.pop("entropy") == pytest.approx(-(shares * np.log2(shares)).sum(), rel=1e-14)
    assert found == {
        "population": int((now != 0).sum()), "histogram": histogram.tolist(), "sum": int(now.sum()),
        "mean": int(now.sum()) / now.size, "min": int(now.min()), "max": int(now.max()),
        "residual": changed, "changed": changed, "bounding_box": box(now),
    }  # fmt: skip
    assert list(found) == [name for name in NAMES if name != "entropy"]


def test_nothing_alive_has_no_box_and_no_entropy() -> None:
    found = observed("B3/S23", np.zeros((8, 9), int), 1, ["bounding_box", "entropy"])
    assert found == {"bounding_box": [-1, -1, -1, -1], "entropy": 0.0}


@pytest.mark.slow
def test_bits_say_the_same_as_bytes() -> None:
    cells = np.zeros((32, 200), np.uint8)
    cells[9:20, 70:110] = seed_cells((11, 40))
    for rule, boundary in (("B3/S23", "periodic"), ("/2/3", ["fixed", 1])):
        found = [
            run_model(
                mg.automaton(rule, cells.shape, init=cells, boundary=boundary, observe=list(NAMES), storage=kind), 5
            ).observables
            for kind in ("bytes", "bits")
        ]
        assert found[0] == found[1]
    with pytest.raises(mg.CaseError, match="cannot be observed"):
        mg.automaton("B3/S23", cells.shape, init=cells, observe=lambda c: mg.sum(c), storage="bits")


def test_floats_and_several_fields() -> None:
    rng = np.random.default_rng(2)
    start = {"u": rng.random((9, 70)), "v": rng.integers(-3, 3, (9, 70))}

    @mg.rule(fields={"u": "f8", "v": "i4"})
    def pair(cell, near):
        return {"u": cell.u * 0.5, "v": cell.v - 1}

    model = mg.automaton(pair, (9, 70), init=start, observe=["mean", "residual", "max", "changed", "population"])
    left = run_model(model, 2, ranks=3)
    u, v = start["u"] / 4, start["v"] - 2
    found = left.observables
    assert found["u_mean"] == pytest.approx(u.mean(), rel=1e-14)
    assert (found["u_residual"], found["u_max"], found["u_changed"]) == (u.max(), u.max(), u.size)
    assert (found["v_mean"], found["v_residual"], found["v_changed"]) == (v.sum() / v.size, v.size, v.size)
    assert (found["v_max"], found["v_population"]) == (0, int((v != 0).sum()))


def energy(cell, near, *, coupling=1.0):
    spin = 2.0 * mg.cast(cell, "f8") - 1.0
    return mg.sum(-coupling * spin * (mg.cast(near.sum(), "f8") - 2.0))


def rows(cell):
    odd = mg.index(0) % 2 == 1
    return {"odd": mg.count((cell != 0) & odd), "even": mg.count((cell != 0) & ~odd)}


@mg.rule(neighbourhood=mg.von_neumann(1))
def majority(cell, near, *, coupling=2.0):
    return 2 * near.sum() + cell > 4


@pytest.mark.slow
def test_functions_of_an_author() -> None:
    cells = seed_cells((10, 66))
    spins = 2.0 * cells - 1
    expected = -2.0 * (spins * (np.roll(spins, 1, 0) + np.roll(spins, 1, 1))).sum()
    found = observed(majority, cells, 0, ["population", energy, rows])
    assert found == {
        "population": int(cells.sum()), "energy": expected,
        "odd": int(cells[1::2].sum()), "even": int(cells[::2].sum()),
    }  # fmt: skip
    with_defaults = observed(majority, cells, 0, {"E": energy})
    assert list(with_defaults) == ["population", "histogram", "residual", "E"]


def test_functions_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import minga as mg\n\ndef corner(cell):\n    return mg.count(cell == 1)\n")
    found = observed("B3/S23", seed_cells((9, 9)), 0, ["own.py:corner", "sum"], directory=tmp_path)
    assert found["corner"] == found["sum"]


# Avalanches
@mg.rule(states=8, neighbourhood=mg.von_neumann(1))
def sandpile(cell, near):
    received = sum((mg.cast(grains >= 4, "u1") for grains in near.values()), 0 * cell)
    return mg.min(mg.where(cell >= 4, cell - 4, cell) + received, 7)


@pytest.mark.slow
@pytest.mark.parametrize("n", thinned([3, 5, 9, 21], 3))
def test_the_avalanche_of_a_full_box(n: int) -> None:
    """One grain on the middle of a full n x n box: C(n + 2, 3) topplings in n steps, 4 n grains lost."""
    cells = np.full((n, n), 3)
    cells[n // 2, n // 2] += 1
    found = observed(sandpile, cells, n + 3, ["sum", {"avalanches": 4}], boundary="fixed")
    size = comb(n + 2, 3)
    assert found["sum"] == cells.sum() - 4 * n
    assert (found["avalanches"], found["avalanche_size"], found["avalanche_largest"]) == (1, size, size)
    assert found["avalanche_duration"] == n
    assert found["avalanche_sizes"] == [int(k == size.bit_length() - 1) for k in range(32)]


@pytest.mark.slow
def test_avalanches_of_changing_cells() -> None:
    """Four cells in a row become a beehive, in steps that change fewer and fewer cells, then none."""
    cells = np.zeros((12, 66), np.uint8)
    cells[6, 10:14] = 1
    changes = []
    while not changes or changes[-1]:
        new = evolve(life_like("B3/S23"), cells, 1)
        changes.append(int((new != cells).sum()))
        cells = new
    start = np.zeros((12, 66), np.uint8)
    start[6, 10:14] = 1
    found = observed("B3/S23", start, 9, [{"avalanches": True}])
    assert (found["avalanches"], found["avalanche_size"], found["avalanche_duration"]) == (
        1, sum(changes), len(changes) - 1,
    )  # fmt: skip


def test_avalanches_one_after_another() -> None:
    """All cells are in states 5 and 6 for two steps of seven."""
    ticking = mg.automaton(
        mg.rule(states=7)(lambda cell, near: (cell + 1) % 7), (4, 4), init={"fill": 0}, observe=[{"avalanches": 5}]
    )
    found = run_model(ticking, 30).observables
    assert (found["avalanches"], found["avalanche_size"], found["avalanche_duration"]) == (4, 32, 2)
    assert found["avalanche_sizes"][5] == 4


# Over time
def test_observables_over_time() -> None:
    cells = seed_cells((16, 64))
    model = mg.automaton("B3/S23", cells.shape, init=cells)
    found = mg.run(model, steps=10, every=5, observe=4, stop=mg.Stop(when="step == 9"))
    assert found.observed.values.tolist() == [0, 4, 5, 8, 9]
    assert found.time.values.tolist() == [0, 5, 9]
    assert found.population.values.tolist() == [run_model(model, t).observables["population"] for t in (0, 4, 5, 8, 9)]
    assert found.histogram.dims == ("observed", "histogram_1")
    assert (found.attrs["ended"], found.attrs["steps"]) == ("condition at step 9", 9)


@pytest.mark.parametrize(
    ("observe", "message"),
    [
        (["popultion"], "unknown observable"), (7, "found 7"), ([7], "found 7"), (["own.py:x"], "there is no file"),
        ([{"avalanches": 0}], "avalanches = 0"), ([{"avalanches": "big"}], "avalanches = 'big'"),
        ([lambda: 0], "takes neither a cell"), ([lambda cell, *, q: mg.sum(cell)], "has a parameter 'q'"),
        ([lambda cell: None], "returns nothing|neither stores nor returns"), ([lambda cell: cell], "returns Node"),
        ({"sum": lambda cell: mg.sum(cell), "population": lambda cell: mg.sum(cell)}, "two observables"),
    ],
)  # fmt: skip
def test_mistakes(observe: Any, message: str) -> None:
    with pytest.raises(mg.MingaError, match=message):
        mg.automaton("B3/S23", (8, 8), init={"soup": 0.5}, observe=observe)


def test_floats_have_no_states() -> None:
    with pytest.raises(mg.CaseError, match="'entropy' of cells without states"):
        mg.automaton(mg.rule(dtype="f8")(lambda c, n: c), (8, 8), init={"fill": 0.0}, observe=["entropy"])
