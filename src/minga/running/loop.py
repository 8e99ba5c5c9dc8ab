"""The loop of a run: steps up to the next event, and observers for everything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from minga.engine.begin import check_start, start
from minga.engine.diagnostics import Finding
from minga.engine.engine import Engine, Outcome
from minga.engine.model import Model
from minga.engine.observables import updates_of
from minga.engine.state import BEGINNING, Position
from minga.engine.stop import Ended, Stop
from minga.errors import RunError
from minga.markup import block, described
from minga.output.trace import Stopwatch
from minga.running.agenda import Agenda
from minga.running.growing import Growing
from minga.running.observer import Observer
from minga.running.observers.beginning import Beginning
from minga.running.observers.ending import WallTime
from minga.running.observers.finite import Finite
from minga.running.pace import Pace
from minga.running.painting import Painting
from minga.running.recording import Recording
from minga.running.simulation import Simulation
from minga.running.stepper import Stepper

__all__ = ["Result", "drive"]

CHUNK_SECONDS: Final = 0.2
"""Time between two looks at the clock; all ranks agree on the number of steps it takes."""


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """The result of a run.

    Parameters
    ----------
    steps, time, seconds
        The number of steps done, the model's time, and the wall time in steps and observation, without output.
    outcome
        The end of the last steps.
    observables
        Observables of the last state.
    cells_per_second
        Cell updates per second; None on an unbounded plane.
    ended
        The reason of the end.
    resumed
        The steps and seconds with which the run began, which are counted in.
    findings
        Facts that people should know of the run.
    """

    steps: int
    time: float
    seconds: float
    outcome: Outcome
    observables: Mapping[str, Any]
    cells_per_second: float | None
    ended: Ended
    resumed: Position = BEGINNING
    findings: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        return "\n".join(["Result", *(f"  {name}: {value}" for name, value in self._facts().items())])

    def _repr_html_(self) -> str:
        return block("Result", described(self._facts()))

    def _facts(self) -> dict[str, object]:
        """Return what people want to know of a run."""
        found: dict[str, object] = {"ended": self.ended, "steps": self.steps, "time": f"{self.time:.9g}"}
        found |= {name: value for name, value in self.observables.items() if name not in found}
        if self.cells_per_second is not None:
            found["speed"] = f"{self.cells_per_second:.3g} cell updates a second, in {self.seconds:.3g} s"
        return found | {f"finding {number}": one.text for number, one in enumerate(self.findings, 1)}


def drive(
    model: Model,
    engine: Engine,
    steps: int,
    observers: Sequence[Observer] = (),
    *,
    until: Stop | None = None,
    end: float | None = None,
    output: Stopwatch | None = None,
    growing: Growing | None = None,
    painting: Painting | None = None,
) -> Result:
    """Run a model on an engine from its initial values, or from a checkpoint that an observer puts back; collective.

    Parameters
    ----------
    model, engine
        The model and the engine that runs it.
    steps
        The most steps.
    observers
        Everything that happens between steps, the same on all ranks: see `Observer`.
    until
        The condition that ends the run before the last step.
    end
        Model time at which the run ends, in the unit of the model's clock; `steps` is then ignored.
    output
        A stopwatch of the time of output.
    growing
        The window of a model on an unbounded plane; None: the model's grid is all there is.
    painting
        Cells that are set between steps; None: none are.

    Returns
    -------
    Result
        The result, equal on all ranks.

    Raises
    ------
    RunError
        If a reduction is not finite, or a value of an output field where a `Finite` observer looks or at the end.
    CaseError
        If the model cannot be watched as `until` asks, or its clock cannot reach `end`.
    """
    stepper = Stepper(model, engine, until)
    pace = Pace(model, engine, end)
    steps = pace.steps(steps)
    simulation = Simulation(model, engine, steps, stepper, output=output or Stopwatch(keep=False))
    beginning = None if model.review is None else Beginning()
    agenda = Agenda(simulation, _completed([*observers, *([] if beginning is None else [beginning])], until))
    recording = None
    if growing is None and painting is None and not stepper.watched:
        recording = Recording.of(model, engine, stepper.program, simulation.observers)
    start(model, engine)
    stepper.start()
    pace.start()
    if model.observe is not None:
        engine.prepare(model.observe, looped=False)
    try:
        agenda.start()
        if simulation.resumed is None:
            check_start(model, engine)
        pace.begin(simulation)
        first = {} if beginning is None else beginning.look(simulation)
        outcome = _advance(simulation, agenda, pace, growing, painting, recording)
    except BaseException:
        agenda.fail()
        raise
    simulation.activity = "finishing"
    agenda.finish()
    last = simulation.observe()
    reviewed = None if model.review is None else model.review(first, last)
    edited = () if painting is None else painting.findings()
    return Result(
        steps=simulation.step,
        time=simulation.time,
        seconds=simulation.seconds,
        outcome=outcome,
        observables=last,
        cells_per_second=_rate(simulation),
        ended=simulation.ended or Ended("steps", simulation.step, unmet=stepper.unmet()),
        resumed=simulation.resumed or BEGINNING,
        findings=(*stepper.findings(), *(() if reviewed is None else (reviewed,)), *edited),
    )


def _advance(
    simulation: Simulation, agenda: Agenda, pace: Pace, growing: Growing | None, painting: Painting | None,
    recording: Recording | None,
) -> Outcome:  # fmt: skip
    """Show the initial state to those that want to see it, and do all steps; return the outcome of the last ones."""
    chunk, outcome, stepper = 1, Outcome(True, "finished"), simulation.stepper
    opening = simulation.model.opening and simulation.step == 0 < simulation.steps
    painted = False
    if not opening:
        agenda.begin()
    while simulation.step < simulation.steps and simulation.ended is None:
        simulation.activity = "stepping"
        if painting is not None:
            painting.apply(simulation, painted)
            chunk = min(chunk, painting.room(simulation.step))
        count = min(chunk, pace.plan(simulation, agenda.next_time()), agenda.next_step(recording) - simulation.step)
        if growing is not None:
            count = min(count, growing.room(simulation))
            if count == 0:  # no larger window fits in memory
                agenda.observe()
                break
        count, outcome = _do(simulation, count, recording)
        if not outcome.ok:
            raise _failure(simulation, outcome)
        pace.advanced(simulation)
        over = stepper.ended(simulation.step)
        wishes = painting is not None and painting.waiting(simulation)
        numbers = (-_next_chunk(count, simulation.latest), stepper.costly(simulation.latest), wishes)
        (fewest, costly, wished), asked = agenda.ask(*numbers)
        chunk, painted = -fewest, bool(wished)
        stepper.agreed(bool(costly))
        simulation.ended = over or _ended(simulation, Ended("asked", simulation.step) if stepper.left else asked)
        if simulation.ended is not None:
            simulation.ended = replace(simulation.ended, unmet=stepper.unmet())
        if opening and (simulation.step > 0 or simulation.ended is not None):
            agenda.begin()
            opening = False
        agenda.observe()
    early = simulation.ended is not None and simulation.ended.reason != "steps"
    return Outcome(True, "stop") if early else outcome


def _do(simulation: Simulation, count: int, recording: Recording | None) -> tuple[int, Outcome]:
    """Do at most `count` steps; return their number and the outcome of the last one."""
    begun = simulation.step
    if recording is not None:
        count = recording.room(begun, count)
        recording = recording if recording.due(count) else None
    count, outcome, simulation.latest = simulation.stepper.run(begun, count, recording)
    simulation.step += count
    simulation.seconds += simulation.latest
    if recording is not None and count:
        recording.hand_over(simulation, begun)
    return count, outcome


def _completed(observers: Sequence[Observer], until: Stop | None) -> list[Observer]:
    """Return the observers of a run with those that every run has."""
    found = list(observers)
    if until is not None and until.seconds is not None:
        found.append(WallTime(until.seconds))
    if not any(isinstance(observer, Finite) for observer in found):
        found.append(Finite())
    return found


def _ended(simulation: Simulation, asked: Ended | None) -> Ended | None:
    """Return the reason for which there are no more steps, unless the model's state gives it; None while there are."""
    complete = simulation.step == simulation.steps
    if asked is None or (complete and asked.reason == "time limit"):
        return Ended("steps", simulation.step) if complete else None
    return asked


