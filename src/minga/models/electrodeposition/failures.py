"""Why a run could not go on, in words: the quantity, the place and what to do."""

from __future__ import annotations

from collections.abc import Callable

from minga.engine.engine import Engine
from minga.errors import RunError
from minga.models.electrodeposition.groups import limiting_current
from minga.models.electrodeposition.iteration import NEVER
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.stepping import Stepping

__all__ = ["explainer"]


def _slow(problem: Problem) -> str:
    """What to do where a run would take for ever."""
    more = "raise the tolerance of the time steps, or allow more of them ([electrodeposition.semi_implicit] attempts)"
    limit = limiting_current(problem)
    if problem.current is None or limit is None or abs(problem.current) <= limit:
        return more
    return (
        f"the current is {abs(problem.current) / limit:.3g} times the limiting one, {limit:.4g} A/m2: without flow "
        f"only a layer of charge at hundreds of volts could carry it; lower it, or {more}"
    )


def explainer(problem: Problem, stepping: Stepping) -> Callable[[Engine], RunError | None]:
    """What a Model calls after a step without success."""
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
            last = f"it still changes by {change:.3g} RT/F" if change < NEVER else "it is beyond all sense"
            return RunError(
                f"the potential did not converge {when}: after {passes} passes {last}",
                where=place,
                remedy="a current beyond the limiting one cannot be driven through a depleted layer: lower it, or "
                "allow more passes ([electrodeposition.semi_implicit] passes) or a finer grid there",
            )
        if why == 3:
            return RunError(
                f"the concentration of {ion} becomes negative {when}",
                where=place,
                remedy="more of an ion is taken out than is there (Sand's time): lower the prescribed flux or current, "
                "or hold the concentration instead",
            )
        if why == 4:
            found = iteration.unsolved
            systems = {"potential": found.potential, "concentrations": found.concentrations, "flow": found.flow}
            lost = " and ".join(f"the {name}" for name, register in systems.items() if engine.read(register))
            return RunError(
                f"the linear systems of {lost} were not solved {when}",
                where=place,
                remedy="no current can be driven through a layer without ions: lower the voltage or the current; or "
                "allow more iterations ([electrodeposition.semi_implicit] limit), or choose cells that are less thin",
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
