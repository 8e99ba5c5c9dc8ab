"""The decision who is lost: simple limits on the time without a sign of life, and on that without progress.

Nothing here reads a clock or a process: reports of agents come in with their times, and events come out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from minga.launch.watchdog.lookout import GONE, STOPPED, HostReport, RankReport
from minga.launch.watchdog.loss import Loss
from minga.launch.watchdog.pulse import LEFT

__all__ = ["Event", "Judge"]

_SUSPECT: Final = 0.5
"""Part of the limit after which silence is reported."""
_FIRST: Final = 60.0
"""Least limit before the first report of a host, where Python may have to be loaded."""
_STUCK: Final = 60.0
"""Least number of seconds without a step after which that is reported."""
_SLOWEST: Final = 20.0
"""Factor on the time of the slowest step so far: a step that takes longer is reported."""
_PATIENCE: Final = 10.0
"""Factor on the time until that report: after it the run counts as lost."""
_LITTLE_SPACE: Final = 64 << 20
"""Free bytes of the disk below which that is reported."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that people should know, or with a `loss` the end of the ranks."""

    text: str
    loss: Loss | None = None


@dataclass(slots=True)
class _Silence:
    """Silence of a host or rank since a time; it is reported once."""

    since: float
    reported: bool = False


@dataclass(slots=True)
class _Host:
    name: str
    silence: _Silence
    ranks: dict[int, RankReport] = field(default_factory=dict)
    signs: dict[int, _Silence] = field(default_factory=dict)
    reported_at: float | None = None
    """Time of its last report."""
    ended: str | None = None
    """Description of the end of its agent; None while that exists."""

    @property
    def left(self) -> bool:
        """True if all its ranks have ended by themselves."""
        return bool(self.ranks) and all(rank.phase == LEFT for rank in self.ranks.values())


