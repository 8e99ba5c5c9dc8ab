"""Construction of small native functions of 64-bit words in Python: the engine's own code, not traced kernels.

    code = Code(module, "add_up", 2)                # void add_up(int64 numbers, int64 count)
    numbers, count = code.arguments
    total = code.variable(0)
    with code.loop(count) as i:
        total.set(total.get() + code.load(numbers + i * 8))

A `Word` is a 64-bit integer expression that LLVM evaluates; `+ - * & | ^ << >>` and comparisons work on words as they
do on C's int64_t (`>>` keeps the sign, comparisons give 0 or 1). Addresses are words too.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from llvmlite import ir

from minga.compile.cache import default_cache, object_key
from minga.compile.jit import Loaded, object_code
from minga.compile.target import host_target

I64 = ir.IntType(64)
Ordering = Literal["monotonic", "acquire", "release", "acq_rel", "seq_cst"]


class Word:
    """A 64-bit integer computed by the function under construction."""

    __slots__ = ("code", "value")

    def __init__(self, code: Code, value: ir.Value) -> None:
        self.code = code
        self.value = value

    def _operate(self, operation: str, other: Word | int) -> Word:
        emit = getattr(self.code.builder, operation)
        return Word(self.code, emit(self.value, self.code.word(other).value))

    def __add__(self, other: Word | int) -> Word:
        return self._operate("add", other)

    def __sub__(self, other: Word | int) -> Word:
        return self._operate("sub", other)

    def __mul__(self, other: Word | int) -> Word:
        return self._operate("mul", other)

    def __and__(self, other: Word | int) -> Word:
        return self._operate("and_", other)

    def __or__(self, other: Word | int) -> Word:
        return self._operate("or_", other)

    def __xor__(self, other: Word | int) -> Word:
        return self._operate("xor", other)

    def __lshift__(self, other: Word | int) -> Word:
        return self._operate("shl", other)

    def __rshift__(self, other: Word | int) -> Word:
        return self._operate("ashr", other)

    def shift_in_zeros(self, other: Word | int) -> Word:
        """Shift to the right as an unsigned number."""
        return self._operate("lshr", other)

    def quotient(self, other: Word | int) -> Word:
        """Divide as unsigned numbers, rounding down."""
        return self._operate("udiv", other)

    def remainder(self, other: Word | int) -> Word:
        """Return the remainder of that division."""
        return self._operate("urem", other)

    def _compare(self, relation: str, other: Word | int, *, unsigned: bool = False) -> Word:
        builder = self.code.builder
        emit = builder.icmp_unsigned if unsigned else builder.icmp_signed
        bit = emit(relation, self.value, self.code.word(other).value)
        return Word(self.code, builder.zext(bit, I64))

    def __lt__(self, other: Word | int) -> Word:
        return self._compare("<", other)

    def __le__(self, other: Word | int) -> Word:
        return self._compare("<=", other)

    def __gt__(self, other: Word | int) -> Word:
        return self._compare(">", other)

    def __ge__(self, other: Word | int) -> Word:
        return self._compare(">=", other)

    def equals(self, other: Word | int) -> Word:
        """Return 1 if both words are equal, otherwise 0."""
        return self._compare("==", other)

    def differs(self, other: Word | int) -> Word:
        """Return 1 if the words differ, otherwise 0."""
        return self._compare("!=", other)

    def above(self, other: Word | int) -> Word:
        """Return 1 if this word is greater, comparing both as unsigned numbers."""
        return self._compare(">", other, unsigned=True)


class Variable:
    """A word of the function whose value can change."""

    __slots__ = ("_code", "_place")

    def __init__(self, code: Code, place: ir.Value) -> None:
        self._code = code
        self._place = place

    def get(self) -> Word:
        """Return the current value."""
        return Word(self._code, self._code.builder.load(self._place, typ=I64))

    def set(self, value: Word | int) -> None:
        """Assign a value."""
        self._code.builder.store(self._code.word(value).value, self._place)


class Code:
    """One native function under construction: `name(arguments words)`, returning a word or nothing."""

    def __init__(self, module: ir.Module, name: str, arguments: int, *, returns: bool = False) -> None:
        kind = ir.FunctionType(I64 if returns else ir.VoidType(), [I64] * arguments)
        self.function = ir.Function(module, kind, name)
        self._entry = self.function.append_basic_block("entry")
        body = self.function.append_basic_block("body")
        self._allocations = ir.IRBuilder(self._entry)
        self._allocations.position_before(self._allocations.branch(body))
        self.builder = ir.IRBuilder(body)
        self.arguments = [Word(self, argument) for argument in self.function.args]

    # values ----------------------------------------------------------------------------------------------------------
    def word(self, value: Word | int) -> Word:
        """Return `value` as a word; an int is taken modulo 2**64."""
        return value if isinstance(value, Word) else Word(self, ir.Constant(I64, value & 0xFFFFFFFFFFFFFFFF))

    def variable(self, initial: Word | int) -> Variable:
        """Allocate a variable with an initial value."""
        variable = Variable(self, self._allocations.alloca(I64))
        variable.set(initial)
        return variable

    def memory(self, words: int) -> Word:
        """Return the address of `words` words that are local to this call."""
        place = self._allocations.alloca(ir.ArrayType(I64, words))
        return Word(self, self.builder.ptrtoint(place, I64))

    def local(self, kind: ir.Type) -> ir.Value:
        """Return a pointer to a value of another type than a word that is local to this call."""
        return self._allocations.alloca(kind)

    def select(self, condition: Word, yes: Word | int, no: Word | int) -> Word:
        """Return `yes` if the condition is non-zero, otherwise `no`."""
        return Word(self, self.builder.select(self._bit(condition), self.word(yes).value, self.word(no).value))

    def intrinsic(self, name: str, *arguments: Word | int) -> Word:
        """Call an LLVM intrinsic of words, such as llvm.smax.i64."""
        kind = ir.FunctionType(I64, [I64] * len(arguments))
        function = self._declare(name, kind)
        return Word(self, self.builder.call(function, [self.word(argument).value for argument in arguments]))

    def effect(self, name: str, *arguments: ir.Value) -> None:
        """Call an LLVM intrinsic that has no result."""
        function = self._declare(name, ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments]))
        self.builder.call(function, arguments)

    def pause(self) -> None:
        """Tell the processor that this thread is spinning."""
        if platform.machine() == "x86_64":
            self.effect("llvm.x86.sse2.pause")
        else:
            self.effect("llvm.aarch64.hint", ir.Constant(ir.IntType(32), 1))

    def leading_zeros(self, value: Word) -> Word:
        """Return the number of leading zero bits; 64 for 0."""
        return Word(self, self.builder.ctlz(value.value, ir.Constant(ir.IntType(1), 0)))

    def trailing_zeros(self, value: Word) -> Word:
        """Return the number of trailing zero bits; 64 for 0."""
        return Word(self, self.builder.cttz(value.value, ir.Constant(ir.IntType(1), 0)))

    # memory ----------------------------------------------------------------------------------------------------------
    def load_unaligned(self, address: Word) -> Word:
        """Load a word from an address of any alignment."""
        return Word(self, self.builder.load(self._pointer(address), align=1, typ=I64))

    def load(self, address: Word, bits: int = 64) -> Word:
        """Load a number of `bits` bits from `address`, zero-extended."""
        kind = ir.IntType(bits)
        value = self.builder.load(self._pointer(address), align=1 if bits < 64 else 8, typ=kind)
        return Word(self, value if bits == 64 else self.builder.zext(value, I64))

    def store(self, value: Word | int, address: Word, bits: int = 64) -> None:
        """Store the lowest `bits` bits of a word at `address`."""
        word = self.word(value).value
        narrow = word if bits == 64 else self.builder.trunc(word, ir.IntType(bits))
        self.builder.store(narrow, self._pointer(address), align=1 if bits < 64 else 8)

    def load_as(self, address: Word, kind: ir.Type, align: int | None = None) -> ir.Value:
        """Load a value of another type than a word, by default from an address that is a multiple of its size."""
        return self.builder.load(self._pointer(address), align=align, typ=kind)

    def store_value(self, value: ir.Value, address: Word, align: int | None = None) -> ir.Instruction:
        """Store a value of another type than a word, by default at an address that is a multiple of its size."""
        return self.builder.store(value, self._pointer(address), align=align)

    def prefetch(self, address: Word) -> None:
        """Fetch the line of an address, which may be invalid, into the second cache."""
        hints = [ir.Constant(ir.IntType(32), value) for value in (0, 2, 1)]  # to read; locality; data
        self.effect("llvm.prefetch.p0", self._pointer(address), *hints)

    def copy(self, source: Word, target: Word, size: Word) -> None:
        """Copy `size` bytes between memory areas that do not overlap."""
        places = self._pointer(target), self._pointer(source)
        self.effect("llvm.memcpy.p0.p0.i64", *places, size.value, ir.Constant(ir.IntType(1), 0))

    def copy_item(self, source: Word, target: Word, size: int) -> None:
        """Copy one item of `size` bytes, a power of two, at any alignment."""
        kind = ir.IntType(8 * size)
        value = self.builder.load(self._pointer(source), align=1, typ=kind)
        self.builder.store(value, self._pointer(target), align=1)

    def lines_differ(self, one: Word, other: Word) -> Word:
        """Return 1 if the 64 bytes at two addresses of any alignment differ."""
        kind, builder = ir.IntType(512), self.builder
        a, b = (builder.load(self._pointer(place), align=1, typ=kind) for place in (one, other))
        return Word(self, builder.zext(builder.icmp_unsigned("!=", a, b), I64))

    def atomic_load(self, address: Word, ordering: Ordering) -> Word:
        """Load a word atomically."""
        return Word(self, self.builder.load_atomic(self._word_pointer(address), ordering, 8))

    def atomic_store(self, value: Word | int, address: Word, ordering: Ordering) -> None:
        """Store a word atomically."""
        self.builder.store_atomic(self.word(value).value, self._word_pointer(address), ordering, 8)

    def atomic(
        self, operation: Literal["add", "sub", "and"], address: Word, value: Word | int, order: Ordering
    ) -> Word:
        """Modify the word at `address` atomically; return its previous value."""
        old = self.builder.atomic_rmw(operation, self._word_pointer(address), self.word(value).value, order)
        return Word(self, old)

    def compare_exchange(self, address: Word, expected: Word, new: Word) -> Word:
        """Replace the word at `address` by `new` if it equals `expected`; return 1 if it did."""
        pair = self.builder.cmpxchg(
            self._word_pointer(address), expected.value, new.value, ordering="acq_rel", failordering="monotonic"
        )
        return Word(self, self.builder.zext(self.builder.extract_value(pair, 1), I64))

    # flow ------------------------------------------------------------------------------------------------------------
    @contextmanager
    def when(self, condition: Word) -> Iterator[None]:
        """Execute the body if the condition is non-zero."""
        with self.builder.if_then(self._bit(condition)):
            yield

    @contextmanager
    def either(self, condition: Word) -> Iterator[tuple[Any, Any]]:
        """Branch on a condition: `with code.either(c) as (yes, no)`, then `with yes:` and `with no:`."""
        with self.builder.if_else(self._bit(condition)) as branches:
            yield branches

    @contextmanager
    def repeat(self, condition: Callable[[], Word]) -> Iterator[None]:
        """Repeat the body while the condition, evaluated before each iteration, is non-zero."""
        head = self.builder.append_basic_block("while")
        body = self.builder.append_basic_block("do")
        done = self.builder.append_basic_block("done")
        self.builder.branch(head)
        self.builder.position_at_end(head)
        self.builder.cbranch(self._bit(condition()), body, done)
        self.builder.position_at_end(body)
        yield
        self.builder.branch(head)
        self.builder.position_at_end(done)

    @contextmanager
    def loop(self, count: Word | int) -> Iterator[Word]:
        """Repeat the body for 0, 1, ..., count - 1."""
        index = self.variable(0)
        limit = self.word(count)
        with self.repeat(lambda: index.get() < limit):
            i = index.get()
            yield i
            index.set(i + 1)

    @contextmanager
    def switch(self, value: Word) -> Iterator[Callable[[int], Any]]:
        """Branch on a number: `with code.switch(x) as case`, then `with case(3):`; other numbers do nothing."""
        done = self.builder.append_basic_block("switched")
        choice = self.builder.switch(value.value, done)

        @contextmanager
        def case(number: int) -> Iterator[None]:
            block = self.builder.append_basic_block(f"case{number}")
            choice.add_case(ir.Constant(I64, number), block)
            self.builder.position_at_end(block)
            yield
            self.builder.branch(done)

        yield case
        self.builder.position_at_end(done)

    def call(self, function: Word | Code, *arguments: Word | int, returns: Literal[0, 32, 64] = 0) -> Word:
        """Call a function of words, by address or as code of the same module. A 32-bit result is zero-extended."""
        values = [self.word(argument).value for argument in arguments]
        if isinstance(function, Code):
            result = self.builder.call(function.function, values)
        else:
            kind = ir.FunctionType(ir.IntType(returns) if returns else ir.VoidType(), [I64] * len(values))
            # The callee's type is given by a pointer to its function type.
            pointer = self.builder.inttoptr(function.value, ir.PointerType(kind))
            result = self.builder.call(pointer, values)
        if returns == 32:
            result = self.builder.zext(result, I64)
        return Word(self, result)

    def finish(self, result: Word | None = None) -> None:
        """End the function."""
        if result is None:
            self.builder.ret_void()
        else:
            self.builder.ret(result.value)

    def _bit(self, condition: Word) -> ir.Value:
        return self.builder.icmp_unsigned("!=", condition.value, ir.Constant(I64, 0))

    def _pointer(self, address: Word) -> ir.Value:
        return self.builder.inttoptr(address.value, ir.PointerType())

    def _word_pointer(self, address: Word) -> ir.Value:
        return self.builder.inttoptr(address.value, ir.PointerType(I64))

    def _declare(self, name: str, kind: ir.FunctionType) -> ir.Function:
        module = self.function.module
        return module.globals[name] if name in module.globals else ir.Function(module, kind, name)


def load(module: ir.Module, functions: Sequence[Code]) -> tuple[dict[str, int], object]:
    """Compile a module for this machine.

    Return the addresses of its functions by name, and an object that must live as long as they are used.
    """
    names = [code.function.name for code in functions]
    table = Code(module, f"{module.name}_functions", 1)
    for number, code in enumerate(functions):
        address = Word(table, table.builder.ptrtoint(code.function, I64))
        table.store(address, table.arguments[0] + 8 * number)
    table.finish()
    loaded = Loaded(_object(str(module), module.name), table.function.name)
    addresses = np.zeros(len(names), np.int64)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address)(addresses.ctypes.data)
    return dict(zip(names, addresses.tolist(), strict=True)), loaded


def _object(text: str, name: str) -> bytes:
    """Return the module's machine code, from the cache if possible."""
    target, cache = host_target(), default_cache()
    key = object_key(hashlib.sha256(text.encode()).hexdigest(), target, "engine")
    code = cache.load(key) if cache else None
    if code is None:
        code = object_code(text, target)
        if cache:
            cache.store(key, code, {"kernel": name, "cpu": target.cpu})
    return code
