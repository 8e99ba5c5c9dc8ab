"""Several reactions at one electrode, of shared ions: against Newton's method in plain NumPy, and refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError

from ...model_runs import assert_same, resume_model, run_model
from .test_programs import model_of, run

FARADAY, THERMAL = 96485.33212, 8.314462618 * 298.15
BETA = FARADAY / THERMAL
BATH = [
    {"name": "Cu2", "charge": 2, "diffusivity": 0.7e-9, "bulk": 10.0},
    {"name": "Cu1", "charge": 1, "diffusivity": 1.2e-9, "bulk": 0.01},
    {"name": "H", "charge": 1, "diffusivity": 9.31e-9, "bulk": 4000.0},
    {"name": "Cl", "charge": -1, "diffusivity": 2.03e-9, "bulk": 4020.01},
]  # fmt: skip
LENGTH = 1e-4
STEPS = [
    {"oxidised": "Cu2", "reduced": "Cu1", "exchange": 20.0, "reduced_reference": 0.01, "transfer": 0.4},
    {"oxidised": "Cu1", "exchange": 30.0, "reference": 0.01, "equilibrium": "0.02 V", "transfer": 0.6},
]
PARALLEL = [
    {"oxidised": "Cu2", "exchange": 5.0},
    {"oxidised": "Cu2", "exchange": 2.0, "transfer": 0.3, "equilibrium": "0.05 V", "tafel": True},
]


def steady(reactions: list[dict[str, Any]], volts: float = -0.1, cells: int = 24, **cathode: Any) -> Any:
    """Observables of the steady state between the reactions and a bath at the other end."""
    return run(
        (cells,), species=BATH, electrolyte=None, concentration=None, length=f"{LENGTH} m", voltage=-volts,
        cathode={"reactions": reactions, **cathode}, anode="bath",
        time={"end": "200 s", "every": "200 s", "first": "1 ms", "tolerance": 1e-2},
        semi_implicit={"agreement": 1e-9},
    ).observables  # fmt: skip


def solved(rates: Callable[[np.ndarray], np.ndarray], start: np.ndarray) -> np.ndarray:
    """Concentrations at the electrode that balance diffusion and reactions, by Newton's method."""
    x = np.array(start, float)
    for _ in range(200):
        off = rates(x)
        slope = np.empty((len(x), len(x)))
        for n in range(len(x)):
            moved = x.copy()
            moved[n] += 1e-7 * max(x[n], 1e-3)
            slope[:, n] = (rates(moved) - off) / (moved[n] - x[n])
        change = np.linalg.solve(slope, off)
        x = np.maximum(x - change, 0.1 * x)
    assert np.abs(rates(x)).max() < 1e-12
    return x


def exchanged(reaction: dict[str, Any], oxidised: float, reduced: float, electrons: int, eta: float) -> float:
    """Rate of a reaction, mol/m2/s; concentrations relative to their references."""
    b, driving = reaction.get("transfer", 0.5), electrons * BETA * eta
    out = 0.0 if reaction.get("tafel") else reduced * math.exp((1 - b) * driving)
    return reaction["exchange"] / (electrons * FARADAY) * (oxidised * math.exp(-b * driving) - out)


@pytest.mark.slow
def test_two_steps_through_a_dissolved_ion() -> None:
    """Copper by way of its single charge: both steps are those of Newton's method, and currents add up."""
    volts = -0.1
    seen = steady(STEPS, volts)
    a, b = 0.7e-9 / LENGTH, 1.2e-9 / LENGTH

    def balances(c: np.ndarray) -> np.ndarray:
        first = exchanged(STEPS[0], c[0] / 10, c[1] / 0.01, 1, volts)
        second = exchanged(STEPS[1], c[1] / 0.01, 1.0, 1, volts - 0.02)
        return np.array([a * (10 - c[0]) - first, b * (0.01 - c[1]) + first - second])

    c = solved(balances, np.array([5.0, 0.01]))
    first, second = FARADAY * a * (10 - c[0]), FARADAY * (a * (10 - c[0]) + b * (0.01 - c[1]))
    assert seen["current_of_Cu2"] == pytest.approx(first, rel=3e-3)
    assert seen["current_of_Cu1"] == pytest.approx(second, rel=3e-3)
    # Some copper(I) is exchanged with the bath, so that the steps differ.
    assert abs(second / first - 1) > 1e-3
    assert seen["current_of_Cu2"] + seen["current_of_Cu1"] == pytest.approx(seen["current"], rel=1e-7)
    assert "current_efficiency" not in seen


