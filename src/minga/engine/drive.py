"""Driving a model: Python between chunks of steps, for output, progress, signals and the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from minga.engine.engine import Engine, FieldValue, Outcome
from minga.engine.finite import all_finite
from minga.engine.lookout import Finding, Steps
from minga.engine.model import Model
from minga.engine.state import BEGINNING, Beginning, Position, State, state_of
from minga.engine.stop import Ended, Reason, Stop, Watch
from minga.errors import RunError
from minga.space.field import SEED, STEP, Field, Slot

CHUNK_SECONDS = 0.2
"""Time between two looks at the clock; all ranks agree on the number of steps it takes."""


class Balance(Protocol):
    """Who moves work between ranks while a model runs, such as :class:`minga.fit.balance.Balancer`."""

    @property
    def interval(self) -> int | None:
        """Steps from one look to the next; None for about five a second."""

    def start(self, model: Model, engine: Engine) -> None:
        """Called on all ranks before the first step."""

    def look(self, engine: Engine, step: int, remaining: int) -> bool:
        """Called on all ranks after `step` steps since `start`; it may change the engine's layouts, and says whether it
        did."""


class Keeper(Protocol):
    """Who keeps the state of a run on the disk, such as :class:`minga.record.checkpoint.keeper.Keeper`."""

    @property
    def interval(self) -> int | None:
        """Steps from one checkpoint to the next; None for those that `wishes` asks for."""

    def resume(self, model: Model, engine: Engine, state: State) -> Position | None:
        """Called on all ranks before the first step, with initial values in the engine: it may put back a state that
        was kept, and says which; None to begin at the beginning."""

    def wishes(self, elapsed: float) -> tuple[bool, bool]:
        """Asked on all ranks after steps that took `elapsed` seconds: whether a checkpoint is due, and whether the run
        must end for want of time. One rank's wish is enough."""

    def keep(self, engine: Engine, position: Position, ended: Ended | None) -> None:
        """Called on all ranks when a checkpoint is due, and when there are no more steps, with the reason."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run came to. `seconds` is the time in steps and observation, without output; `resumed` says with how many
    steps and seconds it began, which are counted in."""

    steps: int
    seconds: float
    outcome: Outcome
    observables: Mapping[str, Any]
    cells_per_second: float
    ended: Ended
    resumed: Position = BEGINNING
    findings: tuple[Finding, ...] = ()


def start(model: Model, engine: Engine, values: Iterable[tuple[Slot, FieldValue]] | None = None) -> None:
    """Put a model's initial values into an engine; `values` in place of working out those of its fields.

    LayoutError where the engine's layout cuts the model's grid at places that its results would depend on.
    """
    if model.cuts:
        model.check_cuts(engine.storage.layout(model.grid))
    engine.reset_registers()
    engine.write(SEED, model.seed)
    engine.write(STEP, 0)
    for register, value in model.registers.items():
        engine.write(register, value)
    for slot, initial in model.start_values() if values is None else values:
        engine.set(slot, initial)


