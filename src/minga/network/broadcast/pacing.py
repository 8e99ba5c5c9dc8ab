"""Rate at which a root sends, and time for which it waits for an answer."""

from __future__ import annotations

from collections import deque

from minga.network.broadcast.options import BroadcastOptions

__all__ = ["Pace", "RoundTrip"]

SLOWEST, FASTEST = 1e6, 1e11  # bits per second between which a pace adapts
BURST = 2e-3
"""Seconds of transmission that are passed to the kernel at once, since system timers are not finer."""
CATCH_UP_BYTES = 1 << 16
"""Bytes that a sender that woke too late may send at once to catch up; the queues of switches hold more."""
MAY_DOUBLE, MAY_GROW = 0.6, 0.85
"""Fractions of the rate that must arrive for it to double (over half of the doubled rate then arrives) or to grow."""
LOSSES_THAT_SLOW, FEWEST_THAT_SLOW = 0.02, 4  # fraction of an epoch, and segments: a single loss means nothing
ABOVE_CARRIED = 1.1  # a rate that exceeds the arriving rate by more than this may be the cause of losses
FIRST_LIMIT = 64  # segments
SHORTEST_EPOCH = 32
"""Smallest number of segments whose loss fraction says anything about the rate."""


class Pace:
    """Token bucket for the wire, whose rate is given or determined while sending.

    An adaptive rate, and with it the number of segments that may be in flight (``limit``), doubles with each epoch (the
    segments that were in flight when it began) as long as the network keeps up; afterwards it grows by 5 %. An epoch in
    which some member missed more than 2 % reduces the rate to half, or to the rate that the network carried recently if
    that is higher: a network with random losses has a certain throughput, and sending more slowly would not raise it.
    The rate grows only while it is the limit: a root that waits for a slow reader learns nothing about the wire.
    """

    def __init__(self, settings: BroadcastOptions) -> None:
        self.adaptive = settings.rate is None
        self.rate = settings.start_rate if settings.rate is None else settings.rate
        self.achieved = self.rate  # bits per second that arrived in the last epoch
        self.limit = float(min(FIRST_LIMIT, settings.window) if self.adaptive else settings.window)
        self._window = settings.window
        self._free_at = 0.0  # when the wire has transmitted everything sent
        self._doubling = True
        self._carried: deque[float] = deque(maxlen=8)  # arriving rates of the last epochs, bits per second
        self._lost: dict[int, int] = {}  # member -> segments it missed in this epoch
        self._epoch: tuple[float, int, int] | None = (
            None  # time when it began, segments received then, segment at which it ends
        )

    def ready_at(self) -> float:
        """Return the time from which more may be sent."""
        return self._free_at

    def allowed(self, now: float, wire: int, most: int) -> int:
        """Return how many datagrams of ``wire`` bytes each may be sent now, at most ``most``."""
        if now < self._free_at:
            return 0
        return max(1, min(most, int(self.rate * BURST / (8 * wire))))

    def spend(self, now: float, wire: int) -> None:
        """Account for ``wire`` bytes passed to the kernel at time ``now``."""
        credit = max(BURST, CATCH_UP_BYTES * 8 / self.rate)
        if self._epoch is None:  # a message begins: there is nothing to catch up on
            self._epoch = (now, 0, SHORTEST_EPOCH)
            credit = BURST
        self._free_at = max(self._free_at, now - credit) + wire * 8 / self.rate

    def lost(self, member: int, segments: int) -> None:
        """Note that a member missed ``segments`` segments."""
        self._lost[member] = self._lost.get(member, 0) + segments

    def under_way(self) -> int:
        """Return the number of segments that may be sent beyond those that all members have."""
        return int(self.limit)

    def ask_after(self) -> int | None:
        """Return the segments after which to ask members for their progress; None if their own reports suffice."""
        return int(self.limit) // 2 if self.adaptive else None

    def begin(self) -> None:
        """Begin a new message, whose segments are counted from 0."""
        self._epoch = None
        self._lost.clear()

    def arrived(self, now: float, got: int, sent: int, wire: int) -> None:
        """Note that each member has at least ``got`` of the ``sent`` segments of ``wire`` bytes; adapt the rate."""
        if self._epoch is None:
            return
        began, first, end = self._epoch
        if got < end or got - first < SHORTEST_EPOCH or now <= began:
            return
        # Answers arrive in bunches, but data cannot arrive faster than they are sent.
        self.achieved = min((got - first) * wire * 8 / (now - began), self.rate)
        if self.adaptive:
            self._adapt(max(self._lost.values(), default=0), got - first)
        self._lost.clear()
        self._epoch = (now, got, sent)

    def _adapt(self, lost: int, segments: int) -> None:
        self._carried.append(self.achieved)
        carried = sorted(self._carried)[-2:][0]  # the second best, since the best may come from a bunch
        loses = lost >= max(FEWEST_THAT_SLOW, LOSSES_THAT_SLOW * segments)
        self._doubling = self._doubling and self.achieved > MAY_DOUBLE * self.rate and not loses
        if loses:
            if self.rate > ABOVE_CARRIED * carried:
                self._scale(max(0.5, carried / self.rate))
        elif self._doubling:
            self._scale(2)
        elif self.achieved > MAY_GROW * self.rate:
            self._scale(1.05)

    def _scale(self, factor: float) -> None:
        self.limit = min(max(factor * self.limit, FIRST_LIMIT), self._window)
        self.rate = min(max(factor * self.rate, SLOWEST), FASTEST)

    def backlog(self, now: float, wire: int) -> float:
        """Return the seconds until ``wire`` bytes that were sent have left.

        A given rate is trusted. An adaptive rate may be far above the capacity of the wire.
        """
        if not self.adaptive:
            return max(0.0, self._free_at - now)
        return wire * 8 / max(min(self.rate, self.achieved), SLOWEST)


class RoundTrip:
    """Estimate of the time between a question and its answer (RFC 6298), one for all members.

    An answer names its question, so that the answer to an earlier question is never attributed to a repetition (Karn's
    rule). The caller adds the time that the wire needs for the bytes in flight: a timer trained by small messages must
    not expire while a large one is still being sent.
    """

    def __init__(self, floor: float) -> None:
        self.floor = floor
        self.smoothed = 0.0
        self.variation = 0.0
        self._known = False

    def sample(self, seconds: float) -> None:
        """Update the estimate with a measured time."""
        if not self._known:
            self._known = True
            self.smoothed, self.variation = seconds, seconds / 2
            return
        self.variation += (abs(self.smoothed - seconds) - self.variation) / 4
        self.smoothed += (seconds - self.smoothed) / 8

    def timeout(self) -> float:
        """Return the seconds after which an answer is overdue on an idle wire."""
        return max(self.floor, self.smoothed + 4 * self.variation)
