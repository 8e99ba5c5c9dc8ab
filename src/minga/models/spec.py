"""The description of a model by which case files, commands and plans know it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minga.plugins import load

if TYPE_CHECKING:
    from pydantic import BaseModel

    from minga.engine.model import Model
    from minga.models.settings import GridSettings

__all__ = ["GROUP", "Make", "ModelSpec", "model_spec"]

GROUP = "minga.models"
"""The group of entry points whose names cases may give as their model; each is a ModelSpec."""

Make = Callable[[Any, "GridSettings", Path], "Model"]
"""A function of the checked settings of a model, the table [grid] and the case's directory that makes the Model."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Everything that minga needs to know of a model; packages add theirs to the group ``minga.models``.

    The schema of the model's table, errors with key and line, completion of ``--set``, ``minga list`` and ``minga new``
    follow from it.

    Parameters
    ----------
    settings
        The class (of pydantic) that the case's table of the model's name is checked against.
    make
        ``make(settings, grid, directory)`` returns the Model. ``settings`` is an instance of the class above, ``grid``
        the case's table [grid], and ``directory`` that of the case file: names of files are relative to it.
    make_to_plan
        The same for a Model that is planned with and never run: what takes long on a large grid may be estimated from a
        part of it. By default `make`.
    bytes_per_cell
        Bytes that the model stores for each cell at least. A case that needs more than the machine has is refused
        before anything is made.
    examples
        Cases of the model: names of examples that ship with minga, or files of the package that adds the model. The
        first one is what ``minga new --from MODEL`` begins with.
    description
        One line for lists of models.
    """

    settings: type[BaseModel]
    make: Make
    make_to_plan: Make | None = None
    bytes_per_cell: int = 1
    examples: tuple[str | Path, ...] = ()
    description: str = ""


def model_spec(name: str) -> ModelSpec:
    """Return the description of an installed model by the name that cases give; CaseError if there is none."""
    found: ModelSpec = load(GROUP, name, "model", key="model", remedy=", or a Python file that defines a model")
    return found
