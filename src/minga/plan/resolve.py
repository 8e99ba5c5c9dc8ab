"""Resolve how a run is done before its first step: who does which cells, how deep halos are, what hides what.

Settings that a person chose are kept. Where ``layout`` is ``"auto"``, the ranks time the model's own step and messages
among each other for a moment (:mod:`minga.plan.probe.probe`), or a machine file tells; rank 0 plans
(:mod:`minga.plan.planner`), and all ranks get that plan. A run that is over in no time is cut into equal shares
at once.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from minga.engine.comm import Comm, VirtualComm
from minga.engine.model import Model
from minga.engine.stop import stop_of
from minga.errors import CaseError, LayoutError, MingaError
from minga.lang.types import itemsize
from minga.options import AUTO
from minga.plan.crew import Crew
from minga.plan.links import Links
from minga.plan.machine.resources import total_memory
from minga.plan.placement import MAPPINGS, place_all
from minga.plan.plan import Plan, duration
from minga.plan.speed import Speed
from minga.plan.step_costs import expected_seconds
from minga.plan.topology import Tree, seats_of
from minga.plan.work.work import Work
from minga.space.cuts import best_cartesian
from minga.space.grid import Grid
from minga.space.layout import Layout

if TYPE_CHECKING:
    from minga.options import RunOptions
    from minga.plan.balance import Balancer

__all__ = ["ResolvedPlan", "balancer_of", "resolve"]

SHORT_SECONDS = 2.0
"""A run that is expected to take less is not worth measuring the machine for."""

_SHARE, _MOST = 0.05, 1.0
"""Part of the expected time that measuring may take, and seconds at most."""

_GLANCE = 0.03
"""Seconds in which messages between nodes are timed to guess how long a run may take."""

_UNEVEN = 1.1
"""Ranks are unequal where the fastest is this many times as fast as the slowest."""


_USUAL_SPEED, _USUAL_MEMORY = 1e8, 1 << 33
_USUAL_LINKS = ((50e-6, 8e-9), (1e-6, 2e-10))
"""Latency and seconds a byte, of gigabit Ethernet between nodes, and of shared memory."""


_TOO_SHORT: Final = "is too short to measure the machine for"


@dataclass(frozen=True, slots=True)
class ResolvedPlan:
    """How a run is done, equal on all ranks but for ``seconds``.

    layouts     of every grid, block by block on the ranks that do them
    word        the layout in a word, as a case could give it where there is such a word
    seats       where the ranks sit
    source      what it rests on, in words
    seconds     that measuring and planning took
    plan        with its prediction; None where nothing was planned
    work, crew  what the plan was made of
    """

    layouts: Mapping[Grid, Layout]
    word: str
    mapping: str
    halo_depth: int
    overlap: bool
    seats: Tree
    source: str
    seconds: float = 0.0
    plan: Plan | None = None
    work: Work | None = None
    crew: Crew | None = None

    @property
    def uneven(self) -> bool:
        """Whether ranks are known to be unequal, or sit on several nodes, which may become so."""
        return len(np.unique(self.seats.paths[:, 0])) > 1 or (self.crew is not None and _unequal(self.crew))

    @property
    def unmeasured(self) -> str | None:
        """What to tell people whose nodes have equal shares because nobody measured them; None elsewhere."""
        nodes = len(np.unique(self.seats.paths[:, 0]))
        if nodes == 1 or not self.source.endswith(_TOO_SHORT):
            return None
        return (
            f"the ranks on {nodes} nodes had {self.source}; if the nodes are unequal, describe them in a machine file "
            "(minga measure, then --machine FILE), which is used in short runs too"
        )

    @property
    def summary(self) -> str:
        """One line for the person who waits."""
        if self.plan is None:
            return f"{self.word} ({self.source})"
        left = f"; without {', '.join(node for node, _ in self.plan.left_out[:4])}" if self.plan.left_out else ""
        more = len(self.plan.left_out) - 4
        return self.plan.summary + left + (f" and {more} more" if more > 0 else "")


def resolve(
    model: Model,
    comm: Comm,
    options: RunOptions,
    cpus: Sequence[int] | None = None,
    stop: Callable[[], bool] | None = None,
) -> ResolvedPlan:
    """Resolve how a model is run on the ranks of ``comm``, each thread on one of ``cpus``; collective.

    KeyboardInterrupt on every rank where ``stop`` says yes on any while they are timed: there is nothing to lose yet.
    CaseError on every rank where a machine file does not fit the ranks, or a node's memory not its share, or a setting
    is invalid.
    """
    began = time.perf_counter()
    seats = seats_of(comm) if options.run.topology is None else Tree.parse(options.run.topology).seats(comm.size)
    expected = _expected(model, comm, options)
    reason = _unplanned(comm, options, expected)
    if reason is not None and _may_be_long(comm, options, seats):
        expected = _expected(model, comm, options, _seconds_of_messages(model, comm, seats))
        reason = _unplanned(comm, options, expected)
    resolved = (
        _planned(model, comm, options, seats, expected, cpus, stop)
        if reason is None
        else _as_told(model, comm.size, options, seats, reason)
    )
    _check_memory(model, resolved, comm)
    return replace(resolved, seconds=time.perf_counter() - began)


def _expected(model: Model, comm: Comm, options: RunOptions, messages: float = 0.0) -> float:
    """Seconds that the run may take, guessed; ``messages``: what a step's take."""
    stop = stop_of(options.stop)
    longest = None if stop is None else stop.seconds
    guess = expected_seconds(model, options.run.steps, comm.size * options.run.threads) + options.run.steps * messages
    return guess if longest is None else min(guess, longest)


