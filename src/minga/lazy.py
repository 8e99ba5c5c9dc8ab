"""Lazy attributes of packages: a public name is imported from its module when it is first used."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["attach", "bring", "listed"]


def attach(module: str, source: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package whose public names are imported when they are first used.

    The package lists its names in ``__all__`` and imports them below ``if TYPE_CHECKING:``, where type checkers and
    editors see them. The module that defines each name is found from these import statements in the source text.

    Parameters
    ----------
    module
        The package's ``__name__``.
    source
        The path of the file that holds the import statements, usually the package's ``__file__``.

    Returns
    -------
    tuple
        The functions ``__getattr__`` and ``__dir__`` of the package.
    """

    def get(name: str) -> Any:
        package = sys.modules[module]
        if name in package.__dict__.get("__all__", ()):
            setattr(package, name, bring(module, source, name))
            return package.__dict__[name]
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name, obj=package)

    def names() -> list[str]:
        return sorted(sys.modules[module].__dict__["__all__"])

    return get, names


def bring(module: str, source: str, name: str) -> Any:
    """Import the object that a source file binds to a name with a ``from`` import.

    ``from . import name`` imports a module of the package.
    """
    home, original = _homes(source)[name]
    return getattr(import_module(home), original) if home else import_module(f"{module}.{name}")


@cache
def _homes(source: str) -> dict[str, tuple[str, str]]:
    """Return for each name that a source file imports its module, empty for ``from .``, and its name there."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(ast.parse(Path(source).read_text(encoding="utf-8"), source))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@cache
def listed(source: str) -> tuple[str, ...]:
    """Return the names that a source file lists in ``__all__``."""
    for node in ast.parse(Path(source).read_text(encoding="utf-8"), source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return tuple(ast.literal_eval(node.value))
    return ()
