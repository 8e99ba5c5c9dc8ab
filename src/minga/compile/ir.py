"""Expressions as LLVM IR: each node of a graph becomes one instruction on one value or on a vector of `width` lanes.

Nothing here depends on the processor: the CPU and GPU printers share this module and supply the registers of leaves
(read, local, index, scalar). Every operation is exact IEEE or well-defined integer arithmetic; no flag allows LLVM to
change bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from minga.compile.iterate import print_iterate
from minga.compile.literal import constant
from minga.compile.operations import REGISTER, spelling
from minga.compile.print_repeats import print_loop
from minga.compile.repeats import LOOPS
from minga.compile.text import Text
from minga.lang.expr import Node
from minga.lang.graph import topological
from minga.lang.operations import OPERATIONS
from minga.lang.table import Table
from minga.lang.types import DType, is_signed

LEAVES: Final = frozenset(name for name, found in OPERATIONS.items() if found.arity == 0) - {"const"}
"""Values that a cell is given, which depend on where it is."""


class Body:
    """Printer of nodes into a function.

    Parameters
    ----------
    text
        The function that is printed.
    leaf
        Returns the register of a node without arguments that is not a constant.
    width
        Number of lanes of a value.
    note
        Metadata of the loads that nodes need themselves, which are those of table entries.
    """

    def __init__(self, text: Text, leaf: Callable[[Node], str], width: int = 1, note: str = "") -> None:
        self.text = text
        self.leaf = leaf
        self.width = width
        self.note = note
        self._values: dict[int, str] = {}
        self._states: dict[int, list[str]] = {}

    def nested(self, leaf: Callable[[Node], str]) -> Body:
        """Return a printer into the same function for nodes with other leaves."""
        return Body(self.text, leaf, self.width, self.note)

    def type(self, dtype: DType) -> str:
        """Return the register type of a value with this printer's number of lanes."""
        return REGISTER[dtype] if self.width == 1 else f"<{self.width} x {REGISTER[dtype]}>"

    def suffix(self, dtype: DType) -> str:
        """Return the suffix of an intrinsic's name: f64, v8f32, i32, ..."""
        name = {"float": "f32", "double": "f64"}.get(REGISTER[dtype], REGISTER[dtype])
        return name if self.width == 1 else f"v{self.width}{name}"

    def literal(self, value: object, dtype: DType) -> str:
        """Return a constant with this printer's number of lanes."""
        one = constant(value, dtype)
        return one if self.width == 1 else f"splat ({REGISTER[dtype]} {one})"

    def __call__(self, root: Node) -> str:
        """Return the register (or literal) of `root`; nodes printed before are not printed again."""
        return self.all([root])[0]

    def all(self, roots: Sequence[Node]) -> list[str]:
        """Return the registers of several nodes."""
        for node in topological(roots, self._values):
            self._values[id(node)] = self._print(node)
        return [self._values[id(root)] for root in roots]

    def _print(self, node: Node) -> str:
        if node.op == "const":
            return self.literal(node.data, node.dtype)
        if node.op in LEAVES:
            return self.leaf(node)
        args = [self._values[id(arg)] for arg in node.args]
        if node.op in LOOPS:
            return print_loop(self, node, args)
        if node.op == "iterate":
            rounds, self._states[id(node)] = print_iterate(self, node.data, args)
            return rounds
        if node.op == "iterated":
            return self._states[id(node.args[0])][int(node.data)]
        return self.operation(node, args)

    def operation(self, node: Node, args: Sequence[str]) -> str:
        """Return the register of an operation on the values of its arguments."""
        if node.op == "lookup":
            return self._lookup(node, args[0])
        llvm = spelling(node.op).llvm
        assert llvm is not None, node  # or it was lowered
        return self.text.let(llvm(self, node, *args))

    def splat(self, value: str, dtype: DType) -> str:
        """Return a value for all lanes, given the value of one."""
        return value if self.width == 1 else self.text.splat(REGISTER[dtype], value, self.width)

    def _lookup(self, node: Node, index: str) -> str:
        """Print the load of a table entry; the index must be within the table."""
        table, kind = node.data, REGISTER[node.dtype]
        name = self.text.constant(table, f"[{len(table)} x {kind}]", _entries(table))
        lanes = self._lanes(index, node.args[0].dtype)
        found = [self._entry(name, kind, lane) for lane in lanes]
        if self.width == 1:
            return found[0]
        result = "poison"
        for lane, value in enumerate(found):
            result = self.text.let(f"insertelement {self.type(node.dtype)} {result}, {kind} {value}, i64 {lane}")
        return result

    def _lanes(self, index: str, dtype: DType) -> list[str]:
        """Return the index of each lane, as i64."""
        if self.width == 1:
            return [self._word(index, dtype)]
        of = self.type(dtype)
        return [
            self._word(self.text.let(f"extractelement {of} {index}, i64 {lane}"), dtype) for lane in range(self.width)
        ]

    def _word(self, index: str, dtype: DType) -> str:
        if REGISTER[dtype] == "i64":
            return index
        return self.text.let(f"{'sext' if is_signed(dtype) else 'zext'} {REGISTER[dtype]} {index} to i64", "i")

    def _entry(self, name: str, kind: str, index: str) -> str:
        place = self.text.let(f"getelementptr inbounds {kind}, ptr {name}, i64 {index}", "p")
        return self.text.let(f"load {kind}, ptr {place}{self.note}")

    def call(self, name: str, dtype: DType, values: Iterable[str], extra: str = "") -> str:
        """Return the call of an intrinsic whose arguments and result have one type."""
        arguments = ", ".join(f"{self.type(dtype)} {value}" for value in values)
        return f"call {self.type(dtype)} @llvm.{name}.{self.suffix(dtype)}({arguments}{extra})"


def _entries(table: Table) -> str:
    """Return a table as an array constant; bytes as a string, which LLVM reads much faster."""
    if table.dtype == "u1":
        return 'c"' + "".join(f"\\{byte:02X}" for byte in table.content) + '"'
    kind = REGISTER[table.dtype]
    return "[" + ", ".join(f"{kind} {constant(value, table.dtype)}" for value in table.values.tolist()) + "]"
