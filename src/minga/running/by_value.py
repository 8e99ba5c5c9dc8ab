"""Functions for other processes: those of notebooks and scripts, which no other process can import, go by value.

A function is sent as its compiled code, its defaults, the values that it captures and the global names that it uses.
Everything that can be imported is sent by name. Both ends must be the same version of Python.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import io
import marshal
import pickle
import sys
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from minga.errors import CaseError
from minga.lang.kernel import Kernel

__all__ = ["by_value"]


def by_value(item: object) -> bytes:
    """Return an object as bytes that `pickle.loads` turns into an equal one in any process with the same packages.

    Raises
    ------
    CaseError
        If it refers to something that cannot be sent: an open file, or a class of a notebook.
    """
    stream = io.BytesIO()
    try:
        _ByValue(stream).dump(item)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError) as error:
        raise CaseError(
            f"a function, or a value that it uses, cannot be sent to other processes: {error}",
            remedy="define it in a module of its own, or give workers=1, which runs everything in this process",
        ) from error
    return stream.getvalue()


class _ByValue(pickle.Pickler):
    """Pickler that sends functions by value where no other process can import them."""

    def reducer_override(self, item: Any) -> Any:
        """Return the way of sending an object; NotImplemented for the usual one."""
        if isinstance(item, ModuleType):
            return importlib.import_module, (item.__name__,)
        if isinstance(item, FunctionType) and not _is_importable(item):
            names, cells = _global_names(item.__code__), item.__closure__ or ()
            around = {name: item.__globals__[name] for name in names if name in item.__globals__}
            held = [(True, cell.cell_contents) if _is_full(cell) else (False, None) for cell in cells]
            state = (around, held, item.__defaults__, item.__kwdefaults__, item.__dict__, item.__module__)
            return _empty, (marshal.dumps(item.__code__), item.__name__, len(cells)), state, None, None, _fill
        if isinstance(item, Kernel):  # without what it was compiled to here
            return _blank, (type(item),), {**item.__dict__, "_graphs": {}}
        if isinstance(item, type) and not _found(item.__module__):
            raise pickle.PicklingError(f"the class {item.__qualname__} is not in a module that can be imported")
        return NotImplemented


def _is_importable(function: FunctionType) -> bool:
    """Return whether a function is found by its name in another process."""
    if not _found(function.__module__):
        return False
    place: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        place = getattr(place, name, None)
    return place is function


@functools.cache
def _found(module: str | None) -> bool:
    """Return whether another process can import a module; one that was loaded from a file may not be on the path."""
    if module is None or module == "__main__":
        return False
    top = module.partition(".")[0]
    finders = (finder for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return any(finder.find_spec(top, None) is not None for finder in finders)


def _global_names(code: CodeType) -> set[str]:
    """Return the names that code, and the functions inside it, may look up in the module."""
    inside = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_global_names, inside))


def _is_full(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:  # a name that has no value yet
        return False
    return True


def _empty(code: bytes, name: str, cells: int) -> FunctionType:
    """Return a function without the values that it uses, which may refer to the function itself."""
    closure = tuple(CellType() for _ in range(cells))
    return FunctionType(marshal.loads(code), {"__builtins__": builtins}, name, None, closure)


def _fill(function: FunctionType, state: tuple[Any, ...]) -> None:
    around, held, function.__defaults__, function.__kwdefaults__, attributes, module = state
    function.__globals__.update(around, __name__=module)
    function.__dict__.update(attributes)
    function.__module__ = module
    for cell, (full, value) in zip(function.__closure__ or (), held, strict=True):
        if full:
            cell.cell_contents = value


def _blank(kind: type) -> Any:
    return object.__new__(kind)
