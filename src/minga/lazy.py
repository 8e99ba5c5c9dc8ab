"""Lazy attributes of packages: a public name is imported from its module when it is first used."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["attach", "homes", "listed"]


def attach(module: str, source: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package whose public names are imported when they are first used.

    The package lists its names in ``__all__`` and imports them below ``if TYPE_CHECKING:``, where type checkers and
    editors see them. The same import statements, read from the source text, say which module defines each name.

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
            home = homes(module, source)[name]
            found = import_module(f"{module}.{name}") if home == module else getattr(import_module(home), name)
            setattr(package, name, found)
            return found
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name, obj=package)

    def names() -> list[str]:
        return sorted(sys.modules[module].__dict__["__all__"])

    return get, names


@cache
def homes(module: str, source: str) -> dict[str, str]:
    """Return the module that each name is imported from, by all ``from`` imports of a source file.

    A name that is imported from the package itself (``from . import name``) is a module of that package.
    """
    found = {}
    for node in ast.walk(ast.parse(Path(source).read_text(encoding="utf-8"), source)):
        if isinstance(node, ast.ImportFrom):
            home = node.module if node.level == 0 else module
            found |= {alias.name: str(home) for alias in node.names}
    return found


@cache
def listed(source: str) -> tuple[str, ...]:
    """Return the names that a source file lists in ``__all__``."""
    for node in ast.parse(Path(source).read_text(encoding="utf-8"), source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return tuple(ast.literal_eval(node.value))
    return ()
