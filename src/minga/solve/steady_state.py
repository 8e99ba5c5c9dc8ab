"""Steady states of models, f(u) = 0, by pseudo-transient continuation with Newton's method.

Each iteration is one linearised implicit Euler step, (1 - dt J) s = dt f(u). It begins with steps in which values
change by a tenth, and lengthens them as the residual falls (switched evolution relaxation): far from the steady state
the iteration follows the evolution of the model, and near to it it is Newton's method, with systems solved by BiCGStab.

Source: C. T. Kelley, D. E. Keyes, SIAM J. Numer. Anal. 35 (1998) 508.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from minga.compile.explain import Kernel, kernel
from minga.engine.comm import Comm
from minga.engine.model import Model, Over
from minga.engine.program import Program
from minga.errors import ProgramError, RunError, shown
from minga.lang.cell import CellReader
from minga.lang.elementary import clip
from minga.lang.expr import as_node, extreme, where
from minga.lang.functions import max as largest
from minga.output.provenance import COMMAND
from minga.running.call import said_call
from minga.running.run import run
from minga.solve.jacobian import Vector
from minga.solve.krylov import copy
from minga.solve.newton_krylov import NewtonKrylov
from minga.solve.rates import Evolution, Rates, most, rates_kernel
from minga.space.field import TIME, Register

if TYPE_CHECKING:
    import xarray

__all__ = ["steady"]

_FORCING: Final = 1e-3
"""Part of its right side to which a linear system is solved."""
_MOST_PRODUCTS: Final = 2000
"""Largest number of iterations of the Krylov method in each iteration."""
_FIRST: Final = 0.1
"""Change of values in the first step, relative to the largest of them."""
_LEAST_GROWTH: Final = 1.5
"""Growth of steps while the residual falls."""
_WORSE: Final = 10.0
"""Growth of the residual with which a step counts as too long."""
_GIVEN_UP: Final = 1e-9
"""Length of steps, in units of the first one, at which the iteration is given up."""
_DEFAULTS: Final[Mapping[str, object]] = {"tolerance": 1e-8, "limit": 200, "dt": None, "time": 0.0}
"""Arguments that the record of a call leaves out."""
_NO_LEVEL: Final = (
    "no condition at a wall fixes the level of the fields: unless the equations do, a steady state exists only if all "
    "that flows in and is made cancels; "
)
_ENDS: Final = {1: "the residual is below the tolerance", 2: "the steps have become too short"}


def steady(
    model: Model,
    *,
    tolerance: float = 1e-8,
    limit: int = 200,
    dt: float | None = None,
    time: float = 0.0,
    comm: Comm | None = None,
) -> xarray.Dataset:
    """Return a steady state of a model, found from its initial values.

    Parameters
    ----------
    model
        A model of `mg.pde`, or another one that has an `evolution`.
    tolerance
        The largest rate of change that is left, in the units of the fields per unit of time.
    limit
        The most iterations.
    dt
        Length of the first step, in the unit of time; by default one in which values change by about a tenth of the
        largest. Shorter steps follow the model's own evolution more closely, which decides between several steady
        states.
    time
        The time at which equations and conditions that depend on it are taken.
    comm
        The ranks; on several, every rank calls this, and rank 0 gets the state.

    Returns
    -------
    xarray.Dataset
        The state. Its attribute `residual` is the list of the largest rates of change, of the initial values and after
        each iteration; `iterations` is their number and `products` that of all Krylov iterations.

    Raises
    ------
    ProgramError
        If the model has no `evolution`, or its rates have noise.
    RunError
        If the iteration does not reach the tolerance; the message says how far it came.
    LayoutError
        If a condition of a field cannot be linearised.
    """
    if not 0.0 < tolerance < math.inf:
        raise ProgramError(f"tolerance={shown(tolerance)}", remedy="give a positive number, such as 1e-8")
    if dt is not None and not 0.0 < dt < math.inf:
        raise ProgramError(f"dt={shown(dt)}", remedy="give a positive number, or leave it out")
    found = _evolution(model)
    search = _search(model, found, tolerance, dt, time)
    given = {"tolerance": tolerance, "limit": limit, "dt": dt, "time": time}
    history = run(search, limit, comm=comm, every=limit, observe=1)
    history.attrs[COMMAND] = said_call("mg.solve.steady", {k: v for k, v in given.items() if v != _DEFAULTS[k]})
    known = history.attrs
    if not known["residual"] <= tolerance:
        level = "" if _has_level(found) else _NO_LEVEL
        raise RunError(
            f"no steady state of model {model.name!r} was found: after {known['iterations']} iterations the largest "
            f"rate of change is {known['residual']:.3g}, and the tolerance {tolerance:.3g}",
            remedy=f"{level}the last step was {known['length']:.3g}: if the residual still falls, raise limit={limit}; "
            "if rounding holds it, raise tolerance; otherwise begin nearer to a steady state, if there is one",
        )
    return _state(history, model)


def _evolution(model: object) -> Evolution:
    """Return the evolution of a model that may have a steady state; raise ProgramError for others."""
    if not isinstance(model, Model):
        raise ProgramError(
            f"expected a model, found {type(model).__name__}",
            remedy="write mg.solve.steady(mg.pde(...)); steady begins with the initial values of the model: "
            "mg.pde(..., initial={'u': found.u[-1].values})",
        )
    found = model.evolution
    if not isinstance(found, Evolution):
        raise ProgramError(
            f"model {model.name!r} does not say what its rates of change are",
            remedy="make it with mg.pde, without integrals and spectral derivatives, or give "
            "mg.Model(..., evolution=mg.solve.Evolution(rates, fields))",
        )
    if found.rates.noise is not None:
        raise ProgramError(f"model {model.name!r} has noise, and therefore no steady state", remedy="leave noise out")
    for item in found.fields:
        if item.slots < 2:
            raise ProgramError(f"steady: field {item.name!r} has a single slot", remedy="declare it with slots=2")
    return found


def _has_level(evolution: Evolution) -> bool:
    """Return whether a condition at a wall depends on the level of a field, as all but those of derivatives do."""
    names = (
        str(side) for item in evolution.fields for pair in item.boundary.sides for side in pair if side is not None
    )
    return not all(name.startswith(("neumann", "no_flux", "reflect", "zero_gradient")) for name in names)


def _state(history: xarray.Dataset, model: Model) -> xarray.Dataset:
    """Return the last frame, with the history of the residual among its attributes."""
    after = [float(value) for value in history["residual"].values[1:]] if "residual" in history.variables else []
    state = history.drop_dims("observed", errors="ignore")
    state = state.isel(time=-1, drop=True) if "time" in state.dims else state
    state.attrs.update(model=model.name, residual=[history.attrs["residual_before"], *after])
    for name in ("residual_before", "steps"):
        state.attrs.pop(name, None)
    return state


def _search(model: Model, evolution: Evolution, tolerance: float, dt: float | None, time: float) -> Model:
    """Return the iteration as a model, one iteration a step."""
    newton = NewtonKrylov(evolution.rates, evolution.fields, "steady")
    numbers = _Numbers()
    step = Program("steady")
    step.let(TIME, time)
    with step.when(numbers.iterations.node == 0):
        _begin(step, evolution, numbers, dt)
    _iterate(step, evolution, newton, numbers)
    done = where(numbers.residual <= tolerance, 1, where(numbers.length < _GIVEN_UP * numbers.first, 2, 0))
    step.let(numbers.done, done)
    observe = Program("observe")
    known = (*evolution.fields, *evolution.rates.constants)
    names = {
        "residual_before": numbers.before,
        "residual": numbers.residual,
        "length": numbers.length,
        "iterations": numbers.iterations,
        "products": newton.products,
    }
    seen = {name: Register(f"observe.{name}", register.dtype) for name, register in names.items()}
    for name, register in seen.items():
        observe.let(register, names[name])
    return Model(
        f"{model.name}-steady",
        model.grid,
        (*known, *newton.workspace),
        step,
        initial={slot: value for slot, value in model.given.items() if slot.field in known},
        output=tuple(item.name for item in evolution.fields),
        observe=observe,
        observables=seen,
        registers=model.registers,
        parameters=model.parameters,
        seed=model.seed,
        about=model.about,
        presentation=model.presentation,
        hierarchies=newton.hierarchies,
        explain=lambda engine: RunError(
            f"the rates of change of model {model.name!r} are not finite at the initial values",
            remedy="give initial values where the equations divide by no 0, and take no logarithm or root of a "
            "negative value",
        ),
        over=Over(numbers.done, lambda engine: _ENDS[int(engine.read(numbers.done))]),
    )


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Registers of the iteration: residuals, length of the step, its first value and its limit, and counters."""

    before: Register = field(default_factory=lambda: Register("steady.before"))
    residual: Register = field(default_factory=lambda: Register("steady.residual"))
    length: Register = field(default_factory=lambda: Register("steady.length"))
    first: Register = field(default_factory=lambda: Register("steady.first"))
    longest: Register = field(default_factory=lambda: Register("steady.longest"))
    iterations: Register = field(default_factory=lambda: Register("steady.iterations", "i8"))
    done: Register = field(default_factory=lambda: Register("steady.done", "i8"))


