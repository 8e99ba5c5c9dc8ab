"""The expression graph of a cell: typed, immutable nodes built by ordinary Python operators.

A node never holds field data: it describes how the value of one cell is computed from reads, scalars and constants.
Every operation is spelled out, so that NumPy, LLVM and PTX give the same bits.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from minga.errors import KernelError, shown
from minga.lang.replacements import replacement_for
from minga.lang.types import (
    DType,
    as_dtype,
    integer_range,
    is_float,
    is_integer,
    promote,
    promote_weak,
)

_TOOLS: Final = (str(Path(__file__).parent), str(Path(__file__).parents[1] / "space"))
"""Folders of minga's own code that builds expressions; frames in them are never the author's."""

COMPARISONS: Final = ("eq", "ne", "lt", "le", "gt", "ge")
BITWISE: Final = ("and", "or", "xor")
ARITHMETIC: Final = ("add", "sub", "mul", "div", "floordiv", "mod", "min", "max")


def author_location() -> str:
    """Return the `file:line` where the author wrote the expression.

    This is the innermost frame outside minga.lang and minga.space.
    """
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_TOOLS):
        if frame.f_back is None:
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def author_error(message: str, remedy: str) -> KernelError:
    """Return an error about a mistake in a kernel, located at the author's line."""
    return KernelError(message, remedy=remedy, where=author_location())