def _may_be_long(comm: Comm, options: RunOptions, seats: Tree) -> bool:
    """Whether a run with little to compute may still take long: by its messages between nodes."""
    several = len(np.unique(seats.paths[:, 0])) > 1
    return several and options.run.layout == AUTO and options.run.machine is None and not isinstance(comm, VirtualComm)


def _seconds_of_messages(model: Model, comm: Comm, seats: Tree) -> float:
    """What messages of a step take between equal parts, by a glance at the network; collective, equal on all ranks.

    On a slow network this is many times what computing takes, so that a plan pays in runs that seem short.
    """
    from minga.plan.cost import predict, work_of
    from minga.plan.probe.pingpong import links_of

    work = work_of(model)
    links = links_of(comm, seats, _GLANCE)
    try:
        layout = best_cartesian(work.domain, comm.size, work.granule[-1])
        told = predict(work, replace(equal_crew(seats), links=links), layout)
    except LayoutError:
        return 0.0  # so few cells that not every rank gets some: said where they are cut
    return float(told.exchange.max()) + told.reduce


def _unplanned(comm: Comm, options: RunOptions, expected: float) -> str | None:
    """Why there is no plan, in words; None where there is to be one."""
    if comm.size == 1:
        return "one rank"
    if options.output.writers:
        return "equal shares of the ranks that do not only write"
    if options.run.device != "cpu":
        return "equal shares: what is timed and planned is processors"
    if options.run.machine is not None:
        return None
    if options.run.layout != AUTO:
        return "the layout as it was asked for"
    if isinstance(comm, VirtualComm):
        return "equal shares: virtual ranks take turns on one processor"
    if expected < SHORT_SECONDS:
        return f"equal shares: a run of about {duration(expected)} {_TOO_SHORT}"
    return None


def balancer_of(model: Model, comm: Comm, options: RunOptions, resolved: ResolvedPlan) -> Balancer | None:
    """Who moves work between ranks while the run goes on; None where nobody is to.

    ``balance = "auto"`` is for ranks that are unequal, or on several nodes, or models whose mask changes, and for
    layouts that were planned: a layout that a person chose stays.
    """
    balance = options.run.balance
    if comm.size == 1 or balance == "off" or options.output.writers:
        return None  # ranks that only write would be given cells
    if balance == AUTO and options.run.device != "cpu":
        return None
    from minga.plan.work.masks import MaskWatch

    changing = resolved.uneven or MaskWatch.of(model) is not None
    if balance == AUTO and (resolved.plan is None or not changing):
        return None
    from minga.plan.balance import Balancer
    from minga.plan.cost import work_of

    work = resolved.work or work_of(model)
    crew = resolved.crew or equal_crew(resolved.seats)
    return Balancer(work, crew, every=balance)


def equal_crew(seats: Tree) -> Crew:
    """Ranks that nobody has measured: all alike, over a network as it is common."""
    ranks = len(seats)
    return Crew(
        (Speed.constant(_USUAL_SPEED),),
        np.zeros(ranks, np.int64),
        np.full(ranks, _USUAL_MEMORY, np.int64),
        seats,
        Links.uniform(len(seats.levels), _USUAL_LINKS),
    )


def _as_told(model: Model, ranks: int, options: RunOptions, seats: Tree, source: str) -> ResolvedPlan:
    """Keep the settings that were chosen, and resolve the others without measuring."""
    layout = "cartesian" if options.run.layout == AUTO else options.run.layout
    mapping = options.run.mapping if options.run.mapping in MAPPINGS or options.run.mapping != AUTO else "sequential"
    computing = ranks - options.output.writers
    if computing < 1:
        raise CaseError(
            f"{options.output.writers} of {ranks} ranks would only write, and none would compute", key="output.writers"
        )
    near = Tree(seats.levels, seats.paths[:computing])
    layouts = place_all(model.layouts(layout, computing), near, mapping)
    return ResolvedPlan(
        {grid: Layout(one.domain, ranks, one.lo, one.hi, one.owner) for grid, one in layouts.items()}
        if options.output.writers
        else layouts,
        layout,
        mapping,
        1 if isinstance(options.run.halo_depth, str) else int(options.run.halo_depth),
        True if isinstance(options.run.overlap, str) else bool(options.run.overlap),
        seats,
        source,
    )


