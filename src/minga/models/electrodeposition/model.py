"""Conversion of a Problem into a Model by the chosen scheme."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np

from minga.engine.clock import Clock
from minga.engine.model import Model
from minga.engine.program import Program
from minga.errors import CaseError
from minga.models.electrodeposition.charges import Charges
from minga.models.electrodeposition.drawings import drawings_of
from minga.models.electrodeposition.electrode_charge import ElectrodeCharge
from minga.models.electrodeposition.failures import ending, explainer
from minga.models.electrodeposition.flow import Flow
from minga.models.electrodeposition.formula import Formula
from minga.models.electrodeposition.iteration import Iteration
from minga.models.electrodeposition.lengths import Lengths, plane_of
from minga.models.electrodeposition.observe import record_observables
from minga.models.electrodeposition.potential import Poisson
from minga.models.electrodeposition.problem import FLUID, Problem
from minga.models.electrodeposition.protocols.course import Course
from minga.models.electrodeposition.protocols.fitting import check_corners
from minga.models.electrodeposition.protocols.segments import segments_of
from minga.models.electrodeposition.saturation import saturation_diagnostics
from minga.models.electrodeposition.solvers import INNER, INNER_GROWING, Solvers, Unsolved
from minga.models.electrodeposition.state import State, state_of
from minga.models.electrodeposition.stepping import Stepping
from minga.models.electrodeposition.stokes import StokesOptions
from minga.models.electrodeposition.transport import Transport
from minga.models.electrodeposition.units import units_of
from minga.space.field import Field, Register

__all__ = ["Scheme", "electrodeposition"]

Scheme = Literal["semi-implicit", "relaxation"]

AGREEMENT: Final = 1e-3
"""Change of the potential in RT/F that ends the passes of a time step, as a fraction of the step's tolerance."""
FLOWING: Final = 0.01
"""The same where a fluid moves, whose time steps are many and short."""
FLOW: Final = 1e-3
"""Relative residual of the flow's equations, as a fraction of that tolerance."""
GROWING: Final = 0.1
"""Tolerance of the next change of the potential, in RT/F, as a fraction of `steps.tolerance`, where a deposit grows.
Its steps restart all the time; a thousandth takes 1.3 times as many passes, and the charge differs by less than chance
shows."""


def electrodeposition(problem: Problem, scheme: Scheme = "semi-implicit", **options: Any) -> Model:
    """Return the model of the ions, potential, flow and deposit of a cell.

    One step of the model covers `problem.steps.every` seconds.

    Parameters
    ----------
    problem
        The problem to solve.
    scheme
        "semi-implicit": Scharfetter-Gummel fluxes, passes of the semi-implicit Poisson equation and implicit transport
        until they agree, and BDF2 with step lengths that follow the error. "relaxation": coupled point relaxation after
        Milano, Mocskos and Marshall.
    **options
        Options of the scheme. Those of "semi-implicit" are ``passes`` (largest number in a time step, 40),
        ``agreement`` (tolerance of the last change of the potential, in RT/F; by default a thousandth of the tolerance
        of time steps, a hundredth with flow, a tenth where a deposit grows, and 1e-9 where a current is given or limits
        a segment or an impedance is measured), ``tolerance`` (of the residuals of the
        concentrations' systems, 1e-12), ``limit`` (of the iterations of a linear system, 500) and ``attempts`` (largest
        number of attempted time steps in one step of the model, 10 000).

    Returns
    -------
    Model
        The model.

    Raises
    ------
    CaseError
        If the scheme has no such option.
    """
    if scheme == "relaxation":
        from minga.models.electrodeposition.relaxation.scheme import relaxation_model

        return relaxation_model(problem, **options)
    known = ("passes", "agreement", "tolerance", "limit", "attempts")
    for name in options:
        if name not in known:
            raise CaseError(
                f"the semi-implicit scheme has no option {name!r}",
                key=f"electrodeposition.semi_implicit.{name}",
                remedy=f"its options are {', '.join(known)}",
            )
    return _semi_implicit(problem, **options)


