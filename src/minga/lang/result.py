"""Checks of the values that rules return for a cell, as far as they can be proven to be valid states."""

from __future__ import annotations

from collections.abc import Callable

from minga.errors import KernelError
from minga.lang.expr import Node, as_node, cast
from minga.lang.rule_context import STATES_OF_A_BYTE
from minga.lang.states import states_of
from minga.lang.trace import current_trace
from minga.lang.types import integer_range, is_float, is_integer

__all__ = ["checked_state", "written"]

Refusal = Callable[[str, str], KernelError]
"""Makes an error about the rule, located at its function, from a message and a remedy."""


def checked_state(value: object, what: str, states: int | None, fields: int, refuse: Refusal) -> Node:
    """Return the node to store for a value that a rule returns.

    Parameters
    ----------
    value
        The returned value.
    what
        Name of the returned value in errors.
    states
        Number of states, or None for any number. With two, the result is 1 where the value is true (not zero).
    fields
        Number of fields of the rule; their parameters come first.
    refuse
        Makes the errors.

    Raises
    ------
    KernelError
        If the value is not proven to be one of the states.
    """
    if value is None:
        raise refuse(f"returns nothing for {what}", "end it with `return` and the next value")
    try:
        node = as_node(value)
    except KernelError as error:
        raise KernelError(error.message, where=refuse("", "").where, remedy=error.remedy) from error
    if states is None:
        return node
    if states == 2:
        return _true_or_false(node, fields, refuse)
    if is_float(node.dtype):
        raise refuse(f"returns {node.dtype}; its states are integers", 'write mg.cast(value, "u1")')
    trace = current_trace("a rule")
    low, high = states_of(node, states, range(fields), trace.locals)
    if low < 0 or high >= states:
        raise _out_of_range(low if low < 0 else high, states, refuse)
    return node


def _true_or_false(node: Node, fields: int, refuse: Refusal) -> Node:
    """Return the result of a rule of two states: 1 where the value is not zero.

    Numbers other than 0 and 1 that are written out are refused, and so are values that would be true only because of
    arithmetic: fractions, and integers that can be negative or wrap around, such as ~cell, which is never zero.
    """
    if is_float(node.dtype):
        raise refuse(f"returns {node.dtype}; its states are 0 and 1", "compare it: return value > 0.5")
    values = written(node)
    if values is not None:
        if wrong := [value for value in values if value not in (0, 1)]:
            raise _out_of_range(wrong[0], 2, refuse)
        return node
    if node.dtype != "bool":
        low, high = states_of(node, 2, range(fields), current_trace("a rule").locals)
        if low != 0 or high >= integer_range(node.dtype)[1]:
            raise refuse(
                "can return numbers below 0, or that wrap around; its states are 0 and 1",
                "write 1 - cell (or cell == 0) in place of ~cell, a != b in place of a - b, or value % 2",
            )
    return cast(node, "bool")


def _out_of_range(value: int, states: int, refuse: Refusal) -> KernelError:
    last = states - 1
    declared = f"declare them: states={value + 1}; or " if last < value < STATES_OF_A_BYTE - 1 else ""
    return refuse(
        f"can return {value}; its states are 0 .. {last}"
        if 0 <= value < STATES_OF_A_BYTE - 1
        else f"cannot be proven to return only states 0 .. {last}",
        f"{declared}keep the result among the states: value % {last + 1}, mg.min(value, {last}) or mg.where",
    )


def written(node: Node) -> frozenset[int] | None:
    """Return the possible values of a node that only chooses among cells of two states and constants.

    For other nodes, return None.
    """
    match node.op:
        case "const" if not is_float(node.dtype):
            return frozenset([int(node.data)])
        case "select":
            branches = [written(arg) for arg in node.args[1:]]
            return None if None in branches else frozenset().union(*(b for b in branches if b is not None))
        case "cast" if is_integer(node.dtype) and not is_float(node.args[0].dtype):
            return written(node.args[0])
        case _:
            return frozenset([0, 1]) if node.dtype == "bool" or (node.op == "read" and node.dtype == "u1") else None
