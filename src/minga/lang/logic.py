"""Boolean functions as few word operations: a truth table becomes a network of gates, for 64 cells at a time.

A table is decomposed by one input after another (Shannon 1938; with xor where one half is the other's complement).
Halves that can be made equal because some rows do not matter are merged; equal functions are built once. Up to six
inputs, every order of decomposition is tried; larger tables are decomposed in a few fixed orders (a reduced ordered
decision diagram, Bryant 1986, doi:10.1109/TC.1986.1676819).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["ANY", "MOST_INPUTS", "Gate", "Network", "network"]

ANY: Final = 2
"""A table entry that does not matter."""
MOST_INPUTS: Final = 14
"""Number of inputs of the largest table, which has 16384 rows."""
_SEARCHED: Final = 6
"""Number of inputs up to which all orders are tried."""
_COSTS: Final = {"not": 0.25, "and": 1.0, "andn": 1.0, "or": 1.0, "xor": 1.0, "select": 2.5}

Op = Literal["zero", "one", "not", "and", "andn", "or", "xor", "select"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Gate:
    """One operation on earlier values: inputs first, then gates, by number. andn is a & ~b; select is a ? b : c."""

    op: Op
    args: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Network:
    """Gates in order, and the numbers of the values that are the outputs."""

    inputs: int
    gates: tuple[Gate, ...]
    outputs: tuple[int, ...]

    @property
    def cost(self) -> float:
        """Approximate number of word operations of the network."""
        return sum(_COSTS.get(gate.op, 0.0) for gate in self.gates)

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Return the outputs for these inputs, which may be anything with the operators & | ^ ~.

        Examples are the cells of a kernel, arrays and integers.
        """
        if len(values) != self.inputs:
            raise ValueError(f"{self.inputs} inputs are needed, found {len(values)}")
        known = list(values)
        for gate in self.gates:
            known.append(_MEANING[gate.op](known, *gate.args))
        return [known[number] for number in self.outputs]


_MEANING: Final[dict[str, Callable[..., Any]]] = {
    "zero": lambda v: v[0] ^ v[0],
    "one": lambda v: ~(v[0] ^ v[0]),
    "not": lambda v, a: ~v[a],
    "and": lambda v, a, b: v[a] & v[b],
    "andn": lambda v, a, b: v[a] & ~v[b],
    "or": lambda v, a, b: v[a] | v[b],
    "xor": lambda v, a, b: v[a] ^ v[b],
    "select": lambda v, a, b, c: v[c] ^ (v[a] & (v[b] ^ v[c])),
}


def network(tables: Sequence[Sequence[int] | NDArray[Any]], inputs: int) -> Network:
    """Build a network of few gates with one output per table.

    Parameters
    ----------
    tables
        Truth tables with 2**inputs entries 0, 1 or ANY. Row r is for the inputs whose bits make up r, input 0 being
        the lowest bit.
    inputs
        Number of inputs, at most MOST_INPUTS.

    Raises
    ------
    ValueError
        If a table has another length, or there are more than MOST_INPUTS inputs.
    """
    if not 1 <= inputs <= MOST_INPUTS:
        raise ValueError(f"a network has 1 to {MOST_INPUTS} inputs, found {inputs}")
    rows = [np.asarray(table, np.uint8) for table in tables]
    for row in rows:
        if row.shape != (1 << inputs,) or row.max() > ANY:
            raise ValueError(f"a table of {inputs} inputs has {1 << inputs} entries 0, 1 or {ANY}")
    return _cheapest_order(tuple(row.tobytes() for row in rows), inputs)


@functools.lru_cache(maxsize=256)
def _cheapest_order(tables: tuple[bytes, ...], inputs: int) -> Network:
    """Return the network of fewest operations; a search whose results are kept, as models are made repeatedly."""
    rows = [np.frombuffer(table, np.uint8) for table in tables]
    found = [_in_order(rows, inputs, order) for order in _orders(inputs)]
    return min(found, key=lambda one: one.cost)


def _orders(inputs: int) -> Iterator[tuple[int, ...]]:
    """Yield the orders of decomposition to try; the last input of an order is decomposed first."""
    natural = tuple(range(inputs))
    yield natural
    if inputs > _SEARCHED:
        yield natural[::-1]
        centre = sorted(natural, key=lambda i: abs(2 * i - inputs + 1))
        yield tuple(centre)
        yield tuple(centre[::-1])


def _in_order(rows: Sequence[NDArray[np.uint8]], inputs: int, order: Sequence[int]) -> Network:
    build = _Builder(inputs)
    outputs = []
    for row in rows:
        cube = row.reshape((2,) * inputs)  # axis a is input inputs - 1 - a
        turned = cube.transpose([inputs - 1 - i for i in reversed(order)])
        outputs.append(build.function((tuple(order), np.ascontiguousarray(turned).tobytes())))
    return build.finish(outputs)


