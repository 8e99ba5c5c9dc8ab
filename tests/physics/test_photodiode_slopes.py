"""Derivatives by the adjoint: against differences of full solutions, and formulas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import root_scalar

from minga.case.examples import examples
from minga.case.load import read_settings
from minga.errors import CaseError, RunError
from minga.models.photodiode.case import device_of
from minga.models.photodiode.derivatives import slopes
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.varied import Varied

from .photodiodes import merged, solved, table

ACCURATE = 1e-9
COARSE = {"graded": {"first": "20 nm", "growth": 1.5, "cap": "200 nm"}}


def silicon() -> dict[str, Any]:
    return merged(table("si-1"), {"mesh": COARSE})


def avalanche() -> dict[str, Any]:
    """The avalanche photodiode on a coarse mesh, with a graded layer."""
    found = merged(table("apd"), {"mesh": {"graded": {"first": "5 nm", "growth": 1.4, "cap": "100 nm"}}})
    del found["mesh"]["spacing"]
    found["layers"] = [{**layer, "thickness": 2.5e-3 * layer["rows"]} for layer in found["layers"]]
    for layer in found["layers"]:
        del layer["rows"]
        if layer["name"] == "Hole":
            layer["y"] = [0.4, 0.55]
    return found


def schottky() -> dict[str, Any]:
    return merged(table("msm"), {"mesh": {"nodes": 81}})


def tunnelling(**changes: Any) -> dict[str, Any]:
    """A photodiode of InGaAs between InP, through which carriers tunnel from band to band and to traps."""
    layers = [
        {"name": "p", "material": "InP", "thickness": 0.5, "p": 1e18},
        {"name": "i", "material": "InGaAs", "thickness": 1.0, "n": 1e15},
        {"name": "n", "material": "InP", "thickness": 0.5, "n": 1e18},
    ]
    return {
        "bias": [-20.0], "contacts": {"anode": "ohmic", "cathode": "ohmic"}, "mobility": "field", "layers": layers,
        "mesh": {"graded": {"first": "5 nm", "growth": 1.4, "cap": "100 nm"}},
        "tunnelling": {"band_to_band": True, "trap_assisted": True}, **changes,
    }  # fmt: skip


def surfaces() -> dict[str, Any]:
    """A silicon diode with a surface inside, and an anode that recombines minority carriers slowly."""
    plane = {"x": 1.0, "velocity_n": 1e4, "velocity_p": 2e4}
    return merged(silicon(), {"surfaces": [plane], "contacts": {"anode": {"recombination": 1e3}}})


def frozen() -> dict[str, Any]:
    """A silicon diode whose dopants are not all ionised."""
    return merged(silicon(), {"incomplete_ionisation": True, "temperature": 200.0})


def lowered(**changes: Any) -> dict[str, Any]:
    """A detector whose barriers the image force lowers, and through which carriers tunnel."""
    contact = {"kind": "schottky", "barrier": 0.65, "image_force": True, "tunnelling": True}
    return merged(schottky(), {"contacts": {"anode": contact, "cathode": dict(contact)}, **changes})


def assert_slopes(devices: Varied, x: Sequence[float], problem: Problem, width: float = 1e-4) -> None:
    """Each derivative against differences of fourth order between full solutions."""
    problem = replace(problem, tolerance=ACCURATE)
    found = slopes(devices, x, problem)
    assert found.V.tolist() == list(problem.bias)
    names = list(found.values)
    at_x = solved(devices(x), problem)
    for name in names:
        assert found.values[name] == pytest.approx([row[name] for row in at_x], rel=1e-11)
    for k, value in enumerate(x):
        rows = []
        for shift in (1.0, -1.0, 2.0, -2.0):
            moved = list(x)
            moved[k] = value * (1.0 + shift * width)
            rows.append(solved(devices(moved), problem))
        for name in names:
            seen = [np.array([row[name] for row in run]) for run in rows]
            expected = (8.0 * (seen[0] - seen[1]) - (seen[2] - seen[3])) / (12.0 * width * value)
            assert found.slopes[name][:, k] == pytest.approx(expected, rel=1e-6), (devices.keys[k], name)


@pytest.mark.slow
def test_a_diode_forward_and_reverse() -> None:
    assert_slopes(Varied(silicon(), ["layers.p.p", "layers[1].tau_n"]), [1e17, 1e-7], Problem((0.5, -1.0)))


def test_the_saturation_current_of_a_short_diode() -> None:
    """Electrons that diffuse through a layer of 0.5 um without recombination: J is proportional to mobility_n."""
    layer = {"name": "p", "material": "Si", "thickness": 0.5, "p": 1e16, "mobility_n": 1000.0}
    short = silicon() | {"layers": [layer, {"name": "n", "material": "Si", "thickness": 0.5, "n": 1e19}]}
    devices = Varied(short | {"recombination": []}, ["layers.p.mobility_n"])
    found = slopes(devices, [1000.0], Problem((0.3,)))
    assert 1000.0 * found.slopes["J"][0, 0] / found.values["J"][0] == pytest.approx(1.0, abs=2e-3)


@pytest.mark.slow
def test_thickness_and_temperature() -> None:
    assert_slopes(Varied(silicon(), ["layers.n.thickness", "temperature"]), [5.0, 300.0], Problem((0.5,)))


@pytest.mark.slow
def test_dark_and_lit_currents_and_gain_of_an_avalanche_photodiode() -> None:
    keys = ["layers.Charge.n", "layers.Mult.thickness", "layers.Hole.y[1]"]
    problem = Problem((-60.0,), ("dark", "lit"), gain=True)
    assert_slopes(Varied(avalanche(), keys), [3e16, 1.0, 0.55], problem)


@pytest.mark.slow
def test_all_models_together() -> None:
    changes = {"statistics": "fermi-dirac", "mobility": "doping-field", "emission": True, "temperature": 320.0}
    devices = Varied(avalanche() | changes, ["layers.Charge.n", "layers.Absorp.thickness", "layers.Hole.y[0]"])
    assert_slopes(devices, [3e16, 0.3, 0.4], Problem((-56.0,), ("dark", "lit")))


@pytest.mark.slow
def test_between_schottky_contacts() -> None:
    devices = Varied(schottky(), ["layers.InP.n", "layers.InP.thickness", "contacts.anode.barrier"])
    assert_slopes(devices, [1e15, 2.0, 0.65], Problem((0.5, 2.0), ("dark", "lit")))


@pytest.mark.slow
def test_tunnelling_from_band_to_band_and_to_traps() -> None:
    devices = Varied(tunnelling(), ["layers.i.n", "layers.i.thickness", "temperature"])
    assert_slopes(devices, [1e15, 1.0, 300.0], Problem((-10.0, -20.0)))


@pytest.mark.slow
@pytest.mark.parametrize("bias", [-5.0, 0.4])
def test_neutral_layers_at_contacts_with_velocities_that_saturate(bias: float) -> None:
    """Mobilities of exponent 1 depend on the absolute value of a field that is nearly 0 beside the contacts."""
    light = {"wavelength": 1550.0, "power": 1e-3, "side": "cathode"}
    layers = [
        {"name": "p", "material": "InGaAs", "thickness": 0.3, "p": 1e18},
        {"name": "i", "material": "InGaAs", "thickness": 1.0, "n": 1e15},
        {"name": "n", "material": "InP", "thickness": 0.5, "n": 1e18},
    ]
    devices = Varied(tunnelling(tunnelling={}, layers=layers, light=light), ["layers.p.p", "layers.n.n", "temperature"])
    assert_slopes(devices, [1e18, 1e18, 300.0], Problem((bias,), ("dark", "lit"), ionisation=False))


@pytest.mark.slow
def test_surfaces_and_contacts_that_recombine_slowly() -> None:
    keys = ["layers.p.p", "surfaces[0].velocity_n", "contacts.anode.recombination"]
    assert_slopes(Varied(surfaces(), keys), [1e17, 1e4, 1e3], Problem((0.5, -1.0)))


@pytest.mark.slow
def test_dopants_that_are_not_all_ionised() -> None:
    devices = Varied(frozen(), ["layers.p.p", "layers.p.thickness", "temperature"])
    assert_slopes(devices, [3e17, 5.0, 200.0], Problem((0.7, -1.0)))


@pytest.mark.slow
def test_barriers_that_follow_the_field() -> None:
    devices = Varied(lowered(), ["layers.InP.n", "layers.InP.thickness", "contacts.cathode.barrier"])
    assert_slopes(devices, [1e15, 2.0, 0.65], Problem((2.0,), ("dark", "lit")))


@pytest.mark.slow
def test_the_remainder_falls_with_the_square_of_the_step() -> None:
    """Taylor's theorem along a direction in which all parameters change, for a device with all these effects."""
    contacts = {"anode": {"recombination": 1e4}, "cathode": {"kind": "schottky", "barrier": 0.2, "image_force": True}}
    changes = {"surfaces": [{"x": 0.25, "velocity_n": 1e5, "velocity_p": 1e5}], "statistics": "fermi-dirac"}
    made = merged(tunnelling(**changes), {"contacts": contacts})
    keys = ["layers.p.p", "layers.i.n", "layers.i.thickness", "surfaces[0].velocity_n", "contacts.cathode.barrier"]
    devices, x = Varied(made, keys), np.array([1e18, 1e15, 1.0, 1e5, 0.2])
    problem = Problem((-15.0,), tolerance=ACCURATE)
    found = slopes(devices, list(x), problem)
    direction = x * np.array([1.0, -2.0, 0.5, 1.0, 0.5])
    left = []
    for size in (4e-3, 2e-3, 1e-3):
        seen = solved(devices(list(x + size * direction)), problem)[0]["J"]
        left.append(seen - found.values["J"][0] - size * float(found.slopes["J"][0] @ direction))
    assert left[0] / left[1] == pytest.approx(4.0, rel=0.03)
    assert left[1] / left[2] == pytest.approx(4.0, rel=0.03)


