"""Random chains of locals at many offsets give the oracle's bits, and touch nothing but what they read and their own.

Fields and scratch memory end (or begin) where a page begins that no process may touch.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from minga.compile.call import Call
from minga.compile.llvm import compile_kernel, scratch_bytes
from minga.compile.numpy import BoundArray, evaluate
from minga.lang import functions as mg
from minga.lang.analysis import reads
from minga.lang.cell import local
from minga.lang.expr import Node
from minga.lang.graph import KernelGraph
from minga.lang.kernel import FieldType, Kernel, Signature

from .helpers import random_array, same_bits

PAGE = mmap.PAGESIZE
KINDS = (("f4",), ("f8",), ("f4", "f8"), ("f8", "i4"), ("u1", "f4"))


def guarded(size: int, *, at_end: bool) -> NDArray[np.uint8]:
    """Bytes with a page that may not be touched before and behind; one of them follows at once."""
    pages = -(-size // PAGE) + 2
    memory = mmap.mmap(-1, pages * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None).mprotect
    for page in (0, pages - 1):
        assert protect(ctypes.c_void_p(start + page * PAGE), PAGE, 0) == 0
    return np.frombuffer(memory, np.uint8, size, (pages - 1) * PAGE - size if at_end else PAGE)


@st.composite
def chains(draw: st.DrawFn) -> KernelGraph:
    """Kernels of one to four axes whose locals are stencils of fields and of other locals, some with equal reads."""
    ndim = draw(st.sampled_from((1, 2, 3, 3, 4)))
    every, kinds = tuple(range(ndim)), draw(st.sampled_from(KINDS))
    inputs = [FieldType(draw(st.sampled_from(kinds)), every) for _ in range(draw(st.integers(1, 3)))]
    if ndim > 1 and draw(st.booleans()):
        inputs.append(FieldType(draw(st.sampled_from(kinds)), (draw(st.integers(0, ndim - 1)),)))
    outputs = [FieldType(draw(st.sampled_from(kinds)), every) for _ in range(draw(st.integers(1, 2)))]
    reach = draw(st.sampled_from((1, 2, 4))) if ndim < 4 else 1
    number = st.integers(-reach, reach)

    def places(axes: tuple[int, ...]) -> list[tuple[int, ...]]:
        """A row of neighbours along an axis, or one somewhere."""
        if draw(st.integers(0, 3)) == 0:
            return [tuple(draw(number) for _ in axes)]
        along = draw(st.integers(0, len(axes) - 1))
        first, last = sorted((draw(number), draw(number)))
        return [tuple(o if a == along else 0 for a in range(len(axes))) for o in range(first, last + 1)]

    def body(sources: list[Any], targets: list[Any]) -> dict[str, Any]:
        readers = [(source, source.axes) for source in sources]
        used: list[tuple[Any, list[tuple[int, ...]]]] = []

        def stencil() -> Node:
            if used and draw(st.booleans()):
                source, offsets = draw(st.sampled_from(used))
            else:
                source, axes = draw(st.sampled_from(readers))
                used.append((source, offsets := places(axes)))
            weights = [draw(st.sampled_from((0.5, -1.25, 3.0))) for _ in offsets]
            return sum(
                (mg.cast(source[o], "f8") * w for o, w in zip(offsets[1:], weights)), mg.cast(source[offsets[0]], "f8")
            )

        for _ in range(draw(st.integers(1, 6))):
            value = stencil()
            value = mg.cast(value, draw(st.sampled_from([kind for kind in kinds if kind[0] == "f"])))
            readers.insert(0, (local(value), every))
        for target in targets:
            total = stencil()
            for source, axes in readers:
                if draw(st.integers(0, 3)):
                    total = total + mg.cast(source[places(axes)[0]], "f8")
            target[(0,) * ndim] = mg.cast(total, target.dtype)
        return {"most": mg.max(readers[0][0][places(every)[0]])} if draw(st.integers(0, 3)) == 0 else {}

    return Kernel(body, name="chain").graph(Signature(ndim, (tuple(inputs), tuple(outputs)), ()))


def tight(
    graph: KernelGraph, lo: tuple[int, ...], hi: tuple[int, ...], random: np.random.Generator
) -> list[BoundArray]:
    """Small values of exactly the cells that a box reads and stores."""
    found = reads(graph)
    arrays = []
    for number, param in enumerate(graph.params):
        offsets = [o for _, o in found.get(number, ())] + [(0,) * len(param.axes)] * (number in graph.written)
        offsets = offsets or [(0,) * len(param.axes)]
        origin = tuple(lo[a] + min(o[k] for o in offsets) for k, a in enumerate(param.axes))
        end = tuple(hi[a] + max(o[k] for o in offsets) for k, a in enumerate(param.axes))
        values = random_array(random, param.dtype, tuple(b - a for a, b in zip(origin, end)))
        if values.dtype.kind == "f":
            values = np.clip(np.nan_to_num(values), -9, 9)
        arrays.append(BoundArray(values, origin))
    return arrays


def check(data: st.DataObject) -> None:
    graph = data.draw(chains())
    outer, inner = st.sampled_from((1, 2, 3, 5)), st.sampled_from((1, 2, 7, 8, 17, 35))
    shape = (*(data.draw(outer) for _ in range(graph.ndim - 1)), data.draw(inner))
    tile = tuple(data.draw(st.integers(1, length)) for length in shape)
    lo = tuple(3 - axis for axis in range(graph.ndim))
    hi = tuple(a + n for a, n in zip(lo, shape))
    arrays = tight(graph, lo, hi, np.random.default_rng(data.draw(st.integers(0, 9))))
    at_end = data.draw(st.booleans())
    own = []
    for bound in arrays:
        memory = guarded(bound.array.nbytes, at_end=at_end).view(bound.array.dtype).reshape(bound.array.shape)
        memory[...] = bound.array
        own.append(BoundArray(memory, bound.origin))
    expected = evaluate(graph, (lo, hi), arrays)
    call = Call(compile_kernel(graph, cache=None), (lo, hi), own, tile=tile)
    scratch = guarded(max(64, -(-scratch_bytes(graph, tile) // 64) * 64), at_end=at_end)
    call.worker[1] = scratch.ctypes.data
    found = call.run()
    for param, a, b in zip(graph.params, arrays, own, strict=True):
        assert same_bits(a.array, b.array), param.name
    for name, words in expected.items():
        assert np.array_equal(words, found[name])


@pytest.mark.slow
@given(st.data())
@settings(max_examples=4)
def test_chains_of_locals(data: st.DataObject) -> None:
    check(data)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=300)
def test_many_chains_of_locals(data: st.DataObject) -> None:
    check(data)
