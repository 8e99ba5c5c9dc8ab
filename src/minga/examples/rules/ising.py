"""The model of W. Lenz and E. Ising with heat-bath dynamics: every spin is redrawn in the field of its neighbours.

Source: R. J. Glauber, J. Math. Phys. 4 (1963) 294.
"""

import minga as mg


@mg.rule(neighbourhood=mg.von_neumann(1), update="coloured")
def ising(cell, near, *, temperature=2.269):
    """Draw a spin, 0 for down and 1 for up; the coupling and Boltzmann's constant are 1."""
    field = 2.0 * near.count(1) - len(near)
    return mg.random() < 1.0 / (1.0 + mg.exp(-2.0 * field / temperature))
