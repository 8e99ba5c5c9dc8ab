"""my_rule: waves of fire. A cell is ignited by burning neighbours, burns for one step, and is ash for another.

Try it:

    minga run my_rule.py
    minga run my_rule.py --set "grid.shape=[600, 800]" --set parameters.spark=0.001 --set run.steps=1000
"""

import minga as mg

run = {"steps": 400}  # entries of the tables [run] and [output] of a case; --set overrides them
output = {"every": 20}

REST, ASH, FIRE = 0, 1, 2


# The function describes one cell. It is called once, with symbols for `cell` and its neighbours `near`, so `if` cannot
# be used on a cell: use mg.where(condition, then, otherwise) instead, and & | ~ instead of and, or, not.
# Parameters after the star can be set from the command line or by a case.
@mg.rule(states=3, neighbourhood=mg.moore(1))
def my_rule(cell, near, *, spark=0.0):
    """Return the next state of a cell."""
    kindled = near.any(FIRE) | (mg.random() < spark)
    fresh = mg.where(kindled, FIRE, REST)
    return mg.where(cell == REST, fresh, mg.where(cell == FIRE, ASH, REST))


def start(shape, y, x):
    """Return the initial states of the cells with the indices `y` and `x`; `shape` is the shape of the grid.

    Here a front reaches across half of the grid, with ash on one side only: its open end curls up into a spiral.
    """
    front = x < shape[1] // 2
    return FIRE * (front & (y == shape[0] // 2)) + ASH * (front & (y == shape[0] // 2 + 1))


# An observable, reported at every frame in addition to the usual ones: a number for the whole grid (mg.count, sum, min,
# max).
def burning(cell):
    """Return the number of burning cells."""
    return mg.count(cell == FIRE)


# Another neighbourhood: mg.von_neumann(1), mg.moore(2), mg.circular(3), mg.hex(), mg.offsets([(-1, 0), (0, 2)]).
# Several values per cell: @mg.rule(fields={"u": "f8", "v": "f8"}), with cell.u, near.sum("u"), and a dict as result.
def model(shape=(240, 320), boundary="periodic", *, spark=0.0, seed=0):
    """Return the model."""
    return mg.automaton(
        my_rule,
        shape,
        init=start,
        boundary=boundary,
        observe={"burning": burning},
        parameters={"spark": spark},
        seed=seed,
    )
