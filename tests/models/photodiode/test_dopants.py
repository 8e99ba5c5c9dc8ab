"""Dopants that narrow the gap, and dopants that keep their carriers."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minga.case.load import read_settings
from minga.errors import CaseError
from minga.models.photodiode.case import device_of, make
from minga.models.photodiode.case_layers import materials_of
from minga.models.photodiode.model import photodiode
from minga.models.photodiode.solver.coefficient_values import neutral_potential
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.constants import thermal_voltage
from minga.models.photodiode.structure.device import Device

sys.path.insert(0, str(Path(__file__).parents[2]))

from physics.photodiodes import solved

OHMIC = {"anode": "ohmic", "cathode": "ohmic"}
ACCEPTORS, DONORS = 3e17, 1e16


def made(material: str = "Si", **table: Any) -> Device:
    layers = [
        {"material": material, "thickness": 0.5, "p": ACCEPTORS},
        {"material": material, "thickness": 2.0, "n": DONORS},
    ]
    return device_of(read_settings("photodiode", {"contacts": OHMIC, "layers": layers} | table), Path())


def test_narrowing_of_silicon() -> None:
    """13.4 meV at 3e17, half of it in each band; the same gap elsewhere as without."""
    device, plain = made(gap_narrowing=True), made()
    log = math.log(ACCEPTORS / 1.3e17)
    narrower = 6.92e-3 * (log + math.sqrt(log * log + 0.5))
    assert narrower == pytest.approx(13.37e-3, rel=2e-3)
    assert device.narrowing is not None
    assert device.narrowing[0] == pytest.approx(narrower, rel=1e-12)
    shift = 0.5 * narrower / thermal_voltage(300.0)
    assert device.theta_n[0] - plain.theta_n[0] == pytest.approx(shift, rel=1e-9)
    assert device.theta_p[0] - plain.theta_p[0] == pytest.approx(-shift, rel=1e-9)
    assert (device.nie[0] / plain.nie[0]) ** 2 == pytest.approx(math.exp(2 * shift), rel=1e-9)


def test_narrowing_of_indium_phosphide() -> None:
    """Jain and Roulston's form: 113 meV for 1e18 donors, 20 meV for 1e18 acceptors, which are not alike."""
    layers = [{"material": "InP", "thickness": 0.2, kind: 1e18} for kind in ("p", "n")]
    device = made(layers=layers, gap_narrowing=True)
    assert device.narrowing is not None
    donors = 17.2e-9 * 1e6 + 2.62e-7 * 10**4.5 + 98.4e-12 * 1e9
    acceptors = 10.3e-9 * 1e6 + 4.43e-7 * 10**4.5 + 3.38e-12 * 1e9
    assert device.narrowing[-1] == pytest.approx(donors, rel=1e-12)
    assert device.narrowing[0] == pytest.approx(acceptors, rel=1e-12)


def holes(temperature: float) -> float:
    """Holes of uncompensated boron in silicon, by the quadratic equation p (1 + 4 p/p1) = N, p1 = Nv exp(-E/kT)."""
    energy = 0.045 - 3.037e-8 * ACCEPTORS ** (1 / 3)
    states = 1.04e19 * (temperature / 300.0) ** 1.5
    half = states * math.exp(-energy / thermal_voltage(temperature)) / 8.0
    return math.sqrt(half * half + 2.0 * half * ACCEPTORS) - half


@pytest.mark.parametrize("temperature", [300.0, 120.0, 77.0])
def test_neutral_layers_have_what_dopants_release(temperature: float) -> None:
    device = made(incomplete_ionisation=True, temperature=temperature)
    level = device.theta_p[0] + neutral_potential(device)[0]
    assert 1e10 * math.exp(-level) == pytest.approx(holes(temperature), rel=1e-9)
    assert holes(77.0) < 0.3 * holes(300.0) < 0.3 * ACCEPTORS


@pytest.mark.slow
@pytest.mark.parametrize("statistics", ["boltzmann", "fermi-dirac"])
@pytest.mark.parametrize("options", [{"gap_narrowing": True}, {"incomplete_ionisation": True, "temperature": 150.0}])
def test_schemes_and_ranks_agree(options: dict[str, Any], statistics: str) -> None:
    device = made(statistics=statistics, **options)
    volts = (0.0, 0.4 if device.temperature == 300.0 else 0.8, -2.0)
    newton, gummel, ranks = (
        solved(device, Problem(volts, ionisation=False, scheme=scheme), ranks=ranks)
        for scheme, ranks in (("newton", 1), ("gummel", 1), ("newton", 3))
    )
    assert newton[0]["J"] == 0.0
    assert [row["J"] for row in gummel[1:]] == pytest.approx([row["J"] for row in newton[1:]], rel=1e-6)
    assert [row["J"] for row in ranks] == [row["J"] for row in newton]
    if device.dopants is not None and statistics == "boltzmann":
        assert newton[1]["fields"]["holes"][0] == pytest.approx(holes(150.0), rel=1e-9)


@pytest.mark.slow
def test_depleted_layers_are_ionised() -> None:
    """Where there are no carriers all dopants are charged: the field is that of full ionisation."""
    cold = {"temperature": 77.0, "incomplete_ionisation": True}
    problem = Problem((-5.0,), ionisation=False)
    kept, full = (solved(made(**options), problem)[0]["E_max"] for options in (cold, {"temperature": 77.0}))
    assert kept == pytest.approx(full, rel=5e-3)


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({"material": "InGaAs", "gap_narrowing": True}, "narrowing of InGaAs"),
        ({"material": "InP", "incomplete_ionisation": True}, "donor and acceptor of InP"),
        ({"incomplete_ionisation": True, "scheme": "pointwise"}, "incomplete ionisation"),
    ],
)
def test_refusals(table: dict[str, Any], word: str) -> None:
    with pytest.raises(CaseError, match=word) as caught:
        photodiode(made(**table), Problem((0.0,), scheme=table.get("scheme", "newton")))
    assert caught.value.remedy


def test_own_levels(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        "[SiC]\ngap = 3.26\naffinity = 3.24\npermittivity = 9.78\nnc = 1.7e19\nnv = 2.5e19\nmobility_n = 900.0\n"
        "mobility_p = 100.0\ntau_n = 1e-6\ntau_p = 1e-6\nacceptor = {energy = 0.2, degeneracy = 4.0}\n"
        "narrowing = {n = [1e-8, 0.0, 0.0], p = [0.0, 0.0, 0.0]}\n"
    )
    table = {
        "layers": [{"material": "SiC", "thickness": 1.0, "p": 1e18}], "contacts": OHMIC, "materials": "own.toml",
        "incomplete_ionisation": True, "gap_narrowing": True,
    }  # fmt: skip
    settings = read_settings("photodiode", table)
    assert materials_of(settings, tmp_path)["SiC"].acceptor is not None
    device = device_of(settings, tmp_path)
    assert device.dopants is not None
    bound = 4.0 * math.exp(0.2 / thermal_voltage(300.0)) / 2.5e19
    np.testing.assert_allclose(device.dopants.bound_p, bound, rtol=1e-12)
    assert not device.dopants.donors.any()


def test_capacitance_is_refused() -> None:
    table = {
        "layers": [{"material": "Si", "thickness": 1.0, "p": 1e18}], "contacts": OHMIC, "bias": 0.0,
        "incomplete_ionisation": True, "quasistatic_capacitance": True,
    }  # fmt: skip
    from minga.case.settings import GridSettings

    with pytest.raises(CaseError, match="quasi-static"):
        make(read_settings("photodiode", table), GridSettings(), Path())
