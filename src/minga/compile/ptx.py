"""Kernels as PTX for NVIDIA GPUs, through LLVM's NVPTX back end.

    .visible .entry kernel(.param .u64 args, .param .u64 worker)

`args` and `worker` are addresses in device memory of the words that compile/abi.py describes; all addresses in them are
device addresses. There is no tile: a launch processes the whole box lo..hi, whatever the launch's size (ptx_map.py),
provided that blocks have at most BLOCK threads and a width that is a multiple of 32; blocks of a march have BLOCK
threads. worker[0] selects the accumulators.

The bits are those of every other printer: each operation rounds once (add.rn, mul.rn, div.rn, sqrt.rn; fma.rn only for
mg.fma), denormals are kept, and values of different threads are only combined as integers.

    ptx_map.py     the assignment of cells to threads, and launches to match
    ptx_choose.py  the choice among three schedules: straight, in tiles, or in a march
    ptx_locals.py  inlining of locals
    ptx_tile.py    locals in a block's shared memory
    ptx_march.py   the data that a block keeps while it marches from plane to plane
    ptx_walk.py    the march itself
    ptx_streams.py queues of registers and rings of planes of a march
    ptx_window.py  addresses of fields around the tile of a march
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
    """Return the kernel in PTX for GPUs of compute capability `arch` and newer ones.

    Parameters
    ----------
    graph
        The kernel.
    arch
        Compute capability, at least "sm_80".
    schedule
        "straight" (each thread computes everything that its cells need), "tile" (locals of a tile in shared memory) or
        "march" (from plane to plane); "auto" chooses the one with the least estimated work. Kernels that cannot use a
        schedule get the next simpler one. All schedules give the same bits; `launch` must be given the same one.
    reductions
        If False, the kernel's reductions are left out (as on halo extension frames).

    Raises
    ------
    KernelError
        If a GPU cannot run the kernel, as with lexicographic order, or `arch` is invalid.
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
    """Return the LLVM IR that is compiled to PTX; the parameters are those of `print_ptx`."""
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
        # Two blocks per multiprocessor: at most 128 registers per thread.
        f'attributes #0 = {{ nounwind "nvvm.maxntid"="{BLOCK}" "nvvm.minctasm"="2" }}',
    ]
    return "\n".join(lines) + "\n"


def gpu_graph(graph: KernelGraph, schedule: Schedule = "auto", *, reductions: bool = True) -> KernelGraph:
    """Return the graph that is printed: only locals in shared memory, and only operations that the GPU has."""
    graph = gpu_kernel(graph, reductions)
    mapping(graph)  # refuses kernels that a GPU cannot run
    return lower(inline_locals(graph) if choose(graph, schedule) is None else with_shared_locals(graph))


@functools.cache
def _target() -> llvm.Target:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE)
