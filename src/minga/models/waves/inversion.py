"""Full-waveform inversion: the medium whose shots fit the observed ones best, by L-BFGS or Gauss-Newton, with bounds.

Shots are shared out over the ranks, each of which computes its own ones alone; their gradients are added in the order
of the shots, so that results do not depend on the number of ranks. Rank 0 searches, and the others compute what it asks
for: one of TASKS for each of their shots.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm, SerialComm
from minga.errors import CaseError, MingaError
from minga.models.waves.born_normal import shot_normal
from minga.models.waves.gauss_newton import gauss_newton
from minga.models.waves.gradient import QUANTITIES, shot_gradient
from minga.models.waves.illumination import shot_illumination
from minga.models.waves.inversion_search import Search, Values, lbfgs, summed
from minga.models.waves.medium import Floats
from minga.models.waves.misfits import Misfit, l2
from minga.models.waves.shot import AnyWaves, Shot, checked_data, shot_traces
from minga.solve.adjoint.adjoint import MEMORY

__all__ = ["Inversion", "Method", "Preconditioner", "Progress"]

Method = Literal["l-bfgs", "gauss-newton"]
Preconditioner = Literal["illumination"]


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
    simulations
        Number of simulations of shots in this call: 2 for a gradient, 3 for a product with the Hessian of Gauss-Newton,
        1 for a misfit alone or an illumination.
    """

    iteration: int
    misfits: tuple[float, ...]
    evaluations: int
    values: Values
    message: str = ""
    simulations: int = 0


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
        "rho", "inverse_q" (1 / Q of the attenuation); of elastic waves "vp", "vs", "rho".
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
    method
        "l-bfgs" (SciPy's L-BFGS-B), or "gauss-newton", for the misfit "l2": each iteration solves the linearised
        problem by conjugate gradients (`minga.models.waves.gauss_newton`).
    precondition
        "illumination": quantities vary in inverse proportion to the root of the sum over time and shots of p^2 in the
        initial medium, so that cells far from the sources change as those near them; None: alike.
    floor
        Part of the largest illumination that is added to it.
    inner
        Most iterations of conjugate gradients in one of Gauss-Newton.
    damping
        Weight of the size of a change beside the misfit, relative to the curvature of the misfit along its gradient.
    """

    shots: Sequence[Shot]
    waves: Callable[[Values, Shot], AnyWaves]
    wrt: Sequence[str] = ("vp",)
    misfit: str | Misfit = "l2"
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    mask: NDArray[Any] | None = None
    memory: int = MEMORY
    threads: int = 1
    method: Method = "l-bfgs"
    precondition: Preconditioner | None = None
    floor: float = 1e-2
    inner: int = 8
    damping: float = 1e-3

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
        self._check_method()

    def _check_method(self) -> None:
        if self.method not in get_args(Method):
            raise _wrong("method", self.method, f"choose one of {', '.join(get_args(Method))}")
        if self.precondition not in (None, *get_args(Preconditioner)):
            raise _wrong("precondition", self.precondition, 'choose "illumination" or None')
        if not _number(self.floor) or self.floor <= 0:
            raise _wrong("floor", self.floor, "give a positive number: 1e-2")
        if not _number(self.damping) or self.damping < 0:
            raise _wrong("damping", self.damping, "give 0 or a positive number: 1e-3")
        if isinstance(self.inner, bool) or not isinstance(self.inner, int) or self.inner < 1:
            raise _wrong("inner", self.inner, "give a whole number, 1 or more")
        if self.method == "gauss-newton" and self.misfit != "l2":
            raise CaseError(
                f"Gauss-Newton with the misfit {self.misfit!r}, which is no sum of squares",
                key="misfit",
                remedy='choose misfit = "l2", or method = "l-bfgs"',
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
        parts = self.perform("gradient", values, ranks)
        total, slopes = ranks.bcast(None if parts is None else summed(parts, self.wrt))
        return total, slopes

    def perform(self, task: str, content: Any, ranks: Any) -> list[Any] | None:
        """Compute a task for each shot; collective.

        Parameters
        ----------
        task
            Name of an entry of TASKS.
        content
            Its further argument, equal on all ranks.
        ranks
            Ranks that share the shots.

        Returns
        -------
        list or None
            The results in the order of the shots on rank 0; None on the others.
        """
        own: Any = []
        try:
            for number in range(ranks.rank, len(self.shots), ranks.size):
                own.append((number, TASKS[task](self, number, content)))
        except MingaError as error:
            own = error
        every = ranks.gather(own)
        failed = [] if every is None else [part for part in every if isinstance(part, MingaError)]
        problem = ranks.bcast(failed[0] if failed else None)
        if problem is not None:
            raise problem
        if every is None:
            return None
        entries = sorted((entry for part in every for entry in part), key=lambda entry: entry[0])
        return [result for _, result in entries]

    def run(
        self,
        start: Values,
        iterations: int,
        *,
        file: str | Path | None = None,
        callback: Callable[[Progress], None] | None = None,
        comm: Comm | None = None,
    ) -> Progress:
        """Vary the medium; collective.

        For L-BFGS the misfit is divided by its first value, and quantities are scaled so that the first step changes
        none of their cells by more than a hundredth of its largest value.

        Parameters
        ----------
        start
            The initial medium: an array for each quantity in `wrt`.
        iterations
            The most iterations.
        file
            File (.npz) of the medium and the misfits, written after each iteration; if it exists, the inversion resumes
            from it, and its iterations count. With the same arguments the result then has the bits of a run that was
            not interrupted: for L-BFGS the file holds all gradients.
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
        path = None if file is None else Path(file)
        search = Search(self, known, iterations, path, callback, ranks)
        final: Any = None
        try:
            final = gauss_newton(search) if self.method == "gauss-newton" else lbfgs(search)
        finally:
            ranks.bcast(("end", final))
        return search.progress(str(final), ended=True)

    def _serve(self, ranks: Any) -> Progress:
        """Compute what rank 0 asks for until the search ends."""
        failed: MingaError | None = None
        while True:
            task, content = ranks.bcast(None)
            if task == "end":
                if content is not None:
                    continue
                raise failed or CaseError("the inversion ended with an error on rank 0", remedy="see its message")
            if task == "progress":
                return Progress(*content)
            try:
                self.perform(task, content, ranks)
            except MingaError as error:  # rank 0 has it too, and ends the search
                failed = error


# Tasks -------------------------------------------------------------------------------------------------------------
def _gradient(inversion: Inversion, number: int, values: Values) -> tuple[float, dict[str, Floats]]:
    """Return the misfit of a shot and its gradient."""
    shot = inversion.shots[number]
    misfit, slopes = shot_gradient(
        inversion.waves(values, shot), shot, inversion.wrt, misfit=inversion.misfit, memory=inversion.memory,
        threads=inversion.threads,
    )  # fmt: skip
    assert slopes is not None
    return misfit, slopes


def _misfit(inversion: Inversion, number: int, values: Values) -> float:
    """Return the misfit of a shot, half the sum of squares."""
    shot = inversion.shots[number]
    data = checked_data(shot)
    return l2(shot_traces(inversion.waves(values, shot), shot, len(data), threads=inversion.threads), data)[0]


def _normal(inversion: Inversion, number: int, content: tuple[Values, Floats]) -> tuple[Floats, float]:
    """Return the product of a shot's Gauss-Newton Hessian with a change of the medium, and the change of the traces."""
    values, change = content
    shot = inversion.shots[number]
    return shot_normal(
        inversion.waves(values, shot), shot, change, inversion.wrt, memory=inversion.memory, threads=inversion.threads
    )


def _light(inversion: Inversion, number: int, values: Values) -> Floats:
    """Return the illumination by a shot."""
    shot = inversion.shots[number]
    samples = len(checked_data(shot))
    return shot_illumination(inversion.waves(values, shot), shot, samples, threads=inversion.threads)


TASKS: Final[Mapping[str, Callable[[Inversion, int, Any], Any]]] = {
    "gradient": _gradient, "misfit": _misfit, "normal": _normal, "light": _light,
}  # fmt: skip
"""Functions that compute a task of a shot, from its number and a further argument."""


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _wrong(key: str, value: object, remedy: str) -> CaseError:
    return CaseError(f"the {key} of an inversion is {value!r}", key=key, remedy=remedy)
