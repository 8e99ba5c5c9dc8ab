"""Attenuation in steps of fourth order in time.

With A the right side of the equations times dt2, S that of the sources, and y = 1 / (1 + s t), s the derivative in time
and t the relaxation time of a mechanism of strength tau (`minga.models.waves.attenuation`; here one mechanism),

    u_tt = g,    g = w + tau (1 - y) w,    w = A u + S,        u_tttt = w2 + tau (1 - y) w2,    w2 = A g + S_tt

A memory variable that lies half a step between the waves yields Y = 1 / (1 + s' t) in place of y, with s' = 2 / dt
tanh(s dt / 2) = s - s3 dt2 / 12. Thus y = Y - s2 dt2 / 12 (Y - Y2), apart from terms of fourth order, and dt2 s2 w is
w2: g lacks tau (Y - Y2) w2 / 12, which a step adds to its correction,

    next = 2 u - previous + G + (w2 + tau (1 - Y2) w2) / 12,    G = w + tau (1 - Y) w,    w2 = A G + S_tt

Each mechanism of a wave therefore has three memory variables: that of Y w, and the two of Y2 w2.

Waves of the highest frequencies must not gain energy. With M the modulus of w, dt2 omega2 is nearly M A - (M A)^2 / 12,
whose imaginary part has the sign of that of M as long as M A is at most 6, not 12.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minga.lang.expr import flushed
from minga.lang.kernel import Kernel

__all__ = ["attenuated_increment_kernel", "attenuated_step_kernel"]


def attenuated_increment_kernel(halves: Sequence[float], tau: float | None) -> Kernel:
    """Return the kernel that relaxes increments in place: increments, memories of all waves, and tau if it varies.

    Parameters
    ----------
    halves
        dt / (2 t) of each mechanism. The memories are in the order of the waves, and for each of them of the
        mechanisms.
    tau
        Strength of the mechanisms; None if it varies.
    """

    def relax(increments: Sequence[Any], memories: Sequence[Any], strength: Any) -> None:
        for number, increment in enumerate(increments):
            here = (0,) * len(increment.axes)
            pulled = strength * increment[here]
            right = increment[here]
            for half, memory in zip(halves, _own(memories, number, len(halves)), strict=True):
                right = right + (pulled - _mean(memory, half, pulled))
            increment[here] = right

    def waves_increment_relaxation(increments: Any, memories: Any, tau: Any) -> None:
        relax(increments, memories, tau[(0,) * len(tau.axes)])

    def waves_increment_relaxation_constant(increments: Any, memories: Any) -> None:
        relax(increments, memories, tau)

    return Kernel(waves_increment_relaxation if tau is None else waves_increment_relaxation_constant)


def attenuated_step_kernel(halves: Sequence[float], tau: float | None) -> Kernel:
    """Return the rest of a step: waves, previous waves, G, w2, both further memories of all waves, tau if it varies.

    Parameters
    ----------
    halves
        dt / (2 t) of each mechanism.
    tau
        Strength of the mechanisms; None if it varies.
    """
    count = len(halves)

    def advance(
        waves: Sequence[Any], before: Sequence[Any], increments: Sequence[Any], seconds: Sequence[Any],
        first: Sequence[Any], second: Sequence[Any], strength: Any,
    ) -> None:  # fmt: skip
        for number, (now, old, increment, again) in enumerate(zip(waves, before, increments, seconds, strict=True)):
            here = (0,) * len(now.axes)
            pulled = strength * again[here]
            right = again[here]
            own = _own(first, number, count), _own(second, number, count)
            for half, memory, last in zip(halves, *own, strict=True):
                right = right + (pulled - _mean(last, half, _mean(memory, half, pulled)))
            old[here] = flushed(2.0 * now[here] - old[here] + (increment[here] + right * (1.0 / 12.0)))

    def waves_relaxed_correction(
        waves: Any, before: Any, increments: Any, seconds: Any, first: Any, second: Any, tau: Any
    ) -> None:
        advance(waves, before, increments, seconds, first, second, tau[(0,) * len(tau.axes)])

    def waves_relaxed_correction_constant(
        waves: Any, before: Any, increments: Any, seconds: Any, first: Any, second: Any
    ) -> None:
        advance(waves, before, increments, seconds, first, second, tau)

    return Kernel(waves_relaxed_correction if tau is None else waves_relaxed_correction_constant)


def _own(memories: Sequence[Any], number: int, count: int) -> Sequence[Any]:
    """Return the memories of a wave."""
    return memories[number * count : (number + 1) * count]


def _mean(memory: Any, half: float, pulled: Any) -> Any:
    """Advance a memory variable by a step; return its mean over the step."""
    here = (0,) * len(memory.axes)
    before = memory[here]
    after = ((1.0 - half) * before + 2.0 * half * pulled) * (1.0 / (1.0 + half))
    memory[here] = flushed(after)
    return 0.5 * (before + after)
