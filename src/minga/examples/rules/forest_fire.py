"""The forest fire of B. Drossel and F. Schwabl, Phys. Rev. Lett. 69 (1992) 1629."""

import minga as mg

EMPTY, TREE, FIRE = 0, 1, 2


@mg.rule(states=3, neighbourhood=mg.von_neumann(1))
def forest_fire(cell, near, *, growth=0.01, lightning=1e-4):
    """Let trees grow, catch fire from neighbours or lightning, and burn down in one step."""
    chance = mg.random()
    burns = near.any(FIRE) | (chance < lightning)
    tree = mg.where(burns, FIRE, TREE)
    empty = mg.where(chance < growth, TREE, EMPTY)
    return mg.where(cell == TREE, tree, mg.where(cell == EMPTY, empty, EMPTY))
