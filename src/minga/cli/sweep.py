"""Runs for all combinations of parameters, side by side on the cores, as one dataset with a dimension for each."""

from __future__ import annotations

import contextlib
import io
import itertools
import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from minga.cli.case import read_case
from minga.engine.model import Model
from minga.engine.pin import available_cores
from minga.errors import CaseError, MingaError, RunError, shown
from minga.options import COMMAND as COMMAND_ONLY
from minga.options import ON_DISK, OutputSettings, RunSettings, marked
from minga.output.provenance import COMMAND
from minga.output.variables import variables_of
from minga.running.run import run
from minga.running.side_by_side import side_by_side
from minga.space.names import OBSERVED, OF_RESULTS, RECEIVER_TIMES, TIME
from minga.view.accessor import add_to_datasets

if TYPE_CHECKING:
    import xarray

__all__ = ["sweep"]

Make = Callable[..., Model]
Value = bool | int | float | str
_OF_ONE_RUN: Final = ("comm", "out", "resume", "observers", "callback", "checkpoint", "progress")
"""Arguments of `mg.run` that have no meaning for many runs in other processes."""
_GROWING: Final = (TIME, OBSERVED, RECEIVER_TIMES)
"""Dimensions that are longer in runs of more steps."""
_OF_EACH: Final = ("digest", "ended", "steps")
"""Attributes that differ from run to run, and become variables."""
_OF_RANKS: Final = {"ranks", "threads", "weights", "topology", "mapping"}
"""Settings of a case that one rank with one thread has no use for."""
_NAMED: Final = 3
"""Most failed runs that an error names."""


@dataclass(frozen=True, slots=True)
class _Task:
    """One run: a function or a case, its parameters, and the settings of `mg.run`."""

    make: Make | str
    point: Mapping[str, Value]
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Answer:
    """The dataset of a run, None if it has none, and the error that ended it."""

    dataset: xarray.Dataset | None
    failure: str = ""
    mistake: CaseError | None = None
    """The error, if an argument is invalid."""
    warnings: tuple[str, ...] = ()
    """Warnings of the model, with the parameters of the run."""


def sweep(
    make: Make | str | Path,
    parameters: Mapping[str, Iterable[Value]],
    steps: int | None = None,
    *,
    workers: int | None = None,
    **settings: Any,
) -> xarray.Dataset:
    """Run a model for all combinations of parameters, side by side on the cores, and return one dataset.

    Each run is done by one thread in a process of its own, so that its bits are those of the same run alone, for any
    number of workers. All frames are in memory.

    Parameters
    ----------
    make
        A function that takes the parameters by name and returns a `Model`; or a case, as `minga run` takes it: the name
        of an example or of a file. The function may be one of a notebook or script.
    parameters
        The values of each parameter by its name: numbers or texts. Of a case these are its keys, such as
        ``"gray-scott.F"``; the last word then names the dimension, if it is the only such word and no variable has
        this name.
    steps
        How many steps to do; may be left out for a model or a case that says so itself, or with ``until``.
    workers
        How many processes; by default one for each free core. With 1 all runs are done one after the other in this
        process.
    **settings
        Keywords of `mg.run`, such as ``until=5.0, every=0.5``, and ``stop``; those of a case come from the case where
        they are left out.

    Returns
    -------
    xarray.Dataset
        The variables of `mg.run` with the parameters as first dimensions, for example ``(D, seed, time, y, x)``, and
        ``digest``, ``ended`` and ``steps`` of each run. Runs that end earlier than others are filled with NaN, and
        whole numbers are then floats.

    Raises
    ------
    CaseError
        If an argument is invalid for all runs, or if runs have different grids or fields.
    RunError
        If runs fail: it names their parameters. Its attribute `dataset` holds all others, and of these what they had
        computed until then.
    KeyboardInterrupt
        After Ctrl-C, with the attribute `dataset`, which holds the runs that were finished.

    Examples
    --------
    >>> import minga as mg
    >>> def make(rule, seed):
    ...     return mg.automaton(rule, (32, 32), init={"soup": 0.3}, seed=seed)
    >>> history = mg.sweep(make, {"rule": ["B3/S23", "B36/S23"], "seed": range(2)}, steps=10, workers=1)
    >>> history.cell.dims
    ('rule', 'seed', 'time', 'y', 'x')
    """
    target = _target(make)
    values = _values(parameters)
    _check_settings(settings)
    wanted = {**settings, **({} if steps is None else {"steps": steps})}
    tasks = [
        _Task(target, dict(zip(values, point, strict=True)), wanted) for point in itertools.product(*values.values())
    ]
    add_to_datasets()
    answers: list[Any] = [None] * len(tasks)
    try:
        _answer(tasks, min(_workers(workers), len(tasks)), answers)
    except KeyboardInterrupt as stopped:
        _attach(stopped, tasks, answers, values)
        raise
    _warn(tasks, answers)
    failed = [f"{_said(task)}: {answer.failure}" for task, answer in zip(tasks, answers, strict=True) if answer.failure]
    if len(failed) == len(tasks) and all(answer.dataset is None for answer in answers):
        raise _of_all(answers, f"all {len(tasks)} runs failed; {failed[0]}")
    if failed:
        more = f"; and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
        error = RunError(f"{len(failed)} of {len(tasks)} runs failed; {'; '.join(failed[:_NAMED])}{more}")
        _attach(error, tasks, answers, values)
        raise error
    return _combined(tasks, answers, values)


