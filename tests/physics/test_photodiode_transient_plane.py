"""Transients of devices with two axes, planar and round: against one axis, balances of charge, and small signals."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from minga.models.photodiode.solver.circuit import Circuit
from minga.models.photodiode.solver.problem import Linear, Problem
from minga.models.photodiode.structure.constants import CHARGE, VACUUM
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.transients.model import transient
from minga.models.photodiode.transients.problem import Transient
from minga.models.photodiode.transients.terminals import weighting
from minga.models.photodiode.transients.waveform import Waveform
from thinned import thinned

from .evidence import Evidence
from .photodiodes import solved
from .transients import PHYSICS, assert_same_bits, coarse, followed, interrupted, loaded, wide, window

SECTION = "photodiode: transients with two axes"
SYMMETRIES = ("plane", "cylinder")
LOADED = loaded(1e-4, 1e-17, 1e-8)


def equal_steps(count: int, circuit: Circuit, until: float = 4e-12, light: float = 1.0) -> Transient:
    """A ramp of the voltage and one of the light, in steps of one length that end at their corners."""
    h = until / count
    return Transient(
        until, Waveform((0.25 * until, 0.5 * until), (-1.0, -1.5)), Waveform((0.0, 0.5 * until), (0.0, light)), circuit,
        tolerance=1e300, first=h, largest=h,
    )  # fmt: skip


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_the_weights_of_a_device_that_is_uniform_across(symmetry: str) -> None:
    one, two = weighting(coarse()), weighting(wide(symmetry))
    assert two.capacitance == pytest.approx(one.capacitance, rel=1e-13)
    assert two.edges[0] == pytest.approx(np.broadcast_to(one.edges[0][:, None], (52, 3)), rel=1e-11, abs=1e-16)
    assert np.abs(two.edges[1]).max() < 1e-13
    assert two.contacts.sum(axis=1)[[0, -1]] == pytest.approx([1.0, -1.0], rel=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("symmetry", thinned(SYMMETRIES, "cylinder"))
def test_a_device_that_is_uniform_across_is_one_with_one_axis(symmetry: str, evidence: Evidence) -> None:
    what = equal_steps(8, LOADED)
    one, two = (followed(device, what) for device in (coarse(), wide(symmetry)))
    assert len(one) == len(two) == 9
    for name in ("J", "V", "charge", "J_displacement"):
        values, expected = (np.array([row[name] for row in rows]) for rows in (two, one))
        far = np.abs(values - expected).max() / np.abs(expected).max()
        evidence.at_most(SECTION, f"{symmetry}, uniform across: {name} from one axis", far, 1e-11)
    assert max(row["uniformity"] for row in two) < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_barriers_that_follow_the_field(symmetry: str) -> None:
    """The drop of the potential is the mean over the nodes of a contact, weighted with their charge."""
    contacts = {"anode": "ohmic", "cathode": {"kind": "schottky", "barrier": 0.3, "image_force": True}}
    one, two = (
        followed(made(contacts=contacts), equal_steps(4, LOADED))
        for made in (coarse.__wrapped__, functools.partial(wide.__wrapped__, symmetry))
    )
    for name in ("J", "V", "charge", "J_displacement"):
        values, expected = (np.array([row[name] for row in rows]) for rows in (two, one))
        assert np.abs(values - expected).max() < 1e-11 * np.abs(expected).max(), name


def left_at(device: Device, edges: tuple[np.ndarray, ...], nodes: np.ndarray) -> float:
    """The sum over the edges that leave nodes for others, of values that count along the axes."""
    total = []
    for axis, values in enumerate(edges):
        inner = np.diff(nodes.astype(int), axis=axis)
        total.append(np.take(values, range(1, values.shape[axis] - 1), axis) * -inner)
    return math.fsum(float(item) for part in total for item in part.ravel())


@pytest.mark.slow
@pytest.mark.parametrize("symmetry", SYMMETRIES)
@pytest.mark.parametrize("circuit", [loaded(), LOADED], ids=["direct", "loaded"])
def test_charge_is_conserved(symmetry: str, circuit: Circuit, evidence: Evidence) -> None:
    """Without generation and recombination, the charge that passed is that of the stored holes and the displacement."""
    device = window(symmetry)
    device = replace(
        device, generation=0.0 * device.generation, tau_n=np.inf * device.tau_n, tau_p=np.inf * device.tau_p
    )
    rows = followed(device, equal_steps(20, circuit, light=0.0), fields=True)
    assert max(row["uniformity"] for row in rows) < 1e-13
    first, last = (rows[k]["fields"] for k in (0, -1))
    anode = device.terminal("anode").nodes
    stored = CHARGE * math.fsum((device.volumes * (last["holes"] - first["holes"]))[~anode])
    potentials = [item["potential"] for item in (first, last)]
    displaced = []
    for axis in range(2):
        place = [1, 1]
        place[axis] = -1
        low, high = (
            np.pad(device.permittivity, [(k, 1 - k) if a == axis else (0, 0) for a in range(2)]) for k in (1, 0)
        )
        rise = np.diff(potentials[1] - potentials[0], axis=axis)
        rise = np.pad(rise, [(1, 1) if a == axis else (0, 0) for a in range(2)])
        displaced.append(-device.areas[axis] * 0.5 * (low + high) * VACUUM * rise / device.lengths[axis].reshape(place))
    width = float(device.areas[0][1].sum())
    expected = (stored + left_at(device, tuple(displaced), anode)) / width
    minorities = abs(rows[0]["J"]) * rows[-1]["t"]  # all that contacts emit and take up besides
    off = max(abs(rows[-1]["charge"] - expected) - 2.0 * minorities, 0.0) / abs(expected)
    evidence.at_most(SECTION, f"{symmetry}, {'loaded' if circuit.load else 'direct'}: charge lost", off, 1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_second_order_in_the_step(symmetry: str, evidence: Evidence) -> None:
    found = []
    for count in (20, 40, 80):
        rows = followed(window(symmetry), equal_steps(count, LOADED))
        found.append((rows[-1]["J"], rows[-1]["charge"], rows[-1]["V"]))
    for name, values in zip(("J", "charge", "V"), np.array(found).T, strict=True):
        ratio = (values[1] - values[0]) / (values[2] - values[1])
        evidence.between(SECTION, f"{symmetry}: error of {name} over that of half the step", ratio, 3.4, 4.6)


@pytest.mark.slow
@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_a_slow_change_ends_in_the_steady_state(symmetry: str) -> None:
    device = window(symmetry)
    what = Transient(1e-3, Waveform((0.0, 1e-10), (-1.0, -1.5)), Waveform((0.0, 1e-10), (0.0, 1.0)), tolerance=1e-2)
    last = followed(device, what)[-1]
    steady = solved(device, Problem((-1.5,), ("lit",), ionisation=False))[0]
    assert last["J"] == pytest.approx(steady["J_lit"], rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_a_small_change_moves_the_charge_of_the_small_signal_capacitance(symmetry: str, evidence: Evidence) -> None:
    """C of the small-signal analysis, which takes the currents of the contacts, at a frequency below all others."""
    device = window(symmetry)
    made = Problem((-1.0,), ionisation=False, mode="cv", frequencies=(1e6,))
    capacitance = solved(device, made)[0]["C"]
    what = Transient(1e-9, Waveform((0.0, 1e-11), (-1.0, -1.0005)), tolerance=1e-5)
    last = followed(device, what)[-1]
    found = (last["charge"] - 1e-9 * last["J"]) / -5e-4
    evidence.relative(SECTION, f"{symmetry}: charge of a small step over its voltage, F/cm2", found, capacitance, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("linear", ["rows", "krylov"])
def test_all_linear_solvers_agree(linear: Linear) -> None:
    what = equal_steps(4, LOADED)
    exact, other = (followed(window("cylinder"), what, physics=replace(PHYSICS, linear=k)) for k in ("sparse", linear))
    for one, two in zip(exact, other, strict=True):
        for name in ("J", "V", "charge"):
            assert two[name] == pytest.approx(one[name], rel=1e-9, abs=1e-18), name
    assert max(row["uniformity"] for row in other) < (1e-7 if linear == "krylov" else 1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("linear", ["auto", "krylov"])
def test_the_same_bits_on_ranks_and_threads(linear: Linear) -> None:
    physics = replace(PHYSICS, linear=linear)
    one, two = (
        followed(window("cylinder"), equal_steps(3, LOADED), physics=physics, fields=True, ranks=r, threads=t)
        for r, t in ((1, 1), (2, 2))
    )
    assert_same_bits(one, two)


@pytest.mark.slow
def test_the_same_bits_after_an_interruption(tmp_path: Path) -> None:
    model = transient(window(), PHYSICS, equal_steps(8, LOADED))
    interrupted(model, tmp_path / "run", every=3, steps=5)
