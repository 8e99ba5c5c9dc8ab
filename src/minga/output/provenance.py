"""Origin of a run's data as attributes: parameters, seed, versions, and how the run is repeated."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import platform
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any, Final

import numpy as np

from minga.engine.model import Model

__all__ = ["COMMAND", "PARAMETERS", "TIME_STEP", "origin_of", "recorded"]

PARAMETERS: Final = "parameters"
"""Attribute with the parameters of the model: JSON."""
TIME_STEP: Final = "time_step"
"""Attribute with the length of every step, in the unit of the time; absent if steps may differ in length."""
COMMAND: Final = "command"
"""Attribute with the command or the call that repeats the run."""
_PACKAGES: Final = ("minga", "numpy", "scipy", "llvmlite")
_MOST: Final = 64
"""Largest number of entries of an array that is recorded with its values."""


def origin_of(model: Model) -> dict[str, Any]:
    """Return the attributes that say what made the data of a model.

    Parameters
    ----------
    model
        The model.

    Returns
    -------
    dict
        Text and numbers: ``source``, ``versions`` (JSON), ``parameters`` (JSON), ``seed``, and ``time_step`` of models
        whose steps have one length.
    """
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # of an extra
            versions[name] = importlib.metadata.version(name)
    found: dict[str, Any] = {
        "source": f"minga {versions['minga']}",
        "versions": json.dumps(versions),
        PARAMETERS: json.dumps(recorded(model.parameters)),
        "seed": int(model.seed),
    }
    clock = model.clock
    if clock is not None and clock.length is not None and clock.time is None:
        found[TIME_STEP] = clock.length
    return found


def recorded(value: object) -> Any:
    """Return a value as JSON holds it: functions and other objects by name, large arrays by shape and type."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): recorded(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [recorded(entry) for entry in value]
    if isinstance(value, np.ndarray):
        small = value.size <= _MOST and value.dtype.kind in "biuf"
        return value.tolist() if small else f"array of shape {value.shape}, {value.dtype}"
    if isinstance(value, complex):
        return str(value)
    if isinstance(value, PurePath):
        return str(value)
    name = getattr(value, "__name__", None) or getattr(value, "name", None)
    return name if isinstance(name, str) else type(value).__name__
