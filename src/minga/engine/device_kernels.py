"""The engine's own kernels for a GPU and their launch sizes. They correspond to those of `minga.engine.helper_kernels`.

They are called as `kernel(int64 *args, int64 *worker)`, with the argument words of the functions for a CPU:

copy_boxes         x of the launch iterates over the cells of a box, y over the boxes
combine            combine_workers for one worker, whose accumulators are distributed over the threads of one block
arg_candidates     one thread
finish_reductions  one block, whose first thread does the work after clearing the flag; all threads copy limbs of float
                   sums to shared memory, because one thread would wait for them one by one
rotate             args[0] tables, [1] slots, then the tables' addresses: slot k of each becomes what slot k + 1 was;
                   the tables are distributed over the threads of one block
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from minga.compile.abi import KEY_EMPTY, SUM_NEGATIVE_INFINITY
from minga.compile.ptx import TRIPLE
from minga.engine import helper_kernels as kernels
from minga.engine.device import Helper, Size
from minga.engine.emit import Code, Word
from minga.engine.helper_kernels import COMBINE_WORDS, COPY_WORDS, HEADER_WORDS, NO_INDEX

__all__ = ["copy_launch", "entry", "helper_launch", "helper_ptx", "rotate_args"]

BLOCK: Final = 256
_UNITS: Final = (8, 4, 1)
_MOST_BLOCKS: Final = 1024
_MOST_BOXES: Final = 65535

_LIMBS: Final = SUM_NEGATIVE_INFINITY + 1  # words of a float sum's accumulator

_GLOBAL, _SHARED = 1, 3  # address spaces: a device's memory, and that of a block
_ONE: Final[Size] = (1, 1, 1)


def entry(name: Helper) -> str:
    """Return a kernel's name in the PTX."""
    return f"gpu_{name}"


@functools.cache
def helper_ptx(architecture: str) -> str:
    """Return the PTX of all kernels for a GPU architecture."""
    module = ir.Module("minga_device", context=ir.Context())
    module.triple = TRIPLE
    for make in (_copy_boxes, _combine, _arg_candidates, _finish_reductions, _rotate):
        make(module)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=architecture, opt=3)
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(parsed, builder)
    return str(machine.emit_assembly(parsed))