@pytest.mark.slow
def test_parallel_reactions_of_one_ion() -> None:
    volts = -0.06
    seen = steady(PARALLEL, volts)
    a = 0.7e-9 / LENGTH

    def balances(c: np.ndarray) -> np.ndarray:
        rate = exchanged(PARALLEL[0], c[0] / 10, 1.0, 2, volts)
        rate += exchanged(PARALLEL[1], c[0] / 10, 1.0, 2, volts - 0.05)
        return np.array([a * (10 - c[0]) - rate])

    (c,) = solved(balances, np.array([5.0]))
    assert seen["current_of_Cu2" if "current_of_Cu2" in seen else "current"] == pytest.approx(
        2 * FARADAY * a * (10 - c), rel=4e-3
    )


def diffuse(volts: float, compact: float, zero: float, strength: float) -> float:
    """Potential of the plane of reaction, by bisection of Gouy, Chapman and Stern."""
    scale = math.sqrt(8 * 78.4 * 8.8541878128e-12 * THERMAL * strength)
    low, high = sorted((0.0, volts - zero))
    for _ in range(200):
        middle = 0.5 * (low + high)
        if scale * math.sinh(0.5 * BETA * middle) > compact * (volts - zero - middle):
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


@pytest.mark.slow
@pytest.mark.parametrize("zero", [0.3, -0.4])
def test_frumkins_correction(zero: float) -> None:
    """ln i shifts by (b n - z) F phi2 / RT."""
    volts, slow = -0.1, [{"oxidised": "Cu2", "exchange": 1e-5}]
    plain = steady(slow, volts)["current"]
    seen = steady(slow, volts, frumkin={"compact": "20 uF/cm2", "zero": f"{zero} V"})["current"]
    shift = (0.5 * 2 - 2) * BETA * diffuse(volts, 0.2, zero, 0.5 * (4 * 10 + 4000 + 4020 + 0.01))
    assert math.log(seen / plain) == pytest.approx(shift, rel=2e-3)


@pytest.mark.slow
def test_frumkins_correction_leaves_equilibrium_alone() -> None:
    seen = steady(STEPS[:1], 0.0, frumkin={"compact": "20 uF/cm2", "zero": "-0.3 V"})
    assert abs(seen["current"]) < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("resistance", [1e-4, 1e-2, 1.0])
def test_a_film_takes_its_ohmic_drop(resistance: float) -> None:
    """The current is that of a metal without a film at the potential that the film leaves."""
    found = steady(STEPS, -0.15, film=resistance)
    seen = found["current"]
    assert found["current_cathode"] == pytest.approx(seen, rel=1e-4)
    bare = steady(STEPS, -0.15 + seen * resistance)["current"]
    assert seen == pytest.approx(bare, rel=1e-4)


@pytest.mark.slow
def test_a_film_adds_to_the_voltage_of_a_given_current() -> None:
    found = [
        run(
            (16,), current=20.0, cathode={"Cu": {"exchange": 30.0}, "film": film}, cutoff="50 V",
            time={"end": "0.2 s", "every": "0.1 s", "first": "1 ms"},
        ).observables["voltage"]
        for film in (0.0, 1e-3, 1.0)
    ]  # fmt: skip
    assert found[1] - found[0] == pytest.approx(0.02, rel=1e-5)
    assert found[2] - found[0] == pytest.approx(20.0, rel=1e-5)


