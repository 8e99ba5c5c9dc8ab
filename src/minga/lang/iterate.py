"""`mg.iterate`: a loop inside a cell, whose number of iterations depends on the cell's values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, Literal, NamedTuple

from minga.lang.expr import Node, as_node, author_error, cast, strong
from minga.lang.graph import Interner, topological
from minga.lang.loop import EXPECTED, Loop
from minga.lang.trace import Trace, current_trace

__all__ = ["Iteration", "iterate"]

MOST_ROUNDS: Final = 2**31 - 1
_tokens = count()


class Iteration(NamedTuple):
    """The result of `mg.iterate`.

    Attributes
    ----------
    state
        The final values, arranged as the initial state was given.
    rounds
        The number of iterations: how many times the body was applied (i4).
    """

    state: Any
    rounds: Node


def iterate(
    state: object,
    while_: Callable[[Any], object],
    body: Callable[[Any], object],
    limit: int,
    *,
    expected: int | None = None,
) -> Iteration:
    """Apply `body` to the state while `while_` holds for it, at most `limit` times, for each cell independently.

    Parameters
    ----------
    state
        The initial state: a value, or a tuple, a list or a dict of values. Each value keeps its type: Python numbers
        are f8, i8 or bool; mg.cast(0, "i4") is an i4.
    while_
        Takes the state and returns a bool; the loop continues while it is true.
    body
        Takes the state and returns the state after one iteration: as many values, of the same types.
    limit
        Maximum number of iterations. Cells that reach it stop there, with `while_` still true for their state.
    expected
        Number of iterations assumed by cost estimates; by default 8 (or the limit, if that is less).

    Returns
    -------
    Iteration
        The final state and the number of iterations.

    Raises
    ------
    KernelError
        If the body stores into a field or draws random numbers, the state changes its arrangement or types, or an
        argument is invalid.

    Notes
    -----
    Both functions are called once, with symbols. Everything that they read from fields, and everything else that does
    not depend on the state, is computed once, before the loop. Loops may be nested.
    """
    trace = current_trace("mg.iterate")
    _check_count("limit", limit)
    if expected is not None:
        _check_count("expected", expected)
    shape = _Shape.of(state)
    starts = [strong(as_node(value)) for value in shape.values(state, "the state")]
    token = next(_tokens)
    places = [Node("state", start.dtype, data=(token, number)) for number, start in enumerate(starts)]
    before = _Effects.of(trace)
    condition = _condition(while_(shape.arranged(places)))
    following = _following(shape, places, body(shape.arranged(places)))
    _refuse_effects(trace, before, token)
    roots, captured = _separated(token, [condition, *following])
    loop = Loop(roots[0], tuple(roots[1:]), limit, min(limit, EXPECTED if expected is None else expected))
    node = Node("iterate", "i4", (*starts, *captured), loop)
    ends = [Node("iterated", start.dtype, (node,), number) for number, start in enumerate(starts)]
    return Iteration(shape.arranged(ends), node)


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_ROUNDS:
        found = "a value of a cell" if isinstance(value, Node) else repr(value)
        raise author_error(
            f"mg.iterate: {name} is {found}; expected an integer of at least 1",
            f"e.g. {name}=50, known when the kernel is traced; the condition can stop the loop earlier",
        )


def _condition(found: object) -> Node:
    node = as_node(found)
    if node.dtype != "bool":
        raise author_error(
            f"mg.iterate: the condition is {node.dtype}, not a bool", "compare: lambda x: abs(f(x)) > tolerance"
        )
    return strong(node)


def _following(shape: _Shape, places: Sequence[Node], found: object) -> list[Node]:
    following = []
    for name, place, value in zip(shape.names, places, shape.values(found, "the result of the body"), strict=True):
        node = as_node(value)
        if node.dtype != place.dtype and not (node.weak and node.op == "const"):
            raise author_error(
                f"mg.iterate: {name} starts as {place.dtype}, and the body returns {node.dtype}",
                f"write mg.cast(..., {place.dtype!r}) in the body, or start with a value of type {node.dtype}",
            )
        following.append(strong(cast(node, place.dtype)))
    return following


# Arrangement of a state ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Shape:
    """The arrangement of the values of a state. `keys` are the keys of a dict."""

    kind: Literal["value", "tuple", "list", "dict"]
    names: tuple[str, ...]
    keys: tuple[object, ...] = ()

    @classmethod
    def of(cls, state: object) -> _Shape:
        if isinstance(state, Mapping):
            found = cls("dict", tuple(f"state[{key!r}]" for key in state), tuple(state))
        elif isinstance(state, tuple | list):
            kind: Literal["tuple", "list"] = "tuple" if isinstance(state, tuple) else "list"
            found = cls(kind, tuple(f"state[{number}]" for number in range(len(state))))
        else:
            found = cls("value", ("the state",))
        if not found.names:
            raise author_error("mg.iterate: the state is empty", "give a value, or a tuple or dict of values")
        return found

    def values(self, found: object, what: str) -> list[object]:
        """Return the values of an object with this arrangement; raise an author error if it has another one."""
        if self.kind == "dict":
            if isinstance(found, Mapping) and set(found) == set(self.keys):
                return [found[key] for key in self.keys]
        elif self.kind in ("tuple", "list"):
            if isinstance(found, tuple | list) and len(found) == len(self.names):
                return list(found)
        elif not isinstance(found, Mapping | tuple | list) and found is not None:
            return [found]
        message = f"mg.iterate: {what} is {_described(found)}; expected {self._wanted()}"
        raise author_error(message, "arrange both alike: lambda state: (state[0] + 1, state[1])")

    def arranged(self, values: Sequence[Node]) -> Any:
        if self.kind == "dict":
            return dict(zip(self.keys, values, strict=True))
        return values[0] if self.kind == "value" else tuple(values) if self.kind == "tuple" else list(values)

    def _wanted(self) -> str:
        if self.kind == "value":
            return "one value, as the state is"
        if self.kind == "dict":
            return f"a dict with the keys {', '.join(map(repr, self.keys))}, as the state is"
        return f"a {self.kind} of {len(self.names)} values, as the state is"


def _described(found: object) -> str:
    if isinstance(found, Mapping):
        return f"a dict with the keys {', '.join(map(repr, found)) or 'none'}"
    if isinstance(found, tuple | list):
        return f"a {type(found).__name__} of {len(found)}"
    return "nothing" if found is None else "one value"


# Parts of a loop -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Effects:
    """Everything that a kernel has done so far besides building expressions."""

    stores: dict[object, int]
    locals: int
    draws: object

    @classmethod
    def of(cls, trace: Trace) -> _Effects:
        stores: dict[object, int] = {key: id(value) for key, value in trace.stores.items()}
        return cls(stores, len(trace.locals), trace.draws.get("count", 0))


def _refuse_effects(trace: Trace, before: _Effects, token: int) -> None:
    """Raise KernelError for effects that a loop cannot repeat: stores, locals of the state, random numbers."""
    after = _Effects.of(trace)
    if after.stores != before.stores:
        raise author_error("mg.iterate: the body stores into a field", "return the value, and store it after the loop")
    if any(_depends_on(token, node) for node in trace.locals[before.locals :]):
        raise author_error(
            "mg.iterate: mg.local names a value that changes between iterations", "use the expression itself"
        )
    if after.draws != before.draws:
        raise author_error(
            "mg.iterate: the body draws a random number, which would be the same in all iterations",
            "draw as many numbers as the loop needs before it",
        )


def _depends_on(token: int, root: Node) -> bool:
    return any(node.op == "state" and node.data[0] == token for node in topological([root]))


def _separated(token: int, roots: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """Separate expressions into the loop's own graph and the largest parts that do not depend on the state."""
    share, outside = Interner(), Interner()
    own: set[int] = set()
    new: dict[int, Node] = {}
    captured: dict[int, int] = {}
    taken: list[Node] = []

    def inner(node: Node) -> Node:
        """Return the equivalent of a node that is inside the loop's graph or at its edge."""
        if id(node) in own:
            return new[id(node)]
        if node.op == "const":
            return node
        number = captured.setdefault(id(outside(node)), len(taken))
        if number == len(taken):
            taken.append(strong(node))
        return Node("captured", node.dtype, data=number)

    for node in topological(roots):
        if node.op == "state" and node.data[0] == token:
            own.add(id(node))
            new[id(node)] = Node("state", node.dtype, data=node.data[1])
        elif any(id(arg) in own for arg in node.args):
            own.add(id(node))
            new[id(node)] = Node(node.op, node.dtype, tuple(inner(arg) for arg in node.args), node.data)
    return [share(inner(root)) for root in roots], taken
