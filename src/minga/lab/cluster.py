"""Building a lab, finding it, running programs on its nodes, and removing all of it.

>>> with laboratory("three-ages") as cluster:
...     cluster.execute("old", ["hostname"])
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from minga.engine.pin import available_cores
from minga.errors import CaseError, LaunchError, suggest
from minga.lab import state as states
from minga.lab.cgroups import (
    LEAST_SHARE,
    find_hierarchies,
    killed_for_memory,
    make_group,
    quota,
    set_quota,
    throttling,
)
from minga.lab.cgroups import remove as remove_groups
from minga.lab.commands import check_tools, collect, interruptible, output, uninterrupted
from minga.lab.config import Lab, read_lab
from minga.lab.entrance import entrance, write_entrance
from minga.lab.namespaces import Counters, address, counters, make_links, make_namespaces, remove_namespaces
from minga.lab.processes import end, inside
from minga.lab.rootless import check_user_namespaces, hold
from minga.lab.seats import seats
from minga.lab.state import State, locked, process_here, read_state, write_state
from minga.lab.wire import hub_counts, start_hub

__all__ = ["Cluster", "Rights", "existing", "find", "lab_rights", "laboratory", "remove_stale", "unreadable", "up"]

_SERIAL = itertools.count()


@dataclass(frozen=True, slots=True)
class Cluster:
    """A lab that is up."""

    state: State

    @property
    def lab(self) -> Lab:
        """What was asked for."""
        return self.state.lab

    @property
    def name(self) -> str:
        """Its name on this machine."""
        return self.state.instance

    @property
    def names(self) -> tuple[str, ...]:
        """The host names of the nodes."""
        return tuple(node.name for node in self.lab.nodes)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of the nodes."""
        return tuple(address(node) for node in range(len(self.lab.nodes)))

    @property
    def shares(self) -> tuple[float, ...]:
        """Cores that each node has, after scaling."""
        return self.lab.shares(self.state.cores)

    @property
    def folder(self) -> Path:
        """A directory for files that are removed together with the lab."""
        return self.state.folder

    def node(self, which: int | str) -> int:
        """The number of a node, which may be given by its name or address. CaseError where there is none."""
        if isinstance(which, int) and 0 <= which < len(self.names):
            return which
        for known in (self.names, self.addresses, tuple(map(str, range(len(self.names))))):
            if which in known:
                return known.index(str(which))
        raise CaseError(
            f"the lab {self.name} has no node {which!r}",
            suggestion=suggest(str(which), self.names),
            remedy=f"its nodes are {', '.join(self.names)}",
        )

    def command(self, node: int | str, words: Sequence[str], environment: Mapping[str, str] | None = None) -> list[str]:
        """The command line that runs a program inside a node: its network, host name and control group.

        It replaces itself by the program, so that signals reach it. ``environment`` is added to what is there.
        """
        changes = ["env", *(f"{key}={value}" for key, value in environment.items())] if environment else []
        return ["/bin/sh", str(entrance(self.state)), str(self.node(node)), *changes, *words]

    def execute(self, node: int | str, words: Sequence[str], **options: Any) -> subprocess.CompletedProcess[Any]:
        """``subprocess.run`` of a program inside a node."""
        return subprocess.run(self.command(node, words), **{"check": False, **options})

    def run(
        self,
        argv: Sequence[str],
        ranks: int | None = None,
        mpi: str = "mpich",
        environment: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on MPI ranks of the nodes, to its end; see :func:`minga.lab.launch.run`."""
        from minga.lab.launch import run

        return run(self, argv, ranks, mpi, environment, timeout, **options)

    def counters(self) -> dict[int, Counters]:
        """What has crossed each node's link, by the interfaces' own counters."""
        return counters(self.state)

    def processes(self) -> dict[int, set[int]]:
        """The processes in each node; -1 has those that left it."""
        return inside(self.state)

    def killed_for_memory(self) -> dict[str, int]:
        """For each node with a memory limit, how many of its processes were killed as it was reached."""
        limited = (pair for pair in zip(self.lab.nodes, self.state.groups) if pair[0].memory is not None)
        return {node.name: killed_for_memory(groups) for node, groups in limited}

    def fault(self) -> str | None:
        """Why nobody can use the lab any more, or None."""
        return self.state.fault()

    def status(self) -> dict[str, Any]:
        """All that is known about the lab, as JSON can hold it."""
        state, fault = self.state, self.fault()
        crossed = {} if fault else self.counters()
        running = self.processes()
        factor = self.lab.factor(state.cores)
        nodes = []
        for number, node in enumerate(self.lab.nodes):
            waited = throttling(state.groups[number]) if number < len(state.groups) else None
            nodes.append(
                {
                    "node": number,
                    "name": node.name,
                    "address": address(number),
                    "share": node.share,
                    "cores": quota(state.groups[number]) if state.quota else None,
                    "cpus": list(state.cpus[number]) if state.cpus else [],
                    "memory": node.memory if state.quota else None,
                    "rate": self.lab.rates[number],
                    "processes": len(running.get(number, ())),
                    **({} if number not in crossed else crossed[number]._asdict()),
                    **({} if waited is None else {"throttled_seconds": waited.seconds, "periods": waited.periods}),
                }
            )
        return {
            "name": self.name,
            "state": fault or "up",
            "wiring": self.lab.wiring,
            "scale": factor,
            "cores": state.cores,
            "root": not state.rootless,
            "quota": state.quota,
            "owner": state.owner.pid if state.owner else None,
            "hub": hub_counts(state),
            "nodes": nodes,
        }

    def set_share(self, node: int | str, cores: float) -> None:
        """Give a node another part of a core from now on, as when other programs on it begin or end.

        It cannot have more than the cores it keeps to. CaseError for a share that cannot be given, LaunchError where
        the lab has no quotas.
        """
        number = self.node(node)
        if number >= len(self.state.groups):
            raise LaunchError(f"the lab {self.name} was built without quotas, so that no share can be changed")
        most = len(self.state.cpus[number]) or self.state.cores
        if not LEAST_SHARE <= cores <= most:
            raise CaseError(
                f"node {self.names[number]!r} cannot have {cores:g} cores",
                remedy=f"give it from {LEAST_SHARE:g} to {most:g}",
            )
        try:
            set_quota(self.state.groups[number][0], cores, self.lab.period)
        except OSError as error:
            raise LaunchError(f"the quota cannot be set: {error.strerror}", where=str(error.filename)) from error

    def down(self) -> None:
        """End all processes inside and remove everything the lab has made. Also where half of it is gone already."""
        with uninterrupted(), locked():
            current = read_state(self.name)
            if current is not None and current.token == self.state.token:
                _remove(current)


@dataclass(frozen=True, slots=True)
class Rights:
    """What is permitted here: ``version`` of the control groups that can be made, 0 for none."""

    rootless: bool
    version: int


def lab_rights() -> Rights:
    """What is permitted here; LaunchError where no lab can be built."""
    check_tools()
    if os.geteuid() != 0:
        check_user_namespaces()
    hierarchies = find_hierarchies()
    return Rights(os.geteuid() != 0, 0 if hierarchies is None else hierarchies.version)


def up(
    lab: Lab,
    *,
    name: str | None = None,
    temporary: bool = False,
    quota: bool = True,
    rootless: bool | None = None,
) -> Cluster:
    """Build a lab.

    Parameters
    ----------
    name
        Its name on this machine; by default that of the lab.
    temporary
        It belongs to this process: when this has ended in any way, the next lab that is built removes it.
    quota
        Whether nodes get their shares of the CPU and their memory; if not, only the network is built.
    rootless
        Build it in a user namespace; by default unless this is root.

    Raises LaunchError, and has then removed what was made; so it has on an interrupt.
    """
    check_tools()
    alone = os.geteuid() != 0 if rootless is None else rootless
    if alone:
        check_user_namespaces()
    cores = available_cores()
    state = State(
        instance=name or lab.name,
        lab=lab,
        token=secrets.token_hex(8),
        boot=states.boot_id(),
        rootless=alone,
        cores=float(len(cores)),
        quota=quota,
        owner=process_here(os.getpid()) if temporary else None,
    )
    hierarchies = find_hierarchies() if quota else None
    if quota and hierarchies is None:
        raise _no_quota("no control group with CPU and memory limits is there that this user may change")
    if hierarchies is not None:
        _check_shares(state)
        places = list(dict.fromkeys((hierarchies.cpu, hierarchies.memory)))
        groups = tuple(
            tuple(str(place / f"minga-{state.instance}-{node}") for place in places) for node in range(len(lab.nodes))
        )
        kept = seats(lab.shares(state.cores), len(cores))
        state = replace(state, groups=groups, cpus=tuple(tuple(cores[core][0] for core in node) for node in kept))
    with interruptible(), locked():
        _sweep()
        _make_room(state)
        try:
            return _build(state, 0 if hierarchies is None else hierarchies.version)
        except BaseException:
            with uninterrupted():
                _remove(read_state(state.instance) or state)
            raise


def find(lab: Lab | str) -> Cluster | None:
    """The lab of that name, if it has been built and not removed; see :meth:`Cluster.fault` for whether it works."""
    state = read_state(lab if isinstance(lab, str) else lab.name)
    return None if state is None else Cluster(state)


def existing() -> list[Cluster]:
    """All labs of this user, without those of :func:`unreadable`."""
    return _labs_and_errors()[0]


def unreadable() -> dict[str, LaunchError]:
    """The labs whose state cannot be read, by name, and what their user can do about each."""
    return _labs_and_errors()[1]


def _labs_and_errors() -> tuple[list[Cluster], dict[str, LaunchError]]:
    found, errors = [], {}
    for name in states.names():
        try:
            cluster = find(name)
        except LaunchError as error:  # one such lab must not hide the others
            errors[name] = error
        else:
            if cluster is not None:  # nobody has removed it meanwhile
                found.append(cluster)
    return found, errors


def remove_stale() -> list[str]:
    """Remove labs whose owner has ended, that were not built to the end, or are from before a restart; their names."""
    with uninterrupted(), locked():
        return _sweep()


@contextlib.contextmanager
def laboratory(lab: Lab | str | Path, *, quota: bool = True, rootless: bool | None = None) -> Iterator[Cluster]:
    """A lab for the time of a ``with`` block, under a name of its own, so that several can be there at once.

    Whatever happens in the block, afterwards nothing is left.
    """
    chosen = lab if isinstance(lab, Lab) else read_lab(lab)
    name = f"{chosen.name}-{os.getpid()}-{next(_SERIAL)}"
    with interruptible():
        cluster = up(chosen, name=name, temporary=True, quota=quota, rootless=rootless)
        try:
            yield cluster
        finally:
            cluster.down()


# Building and removing ------------------------------------------------------------------------------------------------
def _check_shares(state: State) -> None:
    """CaseError where a node's part of a core is less than can be given."""
    for node, share in zip(state.lab.nodes, state.lab.shares(state.cores)):
        if share < LEAST_SHARE:
            raise CaseError(
                f"node {node.name!r} would get {share:.2g} of a core, and {LEAST_SHARE:g} is the least",
                remedy="raise its share, or use a machine with more cores",
            )


def _make_room(state: State) -> None:
    """LaunchError where the name is in use; the ruins of a lab of this name are removed."""
    there = read_state(state.instance)
    if there is not None:
        if there.fault() is None:
            raise LaunchError(
                f"the lab {state.instance} is up already", remedy=f"remove it first: minga lab down {state.instance}"
            )
        _remove(there)
    taken = [directory for directory in itertools.chain(*state.groups) if Path(directory).exists()]
    if taken:
        raise LaunchError(
            f"the control group {taken[0]} is there already, and no lab of yours has made it",
            remedy=f"if nobody needs it: rmdir {' '.join(taken)}",
        )
    if state.rootless:
        return  # its namespaces are in a place of their own
    taken = [name for name in state.namespaces if state.namespace_file(name).exists()]
    if taken:
        raise LaunchError(
            f"the network namespace {taken[0]} is there already, and no lab of yours has made it",
            remedy=f"if nobody needs it: {' && '.join(f'ip netns delete {name}' for name in taken)}",
        )


def _build(state: State, version: int) -> Cluster:
    """Make everything; what is going to be made is written down first."""
    write_state(state)
    if state.rootless:
        state = replace(state, holder=hold(lambda process: write_state(replace(state, holder=process))))
    make_namespaces(state)
    make_links(state)
    if state.quota:
        _make_groups(state, version)
    if state.lab.in_user_space:
        state = replace(state, hub=start_hub(state, lambda process: write_state(replace(state, hub=process))))
    write_entrance(state)
    state = replace(state, built=True)
    cluster = Cluster(state)
    try:
        output(cluster.command(0, ["true"]))
    except LaunchError as error:
        if any(cluster.killed_for_memory().values()):
            raise LaunchError(
                f"the memory of node {cluster.names[0]!r} is too small to start a program",
                remedy="raise it; Python and MPI need some 100 MB",
            ) from error
        if state.quota and "cgroup" in error.message:
            raise _no_quota(error.message) from error
        raise
    write_state(state)
    return cluster


def _make_groups(state: State, version: int) -> None:
    shares = state.lab.shares(state.cores)
    for node, share, directories in zip(state.lab.nodes, shares, state.groups):
        try:
            make_group(directories, version, share, node.memory, state.lab.period)
        except OSError as error:
            raise _no_quota(f"{error.filename or directories[0]}: {error.strerror}") from error


def _sweep() -> list[str]:
    """Remove what nobody can want any more. Only under the lock: then nobody else is building."""
    removed = []
    for name in states.names():
        with contextlib.suppress(LaunchError):  # whoever names that lab is told
            state = read_state(name)
            if state is not None and _is_stale(state):
                _remove(state)
                removed.append(name)
    return removed


def _is_stale(state: State) -> bool:
    abandoned = state.owner is not None and not state.owner.lives
    return abandoned or not state.built or state.boot != states.boot_id()


def _remove(state: State) -> None:
    """Remove everything that is still there. The state goes last: an error leaves it for the next attempt."""
    if state.boot == states.boot_id():
        end(lambda: set().union(*inside(state).values()))
        end(lambda: [state.hub.pid] if state.hub is not None and state.hub.lives else [])
        if state.holder is None or state.holder.lives:
            remove_namespaces(state)
        end(lambda: [state.holder.pid] if state.holder is not None and state.holder.lives else [])
        remove_groups([directory for node in state.groups for directory in node])
    states.forget(state)
    collect()


def _no_quota(why: str) -> LaunchError:
    return LaunchError(
        f"quotas not permitted: {why}",
        remedy="run as root; or in a group that was delegated to you: "
        "systemd-run --user --scope -p Delegate=yes minga lab ...; in a container, once its processes are out of the "
        "topmost group; or do without shares and limits: --no-quota",
    )
