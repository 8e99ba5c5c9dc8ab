"""Lists of commands: the native loop does what the interpreter does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minga.engine.comm import Comm, Envelope, SerialComm, run_virtual
from minga.engine.command import (
    Allreduce,
    Call,
    Category,
    Command,
    Count,
    End,
    Jump,
    JumpIf,
    Kernel,
    Rotate,
    Set,
    Start,
    Wait,
)
from minga.engine.interpret import INTERRUPTED, interpret, new_ledger
from minga.engine.loop_code import is_supported
from minga.engine.native import NativeLoop, unsupported
from minga.engine.workers import Workers
from minga.errors import RunError
from native_kernels import kernels

Runner = Callable[..., int]


def natively(
    commands: Sequence[Command],
    comm: Comm,
    workers: Workers,
    ledger: np.ndarray | None = None,
    stop: np.ndarray | None = None,
) -> int:
    with NativeLoop(commands, comm, workers, ledger, stop) as loop:
        return loop.run()


RUNNERS: list[Runner] = [interpret, natively] if is_supported() else [interpret]
native_only = pytest.mark.skipif(not is_supported(), reason="the native loop exists on Linux only")


class Machine:
    """Memory for commands: a log that kernels and calls append to, and words."""

    def __init__(self) -> None:
        self.log = np.zeros(100_000, np.int64)
        self.words = np.zeros(16, np.int64)
        self.keep: list[np.ndarray] = []

    def word(self, number: int) -> int:
        return int(self.words.ctypes.data) + 8 * number

    def append(self, value: int, category: Category = Category.COMPUTE, tiles: int = 1) -> Kernel:
        args = np.array([self.log.ctypes.data, value])
        self.keep.append(args)
        return Kernel(kernels().append, args.ctypes.data, tiles, category, f"append {value}")

    def call(self, value: int) -> Call:
        def function() -> None:
            self.log[0] += 1
            self.log[self.log[0]] = value

        return Call(function, f"call {value}")

    def entries(self) -> list[int]:
        return self.log[1 : 1 + self.log[0]].tolist()


@pytest.fixture(params=RUNNERS)
def runner(request: pytest.FixtureRequest) -> Runner:
    found: Runner = request.param
    return found


def run(runner: Runner, commands: Sequence[Command], **options: np.ndarray) -> int:
    with Workers() as workers:
        return runner(commands, SerialComm(), workers, **options)


def test_kernels_calls_and_the_end(runner: Runner) -> None:
    m = Machine()
    assert run(runner, [m.append(1), m.call(2), m.append(3, tiles=2), m.append(9, tiles=0), End(7), m.append(4)]) == 7
    assert m.entries() == [1, 2, 3, 3]


def test_jumps_look_at_one_byte(runner: Runner) -> None:
    m = Machine()
    m.words[:2] = 256, 1
    commands = [
        JumpIf(m.word(0), True, 2),
        m.append(1),
        JumpIf(m.word(0), False, 4),
        m.append(2),
        JumpIf(m.word(1), True, 6),
        m.append(3),
        JumpIf(m.word(1), False, 8),
        m.append(4),
        Jump(10),
        m.append(5),
        End(0),
    ]
    run(runner, commands)
    assert m.entries() == [1, 4]


def test_loops_count_to_their_limit(runner: Runner) -> None:
    m = Machine()
    m.words[1] = 5
    run(runner, [Set(m.word(0), 2), m.append(1), Count(m.word(0), m.word(1), 1), End(0)])
    assert m.entries() == [1, 1, 1]
    assert m.words[0] == 5


def test_slots_rotate(runner: Runner) -> None:
    m = Machine()
    m.words[:8] = range(8)
    run(runner, [Rotate((m.word(0), m.word(5)), 3), Rotate((m.word(3),), 1), End(0)])
    assert m.words[:8].tolist() == [1, 2, 0, 3, 4, 6, 7, 5]


def test_a_list_can_be_run_again() -> None:
    m = Machine()
    with Workers() as workers, NativeLoop([m.append(1), m.call(2), End(3)], SerialComm(), workers) as loop:
        assert [loop.run() for _ in range(3)] == [3, 3, 3]
    assert m.entries() == [1, 2] * 3


def test_the_stop_word_ends_loops(runner: Runner) -> None:
    m, stop = Machine(), np.zeros(1, np.int64)
    m.words[1] = 1_000_000

    def set_stop() -> None:
        stop[0] = len(m.entries()) >= 3

    commands = [m.append(1), Call(set_stop, "signal"), Count(m.word(0), m.word(1), 0), m.append(9), End(0)]
    assert run(runner, commands, stop=stop) == INTERRUPTED
    assert m.entries() == [1] * 3


def test_another_thread_can_stop_the_loop(runner: Runner) -> None:
    m, stop, args = Machine(), np.zeros(1, np.int64), np.zeros(2, np.int64)
    args[0] = m.word(5)
    m.words[1] = 1 << 60
    visit = Kernel(kernels().visit, args.ctypes.data, 1, Category.COMPUTE, "visit")

    def set_stop() -> None:
        while m.words[5] < 1000:  # runs only if Python's lock is free meanwhile
            time.sleep(1e-4)
        stop[0] = 1

    thread = threading.Thread(target=set_stop)
    thread.start()
    assert run(runner, [visit, Count(m.word(0), m.word(1), 0), End(0)], stop=stop) == INTERRUPTED
    thread.join()
    assert 1000 <= m.words[5] == m.words[0]


def test_an_error_in_a_call_comes_out_and_the_list_can_be_run_again(runner: Runner) -> None:
    m = Machine()
    m.words[0] = 1

    def fail_once() -> None:
        if m.words[0]:
            m.words[0] = 0
            raise KeyboardInterrupt

    commands = [m.append(1), Call(fail_once, "fail"), m.append(2), End(0)]
    with pytest.raises(KeyboardInterrupt):
        run(runner, commands)
    run(runner, commands)
    assert m.entries() == [1, 1, 2]


def test_a_list_without_an_end_is_an_error(runner: Runner) -> None:
    m = Machine()
    with pytest.raises(RunError, match="past its last command, number 0"):
        run(runner, [m.append(1)])


def test_alone_there_is_nothing_to_send_or_to_reduce(runner: Runner) -> None:
    channel = SerialComm().channel([], [], 0)
    words = np.array([3, 4])
    assert run(runner, [Start(channel), Allreduce(words, "sum"), Wait(channel), End(2)]) == 2
    assert words.tolist() == [3, 4]


def test_time_is_booked_where_it_was_spent(runner: Runner) -> None:
    m, ledger, table = Machine(), new_ledger(), np.zeros(4, np.int64)
    args = np.array([table.ctypes.data, 300_000])
    slow = Kernel(kernels().slow, args.ctypes.data, 4, Category.BOUNDARY, "slow")
    commands = [slow, m.append(1, Category.PACK), Call(lambda: time.sleep(0.02), "sleep"), slow, End(0)]
    start = time.perf_counter_ns()
    run(runner, commands, ledger=ledger)
    total = time.perf_counter_ns() - start
    assert ledger[1].tolist() == [0, 2, 1, 0, 0, 0, 1, 0, 0]
    assert ledger[0, Category.CALL] >= 20_000_000
    assert ledger[0, Category.BOUNDARY] > ledger[0, Category.PACK] >= 0
    assert ledger[0].sum() <= 1.01 * total
    before = ledger.copy()
    run(runner, commands, ledger=ledger)
    assert (ledger[1] == 2 * before[1]).all()
    assert (ledger[0] >= before[0]).all()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_workers_share_the_tiles_of_a_list(runner: Runner, threads: int) -> None:
    table, m = np.zeros(50, np.int64), Machine()
    args = np.array([table.ctypes.data, 0])
    m.words[1] = 200
    visit = Kernel(kernels().visit, args.ctypes.data, len(table), Category.COMPUTE, "visit")
    with Workers(threads) as workers:
        runner([visit, Count(m.word(0), m.word(1), 0), End(0)], SerialComm(), workers)
    assert (table == 200).all()


# any list ------------------------------------------------------------------------------------------------------------
@st.composite
def programs(draw: st.DrawFn) -> list[tuple[object, ...]]:
    """Nested operations: (kind, parameters..., body)."""

    def body(depth: int) -> list[tuple[object, ...]]:
        return [operation(depth) for _ in range(draw(st.integers(0, 4)))]

    def operation(depth: int) -> tuple[object, ...]:
        kinds = ["append", "call", "set", "rotate", "reduce"] + (["loop", "if"] if depth else [])
        kind = draw(st.sampled_from(kinds))
        number = draw(st.integers(0, 3))
        return (kind, number, body(depth - 1)) if kind in ("loop", "if") else (kind, number)

    return body(3)


def assemble(m: Machine, program: list[tuple[object, ...]]) -> list[Command]:
    """Words 0-3 are data, 4-7 and 8-11 counters and limits of nested loops."""
    commands: list[Command] = []
    ids = iter(range(1000))

    def emit(operations: list, depth: int) -> None:
        for kind, number, *rest in operations:
            if kind == "append":
                commands.append(m.append(next(ids), tiles=number))
            elif kind == "call":
                commands.append(m.call(next(ids)))
            elif kind == "set":
                commands.append(Set(m.word(number), next(ids) % 3))
            elif kind == "rotate":
                commands.append(Rotate((m.word(0),), number + 1))
            elif kind == "reduce":
                commands.append(Allreduce(m.words[:4], "max"))
            elif kind == "loop":
                commands.extend([Set(m.word(4 + depth), 0), Set(m.word(8 + depth), number)])
                head = len(commands)
                emit(rest[0], depth + 1)
                commands.append(Count(m.word(4 + depth), m.word(8 + depth), head))
            else:
                place = len(commands)
                commands.append(Jump(0))
                emit(rest[0], depth + 1)
                commands[place] = JumpIf(m.word(number), bool(len(rest[0]) % 2), len(commands))

    emit(program, 0)
    return [*commands, End(5)]


@native_only
@given(programs())
def test_the_native_loop_equals_the_interpreter(program: list[tuple[object, ...]]) -> None:
    results = []
    for runner in (interpret, natively):
        m, ledger = Machine(), new_ledger()
        reason = run(runner, assemble(m, program), ledger=ledger)
        counts = ledger[1].copy()
        counts[Category.REDUCE] = 0  # alone, the native loop leaves them out
        results.append((reason, m.entries(), m.words.tolist(), counts.tolist()))
    assert results[0] == results[1]


# where it cannot be used ---------------------------------------------------------------------------------------------
def test_virtual_ranks_are_interpreted() -> None:
    def body(comm: Comm) -> list[int]:
        mine, other = np.full(4, comm.rank + 1, np.uint8), np.zeros(4, np.uint8)
        left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
        channel = comm.channel([Envelope(right, mine)], [Envelope(left, other)], 0)
        total = np.array([comm.rank], np.int64)
        with Workers() as workers:
            assert unsupported(comm, workers) is not None
            interpret([Start(channel), Wait(channel), Allreduce(total, "sum"), End(0)], comm, workers)
        return [*other.tolist(), int(total[0])]

    assert run_virtual(3, body) == [[(rank - 1) % 3 + 1] * 4 + [3] for rank in range(3)]


def test_an_unsupported_loop_says_why() -> None:
    with Workers(native=False) as workers:
        assert unsupported(SerialComm(), workers) is not None
        with pytest.raises(RunError, match="cannot be used"):
            NativeLoop([End(0)], SerialComm(), workers)


@native_only
def test_alone_on_linux_it_can_be_used() -> None:
    with Workers() as workers:
        assert unsupported(SerialComm(), workers) is None
