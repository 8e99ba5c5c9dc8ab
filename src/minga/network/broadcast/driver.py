"""Driver that connects an endpoint to sockets and the clock."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from minga.errors import RunError
from minga.network.broadcast.datagram import Reason
from minga.network.broadcast.endpoint import Endpoint
from minga.network.broadcast.heads import Into
from minga.network.broadcast.keys import Buffer
from minga.network.broadcast.lost import MembersLost
from minga.network.broadcast.member import Message
from minga.network.broadcast.outgoing import GROUP
from minga.network.broadcast.root import Root
from minga.network.broadcast.sockets import Address, Sockets

__all__ = ["Driver"]

LONGEST_WRITE_WAIT = 0.05
OVERTIME = 0.05
"""Seconds by which activity may exceed a deadline; a flood of datagrams must not hold the caller for longer."""
clock = time.monotonic


class Driver:
    """One member of a group on a network.

    Parameters
    ----------
    sockets, endpoint
        The objects to connect.
    addresses
        Individual address of each member, by number (``sockets.address`` of each).
    group
        Address that reaches all members.

    Notes
    -----
    A driver is not thread-safe. While others send, a member must make progress (through any of the calls below) at
    least every few seconds, or they consider it lost after ``settings.dead_timeout``.
    """

    def __init__(self, sockets: Sockets, endpoint: Endpoint, addresses: Sequence[Address], group: Address) -> None:
        self.sockets = sockets
        self.endpoint = endpoint
        self._addresses = dict(enumerate(addresses))
        self._addresses[GROUP] = group
        self._unsent: deque[tuple[Address, list[tuple[Buffer, ...]]]] = deque()
        self._heard_at = clock()

    @property
    def files(self) -> tuple[int, ...]:
        """File descriptors that become readable when there is progress to make."""
        return self.sockets.files

    def broadcast(self, data: object, *, wait: bool = True) -> Root:
        """Send a message to all other members.

        Returns when all have received it; with ``wait=False``, when all of it has been sent once. In that case,
        ``data`` must not change until the returned root is ``done``, to which :meth:`progress` leads.

        Raises
        ------
        MembersLost
            If members did not receive the message, unless the group excludes such members; the returned root then
            names them in ``lost``.
        """
        self.finish()
        root = self.endpoint.send(clock(), data)
        if self.endpoint.lost and self.endpoint.settings.on_loss == "raise":
            self._end_without(root, tuple(sorted(self.endpoint.lost)))
        self._finish(root, lambda: root.done or (not wait and root.all_sent))
        return root

    def unfinished(self) -> bool:
        """Return True if this member's last message still needs repairs or replies."""
        return self.endpoint.root is not None and not self.endpoint.root.done

    def finish(self) -> None:
        """Wait until all have received this member's last message; raise the same errors as :meth:`broadcast`."""
        root = self.endpoint.root
        if root is not None and not root.done:
            self._finish(root, lambda: root.done)

    def _finish(self, root: Root, reached: Callable[[], bool]) -> None:
        try:
            self._run(reached)
        except BaseException:
            root.abort(Reason.CANCELLED)
            self.progress()
            raise
        if root.failed:
            self.progress()  # tells the others
            raise MembersLost(root.lost, while_="a message was sent")

    def _end_without(self, root: Root, lost: tuple[int, ...]) -> None:
        """Abort a message because members were lost earlier, perhaps during one that nobody waited for.

        The abort tells the others of the loss.
        """
        root.lost = lost
        root.abort(Reason.LOST)
        self.progress()
        raise MembersLost(lost, while_="an earlier message was sent")

    def receive(self, root: int, into: Into | None = None, *, timeout: float | None = None) -> Message:
        """Receive and return the next message of ``root``, in ``into`` if given.

        Raises
        ------
        RunError
            If the message was aborted, does not fit, or did not arrive within ``timeout`` seconds.
        """
        self.endpoint.expect(clock(), root, into)
        messages: list[Message] = []

        def arrived() -> bool:
            message = self.endpoint.take(root)
            if message is not None:
                messages.append(message)
            else:
                self.endpoint.await_root(clock(), root)
            return message is not None

        wake = self.endpoint.settings.dead_timeout / 16
        if not self._run(arrived, None if timeout is None else clock() + timeout, wake=wake):
            raise RunError(
                f"no message from member {root} within {timeout:g} s",
                remedy="check that this member is running and broadcasting, or wait longer",
            )
        return messages[0]

    def progress(self, seconds: float = 0.0) -> None:
        """Reply to others, and send what is due, for ``seconds``, at least once."""
        deadline = clock() + seconds
        self._round()
        self._run(lambda: False, deadline)

    def linger(self, seconds: float) -> None:
        """Reply to questions until nothing has arrived for a while, for at most ``seconds``.

        The last reply may have been lost, and its root would then wait for a member that has left.
        """
        self._heard_at = clock()
        quiet = 2 * self.endpoint.settings.longest_pause
        self._run(lambda: clock() - self._heard_at > quiet, clock() + seconds, wake=quiet / 2)

    # -- rounds

    def _run(self, reached: Callable[[], bool], deadline: float | None = None, *, wake: float | None = None) -> bool:
        """Repeat rounds until ``reached`` or the deadline; return True if it was reached."""
        while not reached():
            busy = self._round()
            now = clock()
            if deadline is not None and now >= (deadline + OVERTIME if busy else deadline):
                return reached()
            if busy:
                continue
            until = [time for time in (self.endpoint.next_timer(), deadline) if time is not None]
            if wake is not None:
                until.append(now + wake)
            self._sleep(max(0.0, min(until) - now) if until else None)
        return True

    def _round(self) -> bool:
        """Receive what has arrived, advance the timers, and send what is due; return True if anything happened."""
        arrived = self._receive()
        self.endpoint.on_timer(clock())
        sent = self._send()
        return sent or arrived

    def _sleep(self, seconds: float | None) -> None:
        if self._unsent:
            self.sockets.wait(LONGEST_WRITE_WAIT, write=True)
        else:
            self.sockets.wait(seconds)

    def _send(self) -> bool:
        if not self._unsent:
            for destination, datagrams in self.endpoint.poll_output(clock()):
                self._unsent.append((self._addresses[destination], datagrams))
        happened = False
        while self._unsent:
            address, datagrams = self._unsent[0]
            taken = self.sockets.send(address, datagrams)
            happened = happened or taken > 0
            if taken < len(datagrams):
                self._unsent[0] = (address, datagrams[taken:])
                break
            self._unsent.popleft()
        return happened

    def _receive(self) -> bool:
        happened = False
        on_datagram = self.endpoint.on_datagram
        now = clock()
        for data, _, _ in self.sockets.receive():
            on_datagram(now, data)
            happened = True
        if happened:
            self._heard_at = now
        return happened
