"""Reactions whose product stays in solution, against semi-integrals, closed formulas and published peaks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.schema import validate

from .evidence import Evidence

FARADAY, THERMAL, D = 96485.33212, 8.314462618 * 298.15, 1e-9
BETA = FARADAY / THERMAL

pytestmark = pytest.mark.slow


def observed(cells: int, reduced: float = 1e-6, ratio: float = 1.1, **said: Any) -> Any:
    """A run with 1 mol/m3 of an ion with 3 charges in an excess of salt, observed after each step."""
    ions = [
        {"name": "Ox", "charge": 3, "diffusivity": D, "bulk": 1.0},
        {"name": "Red", "charge": 2, "diffusivity": D, "bulk": reduced},
        {"name": "K", "charge": 1, "diffusivity": 2e-9, "bulk": 2000.0},
        {"name": "Cl", "charge": -1, "diffusivity": 2e-9, "bulk": 2003.0 + 2 * reduced},
    ]
    grid = validate(GridSettings, {"shape": [cells]}, "grid")
    common = {"length": "2 mm", "stretched": {"y": {"geometric": ratio, "at": "low"}}, "anode": "bath"}
    case = {"electrodeposition": {"species": ions, **common, **said}}
    model = load_model("electrodeposition", case, grid, Path())
    return mg.run(model, model.steps, observe=1)


def reaction(exchange: object, **more: Any) -> dict[str, Any]:
    one = {"oxidised": "Ox", "reduced": "Red", "exchange": exchange, "reference": 1.0, "reduced_reference": 1.0}
    return {"reactions": [one | more]}


def swept(exchange: object, beyond: float, rate: float = 0.05, **more: Any) -> tuple[np.ndarray, np.ndarray]:
    """Potentials in V and currents in units of F c sqrt(D F v / RT), from 0.3 V to -`beyond` and back."""
    seen = observed(
        90, cathode=reaction(exchange, **more), reference="20 um",
        program=[{"cycle": ["0.3 V", f"{-beyond} V", "0.3 V"], "rate": f"{1e3 * rate} mV/s"}],
        time={"every": f"{1e-3 / rate} s", "first": "1 ms", "tolerance": 3e-5},
    )  # fmt: skip
    unit = FARADAY * math.sqrt(D * BETA * rate)
    assert np.abs(np.asarray(seen["charge_imbalance"])).max() < 1e-6
    return np.asarray(seen["cathode_potential"]), np.asarray(seen["current"]) / unit


def peak(x: np.ndarray, y: np.ndarray, at: int) -> tuple[float, float]:
    """Place and height of the extremum of the parabola through seven points."""
    near = slice(at - 3, at + 4)
    a, b, c = np.polyfit(x[near] - x[at], y[near], 2)
    return float(x[at] - b / (2 * a)), float(c - b * b / (4 * a))


def semi_integral_sweep(psi: float, beyond: float, points: int = 6000, transfer: float = 0.5) -> tuple[np.ndarray, ...]:
    """The sweep by the semi-integral of the current, in plain NumPy: c_O = 1 - m, c_R = m at the electrode.

    The current is constant over each of many intervals; times are in RT/F/v.
    """
    start, turn = 0.3 * BETA, -beyond * BETA
    h = 2 * (start - turn) / points
    times = h * (np.arange(points) + 1)
    xi = turn + np.abs(start - turn - times)
    weights = 2 / math.sqrt(math.pi) * (np.sqrt(h * (np.arange(points) + 1)) - np.sqrt(h * np.arange(points)))
    current = np.zeros(points)
    rate = psi * math.sqrt(math.pi)
    for n in range(points):
        before = float(weights[1 : n + 1] @ current[:n][::-1]) if n else 0.0
        into, out = rate * math.exp(-transfer * xi[n]), rate * math.exp((1 - transfer) * xi[n])
        current[n] = (into * (1 - before) - out * before) / (1 + (into + out) * weights[0])
    return xi / BETA, current


def test_the_reversible_peak_of_randles_and_sevcik(evidence: Evidence) -> None:
    """0.446295 at -28.49 mV, and 57.6 mV between the peaks, with 0.3 V from the first one to the turn."""
    potential, current = swept("reversible", 0.3285)
    first, back = (peak(potential, current, at) for at in (current.argmax(), current.argmin()))
    what = "reversible couple, F c sqrt(D F v / RT)"
    evidence.relative("couples", f"peak of Randles and Sevcik, {what}", first[1], 0.446295, 1e-3)
    evidence.absolute("couples", "mV, its potential", 1e3 * first[0], -28.49, 0.1)
    apart = 1e3 * (back[0] - first[0])
    evidence.absolute("couples", "mV between both peaks, with a turn 300 mV beyond the first", apart, 57.555, 0.15)


@pytest.mark.parametrize("psi", [20.0, 7.0, 2.0, 1.0, 0.5, 0.1])
def test_quasi_reversible_sweeps(psi: float, evidence: Evidence) -> None:
    """The whole curve is that of the semi-integral; psi = k / sqrt(pi D F v / RT)."""
    constant = psi * math.sqrt(math.pi * D * 0.05 * BETA)
    potential, current = swept(FARADAY * constant, 0.1412)
    places, expected = semi_integral_sweep(psi, 0.1412)
    down = len(current) // 2
    there = np.interp(-potential[5:down], -places[: len(places) // 2], expected[: len(places) // 2])
    worst = np.abs(current[5:down] - there).max()
    evidence.absolute("couples", f"largest error of a sweep by its semi-integral, psi {psi:g}", worst, 0.0, 1.5e-3)
    separations = []
    for x, y, width in ((potential, current, 1), (places, expected, len(places) // len(current))):
        ends = [peak(x[::width], y[::width], at) for at in (y[::width].argmax(), y[::width].argmin())]
        separations.append(1e3 * (ends[1][0] - ends[0][0]))
    evidence.absolute("couples", f"mV between its peaks, psi {psi:g}", *separations, 0.4)


def test_an_irreversible_peak_converges_to_second_order(evidence: Evidence) -> None:
    """0.4958 sqrt(b) (Nicholson and Shain), with cells that grow more slowly from the same first one of 0.16 um.

    The whole current also charges the half of the first cell, eps v / (h/2), which is no part of the exact peak.
    """
    exact, rate, first = 0.4958 * math.sqrt(0.3), 0.5, 160e-9
    heights = []
    for cells, ratio in ((43, 1.2), (75, 1.1), (133, 1.05)):
        seen = observed(
            cells, cathode=reaction(FARADAY * 1e-9, transfer=0.3), reference="20 um", ratio=ratio,
            length=f"{first * (ratio**cells - 1) / (ratio - 1)} m",
            program=[{"ramp": ["0.3 V", "-1.3 V"], "rate": "500 mV/s"}],
            time={"every": "2 ms", "first": "1 ms", "tolerance": 3e-5},
        )  # fmt: skip
        whole, ions = (np.asarray(seen[name]) for name in ("current", "current_of_Ox"))
        at = ions.argmax()
        heights.append(float(ions[at]) / (FARADAY * math.sqrt(D * BETA * rate)))
        charging = 78.4 * 8.8541878128e-12 * rate / (0.5 * first)
        assert whole[at] - ions[at] == pytest.approx(charging, rel=0.05)
    coarse, middle, fine = heights
    order = math.log2((middle - coarse) / (fine - middle))
    evidence.between("orders", "peak of an irreversible reaction, 43 to 133 cells", order, 1.58, 2.17)
    evidence.relative("couples", "peak of an irreversible reaction, transfer 0.3, 133 cells", fine, exact, 3e-4)
    assert middle == pytest.approx(exact, rel=6e-4)


def test_a_step_follows_cottrell_with_its_nernst_factor(evidence: Evidence) -> None:
    """n F c sqrt(D / pi t) / (1 + exp(F E / RT)) after a step from bulk to the potential E."""
    for volts in (-0.3, 0.0, 0.02):
        seen = observed(
            80, cathode=reaction("reversible"), reference="20 um", program=[{"hold": f"{volts} V", "time": "1 s"}],
            time={"every": "0.1 s", "first": "0.1 ms", "tolerance": 3e-5},
        )  # fmt: skip
        exact = FARADAY * math.sqrt(D / math.pi) / (1 + math.exp(BETA * volts))
        what = f"A/m2, Cottrell with the factor of Nernst, {1e3 * volts:g} mV, after 1 s"
        evidence.relative("couples", what, seen["current"][-1], exact, 2e-3)
        assert float(seen["charge"][-1]) == pytest.approx(2 * exact, rel=3e-3)
        assert float(seen["charge_of_Ox"][-1]) == pytest.approx(float(seen["charge"][-1]), rel=1e-12)


def test_a_given_current_ends_at_sands_time(evidence: Evidence) -> None:
    current = 0.5
    sand = math.pi * D * (FARADAY / (2 * current)) ** 2
    # The layer of the first cell, 1 uF/cm2 at 1 um, takes over slowly: cells are wider here.
    seen = observed(
        60, cathode=reaction("reversible"), reference="20 um", stretched={"y": {"geometric": 1.07, "at": "low"}},
        program=[{"hold": f"{current} A/m2", "until": {"voltage": "-0.5 V"}}],
        time={"end": "200 s", "every": "5 s", "first": "0.01 s", "tolerance": 3e-5},
    )  # fmt: skip
    lasted = float(seen["charge"][-1]) / current
    evidence.relative("couples", "s, Sand's time of a couple", lasted, sand, 2e-3)
    potential = np.asarray(seen["cathode_potential"])
    for step in (2, 5):
        root = math.sqrt(5.0 * step / sand)
        assert potential[step] == pytest.approx(math.log((1 - root) / root) / BETA, abs=2e-4)


def test_the_impedance_of_randles(evidence: Evidence) -> None:
    """RT/(F i0) and the Warburg impedances of both ions, with equal concentrations."""
    frequencies = np.array([10.0, 0.1])
    seen = observed(
        80, 1.0, cathode=reaction(5.0), reference="1 um", length="1 mm",
        program=[{"impedance": "0 V", "amplitude": "1 mV", "frequencies": ["10 Hz", "0.1 Hz"], "times": 4}],
        time={"end": "60 s", "every": "60 s", "first": "1 ms"},
    )  # fmt: skip
    found = np.asarray(seen["Z_re"])[-1] + 1j * np.asarray(seen["Z_im"])[-1]
    both = 2 * THERMAL / (FARADAY**2 * math.sqrt(2 * D)) / np.sqrt(2 * math.pi * frequencies) * (1 - 1j)
    errors = np.abs(found / (THERMAL / (FARADAY * 5.0) + both) - 1)
    for frequency, error in zip(frequencies, errors, strict=True):
        what = f"relative error of Z, Randles with Warburg's impedances of both ions, {frequency:g} Hz"
        evidence.absolute("couples", what, error, 0.0, 3e-3)


def test_a_symmetric_cell_keeps_its_couple(evidence: Evidence) -> None:
    """The anode forms what the cathode takes; the limiting current is 2 F D c / L, and the sum stays to the bit."""
    length = 1e-4
    seen = observed(
        30, 1.0, cathode=reaction(20.0), anode=reaction(20.0), length=f"{length} m", stretched="cosine", voltage=0.6,
        time={"end": "100 s", "every": "10 s", "first": "1 ms"},
    )  # fmt: skip
    both = np.asarray(seen["total_Ox"]) + np.asarray(seen["total_Red"])
    assert both == pytest.approx(2 * length, rel=1e-13)
    current = float(seen["current"][-1])
    evidence.relative("couples", "A/m2, limiting current of a symmetric cell", current, 2 * FARADAY * D / length, 2e-3)
