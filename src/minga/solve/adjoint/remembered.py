"""Values that a step computes and its reversal needs, stored by the step itself instead of its state.

The reversal of an operation needs derivatives at the state of the step: for a product of a coefficient and a wave, the
derivative of the wave. Kept states must be copied, copied back, and differentiated again. Here the operation stores
those expressions of the state alone that its reversal uses, each in a field of its own. They are the same expressions
of the same values, and therefore have the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from minga.engine.check import Operand
from minga.engine.operations import Apply, Operation, Repeat, flat
from minga.engine.program import Program
from minga.lang.expr import Node
from minga.lang.graph import Interner, KernelGraph, Param, Store, topological
from minga.lang.trace import Trace, assemble
from minga.solve.adjoint.like import field_like
from minga.solve.adjoint.transposed import Renumbered
from minga.space.field import Constant, Field, Register, Slot

__all__ = ["Remembered", "remembered"]

Reversal = tuple[Operation, Operation, Sequence[Apply]]
"""An operation of the step, the same on buffers, and its reversal."""
_OTHER: Final = ("state", "iterate")
"""Kinds of nodes whose meaning depends on more than their arguments."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A step that stores values, and the reversal that reads them.

    Attributes
    ----------
    step
        The step.
    reverse
        One step backwards.
    slots
        Slots of the values.
    """

    step: Program
    reverse: Program
    slots: list[Slot]


def remembered(
    step: Program, reversals: Sequence[Reversal], renamed: Sequence[Operation], changing: set[Field], own: set[Field],
    name: str,
) -> Remembered | None:  # fmt: skip
    """Return a step that stores what its reversal needs, and its reversal.

    Parameters
    ----------
    step
        The step.
    reversals
        Its operations with their reversals, in the order of these.
    renamed
        Operations with which a reversal begins.
    changing
        Fields that the step changes.
    own
        Adjoints and workspace.
    name
        Beginning of the names of further fields.

    Returns
    -------
    Remembered or None
        None where values are needed elsewhere than in the cell itself, or depend on intermediates.
    """
    found = _Values(changing, own, name)
    reverse = [*renamed]
    for origin, operation, made in reversals:
        assert isinstance(origin, Apply)
        assert isinstance(operation, Apply)
        for one in made:
            changed = found.without_state(origin, operation, one)
            if changed is None:
                return None
            reverse.append(changed)
    looped = {inner for each in step.operations if isinstance(each, Repeat) for inner in flat(each.body)}
    if not found.fields or any(each in looped or step.operations.count(each) > 1 for each in found.stored):
        return None  # an operation that is executed twice has values of its own each time
    operations = [found.storing(each) if isinstance(each, Apply) else each for each in step.operations]
    slots = [item.now for item in found.fields]
    return Remembered(Program(f"{step.name}.remembered", operations), Program(f"{name}.reverse", reverse), slots)


@dataclass(slots=True)
class _Values:
    """The values found so far: `stored` has the expressions that an operation stores, and their fields."""

    changing: set[Field]
    own: set[Field]
    name: str
    fields: list[Field] = field(default_factory=list)
    stored: dict[Apply, list[tuple[Node, Field]]] = field(default_factory=dict)

    def without_state(self, origin: Apply, operation: Apply, one: Apply) -> Apply | None:
        """Return an operation of a reversal that reads values in place of the state; None if there are none."""
        graph = one.graph
        if not any(isinstance(o, Slot) and o.field in self.changing for o in one.operands):
            return one
        if any(node.op in _OTHER for node in graph.nodes()):
            return None
        if one.region != operation.region or one.cells is not operation.cells:
            return None
        values = self._state_values(one)
        if values is None:
            return None
        numbers = {number: _place(operand, operation.operands) for number, operand in enumerate(one.operands)}
        locals_ = _same_locals(graph, operation.graph, numbers)
        if locals_ is None:
            return None
        like = one.slot(graph.stores[0].param).field
        on = operation.region if operation.region != like.points and not any(like.grid.periodic) else None
        to_step = Renumbered(locals_, {}, numbers)
        made: dict[int, tuple[Field, int]] = {}
        for value in values:
            item = field_like(
                like, f"{self.name}.value.{len(self.fields)}", "value for the adjoint", dtype=value.dtype, on=on
            )
            made[id(value)] = item, len(one.operands) + len(made)
            self.fields.append(item)
            self.stored.setdefault(origin, []).append((to_step(value), item))
        return _reading(one, made)

    def _state_values(self, one: Apply) -> list[Node] | None:
        """Return the largest expressions of an operation that depend on the state, and else on constants alone.

        None if an intermediate, which is also computed at neighbours, depends on more.
        """
        kinds: dict[int, str] = {}
        values: dict[int, Node] = {}
        for node in one.graph.nodes():
            kinds[id(node)] = self._kind(node, one, kinds)
            if kinds[id(node)] == "mixed":
                values |= {id(arg): arg for arg in node.args if kinds[id(arg)] == "state"}
        if any(kinds[id(node)] == "mixed" for node in one.graph.locals):
            return None
        values |= {id(s.value): s.value for s in one.graph.stores if kinds[id(s.value)] == "state"}
        return list(values.values())

    def _kind(self, node: Node, one: Apply, kinds: Mapping[int, str]) -> str:
        """Return "state" or "constant" for an expression of the state or of constants alone, and else "mixed"."""
        if node.op == "read":
            operand = one.operands[node.data[0]]
            if isinstance(operand, Constant):
                return "constant"
            return "state" if operand.field in self.changing else "mixed" if operand.field in self.own else "constant"
        if node.op == "local":
            return kinds[id(one.graph.locals[node.data[0]])]
        if node.op == "scalar":
            given = one.scalars.get(str(node.data))
            return "mixed" if given is None or isinstance(given, Register) else "constant"
        found = {kinds[id(arg)] for arg in node.args}
        return "mixed" if "mixed" in found else "state" if "state" in found else "constant"

    def storing(self, operation: Apply) -> Apply:
        """Return an operation of the step that also stores the values found for it."""
        values = self.stored.get(operation, [])
        if not values:
            return operation
        graph, number = operation.graph, len(operation.operands)
        ones, zeros = (1,) * graph.ndim, (0,) * graph.ndim
        stores = [(store.param, store.strides, store.offsets, store.value) for store in graph.stores]
        stores += [(number + k, ones, zeros, node) for k, (node, _) in enumerate(values)]
        params = [*graph.params, *(Param(item.name, item.dtype, tuple(range(graph.ndim))) for _, item in values)]
        operands: list[Operand] = [*operation.operands, *(item.now for _, item in values)]
        made, kept = _assembled(graph, params, operands, stores)
        return replace(operation, graph=made, operands=kept)


def _same_locals(graph: KernelGraph, other: KernelGraph, params: Mapping[int, int]) -> dict[int, int] | None:
    """Return the numbers of a kernel's intermediates in another one; None if one of them is not there.

    `params` has the numbers of parameters in the other kernel.
    """
    share = Interner()
    known = {id(share(node)): number for number, node in enumerate(other.locals)}
    found: dict[int, int] = {}
    for number, node in enumerate(graph.locals):
        place = known.get(id(share(Renumbered(found, {}, params)(node))))
        if place is None:
            return None
        found[number] = place
    return found


def _place(operand: Operand, operands: Sequence[Operand]) -> int:
    """Return the number of an operand among others, -1 if it is not there."""
    return next((k for k, other in enumerate(operands) if other is operand or other == operand), -1)


def _reading(one: Apply, made: Mapping[int, tuple[Field, int]]) -> Apply | None:
    """Return an operation that reads expressions, given by identity, from fields with numbers as parameters.

    None if it also needs intermediates.
    """
    graph = one.graph
    ones, zeros = (1,) * graph.ndim, (0,) * graph.ndim
    other: dict[int, Node] = {}
    for node in graph.nodes():
        if id(node) in made:
            _, number = made[id(node)]
            other[id(node)] = Node("read", node.dtype, data=(number, ones, zeros))
            continue
        args = tuple(other[id(arg)] for arg in node.args)
        same = all(a is b for a, b in zip(args, node.args, strict=True))
        other[id(node)] = node if same else replace(node, args=args, of=None)
    stores = [(store.param, store.strides, store.offsets, other[id(store.value)]) for store in graph.stores]
    params = [*graph.params, *(Param(i.name, i.dtype, tuple(range(graph.ndim))) for i, _ in made.values())]
    operands: list[Operand] = [*one.operands, *(item.now for item, _ in made.values())]
    if any(node.op == "local" for node in topological([value for *_, value in stores])):
        return None
    new, kept = _assembled(replace(graph, locals=()), params, operands, stores)
    known = {scalar.name for scalar in new.scalars}
    return replace(one, graph=new, operands=kept, scalars={k: v for k, v in one.scalars.items() if k in known})


def _assembled(
    graph: KernelGraph, params: Sequence[Param], operands: Sequence[Operand],
    stores: Sequence[tuple[int, tuple[int, ...], tuple[int, ...], Node]],
) -> tuple[KernelGraph, tuple[Operand, ...]]:  # fmt: skip
    """Return a graph with other stores and the parameters that it uses, slots before constants, and their operands."""
    roots = [*graph.locals, *(value for *_, value in stores), *(each.value for each in graph.reductions)]
    used = {node.data[0] for node in topological(roots) if node.op == "read"} | {param for param, *_ in stores}
    ranked = sorted(used, key=lambda number: (not isinstance(operands[number], Slot), number))
    order = {number: k for k, number in enumerate(ranked)}
    final, share = Renumbered({}, {}, order), Interner()
    trace = Trace(graph.ndim, (), False, 0)
    trace.params = [params[number] for number in ranked]
    locals_ = tuple(share(final(node)) for node in graph.locals)
    made = tuple(Store(order[p], strides, offsets, share(final(value))) for p, strides, offsets, value in stores)
    reductions = tuple(replace(each, value=share(final(each.value))) for each in graph.reductions)
    new = assemble(graph.name, trace, made, reductions, locals_, graph.order, graph.where)
    return new, tuple(operands[number] for number in ranked)
