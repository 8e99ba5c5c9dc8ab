"""Addresses of the engine's own kernels, and construction of their arguments."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from minga.compile.abi import KEY_EMPTY, SUM_NEGATIVE_INFINITY
from minga.engine import active_kernels as active
from minga.engine import helper_kernels as kernels
from minga.engine import mask_kernels as masks
from minga.engine.emit import load
from minga.engine.wave_kernel import wave
from minga.lang.graph import ReductionKind
from minga.lang.types import DType, integer_range, is_float

Words = NDArray[np.int64]
_COPY_AXES: Final = 3
"""Number of axes of a copy above its contiguous bytes."""


@dataclass(frozen=True, slots=True)
class HelperKernels:
    """Addresses of native functions `void f(int64 *args, int64 tile, int64 *worker)`."""

    copy_boxes: int
    combine_workers: int
    arg_candidates: int
    finish_reductions: int
    copy_noted: int
    begin_step: int


def helper_addresses() -> HelperKernels:
    """Return the engine's own kernels, compiled for this machine once per process."""
    with _FIRST:
        return _compiled()[0]


_FIRST = threading.Lock()
"""Lock for virtual ranks, which request the functions concurrently: a second compilation would release the first one's
code while it is in use."""


@functools.cache
def _compiled() -> tuple[HelperKernels, object]:
    module = ir.Module("minga_helpers")
    makers = (
        kernels.copy_boxes, kernels.combine_workers, kernels.arg_candidates, kernels.finish_reductions,
        active.copy_noted, active.begin_step,
    )  # fmt: skip
    addresses, owner = load(module, [make(module) for make in makers])
    return HelperKernels(**addresses), owner


def active_tiles(ndim: int) -> int:
    """Return the address of `active_tiles_N`, compiled at first use: compiling takes seconds for grids of four axes."""
    with _FIRST:
        return _active_tiles(ndim)[0]


@dataclass(frozen=True, slots=True)
class MaskFunctions:
    """Addresses of the native functions of `minga.engine.mask_kernels`."""

    scan_mask: int
    masked_call: int


def mask_functions() -> MaskFunctions:
    """Return the functions for masks, compiled at first use."""
    with _FIRST:
        return _mask_functions()[0]


def wave_function() -> int:
    """Return the address of the function of `minga.engine.wave_kernel`, compiled at first use."""
    with _FIRST:
        return _wave_function()[0]


@functools.cache
def _wave_function() -> tuple[int, object]:
    addresses, owner = load(module := ir.Module("minga_wave"), [wave(module)])
    return addresses["wave"], owner


@functools.cache
def _mask_functions() -> tuple[MaskFunctions, object]:
    module = ir.Module("minga_masks")
    addresses, owner = load(module, [masks.scan_mask(module), masks.masked_call(module)])
    return MaskFunctions(**addresses), owner


@functools.cache
def _active_tiles(ndim: int) -> tuple[int, object]:
    module = ir.Module(f"minga_active_{ndim}")
    addresses, owner = load(module, [active.active_tiles(module, ndim)])
    return next(iter(addresses.values())), owner


@dataclass(frozen=True, slots=True)
class BoxAddress:
    """The position of a box in an array.

    `slot` is the address of a word that holds the array's base address; the box's first cell lies `offset` bytes after
    it, and neighbours along each axis (slowest first) are `strides` bytes apart.
    """

    slot: int
    offset: int
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy the cells of a box, `shape` (slowest axis first) of `itemsize` bytes each, from `source` to `target`."""

    source: BoxAddress
    target: BoxAddress
    shape: tuple[int, ...]
    itemsize: int


def copy_args(copies: Sequence[Copy]) -> Words:
    """Return the arguments of `copy_boxes`, which is called with one tile for each copy.

    Raise ValueError for a box that has more than three axes after merging axes that are contiguous on both sides.
    """
    args = _header(len(copies), 0, len(copies) * kernels.COPY_WORDS)
    for record, copy in zip(args[kernels.HEADER_WORDS :].reshape(-1, kernels.COPY_WORDS), copies):
        axes, row = _merged(copy)
        if len(axes) > _COPY_AXES:
            raise ValueError(f"a box of shape {copy.shape} has more than {_COPY_AXES} axes of separate rows")
        axes = [(1, 0, 0)] * (_COPY_AXES - len(axes)) + axes
        lengths, sources, targets = (list(column) for column in zip(*axes))
        if math.prod(copy.shape) == 0:
            lengths[0] = 0
        record[:6] = copy.source.slot, copy.source.offset, *sources, 1
        record[6:12] = copy.target.slot, copy.target.offset, *targets, 1
        record[12:16] = *lengths, row
    return args


def _merged(copy: Copy) -> tuple[list[tuple[int, int, int]], int]:
    """Return (length, source stride, target stride) of the non-contiguous axes, and the contiguous bytes."""
    row = copy.itemsize
    axes: list[tuple[int, int, int]] = []
    for length, source, target in zip(
        reversed(copy.shape), reversed(copy.source.strides), reversed(copy.target.strides), strict=True
    ):
        if length == 1:
            continue
        if not axes and source == target == row:
            row *= length
        elif axes and (source, target) == (axes[-1][0] * axes[-1][1], axes[-1][0] * axes[-1][2]):
            axes[-1] = (axes[-1][0] * length, *axes[-1][1:])
        else:
            axes.append((length, source, target))
    return axes[::-1], row


@dataclass(frozen=True, slots=True)
class Combine:
    """Combine the workers' accumulators of one reduction, ACCUMULATOR_WORDS apart at `source`, into `target`."""

    kind: ReductionKind
    dtype: DType
    source: int
    target: int


