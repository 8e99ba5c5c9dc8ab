"""The native run loop: a list of commands encoded as words, executed without Python between them.

It calls MPI through the addresses of its functions in the library that mpi4py has loaded. If that or anything else it
needs is missing, `unsupported` returns the reason, and :mod:`minga.engine.interpret` executes the same list.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from minga.engine import loop_code as words
from minga.engine.comm import Channel, Comm, MPIBroadcast, MPIChannel, MPIComm, SerialComm
from minga.engine.command import (
    Allreduce,
    Call,
    Category,
    Command,
    Count,
    End,
    Fetch,
    Jump,
    JumpIf,
    Kernel,
    Launch,
    Rotate,
    Set,
    Start,
    Switch,
    Synchronise,
    Wait,
)
from minga.engine.device import Device
from minga.engine.events import EventLog
from minga.engine.interpret import INTERRUPTED, LEFT, Ledger, new_ledger, past_the_end
from minga.engine.interrupt import NEVER, InterruptPoll
from minga.engine.launching import Launcher
from minga.engine.waiting import BEFORE_OTHERS, NAP_SHARE, SHORTEST_NAP, longest_nap
from minga.engine.workers import Workers, nanoseconds_per_tick
from minga.errors import RunError

if TYPE_CHECKING:
    from minga.engine.mpi_handles import Handles

POLL_NANOSECONDS: Final = 20_000, 500_000
"""Shortest and longest time between two polls of channels in flight by default. In half a millisecond a socket's
buffer of 64 KiB does not run empty at 1 Gb/s."""
_PAST_THE_END: Final = -(1 << 62)
"""Reason of the End that follows every list."""
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


def unsupported(comm: Comm, workers: Workers) -> str | None:
    """Return the reason why the native loop cannot run a Program of these ranks and workers, or None if it can."""
    if not words.is_supported():
        return "native code for running programs is made on Linux, for x86-64 and 64-bit Arm"
    if not workers.native:
        return "the workers wait in Python"
    if isinstance(comm, SerialComm):
        return None
    if not isinstance(comm, MPIComm):
        return "the ranks are threads of one process"
    from minga.engine.mpi_handles import mpi_functions

    try:
        mpi_functions()
    except (OSError, AttributeError) as error:
        return f"the functions of the MPI library were not found: {error}"
    return None


class NativeLoop:
    """A list of commands ready to be run natively, any number of times, by one thread.

    `ledger` (shape and meaning: `minga.engine.interpret.Ledger`) is added to. `stop` is one word: if it is not 0, the
    list is left at the next Count. Every command that takes time is recorded in `events`, which must be created for
    native code. Channels in flight are polled between tiles, at least and at most `poll` nanoseconds after the last
    poll: the longer that one took, the later the next (through TCP a poll is a system call). Over MPI, creating and
    closing a loop are collective: all ranks have the same Allreduce commands in the same order. RunError is raised if
    `unsupported` returns a reason.
    """

    def __init__(
        self,
        commands: Sequence[Command],
        comm: Comm,
        workers: Workers,
        ledger: Ledger | None = None,
        stop: NDArray[np.int64] | None = None,
        events: EventLog | None = None,
        poll: tuple[int, int] = POLL_NANOSECONDS,
        device: Device | None = None,
        interrupt: InterruptPoll | None = None,
    ) -> None:
        reason = unsupported(comm, workers)
        if reason is not None:
            raise RunError(f"the native loop cannot be used: {reason}", remedy="run with native=False")
        self._commands = tuple(commands)
        self._ledger = new_ledger() if ledger is None else ledger
        self._booked = np.zeros_like(self._ledger)
        self._poll = poll
        self._stop = np.zeros(1, np.int64) if stop is None else stop
        self._events = events
        self._interrupt = interrupt
        self._first_event = 0 if events is None else events.register(self._commands)
        self._kept: list[object] = [workers]
        self._launcher = None if device is None else Launcher(device)
        self._handles: Handles | None = None
        self._functions: dict[str, int] = {}
        if isinstance(comm, MPIComm):
            from minga.engine.mpi_handles import Handles, mpi_functions

            self._handles, self._functions = Handles(comm), mpi_functions()
        self._polls: dict[tuple[int, ...], int] = {}
        self._records = np.zeros((len(self._commands) + 1, words.RECORD_WORDS), np.int64)
        for number, command in enumerate(self._commands):
            record = self._encode(number, command)
            self._records[number, : len(record)] = record
            if isinstance(command, Kernel) and command.site is not None:
                command.site.words.append(self._records[number, 1:2])
        self._records[-1, :2] = words.OP_END, _PAST_THE_END
        self._context = self._make_context(workers)
        self._address = int(self._context.ctypes.data)
        self._run = _RUN(words.loop_functions().run)
        self._units = np.array([[nanoseconds_per_tick()], [1.0]])

    def run(self) -> int:
        """Run the commands and return the reason of the End that was reached, INTERRUPTED or LEFT.

        Raise RunError if an MPI function fails, or the list ends without an End. Python's lock is released meanwhile.
        """
        context = self._context
        context[words.AT] = 0
        context[words.LOOK] = NEVER if self._interrupt is None else self._interrupt.begin()
        try:
            while (status := self._run(self._address)) in (words.CALLED, words.LOOKING):
                if status == words.CALLED:
                    self._call(int(context[words.AT]) - 1)
                elif not self._goes_on():
                    return LEFT
        finally:
            self._book()
        if status == words.STOPPED:
            return INTERRUPTED
        if status == words.FAILED:
            raise self._failure(int(context[words.AT]), int(context[words.DETAIL]))
        reason = int(context[words.DETAIL])
        if reason == _PAST_THE_END:
            raise past_the_end(len(self._commands))
        return reason

    def _book(self) -> None:
        """Add what native code has counted to the ledger."""
        self._ledger += (self._booked * self._units).astype(np.int64)
        self._booked[...] = 0

    def close(self) -> None:
        """Free the requests that were created for this list; its channels have other owners."""
        if self._handles is not None:
            self._handles.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _goes_on(self) -> bool:
        """Return True if all ranks, which call this together, let the list continue."""
        assert self._interrupt is not None
        self._context[words.LOOK] = rounds = self._interrupt()
        return rounds > 0

    def _call(self, number: int) -> None:
        """Execute a command that needs Python: a function of the model, or messages that are not MPI requests."""
        command = self._commands[number]
        assert isinstance(command, Call | Start | Wait)
        start = time.perf_counter_ns()
        match command:
            case Call():
                self._book()
                command.function()
                category = command.category
            case Start():
                command.channel.start()
                category = Category.SEND
            case Wait():
                command.channel.wait()
                category = Category.WAIT
        spent = time.perf_counter_ns() - start
        self._ledger[:, category] += spent, 1
        if self._events is not None:
            self._events.add_ended(self._first_event + number, spent)

    def _failure(self, number: int, code: int) -> RunError:
        if isinstance(self._commands[number], Launch | Synchronise | Fetch):
            assert self._launcher is not None
            return self._launcher.failure(self._commands[number], code)
        assert self._handles is not None
        return RunError(
            f"MPI reports an error: {self._handles.error(code)}",
            where=f"command {number}, {type(self._commands[number]).__name__}",
            remedy="see the output of the other ranks; often one of them has ended",
        )

    # encoding --------------------------------------------------------------------------------------------------------
    def _encode(self, number: int, command: Command) -> tuple[int, ...]:
        """Return the words of a command; a command without effect becomes a jump to the next one."""
        return _ENCODERS[type(command)](self, command) or (words.OP_JUMP, number + 1)

    def _kernel(self, command: Kernel) -> tuple[int, ...]:
        polls = self._poll_list(command.polls)
        return words.OP_KERNEL, command.present, command.args, command.tiles, command.column, polls

    def _on_device(self, command: Launch | Synchronise | Fetch) -> tuple[int, ...]:
        assert self._launcher is not None
        return self._launcher.encode(command)

    def _start(self, command: Start) -> tuple[int, ...] | None:
        if self._needs_python(command.channel):
            return (words.OP_CALL,)
        record = self._on_channel(words.OP_START, command.channel)
        return None if record is None else (*record, int(command.channel.started.ctypes.data))

    def _wait(self, command: Wait) -> tuple[int, ...] | None:
        if self._needs_python(command.channel):
            return (words.OP_CALL,)
        return self._on_channel(words.OP_WAIT, command.channel)

    def _rotate(self, command: Rotate) -> tuple[int, ...]:
        return words.OP_ROTATE, len(command.tables), self._array(command.tables), command.slots

    def _switch(self, command: Switch) -> tuple[int, ...]:
        return words.OP_SWITCH, command.address, len(command.targets), self._array(command.targets or (0,))

    def _needs_python(self, channel: Channel) -> bool:
        if self._handles is None or isinstance(channel, MPIChannel):
            return False
        return not isinstance(channel, MPIBroadcast) or not channel.requests

    def _on_channel(self, operation: int, channel: Channel) -> tuple[int, ...] | None:
        if self._handles is None or not isinstance(channel, MPIChannel | MPIBroadcast) or not channel.requests:
            return None
        return operation, *self._handles.channel(channel)

    def _allreduce(self, command: Allreduce) -> tuple[int, ...] | None:
        if self._handles is None:
            return None
        array = command.words
        if array.dtype != np.int64 or not array.flags.c_contiguous:
            raise ValueError(f"Allreduce takes contiguous int64 words, found {array.dtype} {array.strides} bytes apart")
        persistent = self._handles.collective(command)
        if persistent is not None:
            return words.OP_COLLECTIVE, *persistent
        return words.OP_ALLREDUCE, *self._handles.blocking(command)

    def _poll_list(self, channels: Sequence[Channel]) -> int:
        """Return the address of the list of the channels' requests, or 0 if there is nothing to poll."""
        busy = [channel for channel in channels if isinstance(channel, MPIChannel | MPIBroadcast) and channel.requests]
        if self._handles is None or not busy:
            return 0
        key = tuple(id(channel) for channel in busy)
        if key not in self._polls:
            least, most = (int(nanoseconds / nanoseconds_per_tick()) for nanoseconds in self._poll)
            test, status, size = self._functions["MPI_Test"], self._handles.status, self._handles.request_bytes
            pairs = [word for channel in busy for word in self._handles.channel(channel)]
            self._polls[key] = self._array((test, status, size, least, least, most, 0, len(busy), *pairs))
        return self._polls[key]

    def _array(self, values: Sequence[int]) -> int:
        """Return the address of the values, stored as words that live as long as this loop."""
        array = np.array(values, np.int64)
        self._kept.append(array)
        return int(array.ctypes.data)

    def _make_context(self, workers: Workers) -> NDArray[np.int64]:
        context = np.zeros(words.CONTEXT_WORDS, np.int64)
        context[words.RECORDS] = self._records.ctypes.data
        context[words.CONTROL] = workers.control
        context[words.WORKER] = workers.words(0)
        context[words.TICKS] = self._booked[0].ctypes.data
        context[words.COUNTS] = self._booked[1].ctypes.data
        context[words.STOP_ADDRESS] = self._stop.ctypes.data
        context[words.EVENTS] = 0 if self._events is None else self._events.address
        context[words.FIRST_EVENT] = self._first_event
        if self._handles is not None:
            functions = self._functions
            context[words.START] = functions["MPI_Start"]
            context[words.STARTALL] = functions["MPI_Startall"]
            context[words.TEST] = functions["MPI_Test"]
            context[words.ALLREDUCE] = functions["MPI_Allreduce"]
            context[words.STATUS] = self._handles.status
            context[words.REQUEST_BYTES] = self._handles.request_bytes
            context[words.PATIENCE] = int(BEFORE_OTHERS / nanoseconds_per_tick())
            context[words.NAP] = longest_nap()
            context[words.NAP_LEAST] = SHORTEST_NAP
            context[words.NAP_TICKS] = max(1, int(NAP_SHARE * 1000 / nanoseconds_per_tick()))
            context[words.USLEEP] = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p).value or 0
            context[words.INT64] = self._handles.int64
            context[words.COMMUNICATOR] = self._handles.communicator
        return context


_ENCODERS: Final[dict[type, Callable[[NativeLoop, Any], tuple[int, ...] | None]]] = {
    Kernel: NativeLoop._kernel,
    Launch: NativeLoop._on_device,
    Synchronise: NativeLoop._on_device,
    Fetch: NativeLoop._on_device,
    Start: NativeLoop._start,
    Wait: NativeLoop._wait,
    Allreduce: NativeLoop._allreduce,
    Rotate: NativeLoop._rotate,
    Jump: lambda loop, jump: (words.OP_JUMP, jump.target),
    JumpIf: lambda loop, jump: (words.OP_JUMP_IF, jump.address, int(jump.when), jump.target),
    Switch: NativeLoop._switch,
    Set: lambda loop, command: (words.OP_SET, command.address, command.value),
    Count: lambda loop, c: (words.OP_COUNT, c.counter, c.limit, c.target, c.rounds, c.looks),
    Call: lambda loop, call: (words.OP_CALL,),
    End: lambda loop, end: (words.OP_END, end.reason),
}
"""Functions that return the words of each kind of command, or None for a command without effect."""