@pytest.mark.slow
def test_a_plane_has_the_current_of_one_dimension() -> None:
    line, plane = (
        run(
            shape, species=BATH, electrolyte=None, concentration=None, length="0.1 mm", voltage=0.1,
            cathode={"reactions": STEPS}, anode="bath", time={"end": "1 s", "every": "0.5 s", "first": "10 ms"},
            semi_implicit={"agreement": 1e-8}, **more,
        ).observables
        for shape, more in (((12,), {}), ((12, 2), {"width": "0.1 mm", "periodic": ["x"]}))
    )  # fmt: skip
    assert plane["current"] == pytest.approx(line["current"], rel=1e-6)
    assert plane["current_of_Cu1"] == pytest.approx(line["current_of_Cu1"], rel=1e-6)


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"reactions": [{"oxidised": "Cu1", "reduced": "Cu2"}]}, "takes up no electrons"),
        ({"reactions": [{"oxidised": "Fe"}]}, "no species 'Fe'"),
        ({"reactions": "Cu2"}, "expected a list"),
        ({"reactions": ["Cu2"]}, "expected a table"),
        ({"reactions": []}, "expected a list"),
        ({"reactions": STEPS, "Cu2": "held"}, "takes part in reactions"),
        ({"reactions": [{**STEPS[0], "electrons": 2}]}, "it takes 1 electrons, not 2"),
        ({"reactions": [{"oxidised": "Cu1", "exchange": 1.0, "reduced_reference": 1.0}]}, "has no reference"),
        ({"reactions": [{"oxidised": "Cu2", "tafel": True}]}, "has no rate"),
        ({"reactions": [{"oxidised": "Cu2", "exchange": math.nan}]}, "exchange"),
        ({"reactions": [{"oxidised": "Cu2"}, {"oxidised": "Cu2", "equilibrium": 0.1}]}, "Cu2 more than once"),
        (
            {"reactions": [{"oxidised": "Cu2", "reduced": "Cu1"}, {"oxidised": "Cu1"}, {"oxidised": "Cu2"}]},
            "more than once",
        ),
        ({"frumkin": {"compact": 0.2}}, "no list of them"),
        ({"reactions": STEPS, "frumkin": 1}, "expected a table"),
        ({"Cu2": "held", "film": -1.0}, "negative resistance"),
        ({"Cu2": "held", "film": "1 ohm"}, "expected ohm m2"),
        ({"Cu2": "held", "film": 1.0, "capacity": 0.2}, "has a film and a capacity"),
    ],
)
def test_impossible_reactions_are_refused(entry: dict[str, Any], text: str) -> None:
    with pytest.raises(CaseError, match=text):
        model_of(
            species=BATH, electrolyte=None, concentration=None, cathode=entry, anode="bath", voltage=0.1,
            time={"end": "1 s"},
        )  # fmt: skip


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"scheme": "relaxation", "debye": "1 um"}, "the scheme 'relaxation' has no reactions"),
        ({"growth": {"volume": 7e-6, "porosity": 0.1}}, "no deposit can grow"),
    ],
)
def test_couples_need_a_bare_electrode_and_the_implicit_scheme(said: dict[str, Any], text: str) -> None:
    with pytest.raises(CaseError, match=text):
        model_of(
            (12, 12), species=BATH, electrolyte=None, concentration=None, cathode={"reactions": STEPS}, anode="bath",
            voltage=0.1, time={"end": "1 s"}, width="1 mm", **said,
        )  # fmt: skip


def test_no_deposit_grows_on_a_bath() -> None:
    with pytest.raises(CaseError, match="no metal can grow"):
        model_of(
            (12, 12), cathode="bath", voltage=0.1, width="1 mm", growth={"volume": 7e-6, "porosity": 0.1},
            time={"end": "1 s"},
        )  # fmt: skip


def test_reactions_of_three_ions_are_refused() -> None:
    three = [*BATH[:3], {**BATH[3], "bulk": 4023.01}, {"name": "Cu3", "charge": 3, "diffusivity": 1e-9, "bulk": 1.0}]
    chain = [{"oxidised": "Cu3", "reduced": "Cu2"}, {"oxidised": "Cu2", "reduced": "Cu1"}]
    with pytest.raises(CaseError, match="connect the ions Cu3, Cu2, Cu1"):
        model_of(
            species=three, electrolyte=None, concentration=None, cathode={"reactions": chain}, anode="bath",
            voltage=0.1, time={"end": "1 s"},
        )  # fmt: skip