class Arithmetic:
    """Python's operators for anything that has a node: expressions, locals, registers."""

    __slots__ = ()

    # Operators -----------------------------------------------------------------------------------------------------
    def __add__(self, other: object) -> Node:
        return binary("add", self, other)

    def __radd__(self, other: object) -> Node:
        return binary("add", other, self)

    def __sub__(self, other: object) -> Node:
        return binary("sub", self, other)

    def __rsub__(self, other: object) -> Node:
        return binary("sub", other, self)

    def __mul__(self, other: object) -> Node:
        return binary("mul", self, other)

    def __rmul__(self, other: object) -> Node:
        return binary("mul", other, self)

    def __truediv__(self, other: object) -> Node:
        return binary("div", self, other)

    def __rtruediv__(self, other: object) -> Node:
        return binary("div", other, self)

    def __floordiv__(self, other: object) -> Node:
        return binary("floordiv", self, other)

    def __rfloordiv__(self, other: object) -> Node:
        return binary("floordiv", other, self)

    def __mod__(self, other: object) -> Node:
        return binary("mod", self, other)

    def __rmod__(self, other: object) -> Node:
        return binary("mod", other, self)

    def __and__(self, other: object) -> Node:
        return binary("and", self, other)

    def __rand__(self, other: object) -> Node:
        return binary("and", other, self)

    def __or__(self, other: object) -> Node:
        return binary("or", self, other)

    def __ror__(self, other: object) -> Node:
        return binary("or", other, self)

    def __xor__(self, other: object) -> Node:
        return binary("xor", self, other)

    def __rxor__(self, other: object) -> Node:
        return binary("xor", other, self)

    def __lshift__(self, other: object) -> Node:
        return shift("shl", self, other)

    def __rlshift__(self, other: object) -> Node:
        return shift("shl", other, self)

    def __rshift__(self, other: object) -> Node:
        return shift("shr", self, other)

    def __rrshift__(self, other: object) -> Node:
        return shift("shr", other, self)

    def __pow__(self, exponent: object) -> Node:
        return _any_power(self, exponent)

    def __rpow__(self, base: object) -> Node:
        return _any_power(base, self)

    def __neg__(self) -> Node:
        node = as_node(self)
        if node.dtype == "bool":
            raise author_error("a bool has no negative", "write ~x for 'not x', or mg.cast(x, 'i4') for a number")
        return Node("neg", node.dtype, (node,), weak=node.weak)

    def __pos__(self) -> Node:
        return as_node(self)

    def __invert__(self) -> Node:
        node = as_node(self)
        if is_float(node.dtype):
            raise author_error(f"~ needs a bool or an integer, found {node.dtype}", "compare first, e.g. ~(x > 0)")
        return Node("not", node.dtype, (node,), weak=node.weak)

    def __abs__(self) -> Node:
        node = as_node(self)
        if node.dtype == "bool" or node.dtype[0] == "u":
            return node
        return Node("abs", node.dtype, (node,), weak=node.weak)

    def __eq__(self, other: object) -> Node:  # type: ignore[override]
        return compare("eq", self, other)

    def __ne__(self, other: object) -> Node:  # type: ignore[override]
        return compare("ne", self, other)

    def __lt__(self, other: object) -> Node:
        return compare("lt", self, other)

    def __le__(self, other: object) -> Node:
        return compare("le", self, other)

    def __gt__(self, other: object) -> Node:
        return compare("gt", self, other)

    def __ge__(self, other: object) -> Node:
        return compare("ge", self, other)

    __hash__ = object.__hash__

    # Unsupported operations ------------------------------------------------------------------------------------------
    def __bool__(self) -> bool:
        if not as_node(self).reads_cells:
            raise author_error(
                "a register's value is not known while a Program is recorded, so Python cannot decide on it",
                "use `with P.when(condition):` or `P.repeat(until=condition, limit=...)`",
            )
        raise author_error(
            "a cell's value is not known while the kernel is traced, so Python cannot decide on it "
            "(if, while, and, or, not, min, max, chained comparisons)",
            "write mg.where(condition, a, b); & | ~ instead of and or not; mg.min and mg.max; (a < b) & (b < c); "
            "mg.iterate instead of while",
        )

    def __int__(self) -> int:
        raise author_error("a cell's value cannot become a Python int", "use mg.cast(x, 'i4')")

    def __float__(self) -> float:
        raise author_error(
            "a cell's value cannot become a Python float",
            "functions of `math` act on numbers: use the mg. ones (mg.sin); mg.cast(x, 'f8') changes the type",
        )

    def __round__(self, *_: object) -> Node:
        raise author_error("a cell's value cannot be rounded by Python", "write mg.round(x)")

    def __index__(self) -> int:
        raise author_error(
            "an offset or a loop bound cannot depend on a cell's value", "use constant offsets and choose with mg.where"
        )

    def __iter__(self) -> object:
        raise author_error("a cell's value is one number and cannot be iterated", "loop over offsets instead")

    def __len__(self) -> int:
        raise author_error("a cell's value is one number and has no length", "loop over a Python sequence instead")

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise author_error("NumPy functions cannot act on a cell's value", "use mg.sqrt, mg.exp, mg.where, ...")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **_: object) -> Node:
        """Let NumPy scalars on the left of an operator (np.float32(2) * x) combine like any strong operand."""
        # With a NumPy scalar on the left, the operator would end up here again, so the operands become nodes first.
        function = _UFUNCS.get(ufunc.__name__)
        if any(isinstance(i, np.ndarray) and i.ndim for i in inputs):
            raise author_error(
                f"np.{ufunc.__name__} would combine an array with a cell's value",
                "use the array's numbers one by one: a kernel computes one cell",
            )
        if function is None or method != "__call__":
            raise author_error(f"np.{ufunc.__name__} cannot act on a cell's value", replacement_for(ufunc.__name__))
        return function(*map(as_node, inputs))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node(Arithmetic):
    """One value of the graph.

    Attributes
    ----------
    op
        The kind of node: const, scalar, read, local, index, or an operation on `args`.
    dtype
        The type of the value.
    data
        Additional data of the operation, besides its arguments:

        - const: the Python value
        - scalar: the name
        - index: the axis number
        - read: (parameter number, strides per axis of the parameter, offsets per axis of the parameter)
        - local: (local number, offsets per iteration axis)
        - lookup: the Table
        - iterate: the Loop
    weak
        True for a Python scalar and for expressions of Python scalars only; such a node adapts to the type of its
        partner.
    of
        For the value of an elementary function (mg.exp, ...), which is spelled out in other operations: the
        function's name and argument. Present only while a kernel is traced; not part of the meaning.
    """

    op: str
    dtype: DType
    args: tuple[Node, ...] = ()
    data: Any = None
    weak: bool = False
    of: tuple[Any, ...] | None = None

    @property
    def reads_cells(self) -> bool:
        """True if the value can differ from cell to cell."""
        return self.op in ("read", "local", "index", "state") or any(arg.reads_cells for arg in self.args)

    def __repr__(self) -> str:
        return f"<{self.op} {self.dtype}{'' if self.data is None else f' {self.data}'}>"


