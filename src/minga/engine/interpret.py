"""Running a list of commands from Python: the plain meaning of what the native loop does, for any kind of rank."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import Final

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
from minga.engine.look import NEVER, Look
from minga.engine.workers import Workers
from minga.errors import RunError

INTERRUPTED: Final = -1
"""What a run returns when it found the stop word set at a Count command."""
LEFT: Final = -2
"""What a run returns that was left, as all ranks agreed when they looked."""
Ledger = NDArray[np.int64]
"""Shape (2, categories + blocks): nanoseconds spent and commands done, by `Category`, then by block timed alone."""


def new_ledger(blocks: int = 0) -> Ledger:
    """A ledger in which nothing is booked, with columns for so many blocks that are timed one by one."""
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
    look: Look | None = None,
) -> int:
    """Run the commands from the first one on; the reason of the End that was reached.

    `stop` is one word: when it is not 0, the list is left at the next Count with the reason INTERRUPTED. `events`, made
    for Python's clock, knows the commands as entries from `first_event` on. `device`: the GPU that a list launches on.
    `look` is asked after some Counts whether to leave. RunError for a list that runs past its last command.
    """
    if workers is None:
        with Workers() as own:
            return interpret(commands, comm, own, ledger, stop, events, first_event, device, look)
    ledger = new_ledger() if ledger is None else ledger
    rounds = NEVER if look is None else look.begin()
    at, last = 0, time.perf_counter_ns()
    while at < len(commands):
        number, command = at, commands[at]
        at += 1
        column: int | None = None
        match command:
            case Kernel():
                workers.run(command.function, command.args, command.tiles)
                for channel in command.polls:
                    channel.test()
                column = command.column
            case Launch() | Synchronise() | Fetch():
                assert device is not None
                _on_device(command, device)
                column = Category.COMPUTE if isinstance(command, Fetch) else command.column
            case Start():
                command.channel.start()
                column = Category.SEND
            case Wait():
                command.channel.wait()
                column = Category.WAIT
            case Allreduce():
                comm.allreduce(command.words, command.operation)
                column = Category.REDUCE
            case Call():
                command.function()
                column = Category.CALL
            case Rotate():
                _rotate(command)
            case Set():
                _word(command.address).value = command.value
            case Jump():
                at = command.target
            case JumpIf():
                if (ctypes.c_uint8.from_address(command.address).value != 0) == command.when:
                    at = command.target
            case Switch():
                chosen = _word(command.address).value
                if 0 <= chosen < len(command.targets):
                    at = command.targets[chosen]
            case Count():
                counter = _word(command.counter)
                counter.value += 1
                if counter.value < _word(command.limit).value:
                    at = command.target
                rounds -= 1
                if stop is not None and stop[0]:
                    return INTERRUPTED
                if rounds == 0 and look is not None and not (rounds := look()):
                    return LEFT
            case End():
                return command.reason
        if column is not None:
            now = time.perf_counter_ns()
            ledger[0, column] += now - last
            ledger[1, column] += 1
            if events is not None:
                events.add(first_event + number, last, now)
            last = now
    raise past_the_end(len(commands))


def past_the_end(length: int) -> RunError:
    """The error of a list without an End on its way."""
    return RunError(f"the program went on past its last command, number {length - 1}", remedy="end it with End")


def _on_device(command: Launch | Synchronise | Fetch, device: Device) -> None:
    match command:
        case Launch():
            device.launch(command.function, command.grid, command.threads, command.args)
        case Synchronise():
            device.synchronise()
        case Fetch():
            device.fetch(command.source, command.target, command.size)


def _word(address: int) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(address)


def _rotate(command: Rotate) -> None:
    for address in command.tables:
        table = (ctypes.c_int64 * command.slots).from_address(address)
        first = table[0]
        for slot in range(command.slots - 1):
            table[slot] = table[slot + 1]
        table[command.slots - 1] = first
