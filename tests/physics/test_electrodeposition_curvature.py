"""Surface energy of deposits: curvature of discs and balls, and the dispersion of a perturbed flat front."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.begin import start as begin_with
from minga.engine.program import Program
from minga.models.electrodeposition.curvature import Curvature
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import (
    CATHODE,
    Electrode,
    Growth,
    Problem,
    Reversible,
    Species,
    Steps,
)
from minga.models.electrodeposition.state import state_of
from minga.space.cuts import slabs
from minga.space.grid import Grid

from .evidence import Evidence

Array = np.ndarray[Any, Any]

COPPER = Species("Cu", 2, 7.33e-10, 100.0), Species("SO4", -2, 1.07e-9, 100.0)
AMOUNT = 7.1e-6
"""Volume of a mole of copper, m3."""
METAL = Electrode({"Cu": Reversible(100.0)})


def problem_of(
    grid: Grid, kinds: Array, radius: float, energy: float, *, volume: float = AMOUNT, voltage: float = 0.02
) -> Problem:
    steps = Steps(300.0, 100.0, 100.0, adaptive=False, order=1)
    return Problem(
        grid, COPPER, steps, kinds=kinds, cathode=METAL, anode=METAL, voltage=voltage,
        growth=Growth("Cu", volume, radius=radius, surface_energy=energy),
    )  # fmt: skip


def curvature_of(solid: Array, radius: float) -> Array:
    """The curvature of a solid of unit cells that leaves the walls alone."""
    grid = Grid(solid.shape, axes=("y", "z", "x")[: solid.ndim] if solid.ndim == 3 else ("y", "x"), spacing=1.0)
    problem = problem_of(grid, np.where(solid, CATHODE, 0).astype(np.uint8), radius, 1.0)
    state, curvature, program = state_of(problem), Curvature(problem), Program("bend")
    curvature.measure(program, state.kind)
    with mg.Engine({grid: slabs(grid.box, 1)}) as engine:
        engine.set(state.kind, problem.kinds)
        engine.run(program)
        return np.asarray(engine.gather(curvature.value))


def at_faces(solid: Array, value: Array) -> Array:
    """The means of a value in the two cells beside each face of a solid."""
    found = []
    for axis in range(solid.ndim):
        inside, values = np.moveaxis(solid, axis, 0), np.moveaxis(value, axis, 0)
        found.append((0.5 * (values[1:] + values[:-1]))[inside[1:] != inside[:-1]])
    return np.concatenate(found)


def ball(size: float, ndim: int, width: float, seed: int) -> Array:
    """A disc or a ball of a radius, about a random place of the cells in the middle."""
    side = int(2 * size + 6 * width + 8)
    centre = side / 2 + np.random.default_rng(seed).uniform(-0.5, 0.5, ndim)
    places = np.meshgrid(*[np.arange(side) + 0.5] * ndim, indexing="ij")
    return np.asarray(sum((p - c) ** 2 for p, c in zip(places, centre, strict=True)) < size * size)


@pytest.mark.parametrize(
    ("ndim", "size", "width", "mean", "spread"),
    [(2, 8, 8, 0.012, 0.04), (2, 16, 16, 0.003, 0.018), (2, 16, 8, 0.006, 0.07), (3, 6, 6, 0.012, 0.05)],
)
def test_discs_and_balls_have_their_curvature_at_every_angle(
    ndim: int, size: float, width: float, mean: float, spread: float
) -> None:
    """1 / R in two dimensions, 2 / R in three; the standard deviation over all faces is what depends on the angle."""
    solid = ball(size, ndim, width, 4)
    found = at_faces(solid, curvature_of(solid, width)) * size / (ndim - 1)
    assert found.mean() == pytest.approx(1.0, abs=mean)
    assert found.std() < spread


@pytest.mark.slow
@pytest.mark.parametrize("angle", [0.0, 0.3, math.pi / 4])
def test_flat_fronts_are_flat_at_every_angle(angle: float) -> None:
    """Far from the walls the curvature of an inclined staircase is below 0.2 / width."""
    y, x = np.mgrid[:72, :72] + 0.5
    solid = (y - 36) * math.cos(angle) + (x - 36) * math.sin(angle) < 0
    near = np.hypot(y - 36, x - 36) < 8
    values = curvature_of(solid, 8.0)
    beside = near & (solid != np.roll(solid, 1, 0))
    assert np.abs(values[beside]).max() * 8.0 < 0.2


def test_the_curvature_of_a_needle_is_limited() -> None:
    solid = np.zeros((16, 16), bool)
    solid[:8, 8] = True
    assert curvature_of(solid, 3.0).max() == 4.0 / 3.0


def growth_of_wave(cells: int, waves: int, energy: float, width: float = 8e-6) -> tuple[float, float]:
    """The first-order growth of a wave on a flat front by the model's steady fluxes, and that of linear theory.

    In the steady state the anions rest, c is harmonic, and the concentration at the metal is c_e (1 + d k) with
    d = gamma V_m / (2 R T). A wave of the number k and the amplitude e then changes the flux by
    2 D e k coth(k L) (G - c_e d k^2 exp(-k^2 w^2 / 8)), where G is the gradient, L the distance of the anode, and the
    last factor is that of the average over the radius w.
    """
    side, amplitude, height = 1e-4, 3e-6, 3e-5
    h = side / cells
    grid = Grid((3 * cells // 2, cells), axes=("y", "x"), spacing=(h, h), periodic=(False, True))
    k = 2 * math.pi * waves / side
    y, x = grid.centres("y")[:, None], grid.centres("x")
    kinds = (y < height + amplitude * np.cos(k * x)).astype(np.uint8) * np.uint8(CATHODE)
    # So small a volume that no cell fills; the energy makes up for it.
    model = electrodeposition(problem_of(grid, kinds, width, energy * 1e6, volume=AMOUNT / 1e6))
    with mg.Engine(model.layouts("slabs", 1), threads=1) as engine:
        begin_with(model, engine)
        engine.run(model.step, 3)
        flux, c = (engine.gather(model.field(name)) for name in ("flux into deposit", "Cu"))
    columns = flux.sum(axis=0) / h
    spread = 2 * COPPER[0].diffusivity
    length = 1.5 * side - height
    gradient = columns.mean() / spread
    at_metal = c[kinds == 0].mean() - 0.5 * gradient * length
    shift = at_metal * energy * AMOUNT / (2 * 8.314462618 * 298.15) * k * k * math.exp(-((k * width) ** 2) / 8)
    factor = spread * amplitude * k / math.tanh(k * length)
    return 2 * float((columns * np.cos(k * x)).mean()), factor * (gradient - shift)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_surface_energy_stops_the_waves_that_linear_theory_says(evidence: Evidence) -> None:
    """A wave of 100 um grows without surface energy, and shrinks from the energy on at which it is critical."""
    bare, theory = growth_of_wave(96, 1, 0.0)
    evidence.relative("deposits", "growth of a wave of 100 um without surface energy", bare / theory, 1.0, 0.02)
    found, expected = [], []
    for energy in (900.0, 2700.0):
        one, wanted = growth_of_wave(96, 1, energy)
        found.append(bare - one)
        expected.append(theory - wanted)
    for energy, one, wanted in zip((900.0, 2700.0), found, expected, strict=True):
        evidence.relative("deposits", f"what {energy:g} J/m2 take away from it", one / wanted, 1.0, 0.03)
    critical = [2700.0 * whole / parts[1] for whole, parts in ((bare, found), (theory, expected))]
    evidence.relative("deposits", "J/m2, surface energy from which on it shrinks", *critical, 0.04)
    assert found[0] < bare < found[1]
