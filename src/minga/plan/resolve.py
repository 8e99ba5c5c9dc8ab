"""Resolution of a run's layout, halo depth and overlap before its first step.

Settings that a person chose are kept. If ``layout`` is ``"auto"``, the ranks briefly time the model's own step and
messages among each other (:mod:`minga.plan.probe.probe`), or a machine file provides the speeds; rank 0 makes a plan
(:mod:`minga.plan.planner`), and all ranks receive it. Very short runs are cut into equal shares without measuring.
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
from minga.plan.busy import busy_ranks, owned_by, plan_on, unequal_weights, weighted
from minga.plan.links import Links
from minga.plan.machine.resources import total_memory
from minga.plan.placement import place_all
from minga.plan.plan import Plan, duration
from minga.plan.ranks import RankGroup
from minga.plan.speed import Speed
from minga.plan.step_costs import expected_seconds
from minga.plan.topology import Tree, seats_of
from minga.plan.work.work import Work
from minga.space.boxes import Ints
from minga.space.cuts import best_cartesian
from minga.space.grid import Grid
from minga.space.layout import Layout

if TYPE_CHECKING:
    from minga.options import RunOptions
    from minga.plan.balance import Balancer
    from minga.plan.drop import Drop

__all__ = ["ResolvedPlan", "balancer_of", "resolve"]

SHORT_SECONDS = 2.0
"""Expected seconds of a run below which the machine is not measured."""

_SHARE, _MOST = 0.05, 1.0
"""Share of the expected time that measuring may take, and its maximum in seconds."""

_GLANCE = 0.03
"""Seconds in which messages between nodes are timed to estimate the time of a run."""

_UNEVEN = 1.1
"""Ratio of the fastest to the slowest rank's speed from which on ranks are unequal."""


_USUAL_SPEED, _USUAL_MEMORY = 1e8, 1 << 33
_USUAL_LINKS = ((50e-6, 8e-9), (1e-6, 2e-10))
"""Latency in seconds and seconds per byte, of gigabit Ethernet between nodes and of shared memory."""


_TOO_SHORT: Final = "is too short to measure the machine for"
_VIRTUAL: Final = "virtual ranks take turns on one processor"


@dataclass(frozen=True, slots=True)
class ResolvedPlan:
    """The resolved layout, halo depth and overlap of a run, equal on all ranks except for ``seconds``.

    Attributes
    ----------
    layouts
        Layout of every grid, with the owner of each block.
    name
        Name of the layout, as a case could give it if there is such a name.
    mapping, halo_depth, overlap
        Mapping of blocks to ranks, steps per halo exchange, and whether messages overlap with computation.
    seats
        Places of the ranks.
    source
        Basis of the choices, in words.
    seconds
        Seconds that measuring and planning took.
    plan
        The plan with its prediction; None if nothing was planned.
    work, group
        The work and the ranks that the plan was made for.
    """

    layouts: Mapping[Grid, Layout]
    name: str
    mapping: str
    halo_depth: int
    overlap: bool
    seats: Tree
    source: str
    seconds: float = 0.0
    plan: Plan | None = None
    work: Work | None = None
    group: RankGroup | None = None

    @property
    def uneven(self) -> bool:
        """True if ranks are known to be unequal, or are on several nodes, which may become unequal."""
        return len(np.unique(self.seats.nodes)) > 1 or (self.group is not None and _unequal(self.group))

    @property
    def unmeasured(self) -> str | None:
        """Advice if several nodes have equal shares only because they were not measured; otherwise None."""
        nodes = len(np.unique(self.seats.nodes))
        if nodes == 1 or not self.source.endswith(_TOO_SHORT):
            return None
        return (
            f"the ranks on {nodes} nodes had {self.source}; if the nodes are unequal, describe them in a machine file "
            "(minga measure, then --machine FILE), which is used in short runs too"
        )

    @property
    def summary(self) -> str:
        """The resolved plan on one line, for people."""
        if self.plan is None:
            return f"{self.name} ({self.source})"
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
    """Resolve how a model is run on the ranks of ``comm``; collective.

    Parameters
    ----------
    model, comm, options
        The model, the ranks, and the settings of the run.
    cpus
        Processors for the threads of this rank, one each.
    stop
        Returns True if a person asked to stop.

    Raises
    ------
    KeyboardInterrupt
        On every rank, if ``stop`` returns True on any rank while they are timed, when there is nothing to lose yet.
    CaseError
        On every rank, if a machine file does not fit the ranks, the memory of a node does not hold its share, or a
        setting is invalid.
    """
    began = time.perf_counter()
    seats, described = _seats(comm, options.run.topology)
    expected = _expected(model, comm, options)
    busy = busy_ranks(comm.size, options)
    reason = _unplanned(comm, options, expected)
    if reason is not None and _may_be_long(comm, options, seats):
        expected = _expected(model, comm, options, _seconds_of_messages(model, comm, seats))
        reason = _unplanned(comm, options, expected)
    resolved = (
        _planned(model, comm, options, (seats, described), busy, (expected, reason), cpus, stop)
        if reason is None or unequal_weights(options)
        else _as_told(model, busy, options, seats, reason)
    )
    _check_memory(model, resolved, comm)
    return replace(resolved, seconds=time.perf_counter() - began)