def _warn(tasks: Sequence[_Task], answers: Sequence[_Answer]) -> None:
    """Print the warnings of models with their parameters."""
    found = [f"{_said(task)}: {text}" for task, answer in zip(tasks, answers, strict=True) for text in answer.warnings]
    more = [f"{len(found) - _NAMED} more warnings"] if len(found) > _NAMED else []
    for text in [*found[:_NAMED], *more]:
        sys.stderr.write(f"minga: {text}\n")


def _answer(tasks: Sequence[_Task], workers: int, answers: list[Any]) -> None:
    """Do all runs, and put their answers in their places."""
    if workers == 1:
        for number, task in enumerate(tasks):
            answers[number] = _done(task)
        return
    side_by_side(_done, tasks, workers, answers)
    for number, answer in enumerate(answers):
        if isinstance(answer, RunError):  # of a process that has died
            answers[number] = _Answer(None, str(answer))


def _done(task: _Task) -> _Answer:
    """Do one run; nothing but Ctrl-C is raised."""
    warnings: tuple[str, ...] = ()
    try:
        model, own = _model(task)
        if isinstance(model, Model):  # otherwise `mg.run` raises
            _check_names(task, model)
            warnings = model.warnings
        ends = {"steps", "until"}
        if not ends.isdisjoint(task.settings):
            own = {name: value for name, value in own.items() if name not in ends}
        with contextlib.redirect_stderr(io.StringIO()):  # remarks, which would come from all runs at once
            return _Answer(
                run(model, **{"threads": 1, "progress": False, **own, **task.settings}).load(), warnings=warnings
            )
    except MingaError as error:
        mistake = error if isinstance(error, CaseError) else None
        return _Answer(getattr(error, "dataset", None), str(error.message), mistake, warnings)
    except Exception as error:
        return _Answer(getattr(error, "dataset", None), f"{type(error).__name__}: {error}", warnings=warnings)


