"""Observers that cases name, which packages add through the group ``minga.observers``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minga.errors import CaseError
from minga.plugins import load
from minga.schema import validate

if TYPE_CHECKING:
    from pydantic import BaseModel

    from minga.running.observer import Observer

__all__ = ["GROUP", "NamedObserver", "ObserverSpec", "named_observers"]

GROUP = "minga.observers"
"""The group of entry points whose names cases may use as tables in [observers]; each is an ObserverSpec."""


@dataclass(frozen=True, slots=True)
class ObserverSpec:
    """Everything that a case needs to know of an observer.

    Parameters
    ----------
    settings
        The class (of pydantic) that the case's table [observers.NAME] is checked against.
    make
        ``make(settings, directory)`` returns the Observer, on every rank. ``directory`` is the run's, for files that
        the observer writes, on rank 0. Observers with state have a `name`.
    description
        One line for lists of observers.
    """

    settings: type[BaseModel]
    make: Callable[[Any, Path], Observer]
    description: str = ""


@dataclass(frozen=True, slots=True)
class NamedObserver:
    """An observer that a case names, with its checked settings."""

    name: str
    spec: ObserverSpec
    settings: BaseModel

    def make(self, directory: Path) -> Observer:
        """Make the observer for a run in a directory."""
        return self.spec.make(self.settings, directory)


def named_observers(table: Mapping[str, Any]) -> tuple[NamedObserver, ...]:
    """Check the table [observers] of a case.

    Parameters
    ----------
    table
        A table of settings for each observer, by its name.

    Raises
    ------
    CaseError
        For an observer that is not installed, and for settings that are invalid, with the key.
    """
    found = []
    for name, settings in table.items():
        key = f"observers.{name}"
        spec: ObserverSpec = load(GROUP, name, "observer", key=key)
        if not isinstance(settings, Mapping):
            raise CaseError(f"{key}: expected a table, found {settings!r}", key=key, remedy=f"write [{key}]")
        found.append(NamedObserver(name, spec, validate(spec.settings, settings, key)))
    return tuple(found)
