"""Complete protocol of one member of a group, without I/O: it receives from all others and may send itself.

Received bytes are passed to :meth:`Endpoint.on_datagram`, the time to :meth:`Endpoint.on_timer`, and datagrams to send
are fetched with :meth:`Endpoint.poll_output`. Datagrams are interpreted only after their tag has been verified.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from itertools import count

from minga.errors import ProgramError
from minga.network.broadcast.datagram import Abort, Datagram, Kind, Reason, Reply, newer
from minga.network.broadcast.heads import Into
from minga.network.broadcast.keys import Buffer, Keys, Refused, Session
from minga.network.broadcast.liveness import Liveness
from minga.network.broadcast.member import Member, Message, Traffic
from minga.network.broadcast.options import BroadcastOptions
from minga.network.broadcast.outgoing import Batch, Outgoing
from minga.network.broadcast.pacing import Pace, RoundTrip
from minga.network.broadcast.root import Root

__all__ = ["Endpoint"]


@dataclass(slots=True)
class _Peer:
    """State that distinguishes a member's fresh replies from copies, and its process from other processes."""

    incarnation: int | None = None
    counter: int = 0
    replayed: int = 0


class Endpoint:
    """One member of a group.

    Parameters
    ----------
    session
        Session on which the members agreed.
    number
        Number of this member.
    settings
        Settings of the protocol, the same at all members.
    incarnation
        Random 32-bit number of this process, drawn if not given.
    first_message
        Number of the first message of every root.

    Attributes
    ----------
    lost
        Members that are considered lost; they get no further messages.
    """

    def __init__(
        self,
        session: Session,
        number: int,
        settings: BroadcastOptions | None = None,
        *,
        incarnation: int | None = None,
        first_message: int = 1,
    ) -> None:
        self.session = session
        self.number = number
        self.settings = settings or BroadcastOptions()
        self.keys = Keys(session)
        self.lost: set[int] = set()
        self.root: Root | None = None
        """Latest message sent by this member itself."""
        self.pace = Pace(self.settings)
        self.round_trip = RoundTrip(self.settings.poll_floor)
        self._next_message = first_message
        self._counter = count(1)
        self._peers = {other: _Peer() for other in range(session.size) if other != number}
        self._notices: list[Batch] = []
        self._liveness = Liveness(self.keys, number, self._counter, self.settings.dead_timeout)
        self.member = Member(
            self.keys,
            number,
            self.settings,
            self._counter,
            incarnation=secrets.randbits(32) if incarnation is None else incarnation,
            first_message=first_message,
        )

    @property
    def refused(self) -> Refused:
        """Counters of datagrams that came from no member of this session."""
        return self.keys.refused

    @property
    def traffic(self) -> Traffic:
        """Counters of received datagrams."""
        return self.member.traffic

    @property
    def replayed(self) -> int:
        """Number of replies that were copies of earlier ones, or came from another process of their member."""
        return sum([peer.replayed for peer in self._peers.values()])

    # -- the program's side

    def send(self, now: float, data: object) -> Root:
        """Begin to send a message to all members that are not lost; ``data`` must not change until it is done.

        Raises
        ------
        ProgramError
            If the previous message is unfinished.
        """
        if self.root is not None and not self.root.done:
            raise ProgramError(
                f"member {self.number} began a message before its previous one had reached all members",
                remedy="wait until the root of the previous message is done",
            )
        message = Outgoing(self.keys, self.number, self._next_message, data, self.settings)
        self._next_message = (self._next_message + 1) & 0xFFFFFFFF
        members = [other for other in self._peers if other not in self.lost]
        self.root = Root(message, members, self.settings, self.pace, self.round_trip, self._counter)
        return self.root

    def expect(self, now: float, root: int, into: Into | None = None) -> None:
        """Request the next message of ``root``, in ``into`` if given, before or while it arrives."""
        self.member.expect(now, root, into)

    def await_root(self, now: float, root: int) -> None:
        """Note that a reader waits for the next message of ``root``; the root is asked regularly whether it is alive.

        Raises
        ------
        MembersLost
            If the root does not respond.
        """
        question = self._liveness.wait(now, root)
        if question is not None:
            self._notices.append(Batch(root, [(question,)]))

    def take(self, root: int) -> Message | None:
        """Return the next message of ``root`` if it is complete, otherwise None.

        Raises
        ------
        RunError
            If the message can never be delivered: its root aborted it or is silent, or it does not fit into the
            requested buffer.
        """
        return self.member.take(root)

    # -- the network's side

    def on_datagram(self, now: float, data: Buffer) -> None:
        """Process bytes received from any source."""
        datagram = self.keys.open(data)
        if datagram is None or datagram.sender == self.number:
            return
        self._liveness.heard(datagram.sender)
        if datagram.kind in (Kind.DATA, Kind.POLL, Kind.ABORT):
            self.member.on_datagram(now, datagram)
        elif datagram.kind in (Kind.ACK, Kind.NACK) and datagram.root == self.number:
            self._on_reply(now, datagram)
        elif (answer := self._liveness.answer(datagram)) is not None:
            self._notices.append(Batch(datagram.sender, [(answer,)]))

    def _on_reply(self, now: float, datagram: Datagram) -> None:
        reply = Reply.unpack(datagram.payload, datagram.nseg)
        peer = self._peers[datagram.sender]
        if reply is None:
            self.traffic.nonsense += 1
            return
        if peer.incarnation is None:
            peer.incarnation = reply.incarnation
            peer.counter = (datagram.seq - 1) & 0xFFFFFFFF
        if reply.incarnation != peer.incarnation or not newer(datagram.seq, peer.counter):
            peer.replayed += 1
            return
        peer.counter = datagram.seq
        root = self.root
        under_way = root is not None and not root.done and root.number == datagram.message
        if root is not None and under_way and datagram.sender not in self.lost:
            if datagram.nseg == root.message.nseg:
                root.on_reply(now, datagram.sender, reply)
        elif reply.have < datagram.nseg and newer(self._next_message, datagram.message):
            self._tell_that_it_ended(datagram)

    def _tell_that_it_ended(self, datagram: Datagram) -> None:
        """Send an abort to a member that still works on an ended message: it was lost, or missed the end."""
        excluded = datagram.sender in self.lost
        members = (datagram.sender,) if excluded else tuple(sorted(self.lost))
        reason = Reason.EXCLUDED if excluded else Reason.LOST if members else Reason.CANCELLED
        abort = self.keys.seal(
            Kind.ABORT,
            self.number,
            message=datagram.message,
            seq=next(self._counter) & 0xFFFFFFFF,
            nseg=datagram.nseg,
            root=self.number,
            payload=Abort(reason, members).pack(),
        )
        self._notices.append(Batch(datagram.sender, [(abort,)]))

    def poll_output(self, now: float) -> list[Batch]:
        """Return the batches to send now: replies, and at most one batch of this member's own message.

        Must be called again until it returns an empty list.
        """
        batches = self._notices + self.member.poll_output()
        self._notices = []
        if self.root is not None:
            batch = self.root.poll_output(now)
            self.lost.update(self.root.lost)
            if batch is not None:
                batches.append(batch)
        return batches

    def next_timer(self) -> float | None:
        """Return when to call :meth:`on_timer` and :meth:`poll_output` next, if nothing arrives before; or None."""
        times = [self.member.next_timer(), self.root.next_timer() if self.root is not None else None]
        return min([time for time in times if time is not None], default=None)

    def on_timer(self, now: float) -> None:
        """Advance the time to ``now``. Everything that has arrived must have been given to :meth:`on_datagram`."""
        self.member.on_timer(now)
        if self.root is not None:
            self.root.on_timer(now)
            self.lost.update(self.root.lost)
