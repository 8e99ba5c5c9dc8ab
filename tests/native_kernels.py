"""Small native kernels for testing what runs kernels."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from llvmlite import ir

from minga.engine.emit import Code, load


@dataclass(frozen=True, slots=True)
class TestKernels:
    """Addresses of `void f(int64 *args, int64 tile, int64 *worker)`.

    visit   args: a table; word `tile` of the table counts visits, and the word behind the args sums worker numbers
    append  args: a log, a value; log[0] counts its entries, which follow; the value is appended
    slow    args: a table, rounds; as visit, after so many rounds of work
    """

    __test__ = False
    visit: int
    append: int
    slow: int


@functools.cache
def _compiled() -> tuple[TestKernels, object]:
    module = ir.Module("test_kernels")
    addresses, owner = load(module, [_visit(module), _append(module), _slow(module)])
    return TestKernels(**addresses), owner


def kernels() -> TestKernels:
    return _compiled()[0]


def _visit(module: ir.Module) -> Code:
    code = Code(module, "visit", 3)
    args, tile, worker = code.arguments
    place = code.load(args) + tile * 8
    code.store(code.load(place) + 1, place)
    code.atomic("add", args + 8, code.load(worker), "monotonic")
    code.finish()
    return code


def _append(module: ir.Module) -> Code:
    code = Code(module, "append", 3)
    args = code.arguments[0]
    log = code.load(args)
    count = code.load(log) + 1
    code.store(count, log)
    code.store(code.load(args + 8), log + count * 8)
    code.finish()
    return code


def _slow(module: ir.Module) -> Code:
    code = Code(module, "slow", 3)
    args, tile, _ = code.arguments
    value = code.variable(tile)
    with code.loop(code.load(args + 8)):
        value.set((value.get() ^ value.get().shift_in_zeros(29)) * 6364136223846793005)
    place = code.load(args) + tile * 8
    code.store(code.load(place) + 1 + value.get().equals(12345), place)  # an unlikely value: the work must be done
    code.finish()
    return code
