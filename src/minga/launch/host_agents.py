"""The hosts of a run before and after it: all are checked at once, receive copies of files, and keep checkpoints."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import os
import platform
import queue
import secrets
import shlex
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from minga.errors import LaunchError, listed
from minga.launch.agents import HostProcess, end_all, start
from minga.launch.host_agent import GREETING
from minga.launch.hosts import Host, login_options, shell_command, shell_launcher
from minga.launch.jobs import end_jobs
from minga.launch.launcher import Launcher, library
from minga.launch.machine_id import machine_id
from minga.launch.reach import is_here, own_address
from minga.launch.signals import uninterrupted
from minga.output.versions import CLOCK_SECONDS, versions_here

__all__ = ["Fault", "HostAgent", "HostAgents", "fault_table", "host_agents"]

_AGENT: Final = "minga.launch.host_agent"
_PATIENCE: Final = 9.0
"""Seconds in which a host must have been checked."""
_COPYING: Final = 600.0
"""Seconds of silence of a host that receives files, after which it counts as lost."""
_BLOCK: Final = 1 << 20
_MOST_AT_ONCE: Final = 64
"""Maximum number of hosts that files are sent to at the same time."""
_HELPERS: Final = {"MPICH": "hydra_pmi_proxy", "Open MPI": "prted", "Intel MPI": "hydra_bstrap_proxy"}
"""Programs that a launcher starts on other hosts, from the directory that it lies in itself."""
_PORTS: Final = ("MPIEXEC_PORT_RANGE", "MPIR_CVAR_CH3_PORT_RANGE", "I_MPI_PORT_RANGE")
"""Variables with the ports, LOW:HIGH, that a firewall leaves open for MPI."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why a host cannot take part in a run, and what to do about it."""

    host: str
    what: str
    cure: str


@dataclass(eq=False)
class HostAgent:
    """An agent on a host."""

    host: Host
    process: HostProcess
    messages: queue.Queue[dict[str, Any] | None] = field(default_factory=queue.Queue)
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Versions, cores and clock, as the agent reports them."""
    heard: float = 0.0
    """Time of this machine's clock when it did."""

    @property
    def here(self) -> bool:
        """True if the host is this machine."""
        return bool(self.facts["machine"] == machine_id())

    def ask(self, order: Mapping[str, Any], patience: float) -> Any:
        """Send an order and return the answer; raise LaunchError if the host does not answer in time."""
        self.tell(order)
        message = self.message("answer", time.monotonic() + patience)
        if message is None:
            raise LaunchError(f"host {self.host.name}: {self.silence(patience)}", remedy="check that it is still up")
        return message["answer"]

    def tell(self, order: Mapping[str, Any]) -> None:
        """Send an order; if the agent is gone, this is noticed when it does not answer."""
        with contextlib.suppress(OSError, ValueError):
            self.process.tell(order)

    def message(self, key: str, deadline: float) -> dict[str, Any] | None:
        """Return the next message with a key; None if there is none in time or the agent has ended."""
        while True:
            try:
                message = self.messages.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return None
            if message is None or key in message:
                return message

    def silence(self, patience: float) -> str:
        """Return why there was no answer."""
        if self.process.popen.poll() is None and not self.process.last_words():
            return f"did not answer within {patience:g} s"
        said = self.process.last_words()
        return said or f"the connection {self.process.how_it_ended()}"

    def begin(self, name: str, rooms: Sequence[str] = ()) -> str:
        """Make a folder for a run, with directories in it for files that other programs store, and return its path.

        Raises
        ------
        LaunchError
            If that is not possible.
        """
        order = {"do": "begin", "directory": self.host.directory, "name": name, "rooms": list(rooms)}
        begun = self.ask(order, _PATIENCE)
        if "folder" not in begun:
            raise self._refusal(begun["fault"])
        return str(begun["folder"])

    def fill(self, files: Mapping[str, Path | str]) -> None:
        """Copy files, given as paths or as text by their names there, into the folder for the run.

        Raises
        ------
        LaunchError
            If the host cannot store them.
        """
        digests = {name: self._send(name, content) for name, content in files.items()}
        fault = self.ask({"do": "staged", "digests": digests}, _COPYING)["fault"]
        if fault is not None:
            raise self._refusal(fault)

    def _send(self, name: str, content: Path | str) -> str:
        """Send a file, and return the digest of what was read."""
        digest = hashlib.sha256()
        self.tell({"do": "file", "name": name})
        with io.BytesIO(content.encode()) if isinstance(content, str) else content.open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
                self.tell({"do": "bytes", "data": base64.b64encode(block).decode()})
        return digest.hexdigest()

    def _refusal(self, fault: str) -> LaunchError:
        return LaunchError(
            f"host {self.host.name} cannot store a copy of the case: {fault}",
            remedy="make room there, or name another place in the hosts file with directory=PATH",
        )


