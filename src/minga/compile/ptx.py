"""Kernels as PTX for NVIDIA GPUs, through LLVM's NVPTX back end.

    .visible .entry kernel(.param .u64 args, .param .u64 worker)

`args` and `worker` are addresses in the device's memory of the words that compile/abi.py describes; all addresses in
them are the device's. There is no tile: a launch does the whole box lo..hi, whatever the launch's size (ptx_map.py),
provided that blocks have at most BLOCK threads and are a multiple of 32 wide; those of a march have BLOCK threads.
worker[0] chooses the accumulators.

The bits are those of every other printer: each operation rounds once (add.rn, mul.rn, div.rn, sqrt.rn; fma.rn only
where mg.fma is written), denormals are kept, and threads meet in integers only.

    ptx_map.py     which cells a thread does, and launches to match
    ptx_choose.py  which of three schedules a kernel has: straight, in tiles, or in a march
    ptx_locals.py  locals written out
    ptx_tile.py    locals in a block's shared memory
    ptx_march.py   what a block keeps that marches from plane to plane
    ptx_walk.py    the march itself
    ptx_frame.py   arguments, addresses and values of a cell
    ptx_nest.py    loops
    ptx_reduce.py  reductions
"""

from __future__ import annotations

import functools
import re
from typing import Final

import llvmlite.binding as llvm

from minga.compile.lower import lower
from minga.compile.ptx_choose import Schedule, choose
from minga.compile.ptx_frame import BLOCK
from minga.compile.ptx_locals import inline_locals
from minga.compile.ptx_map import Launch, gpu_kernel, launch, mapping
from minga.compile.ptx_nest import Nest
from minga.compile.ptx_tile import with_shared_locals
from minga.compile.text import Text
from minga.errors import KernelError
from minga.lang.graph import KernelGraph

TRIPLE: Final = "nvptx64-nvidia-cuda"
ENTRY: Final = "kernel"
_OLDEST: Final = 80

__all__ = ["BLOCK", "ENTRY", "Launch", "Schedule", "gpu_graph", "launch", "print_ptx", "print_ptx_ir"]


def print_ptx(graph: KernelGraph, arch: str = "sm_80", schedule: Schedule = "auto", *, reductions: bool = True) -> str:
    """The kernel in PTX for GPUs of compute capability `arch` and newer ones.

    schedule: "straight" (each thread computes all that its cells need), "tile" (locals of a tile in shared memory) or
    "march" (from plane to plane); "auto" is the one with the least estimated work. Kernels that cannot have a schedule
    get the next simpler one. All give the same bits; `launch` must be given the same one.

    With `reductions=False` its reductions are left out (as on halo extension frames). KernelError for kernels that a
    GPU cannot run: those of lexicographic order.
    """
    match = re.fullmatch(r"sm_(\d+)a?", arch)
    if match is None or int(match[1]) < _OLDEST:
        raise KernelError(
            f"cannot make code for the GPU architecture {arch!r}", remedy='name one such as "sm_80" or "sm_90"'
        )
    machine = _target().create_target_machine(cpu=arch, opt=3)
    module = llvm.parse_assembly(print_ptx_ir(graph, schedule, reductions=reductions))
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return str(machine.emit_assembly(module))


def print_ptx_ir(graph: KernelGraph, schedule: Schedule = "auto", *, reductions: bool = True) -> str:
    """The LLVM IR that becomes PTX."""
    kept = choose(gpu_kernel(graph, reductions), schedule)
    graph = gpu_graph(graph, schedule, reductions=reductions)
    text = Text()
    nest = Nest(text, graph, mapping(graph), kept)
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


def gpu_graph(graph: KernelGraph, schedule: Schedule = "auto", *, reductions: bool = True) -> KernelGraph:
    """The graph that is printed: only locals that are kept in shared memory, and only operations that the GPU has."""
    graph = gpu_kernel(graph, reductions)
    mapping(graph)  # refuses what a GPU cannot run
    return lower(inline_locals(graph) if choose(graph, schedule) is None else with_shared_locals(graph))


@functools.cache
def _target() -> llvm.Target:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE)
