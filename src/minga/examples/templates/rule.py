"""my_rule: waves that are kindled by their neighbours, burn for a step, and leave ash behind them for another.

Try it:

    minga run my_rule.py
    minga run my_rule.py --set "grid.shape=[600, 800]" --set parameters.spark=0.001 --set run.steps=1000
"""

import minga as mg

run = {"steps": 400}  # what [run] and [output] of a case file would say; --set wins over it
output = {"every": 20}

REST, ASH, FIRE = 0, 1, 2


# The function describes one cell. It runs once, with symbols for `cell` and its neighbours `near`, so there is no `if`
# on a cell: mg.where(condition, then, otherwise) takes its place, and & | ~ take that of and, or, not.
# Parameters after the star can be changed from outside.
@mg.rule(states=3, neighbourhood=mg.moore(1))
def my_rule(cell, near, *, spark=0.0):
    kindled = near.any(FIRE) | (mg.random() < spark)
    fresh = mg.where(kindled, FIRE, REST)
    return mg.where(cell == REST, fresh, mg.where(cell == FIRE, ASH, REST))


# Where cells start: a function of the grid's shape and the indices of the cells that are wanted. Here a front across
# half of the grid, with ash on one side only: its open end curls up to a spiral.
def start(shape, y, x):
    front = x < shape[1] // 2
    return FIRE * (front & (y == shape[0] // 2)) + ASH * (front & (y == shape[0] // 2 + 1))


# What is reported besides the usual, at every frame: one number for the whole grid (mg.count, sum, min, max).
def burning(cell):
    return mg.count(cell == FIRE)


# Another neighbourhood: mg.von_neumann(1), mg.moore(2), mg.circular(3), mg.hex(), mg.offsets([(-1, 0), (0, 2)]).
# More than one value a cell: @mg.rule(fields={"u": "f8", "v": "f8"}), then cell.u, near.sum("u"), and a dict returned.
def model(shape=(240, 320), boundary="periodic", *, spark=0.0, seed=0):
    return mg.automaton(
        my_rule,
        shape,
        init=start,
        boundary=boundary,
        observe={"burning": burning},
        parameters={"spark": spark},
        seed=seed,
    )
