"""Full-waveform inversion: the medium whose shots fit the observed ones best, by L-BFGS with bounds.

Shots are shared out over the ranks, each of which computes its own ones alone; their gradients are added in the order
of the shots, so that results do not depend on the number of ranks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm, SerialComm
from minga.errors import CaseError, MingaError
from minga.models.waves.gradient import QUANTITIES, shot_gradient
from minga.models.waves.medium import Floats
from minga.models.waves.misfits import Misfit
from minga.models.waves.shot import AnyWaves, Shot
from minga.output.directory import appearing
from minga.solve.adjoint.adjoint import MEMORY

__all__ = ["Inversion", "Progress"]

FIRST: Final = 0.01
"""Largest relative change of a quantity by the first step of an inversion."""

Values = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True, eq=False)
class Progress:
    """State of an inversion after an iteration.

    Parameters
    ----------
    iteration
        Number of iterations done.
    misfits
        Misfit at the start, and after each iteration.
    evaluations
        Number of gradients computed, in this call.
    values
        The medium.
    message
        Reason of the end, if it has ended.
    """

    iteration: int
    misfits: tuple[float, ...]
    evaluations: int
    values: Values
    message: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Inversion:
    """Search for the medium of some shots.

    Parameters
    ----------
    shots
        Shots with their data.
    waves
        ``waves(values, shot)`` returns waves in the medium ``values``, for one of the shots: `prepare`, or
        `minga.models.waves.elastic.prepare_elastic`, with a time step that is stable for all media within the bounds.
    wrt
        Quantities that are varied, arrays in ``values``: "vp", "slowness", "epsilon", "delta", "theta", "phi",
        "density"; of elastic waves "vp", "vs", "rho".
    misfit
        "l2", "normalised", "envelope" or a function, as for `shot_gradient`.
    bounds
        Lowest and highest value of quantities, each a number or an array.
    mask
        Factor of the gradient in each cell: 0 where the medium is known, such as water, and near sources.
    memory
        Bytes of each rank for states of waves.
    threads
        Threads of each rank.
    """

    shots: Sequence[Shot]
    waves: Callable[[Values, Shot], AnyWaves]
    wrt: Sequence[str] = ("vp",)
    misfit: str | Misfit = "l2"
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    mask: NDArray[Any] | None = None
    memory: int = MEMORY
    threads: int = 1

    def __post_init__(self) -> None:
        if not self.shots:
            raise CaseError("an inversion without shots", key="shots", remedy="give at least one, with its data")
        for name in (*self.wrt, *self.bounds):
            if name not in QUANTITIES or name not in self.wrt:
                raise CaseError(
                    f"{name!r} is not varied" if name in QUANTITIES else f"there is no quantity {name!r}",
                    key="bounds" if name in self.bounds else "wrt",
                    remedy=f"choose from {', '.join(QUANTITIES)}",
                )

    def gradient(self, values: Values, comm: Comm | None = None) -> tuple[float, dict[str, Floats]]:
        """Return the misfit of all shots and its gradient, without the mask; collective.

        Parameters
        ----------
        values
            The medium.
        comm
            Ranks that share the shots; None: this process alone.

        Returns
        -------
        tuple
            The misfit, and an array for each quantity, on all ranks.
        """
        ranks: Any = comm or SerialComm()
        own: Any = []
        try:
            for number in range(ranks.rank, len(self.shots), ranks.size):
                own.append((number, *self._of_one(values, self.shots[number])))
        except MingaError as error:
            own = error
        every = ranks.gather(own)
        result: Any = None
        if every is not None:
            failed = [part for part in every if isinstance(part, MingaError)]
            result = failed[0] if failed else _summed([entry for part in every for entry in part], self.wrt)
        result = ranks.bcast(result)
        if isinstance(result, MingaError):
            raise result
        total, slopes = result
        return total, slopes

    def _of_one(self, values: Values, shot: Shot) -> tuple[float, dict[str, Floats]]:
        waves = self.waves(values, shot)
        number, slopes = shot_gradient(
            waves, shot, self.wrt, misfit=self.misfit, memory=self.memory, threads=self.threads
        )
        assert slopes is not None
        return number, slopes

    def run(
        self,
        start: Values,
        iterations: int,
        *,
        file: str | Path | None = None,
        callback: Callable[[Progress], None] | None = None,
        comm: Comm | None = None,
    ) -> Progress:
        """Vary the medium by L-BFGS (SciPy's L-BFGS-B); collective.

        The misfit is divided by its first value, and quantities are scaled so that the first step changes none of
        their cells by more than a hundredth of its largest value.

        Parameters
        ----------
        start
            The initial medium: an array for each quantity in `wrt`.
        iterations
            The most iterations.
        file
            File (.npz) of the medium and the misfits, written after each iteration; if it exists, the inversion resumes
            from it, and its iterations count.
        callback
            Called on rank 0 with the progress after each iteration.
        comm
            Ranks that share the shots; None: this process alone.

        Returns
        -------
        Progress
            The final state, on all ranks.

        Raises
        ------
        CaseError
            If an initial array is missing, or the file belongs to another inversion.
        RunError
            If the file cannot be written.
        """
        ranks: Any = comm or SerialComm()
        known = {name: np.asarray(start[name], np.float64) for name in self.wrt if name in start}
        if len(known) < len(self.wrt):
            raise CaseError(f"start has no {set(self.wrt) - set(known)}", key="start", remedy="give an array of each")
        if ranks.rank:
            return self._serve(ranks)
        search = _Search(self, known, iterations, None if file is None else Path(file), callback, ranks)
        final: Any = None
        try:
            final = search.run()
        finally:
            ranks.bcast(("end", final))
        return search.progress(str(final))

    def _serve(self, ranks: Any) -> Progress:
        """Compute gradients for rank 0 until the search ends."""
        failed: MingaError | None = None
        while True:
            task, content = ranks.bcast(None)
            if task == "end" and content is None:
                raise failed or CaseError("the inversion ended with an error on rank 0", remedy="see its message")
            if task == "progress":
                return Progress(*content)
            if task == "evaluate":
                try:
                    self.gradient(content, ranks)
                except MingaError as error:  # rank 0 has it too, and ends the search
                    failed = error


def _summed(entries: list[tuple[int, float, dict[str, Floats]]], wrt: Sequence[str]) -> tuple[float, dict[str, Floats]]:
    """Return the sums of misfits and gradients in the order of the shots."""
    entries.sort(key=lambda entry: entry[0])
    total, slopes = 0.0, {name: np.zeros_like(entries[0][2][name]) for name in wrt}
    for _, number, each in entries:
        total += number
        slopes = {name: slopes[name] + each[name] for name in wrt}
    return total, slopes


class _Search:
    """The search of rank 0: scaled variables for SciPy, and what is known so far."""

    def __init__(
        self, inversion: Inversion, start: dict[str, Floats], iterations: int, file: Path | None,
        callback: Callable[[Progress], None] | None, ranks: Any,
    ) -> None:  # fmt: skip
        self.inversion, self.iterations, self.file, self.callback, self.ranks = (
            inversion, iterations, file, callback, ranks,
        )  # fmt: skip
        self.values: dict[str, Floats] = start
        self.shapes = {name: values.shape for name, values in start.items()}
        self.misfits: list[float] = []
        self.evaluations = 0
        self.last: tuple[Floats, float] | None = None
        if file is not None and file.exists():
            self._resume(file)
        self.scales = {name: float(np.abs(values).max()) or 1.0 for name, values in self.values.items()}

    def run(self) -> str:
        """Return the reason of the end."""
        from scipy.optimize import minimize

        left = self.iterations - max(0, len(self.misfits) - 1)
        if left <= 0:
            return "all iterations were done before"
        self.start = {name: self._within(name, values) for name, values in self.values.items()}
        begin = np.zeros(sum(values.size for values in self.start.values()))
        first, slopes = self._evaluated(begin)
        if not self.misfits:
            self.misfits.append(first)
        size = float(np.abs(slopes).max())
        if first == 0.0 or size == 0.0:
            return "the gradient is 0"
        # L-BFGS-B begins with a step of length min(1, 1 / |g|) along -g; in variables divided by `unit` it is FIRST.
        self.unit = FIRST * float(np.linalg.norm(slopes)) / size
        self.unit_of_misfit = first
        result = minimize(
            self._objective, begin, jac=True, method="L-BFGS-B", bounds=self._bounds(),
            callback=self._iterated, options={"maxiter": left, "maxfun": 20 * left, "ftol": 0.0, "gtol": 0.0},
        )  # fmt: skip
        return str(result.message)

    def progress(self, message: str) -> Progress:
        """Return the final state, and tell it the other ranks."""
        content = (len(self.misfits) - 1, tuple(self.misfits), self.evaluations, self.values, message)
        self.ranks.bcast(("progress", content))
        return Progress(*content)

    # Variables -----------------------------------------------------------------------------------------------------
    def _within(self, name: str, values: Floats) -> Floats:
        """Return values within the bounds of a quantity."""
        low, high = self.inversion.bounds.get(name, (-np.inf, np.inf))
        return np.clip(values, low, high)

    def _unpacked(self, x: Floats) -> dict[str, Floats]:
        """Return the medium for changes from the start; cells that do not change have exactly their values."""
        sizes = [int(np.prod(self.shapes[name])) for name in self.inversion.wrt]
        parts = np.split(x, np.cumsum(sizes)[:-1])
        return {
            name: self._within(name, self.start[name] + part.reshape(self.shapes[name]) * self.scales[name])
            for name, part in zip(self.inversion.wrt, parts, strict=True)
        }

    def _bounds(self) -> list[tuple[float | None, float | None]]:
        found: list[tuple[float | None, float | None]] = []
        for name in self.inversion.wrt:
            low, high = self.inversion.bounds.get(name, (-np.inf, np.inf))
            ends = [(np.asarray(end, np.float64) - self.start[name]).ravel() for end in (low, high)]
            factor = self.scales[name] * self.unit
            found += [
                (float(a / factor) if np.isfinite(a) else None, float(b / factor) if np.isfinite(b) else None)
                for a, b in zip(*ends, strict=True)
            ]
        return found

    # Evaluations ---------------------------------------------------------------------------------------------------
    def _evaluated(self, x: Floats) -> tuple[float, Floats]:
        """Return the misfit and its gradient by the scaled quantities."""
        values = self._unpacked(x)
        self.ranks.bcast(("evaluate", values))
        total, slopes = self.inversion.gradient(values, self.ranks)
        self.evaluations += 1
        mask = 1.0 if self.inversion.mask is None else np.asarray(self.inversion.mask, np.float64)
        return total, np.concatenate([(slopes[n] * mask).ravel() * self.scales[n] for n in self.inversion.wrt])

    def _objective(self, x: Floats) -> tuple[float, Floats]:
        total, slopes = self._evaluated(x * self.unit)
        self.last = x.copy(), total
        return total / self.unit_of_misfit, slopes * (self.unit / self.unit_of_misfit)

    def _iterated(self, intermediate_result: Any) -> None:
        """Note an iteration."""
        self.values = self._unpacked(np.asarray(intermediate_result.x) * self.unit)
        self.misfits.append(float(intermediate_result.fun) * self.unit_of_misfit)
        if self.file is not None:
            self._save(self.file)
        if self.callback is not None:
            self.callback(Progress(len(self.misfits) - 1, tuple(self.misfits), self.evaluations, self.values))

    # The file ------------------------------------------------------------------------------------------------------
    def _save(self, file: Path) -> None:
        with appearing(file) as temporary, temporary.open("wb") as stream:
            np.savez(stream, allow_pickle=False, misfits=np.array(self.misfits), **self.values)
            stream.flush()
            os.fsync(stream.fileno())

    def _resume(self, file: Path) -> None:
        try:
            with np.load(file, allow_pickle=False) as stored:
                found = {name: stored[name].astype(np.float64) for name in stored.files}
        except (OSError, ValueError, KeyError) as error:
            raise CaseError(f"cannot read {file}: {error}", key="file", remedy="name another file") from error
        shapes = {name: array.shape for name, array in found.items() if name != "misfits"}
        if "misfits" not in found or shapes != self.shapes:
            raise CaseError(
                f"{file} is of another inversion: it has {json.dumps({n: list(s) for n, s in shapes.items()})}",
                key="file",
                remedy="name another file",
            )
        self.misfits = found.pop("misfits").tolist()
        self.values = found
