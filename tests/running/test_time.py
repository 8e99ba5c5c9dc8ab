"""Runs to a time of the model, with output at given times: hit exactly, and resumed with the same bits."""

from __future__ import annotations

import itertools
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from command_line import in_process
from minga.engine.clock import multiple, passed
from minga.engine.comm import Comm
from minga.errors import ProgramError
from minga.models.waves import Medium
from minga.output.disk_space import frames_of
from thinned import thinned

GRID = mg.Grid((12, 16), periodic=True)
START = np.linspace(0.1, 1.0, GRID.size).reshape(GRID.shape)


@mg.kernel
def decay(u: Any, new: Any, *, h: Any) -> None:
    """An explicit step of du/dt = (mean of the neighbours - u) - u."""
    around = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
    new[0, 0] = u[0, 0] + h * (around - 2.0 * u[0, 0])


@mg.kernel
def look(u: Any) -> dict[str, Any]:
    return {"total": mg.sum(u[0, 0])}


def constant(dt: float, unit: str = "s") -> mg.Model:
    """Steps of one length."""
    u, step = mg.Field("u", GRID, slots=2), mg.Program("step")
    step.apply(decay, u, u.next, h=dt)
    step.rotate(u)
    return model_of(u, step, mg.Clock(dt=dt, unit=unit))


def split(dt: float, *, advances: bool = True, unit: str = "s") -> mg.Model:
    """Steps whose length the run sets."""
    u, step, h = mg.Field("u", GRID, slots=2), mg.Program("step"), mg.Register("h", initial=dt)
    step.apply(decay, u, u.next, h=h)
    step.rotate(u)
    if advances:
        step.let(mg.TIME, mg.TIME + h)
    return model_of(u, step, mg.Clock(dt=h, unit=unit), lengths=h)


def adaptive(first: float, growth: float) -> mg.Model:
    """Steps that grow by a factor from one to the next, and land on the target."""
    u, step = mg.Field("u", GRID, slots=2), mg.Program("step")
    target, wished, h = mg.Register("target"), mg.Register("wished", initial=first), mg.Register("h")
    landed = mg.Register("landed", "bool")
    step.let(landed, mg.TIME + wished >= target)
    step.let(h, mg.where(landed, target - mg.TIME, wished))
    step.apply(decay, u, u.next, h=h)
    step.rotate(u)
    step.let(wished, mg.where(landed, wished, wished * growth))
    step.let(mg.TIME, mg.where(landed, target, mg.TIME + h))
    return model_of(u, step, mg.Clock(target=target), lengths=h)


def model_of(u: mg.Field, step: mg.Program, clock: mg.Clock | None, lengths: mg.Register | None = None) -> mg.Model:
    observe = mg.Program("observe")
    seen: dict[str, Any] = {"total": observe.apply(look, u).total}
    if lengths is not None:
        seen["length"] = lengths
    registers = {} if lengths is None else {mg.TIME: 0.0}
    return mg.Model(
        "decay", GRID, (u,), step, {u: START}, observe=observe, observables=seen, clock=clock, registers=registers
    )


MODELS = {"constant": lambda: constant(0.1), "split": lambda: split(0.3), "adaptive": lambda: adaptive(0.01, 1.7)}


def test_multiples_are_rounded_once() -> None:
    assert [multiple(0.1, n) for n in (3, 7, 10)] == [0.3, 0.7, 1.0]
    assert [multiple(1 / 3, n) for n in (1, 3, 300)] == [1 / 3, 1.0, 100.0]
    assert multiple(0.0012345678, 10**7) == 12345.678
    odd = 2**0.5 / 1000
    assert multiple(odd, 7) == 7 * odd
    assert multiple(0.001, 10**6) == 1000.0
    assert sum(0.001 for _ in range(10**4)) != 10.0
    assert passed(0.1 + 0.2, 0.3) == 1
    assert passed(0.3 - 1e-6, 0.3) == 0


@pytest.mark.parametrize("form", MODELS)
def test_times_are_hit_exactly(form: str) -> None:
    history = mg.run(MODELS[form](), until=2.0, every=0.5)
    assert history.time.values.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert history.u.dims == ("time", "y", "x")
    assert history.time.attrs["units"] == "s"


