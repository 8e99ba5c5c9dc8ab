"""Ionisation with dead space inside a run, against the recurrences of Hayat, Saleh and Teich."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.load import read_settings
from minga.case.settings import GridSettings
from minga.errors import CaseError
from minga.models.photodiode import DeadSpace, dead_space_noise
from minga.models.photodiode.case import device_of, make, problem_of
from minga.models.photodiode.solver.paths import ionised
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.device import Device

from .evidence import Evidence
from .photodiodes import EXAMPLES, apd, merged, solved, table

SECTION = "photodiode: dead space in a run"
WIDTH, FIELD = 1e-4, 4e5


def gain(rates: tuple[float, float], spaces: tuple[float, float], injected: str, count: int) -> float:
    """The gain of a region in a uniform field, from fluxes and the pairs that they generate, until they agree."""
    lengths, strength = np.full(count, WIDTH / count), np.full(count, FIELD)
    fluxes = [np.full(count, float(injected == which)) for which in ("electrons", "holes")]
    for _ in range(1000):
        forward, back = (
            ionised(np.full(count, rate), lengths, strength, flux, space * FIELD)
            for rate, space, flux in zip(rates, spaces, (fluxes[0], fluxes[1][::-1]), strict=True)
        )
        pairs = forward + back[::-1]
        new = [np.cumsum(pairs) - 0.5 * pairs, np.cumsum(pairs[::-1])[::-1] - 0.5 * pairs]
        new[injected == "holes"] += 1.0
        moved = max(float(np.abs(a - b).max()) for a, b in zip(new, fluxes, strict=True))
        fluxes = new
        if moved < 1e-12:
            break
    return 1.0 + float(pairs.sum())


@pytest.mark.parametrize(
    ("rates", "spaces", "injected", "expected"),
    [
        ((1e4, 1e4), (1e-5, 1e-5), "electrons", 4.20058),
        ((1e4, 2e4), (2e-5, 2e-5), "electrons", 3.78271),
        ((1e4, 2e4), (2e-5, 2e-5), "holes", 5.47280),
    ],
)
def test_gains_of_the_recurrences(
    rates: tuple[float, float], spaces: tuple[float, float], injected: str, expected: float, evidence: Evidence
) -> None:
    coarse, fine = (gain(rates, spaces, injected, count) for count in (100, 200))
    name = f"uniform field, a {rates[0]:g}, b {rates[1]:g}, d {spaces[0]:g} cm: gain of {injected}"
    evidence.relative(SECTION, name, fine + (fine - coarse) / 3.0, expected, 5e-6)


def test_dead_spaces_shorter_than_an_edge() -> None:
    """With d towards 0 and with uniform fluxes, J/(1/a + d) pairs per length after the first dead space."""
    lengths, flux = np.full(50, 2e-6), np.full(50, 3.0)
    for space in (1e-9, 1e-6, 5e-6):
        pairs = ionised(np.full(50, 1e4), lengths, np.full(50, FIELD), flux, space * FIELD)
        assert pairs[-1] == pytest.approx(3.0 * 2e-6 / (1e-4 + space), rel=1e-4)
    assert not ionised(np.full(50, 1e4), lengths, np.full(50, FIELD), flux, 1e-4 * FIELD).any()


def clusters(device: Device, potential: Any, space: DeadSpace) -> Any:
    """The gain of pairs born at each node of the InP layers above the absorber, by the recurrences in a run's field."""
    lengths = device.lengths[0][1:-1]
    field = np.abs(np.diff(potential)) / lengths
    whole = np.concatenate((field[:1], field, field[-1:])).clip(1e3)
    last = int(np.flatnonzero(device.ionisation_n[0].a[0][1:-1] == 0.0)[0])
    rates = [own.at(whole)[1:-1][:last] for own in (device.ionisation_n[0], device.ionisation_p[0])]
    thresholds = (space.electrons, space.holes)
    return dead_space_noise(*rates, lengths[:last], field[:last].clip(1e3), *thresholds, local=space.local).gain


@pytest.mark.slow
@pytest.mark.parametrize("space", [DeadSpace(2.0, 2.0), DeadSpace(3.0, 2.0, local=False), DeadSpace(0.0, 2.0)])
def test_gain_of_a_run(space: DeadSpace, evidence: Evidence) -> None:
    device = apd(10)
    problem = Problem(bias=(-58.0, -63.0), curves=("dark", "lit"), ionisation=True, gain=True, dead_space=space)
    for row in solved(device, problem):
        name = f"APD at {row['V']:g} V, thresholds {space.electrons:g} and {space.holes:g} eV: gain"
        potential = row["fields"]["potential_lit"]  # type: ignore[index]
        # Of holes that enter the InP layers from the absorber.
        evidence.relative(SECTION, name, row["gain"], clusters(device, potential, space)[-1], 5e-4)
        assert row["uniformity"] < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("space", [DeadSpace(2.0, 2.0), DeadSpace(4.0, 2.5)])
