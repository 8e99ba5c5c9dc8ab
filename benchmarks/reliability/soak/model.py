"""The field that the soak computes: logistic maps on a lattice, so chaotic that a wrong bit spreads everywhere."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import minga as mg

__all__ = ["GRID", "lattice"]

GRID: Final = mg.Grid((640, 128), periodic=(False, True))


@mg.kernel
def couple(u: Any, new: Any) -> None:
    def logistic(value: Any) -> Any:
        return 1.0 - 1.75 * value * value

    around = logistic(u[-1, 0]) + logistic(u[1, 0]) + logistic(u[0, -1]) + logistic(u[0, 1])
    new[0, 0] = 0.7 * logistic(u[0, 0]) + 0.075 * around


def lattice() -> mg.Model:
    """Return the model."""
    u = mg.Field("u", GRID, slots=2, boundary=mg.fixed(0.25))
    step = mg.Program("step")
    step.apply(couple, u, u.next)
    step.rotate(u)
    y, x = np.indices(GRID.shape)
    return mg.Model("lattice", GRID, (u,), step, initial={u: 0.9 * np.sin(0.3 * x) * np.cos(0.17 * y)}, output=("u",))