def _begin(step: Program, evolution: Evolution, numbers: _Numbers, dt: float | None) -> None:
    """Record the residual of the initial values, and the first length."""
    found = step.apply(
        _measured(evolution.rates), _now(evolution), evolution.rates.constants, **evolution.rates.scalars
    )
    known: Any = found
    step.let(numbers.residual, known.residual)
    step.let(numbers.before, known.residual)
    size = where(known.size > 0.0, known.size, 1.0)
    guess = where(known.residual > 0.0, _FIRST * size / where(known.residual > 0.0, known.residual, 1.0), 1.0)
    step.let(numbers.first, guess if dt is None else dt)
    step.let(numbers.length, numbers.first)
    step.let(numbers.longest, math.inf)


def _iterate(step: Program, evolution: Evolution, newton: NewtonKrylov, numbers: _Numbers) -> None:
    """Record one iteration, which leaves the state as it is where the step was too long."""
    rates, length, residual = evolution.rates, numbers.length, numbers.residual
    now, trial = _now(evolution), tuple(item.next for item in evolution.fields)
    right, change = newton.systems.right, newton.systems.change
    unsolved, good = Register("steady.unsolved", "i8"), Register("steady.good", "i8")
    with step.unchecked():
        step.apply(_rates_times(rates), now, rates.constants, right, dt=length, **rates.scalars)
        solution = newton.systems.solve(
            step, now, length, tolerance=_FORCING, limit=_MOST_PRODUCTS, name="steady.krylov", unsolved=unsolved
        )
        step.apply(added, now, change, trial)
        new: Any = step.apply(_measured(rates), trial, rates.constants, **rates.scalars)
    step.let(newton.products, newton.products + solution.iterations)
    step.let(numbers.iterations, numbers.iterations + 1)
    step.let(good, where((unsolved == 0) & (new.residual >= 0.0) & (new.residual <= _WORSE * residual), 1, 0))
    with step.when(good > 0):
        for one, other in zip(trial, now, strict=True):
            step.apply(copy, one, other)
    falls = where(new.residual < residual, _LEAST_GROWTH, 0.0)
    ratio = residual / extreme("max", (new.residual, 1e-300))
    longer = length * clip(extreme("max", (ratio, falls)), 0.1, 10.0)
    least = extreme("min", (length, numbers.first))
    step.let(numbers.longest, where(good > 0, _LEAST_GROWTH * numbers.longest, 0.5 * length))
    chosen = where(good > 0, extreme("max", (longer, least)), 0.25 * length)
    step.let(length, extreme("min", (chosen, numbers.longest)))
    step.let(residual, where(good > 0, new.residual, residual))


