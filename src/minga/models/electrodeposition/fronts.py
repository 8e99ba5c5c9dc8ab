"""Where the layers are that spread from the electrodes: observables that are places along y."""

from __future__ import annotations

import functools
from typing import Any, Final

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import where
from minga.models.electrodeposition.problem import FLUID
from minga.space.field import Field, Register
from minga.space.grid import Grid

__all__ = ["SHARE", "record_fronts"]

SHARE: Final = 0.1
"""Part of the bulk's concentration by which a layer differs from it at its front."""


def record_fronts(observe: Program, grid: Grid, kind: Field, concentration: Field, bulk: float) -> dict[str, Register]:
    """Record how far from the electrodes the concentration of an ion differs by `SHARE` of its bulk's (mol/m3, > 0).

    Observables: `depleted_to`, the highest y at which there is less, and `enriched_to`, the lowest at which there is
    more; the electrodes' own places where there is none.
    """
    places = grid.faces("y")
    found: Any = observe.apply(
        _fronts(grid.ndim),
        concentration,
        kind,
        low=(1 - SHARE) * bulk,
        high=(1 + SHARE) * bulk,
        cathode=float(places[0]),
        anode=float(places[-1]),
    )
    return {"depleted_to": found.depleted_to, "enriched_to": found.enriched_to}


@functools.cache
def _fronts(ndim: int) -> Kernel:
    here = (0,) * ndim

    def fronts(
        c: CellReader, kind: CellReader, *, low: float, high: float, cathode: float, anode: float
    ) -> dict[str, Reduced]:
        y = mg.coordinate(0)
        fluid = kind[here] == FLUID
        return {
            "depleted_to": mg.max(where(fluid & (c[here] < low), y, cathode)),
            "enriched_to": mg.min(where(fluid & (c[here] > high), y, anode)),
        }

    return kernel(fronts)
