"""Programs of currents and voltages: reading, corners and limits, and the same bits anywhere."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.load import load_model, read_settings
from minga.case.settings import GridSettings
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.errors import CaseError
from minga.models.electrodeposition.case import problem_of
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.protocols.reading import parts_of
from minga.models.electrodeposition.protocols.segments import Closing, Repeat, Segment, duration_of, flattened
from minga.running.loop import Result, drive
from minga.schema import validate

from ...model_runs import assert_same, resume_model, run_model

BATH = {"electrolyte": "CuSO4", "concentration": "0.1 M", "length": "1 mm"}
TIME = {"every": "0.5 s", "first": "0.1 s", "tolerance": 0.03}
MIXED = [
    {"hold": "20 A/m2", "time": "0.7 s"},
    {"repeat": 2, "of": [{"pulse": "40 A/m2", "on": "0.1 s", "off": "0.15 s", "times": 2}, {"rest": "0.2 s"}]},
    {"ramp": ["0 V", "20 mV"], "rate": "50 mV/s"},
]


def parts(*given: dict[str, Any]) -> Any:
    table = {**BATH, "program": list(given), "time": {"end": "1 s"}}
    return parts_of(read_settings("electrodeposition", table).program)


def model_of(shape: tuple[int, ...] = (12,), **said: Any) -> Model:
    grid = validate(GridSettings, {"shape": list(shape)}, "grid")
    return load_model("electrodeposition", {"electrodeposition": {**BATH, "time": TIME, **said}}, grid, Path())


def run(shape: tuple[int, ...] = (12,), **said: Any) -> Result:
    model = model_of(shape, **said)
    with Engine(model.layouts("slabs", 1), threads=1) as engine:
        return drive(model, engine, model.steps or 0)


def test_each_part_is_read() -> None:
    assert parts({"hold": "5 mA/cm2", "time": "2 s"}) == (Segment("current", 50.0, duration=2.0),)
    assert parts({"rest": "2 min"}) == (Segment("current", 0.0, duration=120.0),)
    assert parts({"hold": {"voltage": 0.2}, "until": {"charge": "1 mAh/cm2"}}) == (
        Segment("voltage", 0.2, until={"charge": 36000.0}),
    )
    (ramp,) = parts({"ramp": ["0.3 V", "0.1 V"], "rate": "50 mV/s"})
    assert (ramp.level, ramp.slope, ramp.duration) == pytest.approx((0.3, -0.05, 4.0))
    (cycle,) = parts({"cycle": ["0 V", "0.1 V", "0 V"], "rate": "0.1 V/s", "times": 3})
    assert (cycle.times, [s.slope for s in cycle.of]) == (3, [0.1, -0.1])
    (pulse,) = parts({"pulse": "1 A/cm2", "on": "1 ms", "base": "-0.1 A/cm2", "off": "9 ms", "times": 7})
    assert [s.level for s in pulse.of] == [1e4, -1e3]
    (sine,) = parts({"sine": "0 V", "amplitude": "5 mV", "frequency": "10 Hz"})
    assert (sine.amplitude, sine.duration, sine.points) == pytest.approx((5e-3, 0.3, 100))

    (spectrum,) = parts(
        {"impedance": "0 V", "amplitude": "1 mV", "frequencies": {"from": "1 kHz", "to": "10 Hz", "per_decade": 2}}
    )
    assert [s.frequency for s in spectrum.of] == pytest.approx([1e3, 316.227766, 100.0, 31.6227766, 10.0])
    assert all(s.measured for s in spectrum.of)


def test_an_impedance_has_frequencies() -> None:
    with pytest.raises(CaseError, match="at least 1 entry"):
        parts({"impedance": "0 V", "amplitude": "1 mV", "frequencies": []})


def test_rates_are_per_second() -> None:
    for rate in ("50 mV/s", "50 mV / s", "0.05 V/s"):
        (ramp,) = parts({"ramp": ["0 V", "0.1 V"], "rate": rate})
        assert ramp.slope == pytest.approx(0.05)
    (ramp,) = parts({"ramp": ["0 A/m2", "100 A/m2"], "rate": "5 mA/cm2/s"})
    assert ramp.slope == pytest.approx(50.0)
    (ramp,) = parts({"ramp": [{"voltage": 0.0}, {"voltage": 1.0}], "rate": 0.5})
    assert ramp.slope == pytest.approx(0.5)


def test_repetitions_end_inside_each_other() -> None:
    one, two = Segment("current", 1.0, duration=1.0), Segment("current", 0.0, duration=0.5)
    nested = (one, Repeat(3, (two, Repeat(2, (one, two)))), one)
    assert flattened(nested) == [Closing(2, 3, 2), Closing(1, 3, 3)]
    assert duration_of(nested) == 1.0 + 3 * (0.5 + 2 * 1.5) + 1.0


@pytest.mark.parametrize(
    ("part", "key", "said"),
    [
        ({"time": "2 s"}, "program[0]", "exactly one of"),
        (
            {"sweep": ["0 V", "1 V"]},
            "program[0].sweep",
            "has one of cycle, file, hold, impedance, pulse, ramp, repeat, rest, sine",
        ),
        ({"hld": "1 V"}, "program[0].hld", "did you mean 'hold'?"),
        ({"pulse": "5 mA/cm2", "on": "1 ms", "of": "80 ms"}, "program[0].of", "did you mean off"),
        ({"hold": 3.0, "time": "2 s"}, "program[0].hold", "expected a current or a voltage, found 3.0"),
        ({"hold": "3 W", "time": "2 s"}, "program[0].hold", "found '3 W'"),
        ({"hold": {"voltage": "x"}, "time": "2 s"}, "program[0].hold.voltage", "expected volts"),
        ({"hold": "3 V"}, "program[0]", "nothing ends"),
        ({"hold": "3 V", "until": {"voltage": "1 V"}}, "program[0].until.voltage", "the voltage is given"),
        ({"hold": "3 V", "time": "1 s", "rate": "1 V/s"}, "program[0].rate", "does not apply to hold"),
        ({"ramp": ["0 V", "1 A/m2"], "time": "1 s"}, "program[0].ramp", "a current and a voltage"),
        ({"ramp": ["0 V", "1 V"]}, "program[0]", "a time or a rate"),
        ({"ramp": ["1 V", "1 V"], "time": "1 s"}, "program[0]", "to the same level"),
        ({"ramp": ["0 V", "1 V"], "rate": "-1 V/s"}, "program[0].rate", "a rate of -1"),
        ({"cycle": ["0 V", "1 V"], "rate": "1 V/s", "times": 2}, "program[0].cycle", "end where they began"),
        ({"cycle": ["0 V", "1 V"]}, "program[0].rate", "missing"),
        ({"pulse": "1 V", "on": "1 s"}, "program[0].off", "missing"),
        ({"sine": "1 V", "amplitude": "1 A/m2", "frequency": "1 Hz"}, "program[0].amplitude", "swings"),
        ({"impedance": "0 V", "amplitude": "0 V", "frequencies": ["1 Hz"]}, "program[0].amplitude", "amplitude of 0"),
        ({"impedance": "0 V", "amplitude": "1 mV"}, "program[0].frequencies", "missing"),
        (
            {"impedance": "0 V", "amplitude": "1 mV", "frequencies": ["1 Hz"], "times": 1},
            "program[0].times",
            "the first period",
        ),
        ({"ramp": ["0 V", "1 V"], "rate": "5 mV"}, "program[0].rate", "a voltage per second, found '5 mV'"),
        ({"ramp": ["0 A/m2", "1 A/m2"], "rate": "1 A/m2"}, "program[0].rate", "a current per second"),
        ({"ramp": ["0 A/m2", "1 A/m2"], "rate": "1 A/s"}, "program[0].rate", "a current per second"),
        ({"repeat": 2, "of": [{"rest": "1 s"}, {"hold": "1 V"}]}, "program[0].of[1]", "nothing ends"),
    ],
)
def test_parts_that_cannot_be_carried_out(part: dict[str, Any], key: str, said: str) -> None:
    with pytest.raises(CaseError) as caught:
        parts(part)
    assert caught.value.key == f"electrodeposition.{key}"
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"voltage": 0.1}, "the case has both voltage and program"),
        ({"reference": "1 mm"}, "not in the cell"),
        ({"cutoff": "10 mV"}, "beyond the cut-off"),
        ({"program": [{"hold": "1 V", "until": {"charge": "1 C/m2"}}], "time": {}}, "only a limit ends the program"),
        ({"program": [{"hold": "100 A/m2", "until": {"voltage": "-60 mV"}}], "time": {"end": "9 s"}}, "the wrong sign"),
        ({"program": [{"hold": "-100 A/m2", "until": {"voltage": "60 mV"}}], "time": {"end": "9 s"}}, "the wrong sign"),
        (
            {
                "program": [{"hold": "100 A/m2", "until": {"voltage": "60 mV"}}],
                "time": {"end": "9 s"},
                "reference": "0.1 mm",
            },
            "a positive current makes it negative: write -0.06 V",
        ),
        (
            {"program": [{"hold": "100 A/m2", "until": {"concentration": "0.1 M"}}], "time": {"end": "9 s"}},
            "which the bath of 100 mol/m3 has",
        ),
        ({"scheme": "relaxation", "cathode": "held", "anode": "held"}, "a program of currents and voltages"),
        ({"program": [{"rest": "1 s"}] * 201}, "at most 200"),
        (
            {"program": [{"impedance": "0 V", "amplitude": "1 mV", "frequencies": ["1 Hz"]}], "debye": "0.1 mm"},
            "the cells resolve the double layer",
        ),
        (
            {
                "program": [{"impedance": "0 V", "amplitude": "1 mV", "frequencies": ["1 Hz"]}],
                "cathode": {"Cu": "reversible", "capacity": "0.2 F/m2"},
                "growth": True,
            },
            "the double layer of the cathode changes with the deposit",
        ),
    ],
)
def test_programs_that_do_not_fit_their_case(said: dict[str, Any], message: str) -> None:
    with pytest.raises(CaseError, match=message):
        model_of(**{"program": MIXED, **said})


@pytest.mark.slow
def test_steps_end_on_corners_and_the_charge_is_that_of_the_program() -> None:
    """Run the first part alone, and then with its repetitions: the times are exact."""
    for program, charge in ((MIXED[:1], 14.0), (MIXED[:2], 14.0 + 16.0)):
        result = run(program=program, time={**TIME, "every": f"{0.7 if charge == 14.0 else 0.35} s", "end": "2.1 s"})
        assert str(result.ended).startswith("the program is complete")
        assert result.observables["time"] == pytest.approx(0.7 if charge == 14.0 else 2.1, rel=1e-12)
        assert result.observables["charge"] == pytest.approx(charge, rel=2e-7)  # what of a given current may be missing
        gone = 0.1 - result.observables["total_SO4"]
        assert abs(gone) < 1e-14


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ({"hold": "100 A/m2", "until": {"voltage": "60 mV"}}, "voltage", 0.06),
        ({"hold": "-100 A/m2", "until": {"voltage": "-60 mV"}}, "voltage", -0.06),
        ({"hold": "50 mV", "until": {"current": "80 A/m2"}}, "current", 80.0),
        ({"ramp": ["0 V", "50 mV"], "rate": "10 mV/s", "until": {"current": "40 A/m2"}}, "current", 40.0),
        ({"hold": "-30 A/m2", "until": {"charge": "31 C/m2"}}, "charge", -31.0),
        ({"hold": "100 A/m2", "until": {"concentration": "50 mM"}}, "least_concentration", 50.0),
        ({"hold": "100 A/m2", "until": {"voltage": "-30 mV"}}, "cathode_potential", -0.03),
        ({"hold": "-100 A/m2", "until": {"voltage": "18 mV"}}, "cathode_potential", 0.018),
    ],
)
def test_a_segment_ends_at_its_limit(part: dict[str, Any], name: str, value: float) -> None:
    against = {"reference": "0.4 mm"} if name == "cathode_potential" else {}
    result = run(program=[part], time={"end": "60 s", "every": "5 s", "first": "0.05 s"}, **against)
    assert str(result.ended).startswith("the program is complete")
    assert result.observables[name] == pytest.approx(value, rel=3e-6)
    counts = {key: count for key, count in result.observables.items() if key.startswith("rejected_")}
    assert counts["rejected_limit"] > 0
    assert sum(counts.values()) == result.observables["steps_rejected"]


@pytest.mark.slow
def test_a_limit_that_is_passed_from_the_beginning_ends_its_segment_at_once() -> None:
    """The bath alone needs 36 mV."""
    result = run(
        program=[{"hold": "100 A/m2", "until": {"voltage": "20 mV"}}, {"rest": "1 s"}], time={**TIME, "end": "2 s"}
    )
    assert result.observables["time"] == pytest.approx(1.0, abs=1e-6)
    assert result.observables["charge"] == pytest.approx(0.0, abs=1e-6)
    assert "segment 1 ended at once, because its limit of the voltage" in str(result.ended)


@pytest.mark.slow
def test_limits_that_are_never_reached_are_named() -> None:
    """The bath needs 36 mV at 100 A/m2; a segment that is repeated counts as one."""
    held = {"hold": "100 A/m2", "time": "0.5 s"}
    cycle = [{**held, "until": {"voltage": "1 V"}}, {**held, "until": {"charge": "10 C/m2"}}, {"rest": "0.5 s"}]
    result = run(program=[{"repeat": 2, "of": cycle}], time={**TIME, "end": "4 s"})
    said = str(result.ended)
    assert said.startswith("the program is complete")
    assert "; segment 1 never reached its limit of the voltage" in said
    assert "segment 2 never" not in said
    assert "segment 3 never" not in said
    assert "the voltage never passed its cut-off of 5 V" in said


@pytest.mark.slow
def test_any_end_names_the_limits_that_were_not_reached() -> None:
    """The end of the run's time, a cut-off, and one of two limits of a segment."""
    held = {"hold": "100 A/m2", "time": "1 s"}
    program = [
        {**held, "until": {"charge": "10 C/m2", "voltage": "2 V"}},
        {**held, "until": {"concentration": "1 mM"}},
        {"rest": "1 s", "until": {"voltage": "1 mV"}},
    ]
    result = run(program=program, time={**TIME, "every": "0.25 s", "end": "0.5 s"})
    assert result.ended.reason == "steps"
    assert str(result.ended) == (
        "all 2 steps done; segment 1 never reached its limit of the voltage; segment 2 never reached its limit of the "
        "concentration; 1 later segment with limits never began; the voltage never passed its cut-off of 5 V"
    )
    steep = [{**held, "until": {"charge": "200 C/m2"}}, {"hold": "4000 A/m2", "time": "1 s"}]
    said = str(run(program=steep, cutoff="1 V").ended)
    assert said.startswith("the voltage passed its cut-off of 1 V")
    assert said.count("never") == 1
    assert "; segment 1 never reached its limit of the charge" in said