def _seats(comm: Comm, topology: str | None) -> tuple[Tree, bool]:
    """Return the places of the ranks, and whether they are those of a described machine; collective.

    A file of Slurm's switches tells more about the actual places if it names all hosts.
    """
    if topology is None:
        return seats_of(comm), False
    if topology.strip().endswith(".conf"):
        from minga.plan.slurm import read_switches

        switches = _agreed(comm, lambda: read_switches(Path(topology.strip())))
        host = platform.node()
        known = np.array([host in switches or host.partition(".")[0] in switches], np.int64)
        comm.allreduce(known, "min")
        if known[0]:
            return seats_of(comm, switches), False
    return Tree.parse(topology).seats(comm.size), True


def _expected(model: Model, comm: Comm, options: RunOptions, messages: float = 0.0) -> float:
    """Estimate the seconds that the run may take; ``messages`` are the seconds of messages per step."""
    stop = stop_of(options.stop)
    longest = None if stop is None else stop.seconds
    guess = expected_seconds(model, options.run.steps, comm.size * options.run.threads) + options.run.steps * messages
    return guess if longest is None else min(guess, longest)


def _may_be_long(comm: Comm, options: RunOptions, seats: Tree) -> bool:
    """Return True if a run with little to compute may still take long because of messages between nodes."""
    several = len(np.unique(seats.nodes)) > 1
    return several and options.run.layout == AUTO and options.run.machine is None and not isinstance(comm, VirtualComm)


def _seconds_of_messages(model: Model, comm: Comm, seats: Tree) -> float:
    """Return the seconds of a step's messages between equal parts, from a brief measurement of the network.

    Collective; the result is equal on all ranks. On a slow network, messages take many times as long as computing, so
    that a plan pays even in runs that seem short.
    """
    from minga.plan.cost import predict, work_of
    from minga.plan.probe.pingpong import links_of

    work = work_of(model)
    links = links_of(comm, seats, _GLANCE)
    try:
        layout = best_cartesian(work.domain, comm.size, work.granule[-1])
        told = predict(work, replace(equal_group(seats), links=links), layout)
    except LayoutError:
        return 0.0  # too few cells for all ranks, which is reported when they are cut
    return float(told.exchange.max()) + told.reduce


