"""Integrators: methods that advance du/dt = f(u, t), recorded as Programs.

Rates of change are a function of cells, so that one kernel computes the rate at a stage and all that the method makes
of it. `names` is the table of all methods; each kind of method has a module of its own, whose function records a step.
"""

from __future__ import annotations

from minga.solve.integrators.method import Integrator
from minga.solve.integrators.names import INTEGRATORS, integrator
from minga.solve.integrators.workspace import Recorded

__all__ = ["INTEGRATORS", "Integrator", "Recorded", "integrator"]