@pytest.mark.slow
def test_the_end_of_a_run_under_a_given_current_names_its_cut_off() -> None:
    ended = run(current="10 A/m2", time={**TIME, "every": "0.25 s", "end": "0.25 s"}).ended
    assert ended.as_dict()["unmet"] == "the voltage never passed its cut-off of 5 V"
    assert run(voltage="1 mV", time={**TIME, "every": "0.25 s", "end": "0.25 s"}).ended.unmet is None


@pytest.mark.slow
def test_a_ramp_has_its_voltage_in_steps_of_two_stages() -> None:
    """Steps after a cell has turned solid have two."""
    grid = validate(GridSettings, {"shape": [12, 6]}, "grid")
    ramp = [{"ramp": ["0 V", "0.2 V"], "time": "0.2 s"}]
    time = {"every": "10 ms", "first": "10 ms", "tolerance": 0.3}
    cell = {"length": "100 um", "width": "50 um", "growth": True, "time": time}
    model = load_model("electrodeposition", {"electrodeposition": {**BATH, **cell, "program": ramp}}, grid, Path())
    seen = mg.run(model, model.steps, observe=1)
    times, voltage = np.asarray(seen["time_observed"]), np.asarray(seen["voltage"])
    assert int(seen["deposit_cells"][-1]) > 3
    assert np.abs(voltage - times).max() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(("times", "every"), [(2, 0.7031), (3, 0.7031), (3, 6.1031)])