WHOLE = {
    "species": BATH, "electrolyte": None, "concentration": None, "length": "0.1 mm", "anode": "bath",
    "program": [{"cycle": ["0 V", "-0.1 V", "0.05 V"], "rate": "0.1 V/s"}], "reference": "10 um",
    "cathode": {"reactions": STEPS, "frumkin": {"compact": "20 uF/cm2", "zero": "0.1 V"}, "film": "1 ohm cm2"},
    "time": {"every": "0.5 s", "first": "10 ms"},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"width": "0.1 mm"}])
def test_any_number_of_ranks_gives_the_same_bits(more: dict[str, Any]) -> None:
    model = model_of((12, 8) if more else (12,), **WHOLE, **more)
    assert_same(run_model(model, 3), run_model(model, 3, ranks=2))


@pytest.mark.slow
def test_a_couple_at_both_electrodes_keeps_its_sum_on_two_axes() -> None:
    """Corrections of both amounts are solved for together, so that only rounding is left of the solvers' tolerance."""
    model = model_of(
        (12, 8), species=BATH, electrolyte=None, concentration=None, length="0.1 mm", width="0.1 mm", voltage=0.2,
        cathode={"reactions": STEPS[:1]}, anode={"reactions": STEPS[:1]},
        time={"end": "6 s", "every": "1 s", "first": "10 ms"},
    )  # fmt: skip
    whole, split = run_model(model, 6), run_model(model, 6, ranks=2)
    assert_same(whole, split)
    both = whole.observables["total_Cu2"] + whole.observables["total_Cu1"]
    assert both == pytest.approx(10.01e-8, rel=3e-14)


@pytest.mark.slow
def test_a_resumed_run_has_the_same_bits(tmp_path: Path) -> None:
    model = model_of((12,), **WHOLE)
    assert_same(resume_model(model, 4, 2, tmp_path), run_model(model, 4))


@pytest.mark.slow
def test_currents_of_a_cycle_add_up_with_a_film() -> None:
    seen = run((12,), **WHOLE).observables
    parts = seen["charge_of_Cu2"] + seen["charge_of_Cu1"]
    assert parts == pytest.approx(seen["charge"], rel=1e-12)
    assert abs(seen["charge_imbalance"]) < 1e-5


@pytest.mark.slow
def test_a_film_on_the_anode() -> None:
    seen = run(
        (16,), current=20.0, cathode={"Cu": {"exchange": 30.0}}, anode={"Cu": {"exchange": 30.0}, "film": 0.01},
        time={"end": "0.2 s", "every": "0.1 s", "first": "1 ms"},
    ).observables  # fmt: skip
    assert seen["current"] == pytest.approx(20.0, rel=1e-6)
    assert seen["current_cathode"] == pytest.approx(20.0, rel=1e-6)
    assert seen["voltage"] > 0.2


@pytest.mark.slow
def test_a_reversed_current_crosses_films_on_both_metals() -> None:
    """The exponential of the metal that dissolves must not carry the passes away: the voltages differ by the drops."""
    program = [{"hold": "400 A/m2", "time": "0.1 s"}, {"hold": "-400 A/m2", "time": "0.1 s"}]
    bare, covered = (
        drive_all(program, cathode={"Cu": {"exchange": 30.0}, **films[0]}, anode={"Cu": {"exchange": 30.0}, **films[1]})
        for films in (({}, {}), ({"film": 1e-3}, {"film": 2e-3}))
    )
    drops = np.asarray(covered["voltage"]) - np.asarray(bare["voltage"])
    assert drops == pytest.approx(np.repeat([0.0, 1.2, -1.2], [1, 4, 4]), abs=1e-5)
    assert np.abs(np.asarray(covered["current"]) - np.asarray(covered["current_cathode"])).max() < 1e-3


def drive_all(program: list[dict[str, Any]], **said: Any) -> Any:
    """Observables after each step of a program between copper plates."""
    model = model_of((16,), program=program, time={"every": "25 ms", "first": "1 ms"}, **said)
    return mg.run(model, model.steps, observe=1)
