"""Cars on a ring road: K. Nagel and M. Schreckenberg, J. Phys. I France 2 (1992) 2221, with a maximum speed of 5."""

import minga as mg

FASTEST = 5


@mg.rule(fields=("car", "dawdles"), states=FASTEST + 2, neighbourhood=mg.moore(FASTEST))
def traffic(cell, near, *, p=0.3):
    """Move all cars at once: each speeds up by one, brakes for the car ahead, dawdles with probability p, and moves.

    `car` is 0 in a cell without a car, else one more than the car's speed; `dawdles` marks cells whose car dawdles. A
    cell looks back for the one car that arrives in it. It also draws the random number of the car that may be here in
    the next step, so that the cells ahead can see the result.
    """

    def at(field, place):
        return near[field, place] if place else getattr(cell, field)

    def speed(place):
        free = FASTEST
        for ahead in range(FASTEST, 0, -1):
            free = mg.where(at("car", place + ahead) > 0, ahead - 1, free)
        wanted = mg.min(at("car", place), FASTEST, free)
        return mg.where(wanted > 0, wanted - at("dawdles", place), wanted)

    arrives = 0
    for steps in range(FASTEST + 1):
        here = (at("car", -steps) > 0) & (speed(-steps) == steps)
        arrives = mg.where(here, steps + 1, arrives)
    return {"car": arrives, "dawdles": mg.where(mg.random() < p, 1, 0)}
