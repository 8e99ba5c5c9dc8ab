"""Ions and potential between two electrodes against exact and published numbers, in one dimension and in two."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from minga.engine.comm import Comm, run_virtual
from minga.engine.engine import Engine
from minga.errors import RunError
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import (
    ButlerVolmer,
    Constants,
    Electrode,
    Flux,
    Held,
    Problem,
    Reversible,
    Species,
    Steps,
)
from minga.output.digest import digest_of_arrays
from minga.running.loop import drive
from minga.space.grid import Grid

from .evidence import Evidence

Floats = NDArray[np.float64]

FARADAY, RT = 96485.33212, 8.314462618 * 298.15
ZINC = (Species("Zn", 2, 0.715e-9, 100.0), Species("SO4", -2, 1.07e-9, 100.0))


def cosine(cells: int, length: float = 1.0) -> Floats:
    """Widths of cells that grow from both ends to the middle."""
    return length * np.diff(0.5 - 0.5 * np.cos(np.pi * np.arange(cells + 1) / cells))


def line(widths: Floats) -> Grid:
    return Grid((len(widths),), axes=("y",), spacing=[widths], units="m")


def scaled(
    cells: int = 96,
    debye: float = 0.05,
    voltage: float | None = 4.0,
    *,
    anode: Mapping[str, Any] | None = None,
    cathode: Mapping[str, Any] | None = None,
    steps: Steps | None = None,
    **more: Any,
) -> Problem:
    """The scaled problem of a 1:1 salt: lengths in L, potentials in RT/F, concentrations in c0, times in L2/D."""
    held = {"cation": Held(1.0)}
    return Problem(
        line(cosine(cells)),
        (Species("cation", 1, 1.0, 1.0), Species("anion", -1, 1.0, 1.0)),
        steps or Steps(10.0, 10.0, 1e-4),
        Constants(1.0, 1.0, 2.0 * debye**2, 1.0, 1.0),
        cathode=Electrode(held if cathode is None else cathode),
        anode=Electrode(held if anode is None else anode),
        voltage=voltage,
        **more,
    )


def solve(problem: Problem, *fields: str, **options: Any) -> tuple[dict[str, Any], dict[str, Floats]]:
    model = electrodeposition(problem, **options)
    with Engine(model.layouts("cartesian", 1), threads=1) as engine:
        steps = round(problem.steps.end / problem.steps.every)
        result = drive(model, engine, steps)
        return dict(result.observables), {n: engine.gather(model.field(n).now) for n in fields}


# The steady table of the scaled problem: J over 4, by an adaptive collocation method to 7 digits ----------------------
TABLE = {
    0.1: {1: 0.2482816, 2: 0.4873460, 4: 0.9235759, 6: 1.3188354, 10: 2.0871131, 20: 4.2027339},
    0.05: {1: 0.2469080, 2: 0.4771072, 4: 0.8590507, 6: 1.1563775, 10: 1.6542488},
    0.01: {1: 0.2453669, 2: 0.4655270, 4: 0.7846482, 6: 0.9679050, 20: 1.4864627},
    0.001: {1: 0.2449646, 2: 0.4624682, 6: 0.9121473, 10: 1.0111929, 20: 1.0828316},
}


def check_steady(evidence: Evidence, debye: float, voltage: float, exact: float, cells: int, error: float) -> None:
    seen, _ = solve(scaled(cells, debye, float(voltage)))
    what = f"J / J_lim, Debye length {debye:g}, V {voltage:g}, {cells} cells"
    evidence.relative("steady", what, seen["J_over_Jlim"], exact, error)
    assert seen["current_cathode"] == pytest.approx(seen["current"], rel=1e-4)
    assert seen["current_middle"] == pytest.approx(seen["current"], rel=1e-4)
    assert seen["total_anion"] == pytest.approx(1.0, rel=1e-12)
    assert seen["least_concentration"] > 0.0


@pytest.mark.slow
def test_steady_current(evidence: Evidence) -> None:
    check_steady(evidence, 0.05, 4, TABLE[0.05][4], 96, 3e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("debye", "voltage"), [(e, v) for e, row in TABLE.items() for v in row])
def test_steady_current_of_the_whole_table(debye: float, voltage: int, evidence: Evidence) -> None:
    check_steady(evidence, debye, voltage, TABLE[debye][voltage], 320, 3e-4)


@pytest.mark.slow
def test_profiles_of_the_steady_state(evidence: Evidence) -> None:
    cells = 160
    _, found = solve(scaled(cells), "cation", "anion", "potential")
    y = line(cosine(cells)).centres(0)
    exact = {
        "cation": (0.588433, 0.974555, 1.395351),
        "anion": (0.510083, 0.957258, 1.391311),
        "potential": (2.073967, 2.703466, 3.077394),
    }
    for name, values in exact.items():
        evidence.curve("steady", f"{name}, Debye length 0.05, V 4", y, found[name], (0.25, 0.5, 0.75), values)
        for place, value in zip((0.25, 0.5, 0.75), values, strict=True):
            evidence.relative("steady", f"{name} at y = {place}", np.interp(place, y, found[name]), value, 4e-4)


@pytest.mark.slow
def test_errors_fall_with_the_square_of_the_cells(evidence: Evidence) -> None:
    errors = []
    for cells in (40, 80, 160):
        seen, _ = solve(scaled(cells, 0.05, 4.0))
        errors.append(seen["J_over_Jlim"] / 0.8590507 - 1.0)
    for (name, coarse), fine in zip({"40 to 80": errors[0], "80 to 160": errors[1]}.items(), errors[1:], strict=True):
        evidence.between("orders", f"steady current, {name} cells", np.log2(coarse / fine), 1.8, 2.2)


# In front of a membrane that lets cations pass and holds twice the bath's; c = 1 for both ions at the other end.
MEMBRANE = {
    1e-2: {5: 0.922732, 10: 1.123315, 20: 1.339519, 40: 1.732602, 80: 2.623709, 120: 3.745598},
    1e-3: {5: 0.887843, 10: 1.007084, 20: 1.053591, 40: 1.110878, 80: 1.202619, 120: 1.284918},
}


@pytest.mark.slow
@pytest.mark.parametrize(("debye", "voltage"), [(e, v) for e, row in MEMBRANE.items() for v in row])
def test_current_through_a_membrane(debye: float, voltage: int, evidence: Evidence) -> None:
    problem = scaled(
        240, debye, float(voltage), cathode={"cation": Held(2.0)}, anode={"cation": Held(1.0), "anion": Held(1.0)}
    )
    seen, _ = solve(problem)
    what = f"J / J_lim, Debye length {debye:g}, V {voltage}, 240 cells"
    evidence.relative("membrane", what, seen["J_over_Jlim"], MEMBRANE[debye][voltage], 1.5e-3)


# Equilibrium and electroneutral limits -------------------------------------------------------------------------------
# phi of Gouy and Chapman at so many Debye lengths from a wall with phi = zeta, and the slope at the wall.
GOUY_CHAPMAN = {
    1: ((0.59863, 0.36138, 0.13263, 0.04878, 0.00660), -1.042191),
    2: ((1.15198, 0.68669, 0.25049, 0.09205, 0.01245), -2.350402),
    6: ((2.46780, 1.38473, 0.49247, 0.18038, 0.02440), -20.035750),
}
DISTANCES = (0.5, 1.0, 2.0, 3.0, 5.0)


@pytest.mark.slow
@pytest.mark.parametrize("zeta", [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(6, marks=pytest.mark.slow)])
def test_double_layer_at_rest(zeta: int, evidence: Evidence) -> None:
    """Gouy and Chapman: phi(s) = 4 atanh(tanh(zeta / 4) exp(-s)), s in Debye lengths."""
    debye, cells = 0.02, 128
    problem = scaled(
        cells, debye, float(zeta), cathode={}, anode={"cation": Held(1.0), "anion": Held(1.0)},
        steps=Steps(8.0, 8.0, 1e-4),
    )  # fmt: skip
    seen, found = solve(problem, "potential")
    s = line(cosine(cells)).centres(0) / debye
    fallen = zeta - found["potential"]
    exact = 4.0 * np.arctanh(math.tanh(zeta / 4.0) * np.exp(-s))
    near = s < 6.0
    values, slope = GOUY_CHAPMAN[zeta]
    evidence.curve("layers", f"phi / zeta, zeta = {zeta}", s[near], fallen[near] / zeta, DISTANCES,
                   np.array(values) / zeta)  # fmt: skip
    evidence.at_most(
        "layers", f"largest error of phi over zeta, zeta = {zeta}", np.abs(fallen - exact).max() / zeta, 4e-3
    )
    # The parabola through the wall and two cells.
    a, b = s[:2]
    first, second = (fallen[0] - zeta) / a, (fallen[1] - zeta) / b
    evidence.relative("layers", f"slope at the wall, zeta = {zeta}", (first * b - second * a) / (b - a), slope, 0.01)
    assert abs(seen["current"]) < 1e-4


@pytest.mark.slow
def test_thin_layers_leave_the_current_of_a_neutral_bath(evidence: Evidence) -> None:
    """J / J_lim -> tanh(V / 4)."""
    seen, _ = solve(scaled(96, 1e-3, 2.0))
    evidence.relative(
        "neutral", "J / J_lim = tanh(V / 4), V 2, Debye length 1e-3", seen["J_over_Jlim"], math.tanh(0.5), 2e-3
    )


def zinc(cells: int, length: float, surfaces: tuple[Any, Any], **more: Any) -> Problem:
    cathode, anode = surfaces
    return Problem(
        line(cosine(cells, length)), ZINC, cathode=Electrode({"Zn": cathode}), anode=Electrode({"Zn": anode}), **more
    )


@pytest.mark.slow
@pytest.mark.parametrize(("length", "limit"), [(1e-3, 55.19), (1e-2, 5.519)])
def test_the_current_that_no_voltage_exceeds(length: float, limit: float, evidence: Evidence) -> None:
    """8 F D C0 / L of a 2:2 salt with the cation's own diffusivity: ZnSO4, 0.1 M, at 8 RT/F; tanh(zV/4) is 0.9993."""
    surface, end = Reversible(100.0), 3e9 * length**2
    problem = zinc(128, length, (surface, surface), voltage=8.0 * RT / FARADAY, steps=Steps(end, end, 1e-6 * end))
    seen, found = solve(problem, "Zn")
    evidence.relative("neutral", f"A/m2, limiting current across {1e3 * length:g} mm", seen["current"], limit, 1e-3)
    y = line(cosine(128, length)).centres(0)
    worst = np.abs(found["Zn"] / 100.0 - 2.0 * y / length).max()
    evidence.at_most("neutral", f"largest error of its profile over c0, {1e3 * length:g} mm", worst, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cation", "diffusivity", "current", "end", "runs_out"),
    [
        ("Zn", 0.715e-9, 500.0, 1.0, 2.791),
        pytest.param("Zn", 0.715e-9, 100.0, 30.0, 69.77, marks=pytest.mark.slow),
        pytest.param("Cu", 0.733e-9, 500.0, 2.0, 2.890, marks=pytest.mark.slow),
    ],
)
def test_depletion_follows_sand_with_physical_numbers(
    cation: str, diffusivity: float, current: float, end: float, runs_out: float, evidence: Evidence
) -> None:
    """0.1 M: c(0, t) = c0 (1 - sqrt(t / tau)) at the cathode, tau = pi D (z F c0 / (2 i (1 - t+)))^2."""
    rate = current / (2.0 * FARADAY)
    species = (Species(cation, 2, diffusivity, 100.0), ZINC[1])
    problem = Problem(
        line(cosine(96, 1e-3)), species, Steps(end, end, 1e-3 * end), current=current,
        cathode=Electrode({cation: Flux(-rate)}), anode=Electrode({cation: Flux(rate)}),
    )  # fmt: skip
    seen, found = solve(problem, cation, "SO4")
    what = f"{cation}SO4, {current:g} A/m2, concentration at the cathode after {end:g} s, over the bulk's"
    evidence.absolute("neutral", f"Sand: {what}", found["SO4"][0] / 100.0, 1.0 - math.sqrt(end / runs_out), 0.01)
    assert found[cation][1:] == pytest.approx(found["SO4"][1:], rel=1e-6)  # neutral, without being told
    assert seen["current"] == pytest.approx(current, rel=1e-8)
    assert seen["current_middle"] == pytest.approx(current, rel=1e-8)
    assert seen["total_SO4"] == pytest.approx(0.1, rel=1e-12)


