"""Flow that heat drives, against de Vahl Davis' numbers and the onset of convection: what ions' weight does as well."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.solve.krylov import conjugate_gradients
from minga.solve.laplacian import Laplacian

from .evidence import Evidence
from .flows import Box, extrapolated, extremum, highest, run

PLAIN = {"multigrid": False, "levels": False}


@dataclass(frozen=True, eq=False)
class Heat:
    """A temperature that is carried, diffuses (implicitly) with diffusivity 1, and lifts the fluid along the last axis.

    walls  as of `Laplacian`; `held` the field's values beyond them
    """

    grid: mg.Grid
    lift: float
    dt: float
    walls: Any
    held: Any
    temperature: mg.Field = field(init=False)
    right: mg.Field = field(init=False)
    operator: Laplacian = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "temperature", mg.Field("temperature", self.grid, boundary=self.held))
        put(self, "right", mg.Field("heat", self.grid, boundary=mg.fixed(0.0)))
        put(self, "operator", Laplacian(self.grid, self.walls, 1.0 / self.dt, "conduction"))

    def lifts(self, box: Box, program: mg.Program) -> None:
        program.apply(lifted, self.temperature, box.flow.force[1], lift=self.lift)

    def moves(self, box: Box, program: mg.Program) -> None:
        h = box.grid.widths(0)[0]
        velocity = [v.next for v in box.state.velocity]
        program.apply(heated, self.temperature, *velocity, self.right, h=float(h), rate=1.0 / self.dt)
        conjugate_gradients(program, self.operator, self.temperature, self.right, tolerance=1e-9, name="heat")


@mg.kernel
def lifted(t: Any, force: Any, *, lift: Any) -> None:
    force[0, 0] = 0.5 * lift * (t[0, -1] + t[0, 0])


@mg.kernel
def heated(t: Any, u: Any, v: Any, right: Any, *, h: Any, rate: Any) -> None:
    """What the cell held and what is carried into it; squares of width h."""
    along = u[0, 0] * (t[-1, 0] + t[0, 0]) - u[1, 0] * (t[0, 0] + t[1, 0])
    across = v[0, 0] * (t[0, -1] + t[0, 0]) - v[0, 1] * (t[0, 0] + t[0, 1])
    right[0, 0] = h * h * rate * t[0, 0] + 0.5 * h * (along + across)


@dataclass(frozen=True)
class HeatedBox:
    """What de Vahl Davis gives of his cavity, in units of its width and of conduction."""

    u_max: float
    v_max: float
    mean: float
    most: float
    least: float
    middle: float


def heated_box(cells: int, rayleigh: float, dt: float, steps: int, **options: Any) -> HeatedBox:
    """His cavity with air: u_max and v_max on the lines through the middle, the mean, largest and least Nusselt number
    at the hot wall, and the stream function in the middle."""
    grid = mg.Grid((cells, cells), axes=("y", "z"), spacing=1.0 / cells)
    walls = {"y": "dirichlet", "z": "neumann"}
    held = {"y": (mg.fixed(1.0), mg.fixed(0.0)), "z": mg.zero_gradient()}
    heat = Heat(grid, rayleigh * 0.71, dt, walls, held)
    box = Box(grid, 1.0, 0.71, dt, options={**PLAIN, **options})
    first = 1.0 - grid.centres("y")[:, None] + 0.0 * grid.centres("z")
    initial = {**heat.operator.constants, heat.temperature: first}
    found = run(box, steps, before=heat.lifts, after=heat.moves, initial=initial, ends=[heat.temperature])
    temperature = found.others["temperature"]
    u, v = found.velocity
    # Slopes at the wall from parabolas; the mean one from what passes, which is conserved.
    local = (8.0 / 3.0 - 3.0 * temperature[0] + temperature[1] / 3.0) * cells
    least = local[-1] + (local[-1] - local[-2]) / 8.0
    half = cells // 2
    return HeatedBox(
        u_max=highest(u[half]),
        v_max=highest(v[:, half]),
        mean=float(np.mean(1.0 - temperature[0]) * 2.0 * cells),
        most=extremum(np.pad(local, 1, "edge"), 1 + int(local.argmax())),
        least=float(least),
        middle=abs(float(u[half][:half].sum() / cells)),
    )


DE_VAHL_DAVIS = {
    1e3: HeatedBox(3.649, 3.697, 1.118, 1.505, 0.692, 1.174),
    1e4: HeatedBox(16.178, 19.617, 2.243, 3.528, 0.586, 5.071),
    1e5: HeatedBox(34.73, 68.59, 4.519, 7.717, 0.729, 9.111),
}
# Of boundary layers so thin de Vahl Davis' grids gave 17.925 for the most; P. Le Quere's, Computers & Fluids 20, 1991,
# by spectra, are exact to these digits.
LE_QUERE = {1e6: HeatedBox(64.83, 220.6, 8.825, 17.536, 0.9795, 16.386)}


def compare(evidence: Evidence, rayleigh: float, cells: str, coarse: HeatedBox, fine: HeatedBox, within: float) -> None:
    """Two grids against the table."""
    for name, expected in vars((DE_VAHL_DAVIS | LE_QUERE)[rayleigh]).items():
        found = extrapolated(getattr(coarse, name), getattr(fine, name))
        words = {"mean": "mean Nu", "most": "Nu_max", "least": "Nu_min", "middle": "stream function in the middle"}
        evidence.relative("heat", f"{words.get(name, name)}, Ra {rayleigh:.0e}, {cells}", found, expected, within)


@pytest.mark.slow
def test_a_box_heated_from_the_side(evidence: Evidence) -> None:
    """Ra 1e3, against de Vahl Davis (Int. J. Numer. Methods Fluids 3, 1983)."""
    coarse, fine = heated_box(12, 1e3, 0.01, 40), heated_box(24, 1e3, 0.01, 40)
    compare(evidence, 1e3, "from 12 and 24 cells", coarse, fine, 0.005)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rayleigh", "cells", "dt", "steps", "within"),
    [(1e4, 20, 1.2e-3, 300, 0.01), (1e5, 32, 3e-4, 1000, 0.015), (1e6, 64, 2e-5, 8000, 0.01)],
)
def test_a_box_heated_more(
    rayleigh: float, cells: int, dt: float, steps: int, within: float, evidence: Evidence
) -> None:
    """With boundary layers."""
    coarse = heated_box(cells, rayleigh, dt, steps, multigrid=True)
    fine = heated_box(2 * cells, rayleigh, 0.5 * dt, 2 * steps, multigrid=True)
    compare(evidence, rayleigh, f"from {cells} and {2 * cells} cells", coarse, fine, within)


@pytest.mark.slow
def test_onset_of_convection_from_below(evidence: Evidence) -> None:
    """Between plates that hold their temperature rolls grow above Ra 1707.76, of wave number 3.117 (Chandrasekhar)."""

    def growth(rayleigh: float, cells: int) -> float:
        aspect = 2.0 * np.pi / 3.117
        h = 1.0 / cells
        along = round(aspect * cells)
        dt = 0.02
        grid = mg.Grid((along, cells), axes=("y", "z"), spacing=h, periodic=[True, False])
        heat = Heat(grid, rayleigh, dt, {"z": "dirichlet"}, {"z": (mg.fixed(1.0), mg.fixed(0.0))})
        y, z = np.meshgrid(grid.centres("y"), grid.centres("z"), indexing="ij")
        first = 1.0 - z + 1e-5 * np.sin(2.0 * np.pi * y / (along * h)) * np.sin(np.pi * z)
        sizes = []
        for steps in (100, 200):
            box = Box(grid, 1.0, 1.0, dt, options=PLAIN)
            initial = {**heat.operator.constants, heat.temperature: first}
            found = run(box, steps, before=heat.lifts, after=heat.moves, initial=initial)
            sizes.append(float(np.abs(found.velocity[1]).max()))
        return float(np.log(sizes[1] / sizes[0]) / (100 * dt))

    def onset(cells: int) -> float:
        low, high = growth(1650.0, cells), growth(1770.0, cells)
        return 1650.0 - 120.0 * low / (high - low)

    found = extrapolated(onset(12), onset(24))
    evidence.relative("heat", "Ra at which rolls begin to grow, from 12 and 24 cells", found, 1707.76, 0.01)
