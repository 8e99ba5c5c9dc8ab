"""Plans: machines, layouts, and the assignment of work to ranks.

`read_machine` describes computers, `make_plan` fits a layout to them, `place` assigns blocks to cores, and `best_route`
chooses how data reach all ranks. Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from minga.plan.broadcasting import best_route, mpi_advice, router
    from minga.plan.links import Link, Links, Segment
    from minga.plan.machine.machine import Machine, read_machine
    from minga.plan.placement import cost_of, place, portfolio
    from minga.plan.plan import Plan
    from minga.plan.planner import make_plan
    from minga.plan.probe.probe import probe_ranks
    from minga.plan.ranks import RankGroup
    from minga.plan.speed import Speed
    from minga.plan.topology import Tree, traffic_by_level
    from minga.plan.work.work import HaloRound, Work
    from minga.space.cuts import best_cartesian, bisection, blocks, cartesian, parse_layout, slabs

__all__ = [
    "HaloRound",
    "Link",
    "Links",
    "Machine",
    "Plan",
    "RankGroup",
    "Segment",
    "Speed",
    "Tree",
    "Work",
    "best_cartesian",
    "best_route",
    "bisection",
    "blocks",
    "cartesian",
    "cost_of",
    "make_plan",
    "mpi_advice",
    "parse_layout",
    "place",
    "portfolio",
    "probe_ranks",
    "read_machine",
    "router",
    "slabs",
    "traffic_by_level",
]

__getattr__, __dir__ = attach(__name__, __file__)
