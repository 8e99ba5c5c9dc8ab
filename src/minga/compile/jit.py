"""Compilation of LLVM IR to object code, and loading of object code to a callable address."""

from __future__ import annotations

import functools
import itertools
from typing import Final

import llvmlite.binding as llvm

from minga.compile.target import Target


def optimised(ir: str, target: Target) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    """Return the module after LLVM's -O3 passes, and the code generator that the passes were chosen for."""
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
    """Return the relocatable machine code (ELF, Mach-O or COFF) of a module."""
    module, machine = optimised(ir, target)
    return bytes(machine.emit_object(module))


def assembly(ir: str, target: Target) -> str:
    """Return the machine code of a module as readable assembly."""
    module, machine = optimised(ir, target)
    return str(machine.emit_assembly(module))


_NUMBERS: Final = itertools.count()


@functools.cache
def _linker() -> llvm.orcjit.LLJIT:
    """Return LLVM's in-memory linker, one per process: creating it takes longer than linking a kernel."""
    return llvm.create_lljit_compiler()


class Loaded:
    """Object code in memory, which stays loaded as long as this object lives."""

    def __init__(self, code: bytes, name: str) -> None:
        library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(name)
        self._tracker = library.link(_linker(), f"{name} {next(_NUMBERS)}")  # names of libraries must be unique
        self.address = int(self._tracker[name])
