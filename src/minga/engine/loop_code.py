"""Native code that runs kernels on many threads and lists of commands without Python.

It has three functions of 64-bit words; the constants below number the words of their arguments.

worker(control, worker)
    Body of a thread: takes tiles of every dispatch until it is told to stop. Waiting threads first spin on the gate for
    a while, then sleep on a futex.
dispatch(control, worker, function, args, tiles, polls) -> ticks spent on polls
    Compute all tiles of a kernel with the help of the waiting threads. A thread that is late is not waited for: it
    finds the gate closed. Between its own tiles the caller makes progress on the channels of `polls`.
run(context) -> status
    Interpret records of commands until one ends the program, calls Python or fails, the stop word is set, or an
    interruption is due.
"""

from __future__ import annotations

import functools
import platform
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from llvmlite import ir

from minga.engine.command import Category
from minga.engine.emit import Code, Variable, Word, load

# Words of the control block; groups written by different threads lie on separate cache lines.
GATE: Final = 0
"""Word: number of threads inside (bits 0-15), 1 if more may enter (bit 16), number of the dispatch (from bit 17)."""
BELL: Final = 16
"""Word: number of dispatches; sleeping threads wait for a change of its low half."""
SLEEPERS: Final = 17
STOP: Final = 18
NEXT: Final = 32
"""Word: the next tile to be taken."""
FUNCTION, ARGS, TILES = 48, 49, 50
RINGS, EVENT = 51, 52
"""Words: address of a table of rings of events, one for each worker, or 0; event number of a dispatch."""
SYSCALL, FUTEX, YIELD, SPIN = 64, 65, 66, 67
"""Words: address of libc's syscall, number of the futex call, address of libc's sched_yield, ticks of spinning before
sleeping."""
CONTROL_WORDS: Final = 80

_OPEN: Final = 1 << 16
_DISPATCH: Final = 1 << 17
_INSIDE: Final = _OPEN - 1
_FUTEX_WAIT, _FUTEX_WAKE = 128, 129  # the private variants: only threads of this process wait
_PATIENCE: Final = 1000
"""Number of checks of a gate that should close soon before the processor is yielded."""

# Words of a list of channels to be polled, followed by count and address of the requests of each channel.
POLL_TEST, POLL_STATUS, POLL_REQUEST_BYTES, POLL_INTERVAL, POLL_LEAST, POLL_MOST, POLL_LAST, POLL_CHANNELS = range(8)
POLL_FIRST: Final = 8
_REST: Final = 32
"""Ticks between two polls for each tick that the last one took: polling takes about 3 % of the time at most."""

# Words of the context of `run`.
AT, RECORDS, CONTROL, WORKER, TICKS, COUNTS, STOP_ADDRESS, DETAIL = range(8)
START, STARTALL, TEST, ALLREDUCE, STATUS, REQUEST_BYTES, INT64, COMMUNICATOR, PATIENCE = range(8, 17)
EVENTS, FIRST_EVENT = 17, 18
"""Words: address of the header of a ring of events, or 0; number added to a command's number to identify its event."""
NAP, NAP_LEAST, NAP_TICKS, USLEEP = range(19, 23)
"""Words: longest sleep while waiting in microseconds, or 0; the shortest sleep that is worthwhile; ticks of waiting per
microsecond of sleep; address of libc's usleep."""
LOOK: Final = 23
"""Word: iterations of loops until `run` next returns LOOKING."""
CONTEXT_WORDS: Final = 24

# Words of a ring of events: events ever written, capacity less one (a power of two less one), address of the rows.
RING_COUNT, RING_MASK, RING_ROWS = range(3)
EVENT_WORDS: Final = 4
"""Number of words of a row: number of the event, ticks at its start and end, ticks of it spent on polls."""

RECORD_WORDS: Final = 8
OP_KERNEL, OP_START, OP_WAIT, OP_COLLECTIVE, OP_ALLREDUCE, OP_ROTATE = range(6)
OP_JUMP, OP_JUMP_IF, OP_SET, OP_COUNT, OP_CALL, OP_END = range(6, 12)
OP_LAUNCH, OP_SYNCHRONISE, OP_FETCH, OP_SWITCH = range(12, 16)

RUNNING, ENDED, CALLED, FAILED, STOPPED, LOOKING = -1, 0, 1, 2, 3, 4

_CLOCKS: Final = {"x86_64": "llvm.readcyclecounter", "aarch64": "llvm.readsteadycounter"}


