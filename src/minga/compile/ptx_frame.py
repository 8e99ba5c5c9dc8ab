"""A GPU thread's view of a kernel's arguments: bounds, its place in the launch, and addresses of a cell's values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, cast

from minga.compile import abi
from minga.compile.literal import memory_type
from minga.compile.text import Text
from minga.lang.expr import Node
from minga.lang.graph import KernelGraph
from minga.lang.types import DType, itemsize

Offsets = tuple[int, ...]

WARP: Final = 32
BLOCK: Final = 256
"""Maximum number of threads of a block, for which the kernel is compiled."""
_REGISTER: Final = {"i32": "r", "i64": "l"}
"""Constraint letters of PTX registers in inline assembly."""
DIMENSIONS: Final = ("x", "y", "z")


class Frame:
    """Registers loaded once from the launch and `args`, mostly at the kernel's entry.

    block, blocks    the block's number along x, y and z of the launch, and the numbers of blocks
    place, places    the thread's number along x, y and z of the launch, and the numbers of threads
    thread, threads  the thread's number within its block, and the block's number of threads
    """

    def __init__(self, text: Text, graph: KernelGraph, args: str = "%args") -> None:
        self.text = text
        self.graph = graph
        self.args = args
        self.words = abi.offsets(graph)
        axes = range(graph.ndim)
        self.lo = [self.argument(self.words.lo + axis) for axis in axes]
        self.hi = [self.argument(self.words.hi + axis) for axis in axes]
        self.shift = [self.argument(self.words.shift + axis) for axis in axes]
        self.extent = [self.argument(self.words.extent + axis) for axis in axes]
        self.colour = self.argument(self.words.colour)
        self.stride = [
            {a: "1" if a == graph.ndim - 1 else self.argument(word + 2 + k) for k, a in enumerate(param.axes)}
            for param, word in zip(graph.params, self.words.fields, strict=True)
        ]
        self.base = [self._field(number) for number in range(len(graph.params))]
        self.scalars = {scalar.name: self._scalar(i, scalar.dtype) for i, scalar in enumerate(graph.scalars)}
        self._launch()

    # The launch ----------------------------------------------------------------------------------------------------
    def _launch(self) -> None:
        text = self.text
        inside, shape, self.block, self.blocks = (
            [self._special(f"{name}.{d}") for d in DIMENSIONS] for name in ("tid", "ntid", "ctaid", "nctaid")
        )
        self.place = [text.add(text.mul(b, n), t) for b, n, t in zip(self.block, shape, inside, strict=True)]
        self.places = [text.mul(b, n) for b, n in zip(self.blocks, shape, strict=True)]
        plane = text.add(text.mul(inside[2], shape[1]), inside[1])
        self.thread = text.add(text.mul(plane, shape[0]), inside[0])
        self.threads = text.mul(text.mul(shape[0], shape[1]), shape[2])

    def _special(self, name: str) -> str:
        return self.text.let(f"zext i32 {self.text.let(f'call i32 @llvm.nvvm.read.ptx.sreg.{name}()')} to i64")

    # Arguments -----------------------------------------------------------------------------------------------------
    def argument(self, word: int) -> str:
        """Load an argument word."""
        return self.text.load_word(self.args, word)

    def pointer(self, base: str, word: int) -> str:
        """Load an address from a word, marked for LLVM as an address of global memory (not shared or local memory)."""
        return self.global_address(self.text.load_word(base, word))

    def global_address(self, word: str) -> str:
        """Convert an i64 to an address in global memory."""
        address = self.text.let(f"inttoptr i64 {word} to ptr addrspace(1)", "p")
        return self.text.let(f"addrspacecast ptr addrspace(1) {address} to ptr", "p")

    def _field(self, number: int) -> str:
        """Return the address of the field's element with index (0, ..., 0), which may lie outside its memory."""
        word = self.words.fields[number]
        array = self.pointer(self.pointer(self.args, word), 0)
        return self.element(array, self.graph.params[number].dtype, self.argument(word + 1))

    def _scalar(self, number: int, dtype: DType) -> str:
        return self.load(self.pointer(self.args, self.words.scalars[number]), dtype)

    def accumulators(self, reduction: int) -> str:
        """Return the address of the accumulator that this launch adds its cells to, which worker[0] selects."""
        first = self.pointer(self.args, self.words.reductions[reduction])
        worker = self.text.load_word("%worker", 0)
        return self.text.word(first, self.text.mul(worker, abi.ACCUMULATOR_WORDS))

    # Memory --------------------------------------------------------------------------------------------------------
    def element(self, pointer: str, dtype: DType, index: str) -> str:
        """Return the address of element `index` of an array."""
        if index == "0":
            return pointer
        return self.text.let(f"getelementptr {memory_type(dtype)}, ptr {pointer}, i64 {index}", "p")

    def load(self, pointer: str, dtype: DType) -> str:
        """Load the value at `pointer`; a bool's byte becomes an i1."""
        value = self.text.let(f"load {memory_type(dtype)}, ptr {pointer}, align {itemsize(dtype)}", "l")
        return self.text.let(f"icmp ne i8 {value}, 0", "b") if dtype == "bool" else value

    def store(self, value: str, pointer: str, dtype: DType) -> None:
        """Store a value at `pointer`; an i1 becomes a byte 0 or 1."""
        if dtype == "bool":
            value = self.text.let(f"zext i1 {value} to i8", "b")
        self.text.emit(f"store {memory_type(dtype)} {value}, ptr {pointer}, align {itemsize(dtype)}")


