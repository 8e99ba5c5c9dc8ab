"""The watch of the process that starts a run: it listens to the agents of all hosts, and ends the run after a loss."""

from __future__ import annotations

import contextlib
import json
import platform
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, Final

from minga.errors import LaunchError
from minga.launch.agents import HostProcess, end_all, start
from minga.launch.hosts import Host, Launcher, shell_launcher
from minga.launch.reach import own_address, own_addresses
from minga.launch.watchdog.beacon import Beacon, Sign
from minga.launch.watchdog.judge import Event, Judge
from minga.launch.watchdog.lookout import HostReport
from minga.launch.watchdog.loss import Loss
from minga.launch.watchdog.order import END, MARK, OVER, Order
from minga.launch.watchdog.watched import Watched

__all__ = ["AGENT", "Watch", "watching"]

AGENT: Final = "minga.launch.watchdog.agent"
"""Module of agents."""
_PERIOD: Final = 1.0
"""Seconds between two signs of life to the agents, and two looks at their reports."""
_COURTESY: Final = 1.0
"""Seconds that the launcher of MPI gets to report in its own way that a rank is gone."""

Message = dict[str, Any] | Sign | None


class Watch:
    """Watch over the ranks of one start of a run.

    Parameters
    ----------
    watched
        What is to be watched.
    tell
        Called with messages for people, in a thread.
    lost
        Called with a loss, in a thread; it has to end the job.

    Attributes
    ----------
    loss
        The loss, None while there is none.
    token
        Token of this start, which marks what belongs to it.
    """

    def __init__(self, watched: Watched, tell: Callable[[str], object], lost: Callable[[Loss], object]) -> None:
        self.loss: Loss | None = None
        self.token = secrets.token_hex(8)
        self._watched, self._tell, self._lost = watched, tell, lost
        self._arrived: queue.SimpleQueue[tuple[str, Message, float]] = queue.SimpleQueue()
        self._over = threading.Event()
        self._settled = threading.Event()
        self._agents: dict[str, HostProcess] = {}
        self._beacon = self._new_beacon()
        here = Host(platform.node())
        hosts = [] if watched.inside else [here, *(host for host in watched.hosts if host.name != here.name)]
        self._judge = Judge([host.name for host in hosts], here.name, watched.limit, time.monotonic())
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)
        reach = shell_launcher(watched.shell)
        try:
            for host in hosts:
                self._start(host, None if host is here else reach)
        except BaseException:
            self.close()
            raise

    @property
    def step(self) -> int:
        """Steps that all ranks have done, as far as known."""
        return self._judge.step

    @property
    def offer(self) -> dict[str, Any]:
        """Data for the ranks: the token of this start, and the order of agents that they have to start, if any."""
        calls = self._beacon is not None and (self._watched.inside or self._watched.beyond)
        order = self._order(self._watched.limit, own_addresses(), calls=True).as_dict() if calls else None
        return {"token": self.token, "order": order, "known": None if self._watched.inside else platform.node()}

    def begin(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def settle(self, seconds: float, blamed: Sequence[int] = ()) -> Loss | None:
        """Wait a moment for the reason why a job has ended, and return it; None if it is not known.

        Parameters
        ----------
        seconds
            Most seconds to wait.
        blamed
            Processes that the launcher of MPI has named. It ends the others at once, so that agents may see all go
            together.
        """
        self._settled.wait(seconds)
        named = (self._judge.lost_process(pid) for pid in blamed)
        return next((loss for loss in named if loss is not None), self.loss)

    def close(self) -> None:
        """End the agents, which leave alone what still exists."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._tell_agents(OVER)
        end_all(list(self._agents.values()))
        if self._beacon is not None:
            self._beacon.close()

    def _new_beacon(self) -> Beacon | None:
        """Return a receiver of signs of life, if other hosts take part and the system permits it."""
        watched = self._watched
        if not (watched.hosts or watched.inside or watched.beyond):
            return None
        try:
            return Beacon(lambda sign: self._arrived.put((sign.name, sign, time.monotonic())))
        except OSError:
            return None

    def _order(self, limit: float | None, addresses: Sequence[str], *, calls: bool = False) -> Order:
        order = Order(self.token, str(self._watched.directory.absolute()), limit, calls=calls)
        if self._beacon is None:
            return order
        beacons = tuple((address, self._beacon.port) for address in addresses)
        return replace(order, key=self._beacon.key, beacons=beacons)

    def _start(self, host: Host, launcher: Launcher | None) -> None:
        def heard(message: dict[str, Any] | None) -> None:
            self._arrived.put((host.name, message, time.monotonic()))

        agent = start(host, AGENT, launcher, heard, 'do without the watchdog: run.watch = "off"')
        self._agents[host.name] = agent
        address = None if launcher is None else own_address([host], self._watched.shell)
        limit = None if launcher is None else self._watched.limit
        order = self._order(limit, [] if address is None else [address])
        with contextlib.suppress(OSError):  # its end is noticed
            agent.tell(order.on(host.name).as_dict())

    def _watch(self) -> None:
        due = time.monotonic()
        while not self._over.is_set():
            with contextlib.suppress(queue.Empty):
                self._hear(*self._arrived.get(timeout=max(0.0, min(0.1, due - time.monotonic()))))
            self._judged(self._judge.look(time.monotonic()))
            if time.monotonic() >= due:
                self._tell_agents({})
                due = time.monotonic() + _PERIOD

    def _hear(self, name: str, message: Message, at: float) -> None:
        if message is None:
            if not self._over.is_set():
                self._judge.agent_ended(name, self._agents[name].how_it_ended())
            return
        if isinstance(message, Sign):
            self._judge.heard_sign(name, at)
            if not message.content:
                return
        with contextlib.suppress(KeyError, TypeError, ValueError):
            report = json.loads(message.content) if isinstance(message, Sign) else message
            self._judge.heard(name, HostReport.from_dict(report), at)

    def _judged(self, events: Sequence[Event]) -> None:
        for event in events:
            if self.loss is not None:
                return
            if event.loss is None:
                self._tell(f"minga: {event.text}")
                continue
            self.loss = event.loss
            self._settled.set()
            if self._watched.inside:  # this process is a rank itself, and has to note the loss before it is ended
                self._lost(event.loss)
                return
            if not event.loss.at_once:
                self._tell(f"minga: {event.text}; the ranks that are left are ended")
            elif self._over.wait(_COURTESY):
                return
            self._tell_agents(END)
            self._lost(event.loss)

    def _tell_agents(self, message: dict[str, Any]) -> None:
        if self._beacon is not None:
            self._beacon.answer = json.dumps(message).encode()
        for agent in self._agents.values():
            with contextlib.suppress(OSError, ValueError):  # its end is noticed
                agent.tell(message)


@contextlib.contextmanager
def watching(
    watched: Watched | None,
    environment: MutableMapping[str, str],
    tell: Callable[[str], object],
    lost: Callable[[Loss], object],
) -> Iterator[Watch | None]:
    """Watch over ranks that are started with `environment` inside the block.

    Without something to watch, or if the watchdog cannot be started, there is no watch.
    """
    if watched is None:
        yield None
        return
    try:
        watch = Watch(watched, tell, lost)
    except LaunchError as error:
        tell(f"minga: the run is not watched: {error.message}")
        yield None
        return
    environment[MARK] = watch.token
    watch.begin()
    try:
        yield watch
    finally:
        watch.close()
