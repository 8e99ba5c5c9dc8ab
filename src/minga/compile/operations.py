"""The table of operations, second half: what each of them means in NumPy, and how LLVM spells it.

The first half, :mod:`minga.lang.operations`, has all that the language knows. PTX comes from the same LLVM IR, so an
operation that is printed here is one on GPUs too. Every operation is exact IEEE or defined integer arithmetic; no flag
lets LLVM change bits.

Integer division, remainders and shifts have a meaning for every operand in minga (NumPy's), but not in LLVM. They are
lowered: spelled out in other operations, some of which exist for printers only:

    quotient                 integer division truncated towards zero; the divisor is never 0, nor -1 for signed types
    shift_left, shift_right  shifts by 0 .. width-1 (arithmetic for signed types)
    truncate                 float to integer, of a value whose integer part fits

Processors without rounding instructions get floor, ceil, trunc and rint as arithmetic.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from minga.lang.expr import Node, binary, bitcast, compare, const, where
from minga.lang.operations import operation
from minga.lang.types import BITS, DType, integer_range, is_float, is_integer, is_signed

__all__ = ["REGISTER", "SPELLINGS", "Printer", "Spelling", "convert", "spelling"]

Array = NDArray[Any]
REGISTER: Final[dict[DType, str]] = {
    "bool": "i1", "u1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u4": "i32", "u8": "i64",
    "f4": "float", "f8": "double",
}  # fmt: skip
"""The type of a value in a register. In memory a bool is an i8 that holds 0 or 1."""


class Printer(Protocol):
    """The part of :class:`minga.compile.ir.Body` that spelling an instruction needs."""

    def type(self, dtype: DType) -> str:
        """Return the LLVM type of a value, perhaps of a vector."""

    def literal(self, value: object, dtype: DType) -> str:
        """Return a constant."""

    def call(self, name: str, dtype: DType, values: Iterable[str], extra: str = "") -> str:
        """Return the call of an intrinsic."""


def _undefined(node: Node, *args: Array) -> Array:
    raise AssertionError(f"{node.op} is no function of arrays")


@dataclass(frozen=True, slots=True)
class Spelling:
    """The two implementations of one operation.

    Parameters
    ----------
    numpy
        Returns the values, given the node and the values of its arguments.
    llvm
        Returns the instruction, given the printer, the node, and the registers of its arguments; None where the
        operation is always lowered.
    lowered
        Returns the node spelled out in operations that are printed; the same node where there is nothing to do.
    without_rounding
        The same for processors that have no instruction for it.
    """

    numpy: Callable[..., Array] = _undefined
    llvm: Callable[..., str] | None = None
    lowered: Callable[[Node], Node] | None = None
    without_rounding: Callable[[Node], Node] | None = None


def spelling(name: str) -> Spelling:
    """Return how an operation is computed. Raises KernelError for one that is in no table."""
    found = SPELLINGS.get(name)
    if found is None:
        operation(name)  # raises unless the language knows it
        return _NONE
    return found


_NONE: Final = Spelling()
"""The entry of inputs and loops, which printers treat themselves."""


# NumPy ---------------------------------------------------------------------------------------------------------------
def convert(x: Array, dtype: DType) -> Array:
    """Convert an array: integers wrap around, floats truncate and saturate (NaN becomes 0), bool means `!= 0`."""
    if dtype == "bool":
        return np.not_equal(x, 0)
    if x.dtype.kind != "f" or is_float(dtype):
        return x.astype(dtype)
    low, high = integer_range(dtype)
    whole = np.trunc(x.astype(np.float64))
    # high + 1 and low are powers of two (or zero), so these comparisons are exact.
    inside = (whole > float(low)) & (whole < float(high + 1))
    result = np.where(inside, whole, 0.0).astype(dtype)
    result = np.where(whole >= float(high + 1), np.array(high, dtype), result)
    return np.where(whole <= float(low), np.array(low, dtype), result)


def _numpy_extreme(plain: Callable[[Array, Array], Array], want_negative: bool) -> Callable[[Array, Array], Array]:
    def extreme(a: Array, b: Array) -> Array:
        if a.dtype.kind != "f":
            return plain(a, b)
        # NumPy does not specify which zero it returns.
        zero = np.where(np.signbit(a) == want_negative, a, b)
        return np.where(a == b, zero, plain(a, b))

    return extreme


def _numpy_floordiv(a: Array, b: Array) -> Array:
    """Divide and round down; floats with separate roundings, not by NumPy's fmod (docs/decisions/float-mod.md)."""
    return np.floor(a / b) if a.dtype.kind == "f" else np.floor_divide(a, b)


def _numpy_mod(a: Array, b: Array) -> Array:
    return a - np.floor(a / b) * b if a.dtype.kind == "f" else np.remainder(a, b)


def _numpy_shift(left: bool) -> Callable[[Array, Array], Array]:
    def shift(a: Array, count: Array) -> Array:
        width = a.dtype.itemsize * 8
        valid = (count >= 0) & (count < width)
        safe = np.where(valid, count, 0).astype(a.dtype)
        zero = np.zeros_like(a)
        if left:
            return np.where(valid, np.left_shift(a, safe), zero)
        return np.where(valid, np.right_shift(a, safe), np.where(a < 0, ~zero, zero))

    return shift


