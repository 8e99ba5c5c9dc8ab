"""Whole models run in this process, on one rank or on virtual ones: what they leave, as arrays and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.begin import start as begin_with
from minga.engine.comm import Comm, run_virtual
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.observables import observe
from minga.engine.state import state_of
from minga.output.cells import gather_cells
from minga.output.checkpoint.head import Head, heads_of
from minga.output.checkpoint.restore import restore
from minga.output.checkpoint.slots import begin, complete, write_slots
from minga.running.loop import drive


@dataclass(frozen=True)
class Left:
    """Output fields by name, and observables, after a run."""

    fields: Mapping[str, NDArray[Any]]
    observables: Mapping[str, Any]

    @property
    def cell(self) -> NDArray[Any]:
        return self.fields["cell"]


def run_model(model: Model, steps: int, *, ranks: int = 1, layout: str = "cartesian", **options: Any) -> Left:
    """The state after so many steps; options are the engine's. Every rank must see the same observables."""

    def on_rank(comm: Comm | None) -> tuple[dict[str, Any], dict[str, Any]]:
        with Engine(model.layouts(layout, ranks), comm=comm, **options) as engine:
            result = drive(model, engine, steps)
            return {name: gather_cells(engine, model, name) for name in model.output}, dict(result.observables)

    results = [on_rank(None)] if ranks == 1 else run_virtual(ranks, on_rank)
    assert all(repr(observables) == repr(results[0][1]) for _, observables in results)
    return Left(*results[0])


def resume_model(model: Model, steps: int, done: int, folder: Path) -> Left:
    """The state after so many steps on one rank, the last ones from a checkpoint after the first `done`."""
    state = state_of(model)
    with Engine(model.layouts("slabs", 1)) as engine:
        begin_with(model, engine)
        engine.run(model.step, done)
        begin(folder / "a")
        blocks = write_slots(folder / "a", engine, state)
        dtypes = {name: slot.field.dtype for name, slot in state.changing.items()}
        complete(folder / "a", Head(done, 0.0, (), state.registers(engine), dtypes, blocks, {}, {}, {}, ""))
    with Engine(model.layouts("slabs", 1)) as engine:
        begin_with(model, engine)
        engine.prepare(model.step)
        (head,), _ = heads_of(folder)
        restore(folder / head.slot, head, engine, state)
        engine.run(model.step, steps - done)
        fields = {name: gather_cells(engine, model, name) for name in model.output}
        return Left(fields, observe(model, engine))


def assert_same(a: Left, b: Left) -> None:
    """The same bits in all fields, the same observables."""
    assert a.fields.keys() == b.fields.keys()
    for name, values in a.fields.items():
        assert values.tobytes() == b.fields[name].tobytes(), name
        assert np.array_equal(values, b.fields[name])
    assert repr(a.observables) == repr(b.observables)
