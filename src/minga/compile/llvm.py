"""Kernels as LLVM IR for CPUs, and as callable machine code."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final, Literal

from minga.compile.alternative import USUAL, Alternative
from minga.compile.arrange import arrange
from minga.compile.cache import Cache, default_cache, object_key
from minga.compile.jit import Loaded, object_code
from minga.compile.loops import Kernel
from minga.compile.lower import lower, uses_fma
from minga.compile.reduce import row_bytes
from minga.compile.schedule import schedule
from minga.compile.scratch import Ring
from minga.compile.target import Target, host_target
from minga.errors import KernelError
from minga.lang.analysis import radius
from minga.lang.graph import RUN, KernelGraph
from minga.lang.narrow import narrow
from minga.lang.types import itemsize

ENTRY: Final = "kernel"
TILE_SHARE: Final = 0.4
"""Share of the L2 cache that a march through a tile may use repeatedly: pages of memory compete for places there."""
LEAST_ROWS: Final = 4
"""Minimum number of rows of a tile."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel as machine code: `void(int64 *args, int64 tile, int64 *worker)` at `address` (see compile/abi.py).

    The code lives as long as this object.

    Attributes
    ----------
    graph, target, reductions, way
        The kernel, the processor, whether the code includes the kernel's reductions, and the way it was compiled.
    key
        Key of the code in the object cache.
    cached
        True if the code came from a file instead of the compiler.
    """

    graph: KernelGraph
    target: Target
    reductions: bool
    way: Alternative
    key: str
    cached: bool
    _loaded: Loaded = field(repr=False)

    @property
    def address(self) -> int:
        """Address of the compiled function."""
        return self._loaded.address

    @property
    def source(self) -> str:
        """The LLVM IR that was compiled."""
        return print_llvm(self.graph, target=self.target, reductions=self.reductions, way=self.way)

    def scratch_bytes(self, tile_shape: Sequence[int]) -> int:
        """Return the bytes of worker scratch (worker[1], worker[2]) that tiles of at most this shape need."""
        return scratch_bytes(self.graph, tile_shape, reductions=self.reductions)


def compile_kernel(
    graph: KernelGraph,
    *,
    target: Target | None = None,
    reductions: bool = True,
    way: Alternative = USUAL,
    cache: Cache | Literal["default"] | None = "default",
) -> Compiled:
    """Compile a kernel to machine code.

    Parameters
    ----------
    graph
        The kernel.
    target
        The processor; by default, the one that this process runs on.
    reductions
        If False, the kernel's reductions are left out (as on halo extension frames).
    way
        One of the ways to compile the kernel, which all have the same bits.
    cache
        The object cache; with None, the kernel is always compiled.

    Raises
    ------
    KernelError
        If the kernel's order or operations cannot be compiled for the target.
    """
    target = target or host_target()
    cache = default_cache() if cache == "default" else cache
    key = key_of(graph, target, reductions, way)
    code = cache.load(key) if cache else None
    cached = code is not None
    if code is None:
        code = object_code(print_llvm(graph, target=target, reductions=reductions, way=way), target)
        if cache:
            cache.store(key, code, about(graph, target))
    return Compiled(graph, target, reductions, way, key, cached, Loaded(code, ENTRY))


def key_of(graph: KernelGraph, target: Target, reductions: bool, way: Alternative = USUAL) -> str:
    """Return the key of a kernel's object in the cache."""
    return object_key(graph.code_digest(), target, f"reductions={reductions}, {way}")


def about(graph: KernelGraph, target: Target) -> dict[str, str]:
    """Return what the file of an object tells people who inspect it."""
    return {"kernel": graph.name, "cpu": target.cpu}


def print_llvm(
    graph: KernelGraph, *, target: Target | None = None, reductions: bool = True, way: Alternative = USUAL
) -> str:
    """Return the kernel as a module of LLVM IR."""
    target = target or host_target()
    if uses_fma(graph) and not target.fma:
        raise KernelError(
            f"{graph.name!r} uses mg.fma, and the processor {target.cpu} has no such instruction",
            where=graph.where,
            remedy="write a * b + c, which has the same bits everywhere, or leave this machine out",
        )
    plan = schedule(graph)
    graph = lower(narrow(graph), rounding=target.rounding)
    return _module(Kernel(graph, plan, target, way, reductions=reductions), target, way)


