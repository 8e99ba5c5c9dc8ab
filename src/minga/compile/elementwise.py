"""The values of operations in NumPy, whole arrays at a time."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.compile.operations import spelling
from minga.lang.expr import Node
from minga.lang.graph import topological
from minga.lang.loop import Loop

Array = NDArray[Any]


def apply(node: Node, args: Sequence[Array]) -> Array:
    """Return the value of an operation node, given the values of its arguments."""
    result = spelling(node.op).numpy(node, *args)
    assert result.dtype == np.dtype(node.dtype), (node, result.dtype)
    return result


def repeated(loop: Loop, args: Sequence[Array]) -> tuple[Array, list[Array]]:
    """Run a loop for all cells together; return the number of iterations of each cell and the final state."""
    shape = np.broadcast_shapes(*(arg.shape for arg in args))
    state = [np.broadcast_to(arg, shape) for arg in args[: len(loop.following)]]
    captured = args[len(state) :]
    rounds = np.zeros(shape, np.int32)
    for _ in range(loop.limit):
        values = _Values(state, captured)
        going = np.broadcast_to(values(loop.condition), shape)
        if not going.any():
            break
        state = [np.where(going, values(node), old) for node, old in zip(loop.following, state, strict=True)]
        rounds += going
    return rounds, state


def evaluated(root: Node, scalars: Mapping[str, Array]) -> Array:
    """Return the value of an expression of constants and scalars, for arrays that broadcast.

    Parameters
    ----------
    root
        The expression.
    scalars
        The values of its scalars by name, of one number of axes.

    Returns
    -------
    ndarray
        The value, of the expression's type.
    """
    ndim = max((each.ndim for each in scalars.values()), default=0)
    order = list(topological([root]))
    uses = collections.Counter(id(arg) for node in order for arg in node.args)
    known: dict[int, Array] = {}
    states: dict[int, list[Array]] = {}
    with np.errstate(all="ignore"):
        for node in order:
            data: Any = node.data
            args = [known[id(arg)] for arg in node.args]
            match node.op:
                case "const":
                    value = np.asarray(data).astype(node.dtype).reshape((1,) * ndim)
                case "scalar":
                    value = scalars[data]
                case "iterate":
                    value, states[id(node)] = repeated(data, args)
                case "iterated":
                    value = states[id(node.args[0])][int(data)]
                case _:
                    value = apply(node, args)
            known[id(node)] = value
            for arg in node.args:
                uses[id(arg)] -= 1
                if not uses[id(arg)]:
                    del known[id(arg)]  # intermediate results are large
    return known[id(root)]


class _Values:
    """The values of a loop's nodes in one iteration."""

    def __init__(self, state: Sequence[Array], captured: Sequence[Array]) -> None:
        self._leaves: dict[str, Sequence[Array]] = {"state": state, "captured": captured}
        self._ndim = state[0].ndim
        self._known: dict[int, Array] = {}
        self._states: dict[int, list[Array]] = {}

    def __call__(self, root: Node) -> Array:
        for node in topological([root], self._known):
            self._known[id(node)] = self._value(node)
        return self._known[id(root)]

    def _value(self, node: Node) -> Array:
        data: Any = node.data
        if node.op in self._leaves:
            return self._leaves[node.op][int(data)]
        if node.op == "const":
            return np.asarray(data).astype(node.dtype).reshape((1,) * self._ndim)
        if node.op == "iterated":
            return self._states[id(node.args[0])][int(data)]
        args = [self._known[id(arg)] for arg in node.args]
        if node.op == "iterate":
            rounds, self._states[id(node)] = repeated(data, args)
            return rounds
        return apply(node, args)
