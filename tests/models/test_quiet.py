"""Automata that leave out quiet regions: the same cells, digests and errors as without."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.program import Apply
from minga.errors import CaseError
from minga.running.loop import drive
from model_runs import assert_same, run_model
from thinned import thinned

ACORN = [[0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0], [1, 1, 0, 0, 1, 1, 1]]


def model(skip: object, shape: tuple[int, ...] = (96, 192), **options: Any) -> mg.Model:
    settings: dict[str, Any] = {"rule": "B3/S23", "init": ACORN} | options
    return mg.automaton(settings.pop("rule"), shape, skip_quiet=skip, **settings)


def tiles(made: mg.Model) -> tuple[int, ...] | None:
    """The shape of the tiles of a model's step."""
    first = made.step.operations[0]
    assert isinstance(first, Apply)
    return first.cells.active


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("storage", "boundary", "rule"),
    thinned(
        itertools.product(["bytes", "bits"], ["periodic", "fixed", "reflect"], ["B3/S23", "B2/S/G3"]),
        *[("bytes", "periodic", "B3/S23"), ("bits", "fixed", "B2/S/G3"), ("bits", "reflect", "B3/S23")],
        *[("bits", "periodic", "B2/S/G3"), ("bytes", "fixed", "B2/S/G3")],
    ),
)
def test_the_same_cells(storage: str, boundary: str, rule: str) -> None:
    options = {"storage": storage, "boundary": boundary, "rule": rule}
    assert tiles(model(True, **options)) is not None
    plain = run_model(model(False, **options), 120)
    assert_same(run_model(model(True, **options), 120, ranks=4 if boundary == "periodic" else 1), plain)


@pytest.mark.parametrize("storage", ["bytes", "bits"])
def test_ash_is_left_out(storage: str) -> None:
    blinkers = np.zeros((96, 256), "u1")
    blinkers[[10, 50, 95], 31:34] = 1
    made = model(True, (96, 256), init=blinkers, storage=storage)
    with mg.Engine(made.layouts("cartesian", 1)) as engine:
        drive(made, engine, 200)
        skipped, looked = engine.skipped
        engine.run(made.step, 50)
        later = engine.skipped
    assert later[0] - skipped == later[1] - looked > 0


def test_large_grids_do_it_by_themselves() -> None:
    assert tiles(model("auto")) is None
    assert tiles(model(False, (2048, 1024), storage="bytes")) is None
    assert tiles(model("auto", (2048, 1024), storage="bytes")) == (16, 64)
    assert tiles(model("auto", (4096, 4096), storage="bits")) == (16, 8)


@mg.rule(states=2)
def wandering(cell: Any, near: Any) -> Any:
    return mg.where(mg.random() < 0.5, near.count(1) > 2, cell)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"rule": wandering, "init": {"fill": 0}}, "register"),
        ({"update": "coloured"}, "do not all change at once"),
        ({"update": "second-order"}, "overwrites"),
        ({"update": {"asynchronous": 0.5}}, "register"),
    ],
)
def test_rules_that_do_not_allow_it(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(CaseError, match=reason) as error:
        model(True, **options)
    assert error.value.key == "automaton.skip_quiet"
    assert tiles(model("auto", (2048, 1024), storage="bytes", **options)) is None


def test_what_is_no_setting_is_refused() -> None:
    with pytest.raises(CaseError, match='true, false or "auto"'):
        model("often")
    with pytest.raises(CaseError, match="1"):
        model(1)
