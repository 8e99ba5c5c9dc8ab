"""The paper's device on coarser meshes, and cuts brought over to them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from minga.errors import RunError
from minga.models.photodiode.pointwise.scheme import Pointwise
from minga.studies.bounanos.cuts import equal, fullest
from minga.studies.bounanos.workload import cut_rows, paper_device, solve


def test_layers_are_the_papers() -> None:
    layers = paper_device(1).layers
    assert [layer.name for layer in layers] == ["Inp1", "Mult", "Charge", "Hole", "Absorp", "Doping", "Inp2"]
    assert [layer.last + 1 for layer in layers] == [400, 800, 1100, 1200, 1320, 1420, 1820]
    assert paper_device(20).grid.shape == (91,)


@pytest.mark.parametrize("segments", [1, 5, 37, 91])
def test_cuts_on_a_coarser_mesh_leave_each_segment_a_row(segments: int) -> None:
    heavy = np.ones(1820)
    heavy[1200:1320] = 10.0
    for ends in (equal(1820, segments), fullest(heavy, segments)):
        coarse = cut_rows(ends, 1820, 91)
        assert (coarse[0], coarse[-1], len(coarse)) == (0, 91, segments + 1)
        assert all(a < b for a, b in itertools.pairwise(coarse))


def test_too_few_iterations_are_an_error() -> None:
    with pytest.raises(RunError, match="after 5 iterations"):
        solve(paper_device(20), -5.0, "dark", Pointwise(limit=5))
