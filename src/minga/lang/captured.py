"""Values that a kernel's function captures from its surroundings; when they change, the kernel is traced again.

A script that sets `rate = 0.2` after it has used a kernel with `rate = 0.1` expects the new number.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

__all__ = ["captured"]

_PLAIN = bool | int | float | complex | str | bytes | None
_DEPTH = 6
_LONG = 1 << 16
"""Length beyond which sequences, which would take long to compare, are assumed not to change."""


def captured(function: object) -> object:
    """Return a token of the outer values that a function refers to, directly or indirectly; equal if all are equal."""
    written = getattr(function, "function", function)  # the function that a rule is made of
    return _of_function(written, set(), 0) if isinstance(written, FunctionType) else None


def _of_function(function: FunctionType, seen: set[int], depth: int) -> object:
    if id(function) in seen:
        return None
    seen.add(id(function))
    values: list[tuple[str, object]] = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values.append((name, _token(cell.cell_contents, seen, depth + 1)))
        except ValueError:  # a name that has no value yet
            values.append((name, None))
    around = function.__globals__
    names = [name for name in _global_names(function.__code__) if name in around]
    values += [(name, _token(around[name], seen, depth + 1)) for name in names]
    defaults = _token([function.__defaults__, function.__kwdefaults__], seen, depth + 1)
    return id(function.__code__), tuple(values), defaults


@functools.lru_cache(maxsize=4096)
def _global_names(code: CodeType) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_names(code)))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _ours(module: str | None) -> bool:
    """Return True for modules of minga and NumPy, whose functions and objects do not change."""
    return (module or "").partition(".")[0] in ("minga", "numpy")


def _token(value: Any, seen: set[int], depth: int) -> object:
    """Return an object that is equal for equal values; objects of unknown types are described by their attributes."""
    if isinstance(value, _PLAIN):
        return type(value).__name__, repr(value)
    if isinstance(value, np.generic):
        return str(value.dtype), value.tobytes()
    if isinstance(value, np.ndarray) and value.dtype != object:
        return str(value.dtype), value.shape, hashlib.sha256(np.ascontiguousarray(value).data).digest()
    if depth > _DEPTH or isinstance(value, ModuleType | type) or id(value) in seen:
        return id(value)
    if isinstance(value, FunctionType):
        return id(value) if _ours(value.__module__) else _of_function(value, seen, depth)
    seen.add(id(value))
    if isinstance(value, Mapping):
        return id(type(value)), tuple((repr(k), _token(v, seen, depth + 1)) for k, v in value.items())
    if isinstance(value, Sequence | set | frozenset):
        if len(value) > _LONG:
            return id(value)
        return id(type(value)), tuple(_token(v, seen, depth + 1) for v in value)
    attributes = getattr(value, "__dict__", None)
    if attributes and not _ours(type(value).__module__):
        return id(value), tuple((k, _token(v, seen, depth + 1)) for k, v in attributes.items())
    return id(value)
