"""Finding the repeated parts of large kernels (see `minga.compile.repeats`).

Every node has a *form*: equal forms are equal expressions except for constants, for the cells that are read, and for
values that are used more than once. Bundles of nodes of equal form become one term of a loop, argument by argument,
until only those are left. Chains such as ((start + a) + b) + c become folds if a, b and c have equal forms.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.compile.repeats import Fold, Index, Kept, Operation, Outside, Place, Spread, Table, Term
from minga.lang.expr import Node
from minga.lang.graph import KernelGraph, topological

__all__ = ["LEAST_NODES", "repeated"]

LEAST_NODES: Final = 1000
"""Number of nodes from which on repeated parts become loops. Smaller kernels are compiled in a second as they are."""
LEAST_TURNS: Final = 8
"""Minimum number of turns of a loop."""
LEAST_SHARE: Final = 0.5
"""Loops must replace at least this share of a kernel's nodes."""
LEAST_OPERATIONS: Final = 16
"""Minimum number of operations of a loop without a fold, whose values are stored and loaded again."""
_APART: Final = frozenset({"iterate", "iterated", "local", "index", "scalar"})
"""Values that loops get from outside."""
_DEEPEST: Final = 200
"""Maximum number of operations within one another in a term."""

Numbers = NDArray[np.int64]


def repeated(graph: KernelGraph, roots: Sequence[Node]) -> list[Node] | None:
    """Return equivalents of `roots` in which repeated parts are loops; None if there is little to gain."""
    if sum(1 for _ in topological(roots)) < LEAST_NODES:
        return None
    finding = _Finding(graph, roots)
    found = finding.roots(roots)
    left = sum(1 for _ in topological(found))
    return found if left <= (1 - LEAST_SHARE) * len(finding.nodes) else None


