"""From the name in a case to a Model: installed models, and Python files that define one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from minga.engine.model import Model
from minga.errors import CaseError, MingaError, suggest
from minga.models.python_file import run_file
from minga.models.settings import GridSettings
from minga.models.spec import model_spec
from minga.schema import validate

__all__ = ["PythonCase", "load_model", "python_case", "read_settings"]

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
    choose may have the Model itself instead. Dicts `run`, `stop` and `output` in it are defaults of these tables.
    """

    path: Path
    defaults: Mapping[str, Mapping[str, Any]]
    _model: Model | Callable[..., object]

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters of its function `model`, by name."""
        return {} if isinstance(self._model, Model) else dict(inspect.signature(self._model).parameters)

    def model(self, grid: GridSettings, parameters: Mapping[str, Any]) -> Model:
        """The Model for what a case chose. Raises CaseError where the function has no such parameter, or fails."""
        given = {f"grid.{key}": value for key, value in grid if value is not None}
        given |= {f"parameters.{key}": value for key, value in parameters.items()}
        known = self.parameters
        arguments = {}
        for key, value in given.items():
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
            arguments[name] = value
        return self._call(arguments)

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
