"""Calls of a compiled kernel on NumPy arrays, tile after tile: the simplest use of the contract in compile/abi.py."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from minga.compile.abi import WORKER_WORDS, offsets
from minga.compile.exact import Words, empty_accumulator
from minga.compile.llvm import Compiled
from minga.compile.numpy import BoundArray, BoxLike, Index

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
ALIGNMENT = 64


class Call:
    """A compiled kernel bound to arrays and a box; `run` processes all tiles in order.

    The object keeps all memory alive that the argument words point to.
    """

    def __init__(
        self,
        compiled: Compiled,
        box: BoxLike | tuple[Index, Index],
        arrays: Sequence[BoundArray],
        scalars: Mapping[str, object] | None = None,
        *,
        shift: Index | None = None,
        extent: Index | None = None,
        colour: int = 0,
        tile: Index | None = None,
    ) -> None:
        graph = compiled.graph
        lo, hi = (box[0], box[1]) if isinstance(box, tuple) else (box.lo, box.hi)
        shape = tuple(max(0, b - a) for a, b in zip(lo, hi, strict=True))
        tile = tile or tuple(max(1, length) for length in shape)
        tiles = tuple(-(-length // size) for length, size in zip(shape, tile, strict=True))
        self.tiles = int(np.prod(tiles))
        self.compiled = compiled
        self._function = FUNCTION(compiled.address)
        self._arrays = tuple(arrays)
        self._bases = np.array([bound.array.ctypes.data for bound in arrays], np.int64)
        self._scalars = [np.zeros(8, np.uint8) for _ in graph.scalars]
        for memory, scalar in zip(self._scalars, graph.scalars, strict=True):
            value = np.asarray((scalars or {})[scalar.name]).astype(scalar.dtype)
            memory[: value.itemsize] = np.frombuffer(value.tobytes(), np.uint8)
        self.accumulators = {item.name: empty_accumulator(item.kind) for item in graph.reductions}
        self.args = np.zeros(offsets(graph).words, np.int64)
        self._fill(lo, hi, tile, tiles, shift or (0,) * graph.ndim, extent or tuple(hi), colour)
        size = compiled.scratch_bytes(tile)
        self._scratch = np.zeros(size + ALIGNMENT, np.uint8)
        self.worker = np.zeros(WORKER_WORDS, np.int64)
        self.worker[1] = -(-self._scratch.ctypes.data // ALIGNMENT) * ALIGNMENT
        self.worker[2] = size

    def _fill(self, lo: Index, hi: Index, tile: Index, tiles: Index, shift: Index, extent: Index, colour: int) -> None:
        graph, words = self.compiled.graph, offsets(self.compiled.graph)
        n, args = graph.ndim, self.args
        places = (words.lo, words.hi, words.tile, words.tiles, words.shift, words.extent)
        for word, values in zip(places, (lo, hi, tile, tiles, shift, extent), strict=True):
            args[word : word + n] = values
        args[words.colour] = colour
        for number, (word, bound) in enumerate(zip(words.fields, self._arrays, strict=True)):
            strides = element_strides(bound.array)
            args[word] = self._bases.ctypes.data + 8 * number
            args[word + 1] = -sum(o * s for o, s in zip(bound.origin, strides, strict=True))
            args[word + 2 : word + 2 + len(strides)] = strides
        for word, memory in zip(words.scalars, self._scalars, strict=True):
            args[word] = memory.ctypes.data
        for word, item in zip(words.reductions, graph.reductions, strict=True):
            args[word] = self.accumulators[item.name].ctypes.data

    def run(self) -> dict[str, Words]:
        """Process all tiles in order and return the accumulators of the reductions."""
        for tile in range(self.tiles):
            self._function(self.args.ctypes.data, tile, self.worker.ctypes.data)
        return self.accumulators


def element_strides(array: NDArray[np.generic]) -> tuple[int, ...]:
    """Return an array's strides in elements."""
    return tuple(stride // array.itemsize for stride in array.strides)


def run_kernel(
    compiled: Compiled,
    box: BoxLike | tuple[Index, Index],
    arrays: Sequence[BoundArray],
    scalars: Mapping[str, object] | None = None,
    *,
    shift: Index | None = None,
    extent: Index | None = None,
    colour: int = 0,
    tile: Index | None = None,
) -> dict[str, Words]:
    """Apply a compiled kernel to a box in place, like `minga.compile.numpy.evaluate`; by default, in a single tile."""
    call = Call(compiled, box, arrays, scalars, shift=shift, extent=extent, colour=colour, tile=tile)
    return call.run()
