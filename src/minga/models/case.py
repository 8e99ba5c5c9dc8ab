"""From the name in a case to a Model: installed models, and Python files that define one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import PydanticUserError

from minga.engine.model import Model
from minga.errors import CaseError, MingaError, suggest
from minga.models.python_file import run_file
from minga.models.settings import GridSettings
from minga.models.spec import model_spec
from minga.schema import validate

__all__ = ["PythonCase", "load_model", "python_case", "read_settings"]

_FIELD: Final = "parameter_"
_PLAIN: Final = "plain"
"""A mark of parameters without annotation, whose values are handed on as they are."""
TABLES: Final = ("run", "stop", "output")
"""Tables of a case that a Python file may give defaults for, as dicts of these names."""


def read_settings(name: str, table: Mapping[str, Any]) -> Any:
    """Check the table of an installed model; return an instance of its settings class. Raises CaseError."""
    return validate(model_spec(name).settings, table, name)


def load_model(
    name: str, tables: Mapping[str, Any], grid: GridSettings, directory: Path, *, planning: bool = False
) -> Model:
    """Make the model of a case.

    Parameters
    ----------
    name
        The case's entry "model": the name of an installed model, which reads the table of that name, or "file.py", a
        Python file, which reads the table [parameters].
    tables
        All tables of the case.
    grid
        Its table [grid].
    directory
        The directory of the case file.
    planning
        Whether the model will not be run: what takes long on a large grid may be estimated from a part of it.

    Raises
    ------
    CaseError
        For an unknown model, a missing table, or whatever is wrong in one.
    """
    if name.endswith(".py"):
        return python_case(directory / name).model(grid, tables.get("parameters", {}))
    spec = model_spec(name)
    if not isinstance(tables.get(name), Mapping):
        raise CaseError(f"the case has no table [{name}]", key=name, remedy=f"describe the {name} in [{name}]")
    make = (spec.make_to_plan or spec.make) if planning else spec.make
    return make(read_settings(name, tables[name]), grid, directory)


@dataclass(frozen=True, slots=True)
class PythonCase:
    """A Python file that defines a simulation.

    It has a function `model` that returns a Model: its parameter `shape` is the case's grid.shape, `boundary` its
    grid.boundary, and its other parameters are the table [parameters], all with defaults. A file without anything to
    choose may have the Model itself instead. Parameters may be annotated with types, limits and units:
    ``rate: Annotated[float, Field(gt=0, description="...")] = 0.2``, ``time: Seconds = 40.0``.

    Dicts `run`, `stop` and `output` in it are defaults of these tables.
    """

    path: Path
    defaults: Mapping[str, Mapping[str, Any]]
    _model: Model | Callable[..., object]

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters of its function `model`, by name."""
        return {} if isinstance(self._model, Model) else dict(inspect.signature(self._model).parameters)

    def model(self, grid: GridSettings, parameters: Mapping[str, Any]) -> Model:
        """Make the Model for what a case chose.

        Parameters
        ----------
        grid
            The table [grid], whose entries are the parameters `shape` and `boundary`.
        parameters
            The table [parameters]. Values of annotated parameters are checked, and converted, as those of settings
            are; of others, the type of a default that is a number, true or false, or text.

        Raises
        ------
        CaseError
            If the function has no such parameter, for an invalid value, or if the function fails.
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
        """Raise CaseError where the function has no parameter of a name that a case gives."""
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
    """Return the schema of the parameters of a Python file's function: "grid" of those of the grid, and "parameters".

    Raises CaseError for an annotation that has no meaning.
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
            # Under names of their own: a class of pydantic has attributes that parameters may be called like.
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
    """Return the type of a parameter without annotation, as far as its default tells."""
    if isinstance(default, bool):
        return Annotated[bool, _PLAIN]
    if isinstance(default, int | float):
        return Annotated[int | float, _PLAIN]
    return Annotated[str if isinstance(default, str) else Any, _PLAIN]


def _validated(kind: type[BaseModel], given: Mapping[str, Any], table: str) -> dict[str, Any]:
    """Return the arguments that a case gives: checked, and converted where they are annotated."""
    settings = validate(kind, given, table)
    plain = [name for name, field in kind.model_fields.items() if _PLAIN in field.metadata]
    return {
        name: value if _FIELD + name in plain else getattr(settings, _FIELD + name) for name, value in given.items()
    }


def python_case(path: Path) -> PythonCase:
    """Run a Python file and find the simulation it defines. Raises CaseError where there is none."""
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
