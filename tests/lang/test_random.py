"""The random generator: known answers, and the same numbers from kernels and from NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from minga.compile.numpy import BoundArray, evaluate
from minga.errors import KernelError
from minga.lang.graph import KernelGraph
from minga.lang.kernel import Kernel, infer_signature
from minga.lang.random import bits, random, random_bits, threefry, uniform

# Random123 1.14, tests/kat_vectors: counter, key, result of threefry2x32 with 20 rounds.
KNOWN = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def fnv1a(name: str) -> int:
    value = 0x811C9DC5
    for byte in name.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def noise(a, b, c, d):
    axes = len(a.axes)
    here = (0,) * axes
    a[here] = random()
    b[here] = random("f4")
    c[here] = random_bits()
    d[here] = random() + random()


def graph_of(ndim: int) -> KernelGraph:
    return Kernel(noise).graph(infer_signature(ndim, [(t, range(ndim)) for t in ("f8", "f4", "u4", "f8")]))


def run(lo, hi, extent, *, seed, step, shift=None):
    shape = tuple(b - a for a, b in zip(lo, hi, strict=True))
    arrays = [np.zeros(shape, t) for t in ("f8", "f4", "u4", "f8")]
    scalars = {"@seed": np.uint64(seed), "@step": np.uint64(step)}
    scalars |= {f"@extent{axis}": np.uint32(n) for axis, n in enumerate(extent)}
    evaluate(graph_of(len(lo)), (lo, hi), [BoundArray(a, lo) for a in arrays], scalars, shift=shift, extent=extent)
    return arrays


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN)
def test_known_answers(counter, key, result):
    words = [np.array([w], np.uint32) for w in (*key, *counter)]
    got = threefry((words[0], words[1]), (words[2], words[3]))
    assert (int(got[0][0]), int(got[1][0])) == result


@pytest.mark.parametrize("extent", [(70,), (5, 9), (3, 4, 6), (2, 3, 2, 5)])
def test_kernels_draw_what_numpy_draws(extent):
    seed, step = 0x123456789ABCDEF0, (1 << 40) + 17
    got = run((0,) * len(extent), extent, extent, seed=seed, step=step)
    common = {"seed": seed, "step": step, "stream": fnv1a("noise")}
    np.testing.assert_array_equal(got[0], uniform(extent, draw=0, **common))
    np.testing.assert_array_equal(got[1], uniform(extent, draw=1, dtype="f4", **common))
    np.testing.assert_array_equal(got[2], bits(extent, draw=2, **common))
    np.testing.assert_array_equal(got[3], uniform(extent, draw=3, **common) + uniform(extent, draw=4, **common))


def test_a_part_of_the_grid_draws_the_same():
    extent, origin, shape = (4, 6, 10), (1, 2, 3), (2, 3, 5)
    whole = uniform(extent, seed=7, step=3)
    inner = tuple(slice(o, o + n) for o, n in zip(origin, shape, strict=True))
    np.testing.assert_array_equal(uniform(shape, seed=7, step=3, origin=origin, extent=extent), whole[inner])
    high = tuple(o + n for o, n in zip(origin, shape, strict=True))
    all_cells = run((0, 0, 0), extent, extent, seed=7, step=3)
    for got, expected in zip(run(origin, high, extent, seed=7, step=3), all_cells, strict=True):
        np.testing.assert_array_equal(got, expected[inner])
    # Cells outside the grid that stand for others (periodic images) draw what those draw.
    image = run((-3, 2, 3), (-1, 5, 8), extent, seed=7, step=3, shift=(4, 0, 0))
    np.testing.assert_array_equal(image[0], all_cells[0][inner])


def test_seed_step_stream_and_draw_all_matter():
    base = {"seed": 1, "step": 2, "stream": 3, "draw": 4}
    cells = [uniform((100,), **base)]
    changes = [{"seed": 2}, {"seed": 1 + (1 << 32)}, {"step": 3}, {"step": 2 + (1 << 32)}, {"stream": 4}, {"draw": 5}]
    cells += [uniform((100,), **(base | change)) for change in [*changes, {"draw": 6}]]
    together = np.concatenate(cells)
    assert len(np.unique(together)) == together.size


def test_uniform_is_uniform():
    """Mean, variance and a histogram of 2**18 numbers, within five standard deviations."""
    for dtype in ("f8", "f4"):
        x = uniform((256, 1024), seed=2026, dtype=dtype).astype("f8")
        n = x.size
        assert x.min() >= 0
        assert x.max() < 1
        assert abs(x.mean() - 0.5) < 5 * (1 / 12 / n) ** 0.5
        assert abs(x.var() - 1 / 12) < 5 * (1 / 180 / n) ** 0.5
        counts = np.bincount((x * 64).astype(int).ravel(), minlength=64)
        assert np.all(abs(counts - n / 64) < 5 * (n / 64) ** 0.5)
        neighbours = np.mean((x[:, 1:] - 0.5) * (x[:, :-1] - 0.5)), np.mean((x[1:] - 0.5) * (x[:-1] - 0.5))
        assert np.all(np.abs(neighbours) < 5 / 12 / n**0.5)


def test_two_draws_share_one_call_of_the_generator():
    def pair(a, b):
        a[0] = random()
        b[0] = random()

    def single(a):
        a[0] = random()

    def size(function, count):
        graph = Kernel(function, name="same").graph(infer_signature(1, [("f8", (0,))] * count))
        return len(graph.nodes())

    assert size(pair, 2) < 1.1 * size(single, 1)


def test_other_types_are_refused():
    def wrong(u):
        u[0] = random("i4")

    with pytest.raises(KernelError, match="f4 or f8") as caught:
        Kernel(wrong).graph(infer_signature(1, [("i4", (0,))]))
    assert "random_bits" in str(caught.value)
    with pytest.raises(ValueError, match="f4 or f8"):
        uniform((3,), seed=1, dtype="i4")
    with pytest.raises(KernelError, match="outside a kernel"):
        random()
