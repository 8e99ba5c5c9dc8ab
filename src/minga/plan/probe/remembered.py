"""Earlier measurements of this host: small JSON files beside the compiled kernels, valid for a week."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from minga.compile.cache import default_cache
from minga.errors import LayoutError

__all__ = ["key_of", "load_cached", "store_cached"]

Found = TypeVar("Found")

_FRESH: Final = 7 * 24 * 3600.0
"""Seconds after which measurements are repeated."""


def key_of(*parts: object) -> str:
    """Return a key that depends on these parts, as they are printed."""
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def load_cached(key: str, read: Callable[[Mapping[str, Any]], Found]) -> Found | None:
    """Return what ``read`` makes of the data stored under a key; None if there are no recent and valid data."""
    file = _file(key)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, LayoutError):
        if file is not None and time.time() - file.stat().st_mtime < _FRESH:
            return read(json.loads(file.read_text()))
    return None


def store_cached(key: str, data: Mapping[str, Any]) -> None:
    """Store measurements. A directory that cannot be written only costs time in the next run."""
    file = _file(key)
    if file is None:
        return
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".new-")
        with os.fdopen(handle, "w") as stream:
            json.dump(data, stream)
        Path(temporary).replace(file)


def _file(key: str) -> Path | None:
    objects = default_cache()
    return None if objects is None else objects.directory.parent / "speeds" / f"{key}.json"
