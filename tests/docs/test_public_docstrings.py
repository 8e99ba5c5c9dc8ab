"""Every public function, class, method and property has a complete docstring in NumPy's format."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from enum import EnumType
from importlib import import_module
from typing import Any

import pytest

import minga
from minga.api import PUBLIC

MODULES = [name for name in PUBLIC if not name.startswith("minga.studies")]
"""Studies repeat papers; their functions are for pages and commands of this package."""


def public_objects() -> dict[str, Any]:
    """Return all public functions and classes by the first name that reaches them."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for module in MODULES:
        loaded = import_module(module)
        for name in loaded.__all__:
            item = getattr(loaded, name)
            if (inspect.isfunction(item) or inspect.isclass(item)) and id(item) not in seen:
                seen.add(id(item))
                found[f"{module}.{name}"] = item
    return found


def members(owner: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class that minga defines, inherited ones included."""
    names: set[str] = set()
    for base in owner.__mro__:
        if base.__module__.split(".")[0] != "minga":
            continue
        for name, item in vars(base).items():
            if name in names or (name.startswith("_") and name != "__call__"):
                continue
            names.add(name)
            if isinstance(item, property):
                yield name, item
            elif isinstance(item, classmethod | staticmethod) or inspect.isfunction(item):
                yield name, getattr(owner, name)


def sections(doc: str) -> dict[str, str]:
    """Return the text of each section of a docstring by its heading; the summary's heading is empty."""
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}$", inspect.cleandoc(doc), flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def described(section: str) -> set[str]:
    """Return the names that a section of parameters describes."""
    heads = re.findall(r"^(\*{0,2}\w[^\n]*)$", section, flags=re.MULTILINE)
    return {name.strip().lstrip("*") for head in heads for name in head.partition(" : ")[0].split(",")}


def parameters(item: Callable[..., Any]) -> list[str]:
    """Return the names of all parameters that callers give; protocols and enumerations are not called."""
    if getattr(item, "_is_protocol", False) or isinstance(item, EnumType):
        return []
    try:
        signature = inspect.signature(item)
    except ValueError:
        return []
    moved = ("InitVar", "Never")  # former options, which are refused
    return [
        name
        for name, parameter in signature.parameters.items()
        if name not in ("self", "cls")
        and not name.startswith("_")
        and not any(m in str(parameter.annotation) for m in moved)
    ]


def lacks(item: Any) -> list[str]:
    """Return what a docstring lacks."""
    doc = (item.fget if isinstance(item, property) else item).__doc__
    if not doc or (inspect.isclass(item) and doc.startswith(f"{item.__name__}(")):
        return ["a docstring"]
    if not re.match(r"[^\n]+[.]$", inspect.cleandoc(doc).splitlines()[0]):
        return ["a first line that is a sentence"]
    if isinstance(item, property):
        return []
    found = sections(doc)
    missing = [
        f"parameter {n}"
        for n in parameters(item)
        if n not in described(found.get("Parameters", "") + found.get("Settings", ""))
    ]
    returned = None if inspect.isclass(item) else getattr(item, "__annotations__", {}).get("return")
    if returned not in (None, "None", "Never", "NoReturn") and not {"Returns", "Yields"} & found.keys():
        missing.append("Returns")
    return missing


def checked() -> Iterator[tuple[str, Any]]:
    for name, item in public_objects().items():
        yield name, item
        if inspect.isclass(item):
            yield from ((f"{name}.{member}", one) for member, one in members(item))


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_are_complete(module: str) -> None:
    owned = [(name, item) for name, item in checked() if owner(name) == module]
    faults = {name: found for name, item in owned if (found := lacks(item))}
    assert not faults


def owner(name: str) -> str:
    """Return the longest public module that a name begins with."""
    return max((module for module in MODULES if name.startswith(f"{module}.")), key=len)


def test_an_incomplete_docstring_is_noticed() -> None:
    def bare(a: int) -> int:
        return a

    def short(a: int, *, b: int) -> int:
        """Return a and b.

        Parameters
        ----------
        a
            A number.
        """
        return a + b

    def whole(a: int, b: int, **options: int) -> int:
        """Return a and b.

        Parameters
        ----------
        a, b : int
            Numbers.
        **options
            Further numbers.

        Returns
        -------
        int
            Their sum.
        """
        return a + b

    assert lacks(bare) == ["a docstring"]
    assert lacks(short) == ["parameter b", "Returns"]
    assert lacks(whole) == []


def test_the_surface_is_found() -> None:
    names = [name for name, _ in checked()]
    assert {"minga.run", "minga.Field.now", "minga.solve.Multigrid.setup", "minga.plan.make_plan"} <= set(names)
    assert len(names) > 300
    assert minga.run in public_objects().values()