def _failure(simulation: Simulation, outcome: Outcome) -> Exception:
    """Return the error that describes the failure of steps; the fields still hold the computed values."""
    if outcome.reason != "not finite":
        simulation.observe()  # explanations may read observables
    explain = simulation.model.explain
    known = None if explain is None else explain(simulation.engine)
    return known or RunError(
        f"the run ended after {simulation.step} of {simulation.steps} steps: {outcome.reason}",
        where=outcome.place or None,
        remedy="the rates of change are not finite at the initial values: does an equation divide by 0 there, or take "
        "the logarithm of 0 or the root of a negative value?"
        if outcome.reason == "not finite" and simulation.step == 0
        else "use a smaller time step, or look at the last snapshot for where it began",
    )


def _next_chunk(count: int, elapsed: float) -> int:
    """Return the number of steps that take about CHUNK_SECONDS, growing at most eightfold."""
    return max(1, min(8 * count, int(count * CHUNK_SECONDS / max(elapsed, 1e-9))))


def _rate(simulation: Simulation) -> float | None:
    """Return cell updates per second; None on an unbounded plane, of which most is empty and takes no time."""
    if simulation.model.growth is not None:
        return None
    updates = updates_of(simulation.model, simulation.engine, simulation.step)
    return simulation.model.grid.size * updates / simulation.seconds if simulation.seconds > 0 else 0.0
