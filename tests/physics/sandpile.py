"""The sandpile of P. Bak, C. Tang and K. Wiesenfeld, Phys. Rev. Lett. 59 (1987) 381, with a count of topplings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import minga as mg
from minga.engine.begin import start
from minga.engine.observables import observe
from minga.lang.expr import Node
from minga.lang.rule_context import RuleContext

Grains = NDArray[np.int32]


@mg.rule(fields={"grains": "i4", "topplings": "i4"}, neighbourhood=mg.von_neumann(1))
def sandpile(cell: Any, near: RuleContext) -> dict[str, Node]:
    """Each site of four grains or more gives one to each neighbour; at the edge grains fall off."""
    given = mg.cast(cell.grains >= 4, "i4")
    taken = sum(mg.cast(grains >= 4, "i4") for grains in near.values("grains"))
    return {"grains": cell.grains - 4 * given + taken, "topplings": cell.topplings + given}


@dataclass(frozen=True)
class Stable:
    """What remains when no site topples: grains, how often each site toppled, and the steps in which any did."""

    grains: Grains
    topplings: Grains
    steps: int


def stabilise(grains: Grains, chunk: int = 1) -> Stable:
    """Topple until all is quiet. `steps` is exact where `chunk`, the steps between two looks, is 1."""
    init = {"grains": grains, "topplings": np.zeros_like(grains)}
    model = mg.automaton(sandpile, grains.shape, init=init, boundary="fixed")
    with mg.Engine(model.layouts("single", 1)) as engine:
        start(model, engine)
        steps = -chunk
        while steps < 0 or observe(model, engine)["topplings_residual"]:
            engine.run(model.step, chunk)
            steps += chunk
        return Stable(*(engine.gather(model.field(name)) for name in init), steps)


def pile(shape: tuple[int, int], grains: int) -> Grains:
    """All grains on the middle site."""
    sites = np.zeros(shape, np.int32)
    sites[shape[0] // 2, shape[1] // 2] = grains
    return sites


def loss(topplings: Grains) -> Grains:
    """Grains that each site gives away less those it gets: four times its topplings less its neighbours'."""
    padded = np.pad(topplings, 1)
    around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    return 4 * topplings - around
