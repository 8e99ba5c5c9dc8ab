"""What is measured on a GPU: Jacobi, waves in tilted media, life in bytes and in bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

import minga as mg
from benchmarks.tti_kernels import tti_six
from minga.compile.ptx import Schedule, print_ptx
from minga.engine.model import Model
from minga.engine.program import Apply
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["CASES", "Case"]


SOUP: Final = 1024


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement. bytes: what one cell update must move at least."""

    name: str
    model: Callable[[Sequence[int]], Model]
    shape: tuple[int, ...]
    small: tuple[int, ...]
    bytes: float

    def cells_of(self, shape: Sequence[int]) -> int:
        return prod(shape)

    def step(self, model: Model) -> Apply:
        """What a step does."""
        return next(item for item in model.step.operations if isinstance(item, Apply))

    def code(self, model: Model, schedule: Schedule) -> str:
        return print_ptx(self.step(model).graph, "sm_90", schedule)


@mg.kernel
def relax(u, new):
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


def laplace(shape: Sequence[int]) -> Model:
    grid = Grid(shape)
    u = Field("u", grid, slots=2, boundary=mg.fixed(1.0))
    step = mg.Program("step")
    step.apply(relax, u, u.next)
    step.rotate(u)
    return Model("laplace", grid, (u,), step)


def life(storage: str) -> Callable[[Sequence[int]], Model]:
    def model(shape: Sequence[int]) -> Model:
        return mg.automaton("B3/S23", tuple(shape), init=repeated_soup, storage=storage, skip_quiet=False)

    return model


def repeated_soup(shape: tuple[int, ...], y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Random cells that repeat every SOUP cells along both axes: they are made quickly, however large the grid."""
    soup = (np.random.default_rng(1).random((SOUP, SOUP)) < 0.4).astype("u1")
    return soup[y.ravel() % SOUP].take(x.ravel() % SOUP, axis=1)


def tti(shape: Sequence[int]) -> Model:
    """Two wave fields and six arrays of coefficients, f4, eighth order in space, mixed derivatives factorised."""
    grid = Grid(shape, periodic=(True,) * 3)
    p, q = (Field(name, grid, "f4", slots=2) for name in "pq")
    medium = [Field(name, grid, "f4") for name in ("ax", "ay", "az", "vpz2", "epsilon", "delta")]
    step = mg.Program("step")
    step.apply(tti_six, p, q, p.next, q.next, tuple(medium[:3]), *medium[3:])
    step.rotate(p, q)
    values = {"ax": 0.5, "ay": 0.5, "az": 0.70710677, "vpz2": 0.05, "epsilon": 0.2, "delta": 0.1}

    def pulse(box: mg.Box) -> np.ndarray:
        """A Gaussian in the middle, as a product of one along each axis."""
        x, y, z = (
            np.exp(-((np.arange(a, b) - n / 2) ** 2) / 50.0).astype("f4") for a, b, n in zip(box.lo, box.hi, shape)
        )
        return x[:, None, None] * y[:, None] * z

    start = {**values, "p": pulse, "q": pulse, p.previous: 0.0, q.previous: 0.0}
    return Model("tti", grid, (p, q, *medium), step, start, ("p",))


CASES: tuple[Case, ...] = (
    Case("jacobi", laplace, (16384, 16384), (128, 256), 16.0),
    Case("tti", tti, (504, 504, 504), (24, 24, 64), 48.0),
    Case("life bytes", life("bytes"), (16384, 16384), (256, 512), 2.0),
    Case("life bits", life("bits"), (32768, 32768), (512, 1024), 0.25),
)
"""Of tti: p and q are read, the ones before read and written, six arrays read: 12 accesses of 4 bytes."""
