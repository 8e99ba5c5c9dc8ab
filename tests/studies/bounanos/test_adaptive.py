"""Rows that change segments while a run goes on."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import minga as mg
from minga.models.photodiode.pointwise.scheme import Pointwise
from minga.models.photodiode.structure.device import Device
from minga.studies.bounanos.adaptive import Adapted, solve_adaptive
from minga.studies.bounanos.workload import paper_device, solve

HOW = Pointwise(tolerance=1.0, cost="synthetic", heavy=(60, 66), growth=4.0, expected=50)


@pytest.fixture(scope="module")
def device() -> Device:
    return paper_device(20)


def adapted(device: Device, ranks: int, segments: int = 4) -> Adapted:
    found = mg.run_virtual(ranks, lambda comm: solve_adaptive(device, segments, -5.0, "lit", HOW, comm, window=15))
    assert found[1:] == [None] * (ranks - 1)
    assert found[0] is not None
    return found[0]


@pytest.mark.slow
def test_rows_move_and_bits_do_not_depend_on_ranks(device: Device) -> None:
    """Costly rows end up in short segments; cuts follow from counts, so they are the same on one and two ranks."""
    one, two = adapted(device, 1), adapted(device, 2)
    assert len(one.cuts) > 2
    assert one.cuts == two.cuts
    assert one.solution.iterations == two.solution.iterations
    for name, values in one.solution.state.items():
        assert np.array_equal(values, two.solution.state[name])
    lengths = [b - a for a, b in itertools.pairwise(one.cuts[-1])]
    holder = next(k for k, end in enumerate(one.cuts[-1][1:]) if end > 62)
    assert lengths[holder] < 91 / 4


@pytest.mark.slow
def test_the_solution_is_that_of_fixed_cuts(device: Device) -> None:
    found = solve_adaptive(device, 4, -60.0, "dark", Pointwise(), mg.SerialComm(), window=1000)
    fixed = solve(device, -60.0, "dark", Pointwise())
    assert found is not None
    assert found.solution.change < Pointwise().tolerance
    assert found.solution.iterations >= fixed.iterations
    for name in ("electrons", "holes"):
        assert np.abs(np.log(found.solution.state[name] / fixed.fields[name])).max() < 1e-2
