"""Methods that treat the linear part of the rates implicitly, and the rest explicitly.

Each stage solves (1 - g L) u = b with the linear part L, by BiCGStab for the change of a guess, so that conditions at
walls enter with their values at the time of the stage. The value g L u of a solved stage is what u differs from b by:
it carries no error of the solver that L would amplify.

Methods of several steps keep the explicit rates, and the length, of the step before, so that steps may change; the
first step is one of ARS(4,4,3).

Sources: U. M. Ascher, S. J. Ruuth, R. J. Spiteri, Appl. Numer. Math. 25 (1997) 151 (ARS). U. M. Ascher, S. J. Ruuth,
B. T. R. Wetton, SIAM J. Numer. Anal. 32 (1995) 797, and D. Wang, S. J. Ruuth, J. Comput. Math. 26 (2008) 838 (methods
of several steps, of constant and of changing length).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from minga.engine.program import Program
from minga.lang.expr import Node, as_node, cast, where
from minga.lang.functions import max as largest
from minga.solve.integrators.explicit import Given, length
from minga.solve.integrators.workspace import Recorded, like
from minga.solve.rates import Rates, most, rates_kernel
from minga.solve.shifted_systems import ShiftedSystems
from minga.solve.split import split
from minga.space.field import TIME, Field, Register, Slot

__all__ = ["ARS222", "ARS443", "EULER", "Tableau", "multistep", "runge_kutta"]

SOLVED: Final = 1e-9
"""Residual of a linear system beside the one of its guess at which it counts as solved."""
LIMIT: Final = 500
"""The most iterations of a linear system."""
GROWTH: Final = 2.0 * (1.0 + 1e-9)
"""Largest ratio of two steps of the methods of two steps; a longer step is one of ARS443."""


@dataclass(frozen=True)
class Tableau:
    """A Runge-Kutta method whose last stage is the end of the step.

    Parameters
    ----------
    times
        The fraction of the step of each stage.
    explicit
        For each stage the weights of the explicit rates at the start and at the stages before.
    implicit
        For each stage the weights of the linear part at the stages up to itself.
    """

    times: tuple[float, ...]
    explicit: tuple[tuple[float, ...], ...]
    implicit: tuple[tuple[float, ...], ...]


_G: Final = 1.0 - math.sqrt(0.5)
_D: Final = 1.0 - 1.0 / (2.0 * _G)
EULER: Final = Tableau((1.0,), ((1.0,),), ((1.0,),))
ARS222: Final = Tableau((_G, 1.0), ((_G,), (_D, 1.0 - _D)), ((_G,), (1.0 - _G, _G)))
ARS443: Final = Tableau(
    (1 / 2, 2 / 3, 1 / 2, 1.0),
    ((1 / 2,), (11 / 18, 1 / 18), (5 / 6, -5 / 6, 1 / 2), (1 / 4, 7 / 4, 3 / 4, -7 / 4)),
    ((1 / 2,), (1 / 6, 1 / 2), (-1 / 2, 1 / 2, 1 / 2), (3 / 2, -3 / 2, 1 / 2, 1 / 2)),
)


class _Imex:
    """The recording of the parts that all methods consist of; some keep the explicit rates for the next step."""

    def __init__(self, name: str, program: Program, rates: Rates, fields: tuple[Field, ...], keeps: bool) -> None:
        self.name, self.program, self.rates, self.fields = name, program, rates, fields
        self.linear, self.rest = split(rates)
        self.systems = ShiftedSystems(self.linear, fields, f"{program.name}.{name}")
        self.levels: dict[str, tuple[Field, ...]] = {}
        self.first = _next(self.level("n", 2)) if keeps else _now(self.level("n"))

    def level(self, name: str, slots: int = 1) -> tuple[Field, ...]:
        """Return the fields of a level, which are declared when it is first asked for."""
        if name not in self.levels:
            self.levels[name] = tuple(like(item, name, slots) for item in self.fields)
        return self.levels[name]

    @property
    def recorded(self) -> Recorded:
        """Workspace and linear system of the step."""
        levels = (item for group in self.levels.values() for item in group)
        return Recorded(
            (*levels, *self.systems.workspace),
            solutions=(self.solution,),
            hierarchies=self.systems.hierarchies,
        )

    def evaluate(self, rates: Rates, at: Sequence[Slot], out: Sequence[Slot], word: str) -> None:
        """Record the evaluation of one part of the rates."""

        def compute(state: list[Any], constants: list[Any], out: list[Any], **scalars: Any) -> None:
            here = (0,) * len(state[0].axes)
            for target, value in zip(out, rates.function(state, constants, TIME, **scalars), strict=True):
                target[here] = cast(as_node(value), target.dtype)

        kernel = rates_kernel(compute, f"{self.name}-{word}", rates, step=False)
        self.program.apply(kernel, at, rates.constants, out, **rates.scalars)

    def explicit(self, at: Sequence[Slot], out: Sequence[Slot]) -> None:
        """Record the explicit rates of a level."""
        self.evaluate(self.rest, at, out, "explicit")

    def combine(self, levels: Sequence[Sequence[Slot]], weights: Sequence[Any], out: Sequence[Slot]) -> None:
        """Record a weighted sum of levels."""
        names = [f"w{n}" for n in range(len(levels))]
        count = len(self.fields)

        def compute(levels: list[Any], out: list[Any], **scalars: Any) -> None:
            here = (0,) * len(out[0].axes)
            for i, target in enumerate(out):
                terms = [scalars[name] * levels[n * count + i][here] for n, name in enumerate(names)]
                target[here] = sum(terms[1:], terms[0])

        flat = [slot for level in levels for slot in level]
        kernel = rates_kernel(
            compute, f"{self.name}-sum", Rates(self.rates.function, (), dict.fromkeys(names)), step=False
        )
        self.program.apply(kernel, flat, out, **dict(zip(names, weights, strict=True)))

    def solve(self, state: Sequence[Slot], right: Sequence[Slot], scale: Register) -> None:
        """Record the solution of (1 - scale L) u = right at the present time; `state` holds a guess, and then u."""
        linear, program, systems = self.linear, self.program, self.systems

        def compute(state: list[Any], right: list[Any], constants: list[Any], out: list[Any], **scalars: Any) -> Any:
            here = (0,) * len(state[0].axes)
            h = scalars.pop("dt")
            found = linear.function(state, constants, TIME, **scalars)
            values = [b[here] - (u[here] - h * value) for u, b, value in zip(state, right, found, strict=True)]
            for target, value in zip(out, values, strict=True):
                target[here] = value
            return largest(most([abs(value) for value in values]))

        # The reduction ends the run where the residual is not finite, before the solver fails to converge.
        kernel = rates_kernel(compute, f"{self.name}-residual", linear)
        program.apply(kernel, state, right, linear.constants, systems.right, dt=scale, **linear.scalars)
        unsolved = Register(f"{systems.name}.unsolved", "i8")
        program.let(unsolved, 1)
        with program.repeat(until=unsolved == 0, limit=1):
            self.solution = systems.solve(
                program, tuple(state), scale, tolerance=SOLVED, limit=LIMIT, name=systems.name, unsolved=unsolved
            )
        self.combine([state, systems.change], [1.0, 1.0], state)

    def run(self, stages: Sequence[Stage], time: Given, first: int | Node) -> None:
        """Record stages, of which one alone is solved for: from `first` to the next one that ends the step."""
        program, now, after = self.program, _now(self.fields), _next(self.fields)
        number, scale = Register(f"{self.systems.name}.stage", "i8"), Register(f"{self.systems.name}.scale")
        program.let(number, first)
        self.combine([now], [1.0], after)
        with program.repeat(until=number < 0, expected=len(stages)):
            for index, stage in enumerate(stages):
                with program.when(number == index):
                    self.combine(stage.levels, stage.weights, _now(self.level("b")))
                    time.set(stage.time)
                    program.let(scale, stage.scale)
            self.solve(after, _now(self.level("b")), scale)
            for index, stage in enumerate(stages):
                if stage.linear is not None:
                    with program.when(number == index):
                        self.combine([after, _now(self.level("b"))], [1.0 / scale, -1.0 / scale], stage.linear)
                        self.explicit(after, stage.rates)
            ends = functools.reduce(operator.or_, (number == n for n, one in enumerate(stages) if one.linear is None))
            program.let(number, where(ends, -1, number + 1))

    def runge_kutta(self, tableau: Tableau, dt: Any) -> list[Stage]:
        """Return the stages of a Runge-Kutta method; the explicit rates at the start are known."""
        rates: list[Sequence[Slot]] = [self.first]
        linear: list[Sequence[Slot]] = []
        stages: list[Stage] = []
        for number, at in enumerate(tableau.times, 1):
            explicit, implicit = tableau.explicit[number - 1], tableau.implicit[number - 1]
            weights = [1.0, *(a * dt for a in explicit), *(a * dt for a in implicit[:-1])]
            levels = [_now(self.fields), *rates, *linear]
            if number == len(tableau.times):
                stages.append(Stage(at, levels, weights, implicit[-1] * dt))
                break
            rates.append(_now(self.level(f"n{number}")))
            linear.append(_now(self.level(f"l{number}")))
            stages.append(Stage(at, levels, weights, implicit[-1] * dt, linear[-1], rates[-1]))
        return stages

    def start(self) -> None:
        """Record the explicit rates at the start of the step."""
        self.explicit(_now(self.fields), self.first)


@dataclass(frozen=True)
class Stage:
    """A stage: at a fraction of the step a linear system whose right side is a weighted sum of levels.

    Parameters
    ----------
    time
        The fraction of the step.
    levels, weights
        The levels of the right side, and their weights.
    scale
        The factor of the linear part in the system.
    linear, rates
        Where the linear part and the explicit rates of the solution are kept; None for a stage that ends the step.
    """

    time: float
    levels: Sequence[Sequence[Slot]]
    weights: Sequence[Any]
    scale: Any
    linear: Sequence[Slot] | None = None
    rates: Sequence[Slot] = ()


def runge_kutta(name: str, tableau: Tableau) -> Callable[..., Recorded]:
    """Return the function that records a step of a Runge-Kutta method."""

    def record(
        program: Program, rates: Rates, fields: tuple[Field, ...], dt: float | Register | None, **_: object
    ) -> Recorded:  # fmt: skip
        step = length(name, dt)
        imex = _Imex(name, program, rates, fields, keeps=False)
        time = Given(program, step)
        imex.start()
        imex.run(imex.runge_kutta(tableau, step), time, 0)
        time.end()
        program.rotate(*fields)
        return imex.recorded

    return record


def multistep(name: str, kind: Literal["cnab2", "sbdf2"]) -> Callable[..., Recorded]:
    """Return the function that records a step of a method of two steps."""

    def record(
        program: Program, rates: Rates, fields: tuple[Field, ...], dt: float | Register | None, **_: object
    ) -> Recorded:  # fmt: skip
        step = length(name, dt)
        imex = _Imex(name, program, rates, fields, keeps=True)
        before = Register(f"{program.name}.dt_before")
        ratio = Register(f"{program.name}.ratio")
        time = Given(program, step)
        first = (before == 0.0) | (step > GROWTH * before)
        program.let(ratio, where(first, 1.0, step / where(first, 1.0, before)))
        imex.start()
        alone = imex.runge_kutta(ARS443, step)
        stages = [*alone, (_cnab2 if kind == "cnab2" else _sbdf2)(imex, step, ratio)]
        imex.run(stages, time, where(first, 0, len(alone)))
        program.let(before, step)
        if kind == "sbdf2":
            imex.combine([_now(fields)], [1.0], _now(imex.level("old")))
        time.end()
        program.rotate(*fields, *imex.level("n"))
        return replace(imex.recorded, before=before)

    return record


def _cnab2(imex: _Imex, dt: Any, ratio: Any) -> Stage:
    """Return the stage of Crank and Nicolson's and Adams and Bashforth's method, and record what it needs."""
    now, linear, rates = _now(imex.fields), _now(imex.level("l1")), imex.level("n")
    imex.evaluate(imex.linear, now, linear, "linear")
    levels = [now, linear, _next(rates), _now(rates)]
    return Stage(1.0, levels, [1.0, 0.5 * dt, dt * (1.0 + 0.5 * ratio), -0.5 * (dt * ratio)], 0.5 * dt)


def _sbdf2(imex: _Imex, dt: Any, ratio: Any) -> Stage:
    """Return the stage of the semi-implicit method of backward differences."""
    now, old, rates = _now(imex.fields), _now(imex.level("old")), imex.level("n")
    share = (1.0 + ratio) / (1.0 + 2.0 * ratio)
    grown = 1.0 + ratio
    weights = [share * grown, -(share * (ratio * ratio) / grown), share * dt * grown, -(share * dt * ratio)]
    return Stage(1.0, [now, old, _next(rates), _now(rates)], weights, share * dt)


def _now(fields: Sequence[Field]) -> list[Slot]:
    return [item.now for item in fields]


def _next(fields: Sequence[Field]) -> list[Slot]:
    return [item.next for item in fields]