def drive(
    model: Model,
    engine: Engine,
    steps: int,
    *,
    every: int | None = None,
    on_snapshot: Callable[[int, Engine], None] | None = None,
    on_progress: Callable[[int, int, Engine], None] | None = None,
    stop: Callable[[], bool] | None = None,
    look: Callable[[], bool] | None = None,
    on_look: Callable[[int, Engine], None] | None = None,
    until: Stop | None = None,
    observe_every: int | None = None,
    on_observe: Callable[[int, Mapping[str, Any]], None] | None = None,
    balance: Balance | None = None,
    keeper: Keeper | None = None,
    on_resume: Callable[[Position], None] | None = None,
    on_last: Callable[[], None] | None = None,
) -> Result:
    """Run `steps` steps from the model's initial values, fewer where `until` says so.

    on_snapshot(step, engine) is called on every rank at step 0, every `every` steps and at the end; on_observe(step,
    observables) likewise, and also every `observe_every` steps; on_progress(step, steps, engine) about five times a
    second. `stop()` on any rank ends the run after the same step on all; a step that takes more than a second from then
    on is left and undone, where the state before it is small enough to be kept beside. As often, `look()` is asked on
    rank 0 whether somebody wants to see the state; then on_look(step, engine) is called on every rank. All ranks give
    `stop` or none, `on_look` or none, and `on_observe` or none; `look` counts on rank 0 only. `balance` may move work
    to other ranks after steps; what that takes counts as time of the steps. `keeper` writes checkpoints, after the
    output of their step, and may begin with one: then on_resume(position) is called, and steps and output up to there
    are not repeated. on_last() is called on every rank when all have agreed that there are no more steps, before the
    last output.
    RunError if a reduction is not finite, or at a snapshot or the end a value of an output field: the snapshot is taken
    before, and the fields still hold what was computed. CaseError if the model cannot be watched as `until` asks.
    """
    one_by_one = Steps(model.step, model.lookout)
    watch = None if until is None and model.over is None else Watch(model, until or Stop(), one_by_one.program)
    start(model, engine)
    one_by_one.start(engine)
    if balance is not None:
        balance.start(model, engine)
    if watch is not None:
        watch.start(engine)
    engine.prepare(one_by_one.program if watch is None else watch.program, looped=False)
    if model.observe is not None:
        engine.prepare(model.observe, looped=False)
    state = state_of(model, one_by_one.program if watch is None else watch.program)
    kept = None if keeper is None else keeper.resume(model, engine, state)
    resumed = kept or BEGINNING
    spent, done, chunk = resumed.seconds, resumed.step, 1
    outcome, ended = Outcome(True, "finished"), Ended("steps", done)
    engine.look.asked = stop
    beginning = None if stop is None else Beginning(engine, state)
    costly = False  # to keep the state, against what steps took last
    # The last steps of output: of a run that goes on, what came at regular steps is there.
    shown = done if kept is not None and _regular(done, every) else -1
    told = done if kept is not None and _regular(done, every, observe_every) else -1
    if kept is None:
        _check_start(model, engine)
    interval = None if balance is None else balance.interval
    keeping = None if keeper is None else keeper.interval
    if kept is not None and on_resume is not None:
        on_resume(kept)
    # Beyond those that come at regular steps, output is made of the last step, which is no step of this run any more.
    again = kept is not None and done >= steps
    if on_snapshot is not None and (kept is None or (again and not (every and done % every == 0))):
        on_snapshot(done, engine)
        shown = done
    if on_observe is not None and (kept is None or (again and not _regular(done, every, observe_every))):
        on_observe(done, observe(model, engine))
        told = done
    while done < steps and outcome.ok:
        goals = [_next_multiple(done, interval) for interval in (every, observe_every) if interval]
        looks = _next_multiple(done, interval) if interval else steps
        keeps = _next_multiple(done, keeping) if keeping else steps
        count = min(chunk, steps - done, *(goal - done for goal in (*goals, looks, keeps)))
        engine.look.may = beginning is not None and beginning.possible and not costly
        if beginning is not None and engine.look.may:
            beginning.keep()
        began = time.perf_counter()
        try:
            if watch is not None:
                count, outcome = watch.run(engine, count)
            else:
                count, outcome = one_by_one.run(engine, done, count)
        finally:
            engine.look.may = False
        elapsed = time.perf_counter() - began
        spent += elapsed
        left = outcome.reason == "stop"
        if left and beginning is not None:
            beginning.put_back()
            count, outcome = 0, Outcome(True, "stop")
        done += count
        if not outcome.ok:
            break
        over = watch.ended(engine, done) if watch is not None else None
        late = until is not None and until.seconds is not None and spent >= until.seconds
        wanted = on_look is not None and look is not None and engine.comm.rank == 0 and look()
        due, time_up = (False, False) if keeper is None else keeper.wishes(elapsed)
        asked = left or (stop is not None and stop())
        costly = beginning is not None and beginning.costly(elapsed)
        chunk, (asked, late, looked, due, time_up, costly) = _agree(
            engine, _next_chunk(count, elapsed), asked, late, wanted, due, time_up, costly
        )
        ended = over or Ended(_reason(done == steps, asked=asked, late=late, time_up=time_up), done)
        last = done == steps or ended.reason != "steps"
        if last and on_last is not None:
            on_last()
        if (last or (every and done % every == 0)) and shown != done:
            if on_snapshot is not None:
                on_snapshot(done, engine)
            check_finite(model, engine, done)
            shown = done
        if on_observe is not None and (last or done in goals) and told != done:
            told = done
            began = time.perf_counter()
            on_observe(done, observe(model, engine))
            spent += time.perf_counter() - began
        if on_look is not None and looked:
            on_look(done, engine)
        if on_progress is not None:
            on_progress(done, steps, engine)
        if keeper is not None and (last or due or (keeping and done == keeps)):
            keeper.keep(engine, Position(done, spent), ended if last else None)
        if last:
            outcome = outcome if ended.reason == "steps" else Outcome(True, "stop")
            break
        if balance is not None and (interval is None or done == looks):
            began = time.perf_counter()
            balance.look(engine, done - resumed.step, steps - done)
            spent += time.perf_counter() - began
    observables = observe(model, engine) if outcome.reason != "not finite" else {}
    if not outcome.ok:
        known = None if model.explain is None else model.explain(engine)
        raise known or RunError(
            f"the run ended after {done} of {steps} steps: {outcome.reason}",
            where=outcome.place or None,
            remedy="use a smaller time step, or look at the last snapshot for where it began",
        )
    rate = model.grid.size * updates_of(model, engine, done) / spent if spent > 0 else 0.0
    return Result(done, spent, outcome, observables, rate, ended, resumed, one_by_one.findings(engine))


