"""The loop inside a cell that `mg.iterate` makes: a small graph of its own, as the data of one node.

Two kinds of nodes represent it in a kernel's graph:

    iterate   the loop; its arguments are the initial values of the state, then the values that the body captures from
              outside; its value is the number of iterations done, an i4
    iterated  value number `data` of the final state; its argument is the loop

Two kinds are leaves of the loop's own graph: `state` (value number `data` of the state at the beginning of an
iteration) and `captured` (captured value number `data`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from minga.lang.expr import Node
from minga.lang.graph import Interner, spell, topological

__all__ = ["EXPECTED", "Loop", "rewritten", "with_bodies"]

EXPECTED: Final = 8
"""Default number of iterations assumed by cost estimates."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Loop:
    """`while condition and fewer than limit iterations: state = following`. Loops of equal meaning are equal.

    Attributes
    ----------
    condition
        A bool.
    following
        The state after an iteration, in the types of the state.
    limit
        Maximum number of iterations.
    expected
        Number of iterations assumed by cost estimates; not part of the meaning.
    """

    condition: Node
    following: tuple[Node, ...]
    limit: int
    expected: int = EXPECTED

    def nodes(self) -> list[Node]:
        """Return all nodes of the loop's own graph, arguments before users."""
        return list(topological((self.condition, *self.following)))

    def rewritten(self, rule: Callable[[Node], Node]) -> Loop:
        """Replace every node by the result of `rule`, which is called with a node whose arguments are replaced."""
        new, share = rewritten(self.nodes(), rule), Interner()
        following = tuple(share(new[id(node)]) for node in self.following)
        return replace(self, condition=share(new[id(self.condition)]), following=following)

    def __repr__(self) -> str:
        """Return the canonical text, on one line."""
        number = {id(node): i for i, node in enumerate(self.nodes())}
        parts = []
        for node in self.nodes():
            args = " ".join(f"%{number[id(arg)]}" for arg in node.args)
            parts.append(f"%{number[id(node)]} = {node.op} {node.dtype} {args} {spell(node)}".rstrip())
        after = ", ".join(f"%{number[id(node)]}" for node in self.following)
        parts.append(f"while %{number[id(self.condition)]}: state = ({after}), {self.limit} rounds at most")
        return "{" + "; ".join(parts) + "}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loop) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def rewritten(roots: Iterable[Node], rule: Callable[[Node], Node]) -> dict[int, Node]:
    """Apply `rule` to the nodes of expressions and of the loops in them, arguments first.

    Returns
    -------
    dict
        The new nodes, by the ids of the original ones.
    """
    new: dict[int, Node] = {}
    for node in topological(roots):
        args = tuple(new[id(arg)] for arg in node.args)
        same = all(a is b for a, b in zip(args, node.args, strict=True))
        if node.op == "iterate":
            new[id(node)] = Node(node.op, node.dtype, args, node.data.rewritten(rule))
        else:
            new[id(node)] = rule(node if same else Node(node.op, node.dtype, args, node.data))
    return new


def with_bodies(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield these nodes and the nodes of the loops among them."""
    for node in nodes:
        yield node
        if node.op == "iterate":
            yield from with_bodies(node.data.nodes())
