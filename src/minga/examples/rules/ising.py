"""The model of W. Lenz and E. Ising: every spin is drawn anew from its neighbours' field (heat bath; R. J. Glauber,
J. Math. Phys. 4 (1963) 294)."""

import minga as mg


@mg.rule(neighbourhood=mg.von_neumann(1), update="coloured")
def ising(cell, near, *, temperature=2.269):
    """0 is down, 1 is up; the coupling and Boltzmann's constant are 1."""
    field = 2.0 * near.count(1) - len(near)
    return mg.random() < 1.0 / (1.0 + mg.exp(-2.0 * field / temperature))
