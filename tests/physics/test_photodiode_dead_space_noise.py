"""Excess noise with dead space inside a run: against currents, the local theory, and a Monte Carlo of carriers."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from minga.case.load import read_settings
from minga.case.settings import GridSettings
from minga.errors import CaseError
from minga.models.photodiode import DeadSpace, dead_space_noise
from minga.models.photodiode.case import device_of, make, problem_of
from minga.models.photodiode.recurrence import Stretch, moments, passage
from minga.models.photodiode.solver.circuit import Circuit
from minga.models.photodiode.solver.problem import Problem

from .evidence import Evidence
from .photodiodes import EXAMPLES, apd, merged, solved, table

SECTION = "photodiode: dead space in a run"
Floats = NDArray[np.float64]
SPACE = DeadSpace(2.0, 2.0)


@functools.cache
def rows(coarsen: int, space: DeadSpace | None) -> list[dict[str, Any]]:
    """The avalanche photodiode at -58 and -63 V."""
    problem = Problem((-58.0, -63.0), ("dark", "lit"), gain=True, mode="noise", circuit=Circuit(1e-5), dead_space=space)
    return solved(apd(coarsen), problem)


def free_paths(rate: Floats, lengths: Floats, field: Floats, threshold: float) -> Any:
    """A function of places of birth and random numbers that returns places of ionisation; infinity: none."""
    x, energy, depth = (np.concatenate(([0.0], np.cumsum(item * lengths))) for item in (rate * 0.0 + 1.0, field, rate))

    def next_place(born: Floats, random: Floats) -> Floats:
        ready = np.interp(born, x, energy) + threshold
        able = np.interp(ready, energy, x, right=np.inf)
        wanted = np.interp(np.minimum(able, x[-1]), x, depth) - np.log(random)
        found: Floats = np.where((able <= x[-1]) & (wanted < depth[-1]), np.interp(wanted, depth, x), np.inf)
        return found

    return next_place


def monte_carlo(
    rates: tuple[Floats, Floats], lengths: Floats, field: Floats, space: DeadSpace, count: int
) -> tuple[float, float]:
    """Gain and excess noise factor of holes that enter at the end, by following every carrier."""
    random, width = np.random.default_rng(7), float(lengths.sum())
    electrons = free_paths(rates[0], lengths, field, space.electrons)
    holes = free_paths(rates[1][::-1], lengths[::-1], field[::-1], space.holes)
    pairs, event, born = np.ones(count), np.arange(count), np.full(count, width)
    moving_left = np.ones(count, bool)
    while event.size:
        numbers = 1.0 - random.random(event.size)
        place = np.where(moving_left, width - holes(width - born, numbers), electrons(born, numbers))
        ionises = np.isfinite(place)
        event, place, moving_left = event[ionises], np.clip(place[ionises], 0.0, width), moving_left[ionises]
        np.add.at(pairs, event, 1.0)
        # The carrier begins anew, and so do the two of the pair.
        event, born = np.tile(event, 3), np.tile(place, 3)
        moving_left = np.concatenate((moving_left, np.zeros(place.size, bool), np.ones(place.size, bool)))
    return float(pairs.mean()), float((pairs * pairs).mean() / pairs.mean() ** 2)


def test_the_monte_carlo_knows_published_numbers() -> None:
    edges = np.ones(50)
    found = monte_carlo((1e4 * edges, 2e4 * edges), 2e-6 * edges, 4e5 * edges, DeadSpace(8.0, 8.0), 20_000)
    assert found == pytest.approx((5.47280, 2.49628), rel=3e-2)


@pytest.mark.slow
@pytest.mark.parametrize("row", [0, 1])
def test_noise_of_a_run_against_a_monte_carlo(row: int, evidence: Evidence) -> None:
    device, seen = apd(10), rows(10, SPACE)[row]
    lengths = device.lengths[0][1:-1]
    field = np.abs(np.diff(seen["fields"]["potential_lit"])) / lengths
    whole = np.concatenate((field[:1], field, field[-1:])).clip(1e3)
    last = int(np.flatnonzero(device.ionisation_n[0].a[0][1:-1] == 0.0)[0])
    local = [own.at(whole)[1:-1][:last] for own in (device.ionisation_n[0], device.ionisation_p[0])]
    strength = field[:last].clip(1e3)
    beyond = [rate / (1.0 - 2.0 * rate / strength) for rate in local]
    gain, excess = monte_carlo((beyond[0], beyond[1]), lengths[:last], strength, SPACE, 200_000)
    name = f"APD at {seen['V']:g} V, thresholds 2 and 2 eV"
    evidence.relative(
        SECTION, f"{name}: M of the noise, by a Monte Carlo of 2e5 pairs", seen["M_local_lit"], gain, 1e-2
    )
    evidence.relative(SECTION, f"{name}: F, by a Monte Carlo of 2e5 pairs", seen["F_lit"], excess, 2e-2)
    evidence.relative(SECTION, f"{name}: M of the noise, by the gain of currents", seen["M_local"], seen["gain"], 5e-4)


@pytest.mark.slow
def test_without_dead_space_it_is_the_local_theory_to_the_accuracy_of_the_mesh(evidence: Evidence) -> None:
    for name in ("M_local", "F"):
        off = []
        for coarsen in (20, 10):
            local, none = rows(coarsen, None)[-1], rows(coarsen, DeadSpace(0.0, 0.0))[-1]
            off.append(none[name] / local[name] - 1.0)
        assert off[0] / off[1] == pytest.approx(4.0, rel=0.3), name
        words = {"M_local": "M of the noise", "F": "F"}[name]
        evidence.relative(
            SECTION, f"APD at -63 V, no dead space: {words} over the local theory", 1.0 + off[1], 1.0, 5e-4
        )
    little = rows(10, DeadSpace(1e-3, 1e-3))[-1]
    assert little["F"] == pytest.approx(rows(10, None)[-1]["F"], rel=5e-4)


@pytest.mark.slow
def test_noise_falls_with_dead_space() -> None:
    """At the same gain, too: F of the local theory for a gain of 5.59 is 3.66."""
    local, dead = rows(10, None), rows(10, SPACE)
    for before, after in zip(local, dead, strict=True):
        for name in ("F", "M_local", "S_shot", "S_shot_lit"):
            assert after[name] < before[name], name
    gains, factors = ([row[name] for row in local] for name in ("M_local", "F"))
    at_the_same_gain = float(np.interp(dead[-1]["M_local"], gains, factors))
    assert dead[-1]["F"] < 0.95 * at_the_same_gain


@pytest.mark.slow
def test_the_responsivity_is_that_of_weak_light() -> None:
    device = apd(20)
    assert device.light is not None
    assert device.light.flux is not None
    power = device.light.flux * 6.62607015e-34 * 2.99792458e17 / device.light.wavelength
    dim = replace(device, generation=1e-3 * device.generation)
    problem = Problem((-63.0,), ("dark", "lit"), mode="noise", circuit=Circuit(1e-5), dead_space=SPACE, tolerance=1e-10)
    row = solved(dim, problem)[-1]
    for end in ("", "_lit"):
        responsivity = math.sqrt(row[f"S_shot{end}"] + row["S_thermal"]) / row[f"NEP{end}"]
        assert responsivity == pytest.approx((row["J"] - row["J_lit"]) / power, rel=2e-6)


@pytest.mark.slow
def test_shot_noise_with_dead_space() -> None:
    row = rows(10, SPACE)[-1]
    primary = (row["J_lit"] - row["J"]) / row["gain"] * 1e-5
    light = 2.0 * 1.602176634e-19 * abs(primary) * row["gain"] ** 2 * row["F"]
    assert row["S_shot_lit"] - row["S_shot"] == pytest.approx(light, rel=5e-3)


@pytest.mark.slow
def test_a_mirrored_device_has_the_same_noise_and_ranks_agree() -> None:
    found = {}
    for at in ("top", "bottom"):
        given = merged(table("apd"), {"mesh": {"coarsen": 20}, "dead_space": {"electrons": 2.0, "holes": 3.0}})
        given = {key: value for key, value in given.items() if key != "bias"}
        given |= {"bias": [-60.0], "mode": "noise", "noise": {"area": 1e-5}}
        if at == "bottom":
            given["layers"] = given["layers"][::-1]
            given["contacts"] = {"anode": {"at": "bottom"}, "cathode": {"at": "top"}}
        settings = read_settings("photodiode", given)
        device, problem = device_of(settings, EXAMPLES), problem_of(settings)
        found[at] = solved(device, problem)[-1]
        if at == "top":
            again = solved(device, problem, ranks=3)[-1]
    for name in ("F", "M_local", "S_shot", "NEP"):
        assert found["top"][name] == pytest.approx(found["bottom"][name], rel=1e-7), name
        assert again[name] == found["top"][name], name


@pytest.mark.slow
def test_no_noise_beyond_breakdown() -> None:
    problem = Problem((-60.0, -70.0), ("dark", "lit"), gain=True, mode="noise", dead_space=SPACE)
    last = solved(apd(20), problem)[-1]
    assert -70.0 < last["breakdown"] < -60.0
    assert last["V"] > last["breakdown"]
    for name in ("F", "F_lit", "M_local", "M_local_lit", "collected", "collected_lit", "gain"):
        assert math.isnan(last[name]), name


def test_a_carrier_begins_anew_in_each_material() -> None:
    """Two halves with threshold energies that are gained across both: nothing ionises, but in one stretch of both."""
    ones = np.ones(50)
    halves = [Stretch(k, 1e4 * ones, 2e-6 * ones, 1e5 * ones) for k in (0, 50)]
    whole = Stretch(0, np.full(100, 1e4), np.full(100, 2e-6), np.full(100, 1e5))
    for parts, ionises in ((halves, False), ([whole], True)):
        electrons = passage(101, parts, 12.0)
        gain, square = moments(electrons, electrons.mirrored())
        assert (gain[0] > 1.1) == ionises
        assert ionises != bool((gain == 1.0).all() and (square == 1.0).all())


def test_materials_behind_each_other_multiply() -> None:
    """Electrons alone ionise: gains of stretches multiply, with layers between them in which nothing happens."""
    stretch, ones = 1e4, np.ones(40)
    parts = [Stretch(k, stretch * ones, 2e-6 * ones, 4e5 * ones) for k in (10, 60)]
    electrons = passage(111, parts, 4.0)
    one = Stretch(0, stretch * ones, 2e-6 * ones, 4e5 * ones)
    alone, _ = moments(passage(41, [one], 4.0), passage(41, [], 4.0))
    gain, square = moments(electrons, passage(111, [], 4.0))
    assert gain[0] == pytest.approx(alone[0] ** 2, rel=1e-12)
    assert gain[-1] == square[-1] == 1.0
    reference = dead_space_noise(1e4 * ones, 0.0 * ones, 2e-6 * ones, 4e5 * ones, 4.0, 4.0)
    assert alone[0] == pytest.approx(reference.gain[0], rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"noise": {"method": "adjoint"}}, "in noise by the adjoint, where a carrier's next ionisation"),
        ({"columns": 4, "width": 4.0}, "dead space in a device with two axes, whose carriers follow no single path"),
        ({"mode": "ac"}, "dead space in mode 'ac'"),
    ],
)
def test_refusals(changes: dict[str, Any], words: str) -> None:
    given = merged(table("apd"), {"mesh": {"coarsen": 20}, "dead_space": {"electrons": 2.0, "holes": 2.0}})
    given = merged({**given, "mode": "noise"}, changes)
    with pytest.raises(CaseError, match=re.escape(words)):
        make(read_settings("photodiode", given), GridSettings(), EXAMPLES)
