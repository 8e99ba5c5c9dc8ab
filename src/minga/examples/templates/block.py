"""my_rule: particles that diffuse. None is ever lost, and no two come to the same place.

Try it:

    minga run my_rule.py
    minga run my_rule.py --set "grid.shape=[600, 800]" --set parameters.turning=0.5 --set run.steps=1000
"""

import numpy as np

import minga as mg

run = {"steps": 2000}  # what [run] and [output] of a case file would say; --set wins over it
output = {"every": 100}


# The grid is cut into blocks of 2 x 2 cells, each of which becomes another block; at the next step the cuts lie one
# cell farther along both axes. The function describes one block. It runs once, with symbols, so there is no `if` on
# a cell: mg.where(condition, then, otherwise) takes its place. What it returns are the cells of the next block.
# A rule that only moves what is there, as this one does, keeps the number of particles.
# Parameters after the star can be changed from outside.
@mg.block_rule(states=2)
def my_rule(block, *, turning=1.0):
    north_west, north_east, south_west, south_east = block
    chance = mg.random()  # one number for the block: all its cells turn the same way
    left, turns = chance < 0.5 * turning, chance < turning
    return [
        mg.where(turns, mg.where(left, to_left, to_right), stays)
        for stays, to_left, to_right in (
            (north_west, north_east, south_west),
            (north_east, south_east, north_west),
            (south_west, north_west, south_east),
            (south_east, south_west, north_east),
        )
    ]


# Where cells start: a function of the grid's shape and the indices of the cells that are wanted. Here a full disc.
def start(shape, y, x):
    return np.hypot(y - shape[0] / 2, x - shape[1] / 2) < min(shape) / 5


# What is reported besides the usual, at every frame: one number for the whole grid (mg.count, sum, min, max).
def particles(cell):
    return mg.count(cell == 1)


# On a periodic axis the number of cells must be even, so that blocks fit.
def model(shape=(240, 320), boundary="periodic", *, turning=1.0, seed=0):
    return mg.automaton(
        my_rule,
        shape,
        init=start,
        boundary=boundary,
        observe={"particles": particles},
        parameters={"turning": turning},
        seed=seed,
    )
