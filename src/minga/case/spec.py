"""Specification of a model, from which case files, commands and plans get what they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from minga.plugins import load

if TYPE_CHECKING:
    from pydantic import BaseModel

    from minga.engine.model import Model

__all__ = ["GROUP", "Make", "ModelSpec", "model_spec"]

GROUP = "minga.models"
"""Entry-point group of models: cases may name these entry points as their model, and each one is a ModelSpec."""

Make = Callable[..., "Model"]
"""A function that makes the Model from the settings, the table [grid] and the directory of a case: see `ModelSpec`."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Everything that minga needs to know about a model; packages add theirs to the entry-point group ``minga.models``.

    The schema of the model's table, errors with key and line, completion of ``--set``, ``minga list`` and ``minga new``
    are derived from it.

    Parameters
    ----------
    settings
        The pydantic class that validates the case's table with the name of the model.
    make
        ``make(settings, grid, directory)`` returns the Model. ``settings`` is an instance of the class above, ``grid``
        the table [grid] of the case, and ``directory`` the directory of the case file, to which file names are
        relative.
    make_to_plan
        Like `make`, for a Model that is only planned and never run: quantities that take long to compute on a large
        grid may be estimated from a part of it. By default `make`.
    bytes_per_cell
        Lower bound of the bytes that the model stores for each cell. A case that needs more than the memory of the
        machine is refused before anything is created.
    examples
        Cases of the model: names of examples that ship with minga, or files of the package that adds the model. The
        command ``minga new --from MODEL`` starts from the first one.
    description
        One line for lists of models.
    grid
        Entries of the table [grid] that `make` reads or refuses with an error of its own. A case that sets any other
        entry is refused.
    new_case
        ``new_case(rule, directory)`` returns the text of a case to start from, as ``minga new FILE.toml --rule RULE``
        writes it; ``rule`` is None for the default rule, and ``my_case.toml`` stands for the name of the file. It
        raises CaseError with the key ``--rule`` if there is no such rule. By default, no case can be written this way.
    times
        True if `make` and `make_to_plan` have a keyword argument `times`: the intervals and the end of the run that the
        case gives as times of the model, numbers or texts with a unit, by their keys. A model that chooses its time
        step can choose one that divides them.
    """

    settings: type[BaseModel]
    make: Make
    make_to_plan: Make | None = None
    bytes_per_cell: int = 1
    examples: tuple[str | Path, ...] = ()
    description: str = ""
    grid: tuple[str, ...] = ("shape",)
    new_case: Callable[[str | None, Path], str] | None = None
    times: bool = False


def model_spec(name: str) -> ModelSpec:
    """Return the specification of an installed model by name; raise CaseError if there is none."""
    found: ModelSpec = load(GROUP, name, "model", key="model", remedy=", or a Python file that defines a model")
    return found
