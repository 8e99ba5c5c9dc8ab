"""The model of W. Lenz and E. Ising, every spin drawn anew from its neighbours' field (heat bath, R. J. Glauber 1963)."""

import minga as mg


@mg.rule(neighbourhood=mg.von_neumann(1), update="coloured")
def ising(cell, near, *, temperature=2.269):
    """0 is down, 1 is up; coupling and Boltzmann's constant are 1. First the even cells of a checkerboard, then the odd."""
    field = 2.0 * near.count(1) - len(near)
    return mg.random() < 1.0 / (1.0 + mg.exp(-2.0 * field / temperature))
