"""One run from beginning to end on the ranks there are: frames, digest, observables and ledger of a model.

``run`` is the way in from Python and returns what xarray works with; the command line writes the same to a directory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm, SerialComm
from minga.engine.drive import drive
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.errors import CaseError, suggest
from minga.record.digest import digest_of_blocks
from minga.record.ledger import ledger_entry
from minga.record.variables import CONVENTIONS, TIME, variables_of
from minga.space.cuts import parse_layout
from minga.space.field import Field

if TYPE_CHECKING:
    import xarray

__all__ = ["Outcome", "Settings", "execute", "run"]

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is done; none of it changes a bit of the result."""

    steps: int
    every: int | None = None
    threads: int = 1
    layout: str = "cartesian"
    halo_depth: int = 1
    overlap: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to; equal on all ranks, but for the ledger, which rank 0 has."""

    steps: int
    """Steps that were done."""
    seconds: float
    """Wall time of these steps, without output."""
    cells_per_second: float
    digest: str
    """Fingerprint of the last state, 16 hexadecimal digits: see :mod:`minga.record.digest`."""
    observables: dict[str, Any]
    stopped: bool
    """Whether somebody asked to stop before the last step."""
    ledger: list[dict[str, Any]] = field(default_factory=list)


def execute(
    model: Model,
    comm: Comm,
    settings: Settings,
    fields: Sequence[Field],
    on_frame: Callable[[int, Arrays], None] | None = None,
    on_progress: Callable[[int, float], None] | None = None,
    stop: Callable[[], bool] | None = None,
    cpus: Sequence[int] | None = None,
) -> Outcome:
    """Run a model on the ranks of ``comm``; collective.

    Parameters
    ----------
    model, comm, settings
        What, on which ranks, how.
    fields
        The output fields; they also make up the digest, in this order.
    on_frame
        Called on rank 0 with the step and whole arrays, at step 0, every ``settings.every`` steps, and at the end.
    on_progress
        Called on rank 0 now and then with the steps done and the seconds since the first.
    stop
        Asked on every rank now and then; where it says yes on any, all stop at the same step.
    cpus
        A logical processor for each thread to stay on; by default they move freely.
    """
    grids = dict.fromkeys((model.grid, *(item.grid for item in model.fields)))
    started = time.perf_counter()
    output = 0.0

    def snapshot(step: int, engine: Engine) -> None:
        nonlocal started, output
        began = time.perf_counter()
        if on_frame is not None:
            arrays = {field.name: engine.gather(field) for field in fields}
            if comm.rank == 0:
                on_frame(step, {name: array for name, array in arrays.items() if array is not None})
        ended = time.perf_counter()
        output += ended - began
        if step == 0:
            started = ended  # until here kernels were compiled

    def progress(step: int, steps: int, engine: Engine) -> None:
        if on_progress is not None and comm.rank == 0:
            on_progress(step, time.perf_counter() - started)

    with Engine(
        {grid: parse_layout(settings.layout, grid.box, comm.size) for grid in grids},
        comm=comm,
        threads=settings.threads,
        halo_depth=settings.halo_depth,
        overlap=settings.overlap,
        cpus=cpus,
    ) as engine:
        result = drive(
            model,
            engine,
            settings.steps,
            every=settings.every,
            on_snapshot=snapshot,
            on_progress=progress,
            stop=stop,
        )
        return Outcome(
            steps=result.steps,
            seconds=result.seconds,
            cells_per_second=result.cells_per_second,
            digest=state_digest(engine, fields),
            observables=dict(result.observables),
            stopped=result.steps < settings.steps,
            ledger=comm.gather(ledger_entry(engine, output)) or [],
        )


def state_digest(engine: Engine, fields: Sequence[Field]) -> str:
    """The digest of the present state of fields; collective, equal on all ranks."""
    mine = digest_of_blocks(
        # Of a field that every rank holds whole, one copy counts.
        [(f.bounds, engine.blocks(f) if engine.comm.rank == 0 or not f.replicated else ()) for f in fields]
    )
    words = np.array([mine], np.uint64).view(np.int64)
    engine.comm.allreduce(words, "sum")
    return f"{int(words.view(np.uint64)[0]):016x}"


def run(
    model: Model,
    steps: int,
    *,
    every: int | None = None,
    fields: Sequence[str] | None = None,
    threads: int = 1,
    comm: Comm | None = None,
    layout: str = "cartesian",
    halo_depth: int = 1,
    overlap: bool = True,
) -> xarray.Dataset:
    """Run a model and return its frames: dimensions time, y, x; the digest and the observables are attributes.

    Parameters
    ----------
    steps, every
        How many steps, and from one frame to the next; without ``every`` the first and the last state are kept.
    fields
        Names of the fields to keep; by default the model's output.
    threads, comm, layout, halo_depth, overlap
        How it is run; nothing of the result depends on them. On several ranks (``comm=mg.MPIComm()``) every rank calls
        this, and rank 0 gets the frames; the datasets of the others hold attributes only.

    Raises CaseError for an argument that cannot be meant.
    """
    import xarray

    _check_number("steps", steps, 0, "say how many steps to do: steps=100")
    if every is not None:
        _check_number("every", every, 1, "say the steps from one frame to the next, every=10, or leave it out")
    _check_number("threads", threads, 1, "say how many threads a rank has: threads=2")
    _check_number("halo_depth", halo_depth, 1, "say how many steps lie between two exchanges: halo_depth=1")
    chosen = _chosen(model, fields)
    frames: list[tuple[int, dict[str, NDArray[Any]]]] = []

    def keep(step: int, arrays: Arrays) -> None:
        frames.append((step, {name: np.array(array) for name, array in arrays.items()}))

    ranks = comm or SerialComm()
    variables = variables_of(chosen, f"model {model.name!r}")
    outcome = execute(model, ranks, Settings(steps, every, threads, layout, halo_depth, overlap), chosen, keep)
    attributes = {"Conventions": CONVENTIONS, "model": model.name, "steps": outcome.steps, "digest": outcome.digest}
    dataset = xarray.Dataset(attrs=attributes | outcome.observables)
    if ranks.rank != 0:
        return dataset
    dataset = dataset.assign_coords({TIME: (TIME, [step for step, _ in frames], {"long_name": "steps done"})})
    for variable in variables:
        dataset = dataset.assign_coords({c.name: (c.name, c.values, c.attributes) for c in variable.coordinates})
        stacked = np.stack([arrays[variable.name] for _, arrays in frames])
        dataset[variable.name] = (variable.dims, stacked, variable.attributes)
    return dataset


def _check_number(name: str, value: object, least: int, remedy: str) -> None:
    """CaseError unless a parameter is a whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise CaseError(f"{name}={value!r}: expected a whole number of at least {least}", remedy=remedy)


def _chosen(model: Model, fields: Sequence[str] | None) -> tuple[Field, ...]:
    """The fields to keep; CaseError for one that the model does not have."""
    known = {field.name: field for field in model.fields}
    names = (fields,) if isinstance(fields, str) else model.output if fields is None else tuple(fields)
    for name in names:
        if name not in known:
            raise CaseError(
                f"fields={list(names)!r}: model {model.name!r} has no field {name!r}",
                suggestion=suggest(str(name), known),
                remedy=f"its fields are {', '.join(known)}",
            )
    if not names:
        raise CaseError("fields=[]: expected at least one field", remedy=f"leave it out, or name {', '.join(known)}")
    return tuple(known[name] for name in names)