@pytest.mark.slow
def test_depletion_of_a_finite_cell(evidence: Evidence) -> None:
    """c(0, t) = 1 - g/2 + sum 4g/((2n+1) pi)^2 exp(-((2n+1) pi)^2 t) for the same flux at both ends, D = L = 1: with
    g = 4 none is left at t = 0.0491827, and Sand's time is 0.0490874."""
    gradient, end = 4.0, 0.0485
    fluxes = {"cation": Flux(-2.0 * gradient)}, {"cation": Flux(2.0 * gradient)}
    found = {}
    for time in (0.0475, end):
        problem = scaled(
            192, 1e-5, None, cathode=fluxes[0], anode=fluxes[1], current=2.0 * gradient,
            steps=Steps(time, time, 1e-5, tolerance=1e-4),
        )  # fmt: skip
        _, ions = solve(problem, "cation", "anion")
        found[time] = float(ions["cation"][0] + ions["anion"][0]) / 2.0  # the salt: the layer's charge lies there, too
    odd = (2.0 * np.arange(40) + 1.0) * np.pi
    exact = 1.0 - gradient / 2.0 + float(np.sum(4.0 * gradient / odd**2 * np.exp(-(odd**2) * 0.0475)))
    first = float(cosine(192)[0]) * gradient / 2.0
    evidence.absolute("neutral", "c at the cathode of a finite cell at t = 0.0475", found[0.0475] - first, exact, 5e-4)
    left = found[end] - first
    when = end + left * (end - 0.0475) / (found[0.0475] - found[end])
    evidence.relative("neutral", "time at which none is left in a finite cell, g = 4", when, 0.0491827, 1e-3)


