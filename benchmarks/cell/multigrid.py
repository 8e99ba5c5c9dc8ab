"""Conjugate gradients with multigrid where coefficients vary and cells are solid: iterations and time by size."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import minga as mg
from minga.solve.elliptic import Elliptic
from minga.solve.elliptic_multigrid import EllipticMultigrid
from minga.solve.krylov import conjugate_gradients

SIZES, QUICK = (40, 80, 160), (12, 16)
TOLERANCE = 1e-8
FLUID, METAL, GLASS = 0, 1, 2

Shape = tuple[int, ...]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Problem:
    """What varies.

    says    in words
    k       of every cell
    kind    of every cell: FLUID; METAL, which holds the solution to 0; GLASS, which lets nothing pass
    held    ends of axes that hold it too, as pairs of axis and end
    gap     cells of the middle axis are thinner by this factor, and there are fewer of them
    """

    says: str
    k: Callable[[Shape], Floats] = np.ones
    kind: Callable[[Shape], NDArray[np.int64]] = lambda shape: np.zeros(shape, np.int64)
    held: tuple[tuple[int, int], ...] = ((0, 0), (0, -1))
    gap: int = 1

    def shape(self, size: int) -> Shape:
        """The cells of a box with `size` of them a side; of a thin gap ten times as many along the cell."""
        return (size,) * 3 if self.gap == 1 else (10 * size, size // 5, size)


def _places(shape: Shape) -> list[Floats]:
    return np.meshgrid(*((np.arange(n) + 0.5) / n for n in shape), indexing="ij", sparse=True)


def _smooth(shape: Shape) -> Floats:
    z, y, x = _places(shape)
    return np.asarray(10.0 ** (1.5 * np.sin(2 * np.pi * z) * np.cos(np.pi * y) * np.cos(3 * np.pi * x)))


def _exponential(shape: Shape) -> Floats:
    z, y, x = _places(shape)
    return np.asarray(10.0 ** (z + y + x))


def _needles(solid: int) -> Callable[[Shape], NDArray[np.int64]]:
    def kind(shape: Shape) -> NDArray[np.int64]:
        found, width = np.zeros(shape, np.int64), max(1, shape[0] // 40)
        for part in (0.2, 0.5, 0.8):
            low = int(part * shape[2])
            found[: int(0.6 * shape[0]), shape[1] // 2 : shape[1] // 2 + width, low : low + width] = solid
        return found

    return kind


def _plates(solid: int) -> Callable[[Shape], NDArray[np.int64]]:
    """Three plates of one cell across the first axis, each with an opening at another end of the second."""

    def kind(shape: Shape) -> NDArray[np.int64]:
        found = np.zeros(shape, np.int64)
        for number, part in enumerate((0.25, 0.5, 0.75)):
            opening = slice(shape[1] // 5, None) if number % 2 else slice(None, -(shape[1] // 5))
            found[int(part * shape[0]), opening] = solid
        return found

    return kind


def _pillars(solid: int) -> Callable[[Shape], NDArray[np.int64]]:
    """Sixteen square pillars along the middle axis."""

    def kind(shape: Shape) -> NDArray[np.int64]:
        z, x = (np.arange(n) * 4 / n % 1.0 for n in (shape[0], shape[2]))
        inside = (np.abs(z - 0.5) < 0.2)[:, None] & (np.abs(x - 0.5) < 0.2)
        return np.broadcast_to(inside[:, None, :] * solid, shape).astype(np.int64)

    return kind


def _random(shape: Shape) -> NDArray[np.int64]:
    return (np.random.default_rng(3).random(shape) < 0.2) * METAL


_ALL = tuple((axis, end) for axis in range(3) for end in (0, -1))
PROBLEMS: Mapping[str, Problem] = {
    "two walls": Problem("k constant, two walls held"),
    "all walls": Problem("k constant, all walls held", held=_ALL),
    "nothing held": Problem("nothing held (pressure)", held=()),
    "smooth": Problem("k smooth, by a factor of 1000", _smooth),
    "exponential": Problem("k exponential, by a factor of 1000", _exponential),
    "needles": Problem("three metal needles, a fortieth of the box wide", kind=_needles(METAL)),
    "glass needles": Problem("the same of glass, nothing held", kind=_needles(GLASS), held=()),
    "plates": Problem("three metal plates of one cell", kind=_plates(METAL)),
    "pillars": Problem("16 metal pillars", kind=_pillars(METAL)),
    "glass pillars": Problem("16 glass pillars, nothing held", kind=_pillars(GLASS), held=()),
    "random": Problem("a fifth of all cells metal, at random", kind=_random),
    "thin gap": Problem("a thin gap, cells of 25:1, and 400 x 8 x 40 of them or more", gap=25),
    "labyrinth": Problem("a labyrinth of three glass plates of one cell, nothing held", kind=_plates(GLASS), held=()),
}  # fmt: skip


def measure_multigrid(quick: bool) -> list[dict[str, Any]]:
    """Every problem at every size."""
    return [_measure(name, size) for name in PROBLEMS for size in (QUICK if quick else SIZES)]


def conductances(problem: Problem, shape: Shape) -> tuple[list[Floats], Floats, NDArray[np.bool_]]:
    """Of all faces; of all that goes to walls; and which cells are solid."""
    k, kind = problem.k(shape), problem.kind(shape)
    faces, walls = [], np.zeros(shape)
    for axis in range(k.ndim):
        value, what, wall = (np.moveaxis(each, axis, 0) for each in (k, kind, walls))
        strength = float(problem.gap) ** 2 if axis == 1 else 1.0
        face = np.zeros((len(value) + 1, *value.shape[1:]))
        face[1:-1] = strength * 2.0 / (1.0 / value[1:] + 1.0 / value[:-1]) * ((what[1:] | what[:-1]) == FLUID)
        wall[1:] += strength * 2.0 * value[1:] * ((what[1:] == FLUID) & (what[:-1] == METAL))
        wall[:-1] += strength * 2.0 * value[:-1] * ((what[:-1] == FLUID) & (what[1:] == METAL))
        for end in (0, -1):
            if (axis, end) in problem.held:
                wall[end] += strength * 2.0 * value[end] * (what[end] == FLUID)
        faces.append(np.moveaxis(face, 0, axis))
    return faces, walls, kind != FLUID


def _measure(name: str, size: int) -> dict[str, Any]:
    problem = PROBLEMS[name]
    shape = problem.shape(size)
    grid = mg.Grid(shape, spacing=(1.0, 1.0 / problem.gap, 1.0))
    faces, walls, solid = conductances(problem, shape)
    elliptic = Elliptic(grid)
    levels = EllipticMultigrid(elliptic, solids=bool(solid.any()))
    x, b, ones = mg.Field("x", grid, boundary=mg.fixed(0.0)), mg.Field("b", grid), mg.Field("ones", grid)
    setup, program = mg.Program("setup"), mg.Program("solve")
    levels.setup(setup)
    elliptic.active(setup, ones)
    null = None if problem.held or (walls > 0.0).any() else ones
    solution = conjugate_gradients(
        program, elliptic, x, b, preconditioner=levels, tolerance=TOLERANCE, null=null, limit=500
    )
    layout = mg.Layout.single(grid.box, 1)
    with mg.Engine({grid: layout, **levels.layouts(layout)}) as engine:
        for item, values in zip((*elliptic.faces, elliptic.diagonal), (*faces, walls), strict=True):
            engine.set(item, values)
        engine.set(b, np.where(solid, 0.0, np.random.default_rng(1).standard_normal(shape)))
        seconds = {}
        for what, recorded in (("setup", setup), ("solve", program)):
            engine.prepare(recorded, looped=False)
            began = time.perf_counter()
            assert engine.run(recorded).ok, (name, size)
            seconds[what] = time.perf_counter() - began
        iterations = int(engine.read(solution.iterations))
    return {
        "problem": name, "says": problem.says, "size": size, "shape": shape, "iterations": iterations,
        "tolerance": TOLERANCE, "levels": len(levels.levels), "setup_seconds": seconds["setup"],
        "nanoseconds_a_cell_an_iteration": seconds["solve"] / iterations / math.prod(shape) * 1e9,
    }  # fmt: skip


def rows(found: list[Mapping[str, Any]]) -> Iterator[str]:
    """The iterations as a table in Markdown."""
    sizes = sorted({row["size"] for row in found})
    yield "| | " + " | ".join(f"{size}³" for size in sizes) + " |"
    yield "|---" * (len(sizes) + 1) + "|"
    for name, problem in PROBLEMS.items():
        by_size = {row["size"]: row["iterations"] for row in found if row["problem"] == name}
        yield f"| {problem.says} | " + " | ".join(str(by_size.get(size, "")) for size in sizes) + " |"
    times = [row["nanoseconds_a_cell_an_iteration"] for row in found if row["size"] == max(sizes)]
    yield ""
    yield f"An iteration takes {min(times):.0f} to {max(times):.0f} ns a cell at the largest size, on one core."