def test_an_impedance_at_a_bias(times: int, every: float) -> None:
    """Fifty times the amplitude, with steps of the run that end in the middle of periods."""
    electrode = {"Cu": {"exchange": 30.0}}
    swing = {"impedance": "50 mV", "amplitude": "1 mV", "frequencies": ["100 Hz", "1 Hz"], "times": times}
    seen = run(
        (24,), acid="H2SO4", acid_concentration="1 M", length="0.2 mm", cathode=electrode, anode=electrode,
        program=[{"hold": "50 mV", "time": "60 s"}, swing],
        time={"tolerance": 1e-3, "first": "0.01 s", "every": every, "end": math.ceil(64 / every) * every},
    ).observables  # fmt: skip
    assert seen["Z_re"][1] == pytest.approx(6.910e-4, rel=1e-3)
    assert seen["Z_im"][1] == pytest.approx(-1.907e-5, rel=6e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"cutoff": "1e9 V"}, "an electrode has run out of ions"),
        ({"semi_implicit": {"passes": 1}}, "potential and ions do not agree, although 100 % of every ion is left"),
    ],
)
def test_the_reason_is_given_why_no_voltage_drives_the_current(said: dict[str, Any], reason: str) -> None:
    """At 200 A/m2, far beyond the limiting current, and with passes that never converge."""
    result = run((32,), program=[{"hold": "200 A/m2", "time": "60 s"}], time={"end": "60 s"}, **said)
    assert "no voltage was found that drives the current of the program any longer, at t =" in str(result.ended)
    assert reason in str(result.ended)