def _model(task: _Task) -> tuple[Model, dict[str, Any]]:
    """Return the model of a run, and the settings that its case gives."""
    if not isinstance(task.make, str):
        return task.make(**task.point), {}
    ends = {f"run.{name}": task.settings[name] for name in ("steps", "until") if name in task.settings}
    case = read_case(task.make, options={**ends, **task.point})
    if case.observers:
        raise CaseError(
            "a sweep does not run the observers of a case",
            key="observers",
            remedy="leave them out, or call mg.run in a loop with observers=",
        )
    elsewhere = {name for mark in (ON_DISK, COMMAND_ONLY) for _, name in marked(mark)} | _OF_RANKS
    found: dict[str, Any] = {}
    for table, kind in (("run", RunSettings), ("output", OutputSettings)):
        names = (getattr(case.options, table).model_fields_set & set(kind.model_fields)) - elsewhere
        found |= {name: getattr(getattr(case.located, table), name) for name in names}
    if found.get("until") is not None:
        found.pop("steps", None)  # an estimate
    stop = case.options.stop.model_dump(exclude_unset=True)
    return case.model, found | ({"stop": stop} if stop else {})


def _check_names(task: _Task, model: Model) -> None:
    """Raise CaseError for a parameter whose dimension would have the name of a variable or an axis of the runs."""
    variables = variables_of(model.visible)
    axes = {coordinate.name for variable in variables for coordinate in variable.coordinates}
    taken = {*OF_RESULTS, *_OF_EACH, *axes, *model.observables, *(each.name for each in variables)}
    for key in task.point:
        if key in taken:
            raise CaseError(
                f"parameter {key!r}: the dimension {key!r} would have the name of a variable or an axis of the runs",
                remedy="give the parameter another name, in a function that makes the models",
            )


def _of_all(answers: Sequence[_Answer], text: str) -> MingaError:
    """Return the error for runs that have all failed, with the hint of the first one if an argument is invalid."""
    mistake = answers[0].mistake
    if mistake is None:
        return RunError(text)
    return CaseError(text, suggestion=mistake.suggestion, remedy=mistake.remedy)


def _target(make: object) -> Make | str:
    """Return the function, or the name of the case."""
    if isinstance(make, Model):
        raise CaseError(
            f"sweep: expected a function that makes models, found the model {make.name!r}",
            remedy='write a function: def make(D): return mg.pde("D * laplace(u)", grid, parameters={"D": D})',
        )
    if isinstance(make, str | Path):
        return str(make)
    if callable(make):
        return make
    raise CaseError(f"sweep: expected a function that makes models, or the name of a case, found {shown(make)}")