class Cell:
    """One cell: its iteration index along each axis, and the values and addresses that belong to it."""

    def __init__(self, frame: Frame, index: dict[int, str]) -> None:
        self.frame = frame
        self.text = frame.text
        self.index = index
        self._own: dict[tuple[int, Offsets], str] = {}
        self._strides: dict[tuple[int, int], str] = {}
        self._true: dict[int, str] = {}

    def true(self, axis: int) -> str:
        """Return the cell's true global index along an axis."""
        if axis not in self._true:
            self._true[axis] = self.text.add(self.index[axis], self.frame.shift[axis])
        return self._true[axis]

    def address(self, param: int, strides: Offsets, offsets: Offsets) -> str:
        """Return the address of the element of a field that the cell accesses."""
        axes, text = self.frame.graph.params[param].axes, self.text
        distance = "0"
        for axis, offset in zip(axes, offsets, strict=True):
            distance = _sum(text, distance, _product(text, self._stride(param, axis), offset)) if offset else distance
        return self.frame.element(self._start(param, strides), self.frame.graph.params[param].dtype, distance)

    def _stride(self, param: int, axis: int) -> str:
        """Return a stride in a form that hides from LLVM that all cells share it.

        Otherwise multiples of it would be kept in registers.
        """
        stride = self.frame.stride[param][axis]
        if stride == "1":
            return stride
        if (param, axis) not in self._strides:
            self._strides[param, axis] = self.text.let(f'call i64 asm sideeffect "", "=l,0"(i64 {stride}) memory(none)')
        return self._strides[param, axis]

    def _start(self, param: int, strides: Offsets) -> str:
        """Return the address of the element at offset 0; the distances of offsets from it are equal for all cells."""
        key = (param, strides)
        if key not in self._own:
            index = "0"
            for axis, stride in zip(self.frame.graph.params[param].axes, strides, strict=True):
                place = self.text.mul(self.index[axis], stride)
                index = _sum(self.text, index, self.text.mul(place, self.frame.stride[param][axis]))
            dtype = self.frame.graph.params[param].dtype
            self._own[key] = self.frame.element(self.frame.base[param], dtype, index)
        return self._own[key]

    def leaf(self, node: Node) -> str:
        """Return the value of a read, an index or a scalar."""
        if node.op == "scalar":
            return self.frame.scalars[str(node.data)]
        if node.op == "index":
            return self.true(cast(int, node.data))
        return self.frame.load(self.address(*cast(tuple[int, Offsets, Offsets], node.data)), node.dtype)


def _sum(text: Text, a: str, b: str) -> str:
    return b if a == "0" else text.add(a, b)


def _product(text: Text, register: str, number: int) -> str:
    """Return `register * number`; a stride of 1 needs no instruction."""
    return str(number) if register == "1" else text.mul(register, number)


# Code printed by several modules -------------------------------------------------------------------------------------
def variable(text: Text, kind: str, value: str) -> str:
    """Return a variable of the thread with an initial value; LLVM keeps it in a register."""
    pointer = text.slot(kind)
    text.emit(f"store {kind} {value}, ptr {pointer}")
    return pointer


@contextmanager
def in_turn(text: Text, start: str, stop: str, step: str, kind: str = "i64") -> Iterator[str]:
    """Print a loop `for index in range(start, stop, step)` over the share of one thread or block: mostly one index.

    Empty inline assembly hides from LLVM how the index advances, so that it does not keep a register for each address
    that could be incremented.
    """
    position = variable(text, kind, start)
    head, body, done = (text.fresh(stem) for stem in ("head", "body", "done"))
    text.emit(f"br label %{head}")
    text.start(head)
    index = text.let(f"load {kind}, ptr {position}", "i")
    text.emit(f"br i1 {text.let(f'icmp slt {kind} {index}, {stop}')}, label %{body}, label %{done}")
    text.start(body)
    yield index
    hidden = text.let(f'call {kind} asm "", "={_REGISTER[kind]},0"({kind} {index})')
    text.emit(f"store {kind} {text.let(f'add {kind} {hidden}, {step}')}, ptr {position}")
    text.emit(f"br label %{head}")
    text.start(done)


def barrier(text: Text) -> None:
    """Print a barrier, at which all threads of the block wait for each other."""
    text.emit("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)")
