"""Runs from Python: they return a dataset of xarray, in memory, or on the disk, where they can be resumed."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from minga.engine.comm import Comm, SerialComm
from minga.engine.model import Model
from minga.engine.rank_zero import on_rank_zero
from minga.engine.stop import Ended, Stop
from minga.errors import CaseError, shown, suggest
from minga.options import RunOptions
from minga.output.checkpoint.keeper import Checkpointing
from minga.output.dataset import Frames, attach_dataset, attributes_of, failed_attributes, open_dataset
from minga.output.interrupt import Interrupt
from minga.output.provenance import COMMAND
from minga.output.series import Series as SeriesSoFar
from minga.output.snapshots.codec import check_snapshots
from minga.output.snapshots.selection import selections_of
from minga.output.snapshots.whole import WholeFrames
from minga.output.traces import check_observed
from minga.output.variables import variables_of
from minga.output.versions import check_versions
from minga.paths import check_free
from minga.running.call import call_of
from minga.running.defaults import completed, default_threads
from minga.running.finishing import complete
from minga.running.goal import Goal, ending_time
from minga.running.growing import Growing
from minga.running.growing_frames import GrowingFrames
from minga.running.initial import with_initial
from minga.running.keywords import NAME_OUT, options_of, with_settings
from minga.running.observer import Observer
from minga.running.observers.callback import Callback, Frame
from minga.running.observers.ending import LastStep
from minga.running.observers.progress import Progress, progress_of
from minga.running.observers.series import Series
from minga.running.run_directory import PreparedDirectory, finished_result_in, prepare_directory, run_in_directory
from minga.running.session import Outcome, execute
from minga.running.simulation import Simulation
from minga.space.field import Field
from minga.view.accessor import add_to_datasets
from minga.view.python_progress import has_display, python_display

if TYPE_CHECKING:
    import xarray

__all__ = ["run"]

_NETCDF: Final = ".nc"
"""Suffix of the file in which a run may leave its dataset."""


@with_settings
def run(
    model: Model,
    steps: int | None = None,
    *,
    comm: Comm | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    initial: Mapping[Any, Any] | xarray.Dataset | None = None,
    callback: Callable[[Frame], object] | None = None,
    observers: Sequence[Observer] = (),
    stop: Stop | str | Mapping[str, Any] | None = None,
    checkpoint: Checkpointing | float | str | Mapping[str, Any] | None = None,
    progress: bool = True,
    **settings: Any,
) -> xarray.Dataset:
    """Run a model and return its frames: dimensions time, y, x; the digest and the last observables are attributes.

    Observables are also variables, over the dimension ``observed``: at frames, and every ``observe`` steps.

    Parameters
    ----------
    model
        The model.
    steps
        How many steps to do; may be left out for a model that says so itself, and with the setting ``until``, the
        model time to run to.
    comm
        The ranks; on several (``comm=mg.MPIComm()``) every rank calls this, and rank 0 gets the frames; the datasets of
        the others hold attributes only.
    out
        A new directory for the frames, which are then read from there when they are looked at, and for what ``minga
        export`` and others want to know; or a new file ``NAME.nc``, a NetCDF file in which the dataset is written at
        the end. By default all frames are in memory.
    resume
        Resume an interrupted run of this model from what it left in ``out``, or begin where there is nothing. The same
        bits come back as if it had not been interrupted. What a finished run left is returned.
    initial
        Initial values in place of those of the model: numbers, arrays or functions of the coordinates by field, or the
        dataset of an earlier run, whose last frame gives all output fields. The time begins at 0.
    callback
        A function that is called on rank 0 with each frame, a `mg.Frame` of step, time, whole fields and observables:
        before the first step, at every interval ``every``, and after the last step. It ends the run at this step by
        raising StopIteration, whose text then says why in the attribute ``ended``.
    observers
        What happens between steps beside that: ``mg.observer(function, steps=10)``, or objects of classes derived from
        :class:`minga.Observer`; on several ranks all give the same ones.
    stop
        When to end before the last step: ``mg.Stop(when="population < 10")``, its condition alone, or the entries of
        the table [stop] as a dict. The attribute ``ended`` says why the run ended.
    checkpoint
        Steps, or model time (``0.5``, ``"0.5 s"``), from one checkpoint in ``out`` to the next, ``"off"``, a
        ``mg.Checkpointing``, or the entries of the table [checkpoint] as a dict; by default one is written every five
        minutes.
    progress
        Show the progress of runs of more than half a second: a bar on the terminal, a line that is renewed in a
        notebook, and nothing where standard error is neither.
    **settings
        The entries of the tables [run] and [output] of a case, which are described below.

    Returns
    -------
    xarray.Dataset
        Frames, observables and, as attributes, the digest, why the run ended, the last observables, and where the data
        come from: ``parameters`` and ``versions`` (JSON), ``seed`` and ``command``.

    Raises
    ------
    CaseError
        For an argument that is invalid.
    RunError
        If a disk refuses, or a value is not finite.
    KeyboardInterrupt
        After Ctrl-C: the run ends after the step it is at, with a frame and a checkpoint; pressed again, it is
        interrupted at once. So does SIGTERM where there is ``out``, and the process then ends by that signal, unless
        the script handles it.

    Whatever the exception, its attribute ``dataset`` holds what was computed until then.
    """
    ranks = comm or SerialComm()
    if out is not None and Path(out).suffix == _NETCDF:
        again = functools.partial(run, model, steps, comm=comm, resume=resume, initial=initial, callback=callback)
        return _into_file(
            Path(out),
            ranks,
            lambda: again(observers=observers, stop=stop, checkpoint=checkpoint, progress=progress, **settings),
        )
    add_to_datasets()
    _check_model(model)
    _check_observers(observers)
    if initial is not None:
        model = with_initial(model, initial)
    threads = default_threads(model, ranks) if settings.get("threads") is None else 1
    options = options_of(model, steps, stop, checkpoint, settings, in_memory=out is None, threads=threads)
    options = completed(options, model)
    check_observed(model, options.output.observe)
    chosen = _chosen(model, options.output.fields)
    variables_of(chosen, f"model {model.name!r}")  # raises for what cannot be kept
    check_snapshots(chosen, options.output)
    check_versions(ranks)
    if out is None and resume:
        raise CaseError("resume=True: in which directory?", remedy=NAME_OUT)
    place = None if out is None else prepare_directory(ranks, Path(out), resume, Goal.of(options, model))
    if place is not None and place.finished:
        return _finished(model, ranks, options, chosen, place)
    _tell(ranks, model.warnings)
    watching = [*_called_back(callback, chosen, options), *observers]
    command = call_of(options, {"initial": initial, "callback": callback, "observers": tuple(observers) or None})
    with (
        Interrupt(termination=place is not None).listening() as interrupt,
        _displayed(model, ranks, options, progress) as shown_progress,
    ):
        watching += shown_progress
        if place is None:
            dataset, ended = _in_memory(model, ranks, options, chosen, interrupt, watching, command)
        else:
            last = LastStep(interrupt.answer)
            dataset, ended = _on_disk(model, ranks, options, chosen, place, interrupt, [last, *watching], command)
    if interrupt.asked or ended.reason == "asked":
        text = f"the run ended after {ended.step}{Goal.of(options, model).whole} steps"
        where = "" if place is None else f", and in {place.directory.path}, where resume=True goes on"
        interrupt.terminate(text + where)
        stopped = KeyboardInterrupt(text)
        attach_dataset(stopped, dataset, where)
        raise stopped
    return dataset


def _into_file(path: Path, comm: Comm, run_in_memory: Callable[[], xarray.Dataset]) -> xarray.Dataset:
    """Run in memory, and write the dataset to a file, also if an error ends the run."""
    from minga.output.dataset_netcdf import write_dataset

    def free() -> None:
        check_free(path, replace=False, key="out")
        if not path.absolute().parent.is_dir():
            raise CaseError(f"the directory {str(path.parent)!r} does not exist", key="out")

    on_rank_zero(comm, free, "run")
    try:
        dataset = run_in_memory()
    except BaseException as error:
        kept = getattr(error, "dataset", None)
        if kept is not None and comm.rank == 0:
            write_dataset(path, kept)
        raise
    if comm.rank == 0:
        write_dataset(path, dataset)
    return dataset


def _called_back(
    callback: Callable[[Frame], object] | None, chosen: Sequence[Field], options: RunOptions
) -> list[Observer]:
    """Return the observer that calls a person's function with frames, if there is one."""
    if callback is None:
        return []
    if not callable(callback):
        raise CaseError(f"callback={shown(callback)}: expected a function of one argument, a frame")
    return [Callback(callback, [field.name for field in chosen], options.output.every)]


