"""Calling convention of compiled kernels: the single contract between printers, run loop and GPU launcher.

    void kernel(int64 *args, int64 tile, int64 *worker)

`args` is a vector of 64-bit words; `tile` is the number of a tile of the region, in row-major order of tiles; `worker`
belongs to one thread: worker[0] is its number, worker[1] the address of its scratch memory (64-byte aligned), worker[2]
the size of the scratch memory in bytes. worker[3] is 1 if a march continues the one before it, whose locals are still
in the scratch memory: its box begins where that one ended along axis 0, and is the same along the others. worker[4] is
1 if the box is a band of a larger one.

Words of `args`, for a kernel of n axes (axis 0 is the slowest, axis n-1 innermost and contiguous):

    lo[n] hi[n]      half-open box of iteration indices, in the field's global index space
    tile[n]          shape of a tile (the last tile along an axis may be smaller)
    tiles[n]         number of tiles along each axis
    shift[n]         offset from an iteration index to the true global index (periodic images have a shift)
    extent[n]        cells of the grid along each axis (for the linear indices of argmax and argmin)
    colour           for red-black kernels: cells whose true indices sum to an even (0) or odd (1) number are updated
    per field:       slot, origin, stride[axes of the field]
                     slot    address of a word that holds the address of the array's first element
                     origin  element offset of index (0, ..., 0): element(i) = origin + sum(i_k * stride_k), in elements
                     stride  elements along each axis; 1 for the innermost axis if the field has it
    per scalar:      address of its value (8 bytes reserved)
    per reduction:   address of accumulators; worker w uses the ACCUMULATOR_WORDS words at w * ACCUMULATOR_WORDS

Accumulators hold integers only, so that any order of combination gives the same bits:

    max, min         [0] the extreme value's sortable key (see below), initially KEY_EMPTY; min keeps the key of
                     the bitwise complement, so that both combine by integer maximum
    argmax, argmin   [0] as for max, min; [1] the linear true index (the smallest wins), initially INT64_MAX
    count, int sum   [0] the sum modulo 2**64
    float sum        SUM_LIMBS limbs of 32 bits held in int64 words, then counts of NaN, +inf and -inf

The sortable key of a float is computed from its bits as a signed integer s (f4 is first converted to f8, exactly): key
= s if s >= 0 else s ^ INT64_MAX. A NaN has the key INT64_MAX (for max and min alike). Integers and bools are their own
keys, except that u8 has its top bit flipped.
KEY_EMPTY = INT64_MIN. The complement used by min is ~key (NaN: INT64_MAX again).
Limb k of a float sum has the weight 2**(32 k - SUM_BIAS); a finite value m * 2**e is added as integers to the limbs
that its 53-bit mantissa covers; for negative values they are subtracted. Limbs never overflow: every addition changes a
limb by less than 2**33, and the run loop never combines more than 2**30 runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from minga.lang.graph import KernelGraph

ACCUMULATOR_WORDS: Final = 80
SUM_LIMBS: Final = 68
SUM_BIAS: Final = 1088
"""Bias of limb weights: limb 0 holds 2**-1088 .. 2**-1056, limb 67 reaches beyond 2**1056; the smallest f8 is
2**-1074."""
SUM_NAN: Final = 68
SUM_POSITIVE_INFINITY: Final = 69
SUM_NEGATIVE_INFINITY: Final = 70
KEY_EMPTY: Final = -(1 << 63)
KEY_NAN: Final = (1 << 63) - 1
WORKER_WORDS: Final = 8
SCRATCH: Final = 1
RESUMED: Final = 3
BANDED: Final = 4
"""Words of a worker: the address of its scratch memory, whether a march continues the one before it, and whether the
box is a band of a larger one."""


@dataclass(frozen=True, slots=True)
class Offsets:
    """Word numbers of a kernel's arguments."""

    lo: int
    hi: int
    tile: int
    tiles: int
    shift: int
    extent: int
    colour: int
    fields: tuple[int, ...]
    scalars: tuple[int, ...]
    reductions: tuple[int, ...]
    words: int


def offsets(graph: KernelGraph) -> Offsets:
    """Return the word number of each argument of a graph's compiled function."""
    n = graph.ndim
    word = 6 * n + 1
    fields = []
    for param in graph.params:
        fields.append(word)
        word += 2 + len(param.axes)
    scalars = tuple(range(word, word + len(graph.scalars)))
    word += len(graph.scalars)
    reductions = tuple(range(word, word + len(graph.reductions)))
    word += len(graph.reductions)
    return Offsets(0, n, 2 * n, 3 * n, 4 * n, 5 * n, 6 * n, tuple(fields), scalars, reductions, word)
