"""Random numbers that depend only on seed, step, kernel, global cell and draw.

The generator is Threefry2x32 with 20 rounds (J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random
numbers: as easy as 1, 2, 3", SC 2011), a bijection of two 32-bit words with a key of two words. It has no state: the
numbers do not depend on how the grid is cut, which rank or thread updates a cell, or how often a halo cell is computed
again.

The words of draws 2 m and 2 m + 1 of a cell (draws are counted in the order in which the kernel's function calls for
them, from 0) are, all in 32-bit arithmetic:

    k0, k1 = threefry(key=(low(seed), high(seed)), counter=(low(step), high(step) ^ stream))
    words  = threefry(key=(k0, k1 + m), counter=(innermost index, row))

Draws from UPDATE_DRAW on are reserved for updates (`minga.lang.updates`), so that a rule's own draws are the same with
any update. The draws of a block rule use the index of the block's first cell.

`low` and `high` are the halves of a 64-bit number, `stream` is the FNV-1a hash of the kernel's name, and `row` is the
row-major number of the cell's row: its linear global index over all axes but the innermost. On grids of more than 2**32
rows, or with rows of more than 2**32 cells, the numbers repeat.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from minga.lang.expr import Node, author_error, cast, const
from minga.lang.trace import Trace, current_trace
from minga.lang.types import as_dtype

_ROTATIONS: Final = (13, 15, 26, 6, 17, 29, 16, 24)
_ROUNDS: Final = 20
_PARITY: Final = 0x1BD11BDA
_MASK: Final = 0xFFFFFFFF

UPDATE_DRAW: Final = 1 << 32
"""Number of the draw that decides whether a cell is updated in an asynchronous step."""

Words = NDArray[np.uint32]
Word = TypeVar("Word", Node, Words)


def threefry(key: tuple[Word, Word], counter: tuple[Word, Word]) -> tuple[Word, Word]:
    """Return Threefry2x32-20 of u4 nodes or of uint32 arrays."""
    keys: tuple[Any, Any, Any] = (*key, key[0] ^ key[1] ^ _PARITY)
    x: Any = counter[0] + keys[0]
    y: Any = counter[1] + keys[1]
    for number in range(_ROUNDS):
        bits = _ROTATIONS[number % len(_ROTATIONS)]
        x = x + y
        y = ((y << bits) | (y >> (32 - bits))) ^ x
        if number % 4 == 3:
            turn = number // 4 + 1
            x = x + keys[turn % 3]
            y = y + (keys[(turn + 1) % 3] + turn)
    return x, y


# In kernels ----------------------------------------------------------------------------------------------------------
def random(dtype: object = "f8") -> Node:
    """Draw a random number uniform in [0, 1), a different one at each call, cell and step.

    Parameters
    ----------
    dtype
        "f8" for a random word times 2**-32, which is a multiple of 2**-32, or "f4" for its upper 24 bits times 2**-24.
        Both products are exact.

    Returns
    -------
    Node
        The number.

    Raises
    ------
    KernelError
        If called outside a kernel, or `dtype` is not a float type.
    """
    try:
        kind = as_dtype(dtype)
    except ValueError:
        kind = "bool"
    if kind == "f8":
        return cast(random_bits(), "f8") * const(2.0**-32, "f8")
    if kind == "f4":
        # The conversion goes through i4: signed integers convert faster, and 24 bits have no sign.
        return cast(cast(random_bits() >> 8, "i4"), "f4") * const(2.0**-24, "f4")
    raise author_error(
        f"mg.random({dtype!r}): random numbers are f4 or f8",
        "use mg.random() < p for a chance, mg.random_bits() for an integer",
    )


def random_bits() -> Node:
    """Draw 32 random bits as a u4, a different word at each call, cell and step.

    Returns
    -------
    Node
        The word, u4.
    """
    trace = current_trace("mg.random")
    draw = trace.draws.get("count", 0)
    assert isinstance(draw, int)
    trace.draws["count"] = draw + 1
    return _word(trace, draw)


def random_at(place: tuple[Node, Node]) -> Node:
    """Draw a number uniform in [0, 1) that depends on a place, two u4 words, in place of the cell."""
    word, _ = threefry(_key(current_trace("random_at")), place)
    return cast(word, "f8") * const(2.0**-32, "f8")


def chance(probability: float, draw: int) -> Node | bool:
    """Return a bool that is true with a probability, from draw number `draw` of the cell.

    It equals `mg.random() < probability` for that draw.
    """
    limit = math.ceil(probability * 2.0**32)
    return limit > _MASK or _word(current_trace("chance"), draw) < const(limit, "u4")


def _word(trace: Trace, draw: int) -> Node:
    """Return the word of a draw, which is computed once together with its pair."""
    pair, half = divmod(draw, 2)
    words = trace.draws.get(pair)
    if words is None:
        key = _key(trace)
        words = trace.draws[pair] = threefry((key[0], key[1] + pair), _counter(trace))
    assert isinstance(words, tuple)
    word = words[half]
    assert isinstance(word, Node)
    return word


def _key(trace: Trace) -> tuple[Node, Node]:
    """Return the key of the kernel in this step; it is the same for all cells, so it is computed once per call."""
    seed, step = trace.scalar("@seed", "u8"), trace.scalar("@step", "u8")
    (seed_low, seed_high), (step_low, step_high) = (
        (cast(number, "u4"), cast(number >> 32, "u4")) for number in (seed, step)
    )
    return threefry((seed_low, seed_high), (step_low, step_high ^ trace.stream))


def _counter(trace: Trace) -> tuple[Node, Node]:
    index = trace.place or [cast(Node("index", "i8", data=axis), "u4") for axis in range(trace.ndim)]
    row = const(0, "u4")
    for axis in range(trace.ndim - 1):
        row = index[axis] if axis == 0 else row * trace.scalar(f"@extent{axis}", "u4") + index[axis]
    return index[-1], row


# In NumPy ------------------------------------------------------------------------------------------------------------
def uniform(
    shape: Sequence[int],
    *,
    seed: int,
    step: int = 0,
    stream: int = 0,
    draw: int = 0,
    origin: Sequence[int] | None = None,
    extent: Sequence[int] | None = None,
    dtype: object = "f8",
) -> NDArray[Any]:
    """Return the numbers that `mg.random(dtype)` draws in a box of cells, for initial states and for checks.

    Parameters
    ----------
    shape
        Number of cells of the box along each axis.
    seed
        Seed of the run, 64 bits.
    step
        Number of the step, 64 bits.
    stream
        Random stream of the kernel, 32 bits.
    draw
        Number of the call, counted from 0.
    origin
        First global index of the box along each axis; 0 by default.
    extent
        Number of cells of the grid along each axis; by default, the box is the grid.
    dtype
        "f8" or "f4".

    Returns
    -------
    ndarray
        The numbers, of this shape and dtype.
    """
    kind = as_dtype(dtype)
    if kind not in ("f4", "f8"):
        raise ValueError(f"uniform: random numbers are f4 or f8, found {dtype!r}")
    word = bits(shape, seed=seed, step=step, stream=stream, draw=draw, origin=origin, extent=extent)
    if kind == "f8":
        return word.astype(np.float64) * 2.0**-32
    return (word >> 8).astype(np.float32) * np.float32(2.0**-24)


def bits(
    shape: Sequence[int],
    *,
    seed: int,
    step: int = 0,
    stream: int = 0,
    draw: int = 0,
    origin: Sequence[int] | None = None,
    extent: Sequence[int] | None = None,
) -> Words:
    """Return the words that `mg.random_bits()` draws in a box of cells; the parameters are those of `uniform`."""
    first, grid = tuple(origin or (0,) * len(shape)), tuple(extent or shape)
    low, high = _halves(step)
    key = threefry(_halves(seed), (low, high ^ np.uint32(stream)))
    rows = np.zeros(tuple(shape[:-1]), np.int64)
    for axis in range(len(shape) - 1):
        index = np.arange(first[axis], first[axis] + shape[axis])
        rows = rows + (index * math.prod(grid[axis + 1 : -1])).reshape([-1] + [1] * (len(shape) - 2 - axis))
    column = np.arange(first[-1], first[-1] + shape[-1])
    counter = np.broadcast_arrays((column & _MASK).astype(np.uint32), (rows & _MASK).astype(np.uint32)[..., np.newaxis])
    words = threefry((key[0], key[1] + np.uint32(draw // 2)), (counter[0], counter[1]))
    return words[draw % 2]


def _halves(number: int) -> tuple[Words, Words]:
    """Return the low and high 32 bits, as arrays of one element (whose overflow NumPy does not report)."""
    return np.array([number & _MASK], np.uint32), np.array([number >> 32 & _MASK], np.uint32)
