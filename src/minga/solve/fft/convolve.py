"""Convolutions with kernels of any radius: cell by cell, axis by axis, or by transforms.

The ways differ in rounding. Which one is taken depends on sizes only, never on time that was measured, so that it is
part of the model.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from minga.compile.explain import Kernel
from minga.engine.program import Program
from minga.errors import LayoutError, ProgramError, shown
from minga.extras import require
from minga.lang.cell import CellReader
from minga.solve.fft.transform import FFT, Item
from minga.space.boundary import Boundary
from minga.space.box import Box
from minga.space.field import Field, Slot
from minga.space.grid import Grid

__all__ = ["Convolution"]

Method = Literal["direct", "separable", "fft"]
Weights = NDArray[np.float64]

NANOSECONDS_PER_TAP: Final = 0.07
NANOSECONDS_PER_LEVEL: Final = 0.6
NANOSECONDS_PER_CELL: Final = 3.0
"""Cost of a cell: of each weight; of transforms, times the logarithm (base 2) of the number of cells; and besides."""
MOST_TAPS: Final = 1000
"""Weights of the largest kernel that is written out cell by cell."""


@dataclass(frozen=True, eq=False, repr=False)
class Convolution:
    """The convolution of fields with fixed weights, `(k * u)(x) = sum over d of k(d) u(x - d)`.

    A call ``convolution(program, u, result)`` records it.

    Parameters
    ----------
    grid
        The grid of the fields.
    weights
        An array with an odd number of weights along each axis, whose middle is the weight of the cell itself; or one
        array of one axis for each axis of the grid, whose product the weights are.
    method
        "direct", "separable" (for weights that are a product), "fft" (on periodic boxes), or "auto": the one with the
        lowest cost by a model that knows the sizes of the grid and of the weights only.
    name
        The beginning of the names of all fields.

    Attributes
    ----------
    costs
        Nanoseconds for each cell by the model, for each method that is possible.

    Raises
    ------
    LayoutError
        If the weights do not fit the grid.
    ProgramError
        If the method is not possible.

    Examples
    --------
    ::

        y, x = np.ogrid[-13:14, -13:14]
        disc = (y**2 + x**2 <= 13**2) / 529
        mean = mg.solve.Convolution(grid, disc)
        mean(step, u, neighbours)
        mg.Model(..., fields=(u, neighbours, *mean.fields), initial={**mean.initial, ...}, hierarchies=mean.hierarchies)
    """

    grid: Grid
    weights: Any
    method: Method | Literal["auto"] = "auto"
    name: str = "convolution"
    factors: tuple[Weights, ...] | None = field(init=False)
    costs: Mapping[Method, float] = field(init=False)
    fft: FFT | None = field(init=False)
    transform: tuple[Field, ...] = field(init=False)
    between: dict[Boundary, tuple[Field, ...]] = field(init=False, default_factory=dict)
    """Fields between the axes of the separable method, with the conditions of the source."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        factors, array = _checked(self.weights, self.grid)
        put(self, "factors", factors)
        put(self, "weights", array)
        put(self, "costs", self._costs())
        put(self, "method", self._chosen())
        fft = FFT(self.grid, name=self.name) if self.method == "fft" else None
        put(self, "fft", fft)
        words = (" re",) if self._symmetric else (" re", " im")
        put(
            self, "transform",
            () if fft is None else tuple(Field(f"{self.name} weights{word}", fft.modes) for word in words),
        )  # fmt: skip

    def _costs(self) -> dict[Method, float]:
        """Return the cost of each method that is possible."""
        taps = np.count_nonzero(self.array)
        found: dict[Method, float] = {}
        if self.factors is not None:
            found["separable"] = NANOSECONDS_PER_TAP * sum(map(np.count_nonzero, self.factors))
            found["separable"] += 0.5 * (self.grid.ndim - 1)  # memory between the axes
        if taps <= MOST_TAPS:
            found["direct"] = NANOSECONDS_PER_TAP * taps
        if all(self.grid.periodic) and not self.grid.twisted:
            found["fft"] = NANOSECONDS_PER_LEVEL * math.log2(max(self.grid.size, 2)) + NANOSECONDS_PER_CELL
        return found

    def _chosen(self) -> Method:
        if self.method == "auto" and self.costs:
            return min(self.costs.items(), key=lambda pair: pair[1])[0]
        if self.method in self.costs and self.method != "auto":
            return self.method
        possible = ", ".join(self.costs) or "none"
        raise ProgramError(
            f"a convolution of {np.count_nonzero(self.array)} weights on {self.grid!r} by method {shown(self.method)}; "
            f"possible: {possible}",
            remedy='"fft" needs a periodic box, "direct" at most '
            f'{MOST_TAPS} weights, and "separable" one array of weights for each axis',
        )

    @functools.cached_property
    def array(self) -> Weights:
        """The weights as one array."""
        if self.factors is None:
            array: Weights = self.weights
            return array
        return functools.reduce(np.multiply.outer, self.factors)

    @property
    def _symmetric(self) -> bool:
        """True if weights in opposite directions are equal, so that their transform is real."""
        return bool(np.array_equal(self.array, np.flip(self.array)))

    @property
    def radius(self) -> tuple[int, ...]:
        """Number of cells along each axis on either side of the middle."""
        return tuple(n // 2 for n in self.array.shape)

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields of the convolution that have been recorded, for ``mg.Model(..., fields=...)``."""
        if self.fft is not None:
            return (*self.transform, *self.fft.fields)
        return tuple(item for items in self.between.values() for item in items)

    @property
    def hierarchies(self) -> tuple[FFT, ...]:
        """The transform, for ``mg.Model(..., hierarchies=...)``; empty for other methods."""
        return () if self.fft is None else (self.fft,)

    @functools.cached_property
    def initial(self) -> Mapping[Field, Any]:
        """The transform of the weights, for ``mg.Model(..., initial=...)``."""
        if self.fft is None:
            return {}
        require("scipy")
        from scipy import fft

        whole = np.zeros(self.grid.shape)
        index = np.ix_(*(np.arange(-r, r + 1) % n for r, n in zip(self.radius, self.grid.shape, strict=True)))
        np.add.at(whole, index, self.array)
        modes = fft.rfft(whole, axis=-1)
        for axis in range(self.grid.ndim - 2, -1, -1):
            modes = fft.fft(modes, axis=axis, overwrite_x=True)
        scale = self.fft.scale
        parts = [np.ascontiguousarray(part) * scale for part in (modes.real, modes.imag)]
        return {item: _of_box(part) for item, part in zip(self.transform, parts, strict=False)}

    def __call__(self, program: Program, source: Item, target: Item) -> None:
        """Record target = weights * source.

        Parameters
        ----------
        program
            The Program to record into.
        source
            A field at the cells of the grid, f8; without "fft" its conditions say what lies beyond walls.
        target
            The result, another field.
        """
        if self.fft is not None:
            self.fft.filter(program, source, self.transform, target)
            return
        if self.method == "direct":
            program.apply(_written_out(self.array, "convolution"), source, target)
            return
        assert self.factors is not None
        come: Item = source
        for axis, goal in enumerate((*self._between(source), target)):
            shape = [1] * self.grid.ndim
            shape[axis] = -1
            program.apply(_written_out(self.factors[axis].reshape(shape), f"convolution-{axis}"), come, goal)
            come = goal

    def _between(self, source: Item) -> tuple[Field, ...]:
        """Return the fields between the axes, which obey the conditions of the source if these are homogeneous."""
        boundary = (source.field if isinstance(source, Slot) else source).boundary
        if boundary not in self.between:
            if any(not condition.homogeneous for pair in boundary.sides for condition in pair if condition is not None):
                raise ProgramError(
                    f"a convolution of {source!r} axis by axis, whose conditions do not hold between the axes",
                    remedy='write method="direct", or give conditions whose values are 0',
                )
            number = f" {len(self.between)}" if self.between else ""
            self.between[boundary] = tuple(
                Field(f"{self.name} axis {k}{number}", self.grid, boundary=boundary) for k in range(self.grid.ndim - 1)
            )
        return self.between[boundary]

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.array.shape))
        costs = ", ".join(f"{name} {cost:.3g}" for name, cost in self.costs.items())
        return f"Convolution({size} weights, method {self.method!r}; ns a cell by the model: {costs})"


def _of_box(values: Weights) -> Any:
    def part(box: Box) -> Weights:
        return values[box.slices((0,) * box.ndim)]

    return part


def _checked(given: Any, grid: Grid) -> tuple[tuple[Weights, ...] | None, Weights]:
    """Return the factors of weights, if there are any, and their array."""
    factors = None
    if isinstance(given, Sequence) and all(np.ndim(item) == 1 for item in given) and len(given) == grid.ndim > 1:
        factors = tuple(np.asarray(item, np.float64) for item in given)
    arrays = factors if factors is not None else (np.asarray(given, np.float64),)
    shape = tuple(len(item) for item in factors) if factors is not None else arrays[0].shape
    if len(shape) != grid.ndim or any(n % 2 == 0 for n in shape):
        raise LayoutError(
            f"weights of shape {shape} on a grid of {grid.ndim} axes",
            remedy="give an array with an odd number of weights along each axis, or one array for each axis",
        )
    if not all(np.isfinite(item).all() for item in arrays):
        raise LayoutError("a weight is not finite", remedy="give finite numbers")
    return factors, arrays[0]


def _written_out(weights: Weights, name: str) -> Kernel:
    """Return the kernel that adds up all neighbours, from the first weight to the last."""
    middle = [n // 2 for n in weights.shape]
    taps = [
        (tuple(int(m - i) for m, i in zip(middle, index, strict=True)), float(weights[tuple(index)]))
        for index in np.argwhere(weights)
    ]

    def convolve(u: CellReader, result: CellReader) -> None:
        here = (0,) * weights.ndim
        terms = (weight * u[offsets] for offsets, weight in taps)
        result[here] = functools.reduce(operator.add, terms, 0.0) if not taps else functools.reduce(operator.add, terms)

    return Kernel(convolve, name=name)
