"""Analyses of a case: frequencies, circuits and tables, and what is refused."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from command_line import in_process
from minga.case.examples import examples
from minga.case.load import read_settings
from minga.errors import CaseError
from minga.models.photodiode.case import device_of, problem_of
from minga.models.photodiode.model import photodiode
from minga.models.photodiode.solver.circuit import Circuit
from minga.models.photodiode.solver.problem import Problem
from minga.solve.complex_numbers import Complex


def problem(example: str = "si-1", **changes: Any) -> Problem:
    table = tomllib.loads(examples()[example].read_text())["photodiode"]
    return problem_of(read_settings("photodiode", table | changes))


def test_frequencies_and_circuits_of_a_case() -> None:
    assert problem().frequencies == ()
    assert problem(mode="cv").frequencies == (1e6,)
    assert problem(mode="cv", cv={"frequency": "10 kHz"}).frequencies == (1e4,)
    assert problem(mode="ac", ac={"frequencies": ["1 MHz", 2e9]}).frequencies == (1e6, 2e9)
    found = problem(mode="ac", ac={"frequencies": {"from": "1 kHz", "to": "1 MHz", "per_decade": 2}}).frequencies
    assert found == (1e3, 3162.27766017, 1e4, 31622.7766017, 1e5, 316227.766017, 1e6)
    found = problem(mode="ac", ac={"frequencies": {"from": 1.0, "to": 50.0, "per_decade": 1}}).frequencies
    assert found == (1.0, 10.0, 50.0)
    assert len(problem(mode="ac").frequencies) == 51
    options = {"frequencies": [1e9], "area": "100 um2", "series": 5.0, "pad": "20 fF"}
    assert problem(mode="ac", ac=options).circuit == Circuit(1e-6, 50.0, 5.0, 2e-14)
    assert problem(mode="noise", noise={"area": 1e-5, "load": "1 kohm"}).circuit == Circuit(1e-5, 1e3)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ac": {}}, "[photodiode.ac] in a case whose mode is 'iv'"),
        ({"mode": "ac", "cv": {}}, "[photodiode.cv] in a case whose mode is 'ac'"),
        ({"mode": "spectrum"}, "photodiode.mode"),
        ({"mode": "ac", "ac": {"frequencies": []}}, "frequencies is an empty list"),
        ({"mode": "ac", "ac": {"frequencies": [0.0]}}, "photodiode.ac.frequencies[0]: expected a number above 0"),
        ({"mode": "ac", "ac": {"frequencies": ["-1 MHz"]}}, "photodiode.ac.frequencies[0]"),
        ({"mode": "ac", "ac": {"frequencies": [float("nan")]}}, "photodiode.ac.frequencies[0]"),
        ({"mode": "ac", "ac": {"frequencies": ["1 MW"]}}, "a frequency such as"),
        ({"mode": "ac", "ac": {"frequencies": "often"}}, "photodiode.ac.frequencies"),
        ({"mode": "ac", "ac": {"frequencies": {"from": 1e9, "to": 1e6}}}, "exchange the two ends"),
        ({"mode": "ac", "ac": {"frequencies": {"from": 1.0, "to": 1e9, "per_decade": 200}}}, "up to 1,000 frequencies"),
        (
            {"mode": "ac", "ac": {"frequencies": {"from": 1.0, "too": 2.0}}},
            "unknown key 'photodiode.ac.frequencies.too'",
        ),
        ({"mode": "ac", "ac": {"frequencies": {"from": 1e-300, "to": 1e16}}}, "up to 1,000 frequencies"),
        ({"mode": "ac", "ac": {"load": 50.0}}, "load without the area of the device"),
        ({"mode": "ac", "ac": {"area": 0.0}}, "photodiode.ac.area"),
        ({"mode": "ac", "ac": {"area": 1e-5, "series": -1.0}}, "photodiode.ac.series"),
        ({"mode": "noise", "noise": {"area": 1e-5, "load": 0.0}}, "photodiode.noise.load"),
        ({"mode": "cv", "cv": {"frequency": None}}, "photodiode.cv.frequency"),
    ],
)
def test_wrong_options_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(CaseError, match=re.escape(words)):
        problem(**changes)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"mode": "ac"}, "0 frequencies in mode 'ac'"),
        ({"mode": "cv", "frequencies": (1e6, 2e6)}, "2 frequencies in mode 'cv'"),
        ({"frequencies": (1e6,)}, "1 frequencies in mode 'iv'"),
        ({"mode": "ac", "frequencies": (-1.0,)}, "a frequency of -1 Hz"),
        ({"mode": "ac", "frequencies": (float("nan"),)}, "a frequency of nan Hz"),
    ],
)
def test_wrong_problems_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(CaseError, match=re.escape(words)):
        Problem((0.0,), **arguments)


def test_attenuation_of_a_circuit() -> None:
    """The current of a source beside the device over that of the load, by complex impedances."""
    y, w = 2e-3 + 3e-2j, 5e10
    for circuit in (
        Circuit(1e-2, 40.0, 15.0, 3e-14),
        Circuit(1e-2, 40.0, 15.0, 3e-14, 2e-10),
        Circuit(1e-2, 0.0, 0.0, 1e-14, 1e-9),
    ):
        branch = circuit.load + 1j * w * circuit.inductance
        outside = circuit.series + 1.0 / (1.0 / branch + 1j * w * circuit.pad)
        expected = (1.0 + 1e-2 * y * outside) * (1.0 + 1j * w * circuit.pad * branch)
        found = circuit.attenuation(Complex(y.real, y.imag), w)
        assert complex(found.re, found.im) == pytest.approx(expected, rel=1e-12)


def test_wrong_circuits_are_refused() -> None:
    for arguments in ({"area": 0.0}, {"area": float("nan")}, {"area": 1.0, "load": -1.0}):
        with pytest.raises(CaseError, match=list(arguments)[-1]):
            Circuit(**arguments)


def test_devices_that_are_not_covered_are_refused() -> None:
    path = examples()["planar"]
    planar = device_of(read_settings("photodiode", tomllib.loads(path.read_text())["photodiode"]), path.parent)
    line = device_of(
        read_settings("photodiode", tomllib.loads(examples()["si-1"].read_text())["photodiode"]), path.parent
    )
    ac = Problem((0.0,), mode="ac", frequencies=(1e6,))
    with pytest.raises(CaseError, match="a device with two axes, which has no single profile"):
        photodiode(planar, Problem((0.0,), mode="noise", noise_method="profile"))
    same_side = replace(
        planar, terminals=(planar.terminals[0], replace(planar.terminals[1], nodes=planar.terminals[0].nodes))
    )
    with pytest.raises(CaseError, match="whose contacts are on the same side"):
        photodiode(same_side, Problem((0.0,), mode="noise"))
    with pytest.raises(CaseError, match="with the pointwise scheme"):
        photodiode(line, replace(ac, scheme="pointwise"))
    with pytest.raises(CaseError, match="without light"):
        photodiode(line, Problem((0.0,), mode="noise"))


@pytest.mark.slow
def test_a_run_leaves_a_table_with_units_and_pictures(tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings = [
        "--set", "photodiode.bias=[0.0, -1.0]", "--set", "photodiode.mode=ac",
        "--set", 'photodiode.ac.frequencies=["100 Hz", "1 GHz"]', "--set", "photodiode.ac.area=1e-5",
    ]  # fmt: skip
    said = in_process("run", "si-1", "-n", "1", *settings, "--json", "--out", run)
    assert said.status == 0, said.err
    table = json.loads(said.out)["ac"]
    assert [(row["V"], row["f"]) for row in table] == [(0.0, 1e2), (0.0, 1e9), (-1.0, 1e2), (-1.0, 1e9)]
    assert table[2]["C"] == pytest.approx(4.82639901e-8, rel=1e-7)
    lines = (run / "ac.csv").read_text().splitlines()
    assert lines[0].startswith("V,f,G,C,")
    assert len(lines) == 5
    columns = json.loads((run / "ac.csv-metadata.json").read_text())["tableSchema"]["columns"]
    units = {column["name"]: column["schema:unitText"] for column in columns}
    assert units == {
        "V": "V", "f": "Hz", "G": "S/cm2", "C": "F/cm2", "ac_uniformity": "1", "Z_re": "ohm cm2", "Z_im": "ohm cm2",
        "Z_im_negative": "ohm cm2",
    }  # fmt: skip
    assert all(row["Z_im_negative"] == -row["Z_im"] for row in table)
    pictures = {path.name for path in (run / "pictures").iterdir()}
    assert {"capacitance.png", "conductance.png", "impedance-nyquist-dark.png"} <= pictures