# Launches ------------------------------------------------------------------------------------------------------------
def copy_launch(args: np.ndarray) -> tuple[Size, Size]:
    """Return the grid and block sizes for arguments of `copy_boxes`."""
    records = args[HEADER_WORDS:].reshape(-1, COPY_WORDS)
    units = int((records[:, 12:16].prod(axis=1)).max(initial=1)) // _UNITS[0]
    return (max(1, min(-(-units // BLOCK), _MOST_BLOCKS)), max(1, min(len(records), _MOST_BOXES)), 1), (BLOCK, 1, 1)


def helper_launch(name: Helper, args: np.ndarray) -> tuple[Size, Size]:
    """Return the grid and block sizes for a kernel with these arguments."""
    if name == "copy_boxes":
        return copy_launch(args)
    return _ONE, (1 if name == "arg_candidates" else BLOCK, 1, 1)


def rotate_args(tables: Sequence[int], slots: int) -> np.ndarray:
    """Return the arguments of `rotate`."""
    return np.array([len(tables), slots, *tables], np.int64)


# Code ----------------------------------------------------------------------------------------------------------------
class _GlobalCode(Code):
    """Code without local memory, so that all addresses are known to be in the device's global memory."""

    def _pointer(self, address: Word) -> ir.Value:
        own = self.builder.inttoptr(address.value, ir.PointerType(addrspace=_GLOBAL))
        return self.builder.addrspacecast(own, ir.PointerType())


def _kernel(module: ir.Module, name: Helper, kind: type[Code] = _GlobalCode) -> Code:
    code = kind(module, entry(name), 2)
    code.function.calling_convention = "ptx_kernel"
    return code


def _special(code: Code, name: str) -> Word:
    """Read a special register, such as ``tid.x``."""
    full, module = f"llvm.nvvm.read.ptx.sreg.{name}", code.function.module
    kind = ir.FunctionType(ir.IntType(32), [])
    function = module.globals[full] if full in module.globals else ir.Function(module, kind, full)
    return Word(code, code.builder.zext(code.builder.call(function, []), ir.IntType(64)))


def _copy_boxes(module: ir.Module) -> None:
    code = _kernel(module, "copy_boxes")
    args = code.arguments[0]
    first = _special(code, "ctaid.x") * _special(code, "ntid.x") + _special(code, "tid.x")
    step = _special(code, "nctaid.x") * _special(code, "ntid.x")
    number, boxes, rows = code.variable(_special(code, "ctaid.y")), code.load(args), _special(code, "nctaid.y")
    with code.repeat(lambda: number.get() < boxes):
        _copy_box(code, args + 8 * HEADER_WORDS + number.get() * (8 * COPY_WORDS), first, step)
        number.set(number.get() + rows)
    code.finish()


def _copy_box(code: Code, record: Word, first: Word, step: Word) -> None:
    """Copy the cells of a box in units of the largest size that divides every offset, distributed over threads."""
    words = [code.load(record + 8 * number) for number in range(16)]
    source, target, shape = words[:6], words[6:12], words[12:16]
    row, column = shape[3], shape[2]
    whence, whither = code.load(source[0]) + source[1], code.load(target[0]) + target[1]
    low = whence | whither | row
    for stride in (*source[2:5], *target[2:5]):
        low = low | stride
    # 8 if everything is a multiple of 8, and so on; the smallest unit always fits.
    chosen = code.variable(1)
    for size in reversed(_UNITS):
        chosen.set(code.select((low & (size - 1)).equals(0), size, chosen.get()))
    for size in _UNITS:
        with code.when(chosen.get().equals(size)):
            across = row.quotient(size)
            cells = shape[0] * shape[1] * column * across
            at = code.variable(first)
            with code.repeat(lambda at=at, cells=cells: at.get() < cells):  # type: ignore[misc]
                rest, byte = at.get().quotient(across), at.get().remainder(across) * size
                rest, k = rest.quotient(column), rest.remainder(column)
                i, j = rest.quotient(shape[1]), rest.remainder(shape[1])
                _copy_unit(
                    code,
                    whence + i * source[2] + j * source[3] + k * source[4] + byte,
                    whither + i * target[2] + j * target[3] + k * target[4] + byte,
                    size,
                )
                at.set(at.get() + step)


def _copy_unit(code: Code, source: Word, target: Word, size: int) -> None:
    builder, kind = code.builder, ir.IntType(8 * size)
    value = builder.load(code._pointer(source), align=size, typ=kind)
    builder.store(value, code._pointer(target), align=size)


def _combine(module: ir.Module) -> None:
    code = _kernel(module, "combine")
    args, word = code.arguments[0], _special(code, "tid.x")
    with code.loop(code.load(args)) as number:
        record = args + 8 * HEADER_WORDS + number * (8 * COMBINE_WORDS)
        kind, source, words, target = (code.load(record + 8 * k) for k in range(4))
        with code.when(word < words):
            code.store(code.load(source + word * 8), target + word * 8)
            extreme = code.select(word.equals(0), KEY_EMPTY, NO_INDEX)
            code.store(code.select(kind.equals(kernels.COMBINE_ADD), 0, extreme), source + word * 8)
    code.finish()


def _arg_candidates(module: ir.Module) -> None:
    inner = kernels.arg_candidates(module)
    code = _kernel(module, "arg_candidates", Code)
    code.call(inner, code.arguments[0], 0, 0)
    code.finish()


def _finish_reductions(module: ir.Module) -> None:
    code = _kernel(module, "finish_reductions", Code)
    args, thread = code.arguments[0], _special(code, "tid.x")
    flag = code.load(args + 8)
    limbs, digits = _shared(code, "limbs", _LIMBS), _shared(code, "digits", kernels.DIGITS)
    with code.when(thread.equals(0)):
        code.store(0, flag, bits=8)
    with code.loop(code.load(args)) as number:
        record = args + 8 * HEADER_WORDS + number * (8 * kernels.FINISH_WORDS)
        how, source = code.load(record), code.load(record + 8)
        is_sum = how.equals(kernels.FINISH_FLOAT_SUM)
        with code.when(is_sum & (thread < _LIMBS)):
            code.store(code.load(source + thread * 8), limbs + thread * 8)
        _meet(code)
        with code.when(thread.equals(0)):
            kernels.finish_reduction(code, record, code.select(is_sum, limbs, source), flag, digits)
        _meet(code)
    code.finish()


def _shared(code: Code, name: str, words: int) -> Word:
    """Return the address of words that the threads of a block share."""
    place = ir.GlobalVariable(code.function.module, ir.ArrayType(ir.IntType(64), words), name, addrspace=_SHARED)
    place.linkage, place.initializer = "internal", ir.Constant(place.value_type, ir.Undefined)
    generic = code.builder.addrspacecast(place, ir.PointerType())
    return Word(code, code.builder.ptrtoint(generic, ir.IntType(64)))


def _meet(code: Code) -> None:
    """Synchronise the threads of a block."""
    code.effect("llvm.nvvm.barrier.cta.sync.aligned.all", ir.Constant(ir.IntType(32), 0))


def _rotate(module: ir.Module) -> None:
    code = _kernel(module, "rotate")
    args, threads = code.arguments[0], _special(code, "ntid.x")
    tables, last = code.load(args), code.load(args + 8) - 1
    number = code.variable(_special(code, "tid.x"))
    with code.repeat(lambda: number.get() < tables):
        table = code.load(args + 16 + number.get() * 8)
        first = code.load(table)
        with code.loop(last) as slot:
            code.store(code.load(table + slot * 8 + 8), table + slot * 8)
        code.store(first, table + last * 8)
        number.set(number.get() + threads)
    code.finish()