@pytest.mark.slow
def test_more_than_there_is_cannot_be_taken_out() -> None:
    rate = 500.0 / (2.0 * FARADAY)
    problem = zinc(48, 1e-3, (Flux(-rate), Flux(rate)), current=500.0, steps=Steps(4.0, 4.0, 1e-2))
    with pytest.raises(RunError) as caught:
        solve(problem)
    assert "the concentration of Zn becomes negative" in str(caught.value)
    assert "y =" in str(caught.value.where)
    assert caught.value.remedy


@pytest.mark.slow
def test_a_run_that_would_take_for_ever_ends_with_a_reason() -> None:
    """Beyond the limiting current a layer of charge grows at the cathode, at kilovolts, in steps of microseconds."""
    surface = ButlerVolmer(30.0, 100.0)
    problem = zinc(32, 1e-3, (surface, surface), current=2 * 55.19, steps=Steps(200.0, 200.0, 0.5))
    with pytest.raises(RunError) as caught:
        solve(problem, attempts=600)
    assert "600 time steps did not cover 200 s" in str(caught.value)
    assert "y =" in str(caught.value.where)
    assert "2 times the limiting one, 55.19 A/m2" in str(caught.value.remedy)


@pytest.mark.slow
def test_kinetics_reach_the_voltage_that_they_and_the_bath_need(evidence: Evidence) -> None:
    """In the steady state the concentration is linear, 1 + (i/i_lim)(2y/L - 1), and each electrode follows its law."""
    current, length, exchange = 2.0, 4e-4, 30.0
    limit = 8.0 * FARADAY * 0.715e-9 * 100.0 / length
    surface = ButlerVolmer(exchange, 100.0)
    problem = zinc(48, length, (surface, surface), current=current * limit / 10.0, steps=Steps(1000.0, 1000.0, 0.1))
    seen, found = solve(problem, "Zn")
    part = current / 10.0
    y = line(cosine(48, length)).centres(0)
    worst = np.abs(found["Zn"] / (100.0 * (1.0 + part * (2.0 * y / length - 1.0))) - 1.0).max()
    evidence.at_most("neutral", "relative error of the linear profile at a fifth of the limiting current", worst, 2e-4)
    assert seen["J_over_Jlim"] == pytest.approx(part, rel=1e-8)

    def overpotential(c: float, into: float) -> float:
        """Of i = i0 [(c/c0) exp(-F eta/RT) - exp(F eta/RT)], with n = 2 and b = 1/2, `into` the metal."""
        ratio = into / exchange
        x = (-ratio + math.sqrt(ratio * ratio + 4.0 * c)) / 2.0
        return RT / FARADAY * math.log(x)

    i = part * limit
    low, high = 1.0 - part, 1.0 + part
    bath = RT / FARADAY * math.log(high / low)  # 2 (RT/zF) atanh(i/i_lim) * 2, for z = 2
    expected = bath / 1.0 * (1.0 / 2.0) + overpotential(high, -i) - overpotential(low, i)
    evidence.relative("neutral", "V, of kinetics and bath at that current", seen["voltage"], expected, 5e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("cation", "diffusivity", "expected"), [("Zn", 0.715e-9, 5.883), ("Cu", 0.733e-9, 5.529)])