def suggest_tile(
    graph: KernelGraph, shape: Sequence[int], *, memory: int | None = None, workers: int = 1
) -> tuple[int, ...]:
    """Suggest a tile shape for a box.

    A tile consists of whole rows: as many as keep the planes of locals and fields within `memory` bytes and, if
    possible, so that no tile is shorter than the others. For kernels with locals, axis 0 stays long, since locals are
    computed again for a few planes before each tile; they are also computed again in the margins along the other axes,
    so a tile is at least twice as long as its margins there. With several workers, there are at least four tiles per
    worker, if possible.

    Parameters
    ----------
    graph
        The kernel.
    shape
        Number of cells of the box along each axis.
    memory
        Bytes that a march through a tile may use repeatedly; by default, a share of this processor's L2 cache.
    workers
        Number of threads that share the box.
    """
    memory = int(TILE_SHARE * host_target().second) if memory is None else memory
    tile = [max(1, length) for length in shape]
    places = _rings(graph, True)
    for axis in range(1, len(tile) - 1) if places else ():
        least = max(LEAST_ROWS, *(2 * (ring.high[axis] - ring.low[axis]) for ring in places))
        while tile[axis] > least and _kept(graph, places, tile) > memory:
            tile[axis] = max(least, -(-tile[axis] // 2))
        even = range(tile[axis], max(least, tile[axis] // 2 + 1) - 1, -1)
        tile[axis] = next((length for length in even if shape[axis] % length == 0), tile[axis])
    if workers > 1:
        others = prod(-(-length // size) for length, size in zip(shape[1:], tile[1:], strict=True))
        wanted = -(-4 * workers // max(1, others))
        shortest = max((2 * (ring.high[0] - ring.low[0] + 1) for ring in places), default=1)
        tile[0] = min(tile[0], max(shortest, tile[0] // wanted))
        if len(tile) == 1:
            tile[0] = -(-tile[0] // RUN) * RUN
    return tuple(tile)


def _kept(graph: KernelGraph, places: Sequence[Ring], tile: Sequence[int]) -> int:
    """Return the bytes that a march uses repeatedly: locals, and planes of fields that are read in several planes."""
    kept = sum(ring.bytes(tile) for ring in places)
    for number, reach in radius(graph).items():
        param = graph.params[number]
        planes = reach.low[0] + reach.high[0] if len(param.axes) == graph.ndim else 0
        kept += (planes + 1) * prod(tile[1:]) * itemsize(param.dtype) if planes else 0
    return kept


def scratch_bytes(graph: KernelGraph, tile_shape: Sequence[int], *, reductions: bool = True) -> int:
    """Return the bytes of worker scratch that a kernel needs for tiles of at most this shape."""
    rows = sum(map(row_bytes, graph.reductions)) if reductions else 0
    return rows + sum(ring.bytes(tile_shape) for ring in _rings(graph, reductions))


def kept_bytes(graph: KernelGraph) -> int:
    """Return the bytes of the locals that a march keeps, for each place along the other axes."""
    return sum(ring.depth * itemsize(ring.dtype) for ring in _rings(graph, False) if not ring.row)


@functools.lru_cache(maxsize=256)
def _rings(graph: KernelGraph, reductions: bool) -> tuple[Ring, ...]:
    if not graph.locals:
        return ()
    graph = narrow(graph)
    reduced = graph.reductions if reductions else ()
    roots = [store.value for store in graph.stores] + [item.value for item in reduced]
    return arrange(graph, roots).rings


def _module(kernel: Kernel, target: Target, way: Alternative) -> str:
    """Return a module with the kernel function and all functions that it calls."""
    attributes = ["nounwind", f'"target-cpu"="{target.cpu}"']
    if target.features:
        attributes.append(f'"target-features"="{target.features}"')
    if way.vector:
        attributes.append(f'"prefer-vector-width"="{8 * way.vector}"')
    lines = [
        f'target triple = "{target.triple}"',
        "",
        *kernel.text.definitions(),
        f"define void @{ENTRY}(ptr %args, i64 %tile, ptr %worker) #0 {{",
        *kernel.text.lines,
        "}",
        *kernel.folds(),
        "",
        f"attributes #0 = {{ {' '.join(attributes)} }}",
        *(f"!{number} = {content}" for number, content in enumerate(kernel.text.metadata)),
    ]
    return "\n".join(lines) + "\n"
