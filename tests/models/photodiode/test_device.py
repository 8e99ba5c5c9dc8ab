"""Devices from their layers: where nodes lie, what belongs to them, and what is between them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from minga.errors import CaseError
from minga.models.photodiode.structure.build import device_from
from minga.models.photodiode.structure.constants import CHARGE, VACUUM
from minga.models.photodiode.structure.depletion import Depletion, built_in_voltage
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.ionisation import coefficient, shipped_sets
from minga.models.photodiode.structure.materials_file import shipped_materials
from minga.models.photodiode.structure.mesh import graded, placed, spaced, uniform
from minga.models.photodiode.structure.regions import Region
from minga.models.photodiode.structure.stack import Contact, Layer, Light, Stack
from minga.models.photodiode.structure.temperature import gap_at
from minga.output.variables import variable_of
from minga.space.field import Field

MATERIALS = shipped_materials()
ENDS = (Contact("anode", "top"), Contact("cathode", "bottom"))


def diode(*, left: float = -1e17, right: float = 1e17, **options: object) -> Stack:
    silicon = MATERIALS["Si"]
    layers = (Layer("p", silicon, 5e-4, (left, left)), Layer("n", silicon, 5e-4, (right, right)))
    return Stack(layers, ENDS, **options)  # type: ignore[arg-type]


MESH = graded([0, 5e-4, 1e-3], 1e-8, 1.05, 2e-6, [False] * 3, [False, True, False])


def test_mesh_grows_from_the_junction() -> None:
    """The mesh that diodes are compared on: 679 nodes, symmetric to the last bit, one on the junction."""
    assert MESH.nodes.size == 679
    assert np.array_equal(MESH.lengths, MESH.lengths[::-1])
    assert MESH.nodes[339] == 5e-4
    assert MESH.lengths.sum() == pytest.approx(1e-3, rel=1e-14)
    assert np.allclose(np.diff(MESH.nodes), MESH.lengths, rtol=1e-9)
    assert MESH.lengths.max() <= 2e-6
    growth = MESH.lengths[340:430] / MESH.lengths[339:429]
    assert np.allclose(growth, 1.05, rtol=1e-12)


def test_a_change_of_material_lies_between_nodes() -> None:
    ends = [0.0, 1e-4, 2.5e-4, 3e-4]
    mesh = graded(ends, 1e-7, 1.1, 5e-6, [False, True, False, False], [True, True, True, True])
    assert np.abs(mesh.faces - ends[1]).min() < 1e-18
    assert np.abs(mesh.nodes - ends[1]).min() == pytest.approx(0.5e-7, rel=1e-6)
    assert np.abs(mesh.nodes - ends[2]).min() < 1e-18
    assert mesh.volumes.sum() == pytest.approx(3e-4, rel=1e-13)
    assert (mesh.lengths > 0).all()


def test_the_grid_has_the_nodes_of_the_device() -> None:
    """Values live on nodes; what lies between them has faces half-way."""
    device = device_from(diode(), graded([0.0, 5e-4, 1e-3], 1e-7, 1.3, 1e-4, [False] * 3, [False, True, False]))
    (x,) = variable_of(Field("n", device.grid)).coordinates
    assert x.values == pytest.approx(1e4 * device.nodes[0], rel=1e-15)
    assert (x.values[0], x.values[-1]) == (0.0, 10.0)
    assert x.attributes["location"] == "node"
    (between,) = variable_of(Field("e", device.grid, centre="x")).coordinates
    assert between.values[1:-1] == pytest.approx(0.5e4 * (device.nodes[0][1:] + device.nodes[0][:-1]), rel=1e-12)
    assert (
        "node" not in variable_of(Field("n", device_from(diode(), spaced([9], [1e-4])).grid)).coordinates[0].attributes
    )


def test_rows_have_their_node_in_the_middle() -> None:
    mesh = spaced([4, 2], [1e-5, 2e-5])
    assert np.allclose(mesh.nodes, [0.5e-5, 1.5e-5, 2.5e-5, 3.5e-5, 5e-5, 7e-5])
    assert np.allclose(mesh.volumes, np.diff(mesh.faces))
    assert mesh.volumes.sum() == pytest.approx(8e-5)


def test_doping_on_the_junction_is_that_of_its_volume() -> None:
    device = device_from(diode(), MESH)
    assert device.doping[339] == 0.0
    assert (device.doping[:339] == -1e17).all()
    assert (device.doping[340:] == 1e17).all()
    lopsided = device_from(diode(), placed([0.0, 4e-4, 5e-4, 8e-4, 1e-3]))
    assert lopsided.doping[2] == pytest.approx((-1e17 * 1 + 1e17 * 3) / 4)
    assert [(layer.first, layer.last) for layer in device.layers] == [(0, 338), (339, 678)]


def test_silicon_has_the_intrinsic_density_that_is_given() -> None:
    device = device_from(diode(), MESH)
    assert (device.nie == 1e10).all()
    assert (device.theta_n == 0).all()
    assert (device.theta_p == 0).all()
    assert built_in_voltage(device) == pytest.approx(0.833370011, abs=1e-9)


def test_grading_is_linear_between_its_ends() -> None:
    layer = Layer("graded", MATERIALS["Si"], 1e-4, (1e15, 3e15))
    device = device_from(Stack((layer,), ENDS), uniform(1e-4, 5))
    assert np.allclose(device.doping, [1e15, 1.5e15, 2e15, 2.5e15, 3e15])


def apd(rows_joined: int = 5) -> Device:
    named = (
        ("Inp1", 400, "InP", -1e18), ("Mult", 400, "InP", 1e15), ("Charge", 300, "InP", 3e16),
        ("Hole", 100, "InGaAsP", 5e15), ("Absorp", 120, "InGaAs", 1e15), ("Doping", 100, "InP", 1e17),
        ("Inp2", 400, "InP", 1e18),
    )  # fmt: skip
    layers = tuple(Layer(name, MATERIALS[m], rows * 2.5e-7, (n, n)) for name, rows, m, n in named)
    stack = Stack(layers, ENDS, light=Light(1550.0, flux=7.8e15))
    return device_from(stack, spaced([rows // rows_joined for _, rows, _, _ in named], [rows_joined * 2.5e-7] * 7))


def test_the_apd_is_the_one_of_the_paper() -> None:
    device = apd(1)
    rows = [(layer.name, layer.first + 1, layer.last + 1) for layer in device.layers]
    assert rows == [
        ("Inp1", 1, 400), ("Mult", 401, 800), ("Charge", 801, 1100), ("Hole", 1101, 1200), ("Absorp", 1201, 1320),
        ("Doping", 1321, 1420), ("Inp2", 1421, 1820),
    ]  # fmt: skip
    assert built_in_voltage(device) == pytest.approx(1.296541510, abs=1e-9)
    assert CHARGE * float(device.generation @ device.volumes) == pytest.approx(2.09e-4, rel=1e-3)
    assert device.absorption[1200:1320].min() == 6100.0
    assert not device.absorption[:1200].any()


def test_bands_step_as_the_offsets_say() -> None:
    """Valence band of InGaAs 0.346 eV above that of InP, conduction band 0.258 eV below."""
    device = apd()
    vt = device.thermal_voltage
    conduction = vt * (np.log(device.nc / 1e10) - device.theta_n)
    valence = vt * (-np.log(device.nv / 1e10) - device.theta_p)
    indium_phosphide, absorber = device.layers[5].first, device.layers[4].last
    assert conduction[indium_phosphide] - conduction[absorber] == pytest.approx(0.258, abs=1e-9)
    assert valence[absorber] - valence[indium_phosphide] == pytest.approx(0.346, abs=1e-9)


def test_nothing_ionises_across_a_change_of_material() -> None:
    device = apd()
    silent = [int(k) for k in np.flatnonzero(device.ionisation_n[0].a[0] == 0)]
    edges = [device.layers[k].first for k in (3, 4, 5)]
    assert silent == [0, *edges, device.doping.size]
    assert device.ionisation_n[0].pieces == 3


@pytest.mark.slow
def test_depletion_foretells_punch_through_and_breakdown() -> None:
    """As solved for: 49.9 V and 66.6 V."""
    depletion = Depletion.of(apd())
    assert depletion is not None
    assert depletion.reaches(4, strength=5e3) == pytest.approx(-49.9, abs=0.3)
    assert depletion.breakdown() == pytest.approx(-66.6, abs=0.3)


@pytest.mark.parametrize(
    ("width", "name", "voltage"),
    [(0.5e-4, "cook", 25.3), (1e-4, "cook", 44.0), (1e-4, "umebu", 49.0), (2e-4, "cook", 77.9)],
)
def test_ionisation_integral_of_a_constant_field(width: float, name: str, voltage: float) -> None:
    """Breakdown of an ideal p-i-n: w = ln(beta/alpha)/(beta - alpha)."""
    chosen = shipped_sets()[name]
    fields = np.linspace(3e5, 8e5, 200_001)
    alpha, beta = coefficient(chosen.electrons, fields), coefficient(chosen.holes, fields)
    place = np.argmax(np.log(beta / alpha) / (beta - alpha) < width)
    assert fields[place] * width == pytest.approx(voltage, rel=2e-3)


def test_two_axes_repeat_the_layers_and_add_regions() -> None:
    ring = Region("ring", (0.0, 6e-4), (0.0, 1e-4), -1e18)
    across = spaced([5], [1e-4])
    device = device_from(diode(regions=(ring,)), MESH, across)
    assert device.grid.shape == (679, 5)
    assert device.volumes.sum() == pytest.approx(1e-3 * 5e-4)
    assert (device.doping[device.nodes[0] <= 6e-4, 0] == -1e18).all()
    assert (device.doping[:, 1] == device_from(diode(), MESH).doping).all()
    assert device.areas[0].shape == (680, 5)
    assert device.areas[1].shape == (679, 6)
    assert not device.areas[1][:, [0, -1]].any()
    assert device.areas[0][1:-1].sum(axis=1) == pytest.approx(5e-4)
    with pytest.raises(CaseError, match="'ring' in a device with one axis"):
        device_from(diode(regions=(ring,)), MESH)


def test_a_round_device_is_made_of_rings() -> None:
    ring = Region("ring", (0.0, 6e-4), (1e-4, 2.5e-4), -1e18)
    device = device_from(diode(regions=(ring,)), MESH, replace(spaced([5], [1e-4]), radial=True))
    whole = math.pi * 25e-8
    assert device.volumes.sum() == pytest.approx(1e-3 * whole)
    assert device.areas[0][1:-1].sum(axis=1) == pytest.approx(whole)
    assert device.areas[1][3, 1:-1] == pytest.approx(2 * math.pi * 1e-4 * np.arange(1, 5) * MESH.volumes[3])
    share = (2.5**2 - 2.0**2) / (3.0**2 - 2.0**2)  # of the third ring's area
    assert device.doping[0, :4] == pytest.approx(
        [device.doping[0, 0], -1e18, share * -1e18 + (1 - share) * device.doping[0, 0], device.doping[0, 0]]
    )


@pytest.mark.parametrize(("cells", "expected"), [(10, 2.8639449e-12), (20, 2.8367796e-12), (40, 2.8293677e-12)])
def test_the_capacitance_between_two_cylinders(cells: int, expected: float) -> None:
    """Of radii 1 and 10 um, in silicon: 2.8268240e-12 F/cm, approached with the square of the spacing."""
    mesh = uniform(9e-4, cells + 1)
    rings = replace(mesh, nodes=mesh.nodes + 1e-4, faces=mesh.faces + 1e-4, radial=True)
    found = 11.7 * VACUUM / (rings.lengths / rings.openings[1:-1]).sum()
    assert found == pytest.approx(expected, rel=2e-8)


def test_a_schottky_contact_has_the_metals_carriers() -> None:
    contacts = (Contact("anode", "top", kind="schottky", barrier=0.7), Contact("cathode", "bottom"))
    device = device_from(Stack((Layer("n", MATERIALS["Si"], 1e-4, (1e15, 1e15)),), contacts), uniform(1e-4, 11))
    electrons = 2.8e19 * np.exp(-0.7 / device.thermal_voltage)
    assert device.doping[0] == pytest.approx(electrons - 1e20 / electrons)
    assert (device.doping[1:] == 1e15).all()


def test_recombination_is_switched_off_by_kind() -> None:
    device = device_from(diode(recombination=("srh",)), MESH)
    assert not device.radiative.any()
    assert not device.auger_n.any()
    assert (device.tau_n == 1e-6).all()
    assert np.isinf(device_from(diode(recombination=()), MESH).tau_p).all()


def test_mobility_falls_with_doping() -> None:
    device = device_from(diode(mobility="doping-field"), MESH)
    assert device.mobility_n[0] == pytest.approx(65 + (1330 - 65) / (1 + (1e17 / 8.5e16) ** 0.72))
    assert device.field_mobility
    assert device.velocity_n[0] == 1.1e7


def test_carriers_of_silicon_carbide_are_slowed_by_dopants_fields_and_heat() -> None:
    """Mobilities of 4H-SiC at 1e17 donors and 1e18 acceptors; velocities that saturate at 350 K."""
    layers = tuple(Layer(k, MATERIALS["4H-SiC"], 1e-4, (n, n)) for k, n in (("p", -1e18), ("n", 1e17)))
    device = device_from(Stack(layers, ENDS, mobility="doping-field", temperature=350.0), uniform(2e-4, 9))
    warm = 350.0 / 300.0
    assert device.mobility_n[-1] == pytest.approx(40 + (950 * warm**-2.4 - 40) / (1 + (1e17 / 1.94e17) ** 0.61))
    assert device.mobility_p[0] == pytest.approx(15.9 + (125 * warm**-2.15 - 15.9) / (1 + (1e18 / 1.76e19) ** 0.34))
    assert device.velocity_n[0] == pytest.approx(2.2e7 * warm**-0.44)
    assert "saturation velocities" not in device.unheated


def test_gap_and_intrinsic_density_follow_the_temperature() -> None:
    device = device_from(diode(temperature=350.0), MESH)
    gap = 1.12 - 4.73e-4 * (350**2 / 986 - 300**2 / 936)
    expected = 1e10 * (350 / 300) ** 1.5 * np.exp(-gap / (2 * device.thermal_voltage) + 1.12 / (2 * 0.0258519998))
    assert device.nie[0] == pytest.approx(expected, rel=1e-6)


def test_okuto_and_crowell_depend_on_the_temperature() -> None:
    warm = shipped_sets()["okuto-crowell"].at(350.0)
    field = 3e5
    expected = 0.426 * (1 + 50 * 3.05e-4) * field * np.exp(-((4.81e5 * (1 + 50 * 6.86e-4) / field) ** 2))
    assert coefficient(warm.electrons, field) == pytest.approx(expected)


def test_pieces_of_a_set_join() -> None:
    """Neighbouring ranges of `cook` differ by less than 13 % where they meet; beta/alpha falls from 4.4 to 1.25."""
    chosen = shipped_sets()["cook"]
    for pieces in (chosen.electrons, chosen.holes):
        for piece in pieces[:-1]:
            below, above = coefficient(pieces, np.array([piece.to * (1 - 1e-9), piece.to]))
            assert above / below == pytest.approx(1, abs=0.13)
    ratio = coefficient(chosen.holes, np.array([2.4e5, 7.7e5])) / coefficient(
        chosen.electrons, np.array([2.4e5, 7.7e5])
    )
    assert ratio == pytest.approx([4.41, 1.25], abs=0.01)


def test_light_from_the_anode_is_strongest_there() -> None:
    light = Light(850.0, power=1e-3, side="anode")
    device = device_from(diode(light=light), MESH)
    assert device.generation[0] == device.generation.max()
    absorbed = float(device.generation @ device.volumes)
    photons = 1e-3 / (6.62607015e-34 * 2.99792458e10 / 850e-7)
    assert absorbed == pytest.approx(photons * (1 - np.exp(-1e-3 * device.absorption[0])), rel=1e-6)


def test_mobilities_and_velocities_follow_the_temperature() -> None:
    """The lattice slows carriers as 300 K/T to a power, impurities as Sotoodeh's reference density says."""
    warm = 350.0 / 300.0
    plain = device_from(diode(temperature=350.0), MESH)
    assert plain.mobility_n[0] == pytest.approx(1330 * warm**-2.42)
    assert plain.mobility_p[0] == pytest.approx(495 * warm**-2.2)
    doped = device_from(diode(temperature=350.0, mobility="doping-field"), MESH)
    largest, reference = 1330 * warm**-2.42, 8.5e16 * warm**2.4
    assert doped.mobility_n[0] == pytest.approx(65 + (largest - 65) / (1 + (1e17 / reference) ** 0.72))
    assert doped.velocity_n[0] == pytest.approx(1.1e7 * warm**-0.87)
    given = Layer("mine", MATERIALS["Si"], 1e-4, (1e15, 1e15), changes={"mobility_n": 1000.0})
    assert device_from(Stack((given,), ENDS, temperature=350.0), uniform(1e-4, 5)).mobility_n[2] == 1000.0


