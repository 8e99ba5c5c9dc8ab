"""The model of P. Gray and S. K. Scott with the patterns of J. E. Pearson, Science 261 (1993) 189."""

import numpy as np

import minga as mg


@mg.rule(fields=("u", "v"), neighbourhood=mg.von_neumann(1))
def gray_scott(cell, near, *, Du=0.16, Dv=0.08, feed=0.035, kill=0.065):
    """Do one Euler step of length 1."""
    reaction = cell.u * cell.v * cell.v
    return {
        "u": cell.u + (Du * near.laplacian("u") - reaction + feed * (1 - cell.u)),
        "v": cell.v + (Dv * near.laplacian("v") + reaction - (feed + kill) * cell.v),
    }


def square(shape, y, x):
    """Return u = 1 everywhere, except for a square of 8 x 8 cells in the middle, which also has v."""
    inside = (abs(2 * y + 1 - shape[0]) < 8) & (abs(2 * x + 1 - shape[1]) < 8)
    return {"u": np.where(inside, 0.5, 1.0), "v": np.where(inside, 0.25, 0.0)}