@contextmanager
def _displayed(model: Model, comm: Comm, options: RunOptions, wanted: bool) -> Iterator[list[Observer]]:
    """Yield the observer that shows the progress of a run on rank 0, on all ranks if it has a display; collective."""
    if not comm.bcast(wanted and has_display() if comm.rank == 0 else None):
        yield []
        return
    end = ending_time(options)
    with python_display(model.name) as listener:

        def tell(simulation: Simulation, seconds: float, updates: int) -> None:
            listener.progress(progress_of(simulation, seconds, updates, end))

        yield [Progress(tell)]


def _in_memory(
    model: Model,
    comm: Comm,
    options: RunOptions,
    chosen: Sequence[Field],
    stop: Callable[[], bool],
    observers: Sequence[Observer],
    command: str,
) -> tuple[xarray.Dataset, Ended]:
    """Run a model and keep whole frames on rank 0."""
    frames = Frames(model, [], command)
    try:
        watching = [Series(frames.series.add, [options.output.every, options.output.observe]), *observers]
        growing = None if model.growth is None else Growing(model)

        def whole_frames(model: Model) -> WholeFrames:
            frames.model, shown = model, _chosen(model, [field.name for field in chosen])
            kept = selections_of(shown, options.output, model.presentation)
            frames.variables = [one.variable for one in kept]
            return WholeFrames(model, kept, frames.keep)

        recorder = whole_frames(model) if growing is None else GrowingFrames(growing, whole_frames, held=True)
        outcome = execute(model, comm, options, chosen, watching, recorder=recorder, asked=stop, growing=growing)
        model = frames.model
    except BaseException as error:
        if frames.steps:
            attach_dataset(error, frames.dataset(failed_attributes(model, frames.steps, error)))
        raise
    _tell(comm, (finding.text for finding in outcome.findings))
    attributes = _attributes(model, outcome)
    return frames.dataset(attributes) if comm.rank == 0 else _empty(attributes | {COMMAND: command}), outcome.ended