def is_supported() -> bool:
    """Return True if this machine supports the native loop and native threads: Linux on x86-64 or 64-bit Arm."""
    return sys.platform == "linux" and platform.machine() in _CLOCKS and sys.byteorder == "little"


@dataclass(frozen=True, slots=True)
class LoopFunctions:
    """Addresses of the native functions; `ticks()` reads the clock that they use."""

    worker: int
    dispatch: int
    run: int
    ticks: int


def loop_functions() -> LoopFunctions:
    """Return the functions, compiled for this machine once per process."""
    with _FIRST:
        return _compiled()[0]


_FIRST = threading.Lock()
"""Lock for virtual ranks, which request the functions concurrently: a second compilation would release the first one's
code while it is in use."""


@functools.cache
def _compiled() -> tuple[LoopFunctions, object]:
    module = ir.Module("minga_loop")
    poll, note = _poll(module), _note(module)
    dispatch = _dispatch(module, poll)
    run = _run(module, dispatch, poll, _complete(module), note)
    functions = [_worker(module, note), dispatch, run, _ticks(module)]
    addresses, owner = load(module, functions)
    return LoopFunctions(**addresses), owner


def _clock(code: Code) -> Word:
    return code.intrinsic(_CLOCKS[platform.machine()])


def _ticks(module: ir.Module) -> Code:
    code = Code(module, "ticks", 0, returns=True)
    code.finish(_clock(code))
    return code


# Threads -------------------------------------------------------------------------------------------------------------
def _worker(module: ir.Module, note: Code) -> Code:
    code = Code(module, "worker", 2)
    control, worker = code.arguments
    done, seen = code.variable(0), code.variable(0)
    with code.repeat(lambda: done.get().equals(0)):
        gate = _wait_for_dispatch(code, control, seen.get())
        seen.set(gate.shift_in_zeros(17))
        done.set(code.atomic_load(control + 8 * STOP, "acquire"))
        entered = code.variable(0)
        with code.when(done.get().equals(0)):
            entered.set(_enter(code, control, gate))
        with code.when(entered.get()):
            function, args, tiles = (code.load(control + 8 * word) for word in (FUNCTION, ARGS, TILES))
            rings, start = code.load(control + 8 * RINGS), _clock(code)
            took = _take_tiles(code, control, function, args, tiles, worker)
            with code.when(code.select(rings, took, 0)):
                ring = code.load(rings + code.load(worker) * 8)
                code.call(note, ring, code.load(control + 8 * EVENT), start, _clock(code), 0)
            code.atomic("sub", control + 8 * GATE, 1, "acq_rel")
    code.finish()
    return code


def _wait_for_dispatch(code: Code, control: Word, seen: Word) -> Word:
    """Return the gate once it belongs to a dispatch other than `seen`, or at once when the threads must stop."""
    gate = code.variable(code.atomic_load(control + 8 * GATE, "acquire"))
    start = code.variable(_clock(code))
    spin = code.load(control + 8 * SPIN)

    def waiting() -> Word:
        stop = code.atomic_load(control + 8 * STOP, "acquire")
        return gate.get().shift_in_zeros(17).equals(seen) & stop.equals(0)

    with code.repeat(waiting):
        code.pause()
        with code.when((_clock(code) - start.get()) > spin):
            _sleep(code, control, seen)
            start.set(_clock(code))
        gate.set(code.atomic_load(control + 8 * GATE, "acquire"))
    return gate.get()


def _sleep(code: Code, control: Word, seen: Word) -> None:
    # The dispatcher counts first and then checks for sleepers; a sleeper registers first and then reads the count.
    code.atomic("add", control + 8 * SLEEPERS, 1, "seq_cst")
    bell = code.atomic_load(control + 8 * BELL, "seq_cst")
    gate = code.atomic_load(control + 8 * GATE, "seq_cst")
    stop = code.atomic_load(control + 8 * STOP, "seq_cst")
    with code.when(gate.shift_in_zeros(17).equals(seen) & stop.equals(0)):
        _futex(code, control, _FUTEX_WAIT, bell & 0xFFFFFFFF)
    code.atomic("sub", control + 8 * SLEEPERS, 1, "seq_cst")


def _futex(code: Code, control: Word, operation: int, value: Word | int) -> None:
    syscall, number = code.load(control + 8 * SYSCALL), code.load(control + 8 * FUTEX)
    code.call(syscall, number, control + 8 * BELL, operation, value, 0, 0, 0, returns=64)


