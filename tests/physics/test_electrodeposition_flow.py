"""Incompressible flow on the staggered grid against exact solutions and published numbers."""

from __future__ import annotations

import functools
import hashlib
import itertools
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import ProgramError
from minga.models.electrodeposition.forces import record_forces
from minga.models.electrodeposition.problem import CATHODE, FLUID, INSULATOR, Species

from .evidence import Evidence
from .flows import Box, Floats, Found, extrapolated, highest, lowest, run

PLAIN = {"multigrid": False, "levels": False}
LEVELS = {"multigrid": True, "levels": True}

# Ghia, Ghia and Shin (J. Comput. Phys. 48, 1982), Re 400: u by height, on the vertical centre line.
GHIA_400 = {
    0.9766: 0.75837, 0.9688: 0.68439, 0.9609: 0.61756, 0.9531: 0.55892, 0.8516: 0.29093, 0.7344: 0.16256,
    0.6172: 0.02135, 0.5: -0.11477, 0.4531: -0.17119, 0.2813: -0.32726, 0.1719: -0.24299, 0.1016: -0.14612,
}  # fmt: skip
# Albensoeder and Kuhlmann (J. Comput. Phys. 206, 2005), Re 1000 in a cube: u by height, on the centre line.
CUBE_1000 = {
    0.9766: 0.58964, 0.9688: 0.48443, 0.9609: 0.39821, 0.9531: 0.33171, 0.7344: 0.07334, 0.6172: 0.03905, 0.5: 0.00802,
    0.4531: -0.00612, 0.2813: -0.10999, 0.1719: -0.25160, 0.1016: -0.27293, 0.0703: -0.23696, 0.0625: -0.22283,
}  # fmt: skip


