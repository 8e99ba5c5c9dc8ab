"""IR to object code, and object code to an address that can be called."""

from __future__ import annotations

import functools
import itertools
from typing import Final

import llvmlite.binding as llvm

from minga.compile.target import Target


def optimised(ir: str, target: Target) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    """The module after LLVM's -O3 passes, with the code generator that made the choices."""
    machine = target.machine()
    module = llvm.parse_assembly(ir)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module, machine


def object_code(ir: str, target: Target) -> bytes:
    """Relocatable machine code (ELF, Mach-O or COFF) of a module."""
    module, machine = optimised(ir, target)
    return bytes(machine.emit_object(module))


def assembly(ir: str, target: Target) -> str:
    """The same as `object_code`, to be read."""
    module, machine = optimised(ir, target)
    return str(machine.emit_assembly(module))


_NUMBERS: Final = itertools.count()


@functools.cache
def _linker() -> llvm.orcjit.LLJIT:
    """LLVM's linker in memory, one for all object code of a process: making it takes longer than linking a kernel."""
    return llvm.create_lljit_compiler()


class Loaded:
    """Object code in memory, for as long as this object lives."""

    def __init__(self, code: bytes, name: str) -> None:
        library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(name)
        self._tracker = library.link(_linker(), f"{name} {next(_NUMBERS)}")  # names of libraries are used once
        self.address = int(self._tracker[name])