def test_diffusion_potential_without_current(
    cation: str, diffusivity: float, expected: float, evidence: Evidence
) -> None:
    """dphi = (D- - D+) / (z (D+ + D-)) ln(c2/c1) RT/F across 10:1."""
    cells, length = 96, 1e-4
    ends = [{cation: Held(c), "SO4": Held(c)} for c in (10.0, 100.0)]
    species = Species(cation, 2, diffusivity, 50.0), dataclasses.replace(ZINC[1], bulk=50.0)
    problem = Problem(
        line(cosine(cells, length)), species, Steps(200.0, 200.0, 1e-3), cathode=Electrode(ends[0]),
        anode=Electrode(ends[1]), current=0.0,
    )  # fmt: skip
    seen, _ = solve(problem)
    evidence.relative("neutral", f"mV, diffusion potential of {cation}SO4", abs(1e3 * seen["voltage"]), expected, 2e-3)


# Time, conservation, invariance ---------------------------------------------------------------------------------------
@pytest.mark.slow
def test_charge_relaxes_within_the_dielectric_time(evidence: Evidence) -> None:
    """A wave of charge decays as exp(-t (1/tau + D k2)); this one has no field at walls that let nothing pass."""
    cells, debye, k = 64, 0.1, 2.0 * math.pi
    grid = Grid((cells,), axes=("y",), spacing=1.0 / cells, units="m")
    y = grid.centres(0)
    wave = 1e-3 * np.cos(k * y)
    tau = debye**2
    problem = dataclasses.replace(
        scaled(cells, debye, 0.0, cathode={}, anode={}, steps=Steps(0.02, 0.02, 1e-4, adaptive=False)),
        grid=grid,
        initial={"cation": 1.0 + wave, "anion": 1.0 - wave},
    )
    _, found = solve(problem, "cation", "anion")
    charge = found["cation"] - found["anion"]
    left = float(np.dot(charge, np.cos(k * y)) / np.dot(2.0 * wave, np.cos(k * y)))
    evidence.relative(
        "layers", "charge left after two dielectric times", left, math.exp(-0.02 * (1.0 / tau + k * k)), 0.02
    )


