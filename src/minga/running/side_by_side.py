"""Calls of a function side by side, in processes of their own, which begin anew and import what they need."""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from minga.errors import RunError
from minga.running.by_value import by_value

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["serve", "side_by_side"]

_SERVE: Final = "from minga.running.side_by_side import serve; serve()"


def side_by_side(function: Callable[[Any], Any], tasks: Sequence[Any], workers: int, found: list[Any]) -> None:
    """Put what a function returns for each task into a list, at the place of the task.

    Tasks are done as workers become free. A process that dies leaves a RunError in place of the result of its task, and
    another one takes over. Ctrl-C ends all processes at once, and the list then holds the results so far.

    Parameters
    ----------
    function
        Called with one task in another process; it must not raise.
    tasks
        Its arguments.
    workers
        The number of processes.
    found
        The results, one place for each task.

    Raises
    ------
    CaseError
        If the function or a task cannot be sent.
    """
    messages = [by_value((function, task)) for task in tasks]
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(messages)):
        waiting.put(number)
    living: set[subprocess.Popen[bytes]] = set()

    def work() -> None:
        while not waiting.empty():
            with _process(living) as process:
                if not _served(process, messages, waiting, found):
                    return

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(workers, len(messages)))]
    with ExitStack() as stack:
        stack.callback(_end, waiting, living)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _served(
    process: subprocess.Popen[bytes], messages: Sequence[bytes], waiting: queue.SimpleQueue[int], found: list[Any]
) -> bool:
    """Pass tasks to a process until there are none, and return False, or until it dies, and return True."""
    while True:
        try:
            number = waiting.get_nowait()
        except queue.Empty:
            return False
        try:
            found[number] = _asked(process, messages[number])
        except (OSError, EOFError, pickle.UnpicklingError):
            status = process.wait()
            reason = f"by signal {-status}" if status < 0 else f"with status {status}"
            found[number] = RunError(f"its process ended {reason}")
            return True


def _asked(process: subprocess.Popen[bytes], message: bytes) -> Any:
    """Send a task, and return the answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(len(message).to_bytes(8, "little") + message)
    process.stdin.flush()
    return pickle.load(process.stdout)


@contextmanager
def _process(living: set[subprocess.Popen[bytes]]) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that waits for tasks, and end it afterwards."""
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,  # Ctrl-C is for this process, which ends the others
    )
    living.add(process)
    with process:
        try:
            yield process
        finally:
            living.discard(process)
            assert process.stdin is not None
            with suppress(OSError):  # the process is gone, and with it the other end
                process.stdin.close()


def _end(waiting: queue.SimpleQueue[int], living: set[subprocess.Popen[bytes]]) -> None:
    """Leave no task waiting and no process at work; nothing is left to do after the last result."""
    with suppress(queue.Empty):
        while True:
            waiting.get_nowait()
    for process in list(living):
        process.kill()


def serve() -> None:
    """Answer tasks from standard input until it ends; what functions print goes to standard error."""
    answers: IO[bytes] = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    tasks = sys.stdin.buffer
    while length := tasks.read(8):
        function, task = pickle.loads(tasks.read(int.from_bytes(length, "little")))
        pickle.dump(function(task), answers)
        answers.flush()
