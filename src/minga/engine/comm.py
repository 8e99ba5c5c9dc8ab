"""Communication between ranks: one rank alone, threads of one process, or MPI. The engine needs nothing else."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, NoReturn, Protocol, TypeVar

import numpy as np

from minga.engine.waiting import longest_nap, wait_until

Operation = Literal["sum", "max", "min"]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Envelope:
    """One message of a channel: the other rank and the bytes to send from or receive into (uint8, contiguous).

    `copies` is the number of boxes of cells whose values travel in it.
    """

    peer: int
    buffer: np.ndarray
    copies: int = 1


class Channel(Protocol):
    """A fixed set of messages that is sent and received repeatedly."""

    @property
    def sends(self) -> tuple[Envelope, ...]:
        """Messages that this rank sends at every start."""

    @property
    def started(self) -> np.ndarray:
        """Number of starts so far, as one int64 word. The native loop, which calls MPI itself, counts here too."""

    def start(self) -> None:
        """Begin all sends and receives."""

    def test(self) -> bool:
        """Make progress; return True when all messages are complete."""

    def wait(self) -> None:
        """Complete all sends and receives."""

    def close(self) -> None:
        """Release the resources of the channel."""


class Comm(Protocol):
    """A group of ranks."""

    @property
    def rank(self) -> int:
        """Number of this rank."""

    @property
    def size(self) -> int:
        """Number of ranks."""

    @property
    def node(self) -> int:
        """Lowest rank of this rank's machine, which identifies the machine."""

    @property
    def leads_node(self) -> bool:
        """True for the first rank of its machine: it compiles, and the others load the compiled code."""

    def channel(self, sends: Sequence[Envelope], receives: Sequence[Envelope], tag: int) -> Channel:
        """Return a channel for messages that are sent and received repeatedly."""

    def allreduce(self, words: np.ndarray, operation: Operation) -> None:
        """Combine int64 words over all ranks, in place."""

    def gather(self, value: Any) -> list[Any] | None:
        """Return all ranks' values on rank 0, in rank order; None elsewhere."""

    def bcast(self, value: Any) -> Any:
        """Return rank 0's value on every rank."""

    def barrier(self) -> None:
        """Wait until all ranks have called this."""

    def abort(self, error: BaseException) -> None:
        """End the whole job because of an error on this rank, showing its traceback."""


_COMBINE = {"sum": np.add, "max": np.maximum, "min": np.minimum}


class SerialComm:
    """One rank: nothing to send."""

    rank = 0
    size = 1
    node = 0
    leads_node = True

    def channel(self, sends: Sequence[Envelope], receives: Sequence[Envelope], tag: int) -> Channel:
        """Return a channel without messages.

        Parameters
        ----------
        sends, receives
            The messages: their partner and memory.
        tag
            The tag of all messages of the channel.

        Returns
        -------
        Channel
            The channel.
        """
        return _Silent()

    def allreduce(self, words: np.ndarray, operation: Operation) -> None:
        """Leave the words as they are: there is one rank.

        Parameters
        ----------
        words
            An array.
        operation
            The reduction.
        """
        return

    def gather(self, value: Any) -> list[Any] | None:
        """Return a list with the value of the only rank.

        Parameters
        ----------
        value
            Any value.

        Returns
        -------
        list
            The value.
        """
        return [value]

    def bcast(self, value: Any) -> Any:
        """Return the value of the only rank.

        Parameters
        ----------
        value
            Any value.

        Returns
        -------
        object
            The value.
        """
        return value

    def barrier(self) -> None:
        """Return at once: there is one rank."""
        return

    def abort(self, error: BaseException) -> None:
        """Raise the error: there is one rank.

        Parameters
        ----------
        error
            The error.
        """
        raise error


class _Silent:
    """A channel without messages."""

    sends: tuple[Envelope, ...] = ()

    def __init__(self) -> None:
        self.started = np.zeros(1, np.int64)

    def start(self) -> None:
        return None

    def test(self) -> bool:
        return True

    def wait(self) -> None:
        return None

    def close(self) -> None:
        return None


