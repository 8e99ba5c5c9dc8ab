"""The equations of a device: their matrix against differences of their residual, for every model of physics."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import minga as mg
from minga.models.photodiode.solver.coefficients import Coefficients
from minga.models.photodiode.solver.fermi import activity, activity_of, reduced_level
from minga.models.photodiode.solver.newton import Newton
from minga.models.photodiode.solver.state import State
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.heavy import NodeDopants
from minga.models.photodiode.structure.surface import NodeSurface
from minga.models.photodiode.structure.tunnelling import NodeTunnelling

sys.path.insert(0, str(Path(__file__).parents[2]))

from physics.photodiodes import apd

Floats = NDArray[np.float64]
BIAS, LIGHT = -3.0, 0.5


def small(**changes: Any) -> Device:
    """Each 40th row of the avalanche photodiode: heterojunctions, ionisation and light in 46 nodes."""
    return replace(apd(20), **changes)


class Equations:
    """Residual and matrix of a device at any state."""

    def __init__(self, device: Device, ionisation: bool) -> None:
        self.coefficients = Coefficients(device)
        self.newton = Newton(self.coefficients, ionisation, 1e-7, 10)
        self.state = State(device.grid, "state")
        self.program = mg.Program("equations")
        self.newton.evaluate(self.program, self.state.now, BIAS, LIGHT)
        self.engine = mg.Engine(mg.Layout.single(device.grid.box, 1), grid=device.grid, threads=1)
        for item, value in self.coefficients.values.items():
            self.engine.set(item, value)

    def at(self, state: Floats) -> Floats:
        """The right side, (3, nodes)."""
        for slot, value in zip(self.state.now, state, strict=True):
            self.engine.set(slot, value)
        self.engine.run(self.program)
        return np.array([self.engine.gather(item) for item in self.newton.right])

    def matrix(self) -> Floats:
        """Of the state that was looked at last: (3, nodes, 3, nodes)."""
        lines = self.newton.lines
        count = self.coefficients.device.grid.shape[0]
        found = np.zeros((3, count, 3, count))
        rows = np.arange(count)
        for i in range(3):
            for j in range(3):
                found[i, rows, j, rows] = self.engine.gather(lines.diagonal[i][j])
                for part, shift in ((lines.lower, -1), (lines.upper, 1)):
                    item = part[i][j]
                    if item is not None:
                        inside = rows[(rows + shift >= 0) & (rows + shift < count)]
                        found[i, inside, j, inside + shift] = self.engine.gather(item)[inside]
        return found


BOLTZMANN: dict[str, Any] = {}
FERMI = {"statistics": "fermi-dirac"}
SATURATED = {"field_mobility": True}
TUNNELLING = {"tunnelling": True}
SURFACE = {"surface": True}
BARRIER = {"barrier": True}
DOPANTS = {"dopants": True}
EMITTING = {"field_mobility": True, "statistics": "fermi-dirac", "emission": True}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "ionisation"),
    [
        pytest.param(BOLTZMANN, False, marks=pytest.mark.slow),
        pytest.param(BOLTZMANN, True, marks=pytest.mark.slow),
        pytest.param(FERMI, False, marks=pytest.mark.slow),
        pytest.param(FERMI, True, marks=pytest.mark.slow),
        pytest.param(SATURATED, False, marks=pytest.mark.slow),
        pytest.param(SATURATED, True, marks=pytest.mark.slow),
        (EMITTING, True),
        (TUNNELLING, False),
        (SURFACE, False),
        (BARRIER, False),
        (DOPANTS, False),
        pytest.param(DOPANTS | FERMI, True, marks=pytest.mark.slow),
        pytest.param(TUNNELLING | FERMI | SURFACE, True, marks=pytest.mark.slow),
    ],
)
def test_the_matrix_is_the_derivative_of_the_residual(changes: dict[str, Any], ionisation: bool) -> None:
    emitting = changes.get("emission")
    device = small(
        **{
            name: value
            for name, value in changes.items()
            if name not in ("emission", "tunnelling", "surface", "barrier", "dopants")
        }
    )
    if changes.get("barrier"):  # lowered by the field, and tunnelled through
        metals = (
            replace(t, kind="schottky", barrier=0.5, image_force=True, tunnelling_mass=0.1) for t in device.terminals
        )
        device = replace(device, terminals=tuple(metals))
    if changes.get("dopants"):  # half of them neutral at 1e17
        ones = np.ones(device.grid.shape)
        device = replace(device, dopants=NodeDopants(1e18 * ones, 3e17 * ones, 1e-17 * ones, 1e-17 * ones))
    if changes.get("surface"):  # the contacts hold majority carriers only
        ones, free = np.ones(device.grid.shape), np.zeros(device.grid.shape, np.uint8)
        free[[0, -1]] = 1, 2
        device = replace(device, surface=NodeSurface(ones, 1e6 * ones, 1e5 * ones, free))
    if changes.get("tunnelling"):
        ones = np.ones(device.grid.shape)
        device = replace(
            device, tunnelling=NodeTunnelling((1e25 * ones, 2e6 * ones, 2.5 * ones), (14.0 * ones, 3e6 * ones))
        )
    if emitting:  # on every third edge, with a barrier on one side or the other, much and little
        slow = np.zeros((4, device.doping.size + 1))
        for part in range(4):
            slow[part, 3 + part : -3 : 6] = 1.0 / np.geomspace(1e5, 1e9, slow[part, 3 + part : -3 : 6].size)
        device = replace(device, emission=(slow,))
    if changes.get("field_mobility"):
        ones = np.ones(device.grid.shape)
        device = replace(device, exponent_n=2.0 * ones, exponent_p=ones, velocity_n=1e7 * ones, velocity_p=8e6 * ones)
    equations = Equations(device, ionisation)
    rng = np.random.default_rng(3)
    count = device.grid.shape[0]
    # Fields of both signs up to 6e5 V/cm, and quasi-Fermi potentials that split both ways.
    potential = equations.coefficients.values[equations.coefficients.nodes.neutral] + np.cumsum(
        rng.normal(0, 30, count)
    )
    state = np.array([potential, potential - rng.uniform(-3, 12, count), potential + rng.uniform(-12, 3, count) - BIAS])
    state[1] += device.theta_n
    state[2] += device.theta_p
    equations.at(state)
    matrix = equations.matrix()
    ends = [(0, 1), (count - 1, 2)] if changes.get("surface") else []
    ends += [(0, 0), (1, 0), (count - 2, 0), (count - 1, 0)] if changes.get("barrier") else []
    inner = rng.choice(np.arange(1, count - 1), 8, replace=False)
    for column, unknowns in [*((node, (unknown,)) for node, unknown in ends), *((node, range(3)) for node in inner)]:
        for unknown in unknowns:
            step = 1e-5 * np.eye(3)[unknown][:, None] * np.eye(count)[column]
            slope = -(equations.at(state + step) - equations.at(state - step)) / 2e-5
            exact = matrix[:, :, unknown, column]
            scale = np.abs(matrix).max(axis=(2, 3))
            worst = float((np.abs(slope - exact) / scale).max())
            assert worst < 1e-6, (
                column,
                unknown,
                np.unravel_index(np.argmax(np.abs(slope - exact) / scale), slope.shape),
            )


def fermi_integral(eta: Floats) -> Floats:
    """F of order 1/2 by the trapezoid rule in the root of the energy, which converges exponentially."""
    x = np.arange(0.005, 14, 0.01)
    occupied = 1.0 / (1.0 + np.exp(np.minimum(x**2 - eta[:, None], 700.0)))
    found: Floats = (4.0 / np.sqrt(np.pi) * x**2 * occupied).sum(1) * 0.01
    return found


def test_fermi_integral() -> None:
    eta = np.concatenate((np.linspace(-30.0, 20.0, 401), np.linspace(20.0, 40.0, 41)))
    error = np.abs(eta + activity_of(eta) - np.log(fermi_integral(eta)))
    assert error[eta < 20.0].max() < 2e-10
    assert error.max() < 2e-8
    assert reduced_level(np.log(fermi_integral(np.array([-5.0, 0.0, 5.0, 15.0])))) == pytest.approx(
        [-5, 0, 5, 15], abs=1e-8
    )


def test_activity_in_kernels_is_that_of_arrays() -> None:
    @mg.kernel
    def behind(eta: Any, out: Any, slope: Any) -> None:
        value = activity(eta[0])
        out[0] = value
        slope[0] = mg.derivative(value, eta[0])

    grid = mg.Grid((301,))
    eta, out, slope = (mg.Field(name, grid) for name in ("eta", "out", "slope"))
    program = mg.Program("activity")
    program.apply(behind, eta, out, slope)
    levels = np.linspace(-40.0, 30.0, 301) + 0.013
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as engine:
        engine.set(eta, levels)
        engine.run(program)
        np.testing.assert_allclose(engine.gather(out), activity_of(levels), rtol=1e-13, atol=1e-15)
        numeric = (activity_of(levels + 1e-6) - activity_of(levels - 1e-6)) / 2e-6
        np.testing.assert_allclose(engine.gather(slope), numeric, rtol=0, atol=2e-8)