def _numpy_popcount(a: Array) -> Array:
    """Count the one bits of the two's complement (NumPy counts those of the absolute value)."""
    return np.asarray(np.bitwise_count(a.view(f"u{a.dtype.itemsize}")), a.dtype)


def _numpy_bitreverse(a: Array) -> Array:
    """Reverse the bytes, and the bits of each byte."""
    octets = np.ascontiguousarray(a).byteswap().view(np.uint8)
    return np.packbits(np.unpackbits(octets), bitorder="little").view(a.dtype).reshape(a.shape)


@cache
def _libm_fma(name: str) -> Callable[..., float]:
    function = getattr(ctypes.CDLL(ctypes.util.find_library("m")), name)
    number = ctypes.c_double if name == "fma" else ctypes.c_float
    function.restype, function.argtypes = number, [number] * 3
    return function  # type: ignore[no-any-return]


def _numpy_fma(a: Array, b: Array, c: Array) -> Array:
    function = _libm_fma("fma" if a.dtype == np.float64 else "fmaf")
    shape = np.broadcast_shapes(a.shape, b.shape, c.shape)
    values = (function(*item) for item in np.broadcast(a, b, c))
    return np.fromiter(values, a.dtype, int(np.prod(shape))).reshape(shape)


FLUSHED: Final = {"f4": 2.0**-100, "f8": 2.0**-960}
"""Sizes below which floats are flushed to 0. Products of larger ones with factors down to 2**-26 are normal numbers."""


# Lowering ------------------------------------------------------------------------------------------------------------
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


def _flush(node: Node) -> Node:
    (x,) = node.args
    return where(compare("lt", abs(x), const(FLUSHED[node.dtype], node.dtype)), const(0.0, node.dtype), x)


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


# LLVM ----------------------------------------------------------------------------------------------------------------
def _ufunc(function: Callable[..., Any]) -> Callable[..., Array]:
    """Return the meaning of an operation that only depends on the values of its arguments."""
    return lambda node, *args: function(*args)


def _instruction(integer: str, number: str = "") -> Callable[..., str]:
    """Return the printer of a binary instruction: that of integers, and that of floats."""

    def printed(body: Printer, node: Node, a: str, b: str) -> str:
        name = number if is_float(node.dtype) else integer
        return f"{name} {body.type(node.dtype)} {a}, {b}"

    return printed


def _by_sign(signed: str, unsigned: str) -> Callable[..., str]:
    """Return the printer of an integer instruction that depends on the sign."""

    def printed(body: Printer, node: Node, a: str, b: str) -> str:
        return f"{signed if is_signed(node.dtype) else unsigned} {body.type(node.args[0].dtype)} {a}, {b}"

    return printed


def _intrinsic(name: str) -> Callable[..., str]:
    """Return the printer of the call of an intrinsic."""
    return lambda body, node, *values: body.call(name, node.dtype, values)


def _comparison(name: str) -> Callable[..., str]:
    ordered = "une" if name == "ne" else f"o{name}"

    def printed(body: Printer, node: Node, a: str, b: str) -> str:
        kind = node.args[0].dtype
        if is_float(kind):
            return f"fcmp {ordered} {body.type(kind)} {a}, {b}"
        sign = "" if name in ("eq", "ne") else "s" if is_signed(kind) else "u"
        return f"icmp {sign}{name} {body.type(kind)} {a}, {b}"

    return printed


def _extreme(name: str) -> Callable[..., str]:
    def printed(body: Printer, node: Node, a: str, b: str) -> str:
        if is_float(node.dtype):
            return body.call(f"{name}imum", node.dtype, (a, b))
        return body.call(f"{'s' if is_signed(node.dtype) else 'u'}{name}", node.dtype, (a, b))

    return printed


def _negative(body: Printer, node: Node, a: str) -> str:
    of = body.type(node.dtype)
    return f"fneg {of} {a}" if is_float(node.dtype) else f"sub {of} {body.literal(0, node.dtype)}, {a}"


def _magnitude(body: Printer, node: Node, a: str) -> str:
    if is_float(node.dtype):
        return body.call("fabs", node.dtype, (a,))
    if is_signed(node.dtype):
        return body.call("abs", node.dtype, (a,), ", i1 false")
    return f"add {body.type(node.dtype)} {a}, {body.literal(0, node.dtype)}"


def _opposite(body: Printer, node: Node, a: str) -> str:
    return f"xor {body.type(node.dtype)} {a}, {body.literal(True if node.dtype == 'bool' else -1, node.dtype)}"


def _chosen(body: Printer, node: Node, condition: str, a: str, b: str) -> str:
    of = body.type(node.dtype)
    return f"select {body.type(node.args[0].dtype)} {condition}, {of} {a}, {of} {b}"


