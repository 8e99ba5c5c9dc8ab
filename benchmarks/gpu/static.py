"""python -m benchmarks.gpu.static [--table]: what can be said of kernels on a GPU without one.

A block of threads is run by the machine of tests/ptx_machine.py, which counts the instructions that its warps issue;
NVIDIA's assembler says how many registers and how much shared memory a block takes. With the numbers of a GPU follow
three bounds: memory, issue (four warps a cycle and multiprocessor) and loads and stores (one warp a cycle). A
prediction is EXPECTED of the least of them. Results go to benchmarks/results/gpu-static.json and docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.tti_kernels import SCALARS, graph_of
from minga.compile.abi import WORKER_WORDS, offsets
from minga.compile.ptx import Schedule, launch, print_ptx
from minga.compile.ptx_choose import choose
from minga.compile.ptx_march import March
from minga.compile.ptx_tile import Tile
from minga.lang.analysis import bytes_per_cell, flops, radius
from minga.lang.graph import KernelGraph
from minga.lang.types import itemsize

ROOT: Final = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))

from ptx_machine import WARP, Column, Instruction, Memory, run  # noqa: E402

RESULTS: Final = ROOT / "benchmarks" / "results" / "gpu-static.json"
PAGE: Final = ROOT / "docs" / "performance.md"
PTXAS: Final = Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "bin" / "ptxas"
ARCH: Final = "sm_90"
SIZE: Final = 504
"""Cells of the grid along each axis."""
EXPECTED: Final = 0.7
"""Of the least bound: memory, issue and loads do not overlap wholly."""
MOST_THREADS, MOST_SHARED, REGISTERS = 2048, 227 << 10, 65536
SCHEDULES: Final[tuple[Schedule, ...]] = ("straight", "tile", "march")


@dataclass(frozen=True, slots=True)
class Gpu:
    """Multiprocessors, cycles a second, bytes a second that a copy reaches (nine tenths of the data sheet's)."""

    name: str
    processors: int
    clock: float
    bandwidth: float


GPUS: Final = (Gpu("H100 SXM", 132, 1.755e9, 0.9 * 3.35e12), Gpu("H200", 132, 1.755e9, 0.9 * 4.8e12))


@dataclass(frozen=True, slots=True)
class Report:
    """A kernel in one schedule; counts are instructions a cell.

    issued: warps' instructions times 32, threads that idle included. memory: bytes a cell that must be moved.
    """

    kernel: str
    schedule: str
    flops: int
    memory: int
    registers: int
    spilled: int
    shared_bytes: int
    blocks: int
    issued: float
    arithmetic: float
    global_accesses: float
    shared_accesses: float
    bounds: dict[str, dict[str, float]]
    predicted: dict[str, float]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.static", description=__doc__)
    parser.add_argument("--table", action="store_true", help="print what is stored, count nothing")
    if parser.parse_args().table:
        print(table(json.loads(RESULTS.read_text())["reports"]))
        return 0
    reports = [report(name, schedule) for name in KERNELS for schedule in SCHEDULES if has(KERNELS[name](), schedule)]
    about = {"arch": ARCH, "size": SIZE, "expected": EXPECTED, "gpus": [asdict(gpu) for gpu in GPUS]}
    RESULTS.write_text(json.dumps({**about, "reports": [asdict(item) for item in reports]}, indent=1) + "\n")
    lines = table([asdict(item) for item in reports])
    print(lines)
    text = PAGE.read_text()
    page = re.sub(r"(<!-- gpu-static -->\n).*?(<!-- end of gpu-static -->)", rf"\g<1>{lines}\g<2>", text, flags=re.S)
    PAGE.write_text(page)
    return 0


def laplacian() -> KernelGraph:
    """A star of 25 points, eighth order, of f4."""
    from minga.lang.kernel import Kernel, infer_signature

    def star(u, new):  # type: ignore[no-untyped-def]
        weights = (8 / 5, -1 / 5, 8 / 315, -1 / 560)
        steps = [
            tuple(s * d if a == axis else 0 for a in range(3))
            for d in (1, 2, 3, 4)
            for axis in range(3)
            for s in (1, -1)
        ]
        far = sum(weights[max(map(abs, step)) - 1] * u[step] for step in steps)
        new[0, 0, 0] = far - 205 / 24 * u[0, 0, 0]

    return Kernel(star).graph(infer_signature(3, [("f4", range(3))] * 2))


KERNELS: Final[dict[str, Callable[[], KernelGraph]]] = {
    "TTI, 10 arrays": lambda: graph_of("tti_ten"),
    "TTI, 6 arrays": lambda: graph_of("tti_six"),
    "Laplacian, 25 points": laplacian,
}


def has(graph: KernelGraph, schedule: Schedule) -> bool:
    """Whether a kernel can have a schedule, and not the next simpler one instead."""
    kinds: dict[str, type | None] = {"straight": None, "tile": Tile, "march": March}
    kind = kinds[schedule]
    return kind is None or isinstance(choose(graph, schedule), kind)


def report(name: str, schedule: Schedule) -> Report:
    """Count, assemble and predict."""
    graph = KERNELS[name]()
    ptx = print_ptx(graph, ARCH, schedule)
    registers, spilled, shared = assembled(ptx)
    size = launch(graph, (0,) * 3, (SIZE,) * 3, schedule=schedule)
    threads = prod(size.block)
    blocks = min(MOST_THREADS // threads, REGISTERS // (-(-registers // 8) * 8 * threads))
    blocks = min(blocks, MOST_SHARED // (shared + 1024)) if shared else blocks
    counts, cells = counted(graph, ptx, schedule)
    a_cell = {key: WARP * count / cells for key, count in counts.items()}
    memory = bytes_per_cell(graph, write_allocate=False)
    bounds = {}
    for gpu in GPUS:
        cycles = gpu.processors * gpu.clock * WARP
        bounds[gpu.name] = {
            "memory": gpu.bandwidth / memory,
            "issue": 4 * cycles / a_cell["issued"],
            "loads": cycles / (a_cell["global"] + a_cell.get("shared", 0.0)),
        }
    predicted = {key: EXPECTED * min(found.values()) for key, found in bounds.items()}
    return Report(
        name, schedule, flops(graph), memory, registers, spilled, shared, blocks, a_cell["issued"],
        a_cell["arithmetic"], a_cell["global"], a_cell.get("shared", 0.0), bounds, predicted,
    )  # fmt: skip


def assembled(ptx: str) -> tuple[int, int, int]:
    """Registers, bytes spilled and shared memory, as NVIDIA's assembler says."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ptx"
        path.write_text(ptx)
        command = [PTXAS, "-v", "-arch", ARCH, path, "-o", path.with_suffix(".cubin")]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    found = [
        re.search(pattern, said)
        for pattern in (r"Used (\d+) registers", r"(\d+) bytes spill stores", r"(\d+) bytes smem")
    ]
    used, spilled, shared = (int(match[1]) if match else 0 for match in found)
    return used, spilled, shared


def counted(graph: KernelGraph, ptx: str, schedule: Schedule) -> tuple[Counter[str], int]:
    """What the warps of one block issue, and how many cells it does: a block in the midst of the grid."""
    size = launch(graph, (0,) * 3, (SIZE,) * 3, schedule=schedule)
    kept = choose(graph, schedule)
    width, height, _ = size.block
    if isinstance(kept, March):
        shape = (-(-SIZE // size.grid[2]), *kept.tile)
    else:
        shape = (1, height, width) if kept is None else (kept.shape[0], kept.shape[1], kept.shape[2])
    counts: Counter[str] = Counter()

    def watch(instruction: Instruction, at: Column) -> None:
        counts.update(dict.fromkeys(kinds(instruction), np.unique(at // WARP).size))

    memory = Memory(1 << 26)
    run(ptx, memory, bound(graph, shape, memory), (1, 1, 1), size.block, watch=watch)
    return counts, prod(shape)


def kinds(instruction: Instruction) -> tuple[str, ...]:
    """What an instruction counts as. Moves between registers vanish, mostly, when PTX becomes machine code."""
    op = instruction.op
    if op[0] in ("ld", "st", "atom", "red"):
        return "issued", "shared" if "shared" in op else "global"
    if op[0] in ("mov", "cvta", "ret") and op[-1] in ("u64", "b64", "pred"):
        return ()
    if op[0] in ("add", "sub", "mul", "fma", "div", "sqrt", "min", "max", "abs", "neg") and op[-1] in ("f32", "f64"):
        return "issued", "arithmetic"
    return ("issued",)


def bound(graph: KernelGraph, shape: tuple[int, ...], memory: Memory) -> list[int]:
    """The kernel's two parameters, for the box 0..shape of fields that are zero."""
    words, n = offsets(graph), graph.ndim
    args = np.zeros(words.words, np.int64)
    args[words.hi : words.hi + n] = args[words.extent : words.extent + n] = shape
    for number, (word, param) in enumerate(zip(words.fields, graph.params, strict=True)):
        reach = radius(graph)[number]
        sizes = [a + s + b for a, s, b in zip(reach.low, shape, reach.high, strict=True)]
        strides = [prod(sizes[axis + 1 :]) for axis in range(n)]
        field = memory.put(np.zeros(prod(sizes) * itemsize(param.dtype), np.uint8))
        args[word] = memory.put(np.array([field], np.int64))
        args[word + 1] = sum(a * s for a, s in zip(reach.low, strides, strict=True))
        args[word + 2 : word + 2 + n] = strides
    for word, scalar in zip(words.scalars, graph.scalars, strict=True):
        args[word] = memory.put(np.array([SCALARS["tti_full"].get(scalar.name, 1.0)], scalar.dtype))
    return [memory.put(args), memory.put(np.zeros(WORKER_WORDS, np.int64))]


def table(reports: list[dict[str, object]]) -> str:
    """The reports in Markdown."""
    heads = ["kernel", "schedule", "registers", "shared KiB", "blocks", "issued", "arithmetic", "global", "shared"]
    heads += [f"{gpu.name}: bound by" for gpu in GPUS] + [f"{gpu.name}: predicted" for gpu in GPUS]
    lines = [heads, ["---"] * len(heads)]
    for item in (Report(**entry) for entry in reports):  # type: ignore[arg-type]
        spilled = f" ({item.spilled} B spilled)" if item.spilled else ""
        row = [item.kernel, item.schedule, f"{item.registers}{spilled}", f"{item.shared_bytes / 1024:.1f}"]
        row += [f"{item.blocks}"]
        row += [f"{x:.0f}" for x in (item.issued, item.arithmetic)]
        row += [f"{x:.1f}" for x in (item.global_accesses, item.shared_accesses)]
        for found in item.bounds.values():
            what = min(found, key=lambda key: found[key])
            row.append(f"{what}, {found[what] / 1e9:.0f}")
        row += [f"{rate / 1e9:.0f}" for rate in item.predicted.values()]
        lines.append(row)
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)


if __name__ == "__main__":
    sys.exit(main())
