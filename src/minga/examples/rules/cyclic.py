"""The cyclic automaton of D. Griffeath, in which each state is eaten by the next; R. Fisch, Physica D 45 (1990) 19."""

import minga as mg

STATES = 14


@mg.rule(states=STATES, neighbourhood=mg.von_neumann(1))
def cyclic(cell, near):
    """Change to the next state if a neighbour has it."""
    eater = (cell + 1) % STATES
    return mg.where(near.any(eater), eater, cell)
