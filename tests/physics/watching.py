"""Models watched at chosen steps of one run: observables, or cells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import minga as mg
from minga.engine.begin import start
from minga.engine.comm import Comm, run_virtual
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.observables import observe


def watch(
    model: Model, steps: Iterable[int], *, ranks: int = 1, layout: str = "cartesian", **options: Any
) -> dict[int, dict[str, Any]]:
    """The model's observables after each of these numbers of steps."""

    def on_rank(comm: Comm | None) -> dict[int, dict[str, Any]]:
        seen, done = {}, 0
        with Engine(model.layouts(layout, ranks), comm=comm, **options) as engine:
            start(model, engine)
            for wanted in sorted(steps):
                engine.run(model.step, wanted - done)
                done = wanted
                seen[done] = observe(model, engine)
        return seen

    results = [on_rank(None)] if ranks == 1 else run_virtual(ranks, on_rank)
    assert all(result == results[0] for result in results)
    return results[0]


def populations(model: Model, steps: Iterable[int], **options: Any) -> dict[int, int]:
    """Cells that are not 0 after each of these numbers of steps."""
    return {step: seen["population"] for step, seen in watch(model, steps, **options).items()}


def cells(model: Model, steps: int) -> NDArray[Any]:
    """The cells after so many steps."""
    return np.asarray(mg.run(model, steps=steps).cell[-1])


def history(model: Model, steps: int, every: int = 1) -> NDArray[Any]:
    """The cells at step 0 and every so many steps, stacked."""
    return np.asarray(mg.run(model, steps=steps, every=every).cell)