@dataclass(eq=False)
class HostAgents:
    """The agents of a run, in the order of the hosts file."""

    shell: str
    mark: str
    """Text that marks the ranks of this run in their environment."""
    each: list[HostAgent] = field(default_factory=list)

    def check(self, launcher: Launcher, *, leave_out: bool = False) -> list[str]:
        """Check all hosts at the same time, in a few seconds.

        With `leave_out`, the agents of hosts that cannot take part are ended, as long as other hosts can.

        Returns
        -------
        list of str
            Notes about harmless differences, and about hosts that were left out.

        Raises
        ------
        LaunchError
            If a host cannot take part; the message is a table of all faults.
        """
        library()  # so that its version is among those of this machine
        with _answering(own_address([agent.host for agent in self.each], self.shell)) as (back, token):
            deadline = time.monotonic() + _PATIENCE

            def conversation(number: int) -> list[Fault]:
                return list(self._faults(self.each[number], launcher, back, token, deadline))

            found = self.at_once(range(len(self.each)), conversation)
        faults = [fault for each in found.values() for fault in each]
        bad = {fault.host for fault in faults}
        if faults:
            end_jobs([agent.process.popen for agent in self.each if not agent.facts], ask=False)
            if not leave_out or len(bad) == len(self.each):
                raise LaunchError(fault_table(faults, len(self.each)))
            self._end([agent for agent in self.each if agent.host.name in bad])
            self.each = [agent for agent in self.each if agent.host.name not in bad]
        left = [f"minga: the run continues without host {fault.host}, which {fault.what}" for fault in faults]
        clocks = [note for agent in self.each if (note := _clock(agent)) is not None]
        return left + clocks + _processors(self.each)

    def _trial(self, host: Host) -> str:
        """Return a command that shows how a host answers."""
        words = shlex.split(self.shell)
        python = shlex.quote(host.python or sys.executable)
        return shlex.join([*words, *login_options(host, words), host.name, f"{python} -m {_AGENT} </dev/null"])

    def _faults(
        self, agent: HostAgent, launcher: Launcher, back: tuple[str, int] | None, token: str, deadline: float
    ) -> Iterator[Fault]:
        """Yield what a host lacks."""
        name = agent.host.name
        message = agent.message("greeting", deadline)
        if message is None or message["greeting"] != GREETING:
            cure = f"try `{self._trial(agent.host)}`; python=PATH in the hosts file names another Python"
            yield Fault(name, agent.silence(_PATIENCE), cure)
            return
        agent.facts, agent.heard = message, time.time()
        helper = launcher.path.parent / _HELPERS.get(launcher.vendor, "")
        order = {
            "do": "check",
            "mark": self.mark,
            "needs": [str(helper)] if helper.is_file() and not agent.here else [],
            "back": None if agent.here else back,
            "token": token,
            "directory": agent.host.directory,
        }
        agent.tell(order)
        yield from _different_versions(agent)
        message = agent.message("answer", deadline)
        if message is None:
            yield Fault(name, agent.silence(_PATIENCE), "check that it is still up")
            return
        found = message["answer"]
        for path in found["missing"]:
            yield Fault(name, f"has no {path}", "install the same MPI at the same path as here, or make a link to it")
        if found["back"] is not None and back is not None:
            cure = f"open the firewalls on the way; {_PORTS[0]}=LOW:HIGH limits the ports"
            yield Fault(name, f"cannot reach this machine as {back[0]}: {found['back']}", cure)
        if found["directory"] is not None:
            yield Fault(name, f"{agent.host.directory} {found['directory']}", "name another directory= for it")

    def ask_all(self, orders: Mapping[int, Mapping[str, Any]], patience: float = _COPYING) -> dict[int, Any]:
        """Send orders to agents by their numbers, at the same time, and return the answers."""
        return self.at_once(sorted(orders), lambda number: self.each[number].ask(orders[number], patience))

    def at_once(self, numbers: Sequence[int], action: Callable[[int], Any]) -> dict[int, Any]:
        """Do something with several hosts at the same time; the first error of any is raised when all have ended."""
        if not numbers:
            return {}
        with ThreadPoolExecutor(min(len(numbers), _MOST_AT_ONCE)) as pool:
            results = [pool.submit(action, number) for number in numbers]
        return {number: result.result() for number, result in zip(numbers, results, strict=True)}

    def end(self) -> None:
        """End all agents, which remove what they have stored, but for checkpoints."""
        self._end(self.each)

    def _end(self, agents: Sequence[HostAgent]) -> None:
        with uninterrupted():
            for agent in agents:
                agent.tell({"do": "end"})
            end_all([agent.process for agent in agents])


