"""Vorticity and vector potential against exact flows."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

import minga as mg
from minga.engine.program import Program
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.relaxation.vorticity import VectorPotential

Terms = list[tuple[float, list[np.polynomial.Polynomial]]]
BUMP = (np.polynomial.Polynomial([0, 1]) * np.polynomial.Polynomial([1, -1])) ** 3
VISCOSITY = 0.7


def bumps(*orders: int) -> list[np.polynomial.Polynomial]:
    return [BUMP.deriv(k) if k else BUMP for k in orders]


FLOWS: dict[int, list[Terms]] = {
    2: [[(1.0, bumps(0, 1))], [(-1.0, bumps(1, 0))]],
    3: [[(1.0, bumps(1, 0, 1))], [(1.0, bumps(0, 1, 1))], [(-1.0, bumps(2, 0, 0)), (-1.0, bumps(0, 2, 0))]],
}
"""Velocities without divergence that touch no wall: curl of a bump, on the unit square and in the unit cube."""


def laplacian(terms: Terms) -> Terms:
    return [
        (factor, [q.deriv(2) if i == axis else q for i, q in enumerate(shapes)])
        for (factor, shapes), axis in itertools.product(terms, range(len(terms[0][1])))
    ]


def values(terms: Terms, grid: mg.Grid, face: int) -> np.ndarray:
    points = [grid.faces(a) if a == face else grid.centres(a) for a in range(grid.ndim)]
    total = np.zeros([len(p) for p in points])
    for factor, shapes in terms:
        parts = [q(x) for q, x in zip(shapes, points, strict=True)]
        total += factor * functools.reduce(np.multiply, np.ix_(*parts))
    return total


def stokes(cells: tuple[int, ...], order: str, widths: list[np.ndarray] | None = None) -> tuple[float, float]:
    """The largest error of the velocity, and the largest divergence, both relative."""
    ndim = len(cells)
    spacing = tuple(1.0 / n for n in cells) if widths is None else tuple(widths)
    grid = mg.Grid(cells, axes=("y", "z", "x")[:ndim], spacing=spacing)
    kind = mg.Field("kind", grid, "u1", boundary=mg.fixed(3))
    velocity = tuple(mg.Field(f"v_{a}", grid, centre=a) for a in grid.axes)
    lengths = Lengths(grid)
    flow = VectorPotential(kind, velocity, lengths, VISCOSITY, order, "block")
    program, worst = Program("stokes"), mg.Register("worst")
    flow.setup(program)
    program.let(worst, float("inf"))
    with program.repeat(until=worst < 1e-9, limit=20_000):
        residual, _ = flow.sweep(program, velocity, 0.0, 1e-9)
        program.let(worst, residual)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
        engine.set(kind, 0)
        for item, array in lengths.initial.items():
            engine.set(item, array)
        for axis, terms in enumerate(FLOWS[ndim]):
            engine.set(flow.push[axis], -VISCOSITY * values(laplacian(terms), grid, axis))
        assert engine.run(program).reason == "converged"
        found = [np.asarray(engine.gather(v)) for v in velocity]
    exact = [values(terms, grid, axis) for axis, terms in enumerate(FLOWS[ndim])]
    size = max(np.abs(e).max() for e in exact)
    widths = [grid.widths(a).reshape([-1 if b == a else 1 for b in range(ndim)]) for a in range(ndim)]
    divergence = sum(np.diff(v, axis=a) / widths[a] for a, v in enumerate(found))
    smallest = min(float(w.min()) for w in widths)
    error = max(float(np.abs(f - e).max()) for f, e in zip(found, exact, strict=True)) / size
    return error, float(np.abs(divergence).max()) * smallest / size


@pytest.mark.slow
def test_a_stokes_flow_between_walls() -> None:
    coarse, fine = stokes((10, 10), "red-black"), stokes((20, 20), "red-black")
    assert fine[0] < 0.03
    assert coarse[0] / fine[0] > 2.6
    assert max(coarse[1], fine[1]) < 1e-14


@pytest.mark.slow
def test_a_stokes_flow_on_uneven_cells() -> None:
    edges = 0.5 * (1.0 - np.cos(np.pi * (np.arange(17) + 4) / 24))
    widths = np.diff((edges - edges[0]) / (edges[-1] - edges[0]))
    error, divergence = stokes((16, 16), "red-black", [widths, widths])
    assert error < 0.06
    assert divergence < 1e-14


@pytest.mark.slow
def test_a_stokes_flow_in_a_box() -> None:
    coarse, fine = stokes((8, 8, 8), "red-black"), stokes((16, 16, 16), "red-black")
    assert fine[0] < 0.07
    assert coarse[0] / fine[0] > 3.0
    assert max(coarse[1], fine[1]) < 1e-14


@pytest.mark.slow
def test_a_coarse_box() -> None:
    error, divergence = stokes((6, 6, 6), "lexicographic")
    assert error < 0.4
    assert divergence < 1e-14
