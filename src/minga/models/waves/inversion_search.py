"""Searches of an inversion on rank 0: scaled variables, what is known so far, its file, and L-BFGS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.extras import require
from minga.models.waves.inversion_file import Stored, identity, load, save
from minga.models.waves.inversion_units import units_of
from minga.models.waves.medium import Floats

if TYPE_CHECKING:
    from minga.models.waves.inversion import Inversion, Progress

__all__ = ["Search", "Values", "lbfgs", "summed", "total"]

FIRST: Final = 0.01
"""Largest change of a quantity, in its unit, by the first step of an inversion."""

COSTS: Final[Mapping[str, int]] = {"gradient": 2, "misfit": 1, "normal": 3, "illumination": 1}
"""Simulations of a shot by each task."""

Values = Mapping[str, NDArray[np.float64]]


def total(values: Floats) -> float:
    """Return the sum of all values, one after the other: the same bits with any library."""
    return float(np.add.accumulate(values.ravel())[-1])


def summed(parts: Sequence[tuple[float, dict[str, Floats]]], wrt: Sequence[str]) -> tuple[float, dict[str, Floats]]:
    """Return the sums of misfits and gradients in the order of the shots."""
    misfit, slopes = 0.0, {name: np.zeros_like(parts[0][1][name]) for name in wrt}
    for number, each in parts:
        misfit += number
        slopes = {name: slopes[name] + each[name] for name in wrt}
    return misfit, slopes


class Search:
    """A search of rank 0: its variables, and what is known so far.

    Variables are changes from the start, divided by the unit of their quantity, the preconditioner and the mask.

    Parameters
    ----------
    inversion
        The inversion.
    start
        The initial medium.
    iterations
        The most iterations.
    file
        File of the medium and the misfits.
    callback
        Called after each iteration.
    ranks
        Ranks that share the shots.
    """

    def __init__(
        self, inversion: Inversion, start: dict[str, Floats], iterations: int, file: Path | None,
        callback: Callable[[Progress], None] | None, ranks: Any,
    ) -> None:  # fmt: skip
        self.inversion, self.iterations, self.file, self.callback, self.ranks = (
            inversion, iterations, file, callback, ranks,
        )  # fmt: skip
        self.shapes = {name: values.shape for name, values in start.items()}
        self.start = {name: self.within(name, values) for name, values in start.items()}
        self.units = units_of(inversion, start)
        self.weights: Floats | float = 1.0
        self.values: Mapping[str, Floats] = dict(self.start)
        self.misfits: list[float] = []
        self.evaluations = self.simulations = 0
        self.history: list[tuple[float, Floats]] = []
        self.key = {} if file is None else identity(inversion, start)
        if file is not None and file.exists():
            stored = load(file, self.key, self.shapes)
            self.misfits, self.values, self.history = list(stored.misfits), stored.values, list(stored.history)

    @property
    def left(self) -> int:
        """Number of iterations that are not done yet."""
        return self.iterations - max(0, len(self.misfits) - 1)

    def ask(self, task: str, content: Any) -> list[Any]:
        """Return the results of a task for all shots, computed by all ranks.

        Parameters
        ----------
        task
            Name of the task.
        content
            Its further argument.

        Returns
        -------
        list
            Results in the order of the shots.
        """
        self.ranks.bcast((task, content))
        found = self.inversion.perform(task, content, self.ranks)
        assert found is not None
        self.simulations += COSTS[task] * len(found)
        return found

    def progress(self, message: str = "", *, ended: bool = False) -> Progress:
        """Return the state; tell the final one to the other ranks."""
        from minga.models.waves.inversion import Progress

        content = (
            len(self.misfits) - 1, tuple(self.misfits), self.evaluations, self.values, message, self.simulations,
        )  # fmt: skip
        if ended:
            self.ranks.bcast(("progress", content))
        return Progress(*content)

    def iterated(self, values: dict[str, Floats], misfit: float) -> None:
        """Note an iteration: write the file and call back."""
        self.values = values
        self.misfits.append(misfit)
        if self.file is not None:
            save(self.file, self.key, Stored(self.misfits, self.values, self.history))
        if self.callback is not None:
            self.callback(self.progress())

    # Variables -----------------------------------------------------------------------------------------------------
    def precondition(self) -> None:
        """Set the preconditioner from the illumination of the initial medium, 1 in the darkest cell."""
        if self.inversion.precondition is None:
            return
        illumination = np.zeros(next(iter(self.shapes.values())))
        for part in self.ask("illumination", self.start):
            illumination = illumination + part
        illumination = illumination + self.inversion.floor * float(illumination.max())
        if not illumination.max() > 0:
            return
        self.weights = np.sqrt(float(illumination.min()) / illumination)

    def scale(self, name: str) -> Floats | float:
        """Return the unit of the variables of a quantity in each cell: 0 where the mask is 0."""
        return self.units[name] * self.weights * self.mask

    def within(self, name: str, values: Floats) -> Floats:
        """Return values within the bounds of a quantity."""
        low, high = self.inversion.bounds.get(name, (-np.inf, np.inf))
        return np.clip(values, low, high)

    def split(self, x: Floats) -> dict[str, Floats]:
        """Return the parts of a vector that belong to the quantities, as arrays."""
        sizes = [int(np.prod(self.shapes[name])) for name in self.inversion.wrt]
        parts = np.split(x, np.cumsum(sizes)[:-1])
        return {name: part.reshape(self.shapes[name]) for name, part in zip(self.inversion.wrt, parts, strict=True)}

    def joined(self, parts: Values) -> Floats:
        """Return arrays of all quantities as a vector."""
        return np.concatenate([parts[name].ravel() for name in self.inversion.wrt])

    def medium(self, x: Floats) -> dict[str, Floats]:
        """Return the medium for variables; cells that do not change have exactly their values."""
        return {
            name: self.within(name, self.start[name] + part * self.scale(name)) for name, part in self.split(x).items()
        }

    def bounds(self, unit: float) -> list[tuple[float | None, float | None]]:
        """Return the bounds of variables divided by a unit."""
        found: list[tuple[float | None, float | None]] = []
        for name in self.inversion.wrt:
            low, high = self.inversion.bounds.get(name, (-np.inf, np.inf))
            factor = np.broadcast_to(np.asarray(self.scale(name)) * unit, self.shapes[name]).ravel()
            used = np.where(factor > 0, factor, 1.0)
            ends = [(np.asarray(end, np.float64) - self.start[name]).ravel() / used for end in (low, high)]
            found += [
                (float(a) if np.isfinite(a) else None, float(b) if np.isfinite(b) else None)
                for a, b in zip(*ends, strict=True)
            ]
        return found

    @property
    def mask(self) -> Floats | float:
        """Factor of the unit of each cell."""
        return 1.0 if self.inversion.mask is None else np.asarray(self.inversion.mask, np.float64)


def lbfgs(search: Search) -> str:
    """Search by L-BFGS-B of SciPy; return the reason of the end.

    Parameters
    ----------
    search
        The search. The gradients in its history are not computed again.

    Returns
    -------
    str
        The reason.
    """
    require("scipy")
    from scipy.optimize import minimize

    if search.left <= 0:
        return "all iterations were done before"
    search.precondition()
    run = _Lbfgs(search)
    begin = np.zeros(sum(values.size for values in search.start.values()))
    first, slopes = run.evaluated(begin)
    if not search.misfits:
        search.misfits.append(first)
    size = float(np.abs(slopes).max())
    if first == 0.0 or size == 0.0:
        return "the gradient is 0"
    # L-BFGS-B begins with a step of length min(1, 1 / |g|) along -g; in variables divided by `unit` it is FIRST.
    run.unit, run.unit_of_misfit = FIRST * float(np.sqrt(total(slopes * slopes))) / size, first
    most = search.left + run.known
    result = minimize(
        run.objective, begin, jac=True, method="L-BFGS-B", bounds=search.bounds(run.unit), callback=run.iterated,
        options={"maxiter": most, "maxfun": 20 * most, "ftol": 0.0, "gtol": 0.0},
    )  # fmt: skip
    return str(result.message)


class _Lbfgs:
    """Objective of L-BFGS-B, in scaled variables."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.unit = self.unit_of_misfit = 1.0
        self.past = list(search.history)
        self.known = max(0, len(search.misfits) - 1) if self.past else 0
        """Number of iterations that are repeated from the history."""
        self.number = self.done = 0

    def evaluated(self, x: Floats) -> tuple[float, Floats]:
        """Return the misfit and its gradient by the scaled quantities."""
        search = self.search
        if self.number < len(self.past):
            misfit, slopes = self.past[self.number]
        else:
            misfit, found = summed(search.ask("gradient", search.medium(x)), search.inversion.wrt)
            slopes = search.joined({name: found[name] * search.scale(name) for name in found})
            search.evaluations += 1
            if search.file is not None:
                search.history.append((misfit, slopes))
        self.number += 1
        return misfit, slopes

    def objective(self, x: Floats) -> tuple[float, Floats]:
        """Return the scaled misfit and its gradient."""
        misfit, slopes = self.evaluated(x * self.unit)
        return misfit / self.unit_of_misfit, slopes * (self.unit / self.unit_of_misfit)

    def iterated(self, intermediate_result: Any) -> None:
        """Note an iteration, unless it is repeated."""
        self.done += 1
        if self.done > self.known:
            result = intermediate_result
            values = self.search.medium(np.asarray(result.x) * self.unit)
            self.search.iterated(values, float(result.fun) * self.unit_of_misfit)
