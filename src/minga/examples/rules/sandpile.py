"""The sandpile of P. Bak, C. Tang and K. Wiesenfeld, Phys. Rev. Lett. 59 (1987) 381.

D. Dhar showed that it is Abelian: Phys. Rev. Lett. 64 (1990) 1613.
"""

import minga as mg


@mg.rule(dtype="i4", neighbourhood=mg.von_neumann(1))
def sandpile(cell, near, *, rain=0.0):
    """Give each neighbour one of every four grains on a site; a new grain falls on a site with probability `rain`."""
    return cell % 4 + sum(grains // 4 for grains in near.values()) + mg.cast(mg.random() < rain, "i4")


def pile(shape, y, x):
    """Return 60 000 grains on the middle site."""
    return 60_000 * ((y == shape[0] // 2) & (x == shape[1] // 2))