def _truncated(body: Printer, node: Node, a: str) -> str:
    name = "fptosi" if is_signed(node.dtype) else "fptoui"
    return f"{name} {body.type(node.args[0].dtype)} {a} to {body.type(node.dtype)}"


def _same_bits(body: Printer, node: Node, a: str) -> str:
    return f"bitcast {body.type(node.args[0].dtype)} {a} to {body.type(node.dtype)}"


def _converted(body: Printer, node: Node, value: str) -> str:
    source, target = node.args[0].dtype, node.dtype
    a, b = body.type(source), body.type(target)
    if target == "bool":
        test = "fcmp une" if is_float(source) else "icmp ne"
        return f"{test} {a} {value}, {body.literal(0, source)}"
    if is_float(source) and is_float(target):
        return f"{'fpext' if target == 'f8' else 'fptrunc'} {a} {value} to {b}"
    if is_float(target):
        return f"{'sitofp' if is_signed(source) else 'uitofp'} {a} {value} to {b}"
    if REGISTER[source] == REGISTER[target]:
        return f"bitcast {a} {value} to {b}"
    if _bits(source) > _bits(target):
        return f"trunc {a} {value} to {b}"
    return f"{'sext' if is_signed(source) else 'zext'} {a} {value} to {b}"


def _bits(dtype: DType) -> int:
    return int(REGISTER[dtype][1:])


# The table -----------------------------------------------------------------------------------------------------------
def _rounding(name: str, function: Callable[..., Any]) -> Spelling:
    return Spelling(_ufunc(function), _intrinsic(name), without_rounding=_rounded)


SPELLINGS: Final[dict[str, Spelling]] = {
    # Arithmetic.
    "add": Spelling(_ufunc(np.add), _instruction("add", "fadd")),
    "sub": Spelling(_ufunc(np.subtract), _instruction("sub", "fsub")),
    "mul": Spelling(_ufunc(np.multiply), _instruction("mul", "fmul")),
    "div": Spelling(_ufunc(np.divide), _instruction("", "fdiv")),
    "floordiv": Spelling(_ufunc(_numpy_floordiv), lowered=_floor_division),
    "mod": Spelling(_ufunc(_numpy_mod), lowered=_modulo),
    "neg": Spelling(_ufunc(np.negative), _negative),
    "abs": Spelling(_ufunc(np.abs), _magnitude),
    "sqrt": Spelling(_ufunc(np.sqrt), _intrinsic("sqrt")),
    "fma": Spelling(_ufunc(_numpy_fma), _intrinsic("fma")),
    "min": Spelling(_ufunc(_numpy_extreme(np.minimum, True)), _extreme("min")),
    "max": Spelling(_ufunc(_numpy_extreme(np.maximum, False)), _extreme("max")),
    "floor": _rounding("floor", np.floor),
    "ceil": _rounding("ceil", np.ceil),
    "trunc": _rounding("trunc", np.trunc),
    "rint": _rounding("rint", np.rint),
    "flush": Spelling(lambda node, x: np.where(np.abs(x) < FLUSHED[node.dtype], x.dtype.type(0.0), x), lowered=_flush),
    # Comparisons and choice.
    "eq": Spelling(_ufunc(np.equal), _comparison("eq")),
    "ne": Spelling(_ufunc(np.not_equal), _comparison("ne")),
    "lt": Spelling(_ufunc(np.less), _comparison("lt")),
    "le": Spelling(_ufunc(np.less_equal), _comparison("le")),
    "gt": Spelling(_ufunc(np.greater), _comparison("gt")),
    "ge": Spelling(_ufunc(np.greater_equal), _comparison("ge")),
    "select": Spelling(_ufunc(np.where), _chosen),
    # Bits.
    "and": Spelling(_ufunc(np.bitwise_and), _instruction("and")),
    "or": Spelling(_ufunc(np.bitwise_or), _instruction("or")),
    "xor": Spelling(_ufunc(np.bitwise_xor), _instruction("xor")),
    "not": Spelling(_ufunc(np.invert), _opposite),
    "shl": Spelling(_ufunc(_numpy_shift(True)), lowered=_shift),
    "shr": Spelling(_ufunc(_numpy_shift(False)), lowered=_shift),
    "popcount": Spelling(_ufunc(_numpy_popcount), _intrinsic("ctpop")),
    "bitreverse": Spelling(_ufunc(_numpy_bitreverse), _intrinsic("bitreverse")),
    # Other types, and tables, whose entries printers load.
    "cast": Spelling(lambda node, x: convert(x, node.dtype), _converted, _cast),
    "bitcast": Spelling(lambda node, x: np.ascontiguousarray(x).view(node.dtype), _same_bits),
    "lookup": Spelling(lambda node, index: node.data.values[index]),
    # For printers only.
    "quotient": Spelling(llvm=_by_sign("sdiv", "udiv")),
    "shift_left": Spelling(llvm=_instruction("shl")),
    "shift_right": Spelling(llvm=_by_sign("ashr", "lshr")),
    "truncate": Spelling(llvm=_truncated),
}
"""The implementations of all operations, by name."""
