"""Texts as functions of position, for initial values and conditions at walls."""

from __future__ import annotations

import inspect
import itertools
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from minga.lang.expr import Node, as_node
from minga.models.pde.complex_values import Pair
from minga.models.pde.source import Source, parse
from minga.models.pde.translate import FUNCTIONS, Names, translate
from minga.space.of_place import of_place

__all__ = ["of_position", "of_wall", "parts"]

_erf = np.frompyfunc(math.erf, 1, 1)


def _heaviside(value: Any, at_zero: Any = 0.5) -> Any:
    return np.heaviside(value, at_zero)


_NUMPY: Final[Mapping[str, Callable[..., Any]]] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "clip": np.clip,
    "erf": lambda value: np.asarray(_erf(value), "f8"),
    "heaviside": _heaviside,
    "max": lambda *values: _reduced(np.maximum, values),
    "min": lambda *values: _reduced(np.minimum, values),
    "pow": np.power,
    "round": np.rint,
    "where": np.where,
}
_ARRAYS: Final = {
    name: (number, _NUMPY[name] if name in _NUMPY else getattr(np, name)) for name, (number, _) in FUNCTIONS.items()
}


def _reduced(function: Callable[[Any, Any], Any], values: Sequence[Any]) -> Any:
    total = values[0]
    for value in values[1:]:
        total = function(total, value)
    return total


def of_position(
    text: str, label: str, axes: Sequence[str], numbers: Mapping[str, float], seed: int = 0
) -> Callable[..., Any]:
    """Return a function of the coordinates, as arrays, that a text describes.

    Parameters
    ----------
    text, label
        The text, and its name in messages.
    axes
        Names of the grid's axes.
    numbers
        Values of the parameters that are numbers.
    seed
        Seed of ``random()``.

    Returns
    -------
    callable
        A function with one argument for each axis.
    """
    source = parse(text, label)
    mixed = seed ^ zlib.crc32(label.encode())
    _real(_evaluate(source, axes, numbers, [np.zeros(1)] * len(axes), mixed))
    return _with_arguments(lambda *position: _real(_evaluate(source, axes, numbers, position, mixed)), axes)


def parts(
    value: Any, label: str, axes: Sequence[str], numbers: Mapping[str, float], seed: int = 0
) -> tuple[Any, Any]:  # fmt: skip
    """Return the real and the imaginary part of the initial values of a complex field.

    Parameters
    ----------
    value
        A number, an array, a function of the coordinates that returns complex arrays, or a text with ``I``.
    label
        Name of a text in messages.
    axes
        Names of the grid's axes.
    numbers
        Values of the parameters that are numbers.
    seed
        Seed of ``random()``.

    Returns
    -------
    tuple
        The initial values of both parts, each of the kind of `value`.
    """
    if isinstance(value, str):
        source = parse(value, label)
        mixed = seed ^ zlib.crc32(label.encode())

        def pair(*position: Any) -> Pair:
            return Pair.of(_evaluate(source, axes, numbers, position, mixed, complex_values=True))

        pair(*[np.zeros(1)] * len(axes))
        return (
            _with_arguments(lambda *position: _real(pair(*position).re), axes),
            _with_arguments(lambda *position: _real(pair(*position).im), axes),
        )
    if callable(value):
        return tuple(_part_of(value, part, axes) for part in (np.real, np.imag))  # type: ignore[return-value]
    return np.real(value), np.imag(value)


def _part_of(function: Callable[..., Any], part: Callable[[Any], Any], axes: Sequence[str]) -> Callable[..., Any]:
    """Return the function of the place, or of a box, that is a part of a complex one."""
    bound = of_place(function, axes, box=True)
    if bound is None:
        return lambda box: part(function(box))
    return _with_arguments(lambda *position: part(bound(dict(zip(axes, position, strict=True)))), axes)


def _real(value: Any) -> Any:
    """Return values that are real as an array."""
    return np.asarray(bool(value.data) if isinstance(value, Node) else value, "f8")


def _evaluate(
    source: Source, axes: Sequence[str], numbers: Mapping[str, float], position: Sequence[Any], seed: int,
    complex_values: bool = False,
) -> Any:  # fmt: skip
    coordinates = {axis: np.asarray(value, "f8") for axis, value in zip(axes, position, strict=True)}
    draws = itertools.count(seed)
    functions = {**_ARRAYS, "random": (0, lambda: _uniform(tuple(coordinates.values()), next(draws)))}
    names = Names(
        numbers, axes, functions=functions, coordinates=coordinates, operators=False, complex=complex_values
    )  # fmt: skip
    with np.errstate(all="ignore"):
        return translate(source, names)


def _uniform(position: Sequence[Any], seed: int) -> Any:
    """Return numbers in [0, 1) that depend on position and seed alone: the mixing of SplitMix64, axis by axis."""
    with np.errstate(over="ignore"):
        state = np.asarray(seed & (2**64 - 1), "u8")
        for line in position:
            state = (state + (line + 0.0).view("u8")) * np.uint64(0x9E3779B97F4A7C15)
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
            state = state ^ (state >> np.uint64(31))
    return (state >> np.uint64(11)).astype("f8") * 2.0**-53


def of_wall(text: str, label: str, axes: Sequence[str], numbers: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function of the wall's coordinates and the time, as expressions, that a text describes.

    Parameters
    ----------
    text, label
        The text, and its name in messages.
    axes
        Names of the grid's axes.
    numbers
        Values of the parameters that are numbers or registers.

    Returns
    -------
    callable
        A function with one argument for each axis and, if the text has the time, one more.
    """
    source = parse(text, label)

    def value(*position: Any) -> Any:
        coordinates = dict(zip(axes, position, strict=False))
        time = position[len(axes)] if len(position) > len(axes) else None
        return translate(source, Names(numbers, axes, time, coordinates=coordinates, operators=False))

    arguments = [*axes, *(["t"] if "t" in source.names else [])]
    value(*[as_node(np.float64(0.0))] * len(arguments))  # which raises for unknown names now, not when a run begins
    return _with_arguments(value, arguments)


def _with_arguments(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Return the function with named arguments, by which others decide what it takes."""

    def named(*given: Any) -> Any:
        return function(*given)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    named.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
    return named