class _Finding:
    """The nodes of a graph by number, arguments first.

    form     number of the form
    chain    length of the chain that a node ends, as a fold by the argument `place`
    """

    def __init__(self, graph: KernelGraph, roots: Sequence[Node]) -> None:
        self.nodes = list(topological(roots))
        self.number = {id(node): number for number, node in enumerate(self.nodes)}
        most = max(2, *(len(node.args) for node in self.nodes))
        self.args: Numbers = np.full((len(self.nodes), most), -1, np.int64)
        for number, node in enumerate(self.nodes):
            for k, arg in enumerate(node.args):
                self.args[number, k] = self.number[id(arg)]
        used = np.concatenate([self.args.ravel(), [self.number[id(root)] for root in roots]])
        self.uses = np.bincount(used[used >= 0], minlength=len(self.nodes))
        self._whole = [len(param.axes) == graph.ndim for param in graph.params]
        self._forms: dict[Hashable, int] = {}
        self.kind = [self._kind(node) for node in self.nodes]
        self.form: Numbers = np.zeros(len(self.nodes), np.int64)
        self.chain: Numbers = np.ones((len(self.nodes), 2), np.int64)
        for number in range(len(self.nodes)):
            self._look_at(number)
        self.new: dict[int, Node] = {}
        self._gathers: dict[bytes, Node] = {}
        self._places: dict[int, tuple[Node, int]] = {}

    # Forms ---------------------------------------------------------------------------------------------------------
    def _kind(self, node: Node) -> str:
        """Return const, read or operation for what a loop computes itself, and apart for what it gets from outside."""
        if node.op == "const":
            return "const"
        if node.op == "read":
            number, strides, _ = node.data
            return "read" if self._whole[number] and set(strides) <= {1} else "apart"
        return "apart" if node.op in _APART else "operation"

    def _look_at(self, number: int) -> None:
        node, kind = self.nodes[number], self.kind[number]
        if kind != "operation":
            self.form[number] = self._form_number((kind, node.dtype))
            return
        args = self.args[number, : len(node.args)].tolist()
        forms = tuple(self._seen_from_outside(arg) for arg in args)
        self.form[number] = self._form_number((node.op, node.dtype, node.data, forms))
        if len(args) == 2:
            for place in (0, 1):
                self.chain[number, place] = self._chain(node, args[place], place, forms[1 - place])

    def _chain(self, node: Node, before: int, place: int, form: int) -> int:
        other = self.nodes[before]
        same = (other.op, other.dtype, other.data) == (node.op, node.dtype, node.data) and len(other.args) == 2
        if not same or self.uses[before] > 1:
            return 1
        goes_on = self._seen_from_outside(int(self.args[before, 1 - place])) == form
        return 1 + int(self.chain[before, place]) if goes_on else 1

    def _seen_from_outside(self, number: int) -> int:
        """Return the form of an argument; a value that is used elsewhere too is only a value."""
        if self.kind[number] == "operation" and self.uses[number] > 1:
            return self._form_number(("apart", self.nodes[number].dtype))
        return int(self.form[number])

    def _form_number(self, key: Hashable) -> int:
        return self._forms.setdefault(key, len(self._forms))

    # The graph with loops ------------------------------------------------------------------------------------------
    def roots(self, roots: Sequence[Node]) -> list[Node]:
        """Return the equivalents of roots; those of equal form are computed by one loop."""
        numbers = [self.number[id(root)] for root in roots]
        groups: dict[int, list[int]] = {}
        for number in dict.fromkeys(numbers):
            if self.kind[number] == "operation":
                groups.setdefault(int(self.form[number]), []).append(number)
        for group in groups.values():
            if len(group) >= LEAST_TURNS:
                self._group(np.array(group, np.int64))
        return [self.node(number) for number in numbers]

    def _group(self, numbers: Numbers) -> None:
        """Compute roots of equal form by one loop, if they are worth it."""
        missing: list[int] = []
        while self._spread(numbers, missing) is None and missing:
            for number in missing:
                self.node(number)
            missing.clear()

    def node(self, root: int) -> Node:
        """Return the equivalent of a node."""
        waiting = [root]
        while waiting:
            number = waiting[-1]
            if number not in self.new:
                missing: list[int] = []
                made = self._made(number, missing)
                waiting += reversed(missing)
                if made is None:
                    continue
                self.new[number] = made
            waiting.pop()
        return self.new[root]

    def _made(self, number: int, missing: list[int]) -> Node | None:
        """Return a new node; None if nodes that it needs are missing, whose numbers are added."""
        if number in self._places:
            array, place = self._places[number]
            return Node("element", self.nodes[number].dtype, (array,), place)
        if self.chain[number].max() >= LEAST_TURNS:
            terms = _Terms(self, missing)
            term = terms.of(np.array(number, np.int64), (), 0)
            if missing:
                return None
            if term is not None:
                return Node("fold", self.nodes[number].dtype, tuple(terms.outside), term)
        node = self.nodes[number]
        args = self.args[number, : len(node.args)].tolist()
        missing += [arg for arg in args if arg not in self.new]
        if missing:
            return None
        new = tuple(self.new[arg] for arg in args)
        same = all(a is b for a, b in zip(new, node.args, strict=True))
        return node if same else Node(node.op, node.dtype, new, node.data)

    def array(self, numbers: Numbers, missing: list[int]) -> tuple[Node | None, Numbers]:
        """Return an array of the values of nodes (None if nodes are missing), and the place of each of them in it."""
        different, places = np.unique(numbers, return_inverse=True)
        known = [self._places[number] for number in different.tolist() if number in self._places]
        array: Node | None
        if len(known) == len(different) and all(each[0] is known[0][0] for each in known):
            array = known[0][0]
            places = np.array([place for _, place in known], np.int64)[places]
        else:
            array = self._spread(different, missing)
            if array is None and not missing:
                array = self._gather(different, missing)
        return array, places.reshape(numbers.shape)

    def _spread(self, numbers: Numbers, missing: list[int]) -> Node | None:
        """Return an array computed by one loop; None if nodes are missing or a loop does not pay."""
        alike = len(set(self.form[numbers].tolist())) == 1 and self.kind[int(numbers[0])] == "operation"
        if not alike or len(numbers) < LEAST_TURNS or numbers[0] in self._places:
            return None
        terms = _Terms(self, missing)
        term = terms.of(numbers, (0,), 0)
        if missing or term is None or not _pays(term):
            return None
        made = Node("spread", self.nodes[int(numbers[0])].dtype, tuple(terms.outside), Spread(len(numbers), term))
        self._places |= {number: (made, place) for place, number in enumerate(numbers.tolist())}
        return made

    def _gather(self, numbers: Numbers, missing: list[int]) -> Node | None:
        """Return an array of values that are computed one after another; None if nodes are missing."""
        missing += [number for number in numbers.tolist() if number not in self.new]
        if missing:
            return None
        key = numbers.tobytes()
        if key not in self._gathers:
            values = tuple(self.new[number] for number in numbers.tolist())
            self._gathers[key] = Node("gather", values[0].dtype, values)
        return self._gathers[key]


