"""Interpreter of command lists in Python: the reference for the native loop, for any kind of rank."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm
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
from minga.engine.interrupt import NEVER, InterruptPoll
from minga.engine.workers import Workers
from minga.errors import RunError

INTERRUPTED: Final = -1
"""Result of a run that found the stop word set at a Count command."""
LEFT: Final = -2
"""Result of a run that was left because all ranks agreed to at an interrupt."""
Ledger = NDArray[np.int64]
"""Nanoseconds spent and commands completed, by `Category`, then by timed block, of shape (2, categories + blocks)."""


def new_ledger(blocks: int = 0) -> Ledger:
    """Return an empty ledger with columns for a number of blocks that are timed separately."""
    return np.zeros((2, len(Category) + blocks), np.int64)


def interpret(
    commands: Sequence[Command],
    comm: Comm,
    workers: Workers | None = None,
    ledger: Ledger | None = None,
    stop: NDArray[np.int64] | None = None,
    events: EventLog | None = None,
    first_event: int = 0,
    device: Device | None = None,
    interrupt: InterruptPoll | None = None,
) -> int:
    """Run commands from the first one on, and return the reason of the End that was reached.

    Parameters
    ----------
    commands
        The list to run.
    comm, workers
        The ranks that run their lists together, and the threads of this one.
    ledger
        The ledger that times are added to.
    stop
        One word: if it is not 0, the list is left at the next Count with the reason INTERRUPTED.
    events, first_event
        Log created for Python's clock, in which the commands are entries from `first_event` on.
    device
        GPU that the list launches on.
    interrupt
        Called after some Counts to decide on leaving the list.

    Raises
    ------
    RunError
        If the list runs past its last command.
    """
    if workers is None:
        with Workers() as own:
            return interpret(commands, comm, own, ledger, stop, events, first_event, device, interrupt)
    ledger = new_ledger() if ledger is None else ledger
    run = _Run(comm, workers, device, stop, interrupt, NEVER if interrupt is None else interrupt.begin())
    last = time.perf_counter_ns()
    while run.at < len(commands):
        number, command = run.at, commands[run.at]
        run.at += 1
        column = _MEANING[type(command)](run, command)
        if run.reason is not None:
            return run.reason
        if column is not None:
            now = time.perf_counter_ns()
            ledger[0, column] += now - last
            ledger[1, column] += 1
            if events is not None:
                events.add(first_event + number, last, now)
            last = now
    raise past_the_end(len(commands))


def past_the_end(length: int) -> RunError:
    """Return the error of a list that reaches its last command without an End."""
    return RunError(f"the program ran past its last command, number {length - 1}", remedy="end it with End")


@dataclass(slots=True)
class _Run:
    """The state of one run of a list.

    Each method executes one kind of command and returns the ledger column of its time, or None for a command that takes
    no significant time.
    """

    comm: Comm
    workers: Workers
    device: Device | None
    stop: NDArray[np.int64] | None
    interrupt: InterruptPoll | None
    rounds: int
    """Number of Counts until the next interrupt."""
    at: int = 0
    """Position of the next command."""
    reason: int | None = None
    """Result of the run, once it has ended."""

    def kernel(self, command: Kernel) -> int:
        self.workers.run(command.present, command.args, command.tiles)
        for channel in command.polls:
            channel.test()
        return command.column

    def launch(self, command: Launch) -> int:
        assert self.device is not None
        self.device.launch(command.function, command.grid, command.threads, command.args)
        return command.column

    def synchronise(self, command: Synchronise) -> int:
        assert self.device is not None
        self.device.synchronise()
        return command.column

    def fetch(self, command: Fetch) -> int:
        assert self.device is not None
        self.device.fetch(command.source, command.target, command.size)
        return Category.COMPUTE

    def start(self, command: Start) -> int:
        command.channel.start()
        return Category.SEND

    def wait(self, command: Wait) -> int:
        command.channel.wait()
        return Category.WAIT

    def allreduce(self, command: Allreduce) -> int:
        self.comm.allreduce(command.words, command.operation)
        return Category.REDUCE

    def call(self, command: Call) -> int:
        command.function()
        return command.category

    def rotate(self, command: Rotate) -> None:
        for address in command.tables:
            table = (ctypes.c_int64 * command.slots).from_address(address)
            first = table[0]
            for slot in range(command.slots - 1):
                table[slot] = table[slot + 1]
            table[command.slots - 1] = first

    def set(self, command: Set) -> None:
        _word(command.address).value = command.value

    def jump(self, command: Jump) -> None:
        self.at = command.target

    def jump_if(self, command: JumpIf) -> None:
        if (ctypes.c_uint8.from_address(command.address).value != 0) == command.when:
            self.at = command.target

    def switch(self, command: Switch) -> None:
        chosen = _word(command.address).value
        if 0 <= chosen < len(command.targets):
            self.at = command.targets[chosen]

    def count(self, command: Count) -> None:
        counter = _word(command.counter)
        fits = counter.value + command.rounds < _word(command.limit).value
        if not fits and command.rounds > 1:
            return
        counter.value += command.rounds
        if fits:
            self.at = command.target
        self.rounds -= command.looks
        if self.stop is not None and self.stop[0]:
            self.reason = INTERRUPTED
        elif self.rounds <= 0 and self.interrupt is not None:
            self.rounds = self.interrupt()
            if not self.rounds:
                self.reason = LEFT

    def end(self, command: End) -> None:
        self.reason = command.reason


_MEANING: Final[dict[type, Callable[[_Run, Any], int | None]]] = {
    Kernel: _Run.kernel,
    Launch: _Run.launch,
    Synchronise: _Run.synchronise,
    Fetch: _Run.fetch,
    Start: _Run.start,
    Wait: _Run.wait,
    Allreduce: _Run.allreduce,
    Call: _Run.call,
    Rotate: _Run.rotate,
    Set: _Run.set,
    Jump: _Run.jump,
    JumpIf: _Run.jump_if,
    Switch: _Run.switch,
    Count: _Run.count,
    End: _Run.end,
}


def _word(address: int) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(address)