@pytest.mark.parametrize("form", MODELS)
def test_an_end_between_two_frames_is_hit_exactly(form: str) -> None:
    history = mg.run(MODELS[form](), until=0.7, every=0.3)
    assert history.time.values.tolist() == [0.0, 0.3, 0.6, 0.7]


def test_a_step_that_does_not_divide_the_time_is_shortened() -> None:
    """dt = 0.3 to T = 1: four equal steps of 0.25, neither 1.2 nor a last step of 0.1."""
    history = mg.run(split(0.3), until=1.0, every=1)
    assert history.step.values.tolist() == [0, 1, 2, 3, 4]
    assert history.time.values.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert np.array_equal(history.u[-1], mg.run(constant(0.25), 4).u[-1])


def test_a_step_that_divides_the_time_up_to_rounding_leaves_no_sliver() -> None:
    for dt, end, steps in ((0.1, 0.3, 3), (0.1, 1.0, 10), (1e-3, 1.0, 1000)):
        history = mg.run(split(dt), until=end)
        assert (int(history.step[-1]), float(history.time[-1])) == (steps, end)


def test_a_shortened_step_does_not_shorten_the_next_ones() -> None:
    history = mg.run(split(0.3), until=3.1, every=1.0, observe=1)
    assert history.length.values[1:].round(12).tolist() == [0.25] * 4 + [0.25] * 4 + [0.25] * 4 + [0.1]
    history = mg.run(adaptive(0.01, 1.7), until=1.0, every=0.5, observe=1)
    lengths = history.length.values[1:]
    landing = next(number for number, time in enumerate(np.cumsum(lengths)) if time > 0.5 - 1e-12)
    assert lengths[landing] < 1.6 * lengths[landing - 1], "this step was shortened"
    assert lengths[landing + 1] == pytest.approx(1.7 * lengths[landing - 1]), "and the next one is as long as wished"


def events(model: mg.Model, *intervals: float | str, until: float, ranks: int = 1) -> list[list[float]]:
    """The times at which observers of several intervals are called, and at which the run ends; equal on all ranks."""

    def run(comm: Comm) -> tuple[list[list[float]], bytes]:
        seen: list[list[float]] = [[] for _ in intervals]

        def noting(number: int) -> mg.Observer:
            return mg.observer(lambda simulation: seen[number].append(simulation.time), time=intervals[number])

        with mg.Engine(model.layouts("slabs", comm.size), comm=comm) as engine:
            watching = [noting(number) for number in range(len(intervals))]
            result = mg.drive(model, engine, 0, watching, end=until)
            values = engine.gather(model.field("u"))
        return [*seen, [result.time, result.steps]], b"" if values is None else values.tobytes()

    first, *others = mg.run_virtual(ranks, run)
    assert all(other[0] == first[0] for other in others)
    assert first[1]
    return [*first[0], list(first[1])]


@pytest.mark.parametrize("form", ["split", "adaptive"])
def test_observers_at_incommensurable_times(form: str) -> None:
    odd = 2**0.5 / 4
    thirds, roots, end, _ = events(MODELS[form](), 1 / 3, odd, until=2.0)
    assert thirds == [multiple(1 / 3, n) for n in range(1, 7)]
    assert roots == [odd * n for n in range(1, 6)]
    assert end[0] == 2.0


@pytest.mark.parametrize("form", MODELS)
def test_all_ranks_choose_the_same_steps(form: str) -> None:
    intervals = (0.5, "200 ms")
    assert events(MODELS[form](), *intervals, until=2.0, ranks=3) == events(MODELS[form](), *intervals, until=2.0)