# A function: the inputs that index its rows (the last one is the highest bit of the row number), and the rows.
_Function = tuple[tuple[int, ...], bytes]
_NEGATED: Final = bytes([1, 0, 2]) + bytes(253)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A way to build a function from one input and one or two functions of the other inputs."""

    cost: float
    op: Literal["constant", "same", "and", "andn", "or", "orn", "xor", "select"]
    value: int
    parts: tuple[_Function, ...] = ()


class _Builder:
    """The gates built so far, each of them once."""

    def __init__(self, inputs: int) -> None:
        self._inputs = inputs
        self._gates: list[Gate] = []
        self._numbers: dict[Gate, int] = {}
        self._plans: dict[_Function, _Plan] = {}
        self._made: dict[_Function, int] = {}

    def finish(self, outputs: Sequence[int]) -> Network:
        """Return the network of the gates that the outputs need."""
        needed: set[int] = set()
        waiting = list(outputs)
        while waiting:
            number = waiting.pop()
            if number >= self._inputs and number not in needed:
                needed.add(number)
                waiting += self._gates[number - self._inputs].args
        kept = sorted(needed)
        place = {number: self._inputs + k for k, number in enumerate(kept)} | {i: i for i in range(self._inputs)}
        gates = [self._gates[number - self._inputs] for number in kept]
        renumbered = tuple(Gate(gate.op, tuple(place[arg] for arg in gate.args)) for gate in gates)
        return Network(self._inputs, renumbered, tuple(place[number] for number in outputs))

    def function(self, wanted: _Function) -> int:
        """Return the number of the value that represents this function; build it if necessary."""
        known = self._made.get(wanted)
        if known is None:
            negated = self._made.get((wanted[0], wanted[1].translate(_NEGATED)))
            known = self._gate("not", negated) if negated is not None else self._make(wanted)
            self._made[wanted] = known
        return known

    def _make(self, wanted: _Function) -> int:
        plan = self._plan(wanted)
        match plan.op:
            case "constant":
                return self._gate("one" if plan.value else "zero")
            case "same":
                return self.function(plan.parts[0])
        parts = [self.function(part) for part in plan.parts]
        constant = self._constant(parts[0])
        match plan.op:
            case "and":
                return plan.value if constant == 1 else self._gate("and", plan.value, parts[0])
            case "andn":
                return self._gate("not", plan.value) if constant == 1 else self._gate("andn", parts[0], plan.value)
            case "or":
                return plan.value if constant == 0 else self._gate("or", plan.value, parts[0])
            case "orn":
                negated = self._gate("not", plan.value)
                return negated if constant == 0 else self._gate("or", negated, parts[0])
            case "xor":
                if constant is not None:
                    return self._gate("not", plan.value) if constant else plan.value
                return self._gate("xor", plan.value, parts[0])
            case _:
                return self._gate("select", plan.value, *parts)

    def _constant(self, number: int) -> int | None:
        op = self._gates[number - self._inputs].op if number >= self._inputs else ""
        return {"zero": 0, "one": 1}.get(op)

    def _gate(self, op: Op, *args: int) -> int:
        if op == "not" and args[0] >= self._inputs and self._gates[args[0] - self._inputs].op == "not":
            return self._gates[args[0] - self._inputs].args[0]
        gate = Gate(op, tuple(sorted(args)) if op in ("and", "or", "xor") else args)
        if gate not in self._numbers:
            self._numbers[gate] = self._inputs + len(self._gates)
            self._gates.append(gate)
        return self._numbers[gate]

    def _plan(self, wanted: _Function) -> _Plan:
        known = self._plans.get(wanted)
        if known is None:
            known = self._plans[wanted] = self._cheapest(wanted)
        return known

    def _cheapest(self, wanted: _Function) -> _Plan:
        inputs, rows = wanted
        if 1 not in rows:
            return _Plan(0.0, "constant", 0)
        if 0 not in rows:
            return _Plan(0.0, "constant", 1)
        tried = range(len(inputs)) if len(inputs) <= _SEARCHED else [len(inputs) - 1]
        splits = []
        for axis in tried:
            low, high = _halves(wanted, axis)
            merged = _merged(low, high)
            if merged is not None:  # the input does not matter
                return _Plan(self._plan(merged).cost, "same", 0, (merged,))
            splits.append((inputs[axis], low, high))
        return min((self._split(*split) for split in splits), key=lambda plan: plan.cost)

    def _split(self, value: int, low: _Function, high: _Function) -> _Plan:
        """Return the plan of the function that is `low` where the input is 0, otherwise `high`."""
        negated = (high[0], high[1].translate(_NEGATED))
        differ = _merged(low, negated)
        if 1 not in low[1]:
            return self._one("and", value, high)
        if 0 not in low[1]:
            return self._one("orn", value, high)
        if 1 not in high[1]:
            return self._one("andn", value, low)
        if 0 not in high[1]:
            return self._one("or", value, low)
        if differ is not None:
            return self._one("xor", value, differ)
        return _Plan(_COSTS["select"] + self._plan(high).cost + self._plan(low).cost, "select", value, (high, low))

    def _one(self, op: Literal["and", "andn", "or", "orn", "xor"], value: int, part: _Function) -> _Plan:
        rest = self._plan(part)
        single = rest.op == "constant"
        cost = (0.25 if op in ("andn", "orn") else 0.0) if single else 1.25 if op == "orn" else 1.0
        return _Plan(cost + rest.cost, op, value, (part,))


def _halves(function: _Function, axis: int) -> tuple[_Function, _Function]:
    """Return the function's restrictions to 0 and to 1 of the input at position `axis` among its inputs."""
    inputs, rows = function
    others = inputs[:axis] + inputs[axis + 1 :]
    step = 1 << axis
    if 2 * step == len(rows):
        return (others, rows[:step]), (others, rows[step:])
    low = b"".join(rows[k : k + step] for k in range(0, len(rows), 2 * step))
    high = b"".join(rows[k + step : k + 2 * step] for k in range(0, len(rows), 2 * step))
    return (others, low), (others, high)


def _merged(left: _Function, right: _Function) -> _Function | None:
    """Return a function that equals both functions where they matter; None if there is none."""
    a, b = left[1], right[1]
    if a == b:
        return left
    if ANY not in a and ANY not in b:
        return None
    x, y = np.frombuffer(a, np.uint8), np.frombuffer(b, np.uint8)
    if not ((x == y) | (x == ANY) | (y == ANY)).all():
        return None
    return left[0], np.where(x == ANY, y, x).astype(np.uint8).tobytes()