def _planned(
    model: Model,
    comm: Comm,
    options: RunOptions,
    seats: Tree,
    expected: float,
    cpus: Sequence[int] | None,
    stop: Callable[[], bool] | None,
) -> ResolvedPlan:
    """Measure or read the machine, and plan on rank 0."""
    from minga.plan.cost import work_of

    work = work_of(model)
    if options.run.machine is None:
        from minga.plan.probe.probe import probe_beyond, probe_crew

        seconds = min(_MOST, _SHARE * expected)
        crew = probe_crew(model, comm, threads=options.run.threads, seconds=seconds, cpus=cpus, stop=stop)
        source = "measured by the ranks"
    else:
        file = Path(options.run.machine)
        crew = _crew_of_file(file, work, comm, options.run.threads)
        source = f"machine of {file.name}"
    if options.run.topology is not None or options.run.machine is None:
        crew = replace(crew, seats=seats)
    plan: Plan = _agreed(comm, lambda: _plan(work, crew, options, source))
    if options.run.machine is None:
        planned = plan.layout.cells() * work.points
        told = probe_beyond(
            model, comm, crew, planned, threads=options.run.threads, seconds=seconds / 2, cpus=cpus, stop=stop
        )
        if told is not crew:
            crew = told
            plan = _agreed(comm, lambda: _plan(work, crew, options, source))
    return ResolvedPlan(
        model.layouts_like(plan.layout),
        plan.word,
        plan.mapping,
        plan.halo_depth,
        plan.overlap,
        crew.seats,
        source,
        plan=plan,
        work=work,
        crew=crew,
    )


def _plan(work: Work, crew: Crew, options: RunOptions, source: str) -> Plan:
    from minga.plan.planner import make_plan

    try:
        return make_plan(
            work,
            crew,
            layout=options.run.layout,
            mapping=options.run.mapping,
            halo_depth=options.run.halo_depth,
            overlap=options.run.overlap,
            source=source,
        )
    except LayoutError as error:  # what a person said cannot be done on this machine
        raise CaseError(error.message, where=error.where, remedy=error.remedy) from error


def _agreed(comm: Comm, make: Any) -> Any:
    """What ``make()`` gives on rank 0, or its error, on every rank."""
    answer: Any = None
    if comm.rank == 0:
        try:
            answer = make()
        except MingaError as error:
            answer = error
    agreed = comm.bcast(answer)
    if isinstance(agreed, MingaError):
        raise agreed
    return agreed


def _crew_of_file(path: Path, work: Work, comm: Comm, threads: int) -> Crew:
    """The ranks as a machine file describes the hosts that they are on."""
    hosts = comm.gather(platform.node())

    def read() -> Crew:
        from minga.plan.machine.hosts import crew_on
        from minga.plan.machine.machine import read_machine

        kernels = (work.kernel, work.name)
        return crew_on(read_machine(path), hosts or (), kernels, threads, cell_bytes=work.moved or None)

    crew: Crew = _agreed(comm, read)
    return crew


def _unequal(crew: Crew) -> bool:
    """Whether some rank is clearly faster than another, at the size that both have measured."""
    used = [crew.speeds[number] for number in np.unique(crew.speed_of)]
    size = min(float(speed.cells[-1]) for speed in used)
    rates = np.array([float(speed.rate(size)) for speed in used])
    return bool(rates.max() > _UNEVEN * rates.min())


def _check_memory(model: Model, resolved: ResolvedPlan, comm: Comm) -> None:
    """CaseError on every rank where what the ranks of a node store does not fit into it."""
    if comm.size == 1:
        return
    found = comm.gather((comm.node, platform.node(), total_memory()))

    def check() -> None:
        needed: dict[int, int] = {}
        for rank, (node, _, _) in enumerate(found or ()):
            needed[node] = needed.get(node, 0) + bytes_of_rank(model, resolved.layouts, rank)
        for node, host, memory in found or ():
            if memory is not None and needed[node] > memory:
                raise CaseError(
                    f"the cells of the ranks on {host} need {needed[node] / 2**30:.4g} GiB, and it has "
                    f"{memory / 2**30:.4g} GiB",
                    key="grid.shape",
                    remedy='choose fewer cells, more machines, or run.layout = "auto" and a machine file that says '
                    "what each node holds",
                )

    _agreed(comm, check)


def bytes_of_rank(model: Model, layouts: Mapping[Grid, Layout], rank: int) -> int:
    """Bytes of all slots of all fields in the cells that a rank owns, without halos."""
    total = 0
    for field in model.fields:
        cells = field.bounds.size if field.replicated else layouts[field.grid].cells_of(rank)
        total += field.slots * cells * itemsize(field.dtype)
    return total