# Virtual ranks: threads of one process, for tests and for studying many ranks on one core -----------------------------
@dataclass(slots=True)
class _Shared:
    """State shared by virtual ranks."""

    size: int
    barrier: threading.Barrier
    lock: threading.Condition
    mail: dict[tuple[int, int, int], list[np.ndarray]] = field(default_factory=dict)
    board: list[Any] = field(default_factory=list)
    failure: BaseException | None = None


class VirtualComm:
    """One of several ranks that are threads of this process."""

    def __init__(self, shared: _Shared, rank: int) -> None:
        self._shared = shared
        self.rank = rank
        self.size = shared.size
        self.node = 0
        self.leads_node = rank == 0

    def __repr__(self) -> str:
        return f"VirtualComm(rank {self.rank} of {self.size})"

    def channel(self, sends: Sequence[Envelope], receives: Sequence[Envelope], tag: int) -> Channel:
        """Return a channel for messages that are sent and received repeatedly."""
        return _VirtualChannel(self._shared, self.rank, tuple(sends), tuple(receives), tag)

    def _exchange(self, value: Any) -> list[Any]:
        self._shared.board[self.rank] = value
        self._shared.barrier.wait()
        values = list(self._shared.board)
        self._shared.barrier.wait()
        return values

    def allreduce(self, words: np.ndarray, operation: Operation) -> None:
        """Combine int64 words over all ranks, in place."""
        with np.errstate(over="ignore"):
            words[...] = _COMBINE[operation].reduce(self._exchange(words.copy()))

    def gather(self, value: Any) -> list[Any] | None:
        """Return all ranks' values on rank 0, in rank order; None elsewhere."""
        values = self._exchange(value)
        return values if self.rank == 0 else None

    def bcast(self, value: Any) -> Any:
        """Return rank 0's value on every rank."""
        return self._exchange(value)[0]

    def barrier(self) -> None:
        """Wait until all ranks have called this."""
        self._shared.barrier.wait()

    def abort(self, error: BaseException) -> None:
        """Raise the error, which ends all virtual ranks."""
        raise error


class _VirtualChannel:
    def __init__(
        self, shared: _Shared, rank: int, sends: tuple[Envelope, ...], receives: tuple[Envelope, ...], tag: int
    ) -> None:
        self._shared, self._rank, self.sends, self._tag = shared, rank, sends, tag
        self._receives = receives
        self.started = np.zeros(1, np.int64)
        self._open: list[Envelope] = []

    def start(self) -> None:
        with self._shared.lock:
            for send in self.sends:
                self._shared.mail.setdefault((self._rank, send.peer, self._tag), []).append(send.buffer.copy())
            self._shared.lock.notify_all()
        self.started += 1
        self._open = list(self._receives)

    def _collect(self) -> bool:
        if self._shared.failure is not None:
            raise threading.BrokenBarrierError
        for receive in list(self._open):
            box = self._shared.mail.get((receive.peer, self._rank, self._tag))
            if box:
                receive.buffer[...] = box.pop(0)
                self._open.remove(receive)
        return not self._open

    def test(self) -> bool:
        with self._shared.lock:
            return self._collect()

    def wait(self) -> None:
        with self._shared.lock:
            while not self._collect():
                self._shared.lock.wait(timeout=60)

    def close(self) -> None:
        self._open = []


