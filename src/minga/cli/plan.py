"""The command ``minga plan``: predict which ranks compute which cells of a case, and how fast.

The plan is for this machine, or for one that a file describes.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from minga.cli.case import Case, find_source, read_case
from minga.cli.job import shared_cores
from minga.cli.layouts import check_ranks
from minga.cli.outputs import check_output
from minga.cli.preflight import notes_before, table_of, text_of
from minga.cli.start import stays_here
from minga.engine.pin import available_cores, local_place, pin
from minga.errors import CaseError, LayoutError, RunError
from minga.launch.launcher import surrounding_job, world
from minga.output.directory import disk_errors
from minga.plan.machine.machine import read_machine
from minga.plan.plan import Plan, duration
from minga.plan.planner import make_plan
from minga.plan.ranks import RankGroup
from minga.plan.scaling import Point, Scaling, scaling
from minga.plan.work.recorded import planned_work
from minga.plan.work.work import Work

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["PlanRequest", "as_json", "plan", "text"]

_CELLS_A_RANK = 4096
"""Fewest cells per rank that justify another rank, if the number of ranks was not given."""

_MOST_ROWS = 24
"""Most ranks that get one row each; larger numbers are grouped."""

_MOST_NAMES = 8
"""Most nodes that are all named."""

_MOST_LISTED = 4096
"""Most ranks that ``--json`` lists one by one."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The options of the command line."""

    target: str
    ranks: int | None = None
    machine: Path | None = None
    threads: int | None = None
    overrides: Sequence[str] = ()
    scaling: bool = False
    plot: Path | None = None
    out: Path | None = None
    force: bool = False
    hosts: Path | None = None
    shell: str = "ssh"

    @property
    def picture(self) -> Path | None:
        """File for the scaling curves, None if they were not requested."""
        return self.plot or (Path("scaling.png") if self.scaling else None)


