"""Reverse-mode differentiation of expressions: what a change of each read contributes to changes of several values.

Every value is given a weight, the expression by which its change counts; the weight of a read is then the sum over all
values of weight times derivative. Weights are kept as sums of expressions with constant factors, so that a difference
quotient of constant coefficients becomes one expression with several factors, and not one expression for each.

Source: A. Griewank, A. Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, chapter 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from minga.lang.derivative import FUNCTIONS
from minga.lang.expr import Node, author_error, cast, const, where
from minga.lang.graph import Interner
from minga.lang.operations import operation
from minga.lang.tangent import Tangent
from minga.lang.types import is_float

__all__ = ["Weight", "pulled_back", "weighted_sum"]


@dataclass(slots=True)
class Weight:
    """A sum of expressions with constant factors: `terms` maps the identity of an expression to it and its factor."""

    terms: dict[int, tuple[Node, float]] = field(default_factory=dict)

    def add(self, node: Node, factor: float) -> None:
        """Add an expression times a factor."""
        _, before = self.terms.get(id(node), (node, 0.0))
        self.terms[id(node)] = (node, before + factor)

    def __iter__(self) -> Iterator[tuple[Node, float]]:
        return iter(self.terms.values())


def weighted_sum(terms: Iterable[tuple[Node, float]]) -> Node | None:
    """Return the sum of expressions times factors, those of equal factors first; None without terms."""
    groups: dict[float, list[tuple[Node, bool]]] = {}
    for node, factor in terms:
        if factor != 0.0:
            groups.setdefault(abs(factor), []).append((node, factor < 0))
    total: Node | None = None
    for size, members in groups.items():
        first, negative = members[0]
        part = first
        for node, other in members[1:]:
            part = part + node if other == negative else part - node
        part = part if size == 1.0 else const(size, part.dtype) * part
        total = (-part if negative else part) if total is None else total - part if negative else total + part
    return total


def pulled_back(
    weighted: Sequence[tuple[Node, Node]], active: Callable[[Node], bool], share: Interner
) -> list[tuple[Node, Weight]]:
    """Return the weights of the reads and locals on which some values depend.

    Parameters
    ----------
    weighted
        Pairs of a value, a float, and its weight.
    active
        True for the reads and locals that are wanted; all others count as constants.
    share
        Makes equal weights one node.

    Returns
    -------
    list of pairs
        Each wanted read or local, and its weight.

    Raises
    ------
    KernelError
        If a value depends on a wanted read through the bits of a float or through `mg.iterate`.
    """
    order = _ordered([value for value, _ in weighted])
    depends: set[int] = set()
    for node in order:
        if node.op in ("read", "local"):
            if active(node):
                depends.add(id(node))
        elif any(id(part) in depends for part in _parts(node)) and _varies(node):
            depends.add(id(node))
    weights: dict[int, Weight] = {}
    for value, weight in weighted:
        weights.setdefault(id(value), Weight()).add(share(weight), 1.0)
    found: list[tuple[Node, Weight]] = []
    for node in reversed(order):
        own = weights.pop(id(node), None)
        if own is None or id(node) not in depends:
            continue
        if node.op in ("read", "local"):
            found.append((node, own))
            continue
        for number, part in enumerate(_parts(node)):
            if id(part) in depends:
                _pass_on(node, number, part, own, weights.setdefault(id(part), Weight()), share)
    return found


def _ordered(roots: Sequence[Node]) -> list[Node]:
    """Return all nodes on which values depend, arguments first; elementary functions are nodes of their arguments."""
    seen: set[int] = set()
    order: list[Node] = []
    for root in roots:
        stack = [(root, iter(_parts(root)))] if id(root) not in seen else []
        seen.add(id(root))
        while stack:
            node, parts = stack[-1]
            for part in parts:
                if id(part) not in seen:
                    seen.add(id(part))
                    stack.append((part, iter(_parts(part))))
                    break
            else:
                stack.pop()
                order.append(node)
    return order


def _parts(node: Node) -> tuple[Node, ...]:
    """Return the nodes by which a node is differentiated."""
    return node.args if node.of is None else tuple(node.of[1:])


def _varies(node: Node) -> bool:
    """Return whether a node that depends on a value may have a derivative; raise KernelError if it has none."""
    known = operation(node.op)
    if not is_float(node.dtype) or known.step:
        return False
    if node.of is None and known.derivative is None:
        what = "mg.iterate" if node.op.startswith("iterate") else f"the operation {node.op!r}"
        raise author_error(
            f"the adjoint of a value that depends on a field through {what}",
            "write the value as a function of floats: mg.where, mg.min, mg.exp, ...",
        )
    return True


def _pass_on(node: Node, number: int, part: Node, own: Weight, to: Weight, share: Interner) -> None:
    """Add to the weight of an argument what a node passes on to it."""
    if node.op in ("select", "cast") and node.of is None:
        whole = _whole(own)
        if node.op == "cast":
            to.add(share(cast(whole, part.dtype)), 1.0)
        else:
            zero = const(0.0, whole.dtype)
            to.add(share(where(node.args[0], *((whole, zero) if number == 1 else (zero, whole)))), 1.0)
        return
    units: list[Tangent | None] = [None] * len(_parts(node))
    units[number] = Tangent(const(1.0, part.dtype))
    if node.of is not None:
        slope = FUNCTIONS[node.of[0]](*units, *node.of[1:], node)
    else:
        rule = operation(node.op).derivative
        assert rule is not None
        slope = rule(node, *units)
    if slope is None:
        return
    sign = -1.0 if slope.negative else 1.0
    if slope.size.op == "const":
        factor = sign * float(slope.size.data)
        for expression, before in own:
            to.add(expression, before * factor)
        return
    to.add(share(_whole(own) * slope.size), sign)


def _whole(weight: Weight) -> Node:
    """Return a weight as one expression."""
    found = weighted_sum(weight)
    assert found is not None
    return found