def run_virtual(ranks: int, function: Callable[[Comm], Result]) -> list[Result]:
    """Run `function(comm)` on virtual ranks and return their results in rank order, or raise the first rank's error.

    Parameters
    ----------
    ranks
        The number of ranks, which are threads of this process.
    function
        A function of the rank's communicator.

    Returns
    -------
    list
        The results in rank order.
    """
    shared = _Shared(ranks, threading.Barrier(ranks), threading.Condition(), board=[None] * ranks)
    results: list[Any] = [None] * ranks
    errors: list[tuple[int, BaseException]] = []

    def body(rank: int) -> None:
        try:
            results[rank] = function(VirtualComm(shared, rank))
        except threading.BrokenBarrierError:
            return  # another rank failed first
        except BaseException as error:
            with shared.lock:
                errors.append((rank, error))
                shared.failure = error
                shared.lock.notify_all()
            shared.barrier.abort()

    threads = [threading.Thread(target=body, args=(rank,), name=f"virtual rank {rank}") for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        rank, error = errors[0]
        error.add_note(f"on virtual rank {rank} of {ranks}")
        raise error
    return results


# MPI -----------------------------------------------------------------------------------------------------------------
def started_mpi() -> Any:
    """Return ``mpi4py.MPI`` with MPI initialised, even if mpi4py was first imported without initialising it."""
    from mpi4py import MPI

    if not MPI.Is_initialized():
        MPI.Init_thread()
        atexit.register(MPI.Finalize)
    return MPI


class MPIComm:
    """Ranks of an MPI communicator (mpi4py). The communicator is duplicated, so that tags never match the caller's.

    With more than one rank, an uncaught exception ends the whole job and shows this rank's traceback.

    Parameters
    ----------
    communicator
        An mpi4py communicator; by default COMM_WORLD.
    """

    def __init__(self, communicator: Any = None) -> None:
        self._mpi = MPI = started_mpi()
        self.communicator = (MPI.COMM_WORLD if communicator is None else communicator).Dup()
        self.rank = int(self.communicator.rank)
        self.size = int(self.communicator.size)
        self._patient = longest_nap() > 0
        node = self.communicator.Split_type(MPI.COMM_TYPE_SHARED)
        self.leads_node = node.rank == 0
        self.node = int(node.bcast(self.rank))
        node.Free()
        if self.size > 1:
            sys.excepthook = self._end_all

    def _end_all(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """End the job after an uncaught exception: the other ranks would otherwise wait for this one forever."""
        self.abort(error.with_traceback(trace))

    def __repr__(self) -> str:
        return f"MPIComm(rank {self.rank} of {self.size})"

    def channel(self, sends: Sequence[Envelope], receives: Sequence[Envelope], tag: int) -> Channel:
        """Return a channel for messages that are sent and received repeatedly.

        Parameters
        ----------
        sends, receives
            The messages: their partner and memory.
        tag
            The tag of all messages of the channel.

        Returns
        -------
        Channel
            The channel.
        """
        return MPIChannel(self._mpi, self.communicator, sends, receives, tag)

    def allreduce(self, words: np.ndarray, operation: Operation) -> None:
        """Combine words of all ranks in place.

        Parameters
        ----------
        words
            An array, equal in shape on all ranks.
        operation
            The reduction.
        """
        kind = {"sum": self._mpi.SUM, "max": self._mpi.MAX, "min": self._mpi.MIN}[operation]
        if self._patient:
            wait_until(self.communicator.Iallreduce(self._mpi.IN_PLACE, [words, self._mpi.INT64_T], op=kind).Test)
        else:
            self.communicator.Allreduce(self._mpi.IN_PLACE, [words, self._mpi.INT64_T], op=kind)

    def gather(self, value: Any) -> list[Any] | None:
        """Gather one value from each rank on rank 0. Collective.

        Parameters
        ----------
        value
            Any value that can be pickled.

        Returns
        -------
        list or None
            The values in rank order on rank 0, None on the others.
        """
        self._meet()
        result: list[Any] | None = self.communicator.gather(value, root=0)
        return result

    def bcast(self, value: Any) -> Any:
        """Send a value from rank 0 to all ranks. Collective.

        Parameters
        ----------
        value
            Any value that can be pickled; only that of rank 0 is used.

        Returns
        -------
        object
            The value of rank 0.
        """
        self._meet()
        return self.communicator.bcast(value, root=0)

    def barrier(self) -> None:
        """Wait until all ranks have called this."""
        if self._patient:
            self._meet()
        else:
            self.communicator.Barrier()

    def _meet(self) -> None:
        """Let patient ranks sleep until all have arrived: MPI's own calls poll continuously."""
        if self._patient:
            wait_until(self.communicator.Ibarrier().Test)

    def abort(self, error: BaseException) -> None:
        """End all ranks because of an error on this one.

        Parameters
        ----------
        error
            The error.
        """
        text = "".join(traceback.format_exception(error))
        sys.stderr.write(f"rank {self.rank} of {self.size} failed; the job ends.\n{text}")
        sys.stderr.flush()
        end_job(self.communicator, 1)


@contextlib.contextmanager
def complaining(seconds: float, text: str) -> Iterator[None]:
    """Write a text to standard error if the block, which waits for others, takes longer; nothing if it is empty."""
    timer = threading.Timer(seconds, sys.stderr.write, (text,))
    timer.daemon = True
    if text:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def end_job(communicator: Any, status: int) -> NoReturn:
    """End all ranks of an mpi4py communicator, this one at once."""
    communicator.Abort(status)
    os._exit(status)  # with ranks on several hosts MPICH's Abort returns and leaves the rest to the launcher


class MPIChannel:
    """Persistent MPI requests. `requests` keeps mpi4py's objects; the native loop uses their handles."""

    def __init__(
        self, mpi: Any, communicator: Any, sends: Sequence[Envelope], receives: Sequence[Envelope], tag: int
    ) -> None:
        self._mpi = mpi
        self.sends = tuple(sends)
        self.started = np.zeros(1, np.int64)
        self.requests = [communicator.Recv_init([r.buffer, mpi.BYTE], r.peer, tag) for r in receives]
        self.requests += [communicator.Send_init([s.buffer, mpi.BYTE], s.peer, tag) for s in sends]

    def start(self) -> None:
        """Start all requests."""
        if self.requests:
            self._mpi.Prequest.Startall(self.requests)
            self.started += 1

    def test(self) -> bool:
        """Make progress; return True when all messages are complete."""
        return bool(self._mpi.Request.Testall(self.requests)) if self.requests else True

    def wait(self) -> None:
        """Complete all messages."""
        # Waitall spins: with more ranks than cores it would keep the rank it waits for from running.
        wait_until(self.test)

    def close(self) -> None:
        """Free the requests."""
        for request in self.requests:
            request.Free()
        self.requests = []


class MPIBroadcast:
    """Broadcasts of bytes, each from its root to all ranks.

    `requests` are persistent if the library supports that (MPI 4); otherwise requests are created at every start, and
    `requests` is empty. `prepare` is collective: all ranks call it for the same broadcasts in the same order, before
    the first start.
    """

    def __init__(
        self, mpi: Any, communicator: Any, parts: Sequence[tuple[int, np.ndarray]], sends: Sequence[Envelope]
    ) -> None:
        self._mpi, self._communicator, self._parts = mpi, communicator, tuple(parts)
        self.sends = tuple(sends)
        self.started = np.zeros(1, np.int64)
        self.requests: list[Any] = []
        self._made: list[Any] = []

    def prepare(self) -> None:
        """Create persistent requests if the library supports them. Collective."""
        begin = self._communicator.Bcast_init
        with contextlib.suppress(NotImplementedError):
            self.requests = [begin([buffer, self._mpi.BYTE], root=root) for root, buffer in self._parts]

    def start(self) -> None:
        """Start all broadcasts."""
        for request in self.requests:
            request.Start()
        if not self.requests:
            begin = self._communicator.Ibcast
            self._made = [begin([buffer, self._mpi.BYTE], root=root) for root, buffer in self._parts]
        self.started += 1

    def test(self) -> bool:
        """Make progress; return True when all broadcasts are complete."""
        # One by one, and all of them: MPICH 5.0 fails to test several persistent collectives at once.
        return sum(not request.Test() for request in (*self.requests, *self._made)) == 0

    def wait(self) -> None:
        """Complete all broadcasts."""
        wait_until(self.test)

    def close(self) -> None:
        """Free the persistent requests."""
        for request in self.requests:
            request.Free()
        self.requests, self._made = [], []
