"""The multigrid solve has the same bits on any layout, number of ranks and threads, overlap and halo depth."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import minga as mg
from minga.engine.loop_code import is_supported
from minga.space.cuts import best_cartesian, bisection, blocks, slabs
from minga.space.layout import Layout
from mpi_launch import run_ranks
from thinned import thinned

from .problems import noise, solve

GRIDS = {
    "box": mg.Grid((15, 15, 15)),
    "uneven": mg.Grid((33, 29)),
    "periodic": mg.Grid((9, 11, 70), periodic=(True, False, False)),
    "line": mg.Grid((165,)),
}
LAYOUTS: dict[str, Callable[[mg.Box, int], Layout]] = {
    "slabs": slabs,
    "cartesian": best_cartesian,
    "bisection": lambda box, ranks: bisection(box, [1.0 + n for n in range(ranks)]),
    "blocks": lambda box, ranks: blocks(box, ranks, 3),
    "last rank": lambda box, ranks: Layout.single(box, ranks, ranks - 1),
}


@functools.cache
def serial(name: str) -> tuple[int, bytes]:
    found = solve(GRIDS[name], noise(GRIDS[name]))
    assert found.reason == "converged"
    return found.iterations, found.x.tobytes()


def same_as_serial(name: str, ranks: int, layout: Callable[[mg.Box, int], Layout], **options: object) -> None:
    found = solve(GRIDS[name], noise(GRIDS[name]), ranks=ranks, layout=layout, cells_per_rank=64, **options)
    assert (found.iterations, found.x.tobytes()) == serial(name)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("grid", "ranks", "layout"),
    thinned(
        [
            *(("box", ranks, "slabs") for ranks in (2, 3, 4, 7)),
            *(("uneven", ranks, layout) for ranks in (2, 3) for layout in LAYOUTS),
            *(("uneven", 7, "cartesian"), ("uneven", 16, "slabs")),
            *(("periodic", 3, "bisection"), ("periodic", 4, "cartesian"), ("periodic", 2, "blocks")),
            *(("line", 2, "slabs"), ("line", 3, "blocks"), ("line", 7, "bisection")),
        ],
        *(("uneven", 3, layout) for layout in ("cartesian", "blocks", "last rank")),
        *(("box", 3, "slabs"), ("line", 3, "blocks")),
    ),
)
def test_layouts(grid: str, ranks: int, layout: str) -> None:
    same_as_serial(grid, ranks, LAYOUTS[layout])


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    thinned(
        [{"threads": 2}, {"overlap": False}, *({"halo_depth": k} for k in (2, 3, 4, 5)), {"native": False}],
        *({"threads": 2}, {"halo_depth": 4}),
    ),
    ids=str,
)
def test_engine_options(options: dict[str, object]) -> None:
    same_as_serial("uneven", 3, slabs, **options)


@pytest.mark.slow
def test_levels_that_stay_and_levels_that_move() -> None:
    for cells_per_rank in (1, 256, 100000):
        found = solve(GRIDS["uneven"], noise(GRIDS["uneven"]), ranks=4, layout=slabs, cells_per_rank=cells_per_rank)
        assert (found.iterations, found.x.tobytes()) == serial("uneven")


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.skipif(not is_supported(), reason="the native loop exists on Linux only")
@pytest.mark.parametrize("ranks", thinned([2, 3, 4], 2))
def test_real_ranks(ranks: int, tmp_path: Path) -> None:
    job = run_ranks(ranks, Path(__file__).parent / "solve_ranks.py", tmp_path / "x.npy").check()
    iterations, bits = serial("box")
    assert job.out[0] == f"converged {iterations}\n"
    assert np.load(tmp_path / "x.npy").tobytes() == bits
