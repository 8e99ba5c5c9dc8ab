"""Tables of rules, obtained by evaluating the traced kernel for every configuration of the cells it reads.

A rule that reads few cells is evaluated for all their states. If it only counts neighbours (in a state, or by weights),
the sums in its kernel are found first, and it is evaluated for every value of each sum, whatever the number of cells:
the kernel's graph shows that nothing else matters. The result is a table, from which operations on words of bits are
made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.compile.elementwise import apply
from minga.lang.expr import Node
from minga.lang.graph import KernelGraph, topological
from minga.lang.inline import without_locals
from minga.lang.types import integer_range, is_float, is_integer

__all__ = ["CellState", "Count", "Table", "Term", "Unsuitable", "count_form", "read_offsets", "tabulate"]

Array = NDArray[Any]
Offset = tuple[int, ...]

MOST_ROWS: Final = 1 << 14
"""Largest number of configurations that are evaluated."""
MOST_STATES: Final = 16


class Unsuitable(Exception):
    """Raised if a rule cannot be computed in words of bits; the message is the reason."""


@dataclass(frozen=True, slots=True)
class CellState:
    """State of one cell."""

    offset: Offset


@dataclass(frozen=True, slots=True)
class Term:
    """Term of a sum: `weight` if the state of the cell at `offset` has a 1 in `holds`, else 0."""

    offset: Offset
    weight: int
    holds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Count:
    """Sum over cells, 0 .. most."""

    terms: tuple[Term, ...]

    @property
    def most(self) -> int:
        """Largest possible value of the sum."""
        return sum(term.weight for term in self.terms)


Variable = CellState | Count


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Next states: `states[i, j, ...]` for values i, j, ... of the variables; -1 where these cannot occur."""

    number_of_states: int
    variables: tuple[Variable, ...]
    states: Array

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each variable."""
        return tuple(_size(variable, self.number_of_states) for variable in self.variables)


def _size(variable: Variable, states: int) -> int:
    return states if isinstance(variable, CellState) else variable.most + 1


def read_offsets(graph: KernelGraph) -> tuple[Offset, ...]:
    """Return the offsets at which the only field of a rule without locals is read, sorted.

    Raises
    ------
    Unsuitable
        If the rule has other fields, or reads anything else.
    """
    if graph.reductions or len(graph.stores) != 1 or len(graph.params) != 2 or graph.order is not None:
        raise Unsuitable("it has more than one field")
    offsets = set()
    if any(scalar.name.startswith(("@", "$")) for scalar in graph.scalars):
        raise Unsuitable("it depends on random numbers, on the step, or on a register")
    for node in graph.nodes():
        if node.op == "index":
            raise Unsuitable("it depends on the position of the cell")
        if node.op == "read":
            if node.data[0] != 0:
                raise Unsuitable("it reads the state before the last one")
            offsets.add(node.data[2])
    return tuple(sorted(offsets))


def tabulate(graph: KernelGraph, states: int, parameters: Mapping[str, Any]) -> list[Table]:
    """Return the rule as tables, one for each choice of variables that is small enough.

    Parameters
    ----------
    graph
        Graph of one field (u1, 0 .. states - 1) and the field that its next states are stored in.
    states
        Number of states.
    parameters
        Values of the graph's scalars.

    Raises
    ------
    Unsuitable
        If there is no such table.
    """
    graph = without_locals(graph)
    offsets = read_offsets(graph) or ((0,) * graph.ndim,)
    if states > MOST_STATES:
        raise Unsuitable(f"it has {states} states; bits are for at most {MOST_STATES}")
    trial = _Trial(graph.stores[0].value, states, parameters)
    found = []
    if states ** len(offsets) <= MOST_ROWS:
        found.append(trial.table([CellState(offset) for offset in offsets], {}))
    sums = trial.sums()
    rest = sorted(trial.reads_beside(sums))
    variables: list[Variable] = [*(CellState(offset) for offset in rest), *(form.count for form in sums.values())]
    if sums and prod(_size(variable, states) for variable in variables) <= MOST_ROWS:
        found.append(trial.table(variables, sums))
    if found and not sums and states == 2 and (totalistic := count_form(found[0])) is not None:
        found.append(totalistic)
    if not found:
        raise Unsuitable(f"it reads {len(offsets)} cells, and depends on more than how many are in a state")
    return found


def count_form(table: Table) -> Table | None:
    """Convert a table of single cells of two states to one of the cell and the number of its live neighbours.

    Return None if the rule depends on more than that.
    """
    offsets = [variable.offset for variable in table.variables if isinstance(variable, CellState)]
    centre = next((axis for axis, offset in enumerate(offsets) if not any(offset)), None)
    others = [offset for offset in offsets if any(offset)]
    if len(others) < 3:
        return None
    full = table.states if centre is not None else table.states[np.newaxis]
    cells = np.moveaxis(full, centre or 0, 0).reshape(full.shape[centre or 0], -1)
    live = np.bitwise_count(np.arange(cells.shape[1], dtype=np.uint64))
    counted = np.full((len(cells), len(others) + 1), -1, np.int64)
    for number in range(len(others) + 1):
        column = cells[:, live == number]
        if (column != column[:, :1]).any():
            return None
        counted[:, number] = column[:, 0]
    count = Count(tuple(Term(offset, 1, (0, 1)) for offset in others))
    if centre is None:
        return Table(2, (count,), counted[0])
    return Table(2, (CellState(offsets[centre]), count), counted)


@dataclass(frozen=True, slots=True)
class _Linear:
    """Node that is a sum: `constant` plus, for each offset, the value that a cell there adds in each of its states."""

    constant: int
    parts: Mapping[Offset, tuple[int, ...]]

    @property
    def low(self) -> int:
        """Least value of the sum."""
        return self.constant + sum(min(part) for part in self.parts.values())

    @property
    def high(self) -> int:
        """Greatest value of the sum."""
        return self.constant + sum(max(part) for part in self.parts.values())

    @property
    def count(self) -> Count:
        """The sum less `low`, as terms of single bits."""
        terms = []
        for offset, part in sorted(self.parts.items()):
            above = [value - min(part) for value in part]
            for bit in range(max(above).bit_length()):
                holds = tuple(value >> bit & 1 for value in above)
                if any(holds):
                    terms.append(Term(offset, 1 << bit, holds))
        return Count(tuple(terms))

    def plus(self, other: _Linear, factor: int = 1) -> _Linear:
        """Return this sum plus `factor` times another one."""
        parts = dict(self.parts)
        for offset, part in other.parts.items():
            mine = parts.get(offset, (0,) * len(part))
            parts[offset] = tuple(a + factor * b for a, b in zip(mine, part, strict=True))
        return _Linear(self.constant + factor * other.constant, parts)


class _Trial:
    """Next state of a rule, evaluated for given values of the variables it depends on."""

    def __init__(self, root: Node, states: int, parameters: Mapping[str, Any]) -> None:
        self._root, self._states, self._parameters = root, states, parameters
        self._reads: dict[int, frozenset[Offset]] = {}
        for node in topological([root]):
            own = frozenset([node.data[2]]) if node.op == "read" else frozenset[Offset]()
            self._reads[id(node)] = own.union(*(self._reads[id(arg)] for arg in node.args))

    def table(self, variables: Sequence[Variable], sums: Mapping[int, _Linear]) -> Table:
        """Return the next states for all values of the variables; `sums` are the nodes that their counts stand for."""
        sizes = [_size(variable, self._states) for variable in variables]
        grids = [
            np.arange(size).reshape([-1 if a == axis else 1 for a in range(len(sizes))])
            for axis, size in enumerate(sizes)
        ]
        looks = {v.offset: grid for v, grid in zip(variables, grids, strict=True) if isinstance(v, CellState)}
        counts = [grid for v, grid in zip(variables, grids, strict=True) if isinstance(v, Count)]
        known = {number: form.low + grid for (number, form), grid in zip(sums.items(), counts, strict=True)}
        result = self._evaluate(self._root, looks, known)
        whole = np.broadcast_to(result, tuple(sizes)).astype(np.int64)
        return Table(self._states, tuple(variables), whole)

    def sums(self) -> dict[int, _Linear]:
        """Return the largest sums over several cells, by node."""
        linear: dict[int, _Linear] = {}
        for node in topological([self._root]):
            form = self._linear(node, linear)
            if form is not None and self._fits(node, form):
                linear[id(node)] = form
        used: dict[int, _Linear] = {}
        waiting, seen = [self._root], set[int]()
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if id(node) in linear and len(self._reads[id(node)]) > 1:
                used[id(node)] = linear[id(node)]
            elif len(self._reads[id(node)]) > 0:
                waiting += node.args
        return used

    def reads_beside(self, sums: Mapping[int, _Linear]) -> set[Offset]:
        """Return the offsets of cells that are read other than through these sums."""
        found: set[Offset] = set()
        waiting, seen = [self._root], set[int]()
        while waiting:
            node = waiting.pop()
            if id(node) in seen or id(node) in sums:
                continue
            seen.add(id(node))
            if node.op == "read":
                found.add(node.data[2])
            waiting += node.args
        return found

    def _linear(self, node: Node, linear: Mapping[int, _Linear]) -> _Linear | None:
        """Return the sum that a node represents, or None if it is not one."""
        if is_float(node.dtype):
            return None
        reads = self._reads[id(node)]
        if len(reads) <= 1:
            return self._linear_of_one(node, *reads)
        forms = [form for arg in node.args if (form := linear.get(id(arg))) is not None]
        if not is_integer(node.dtype) or len(forms) < len(node.args):
            return None
        combine = _COMBINED.get(node.op)
        return None if combine is None else combine(*forms)

    def _linear_of_one(self, node: Node, *reads: Offset) -> _Linear:
        """Return the sum that any node is that depends on one cell, or on none."""
        looks = {offset: np.arange(self._states) for offset in reads}
        shape = (self._states if reads else 1,)
        values = tuple(map(int, np.broadcast_to(self._evaluate(node, looks, {}), shape).tolist()))
        return _Linear(0, dict.fromkeys(reads, values)) if reads else _Linear(values[0], {})

    def _fits(self, node: Node, form: _Linear) -> bool:
        """Return whether the sum never overflows the node's type."""
        low, high = (0, 1) if node.dtype == "bool" else integer_range(node.dtype)
        return low <= form.low and form.high <= high

    def _evaluate(self, root: Node, looks: Mapping[Offset, Array], known: Mapping[int, Array]) -> Array:
        values: dict[int, Array] = {}
        waiting = [root]
        needed: list[Node] = []
        seen: set[int] = set()
        while waiting:  # nodes below known ones are not needed
            node = waiting.pop()
            if id(node) not in seen:
                seen.add(id(node))
                needed.append(node)
                waiting += [] if id(node) in known else node.args
        wanted = {id(node) for node in needed}
        with np.errstate(all="ignore"):
            for node in topological([root]):
                if id(node) in wanted:
                    values[id(node)] = self._value(node, values, looks, known)
        return values[id(root)]

    def _value(
        self, node: Node, values: Mapping[int, Array], looks: Mapping[Offset, Array], known: Mapping[int, Array]
    ) -> Array:
        data: Any = node.data
        if id(node) in known:
            return known[id(node)].astype(node.dtype)
        match node.op:
            case "const":
                return np.asarray(data).astype(node.dtype)
            case "scalar":
                return np.asarray(self._parameters[data]).astype(node.dtype)
            case "read":
                return looks[data[2]].astype(node.dtype)
            case _:
                return np.asarray(apply(node, [values[id(arg)] for arg in node.args]))


