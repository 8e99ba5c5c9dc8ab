"""Runs of the pointwise scheme on virtual ranks, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import minga as mg
from minga.engine.comm import Comm
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.space.layout import Layout


def cut(model: Model, ends: Sequence[int], ranks: int) -> dict[Any, Layout]:
    """Segments between ends, dealt out to ranks in turns."""
    each = np.asarray(ends)
    layout = Layout(model.grid.box, ranks, each[:-1, None], each[1:, None], np.arange(len(each) - 1) % ranks)
    return dict.fromkeys(model.grids, layout)


def started(model: Model, layouts: dict[Any, Layout], comm: Comm | None = None) -> Engine:
    engine = Engine(layouts, comm=comm, threads=1)
    for slot, value in model.start_values():
        engine.set(slot, value)
    for register, value in model.registers.items():
        engine.write(register, value)
    return engine


def found(engine: Engine, model: Model) -> dict[str, Any]:
    """All fields people see, and all observables."""
    values: dict[str, Any] = {name: engine.gather(model.field(name)) for name in model.output}
    return values | {name: engine.read(register) for name, register in model.observables.items()}


def run(model: Model, ends: Sequence[int] | None = None, ranks: int = 1) -> dict[str, Any]:
    """One voltage on some ranks; a run that reaches its limit counts as well."""

    def body(comm: Comm) -> dict[str, Any]:
        with started(model, cut(model, ends or (0, model.grid.shape[0]), ranks), comm) as engine:
            outcome = engine.run(model.step)
            assert outcome.ok or outcome.reason == "limit"
            return found(engine, model)

    return mg.run_virtual(ranks, body)[0]


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether all bits agree."""
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)