class Judge:
    """Judge of hosts and ranks; all times are in seconds of one clock.

    Parameters
    ----------
    hosts
        Names of the hosts that are known; others come when they are heard first.
    here
        Name of this machine, the end of whose agent is no loss.
    limit
        Seconds of silence after which a host or rank counts as lost.
    now
        Present time.
    """

    def __init__(self, hosts: Sequence[str], here: str, limit: float, now: float) -> None:
        self._limit = limit
        self._hosts = {name: _Host(name, _Silence(now)) for name in hosts}
        self._here = here
        self._looked = now
        self._moved = _Silence(now)
        self._progress: dict[int, tuple[int, int]] = {}
        self._slowest = 0.0
        self._full = False
        self._news: list[Event] = []

    @property
    def step(self) -> int:
        """Steps that all ranks have done, as far as known."""
        steps = [rank.step for host in list(self._hosts.values()) for rank in list(host.ranks.values())]
        return min(steps, default=0)

    def heard_sign(self, name: str, now: float) -> None:
        """Take note that a host lives."""
        host = self._hosts.setdefault(name, _Host(name, _Silence(now)))
        if host.silence.reported and host.ended is None:
            self._news.append(Event(f"host {name} answers again, after {now - host.silence.since:.0f} s"))
        host.silence = _Silence(now)

    def heard(self, name: str, report: HostReport, now: float) -> None:
        """Take note of a report of a host."""
        self.heard_sign(name, now)
        host = self._hosts[name]
        host.reported_at = now
        for rank in report.ranks:
            before = host.ranks.get(rank.rank)
            sign = host.signs.setdefault(rank.rank, _Silence(now))
            if before is None or before.life != rank.life:
                if sign.reported:
                    self._news.append(Event(f"{_named(rank, name)} runs again, after {now - sign.since:.0f} s"))
                host.signs[rank.rank] = _Silence(now)
            host.ranks[rank.rank] = rank
        self._note_progress(report, now)
        if report.free is not None and report.free < _LITTLE_SPACE and not self._full:
            self._full = True
            self._news.append(Event(f"the disk of the run has only {report.free >> 20} MiB left"))

    def lost_process(self, pid: int) -> Loss | None:
        """Return the loss of the rank that had a process, None if no rank that is gone had it."""
        for host in list(self._hosts.values()):  # another thread may add to both
            for rank in list(host.ranks.values()):
                if rank.pid == pid and rank.state == GONE:
                    return self._killed(rank, host.name)
        return None

    def agent_ended(self, name: str, how: str) -> None:
        """Take note that the agent of a host has ended."""
        self._hosts[name].ended = how

    def look(self, now: float) -> list[Event]:
        """Return what has happened since the last look; after a loss nothing more is of interest."""
        stalled = now - self._looked
        if stalled > _SUSPECT * self._limit:  # this process was suspended, and received no report
            self._excuse(stalled)
        self._looked = now
        news, self._news = self._news, []
        return news + list(self._found(now))

    def _excuse(self, seconds: float) -> None:
        """Discount a time in which no report could be received."""
        for host in self._hosts.values():
            for silence in (host.silence, *host.signs.values()):
                silence.since += seconds
        self._moved.since += seconds

    def _note_progress(self, report: HostReport, now: float) -> None:
        moved = any(self._progress.get(rank.rank) != rank.progress for rank in report.ranks)
        self._progress |= {rank.rank: rank.progress for rank in report.ranks}
        everyone = [rank for host in self._hosts.values() for rank in host.ranks.values()]
        busy = any(rank.phase != "stepping" for rank in everyone)
        if moved and not busy:
            self._slowest = max(self._slowest, now - self._moved.since)
        if moved or busy:
            if self._moved.reported:
                self._news.append(Event(f"the ranks make progress again, after {now - self._moved.since:.0f} s"))
            self._moved = _Silence(now)

    def _found(self, now: float) -> Iterator[Event]:
        for host in self._hosts.values():
            if host.left:
                continue
            if host.ended is not None:
                yield from self._without_agent(host)
                continue
            yield from self._of_ranks(host)
            limit = self._limit if host.reported_at is not None else max(self._limit, _FIRST)
            yield from self._of_silence(host.silence, now, f"host {host.name}", "silent", host.name, limit)
        yield from self._of_progress(now)

    def _without_agent(self, host: _Host) -> Iterator[Event]:
        if host.name != self._here:
            yield self._lost(f"host {host.name} was lost: its watchdog {host.ended}", host.name)
        elif not host.silence.reported:
            host.silence.reported = True
            yield Event(f"the watchdog of this machine {host.ended}; its ranks are not watched any more")

    def _of_ranks(self, host: _Host) -> Iterator[Event]:
        """Yield what has happened to the ranks of a host when it reported last."""
        heard = host.reported_at or 0.0
        leaving = any(rank.phase == LEFT for other in self._hosts.values() for rank in other.ranks.values())
        for rank in host.ranks.values():
            who = _named(rank, host.name)
            if rank.state == GONE:
                if not leaving:  # else the job ends by itself, in order or with an error that is reported
                    loss = self._killed(rank, host.name)
                    yield Event(loss.cause, loss)
                continue
            state = "stopped" if rank.state == STOPPED else "frozen"
            yield from self._of_silence(host.signs[rank.rank], heard, who, state, host.name, self._limit)

    def _of_silence(
        self, silence: _Silence, now: float, who: str, state: str, host: str, limit: float
    ) -> Iterator[Event]:
        seconds = now - silence.since
        if seconds >= limit:
            yield self._lost(f"{who} was lost: it has been {state} for {seconds:.0f} s", host)
        elif seconds >= _SUSPECT * limit and not silence.reported:
            silence.reported = True
            yield Event(f"{who} has been {state} for {seconds:.0f} s; after {limit:g} s it counts as lost")

    def _of_progress(self, now: float) -> Iterator[Event]:
        limit = max(_STUCK, _SLOWEST * self._slowest)
        seconds = now - self._moved.since
        if seconds < limit or not self._progress:
            return
        said = f"no rank has made progress for {seconds:.0f} s, in step {self.step + 1}"
        if seconds >= _PATIENCE * limit:
            yield self._lost(f"the run makes no progress: {said}", None)
        elif not self._moved.reported:
            self._moved.reported = True
            yield Event(f"{said}; the longest time so far was {self._slowest:.0f} s")

    def _killed(self, rank: RankReport, host: str) -> Loss:
        cause = "the memory was exhausted, and the system killed it" if rank.memory else "it was killed"
        return Loss(f"{_named(rank, host)} was lost: {cause}", host, self.step, at_once=True)

    def _lost(self, cause: str, host: str | None) -> Event:
        return Event(cause, Loss(cause, host, self.step))


def _named(rank: RankReport, host: str) -> str:
    return f"rank {rank.rank} (process {rank.pid} on {host})"