@pytest.mark.slow
def test_a_surface_and_tunnelling_with_two_axes() -> None:
    side = {"y": 0.0, "x": [0.0, 2.0], "velocity_n": 1e5, "velocity_p": 1e5}
    mesh = {"graded": {"first": "20 nm", "growth": 2.0, "cap": "400 nm"}}
    made = tunnelling(surfaces=[side], width=3.0, columns=4, mesh=mesh)
    devices = Varied(made, ["layers.i.n", "surfaces[0].velocity_p", "width"])
    assert_slopes(devices, [1e15, 1e5, 3.0], Problem((-15.0,)))


@pytest.mark.slow
def test_two_axes() -> None:
    mesh = {
        "graded": {"first": "40 nm", "growth": 2.0, "cap": "400 nm"},
        "across": {"first": "200 nm", "growth": 2.0, "cap": "2 um"},
    }
    planar = merged(table("planar"), {"mesh": mesh})
    devices = Varied(planar, ["regions.diffused.doping", "layers[1].thickness", "width"])
    x = [planar["regions"][0]["doping"], planar["layers"][1]["thickness"], planar["width"]]
    assert_slopes(devices, x, Problem((-1.0,)))


@pytest.mark.slow
def test_the_photocurrent_is_proportional_to_weak_light() -> None:
    """Without absorption elsewhere, d ln(J_lit - J) / d ln(flux) = 1, and the dark current does not change."""
    light = {"wavelength": 850.0, "flux": 1e10}
    devices = Varied(schottky() | {"light": light}, ["light.flux"])
    found = slopes(devices, [1e10], Problem((2.0,), ("dark", "lit")))
    photo = found.values["J_lit"] - found.values["J"]
    assert found.slopes["J"].tolist() == [[0.0]]
    assert 1e10 * found.slopes["J_lit"][0, 0] == pytest.approx(photo[0], rel=1e-6)


