"""The TTI kernel, unfactorised and factorised, beside gcc with the same operations in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import minga as mg
from benchmarks.peers import address, kernel_way, peer
from benchmarks.results import ENGINE, Found, at_least, rates, ratios
from benchmarks.timing import Effort, Way, measure
from benchmarks.tti_kernels import INVERSE_SIGMA, KERNELS, SCALARS, graph_of
from minga.compile.call import Call
from minga.compile.llvm import Compiled, compile_kernel, suggest_tile
from minga.compile.numpy import BoundArray
from minga.engine.storage import allocate
from minga.engine.tiles import tile_shape
from minga.lang.analysis import bytes_per_cell, flops

SIZES = (128, 136)
"""At 128 rows and planes are powers of two, where unpadded arrays lose up to a half; at 136 they are not."""
QUICK = 20
HALO = 4
RING_PLANES, RINGS, RING_ROW_EXTRA = 9, 4, 64
TITLES = {
    "tti_full": "TTI, 64-point mixed derivatives",
    "tti_ten": "TTI, factorised",
    "tti_six": "TTI, factorised, 6 arrays",
}


@dataclass(frozen=True, slots=True)
class Data:
    """A box with a halo, the two wave fields at two times, and the medium."""

    box: mg.Box
    waves: list[np.ndarray]
    coefficients: list[np.ndarray]

    @property
    def arrays(self) -> list[np.ndarray]:
        return [*self.waves, *self.coefficients]

    def turned(self) -> list[np.ndarray]:
        """Return the arrays of the next step: old and new waves have changed places."""
        return [*self.waves[2:], *self.waves[:2], *self.coefficients]

    def inside(self, array: np.ndarray) -> np.ndarray:
        return array[(slice(HALO, -HALO),) * 3]

    def reset(self) -> None:
        """The same noise again in the wave fields, which a step overwrites."""
        for array, values in zip(self.waves, _noise(len(self.waves), self.waves[0].shape), strict=True):
            array[...] = values


def measure_tti(effort: Effort) -> Iterator[Found]:
    for size in (QUICK,) if effort.quick else SIZES:
        for name in KERNELS:
            yield _measure(name, size, effort)


def _measure(name: str, size: int, effort: Effort) -> Found:
    data = data_of(name, size)
    compiled = compile_kernel(graph_of(name))
    graph = compiled.graph
    calls = [_call(compiled, arrays, data.box, name) for arrays in (data.arrays, data.turned())]
    rows = suggest_tile(graph, data.box.shape)[1]
    (words, kept), (turned, more) = (peer_words(name, data, rows, arrays) for arrays in (data.arrays, data.turned()))
    gcc = peer(name, words, turned, keep=(kept, more))
    calls[0].run()
    own = [data.inside(a).copy() for a in data.waves[2:]]
    details: dict[str, object] = {
        "flops_per_cell": flops(graph), "bytes_per_cell": bytes_per_cell(graph), "rows_in_a_tile": rows,
        "padded_strides": list(data.waves[0].strides),
    }  # fmt: skip
    for way in gcc.values():
        data.reset()
        way(1)
        details |= _compare(own, [data.inside(a) for a in data.waves[2:]])
    data.reset()
    with mg.Engine(mg.Layout.single(data.box, 1), grid=mg.Grid((size,) * 3)) as engine:
        ways: dict[str, Way] = {"kernel": kernel_way(*calls), **gcc, "engine": program(engine, name, data)}
        times = measure(ways, effort)
    found = ratios(times, "kernel / gcc", "engine / gcc", "engine / kernel")
    details["Gflop_per_second"] = round(flops(graph) * size**3 / times.least("kernel") * 1e-9, 1)
    return Found(
        f"{name.replace('_', '-')}-{size}", f"{TITLES[name]}, {size} x {size} x {size}", "Mcells/s",
        rates(times, size**3 / 1e6), found, at_least(found, {"kernel / gcc": 1.0, "engine / kernel": ENGINE}), details,
    )  # fmt: skip


def _call(compiled: Compiled, arrays: list[np.ndarray], box: mg.Box, name: str) -> Call:
    bound = [BoundArray(array, (-HALO,) * 3) for array in arrays]
    tile = tile_shape(compiled.graph, box.shape, 1)
    return Call(compiled, (box.lo, box.hi), bound, SCALARS[name], tile=tile)


def _compare(own: list[np.ndarray], others: list[np.ndarray]) -> dict[str, object]:
    """How far results agree: bits of each cell, and the largest difference relative to the largest value."""
    equal = sum(int((a.view(np.uint32) == b.view(np.uint32)).sum()) for a, b in zip(own, others, strict=True))
    largest = max(float(abs(a - b).max()) / float(abs(b).max()) for a, b in zip(own, others, strict=True))
    return {"cells_with_equal_bits": equal, "cells_compared": sum(a.size for a in own), "largest_difference": largest}


def data_of(name: str, size: int) -> Data:
    box = mg.Box((0,) * 3, (size,) * 3)
    wide = box.grow((HALO,) * 3, (HALO,) * 3)
    medium = _medium(name, wide.shape)
    arrays = [allocate(wide, box, "f4", number) for number in range(1, 5 + len(medium))]
    for array, values in zip(arrays[4:], medium, strict=True):
        array[...] = values
    data = Data(box, arrays[:4], arrays[4:])
    data.reset()
    return data


def _noise(count: int, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    numbers = np.random.default_rng(1)
    return (numbers.standard_normal(shape, np.float32) for _ in range(count))


def _medium(name: str, shape: tuple[int, ...]) -> list[np.ndarray]:
    """A medium that varies from cell to cell; velocities are in cells a step, well below the stability limit."""
    numbers = np.random.default_rng(2)
    axis = numbers.standard_normal((3, *shape), np.float32)
    axis /= np.sqrt((axis**2).sum(axis=0))
    vpz2, epsilon, delta = (
        a + (b - a) * numbers.random(shape, np.float32) for a, b in ((0.02, 0.05), (0.1, 0.3), (0.0, 0.2))
    )
    if name == "tti_six":
        return [*axis, vpz2, epsilon, delta]
    ax, ay, az = axis
    directions = [ax * ax, ay * ay, az * az, 2 * ax * ay, 2 * ay * az, 2 * ax * az]
    return [
        *directions,
        vpz2 * (1 + 2 * epsilon),
        vpz2,
        vpz2 * abs(epsilon - delta) * INVERSE_SIGMA,
        vpz2 * (1 + 2 * delta),
    ]


def peer_words(name: str, data: Data, rows: int, arrays: list[np.ndarray] | None = None) -> tuple[list[int], object]:
    """Return the arguments of the C function for arrays in this order, and the objects that must outlive its calls."""
    size = data.box.shape[0]
    strides = [s // 4 for s in data.waves[0].strides]
    fields = [address(array, HALO, HALO, HALO) for array in arrays or data.arrays]
    head = [size, size, size, strides[0], strides[1], *fields]
    if name == "tti_full":
        numbers = np.array(list(SCALARS[name].values()), np.float32)
        return [*head, address(numbers, 0)], numbers
    cells = RINGS * RING_PLANES * rows * (size + RING_ROW_EXTRA)
    scratch = np.zeros(cells + 64, np.float32)
    aligned = -(-address(scratch, 0) // 64) * 64
    return [*head, *[0] * (19 - len(head)), rows, aligned], scratch


def program(engine: mg.Engine, name: str, data: Data) -> Way:
    """A time step between walls at 0, repeated in native code."""
    (grid,) = engine.storage.layouts
    p, q = (mg.Field(wave, grid, dtype="f4", slots=2, boundary=mg.fixed(0.0)) for wave in "pq")
    medium = [mg.Field(f"medium {number}", grid, dtype="f4") for number in range(len(data.coefficients))]
    kernel, counts = KERNELS[name]
    left = iter(medium)
    arguments = [next(left) if count == 1 else [next(left) for _ in range(count)] for count in counts[4:]]
    step = mg.Program("step")
    step.apply(kernel, p, q, p.previous, q.previous, *arguments, **SCALARS[name])
    step.rotate(p, q)
    for item, array in zip((p, q), data.waves, strict=False):
        engine.set(item, data.inside(array))
        engine.set(item.previous, data.inside(array))
    for item, array in zip(medium, data.coefficients, strict=True):
        engine.set(item, data.inside(array))
    engine.run(step, times=2)
    return lambda times: engine.run(step, times=times)
