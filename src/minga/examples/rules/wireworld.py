"""WireWorld, by Brian Silverman (1987): electrons run along wires; A. K. Dewdney, Scientific American, January 1990."""

import minga as mg

EMPTY, HEAD, TAIL, WIRE = 0, 1, 2, 3


@mg.rule(states=4, colours=("#20242c", "#3d8bff", "#f4f4f0", "#e8912d"))
def wireworld(cell, near):
    """Let heads become tails, tails wire, and wire with one or two heads next to it a head."""
    heads = near.count(HEAD)
    wire = mg.where((heads == 1) | (heads == 2), HEAD, WIRE)
    return mg.where(cell == HEAD, TAIL, mg.where(cell == TAIL, WIRE, mg.where(cell == WIRE, wire, EMPTY)))
