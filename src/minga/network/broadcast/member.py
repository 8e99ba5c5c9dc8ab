"""Receiving side of a member: all messages of all roots, without I/O.

A member receives the messages of each root in numerical order, one at a time: a root begins the next message when all
members have the previous one. The member answers questions, reports its progress regularly, and requests missing
segments. A message that no reader has requested yet is stored while there is room. If there is none, the member replies
that it has nothing of the message, and the root's window makes the root wait.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

from minga.errors import RunError
from minga.network.broadcast.datagram import (
    ASK,
    HEAD_SHIFT,
    HEAD_UNIT,
    Abort,
    Datagram,
    Kind,
    Poll,
    Reason,
    Reply,
    newer,
)
from minga.network.broadcast.heads import Array, Into, target
from minga.network.broadcast.incoming import Incoming
from minga.network.broadcast.keys import Keys
from minga.network.broadcast.lost import MembersLost
from minga.network.broadcast.options import BroadcastOptions
from minga.network.broadcast.outgoing import Batch
from minga.network.broadcast.root import LEAST_UNANSWERED, echo_of_segment

__all__ = ["Aborted", "Member", "Message", "RootSilent", "Traffic"]

FIRST_NACK_PAUSE, LONGEST_NACK_PAUSE = 8e-3, 0.25  # seconds between requests for the same segments
FEW_MEMBERS = 8
"""Number of receivers up to which each requests repairs at once; more spread them, so that one speaks for many."""
MOST_SKIPPED = 64


class Aborted(RunError):
    """Error of a message that its root aborted; ``members`` are the members that it lost, if that is the reason."""

    def __init__(self, message: str, members: Iterable[int] = (), *, remedy: str) -> None:
        self.members = tuple(members)
        super().__init__(message, remedy=remedy)


class RootSilent(MembersLost):
    """Error of a message whose root fell silent before it was complete; ``members`` contains the root."""


@dataclass(slots=True)
class Traffic:
    """Counters of authenticated datagrams, by the way in which the member treated them."""

    segments: int = 0
    duplicates: int = 0
    nonsense: int = 0  # authenticated, but inconsistent with earlier ones
    refused: int = 0  # segments for which there was no room yet
    acks: int = 0
    nacks: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """A complete message as its reader receives it."""

    root: int
    number: int
    value: Array | bytes


@dataclass(slots=True)
class _Inbox:
    """State of a member regarding one root."""

    next: int  # number of the next message
    current: Incoming | None = None
    ready: deque[Incoming | RunError] = field(default_factory=deque)
    wanted: bool = False  # a reader is waiting
    into: Into | None = None
    refused: tuple[int, int] | None = None  # number of segments, and of those sent, of a message without room
    nack_at: float | None = None
    nack_pause: float = FIRST_NACK_PAUSE
    heard_at: float = 0.0
    quiet_at: float = 0.0  # when to remind the root of this member
    reminders: int = 0
    given_up: int | None = None  # number of a message abandoned here that its root may still send

    def end_current(self, result: Incoming | RunError) -> None:
        """End the current message with a result, and expect the next one."""
        self.ready.append(result)
        self.current = None
        self.refused = None
        self.nack_at = None
        self.next = (self.next + 1) & 0xFFFFFFFF


class Member:
    """Receiving side of one member of a group.

    Parameters
    ----------
    keys, number
        Keys of the session, and number of this member.
    settings
        Settings of the protocol.
    counter
        Source of the numbers of this member's control datagrams.
    incarnation
        Random number of this process, by which a root distinguishes it from a program that was restarted.
    first_message
        Number of the first message of every root.
    """

    def __init__(
        self,
        keys: Keys,
        number: int,
        settings: BroadcastOptions,
        counter: count[int],
        *,
        incarnation: int,
        first_message: int,
    ) -> None:
        self.keys = keys
        self.number = number
        self.settings = settings
        self.traffic = Traffic()
        self._counter = counter
        self._incarnation = incarnation
        self._inboxes = {root: _Inbox(first_message) for root in range(keys.session.size) if root != number}
        self._replies: list[Batch] = []
        self._random = random.Random(incarnation)
        size = keys.session.size
        # The more members there are, the less often each reports its progress.
        self._ack_every = max(1, settings.window // 4, min(4 * size, settings.window // 2))
        self._stagger = number * self._ack_every // size
        self._most_ranges = Reply.ranges_that_fit(keys.session.payload)

    # -- the reader's side

    def expect(self, now: float, root: int, into: Into | None = None) -> None:
        """Request the next message of ``root``, in ``into`` if given.

        Raises
        ------
        RunError
            If ``into`` is not writable.
        """
        target(into)
        inbox = self._inboxes[root]
        inbox.wanted = True
        inbox.into = into
        if inbox.current is not None:
            if inbox.current.has_gap:
                inbox.nack_at = now
        elif inbox.refused is not None and not inbox.ready:
            nseg, sent = inbox.refused
            inbox.refused = None
            self._reply(root, inbox.next, nseg, 0, sent, 0, ((0, sent),))

    def take(self, root: int) -> Message | None:
        """Return the next message of ``root`` if it is complete, otherwise None; raise its error if it failed."""
        inbox = self._inboxes[root]
        if not inbox.ready:
            return None
        incoming = inbox.ready.popleft()
        into, inbox.into, inbox.wanted = inbox.into, None, False
        if isinstance(incoming, RunError):
            raise incoming
        return Message(root, incoming.number, incoming.value(into))

    # -- input

    def on_datagram(self, now: float, datagram: Datagram) -> None:
        """Process a DATA, POLL or ABORT datagram of a root."""
        inbox = self._inboxes.get(datagram.root)
        if inbox is None or datagram.sender != datagram.root or not datagram.nseg:
            self.traffic.nonsense += 1
            return
        if datagram.message != inbox.next:
            if not newer(datagram.message, inbox.next):
                self._answer_for_past(datagram)
                return
            self._skip_to(inbox, datagram)
        inbox.heard_at = now
        inbox.reminders = 0
        inbox.quiet_at = now + 2 * self.settings.longest_pause
        if datagram.kind == Kind.DATA:
            self._on_data(now, inbox, datagram)
        elif datagram.kind == Kind.POLL:
            self._on_poll(now, inbox, datagram)
        elif datagram.kind == Kind.ABORT:
            self._on_abort(inbox, datagram)

    def _answer_for_past(self, datagram: Datagram) -> None:
        """Answer a question about a message that was delivered or ended: the root need not send it again."""
        if datagram.message == self._inboxes[datagram.root].given_up:
            return  # silence tells the root that the message is not here
        if datagram.kind == Kind.POLL:
            self._reply_with_all(datagram, datagram.seq & 0x7FFFFFFF)
        elif datagram.kind == Kind.DATA:
            self.traffic.duplicates += 1
            if datagram.flags & ASK:
                self._reply_with_all(datagram, echo_of_segment(datagram.seq))

    def _skip_to(self, inbox: _Inbox, datagram: Datagram) -> None:
        """Abort the messages up to a later one with which the root has continued without this member."""
        for _ in range(min((datagram.message - inbox.next) & 0xFFFFFFFF, MOST_SKIPPED)):
            inbox.end_current(
                Aborted(
                    f"member {datagram.root} began its next message before this one was complete",
                    remedy="see the error of that member: it aborted the message, or considered this member lost",
                )
            )
        inbox.next = datagram.message

    def _on_data(self, now: float, inbox: _Inbox, datagram: Datagram) -> None:
        if datagram.seq >= datagram.nseg or (datagram.flags >> HEAD_SHIFT) * HEAD_UNIT > self.keys.session.payload:
            self.traffic.nonsense += 1
            return
        asks = datagram.flags & ASK
        echo = echo_of_segment(datagram.seq) if asks else 0
        incoming = inbox.current or self._open(inbox, datagram)
        if incoming is None:
            self._refuse(inbox, datagram.nseg, datagram.seq + 1)
            if asks:
                self._reply(datagram.root, datagram.message, datagram.nseg, 0, 0, echo)
            return
        if not incoming.matches(datagram):
            self.traffic.nonsense += 1
            return
        had = incoming.have
        if incoming.add(datagram.seq, datagram.payload):
            self.traffic.segments += 1
        else:
            self.traffic.duplicates += 1
        if incoming.complete:
            inbox.end_current(incoming)
            self._reply_with_all(datagram, echo)
            return
        if incoming.have > had:
            inbox.nack_pause = FIRST_NACK_PAUSE
        if asks:
            self._answer(now, datagram.root, inbox, incoming, echo)
        elif incoming.have - incoming.acknowledged >= self._ack_every:
            self._acknowledge(datagram.root, incoming, 0)
        if not incoming.has_gap:
            inbox.nack_at = None
        elif inbox.nack_at is None:
            inbox.nack_at = now + self.settings.guard + self._backoff()

    def _on_poll(self, now: float, inbox: _Inbox, datagram: Datagram) -> None:
        poll = Poll.unpack(datagram.payload, datagram.nseg)
        if poll is None:
            self.traffic.nonsense += 1
            return
        echo = datagram.seq & 0x7FFFFFFF
        incoming = inbox.current
        if incoming is None:
            self._answer_unopened(inbox, datagram, poll.sent, echo)
            return
        if incoming.nseg != datagram.nseg:
            self.traffic.nonsense += 1
            return
        incoming.sent = max(incoming.sent, poll.sent)
        self._answer(now, datagram.root, inbox, incoming, echo)

    def _on_abort(self, inbox: _Inbox, datagram: Datagram) -> None:
        abort = Abort.unpack(datagram.payload)
        if abort is None or (abort.reason == Reason.EXCLUDED and self.number not in abort.members):
            self.traffic.nonsense += 1
            return
        inbox.end_current(_aborted(datagram.root, abort))

    # -- room

    def _open(self, inbox: _Inbox, datagram: Datagram) -> Incoming | None:
        """Begin the message to which a segment belongs; return None if there is no room for it."""
        payload = self.keys.session.payload
        head_bytes = (datagram.flags >> HEAD_SHIFT) * HEAD_UNIT
        if not self._has_room(inbox, Incoming.bytes_needed(datagram.nseg, payload)):
            return None
        into = inbox.into if not inbox.ready else None
        incoming = Incoming(datagram.message, datagram.nseg, head_bytes, payload, into)
        incoming.acknowledged = -self._stagger
        inbox.current = incoming
        inbox.refused = None
        inbox.nack_pause = FIRST_NACK_PAUSE
        return incoming

    def _has_room(self, inbox: _Inbox, nbytes: int) -> bool:
        if nbytes > self.settings.max_bytes + self.keys.session.payload:
            return False
        if inbox.wanted and not inbox.ready:
            return True
        return self.waiting_bytes() + nbytes <= self.settings.waiting_bytes

    def waiting_bytes(self) -> int:
        """Return the bytes held for readers that have not requested them."""
        payload = self.keys.session.payload
        held = 0
        for inbox in self._inboxes.values():
            held += sum([one.nseg * payload for one in inbox.ready if isinstance(one, Incoming)])
            if inbox.current is not None and not inbox.wanted:
                held += inbox.current.nseg * payload
        return held

    def _answer_unopened(self, inbox: _Inbox, datagram: Datagram, sent: int, echo: int) -> None:
        """Answer a question about a message of which nothing is here: request it, or make the root wait for room."""
        missing: tuple[tuple[int, int], ...] = ()
        if not self._has_room(inbox, Incoming.bytes_needed(datagram.nseg, self.keys.session.payload)):
            self._refuse(inbox, datagram.nseg, sent)
        elif sent:
            missing = ((0, sent),)
        self._reply(datagram.root, datagram.message, datagram.nseg, 0, sent if missing else 0, echo, missing)

    def _refuse(self, inbox: _Inbox, nseg: int, sent: int) -> None:
        self.traffic.refused += 1
        known = inbox.refused[1] if inbox.refused is not None else 0
        inbox.refused = (nseg, max(known, min(sent, nseg)))

    # -- output

    def _answer(self, now: float, root: int, inbox: _Inbox, incoming: Incoming, echo: int) -> None:
        """Reply at once with the missing segments, or with the progress of the message."""
        if incoming.has_gap:
            self._ask_for_missing(now, root, inbox, incoming, echo)
        else:
            self._acknowledge(root, incoming, echo)

    def _acknowledge(self, root: int, incoming: Incoming, echo: int) -> None:
        incoming.acknowledged = incoming.have
        self._reply(root, incoming.number, incoming.nseg, incoming.have, incoming.sent, echo)

    def _ask_for_missing(self, now: float, root: int, inbox: _Inbox, incoming: Incoming, echo: int) -> None:
        incoming.acknowledged = incoming.have
        inbox.nack_at = now + inbox.nack_pause + self._backoff()
        inbox.nack_pause = min(1.5 * inbox.nack_pause, LONGEST_NACK_PAUSE)
        missing = incoming.missing(self._most_ranges)
        self._reply(root, incoming.number, incoming.nseg, incoming.have, incoming.sent, echo, missing)

    def _backoff(self) -> float:
        """Return a random pause, so that among many members that missed the same segment one asks first."""
        if self.keys.session.size - 1 <= FEW_MEMBERS:
            return 0.0
        return self._random.random() * 4 * self.settings.guard

    def _reply_with_all(self, datagram: Datagram, echo: int) -> None:
        """Reply that the message of a datagram is complete here, or over."""
        self._reply(datagram.root, datagram.message, datagram.nseg, datagram.nseg, datagram.nseg, echo)

    def _reply(
        self,
        root: int,
        message: int,
        nseg: int,
        have: int,
        seen: int,
        echo: int,
        missing: tuple[tuple[int, int], ...] = (),
    ) -> None:
        kind = Kind.NACK if missing else Kind.ACK
        if missing:
            self.traffic.nacks += 1
        else:
            self.traffic.acks += 1
        datagram = self.keys.seal(
            kind,
            self.number,
            message=message,
            seq=next(self._counter) & 0xFFFFFFFF,
            nseg=nseg,
            root=root,
            payload=Reply(have, seen, echo, self._incarnation, missing).pack(),
        )
        self._replies.append(Batch(root, [(datagram,)]))

    def poll_output(self) -> list[Batch]:
        """Return the replies to send now."""
        replies, self._replies = self._replies, []
        return replies

    # -- time

    def next_timer(self) -> float | None:
        """Return the time at which :meth:`on_timer` has something to do; None while no message is in progress."""
        times = []
        for inbox in self._inboxes.values():
            if inbox.current is not None:
                times.append(inbox.quiet_at)
                if inbox.nack_at is not None:
                    times.append(inbox.nack_at)
        return min(times, default=None)

    def on_timer(self, now: float) -> None:
        """Request missing segments, remind silent roots, and end the messages of roots that remain silent."""
        for root, inbox in self._inboxes.items():
            incoming = inbox.current
            if incoming is None:
                continue
            if inbox.nack_at is not None and now >= inbox.nack_at:
                self._ask_for_missing(now, root, inbox, incoming, 0)
            if now >= inbox.quiet_at:
                self._remind(now, root, inbox, incoming)

    def _remind(self, now: float, root: int, inbox: _Inbox, incoming: Incoming) -> None:
        if inbox.reminders >= LEAST_UNANSWERED and now - inbox.heard_at >= self.settings.dead_timeout:
            inbox.given_up = incoming.number
            inbox.end_current(
                RootSilent((root,), while_="it sent a message", why=f"silent for {now - inbox.heard_at:.1f} s")
            )
            return
        inbox.reminders += 1
        inbox.quiet_at = now + self.settings.longest_pause
        self._answer(now, root, inbox, incoming, 0)


def _aborted(root: int, abort: Abort) -> RunError:
    members = ", ".join(str(member) for member in abort.members)
    if abort.reason == Reason.LOST:
        return MembersLost(abort.members, while_=f"member {root} sent a message")
    if abort.reason == Reason.EXCLUDED:
        return Aborted(
            f"member {root} considered this member ({members}) lost and continued without it",
            abort.members,
            remedy="check whether this machine was suspended or overloaded; a longer dead_timeout waits for it",
        )
    return Aborted(f"member {root} cancelled its message", remedy="see the error of that member")
