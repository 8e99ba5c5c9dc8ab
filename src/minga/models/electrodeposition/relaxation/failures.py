"""Explanations of why a relaxation did not converge: the equation, the place and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minga.engine.engine import Engine
from minga.errors import RunError
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.state import State
from minga.space.field import Register

REMEDIES = {
    "the ions": "take shorter time steps (electrodeposition.time.first)",
    "the potential": "take shorter time steps, or a larger Debye length (electrodeposition.debye)",
    "the flow": "take shorter time steps (electrodeposition.time.first): the fluid turns over in less than one step",
}
"""Remedies by equation."""


def explainer(
    problem: Problem, state: State, stuck: Register, parts: Sequence[tuple[str, Register]], place: Register, limit: int
) -> Callable[[Engine], RunError | None]:
    """Return the function that a Model calls to explain a step that failed; `parts` are the residuals by equation."""

    def explain(engine: Engine) -> RunError | None:
        if not engine.read(stuck):
            return None
        name, residual = max(((n, float(engine.read(r))) for n, r in parts), key=lambda part: part[1])
        where = None if name == "the flow" else problem.grid.place(int(engine.read(place)))
        return RunError(
            f"{name} did not converge at t = {engine.read(state.time):.6g} s: after {limit} sweeps the residual is "
            f"{residual:.3g}",
            where=where,
            remedy=f"{REMEDIES[name]}, or allow more sweeps ([electrodeposition.relaxation] limit)",
        )

    return explain
