"""Elementary functions of arrays and numbers, with the same bits on every processor.

NumPy's and the C library's differ in their last bits between processors: both choose their code when they are loaded,
for AVX-512, for AVX2 or for neither. Whatever enters a result of a run, such as coefficients, initial values or a time
step, is therefore computed with the functions below. They are those of the kernel language, whose operations round
once and are never fused, so that setting up a model and its kernels agree as well.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.compile.elementwise import evaluated
from minga.lang import elementary, math
from minga.lang.expr import Node

__all__ = [
    "arctan2", "asinh", "cbrt", "cos", "exp", "expm1", "log", "log1p", "log10", "power", "sin", "sinh", "tan", "tanh",
]  # fmt: skip

_TOGETHER: Final = 1 << 14
"""Numbers that are computed together: intermediate results, which are many, stay in a cache."""


def _values(root: Node, arguments: tuple[Any, ...]) -> Any:
    """Return the values of an expression of scalars `0`, `1`, ...: a float if all arguments are numbers."""
    given = [np.asarray(value, np.float64) for value in arguments]
    shape = np.broadcast_shapes(*(each.shape for each in given))
    lines = [np.broadcast_to(each, shape).reshape(-1) for each in given]
    found: NDArray[np.float64] = np.empty(lines[0].size)
    for first in range(0, found.size, _TOGETHER):
        cut = slice(first, first + _TOGETHER)
        found[cut] = evaluated(root, {str(k): line[cut] for k, line in enumerate(lines)})
    return found.reshape(shape) if shape else float(found[0])


def _scalar(name: str) -> Node:
    return Node("scalar", "f8", data=name)


def _function(of: Callable[[object], Node]) -> Callable[[Any], Any]:
    """Return a function of the kernel language as one of a number, or of an array."""
    graph = functools.cache(lambda: of(_scalar("0")))

    @functools.wraps(of)
    def function(value: Any) -> Any:
        return _values(graph(), (value,))

    return function


cbrt = _function(math.cbrt)
cos = _function(math.cos)
exp = _function(math.exp)
expm1 = _function(math.expm1)
log = _function(math.log)
log10 = _function(elementary.log10)
log1p = _function(math.log1p)
sin = _function(math.sin)
tanh = _function(math.tanh)
asinh = _function(elementary.asinh)
sinh = _function(elementary.sinh)
tan = _function(elementary.tan)


def arctan2(y: Any, x: Any) -> Any:
    """Return the angle of the point (x, y) in radians, from -pi to pi.

    Parameters
    ----------
    y, x
        Coordinates: numbers, or arrays that broadcast.

    Returns
    -------
    float or ndarray
        The angle.
    """
    return _values(_of_two("atan2"), (y, x))


def power(base: Any, exponent: Any) -> Any:
    """Return a power: products for a whole number, the square root for 0.5, and ``exp(y log x)`` otherwise.

    Parameters
    ----------
    base, exponent
        Numbers, or arrays that broadcast.

    Returns
    -------
    float or ndarray
        The power.
    """
    if np.ndim(exponent) == 0:
        return _values(_power(float(exponent)), (base,))
    return _values(_of_two("pow"), (base, exponent))


@functools.lru_cache(maxsize=256)
def _power(exponent: float) -> Node:
    return elementary.pow(_scalar("0"), exponent)


@functools.cache
def _of_two(name: str) -> Node:
    function: Callable[[object, object], Node] = getattr(elementary, name)
    return function(_scalar("0"), _scalar("1"))