def updates_of(model: Model, engine: Engine, done: int) -> int:
    """How often all cells have been updated after so many steps."""
    return done if model.updates is None else int(engine.read(model.updates))


def check_finite(model: Model, engine: Engine, step: int) -> None:
    """RunError on every rank that names the first cell of an output field that is NaN or infinite, if there is one."""
    fields = _floating(model)
    if engine.device is not None and all_finite(engine, fields):
        return  # without bringing the fields to the host
    for slot, cell in _not_finite(engine, [item.now for item in fields]):
        raise RunError(
            f"field {slot.field.name!r} is not finite at cell {cell} after step {step}",
            remedy="use a smaller time step; the last frames show where it began",
        )


def _check_start(model: Model, engine: Engine) -> None:
    """RunError on every rank where initial values that a person gave an output field are NaN or infinite."""
    fields = _floating(model)
    slots = [slot for slot in model.given if slot.field in fields]
    present = [slot.field for slot in slots if slot.index == 0]
    if engine.device is not None and len(present) == len(slots) and all_finite(engine, present):
        return  # without bringing the fields to the host
    for slot, cell in _not_finite(engine, slots):
        raise RunError(
            f"model {model.name!r}: the initial values of {slot!r} are not finite at cell {cell}",
            remedy=f"give numbers: initial={{{slot.field.name!r}: ...}}",
        )


def _floating(model: Model) -> list[Field]:
    """The output fields that can hold what is not finite, and that ranks have parts of."""
    return [item for item in map(model.field, model.output) if item.dtype in ("f4", "f8") and not item.replicated]


def _not_finite(engine: Engine, slots: Sequence[Slot]) -> Iterator[tuple[Slot, tuple[int, ...]]]:
    """Slots that hold NaN or infinity somewhere, with the first such cell; collective."""
    nowhere = np.iinfo(np.int64).max
    first = np.full(max(1, len(slots)), nowhere, np.int64)
    for number, slot in enumerate(slots):
        bounds = slot.field.bounds
        for box, values in engine.blocks(slot):
            bad = ~np.isfinite(values)
            if bad.any():
                local = np.unravel_index(int(np.argmax(bad)), values.shape)
                index = [int(i) + low - start for i, low, start in zip(local, box.lo, bounds.lo, strict=True)]
                first[number] = min(first[number], int(np.ravel_multi_index(index, bounds.shape)))
    engine.comm.allreduce(first, "min")
    for slot, place in zip(slots, first.tolist(), strict=False):
        if place != nowhere:
            bounds = slot.field.bounds
            yield slot, tuple(int(i) + low for i, low in zip(np.unravel_index(place, bounds.shape), bounds.lo))


def observe(model: Model, engine: Engine) -> dict[str, Any]:
    """The model's observables now."""
    if model.observe is None:
        return {}
    engine.run(model.observe)
    return {
        name: [engine.read(register) for register in item] if isinstance(item, tuple) else engine.read(item)
        for name, item in model.observables.items()
    }


def _reason(complete: bool, *, asked: bool, late: bool, time_up: bool) -> Reason:
    """Why no more steps are done, where no check says so; "steps" also while there are more."""
    if asked:
        return "asked"
    if late:
        return "wall time"
    return "time limit" if time_up and not complete else "steps"


def _regular(done: int, *intervals: int | None) -> bool:
    return any(interval and done % interval == 0 for interval in intervals)


def _next_multiple(done: int, interval: int) -> int:
    return done - done % interval + interval


def _next_chunk(count: int, elapsed: float) -> int:
    """Steps that take about CHUNK_SECONDS, growing at most eightfold."""
    return max(1, min(8 * count, int(count * CHUNK_SECONDS / max(elapsed, 1e-9))))


def _agree(engine: Engine, chunk: int, *wishes: bool) -> tuple[int, list[bool]]:
    """The smallest chunk, and for each wish whether anyone has it; the same on all ranks."""
    words = np.array([-chunk, *wishes], np.int64)
    engine.comm.allreduce(words, "max")
    return int(-words[0]), [bool(word) for word in words[1:]]