def cavity(cells: int, reynolds: float, dt: float, steps: int, **options: Any) -> tuple[Floats, Floats]:
    """Velocities along the lid on the vertical centre line, and across it on the horizontal one."""
    grid = mg.Grid((cells, cells), axes=("y", "z"), spacing=1.0 / cells)
    box = Box(grid, 1.0, 1.0 / reynolds, dt, lids={("y", "z", "high"): 1.0}, options={**PLAIN, **options})
    found = run(box, steps)
    assert found.divergence < 1e-12
    return found.velocity[0][cells // 2], found.velocity[1][:, cells // 2]


def centres(cells: int) -> Floats:
    return (np.arange(cells) + 0.5) / cells


EXTREMES = ((0, lowest, "u_min"), (1, highest, "v_max"), (1, lowest, "v_min"))


@pytest.mark.slow
def test_lid_driven_cavity(evidence: Evidence) -> None:
    """Re 100: extremes of Marchi, Suero and Araki (J. Braz. Soc. Mech. Sci. Eng. 31, 2009), by two grids."""
    coarse, fine = cavity(16, 100.0, 0.1, 150), cavity(32, 100.0, 0.05, 300)
    for expected, (part, find, name) in zip((-0.2140417, 0.1795728, -0.2538030), EXTREMES, strict=True):
        numbers = find(coarse[part]), find(fine[part])
        evidence.relative("cavity", f"{name}, Re 100, from 16 and 32 cells", extrapolated(*numbers), expected, 0.01)
        assert abs(numbers[1] / expected - 1.0) < 0.5 * abs(numbers[0] / expected - 1.0)


@pytest.mark.slow
def test_lid_driven_cavity_with_more_inertia(evidence: Evidence) -> None:
    """Re 400 against the table of Ghia et al.: differences are 0.031 at 32 cells and 0.0074 at 64."""
    u, _ = cavity(32, 400.0, 0.03, 800)
    expected = np.array(list(GHIA_400.values()))
    evidence.curve("cavity", "u, Re 400, 32 cells", centres(32), u, list(GHIA_400), expected)
    worst = np.abs(np.interp(list(GHIA_400), centres(32), u) - expected).max()
    evidence.at_most("cavity", "largest difference from the table of Ghia et al., Re 400, 32 cells", worst, 0.035)


@pytest.mark.slow
def test_lid_driven_cavity_at_reynolds_1000(evidence: Evidence) -> None:
    """Extremes of Botella and Peyret (Computers & Fluids 27, 1998), by two grids."""
    coarse = cavity(64, 1000.0, 0.009, 5600, multigrid=True)
    fine = cavity(128, 1000.0, 0.0045, 11200, multigrid=True)
    for expected, (part, find, name) in zip((-0.3885698, 0.3769447, -0.5270771), EXTREMES, strict=True):
        numbers = find(coarse[part]), find(fine[part])
        evidence.relative("cavity", f"{name}, Re 1000, from 64 and 128 cells", extrapolated(*numbers), expected, 0.005)
        evidence.relative("cavity", f"{name}, Re 1000, 128 cells", numbers[1], expected, 0.02)


@pytest.mark.slow
def test_lid_driven_cube_at_reynolds_1000(evidence: Evidence) -> None:
    """Within what another method of second order errs by with 32^3 cells (0.104, in the boundary layer at the lid)."""
    n = 32
    grid = mg.Grid((n, n, n), axes=("y", "z", "x"), spacing=1.0 / n)
    options = {"multigrid": True, "levels": False}
    found = run(Box(grid, 1.0, 1e-3, 0.015, lids={("y", "z", "high"): 1.0}, options=options), 1200)
    middle = found.velocity[0][n // 2]
    u = 0.5 * (middle[:, n // 2 - 1] + middle[:, n // 2])
    expected = np.array(list(CUBE_1000.values()))
    evidence.curve("cube", "u, Re 1000, 32 cells", centres(n), u, list(CUBE_1000), expected)
    worst = np.abs(np.interp(list(CUBE_1000), centres(n), u) - expected).max()
    evidence.at_most("cube", "largest difference from the table, Re 1000, 32 cells", worst, 0.104)
    mirrored = [np.abs(v - s * v[:, :, ::-1]).max() for v, s in zip(found.velocity, (1, 1, -1), strict=True)]
    assert max(mirrored) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("stretched", [pytest.param(False, marks=pytest.mark.slow), True])
def test_flow_through_a_square_duct(stretched: bool, evidence: Evidence) -> None:
    """u_max / u_mean = 2.0963 and f Re = 56.91 (Shah and London, 1978)."""

    def duct(cells: int) -> tuple[float, float]:
        faces = np.linspace(0.0, 1.0, cells + 1)
        if stretched:
            faces = 0.5 * (1.0 - np.cos(np.pi * (0.2 + 0.6 * faces)) / np.cos(0.2 * np.pi))
        widths = np.diff(faces)
        grid = mg.Grid(
            (1, cells, cells), axes=("y", "z", "x"), spacing=[1.0, widths, widths], periodic=[True, False, False]
        )
        box = Box(grid, 1.0, 1.0, 1e6, options=PLAIN)
        u = run(box, 1, initial={box.flow.force[0]: 1.0}).velocity[0][0]
        mean = float(widths @ u @ widths)
        top = np.polynomial.chebyshev.Chebyshev.fit(faces[:-1] + 0.5 * widths, u.diagonal(), 7)(0.5)
        return top / mean, 2.0 / mean

    coarse, fine = duct(8), duct(16)
    grid = "stretched" if stretched else "even"
    for number, (name, expected) in enumerate({"u_max / u_mean": 2.0963, "f Re": 56.91}.items()):
        found = extrapolated(coarse[number], fine[number])
        evidence.relative("duct", f"{name}, from 8 and 16 {grid} cells", found, expected, 0.003)
        assert abs(fine[number] / expected - 1.0) < 0.02


def vortices(cells: int, steps: int, uneven: bool) -> float:
    """The error of Taylor and Green's decaying vortices at time 0.4."""
    nu, end = 0.3, 0.4
    grid = mg.Grid((cells, cells), axes=("y", "z"), spacing=2.0 * np.pi / cells, periodic=True)
    dts = np.ones(steps)
    if uneven:
        dts[::3], dts[1::3] = 0.5, 1.4
    dts *= end / dts.sum()
    box = Box(grid, 1.0, nu, float(dts[0]), options=PLAIN)
    h = 2.0 * np.pi / cells
    faces, middles = h * np.arange(cells)[:, None], h * (np.arange(cells)[None] + 0.5)
    first = np.sin(faces) * np.cos(middles), -np.cos(middles.T) * np.sin(faces.T)
    initial = {v.now: values for v, values in zip(box.state.velocity, first, strict=True)}
    found = run(box, steps, initial=initial, dts=dts.tolist())
    decay = np.exp(-2.0 * nu * end)
    return max(float(np.abs(v - decay * start).max()) for v, start in zip(found.velocity, first, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("uneven", [pytest.param(False, marks=pytest.mark.slow), True])
def test_taylor_green_vortices(uneven: bool, evidence: Evidence) -> None:
    errors = [vortices(cells, cells // 2, uneven) for cells in (12, 24, 48)]
    orders = [np.log2(a / b) for a, b in itertools.pairwise(errors)]
    steps = "steps of three lengths" if uneven else "even steps"
    evidence.between("orders", f"velocity, Taylor and Green's vortices, {steps}, 12 to 48 cells", min(orders), 1.8, 2.5)


def beltrami(cells: int, steps: int) -> float:
    """The error, at time 0.4, of the flow of Arnold, Beltrami and Childress, whose vorticity is its velocity."""
    nu, end, h = 0.3, 0.4, 2.0 * np.pi / cells
    grid = mg.Grid((cells,) * 3, axes=("y", "z", "x"), spacing=h, periodic=True)
    box = Box(grid, 1.0, nu, end / steps, options=PLAIN)
    # A component depends on the two other axes, in which its faces lie in the middle of cells.
    s = h * (np.arange(cells) + 0.5)
    y, z, x = s[:, None, None], s[None, :, None], s[None, None, :]
    first = [
        np.broadcast_to(v, grid.shape)
        for v in (np.sin(x) + 0.7 * np.cos(z), 0.5 * np.sin(y) + np.cos(x), 0.7 * np.sin(z) + 0.5 * np.cos(y))
    ]
    found = run(box, steps, initial={v.now: values for v, values in zip(box.state.velocity, first, strict=True)})
    decay = np.exp(-nu * end)
    return max(float(np.abs(v - decay * start).max()) for v, start in zip(found.velocity, first, strict=True))


@pytest.mark.slow
def test_a_flow_whose_vorticity_is_its_velocity(evidence: Evidence) -> None:
    """An exact solution in three dimensions, of the kind of Ethier and Steinman's but without inflow."""
    errors = [beltrami(cells, cells // 2) for cells in (8, 16, 32)]
    orders = [np.log2(a / b) for a, b in itertools.pairwise(errors)]
    evidence.between("orders", "velocity, 3 dimensions, Beltrami's flow, 16 to 32 cells", orders[-1], 1.8, 2.3)


# Ions and weight -----------------------------------------------------------------------------------------------------
def forced(potential: mg.Field) -> Any:
    def record(box: Box, program: mg.Program) -> None:
        ions = box.state.concentration
        record_forces(program, box.problem, box.flow.staggered, ions, potential, box.flow.force)

    return record


@pytest.mark.slow
def test_a_gradient_of_concentration_in_a_thin_cell(evidence: Evidence) -> None:
    """ZnSO4 in SI: u = (G/6) (z^3 - h^2 z/4), u_max = sqrt(3) G h^3 / 216 with G = g alpha C_y / nu: 17.6 um/s."""
    gap, slope, alpha, nu = 0.5e-3, 1e4, 1.6e-4, 0.893e-6
    errors = []
    for cells in (12, 24):
        widths = (gap / 3, gap / cells)
        grid = mg.Grid((36, cells), axes=("y", "z"), spacing=widths, units="m")
        salt = Species("salt", 0, 8.6e-10, 100.0, alpha)
        box = Box(grid, 997.0, nu * 997.0, 1e4, species=(salt,), gravity=(0.0, -9.81), options=PLAIN)
        y = grid.centres("y")[:, None] + 0.0 * grid.centres("z")
        found = run(box, 1, before=forced(box.state.potential), initial={box.state.concentration[0]: 100.0 + slope * y})
        assert found.passes < 16
        z = grid.centres("z") - 0.5 * gap
        exact = -9.81 * alpha * slope / nu / 6.0 * (z**3 - gap**2 * z / 4.0)
        top = np.sqrt(3.0) * 9.81 * alpha * slope / nu * gap**3 / 216.0
        assert abs(top - 17.6e-6) < 0.1e-6
        u = found.velocity[0][18]
        # Heavy fluid, at the high end of y, sinks there and flows along the bottom to the low end.
        assert u[0] < 0.0 < u[-1]
        errors.append(np.abs(u - exact).max() / top)
    fine = np.linspace(0.0, gap, 17)
    exact = -9.81 * alpha * slope / nu / 6.0 * ((fine - 0.5 * gap) ** 3 - gap**2 * (fine - 0.5 * gap) / 4.0)
    evidence.curve(
        "slot", "velocity along a gap of 0.5 mm, um/s", 1e3 * (z + 0.5 * gap), 1e6 * u, 1e3 * fine, 1e6 * exact
    )
    evidence.at_most("slot", "largest error of the velocity, of u_max 17.6 um/s, 24 cells", errors[1], 0.02)
    evidence.between("slot", "order of that, 12 to 24 cells", np.log2(errors[0] / errors[1]), 1.74, 2.3)


@pytest.mark.slow
def test_fluid_at_rest_stays_at_rest(evidence: Evidence) -> None:
    """A stable stratification, and a density that is uniform but not the bulk's, around a solid."""
    grid = mg.Grid((10, 12), axes=("y", "z"), spacing=(1e-4, 5e-5), units="m")
    salt = Species("salt", 0, 8.6e-10, 100.0, 1.6e-4)
    kind = np.zeros(grid.shape, "u1")
    kind[3:6, 4:8] = INSULATOR
    height = grid.centres("z") + 0.0 * grid.centres("y")[:, None]
    for values in (np.full(grid.shape, 300.0), 200.0 - 1e5 * height):
        box = Box(grid, 997.0, 8.9e-4, 0.1, species=(salt,), gravity=(0.0, -9.81), options=PLAIN)
        initial = {box.state.concentration[0]: values, box.state.kind: kind}
        found = run(box, 2, before=forced(box.state.potential), initial=initial)
        # What it would be without pressure: 1e-2 m/s in this gap.
        fastest = max(np.abs(v).max() for v in found.velocity)
        name = "even" if np.ptp(values) == 0.0 else "stable"
        evidence.at_most("rest", f"m/s, {name} layers around a solid", fastest, 1e-12)
        assert np.ptp(found.pressure[kind == FLUID]) > 0.01


@pytest.mark.slow
def test_a_double_layer_in_equilibrium_is_at_rest(evidence: Evidence) -> None:
    """Ions in Boltzmann's equilibrium with any potential: no flow. Elsewhere: electroosmosis."""
    grid = mg.Grid((12, 10), axes=("y", "z"), spacing=1e-8, units="m")
    ions = (Species("C", 2, 7e-10, 100.0), Species("A", -1, 1e-9, 200.0))
    constants = {"faraday": 96485.33212, "thermal": 8.314462618 * 298.15, "permittivity": 7e-10}
    y, z = np.meshgrid(grid.centres("y"), grid.centres("z"), indexing="ij")
    potential = 0.1 * np.exp(-y / 2e-8) * np.cos(z / 3e-8)

    def speed(distorted: float) -> float:
        box = Box(grid, 997.0, 8.9e-4, 1e-3, species=ions, constants=constants, options=PLAIN)
        beta = box.problem.beta
        first = [item.bulk * np.exp(-item.charge * beta * potential) for item in ions]
        first[0] = first[0] * (1.0 + distorted * np.sin(y / 3e-8 + z / 2e-8))
        initial = {**dict(zip(box.state.concentration, first, strict=True)), box.state.potential: potential}
        found = run(box, 2, before=forced(box.state.potential), initial=initial)
        return max(float(np.abs(v).max()) for v in found.velocity)

    evidence.at_most("rest", "m/s, a double layer in equilibrium", speed(0.0), 1e-12)
    assert speed(0.01) > 1e-6


# Solids, ranks -------------------------------------------------------------------------------------------------------
@functools.cache
def around_a_pillar(ranks: int = 1, *, multigrid: bool, levels: bool) -> Found:
    """A channel with a square pillar, through which a pressure drives fluid."""
    grid = mg.Grid((15, 14), axes=("y", "z"), spacing=1.0 / 14, periodic=[True, False])
    kind = np.zeros(grid.shape, "u1")
    kind[5:9, 5:9] = CATHODE
    box = Box(grid, 1.0, 0.02, 0.1, options={"multigrid": multigrid, "levels": levels})
    found = run(box, 3, ranks=ranks, initial={box.state.kind: kind, box.flow.force[0]: 0.1})
    for axis, v in enumerate(found.velocity):
        whole = v if axis == 0 else v[:, :-1]
        solid = (kind != FLUID) | (np.roll(kind, 1, axis) != FLUID)
        assert np.abs(whole[solid]).max() == 0.0
    assert found.divergence < 1e-12
    return found


def digest(found: Found) -> str:
    return hashlib.sha256(b"".join(v.tobytes() for v in (*found.velocity, found.pressure))).hexdigest()


@pytest.mark.slow
def test_flow_around_a_pillar_is_its_own_mirror_image() -> None:
    found = around_a_pillar(**PLAIN)
    u, v = found.velocity
    assert np.abs(u).max() > 0.01
    assert np.abs(u - u[:, ::-1]).max() < 1e-9 * np.abs(u).max()
    assert np.abs(v + v[:, ::-1]).max() < 1e-9 * np.abs(u).max()
    flux = u.sum(axis=1)
    assert np.ptp(flux) < 1e-12 * flux.max()


@pytest.mark.slow
def test_the_same_bits_on_any_number_of_ranks() -> None:
    alone = around_a_pillar(**PLAIN)
    for ranks in (2, 3):
        assert digest(around_a_pillar(ranks, **PLAIN)) == digest(alone)


@pytest.mark.slow
def test_the_same_bits_with_multigrid() -> None:
    """Also the same flow as without, to what both solve to."""
    alone, plain = around_a_pillar(**LEVELS), around_a_pillar(**PLAIN)
    assert digest(around_a_pillar(3, **LEVELS)) == digest(alone)
    assert max(alone.iterations) < max(plain.iterations)
    assert np.abs(plain.velocity[0] - alone.velocity[0]).max() < 1e-6 * np.abs(plain.velocity[0]).max()


# What is refused -----------------------------------------------------------------------------------------------------
def test_flow_needs_two_axes_and_walls_that_exist() -> None:
    with pytest.raises(ProgramError, match="flow on Grid"):
        Box(mg.Grid((8,), axes=("y",)), 1.0, 1.0, 0.1)
    for lid in (("y", "y", "low"), ("z", "y", "low"), ("y", "z", "top")):
        with pytest.raises(ProgramError, match="that moves along"):
            Box(mg.Grid((8, 8), axes=("y", "z"), periodic=(True, False)), 1.0, 1.0, 0.1, lids={lid: 1.0})
