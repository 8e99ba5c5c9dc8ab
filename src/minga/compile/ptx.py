"""Kernels as PTX for NVIDIA GPUs, through LLVM's NVPTX back end.

    .visible .entry kernel(.param .u64 args, .param .u64 worker)

`args` and `worker` are addresses in the device's memory of the words that compile/abi.py describes; all addresses in
them are the device's. There is no tile: a launch does the whole box lo..hi, whatever the launch's size (ptx_map.py),
provided that blocks have at most BLOCK threads and are a multiple of 32 wide. worker[0] chooses the accumulators.

The bits are those of every other printer: each operation rounds once (add.rn, mul.rn, div.rn, sqrt.rn; fma.rn only
where mg.fma is written), denormals are kept, and threads meet in integers only.

    ptx_map.py     which cells a thread does, and launches to match
    ptx_locals.py  locals written out
    ptx_tile.py    locals in a block's shared memory
    ptx_frame.py   arguments, addresses and values of a cell
    ptx_nest.py    loops
    ptx_reduce.py  reductions
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from typing import Final

import llvmlite.binding as llvm

from minga.compile.lower import lower
from minga.compile.ptx_locals import inline_locals
from minga.compile.ptx_map import BLOCK, Launch, launch, mapping
from minga.compile.ptx_nest import Nest
from minga.compile.ptx_tile import tile_of, with_shared_locals
from minga.compile.text import Text
from minga.errors import KernelError
from minga.lang.graph import KernelGraph

TRIPLE: Final = "nvptx64-nvidia-cuda"
ENTRY: Final = "kernel"
_OLDEST: Final = 80

__all__ = ["BLOCK", "ENTRY", "Launch", "gpu_graph", "launch", "print_ptx", "print_ptx_ir"]


def print_ptx(graph: KernelGraph, arch: str = "sm_80", *, reductions: bool = True) -> str:
    """The kernel in PTX for GPUs of compute capability `arch` and newer ones.

    With `reductions=False` its reductions are left out (as on halo extension frames). KernelError for kernels that a
    GPU cannot run: those of lexicographic order.
    """
    match = re.fullmatch(r"sm_(\d+)a?", arch)
    if match is None or int(match[1]) < _OLDEST:
        raise KernelError(
            f"cannot make code for the GPU architecture {arch!r}", remedy='name one such as "sm_80" or "sm_90"'
        )
    machine = _target().create_target_machine(cpu=arch, opt=3)
    module = llvm.parse_assembly(print_ptx_ir(graph, reductions=reductions))
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return str(machine.emit_assembly(module))


def print_ptx_ir(graph: KernelGraph, *, reductions: bool = True) -> str:
    """The LLVM IR that becomes PTX."""
    graph = gpu_graph(graph, reductions=reductions)
    text = Text()
    nest = Nest(text, graph, mapping(graph), tile_of(graph))
    lines = [f'target triple = "{TRIPLE}"', "", *text.definitions()]
    if nest.shared_words:
        lines += [f"@shared = internal addrspace(3) global [{nest.shared_words} x i64] undef, align 8", ""]
    lines += [
        f"define ptx_kernel void @{ENTRY}(ptr %args, ptr %worker) #0 {{",
        *text.lines,
        "}",
        "",
        # Two blocks a multiprocessor: at most 128 registers a thread.
        f'attributes #0 = {{ nounwind "nvvm.maxntid"="{BLOCK}" "nvvm.minctasm"="2" }}',
    ]
    return "\n".join(lines) + "\n"


def gpu_graph(graph: KernelGraph, *, reductions: bool = True) -> KernelGraph:
    """The graph that is printed: only locals that are kept in shared memory, and only operations that the GPU has."""
    if not reductions:
        graph = replace(graph, reductions=())
    mapping(graph)  # refuses what a GPU cannot run
    return lower(with_shared_locals(graph) if tile_of(graph) else inline_locals(graph))


@functools.cache
def _target() -> llvm.Target:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE)