def test_collection_is_the_gain_of_the_recurrences(space: DeadSpace, evidence: Evidence) -> None:
    """A pair that is born in the field contributes as many charges as there are pairs in the cluster it starts."""
    given = {name: value for name, value in table("apd").items() if name not in ("curves", "gain")}
    changes = {"mesh": {"coarsen": 10}, "mode": "qe", "bias": [-63.0], "qe": {"wavelengths": [1550.0]}}
    thresholds = {"electrons": space.electrons, "holes": space.holes}
    model = make(
        read_settings("photodiode", merged(given, changes | {"dead_space": thresholds})), GridSettings(), EXAMPLES
    )
    rows = mg.run(model, 1)
    device, potential = apd(10), rows["potential"].values[-1]
    expected, seen = clusters(device, potential, space), rows["collection"].values[-1]
    inside = np.flatnonzero(np.abs(np.diff(potential)) / device.lengths[0][1:-1] > 1e5)[5:-5]
    inside = inside[inside < expected.size - 5]
    assert inside.size > 50
    worst = float(np.abs(seen[inside] / expected[inside] - 1.0).max())
    name = f"APD at -63 V, thresholds {space.electrons:g} and {space.holes:g} eV: collection of pairs over gain, less 1"
    evidence.at_most(SECTION, name, worst, 2e-3)


@pytest.mark.slow
def test_no_thresholds_are_the_local_model_and_ranks_agree() -> None:
    device, bias = apd(20), (-30.0, -60.0)
    local = solved(device, Problem(bias=bias, ionisation=True))
    none = solved(device, Problem(bias=bias, ionisation=True, dead_space=DeadSpace(0.0, 0.0)))
    assert [row["J"] for row in none] == pytest.approx([row["J"] for row in local], rel=1e-12)
    problem = Problem(bias=bias, ionisation=True, dead_space=DeadSpace(2.0, 2.5))
    one, three = solved(device, problem), solved(device, problem, ranks=3)
    assert [row["J"] for row in one] == [row["J"] for row in three]
    assert one[-1]["M"] < none[-1]["M"]


@pytest.mark.slow
def test_a_mirrored_device_has_the_same_currents() -> None:
    found = {}
    for at in ("top", "bottom"):
        changes = {"mesh": {"coarsen": 20}, "dead_space": {"electrons": 2.0, "holes": 3.0}}
        given = merged(table("apd"), changes)
        if at == "bottom":
            given["layers"] = given["layers"][::-1]
            given["contacts"] = {"anode": {"at": "bottom"}, "cathode": {"at": "top"}}
        settings = read_settings("photodiode", given)
        problem = replace(problem_of(settings), bias=(-60.0,))
        found[at] = solved(device_of(settings, EXAMPLES), problem)[0]
    assert found["top"]["gain"] == pytest.approx(found["bottom"]["gain"], rel=1e-9)


@pytest.mark.slow
def test_dead_spaces_longer_than_the_mean_free_path_are_refused() -> None:
    problem = Problem(bias=(-62.0,), ionisation=True, dead_space=DeadSpace(60.0, 60.0))
    with pytest.raises(AssertionError, match=r"dead space is 0\.9 times the mean free path[\s\S]*layer 'Inp1'"):
        solved(apd(20), problem)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ionisation": False}, "dead space without ionisation"),
        ({"columns": 4, "width": 4.0, "linear": "rows"}, "dead space in a device with two axes"),
        ({"mode": "cv", "gain": False}, "dead space in mode 'cv'"),
        ({"scheme": "gummel"}, "dead space with scheme = 'gummel'"),
        ({"mode": "transient", "gain": False, "transient": {"until": "1 ns"}}, "dead_space in a transient"),
        ({"mesh": {"adapt": {"error": 1e-3}}}, "a mesh cannot be adapted with dead space"),
    ],
)
def test_refusals(changes: dict[str, Any], words: str) -> None:
    given = merged(table("apd"), {"mesh": {"coarsen": 20}, "dead_space": {"electrons": 2.0, "holes": 2.0}})
    given = merged(given, changes)
    if not given.get("ionisation") or given.get("mode") == "transient":
        given = {key: value for key, value in given.items() if key not in ("gain", "bias", "curves")} | {"bias": [0.0]}
    with pytest.raises(CaseError, match=re.escape(words)):
        make(read_settings("photodiode", given), GridSettings(), EXAMPLES)


def test_refusals_of_problems() -> None:
    with pytest.raises(CaseError, match="a threshold energy of -1 eV"):
        DeadSpace(-1.0, 2.0)
    with pytest.raises(CaseError, match="a threshold energy of nan eV"):
        DeadSpace(1.0, float("nan"))


def test_carriers_that_flow_back_to_a_contact_do_not_ionise() -> None:
    """Only the flux that reaches the field ionises, for any flux in the neutral layer before it."""
    lengths, strength = np.full(100, 2e-6), np.repeat((1e-3, FIELD), 50)
    plain = np.ones(100)
    lost = np.where(np.arange(100) < 40, 10.0, plain)
    known, found = (ionised(np.full(100, 1e4), lengths, strength, flux, 1.1e-5 * FIELD) for flux in (plain, lost))
    assert known.sum() > 0.1
    assert found == pytest.approx(known, rel=1e-12)
