"""Noise of a step: Euler and Maruyama's method, and Milstein's.

Equations are meant in Ito's sense. Sources: G. N. Milstein, Theory Probab. Appl. 19 (1975) 557; P. E. Kloeden,
E. Platen, Numerical Solution of Stochastic Differential Equations, Springer 1992, 10.2 and 10.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minga.errors import ProgramError
from minga.lang.derivative import derivative
from minga.lang.expr import Node, as_node, square_root
from minga.lang.graph import topological
from minga.lang.math import cos, log
from minga.lang.random import random
from minga.lang.trace import current_trace

__all__ = ["maruyama", "milstein"]


def maruyama(dt: Any, cells: Sequence[Any], noise: Sequence[Any]) -> list[Any]:
    """Return g dW for each field."""
    return [None if each is None else square_root(as_node(dt)) * each * _normal() for each in noise]


def milstein(dt: Any, cells: Sequence[Any], noise: Sequence[Any]) -> list[Any]:
    """Return g dW + g g' (dW^2 - dt) / 2 for each field; g' is the derivative by the value of the field in the cell."""
    found: list[Any] = []
    for i, each in enumerate(noise):
        if each is None:
            found.append(None)
            continue
        amplitude = as_node(each)
        _check_own(amplitude, i, noise, len(cells))
        normal = _normal()
        kick = square_root(as_node(dt)) * amplitude * normal
        slope = derivative(amplitude, cells[i][(0,) * len(cells[i].axes)])
        if slope.op != "const" or slope.data != 0:
            kick = kick + (0.5 * dt) * (amplitude * slope * (normal * normal - 1.0))
        found.append(kick)
    return found


def _check_own(amplitude: Node, own: int, noise: Sequence[Any], count: int) -> None:
    """Raise an error for noise that depends on values with another noise, for which the method has more terms."""
    waiting = [amplitude]
    while waiting:
        for node in topological([waiting.pop()]):
            if node.op == "local":
                waiting.append(current_trace("noise").locals[node.data[0]])
            if node.op != "read" or node.data[0] >= count or noise[node.data[0]] is None:
                continue
            if node.data[0] != own or any(node.data[2]):
                raise ProgramError(
                    "milstein: the amplitude of the noise depends on other cells or fields that have noise",
                    remedy='use "euler-maruyama", or an amplitude that depends on the value of its own cell alone',
                )


def _normal() -> Any:
    """Return a normal random number of mean 0 and variance 1, by the method of Box and Muller."""
    return square_root(-2.0 * log(1.0 - random())) * cos(2.0 * math.pi * random())