@pytest.mark.slow
def test_the_reason_is_also_right_without_a_cut_off() -> None:
    """All ions are there: the passes end too early."""
    table = {**BATH, "program": [{"hold": "200 A/m2", "time": "60 s"}], "time": {"end": "60 s"}}
    problem = problem_of(read_settings("electrodeposition", table), GridSettings(shape=(32,)), Path())
    model = electrodeposition(replace(problem, cutoff=math.inf), passes=1)
    with Engine(model.layouts("slabs", 1), threads=1) as engine:
        assert "although 100 % of every ion is left" in str(drive(model, engine, 1).ended)


@pytest.mark.slow
def test_a_cut_off_applies_to_the_cell_of_a_potential_against_a_reference() -> None:
    """The reference is close to the cathode, and the rest of the bath needs most of the voltage."""
    program = [{"ramp": ["0 V", "-0.2 V"], "rate": "0.1 V/s"}]
    result = run(program=program, reference="0.1 mm", cutoff="0.1 V", time={"every": "0.1 s", "first": "10 ms"})
    assert "the voltage passed its cut-off of 0.1 V" in str(result.ended)
    assert result.observables["time"] < 1.0


@pytest.mark.slow
def test_a_potential_that_no_voltage_brings_ends_the_run() -> None:
    """The anode's wide cells run out of ions; the potential stayed behind the program while the voltage stood still."""
    result = run(
        (12,), reference="0.2 mm", length="2 mm", concentration="10 mM", acid="H2SO4", acid_concentration="1 M",
        stretched={"y": {"geometric": 1.5, "at": "low"}}, time={"every": "0.1 s", "first": "10 ms", "tolerance": 0.03},
        program=[{"ramp": ["-0.02 V", "0.02 V"], "rate": "50 mV/s"}],
    )  # fmt: skip
    assert not str(result.ended).startswith("the program is complete")
    assert "cut-off of 5 V" in str(result.ended) or "current or potential of the program" in str(result.ended)


