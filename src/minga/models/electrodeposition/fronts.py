"""Fronts of the layers that spread from the electrodes, as observables along y."""

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
"""Fraction of the bulk concentration by which a layer differs from it at its front."""


def record_fronts(observe: Program, grid: Grid, kind: Field, concentration: Field, bulk: float) -> dict[str, Register]:
    """Record how far from the electrodes an ion's concentration differs by `SHARE` of its bulk concentration.

    Parameters
    ----------
    observe
        The program to record in.
    grid, kind
        The grid and the field of the cells' kinds.
    concentration
        Field of the ion's concentration, mol/m3.
    bulk
        Bulk concentration of the ion, mol/m3; above 0.

    Returns
    -------
    dict
        Registers of `depleted_to`, the highest y at which the ion is depleted, and of `enriched_to`, the lowest y at
        which it is enriched, both in m. Without such a layer they are the positions of the cathode and the anode.
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