def _semi_implicit(
    problem: Problem,
    *,
    passes: int = 40,
    agreement: float | None = None,
    tolerance: float = 1e-12,
    limit: int = 500,
    attempts: int = 10_000,
) -> Model:
    check_corners(problem, attempts)
    state, lengths, formula = state_of(problem), Lengths(problem.grid), Formula()
    drive = {name: Register(f"drive {name}") for name in ("voltage", "at_cathode", "at_anode")}
    if agreement is None:
        # The current follows from the potential, so a current that is given or watched, or answers a small sine, needs
        # closer agreement.
        share = (FLOWING if problem.flow else AGREEMENT) if problem.growth is None else GROWING
        watched = any("current" in s.until or s.amplitude for s in segments_of(problem.protocol))
        close = problem.galvanostatic or watched
        agreement = 1e-9 if close else share * problem.steps.tolerance
    unsolved = Unsolved()
    transport = Transport(problem, state, lengths, drive, formula, tolerance, limit, unsolved.concentrations)
    inner = INNER if problem.growth is None else INNER_GROWING
    solvers = Solvers(problem.grid, limit, unsolved.potential, problem.solids, inner)
    poisson = Poisson(problem, state, lengths, drive, formula, solvers.solve, solvers.assembled)
    solvers.prepare(poisson.first, poisson.second)
    charged = [problem.cathode.capacity or problem.growth, problem.growth or problem.galvanostatic]
    layers = tuple(ElectrodeCharge(poisson, state, cathode=n == 0) for n, there in enumerate(charged) if there)
    counted = problem.galvanostatic or problem.protocol or problem.competing or problem.growth
    charges = Charges(problem, state, transport, layers) if counted else None
    course = None
    if problem.protocol and charges is not None:
        course = Course(problem, state, charges, plane_of(problem.grid))
    iteration = Iteration(
        problem, state, poisson, transport, formula, drive, passes, agreement, solvers.iterations, unsolved, course,
        economical=problem.growth is not None, counted=charges,
    )  # fmt: skip
    flow, flow_fields, flow_initial, hierarchies = _flow(problem, state, unsolved)
    stepping = Stepping(problem, state, iteration, flow, attempts, charges)
    step, observe = Program("step"), Program("observe")
    stepping.record(step)
    observables = record_observables(observe, problem, lengths, stepping)
    own = (state.kind, *state.concentration, state.potential, *state.velocity)
    if state.pressure is not None:
        own = (*own, state.pressure)
    solids = problem.kinds is not None or problem.growth is not None
    output = tuple(item.name for item in own if item is not state.kind or solids)
    return Model(
        name="electrodeposition",
        grid=problem.grid,
        fields=(
            *own,
            *lengths.fields,
            *stepping.rates,
            *sum(transport.film, ()),
            *transport.bent,
            *solvers.fields,
            *flow_fields,
            *stepping.grown,
        ),
        step=step,
        initial={**_initial(problem, state), **lengths.initial, **flow_initial, **stepping.grown_initial},
        output=output,
        observe=observe,
        observables=observables,
        units=units_of(observables, problem.grid.ndim),
        registers=stepping.registers | {state.voltage: problem.voltage or 0.0},
        parameters=_parameters(problem),
        seed=problem.seed,
        hierarchies=(*solvers.hierarchies, *hierarchies),
        velocity=tuple(item.name for item in state.velocity),
        explain=explainer(problem, stepping),
        updates=stepping.counters.taken,
        over=ending(problem, stepping),
        diagnostics=saturation_diagnostics(step, problem, state),
        mask=None if state.mask is None else state.mask.name,
        conserved=tuple(f"total_{s.name}" for s in problem.species),
        clock=Clock(dt=problem.steps.every, time=state.time),
        presentation=replace(state.presentation, drawings=drawings_of(problem, observables.keys())),
    )


def _flow(
    problem: Problem, state: State, unsolved: Unsolved
) -> tuple[Flow | None, tuple[Field, ...], Mapping[Field, Any], tuple[Any, ...]]:
    """Return the flow, if the fluid moves, with the fields, initial values and hierarchies that a Model needs."""
    if not problem.flow:
        return None, (), {}, ()
    exactness = StokesOptions(tolerance=FLOW * problem.steps.tolerance)
    flow = Flow(problem, state, settings=exactness, unsolved=unsolved.flow)
    return flow, flow.fields, flow.initial, flow.hierarchies


def _initial(problem: Problem, state: State) -> dict[Any, Any]:
    """Return the initial state: bulk concentrations, 0 in solid cells, and a potential that rises linearly."""
    shape = problem.grid.shape
    kinds = np.zeros(shape, np.uint8) if problem.kinds is None else problem.kinds
    fluid = kinds == FLUID
    values: dict[Any, Any] = {state.kind: kinds}
    for species, item in zip(problem.species, state.concentration, strict=True):
        given = np.broadcast_to(np.asarray(problem.initial.get(species.name, species.bulk), np.float64), shape)
        values[item.now] = values[item.previous] = np.where(fluid, given, 0.0)
    axis = problem.grid.axis("y")
    y, length = problem.grid.centres(axis), float(problem.grid.widths(axis).sum())
    rising = (problem.voltage or 0.0) * (y - problem.grid.origin[axis]) / length
    place = [1] * len(shape)
    place[axis] = -1
    phi = np.asarray(problem.initial.get("potential", np.broadcast_to(rising.reshape(place), shape)), np.float64)
    values[state.potential.now] = values[state.potential.previous] = np.where(fluid, phi, 0.0)
    known = {s.name for s in problem.species} | {"potential"}
    return values | {name: array for name, array in problem.initial.items() if name not in known}


def _parameters(problem: Problem) -> dict[str, object]:
    return {
        "species": {s.name: {"charge": s.charge, "diffusivity": s.diffusivity} for s in problem.species},
        "voltage": problem.voltage, "current": problem.current, "end": problem.steps.end, "every": problem.steps.every,
        "order": problem.steps.order, "tolerance": problem.steps.tolerance,
    }  # fmt: skip