@pytest.mark.slow
def test_the_charge_for_a_wanted_gain() -> None:
    devices = Varied(avalanche(), ["layers.Charge.n"])
    problem = Problem((-60.0,), ("dark", "lit"), gain=True)

    def deviation(dose: float) -> tuple[float, float]:
        found = slopes(devices, [dose], problem)
        gain = float(found.values["gain"][0])
        return 1.0 / gain - 0.1, -float(found.slopes["gain"][0, 0]) / gain**2

    best = root_scalar(deviation, x0=3e16, fprime=True, rtol=1e-10)
    assert best.converged
    assert best.function_calls <= 8
    assert solved(devices([best.root]), problem)[0]["gain"] == pytest.approx(10.0, rel=1e-7)


@pytest.mark.parametrize(
    ("x", "changes", "words"),
    [
        ([0.0], {}, "layers.p.p is 0, and its step 0"),
        ([float("nan")], {}, "the parameters are [nan]"),
        ("many", {}, "the parameters are 'many'"),
        ([], {}, "give a list of one or more finite numbers"),
        ([[1e17]], {}, "the parameters are [[1e+17]]"),
        ([1e17, 1.0], {}, "2 parameters, but 1 names"),
        ([1e17], {"steps": [-1.0]}, "its step -1"),
        ([1e17], {"steps": [1.0]}, "its step 1"),
        ([1e17], {"steps": [1e10, 1e10]}, "2 steps for 1 parameters"),
        ([1e17], {"names": ["dose", "depth"]}, "1 parameters, but 2 names"),
        ([1e17], {"steps": [2e17]}, "layers.p.p = -1"),
        ([1e17], {"problem": Problem((0.0,), scheme="gummel")}, "scheme = 'gummel'"),
        ([1e17], {"problem": Problem((0.0,), quasistatic_capacitance=True)}, "quasistatic_capacitance = True"),
        ([1e17], {"problem": Problem(current=(1.0,))}, "current = (1.0,)"),
        ([1e17], {"problem": Problem((0.0,), mode="noise")}, "mode = 'noise'"),
    ],
)
def test_wrong_arguments_are_refused(x: Any, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(CaseError, match=re.escape(words)):
        slopes(Varied(silicon(), ["layers.p.p"]), x, **({"problem": Problem((0.0,))} | changes))


def test_meshes_that_do_not_move_along_are_refused() -> None:
    even = silicon() | {"mesh": {"nodes": 2001}}
    with pytest.raises(CaseError, match=r"does not move along with layers.p.thickness"):
        slopes(Varied(even, ["layers.p.thickness"]), [5.0], Problem((0.0,)))
    jumping = Varied(silicon(), ["layers.p.thickness"])
    counts = {thick: jumping([thick]).nodes[0].size for thick in (5.0, 5.05, 5.1, 5.15, 5.2, 5.25)}
    assert len(set(counts.values())) > 1
    with pytest.raises(CaseError, match=r"\d+ or \d+ nodes\) does not move along with layers.p.thickness"):
        slopes(jumping, [5.1], Problem((0.0,)), steps=[0.2])


def test_what_has_no_derivative_is_refused() -> None:
    def devices(x: Any) -> Any:
        changes = {"emission": bool(x[0] > 1.0), "contacts": {"anode": {"kind": "schottky", "barrier": 0.65}}}
        return device_of(read_settings("photodiode", merged(schottky(), changes)), examples()["msm"].parent)

    with pytest.raises(CaseError, match="x\\[0\\] changes which effects the device includes"):
        slopes(devices, [1.0], Problem((0.0,)))

    def turned(x: Any) -> Any:
        sides = [{"p": x[0] - 1e17}, {"n": 2e17 - x[0]}] if x[0] > 1e17 else [{"n": 1e17 - x[0]}, {"p": x[0]}]
        layers = [{"name": name, "material": "Si", "thickness": 5.0, **side} for name, side in zip("pn", sides)]
        return device_of(read_settings("photodiode", surfaces() | {"layers": layers}), examples()["si-1"].parent)

    with pytest.raises(CaseError, match="x\\[0\\] changes which effects the device includes"):
        slopes(turned, [1e17 * (1 + 1e-7)], Problem((0.0,)), steps=[1e11])
    table_ = merged(table("planar"), {"contacts": {"cathode": {"at": "top", "y": [12.0, 20.0]}}})
    with pytest.raises(CaseError, match="contacts are on the same side"):
        slopes(Varied(table_, ["temperature"]), [300.0], Problem((0.0,)))


@pytest.mark.slow
def test_voltages_beyond_breakdown_are_refused() -> None:
    with pytest.raises(RunError, match=r"breakdown at -6.*before the voltage -80 V"):
        slopes(Varied(avalanche(), ["layers.Charge.n"]), [3e16], Problem((-40.0, -80.0)))


def test_keys_of_a_case() -> None:
    for keys in ("layers.p.p", [], [1]):
        with pytest.raises(CaseError, match="the entries that vary"):
            Varied(silicon(), keys)  # type: ignore[arg-type]
    with pytest.raises(CaseError, match="there is no entry 'q'"):
        Varied(silicon(), ["layers.q.p"])([1e17])
    with pytest.raises(CaseError, match="2 values for 1 entries"):
        Varied(silicon(), ["layers.p.p"])([1e17, 2.0])
    with pytest.raises(CaseError, match="unknown key"):
        Varied(silicon(), ["layers.p.pp"])([1e17])
    devices = Varied(silicon(), ["photodiode.layers.p.p", "layers[1].n"])
    assert devices([1e16, 2e16]).doping[[0, -1]].tolist() == [-1e16, 2e16]
    assert devices.problem.bias[-1] == 0.8
