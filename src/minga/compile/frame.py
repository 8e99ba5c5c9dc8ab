"""A kernel function's view of its arguments: bounds of the tile, fields, scalars, and addresses of a cell's values."""

from __future__ import annotations

from minga.compile import abi
from minga.compile.literal import memory_type
from minga.compile.text import Text
from minga.lang.graph import KernelGraph
from minga.lang.types import DType, itemsize


class Frame:
    """Registers loaded once at the kernel's entry from `%args`, `%tile` and `%worker`."""

    def __init__(self, text: Text, graph: KernelGraph) -> None:
        self.text = text
        self.graph = graph
        self.words = abi.offsets(graph)
        self.ndim = graph.ndim
        self.shift = [self.argument(self.words.shift + axis) for axis in range(self.ndim)]
        self.extent = [self.argument(self.words.extent + axis) for axis in range(self.ndim)]
        self.tile_shape = [self.argument(self.words.tile + axis) for axis in range(self.ndim)]
        self.begin, self.end = self._tile()
        self.stride: list[dict[int, str]] = []
        self.base = [self._field(number) for number in range(len(graph.params))]
        self.scalars = {scalar.name: self._scalar(i, scalar.dtype) for i, scalar in enumerate(graph.scalars)}

    def argument(self, word: int) -> str:
        """Load an argument word."""
        return self.text.load_word("%args", word)

    def _tile(self) -> tuple[list[str], list[str]]:
        """Compute the half-open bounds of this tile from its row-major number."""
        text, rest = self.text, "%tile"
        begin: list[str] = []
        end: list[str] = []
        for axis in reversed(range(self.ndim)):
            tiles = self.argument(self.words.tiles + axis)
            number = text.let(f"srem i64 {rest}, {tiles}") if axis else rest
            rest = text.let(f"sdiv i64 {rest}, {tiles}") if axis else rest
            start = text.add(self.argument(self.words.lo + axis), text.mul(number, self.tile_shape[axis]))
            begin.insert(0, start)
            stop = text.add(start, self.tile_shape[axis])
            end.insert(0, text.smaller(stop, self.argument(self.words.hi + axis)))
        return begin, end

    def _field(self, number: int) -> str:
        """Return the address of the field's element with index (0, ..., 0), which may lie outside its memory."""
        text, param, word = self.text, self.graph.params[number], self.words.fields[number]
        array = text.load_pointer(text.load_pointer("%args", word), 0)
        self.stride.append(
            {axis: "1" if axis == self.ndim - 1 else self.argument(word + 2 + k) for k, axis in enumerate(param.axes)}
        )
        return self.element(array, param.dtype, self.argument(word + 1))

    def _scalar(self, number: int, dtype: DType) -> str:
        return self.load(self.text.load_pointer("%args", self.words.scalars[number]), dtype)

    # Memory --------------------------------------------------------------------------------------------------------
    def element(self, pointer: str, dtype: DType, index: str) -> str:
        """Return the address of element `index` of an array."""
        if index == "0":
            return pointer
        return self.text.let(f"getelementptr {memory_type(dtype)}, ptr {pointer}, i64 {index}", "p")

    def load(self, pointer: str, dtype: DType, note: str = "") -> str:
        """Load the value at `pointer`; a bool's byte, which is 0 or 1 (LLVM may use it as a number), becomes an i1."""
        value = self.text.let(f"load {memory_type(dtype)}, ptr {pointer}, align {itemsize(dtype)}{note}", "l")
        return self.text.let(f"trunc nuw i8 {value} to i1", "b") if dtype == "bool" else value

    def store(self, value: str, pointer: str, dtype: DType, note: str = "") -> None:
        """Store a value at `pointer`; an i1 becomes a byte 0 or 1."""
        if dtype == "bool":
            value = self.text.let(f"zext i1 {value} to i8", "b")
        self.text.emit(f"store {memory_type(dtype)} {value}, ptr {pointer}, align {itemsize(dtype)}{note}")