@pytest.mark.slow
def test_a_counter_electrode_without_ions_ends_the_run_at_the_default_cut_off() -> None:
    """Its reaction consumes copper while the potential of the cathode dissolves it."""
    result = run(
        (32,), acid="H2SO4", acid_concentration="1 M", concentration="50 mM", stretched={"y": {"geometric": 1.15}},
        cathode={"Cu": {"exchange": 10.0, "transfer": 0.5, "electrons": 2, "reference": "50 mM"}},
        program=[{"ramp": ["0 V", "0.3 V"], "rate": "200 mV/s"}], reference="0.5 mm", time={},
    )  # fmt: skip
    assert "the voltage passed its cut-off of 5 V" in str(result.ended)
    assert 0.4 < result.observables["time"] < 1.5


@pytest.mark.parametrize("program", [[{"hold": "-7 V", "time": "1 s"}], MIXED])
def test_cut_offs_against_a_reference(program: list[dict[str, Any]]) -> None:
    """By default above the largest voltage of the program, which may itself exceed a cut-off that is given."""
    for cutoff in (None, "10 mV"):
        table = {**BATH, "program": program, "reference": "0.5 mm", "time": TIME, "cutoff": cutoff}
        problem = problem_of(read_settings("electrodeposition", table), GridSettings(shape=(12,)), Path())
        assert problem.cutoff == (0.01 if cutoff else 10.5 if program is not MIXED else 5.0)


