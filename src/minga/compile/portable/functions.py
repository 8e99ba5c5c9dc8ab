"""Elementary functions of arrays and numbers, with the same bits on every processor.

NumPy's and the C library's differ in their last bits between processors: both choose their code when they are loaded,
for AVX-512, for AVX2 or for neither. Whatever enters a result of a run, such as coefficients, initial values or a time
step, is therefore computed with the functions below. They are those of the kernel language, whose operations round
once and are never fused, so that setting up a model and its kernels agree as well.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.compile.elementwise import evaluated
from minga.lang import elementary
from minga.lang import math as kernel_math
from minga.lang.expr import Node

__all__ = ["asinh", "cbrt", "cos", "erf", "exp", "expm1", "log", "log1p", "power", "sin", "tan", "tanh"]

_TOGETHER: Final = 1 << 14
"""Numbers that are computed together: intermediate results, which are many, stay in a cache."""


_FEW: Final = 1 << 12
"""Numbers up to which results are remembered: a model is often set up again with the same angles and profiles."""
_MANY: Final = 1 << 18
"""Numbers up to which the last 16 results are remembered: angles of a section, of which shot after shot is made."""


def _values(root: Node, arguments: tuple[Any, ...]) -> Any:
    """Return the values of an expression of scalars `0`, `1`, ...: a float if all arguments are numbers."""
    given = [np.asarray(value, np.float64) for value in arguments]
    shape = np.broadcast_shapes(*(each.shape for each in given))
    lines = [np.broadcast_to(each, shape).reshape(-1) for each in given]
    found = _computed(root, lines) if lines[0].size > _MANY else _remembered(root, lines).copy()
    return found.reshape(shape) if shape else float(found[0])


def _remembered(root: Node, lines: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return values that may be known."""
    given = [line.tobytes() for line in lines]  # bytes, since 0.0 equals -0.0
    if lines[0].size <= _FEW:
        return _known(root, tuple(given))
    place = _place(root, tuple(hashlib.sha256(each).digest() for each in given))
    if not place:
        place.append(_computed(root, lines))
    return place[0]


@functools.lru_cache(maxsize=16)
def _place(root: Node, digests: tuple[bytes, ...]) -> list[NDArray[np.float64]]:
    """Return the list to which the values are added once they are known."""
    return []


@functools.lru_cache(maxsize=512)
def _known(root: Node, arguments: tuple[bytes, ...]) -> NDArray[np.float64]:
    return _computed(root, [np.frombuffer(each) for each in arguments])


def _computed(root: Node, lines: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.empty(lines[0].size)
    for first in range(0, found.size, _TOGETHER):
        cut = slice(first, first + _TOGETHER)
        found[cut] = evaluated(root, {str(k): line[cut] for k, line in enumerate(lines)})
    return found


def _scalar(name: str) -> Node:
    return Node("scalar", "f8", data=name)


def _function(of: Callable[[object], Node]) -> Callable[[Any], Any]:
    """Return a function of the kernel language as one of a number, or of an array."""
    graph = functools.cache(lambda: of(_scalar("0")))

    def function(value: Any) -> Any:
        return _values(graph(), (value,))

    function.__name__ = function.__qualname__ = of.__name__
    function.__doc__ = (of.__doc__ or "").replace("Node\n", "float or ndarray\n").replace("A number", "Numbers")
    return function


cbrt = _function(kernel_math.cbrt)
cos = _function(kernel_math.cos)
exp = _function(kernel_math.exp)
expm1 = _function(kernel_math.expm1)
log = _function(kernel_math.log)
log1p = _function(kernel_math.log1p)
sin = _function(kernel_math.sin)
tanh = _function(kernel_math.tanh)
asinh = _function(elementary.asinh)
erf = _function(elementary.erf)
tan = _function(elementary.tan)


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
    return _values(_any_power(), (base, exponent))


@functools.lru_cache(maxsize=256)
def _power(exponent: float) -> Node:
    return elementary.pow(_scalar("0"), exponent)


@functools.cache
def _any_power() -> Node:
    return elementary.pow(_scalar("0"), _scalar("1"))