def _enter(code: Code, control: Word, expected: Word) -> Word:
    """Enter the gate of the dispatch that `expected` belongs to; return 0 if it has closed."""
    gate, entered = code.variable(expected), code.variable(0)
    dispatch = expected.shift_in_zeros(17)

    def may_try() -> Word:
        same = gate.get().shift_in_zeros(17).equals(dispatch) & (gate.get() & _OPEN).differs(0)
        return same & entered.get().equals(0)

    with code.repeat(may_try):
        entered.set(code.compare_exchange(control + 8 * GATE, gate.get(), gate.get() + 1))
        gate.set(code.atomic_load(control + 8 * GATE, "acquire"))
    return entered.get()


def _take_tiles(code: Code, control: Word, function: Word, args: Word, tiles: Word, worker: Word) -> Word:
    """Compute tiles until none is left; return 1 if there was one."""
    first = code.atomic("add", control + 8 * NEXT, 1, "monotonic")
    tile = code.variable(first)
    with code.repeat(lambda: tile.get() < tiles):
        code.call(function, args, tile.get(), worker)
        tile.set(code.atomic("add", control + 8 * NEXT, 1, "monotonic"))
    return first < tiles


def _dispatch(module: ir.Module, poll: Code) -> Code:
    code = Code(module, "dispatch", 6, returns=True)
    control, worker, function, args, tiles, polls = code.arguments
    gate = code.load(control + 8 * GATE)
    for word, value in ((FUNCTION, function), (ARGS, args), (TILES, tiles)):
        code.store(value, control + 8 * word)
    code.atomic_store(0, control + 8 * NEXT, "monotonic")
    code.atomic_store(((gate.shift_in_zeros(17) + 1) << 17) | _OPEN, control + 8 * GATE, "seq_cst")
    _ring(code, control)

    polled = code.variable(0)
    tile = code.variable(code.atomic("add", control + 8 * NEXT, 1, "monotonic"))
    with code.repeat(lambda: tile.get() < tiles):
        code.call(function, args, tile.get(), worker)
        with code.when(polls):
            polled.set(polled.get() + code.call(poll, polls, returns=64))
        tile.set(code.atomic("add", control + 8 * NEXT, 1, "monotonic"))

    code.atomic("and", control + 8 * GATE, ~_OPEN, "acq_rel")
    patience = code.variable(_PATIENCE)
    with code.repeat(lambda: (code.atomic_load(control + 8 * GATE, "acquire") & _INSIDE).differs(0)):
        code.pause()
        patience.set(patience.get() - 1)
        with code.when(patience.get() < 0):
            code.call(code.load(control + 8 * YIELD), returns=32)
    code.finish(polled.get())
    return code


def _ring(code: Code, control: Word) -> None:
    """Wake the sleeping threads."""
    code.atomic("add", control + 8 * BELL, 1, "seq_cst")
    with code.when(code.atomic_load(control + 8 * SLEEPERS, "seq_cst")):
        _futex(code, control, _FUTEX_WAKE, 0x7FFFFFFF)


def _poll(module: ir.Module) -> Code:
    """Build poll(polls): make progress on the channels if the last poll is long enough ago; return the ticks taken."""
    code = Code(module, "poll", 1, returns=True)
    polls = code.arguments[0]
    start, spent = _clock(code), code.variable(0)
    with code.when((start - code.load(polls + 8 * POLL_LAST)) >= code.load(polls + 8 * POLL_INTERVAL)):
        test, status, size = (code.load(polls + 8 * word) for word in (POLL_TEST, POLL_STATUS, POLL_REQUEST_BYTES))
        flag = code.memory(1)
        with code.loop(code.load(polls + 8 * POLL_CHANNELS)) as channel:
            pair = polls + 8 * POLL_FIRST + channel * 16
            count, request = code.load(pair), code.load(pair + 8)
            code.store(1, flag)
            number = code.variable(0)
            # Testing one incomplete request makes progress on all requests.
            with code.repeat(lambda: (number.get() < count) & code.load(flag, bits=32).differs(0)):
                # An error occurs again when the channel is waited for, where it is reported.
                code.call(test, request + number.get() * size, flag, status, returns=32)
                number.set(number.get() + 1)
        now = _clock(code)
        code.store(now, polls + 8 * POLL_LAST)
        spent.set(now - start)
        least, most = code.load(polls + 8 * POLL_LEAST), code.load(polls + 8 * POLL_MOST)
        rest = (now - start) * _REST
        rest = code.select(rest < least, least, code.select(rest > most, most, rest))
        code.store(rest, polls + 8 * POLL_INTERVAL)
    code.finish(spent.get())
    return code