def _values(parameters: object) -> dict[str, list[Value]]:
    """Return the values of each parameter, as Python's numbers and texts."""
    example = 'write {"D": [0.1, 1.0], "seed": range(4)}'
    if not isinstance(parameters, Mapping) or not parameters:
        raise CaseError(f"parameters={shown(parameters)}: expected values by name", remedy=example)
    found: dict[str, list[Value]] = {}
    for name, several in parameters.items():
        if isinstance(several, str) or not isinstance(several, Iterable):
            raise CaseError(f"parameter {name!r}: expected several values, found {shown(several)}", remedy=example)
        values = [value.item() if isinstance(value, np.generic) else value for value in several]
        wrong = [value for value in values if not isinstance(value, bool | int | float | str)]
        if wrong or not values:
            raise CaseError(
                f"parameter {name!r}: expected numbers or texts, found {shown(wrong[0]) if wrong else 'none'}",
                remedy="give a number or a name of each, and let the function choose by it",
            )
        if len(set(values)) < len(values):
            raise CaseError(f"parameter {name!r}: a value occurs twice in {shown(values)}")
        found[str(name)] = values
    return found


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Raise CaseError for arguments of `mg.run` that many runs cannot have."""
    wrong = [name for name in _OF_ONE_RUN if name in settings]
    if wrong:
        raise CaseError(
            f"{wrong[0]}={shown(settings[wrong[0]])}: a sweep has many runs, all in memory",
            remedy="leave it out, or call mg.run in a loop",
        )


def _workers(workers: object) -> int:
    """Return the number of processes."""
    if workers is None:
        return max(1, len(available_cores()))
    if isinstance(workers, bool) or not isinstance(workers, int | np.integer) or workers < 1:
        raise CaseError(f"workers={shown(workers)}: expected a whole number of at least 1")
    return int(workers)


def _said(task: _Task) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in task.point.items())


def _attach(
    error: BaseException, tasks: Sequence[_Task], answers: Sequence[_Answer | None], values: Mapping[str, list[Value]]
) -> None:
    """Attach what there is to an error, as its attribute `dataset`."""
    with contextlib.suppress(CaseError):  # runs that do not fit together
        known = [answer if isinstance(answer, _Answer) else _Answer(None) for answer in answers]
        if any(answer.dataset is not None for answer in known):
            error.dataset = _combined(tasks, known, values)  # type: ignore[attr-defined]


def _combined(tasks: Sequence[_Task], answers: Sequence[_Answer], values: Mapping[str, list[Value]]) -> xarray.Dataset:
    """Return all runs as one dataset."""
    import xarray

    known = [(task, answer.dataset) for task, answer in zip(tasks, answers, strict=True) if answer.dataset is not None]
    for task, dataset in known[1:]:
        _check_alike(known[0], (task, dataset))
    first = known[0][1]
    nothing = first.isel({name: slice(0, 0) for name in _GROWING if name in first.dims}).drop_attrs(deep=False)
    nested: Any = [
        _with_outcome(nothing if answer.dataset is None else answer.dataset, answer.failure) for answer in answers
    ]
    names = _dimensions(values, {*OF_RESULTS, *_OF_EACH, *map(str, first.variables), *map(str, first.dims)})
    for several in reversed(list(values.values())):
        nested = [nested[begin : begin + len(several)] for begin in range(0, len(nested), len(several))]
    found: xarray.Dataset = xarray.combine_nested(
        nested[0], concat_dim=list(names), data_vars="all", coords="different", compat="equals", join="outer",
        combine_attrs="drop_conflicts",
    )  # fmt: skip
    found = found.assign_coords(
        {name: (name, several, {"long_name": key}) for name, (key, several) in zip(names, values.items(), strict=True)}
    )
    found.attrs = _shared([dataset for _, dataset in known])
    return found.transpose(*names, ...)


def _shared(datasets: Sequence[xarray.Dataset]) -> dict[Any, Any]:
    """Return the attributes that all runs share; the last observables are those of one run, even if they are equal."""
    first, *others = datasets
    own = {*_OF_EACH, COMMAND, *map(str, first.data_vars)}
    own |= {name.removesuffix(f"_{OBSERVED}") for name in own}
    missing = object()
    return {
        name: value
        for name, value in first.attrs.items()
        if name not in own and all(np.array_equal(value, each.attrs.get(name, missing)) for each in others)
    }


def _dimensions(values: Mapping[str, object], taken: Container[str]) -> list[str]:
    """Return the names of the dimensions: the last words of keys, or whole keys where others or `taken` have these."""
    last = [name.rpartition(".")[2] for name in values]
    return [
        short if last.count(short) == 1 and short not in taken else name
        for short, name in zip(last, values, strict=True)
    ]


def _with_outcome(dataset: xarray.Dataset, failure: str) -> xarray.Dataset:
    """Return a dataset of one run with the attributes that other runs do not share as variables."""
    ended = str(dataset.attrs.get("ended", ""))
    if failure and not ended.startswith("failed"):
        ended = f"failed: {failure}"
    outcome = {"digest": dataset.attrs.get("digest", ""), "ended": ended, "steps": dataset.attrs.get("steps", 0)}
    return dataset.assign({name: ((), value) for name, value in outcome.items()})


def _check_alike(one: tuple[_Task, xarray.Dataset], other: tuple[_Task, xarray.Dataset]) -> None:
    """Raise CaseError if two runs have different fields or grids."""
    (task, first), (another, second) = one, other
    axes = [name for name in first.dims if name not in _GROWING]
    same = set(first.data_vars) == set(second.data_vars) and all(
        name in second.dims and first[name].equals(second[name]) for name in axes
    )
    if not same:
        raise CaseError(
            f"the runs with {_said(task)} and {_said(another)} have different grids or fields",
            remedy="call mg.run in a loop, and keep the datasets in a list",
        )
