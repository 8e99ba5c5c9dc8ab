"""Two reversible rules for blocks of 2 x 2 cells by N. Margolus, whose effects can be undone step by step.

Sources: Physica D 10 (1984) 81; T. Toffoli and N. Margolus, Cellular Automata Machines, MIT Press 1987.
"""

import numpy as np

import minga as mg


@mg.block_rule(states=2)
def critters(block):
    """Keep a block of two live cells; invert any other, and also rotate it by half a turn if three cells were alive."""
    n = block.sum()
    inverted = [1 - cell for cell in block]
    return [
        mg.where(n == 2, cell, mg.where(n == 3, opposite, inverse))
        for cell, inverse, opposite in zip(block, inverted, inverted[::-1])
    ]


@mg.block_rule(states=2)
def billiard_balls(block):
    """Let a single ball cross its block, and two on a diagonal leave on the other one; keep all other blocks."""
    n = block.sum()
    nw, _, _, se = cells = list(block)
    return [
        mg.where(n == 1, opposite, mg.where((n == 2) & (nw == se), 1 - cell, cell))
        for cell, opposite in zip(cells, cells[::-1])
    ]


def disc(shape, y, x):
    """Return a disc of random cells in the middle."""
    number = (y * shape[1] + x).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ (number >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    inside = (y - shape[0] // 2) ** 2 + (x - shape[1] // 2) ** 2 < (min(shape) / 6) ** 2
    return ((number >> np.uint64(63)) == 1) & inside


def table(shape, y, x):
    """Return four discs of balls between walls; all balls move to the middle, as their places in their blocks say."""
    cells = (y == 0) | (y == shape[0] - 1) | (x == 0) | (x == shape[1] - 1)
    for down in (0, 1):
        for right in (0, 1):
            middle = shape[0] * (1 + 2 * down) // 4, shape[1] * (1 + 2 * right) // 4
            disc = (y - middle[0]) ** 2 + (x - middle[1]) ** 2 < (min(shape) / 10) ** 2
            cells = cells | (disc & (y % 2 == down) & (x % 2 == right))
    return cells