# Commands ------------------------------------------------------------------------------------------------------------
def _complete(module: ir.Module) -> Code:
    """Build complete(context, count, requests): wait until all requests are complete; return MPI's result.

    MPI's own waiting never yields the processor. Where ranks share a processor, or others use it too, the rank that is
    waited for would then have to wait for the end of a time slice of milliseconds. Requests are tested one by one
    because MPI_Testall has bugs in current libraries: MPICH 5.0 fails on persistent collectives, some releases of Open
    MPI 5.0 on statuses (open-mpi/ompi issue 13967).
    """
    code = Code(module, "complete", 3, returns=True)
    context, count, requests = code.arguments
    test, status, size, patience, control, longest = (
        code.load(context + 8 * word) for word in (TEST, STATUS, REQUEST_BYTES, PATIENCE, CONTROL, NAP)
    )
    flag = code.memory(1)
    start = _clock(code)
    result, number = code.variable(0), code.variable(0)
    with code.repeat(lambda: (number.get() < count) & result.get().equals(0)):
        result.set(code.call(test, requests + number.get() * size, flag, status, returns=32))
        complete = code.load(flag, bits=32).differs(0)
        number.set(number.get() + complete)
        waited = _clock(code) - start
        with code.when((complete ^ 1) & (waited > patience)):
            nap = waited.quotient(code.load(context + 8 * NAP_TICKS))
            nap = code.select(nap < longest, nap, longest)
            with code.either(nap >= code.load(context + 8 * NAP_LEAST)) as (sleep, offer):
                with sleep:
                    code.call(code.load(context + 8 * USLEEP), nap, returns=32)
                with offer:
                    code.call(code.load(control + 8 * YIELD), returns=32)
    code.finish(result.get())
    return code


def _note(module: ir.Module) -> Code:
    """Build note(ring, event, start, end, polled): write a row of a ring of events."""
    code = Code(module, "note", 5)
    ring, *row = code.arguments
    count = code.load(ring + 8 * RING_COUNT)
    place = code.load(ring + 8 * RING_ROWS) + (count & code.load(ring + 8 * RING_MASK)) * (8 * EVENT_WORDS)
    for number, value in enumerate(row):
        code.store(value, place + 8 * number)
    code.store(count + 1, ring + 8 * RING_COUNT)
    code.finish()
    return code