@pytest.mark.parametrize(
    ("order", "low", "high"),
    [pytest.param(1, 1.8, 2.2, marks=pytest.mark.slow), pytest.param(2, 3.4, 4.8, marks=pytest.mark.slow)],
)
def test_order_in_time(order: int, low: float, high: float, evidence: Evidence) -> None:
    """Half the step, half or a quarter of the error."""
    found = []
    for parts in (20, 40, 80, 640):
        steps = Steps(0.1, 0.1, 0.1 / parts, adaptive=False, order=order, tolerance=1e-6)
        y = line(cosine(32)).centres(0)
        start = 1.0 + 0.2 * np.cos(np.pi * y)
        problem = scaled(32, 0.1, 0.0, cathode={}, anode={}, steps=steps, initial={"cation": start, "anion": start})
        problem = dataclasses.replace(
            problem,
            species=(Species("cation", 1, 1.0, 1.0), Species("anion", -1, 0.5, 1.0)),
        )
        found.append(solve(problem, "cation")[1]["cation"])
    errors = [np.abs(item - found[-1]).max() for item in found[:-1]]
    assert low < errors[0] / errors[1] < high
    most = np.log2(high * (1.2 if order == 1 else 1.0))
    name = "implicit Euler" if order == 1 else "BDF2"
    evidence.between("orders", f"in time, {name}", np.log2(errors[1] / errors[2]), np.log2(low), most)


