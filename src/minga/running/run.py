"""A run from Python: what comes back is what xarray works with, in memory, or on the disk where it can be resumed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from minga.engine.comm import Comm, SerialComm
from minga.engine.model import Model
from minga.engine.stop import Ended, Stop
from minga.errors import CaseError, shown, suggest
from minga.output.checkpoint.keeper import Checkpointing
from minga.output.dataset import Frames, attributes_of, failed_attributes, hand_over, opened
from minga.output.interrupt import Interrupt
from minga.output.snapshots.whole import WholeFrames
from minga.output.traces import check_observed
from minga.output.variables import variables_of
from minga.output.versions import check_versions
from minga.plan.settle import AUTO
from minga.running.observer import Observer
from minga.running.observers.series import Series
from minga.running.place import SECONDS, Place, finished_in, kept_in, run_in
from minga.running.session import Outcome, Settings, execute
from minga.space.field import Field

if TYPE_CHECKING:
    import xarray

__all__ = ["run"]


def run(
    model: Model,
    steps: int,
    *,
    every: int | None = None,
    fields: Sequence[str] | None = None,
    threads: int = 1,
    comm: Comm | None = None,
    layout: str = AUTO,
    halo_depth: int | Literal["auto"] = AUTO,
    overlap: bool | Literal["auto"] = AUTO,
    machine: str | Path | None = None,
    balance: int | Literal["auto", "off"] = AUTO,
    stop: Stop | None = None,
    observe: int | None = None,
    device: Literal["cpu", "gpu", "gpu-shared"] = "cpu",
    out: str | Path | None = None,
    checkpoint: int | Checkpointing | None = None,
    resume: bool = False,
    observers: Sequence[Observer] = (),
) -> xarray.Dataset:
    """Run a model and return its frames: dimensions time, y, x; the digest and the last observables are attributes.

    Observables are also variables, over the dimension ``observed``: at frames, and every ``observe`` steps.

    Parameters
    ----------
    steps, every
        How many steps, and from one frame to the next; without ``every`` the first and the last state are kept.
    fields
        Names of the fields to keep; by default the model's output.
    stop
        When to end before the last step: ``mg.Stop(when="population < 10")``; the attribute ``ended`` says why it did.
    observe
        Steps from one observation to the next.
    threads, comm, layout, halo_depth, overlap, balance
        How it is run; nothing of the result depends on them. On several ranks (``comm=mg.MPIComm()``) every rank calls
        this, and rank 0 gets the frames; the datasets of the others hold attributes only. ``layout="auto"`` plans: for
        a run that is worth it the ranks time the model and the network for a moment, and the other three may be
        ``"auto"`` too. ``balance`` may be steps from one look to the next, or ``"off"``.
    machine
        A machine file to plan by, as ``minga measure`` writes it, in place of timing.
    device
        ``"gpu"`` for a GPU for each rank of a machine, ``"gpu-shared"`` where ranks may share one.
    out
        A new directory for the frames, which are then read from there when they are looked at, and for what ``minga
        export`` and others want to know. By default all frames are in memory.
    checkpoint
        Steps from one checkpoint in ``out`` to the next, or a ``mg.Checkpointing``; by default one is written every
        five minutes.
    resume
        Go on with what an interrupted run of this model has left in ``out``, or begin where there is nothing. The same
        bits come back as if it had not been interrupted. What a run that is finished has left is returned.
    observers
        What happens between steps beside that: ``mg.observer(function, steps=10)``, or objects of classes derived from
        :class:`minga.running.observer.Observer`; on several ranks all give the same ones.

    Raises CaseError for an argument that cannot be meant; RunError where a disk refuses or a value is not finite.
    Ctrl-C ends a run after the step it is at, with a frame and a checkpoint, and raises KeyboardInterrupt; pressed
    again, it interrupts at once. So does SIGTERM where there is ``out``, and the process then ends by that signal,
    unless the script handles it. Whatever the exception, its attribute ``dataset`` holds what was computed until then.
    """
    _check_kinds(model, stop)
    _check_number("steps", steps, 0, "say how many steps to do: steps=100")
    if every is not None:
        _check_number("every", every, 1, "say the steps from one frame to the next, every=10, or leave it out")
    if observe is not None:
        _check_number("observe", observe, 1, "say the steps from one observation to the next, or leave it out")
    _check_number("threads", threads, 1, "say how many threads a rank has: threads=2")
    if halo_depth != AUTO:
        _check_number("halo_depth", halo_depth, 1, "say how many steps lie between two exchanges: halo_depth=1")
    if overlap != AUTO and not isinstance(overlap, bool | np.bool_):
        raise CaseError(f"overlap={overlap!r}: expected True or False", remedy='write overlap=True, False or "auto"')
    if balance not in (AUTO, "off"):
        _check_number("balance", balance, 1, 'say the steps from one look to the next, "auto" or "off"')
    _check_observers(observers)
    chosen = _chosen(model, fields)
    variables_of(chosen, f"model {model.name!r}")  # says what of them cannot be kept
    check_observed(model, observe)
    if observe is None and model.traces is not None:
        observe = model.traces.every
    elif observe is None and model.tables:
        observe = 1
    ranks = comm or SerialComm()
    check_versions(ranks)
    file = None if machine is None else Path(machine)
    settings = Settings(
        steps, every, threads, layout, halo_depth, overlap, machine=file, balance=balance, until=stop, observe=observe,
        device=device,
    )  # fmt: skip
    if out is None:
        _check_without_directory(checkpoint, resume)
    place = None if out is None else kept_in(ranks, Path(out), _schedule(checkpoint), resume, steps)
    if place is not None and place.finished:
        return _finished(model, ranks, settings, chosen, place)
    with Interrupt(termination=place is not None).listening() as interrupt:
        if place is None:
            dataset, ended = _in_memory(model, ranks, settings, chosen, interrupt, observers)
        else:
            dataset, ended = _on_disk(model, ranks, settings, chosen, place, interrupt, observers)
    if interrupt.asked or ended.reason == "asked":
        text = f"the run ended after {ended.step} of {steps} steps"
        where = "" if place is None else f", and in {place.directory.path}, where resume=True goes on"
        interrupt.terminate(text + where)
        stopped = KeyboardInterrupt(text)
        hand_over(stopped, dataset, where)
        raise stopped
    return dataset


def _in_memory(
    model: Model,
    comm: Comm,
    settings: Settings,
    chosen: Sequence[Field],
    stop: Callable[[], bool],
    observers: Sequence[Observer],
) -> tuple[xarray.Dataset, Ended]:
    """Run a model and keep whole frames on rank 0."""
    frames = Frames(model, chosen)
    try:
        strides = [interval for interval in (settings.every, settings.observe) if interval]
        watching = [Series(frames.series.add, strides), *observers]
        recorder = WholeFrames(model, chosen, frames.keep)
        outcome = execute(model, comm, settings, chosen, watching, recorder=recorder, asked=stop)
    except BaseException as error:
        if frames.steps:
            hand_over(error, frames.dataset(failed_attributes(model, frames.steps, error)))
        raise
    _tell(comm, (finding.text for finding in outcome.findings))
    attributes = _attributes(model, outcome)
    return frames.dataset(attributes) if comm.rank == 0 else _empty(attributes), outcome.ended


def _on_disk(
    model: Model,
    comm: Comm,
    settings: Settings,
    chosen: Sequence[Field],
    place: Place,
    stop: Callable[[], bool],
    observers: Sequence[Observer],
) -> tuple[xarray.Dataset, Ended]:
    """Run a model in a directory, and open on rank 0 what it left."""
    outcome, series = run_in(place, model, comm, settings, chosen, stop, observers)
    _tell(comm, (finding.text for finding in outcome.findings))
    attributes = _attributes(model, outcome)
    dataset = opened(place.directory, model, series, attributes) if comm.rank == 0 else _empty(attributes)
    return dataset, outcome.ended


def _finished(model: Model, comm: Comm, settings: Settings, chosen: Sequence[Field], place: Place) -> xarray.Dataset:
    """What a run in a directory has left that is finished."""
    result, series = finished_in(place, model, comm, settings, chosen)
    findings = result.get("findings", [])
    _tell(comm, (finding["text"] for finding in findings))
    facts = {name: value for finding in findings for name, value in finding.items() if name != "text"}
    known = facts | result["observables"]
    attributes = attributes_of(model, result["steps"], result["ended"]["text"], result["digest"], known)
    return opened(place.directory, model, series, attributes) if comm.rank == 0 else _empty(attributes)


def _empty(attributes: dict[str, Any]) -> xarray.Dataset:
    """What ranks get that hold no frames."""
    import xarray

    return xarray.Dataset(attrs=attributes)


def _attributes(model: Model, outcome: Outcome) -> dict[str, Any]:
    """Attributes of what is returned."""
    known = outcome.facts | outcome.observables
    return attributes_of(model, outcome.steps, str(outcome.ended), outcome.digest, known)


def _tell(comm: Comm, findings: Iterable[str]) -> None:
    """Say what people should know of a run."""
    for text in findings if comm.rank == 0 else ():
        sys.stderr.write(f"minga: {text}\n")


def _schedule(checkpoint: object) -> Checkpointing:
    """When checkpoints are written; CaseError for what cannot be meant."""
    if checkpoint is None or isinstance(checkpoint, Checkpointing):
        return checkpoint or Checkpointing(seconds=SECONDS)
    _check_number("checkpoint", checkpoint, 1, "say the steps from one checkpoint to the next, or leave it out")
    return Checkpointing(steps=int(checkpoint))  # type: ignore[call-overload]


def _check_without_directory(checkpoint: object, resume: bool) -> None:
    """CaseError where a run is to be kept, and nobody said where."""
    name = "resume=True" if resume else None if checkpoint is None else f"checkpoint={shown(checkpoint)}"
    if name is not None:
        raise CaseError(
            f"{name}: in which directory?", remedy='name one for what the run leaves, such as out="runs/heat"'
        )


def _check_kinds(model: object, stop: object) -> None:
    """CaseError where Python was given something else for the model or the stop."""
    if not isinstance(model, Model):
        raise CaseError(
            f"expected a model, found {shown(model)}",
            remedy='make one: mg.automaton("B3/S23", (256, 256), init={"soup": 0.3}), or mg.Model(...)',
        )
    if stop is not None and not isinstance(stop, Stop):
        raise CaseError(f"stop={shown(stop)}: expected mg.Stop", remedy="write stop=mg.Stop(when='...'), for one")


def _check_observers(observers: object) -> None:
    """CaseError where Python was given something else for the observers."""
    for item in observers if isinstance(observers, list | tuple) else [observers]:
        if not isinstance(item, Observer):
            raise CaseError(
                f"observers={shown(observers)}: expected a list of observers, found {shown(item)}",
                remedy="write observers=[mg.observer(function, steps=10)]",
            )


def _check_number(name: str, value: object, least: int, remedy: str) -> None:
    """CaseError unless a parameter is a whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise CaseError(f"{name}={shown(value)}: expected a whole number of at least {least}", remedy=remedy)


def _chosen(model: Model, fields: Sequence[str] | None) -> tuple[Field, ...]:
    """The fields to keep; CaseError for one that the model does not have."""
    known = {field.name: field for field in model.visible}
    names = (fields,) if isinstance(fields, str) else model.output if fields is None else tuple(fields)
    for name in names:
        if name not in known:
            raise CaseError(
                f"fields={list(names)!r}: model {model.name!r} has no field {name!r}",
                suggestion=suggest(str(name), known),
                remedy=f"its fields are {', '.join(known)}",
            )
    if not names:
        raise CaseError("fields=[]: expected at least one field", remedy=f"leave it out, or name {', '.join(known)}")
    return tuple(known[name] for name in names)
