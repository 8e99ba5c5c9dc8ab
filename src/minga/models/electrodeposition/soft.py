"""A small scaled cell with a soft Poisson number, which relaxation solves in seconds, for comparing orders of sweeps.

Lengths are in units of the cell's length, potentials in RT/F, concentrations in that of the bath, times in
L**2 / D_amb. The numbers are those of 0.1 M ZnSO4, except for a Debye length of 0.02, so that cells are not wider than
it, and a Schmidt number of 1000.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.models.electrodeposition.problem import CATHODE, Constants, Electrode, Held, Problem, Species, Steps
from minga.space.grid import Grid

POISSON: Final = 312.5
"""Po = x0**2 C0 F / (eps Phi0), for a Debye length of 0.02 of two ions of charges 2 and -2."""
ELECTRIC: Final = 625.0 * POISSON
"""Ge, so that Ge/Po is that of a cell of 1 cm."""
PECLET: Final = (1.199, 0.801)
"""Pe of the cation and of the anion."""
EXTENTS: Final[Mapping[str, float]] = {"y": 1.0, "z": 0.4, "x": 0.4}
"""Lengths of the axes."""


def soft_cell(
    shape: Mapping[str, int],
    *,
    dt: float,
    steps: int,
    voltage: float = 20.0,
    gravity: float = 1e6,
    schmidt: float = 1000.0,
    fingers: bool = False,
    length: float = EXTENTS["y"],
) -> Problem:
    """Return the problem of ions between two electrodes that hold the cation's concentration, in a horizontal gap.

    Parameters
    ----------
    shape
        Number of cells along the axes y, z, x, or some of them.
    dt, steps
        Length and number of the time steps.
    voltage
        Potential of the anode relative to the cathode, RT/F.
    gravity
        Gg of the salt.
    schmidt
        Schmidt number.
    fingers
        Whether the cathode has three fingers of 0.45 times the cell's length, which end inside the second of three
        blocks.
    length
        Distance from cathode to anode.
    """
    axes = tuple(shape)
    cells = tuple(shape.values())
    extents = {**EXTENTS, "y": length}
    grid = Grid(cells, axes=axes, spacing=tuple(extents[a] / n for a, n in shape.items()))
    density = 1.0 / ELECTRIC
    cation = Species("C", 2, 1.0 / PECLET[0], 1.0, 0.5 * gravity)
    anion = Species("A", -2, 1.0 / PECLET[1], 1.0, 0.5 * gravity)
    return Problem(
        grid=grid,
        species=(cation, anion),
        steps=Steps(end=steps * dt, every=dt, first=dt, adaptive=False, order=1),
        constants=Constants(
            faraday=1.0, thermal=1.0, permittivity=1.0 / POISSON, density=density, viscosity=schmidt * density
        ),
        kinds=three_fingers(cells) if fingers else None,
        cathode=Electrode({"C": Held(1.0)}),
        anode=Electrode({"C": Held(1.0)}),
        voltage=voltage,
        gravity=tuple(-1.0 if a == "z" else 0.0 for a in axes),
        flow=len(axes) > 1,
    )


def three_fingers(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return kinds of cells with three bars on the cathode, side by side along the last axis, centred in the others."""
    kinds = np.zeros(shape, np.uint8)
    length, wide = 9 * shape[0] // 20, shape[-1]
    thick = max(1, wide // 12)
    middle = tuple(slice(n // 2 - max(1, n // 6), n // 2 + max(1, n // 6)) for n in shape[1:-1])
    for number in (1, 2, 3):
        centre = number * wide // 4
        kinds[(slice(0, length), *middle, slice(centre - thick // 2, centre - thick // 2 + thick))] = CATHODE
    return kinds