class Late(mg.Observer):
    """Ends a run after a step."""

    def __init__(self, step: int) -> None:
        self.step, self.schedule = step, mg.Schedule(1)

    def ends(self, simulation: Any) -> Any:
        return "asked" if simulation.step >= self.step else None


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("form", "at"),
    thinned(
        itertools.product(MODELS, [1, 2, 3, 5, 6]),
        *[("constant", 2), ("split", 1), ("split", 5), ("adaptive", 3), ("adaptive", 6)],
    ),
)
def test_a_run_resumed_anywhere_has_the_same_bits_and_frames(tmp_path: Path, form: str, at: int) -> None:
    settings: dict[str, Any] = {"until": 1.7, "every": 0.5, "observe": 0.25}
    if form == "constant":
        settings["observe"] = 0.1
    whole = mg.run(MODELS[form](), **settings)
    assert int(whole.step[-1]) > at
    with pytest.raises(KeyboardInterrupt):
        mg.run(MODELS[form](), out=tmp_path / "run", observers=[Late(at)], checkpoint=3, **settings)
    again = mg.run(MODELS[form](), out=tmp_path / "run", resume=True, **settings)
    assert again.step.values.tolist() == whole.step.values.tolist()
    assert again.time.values.tolist() == whole.time.values.tolist() == [0.0, 0.5, 1.0, 1.5, 1.7]
    assert again.u.values.tobytes() == whole.u.values.tobytes()
    assert again.observed.values.tolist() == whole.observed.values.tolist()
    assert again.total.values.tolist() == whole.total.values.tolist()
    assert again.attrs["digest"] == whole.attrs["digest"]
    finished = mg.run(MODELS[form](), out=tmp_path / "run", resume=True, **settings)
    assert finished.attrs["digest"] == whole.attrs["digest"]


def test_a_finished_run_is_made_longer_by_its_time(tmp_path: Path) -> None:
    out, kept = tmp_path / "run", {"at_end": True}
    mg.run(split(0.3), until=1.0, every=0.5, out=out, checkpoint=kept)
    longer = mg.run(split(0.3), until=2.0, every=0.5, out=out, resume=True, checkpoint=kept)
    assert longer.time.values.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert longer.attrs["digest"] == mg.run(split(0.3), until=2.0, every=0.5).attrs["digest"]
    with pytest.raises(mg.CaseError, match=r"at the time 2\.0 already, later than 1\.5"):
        mg.run(split(0.3), until=1.5, every=0.5, out=out, resume=True, checkpoint=kept)


def test_checkpoints_by_time(tmp_path: Path) -> None:
    """Interrupted after the checkpoint of 0.75, the run goes on there."""

    def fail(simulation: Any) -> None:
        raise ValueError("enough")

    out, settings = tmp_path / "run", {"until": 2.0, "every": 1.0, "checkpoint": 0.75}
    with pytest.raises(ValueError, match="enough"):
        mg.run(split(0.3), out=out, observers=[mg.observer(fail, time=1.25)], **settings)  # type: ignore[arg-type]
    seen: list[float] = []
    first = mg.observer(lambda simulation: seen.append(simulation.time), 1)
    again = mg.run(split(0.3), out=out, resume=True, observers=[first], **settings)  # type: ignore[arg-type]
    assert seen == [1.0, 1.25, 1.5, 1.75, 2.0]
    assert again.time.values.tolist() == [0.0, 1.0, 2.0]


