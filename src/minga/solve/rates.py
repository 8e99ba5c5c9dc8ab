"""Rates of change of fields, as functions of cells, and the kernels that call them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from minga.compile.explain import Kernel
from minga.engine.program import Program
from minga.lang.expr import extreme
from minga.space.field import Field, Slot

__all__ = ["Evolution", "Rates", "most", "rates_kernel"]

Function = Callable[..., Sequence[object]]


@dataclass(frozen=True)
class Rates:
    """Rates of change of some fields, as a function of cells.

    Parameters
    ----------
    function
        ``function(fields, constants, t, **scalars)`` returns the rate of change of each field. It is called while a
        kernel is traced: `fields` and `constants` are lists of the kernel's fields, and `t` is the time of the stage.
    constants
        Fields that the rates read and the integrator does not change.
    scalars
        Numbers and registers by name, which the function takes as keywords.
    noise
        A function of the same arguments that returns for each field the amplitude of its noise, or None.
    prepare
        ``prepare(program, slots)`` records what the function needs for fields in these slots, before each of its
        evaluations.
    pairs
        Whether fields come in pairs, of the real and imaginary parts of complex values.
    """

    function: Function
    constants: tuple[Field, ...] = ()
    scalars: Mapping[str, Any] = field(default_factory=dict)
    noise: Function | None = None
    prepare: Callable[[Program, Sequence[Slot]], None] | None = None
    pairs: bool = False

    def ready(self, program: Program, slots: Sequence[Slot]) -> None:
        """Record what an evaluation for fields in these slots needs.

        Parameters
        ----------
        program
            The Program to record into.
        slots
            The slots.
        """
        if self.prepare is not None:
            self.prepare(program, slots)


@dataclass(frozen=True)
class Evolution:
    """Fields of a model that evolve by du/dt = f(u, t), for solvers of the same equations, such as `mg.solve.steady`.

    Parameters
    ----------
    rates
        The rates of change f.
    fields
        The fields u, with two slots.
    """

    rates: Rates
    fields: tuple[Field, ...]


def rates_kernel(function: Callable[..., object], name: str, rates: Rates, *, step: bool = True) -> Kernel:
    """Return a kernel of a function that takes the scalars of the rates, and the length of the step, as keywords."""
    given = inspect.signature(function)
    fields = [item for item in given.parameters.values() if item.kind is item.POSITIONAL_OR_KEYWORD]
    words = [*(["dt"] if step else []), *rates.scalars]
    scalars = [inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY) for word in words]
    function.__signature__ = inspect.Signature([*fields, *scalars])  # type: ignore[attr-defined]
    return Kernel(function, name=name)


def most(values: Sequence[Any]) -> Any:
    """Return the largest of several values of a cell."""
    return values[0] if len(values) == 1 else extreme("max", tuple(values))