@dataclass(frozen=True, eq=False)
class Answer:
    """A plan with its input, and scaling curves if they were requested."""

    case: str
    work: Work
    group: RankGroup
    plan: Plan
    curves: Scaling | None = None
    files: tuple[Path, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()


def plan(request: PlanRequest) -> Answer | None:
    """Carry out a request; return None on ranks other than 0 of a job, whose ranks are timed.

    Raises
    ------
    CaseError
        If the case, the machine or an option is invalid, or if no layout fits.
    """
    _check_outputs(request)
    options = {"run.ranks": request.ranks, "run.threads": request.threads}
    case = _case(request, options)
    work = planned_work(case.model)
    group, source = _group(request, case, work)
    if group is None:
        return None
    said = _said(case.table.get("run", {}))
    try:
        made = make_plan(work, group, source=source, **said)
    except LayoutError as error:
        raise CaseError(error.message, where=error.where, remedy=error.remedy) from error
    files: list[Path] = []
    if request.out is not None:
        with disk_errors(request.out):
            request.out.write_text(json.dumps(made.as_dict(), allow_nan=False) + "\n")
        files.append(request.out)
    curves = None
    if request.picture is not None:
        curves = scaling(work, group)
        files.append(_drawn(curves, request.picture, f"{case.name}, predicted: {source}"))
    notes = [*_crowded(request, case, group.ranks), *notes_before(case, group.ranks, None, made.prediction.seconds)]
    return Answer(case.name, work, group, made, curves, tuple(files), tuple(notes))


def _crowded(request: PlanRequest, case: Case, ranks: int) -> Iterator[tuple[str, str]]:
    """Yield a note if ranks must share cores; within a job the run itself reports this."""
    file, threads = request.machine or case.machine, case.run.threads
    if file is not None:
        machine = read_machine(file)
        cores, room = sum(kind.count * len(kind.cores) for kind in machine.nodes), machine.ranks(threads)
    else:
        cores = len(available_cores())
        room = cores // threads
    job = surrounding_job()
    if ranks > room and request.hosts is None and (file is not None or job is None or job.size == 1):
        yield "cores", shared_cores(ranks, threads, cores)


def _case(request: PlanRequest, options: Mapping[str, object]) -> Case:
    """Read the case; its number of steps may be missing, since it does not affect the plan."""
    source, here = find_source(request.target), request.machine is None and request.hosts is None
    try:
        return read_case(source, request.overrides, options, here=here, planning=True)
    except CaseError as error:
        if error.key != "run.steps" or any(text.startswith("run.steps") for text in request.overrides):
            raise
    return read_case(source, ("run.steps=1", *request.overrides), options, here=here, planning=True)


def _said(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the decisions that the case itself makes, which are kept; the others are planned."""
    return {key: run[key] for key in ("layout", "mapping", "halo_depth", "overlap") if run.get(key) is not None}


def _group(request: PlanRequest, case: Case, work: Work) -> tuple[RankGroup | None, str]:
    """Return the ranks to plan for, and the source of their speeds; None as ranks on all ranks of a job but rank 0."""
    if request.hosts is not None:
        return _timed_on_hosts(request, case)
    threads = case.run.threads
    file = request.machine or case.machine
    job = surrounding_job()
    if file is not None and job is not None and job.rank > 0:
        return None, ""  # one answer is enough
    if file is not None:
        machine = read_machine(file)
        kernels = (work.kernel, work.name)
        group = machine.rank_group(case.run.ranks, kernels, threads, cell_bytes=work.moved or None)
        return group, machine.name or file.name
    from minga.engine.comm import MPIComm, SerialComm, run_virtual
    from minga.plan.probe.probe import probe_ranks

    if job is not None and job.size > 1:
        world(job, job.size)  # raises if the launcher belongs to another MPI
        if request.ranks not in (None, job.size):
            raise CaseError(f"{job.launcher} started {job.size} ranks, but -n asks for {request.ranks}", key="-n")
        comm = MPIComm()
        pinning = pin(*local_place(comm.rank, comm.size), threads)
        group = probe_ranks(case.model, comm, threads=threads, cpus=pinning.workers)
        return (group if comm.rank == 0 else None), f"the {comm.size} ranks of this job, timed"
    ranks = case.run.ranks or _default_ranks(case, work)
    check_ranks(ranks)
    if ranks == 1:
        return probe_ranks(case.model, SerialComm(), threads=threads), "this machine, timed"
    # Threads of this process stand in for ranks: they share caches and memory as ranks would.
    found = run_virtual(ranks, lambda comm: probe_ranks(case.model, comm, threads=threads))
    return found[0], "this machine, timed; messages by shared memory"


def _timed_on_hosts(request: PlanRequest, case: Case) -> tuple[RankGroup, str]:
    """Start the ranks of a run on hosts, which time the case as that run would, and return those that own cells."""
    import pickle
    import tempfile

    from minga.cli.start import demand_of, ranks_on_hosts
    from minga.launch.launch import launch
    from minga.output.directory import RunDirectory
    from minga.plan.busy import busy_ranks, unequal_weights, weighted
    from minga.view.progress import LogLines

    assert request.hosts is not None
    if request.machine is not None:
        raise CaseError("--machine and --hosts exclude each other", key="--hosts", remedy="leave one of them out")
    with (
        ranks_on_hosts(demand_of(case), request.hosts, request.shell, case.run.ranks) as start,
        tempfile.TemporaryDirectory(prefix="minga-plan-") as folder,
    ):
        directory = RunDirectory(Path(folder))
        case.save(directory, start.ranks)
        options, found = start.options(case), Path(folder, "group")
        order = {"target": str(directory.case), "overrides": [], "options": {"run.ranks": start.ranks},
                 "run": folder, "probe": str(found)}  # fmt: skip
        assert start.prepare is not None  # it has hosts
        listener = LogLines(case.name, sys.stderr)
        status = launch(start.prepare(directory, listener.note), order, listener)
        if status != 0 or not found.exists():
            raise RunError(f"the ranks that time the case ended with status {status}")
        group: RankGroup = pickle.loads(found.read_bytes())  # written by our own rank 0, on this machine
    if unequal_weights(options):
        group = weighted(group, options.run.weights or ())
    busy = busy_ranks(start.ranks, options)
    return group.part(busy), f"{len(busy)} ranks on the hosts of {request.hosts.name}, timed"


def _default_ranks(case: Case, work: Work) -> int:
    if stays_here(case):
        return 1
    cores = len(available_cores()) // case.run.threads
    return max(1, min(cores, work.domain.size * work.points // _CELLS_A_RANK))


def _check_outputs(request: PlanRequest) -> None:
    if request.plot is not None and request.plot.suffix not in (".png", ".svg"):
        raise CaseError(f"cannot draw into {request.plot}", key="--plot", remedy="name a .png or .svg file")
    check_output(request.out, "-o", force=request.force)
    check_output(request.picture, "--plot", force=request.force)


def _drawn(curves: Scaling, file: Path, title: str) -> Path:
    from minga.view.scaling_plot import draw_scaling

    if not curves.strong:
        raise CaseError("the case needs more memory than any number of ranks has", remedy="choose a smaller grid")
    return draw_scaling(curves, file, title)


# Output --------------------------------------------------------------------------------------------------------------
def as_json(answer: Answer) -> dict[str, Any]:
    """Return the answer as one JSON-compatible object, with only a summary of very many ranks."""
    data = answer.plan.as_dict()
    if answer.group.ranks > _MOST_LISTED:
        del data["layout"]
        told = data["prediction"]
        for name in ("compute", "exchange", "hidden", "memory"):
            values = np.asarray(told[name])
            told[name] = {"least": values.min().item(), "mean": values.mean().item(), "most": values.max().item()}
    data["ranks"] = answer.group.ranks
    data["cells"] = {"shape": list(answer.work.domain.shape), "each": answer.work.points}
    if answer.curves is not None:
        data["scaling"] = answer.curves.as_dict()
    if answer.notes:
        data["preflight"] = table_of(answer.notes)
    data["files"] = [str(file) for file in answer.files]
    return data


def text(answer: Answer, width: int | None = None) -> str:
    """Return the answer as tables for the terminal."""
    from rich.console import Console

    stream = io.StringIO()
    terminal = sys.stdout.isatty()
    console = Console(file=stream, width=width or (None if terminal else 140), force_terminal=terminal, highlight=False)
    made = answer.plan
    console.print(f"{answer.case} on {made.source}", markup=False, soft_wrap=True)
    console.print(made.summary, markup=False, soft_wrap=True)
    console.print(_decisions(made))
    console.print(_ranks(answer))
    for names, reason in _left_out(made):
        console.print(f"left out: {names}: {reason}", markup=False)
    if made.uplinks:
        most = ", ".join(f"{name} {_bytes(size)}" for name, size in made.uplinks)
        console.print(f"busiest uplinks, a step: {most}", markup=False, soft_wrap=True)
    for note in made.notes:
        console.print(f"note: {note}", markup=False)
    if answer.curves is not None:
        console.print(_curve("Strong scaling: the grid as it is", answer.curves.strong))
        console.print(_curve("Weak scaling: cells in proportion to ranks", answer.curves.weak))
    if answer.notes:
        console.print(f"Before it starts\n{text_of(answer.notes)}", markup=False, soft_wrap=True)
    for file in answer.files:
        console.print(f"wrote {file}", markup=False, soft_wrap=True)
    return stream.getvalue().rstrip("\n")


def _table(title: str, *columns: str, left: int = 1) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < left else "right")
    return table


def _decisions(made: Plan) -> Table:
    table = _table("Decisions", "", "chosen", "instead of", "saves a step", left=3)
    for choice in made.choices:
        same = choice.chosen == choice.naive or not choice.gain
        gain = "" if same else f"{'-' if choice.gain < 0 else ''}{duration(abs(choice.gain))}"
        table.add_row(choice.name, choice.chosen, "" if choice.chosen == choice.naive else choice.naive, gain)
    table.add_row("all together", "", "equal parts", duration(max(0.0, made.naive - made.prediction.seconds)))
    return table


def _ranks(answer: Answer) -> Table:
    """Return a table with a row for each rank, or, if there are many, for all ranks of one speed."""
    made, group = answer.plan, answer.group
    cells = made.layout.cells() * answer.work.points
    many = group.ranks > _MOST_ROWS
    groups = (
        [np.flatnonzero((group.speed_of == s) & (cells > 0)) for s in range(len(group.speeds))]
        if many
        else [np.array([rank]) for rank in range(group.ranks) if cells[rank]]
    )
    table = _table(
        "Each rank, a step", "ranks" if many else "rank", "node", "cells", "share", "compute", "messages", "hidden",
        "memory", left=2,
    )  # fmt: skip
    told = made.prediction
    for ranks in groups:
        if not len(ranks):
            continue
        share = cells[ranks].mean() / cells.sum()
        table.add_row(
            str(len(ranks)) if many else str(int(ranks[0])),
            _nodes(group, ranks),
            _span(cells[ranks], lambda value: f"{int(value):,}"),
            f"{100 * share:.3g} %",
            *(_span(values[ranks], duration) for values in (told.compute, told.exchange, told.hidden)),
            _span(told.memory[ranks], _bytes),
        )
    return table


def _nodes(group: RankGroup, ranks: np.ndarray) -> str:
    nodes = np.unique(group.seats.nodes[ranks])
    first = group.node(int(ranks[0]))
    return first if len(nodes) == 1 else f"{first} and {len(nodes) - 1} more"


def _span(values: np.ndarray, say: Any) -> str:
    low, high = say(values.min()), say(values.max())
    return low if low == high else f"{low} to {high}"


def _left_out(made: Plan) -> list[tuple[str, str]]:
    """Return the nodes that get no work, grouped by reason."""
    found: dict[str, list[str]] = {}
    for name, reason in made.left_out:
        found.setdefault(reason, []).append(name)
    return [(_listed(names), reason) for reason, names in found.items()]


def _listed(names: Sequence[str]) -> str:
    """Return all names, or the first of many and the number of the others."""
    return ", ".join(names) if len(names) <= _MOST_NAMES else f"{names[0]} and {len(names) - 1} more nodes"


def _curve(title: str, points: Sequence[Point]) -> Table:
    table = _table(title, "ranks", "used", "cells", "a step", "equal parts", "speedup", "efficiency", "layout", left=0)
    for point in points:
        table.add_row(
            str(point.ranks),
            str(point.used),
            f"{point.cells:.4g}",
            duration(point.seconds),
            duration(point.naive),
            f"{point.cells_per_second / points[0].cells_per_second:.3g}",
            f"{100 * point.efficiency:.3g} %",
            point.word,
        )
    return table


def _bytes(number: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f} B"
