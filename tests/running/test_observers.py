"""Observers: when they are due, in which order, what they see, and what of them survives an interruption."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from command_line import in_process
from minga.engine.comm import Comm
from minga.output.checkpoint.keeper import Checkpointing, Keeper
from minga.running.observers.checkpoints import Checkpoints

GRID = mg.Grid((6, 128))


@mg.kernel
def raised(u: Any, new: Any) -> None:
    new[0, 0] = u[0, 0] + 1.0


@mg.kernel
def look(u: Any) -> dict[str, Any]:
    return {"total": mg.sum(u[0, 0])}


def counting(clock: mg.Clock | None = None) -> mg.Model:
    """All cells count steps."""
    u = mg.Field("u", GRID, slots=2)
    step, observe = mg.Program("step"), mg.Program("observe")
    step.apply(raised, u, u.next)
    step.rotate(u)
    found: Any = observe.apply(look, u)
    return mg.Model(
        "counting", GRID, (u,), step, {u: 0.0}, observe=observe, observables={"total": found.total}, clock=clock
    )


def steps_of(
    count: int, ranks: int = 1, clock: mg.Clock | None = None, *, opening: bool = False, **schedule: Any
) -> list[int]:
    """The steps after which an observer was called, equal on all ranks."""
    model = replace(counting(clock), opening=opening)

    def run(comm: Comm) -> list[int]:
        seen: list[int] = []
        with mg.Engine(model.layouts("slabs", comm.size), comm=comm) as engine:
            mg.drive(model, engine, count, [mg.observer(lambda simulation: seen.append(simulation.step), **schedule)])
        return seen

    first, *others = mg.run_virtual(ranks, run)
    assert all(other == first for other in others)
    return first


@pytest.mark.parametrize(
    ("count", "schedule", "expected"),
    [
        (3, {"start": True}, [1]),
        (3, {"steps": 1, "start": True}, [1, 2, 3]),
        (3, {"steps": 1}, [1, 2, 3]),
        (1, {"start": True, "end": True}, [1]),
        (0, {"start": True}, [0]),
    ],
)
def test_an_opening_step_makes_the_state_of_the_start(
    count: int, schedule: dict[str, Any], expected: list[int]
) -> None:
    assert steps_of(count, 2, opening=True, **schedule) == expected


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ({"steps": 4}, [4, 8]),
        ({"steps": 5}, [5, 10]),
        ({"steps": (4, 6), "start": True}, [0, 4, 6, 8]),
        ({"start": True, "end": True}, [0, 10]),
        ({"steps": 4, "start": True, "end": True}, [0, 4, 8, 10]),
        ({"when": "total >= 4608 and total < 6000"}, [6, 7]),
        ({"when": "step > 3", "steps": 3}, [6, 9]),
        ({"when": "step > 3", "steps": 3, "end": True}, [6, 9, 10]),
        ({"seconds": 1e-9, "steps": None}, None),
        ({"seconds": 1e6}, []),
    ],
    ids=str,
)
def test_observers_are_due_at_their_steps(ranks: int, schedule: dict[str, Any], expected: list[int] | None) -> None:
    found = steps_of(10, ranks, **schedule)
    assert found if expected is None else found == expected


@pytest.mark.parametrize(
    ("dt", "interval", "expected"), [(0.1, 0.3, [3, 6, 9]), (0.1, 0.25, [3, 5, 8, 10]), (0.5, 0.1, [*range(1, 11)])]
)
def test_observers_are_due_by_the_time_of_the_model(dt: float, interval: float, expected: list[int]) -> None:
    assert steps_of(10, clock=mg.Clock(dt=dt), time=interval) == expected


def test_time_needs_a_clock() -> None:
    with pytest.raises(mg.CaseError, match="model 'counting' has no clock"):
        steps_of(10, time=0.3)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ({"steps": 0}, "whole number of at least 1, found 0"),
        ({"steps": 2.5}, "whole number of at least 1"),
        ({"steps": (3, True)}, "whole number of at least 1"),
        ({"seconds": -1.0}, "positive number, found -1.0"),
        ({"time": float("inf")}, "positive number"),
        ({"seconds": 3.0, "time": 1.0}, "all of time, seconds"),
        ({"seconds": 3.0, "when": "step > 1"}, "all of seconds, when"),
        ({"when": "step >"}, "not a condition"),
    ],
    ids=str,
)
def test_invalid_schedules(schedule: dict[str, Any], message: str) -> None:
    with pytest.raises(mg.CaseError, match=message):
        mg.Schedule(**schedule)


def test_a_condition_names_what_is_observed() -> None:
    with pytest.raises(mg.CaseError, match=r"schedule\.when: 'totel > 1' names 'totel', which is not observed"):
        steps_of(3, when="totel > 1")


def test_the_order_is_that_of_the_phases() -> None:
    seen: list[str] = []
    observers = []
    for phase in (mg.Phase.MOVE, mg.Phase.FRAMES, mg.Phase.SHOW, mg.Phase.KEEP):
        one = mg.observer(lambda simulation, phase=phase: seen.append(phase.name), 1)  # type: ignore[misc]
        one.phase = phase
        observers.append(one)
    model = counting()
    with mg.Engine(model.layouts("single", 1)) as engine:
        mg.drive(model, engine, 1, observers)
    assert seen == ["FRAMES", "KEEP", "SHOW", "MOVE"]


@pytest.mark.parametrize("ranks", [1, 3])
def test_what_observers_see(ranks: int) -> None:
    model = counting(mg.Clock(dt=0.25))

    def run(comm: Comm) -> list[Any]:
        seen: list[Any] = []

        def note(simulation: mg.Simulation) -> None:
            boxes = simulation.local("u")
            assert all((values == simulation.step).all() and not values.flags.writeable for _, values in boxes)
            whole = simulation.whole("u")
            assert (whole is None) == (simulation.rank != 0)
            assert whole is None or np.array_equal(whole, np.full(GRID.shape, float(simulation.step)))
            cells = np.array([sum(box.size for box, _ in boxes)])
            simulation.engine.comm.allreduce(cells, "sum")
            seen.append((simulation.step, simulation.time, simulation.observe()["total"], int(cells[0])))

        with mg.Engine(model.layouts("slabs", comm.size), comm=comm) as engine:
            mg.drive(model, engine, 4, [mg.observer(note, 2, start=True)])
        return seen

    expected = [(step, 0.25 * step, step * GRID.size, GRID.size) for step in (0, 2, 4)]
    assert mg.run_virtual(ranks, run) == [expected] * ranks


class Adding(mg.Observer):
    """Adds up steps, and keeps the sum in checkpoints."""

    name = "adding"
    schedule = mg.Schedule(steps=2)

    def __init__(self) -> None:
        self.sum = 0
        self.calls: list[str] = []

    def start(self, simulation: mg.Simulation) -> None:
        self.calls.append("start")

    def resume(self, simulation: mg.Simulation, state: Any) -> None:
        self.calls.append(f"resume at {simulation.step}")
        self.sum = state

    def observe(self, simulation: mg.Simulation) -> None:
        self.sum += simulation.step

    def state(self) -> int:
        return self.sum

    def finish(self, simulation: mg.Simulation) -> None:
        self.calls.append("failed" if simulation.failed else "finish")


def test_the_state_of_observers_is_in_checkpoints(tmp_path: Path) -> None:
    """A run that is interrupted and resumed on other ranks ends with the same state of its observer."""
    model = counting()

    def run(comm: Comm, steps: int) -> Adding:
        adding = Adding()
        keeper = Keeper(tmp_path, comm, Checkpointing(steps=6, at_end=True), resumes=True)
        with mg.Engine(model.layouts("slabs", comm.size), comm=comm) as engine:
            mg.drive(model, engine, steps, [adding, Checkpoints(keeper)])
        return adding

    first = mg.run_virtual(2, lambda comm: run(comm, 6))[0]
    assert (first.sum, first.calls) == (2 + 4 + 6, ["start", "finish"])
    for one in mg.run_virtual(3, lambda comm: run(comm, 11)):
        assert (one.sum, one.calls) == (2 + 4 + 6 + 8 + 10, ["start", "resume at 6", "finish"])


def test_observers_are_told_of_a_failure() -> None:
    adding = Adding()

    def fail(simulation: mg.Simulation) -> None:
        raise mg.RunError("no more paper")

    model = counting()
    with mg.Engine(model.layouts("single", 1)) as engine, pytest.raises(mg.RunError, match="no more paper"):
        mg.drive(model, engine, 9, [adding, mg.observer(fail, 3)])
    assert adding.calls == ["start", "failed"]


def test_an_observer_may_end_the_run() -> None:
    class Enough(mg.Observer):
        def ends(self, simulation: mg.Simulation) -> Any:
            return "asked" if simulation.rank == 1 and simulation.step >= 3 else None

    model = counting()

    def run(comm: Comm) -> tuple[int, str]:
        with mg.Engine(model.layouts("slabs", comm.size), comm=comm) as engine:
            result = mg.drive(model, engine, 10**9, [Enough(), mg.observer(lambda simulation: None, 1)])
            return result.steps, result.ended.reason

    assert mg.run_virtual(2, run) == [(3, "asked")] * 2


class Ending(mg.Observer):
    """Ends the run after 6 steps, on one rank, for a reason."""

    schedule = mg.Schedule(steps=2)

    def __init__(self, said: Any) -> None:
        self.said = said

    def ends(self, simulation: mg.Simulation) -> Any:
        return self.said if simulation.step == 6 and simulation.rank == simulation.engine.comm.size - 1 else None


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize(
    ("said", "reason", "text"),
    [
        ("u has settled", "over", "u has settled, in step 6"),
        ("over", "over", "over, in step 6"),
        ("condition", "over", "condition, in step 6"),
        ("wall time", "wall time", "wall time at step 6"),
        ("", "steps", "all 20 steps done"),
    ],
)
def test_an_observer_says_why_the_run_ends(ranks: int, said: str, reason: str, text: str) -> None:
    model = counting()

    def run(comm: Comm) -> tuple[str, str]:
        with mg.Engine(model.layouts("slabs", comm.size), comm=comm) as engine:
            ended = mg.drive(model, engine, 20, [Ending(said)]).ended
            return ended.reason, str(ended)

    assert mg.run_virtual(ranks, run) == [(reason, text)] * ranks


def test_a_run_that_an_observer_ends_is_complete(tmp_path: Path) -> None:
    """It returns what it has, also if it is asked for again."""
    for resume in (False, True):
        history = mg.run(counting(), 20, out=tmp_path / "run", resume=resume, observers=[Ending("u has settled")])
        assert (history.steps, history.ended) == (6, "u has settled, in step 6")


@pytest.mark.parametrize("said", [True, 5])
def test_a_reason_is_text(said: Any) -> None:
    with pytest.raises(mg.CaseError, match=rf"Ending\.ends\(\) returned {said}: expected text or None"):
        mg.run(counting(), 20, observers=[Ending(said)])


class Recording(mg.Observer):
    """Records the steps that it sees, those at ends included."""

    name = "recording"
    schedule = mg.Schedule(steps=7, start=True, end=True)

    def __init__(self) -> None:
        self.seen: list[int] = []

    def observe(self, simulation: mg.Simulation) -> None:
        self.seen.append(simulation.step)

    def state(self) -> list[int]:
        return self.seen

    def resume(self, simulation: mg.Simulation, state: Any) -> None:
        self.seen = state


@pytest.mark.parametrize("said", ["time limit", "asked"])
def test_an_interruption_leaves_no_trace_in_the_state_of_observers(tmp_path: Path, said: str) -> None:
    whole, first, second = Recording(), Recording(), Recording()
    mg.run(counting(), 20, observers=[whole])
    try:
        mg.run(counting(), 20, out=tmp_path / "run", observers=[first, Ending(said)])
    except KeyboardInterrupt:
        assert said == "asked"
    mg.run(counting(), 20, out=tmp_path / "run", observers=[second], resume=True)
    assert first.seen == [0, 6]
    assert second.seen == whole.seen == [0, 7, 14, 20]


def test_a_state_that_no_checkpoint_can_hold_is_refused_before_the_first_step(tmp_path: Path) -> None:
    adding = Adding()
    adding.sum = np.arange(3)  # type: ignore[assignment]
    with pytest.raises(mg.CaseError, match="the state of observer 'adding' cannot be written into a checkpoint"):
        mg.run(counting(), 20, out=tmp_path / "run", observers=[adding])
    assert adding.calls == ["start", "failed"]


def test_a_request_does_not_put_off_the_time_of_the_model() -> None:
    class Asking(mg.Observer):
        schedule = mg.Schedule(time=0.5)

        def __init__(self) -> None:
            self.seen: list[int] = []

        def wants(self, simulation: mg.Simulation) -> bool:
            return simulation.step == 5

        def observe(self, simulation: mg.Simulation) -> None:
            self.seen.append(simulation.step)

    asking = Asking()
    mg.run(counting(mg.Clock(dt=0.1)), 12, observers=[asking])
    assert asking.seen == [5, 10]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((3, 10), r"observer\(3\): expected a function"), ((print,), "would never be called")],
    ids=str,
)
def test_observers_that_could_not_be_called(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(mg.CaseError, match=message):
        mg.observer(*arguments)


def test_names_of_observers() -> None:
    model, late = counting(), Adding()
    late.phase = mg.Phase.SHOW
    with mg.Engine(model.layouts("single", 1)) as engine, pytest.raises(mg.CaseError, match="after its checkpoint"):
        mg.drive(model, engine, 1, [late])
    with mg.Engine(model.layouts("single", 1)) as engine, pytest.raises(mg.CaseError, match="two observers are called"):
        mg.drive(model, engine, 1, [Adding(), Adding()])


@pytest.mark.parametrize("kept", [False, True])
def test_a_run_from_python_has_observers(tmp_path: Path, kept: bool) -> None:
    adding, seen = Adding(), []
    observers = [adding, mg.observer(lambda simulation: seen.append(simulation.time), 3, end=True)]
    out = {"out": tmp_path / "run"} if kept else {}
    history = mg.run(counting(mg.Clock(dt=0.5)), 7, observers=observers, **out)
    assert history.u.shape == (2, *GRID.shape)
    assert adding.sum == 2 + 4 + 6
    assert seen == [1.5, 3.0, 3.5]


@pytest.mark.parametrize("wrong", [print, [print], mg.Schedule(steps=1), Adding()])
def test_what_is_no_observer_is_refused(wrong: Any) -> None:
    with pytest.raises(mg.CaseError, match=r"observers=.*expected a list of observers"):
        mg.run(counting(), 3, observers=wrong)


BURSTING = """
import minga as mg


def model(shape=(4, 128)):
    grid = mg.Grid(shape)
    u = mg.Field("u", grid, slots=2)

    @mg.kernel
    def squared(u, new):
        new[0, 0] = u[0, 0] * u[0, 0]

    step = mg.Program("step")
    step.apply(squared, u, u.next)
    step.rotate(u)
    return mg.Model("bursting", grid, (u,), step, {u: 1e10})
"""
CASE = """
model = "bursting.py"
[run]
steps = 12
ranks = 1
[output]
pictures = 0
report = false
"""


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("", "is not finite at cell (0, 0) after step 12"),
        ("[observers.finite]", "is not finite at cell (0, 0) after step 5"),
        ("[observers.finite]\nevery = 4", "is not finite at cell (0, 0) after step 8"),
        ("[observers.finite]\nevery = 0", "observers.finite.every: expected a whole number of at least 1"),
    ],
)
def test_a_case_names_an_observer_that_ships_with_minga(in_tmp_path: Path, named: str, said: str) -> None:
    Path("bursting.py").write_text(BURSTING)
    Path("bursting.toml").write_text(CASE + named)
    ended = in_process("run", "bursting.toml")
    assert ended.status != 0
    assert said in ended.err
