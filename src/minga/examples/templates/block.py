"""my_rule: diffusing particles. No particle is ever lost, and no two are ever in the same cell.

Try it:

    minga run my_rule.py
    minga run my_rule.py --set "grid.shape=[600, 800]" --set parameters.turning=0.5 --set run.steps=1000
"""

import minga as mg

run = {"steps": 2000}  # entries of the tables [run] and [output] of a case; --set overrides them
output = {"every": 100}


# The grid is divided into blocks of 2 x 2 cells, each of which is replaced by another block; in the next step the
# blocks are shifted by one cell along both axes. The function describes one block and returns the cells of the next.
# It is called once, with symbols, so `if` cannot be used on a cell: use mg.where(condition, then, otherwise) instead.
# A rule that only moves cells, like this one, conserves the number of particles.
# Parameters after the star can be set from the command line or by a case.
@mg.block_rule(states=2)
def my_rule(block, *, turning=1.0):
    """Return the next cells of a block."""
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


def start(shape, y, x):
    """Return the initial states of the cells with the indices `y` and `x`, here a full disc."""
    return (y - shape[0] / 2) ** 2 + (x - shape[1] / 2) ** 2 < (min(shape) / 5) ** 2


# An observable, reported at every frame in addition to the usual ones: a number for the whole grid (mg.count, sum, min,
# max).
def particles(cell):
    """Return the number of particles."""
    return mg.count(cell == 1)


def model(shape=(240, 320), boundary="periodic", *, turning=1.0, seed=0):
    """Return the model. On a periodic axis the number of cells must be even, so that the blocks fit."""
    return mg.automaton(
        my_rule,
        shape,
        init=start,
        boundary=boundary,
        observe={"particles": particles},
        parameters={"turning": turning},
        seed=seed,
    )
