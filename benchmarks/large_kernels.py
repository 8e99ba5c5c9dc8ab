"""Kernels of many operations: waves in tilted media, a neural automaton, a sum over thousands of neighbours."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from benchmarks import tti_kernels
from minga.lang import functions as mg
from minga.lang.graph import KernelGraph
from minga.lang.kernel import Kernel, infer_signature

__all__ = ["graph_of"]

CHANNELS: Final = 16
HIDDEN: Final = 128
SOBEL: Final = ((-1, -1, 1.0), (-1, 1, -1.0), (0, -1, 2.0), (0, 1, -2.0), (1, -1, 1.0), (1, 1, -1.0))


def graph_of(name: str) -> KernelGraph:
    """Return a kernel: "network", "square_RADIUS", or one of benchmarks.tti_kernels."""
    if name == "network":
        return _network()
    if name.startswith("square_"):
        return _square(int(name.removeprefix("square_")))
    return tti_kernels.graph_of(name)


def _network() -> KernelGraph:
    """Every channel and its two derivatives are seen by hidden units, whose sums change the channels: f4."""
    random = np.random.default_rng(1)
    first, second = (random.standard_normal(shape) for shape in ((HIDDEN, 3 * CHANNELS), (CHANNELS, HIDDEN)))
    bias = random.standard_normal(HIDDEN).tolist()

    def automaton(u: Any, new: Any) -> None:
        seen = []
        for channel in u:
            down = sum(weight * channel[y, x] for y, x, weight in SOBEL)
            right = sum(weight * channel[x, y] for y, x, weight in SOBEL)
            seen += [channel[0, 0], down, right]
        kept = []
        for row, start in zip(first.tolist(), bias, strict=True):
            total: Any = start
            for weight, value in zip(row, seen, strict=True):
                total = total + weight * value
            kept.append(mg.max(total, 0.0))
        for channel, after, row in zip(u, new, second.tolist(), strict=True):
            total = channel[0, 0]
            for weight, value in zip(row, kept, strict=True):
                total = total + weight * value
            after[0, 0] = total

    names = [f"{letter}{number}" for letter in "uv" for number in range(CHANNELS)]
    space: dict[str, Any] = {"automaton": automaton}
    half = ", ".join(names[:CHANNELS]), ", ".join(names[CHANNELS:])
    exec(f"def network({', '.join(names)}):\n    automaton([{half[0]}], [{half[1]}])\n", space)
    return Kernel(space["network"]).graph(infer_signature(2, [("f4", range(2))] * len(names)))


def _square(radius: int) -> KernelGraph:
    """A weight for each neighbour: f8."""
    weights = np.random.default_rng(1).random((2 * radius + 1,) * 2).tolist()

    def convolved(u: Any, new: Any) -> None:
        new[0, 0] = sum(
            weight * u[a - radius, b - radius] for a, row in enumerate(weights) for b, weight in enumerate(row)
        )

    return Kernel(convolved).graph(infer_signature(2, [("f8", range(2))] * 2))