def _unplanned(comm: Comm, options: RunOptions, expected: float) -> str | None:
    """Return the reason, in words, why no plan is made, or None if one is to be made."""
    if comm.size == 1:
        return "one rank"
    if options.output.writers:
        return "equal shares of the ranks that own cells"
    if options.run.device != "cpu":
        return "equal shares: only CPUs are timed and planned for"
    if options.run.machine is not None:
        return None
    if options.run.layout != AUTO:
        return "the requested layout"
    if isinstance(comm, VirtualComm):
        return f"equal shares: {_VIRTUAL}"
    if expected < SHORT_SECONDS:
        return f"equal shares: a run of about {duration(expected)} {_TOO_SHORT}"
    return None


def balancer_of(
    model: Model,
    comm: Comm,
    options: RunOptions,
    resolved: ResolvedPlan,
    on_drop: Callable[[Drop], object] | None = None,
) -> Balancer | None:
    """Return the load balancer of a run, or None if work is not to be moved.

    With ``balance = "auto"``, work is moved if ranks are unequal or on several nodes, or the model's mask changes, and
    only for planned layouts: a layout that a person chose stays. ``on_drop`` is called on rank 0 with hosts without
    which a planned run would be faster.
    """
    balance = options.run.balance
    if comm.size == 1 or balance == "off" or options.output.writers:
        return None  # otherwise, ranks that only write would be given cells
    if balance == AUTO and options.run.device != "cpu":
        return None
    from minga.plan.work.masks import MaskWatch

    changing = resolved.uneven or MaskWatch.of(model) is not None
    if balance == AUTO and (resolved.plan is None or not changing):
        return None
    from minga.plan.balance import Balancer
    from minga.plan.cost import work_of

    work = resolved.work or work_of(model)
    group = resolved.group or equal_group(resolved.seats)
    drops = None
    if on_drop is not None and resolved.plan is not None:
        from minga.plan.slow_hosts import Drops

        drops = Drops(work, group, resolved.halo_depth, resolved.overlap, on_drop)
    return Balancer(work, group, every=balance, drops=drops)


def equal_group(seats: Tree) -> RankGroup:
    """Return ranks that were not measured: all equal, with a common network."""
    ranks = len(seats)
    return RankGroup(
        (Speed.constant(_USUAL_SPEED),),
        np.zeros(ranks, np.int64),
        np.full(ranks, _USUAL_MEMORY, np.int64),
        seats,
        _uniform_links(seats, *_USUAL_LINKS),
    )


def _uniform_links(seats: Tree, network: tuple[float, float], memory: tuple[float, float]) -> Links:
    """Return links with one (alpha, beta) between all nodes, and one within nodes."""
    return Links.uniform(len(seats.levels), (*[network] * (seats.above + 1), memory))


def _as_told(model: Model, busy: Ints, options: RunOptions, seats: Tree, source: str) -> ResolvedPlan:
    """Keep the chosen settings and resolve the others without measuring."""
    layout = "cartesian" if options.run.layout == AUTO else options.run.layout
    layouts = place_all(model.layouts(layout, len(busy)), seats.part(busy), options.run.mapping)
    return ResolvedPlan(
        {grid: owned_by(one, busy, len(seats)) for grid, one in layouts.items()},
        layout,
        options.run.mapping,
        1 if isinstance(options.run.halo_depth, str) else int(options.run.halo_depth),
        True if isinstance(options.run.overlap, str) else bool(options.run.overlap),
        seats,
        source,
    )


