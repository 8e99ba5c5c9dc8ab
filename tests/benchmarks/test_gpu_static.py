"""Predictions for GPUs: the counts are right where they are known, and the page shows what is stored."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from gpu_kernels import graph_of
from minga.compile.ptx import print_ptx
from minga.lang.cell import local

ROOT = Path(__file__).parents[2]


@pytest.fixture
def static(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.gpu.static")


def test_instructions_are_counted_a_cell(static):
    """Of a block of 256 threads, each with one cell: eight warps that issue each operation once."""

    def three(u, new):
        new[0, 0, 0] = u[0, 0, 1] * u[1, 0, 0] + u[0, -1, 0]

    graph = graph_of(three, "f4", "f4", ndim=3)
    counts, cells = static.counted(graph, print_ptx(graph, static.ARCH, "straight"), "straight")
    assert cells == 256
    assert counts["arithmetic"] * static.WARP == 2 * cells
    assert counts["shared"] == 0
    arguments = counts["global"] * static.WARP / cells - 3 - 1
    assert 0 < arguments < 30


@pytest.mark.slow
def test_margins_and_first_planes_are_counted(static):
    """A march computes more than its cells: a local once for each plane that comes before the first, too."""

    def ahead(u, new):
        sum_ = local(u[0, 0, 0] + u[0, 1, 0])
        new[0, 0, 0] = sum_[1, 0, 0] * sum_[-1, 0, 0]

    graph = graph_of(ahead, "f4", "f4", ndim=3)
    counts, cells = static.counted(graph, print_ptx(graph, static.ARCH, "march"), "march")
    planes = cells // 256
    assert counts["arithmetic"] * static.WARP == 256 * (planes + (planes + 2))


def test_the_page_shows_what_is_stored(static):
    stored = json.loads(static.RESULTS.read_text())["reports"]
    assert {item["kernel"] for item in stored} == set(static.KERNELS)
    assert static.table(stored) in static.PAGE.read_text()
