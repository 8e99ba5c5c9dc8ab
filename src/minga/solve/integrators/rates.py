"""Rates of change as functions of cells, and the workspace that a recorded integrator leaves."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from minga.compile.explain import Kernel
from minga.lang.expr import extreme
from minga.space.field import Field, Register

__all__ = ["Rates", "Recorded", "like", "most", "rates_kernel", "weighted"]

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
    """

    function: Function
    constants: tuple[Field, ...] = ()
    scalars: Mapping[str, Any] = field(default_factory=dict)
    noise: Function | None = None


@dataclass(frozen=True)
class Recorded:
    """Workspace of a recorded integrator.

    Parameters
    ----------
    fields
        The fields of the workspace, which belong to the fields of the model.
    wish
        The register of the step that an adaptive method would take next.
    """

    fields: tuple[Field, ...] = ()
    wish: Register | None = None


def rates_kernel(function: Callable[..., object], name: str, rates: Rates, *, step: bool = True) -> Kernel:
    """Return a kernel of a function that takes the scalars of the rates, and the length of the step, as keywords."""
    given = inspect.signature(function)
    fields = [item for item in given.parameters.values() if item.kind is item.POSITIONAL_OR_KEYWORD]
    words = [*(["dt"] if step else []), *rates.scalars]
    scalars = [inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY) for word in words]
    function.__signature__ = inspect.Signature([*fields, *scalars])  # type: ignore[attr-defined]
    return Kernel(function, name=name)


def weighted(weights: Mapping[str, float], values: Mapping[str, Any]) -> Any:
    """Return a sum of weighted values; weights of 1 cost nothing."""
    terms = (values[name] if weight == 1.0 else weight * values[name] for name, weight in weights.items())
    return functools.reduce(operator.add, terms)


def most(values: Sequence[Any]) -> Any:
    """Return the largest of several values of a cell."""
    return values[0] if len(values) == 1 else extreme("max", tuple(values))


def like(item: Field, name: str, slots: int = 1) -> Field:
    """Return a field of the workspace with the points and conditions of another one."""
    return Field(
        f"{item.name}@{name}", item.grid, item.dtype, slots=slots, centre=_centre(item), on=item.on,
        boundary=item.boundary, unit=item.unit, description=f"workspace of the integrator for {item.name}",
    )  # fmt: skip


def _centre(item: Field) -> tuple[int, ...]:
    return tuple(axis for axis, faces in enumerate(item.centre) if faces)
