"""Explanations of why a run ended early: the quantity, the place and the remedy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

from minga.engine.engine import Engine
from minga.engine.model import Over
from minga.errors import RunError
from minga.models.electrodeposition.counters import COMPLETE, CUT_OFF, EXHAUSTED, REACHED
from minga.models.electrodeposition.groups import Salt, limiting_current
from minga.models.electrodeposition.iteration import NEVER
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.protocols.segments import LIMITS
from minga.models.electrodeposition.stepping import Stepping

__all__ = ["ending", "explainer"]

DEPLETED: Final = 0.1
"""Fraction of the bulk concentration below which the solution counts as depleted of an ion."""
PLENTY: Final = 0.5
"""Fraction of the bulk concentration above which no ion has run out anywhere."""
SLACK: Final = 1.1
"""Factor on the steady-state concentration in a cell at a metal whose surface has run out of ions."""


def _beyond(problem: Problem) -> str | None:
    """Describe by how much the current exceeds the limiting current; None if it does not, or no limit is known."""
    limit = limiting_current(problem)
    if problem.current is None or limit is None or abs(problem.current) <= limit:
        return None
    return f"the current is {abs(problem.current) / limit:.3g} times the limiting one, {limit:.4g} A/m2"


def _depletion(problem: Problem, least: float) -> str:
    """Describe how depletion ended a run beyond the limiting current.

    `least` is the smallest concentration of an ion in any cell, as a fraction of its bulk. Where the surface of a metal
    has run out of ions, the cell beside it still holds the concentration that the gradient due to the current leaves at
    its centre.
    """
    salt, current = Salt.of(problem.species), problem.current
    if salt is None or current is None:
        return ""
    width = float(problem.grid.widths("y")[0 if current > 0 else -1])
    centre = 0.5 * width * salt.gradient(abs(current), problem.constants.faraday) / salt.concentration
    if least < max(DEPLETED, min(SLACK * centre, 0.5)):
        return ", and the electrode has run out of ions"
    if centre < 1.0:
        return ""
    return "; the cells at the electrode are too wide: diffusion across half a cell cannot carry such a current"


def _slow(problem: Problem) -> str:
    """Return the remedy for a run that would take far too many time steps."""
    more = "raise the tolerance of the time steps, or allow more of them ([electrodeposition.semi_implicit] attempts)"
    beyond = _beyond(problem)
    if beyond is None:
        return more
    return f"{beyond}: without flow the electrode runs out of ions, and no voltage can drive more; lower it, or {more}"


def ending(problem: Problem, stepping: Stepping) -> Over | None:
    """Return what ends a run early without an error, or None if nothing can.

    Such a run ends when the deposit reaches the anode, when the voltage passes its cut-off, or when its program is
    over. At any end the run says which limits were not reached.
    """
    if problem.growth is None and problem.cutoff == math.inf and not problem.protocol:
        return None

    def say(engine: Engine) -> str:
        return "; ".join([_reason(engine, stepping, problem), *_at_once(engine, stepping), *_unmet(engine, stepping)])

    return Over(stepping.ended, say, lambda engine: "; ".join(_unmet(engine, stepping)))


def _reason(engine: Engine, stepping: Stepping, problem: Problem) -> str:
    """Return why a run has ended early."""
    when = f"at t = {engine.read(stepping.state.time):.6g} s"
    why = engine.read(stepping.ended)
    if why == REACHED:
        return f"the deposit reached the anode {when}"
    if why == COMPLETE:
        return f"the program is complete {when}"
    if why == EXHAUSTED:
        least = engine.read(stepping.least)
        lost = "an electrode has run out of ions"
        if least > PLENTY:
            lost = f"potential and ions do not agree, although {100 * least:.0f} % of every ion is left everywhere"
        given = "current" if stepping.course is None or stepping.course.reference is None else "current or potential"
        return f"no voltage was found that drives the {given} of the program any longer, {when}: {lost}"
    voltage = engine.read(stepping.state.voltage)
    before, last = engine.read(stepping.iteration.voltages[0]), engine.read(stepping.state.last)
    earlier = f"; {before:.4g} V one time step of {last:.3g} s earlier" if before else ""
    found = f"the voltage passed its cut-off of {problem.cutoff:g} V {when} ({voltage:.4g} V{earlier})"
    beyond = _beyond(problem)
    if beyond is None:
        return found
    return f"{found}: {beyond}{_depletion(problem, engine.read(stepping.least))}"


def _at_once(engine: Engine, stepping: Stepping) -> Iterator[str]:
    """Yield which limit, if any, was passed already where its segment began."""
    if stepping.course is None:
        return
    events = stepping.course.events
    found = int(engine.read(events.at_once))
    if found:
        number = int(engine.read(events.at_once_in)) + 1
        limit = LIMITS[found - 1]
        yield f"segment {number} ended at once, because its limit of the {limit} was passed where it began"


def _unmet(engine: Engine, stepping: Stepping) -> Iterator[str]:
    """Yield the cut-off and the limits of segments that were watched and never reached."""
    if stepping.course is not None:
        opened, later = engine.read(stepping.course.opened), set()
        never: dict[int, list[str]] = {}
        for (number, limit), ends in stepping.course.events.ends.items():
            if number >= opened:
                later.add(number + 1)
            elif engine.read(ends) == 0:
                never.setdefault(number + 1, []).append(limit)
        for number, limits in never.items():
            yield f"segment {number} never reached its limit of the {' and of the '.join(limits)}"
        if later:
            yield f"{len(later)} later segment{'s' if len(later) > 1 else ''} with limits never began"
    cutoff = stepping.problem.cutoff
    if cutoff < math.inf and engine.read(stepping.ended) != CUT_OFF:
        yield f"the voltage never passed its cut-off of {cutoff:g} V"


def explainer(problem: Problem, stepping: Stepping) -> Callable[[Engine], RunError | None]:
    """Return the function that a Model calls to explain a step that failed."""
    counters, state, iteration = stepping.counters, stepping.state, stepping.iteration

    def explain(engine: Engine) -> RunError | None:
        why = int(engine.read(counters.failed))
        if why == 0:
            return None
        place = problem.grid.place(int(engine.read(counters.place)))
        time, dt = engine.read(state.time), engine.read(state.dt)
        when = f"at t = {time:.6g} s with a step of {dt:.3g} s"
        ion = problem.species[int(engine.read(counters.species))].name
        if why == 1:
            change, passes = engine.read(iteration.change), engine.read(iteration.passes)
            last = f"it still changes by {change:.3g} RT/F" if change < NEVER else "its values are meaningless"
            if change <= iteration.tolerance:
                last = "the current is not the given one"
            return RunError(
                f"the potential did not converge {when}: after {passes} passes {last}",
                where=place,
                remedy="lower the voltage, allow more passes ([electrodeposition.semi_implicit] passes), or refine the "
                "grid there"
                if problem.voltage is not None
                else "a current beyond the limiting one cannot be driven through a depleted layer: lower it, allow "
                "more passes ([electrodeposition.semi_implicit] passes), or refine the grid there",
            )
        if why == 3:
            return RunError(
                f"the concentration of {ion} becomes negative {when}",
                where=place,
                remedy="more of the ion is removed than is there (Sand's time): lower the prescribed flux or current, "
                "or hold the concentration instead",
            )
        if why == 4:
            found = iteration.unsolved
            systems = {"potential": found.potential, "concentrations": found.concentrations, "flow": found.flow}
            lost = " and ".join(f"the {name}" for name, register in systems.items() if engine.read(register))
            return RunError(
                f"the linear systems of {lost} were not solved {when}",
                where=place,
                remedy="no current can be driven through a layer without ions: lower the voltage or the current, allow "
                "more iterations ([electrodeposition.semi_implicit] limit), or make the cells less thin",
            )
        if why == 5:
            attempts, every = int(engine.read(counters.attempts)), problem.steps.every
            return RunError(
                f"{ion} changes so fast {when} that {attempts:,} time steps did not cover {every:.4g} s",
                where=place,
                remedy=_slow(problem),
            )
        error = engine.read(counters.error)
        return RunError(
            f"the concentration of {ion} changes too fast {when}: {error:.3g} times the tolerance",
            where=place,
            remedy="raise the tolerance of the time steps, or refine the grid there",
        )

    return explain