def _on_disk(
    model: Model,
    comm: Comm,
    options: RunOptions,
    chosen: Sequence[Field],
    place: PreparedDirectory,
    stop: Callable[[], bool],
    observers: Sequence[Observer],
    command: str,
) -> tuple[xarray.Dataset, Ended]:
    """Run a model in a directory, and open its files on rank 0."""
    outcome, series = run_in_directory(place, model, comm, options, chosen, stop, observers, command)
    _tell(comm, (finding.text for finding in outcome.findings))
    attributes = _attributes(model, outcome)
    if comm.rank == 0:
        complete(place.directory, options, outcome.ended.reason)
    return _opened(place, model, comm, series, attributes), outcome.ended


def _opened(
    place: PreparedDirectory, model: Model, comm: Comm, series: SeriesSoFar, attributes: dict[str, Any]
) -> xarray.Dataset:
    """Open the files of a run on rank 0, and return the same attributes on all ranks; collective."""
    dataset = open_dataset(place.directory, model, series, attributes) if comm.rank == 0 else None
    command = comm.bcast(None if dataset is None else dataset.attrs.get(COMMAND, ""))
    return _empty(attributes | {COMMAND: command}) if dataset is None else dataset


def _finished(
    model: Model, comm: Comm, options: RunOptions, chosen: Sequence[Field], place: PreparedDirectory
) -> xarray.Dataset:
    """Return the dataset of a finished run in a directory."""
    result, series = finished_result_in(place, model, comm, options, chosen)
    findings = result.get("findings", [])
    _tell(comm, (finding["text"] for finding in findings))
    facts = {name: value for finding in findings for name, value in finding.items() if name != "text"}
    known = facts | result["observables"]
    attributes = attributes_of(model, result["steps"], result["ended"]["text"], result["digest"], known)
    return _opened(place, model, comm, series, attributes)


def _empty(attributes: dict[str, Any]) -> xarray.Dataset:
    """Return the dataset of ranks that hold no frames."""
    import xarray

    return xarray.Dataset(attrs=attributes)


def _attributes(model: Model, outcome: Outcome) -> dict[str, Any]:
    """Return the attributes of the dataset."""
    known = outcome.facts | outcome.observables
    return attributes_of(model, outcome.steps, str(outcome.ended), outcome.digest, known)


def _tell(comm: Comm, texts: Iterable[str]) -> None:
    """Print warnings, or the findings of a run, on standard error."""
    for text in texts if comm.rank == 0 else ():
        sys.stderr.write(f"minga: {text}\n")


def _check_model(model: object) -> None:
    """Raise CaseError if the argument is not a model."""
    if not isinstance(model, Model):
        raise CaseError(
            f"expected a model, found {shown(model)}",
            remedy='make one: mg.automaton("B3/S23", (256, 256), init={"soup": 0.3}), or mg.Model(...)',
        )


def _check_observers(observers: object) -> None:
    """Raise CaseError if the argument is not a list of observers."""
    wrong: list[object] = [observers]
    if isinstance(observers, list | tuple):
        wrong = [item for item in observers if not isinstance(item, Observer)]
    if wrong:
        raise CaseError(
            f"observers={shown(observers)}: expected a list of observers, found {shown(wrong[0])}",
            remedy="write observers=[mg.observer(function, steps=10)]",
        )


def _chosen(model: Model, fields: Sequence[str] | None) -> tuple[Field, ...]:
    """Return the fields to keep; CaseError for one that the model does not have."""
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
