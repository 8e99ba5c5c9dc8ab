"""Cases of transients: wave forms, circuits, what is refused, and what a run leaves."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import minga as mg
from command_line import in_process
from minga.case.load import load_model, read_settings
from minga.case.settings import GridSettings
from minga.engine.model import Model
from minga.errors import CaseError
from minga.models.photodiode.case_transient import transient_of
from minga.models.photodiode.solver.circuit import Circuit
from minga.models.photodiode.transients.problem import Transient
from minga.models.photodiode.transients.waveform import Source, Waveform
from minga.space.field import TIME

CASE: dict[str, Any] = {
    "mode": "transient",
    "bias": -1.0,
    "layers": [
        {"material": "InGaAs", "thickness": 0.2, "p": 1e17},
        {"material": "InGaAs", "thickness": 0.6, "n": 1e15},
        {"material": "InGaAs", "thickness": 0.2, "n": 1e17},
    ],
    "mesh": {"nodes": 51},
    "contacts": {"anode": "ohmic", "cathode": "ohmic"},
    "light": {"wavelength": 1550.0, "power": "1 mW/cm2"},
}


def made(folder: Path, transient: dict[str, Any] | None = None, **changes: Any) -> Model:
    """The model of the case with a table of the transient, and with changes; None leaves something out."""
    table = {**CASE, **({} if transient is None else {"transient": {"until": "10 ps", **transient}}), **changes}
    table = {name: value for name, value in table.items() if value is not None}
    return load_model("photodiode", {"photodiode": table}, GridSettings(), folder)


def stated(folder: Path, **transient: Any) -> Transient:
    return transient_of(read_settings("photodiode", {**CASE, "transient": {"until": "10 ns", **transient}}), folder)


def test_wave_forms(tmp_path: Path) -> None:
    (tmp_path / "wave.csv").write_text("t,V\n0,-1\n1e-9,-2.5\n")
    for given, times, values in (
        ({"kind": "step", "to": -5.0, "at": "1 ns", "rise": "1 ps"}, (1e-9, 1e-9 + 1e-12), (-1.0, -5.0)),
        (
            {"kind": "pulse", "to": 0.0, "at": 0, "rise": "1 ns", "width": "2 ns", "period": "6 ns"},
            (0.0, 1e-9, 3e-9, 4e-9, 6e-9, 7e-9, 9e-9, 1e-8),
            (-1.0, 0.0, 0.0, -1.0) * 2,
        ),
        ({"kind": "points", "points": [["1 ns", -1.0], ["2 ns", -3.0]]}, (1e-9, 2e-9), (-1.0, -3.0)),
        ({"kind": "points", "file": "wave.csv"}, (0.0, 1e-9), (-1.0, -2.5)),
    ):
        found = stated(tmp_path, voltage=given).voltage
        assert found.times == pytest.approx(times, rel=1e-12)
        assert found.values == values
    found = stated(tmp_path, light={"kind": "sine", "from": 1.0, "amplitude": 0.5, "frequency": "1 GHz"}).light
    assert (found.beginning, found.amplitude, found.frequency, found.extremes) == (1.0, 0.5, 1e9, (0.5, 1.5))
    assert stated(tmp_path).light == Waveform((0.0,), (0.0,))
    assert stated(tmp_path, light={"kind": "step"}).light == Waveform((0.0, 0.0), (0.0, 1.0))
    jump = stated(tmp_path, voltage={"kind": "step", "to": 0.0}, load="50 ohm", area="1000 um2", pad="10 fF")
    assert jump.drive.resistance == pytest.approx(5e-4)
    assert jump.drive.capacitance == pytest.approx(1e-9)


def test_pulses_that_touch(tmp_path: Path) -> None:
    """A pulse may begin where the one before ends, and a point may be given twice: neither is a jump."""
    pulse = {"kind": "pulse", "to": -2.0, "at": "0.1 ns", "period": "0.3 ns"}
    found = stated(tmp_path, voltage=pulse | dict.fromkeys(("rise", "width", "fall"), "0.1 ns")).voltage
    assert found.jumps == ()
    assert found.times[:5] == pytest.approx([1e-10, 2e-10, 3e-10, 4e-10, 5e-10], rel=1e-12)
    assert found.values[:5] == (-1.0, -2.0, -2.0, -1.0, -2.0)
    sawtooth = stated(tmp_path, light=pulse | {"to": 1.0, "rise": "0.1 ns", "width": "0.2 ns", "fall": 0.0}).light
    assert sawtooth.jumps[:2] == pytest.approx([4e-10, 7e-10], rel=1e-12)
    twice = {"kind": "points", "points": [[0.0, -1.0], [1e-9, -2.0], [1e-9, -2.0], [2e-9, -1.0]]}
    assert stated(tmp_path, voltage=twice).voltage.jumps == ()
    assert stated(tmp_path, voltage={"kind": "step", "to": -1.0}).voltage.jumps == ()


@pytest.mark.parametrize(
    ("transient", "changes", "words"),
    [
        ({"until": "-1 ns"}, {}, "photodiode.transient.until: expected a number above 0 (s), found '-1 ns'"),
        ({"until": float("nan")}, {}, "photodiode.transient.until: expected seconds, or a time"),
        (None, {}, 'mode = "transient" without [photodiode.transient]'),
        ({}, {"mode": "iv"}, "[photodiode.transient] in a case whose mode is 'iv'"),
        ({}, {"bias": [0.0, -1.0]}, "2 voltages, but a transient begins at one"),
        ({}, {"bias": None}, "'bias' is missing"),
        ({}, {"current": "1 mA/cm2"}, "current in a transient"),
        ({}, {"curves": ["dark"]}, "curves in a transient"),
        ({}, {"scheme": "gummel"}, "a transient by scheme = 'gummel'"),
        ({"light": {"kind": "step"}}, {"light": None}, "light as a function of time, but there is no light"),
        ({"light": {"kind": "step", "to": -0.5}}, {}, "light falls to -0.5 of its power"),
        ({"light": {"kind": "step", "width": "1 ps"}}, {}, "kind = 'step' has no width"),
        ({"light": {"kind": "pulse"}}, {}, "'width' of a pulse is missing"),
        ({"light": {"kind": "points"}}, {}, "give either points or a file"),
        ({"light": {"kind": "points", "file": "none.csv"}}, {}, "there is no file 'none.csv'"),
        ({"light": {"kind": "points", "file": "bad.csv"}}, {}, "line 2 of bad.csv is '1e-9;2'"),
        (
            {"light": {"kind": "points", "points": [[2e-12, 0.0], [1e-12, 1.0]]}},
            {},
            "not in order: 1e-12 s after 2e-12",
        ),
        ({"light": {"kind": "points", "points": [[-1e-12, 0.0]]}}, {}, "a wave form that begins at -1e-12 s"),
        ({"light": {"kind": "pulse", "width": "2 ps", "period": "1 ps"}}, {}, "a pulse every 1e-12 s, but each lasts"),
        ({"voltage": {"kind": "step"}}, {}, "'to' of a step is missing"),
        ({"voltage": {"kind": "step", "to": -2.0, "from": 0.0}}, {}, "a voltage begins at photodiode.bias"),
        ({"voltage": {"kind": "step", "to": -2.0}}, {}, "the voltage jumps at 0 s, and no resistance limits"),
        ({"voltage": {"kind": "step", "to": -900.0, "rise": 1e-12}}, {}, "-900 V across 1 um is a mean field of"),
        ({"load": "50 ohm"}, {}, "load without the area of the device"),
        ({"load": -1.0, "area": 1.0}, {}, "photodiode.transient.load: expected a number of at least 0 (ohm), found -1"),
        ({"pad": "1 pF", "area": 1.0}, {}, "a capacitance beside a device whose voltage is that of the source"),
        ({"steps": {"first": "1 ps", "largest": "0.1 ps"}}, {}, "the first step, 1e-12 s, is not between"),
        ({"tolerance": 0.0}, {}, "photodiode.transient.tolerance: expected a number above 0 and below 1"),
    ],
)
def test_what_is_refused(transient: dict[str, Any] | None, changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("0,1\n1e-9;2\n")
    with pytest.raises(CaseError, match=re.escape(words)):
        made(tmp_path, transient, **changes)


@pytest.mark.slow
def test_a_voltage_beyond_breakdown(tmp_path: Path) -> None:
    """It needs a resistance that limits the current."""
    layers = [
        {"material": "InP", "thickness": t} | doping
        for t, doping in ((0.3, {"p": 1e18}), (0.5, {"n": 1e15}), (0.3, {"n": 1e18}))
    ]
    beyond = {"kind": "step", "to": -40.0, "rise": "1 ps"}
    device: dict[str, Any] = {"layers": layers, "light": None, "ionisation": True}
    with pytest.raises(
        CaseError, match=r"-40 V is beyond the breakdown at about -2[0-9.]+ V, and no resistance limits"
    ):
        made(tmp_path, {"voltage": beyond}, **device)
    made(tmp_path, {"voltage": beyond, "load": "10 kohm", "area": "100 um2"}, **device)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Transient(-1.0, Waveform((0.0,), (0.0,))), "until is -1.0"),
        (lambda: Transient(math.nan, Waveform((0.0,), (0.0,))), "until is nan"),
        (lambda: Transient(1.0, Waveform((0.0,), (0.0,)), tolerance=0.0), "tolerance is 0.0"),
        (lambda: Transient(1.0, Waveform((0.0,), (0.0,)), smallest=-1.0), "the first step"),
        (lambda: Circuit(1.0, math.nan), "load = nan"),
        (lambda: Circuit(1.0, inductance=-1.0), "inductance = -1"),
        (lambda: Transient(1.0, Waveform((0.0,), (0.0,)), circuit=Circuit(1.0, 50.0, 5.0, 1e-14)), "and a pad"),
        (lambda: Waveform((), ()), "a wave form of 0 times and 0 values"),
        (lambda: Waveform((0.0, 1.0), (0.0,)), "a wave form of 2 times and 1 values"),
        (lambda: Waveform((0.0,), (math.inf,)), "not finite"),
        (lambda: Waveform((0.0, 0.0, 0.0), (0.0, 1.0, 2.0)), "three points of a wave form at 0 s"),
    ],
)
def test_what_python_may_not_ask_for(made: Callable[[], Any], words: str) -> None:
    with pytest.raises(CaseError, match=re.escape(words)):
        made()


def test_lengths_of_steps() -> None:
    assert Transient(1e-9, Waveform((0.0,), (0.0,))).lengths == pytest.approx((1e-15, 2e-11, 1e-23))
    assert Transient(1e-9, Waveform((0.0,), (0.0,), 0.1, 1e10)).lengths[1] == pytest.approx(5e-12)


def test_values_at_and_between_points() -> None:
    """By the Program of the steps: the line up to a corner, and what follows it only after the next step has begun."""
    wave = Waveform((1.0, 1.0, 3.0), (0.0, 2.0, 6.0), 0.5, 0.25)
    source = Source(wave, "test")
    program, grid = mg.Program("look"), mg.Grid((1,))
    value, slope, end = (mg.Register(name) for name in ("value", "slope", "end"))
    at = mg.Register("at")
    source.advance(program)
    program.let(end, source.end)
    program.let(value, source.at(at))
    program.let(slope, source.slope(at))
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
        for start, time, expected in (
            (0.0, 0.5, (0.0, 0.0, 1.0)),
            (0.0, 1.0, (0.0, 0.0, 1.0)),
            (1.0, 1.0, (2.0, 2.0, 3.0)),
            (1.5, 3.0, (6.0, 2.0, 3.0)),
            (3.0, 4.0, (6.5, 0.0, math.inf)),
        ):
            engine.write(TIME, start)
            engine.write(at, time)
            assert engine.run(program).ok
            found = [float(engine.read(register)) for register in (value, slope, end)]
            assert found == pytest.approx(expected, abs=1e-15)


@pytest.mark.slow
def test_a_run_leaves_a_table_and_pictures(tmp_path: Path) -> None:
    run = tmp_path / "run"
    said = in_process("run", "recovery", "-n", "1", "--json", "--out", run)
    assert said.status == 0, said.err
    result = json.loads(said.out)
    rows = result["transient"]
    assert rows[0]["t"] == 0.0
    assert rows[-1]["t"] == 1e-6
    assert any(row["t"] == 1e-8 for row in rows), "a step ends at the corner"
    assert rows[0]["V"] == pytest.approx(0.5919, abs=2e-4)
    assert (run / "transient.csv").read_text().startswith("t,V,V_source,J,")
    about = json.loads((run / "transient.csv-metadata.json").read_text())
    units = {column["name"]: column["schema:unitText"] for column in about["tableSchema"]["columns"]}
    assert (units["t"], units["V_source"], units["J_displacement"], units["charge"]) == ("s", "V", "A/cm2", "C/cm2")
    pictures = {path.name for path in (run / "pictures").iterdir()}
    assert {"bands.png", "current-density.png", "voltage.png", "charge.png", "carriers.png", "field.png"} <= pictures
    assert "the transient ends at 1e-06 s" in result["ended"]["text"]


@pytest.mark.slow
@pytest.mark.parametrize("symmetry", ["plane", "cylinder"])
def test_two_axes_from_a_case(symmetry: str, tmp_path: Path) -> None:
    circuit = {"load": "50 ohm", "series": "5 ohm", "area": "100 um2"}
    across = {"width": 1.0, "columns": 3, "symmetry": symmetry}
    model = made(tmp_path, {"light": {"kind": "step"}, **circuit}, **across)
    assert model.presentation.drawings[-1].point is not None
    found = mg.run(model, steps=4, out=tmp_path / "run")
    axis = "y" if symmetry == "plane" else "r"
    assert f"field_{axis}" in model.output
    assert found["t"].values[0] == 0.0
    drop = found["V_source"] - found["V"]
    assert drop.values == pytest.approx(found["J"].values * 1e-6 * 55.0, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("load", [1e-6, 1e-3, 1.0])
def test_a_small_resistance_has_the_current_of_none(load: float, tmp_path: Path) -> None:
    """The last digit of the voltage over the resistance would be a current as large as that in the dark, or larger."""
    step = {"kind": "step", "to": -2.0, "rise": "1 ps"}
    alone, behind = (
        mg.run(model, model.steps).attrs["J"]
        for model in (
            made(tmp_path, {"until": "1 us", "voltage": step, **circuit})
            for circuit in ({}, {"load": load, "area": "1000 um2"})
        )
    )
    assert behind == pytest.approx(alone, rel=1e-3)


@pytest.mark.slow
def test_a_mesh_is_adapted_to_the_steady_currents(tmp_path: Path) -> None:
    graded = {"graded": {"first": "10 nm", "growth": 1.5, "cap": "200 nm"}}
    wave = {"kind": "step", "to": -4.0, "rise": "1 ps"}
    coarse = made(tmp_path, {"voltage": wave}, mesh=graded)
    fine = made(tmp_path, {"voltage": wave}, mesh=graded | {"adapt": {"error": 1e-4, "most": 100}})
    assert re.search(
        r"nodes after \d+ solutions; the mesh changes J at -4 V by about \d", dict(fine.notes)["adaptation"]
    )
    assert fine.grid.shape[0] > coarse.grid.shape[0]
    assert "adaptation" not in dict(coarse.notes)
    with pytest.raises(CaseError, match="a last voltage of 0 in the dark, where no current flows"):
        made(tmp_path, {}, mesh=graded | {"adapt": {}}, light=None, bias=0.0)
