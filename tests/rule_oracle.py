"""Rules evaluated by NumPy on padded arrays: what the automaton tests compare with."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.compile.numpy import BoundArray, evaluate
from minga.lang.kernel import FieldType, ScalarType, Signature
from minga.lang.rule import Rule

Array = NDArray[Any]
MODES: dict[str, dict[str, Any]] = {
    "periodic": {"mode": "wrap"}, "fixed": {"mode": "constant"}, "reflect": {"mode": "symmetric"},
    "zero-gradient": {"mode": "edge"},
}  # fmt: skip


def graph_of(rule: Rule, ndim: int) -> Any:
    """The rule's traced kernel for so many dimensions, with Python numbers as parameters."""
    kinds = [FieldType(dtype, tuple(range(ndim))) for dtype in rule.fields.values()]
    scalars = []
    for name, value in rule.parameters.items():
        kind = "bool" if isinstance(value, bool) else "i8" if isinstance(value, int) else "f8"
        scalars.append((name, ScalarType(kind, True)))
    return rule.kernel.graph(Signature(ndim, (*kinds, *kinds), tuple(scalars)))


def evolve(
    rule: Rule, fields: Array | dict[str, Array], steps: int, boundary: str = "periodic", seed: int = 0, radius: int = 1
) -> Any:
    """The fields after so many steps: an array where the rule has one field, else a dict."""
    state = dict(fields) if isinstance(fields, dict) else dict.fromkeys(rule.fields, fields)
    shape = next(iter(state.values())).shape
    graph = graph_of(rule, len(shape))
    low, high = (0,) * len(shape), (-radius,) * len(shape)
    for step in range(steps):
        old = [BoundArray(np.pad(a, radius, **MODES[boundary]), high) for a in state.values()]
        new = {name: np.empty(shape, dtype) for name, dtype in rule.fields.items()}
        scalars = {**rule.parameters, "@step": step, "@seed": seed}
        evaluate(graph, (low, shape), [*old, *(BoundArray(a, low) for a in new.values())], scalars)
        state = new
    return state if len(state) > 1 or isinstance(fields, dict) else next(iter(state.values()))


def seed_cells(shape: tuple[int, ...], modulus: int = 8, below: int = 3) -> Array:
    """The portable soup of the reference values: an LCG, cells in row-major order."""
    x, cells = 1, []
    for _ in range(int(np.prod(shape))):
        x = (1103515245 * x + 12345) % 2**31
        cells.append(int((x >> 16) % modulus < below))
    return np.array(cells, np.uint8).reshape(shape)


def crc(cells: Array) -> str:
    """CRC-32 of the cells as bytes in row-major order."""
    return f"{zlib.crc32(np.ascontiguousarray(cells, np.uint8).tobytes()):08x}"


def many_states(shape: tuple[int, ...], states: int) -> Array:
    """A portable soup of several states from the same LCG: three of eight cells are not 0."""
    x, cells = 1, []
    for _ in range(int(np.prod(shape))):
        x = (1103515245 * x + 12345) % 2**31
        number = x >> 16
        cells.append(number // 8 % (states - 1) + 1 if number % 8 < 3 else 0)
    return np.array(cells, np.uint8).reshape(shape)
