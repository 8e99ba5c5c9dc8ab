"""Steps of ions and potential beside the same discrete equations, written anew with loops and solved by Newton's method
with dense matrices: signs, walls, solids, stretched cells, the time formula and the given current, all at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import (
    ANODE,
    CATHODE,
    FLUID,
    INSULATOR,
    ButlerVolmer,
    Constants,
    Electrode,
    Held,
    Problem,
    Reversible,
    Species,
    Steps,
    Surface,
)
from minga.space.grid import Grid

from ..model_runs import run_model

Floats = NDArray[np.float64]
IONS = Species("cation", 1, 1.0, 1.0), Species("anion", -1, 0.6, 1.0)
PERMITTIVITY, STEPS, DT = 0.02, 3, 0.02


def bernoulli(u: Floats | float) -> Any:
    u = np.where(np.abs(u) < 1e-6, 1e-6, u)
    return u / np.expm1(u)


class Dense:
    """The equations; unknowns are concentrations and potential of all cells of solution, and the anode's potential."""

    def __init__(self, problem: Problem) -> None:
        self.problem, grid = problem, problem.grid
        kinds = np.zeros(grid.shape, int) if problem.kinds is None else problem.kinds
        self.cells = [cell for cell in np.ndindex(grid.shape) if kinds[cell] == FLUID]
        numbers = {cell: number for number, cell in enumerate(self.cells)}
        widths = [grid.widths(axis) for axis in range(2)]
        self.volumes = np.array([widths[0][i] * widths[1][j] for i, j in self.cells])
        self.plane = widths[1].sum()
        self.between: list[tuple[int, int, float, float]] = []
        self.metals: list[tuple[int, int, float, float]] = []
        for cell in self.cells:
            for axis in range(2):
                area, here = widths[1 - axis][cell[1 - axis]], widths[axis][cell[axis]]
                for side in (-1, 1):
                    other = list(cell)
                    other[axis] += side
                    if not 0 <= other[axis] < grid.shape[axis]:
                        kind = (CATHODE if side < 0 else ANODE) if axis == 0 else INSULATOR
                    else:
                        kind = int(kinds[tuple(other)])
                    if kind == FLUID and side > 0:
                        there = numbers[other[0], other[1]]
                        self.between.append((numbers[cell], there, area, 0.5 * (here + widths[axis][other[axis]])))
                    elif kind in (CATHODE, ANODE):
                        self.metals.append((numbers[cell], kind, area, 0.5 * here))

    def flows(self, c: Floats, phi: Floats, anode: float) -> tuple[Floats, Floats, float, float]:
        """What leaves each cell, of ions and of displacement; ionic current and displacement out of the anode."""
        out, field = np.zeros_like(c), np.zeros_like(phi)
        current = displaced = 0.0
        for low, high, area, distance in self.between:
            drop = phi[high] - phi[low]
            for number, ion in enumerate(IONS):
                w = ion.charge * drop
                flux = bernoulli(w) * c[number, low] - bernoulli(-w) * c[number, high]
                out[number, low] += area * ion.diffusivity / distance * flux
                out[number, high] -= area * ion.diffusivity / distance * flux
            field[low] -= PERMITTIVITY * area / distance * drop
            field[high] += PERMITTIVITY * area / distance * drop
        for cell, kind, area, distance in self.metals:
            electrode = self.problem.cathode if kind == CATHODE else self.problem.anode
            drop = (0.0 if kind == CATHODE else anode) - phi[cell]
            into = -PERMITTIVITY * area * drop / (distance + electrode.stern)
            field[cell] += into
            passed = 0.0
            for number, ion in enumerate(IONS):
                if ion.name in electrode.surfaces:
                    found = self.passed(electrode.surfaces[ion.name], electrode, ion, c[number, cell], drop, distance)
                    out[number, cell] += area * found
                    passed += area * ion.charge * found
            if kind == ANODE:
                displaced -= into
                current -= passed
        return out, field, current, displaced

    @staticmethod
    def passed(surface: Surface, electrode: Electrode, ion: Species, c: float, drop: float, distance: float) -> float:
        """mol/m2/s into the metal."""
        speed, share = ion.diffusivity / distance, distance / (distance + electrode.stern)
        w = ion.charge * share * drop
        match surface:
            case Held(held):
                return float(speed * (bernoulli(w) * c - bernoulli(-w) * held))
            case Reversible(reference):
                return float(speed * (c - reference * np.exp(ion.charge * drop)))
            case ButlerVolmer(exchange, reference, equilibrium, transfer):
                eta = (1.0 - share) * drop - equilibrium
                rate, back = exchange / reference * np.exp(-transfer * eta), exchange * np.exp((1.0 - transfer) * eta)
                wall = (speed * bernoulli(w) * c + back) / (speed * bernoulli(-w) + rate)
                return float(rate * wall - back)
        raise AssertionError(surface)

    def run(self) -> tuple[Floats, Floats, float]:
        """Concentrations, potential and voltage after the steps."""
        problem, count = self.problem, len(self.cells)
        y = problem.grid.centres(0)
        voltage = problem.voltage or 0.0
        c = before = np.ones((2, count))
        phi = np.array([voltage * y[i] for i, _ in self.cells])
        charges = [0.0, 0.0]
        charges_of = np.array([1.0, -1.0])
        for number in range(STEPS):
            rate, now, earlier = (1 / DT, 1 / DT, 0.0) if number == 0 else (1.5 / DT, 2.0 / DT, 0.5 / DT)

            def left(u: Floats, rate: float = rate, now: float = now, earlier: float = earlier) -> Floats:
                new = u[: 2 * count].reshape(2, count)
                out, field, current, displaced = self.flows(new, u[2 * count : -1], u[-1])
                ions = self.volumes * (rate * new - now * c + earlier * before) + out
                charge = field - self.volumes * (charges_of @ new)
                total = current + rate * displaced - now * charges[0] + earlier * charges[1]
                end = u[-1] - voltage if problem.current is None else total - problem.current * self.plane
                return np.concatenate([ions.ravel(), charge, [end]])

            u = np.concatenate([c.ravel(), phi, [voltage]])
            for _ in range(40):
                matrix = np.empty((len(u), len(u)))
                for column in range(len(u)):
                    nudge = np.zeros_like(u)
                    nudge[column] = 1e-6
                    matrix[:, column] = (left(u + nudge) - left(u - nudge)) / 2e-6
                change = np.linalg.solve(matrix, -left(u))
                u = u + min(1.0, 1.0 / np.abs(change).max()) * change
                if np.abs(change).max() < 1e-11:
                    break
            else:
                raise AssertionError("Newton's method did not converge")
            before, c, phi, voltage = c, u[: 2 * count].reshape(2, count), u[2 * count : -1], float(u[-1])
            charges = [self.flows(c, phi, voltage)[3], charges[0]]
        return c, phi, voltage