@pytest.mark.slow
def test_a_given_current_finds_the_voltage_of_the_steady_state() -> None:
    seen, _ = solve(scaled(64, 0.05, None, current=4.0 * 0.8590507))
    assert seen["current"] == pytest.approx(4.0 * 0.8590507, rel=1e-8)
    assert seen["current_cathode"] == pytest.approx(seen["current"], rel=1e-7)
    assert seen["voltage"] == pytest.approx(4.0, rel=1e-2)


def plane(voltage: float = 3.0, cells: tuple[int, int] = (12, 8)) -> Problem:
    """A small cell of two axes with a finger of the cathode's metal, not in the middle."""
    grid = Grid(cells, axes=("y", "x"), spacing=[cosine(cells[0]), np.full(cells[1], 1.0 / cells[1])], units="m")
    kinds = np.zeros(cells, np.uint8)
    kinds[:3, 2:4] = 1
    return dataclasses.replace(scaled(12, 0.1, voltage, steps=Steps(0.02, 0.01, 2e-3)), grid=grid, kinds=kinds)


@pytest.mark.slow
def test_bits_do_not_depend_on_ranks() -> None:
    def run(comm: Comm) -> tuple[str, str]:
        model = electrodeposition(plane())
        with Engine(model.layouts("slabs", comm.size), comm=comm, threads=1) as engine:
            result = drive(model, engine, 1)
            arrays = [engine.gather(model.field(name).now) for name in model.output]
            return digest_of_arrays(arrays) if comm.rank == 0 else "", str(result.observables)

    assert len({run_virtual(ranks, run)[0] for ranks in (1, 3)}) == 1


@pytest.mark.slow
def test_mirrored_cells_give_mirrored_fields() -> None:
    problem = plane()
    assert problem.kinds is not None
    mirrored = dataclasses.replace(problem, kinds=problem.kinds[:, ::-1].copy())
    _, one = solve(problem, "cation", "potential")
    _, other = solve(mirrored, "cation", "potential")
    for name in one:
        assert np.allclose(one[name], other[name][:, ::-1], rtol=1e-7, atol=1e-9)