def test_texts_with_units() -> None:
    history = mg.run(split(0.3, unit="ms"), until="0.002 s", every="500 us")
    assert history.time.values.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert mg.run(split(0.3, unit="L2/D"), until="1.5 L2/D").time.values.tolist() == [0.0, 1.5]
    assert mg.run(constant(0.5, unit="1"), until="1.5").time.values.tolist() == [0.0, 1.5]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"until": 1.05}, r"1\.05 s is not a multiple of the model's time step, 0\.1 s"),
        ({"until": 1.05}, r'give "1\.0 s" or "1\.1 s", or the model a time step that divides 1\.05 s: dt = 0\.0'),
        ({"until": 1.0, "every": 0.25}, r"0\.25 s is not a multiple"),
        ({"until": 2}, r"until=2: a time is written with a decimal point"),
        ({"until": 1.0, "steps": 10}, "a run has one end"),
        ({"until": "2 parsecs"}, "expected a positive time of the model, found '2 parsecs'"),
        ({"until": -1.0}, "expected a positive time"),
        ({"until": "2 parsecs"}, r'fix: write a number with a decimal point, or a text such as "2\.5 s"'),
        ({"until": float("nan")}, "expected|finite"),
        ({"steps": 5, "every": 0}, "expected a whole number of at least 1"),
        ({"steps": 5, "every": "soon"}, "expected a positive time of the model, found 'soon'"),
        ({"steps": 5, "observe": True}, "observe=True: expected"),
    ],
    ids=str,
)
def test_wrong_times(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(mg.CaseError, match=message):
        mg.run(constant(0.1), **settings)


def test_times_need_a_clock_that_can_reach_them() -> None:
    u, step = mg.Field("u", GRID, slots=2), mg.Program("step")
    for settings in ({"until": 1.0}, {"steps": 3, "every": 0.5}, {"steps": 3, "observe": "1 s"}):
        with pytest.raises(mg.CaseError, match="has no clock"):
            mg.run(model_of(u, step, None), **settings)  # type: ignore[arg-type]
        with pytest.raises(mg.CaseError, match="only reads its time"):
            mg.run(model_of(u, step, mg.Clock(time=mg.TIME)), **settings)  # type: ignore[arg-type]


def test_a_step_that_forgets_the_time_is_told() -> None:
    with pytest.raises(mg.RunError, match=r"is 0\.0 after 4 steps, not 1\.0"):
        mg.run(split(0.3, advances=False), until=1.0)


@pytest.mark.parametrize(
    "given",
    [
        {"dt": mg.Register("h"), "target": mg.Register("t")},
        {"target": 1.0},
        {"dt": mg.Register("h", "f4")},
        {"dt": -1.0},
    ],
    ids=str,
)
def test_clocks_that_are_none(given: dict[str, Any]) -> None:
    with pytest.raises(ProgramError):
        mg.Clock(**given)


def test_frames_are_counted_before_the_run() -> None:
    assert frames_of(1000, 0.5, 2.0) == 5
    assert frames_of(1000, 0.3, 0.7) == 4
    assert frames_of(1000, 0.1, 0.3) == 4
    assert frames_of(7, 0.5) == 8


@pytest.mark.slow
def test_shipped_models_run_to_a_time() -> None:
    """Waves and a scaled cell, whose times have no unit: steps of one length, and one that is made of adaptive ones."""
    waves = mg.fletcher((16, 16, 16), dt=1e-3, medium=Medium(vp=1500.0))
    history = mg.run(waves, until="30 ms", every=0.01)
    assert history.time.values.tolist() == [0.0, 0.01, 0.02, 0.03]
    cell = mg.read_case("pnp-1d").model
    assert cell.steps is not None
    history = mg.run(cell, until=1.0, every="0.5")
    assert history.time.values.tolist() == [0.0, 0.5, 1.0]
    assert history.step.values.tolist() == [0, 1, 2]


@pytest.mark.slow
def test_a_case_ends_at_a_time(in_tmp_path: Path) -> None:
    Path("heat.py").write_text(
        "import minga as mg\n"
        "grid_shape = (8, 8)\n"
        "@mg.kernel\n"
        "def decay(u, new, *, h):\n"
        "    new[0, 0] = u[0, 0] - h * u[0, 0]\n"
        "def model(shape=(8, 8)):\n"
        "    grid = mg.Grid(shape, periodic=True)\n"
        "    u, step, h = mg.Field('u', grid, slots=2), mg.Program('step'), mg.Register('h', initial=0.3)\n"
        "    step.apply(decay, u, u.next, h=h)\n"
        "    step.rotate(u)\n"
        "    step.let(mg.TIME, mg.TIME + h)\n"
        "    return mg.Model('heat', grid, (u,), step, {u: 1.0}, clock=mg.Clock(dt=h), registers={mg.TIME: 0.0})\n"
    )
    Path("heat.toml").write_text(
        'model = "heat.py"\n[run]\nuntil = "1 s"\n[output]\nevery = "0.5 s"\nobserve = 0.25\n'
        "[checkpoint]\nevery = 0.5\n"
    )
    said = in_process("run", "heat.toml", "-n", "1", "--out", "run", "--json")
    assert said.status == 0, said.err
    result = json.loads(said.out)
    assert (result["time"], result["steps"]) == (1.0, 4)
    kept = tomllib.loads(Path("run/case.toml").read_text())
    assert (kept["run"]["until"], kept["output"]["every"]) == (1.0, 0.5)
    assert "steps" not in kept["run"]
    again = in_process("run", "run", "-n", "1", "--out", "again", "--json")
    assert json.loads(again.out)["digest"] == result["digest"]
    wrong = in_process("run", "heat.toml", "--set", "run.until=5")
    assert wrong.status == 2
    assert "write until = 5.0" in wrong.err