KINETIC = (
    Electrode({"cation": ButlerVolmer(0.7, 1.0, 0.3, 0.4)}, 0.05),
    Electrode({"cation": ButlerVolmer(1.3, 1.0, -0.2, 0.6)}, 0.03),
)
METALS = Electrode({"cation": Held(1.0)}), Electrode({"cation": Held(0.8), "anion": Held(1.1)})
EDGES = Electrode({"cation": Reversible(1.0)}), Electrode({"cation": Reversible(0.8)})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("electrodes", "voltage", "current"), [(METALS, 2.0, None), (EDGES, 0.5, None), (KINETIC, None, 1.0)]
)
def test_steps_are_those_of_dense_matrices(
    electrodes: tuple[Electrode, Electrode], voltage: float | None, current: float | None
) -> None:
    y = np.diff(0.5 - 0.5 * np.cos(np.pi * np.arange(7) / 6))
    grid = Grid((6, 4), axes=("y", "x"), spacing=[y, np.array([0.1, 0.4, 0.2, 0.3])], units="m")
    kinds = np.zeros(grid.shape, np.uint8)
    kinds[:2, 1], kinds[4, 2], kinds[-1, 0], kinds[0, 3] = CATHODE, INSULATOR, ANODE, INSULATOR
    problem = Problem(
        grid, IONS, Steps(STEPS * DT, STEPS * DT, DT, adaptive=False), Constants(1.0, 1.0, PERMITTIVITY, 1.0, 1.0),
        kinds, *electrodes, voltage=voltage, current=current,
    )  # fmt: skip
    left = run_model(electrodeposition(problem, agreement=1e-11), 1)
    assert left.observables["steps_taken"] == STEPS
    c, phi, anode = Dense(problem).run()
    fluid = kinds == FLUID
    assert left.fields["cation"][fluid] == pytest.approx(c[0], rel=1e-9)
    assert left.fields["anion"][fluid] == pytest.approx(c[1], rel=1e-9)
    assert left.fields["potential"][fluid] == pytest.approx(phi, abs=1e-9)
    assert left.observables["voltage"] == pytest.approx(anode, abs=1e-9)
