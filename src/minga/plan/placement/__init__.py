"""Placement of blocks on ranks, so that neighbours in the grid are close to each other in the machine.

MPI does not do this: ``MPI_Cart_create`` with ``reorder`` leaves ranks as they are in MPICH and Open MPI. Here, ranks
stay where they were started and blocks move. The first three mappings are those of Printista and Saez (*Effective Use
of Multicore Clusters in Parallel Cellular Automata*):

sequential   block after block onto the cores, in the order of the machine's tree
round-robin  the first block on the first node, the second on the second, and so on in turn
tiles        every node gets a tile of blocks, each of its chips a tile of that, and so on; for equal nodes only
bisection    machine and blocks are halved together, then pairs are exchanged while that helps; for any machine
exact        the cheapest of all placements of a few ranks, if none of the others is; only as a part of auto
auto         the cheapest of all these: its messages never cost more than with sequential
"""

from minga.plan.placement.cost import Cost, Pricing, cost_of, level_costs
from minga.plan.placement.edges import Edges, edges_of
from minga.plan.placement.grids import best_grid, grids_by_cost
from minga.plan.placement.portfolio import (
    MAPPINGS,
    Candidate,
    arrange,
    check_mapping,
    distribute,
    place,
    place_all,
    portfolio,
    reassigned,
)

__all__ = [
    "MAPPINGS",
    "Candidate",
    "Cost",
    "Edges",
    "Pricing",
    "arrange",
    "best_grid",
    "check_mapping",
    "cost_of",
    "distribute",
    "edges_of",
    "grids_by_cost",
    "level_costs",
    "place",
    "place_all",
    "portfolio",
    "reassigned",
]
