"""The ranks that ``minga run`` starts: on this machine, or on the hosts of a file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from minga.cli.case import Case
from minga.cli.devices import check_device, ranks_by_device
from minga.cli.job import shared_cores
from minga.cli.layouts import check_ranks
from minga.cli.stage import stage
from minga.engine.pin import available_cores
from minga.errors import CaseError, RunError
from minga.launch.allocation import Allocation, allocation, start_on, unused
from minga.launch.host_agents import HostAgent, HostAgents, host_agents
from minga.launch.hosts import Host
from minga.launch.hosts_file import read_hosts
from minga.launch.launcher import find_launcher
from minga.launch.ranks import Place, Ranks
from minga.launch.signals import interruptible
from minga.options import RunOptions
from minga.output.directory import RunDirectory
from minga.plan.step_costs import is_short

__all__ = ["Demand", "Start", "demand_of", "ranks_here", "ranks_on_hosts", "stays_here"]

_CELLS_A_RANK: Final = 4096
"""Fewest cells per rank that justify another rank, if the number of ranks was not given."""
_FOR_RANKS: Final = ("layout", "mapping", "topology", "machine", "weights")
"""Settings of a run that mean several ranks; a run that has none of them may be short enough for one."""

Preparing = Callable[[RunDirectory, Callable[[str], None]], Ranks]
"""Function that prepares the start of ranks for a run whose directory holds its case, and tells notes for the user."""


@dataclass(frozen=True, slots=True)
class Start:
    """The ranks of a run before they are started.

    Attributes
    ----------
    ranks
        Number of ranks.
    prepare
        Prepares their start; None if this process is the only rank.
    weights
        Relative speeds of the ranks, as the hosts file says; None if it says nothing.
    notes
        Notes for the user.
    absent
        Hosts of the file without which the run continues after a loss, and the part of all ranks that each would have.
    """

    ranks: int
    prepare: Preparing | None = None
    weights: tuple[float, ...] | None = None
    notes: tuple[str, ...] = ()
    absent: Mapping[Host, float] = field(default_factory=dict)

    def options(self, case: Case) -> RunOptions:
        """Return the settings of a case with these ranks."""
        if self.weights is None:
            return case.options
        return case.options.model_copy(update={"run": case.run.model_copy(update={"weights": self.weights})})


@contextlib.contextmanager
def ranks_here(case: Case, *, inside: bool) -> Iterator[Start]:
    """Yield the ranks of a run on this machine, or on all nodes of a job that a batch system has started.

    A number of ranks that the first node of a job takes stays on this machine. Inside a job of MPI, a run has one rank
    by default.
    """
    given = None if inside else _allocated(case)
    if given is not None and len(given.slots) > 1 and (case.run.ranks is None or case.run.ranks > given.first):
        yield _ranks_of_job(given, case)
        return
    ranks = case.run.ranks or (1 if inside else _default_ranks(case))
    check_ranks(ranks)
    check_device(case.run.device, ranks)
    notes = []
    if ranks * case.run.threads > (cores := len(available_cores())):
        notes.append(f"minga: {shared_cores(ranks, case.run.threads, cores)}")
    if given is not None and len(given.slots) > 1:
        notes.append(f"minga: {unused(given)}")
    launcher = find_launcher() if ranks > 1 else None
    yield Start(ranks, None if launcher is None else _starting(Ranks(launcher, ranks)), notes=tuple(notes))


def _allocated(case: Case) -> Allocation | None:
    """Return the allocation of this process; a job that has asked for no tasks gets ranks for its GPUs or its cells."""
    given = allocation(threads=case.run.threads)
    if given is None or not given.assumed:
        return given
    if (devices := ranks_by_device(case.run.device)) is not None:
        return replace(given, slots=dict.fromkeys(given.slots, devices))
    return given.limited(_most_ranks(case))


def _ranks_of_job(given: Allocation, case: Case) -> Start:
    """Return the ranks of a run on the nodes of an allocation."""
    ranks, launcher = case.run.ranks or given.ranks, find_launcher()
    start = start_on(given, launcher.path, launcher.vendor, ranks)
    note = f"minga: {ranks} ranks on nodes of the {len(given.slots)} that {given.system} has given to this job"
    return Start(ranks, _starting(Ranks(launcher, ranks, start=tuple(start))), notes=(note,))


def _starting(ranks: Ranks) -> Preparing:
    return lambda directory, note: ranks


def _default_ranks(case: Case) -> int:
    """Return the default number of ranks: one per GPU or free physical core, limited by the number of cells.

    A run that is over before ranks would have started stays in this process.
    """
    if (devices := ranks_by_device(case.run.device)) is not None:
        return devices
    if stays_here(case):
        return 1
    cores = len(available_cores()) // case.run.threads
    return max(1, min(cores, _most_ranks(case)))


def stays_here(case: Case) -> bool:
    """Return whether a run takes less time than the start of its ranks, and has no settings that concern them."""
    run, settings, clock = case.run, type(case.run).model_fields, case.model.clock
    if case.output.writers or any(getattr(run, key) != settings[key].default for key in _FOR_RANKS):
        return False
    counted = run.until is None or (clock is not None and clock.kind == "constant")
    return counted and is_short(case.model, run.steps)


def _most_ranks(case: Case) -> int:
    return int(case.model.grid.size) // _CELLS_A_RANK


# Hosts ---------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Demand:
    """Work of ranks on hosts.

    Attributes
    ----------
    threads
        Threads of each rank.
    most
        The most ranks that have enough to do.
    """

    threads: int
    most: int


def demand_of(case: Case) -> Demand:
    """Return the demand of a run: 4096 cells or more for each rank."""
    return Demand(case.run.threads, _most_ranks(case))


@dataclass(frozen=True, slots=True)
class _Seat:
    """A host that gets ranks, and the number of its agent; None for this machine if the file does not list it."""

    host: Host
    agent: int | None


@contextlib.contextmanager
def ranks_on_hosts(
    demand: Demand,
    file: Path,
    shell: str,
    ranks: int | None,
    barred: Collection[str] | None = None,
    dropped: Collection[str] = (),
) -> Iterator[Start]:
    """Check the hosts of a file, and yield the ranks of a run on them; only checkpoints stay there.

    Parameters
    ----------
    demand
        What the ranks have to do.
    file
        The hosts file.
    shell
        Command line of ssh, or of another program that is called in the same way.
    ranks
        Number of ranks that compute; None for as many as the hosts take.
    barred
        Names of hosts that stay out after a loss; then others that cannot take part are left out as well, and of the
        number of ranks as many start as the others take.
    dropped
        Names of hosts that stay out because they are slow, unless no other is left.

    Raises
    ------
    CaseError
        If the file is invalid, or the hosts do not take so many ranks.
    LaunchError
        If a host cannot take part; all faults are named.
    """
    everyone = read_hosts(file, 1)
    wanted = [host for host in everyone if host.name not in (barred or ())]
    if not wanted:
        raise RunError(
            f"no host of {file} is left: each was lost several times", remedy="resume the run on other hosts"
        )
    hosts = [host for host in wanted if host.name not in dropped] or wanted
    _check_weights(hosts, file)
    launcher = find_launcher()
    with interruptible(), host_agents(hosts, shell) as agents:
        notes = agents.check(launcher, leave_out=barred is not None)
        if ranks is not None and barred is not None:
            ranks = min(ranks, sum(_room(agents.each, demand, limited=False)))
        seats = _seated(agents, demand, ranks)
        notes += _crowded(agents, seats, demand.threads)
        if seats[0].agent is None:
            notes.append("minga: rank 0 runs on this machine, which is not in the hosts file, and computes nothing")
        count = sum(seat.host.ranks for seat in seats)
        weights = _weights(seats)

        def prepare(directory: RunDirectory, note: Callable[[str], None]) -> Ranks:
            places = _places(agents, seats, demand.threads, directory, count, weights, note)
            return Ranks(launcher, count, tuple(places), shell, agents.mark)

        taking = {agent.host.name for agent in agents.each}
        lacking = {host: host.slots or count / len(taking) for host in everyone if host.name not in taking}
        together = count + sum(lacking.values())
        absent = {host: ranks / together for host, ranks in lacking.items()}
        yield Start(count, prepare, weights, tuple(notes), absent)


def _check_weights(hosts: Sequence[Host], file: Path) -> None:
    without = next((host for host in hosts if host.weight is None), None)
    if without is not None and any(host.weight is not None for host in hosts):
        raise CaseError(
            f"host {without.name} has no weight, but others have",
            where=(str(file), without.line),
            remedy="write weight= for all hosts, or for none: then the ranks are timed",
        )


def _seated(agents: HostAgents, demand: Demand, ranks: int | None) -> list[_Seat]:
    """Return the hosts that get ranks: first this machine, where rank 0 writes the output, then those of the file."""
    room = _room(agents.each, demand, limited=ranks is None)
    if ranks is not None and ranks > sum(room):
        raise CaseError(
            f"{ranks} ranks do not fit on the hosts, which take {sum(room)}",
            key="-n",
            remedy="write slots= for more ranks of a host into the hosts file",
        )
    here = next((number for number, agent in enumerate(agents.each) if agent.here), None)
    order = sorted(range(len(agents.each)), key=lambda number: number != here)
    left, seats = sum(room) if ranks is None else ranks, []
    for number in order:
        count = min(room[number], left)
        left -= count
        if count:
            host = replace(agents.each[number].host, slots=count)
            seats.append(_Seat(_local(host) if number == here else host, number))
    if here is None:
        weighted = seats[0].host.weight is not None
        seats.insert(0, _Seat(Host("localhost", 1, weight=0.0 if weighted else None), None))
    return seats


def _local(host: Host) -> Host:
    """Return this machine under the name by which launchers start ranks without ssh."""
    return replace(host, name="localhost", user=None, port=None)


def _room(agents: Sequence[HostAgent], demand: Demand, *, limited: bool) -> list[int]:
    """Return the number of ranks that each host takes: as the file says, else one for each core.

    ``limited`` reduces the numbers that the file does not say, so that all ranks have enough to do.
    """
    found = [
        agent.host.slots or max(1, min(agent.host.cores or 1 << 20, agent.facts["cores"]) // demand.threads)
        for agent in agents
    ]
    most, total = max(len(agents), demand.most), sum(found)
    if limited and total > most:
        found = [
            count if agent.host.slots else max(1, count * most // total)
            for agent, count in zip(agents, found, strict=True)
        ]
    return found


def _crowded(agents: HostAgents, seats: Sequence[_Seat], threads: int) -> list[str]:
    """Return notes on hosts whose ranks must share cores."""
    notes = []
    for seat in seats:
        cores = None if seat.agent is None else agents.each[seat.agent].facts["cores"]
        if cores is not None and seat.host.ranks * threads > cores:
            notes.append(f"minga: {shared_cores(seat.host.ranks, threads, cores, f' of {seat.host.name}')}")
    return notes


def _weights(seats: Sequence[_Seat]) -> tuple[float, ...] | None:
    """Return the relative speeds of the ranks, which share those of their hosts; None if all ranks are to be timed."""
    if all(seat.agent is not None and seat.host.weight is None for seat in seats):
        return None
    found: list[float] = []
    for seat in seats:
        weight = 0.0 if seat.agent is None else 1.0 if seat.host.weight is None else seat.host.weight / seat.host.ranks
        found += [weight] * seat.host.ranks
    return tuple(found)


def _places(
    agents: HostAgents,
    seats: Sequence[_Seat],
    threads: int,
    directory: RunDirectory,
    ranks: int,
    weights: Sequence[float] | None,
    note: Callable[[str], None],
) -> Iterator[Place]:
    """Yield the hosts with what their ranks are told, after copying the case to those that need it."""
    yield Place(seats[0].host, directory=str(Path.cwd()))
    options = {"run.ranks": ranks, "run.threads": threads, "run.weights": weights}
    copies = stage(agents, [seat.agent for seat in seats[1:] if seat.agent is not None], directory, note)
    for seat in seats[1:]:
        assert seat.agent is not None  # only the first one has no agent
        copy = copies[seat.agent]
        entries = {"target": copy.case, "overrides": [], "options": options, "run": copy.run}
        yield Place(seat.host, entries, copy.directory)
