"""Overlap of non-blocking transfers with computation, and remedies where there is none.

The method is post, work, wait (COMB: W. Lawry and others, CLUSTER 2002), without and with calls of ``MPI_Test`` during
the work, as in the electrodeposition code whose first overlapped version was slower than the blocking one (Milano,
§3.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np

__all__ = ["Overlap", "Polled", "cures", "measure_overlap", "overlapped"]

_POOR, _GOOD, _HELPS = 0.7, 0.8, 0.15
_INTERVALS = (200, 50, 12)
"""Divisors of the pure transfer's time that give the polling intervals."""
_SHORTEST = 10e-6


@dataclass(frozen=True, slots=True)
class Polled:
    """Result with a call of ``MPI_Test`` every ``interval`` seconds."""

    interval: float
    seconds: float
    overlap: float


@dataclass(frozen=True, slots=True)
class Overlap:
    """Overlap for one size, sent and received at the same time, from 0 (none) to 1 (everything hidden)."""

    bytes: int
    pure: float
    """Seconds of the transfer alone."""
    work: float
    """Seconds of the work alone, chosen to be about as long."""
    seconds: float
    """Seconds of both together, without a call to MPI during the work."""
    overlap: float
    polled: tuple[Polled, ...]
    test: float
    """Seconds of one ``MPI_Test``."""

    @property
    def best(self) -> Polled | None:
        """Result for the longest interval that is nearly as good as the best one; None if nothing was polled."""
        most = max((one.overlap for one in self.polled), default=0.0)
        return max((one for one in self.polled if one.overlap > most - 0.05), key=lambda p: p.interval, default=None)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON-serialisable data."""
        return asdict(self)


def overlapped(pure: float, work: float, both: float) -> float:
    """Return the fraction of the shorter one that is hidden, 0 to 1 (Intel MPI Benchmarks, IMB-NBC)."""
    return max(0.0, min(1.0, (pure + work - both) / min(pure, work)))


def measure_overlap(
    communicator: Any, peer: int, sizes: Sequence[int], budget: float, tag: int = 3
) -> tuple[Overlap, ...]:
    """Measure the overlap; must run on both ranks of a pair with the same arguments except ``peer``.

    The values are those of the slower rank. The sizes share ``budget`` seconds; each variant is timed at least three
    times, in turns.
    """
    return tuple(_measure(communicator, peer, size, budget / len(sizes), tag) for size in sizes)


def cures(measured: Sequence[Overlap], library: str, drain: float | None = None) -> list[str]:
    """Return advice for transfers that stall while the processor computes; empty if the overlap is good.

    Parameters
    ----------
    measured
        Measured overlap.
    library
        Vendor and version of MPI as given by mpi4py.
    drain
        Seconds in which the network empties a socket's buffer; polling less often leaves the network idle.
    """
    poor = [one for one in measured if one.overlap < _POOR]
    if not poor:
        return []
    first = min(poor, key=lambda one: one.bytes)
    least = min(one.overlap for one in poor)
    said = [f"{library}: from {first.bytes} bytes on, computation hides only {least:.0%} of a message unless one polls"]
    helped = [one for one in poor if one.best is not None and one.best.overlap > one.overlap + _HELPS]
    if helped:
        best = [one.best for one in helped if one.best is not None]
        interval = min(one.interval for one in best)
        text = f"polling every {_time(interval)} hides {min(one.overlap for one in best):.0%}"
        if drain is not None:
            text += f"; after {_time(drain)} without a poll, the socket's buffer is empty"
        said.append(text)
    setting = _setting(library)
    if setting is not None:
        said.append(f"without polling: {setting}; leave a core free for the library's thread")
    elif not helped:
        said.append("polling does not help: send smaller messages, or use a library with a progress thread")
    return said


def _setting(library: str) -> str | None:
    name = library.lower()
    if "open mpi" in name or "openmpi" in name:
        return "mpiexec --mca btl_tcp_progress_thread 1"
    if "intel" in name:
        return "I_MPI_ASYNC_PROGRESS=1"
    if "mpich" in name:
        return "MPICH_ASYNC_PROGRESS=1"
    return None


def _measure(communicator: Any, peer: int, size: int, budget: float, tag: int) -> Overlap:
    transfer = _Transfer(communicator, peer, size, tag)
    both = transfer.exchanged
    pure = min(both(transfer.pure()) for _ in range(3))
    work = _Work(pure)
    intervals = sorted({max(_SHORTEST, pure / part) for part in _INTERVALS})
    times: dict[str | float, list[float]] = {"pure": [], "work": [], "without": [], **{i: [] for i in intervals}}
    rounds = int(both(max(3, min(15, budget // ((3 + len(intervals)) * 2 * pure)))))
    tests, testing = 0, 0.0
    for _ in range(rounds):
        # The slower rank's time is used, since a rank that starts late finds the message already there.
        times["pure"].append(both(transfer.pure()))
        times["work"].append(both(work.alone()))
        times["without"].append(both(transfer.behind(work, None)[0]))
        for interval in intervals:
            seconds, count, spent = transfer.behind(work, interval)
            times[interval].append(both(seconds))
            tests, testing = tests + count, testing + spent
    # The minimum of each is used: on a busy machine, another program's time slice would look like missing overlap.
    least = {key: min(values) for key, values in times.items()}
    pure, alone = least["pure"], least["work"]
    polled = tuple(Polled(i, least[i], overlapped(pure, alone, least[i])) for i in intervals)
    without = least["without"]
    return Overlap(
        size, pure, alone, without, overlapped(pure, alone, without), polled, testing / tests if tests else 0.0
    )


class _Work:
    """Arithmetic of about ``seconds`` seconds, in small units; time used by other programs counts as lost."""

    def __init__(self, seconds: float) -> None:
        self.values = np.ones(2048)
        self.count = 1
        self.unit()
        start = perf_counter()
        for _ in range(200):
            self.unit()
        self.count = max(1, round(200 * seconds / (perf_counter() - start)))

    def unit(self) -> None:
        """Do one unit of the work."""
        np.multiply(self.values, 1.0000001, out=self.values)

    def alone(self) -> float:
        """Do the whole work; return its seconds."""
        start = perf_counter()
        for _ in range(self.count):
            self.unit()
        return perf_counter() - start


class _Transfer:
    """Simultaneous messages in both directions between two ranks."""

    def __init__(self, communicator: Any, peer: int, size: int, tag: int) -> None:
        from mpi4py import MPI

        self.mpi = MPI
        self.communicator, self.peer, self.tag = communicator, peer, tag
        self.sent, self.received = bytearray(b"\1") * size, bytearray(size)

    def exchanged(self, value: float) -> float:
        """Exchange a value with the other rank; return the larger one."""
        other: float = self.communicator.sendrecv(value, self.peer, self.tag, None, self.peer, self.tag)
        return max(value, other)

    def pure(self) -> float:
        """Transfer without work; return its seconds."""
        requests, start = self._post()
        self.mpi.Request.Waitall(requests)
        return perf_counter() - start

    def behind(self, work: _Work, interval: float | None) -> tuple[float, int, float]:
        """Transfer during the work; return the seconds of both together, the number of tests, and their seconds."""
        tests, testing = 0, 0.0
        unit, testall = work.unit, self.mpi.Request.Testall
        requests, start = self._post()
        if interval is None:
            for _ in range(work.count):
                unit()
        else:
            due = start + interval
            done = False
            for _ in range(work.count):
                unit()
                now = perf_counter()
                if now >= due and not done:
                    done = testall(requests)
                    due = perf_counter()
                    testing += due - now
                    tests += 1
                    due += interval
        self.mpi.Request.Waitall(requests)
        return perf_counter() - start, tests, testing

    def _post(self) -> tuple[list[Any], float]:
        byte, peer, tag = self.mpi.BYTE, self.peer, self.tag
        self.communicator.sendrecv(None, peer, tag, None, peer, tag)  # both ranks begin at the same time
        start = perf_counter()
        receiving = self.communicator.Irecv((self.received, byte), peer, tag + 1)
        return [receiving, self.communicator.Isend((self.sent, byte), peer, tag + 1)], start


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"
