"""What the engine adds to an iteration that is almost nothing: seven kernels of a microsecond, an exchange, a sum.

    python -m benchmarks.tiny_iteration [--out FILE]

starts two MPI ranks, which run the same iteration of 13 commands in several ways: `raw_wait` and `raw_test`, one native
function that calls the kernels and MPI directly and waits with MPI_Waitall or by repeating MPI_Test; `native`, the
engine's loop; `python`, the interpreter. All times are microseconds an iteration, the least of many repetitions, as
everything else that a machine does only adds. The engine's overhead is counted from the faster raw way.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from llvmlite import ir

from minga.engine.comm import Envelope, MPIChannel, MPIComm
from minga.engine.command import Allreduce, Category, Command, Count, End, JumpIf, Kernel, Rotate, Start, Wait
from minga.engine.emit import Code, Word, load
from minga.engine.interpret import interpret, new_ledger
from minga.engine.mpi_handles import Handles, mpi_functions
from minga.engine.native import NativeLoop
from minga.engine.workers import Workers, nanoseconds_per_tick

RANKS = 2
KERNELS_BEFORE, KERNELS_BETWEEN, KERNELS_AFTER = 1, 4, 2
ROUNDS = 450
"""Dependent multiplications of a kernel: about a microsecond."""
MESSAGE_BYTES = 1024


def native_functions() -> tuple[dict[str, int], object]:
    """A kernel that only takes time, and the whole iteration without an engine."""
    module = ir.Module("tiny_iteration")
    kernel = Code(module, "kernel", 3)
    args = kernel.arguments[0]
    value = kernel.variable(kernel.load(args))
    with kernel.loop(ROUNDS):
        value.set((value.get() ^ value.get().shift_in_zeros(29)) * 6364136223846793005)
    kernel.store(value.get(), args)
    kernel.finish()
    return load(module, [kernel, _raw(module, "raw_wait"), _raw(module, "raw_test")])


def _raw(module: ir.Module, name: str) -> Code:
    """name(words): the words are the parameters below, in this order."""
    code = Code(module, name, 1)
    words = [code.load(code.arguments[0] + 8 * k) for k in range(11)]
    iterations, kernel, args, requests, count, size, collective, startall, waitall, test, statuses = words
    flag = code.memory(1)

    def kernels(number: int) -> None:
        for _ in range(number):
            code.call(kernel, args, 0, 0)

    def wait(count: Word | int, requests: Word) -> None:
        if name == "raw_wait":
            code.call(waitall, count, requests, statuses, returns=32)
            return
        with code.loop(count) as number:
            code.store(0, flag)
            with code.repeat(lambda: code.load(flag, bits=32).equals(0)):
                code.call(test, requests + number * size, flag, statuses, returns=32)

    with code.loop(iterations):
        kernels(KERNELS_BEFORE)
        code.call(startall, count, requests, returns=32)
        kernels(1)
        wait(count, requests)
        kernels(KERNELS_BETWEEN - 1)
        code.call(startall, 1, collective, returns=32)
        wait(1, collective)
        kernels(KERNELS_AFTER)
    code.finish()
    return code


class Iteration:
    """The memory, messages and commands of one rank."""

    def __init__(self, comm: MPIComm) -> None:
        self.comm = comm
        peer = (comm.rank + 1) % comm.size
        data = np.zeros((2, MESSAGE_BYTES), np.uint8)
        self.channel = comm.channel([Envelope(peer, data[0])], [Envelope(peer, data[1])], 0)
        self.sum = np.zeros(1, np.int64)
        self.args, self.slots, self.flags = np.ones(1, np.int64), np.zeros(2, np.int64), np.zeros(8, np.uint8)
        self.counter = np.zeros(2, np.int64)
        self.functions, self._owner = native_functions()

    def commands(self) -> list[Command]:
        """One iteration of 13 commands, and the End behind it."""
        kernel = Kernel(self.functions["kernel"], self.args.ctypes.data, 1, Category.COMPUTE, "kernel")
        inside = Kernel(kernel.function, kernel.args, 1, Category.COMPUTE, "interior", (self.channel,))
        counter = self.counter.ctypes.data
        commands: list[Command] = [kernel] * KERNELS_BEFORE + [Start(self.channel), inside, Wait(self.channel)]
        commands += [kernel] * (KERNELS_BETWEEN - 1) + [Allreduce(self.sum, "sum")] + [kernel] * (KERNELS_AFTER - 1)
        commands += [kernel, Rotate((self.slots.ctypes.data,), 2), JumpIf(self.flags.ctypes.data, True, 13)]
        commands += [Count(counter, counter + 8, 0), End(0)]
        assert len(commands) == 14
        return commands

    def raw(self, name: str) -> Callable[[int], None]:
        handles = Handles(self.comm)
        assert isinstance(self.channel, MPIChannel)
        count, requests = handles.channel(self.channel)
        collective = handles.collective(Allreduce(self.sum, "sum"))
        assert collective is not None, "this measurement needs an MPI library with persistent collectives (MPI 4)"
        from mpi4py import MPI

        waitall = ctypes.cast(ctypes.CDLL(MPI.__file__).MPI_Waitall, ctypes.c_void_p).value
        statuses = np.zeros(1024, np.int64)
        words = np.array(
            [
                0,
                self.functions["kernel"],
                self.args.ctypes.data,
                requests,
                count,
                handles.request_bytes,
                collective[1],
                mpi_functions()["MPI_Startall"],
                waitall,
                mpi_functions()["MPI_Test"],
                statuses.ctypes.data,
            ]
        )
        function = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self.functions[name])

        def run(iterations: int, keep: object = (handles, statuses)) -> None:
            words[0] = iterations
            function(words.ctypes.data)

        return run

    def counted(self, run: Callable[[], int]) -> Callable[[int], None]:
        def iterations(number: int) -> None:
            self.counter[:] = 0, number
            run()

        return iterations

    def kernel_alone(self) -> float:
        """Microseconds of one kernel."""
        kernel = Kernel(self.functions["kernel"], self.args.ctypes.data, 1, Category.COMPUTE, "kernel")
        ledger = new_ledger()
        best = np.inf
        with Workers() as workers, NativeLoop([kernel] * 1000 + [End(0)], self.comm, workers, ledger) as loop:
            for _ in range(20):
                ledger[...] = 0
                loop.run()
                best = min(best, ledger[0, Category.COMPUTE] / 1e6)
        return float(best)


def measure(repetitions: int, iterations: int) -> dict[str, object] | None:
    """On rank 0 what was measured, elsewhere None."""
    comm = MPIComm()
    iteration = Iteration(comm)
    ledger = new_ledger()
    with Workers() as workers, NativeLoop(iteration.commands(), comm, workers, ledger) as loop:
        ways = {
            "raw_wait": iteration.raw("raw_wait"),
            "raw_test": iteration.raw("raw_test"),
            "native": iteration.counted(loop.run),
            "python": iteration.counted(lambda: interpret(iteration.commands(), comm, workers)),
        }
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(repetitions):  # in turn, so that a busy moment does not meet one way only
            for name, way in ways.items():
                comm.barrier()
                start = time.perf_counter_ns()
                way(iterations)
                best[name] = min(best[name], (time.perf_counter_ns() - start) / 1000 / iterations)
        kernel = iteration.kernel_alone()
    kernels = KERNELS_BEFORE + KERNELS_BETWEEN + KERNELS_AFTER
    return (
        {
            "ranks": comm.size,
            "commands": 13,
            "kernels": kernels,
            "microseconds": {
                "kernel": round(kernel, 3),
                **{name: round(time, 3) for name, time in best.items()},
                "engine_overhead": round(best["native"] - min(best["raw_wait"], best["raw_test"]), 3),
            },
            "clock_nanoseconds_per_tick": nanoseconds_per_tick(),
            "library": library(),
            "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "system": platform.platform()},
        }
        if comm.rank == 0
        else None
    )


def library() -> str:
    from mpi4py import MPI

    return str(MPI.Get_library_version()).splitlines()[0].strip("\x00 ")


def launch(arguments: list[str], output: int | None = None) -> int:
    """Start the ranks with the launcher that lies beside this Python, or else the first one on the path."""
    beside = Path(sys.prefix) / "bin" / "mpiexec"
    launcher = str(beside) if beside.exists() else "mpiexec"
    command = [launcher, "-n", str(RANKS), sys.executable, "-m", "benchmarks.tiny_iteration", "--rank", *arguments]
    return subprocess.run(command, check=False, cwd=Path(__file__).parent.parent, stdout=output).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description="Engine overhead of a tiny iteration on two MPI ranks")
    parser.add_argument("--out", type=Path, help="store the numbers in this JSON file as well as printing them")
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.rank:
        return launch(sys.argv[1:])
    found = measure(options.repetitions, options.iterations)
    if found is not None:
        text = json.dumps(found, indent=2)
        print(text)
        if options.out is not None:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
