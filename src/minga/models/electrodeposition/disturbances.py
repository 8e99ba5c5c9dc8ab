"""The error of a time step relative to the flow itself, which controls disturbances of any size.

Errors of concentrations are relative to the bath. A disturbance that is still small, of a layer that becomes unstable,
may then be wrong by its own size in each step, and grows at a wrong rate. Where the undisturbed state is at rest, the
velocity consists of the disturbance alone: the error here is the difference of the velocity from the line through its
last two values, relative to its largest magnitude. For a disturbance that grows at the rate s, it is about (s dt)^2.
"""

from __future__ import annotations

import functools
from typing import Final

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.state import State
from minga.space.field import Register

__all__ = ["flow_error", "largest_velocity"]

AT_REST: Final = 1e-6
"""Velocity, relative to the largest diffusivity over the length of the cell, that counts as none."""


def flow_error(program: Program, problem: Problem, state: State, levels: Register, order: Node) -> Node:
    """Record the comparison of the next velocity with its prediction; return the error relative to the tolerance.

    Parameters
    ----------
    program
        The program to record in.
    problem, state
        The problem and its state.
    levels
        Number of completed time steps; the first two are not judged, since the fluid starts at rest.
    order
        Power of the time step by which the error is to vary, 2 or 3, for the step control.

    Returns
    -------
    Node
        The error divided by the tolerance.
    """
    tolerance = problem.steps.flow_tolerance
    assert tolerance is not None
    ratio = Register("velocity ratio")
    program.let(ratio, where(state.last > 0.0, state.dt / where(state.last > 0.0, state.last, 1.0), 0.0))
    off: Node | float = 0.0
    largest: Node | float = AT_REST * max(s.diffusivity for s in problem.species) / _length(problem)
    for velocity in state.velocity:
        found = vars(program.apply(compare, velocity.now, velocity.previous, velocity.next, ratio=ratio))
        off, largest = mg.max(found["off"], off), mg.max(found["largest"], largest)
    error = Register("velocity error")
    program.let(error, where(levels > 1, off / largest * (1.0 / tolerance), 0.0))
    return where(order > 2.0, error * mg.sqrt(error), error)


def _length(problem: Problem) -> float:
    return float(problem.grid.widths("y").sum())


def largest_velocity(program: Program, state: State) -> Node:
    """Record the largest magnitude of a component of the velocity; return it."""
    found = [program.apply(fastest, velocity.now) for velocity in state.velocity]
    return functools.reduce(mg.max, found[1:], as_node(found[0]))


@kernel
def fastest(velocity: CellReader) -> Reduced:
    """Return the largest magnitude of a component of the velocity."""
    return mg.max(mg.abs(velocity[(0,) * len(velocity.axes)]))


@kernel
def compare(now: CellReader, before: CellReader, then: CellReader, *, ratio: Node) -> dict[str, Reduced]:
    """Return the largest difference of a velocity from its linear prediction, and its largest magnitude."""
    here = (0,) * len(now.axes)
    predicted = now[here] + ratio * (now[here] - before[here])
    return {"off": mg.max(mg.abs(then[here] - predicted)), "largest": mg.max(mg.abs(then[here]))}
