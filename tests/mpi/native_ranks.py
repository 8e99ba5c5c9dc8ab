"""Run on MPI ranks by test_native_mpi.py: `native_ranks.py CHECK`; each check asserts and then prints "ok"."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
import pytest

from minga.engine.comm import Envelope, MPIComm
from minga.engine.command import Allreduce, Call, Category, Command, Count, End, Kernel, Start, Wait
from minga.engine.interpret import interpret, new_ledger
from minga.engine.mpi_handles import Handles, mpi_functions
from minga.engine.native import NativeLoop, unsupported
from minga.engine.workers import Workers
from minga.errors import RunError
from native_kernels import kernels


class Ring:
    """Each rank sends to both neighbours, adds what it got, and reduces; many rounds."""

    def __init__(self, comm: MPIComm, size: int, threads: int = 1) -> None:
        self.comm = comm
        left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
        self.out = np.full((2, size), comm.rank + 1, np.int64)
        self.into = np.zeros((2, size), np.int64)
        data = [self.out.view(np.uint8), self.into.view(np.uint8)]
        self.channels = [
            comm.channel([Envelope(right, data[0][0])], [Envelope(left, data[1][0])], 0),
            comm.channel([Envelope(left, data[0][1])], [Envelope(right, data[1][1])], 1),
        ]
        self.total, self.low, self.high = (np.zeros(n, np.int64) for n in (3, 1, 1))
        # Ranks that share cores take turns, which costs time.
        self.counts = np.array([0, 300 if comm.size <= 2 else 15])
        self.table = np.zeros(40, np.int64)
        self.args = np.array([self.table.ctypes.data, 2000])

    def add(self) -> None:
        """In the middle of a round: what arrived decides what is sent next."""
        assert (self.into[0] == self.into[0, 0]).all()
        self.out[...] = (self.into[:, :1] * 3 + self.comm.rank) % 1000
        self.total[:] = self.into[0, 0], 1, self.comm.rank
        self.low[0] = self.high[0] = self.into[1, 0]

    def commands(self) -> list[Command]:
        slow = Kernel(
            kernels().slow, self.args.ctypes.data, len(self.table), Category.COMPUTE, "slow", tuple(self.channels)
        )
        counter = self.counts.ctypes.data
        return [
            Start(self.channels[0]),
            Start(self.channels[1]),
            slow,
            Wait(self.channels[1]),
            Wait(self.channels[0]),
            Call(self.add, "add"),
            Allreduce(self.total, "sum"),
            Allreduce(self.low, "min"),
            Allreduce(self.high, "max"),
            Count(counter, counter + 8, 0),
            End(4),
        ]

    def state(self) -> list[list[int]]:
        arrays = (self.out, self.into, self.total, self.low, self.high, self.counts, self.table)
        return [array.ravel().tolist() for array in arrays]

    def close(self) -> None:
        for channel in self.channels:
            channel.close()


def check_same_as_interpreted(comm: MPIComm) -> None:
    for size in (1, 500, 20_000):  # sent at once, and by agreement first
        for threads in (1, 2):
            states = []
            for native in (True, False):
                ring, ledger = Ring(comm, size), new_ledger()
                with Workers(threads) as workers:
                    assert unsupported(comm, workers) is None
                    if native:
                        with NativeLoop(ring.commands(), comm, workers, ledger) as loop:
                            assert loop.run() == 4
                    else:
                        assert interpret(ring.commands(), comm, workers, ledger) == 4
                rounds = int(ring.counts[1])
                assert ledger[1].tolist() == [rounds, 0, 0, 2 * rounds, 2 * rounds, 3 * rounds, rounds, 0, 0]
                states.append(ring.state())
                ring.close()
            assert states[0] == states[1]


def check_runs_again_and_frees(comm: MPIComm) -> None:
    ring = Ring(comm, 10)
    ring.counts[1] = 2
    with Workers() as workers:
        for _ in range(50):
            loop = NativeLoop(ring.commands(), comm, workers)
            for _ in range(3):
                ring.counts[0] = 0
                assert loop.run() == 4
            loop.close()
    ring.close()
    comm.barrier()


def check_without_persistent_collectives(comm: MPIComm) -> None:
    """The blocking function, which libraries before MPI 4 have."""

    def none(self: Handles, command: Allreduce) -> None:
        return None

    persistent: Callable[..., tuple[int, int] | None] = Handles.collective
    states = []
    for way in (persistent, none):
        Handles.collective = way  # type: ignore[method-assign]
        ring = Ring(comm, 10)
        with Workers() as workers, NativeLoop(ring.commands(), comm, workers) as loop:
            assert loop.run() == 4
        states.append(ring.state())
        ring.close()
    assert states[0] == states[1]


def check_mpi_errors_are_run_errors(comm: MPIComm) -> None:
    """Receiving less room than is sent is an error that MPI reports on waiting."""
    sent, room = np.zeros(64, np.uint8), np.zeros(8, np.uint8)
    peer = (comm.rank + 1) % comm.size
    back = (comm.rank - 1) % comm.size
    channel = comm.channel([Envelope(peer, sent)], [Envelope(back, room)], 0)
    with (
        Workers() as workers,
        NativeLoop([Start(channel), Wait(channel), End(0)], comm, workers) as loop,
        pytest.raises(RunError, match="MPI reports an error") as caught,
    ):
        loop.run()
    assert "command 1, Wait" in str(caught.value)


def check_functions_are_found(comm: MPIComm) -> None:
    addresses = mpi_functions()
    assert len(addresses) == len(set(addresses.values())) == 4
    assert all(addresses.values())


def main(arguments: Sequence[str]) -> None:
    comm = MPIComm()
    for check in arguments:
        globals()[f"check_{check}"](comm)
        print("ok")


if __name__ == "__main__":
    main(sys.argv[1:])
