"""Labs: building one, finding it, running programs on its nodes, and removing everything it created.

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
from minga.lab.commands import check_tools, collect, output
from minga.lab.config import Lab, read_lab
from minga.lab.cores import assign_cores
from minga.lab.entrance import entrance, write_entrance
from minga.lab.hub_process import hub_counts, start_hub
from minga.lab.namespaces import Counters, address, counters, make_links, make_namespaces, remove_namespaces
from minga.lab.processes import inside
from minga.lab.rootless import check_user_namespaces, hold_namespaces
from minga.lab.state import State, locked, read_state, write_state
from minga.launch.processes import end, process_here
from minga.launch.signals import interruptible, uninterrupted

__all__ = ["Cluster", "Rights", "existing", "find", "lab_rights", "laboratory", "remove_stale", "unreadable", "up"]

_SERIAL = itertools.count()


@dataclass(frozen=True, slots=True)
class Cluster:
    """A lab that has been built, and access to its nodes.

    Parameters
    ----------
    state
        The record of the lab's nodes and processes.
    """

    state: State

    @property
    def lab(self) -> Lab:
        """Description from which the lab was built."""
        return self.state.lab

    @property
    def name(self) -> str:
        """Name of the lab on this machine."""
        return self.state.instance

    @property
    def names(self) -> tuple[str, ...]:
        """Host names of the nodes."""
        return tuple(node.name for node in self.lab.nodes)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Addresses of the nodes."""
        return tuple(address(node) for node in range(len(self.lab.nodes)))

    @property
    def shares(self) -> tuple[float, ...]:
        """Cores of each node, after scaling."""
        return self.lab.shares(self.state.cores)

    @property
    def folder(self) -> Path:
        """Directory for files that are removed together with the lab."""
        return self.state.folder

    def node(self, which: int | str) -> int:
        """Return the number of a node, which may be given by number, name or address.

        Parameters
        ----------
        which
            Number, name or address of the node.

        Returns
        -------
        int
            The number.

        Raises
        ------
        CaseError
            If the lab has no such node.
        """
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

    def command(
        self, node: int | str, program: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> list[str]:
        """Return the command line that runs a program inside a node: in its network, host name and control group.

        The command replaces itself with the program, so that signals reach the program. The variables in
        ``environment`` are added to the inherited environment.

        Parameters
        ----------
        node
            Number, name or address of the node.
        program
            The command line of the program.
        environment
            Environment variables that are added.

        Returns
        -------
        list of str
            The command line.
        """
        changes = ["env", *(f"{key}={value}" for key, value in environment.items())] if environment else []
        return ["/bin/sh", str(entrance(self.state)), str(self.node(node)), *changes, *program]

    def execute(self, node: int | str, program: Sequence[str], **options: Any) -> subprocess.CompletedProcess[Any]:
        """Run a program inside a node with ``subprocess.run``; ``options`` are passed to it.

        Parameters
        ----------
        node
            Number, name or address of the node.
        program
            The command line of the program.
        options
            Options of ``subprocess.run``.

        Returns
        -------
        subprocess.CompletedProcess
            The finished process.
        """
        return subprocess.run(self.command(node, program), **{"check": False, **options})

    def run(
        self,
        argv: Sequence[str],
        ranks: int | None = None,
        mpi: str = "mpich",
        environment: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on MPI ranks on the nodes and wait until it ends; see :func:`minga.lab.launch.run`.

        Parameters
        ----------
        argv
            The command line of the program.
        ranks
            The number of ranks; by default one for each node.
        mpi
            The MPI library: ``"mpich"``, ``"openmpi"`` or ``"impi"``.
        environment
            Environment variables that are added.
        timeout
            Seconds after which the job is ended.
        options
            Options of :func:`minga.lab.launch.run`.

        Returns
        -------
        subprocess.CompletedProcess
            The finished job.
        """
        from minga.lab.launch import run

        return run(self, argv, ranks, mpi, environment, timeout, **options)

    def counters(self) -> dict[int, Counters]:
        """Return the traffic of each node's link, from the counters of the interfaces.

        Returns
        -------
        dict
            Counters by the number of the node.
        """
        return counters(self.state)

    def processes(self) -> dict[int, set[int]]:
        """Return the process ids in each node; key -1 holds those in the switch and those that left their node.

        Returns
        -------
        dict
            Process ids by the number of the node.
        """
        return inside(self.state)

    def killed_for_memory(self) -> dict[str, int]:
        """Return, for each node with a memory limit, the number of processes killed because it was reached.

        Returns
        -------
        dict
            Numbers of processes by the name of the node.
        """
        limited = (pair for pair in zip(self.lab.nodes, self.state.groups) if pair[0].memory is not None)
        return {node.name: killed_for_memory(groups) for node, groups in limited}

    def fault(self) -> str | None:
        """Return the reason why the lab can no longer be used, or None if it works.

        Returns
        -------
        str or None
            The reason.
        """
        return self.state.fault()

    def status(self) -> dict[str, Any]:
        """Return everything that is known about the lab, as JSON-serialisable data.

        Returns
        -------
        dict
            Plain data.
        """
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
        """Change the share of a node from now on, as if other programs on it had started or ended.

        Parameters
        ----------
        node
            Number, name or address of the node.
        cores
            Cores that the node may use, at most those it is bound to.

        Raises
        ------
        CaseError
            If the share is outside the possible range.
        LaunchError
            If the lab has no quotas, or the quota cannot be set.
        """
        number = self.node(node)
        if number >= len(self.state.groups):
            raise LaunchError(f"the lab {self.name} was built without quotas, so no share can be changed")
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
        """End all processes in the lab and remove everything it created, even if part of that is already gone."""
        with uninterrupted(), locked():
            current = read_state(self.name)
            if current is not None and current.token == self.state.token:
                _remove(current)


@dataclass(frozen=True, slots=True)
class Rights:
    """Rights of this user: ``version`` is that of the control groups that can be created, 0 if none can."""

    rootless: bool
    version: int


def lab_rights() -> Rights:
    """Return what this user may do here; raise LaunchError if no lab can be built."""
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
    lab
        Description of the lab.
    name
        Its name on this machine; by default the name in the description.
    temporary
        Tie the lab to this process: once the process has ended, for whatever reason, building the next lab removes
        it.
    quota
        Apply CPU shares and memory limits; otherwise only the network is built.
    rootless
        Build the lab in a user namespace; by default this is done unless the user is root.

    Raises
    ------
    LaunchError
        If the lab cannot be built. Everything created so far is then removed, as it is after an interrupt.
    CaseError
        If the share of a node is too small for a quota.
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
        raise _no_quota("there is no control group with CPU and memory limits that this user may change")
    if hierarchies is not None:
        _check_shares(state)
        places = list(dict.fromkeys((hierarchies.cpu, hierarchies.memory)))
        groups = tuple(
            tuple(str(place / f"minga-{state.instance}-{node}") for place in places) for node in range(len(lab.nodes))
        )
        kept = assign_cores(lab.shares(state.cores), len(cores))
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
    """Return the lab of that name if it was built and not removed; :meth:`Cluster.fault` tells whether it works."""
    state = read_state(lab if isinstance(lab, str) else lab.name)
    return None if state is None else Cluster(state)


def existing() -> list[Cluster]:
    """Return all labs of this user except those in :func:`unreadable`."""
    return _labs_and_errors()[0]


def unreadable() -> dict[str, LaunchError]:
    """Return the errors of the labs whose state cannot be read, by lab name; each error carries a remedy."""
    return _labs_and_errors()[1]


def _labs_and_errors() -> tuple[list[Cluster], dict[str, LaunchError]]:
    found, errors = [], {}
    for name in states.names():
        try:
            cluster = find(name)
        except LaunchError as error:  # one unreadable lab must not hide the others
            errors[name] = error
        else:
            if cluster is not None:  # it has not been removed in the meantime
                found.append(cluster)
    return found, errors


def remove_stale() -> list[str]:
    """Remove labs whose owner has ended, whose building was interrupted, or that predate a restart of the machine.

    Return the names of the removed labs.
    """
    with uninterrupted(), locked():
        return _sweep()


@contextlib.contextmanager
def laboratory(lab: Lab | str | Path, *, quota: bool = True, rootless: bool | None = None) -> Iterator[Cluster]:
    """Build a lab for the duration of a ``with`` block.

    The lab has a unique name, so that several can exist at the same time. Whatever happens in the block, nothing is
    left of the lab afterwards.

    Parameters
    ----------
    lab
        Description of the lab, path of its TOML file, or name of a lab that is shipped with minga.
    quota, rootless
        See :func:`up`.

    Returns
    -------
    context manager
        A ``with`` block gets the `Cluster`.
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
    """Raise CaseError if the share of a node is below the smallest possible one."""
    for node, share in zip(state.lab.nodes, state.lab.shares(state.cores)):
        if share < LEAST_SHARE:
            raise CaseError(
                f"node {node.name!r} would get {share:.2g} of a core, and the minimum is {LEAST_SHARE:g}",
                remedy="raise its share, or use a machine with more cores",
            )


def _make_room(state: State) -> None:
    """Remove the remains of an earlier lab of this name; raise LaunchError if the name is in use."""
    there = read_state(state.instance)
    if there is not None:
        if there.fault() is None:
            raise LaunchError(
                f"the lab {state.instance} is already up", remedy=f"remove it first: minga lab down {state.instance}"
            )
        _remove(there)
    taken = [directory for directory in itertools.chain(*state.groups) if Path(directory).exists()]
    if taken:
        raise LaunchError(
            f"the control group {taken[0]} already exists, and none of your labs created it",
            remedy=f"if nobody needs it: rmdir {' '.join(taken)}",
        )
    if state.rootless:
        return  # the namespaces of a rootless lab are in a separate place
    taken = [name for name in state.namespaces if state.namespace_file(name).exists()]
    if taken:
        raise LaunchError(
            f"the network namespace {taken[0]} already exists, and none of your labs created it",
            remedy=f"if nobody needs it: {' && '.join(f'ip netns delete {name}' for name in taken)}",
        )


def _build(state: State, version: int) -> Cluster:
    """Create everything a lab consists of; the state records each part before it is created."""
    write_state(state)
    if state.rootless:
        state = replace(state, holder=hold_namespaces(lambda process: write_state(replace(state, holder=process))))
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
    """Remove stale labs. Must be called with the lock held, so that no other process is building a lab."""
    removed = []
    for name in states.names():
        with contextlib.suppress(LaunchError):  # the error is reported to anyone who names that lab
            state = read_state(name)
            if state is not None and _is_stale(state):
                _remove(state)
                removed.append(name)
    return removed


def _is_stale(state: State) -> bool:
    abandoned = state.owner is not None and not state.owner.lives
    return abandoned or not state.built or state.boot != states.boot_id()


def _remove(state: State) -> None:
    """Remove everything that still exists. The state is removed last, so that an error leaves it for a new attempt."""
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
        "topmost group; or build the lab without shares and limits: --no-quota",
    )
