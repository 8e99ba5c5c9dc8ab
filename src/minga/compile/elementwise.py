"""The meaning of each operation of a graph, in NumPy."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.lang.expr import Node
from minga.lang.graph import topological
from minga.lang.loop import Loop
from minga.lang.types import DType, integer_range, is_float

Array = NDArray[Any]


def apply(node: Node, args: Sequence[Array]) -> Array:
    """Evaluate an operation node on the values of its arguments."""
    if node.op == "cast":
        return convert(args[0], node.dtype)
    if node.op == "bitcast":
        return np.ascontiguousarray(args[0]).view(node.dtype)
    if node.op == "lookup":
        return node.data.values[args[0]]  # type: ignore[no-any-return]
    result = OPERATIONS[node.op](*args)
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


class _Values:
    """The values of a loop's nodes in one iteration."""

    def __init__(self, state: Sequence[Array], captured: Sequence[Array]) -> None:
        self._leaves: dict[str, Sequence[Array]] = {"state": state, "captured": captured}
        self._ndim = state[0].ndim
        self._known: dict[int, Array] = {}
        self._states: dict[int, list[Array]] = {}

    def __call__(self, root: Node) -> Array:
        for node in topological([root]):
            if id(node) not in self._known:
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


def convert(x: Array, dtype: DType) -> Array:
    """Convert an array: integers wrap around, floats truncate and saturate (NaN becomes 0), bool means `!= 0`."""
    if dtype == "bool":
        return np.not_equal(x, 0)
    if x.dtype.kind != "f" or is_float(dtype):
        return x.astype(dtype)
    low, high = integer_range(dtype)
    whole = np.trunc(x.astype(np.float64))
    # high + 1 and low are powers of two (or zero), so these comparisons are exact.
    inside = (whole > float(low)) & (whole < float(high + 1))
    result = np.where(inside, whole, 0.0).astype(dtype)
    result = np.where(whole >= float(high + 1), np.array(high, dtype), result)
    return np.where(whole <= float(low), np.array(low, dtype), result)


def _extreme(plain: Callable[[Array, Array], Array], want_negative: bool) -> Callable[[Array, Array], Array]:
    def extreme(a: Array, b: Array) -> Array:
        if a.dtype.kind != "f":
            return plain(a, b)
        # NumPy does not specify which zero it returns.
        zero = np.where(np.signbit(a) == want_negative, a, b)
        return np.where(a == b, zero, plain(a, b))

    return extreme


def _floordiv(a: Array, b: Array) -> Array:
    """Divide and round down; floats with separate roundings, not by NumPy's fmod (docs/decisions/float-mod.md)."""
    return np.floor(a / b) if a.dtype.kind == "f" else np.floor_divide(a, b)


def _mod(a: Array, b: Array) -> Array:
    return a - np.floor(a / b) * b if a.dtype.kind == "f" else np.remainder(a, b)


def _shift(left: bool) -> Callable[[Array, Array], Array]:
    def shift(a: Array, count: Array) -> Array:
        width = a.dtype.itemsize * 8
        valid = (count >= 0) & (count < width)
        safe = np.where(valid, count, 0).astype(a.dtype)
        zero = np.zeros_like(a)
        if left:
            return np.where(valid, np.left_shift(a, safe), zero)
        return np.where(valid, np.right_shift(a, safe), np.where(a < 0, ~zero, zero))

    return shift


def _popcount(a: Array) -> Array:
    """Count the one bits of the two's complement (NumPy counts those of the absolute value)."""
    return np.asarray(np.bitwise_count(a.view(f"u{a.dtype.itemsize}")), a.dtype)


@cache
def _libm_fma(name: str) -> Callable[..., float]:
    function = getattr(ctypes.CDLL(ctypes.util.find_library("m")), name)
    number = ctypes.c_double if name == "fma" else ctypes.c_float
    function.restype, function.argtypes = number, [number] * 3
    return function  # type: ignore[no-any-return]


def _fma(a: Array, b: Array, c: Array) -> Array:
    function = _libm_fma("fma" if a.dtype == np.float64 else "fmaf")
    shape = np.broadcast_shapes(a.shape, b.shape, c.shape)
    values = (function(*item) for item in np.broadcast(a, b, c))
    return np.fromiter(values, a.dtype, int(np.prod(shape))).reshape(shape)


OPERATIONS: Final[dict[str, Callable[..., Array]]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "floordiv": _floordiv, "mod": _mod, "neg": np.negative, "abs": np.abs,
    "min": _extreme(np.minimum, True), "max": _extreme(np.maximum, False),
    "sqrt": np.sqrt, "fma": _fma, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert,
    "popcount": _popcount, "shl": _shift(True), "shr": _shift(False), "select": np.where,
}  # fmt: skip
