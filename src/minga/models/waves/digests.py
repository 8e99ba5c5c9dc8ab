"""Digests of sources, receivers and data: equal for equal values, in this process and in later ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

__all__ = ["digest", "name_of"]


def digest(value: object) -> str:
    """Return a digest of a value, with all values of its arrays.

    Parameters
    ----------
    value
        Arrays, numbers, texts, dataclasses, functions (which count by their names), and sequences and mappings of such.

    Returns
    -------
    str
        SHA-256 in hexadecimal digits.
    """
    found = hashlib.sha256()
    for part in _parts(value):
        found.update(part)
    return found.hexdigest()


def name_of(function: Any) -> str:
    """Return the module and the name of a function, or of the class of another object that is called.

    Parameters
    ----------
    function
        The function.

    Returns
    -------
    str
        Its name, the same in later processes.
    """
    owner = function if hasattr(function, "__qualname__") else type(function)
    return f"{owner.__module__}.{owner.__qualname__}"


def _parts(value: Any) -> Iterator[bytes]:
    """Yield the bytes that describe a value, each kind with its name and size before."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield f"array {value.dtype.str} {value.shape};".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, np.generic | np.ndarray):
        yield from _parts(value.tolist())
    elif isinstance(value, list | tuple):
        yield f"list {len(value)};".encode()
        for entry in value:
            yield from _parts(entry)
    elif isinstance(value, Mapping):
        yield from _parts([list(pair) for pair in sorted(value.items())])
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        yield f"name {name_of(value)};".encode()
    elif is_dataclass(value) or hasattr(value, "__dict__"):
        yield f"object {name_of(type(value))};".encode()
        own = [entry.name for entry in fields(value)] if is_dataclass(value) else list(vars(value))
        yield from _parts({name: getattr(value, name) for name in own})
    else:
        yield f"value {value!r};".encode()
