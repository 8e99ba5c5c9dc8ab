"""Making the Model that a case names: installed models, and Python files that define one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import PydanticUserError

from minga.case.python_file import run_file
from minga.case.settings import GridSettings
from minga.case.spec import model_spec
from minga.engine.model import Model
from minga.errors import CaseError, MingaError, suggest
from minga.schema import validate

__all__ = ["PythonCase", "load_model", "python_case", "read_settings"]

_FIELD: Final = "parameter_"
_PLAIN: Final = "plain"
"""Mark of parameters without annotation, whose values are passed on unchanged."""
TABLES: Final = ("run", "stop", "checkpoint", "output")
"""Tables of a case for which a Python file may give defaults, as dicts of these names."""
_TIMES: Final = (("run", "until"), ("output", "every"), ("output", "observe"), ("checkpoint", "every"))
"""Entries of a case that are numbers of steps or times."""


def read_settings(name: str, table: Mapping[str, Any]) -> Any:
    """Check the table of an installed model, and return an instance of its settings class.

    Parameters
    ----------
    name
        Name of the model.
    table
        Table of the case with the settings of the model.

    Raises
    ------
    CaseError
        If the model is unknown, or an entry is invalid.
    """
    return validate(model_spec(name).settings, table, name)


def load_model(
    name: str, tables: Mapping[str, Any], grid: GridSettings, directory: Path, *, planning: bool = False
) -> Model:
    """Make the model of a case.

    Parameters
    ----------
    name
        The entry "model" of the case: the name of an installed model, which reads the table of that name, or "file.py",
        a Python file, which reads the table [parameters].
    tables
        All tables of the case.
    grid
        The table [grid] of the case.
    directory
        The directory of the case file.
    planning
        True if the model is only planned and not run; then quantities that take long to compute on a large grid may be
        estimated from a part of it.

    Returns
    -------
    Model
        The model.

    Raises
    ------
    CaseError
        If the model is unknown, or a table is missing or invalid.
    """
    if name.endswith(".py"):
        return python_case(directory / name).model(grid, tables.get("parameters", {}))
    spec = model_spec(name)
    if not isinstance(tables.get(name), Mapping):
        raise CaseError(f"the case has no table [{name}]", key=name, remedy=f"describe the {name} in [{name}]")
    for key, value in grid:
        if value is not None and key not in spec.grid:
            raise CaseError(
                f"the model {name!r} has no {key} to choose in [grid]",
                key=f"grid.{key}",
                remedy=f"leave it out; [{name}] has the settings of the model",
            )
    make = (spec.make_to_plan or spec.make) if planning else spec.make
    more = {"times": _times(tables)} if spec.times else {}
    return make(read_settings(name, tables[name]), grid, directory, **more)


def _times(tables: Mapping[str, Any]) -> dict[str, float | str]:
    """Return the intervals and the end of a run that its case gives as times of the model, by their keys."""
    given = {f"{table}.{key}": tables.get(table, {}).get(key) for table, key in _TIMES}
    return {key: value for key, value in given.items() if isinstance(value, float | str) and value != "off"}


@dataclass(frozen=True, slots=True)
class PythonCase:
    """A Python file that defines a simulation.

    The file has a function `model` that returns a Model. Its parameter `shape` is grid.shape of the case, `boundary` is
    grid.boundary, and all other parameters, which need defaults, are the table [parameters]. A file without parameters
    may define the Model itself instead. Parameters may be annotated with types, limits and units:
    ``rate: Annotated[float, Field(gt=0, description="...")] = 0.2``, ``time: Seconds = 40.0``.

    Dicts named `run`, `stop` and `output` in the file are defaults of these tables.
    """

    path: Path
    defaults: Mapping[str, Mapping[str, Any]]
    _model: Model | Callable[..., object]

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """Parameters of the function `model`, by name."""
        return {} if isinstance(self._model, Model) else dict(inspect.signature(self._model).parameters)

    def model(self, grid: GridSettings, parameters: Mapping[str, Any]) -> Model:
        """Make the Model with the parameters that a case chooses.

        Parameters
        ----------
        grid
            The table [grid], whose entries are the parameters `shape` and `boundary`.
        parameters
            The table [parameters]. Values of annotated parameters are checked and converted like settings; for other
            parameters only the type is checked, if the default is a number, a Boolean or a string.

        Raises
        ------
        CaseError
            If the function has no such parameter, if a value is invalid, or if the function fails.
        """
        if isinstance(self._model, Model):
            self._check_names(grid, parameters)
            return self._model
        chosen = {key: value for key, value in grid if value is not None}
        self._check_names(chosen.items(), parameters)
        schemas = parameter_settings(self._model, self.path)
        found = [
            _validated(schemas[table], given, table) for table, given in (("grid", chosen), ("parameters", parameters))
        ]
        return self._call({**found[0], **found[1]})

    def _check_names(self, grid: Iterable[tuple[str, Any]], parameters: Mapping[str, Any]) -> None:
        """Raise CaseError if a case gives a parameter that the function does not have."""
        known = self.parameters
        keys = [f"grid.{key}" for key, value in grid if value is not None]
        for key in (*keys, *(f"parameters.{name}" for name in parameters)):
            name = key.split(".", 1)[1]
            if name not in known:
                raise CaseError(
                    f"the model in {self.path.name} has no parameter {name!r}",
                    key=key,
                    suggestion=suggest(name, known),
                    remedy=f"its parameters are {', '.join(known)}"
                    if known
                    else f"define def model({name}=...) in {self.path.name}",
                )

    def _call(self, arguments: Mapping[str, Any]) -> Model:
        if isinstance(self._model, Model):
            return self._model
        place = (str(self.path), self._model.__code__.co_firstlineno)
        try:
            result = self._model(**arguments)
        except MingaError:
            raise
        except Exception as error:
            raise CaseError(f"model() raises {type(error).__name__}: {error}", key="model", where=place) from error
        if not isinstance(result, Model):
            raise CaseError(
                f"model() returns {type(result).__name__}, not a Model",
                key="model",
                where=place,
                remedy="end it with return mg.Model(...)",
            )
        return result


def parameter_settings(function: Callable[..., object], path: Path) -> dict[str, type[BaseModel]]:
    """Return the schemas of the parameters of a function in a Python file.

    Parameters
    ----------
    function
        The function `model`.
    path
        The file, for errors.

    Returns
    -------
    dict
        The schema "grid" of the parameters that the table [grid] sets, and the schema "parameters" of the others.

    Raises
    ------
    CaseError
        If an annotation is invalid.
    """
    fields: dict[str, dict[str, Any]] = {"grid": {}, "parameters": {}}
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    try:
        hints = get_type_hints(function, include_extras=True)
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            default = ... if parameter.default is parameter.empty else parameter.default
            annotation = hints.get(name, _type_of_default(default))
            entries = fields["grid" if name in GridSettings.model_fields else "parameters"]
            # With a prefix, since a parameter may have the name of an attribute of pydantic's classes.
            entries[_FIELD + name] = (annotation, Field(default, alias=name))
        return {table: create_model(table, __config__=config, **entries) for table, entries in fields.items()}
    except (NameError, TypeError, PydanticUserError) as error:
        raise CaseError(
            f"the annotations of model() in {path.name} cannot be read: {error}",
            key="model",
            where=(str(path), function.__code__.co_firstlineno),
            remedy="annotate numbers and text, such as rate: Annotated[float, Field(gt=0)] = 0.2, or nothing",
        ) from error


def _type_of_default(default: object) -> Any:
    """Derive the type of a parameter without annotation from its default."""
    if isinstance(default, bool):
        return Annotated[bool, _PLAIN]
    if isinstance(default, int | float):
        return Annotated[int | float, _PLAIN]
    return Annotated[str if isinstance(default, str) else Any, _PLAIN]


def _validated(kind: type[BaseModel], given: Mapping[str, Any], table: str) -> dict[str, Any]:
    """Check the arguments that a case gives, and convert those that are annotated."""
    settings = validate(kind, given, table)
    plain = [name for name, field in kind.model_fields.items() if _PLAIN in field.metadata]
    return {
        name: value if _FIELD + name in plain else getattr(settings, _FIELD + name) for name, value in given.items()
    }


def python_case(path: Path) -> PythonCase:
    """Run a Python file, and return the simulation that it defines; raise CaseError if there is none."""
    names = run_file(path, "model")
    found = names.get("model")
    if not (isinstance(found, Model) or inspect.isfunction(found)):
        functions = [name for name, value in names.items() if inspect.isfunction(value)]
        kind = type(found).__name__
        raise CaseError(
            f"{path.name} defines no model"
            if "model" not in names
            else f"{path.name}: model is {'an' if kind[0] in 'aeiou' else 'a'} {kind}, not a Model or a function",
            key="model",
            suggestion=None if "model" in names else suggest("model", functions),
            where=str(path),
            remedy="define def model(shape=(64, 64)): ... return mg.Model(...)",
        )
    defaults = {table: names[table] for table in TABLES if isinstance(names.get(table), Mapping)}
    return PythonCase(path, defaults, found)
