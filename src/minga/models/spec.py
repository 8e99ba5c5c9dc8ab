"""What makes a model known to case files, commands and plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minga.plugins import load

if TYPE_CHECKING:
    from minga.engine.model import Model
    from minga.models.settings import GridSettings

__all__ = ["GROUP", "ModelSpec", "model_spec"]

GROUP = "minga.models"
"""The group of entry points whose names cases may give as their model; each is a ModelSpec."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """What a case file needs to know of a model; packages add theirs as entry points of the group ``minga.models``.

    Parameters
    ----------
    load
        ``load(table, grid, directory)`` returns the Model. ``table`` is the case's table of the model's name, ``grid``
        its table [grid], and ``directory`` that of the case file, which names of files in the table are relative to.
    load_to_plan
        The same for a Model that is planned with and never run: what takes long on a large grid may be guessed from a
        part of it. By default `load`.
    least_bytes
        Bytes that the model stores for each cell at least. A case that asks for more than the machine has is refused
        before anything is made.
    """

    load: Callable[[Mapping[str, Any], GridSettings, Path], Model]
    load_to_plan: Callable[[Mapping[str, Any], GridSettings, Path], Model] | None = None
    least_bytes: int = 1


def model_spec(name: str) -> ModelSpec:
    """Return what installed packages say of a model, by the name that cases give; CaseError where none has it."""
    found: ModelSpec = load(GROUP, name, "model", key="model", remedy=", or a Python file that defines a model")
    return found
