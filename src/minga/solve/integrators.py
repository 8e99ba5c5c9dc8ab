"""Integrators: methods that advance du/dt = f(u, t), recorded as Programs.

Rates of change are a function of cells, so that one kernel computes the rate at a stage and all that the method makes
of it. Explicit methods of a given step are tables of such stages. Those with an estimate of the error choose their
steps inside the Program: a rejected attempt leaves no trace, and since the largest error is a reduction, all ranks take
the same steps.

Sources: C.-W. Shu, S. Osher, J. Comput. Phys. 77 (1988) 439 (SSPRK3). P. Bogacki, L. F. Shampine, Appl. Math. Lett. 2
(1989) 321. J. R. Dormand, P. J. Prince, J. Comput. Appl. Math. 6 (1980) 19. E. Hairer, G. Wanner, Solving Ordinary
Differential Equations II, IV.2 (PI control).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from minga.compile.explain import Kernel
from minga.engine.program import Program
from minga.errors import ProgramError, suggest
from minga.lang.elementary import clip, pow
from minga.lang.expr import as_node, cast, extreme, square_root, where
from minga.lang.functions import max as largest
from minga.lang.math import cos, log
from minga.lang.random import random
from minga.solve.implicit import BDF2, TR_BDF2, Implicit
from minga.solve.rates import Rates, Recorded, rates_kernel
from minga.space.field import STEP, TIME, Field, Register, Slot

__all__ = ["INTEGRATORS", "Integrator", "Rates", "Recorded", "integrator"]


@dataclass(frozen=True)
class _Update:
    """A level that a stage stores: a combination of levels, plus dt times one of stored rates and of the new rate."""

    target: str
    levels: Mapping[str, float]
    rate: float
    rates: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Stage:
    """An evaluation of the rates: of which level, at which fraction of the step, and what is stored."""

    at: str
    time: float
    updates: tuple[_Update, ...]
    kept: str = ""


def _now(rate: float, target: str = "next", **rates: float) -> _Update:
    """Return an update that begins with the present level."""
    return _Update(target, {"now": 1.0}, rate, rates)


_EULER: Final = (_Stage("now", 0.0, (_now(1.0),)),)
_HEUN: Final = (
    _Stage("now", 0.0, (_now(1.0, "a"), _now(0.5))),
    _Stage("a", 1.0, (_Update("next", {"next": 1.0}, 0.5),)),
)
_SSPRK3: Final = (
    _Stage("now", 0.0, (_now(1.0, "a"),)),
    _Stage("a", 1.0, (_Update("b", {"now": 0.75, "a": 0.25}, 0.25),)),
    _Stage("b", 0.5, (_Update("next", {"now": 1 / 3, "b": 2 / 3}, 2 / 3),)),
)
_RK4: Final = (
    _Stage("now", 0.0, (_now(0.5, "a"), _now(1 / 6))),
    _Stage("a", 0.5, (_now(0.5, "b"), _Update("next", {"next": 1.0}, 1 / 3))),
    _Stage("b", 0.5, (_now(1.0, "a"), _Update("next", {"next": 1.0}, 1 / 3))),
    _Stage("a", 1.0, (_Update("next", {"next": 1.0}, 1 / 6),)),
)
_BS3: Final = (
    _Stage("a", 1 / 2, (_now(3 / 4, "b"),), "k2"),
    _Stage("b", 3 / 4, (_now(4 / 9, k1=2 / 9, k2=1 / 3),), "k3"),
)
_DP5: Final = (
    _Stage("a", 1 / 5, (_now(9 / 40, "b", k1=3 / 40),), "k2"),
    _Stage("b", 3 / 10, (_now(32 / 9, "a", k1=44 / 45, k2=-56 / 15),), "k3"),
    _Stage("a", 4 / 5, (_now(-212 / 729, "b", k1=19372 / 6561, k2=-25360 / 2187, k3=64448 / 6561),), "k4"),
    _Stage(
        "b", 8 / 9,
        (_now(-5103 / 18656, "a", k1=9017 / 3168, k2=-355 / 33, k3=46732 / 5247, k4=49 / 176),), "k5",
    ),
    _Stage("a", 1.0, (_now(11 / 84, k1=35 / 384, k3=500 / 1113, k4=125 / 192, k5=-2187 / 6784),), "k6"),
)  # fmt: skip
_BS3_ERROR: Final = {"k1": -5 / 72, "k2": 1 / 12, "k3": 1 / 9, "": -1 / 8}
_DP5_ERROR: Final = {
    "k1": -71 / 57600, "k3": 71 / 16695, "k4": -71 / 1920, "k5": 17253 / 339200, "k6": -22 / 525, "": 1 / 40,
}  # fmt: skip


@dataclass(frozen=True)
class Integrator:
    """A method that advances fields in time; `mg.solve.integrator` returns those that there are by name.

    Parameters
    ----------
    name
        The name that cases and `mg.pde` use.
    order
        Order of accuracy.
    real, imaginary
        The largest z for which steps of du/dt = -z u, and of du/dt = i z u, do not grow.
    stages
        The stages of a step.
    error
        Weights of the rates in the estimate of the error, for methods that choose their steps.
    stochastic
        Whether the method takes noise.
    """

    name: str
    order: int
    real: float
    imaginary: float
    stages: tuple[_Stage, ...]
    error: Mapping[str, float] = field(default_factory=dict)
    stochastic: bool = False

    @property
    def adaptive(self) -> bool:
        """True if the method chooses its steps."""
        return bool(self.error)

    def record(
        self,
        program: Program,
        rates: Rates,
        fields: Sequence[Field],
        *,
        dt: float | Register | None = None,
        target: Register | None = None,
        tolerance: float = 1e-6,
    ) -> Recorded:
        """Record one step, which advances the fields and the register `mg.TIME`.

        Parameters
        ----------
        program
            The Program that records.
        rates
            The rates of change.
        fields
            The fields, with two slots; the step rotates them.
        dt
            Length of the step: a number, a register, or for adaptive methods the first attempt (None: estimated).
        target
            For adaptive methods the register of a time that no step passes.
        tolerance
            For adaptive methods the largest error of a step, absolute and relative to the values of the field.

        Returns
        -------
        Recorded
            The workspace.

        Raises
        ------
        ProgramError
            If a field has one slot, the step has no length, or the method takes no noise.
        """
        for item in fields:
            if item.slots < 2:
                raise ProgramError(
                    f"{self.name}: field {item.name!r} has a single slot", remedy="declare it with slots=2"
                )
        if rates.noise is not None and not self.stochastic:
            raise ProgramError(
                f"integrator {self.name!r} takes no noise", remedy='use "euler-maruyama", which is made for it'
            )
        recording = _Recording(self, program, rates, tuple(fields))
        if self.adaptive:
            return recording.adaptive(dt, target, tolerance)
        if dt is None:
            raise ProgramError(f"integrator {self.name!r} needs dt", remedy="give a number, or a register")
        return recording.steady(dt)


class _Recording:
    """The recording of one method for some fields."""

    def __init__(self, method: Integrator, program: Program, rates: Rates, fields: tuple[Field, ...]) -> None:
        self.method, self.program, self.rates, self.fields = method, program, rates, fields
        names = {update.target for stage in method.stages for update in stage.updates} - {"next"}
        if method.adaptive:
            names |= {"a", *(stage.kept for stage in method.stages)}
        self.work = {name: tuple(_like(item, name) for item in fields) for name in sorted(names)}
        if method.adaptive:
            self.work["k1"] = tuple(_like(item, "k1", slots=2) for item in fields)

    def slots(self, level: str) -> tuple[Slot, ...]:
        """Return the slots of a level, one for each field."""
        if level in ("now", "next"):
            return tuple(item.now if level == "now" else item.next for item in self.fields)
        return tuple(item.now for item in self.work[level])

    @property
    def workspace(self) -> tuple[Field, ...]:
        """All fields of the workspace."""
        return tuple(item for group in self.work.values() for item in group)

    def steady(self, dt: float | Register) -> Recorded:
        """Record a step of a given length."""
        program = self.program
        if isinstance(dt, Register):
            start = Register(f"{program.name}.start")
            program.let(start, TIME)
            when = [start + stage.time * dt for stage in self.method.stages]
            end: object = start + dt
        else:
            count = Register(f"{program.name}.count", "i8")
            done = cast(count, "f8")
            when = [(done + stage.time) * dt for stage in self.method.stages]
            end = (done + 1.0) * dt
        for number, stage in enumerate(self.method.stages):
            if number:
                program.let(TIME, when[number])
            self.stage(stage, number, dt)
        program.let(TIME, end)
        if not isinstance(dt, Register):
            program.let(count, count + 1)
        program.rotate(*self.fields)
        if self.rates.noise is not None:
            program.let(STEP, STEP + 1)
        return Recorded(self.workspace)

    def stage(self, stage: _Stage, number: int, dt: object) -> None:
        """Record one stage: a kernel that computes the rates and all that is stored from them."""
        names = [name for update in stage.updates for name in (*update.levels, *update.rates)]
        targets = [update.target for update in stage.updates] + ([stage.kept] if stage.kept else [])
        sources = [name for name in dict.fromkeys(names) if name != stage.at and name not in targets]
        count, rates = len(self.fields), self.rates

        def compute(state: list[Any], others: list[Any], constants: list[Any], out: list[Any], **scalars: Any) -> None:
            here = (0,) * len(state[0].axes)
            h = scalars.pop("dt")
            f = rates.function(state, constants, TIME, **scalars)
            noise = None if rates.noise is None else rates.noise(state, constants, TIME, **scalars)

            def level(name: str, i: int) -> Any:
                if name == stage.at:
                    return state[i][here]
                if name in targets:
                    return out[targets.index(name) * count + i][here]
                return others[sources.index(name) * count + i][here]

            values: list[Any] = []
            for update in stage.updates:
                for i in range(count):
                    known = {name: level(name, i) for name in (*update.levels, *update.rates)} | {"": f[i]}
                    total = _sum(update.levels, known) + h * _sum({"": update.rate, **update.rates}, known)
                    if noise is not None and noise[i] is not None:
                        total = total + square_root(as_node(h)) * noise[i] * _normal()
                    values.append(total)
            values += list(f) if stage.kept else []
            for target, value in zip(out, values, strict=True):
                target[here] = cast(as_node(value), target.dtype)

        outs = [slot for name in targets for slot in self.slots(name)]
        others = [slot for name in sources for slot in self.slots(name)]
        kernel = rates_kernel(compute, f"{self.method.name}-{number + 1}", rates)
        self.program.apply(
            kernel, self.slots(stage.at), others, rates.constants, outs, dt=dt, **rates.scalars
        )  # fmt: skip

    # Adaptive methods ----------------------------------------------------------------------------------------------
    def adaptive(self, dt: float | Register | None, target: Register | None, tolerance: float) -> Recorded:
        """Record one accepted step of a length that the method chooses."""
        program, name = self.program, self.program.name
        wish = Register(f"{name}.wish", initial=0.0 if dt is None or isinstance(dt, Register) else dt)
        start, h, rest, before = (Register(f"{name}.{word}") for word in ("start", "dt", "rest", "error_before"))
        fresh, done = Register(f"{name}.going", "i8"), Register(f"{name}.done", "i8")
        shrunk, factor = Register(f"{name}.shrunk", "i8"), Register(f"{name}.factor")
        program.let(start, TIME)
        with program.when(fresh.node == 0):
            norms = self.begin(tolerance)
            guess = where((norms.size < 1e-5) | (norms.slope < 1e-5), 1e-6, 0.01 * norms.size / norms.slope)
            program.let(wish, where(wish > 0.0, wish, guess))
            program.let(before, 1e-4)
            program.let(fresh, 1)
        program.let(rest, math.inf if target is None else target - start)
        near = rest <= wish * (1.0 + 1e-9)
        program.let(h, where(near, rest, where(rest < 2.0 * wish, 0.5 * rest, wish)))
        program.let(done, 0)
        program.let(shrunk, 0)
        with program.repeat(until=done > 0, limit=200):
            with program.unchecked():
                program.apply(self.first(), self.slots("now"), self.slots("k1"), self.slots("a"), dt=h)
                for number, stage in enumerate(self.method.stages):
                    program.let(TIME, start + stage.time * h)
                    self.stage(stage, number + 1, h)
                program.let(TIME, start + h)
                error = self.estimate(h, tolerance)
            self.control(error, start, h, wish, before, done, shrunk, factor)
        landed = h >= rest
        program.let(TIME, where(landed, start if target is None else target, start + h))
        program.rotate(*self.fields, *self.work["k1"])
        return Recorded(self.workspace, wish)

    def control(
        self, error: Register, start: Register, h: Register, wish: Register, before: Register, done: Register,
        shrunk: Register, factor: Register,
    ) -> None:  # fmt: skip
        """Record the decision on an attempt, and the length of the next one."""
        program, order = self.program, self.method.order
        beta = 0.04 if order == 5 else 0.08
        alpha = 1.0 / order - 0.75 * beta
        finite = (error >= 0.0) & (error < math.inf)
        safe = extreme("max", (where(finite, error, 1e10), 1e-10))
        good = finite & (error <= 1.0) & (start + h > start)  # or the time would stand still
        grown = 0.9 * pow(safe, -alpha) * pow(before, beta)
        highest = where(shrunk > 0, 1.0, 10.0)
        reduced = extreme("max", (0.2, 0.9 * pow(safe, -1.0 / order)))
        program.let(factor, where(good, extreme("min", (clip(grown, 0.2, 10.0), highest)), reduced))
        program.let(before, where(good, extreme("max", (safe, 1e-4)), before))
        # A step that was shortened to end at the target says nothing against the wish.
        longer = where(h < wish, extreme("max", (wish, h * factor)), h * factor)
        program.let(wish, where(good, where(shrunk > 0, h * factor, longer), h * factor))
        program.let(done, where(good, 1, 0))
        program.let(shrunk, where(good, shrunk, 1))
        program.let(h, where(good, h, h * factor))

    def begin(self, tolerance: float) -> Any:
        """Record the first rates, and the sizes of values and rates in units of the tolerance."""
        rates = self.rates

        def compute(state: list[Any], constants: list[Any], k: list[Any], **scalars: Any) -> dict[str, Any]:
            here = (0,) * len(state[0].axes)
            sizes: list[Any] = []
            slopes: list[Any] = []
            for u, target, value in zip(state, k, rates.function(state, constants, TIME, **scalars), strict=True):
                scale = tolerance * (1.0 + abs(u[here]))
                sizes.append(abs(u[here]) / scale)
                slopes.append(abs(as_node(value)) / scale)
                target[here] = cast(as_node(value), target.dtype)
            return {"size": largest(_most(sizes)), "slope": largest(_most(slopes))}

        kernel = rates_kernel(compute, f"{self.method.name}-begin", rates, step=False)
        return self.program.apply(kernel, self.slots("now"), rates.constants, self.slots("k1"), **rates.scalars)

    def first(self) -> Kernel:
        """Return the kernel of the first stage, whose rates are those of the end of the step before."""
        share = self.method.stages[0].time

        def first(state: list[Any], k: list[Any], out: list[Any], *, dt: Any) -> None:
            here = (0,) * len(state[0].axes)
            for u, rate, target in zip(state, k, out, strict=True):
                target[here] = cast(u[here] + (dt * share) * rate[here], target.dtype)

        return Kernel(first, name=f"{self.method.name}-1")

    def estimate(self, h: Register, tolerance: float) -> Register:
        """Record the rates at the end of the attempt, and the largest error in units of the tolerance."""
        rates, weights, count = self.rates, self.method.error, len(self.fields)
        kept = [name for name in weights if name]

        def compute(
            state: list[Any], now: list[Any], others: list[Any], constants: list[Any], k: list[Any], **scalars: Any
        ) -> Any:
            here = (0,) * len(state[0].axes)
            h = scalars.pop("dt")
            errors = []
            for i, value in enumerate(rates.function(state, constants, TIME, **scalars)):
                terms = {name: others[kept.index(name) * count + i][here] for name in kept} | {"": value}
                error = h * _sum(weights, terms)
                size = extreme("max", (abs(now[i][here]), abs(state[i][here])))
                errors.append(abs(error) / (tolerance * (1.0 + size)))
                k[i][here] = cast(as_node(value), k[i].dtype)
            return largest(_most(errors))

        kernel = rates_kernel(compute, f"{self.method.name}-error", rates)
        others = [slot for name in kept for slot in self.slots(name)]
        ends = [item.next for item in self.work["k1"]]
        found = self.program.apply(
            kernel, self.slots("next"), self.slots("now"), others, rates.constants, ends, dt=h, **rates.scalars
        )
        assert isinstance(found, Register)
        return found


def _sum(weights: Mapping[str, float], values: Mapping[str, Any]) -> Any:
    """Return a sum of weighted values; weights of 1 cost nothing."""
    terms = (values[name] if weight == 1.0 else weight * values[name] for name, weight in weights.items())
    return functools.reduce(operator.add, terms)


def _most(values: Sequence[Any]) -> Any:
    """Return the largest of several values of a cell."""
    return values[0] if len(values) == 1 else extreme("max", tuple(values))


def _normal() -> Any:
    """Return a normal random number of mean 0 and variance 1, by the method of Box and Muller."""
    return square_root(-2.0 * log(1.0 - random())) * cos(2.0 * math.pi * random())


def _like(item: Field, name: str, slots: int = 1) -> Field:
    """Return a field of the workspace with the points and conditions of another one."""
    return Field(
        f"{item.name}@{name}", item.grid, item.dtype, slots=slots, centre=_centre(item), on=item.on,
        boundary=item.boundary, unit=item.unit, description=f"workspace of the integrator for {item.name}",
    )  # fmt: skip


def _centre(item: Field) -> tuple[int, ...]:
    return tuple(axis for axis, faces in enumerate(item.centre) if faces)


INTEGRATORS: Final[Mapping[str, Integrator | Implicit]] = {
    item.name: item
    for item in (
        Integrator("euler", 1, 2.0, 0.0, _EULER),
        Integrator("euler-maruyama", 1, 2.0, 0.0, _EULER, stochastic=True),
        Integrator("heun", 2, 2.0, 0.0, _HEUN),
        Integrator("ssprk3", 3, 2.512745, 1.732051, _SSPRK3),
        Integrator("rk4", 4, 2.785294, 2.828427, _RK4),
        Integrator("bs3", 3, 2.512745, 1.732051, _BS3, _BS3_ERROR),
        Integrator("dp5", 5, 3.306568, 0.997189, _DP5, _DP5_ERROR),
        TR_BDF2,
        BDF2,
    )
}
"""The integrators by name."""


def integrator(name: str) -> Integrator | Implicit:
    """Return an integrator by its name.

    Parameters
    ----------
    name
        "euler", "heun", "ssprk3", "rk4" with steps of a given length; "bs3", "dp5", which choose their steps;
        "euler-maruyama" with noise; "tr-bdf2", "bdf2", fully implicit ones that choose their steps, or with
        ``dataclasses.replace(method, adaptive=False)`` take given ones.

    Returns
    -------
    Integrator or Implicit
        The method.

    Raises
    ------
    ProgramError
        If there is no such integrator.
    """
    if name not in INTEGRATORS:
        close = suggest(str(name), INTEGRATORS)
        raise ProgramError(
            f"no integrator {name!r}",
            remedy=f"did you mean {close!r}?" if close else f"there are {', '.join(INTEGRATORS)}",
        )
    return INTEGRATORS[name]