def _now(evolution: Evolution) -> Vector:
    return tuple(item.now for item in evolution.fields)


def _measured(rates: Rates) -> Kernel:
    """Return the kernel of the residual, and of the sizes of values and rates."""

    def compute(state: list[Any], constants: list[Any], **scalars: Any) -> dict[str, Any]:
        here = (0,) * len(state[0].axes)
        values = [as_node(value) for value in rates.function(state, constants, TIME, **scalars)]
        return {
            "residual": largest(most([abs(value) for value in values])),
            "size": largest(most([abs(u[here]) for u in state])),
        }

    return rates_kernel(compute, "residual", rates, step=False)


def _rates_times(rates: Rates) -> Kernel:
    """Return the kernel that stores the rates times the length of a step."""

    def compute(state: list[Any], constants: list[Any], right: list[Any], **scalars: Any) -> None:
        h = scalars.pop("dt")
        for target, value in zip(right, rates.function(state, constants, TIME, **scalars), strict=True):
            target[(0,) * len(state[0].axes)] = h * as_node(value)

    return rates_kernel(compute, "scaled-rates", rates)


@kernel
def added(state: Sequence[CellReader], change: Sequence[CellReader], target: Sequence[CellReader]) -> None:
    """Store target = state + change."""
    here = (0,) * len(state[0].axes)
    for u, d, item in zip(state, change, target, strict=True):
        item[here] = u[here] + d[here]