@contextlib.contextmanager
def host_agents(hosts: Sequence[Host], shell: str) -> Iterator[HostAgents]:
    """Start an agent on each host, all at the same time, and end them on the way out."""
    reach = shell_launcher(shell)
    shell_command(shell)
    agents = HostAgents(shell, secrets.token_hex(8))
    try:
        for host in hosts:
            messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
            with uninterrupted():
                launcher = None if is_here(host, shell) else reach
                process = start(host, _AGENT, launcher, messages.put, "name another program with --shell")
                agents.each.append(HostAgent(host, process, messages))
        yield agents
    finally:
        agents.end()


def fault_table(faults: Sequence[Fault], hosts: int, said: str = "cannot take part, so nothing was started") -> str:
    """Return all faults as a table with a line for each; ``said`` is what they mean."""
    bad = len({fault.host for fault in faults})
    name = max(len(fault.host) for fault in faults)
    head = f"{bad} of {hosts} host{'s' if hosts > 1 else ''} {said}"
    return "\n".join([head, *(f"  {fault.host:{name}}  {fault.what}; {fault.cure}" for fault in faults)])


def _different_versions(agent: HostAgent) -> Iterator[Fault]:
    """Yield what differs from this machine, as ranks must have the same versions."""
    theirs = agent.facts["versions"]
    if agent.facts["mpi_fault"] is not None:
        yield Fault(agent.host.name, agent.facts["mpi_fault"], "install the same packages there as here")
        return
    theirs_built, ours_built = agent.facts["architecture"], platform.machine()
    if theirs_built != ours_built:
        yield Fault(
            agent.host.name,
            f"has processors of the architecture {theirs_built}, this machine of {ours_built}",
            "leave it out, or run on such hosts only: ranks exchange data as they lie in memory",
        )
    for what, ours in versions_here().items():
        if theirs.get(what, "none") != ours:
            yield Fault(
                agent.host.name,
                f"has {what} {theirs.get(what, 'none')}, this machine {ours}",
                "install the same version, such as from one lock file; python=PATH selects another Python",
            )


def _clock(agent: HostAgent) -> str | None:
    ahead = float(agent.facts["clock"]) - agent.heard
    if abs(ahead) <= CLOCK_SECONDS:
        return None
    return (
        f"minga: the clock of {agent.host.name} is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this "
        "machine's; the run is not affected, but times of files and logs cannot be compared"
    )


def _processors(agents: Sequence[HostAgent]) -> list[str]:
    """Return a note if not all hosts have the same processor."""
    hosts: dict[str, list[str]] = {}
    for agent in agents:
        hosts.setdefault(str(agent.facts["processor"]), []).append(agent.host.name)
    if len(hosts) < 2:
        return []
    said = "; ".join(f"{name} on {listed(places)}" for name, places in hosts.items())
    return [f"minga: the processors differ, so each host compiles its own code, for the same bits: {said}"]


@contextlib.contextmanager
def _answering(address: str | None) -> Iterator[tuple[tuple[str, int] | None, str]]:
    """Answer connections to an address of this machine with a token, as long as the block lasts.

    Yields the address with the port, None if there is no address, and the token.
    """
    token = secrets.token_hex(8)
    listener = None if address is None else _listener(address)
    if listener is None or address is None:
        yield None, token
        return

    def serve() -> None:
        with contextlib.suppress(OSError):  # it is closed at the end of the block
            while True:
                link, _ = listener.accept()
                with link, contextlib.suppress(OSError):
                    link.sendall(token.encode())

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield (address, listener.getsockname()[1]), token
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _listener(address: str) -> socket.socket | None:
    """Return a listening socket at a port that MPI may use too; None if there is none."""
    low, _, high = next((os.environ[name] for name in _PORTS if name in os.environ), "0:0").partition(":")
    ports = range(int(low), int(high) + 1) if low.isdigit() and high.isdigit() else range(1)
    for port in ports:
        with contextlib.suppress(OSError):
            return socket.create_server((address, port))
    return None