def _apart(left: _Linear, right: _Linear) -> bool:
    """Return whether two sums share no bit that may be 1, so that `or` adds them."""
    if left.low < 0 or right.low < 0:
        return False

    def bits(form: _Linear) -> int:
        used = 0
        total = form.constant
        for part in form.parts.values():
            both = 0
            for value in part:
                both |= value
            used |= both
            total += both
        return used | form.constant if total == used | form.constant else (1 << form.high.bit_length()) - 1

    return not bits(left) & bits(right)


def _product(left: _Linear, right: _Linear) -> _Linear | None:
    """Return the product of two sums if one of them is a small constant."""
    for factor, other in ((left, right), (right, left)):
        if not factor.parts and 0 <= factor.constant < 63:
            return _Linear(0, {}).plus(other, factor.constant)
    return None


def _shifted(value: _Linear, count: _Linear) -> _Linear | None:
    """Return a sum that is shifted to the left by a constant."""
    if count.parts or not 0 <= count.constant < 63:
        return None
    return _Linear(0, {}).plus(value, 1 << count.constant)


def _joined(left: _Linear, right: _Linear) -> _Linear | None:
    """Return the sum that a bitwise operation is on sums that share no bit."""
    return left.plus(right) if _apart(left, right) else None


_COMBINED: Final[dict[str, Callable[..., _Linear | None]]] = {
    "cast": lambda value: value,
    "add": lambda left, right: left.plus(right),
    "sub": lambda left, right: left.plus(right, -1),
    "mul": _product,
    "shl": _shifted,
    "or": _joined,
    "xor": _joined,
}
"""Sums that operations on sums are."""
