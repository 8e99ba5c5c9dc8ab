"""How fast a root sends, and how long it waits for an answer."""

from __future__ import annotations

from collections import deque

from minga.network.broadcast.settings import Settings

__all__ = ["Pace", "RoundTrip"]

SLOWEST, FASTEST = 1e6, 1e11  # bits per second between which a pace adapts
BURST = 2e-3
"""Seconds of the wire that are handed over at once, as timers of the system are not finer."""
CATCH_UP_BYTES = 1 << 16
"""Bytes that a sender who overslept may send at once to be on time again; queues of switches hold more."""
MAY_DOUBLE, MAY_GROW = 0.6, 0.85
"""Shares of the rate that must arrive for it to double (more than half then arrives of the double) or to grow a bit."""
LOSSES_THAT_SLOW, FEWEST_THAT_SLOW = 0.02, 4  # share of an epoch, and segments: one alone says nothing
ABOVE_CARRIED = 1.1  # a rate above what arrives by more than this may be why segments are lost
FIRST_LIMIT = 64  # segments
SHORTEST_EPOCH = 32
"""Segments below which a share of lost ones says nothing about the rate."""


class Pace:
    """A token bucket over the wire, whose rate is given or found.

    A found rate, and the segments that may be under way with it (``limit``), double with each epoch (what was under way
    when it began) while the network keeps up; once it does not, they grow by 5 %. An epoch in which some member missed
    more than 2 % brings the rate down to half, or to what the network carried lately if that is more: one that loses at
    random still carries what it carries, and sending slower would not help. They only grow while the rate is what
    limits: a root that waits for a slow reader learns nothing about the wire.
    """

    def __init__(self, settings: Settings) -> None:
        self.adaptive = settings.rate is None
        self.rate = settings.start_rate if settings.rate is None else settings.rate
        self.achieved = self.rate  # bits per second that arrived in the last epoch
        self.limit = float(min(FIRST_LIMIT, settings.window) if self.adaptive else settings.window)
        self._window = settings.window
        self._free_at = 0.0  # when the wire has finished what was sent
        self._doubling = True
        self._carried: deque[float] = deque(maxlen=8)  # what arrived in the last epochs, bits per second
        self._lost: dict[int, int] = {}  # member -> segments it missed in this epoch
        self._epoch: tuple[float, int, int] | None = None  # when it began, what was got then, where it ends

    def ready_at(self) -> float:
        """The time from which more may be sent."""
        return self._free_at

    def allowed(self, now: float, wire: int, most: int) -> int:
        """How many datagrams of ``wire`` bytes each may be sent now, up to ``most``."""
        if now < self._free_at:
            return 0
        return max(1, min(most, int(self.rate * BURST / (8 * wire))))

    def spend(self, now: float, wire: int) -> None:
        """Account for ``wire`` bytes handed over at ``now``."""
        credit = max(BURST, CATCH_UP_BYTES * 8 / self.rate)
        if self._epoch is None:  # a message begins: there is nothing to catch up with
            self._epoch = (now, 0, SHORTEST_EPOCH)
            credit = BURST
        self._free_at = max(self._free_at, now - credit) + wire * 8 / self.rate

    def lost(self, member: int, segments: int) -> None:
        """A member missed so many segments."""
        self._lost[member] = self._lost.get(member, 0) + segments

    def under_way(self) -> int:
        """Segments that may be sent beyond what all members have."""
        return int(self.limit)

    def ask_after(self) -> int | None:
        """Segments after which to ask members how far they are; None where what they tell of themselves suffices."""
        return int(self.limit) // 2 if self.adaptive else None

    def begin(self) -> None:
        """A new message starts: its segments count from 0 again."""
        self._epoch = None
        self._lost.clear()

    def arrived(self, now: float, got: int, sent: int, wire: int) -> None:
        """Each member got at least ``got`` of the ``sent`` segments, which take ``wire`` bytes each."""
        if self._epoch is None:
            return
        began, first, end = self._epoch
        if got < end or got - first < SHORTEST_EPOCH or now <= began:
            return
        # Answers come in bunches, but nothing arrives faster than it is sent.
        self.achieved = min((got - first) * wire * 8 / (now - began), self.rate)
        if self.adaptive:
            self._adapt(max(self._lost.values(), default=0), got - first)
        self._lost.clear()
        self._epoch = (now, got, sent)

    def _adapt(self, lost: int, segments: int) -> None:
        self._carried.append(self.achieved)
        carried = sorted(self._carried)[-2:][0]  # the best of late, but for one that may have been a bunch
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
        """Seconds until ``wire`` bytes that were sent have left.

        A given rate is believed. One that is still being found may be far above what the wire carries.
        """
        if not self.adaptive:
            return max(0.0, self._free_at - now)
        return wire * 8 / max(min(self.rate, self.achieved), SLOWEST)


class RoundTrip:
    """Times between a question and its answer (RFC 6298), one estimate for all members.

    An answer names its question, so that a repeated question never mistakes an answer to an earlier one for its own
    (Karn's rule). What the wire needs for the bytes still under way is added by the caller: a timer trained by small
    messages must not expire while a large one is still leaving.
    """

    def __init__(self, floor: float) -> None:
        self.floor = floor
        self.smoothed = 0.0
        self.variation = 0.0
        self._known = False

    def sample(self, seconds: float) -> None:
        if not self._known:
            self._known = True
            self.smoothed, self.variation = seconds, seconds / 2
            return
        self.variation += (abs(self.smoothed - seconds) - self.variation) / 4
        self.smoothed += (seconds - self.smoothed) / 8

    def timeout(self) -> float:
        """Seconds after which an answer is overdue on an idle wire."""
        return max(self.floor, self.smoothed + 4 * self.variation)
