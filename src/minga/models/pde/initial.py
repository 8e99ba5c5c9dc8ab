"""Texts as functions of position, for initial values and conditions at walls."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.compile.elementwise import evaluated
from minga.lang.expr import Node, as_node
from minga.models.pde.complex_values import Pair
from minga.models.pde.source import parse
from minga.models.pde.translate import FUNCTIONS, Names, translate
from minga.space.of_place import of_place

__all__ = ["of_position", "of_wall", "parts"]

_CELLS: Final = 1 << 16
"""Cells whose values are computed together: the intermediate results of a function are many."""


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
    (values,) = _values(_Text(text, label, axes, numbers, seed))
    return values


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
        re, im = _values(_Text(value, label, axes, numbers, seed, complex=True))
        return re, im
    if callable(value):
        return tuple(_part_of(value, part, axes) for part in (np.real, np.imag))  # type: ignore[return-value]
    return np.real(value), np.imag(value)


def _part_of(function: Callable[..., Any], part: Callable[[Any], Any], axes: Sequence[str]) -> Callable[..., Any]:
    """Return the function of the place, or of a box, that is a part of a complex one."""
    bound = of_place(function, axes, box=True)
    if bound is None:
        return lambda box: part(function(box))
    return _with_arguments(lambda *position: part(bound(dict(zip(axes, position, strict=True)))), axes)


class _Text:
    """A text of the coordinates as expressions of the kernel language, whose scalars are coordinates and draws.

    The language's own functions give the same bits on every machine, which NumPy's do not.

    Attributes
    ----------
    parts
        The expression, or those of the real and the imaginary part.
    draws
        The seeds of random numbers by the names of their scalars.
    """

    def __init__(
        self, text: str, label: str, axes: Sequence[str], numbers: Mapping[str, float], seed: int, *,
        complex: bool = False,
    ) -> None:  # fmt: skip
        self.axes = tuple(axes)
        self.draws: dict[str, int] = {}
        first = seed ^ zlib.crc32(label.encode())

        def draw() -> Node:
            name = f"@{len(self.draws)}"
            self.draws[name] = first + len(self.draws)
            return _scalar(name)

        names = Names(
            numbers, axes, functions={**FUNCTIONS, "random": (0, draw)},
            coordinates={axis: _scalar(axis) for axis in axes}, operators=False, complex=complex,
        )  # fmt: skip
        value = translate(parse(text, label), names)
        self.parts = tuple(map(as_node, (Pair.of(value).re, Pair.of(value).im) if complex else (value,)))

    def values(self, part: int, position: Sequence[Any]) -> NDArray[np.float64]:
        """Return the values of a part at positions, an array for each axis; a row of cells after the other."""
        lines = [np.asarray(value, "f8") for value in position]
        shape = np.broadcast_shapes(*(line.shape for line in lines))
        result = np.empty(shape)
        rows = max(1, _CELLS * shape[0] // max(1, result.size)) if shape else 1
        for first in range(0, shape[0] if shape else 1, rows):
            cut = slice(first, first + rows)
            here = [line[cut] if line.ndim == len(shape) and line.shape[:1] == shape[:1] else line for line in lines]
            scalars: dict[str, Any] = dict(zip(self.axes, here, strict=True))
            scalars |= {name: _uniform(here, seed) for name, seed in self.draws.items()}
            target = result[cut] if shape else result
            target[...] = evaluated(self.parts[part], scalars)
        return result


def _scalar(name: str) -> Node:
    return Node("scalar", "f8", data=name)


def _values(text: _Text) -> list[Callable[..., Any]]:
    """Return a function of the coordinates, as arrays, for each part of a text."""

    def of(part: int) -> Callable[..., Any]:
        return _with_arguments(lambda *position: text.values(part, position), text.axes)

    return [of(part) for part in range(len(text.parts))]


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
    source, zero = parse(text, label), as_node(np.float64(0.0))

    def value(*position: Any) -> Any:
        coordinates = dict(zip(axes, position, strict=False))
        time = position[len(axes)] if len(position) > len(axes) else zero
        return translate(source, Names(numbers, axes, time, coordinates=coordinates, operators=False))

    arguments = [*axes, *(["t"] if "t" in source.names else [])]
    value(*[zero] * len(arguments))  # which raises for unknown names now, not when a run begins
    return _with_arguments(value, arguments)


def _with_arguments(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Return the function with named arguments, by which others decide what it takes."""

    def named(*given: Any) -> Any:
        return function(*given)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    named.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
    return named