class _Terms:
    """The term of one loop, and the values that it gets from outside.

    If some of these are missing, their numbers are noted, and the term is useless.
    """

    def __init__(self, finding: _Finding, missing: list[int]) -> None:
        self._finding = finding
        self._missing = missing
        self.outside: list[Node] = []

    def of(self, bundle: Numbers, loops: tuple[int, ...], depth: int) -> Term | None:
        """Return the term of nodes of equal form; None if it would be too deep.

        The bundle has one axis for each of the loops around it. At depth 0 its nodes are computed here in any case.
        """
        if depth > _DEEPEST:
            return None
        finding = self._finding
        bundle, loops = _without_equal_axes(bundle, loops)
        first = int(bundle.flat[0])
        node, kind = finding.nodes[first], finding.kind[first]
        if kind == "const":
            entries = np.array(self._data(bundle), object).reshape(bundle.shape)
            return Table(Index(entries, loops), node)
        if kind == "read":
            return self._place(bundle, loops, node)
        if depth and (kind == "apart" or finding.uses[first] > 1 or not loops):
            return self._from_outside(bundle, loops, node)
        for place in (0, 1):
            if (turns := int(finding.chain[first, place])) >= LEAST_TURNS:
                return self._fold(bundle, loops, node, place, turns, depth)
        return self._operation(bundle, loops, node, depth)

    def _operation(self, bundle: Numbers, loops: tuple[int, ...], node: Node, depth: int) -> Term | None:
        args = []
        for k in range(len(node.args)):
            arg = self.of(self._finding.args[bundle, k], loops, depth + 1)
            if arg is None:
                return None
            args.append(arg)
        return Operation(node, tuple(args))

    def _fold(
        self, bundle: Numbers, loops: tuple[int, ...], node: Node, place: int, turns: int, depth: int
    ) -> Term | None:
        loop, combined, left = max(loops, default=-1) + 1, [], bundle
        for _ in range(turns):
            combined.append(self._finding.args[left, 1 - place])
            left = self._finding.args[left, place]
        start = self.of(left, loops, depth + 1)
        term = self.of(np.stack(combined[::-1], axis=-1), (*loops, loop), depth + 1)
        return None if start is None or term is None else Fold(node, loop, turns, place, start, term)

    def _from_outside(self, bundle: Numbers, loops: tuple[int, ...], node: Node) -> Term:
        if loops:
            array, places = self._finding.array(bundle, self._missing)
            return Kept(self._number(node if array is None else array), Index(places, loops), node)
        number = int(bundle)
        if number not in self._finding.new:
            self._missing.append(number)
        return Outside(self._number(self._finding.new.get(number, node)))

    def _place(self, bundle: Numbers, loops: tuple[int, ...], node: Node) -> Term:
        if not loops:
            return Outside(self._number(node))
        data = self._data(bundle)
        fields = self._index([number for number, _, _ in data], bundle, loops)
        offsets = (self._index(each, bundle, loops) for each in zip(*(place for _, _, place in data), strict=True))
        return Place(fields, tuple(offsets), node)

    def _index(self, values: Sequence[int], bundle: Numbers, loops: tuple[int, ...]) -> Index:
        return Index(*_without_equal_axes(np.array(values, np.int64).reshape(bundle.shape), loops))

    def _data(self, bundle: Numbers) -> list[Any]:
        return [self._finding.nodes[number].data for number in bundle.ravel().tolist()]

    def _number(self, node: Node) -> int:
        """Return the number of a value among those from outside."""
        for number, other in enumerate(self.outside):
            if other is node:
                return number
        self.outside.append(node)
        return len(self.outside) - 1


def _without_equal_axes(values: NDArray[Any], loops: tuple[int, ...]) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Leave out the loops in whose turns the values are the same."""
    for axis in reversed(range(len(loops))):
        first = values.take([0], axis=axis)
        if (values == first).all():
            values, loops = values.take(0, axis=axis), (*loops[:axis], *loops[axis + 1 :])
    return values, loops


def _pays(term: Term) -> bool:
    """Return True if values of this term are better computed by a loop than one after another."""
    return _operations(term) >= LEAST_OPERATIONS


def _operations(term: Term) -> int:
    if isinstance(term, Fold):
        return LEAST_OPERATIONS
    return 1 + sum(map(_operations, term.args)) if isinstance(term, Operation) else 0
