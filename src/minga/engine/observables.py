"""Observables of a model, evaluated for its present state."""

from __future__ import annotations

from typing import Any

import numpy as np

from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.space.field import Register

__all__ = ["observe", "updates_of"]


def observe(model: Model, engine: Engine) -> dict[str, Any]:
    """Return the model's observables of the present state by name. Collective."""
    if model.observe is None:
        return {}
    engine.run(model.observe)
    return {
        name: _values(engine, item) if isinstance(item, tuple) else engine.read(item)
        for name, item in model.observables.items()
    }


def _values(engine: Engine, registers: tuple[Register, ...]) -> list[Any]:
    """Return the values of registers."""
    memories = engine.storage.of_all(registers)
    return memories.tolist() if isinstance(memories, np.ndarray) else [memory[0].item() for memory in memories]


def updates_of(model: Model, engine: Engine, done: int) -> int:
    """Return the number of updates of all cells after ``done`` steps."""
    return done if model.updates is None else int(engine.read(model.updates))
