"""The keywords of :func:`minga.run`, which are the settings that :class:`minga.options.RunOptions` declares."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import numpy as np
from pydantic.fields import FieldInfo

from minga.engine.model import Model
from minga.engine.stop import Stop, stop_of
from minga.errors import CaseError, shown
from minga.options import COMMAND, ON_DISK, OutputSettings, RunOptions, RunSettings, marked
from minga.output.checkpoint.keeper import Checkpointing, checkpointing_of
from minga.running.defaults import steps_of

__all__ = ["NAME_OUT", "declared", "options_of", "with_settings"]

NAME_OUT: Final = 'name one for what the run leaves, such as out="runs/heat"'

_OTHERWISE: Final = ("steps", "ranks")
"""Settings that Python gives in another way: as an argument of their own, and by `comm`."""

_PYTHON: Final[Mapping[str, Any]] = {"pictures": 0, "report": False, "threads": None}
"""Defaults that are others than those of a case."""

Function = TypeVar("Function", bound=Callable[..., Any])


def declared() -> Iterator[tuple[str, FieldInfo, Any]]:
    """Yield the keywords that stand for settings: the name, its declaration, and the default in Python."""
    for table in (RunSettings, OutputSettings):
        for name, field in table.model_fields.items():
            if name not in _OTHERWISE and COMMAND not in field.metadata:
                yield name, field, _PYTHON.get(name, field.default)


def with_settings(function: Function) -> Function:
    """Give a function with the parameter `**settings` the signature and the description of all settings of a run."""
    written = inspect.signature(function)
    own = [p for p in written.parameters.values() if p.kind is not p.VAR_KEYWORD]
    keywords = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=field.annotation)
        for name, field, default in declared()
    ]
    function.__signature__ = written.replace(parameters=[*own, *keywords])  # type: ignore[attr-defined]
    said = (f"{name} : default {default!r}\n{_described(field)}" for name, field, default in declared())
    text = "\n".join(("Settings", "--------", *said))
    function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n{text}\n"
    return function


def options_of(
    model: Model,
    steps: object,
    stop: object,
    checkpoint: object,
    settings: Mapping[str, Any],
    *,
    in_memory: bool,
    threads: int = 1,
) -> RunOptions:
    """Return the options that the arguments of :func:`minga.run` stand for; `threads` is the default of that setting.

    Raises
    ------
    CaseError
        For an unknown keyword, an invalid value, and where `in_memory` for a setting that needs a directory.
    """
    for name in ("ranks",):
        if name in settings:
            raise CaseError("ranks: in Python the ranks are those of comm", remedy="give comm=mg.MPIComm()")
    for _, name in sorted(marked(COMMAND)):
        if name in settings:
            raise CaseError(f"{name}: only `minga run` starts ranks and watches them", remedy="leave it out")
    if in_memory:
        _check_in_memory(checkpoint, settings)
    own = {} if settings.get("until") is not None else steps_of(model)
    said = own if steps is None else {"steps": steps}
    table, limit = _checkpoint(checkpoint)
    given = {**_PYTHON, **_several(settings), **said}
    given["threads"] = threads if given["threads"] is None else given["threads"]
    if limit is not None and given.get("wall_time") is None:
        given["wall_time"] = limit
    options = RunOptions.of(_stop(stop), table, **given)
    stop_of(options.stop)  # raises for an invalid condition
    checkpointing_of(options)  # raises where the entries exclude each other
    return options


def _several(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in which one name of a field stands for a list of it."""
    fields = settings.get("fields")
    return {**settings, "fields": [fields]} if isinstance(fields, str) else dict(settings)


def _stop(stop: object) -> dict[str, Any]:
    """Return the entries of [stop] that an argument stands for."""
    if stop is None:
        return {}
    if isinstance(stop, str):
        return {"when": stop}
    if isinstance(stop, Mapping):
        return dict(stop)
    if isinstance(stop, Stop):
        return dataclasses.asdict(stop)
    raise CaseError(
        f"stop={shown(stop)}: expected mg.Stop, a condition or a dict", remedy='write stop="population < 10"'
    )


def _checkpoint(checkpoint: object) -> tuple[dict[str, Any], float | None]:
    """Return the entries of [checkpoint] that an argument stands for, and the time limit that it carries."""
    if checkpoint is None:
        return {}, None
    if isinstance(checkpoint, Mapping):
        return dict(checkpoint), None
    if not isinstance(checkpoint, Checkpointing):
        number = isinstance(checkpoint, int | float | np.number) and not isinstance(checkpoint, bool)
        if not isinstance(checkpoint, str) and not (number and checkpoint > 0):  # type: ignore[operator]
            raise CaseError(
                f"checkpoint={shown(checkpoint)}: expected a whole number of at least 1",
                remedy='give the steps from one checkpoint to the next, a model time such as 0.5 or "0.5 s", "off", or '
                "leave it out",
            )
        return {"every": checkpoint}, None
    if checkpoint.off:
        return {"every": "off"}, None
    entries = {"every": checkpoint.steps, "seconds": checkpoint.seconds, "at_end": checkpoint.at_end}
    return {key: value for key, value in entries.items() if value is not None}, checkpoint.time_limit


def _check_in_memory(checkpoint: object, settings: Mapping[str, Any]) -> None:
    """CaseError for what needs a directory where there is none."""
    given = {"checkpoint": checkpoint} | {
        name: settings.get(name) for _, name in sorted(marked(ON_DISK)) if settings.get(name)
    }
    for name, value in given.items():
        if value is not None and value != _default(name):
            raise CaseError(f"{name}={shown(value)}: in which directory?", remedy=NAME_OUT)


def _default(name: str) -> Any:
    return next((default for known, _, default in declared() if known == name), None)


def _described(field: FieldInfo) -> str:
    return textwrap.indent(textwrap.fill(str(field.description), 100), "    ")
