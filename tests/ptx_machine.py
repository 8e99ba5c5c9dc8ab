"""A small machine that runs PTX as LLVM prints it, so that tests need no GPU: all threads of a block in lockstep.

Of the threads, those at the earliest instruction go on together, as one array operation; at a barrier they wait for the
block, at a shuffle for their warp. Each register is a column of 64-bit words, memory one byte array. It knows the
instructions that minga's kernels use and refuses others; their meaning is from NVIDIA's "PTX ISA". Where PTX leaves
something open (the integer that a NaN becomes in 64 bits) it gives a value that a careless kernel would notice.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import itertools
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.generic]
SHARED = 1 << 44
WARP = 32


class Memory:
    """The device's memory. Addresses start at 256, so that 0 is none of them."""

    def __init__(self, size: int = 1 << 20) -> None:
        self.bytes = np.zeros(size, np.uint8)
        self._end = 256

    def put(self, array: np.ndarray) -> int:
        """Copy an array into fresh memory, and return its address."""
        address, data = self._end, np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        self.bytes[address : address + data.size] = data
        self._end = -(-(address + data.size) // 256) * 256 + 256
        return address

    def get(self, address: int, like: np.ndarray) -> np.ndarray:
        """The memory at an address, as an array of the shape and type of another."""
        return self.bytes[address : address + like.nbytes].copy().view(like.dtype).reshape(like.shape)


@dataclass(frozen=True, slots=True)
class Instruction:
    guard: str
    op: tuple[str, ...]
    operands: tuple[str, ...]


Watch = Callable[[Instruction, Column], object]


@dataclass
class Code:
    """A kernel taken apart."""

    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    targets: dict[str, list[str]] = field(default_factory=dict)
    generic: bool = False
    shared_bytes: int = 0
    local_bytes: int = 0

    @classmethod
    def parse(cls, ptx: str) -> Code:
        code = cls()
        body = ptx[ptx.index("\n{") + 2 : ptx.rindex("}")]
        body = re.sub(r"//.*", "", body)
        for name, labels in re.findall(r"(\$\w+): \.branchtargets([^;]*);", body):
            code.targets[name] = re.findall(r"\$\w+", labels)
        body = re.sub(r"\$\w+: \.branchtargets[^;]*;", "", body)
        for name, size in re.findall(r"\.shared \.align \d+ \.b8 (\w+)\[(\d+)\]", ptx):
            code.shared[name] = SHARED + code.shared_bytes
            code.shared_bytes += int(size)
        for size in re.findall(r"\.local \.align \d+ \.b8\s+\w+\[(\d+)\]", body):
            code.local_bytes += int(size)
        pattern = r"\.global \.align \d+ \.(b\d+) (\w+)\[\d+\] = \{([^}]*)\}"
        for kind, name, entries in re.findall(pattern, ptx):
            words = np.array([int(entry, 0) & (2**64 - 1) for entry in entries.split(",")], np.uint64)
            code.constants[name] = words.astype(f"u{bits_of(kind) // 8}")
        for line in re.split(r";|\n", re.sub(r"[{] \.reg[^;]*;(.*)[}]\n", r"\1\n", body)):
            code._add(line.strip())
        return code

    def _add(self, line: str) -> None:
        if label := re.match(r"(\$\w+):$", line):
            self.labels[label[1]] = len(self.instructions)
        elif line and line[0] not in ".{}":
            parts = re.match(r"(?:@(!?%p\d+)\s+)?(\S+)\s*(.*)", line)
            assert parts, line
            operands = tuple(re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", parts[3]))
            self.instructions.append(Instruction(parts[1] or "", tuple(parts[2].split(".")), operands))


def run(
    ptx: str,
    memory: Memory,
    params: Sequence[int],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    *,
    order: Literal["together", "first", "last"] = "together",
    watch: Watch | None = None,
    generic: bool = False,
) -> None:
    """Launch a kernel; blocks run one after the other. `watch` sees each instruction, and which threads do it.

    order: whether a block's warps run together, or the first or last of them as far as it can before another does: a
    kernel whose warps do not wait for each other where they should gives wrong results then.
    generic: whether addresses may tell by themselves what memory is meant, which takes a GPU longer.
    """
    code = Code.parse(ptx)
    code.generic = generic
    code.shared |= {name: memory.put(entries) for name, entries in code.constants.items()}
    for z, y, x in itertools.product(*(range(n) for n in reversed(grid))):
        with np.errstate(all="ignore"):
            _Block(code, memory, params, grid, block, (x, y, z), watch).run(order)


# Types ---------------------------------------------------------------------------------------------------------------
def bits_of(kind: str) -> int:
    return 1 if kind == "pred" else int(kind[1:])


def read_as(kind: str, words: Column) -> Column:
    """The low bits of 64-bit words as values of a PTX type."""
    if kind == "pred":
        return words.astype(bool)
    bits = bits_of(kind)
    raw = words.astype(f"u{bits // 8}")
    return raw.view(f"{ {'f': 'f', 's': 'i'}.get(kind[0], 'u') }{bits // 8}")


def words_of(values: Column, *, signed: bool = False) -> Column:
    """Values of any type as 64-bit words, zeros above; `signed` repeats the sign there."""
    if values.dtype == bool:
        return values.astype(np.uint64)
    if signed:
        return values.astype(np.int64).view(np.uint64)
    return values.view(f"u{values.dtype.itemsize}").astype(np.uint64)


# Operations ----------------------------------------------------------------------------------------------------------
def _fma(a: Column, b: Column, c: Column) -> Column:
    function = getattr(ctypes.CDLL(ctypes.util.find_library("m")), "fma" if a.dtype == np.float64 else "fmaf")
    number = ctypes.c_double if a.dtype == np.float64 else ctypes.c_float
    function.restype, function.argtypes = number, [number] * 3
    return np.array([function(*item) for item in zip(a.tolist(), b.tolist(), c.tolist())], a.dtype)


def _extreme(op: tuple[str, ...], a: Column, b: Column) -> Column:
    """PTX: of a number and a NaN the number, with .NaN the NaN; -0 < +0."""
    lower = op[0] == "min"
    if a.dtype.kind != "f":
        return np.minimum(a, b) if lower else np.maximum(a, b)
    first = np.where(a == b, np.signbit(a) == lower, a < b if lower else a > b)
    result = np.where(first, a, b)
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    if "NaN" in op:
        return np.where(nan_a | nan_b, a.dtype.type(np.nan), result)
    return np.where(nan_a, b, np.where(nan_b, a, result))


def _shift(op: tuple[str, ...], a: Column, count: Column) -> Column:
    """Counts beyond the width are like the width."""
    bits = a.dtype.itemsize * 8
    far, count = count >= bits, np.minimum(count, bits - 1).astype(a.dtype)
    if op[0] == "shl":
        return np.where(far, a.dtype.type(0), a << count)
    return np.where(far, np.where(a < 0, a.dtype.type(-1 if a.dtype.kind == "i" else 0), a.dtype.type(0)), a >> count)


def _quotient(a: Column, b: Column) -> Column:
    """Truncated towards zero. PTX leaves division by zero open; minga never divides integers by it."""
    assert (b != 0).all(), "integer division by zero"
    quotient = a // b
    return np.where((quotient < 0) & (quotient * b != a), quotient + a.dtype.type(1), quotient)


_ROUND: dict[str, Callable[[Column], Column]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_COMPARE: dict[str, Callable[[Column, Column], Column]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


def _compare(test: str, a: Column, b: Column) -> Column:
    nan = (np.isnan(a) | np.isnan(b)) if a.dtype.kind == "f" else np.zeros(a.shape, bool)
    if test in ("nan", "num"):
        return nan == (test == "nan")
    if test[-1] == "u" and len(test) == 3:
        return nan | _COMPARE[test[:2]](a, b)
    return ~nan & _COMPARE[test](a, b)


def convert(op: tuple[str, ...], words: Column) -> Column:
    """The result of a cvt, as words."""
    to, of, rounding = op[-2], op[-1], op[1]
    assert not {"ftz", "sat"} & set(op), op
    values = read_as(of, words)
    if of[0] == "f" and to[0] == "f":
        if bits_of(to) == bits_of(of):
            return words_of(_ROUND[rounding](values))
        assert bits_of(to) > bits_of(of) or rounding == "rn", op
        return words_of(values.astype(f"f{bits_of(to) // 8}"))
    if to[0] == "f":
        assert rounding == "rn", op
        return words_of(values.astype(f"f{bits_of(to) // 8}"))
    if of[0] == "f":
        return words_of(_to_integer(_ROUND[rounding](values.astype(np.float64)), to))
    return words_of(read_as(to, words_of(values, signed=of[0] == "s")))


def _to_integer(whole: Column, to: str) -> Column:
    info = np.iinfo(f"{'i' if to[0] == 's' else 'u'}{bits_of(to) // 8}")
    inside = (whole > float(info.min)) & (whole < float(info.max + 1))
    result = np.where(inside, whole, 0.0).astype(info.dtype)
    result = np.where(whole >= float(info.max + 1), info.dtype.type(info.max), result)
    result = np.where(whole <= float(info.min), info.dtype.type(info.min), result)
    nan = info.dtype.type(0) if bits_of(to) < 64 else np.uint64(1 << 63).astype(info.dtype)
    return np.where(np.isnan(whole), nan, result)


def _reversed_bits(a: Column) -> Column:
    width = a.dtype.itemsize * 8
    return np.array([int(f"{int(word):0{width}b}"[::-1], 2) for word in a], a.dtype)


_PLAIN: dict[str, Callable[..., Column]] = {
    "add": operator.add, "sub": operator.sub, "div": np.divide, "neg": operator.neg, "abs": np.abs, "sqrt": np.sqrt,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": operator.invert, "fma": _fma,
    "clz": lambda a: (a.itemsize * 8 - np.frexp(a.astype(np.longdouble))[1]).astype(np.uint32),
    "brev": _reversed_bits,
    "popc": lambda a: np.bitwise_count(a).astype(a.dtype),
}  # fmt: skip
"""Of operands and result of the instruction's type."""


def calculate(op: tuple[str, ...], values: Callable[[str], list[Column]], words: list[Column]) -> Column:
    """The result of an instruction that only calculates; `values(type)` are its operands of that type."""
    kind = op[-1]
    if op[0] == "cvt":
        return convert(op, words[0])
    if op[0] in _INTEGER and kind[0] != "f":
        return words_of(_INTEGER[op[0]](op, values(kind), words))
    if op[0] in _ON_WORDS:
        return _ON_WORDS[op[0]](op, words)
    if op[0] in _OF_TYPE:
        return words_of(_OF_TYPE[op[0]](op, values(kind), words))
    if op[0] in _PLAIN:
        return words_of(_PLAIN[op[0]](*values(kind)))
    raise AssertionError(f"the machine does not know {'.'.join(op)}")


def _divided(op: tuple[str, ...], values: list[Column], words: list[Column]) -> Column:
    a, b = values
    quotient = _quotient(a, b)
    return quotient if op[0] == "div" else a - quotient * b


def _multiplied(op: tuple[str, ...], values: list[Column], words: list[Column]) -> Column:
    factors, kind = values, op[-1]
    if op[1] == "hi":
        assert (op[0], kind) in (("mul", "u16"), ("mul", "u32")), op
        return factors[0].astype(np.uint64) * factors[1] >> np.uint64(bits_of(kind))
    if op[1] == "wide":
        factors[:2] = [f.astype(np.int64 if kind[0] == "s" else np.uint64) for f in factors[:2]]
        factors[2:] = [words[2].view(factors[0].dtype)] if op[0] == "mad" else []
    else:
        assert op[1] == "lo", op
    product = factors[0] * factors[1]
    return product + factors[2] if op[0] == "mad" else product


def _funnel(op: tuple[str, ...], words: list[Column]) -> Column:
    """The high word of (words[1]:words[0]) << count, or the low one of >> count."""
    count = words[2] & np.uint64(31)
    pair = words[1] << np.uint64(32) | words[0] & np.uint64(0xFFFFFFFF)
    assert op[2] == "wrap", op
    result = (pair << count) >> np.uint64(32) if op[1] == "l" else pair >> count
    return result & np.uint64(0xFFFFFFFF)


def _extracted(op: tuple[str, ...], words: list[Column]) -> Column:
    start, length = words[1], words[2]
    assert op[-1][0] == "u", op
    return (words[0] >> start) & ((np.uint64(1) << length) - np.uint64(1))


def _compared(op: tuple[str, ...], values: list[Column], words: list[Column]) -> Column:
    result = _compare(op[1], *values[:2])
    return _PLAIN[op[2]](result, words[2].astype(bool)) if len(op) == 4 else result


_INTEGER: dict[str, Callable[[tuple[str, ...], list[Column], list[Column]], Column]] = {
    "div": _divided, "rem": _divided, "mul": _multiplied, "mad": _multiplied,
}  # fmt: skip
"""Of integers, where numbers need another instruction."""
_ON_WORDS: dict[str, Callable[[tuple[str, ...], list[Column]], Column]] = {
    "shf": _funnel, "bfe": _extracted,
    "selp": lambda op, words: np.where(words[2].astype(bool), words[0], words[1]),
}  # fmt: skip
_OF_TYPE: dict[str, Callable[[tuple[str, ...], list[Column], list[Column]], Column]] = {
    "mul": lambda op, values, words: values[0] * values[1],
    "min": lambda op, values, words: _extreme(op, *values),
    "max": lambda op, values, words: _extreme(op, *values),
    "shl": lambda op, values, words: _shift(op, values[0], read_as("u32", words[1])),
    "shr": lambda op, values, words: _shift(op, values[0], read_as("u32", words[1])),
    "setp": _compared,
    "copysign": lambda op, values, words: np.copysign(values[1], values[0]),
}


# A block -------------------------------------------------------------------------------------------------------------
class _Block:
    def __init__(
        self,
        code: Code,
        memory: Memory,
        params: Sequence[int],
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        number: tuple[int, int, int],
        watch: Watch | None,
    ) -> None:
        self.watch = watch
        self.code, self.memory, self.params = code, memory, params
        self.count = block[0] * block[1] * block[2]
        thread = np.arange(self.count)
        tid = (thread % block[0], thread // block[0] % block[1], thread // (block[0] * block[1]))
        self.registers: dict[str, Column] = {}
        for axis, d in enumerate("xyz"):
            self.registers[f"%tid.{d}"] = tid[axis].astype(np.uint64)
            for name, value in (("ntid", block[axis]), ("ctaid", number[axis]), ("nctaid", grid[axis])):
                self.registers[f"%{name}.{d}"] = np.full(self.count, value, np.uint64)
        self.shared = np.full(code.shared_bytes, 0xAB, np.uint8)
        self.borrow = np.zeros(self.count, np.uint64)
        self.local = np.full((self.count, max(1, code.local_bytes)), 0xCD, np.uint8)
        self.place = np.zeros(self.count, np.int64)

    def run(self, order: str) -> None:
        code = self.code.instructions
        waits = np.array([{"bar": self.count, "shfl": WARP}.get(item.op[0], 0) for item in code] + [self.count])
        while (self.place < len(code)).any():
            ready = np.flatnonzero(waits[self.place] == 0)
            if ready.size:
                if order != "together":
                    ready = ready[ready // WARP == ready[0 if order == "first" else -1] // WARP]
                place = int(self.place[ready].min())
                self.step(code[place], ready[self.place[ready] == place], place)
                continue
            for place in np.unique(self.place):
                at = np.flatnonzero(self.place == place)
                _, group, sizes = np.unique(at // waits[place], return_inverse=True, return_counts=True)
                at = at[(sizes == waits[place])[group]]
                if at.size and place < len(code):
                    self.step(code[place], at, int(place))
                    break
            else:
                raise AssertionError("threads wait for others that never come")

    def step(self, instruction: Instruction, at: Column, place: int) -> None:
        self.place[at] = place + 1
        if instruction.guard:
            wanted = instruction.guard[0] != "!"
            at = at[self.registers[instruction.guard.lstrip("!")][at].astype(bool) == wanted]
            if not at.size:
                return
        if self.watch is not None:
            self.watch(instruction, at)
        op, operands = instruction.op, instruction.operands
        if op[0] in ("bra", "brx", "ret"):
            self._branch(op, operands, at)
        elif op[0] in _HANDLERS:
            _HANDLERS[op[0]](self, op, operands, at)
        elif op[0] in ("sub", "subc") and "cc" in op:
            self._subtract(op, operands, at)
        elif op[0] != "bar":
            words = [self.value(operand, at) for operand in operands[1:]]
            result = calculate(op, lambda kind: [read_as(kind, word) for word in words], words)
            self.set(operands[0], at, result)

    def _branch(self, op: tuple[str, ...], operands: tuple[str, ...], at: Column) -> None:
        match op[0]:
            case "bra":
                self.place[at] = self.code.labels[operands[0]]
            case "brx":
                labels = self.code.targets[operands[1]]
                self.place[at] = [self.code.labels[labels[int(k)]] for k in self.value(operands[0], at)]
            case "ret":
                self.place[at] = len(self.code.instructions)

    def _subtract(self, op: tuple[str, ...], operands: tuple[str, ...], at: Column) -> None:
        """A subtraction that borrows."""
        a, b = (self.value(operand, at) for operand in operands[1:])
        less = self.borrow[at] if op[0] == "subc" else np.zeros(at.size, np.uint64)
        self.set(operands[0], at, a - b - less)
        self.borrow[at] = (a < b) | ((a == b) & (less > 0))

    # Registers -----------------------------------------------------------------------------------------------------
    def value(self, operand: str, at: Column) -> Column:
        if operand[0] == "%":
            return self.registers[operand][at]
        if operand[:2] in ("0f", "0d"):
            word = int(operand[2:], 16)
        elif operand in self.code.shared:
            word = self.code.shared[operand]
        elif operand.startswith("__local_depot"):
            word = 0
        else:
            word = int(operand, 0) & (2**64 - 1)
        return np.full(at.size, word, np.uint64)

    def set(self, register: str, at: Column, words: Column) -> None:
        if register == "_":
            return
        if register not in self.registers:
            self.registers[register] = np.full(self.count, 0xDEAD, np.uint64)
        assert words.dtype == np.uint64, (register, words.dtype)
        self.registers[register][at] = words

    def _move(self, op: tuple[str, ...], operands: tuple[str, ...], at: Column) -> None:
        target, source = operands
        if source[0] == "{":
            parts = [self.value(part, at) for part in re.split(r"[\s,]+", source.strip("{} "))]
            width = bits_of(op[-1]) // len(parts)
            places = [part << np.uint64(width * k) for k, part in enumerate(parts)]
            self.set(target, at, np.bitwise_or.reduce(places))
        elif target[0] == "{":
            parts, word = re.split(r"[\s,]+", target.strip("{} ")), self.value(source, at)
            width = bits_of(op[-1]) // len(parts)
            for k, part in enumerate(parts):
                self.set(part, at, word >> np.uint64(width * k) & np.uint64((1 << width) - 1))
        else:
            self.set(target, at, self.value(source, at))

    def _shuffle(self, op: tuple[str, ...], operands: tuple[str, ...], at: Column) -> None:
        assert op[:2] == ("shfl", "sync"), op
        assert op[2] in ("down", "idx"), op
        assert operands[3:] == ("31", "-1"), operands
        source = int(operands[2]) + (at if op[2] == "down" else at // WARP * WARP)
        source = np.where(source // WARP == at // WARP, source, at)
        self.set(operands[0], at, self.registers[operands[1]][source])

    # Memory --------------------------------------------------------------------------------------------------------
    def _place(self, op: tuple[str, ...], operand: str, at: Column, width: int) -> tuple[NDArray[np.uint8], Column]:
        """The bytes of a memory and, for each thread, the numbers of those that it accesses."""
        base, _, offset = operand.strip("[] ").partition("+")
        address = self.value(base, at) + np.uint64(int(offset or 0) & (2**64 - 1))
        assert not (address % np.uint64(width)).any(), f"{operand}: not aligned"
        generic = self.code.generic and "global" not in op
        if "local" in op:
            memory, start = self.local.reshape(-1), at * self.local.shape[1] + address.astype(np.int64)
            assert (address + np.uint64(width) <= self.code.local_bytes).all()
        elif "shared" in op or (generic and (address >> np.uint64(16) == SHARED >> 16).all()):
            memory, start = self.shared, address.astype(np.int64) - SHARED
        else:
            assert "global" in op or generic, f"{'.'.join(op)}: of what memory?"
            memory, start = self.memory.bytes, address.astype(np.int64)
        assert (start >= 0).all()
        assert (start + width <= memory.size).all(), "outside the memory"
        return memory, start[:, None] + np.arange(width)

    def _load(self, op: tuple[str, ...], operands: tuple[str, ...], at: Column) -> None:
        if op[1] == "param":
            self.set(operands[0], at, np.full(at.size, self.params[int(operands[1].strip("[]")[-1])], np.uint64))
            return
        targets = re.split(r"[\s,]+", operands[0].strip("{} "))
        width = bits_of(op[-1]) // 8
        memory, cells = self._place(op, operands[1], at, width * len(targets))
        loaded = memory[cells]
        for k, target in enumerate(targets):
            part = np.ascontiguousarray(loaded[:, k * width : (k + 1) * width]).view(f"u{width}")[:, 0]
            self.set(target, at, words_of(read_as(op[-1], words_of(part)), signed=op[-1][0] == "s"))

    def _store(self, op: tuple[str, ...], operands: tuple[str, ...], at: Column) -> None:
        sources = re.split(r"[\s,]+", operands[1].strip("{} "))
        width = bits_of(op[-1]) // 8
        memory, cells = self._place(op, operands[0], at, width * len(sources))
        parts = [self.value(source, at).astype(f"u{width}")[:, None].view(np.uint8) for source in sources]
        memory[cells] = np.concatenate(parts, axis=1)

    def _atomic(self, op: tuple[str, ...], operands: tuple[str, ...], at: Column) -> None:
        kind = op[-1]
        assert bits_of(kind) == 64, op
        memory, cells = self._place(op, operands[1], at, 8)
        values = [self.value(operand, at) for operand in operands[2:]]
        words, old = memory.view(np.uint64) if memory.size % 8 == 0 else None, np.zeros(at.size, np.uint64)
        assert words is not None
        for k, word in enumerate(cells[:, 0] // 8):
            old[k] = words[word]
            a, b = read_as(kind, old[k : k + 1]), read_as(kind, values[0][k : k + 1])
            match op[-2]:
                case "add":
                    words[word] = words_of(a + b)[0]
                case "max":
                    words[word] = words_of(np.maximum(a, b))[0]
                case "cas":
                    words[word] = values[1][k] if a[0] == b[0] else old[k]
                case _:
                    raise AssertionError(f"the machine does not know {'.'.join(op)}")
        self.set(operands[0], at, old)


_HANDLERS: dict[str, Callable[[_Block, tuple[str, ...], tuple[str, ...], Column], None]] = {
    "ld": _Block._load, "st": _Block._store, "atom": _Block._atomic, "red": _Block._atomic, "shfl": _Block._shuffle,
    "mov": _Block._move, "cvta": _Block._move,
}  # fmt: skip
