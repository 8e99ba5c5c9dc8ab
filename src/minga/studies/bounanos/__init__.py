"""Organisations of the pointwise scheme on many machines, and an emulator that compares them without the machines.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from minga.studies.bounanos.adaptive import solve_adaptive
    from minga.studies.bounanos.centralised import solve_centralised
    from minga.studies.bounanos.costs import synthetic_costs
    from minga.studies.bounanos.cuts import equal, even
    from minga.studies.bounanos.emulator import emulate
    from minga.studies.bounanos.systems import MINGA, SYSTEMS
    from minga.studies.bounanos.weights import mean_cost
    from minga.studies.bounanos.workload import paper_device, solve

__all__ = [
    "MINGA",
    "SYSTEMS",
    "emulate",
    "equal",
    "even",
    "mean_cost",
    "paper_device",
    "solve",
    "solve_adaptive",
    "solve_centralised",
    "synthetic_costs",
]

__getattr__, __dir__ = attach(__name__, __file__)
