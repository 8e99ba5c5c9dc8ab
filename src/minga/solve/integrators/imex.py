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

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from minga.engine.program import Program
from minga.lang.expr import as_node, cast
from minga.lang.functions import max as largest
from minga.solve.integrators.explicit import Given, length
from minga.solve.integrators.workspace import Recorded, like
from minga.solve.krylov import Solution
from minga.solve.rates import Rates, most, rates_kernel
from minga.solve.shifted_systems import ShiftedSystems
from minga.solve.split import split
from minga.space.field import TIME, Field, Register, Slot

__all__ = ["ARS222", "ARS443", "EULER", "Tableau", "multistep", "runge_kutta"]

SOLVED: Final = 1e-9
"""Residual of a linear system beside the one of its guess at which it counts as solved."""
LIMIT: Final = 500
"""The most iterations of a linear system."""


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
    """The recording of the parts that all methods consist of."""

    def __init__(self, name: str, program: Program, rates: Rates, fields: tuple[Field, ...]) -> None:
        self.name, self.program, self.rates, self.fields = name, program, rates, fields
        self.linear, self.rest = split(rates)
        self.systems = ShiftedSystems(self.linear, fields, f"{program.name}.{name}")
        self.levels: dict[str, tuple[Field, ...]] = {}
        self.solutions: list[Solution] = []

    def level(self, name: str, slots: int = 1) -> tuple[Field, ...]:
        """Return the fields of a level, which are declared when it is first asked for."""
        if name not in self.levels:
            self.levels[name] = tuple(like(item, name, slots) for item in self.fields)
        return self.levels[name]

    @property
    def recorded(self) -> Recorded:
        """What the step needs and solves."""
        levels = (item for group in self.levels.values() for item in group)
        return Recorded(
            (*levels, *self.systems.workspace),
            solutions=tuple(self.solutions),
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

    def solve(self, guess: Sequence[Slot], out: Sequence[Slot], right: Sequence[Slot], scale: Any) -> None:
        """Record the solution of (1 - scale L) out = right, from a guess, at the present time."""
        linear, program, systems = self.linear, self.program, self.systems

        def compute(state: list[Any], right: list[Any], constants: list[Any], out: list[Any], **scalars: Any) -> Any:
            here = (0,) * len(state[0].axes)
            h = scalars.pop("dt")
            found = linear.function(state, constants, TIME, **scalars)
            values = [b[here] - (u[here] - h * value) for u, b, value in zip(state, right, found, strict=True)]
            for target, value in zip(out, values, strict=True):
                target[here] = value
            return largest(most([abs(value) for value in values]))

        kernel = rates_kernel(compute, f"{self.name}-residual", linear)
        program.apply(kernel, guess, right, linear.constants, systems.right, dt=scale, **linear.scalars)
        label = f"{systems.name} {len(self.solutions)}"
        unsolved = Register(f"{label} unsolved", "i8")
        program.let(unsolved, 1)
        with program.repeat(until=unsolved == 0, limit=1):
            self.solutions.append(
                systems.solve(
                    program, tuple(guess), scale, tolerance=SOLVED, limit=LIMIT, name=label, unsolved=unsolved
                )
            )
        self.combine([guess, systems.change], [1.0, 1.0], out)

    def stages(self, tableau: Tableau, time: Given, dt: Any) -> None:
        """Record the stages of a Runge-Kutta method; the explicit rates at the start are known."""
        now, after, right = _now(self.fields), _next(self.fields), _now(self.level("b"))
        last = len(tableau.times) - 1
        rates = [_next(self.level("n", 2))]
        linear: list[Sequence[Slot]] = []
        for number, at in enumerate(tableau.times):
            explicit, implicit = tableau.explicit[number], tableau.implicit[number]
            levels = [now, *rates, *linear]
            self.combine(levels, [1.0, *(a * dt for a in explicit), *(a * dt for a in implicit[:-1])], right)
            time.set(at)
            scale = implicit[-1] * dt
            self.solve(after if number else now, after, right, scale)
            if number == last:
                break
            rates.append(_now(self.level(f"n{number + 1}")))
            linear.append(_now(self.level(f"l{number + 1}")))
            self.combine([after, right], [1.0 / scale, -1.0 / scale], linear[-1])
            self.explicit(after, rates[-1])

    def start(self) -> None:
        """Record the explicit rates at the start of the step."""
        self.explicit(_now(self.fields), _next(self.level("n", 2)))


def runge_kutta(name: str, tableau: Tableau) -> Callable[..., Recorded]:
    """Return the function that records a step of a Runge-Kutta method."""

    def record(
        program: Program, rates: Rates, fields: tuple[Field, ...], dt: float | Register | None, **_: object
    ) -> Recorded:  # fmt: skip
        step = length(name, dt)
        imex = _Imex(name, program, rates, fields)
        time = Given(program, step)
        imex.start()
        imex.stages(tableau, time, step)
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
        imex = _Imex(name, program, rates, fields)
        before = Register(f"{program.name}.dt_before")
        first = Register(f"{program.name}.first", "bool")
        time = Given(program, step)
        program.let(first, before == 0.0)
        imex.start()
        with program.when(first):
            imex.stages(ARS443, time, step)
        with program.when(~first.node):
            (_cnab2 if kind == "cnab2" else _sbdf2)(imex, time, step, step / before)
        program.let(before, step)
        if kind == "sbdf2":
            imex.combine([_now(fields)], [1.0], _now(imex.level("old")))
        time.end()
        program.rotate(*fields, *imex.level("n"))
        return imex.recorded

    return record


def _cnab2(imex: _Imex, time: Given, dt: Any, ratio: Any) -> None:
    """Record a step of Crank and Nicolson's and Adams and Bashforth's method."""
    now, linear, right = _now(imex.fields), _now(imex.level("l1")), _now(imex.level("b"))
    imex.evaluate(imex.linear, now, linear, "linear")
    rates = imex.level("n")
    imex.combine(
        [now, linear, _next(rates), _now(rates)],
        [1.0, 0.5 * dt, dt * (1.0 + 0.5 * ratio), -0.5 * (dt * ratio)],
        right,
    )  # fmt: skip
    time.set(1.0)
    imex.solve(now, _next(imex.fields), right, 0.5 * dt)


def _sbdf2(imex: _Imex, time: Given, dt: Any, ratio: Any) -> None:
    """Record a step of the semi-implicit method of backward differences."""
    now, old, right, rates = _now(imex.fields), _now(imex.level("old")), _now(imex.level("b")), imex.level("n")
    share = (1.0 + ratio) / (1.0 + 2.0 * ratio)
    grown = 1.0 + ratio
    imex.combine(
        [now, old, _next(rates), _now(rates)],
        [share * grown, -(share * (ratio * ratio) / grown), share * dt * grown, -(share * dt * ratio)],
        right,
    )  # fmt: skip
    time.set(1.0)
    imex.solve(now, _next(imex.fields), right, share * dt)


def _now(fields: Sequence[Field]) -> list[Slot]:
    return [item.now for item in fields]


def _next(fields: Sequence[Field]) -> list[Slot]:
    return [item.next for item in fields]
