"""Organisations that hold segments by themselves have the bits of the engine's run with the same segments."""

from __future__ import annotations

import importlib.util
import pickle
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError, LayoutError, RunError
from minga.models.photodiode.pointwise.scheme import Pointwise
from minga.models.photodiode.structure.device import Device
from minga.studies.bounanos import charm
from minga.studies.bounanos.centralised import Solution, solve_centralised
from minga.studies.bounanos.segment import Order, Segment
from minga.studies.bounanos.workload import paper_device, solve

ENDS = (0, 20, 50, 60, 91)
LOOSE = Pointwise(tolerance=0.1)
VOLTAGE = -5.0
HAS_CHARM = importlib.util.find_spec("charm4py") is not None


@pytest.fixture(scope="module")
def device() -> Device:
    return paper_device(20)


@pytest.fixture(scope="module")
def whole(device: Device) -> Any:
    return solve(device, VOLTAGE, "lit", Pointwise(tolerance=0.1, segments=ENDS))


def same(solution: Solution, whole: Any) -> bool:
    return solution.iterations == whole.iterations and all(
        np.array_equal(solution.state[name], whole.fields[name]) for name in ("electrons", "holes", "newton_steps")
    )


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_a_parent_and_children(device: Device, whole: Any, ranks: int) -> None:
    """Also where children have several segments each."""
    found = mg.run_virtual(ranks, lambda comm: solve_centralised(device, ENDS, VOLTAGE, "lit", LOOSE, comm))
    assert found[0] is not None
    assert found[1:] == [None] * (ranks - 1)
    assert same(found[0], whole)
    assert found[0].change < LOOSE.tolerance


def test_the_parent_ends_at_the_limit(device: Device) -> None:
    how = Pointwise(limit=5)
    found = mg.run_virtual(2, lambda comm: solve_centralised(device, ENDS, VOLTAGE, "lit", how, comm))[0]
    assert found is not None
    assert found.iterations == 5
    assert found.change > how.tolerance


def test_segments_travel(device: Device) -> None:
    """A pickled segment goes on where it was."""
    stays = Segment(Order.of(device, ENDS, 1, VOLTAGE, "lit", LOOSE))
    for _ in range(3):
        stays.iterate()
        stays.receive("high", (10.0, 1e15, 1e3))
    moved = pickle.loads(pickle.dumps(stays))
    assert stays.iterate() == moved.iterate()
    assert stays.boundary("low") == moved.boundary("low")
    for name, values in stays.state().items():
        assert np.array_equal(values, moved.state()[name])
    stays.close()
    moved.close()


def test_what_segments_do_not_do_is_refused(device: Device) -> None:
    with pytest.raises(LayoutError, match="no child"):
        solve_centralised(device, ENDS, VOLTAGE, "lit", LOOSE, mg.SerialComm())
    with pytest.raises(CaseError, match="'residual'"):
        Order.of(device, ENDS, 0, VOLTAGE, "lit", Pointwise(test="residual"))
    with pytest.raises(CaseError, match="segments end at"):
        Order.of(device, (0, 92), 0, VOLTAGE, "lit", LOOSE)


def test_without_charm4py_people_hear_how_to_get_it(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RunError, match=r"minga\[charm\]"):
        charm.solve_charm(device, ENDS, VOLTAGE, "lit", LOOSE)


@pytest.mark.slow
@pytest.mark.skipif(
    not HAS_CHARM, reason="needs charm4py, which has no wheel here: Linux on x86-64 before Python 3.14 has"
)
@pytest.mark.parametrize(
    "options",
    [{}, pytest.param({"processes": 2, "balancer": "GreedyRefineLB", "balance": 20}, marks=pytest.mark.slow)],
)
def test_chares(device: Device, whole: Any, options: dict[str, Any]) -> None:
    """Message-driven, and migrated by Charm++'s balancer."""
    found = charm.solve_charm(device, ENDS, VOLTAGE, "lit", LOOSE, **options)
    assert same(found.solution, whole)
    assert not options or found.migrations > 0