@pytest.mark.parametrize("temperature", [200.0, 250.0, 350.0, 400.0])
def test_gap_of_ingaas_lies_between_those_of_gaas_and_inas(temperature: float) -> None:
    """Varshni's formula for the alloy is a fit; here is what it is fitted to (Vurgaftman 2001, x = 0.47, bowing)."""

    def gap(kelvin: float) -> float:
        gaas = 1.519 - 0.5405e-3 * kelvin**2 / (kelvin + 204)
        inas = 0.417 - 0.276e-3 * kelvin**2 / (kelvin + 93)
        return 0.47 * gaas + 0.53 * inas - 0.47 * 0.53 * 0.477

    assert gap(300.0) == pytest.approx(0.737, abs=1e-3)
    change = gap_at(MATERIALS["InGaAs"], temperature) - MATERIALS["InGaAs"].gap
    assert change == pytest.approx(gap(temperature) - gap(300.0), abs=1e-4)


def test_what_stays_as_at_300_kelvin_is_known() -> None:
    layers = (Layer("p", MATERIALS["InP"], 1e-4, (-1e17, -1e17)), Layer("n", MATERIALS["InGaAs"], 1e-4, (1e16, 1e16)))
    mesh = graded([0, 1e-4, 2e-4], 1e-7, 1.2, 5e-6, [False, True, False], [True] * 3)
    stack = Stack(layers, ENDS, temperature=320.0, mobility="field", recombination=("srh",))
    assert device_from(stack, mesh).unheated == {
        "saturation velocities": ("InP", "InGaAs"), "ionisation": ("cook", "pearsall"), "lifetimes": (),
    }  # fmt: skip
    assert not device_from(Stack(layers, ENDS), mesh).unheated


def test_impurities_of_both_kinds_slow_carriers() -> None:
    """A compensated layer has the mobility of all its impurities, not of what they leave over."""
    silicon = MATERIALS["Si"]
    one = Layer("one", silicon, 1e-4, (1e16, 1e16), impurities=(3e17, 3e17))
    device = device_from(Stack((one,), ENDS, mobility="doping"), uniform(1e-4, 5))
    assert (device.doping == 1e16).all()
    assert device.mobility_n[2] == pytest.approx(65 + (1330 - 65) / (1 + (3e17 / 8.5e16) ** 0.72))
