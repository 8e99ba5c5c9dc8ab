"""Sending side of one message, from its root to the members of a group, without I/O.

A root sends segments at its pace while the slowest member is less than a window behind, repairs what members miss
before it sends new segments, and asks questions when it has nothing to send. The last datagram before it falls silent
is itself a question, so that a message of one datagram costs that datagram and one answer from each member.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

from minga.network.broadcast.datagram import OVERHEAD, Abort, Kind, Poll, Reason, Reply
from minga.network.broadcast.options import BroadcastOptions, wire_bytes
from minga.network.broadcast.outgoing import GROUP, Batch, Outgoing
from minga.network.broadcast.pacing import Pace, RoundTrip

__all__ = ["Root", "echo_of_segment"]

LEAST_UNANSWERED = 8
"""Unanswered questions needed before silence means loss: a root that was itself suspended has asked few."""
REORDERED = 3
"""Number of segments that may overtake a datagram before it counts as lost."""
ABORT_COPIES = 3
MOST_ASKED = 32


def echo_of_segment(seq: int) -> int:
    """Return the echo of a question in segment ``seq``; that of a separate question has the upper bit clear."""
    return 0x80000000 | seq


@dataclass(slots=True)
class _Receiver:
    """State of a root regarding one member."""

    have: int = 0
    got: int = 0  # number of segments that arrived, not counting gaps
    seen: int = 0  # segments below this number have left the wire
    unanswered: int = 0
    since: float = 0.0  # when the first unanswered question was asked


@dataclass(frozen=True, slots=True)
class _Repair:
    """A repair: when and to whom it was sent, and how many segments had been sent at least once by then."""

    at: float
    to: int
    sent: int

    def is_overdue(self, seen: int, asked: float | None) -> bool:
        """Return True if a member should have the repair, given the segments it has seen, and when it was asked."""
        return seen > self.sent + REORDERED or (asked is not None and asked >= self.at)


class Root:
    """One message from one root to known members.

    Parameters
    ----------
    message
        The message to send.
    members
        Numbers of the receiving members.
    settings
        Settings of the protocol.
    pace, round_trip
        Rate and round-trip time, which persist from message to message.
    counter
        Source of the numbers of this sender's control datagrams.

    Attributes
    ----------
    done
        True if nothing more has to be sent: all members have the message, or it was aborted (``failed``).
    lost
        Members that are considered lost.
    sent, repairs, polls
        Numbers of segments, repairs and questions sent.
    """

    def __init__(
        self,
        message: Outgoing,
        members: Iterable[int],
        settings: BroadcastOptions,
        pace: Pace,
        round_trip: RoundTrip,
        counter: count[int],
    ) -> None:
        self.message = message
        self.settings = settings
        self.done = False
        self.failed = False
        self.lost: tuple[int, ...] = ()
        self.sent = 0
        self.repairs = 0
        self.polls = 0
        self._pace = pace
        self._round_trip = round_trip
        self._counter = counter
        self._receivers = {member: _Receiver() for member in members}
        self._unfinished = set(self._receivers)
        self._base = 0  # all members have the segments below this number
        self._wanted: dict[int, int] = {}  # segment to repair -> destination
        self._repaired: dict[int, _Repair] = {}
        self._asked: dict[int, float] = {}  # echo -> when
        self._last_batch = 0  # segments sent at once, including repairs
        self._asked_after = -1  # the last segment that contained a question
        self._pause = 0.0
        self._ask_at = 0.0
        self._notices: list[Batch] = []
        pace.begin()
        self._finish_if_all_have_it()

    @property
    def number(self) -> int:
        """Number of the message."""
        return self.message.number

    @property
    def all_sent(self) -> bool:
        """True if each segment has been sent at least once."""
        return self.sent == self.message.nseg

    @property
    def all_have(self) -> int:
        """Number of contiguous segments that every member has."""
        return self._base

    # -- input

    def on_reply(self, now: float, sender: int, reply: Reply) -> None:
        """Process an ACK or NACK of a member for this message."""
        receiver = self._receivers.get(sender)
        if receiver is None or self.done or reply.have > self.sent:
            return
        receiver.unanswered = 0
        asked = self._asked.get(reply.echo)
        if asked is not None and reply.echo ^ echo_of_segment(0) not in self._repaired:  # not asked twice (Karn's rule)
            self._round_trip.sample(now - asked)
        receiver.got = max(receiver.got, reply.arrived())
        receiver.seen = max(receiver.seen, min(reply.seen, self.sent))
        if reply.have > receiver.have:
            self._advance(now, sender, receiver, reply.have)
        self._pace.arrived(now, min([one.got for one in self._receivers.values()]), self.sent, self.message.wire)
        if reply.missing:
            self._want(sender, reply, asked)

    def _advance(self, now: float, sender: int, receiver: _Receiver, have: int) -> None:
        was_slowest = receiver.have == self._base
        receiver.have = have
        self._drop_wanted(sender, have)
        if have == self.message.nseg:
            self._unfinished.discard(sender)
        if was_slowest:
            self._move_base()
        self._pause = self._timeout(now)
        self._ask_at = now + self._pause
        self._finish_if_all_have_it()

    def _move_base(self) -> None:
        base = min([receiver.have for receiver in self._receivers.values()], default=self.message.nseg)
        if base == self._base:
            return
        self._base = base
        if self._repaired:
            self._repaired = {seq: at for seq, at in self._repaired.items() if seq >= base}
        if self._wanted:
            self._wanted = {seq: to for seq, to in self._wanted.items() if seq >= base}

    def _drop_wanted(self, member: int, have: int) -> None:
        """Cancel repairs of segments below ``have`` that only this member needed."""
        if self._wanted:
            self._wanted = {seq: to for seq, to in self._wanted.items() if to != member or seq >= have}

    def _want(self, sender: int, reply: Reply, asked: float | None) -> None:
        """Queue the segments that a member misses for repair, unless an earlier repair may still be on its way.

        It is not on its way if the member has seen something that was sent later: segments, or the question, sent at
        time ``asked``, that it answers. Networks rarely reorder, and this needs no estimate of the time that the wire
        takes, which would be wrong.
        """
        have = self._receivers[sender].have
        first_time = 0
        for first, last in reply.missing:
            for seq in range(max(first, have), min(last, self.sent)):
                repair = self._repaired.get(seq)
                if repair is not None and repair.to in (GROUP, sender) and not repair.is_overdue(reply.seen, asked):
                    continue
                first_time += repair is None and seq not in self._wanted
                # If a second member misses the same segment, others usually do too, so it is repaired for all.
                alone = (repair is None or repair.to == sender) and self._wanted.get(seq, sender) == sender
                self._wanted[seq] = sender if alone else GROUP
        if first_time:
            self._pace.lost(sender, first_time)

    # -- time

    def on_timer(self, now: float) -> None:
        """Consider members lost that have been silent for too long."""
        if self.done or now < self._ask_at:
            return
        silent = [
            member
            for member in sorted(self._unfinished)
            if (receiver := self._receivers[member]).unanswered >= LEAST_UNANSWERED
            and now - receiver.since >= self.settings.dead_timeout
        ]
        if silent:
            self._give_up_on(silent)

    def next_timer(self) -> float | None:
        """Return when to call again, because the pace permits more or a question is due; None when done."""
        if self._notices:
            return 0.0
        if self.done:
            return None
        return self._pace.ready_at() if self._has_work() else self._ask_at

    def _give_up_on(self, members: list[int]) -> None:
        self.lost += tuple(members)
        if self.settings.on_loss == "raise":
            self.abort(Reason.LOST)
            return
        for member in members:
            self._notices.append(self._abort_batch(member, Reason.EXCLUDED, (member,)))
            del self._receivers[member]
            self._unfinished.discard(member)
            self._drop_wanted(member, self.message.nseg)
        self._move_base()
        self._finish_if_all_have_it()

    def abort(self, reason: Reason) -> None:
        """Abort the message for all members, and notify them."""
        if self.done:
            return
        self._notices += [self._abort_batch(GROUP, reason, self.lost) for _ in range(ABORT_COPIES)]
        self.done = self.failed = True
        self._wanted.clear()

    def _abort_batch(self, destination: int, reason: Reason, members: tuple[int, ...]) -> Batch:
        return Batch(destination, [self._control(Kind.ABORT, next(self._counter), Abort(reason, members).pack())])

    def _finish_if_all_have_it(self) -> None:
        if not self._unfinished:
            self.done = True
            self._wanted.clear()

    # -- output

    def poll_output(self, now: float) -> Batch | None:
        """Return the next datagrams to send now, or None; must be called again until it returns None."""
        if self._notices:
            return self._notices.pop(0)
        if self.done:
            return None
        if self._wanted:
            return self._repair(now)
        if self._may_send_new():
            return self._send_new(now)
        if now < self._ask_at:
            return None
        self.on_timer(now)
        return self.poll_output(now) if self.done or self._notices else self._ask(now)

    def _may_send_new(self) -> bool:
        return self.sent < self._end_of_window()

    def _end_of_window(self) -> int:
        return min(self.message.nseg, self._base + self._pace.under_way())

    def _has_work(self) -> bool:
        return bool(self._wanted) or self._may_send_new()

    def _send_new(self, now: float) -> Batch | None:
        room = self._end_of_window() - self.sent
        many = self._pace.allowed(now, self.message.wire, min(self.settings.batch, room))
        if not many:
            return None
        segments = range(self.sent, self.sent + many)
        self.sent += many
        return self._emit(now, GROUP, segments)

    def _repair(self, now: float) -> Batch | None:
        many = self._pace.allowed(now, self.message.wire, self.settings.batch)
        if not many:
            return None
        lowest = sorted(self._wanted)
        destination = self._wanted[lowest[0]]
        segments = [seq for seq in lowest if self._wanted[seq] == destination][:many]
        for seq in segments:
            del self._wanted[seq]
            self._repaired[seq] = _Repair(now, destination, self.sent)
            self._asked.pop(echo_of_segment(seq), None)
        self.repairs += len(segments)
        return self._emit(now, destination, segments)

    def _emit(self, now: float, destination: int, segments: Iterable[int]) -> Batch:
        """Seal segments for one destination; the last one may ask for an answer."""
        *earlier, last = segments
        silent = not self._has_work()
        ask = self._is_to_ask(last, silent)
        datagrams = [self.message.segment(seq, ask=False) for seq in earlier]
        datagrams.append(self.message.segment(last, ask=ask))
        self._last_batch = len(datagrams)
        self._pace.spend(now, self.message.wire * len(datagrams))
        if silent or ask:
            self._pause = self._timeout(now)
            self._ask_at = now + self._pause
        if ask:
            self._asked_after = max(last, self._asked_after)
            self._question(now, destination, echo_of_segment(last))
        return Batch(destination, datagrams)

    def _is_to_ask(self, seq: int, silent: bool) -> bool:
        """Return True if a segment should ask for an answer: nothing can follow it, or progress reports are due.

        While the window is full, at most two questions per window are asked, as members also report unasked.
        """
        since = seq - self._asked_after
        if silent:
            return self.all_sent or since <= 0 or since >= self._pace.under_way() // 2
        every = self._pace.ask_after()
        return every is not None and since >= every

    def _ask(self, now: float) -> Batch:
        serial = next(self._counter)
        waiting = sorted(self._unfinished)
        destination = waiting[0] if len(waiting) == 1 else GROUP
        datagram = self._control(Kind.POLL, serial, Poll(self.sent).pack())
        self._pace.spend(now, wire_bytes(OVERHEAD + 4, self.settings.headers))
        self.polls += 1
        self._question(now, destination, serial & 0x7FFFFFFF)
        self._pause = min(self._pause * 1.5, self.settings.longest_pause)
        return Batch(destination, [datagram])

    def _question(self, now: float, destination: int, echo: int) -> None:
        """Record that a question was asked, and when to ask again."""
        self._ask_at = now + self._pause
        self._asked[echo] = now
        if len(self._asked) > MOST_ASKED:
            del self._asked[next(iter(self._asked))]
        for member in self._unfinished if destination == GROUP else (destination,):
            receiver = self._receivers[member]
            if not receiver.unanswered:
                receiver.since = now
            receiver.unanswered += 1

    def _timeout(self, now: float) -> float:
        """Return the seconds after which an answer is overdue.

        This is the larger of the round-trip timeout and twice the time that the bytes in flight take to leave, but at
        most the longest pause. Questions are cheap and never cause anything to be sent twice; so the pause is capped,
        and a member that was suspended and answered late does not slow the root down for long.
        """
        seen = min([self._receivers[member].seen for member in self._unfinished], default=self.sent)
        under_way = 2 * self._pace.backlog(now, (self.sent - seen + self._last_batch) * self.message.wire)
        return min(max(self._round_trip.timeout(), under_way), self.settings.longest_pause)

    def _control(self, kind: Kind, serial: int, payload: bytes) -> tuple[bytes]:
        message = self.message
        return (
            message.keys.seal(
                kind,
                message.sender,
                message=message.number,
                seq=serial & 0xFFFFFFFF,
                nseg=message.nseg,
                root=message.sender,
                payload=payload,
            ),
        )