def _planned(
    model: Model,
    comm: Comm,
    options: RunOptions,
    placed: tuple[Tree, bool],
    busy: Ints,
    purpose: tuple[float, str | None],
    cpus: Sequence[int] | None,
    stop: Callable[[], bool] | None,
) -> ResolvedPlan:
    """Measure the machine or read its file, and make a plan on rank 0 for the ranks that own cells.

    ``purpose`` is the expected time of the run, and the reason why nothing is measured, or None: with a reason, weights
    alone say what ranks get. ``placed`` as from :func:`_seats`.
    """
    from minga.plan.cost import work_of

    work = work_of(model)
    (seats, described), (expected, reason) = placed, purpose
    seconds = min(_MOST, _SHARE * expected)
    measured = options.run.machine is None and reason is None
    if options.run.machine is not None:
        file = Path(options.run.machine)
        group = _group_of_file(file, work, comm, busy, options.run.threads)
        source = f"machine of {file.name}"
    elif measured:
        from minga.plan.probe.probe import probe_beyond, probe_ranks

        group = probe_ranks(
            model,
            comm,
            threads=options.run.threads,
            seconds=seconds,
            cpus=cpus,
            stop=stop,
            seats=None if described else seats,
        )
        source = "measured by the ranks"
    else:
        group = replace(equal_group(seats), links=_uniform_links(seats, (0.0, 0.0), (0.0, 0.0)))
        source = str(reason)
    if options.run.topology is not None or options.run.machine is None:
        group = group.at(seats)
    if unequal_weights(options):
        group = weighted(group, options.run.weights or ())
        source = f"run.weights; {source}"
    plan: Plan = _agreed(comm, lambda: _plan(work, group, busy, options, source))
    if measured and not unequal_weights(options):
        planned = plan.layout.cells() * work.points
        told = probe_beyond(
            model, comm, group, planned, threads=options.run.threads, seconds=seconds / 2, cpus=cpus, stop=stop
        )
        if told is not group:
            group = told
            plan = _agreed(comm, lambda: _plan(work, group, busy, options, source))
    return ResolvedPlan(
        model.layouts_like(plan.layout),
        plan.name,
        plan.mapping,
        plan.halo_depth,
        plan.overlap,
        group.seats,
        source,
        plan=plan if measured or options.run.machine is not None else None,
        work=work,
        group=group,
    )


def _plan(work: Work, group: RankGroup, busy: Ints, options: RunOptions, source: str) -> Plan:
    from minga.plan.planner import make_plan

    try:
        plan = make_plan(
            work,
            group.part(busy),
            layout=options.run.layout,
            mapping=options.run.mapping,
            halo_depth=options.run.halo_depth,
            overlap=options.run.overlap,
            source=source,
        )
        return plan_on(plan, busy, group.ranks)
    except LayoutError as error:  # the requested settings are impossible on this machine
        raise CaseError(error.message, where=error.where, remedy=error.remedy) from error


def _agreed(comm: Comm, make: Any) -> Any:
    """Return the result of ``make()`` on rank 0 on every rank, or raise its error there."""
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


def _group_of_file(path: Path, work: Work, comm: Comm, busy: Ints, threads: int) -> RankGroup:
    """Return the ranks as a machine file describes their hosts; ranks without cells count to that of the first other.

    The file need not describe the host of a rank that owns no cells.
    """
    found = comm.gather(platform.node())
    hosts = found and [host if rank in busy else found[busy[0]] for rank, host in enumerate(found)]

    def read() -> RankGroup:
        from minga.plan.machine.hosts import group_on
        from minga.plan.machine.machine import read_machine

        kernels = (work.kernel, work.name)
        return group_on(read_machine(path), hosts or (), kernels, threads, cell_bytes=work.moved or None)

    group: RankGroup = _agreed(comm, read)
    return group


def _unequal(group: RankGroup) -> bool:
    """Return True if some rank is clearly faster than another, at a size that both have measured."""
    used = [group.speeds[number] for number in np.unique(group.speed_of)]
    size = min(float(speed.cells[-1]) for speed in used)
    rates = np.array([float(speed.rate(size)) for speed in used])
    return bool(rates.max() > _UNEVEN * rates.min())


def _check_memory(model: Model, resolved: ResolvedPlan, comm: Comm) -> None:
    """Raise CaseError on every rank if the data of the ranks on a node does not fit into its memory."""
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
    """Return the bytes of all slots of all fields in the cells that a rank owns, without halos."""
    total = 0
    for field in model.fields:
        cells = field.bounds.size if field.replicated else layouts[field.grid].cells_of(rank)
        total += field.slots * cells * itemsize(field.dtype)
    return total
