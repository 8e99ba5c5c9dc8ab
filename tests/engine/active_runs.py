"""Kernels on active tiles, and runs of them that are compared with runs over all cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine import active
from minga.engine.comm import Comm
from minga.engine.program import Program
from minga.space.layout import Layout

Tile = bool | int | tuple[int, ...]


def make_impatient(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(active, "WORTHWHILE", 0)


@mg.kernel
def life(c, new):
    n = sum(mg.cast(c[i, j], "i4") for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    new[0, 0] = mg.cast((n == 3) | ((n == 2) & (c[0, 0] == 1)), "u1")


@mg.kernel
def aside(c, new):
    """An asymmetric neighbourhood: moves what lies above and to the left, unless it meets something."""
    new[0, 0] = mg.where(c[-1, -3] == c[2, 0], c[0, 0], c[-1, -3] & c[0, 1])


@mg.kernel
def line(c, new):
    new[0] = (c[-2] | c[1]) & ~c[0] & 1


@mg.kernel
def cube(c, new):
    n = sum(mg.cast(c[i, j, k], "i4") for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1) if i or j or k)
    new[0, 0, 0] = mg.cast((n == 5) | ((n == 4) & (c[0, 0, 0] == 1)), "u1")


@mg.kernel
def settle(u, mask, new):
    """Floats that come to rest: the largest neighbour, where the mask lets it in."""
    around = mg.max(mg.max(u[-1, 0], u[1, 0]), mg.max(u[0, -1], u[0, 1]))
    new[0, 0] = mg.where(mask[0, 0] > 0.3, mg.max(u[0, 0], around), u[0, 0])


@mg.kernel
def pair(a, b, row, new_a, new_b, *, level):
    """Two fields, a row that all ranks hold, where a cell lies, and a parameter."""
    odd = mg.cast(mg.index("y") % 2, "u1")
    new_a[0, 0] = (b[1, 0] ^ (b[-1, 1] & odd)) & row[0]
    new_b[0, 0] = mg.where(mg.cast(a[0, 0], "i4") + mg.cast(a[0, -1], "i4") > level, a[0, 1], b[0, 0])


def stepping(
    kernel: Any, stored: Sequence[mg.Field], others: Sequence[mg.Field], tile: Tile, **scalars: Any
) -> Program:
    step = Program(f"step {tile}")
    region = mg.Region(active=tile) if tile else None
    step.apply(kernel, *stored, *others, *[item.next for item in stored], region=region, **scalars)
    step.rotate(*stored)
    return step


def left(
    layout: Layout,
    grid: mg.Grid,
    step: Program,
    initial: dict[mg.Field, Any],
    chunks: Sequence[int],
    look: Program | None = None,
    **settings: Any,
) -> tuple[list[np.ndarray], int, int]:
    """All slots after a run in chunks of steps, and the cells left out and looked at on all ranks."""

    def body(comm: Comm) -> tuple[list[Any], tuple[int, int]]:
        with mg.Engine(layout, grid=grid, comm=comm, **settings) as engine:
            for item, value in initial.items():
                engine.set(item, value)
            for count in chunks:
                engine.run(step, count)
                if look is not None:
                    engine.run(look)
            return [engine.gather(item.slot(k)) for item in initial for k in range(item.slots)], engine.skipped

    results = mg.run_virtual(layout.ranks, body)
    counts = np.sum([counted for _, counted in results], axis=0)
    return results[0][0], int(counts[0]), int(counts[1])


def compare(
    kernel: Any,
    stored: Sequence[mg.Field],
    initial: dict[mg.Field, Any],
    layouts: Sequence[Layout],
    tiles: Sequence[Tile],
    chunks: Sequence[int],
    **settings: Any,
) -> int:
    """Assert that active tiles leave what all cells leave; the cells left out on the first layout."""
    others = [item for item in initial if item not in stored]
    grid, scalars = stored[0].grid, settings.pop("scalars", {})
    alone = Layout.single(grid.box, 1)
    expected, _, looked = left(alone, grid, stepping(kernel, stored, others, False, **scalars), initial, chunks)
    assert looked == 0
    skipped = []
    for number, layout in enumerate(layouts):
        step = stepping(kernel, stored, others, tiles[number % len(tiles)], **scalars)
        found, some, _ = left(layout, grid, step, initial, chunks, **settings)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"{layout!r}, tiles {tiles[number % len(tiles)]}")
        skipped.append(some)
    return skipped[0]


def cells(shape: tuple[int, ...], share: float, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).random(shape) < share).astype("u1")


def patch_of(shape: tuple[int, int], pattern: Sequence[str], at: tuple[int, int]) -> np.ndarray:
    whole = np.zeros(shape, "u1")
    for i, row in enumerate(pattern):
        for j, mark in enumerate(row):
            whole[(at[0] + i) % shape[0], (at[1] + j) % shape[1]] = mark == "O"
    return whole


def field(shape: tuple[int, ...], dtype: str = "u1", **settings: Any) -> mg.Field:
    periodic = settings.pop("periodic", True)
    return mg.Field("c", mg.Grid(shape, periodic=periodic, **settings.pop("grid", {})), dtype, slots=2, **settings)


GLIDER = (".O.", "..O", "OOO")
BLINKER = ("OOO",)
PULSAR = (
    "..OOO...OOO..", ".............", "O....O.O....O", "O....O.O....O", "O....O.O....O",
    "..OOO...OOO..", ".............", "..OOO...OOO..", "O....O.O....O", "O....O.O....O",
    "O....O.O....O", ".............", "..OOO...OOO..",
)  # fmt: skip