_UFUNCS: Final[dict[str, Callable[..., Node]]] = {
    "power": operator.pow, "float_power": operator.pow,
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "bitwise_and": operator.and_,
    "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "left_shift": operator.lshift,
    "right_shift": operator.rshift, "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt,
    "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip


# Making nodes --------------------------------------------------------------------------------------------------------
def const(value: bool | int | float, dtype: DType | None = None) -> Node:
    """Return a constant: weak if `dtype` is None (a Python scalar), otherwise exactly of that type."""
    if dtype is None:
        kind: DType = "bool" if isinstance(value, bool) else "i8" if isinstance(value, int) else "f8"
        return Node("const", kind, data=value, weak=True)
    if dtype == "bool":
        return Node("const", dtype, data=bool(value))
    if is_float(dtype):
        with np.errstate(over="ignore"):
            rounded = float(np.dtype(dtype).type(value))
        if math.isinf(rounded) and not math.isinf(value):
            raise author_error(f"{value} does not fit into {dtype}", "use f8, or a smaller number")
        return Node("const", dtype, data=rounded)
    low, high = integer_range(dtype)
    if not low <= int(value) <= high:
        raise author_error(f"{value} does not fit into {dtype} ({low} .. {high})", "use a wider type or mg.cast")
    return Node("const", dtype, data=int(value))


def as_node(value: object) -> Node:
    """Convert anything an expression may contain to a node: nodes, Python and NumPy scalars, objects with a `node`."""
    if isinstance(value, Node):
        return value
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        try:
            return const(value.item(), as_dtype(value.dtype))
        except ValueError as error:
            raise author_error(str(error), "convert the number, e.g. float(x) or np.float32(x)") from error
    if isinstance(value, bool | int | float):
        return const(value)
    node = getattr(value, "node", None)
    if isinstance(node, Node):
        return node
    found = shown(value) if isinstance(value, np.ndarray) else f"{type(value).__name__} {shown(value)}"
    raise author_error(
        f"{found} cannot be part of a kernel's expression",
        "use numbers, keyword parameters of the kernel, or cells of its fields",
    )


def flushed(value: object) -> Node:
    """Return a float, or 0 where it is so small that products with it may be denormal, which is slow.

    Its derivative is 1: flushing is part of the rounding.

    Parameters
    ----------
    value
        A cell's value, f4 or f8.
    """
    node = as_node(value)
    return Node("flush", node.dtype, (node,))


def cast(value: object, dtype: object) -> Node:
    """Convert a value to another cell type.

    Parameters
    ----------
    value
        A cell's value or a number.
    dtype
        The cell type to convert to: "bool", "u1", "i2", "i4", "i8", "u4", "u8", "f4" or "f8".

    Returns
    -------
    Node
        The converted value. Conversions from float to integer truncate and saturate, and NaN becomes 0; a conversion
        to bool means `!= 0`.

    Raises
    ------
    KernelError
        If `dtype` is not a cell type, or a constant does not fit into it.
    """
    node = as_node(value)
    try:
        target = as_dtype(dtype)
    except ValueError as error:
        raise author_error(str(error), "name one of the cell types") from error
    if node.op == "const" and node.weak:
        if is_float(target) or target == "bool" or not is_float(node.dtype):
            return const(node.data, target)
        return Node("cast", target, (Node("const", node.dtype, data=node.data),))
    if node.dtype == target:
        return node if not node.weak else Node(node.op, node.dtype, node.args, node.data, of=node.of)
    return Node("cast", target, (node,))


def bitcast(value: object, dtype: DType) -> Node:
    """Reinterpret the bits of a value as another type of the same width."""
    node = as_node(value)
    return Node("bitcast", dtype, (strong(node),))


def strong(node: Node) -> Node:
    """Fix a weak node to its own type."""
    return cast(node, node.dtype) if node.weak else node


def common(left: object, right: object) -> tuple[Node, Node, DType, bool]:
    """Convert two operands to their common type.

    Returns
    -------
    tuple
        The two converted operands, their common type, and whether the result is still weak.
    """
    a, b = as_node(left), as_node(right)
    try:
        if a.weak and b.weak:
            target: DType = "f8" if "f8" in (a.dtype, b.dtype) else "i8" if "i8" in (a.dtype, b.dtype) else "bool"
            return _weak_cast(a, target), _weak_cast(b, target), target, True
        if a.weak:
            target = promote_weak(b.dtype, a.dtype)
        elif b.weak:
            target = promote_weak(a.dtype, b.dtype)
        else:
            target = promote(a.dtype, b.dtype)
    except ValueError as error:
        raise author_error(
            f"{a.dtype} and {b.dtype} have no common cell type", "convert one side with mg.cast(x, dtype)"
        ) from error
    return cast(a, target), cast(b, target), target, False


def _weak_cast(node: Node, target: DType) -> Node:
    if node.dtype == target:
        return node
    if node.op == "const":
        return Node("const", target, data=float(node.data) if is_float(target) else int(node.data), weak=True)
    return Node("cast", target, (node,), weak=True)


def binary(op: str, left: object, right: object) -> Node:
    """Return an arithmetic or bitwise operation, typed as in NumPy."""
    a, b, dtype, weak = common(left, right)
    if op in BITWISE:
        if is_float(dtype):
            raise author_error(
                f"{op} needs bools or integers, found {as_node(left).dtype} and {as_node(right).dtype}",
                "put comparisons in parentheses: (u[0] > 1) & (v[0] < 2)",
            )
        return Node(op, dtype, (a, b), weak=weak)
    if op == "div" and not is_float(dtype):
        a, b, dtype = cast(a, "f8"), cast(b, "f8"), "f8"
    elif dtype == "bool" and op in ("sub", "floordiv", "mod"):
        raise author_error(
            f"bools cannot be combined with {op}", "use ^ for 'differs', or mg.cast(x, 'i4') for numbers"
        )
    elif dtype == "bool" and op in ("add", "mul", "min", "max"):
        # In NumPy, arithmetic on bools is logic.
        op = {"add": "or", "mul": "and", "min": "and", "max": "or"}[op]
    return Node(op, dtype, (a, b), weak=weak)


def compare(op: str, left: object, right: object) -> Node:
    """Return a comparison, whose value is a bool."""
    a, b, _, weak = common(left, right)
    return Node(op, "bool", (strong(a), strong(b)) if not weak else (a, b), weak=False)


def shift(op: str, left: object, right: object) -> Node:
    """Return `a << b` or `a >> b` on integers; shifts beyond the width give 0 (or the sign, for a signed >>)."""
    a, b, dtype, weak = common(left, right)
    if not is_integer(dtype):
        raise author_error(f"shifts need integers, found {dtype}", "convert with mg.cast(x, 'u4')")
    return Node(op, dtype, (a, b), weak=weak)


def power(base: object, exponent: object) -> Node:
    """Return `x ** n` for a constant integer n, by repeated squaring; `x ** 0.5` is the square root.

    The order of the multiplications is part of the meaning.
    """
    node = as_node(base)
    if isinstance(exponent, float) and exponent == 0.5:
        return square_root(node)
    if isinstance(exponent, bool) or not isinstance(exponent, int | np.integer):
        raise author_error(
            f"x ** {shown(exponent)}: the exponent is not a number", "write x**2, x**0.5, or x**y of two numbers"
        )
    n = int(exponent)
    if n < 0:
        if not is_float(node.dtype):
            raise author_error("integers to negative powers are not integers", "convert with mg.cast(x, 'f8') first")
        return binary("div", 1.0, power(node, -n))
    result: Node | None = None
    square = node
    while n:
        if n & 1:
            result = square if result is None else binary("mul", result, square)
        n >>= 1
        if n:
            square = binary("mul", square, square)
    return binary("add", binary("mul", node, 0), 1) if result is None else result


def _any_power(base: object, exponent: object) -> Node:
    from minga.lang.elementary import pow  # it is made of expressions

    return pow(base, exponent)


def square_root(value: object) -> Node:
    """Return the correctly rounded square root; integers become f8."""
    return unary_float("sqrt", value)


def unary_float(op: str, value: object) -> Node:
    """Return a float operation of one argument; integers and bools become f8 first, as in NumPy."""
    node = as_node(value)
    if not is_float(node.dtype):
        node = cast(node, "f8") if not node.weak else _weak_cast(node, "f8")
    return Node(op, node.dtype, (node,), weak=node.weak)


def where(condition: object, then: object, otherwise: object) -> Node:
    """Choose between two values, cell by cell.

    Parameters
    ----------
    condition
        A bool; values of other types are compared with 0.
    then, otherwise
        The values to choose from. Both are always evaluated.

    Returns
    -------
    Node
        `then` where the condition holds, `otherwise` elsewhere, in their common type.
    """
    test = as_node(condition)
    if test.dtype != "bool":
        test = cast(test, "bool")
    a, b, dtype, weak = common(then, otherwise)
    return Node("select", dtype, (strong(test), a, b), weak=weak)


def fused_multiply_add(a: object, b: object, c: object) -> Node:
    """Return a * b + c with a single rounding.

    This needs FMA hardware; minga never introduces the operation by itself.

    Parameters
    ----------
    a, b, c
        Floats, which are converted to their common type.

    Returns
    -------
    Node
        The value of a * b + c.

    Raises
    ------
    KernelError
        If the common type is not a float.
    """
    x, y, _, _ = common(a, b)
    x, z, dtype, weak = common(x, c)
    y = cast(y, dtype) if not weak else y
    if not is_float(dtype):
        raise author_error(f"mg.fma needs floats, found {dtype}", "use a * b + c for integers")
    return Node("fma", dtype, (x, y, z), weak=weak)


def extreme(op: str, values: tuple[object, ...]) -> Node:
    """Return the elementwise minimum or maximum; NaN propagates and -0 < +0."""
    result = as_node(values[0])
    for value in values[1:]:
        result = binary(op, result, value)
    return result