def reduction_words(kind: ReductionKind, dtype: DType) -> int:
    """Return the number of used words of an accumulator, counted from word 0; `dtype` is the reduction's."""
    if kind == "sum" and is_float(dtype):
        return SUM_NEGATIVE_INFINITY + 1
    return 2 if kind in ("argmax", "argmin") else 1


def combine_args(items: Sequence[Combine], workers: int) -> Words:
    """Return the arguments of `combine_workers` (one tile), which leaves the workers' accumulators empty."""
    args = _header(len(items), workers, len(items) * kernels.COMBINE_WORDS)
    for record, item in zip(args[kernels.HEADER_WORDS :].reshape(-1, kernels.COMBINE_WORDS), items):
        if item.kind in ("argmax", "argmin"):
            kind = kernels.COMBINE_ARG
        else:
            kind = kernels.COMBINE_MAXIMUM if item.kind in ("max", "min") else kernels.COMBINE_ADD
        record[:] = kind, item.source, reduction_words(item.kind, item.dtype), item.target
    return args


def candidate_args(items: Sequence[tuple[int, int, int]]) -> Words:
    """Return the arguments of `arg_candidates` (one tile).

    `items` holds the addresses of own key, winning key and own index of each reduction.
    """
    args = _header(len(items), 0, len(items) * kernels.CANDIDATE_WORDS)
    for record, item in zip(args[kernels.HEADER_WORDS :].reshape(-1, kernels.CANDIDATE_WORDS), items):
        record[:3] = item
    return args


@dataclass(frozen=True, slots=True)
class Finish:
    """Convert the total at `source` to the value of the register at `target` (8 bytes)."""

    kind: ReductionKind
    dtype: DType
    source: int
    target: int


def finish_args(items: Sequence[Finish], not_finite: int) -> Words:
    """Return the arguments of `finish_reductions` (one tile).

    `not_finite` is the address of a byte that is set to 1 when a float result is NaN or infinite; the infinity of a
    maximum over no cells does not count.
    """
    args = _header(len(items), not_finite, len(items) * kernels.FINISH_WORDS)
    for record, item in zip(args[kernels.HEADER_WORDS :].reshape(-1, kernels.FINISH_WORDS), items):
        mask = -1 if item.kind == "min" else 0
        if item.dtype == "u8":
            mask ^= KEY_EMPTY
        record[:6] = _how(item), item.source, item.target, mask, _over_no_cell(item), item.dtype == "f4"
    return args


def _how(item: Finish) -> int:
    if item.kind in ("argmax", "argmin"):
        return kernels.FINISH_INDEX
    if item.kind in ("max", "min"):
        return kernels.FINISH_FLOAT_KEY if is_float(item.dtype) else kernels.FINISH_KEY
    return kernels.FINISH_FLOAT_SUM if is_float(item.dtype) else kernels.FINISH_WORD


def _over_no_cell(item: Finish) -> int:
    """Return the bits of a maximum's or minimum's value over no cells, floats as f8."""
    if is_float(item.dtype):
        return int(np.float64(math.inf if item.kind == "min" else -math.inf).view(np.int64))
    value = integer_range(item.dtype)[1 if item.kind == "min" else 0]
    return value - (1 << 64) if value >= 1 << 63 else value


def _header(first: int, second: int, words: int) -> Words:
    args = np.zeros(kernels.HEADER_WORDS + words, np.int64)
    args[:2] = first, second
    return args