@pytest.mark.parametrize(("every", "steps"), [("0.5 s", 3), ("0.55 s", 2), ("3 s", 1), ("0.1 s", 11)])
def test_the_end_of_a_program_may_lie_within_an_interval(every: str, steps: int) -> None:
    result = run(program=[{"hold": "20 A/m2", "time": "1.1 s"}], time={**TIME, "every": every})
    assert result.steps == steps
    assert result.observables["time"] == pytest.approx(1.1, rel=1e-12)
    assert str(result.ended).startswith("the program is complete")


@pytest.mark.parametrize(("amplitude", "warned"), [("6 mV", False), ("7 mV", True), ("-7 mV", True)])
def test_a_large_amplitude_of_an_impedance_is_told(amplitude: str, warned: bool) -> None:
    """Half of RT/nF is 6.42 mV for copper at 25 C."""
    model = model_of(program=[{"impedance": "0 V", "amplitude": amplitude, "frequencies": ["1 Hz"]}])
    found = [text for name, text in model.notes if name == "warning"]
    assert any("7 mV" in text and "RT/nF = 12.8 mV" in text for text in found) == warned


@pytest.mark.slow
def test_a_current_that_no_voltage_drives_ends_the_run() -> None:
    acid = {"acid": "H2SO4", "acid_concentration": "1 M"}
    hold = [{"hold": "500 A/m2", "time": "20 s"}]
    result = run((32,), program=hold, stretched={"y": {"geometric": 1.15}}, **acid)
    assert result.outcome.ok
    assert "no voltage drives the program's current any longer" in str(result.ended) or "cut-off" in str(result.ended)
    assert result.observables["time"] < 1.2


@pytest.mark.slow
def test_any_number_of_ranks() -> None:
    model = model_of((12, 8), width="1 mm", program=MIXED, reference="0.5 mm", time={**TIME, "end": "2.5 s"})
    alone = run_model(model, 5)
    assert_same(alone, run_model(model, 5, ranks=3))
    assert alone.observables["greatest_concentration"] == max(alone.fields[ion].max() for ion in ("Cu", "SO4"))


@pytest.mark.slow
@pytest.mark.parametrize("done", [1, 2, 3])
def test_a_run_that_resumes_changes_no_bit(done: int, tmp_path: Path) -> None:
    """In the middle of pulses, in a rest, and at a limit that is far from frames."""
    said = {"program": [*MIXED, {"hold": "30 A/m2", "until": {"charge": "10 C/m2"}}], "time": {**TIME, "end": "3 s"}}
    model = model_of(**said)
    whole = run_model(model, 6)
    assert_same(resume_model(model, 6, done, tmp_path), whole)
