"""Lowering: a graph is rewritten so that every node is one well-defined machine operation.

Integer division, remainders and shifts are defined for every operand in minga (as in NumPy), but not in LLVM; here they
are spelled out with selects. This introduces node kinds that only the printers know:

    quotient                 integer division truncated towards zero; the divisor is never 0, nor -1 for signed types
    shift_left, shift_right  shifts by 0 .. width-1 (arithmetic for signed types)
    truncate                 float to integer, for a value whose integer part fits

For processors without rounding instructions, floor, ceil, trunc and rint are spelled out as arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from minga.lang.expr import Node, binary, bitcast, compare, const, where
from minga.lang.graph import Interner, KernelGraph
from minga.lang.loop import rewritten, with_bodies
from minga.lang.types import BITS, DType, integer_range, is_float, is_integer, is_signed

ROUNDINGS: Final = ("floor", "ceil", "trunc", "rint")


def lower(graph: KernelGraph, *, rounding: bool = True) -> KernelGraph:
    """Rewrite a graph in operations that a printer can print.

    Parameters
    ----------
    graph
        The graph of a kernel.
    rounding
        True if floor, ceil, trunc and rint are instructions of the processor.
    """
    rules = {"floordiv": _floor_division, "mod": _modulo, "shl": _shift, "shr": _shift, "cast": _cast}
    graph = rewrite(graph, lambda node: rules[node.op](node) if node.op in rules else node)
    if not rounding:
        graph = rewrite(graph, lambda node: _rounded(node) if node.op in ROUNDINGS else node)
    return graph


def rewrite(graph: KernelGraph, rule: Callable[[Node], Node]) -> KernelGraph:
    """Replace every node by the result of `rule`, which is called with a node whose arguments are replaced already."""
    new, share = rewritten(graph.roots, rule), Interner()
    return replace(
        graph,
        stores=tuple(replace(store, value=share(new[id(store.value)])) for store in graph.stores),
        reductions=tuple(replace(item, value=share(new[id(item.value)])) for item in graph.reductions),
        locals=tuple(share(new[id(node)]) for node in graph.locals),
    )


def _floor_division(node: Node) -> Node:
    a, b = node.args
    if is_float(node.dtype):
        return _floor(binary("div", a, b))
    quotient, _ = _divided(a, b)
    return quotient


def _modulo(node: Node) -> Node:
    a, b = node.args
    if is_float(node.dtype):
        return binary("sub", a, binary("mul", _floor(binary("div", a, b)), b))
    _, remainder = _divided(a, b)
    return remainder


def _divided(a: Node, b: Node) -> tuple[Node, Node]:
    """Return the floor quotient and remainder of integers.

    Both are 0 if the divisor is 0, and INT_MIN // -1 wraps around to INT_MIN.
    """
    dtype = a.dtype
    zero, one = const(0, dtype), const(1, dtype)
    by_zero = compare("eq", b, zero)
    if not is_signed(dtype):
        quotient = Node("quotient", dtype, (a, where(by_zero, one, b)))
        remainder = binary("sub", a, binary("mul", quotient, b))
        return where(by_zero, zero, quotient), where(by_zero, zero, remainder)
    by_minus_one = compare("eq", b, const(-1, dtype))
    quotient = Node("quotient", dtype, (a, where(binary("or", by_zero, by_minus_one), one, b)))
    remainder = binary("sub", a, binary("mul", quotient, b))
    # Truncation rounded up if the signs differ and the remainder is not zero.
    up = binary("and", compare("ne", remainder, zero), compare("lt", binary("xor", remainder, b), zero))
    quotient = where(up, binary("sub", quotient, one), quotient)
    remainder = where(up, binary("add", remainder, b), remainder)
    nothing = binary("or", by_zero, by_minus_one)
    return where(by_zero, zero, where(by_minus_one, -a, quotient)), where(nothing, zero, remainder)


def _shift(node: Node) -> Node:
    """Return a shift that is defined for every count.

    Shifts by a negative number, or by the width or more, give 0 (for signed right shifts: the sign).
    """
    a, count = node.args
    dtype, width = node.dtype, BITS[node.dtype]
    op = "shift_left" if node.op == "shl" else "shift_right"
    if count.op == "const" and 0 <= int(count.data) < width:
        return Node(op, dtype, (a, count))
    inside = compare("lt", count, const(width, dtype))
    if is_signed(dtype):
        inside = binary("and", inside, compare("ge", count, const(0, dtype)))
    if op == "shift_right" and is_signed(dtype):
        return Node(op, dtype, (a, where(inside, count, const(width - 1, dtype))))
    return where(inside, Node(op, dtype, (a, where(inside, count, const(0, dtype)))), const(0, dtype))


def _cast(node: Node) -> Node:
    """Make conversions from float to integer saturate and turn NaN into 0.

    LLVM's fptosi.sat is not used: it crashes LLVM 22 where two types of it meet.
    """
    (x,) = node.args
    if not is_float(x.dtype) or not is_integer(node.dtype):
        return node
    low, high = integer_range(node.dtype)
    # Both bounds are zero or powers of two, so they are exact as floats.
    below, above = compare("lt", x, const(float(low), x.dtype)), compare("ge", x, const(float(high + 1), x.dtype))
    inside = binary(
        "and", compare("ge", x, const(float(low), x.dtype)), compare("lt", x, const(float(high + 1), x.dtype))
    )
    whole = Node("truncate", node.dtype, (where(inside, x, const(0.0, x.dtype)),))
    return where(above, const(high, node.dtype), where(below, const(low, node.dtype), whole))


def _floor(value: Node) -> Node:
    return Node("floor", value.dtype, (value,))


def _rounded(node: Node) -> Node:
    """Round to integers by adding and subtracting 2**(mantissa bits), which rounds to nearest even.

    This is exact for |x| < 2**52 (f4: 2**23); larger numbers, infinities and NaN are left unchanged. The sign of x is
    kept, so that floor(-0.0) and ceil(-0.5) are -0.0.
    """
    (x,) = node.args
    dtype = node.dtype
    limit, one = const(2.0**52 if dtype == "f8" else 2.0**23, dtype), const(1.0, dtype)
    size = abs(x)
    nearest_size = (size + limit) - limit
    if node.op == "trunc":
        whole = where(nearest_size > size, nearest_size - one, nearest_size)
    elif node.op == "rint":
        whole = nearest_size
    else:
        nearest = _with_sign_of(x, nearest_size)
        if node.op == "floor":
            whole = where(nearest > x, nearest - one, nearest)
        else:
            whole = where(nearest < x, nearest + one, nearest)
    return where(size < limit, _with_sign_of(x, abs(whole)), x)


def _with_sign_of(x: Node, size: Node) -> Node:
    bits: DType = "u8" if x.dtype == "f8" else "u4"
    sign = const(1 << (BITS[bits] - 1), bits)
    return bitcast(binary("or", bitcast(size, bits), binary("and", bitcast(x, bits), sign)), x.dtype)


def uses_fma(graph: KernelGraph) -> bool:
    """Return True if the kernel uses a * b + c with a single rounding (mg.fma)."""
    return any(node.op == "fma" for node in with_bodies(graph.nodes()))