def _run(module: ir.Module, dispatch: Code, poll: Code, complete: Code, note: Code) -> Code:
    code = Code(module, "run", 1, returns=True)
    context = code.arguments[0]
    ticks, counts = code.load(context + 8 * TICKS), code.load(context + 8 * COUNTS)
    at, status = code.variable(code.load(context + 8 * AT)), code.variable(RUNNING)
    last = code.variable(_clock(code))
    ring, first_event = code.load(context + 8 * EVENTS), code.load(context + 8 * FIRST_EVENT)

    def stamp(event: Word, category: Word | int, elsewhere: Word | int = 0) -> None:
        """Record the time since the last stamp, `elsewhere` of it as sending."""
        now = _clock(code)
        _add(code, ticks + code.word(category) * 8, now - last.get() - elsewhere)
        _add(code, counts + code.word(category) * 8, 1)
        with code.when(ring):
            code.call(note, ring, event, last.get(), now, elsewhere)
        last.set(now)

    def checked(result: Word) -> None:
        with code.when(result.differs(0)):
            code.store(result, context + 8 * DETAIL)
            status.set(FAILED)

    def complete_requests() -> None:
        with code.when(status.get().equals(RUNNING)):
            checked(code.call(complete, context, word(1), word(2)))

    with code.repeat(lambda: status.get().equals(RUNNING)):
        event = first_event + at.get()
        record = code.load(context + 8 * RECORDS) + at.get() * (8 * RECORD_WORDS)

        def word(number: int, record: Word = record) -> Word:
            return code.load(record + 8 * number)

        code.store(at.get(), context + 8 * AT)
        at.set(at.get() + 1)
        with code.switch(word(0)) as case:
            with case(OP_KERNEL):
                polled = _kernel(code, context, (dispatch, poll), event, word(1), word(2), word(3), word(5))
                with code.when(polled):
                    _add(code, ticks + 8 * Category.SEND, polled)
                stamp(event, word(4), polled)
            with case(OP_LAUNCH):
                arguments = [code.load(word(2) + 8 * k) for k in range(11)]
                checked(code.call(word(1), *arguments, returns=32))
                stamp(event, word(3))
            with case(OP_SYNCHRONISE):
                checked(code.call(word(1), word(2), returns=32))
                stamp(event, word(3))
            with case(OP_FETCH):
                _fetch(code, word(1), checked, status)
                stamp(event, word(2))
            with case(OP_START):
                checked(code.call(code.load(context + 8 * STARTALL), word(1), word(2), returns=32))
                _add(code, word(3), 1)
                stamp(event, Category.SEND)
            with case(OP_WAIT):
                complete_requests()
                stamp(event, Category.WAIT)
            with case(OP_COLLECTIVE):
                checked(code.call(code.load(context + 8 * START), word(2), returns=32))
                complete_requests()
                stamp(event, Category.REDUCE)
            with case(OP_ALLREDUCE):
                code.copy(word(2), word(1), word(3) * 8)
                allreduce, kind, group = (code.load(context + 8 * k) for k in (ALLREDUCE, INT64, COMMUNICATOR))
                checked(code.call(allreduce, word(1), word(2), word(3), kind, word(4), group, returns=32))
                stamp(event, Category.REDUCE)
            with case(OP_ROTATE):
                _rotate(code, word(1), word(2), word(3))
            with case(OP_JUMP):
                at.set(word(1))
            with case(OP_JUMP_IF):
                holds = code.load(word(1), bits=8).differs(0)
                at.set(code.select(holds.equals(word(2)), word(3), at.get()))
            with case(OP_SWITCH):
                chosen = code.load(word(1))
                known = (chosen >= 0) & (chosen < word(2))
                at.set(code.select(known, code.load(word(3) + code.select(known, chosen, 0) * 8), at.get()))
            with case(OP_SET):
                code.store(word(2), word(1))
            with case(OP_COUNT):
                count = code.load(word(1)) + word(4)
                fits = count < code.load(word(2))
                at.set(code.select(fits, word(3), at.get()))
                with code.when(fits | word(4).equals(1)):
                    code.store(count, word(1))
                    stopped = code.atomic_load(code.load(context + 8 * STOP_ADDRESS), "monotonic")
                    rounds = code.load(context + 8 * LOOK) - word(5)
                    code.store(rounds, context + 8 * LOOK)
                    status.set(code.select(stopped, STOPPED, code.select(rounds <= 0, LOOKING, RUNNING)))
            with case(OP_CALL):
                status.set(CALLED)
            with case(OP_END):
                code.store(word(1), context + 8 * DETAIL)
                status.set(ENDED)
    with code.when(status.get().differs(FAILED)):
        code.store(at.get(), context + 8 * AT)
    code.finish(status.get())
    return code


def _add(code: Code, address: Word, amount: Word | int) -> None:
    code.store(code.load(address) + amount, address)


def _kernel(
    code: Code, context: Word, by: tuple[Code, Code], event: Word, function: Word, args: Word, tiles: Word, polls: Word
) -> Word:
    """Compute all tiles of a kernel; return the ticks spent on polls."""
    dispatch, poll = by
    polled = code.variable(0)
    worker = code.load(context + 8 * WORKER)
    with code.either(tiles > 1) as (many, few):
        with many:
            control = code.load(context + 8 * CONTROL)
            code.store(event, control + 8 * EVENT)
            polled.set(code.call(dispatch, control, worker, function, args, tiles, polls, returns=64))
        with few:
            with code.when(tiles > 0):
                code.call(function, args, 0, worker)
            with code.when(polls):
                polled.set(code.call(poll, polls, returns=64))
    return polled.get()


def _fetch(code: Code, record: Word, checked: Callable[[Word], None], status: Variable) -> None:
    """Copy words from a GPU and wait for them."""
    copy, target, source, size, stream, synchronise = (code.load(record + 8 * k) for k in range(6))
    checked(code.call(copy, target, source, size, stream, returns=32))
    with code.when(status.get().equals(RUNNING)):
        checked(code.call(synchronise, stream, returns=32))


def _rotate(code: Code, tables: Word, addresses: Word, slots: Word) -> None:
    with code.loop(tables) as number:
        table = code.load(addresses + number * 8)
        first = code.load(table)
        with code.loop(slots - 1) as slot:
            code.store(code.load(table + slot * 8 + 8), table + slot * 8)
        code.store(first, table + slots * 8 - 8)


def futex_number() -> int:
    """Return the number of the futex call on this processor."""
    return {"x86_64": 202, "aarch64": 98}[platform.machine()]
