"""All messages of all roots at one member, without input or output.

A member takes the messages of each root in the order of their numbers, one at a time: a root begins the next when all
have the last. It answers questions, tells now and then how far it is, and asks for what is missing. A message that
nobody has asked for yet is taken in while there is room; after that the member answers that it has nothing of it, and
the root's window makes it wait.
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
from minga.network.broadcast.outgoing import Batch
from minga.network.broadcast.root import LEAST_UNANSWERED, echo_of_segment
from minga.network.broadcast.settings import Settings

__all__ = ["Aborted", "Member", "Message", "RootSilent", "Traffic"]

FIRST_NACK_PAUSE, LONGEST_NACK_PAUSE = 8e-3, 0.25  # seconds between requests for the same segments
FEW_MEMBERS = 8
"""Up to so many members ask for repairs at once; more spread their requests, so that one speaks for many."""
MOST_SKIPPED = 64


class Aborted(RunError):
    """A message that its root gave up before this member had it all; ``members`` are those it lost, if that is why."""

    def __init__(self, message: str, members: Iterable[int] = (), *, remedy: str) -> None:
        self.members = tuple(members)
        super().__init__(message, remedy=remedy)


class RootSilent(MembersLost):
    """The root of a message stopped sending in the middle of it; ``members`` is the root."""


@dataclass(slots=True)
class Traffic:
    """Counts of what a member did with authenticated datagrams."""

    segments: int = 0
    duplicates: int = 0
    nonsense: int = 0  # authenticated, but contradicting what came before
    refused: int = 0  # segments for which there was no room yet
    acks: int = 0
    nacks: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """A whole message as its reader gets it."""

    root: int
    number: int
    value: Array | bytes


@dataclass(slots=True)
class _Inbox:
    """What a member knows of one root."""

    next: int  # number of the message that comes next
    current: Incoming | None = None
    ready: deque[Incoming | RunError] = field(default_factory=deque)
    wanted: bool = False  # the reader waits
    into: Into | None = None
    refused: tuple[int, int] | None = None  # segments, and how many were sent, of a message there was no room for
    nack_at: float | None = None
    nack_pause: float = FIRST_NACK_PAUSE
    heard_at: float = 0.0
    quiet_at: float = 0.0  # when to remind the root of us
    reminders: int = 0
    given_up: int | None = None  # number of a message that was ended here though its root may still send it

    def end_current(self, result: Incoming | RunError) -> None:
        self.ready.append(result)
        self.current = None
        self.refused = None
        self.nack_at = None
        self.next = (self.next + 1) & 0xFFFFFFFF


class Member:
    """The receiving side of one member of a group.

    Parameters
    ----------
    keys, number
        The session's keys, and which member this is.
    counter
        Numbers the control datagrams of this member.
    incarnation
        A random number of this process: a root does not take a restarted program for the one that knew the session.
    first_message
        Number of the first message of every root.
    """

    def __init__(
        self,
        keys: Keys,
        number: int,
        settings: Settings,
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
        # The more members, the seldomer each tells how far it is.
        self._ack_every = max(1, settings.window // 4, min(4 * size, settings.window // 2))
        self._stagger = number * self._ack_every // size
        self._most_ranges = Reply.ranges_that_fit(keys.session.payload)

    # -- the reader's side

    def expect(self, now: float, root: int, into: Into | None = None) -> None:
        """The reader wants the next message of ``root``, in ``into`` if that is given.

        Raises :class:`minga.errors.RunError` for a place that cannot be written.
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
        """The next message of ``root`` if it is whole; raises what happened to it if it will never be."""
        inbox = self._inboxes[root]
        if not inbox.ready:
            return None
        incoming = inbox.ready.popleft()
        into, inbox.into, inbox.wanted = inbox.into, None, False
        if isinstance(incoming, RunError):
            raise incoming
        return Message(root, incoming.number, incoming.value(into))

    # -- what comes in

    def on_datagram(self, now: float, datagram: Datagram) -> None:
        """DATA, POLL or ABORT of a root."""
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
        """The root asks about a message that was delivered or ended: it need not send any of it again."""
        if datagram.message == self._inboxes[datagram.root].given_up:
            return  # silence says that it is not here
        if datagram.kind == Kind.POLL:
            self._reply_with_all(datagram, datagram.seq & 0x7FFFFFFF)
        elif datagram.kind == Kind.DATA:
            self.traffic.duplicates += 1
            if datagram.flags & ASK:
                self._reply_with_all(datagram, echo_of_segment(datagram.seq))

    def _skip_to(self, inbox: _Inbox, datagram: Datagram) -> None:
        """The root went on to a later message without us."""
        for _ in range(min((datagram.message - inbox.next) & 0xFFFFFFFF, MOST_SKIPPED)):
            inbox.end_current(
                Aborted(
                    f"member {datagram.root} went on to its next message before this one was whole",
                    remedy="look at the error of that member: it gave the message up, or took this member for lost",
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
        """Begin the message that a segment belongs to, if there is room for it."""
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
        """Bytes held for readers who have not asked for them."""
        payload = self.keys.session.payload
        held = 0
        for inbox in self._inboxes.values():
            held += sum([one.nseg * payload for one in inbox.ready if isinstance(one, Incoming)])
            if inbox.current is not None and not inbox.wanted:
                held += inbox.current.nseg * payload
        return held

    def _answer_unopened(self, inbox: _Inbox, datagram: Datagram, sent: int, echo: int) -> None:
        """The root asks about a message of which nothing is here: send it again, or wait until there is room."""
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

    # -- what goes out

    def _answer(self, now: float, root: int, inbox: _Inbox, incoming: Incoming, echo: int) -> None:
        """Reply at once: with what is missing, or how far the message is."""
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
        """A random pause, so that of many members that missed the same segment one asks first."""
        if self.keys.session.size - 1 <= FEW_MEMBERS:
            return 0.0
        return self._random.random() * 4 * self.settings.guard

    def _reply_with_all(self, datagram: Datagram, echo: int) -> None:
        """The message that a datagram belongs to is here, or over."""
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
        """The replies to send now."""
        replies, self._replies = self._replies, []
        return replies

    # -- time

    def next_timer(self) -> float | None:
        """When :meth:`on_timer` has something to do; None while no message is under way."""
        times = []
        for inbox in self._inboxes.values():
            if inbox.current is not None:
                times.append(inbox.quiet_at)
                if inbox.nack_at is not None:
                    times.append(inbox.nack_at)
        return min(times, default=None)

    def on_timer(self, now: float) -> None:
        """Ask for what is missing, remind roots that have gone quiet, and end messages of roots that stay so."""
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
            f"member {root} took this member ({members}) for lost and went on without it",
            abort.members,
            remedy="look whether this machine was suspended or overloaded; a longer dead_timeout waits for it",
        )
    return Aborted(f"member {root} cancelled its message", remedy="look at the error of that member")
