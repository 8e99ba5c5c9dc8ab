"""Full-waveform inversion: the medium whose shots fit the observed ones best, by L-BFGS or Gauss-Newton, with bounds.

Shots are shared out over the ranks, each of which computes its own ones alone; their gradients are added in the order
of the shots, so that results do not depend on the number of ranks. Rank 0 searches, and the others compute what it asks
for: one of TASKS for each of their shots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from minga.engine.comm import Comm, SerialComm
from minga.errors import CaseError, MingaError, RunError
from minga.models.waves.born_normal import shot_normal
from minga.models.waves.gauss_newton import gauss_newton
from minga.models.waves.gradient import sensitivity_of
from minga.models.waves.illumination import shot_illumination
from minga.models.waves.inversion_checks import Method, Preconditioner, check_inversion, check_run, checked_start
from minga.models.waves.inversion_search import Search, Values, lbfgs, summed
from minga.models.waves.kept_gradients import KeptGradients
from minga.models.waves.medium import Floats
from minga.models.waves.misfits import Misfit, l2
from minga.models.waves.shot import AnyWaves, Shot, checked_data, shot_traces
from minga.solve.adjoint.adjoint import MEMORY

__all__ = ["Inversion", "Method", "Preconditioner", "Progress"]


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
        Factor, from 0 to 1, of the unit in which each cell varies, so that its square is one of changes along the
        gradient: 0 where the medium is known, such as water, and near sources.
    units
        Changes of quantities that count alike, by name: with a larger one a quantity changes more along the gradient.
        By default 1 for epsilon, delta and angles, and the largest initial value of the others.
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

    Attributes
    ----------
    kept
        What is prepared for the gradients of shots, and serves for every medium.
    steps
        Time steps of the shots computed so far, s, by their numbers.
    """

    shots: Sequence[Shot]
    waves: Callable[[Values, Shot], AnyWaves]
    wrt: Sequence[str] = ("vp",)
    misfit: str | Misfit = "l2"
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    mask: NDArray[Any] | None = None
    units: Mapping[str, float] = field(default_factory=dict, kw_only=True)
    memory: int = MEMORY
    threads: int = 1
    method: Method = "l-bfgs"
    precondition: Preconditioner | None = None
    floor: float = 1e-2
    inner: int = 8
    damping: float = 1e-3
    kept: KeptGradients = field(default_factory=KeptGradients, init=False, repr=False)
    steps: dict[int, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_inversion(self)

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

        Raises
        ------
        CaseError
            If an array of the medium is missing or cannot be.
        """
        ranks: Any = comm or SerialComm()
        known = checked_start(self, values)
        parts = self.perform("gradient", {**values, **known}, ranks)
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
        failed: Exception | None = None
        number = ranks.rank
        try:
            for number in range(ranks.rank, len(self.shots), ranks.size):
                own.append((number, TASKS[task](self, number, content)))
        except Exception as error:  # whatever it is, the other ranks wait
            failed, own = error, _told(error, f"shots[{number}]")
        every = ranks.gather(own)
        problems = [] if every is None else [part for part in every if isinstance(part, MingaError)]
        problem = ranks.bcast(problems[0] if problems else None)
        if problem is not None:
            raise failed or problem
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
        none of their cells by more than a hundredth of its unit.

        Parameters
        ----------
        start
            The initial medium: an array for each quantity in `wrt`.
        iterations
            The most iterations.
        file
            File (.npz) of the medium and the misfits, written after each iteration; if it exists, the inversion resumes
            from it, and its iterations count. The result then has the bits of a run that was not interrupted: for
            L-BFGS the file holds all gradients. The arguments must be the same, `waves`, `memory`, `threads` and
            `iterations` aside.
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
            If an argument cannot be, or the file is damaged or belongs to another inversion.
        RunError
            If the file cannot be written, or another rank ends with an error of another kind.
        """
        ranks: Any = comm or SerialComm()
        known = checked_start(self, start)
        check_run(iterations, file, callback)
        self.perform("step", {**start, **known}, ranks)  # so that later media, and a resumed search, have these steps
        if ranks.rank:
            return self._serve(ranks)
        end: Any = RunError("the inversion was interrupted on rank 0")
        try:
            search = Search(self, known, iterations, None if file is None else Path(file), callback, ranks)
            end = gauss_newton(search) if self.method == "gauss-newton" else lbfgs(search)
        except Exception as error:  # whatever it is, the other ranks wait
            end = _told(error, "rank 0")
            raise
        finally:
            ranks.bcast(("end", end))
        return search.progress(end, ended=True)

    def _serve(self, ranks: Any) -> Progress:
        """Compute what rank 0 asks for until the search ends."""
        failed: Exception | None = None
        while True:
            task, content = ranks.bcast(None)
            if task == "end":
                if isinstance(content, str):
                    continue
                raise failed or content
            if task == "progress":
                return Progress(*content)
            try:
                self.perform(task, content, ranks)
            except Exception as error:  # rank 0 has it too, and ends the search
                failed = error


# Tasks -------------------------------------------------------------------------------------------------------------
def _prepared(inversion: Inversion, number: int, values: Values) -> AnyWaves:
    """Return waves of a shot; raise CaseError for other objects, and for a time step that depends on the medium."""
    waves = inversion.waves(values, inversion.shots[number])
    sensitivity_of(waves)
    known = inversion.steps.setdefault(number, waves.dt)
    if waves.dt != known:
        raise CaseError(
            f"the time step of shots[{number}] is {waves.dt:g} s in one medium and {known:g} s in another, so that "
            "samples are not at the times of the data",
            key="waves",
            remedy="give prepare(dt=...) one step, stable for the largest velocity of the bounds",
        )
    return waves


def _gradient(inversion: Inversion, number: int, values: Values) -> tuple[float, dict[str, Floats]]:
    """Return the misfit of a shot and its gradient."""
    shot = inversion.shots[number]
    misfit, slopes = inversion.kept.of(
        number, _prepared(inversion, number, values), shot, inversion.wrt, inversion.misfit, inversion.memory,
        inversion.threads,
    )  # fmt: skip
    assert slopes is not None
    for name, slope in slopes.items():
        if slope.shape != values[name].shape:
            raise CaseError(
                f"{name} has shape {values[name].shape}, and the model of shots[{number}] has {slope.shape}",
                key="start",
                remedy="give arrays of the shape of the model, and the same model for all shots",
            )
    return misfit, slopes


def _misfit(inversion: Inversion, number: int, values: Values) -> float:
    """Return the misfit of a shot, half the sum of squares."""
    shot = inversion.shots[number]
    data = checked_data(shot)
    return l2(shot_traces(_prepared(inversion, number, values), shot, len(data), threads=inversion.threads), data)[0]


def _normal(inversion: Inversion, number: int, content: tuple[Values, Floats]) -> tuple[Floats, float]:
    """Return the product of a shot's Gauss-Newton Hessian with a change of the medium, and the change of the traces."""
    values, change = content
    shot = inversion.shots[number]
    return shot_normal(
        _prepared(inversion, number, values), shot, change, inversion.wrt, memory=inversion.memory,
        threads=inversion.threads,
    )  # fmt: skip


def _illumination(inversion: Inversion, number: int, values: Values) -> Floats:
    """Return the illumination by a shot."""
    shot = inversion.shots[number]
    samples = len(checked_data(shot))
    return shot_illumination(_prepared(inversion, number, values), shot, samples, threads=inversion.threads)


def _step(inversion: Inversion, number: int, values: Values) -> float:
    """Return the seconds of a step of a shot."""
    return _prepared(inversion, number, values).dt


TASKS: Final[Mapping[str, Callable[[Inversion, int, Any], Any]]] = {
    "gradient": _gradient, "misfit": _misfit, "normal": _normal, "illumination": _illumination, "step": _step,
}  # fmt: skip
"""Functions that compute a task of a shot, from its number and a further argument."""


def _told(error: Exception, where: str) -> MingaError:
    """Return an error of any kind as one that other ranks can raise."""
    if isinstance(error, MingaError):
        return error
    return RunError(f"{where} ended with {type(error).__name__}: {error}", remedy="see the traceback of that rank")
