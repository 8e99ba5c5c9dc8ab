"""All that minga has started ends in time, with all that it has started itself: processes, jobs, whole commands."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from command_line import command
from minga.errors import CaseError, LaunchError, MingaError
from minga.launch import exit_codes
from minga.launch.jobs import end_jobs, finished_job, running_job, start_job
from minga.launch.processes import Process, descendants, end, kill, process_here, processes_marked, stopped
from minga.launch.signals import interruptible, uninterrupted

MARK = "MINGA_TEST_JOB"
DEAF = """#!/bin/sh
case $* in *version*) echo "HYDRA build details:"; exit;; esac
trap '' USR1 TERM INT HUP
setsid sh -c "trap '' TERM INT HUP; touch started; while :; do sleep 0.1; done" &
while :; do sleep 0.1; done
"""
"""A launcher that answers to nothing, and so does its rank, which is in a session of its own."""


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch, in_tmp_path: Path) -> Iterator[str]:
    """An entry of the environment of all that a test starts, which is ended in any case."""
    monkeypatch.setenv(MARK, str(in_tmp_path))
    entry = f"{MARK}={in_tmp_path}"
    yield entry
    kill(set(processes_marked(entry)) - {os.getpid()})


@pytest.fixture
def deaf(in_tmp_path: Path) -> Path:
    path = in_tmp_path / "mpiexec"
    path.write_text(DEAF)
    path.chmod(0o755)
    return path


def left(mark: str) -> list[int]:
    return [pid for pid in processes_marked(mark) if pid != os.getpid() and process_here(pid)]


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)


# Processes ----------------------------------------------------------------------------------------------------------
def test_a_number_that_is_used_again_is_another_process() -> None:
    here = process_here(os.getpid())
    assert here is not None
    assert here.lives
    assert not Process(here.pid, here.began - 1).lives
    assert process_here(2**22 + 1) is None


def test_zombies_are_no_processes() -> None:
    with subprocess.Popen(["true"]) as child:
        wait_for(lambda: Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        assert process_here(child.pid) is None
        end(lambda: [child.pid])  # has nothing to wait for


@pytest.mark.usefixtures("mark")
def test_kindly_first(in_tmp_path: Path) -> None:
    words = ["sh", "-c", "trap 'echo asked > said; exit' TERM; touch ready; while :; do sleep 0.01; done"]
    with subprocess.Popen(words) as child:
        wait_for((in_tmp_path / "ready").exists)
        end(lambda: [child.pid], patience=30.0)
    assert Path("said").read_text() == "asked\n"


def test_who_does_not_answer_is_killed_also_when_stopped(mark: str, deaf: Path) -> None:
    child = start_job([str(deaf)])
    wait_for(Path("started").exists)
    os.kill(child.pid, signal.SIGSTOP)
    wait_for(lambda: stopped([child.pid]))
    assert descendants(child.pid)
    end(lambda: left(mark), patience=0.1)
    assert left(mark) == []
    child.wait()


# Jobs ---------------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_job_ends_with_its_ranks(mark: str, deaf: Path) -> None:
    with running_job([str(deaf)], stdout=subprocess.PIPE) as job:
        wait_for(Path("started").exists)
        assert len(left(mark)) >= 2
    assert left(mark) == []
    assert job.returncode == -signal.SIGKILL
    assert job.stdout is not None
    assert job.stdout.closed


def test_a_job_that_has_ended_leaves_no_process_of_its_group(mark: str) -> None:
    assert finished_job(["sh", "-c", "sleep 1000 > /dev/null 2>&1 & echo done"]).stdout == "done\n"
    wait_for(lambda: not left(mark), 2.0)


@pytest.mark.slow
def test_several_jobs_share_their_patience(mark: str, deaf: Path) -> None:
    several = [start_job([str(deaf)]) for _ in range(3)]
    wait_for(lambda: len(left(mark)) >= 6)
    began = time.monotonic()
    end_jobs(several, patience=1.0)
    assert time.monotonic() - began < 3.0  # one after another it would be more
    assert left(mark) == []


def test_a_job_that_takes_too_long(mark: str) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        finished_job(["sleep", "1000"], timeout=0.1)
    assert left(mark) == []


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(LaunchError, match=r"absent could not be started to reach host a: No such file") as caught:
        start_job(["./absent"], purpose="to reach host a", remedy="name another")
    assert caught.value.remedy == "name another"


# Signals ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts_once(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    def raised_twice() -> None:
        try:
            signal.raise_signal(number)
        finally:
            signal.raise_signal(number)  # a copy, as timeout sends

    with pytest.raises(KeyboardInterrupt) as caught, interruptible():
        raised_twice()
    assert caught.value.args == (() if number == signal.SIGINT else (number,))
    assert signal.getsignal(number) is before


def test_a_signal_that_has_a_handler_or_is_ignored_is_left_alone() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with interruptible():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_must_not_be_interrupted_is_done_first() -> None:
    done = []

    def work() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGTERM)
            done.append(1)
        done.append(2)

    with pytest.raises(KeyboardInterrupt), interruptible(), uninterrupted():
        work()
    assert done == [1, 2]


def test_other_threads_take_no_signals() -> None:
    def work() -> None:
        with interruptible(), uninterrupted():
            found.append(signal.getsignal(signal.SIGTERM))

    found: list[object] = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGTERM)]


# Commands -----------------------------------------------------------------------------------------------------------
FAR = '#!/bin/sh\nshift\nexec ./mpiexec "$@"\n'


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("measure", "--network", "--seconds", "5", "--json"), marks=pytest.mark.slow),
        pytest.param(("measure", "--hosts", "hosts", "--shell", "./far"), marks=pytest.mark.slow),
        ("matmul", "square.npy", "square.npy", "-o", "product.npy", "-n", "2"),
        pytest.param(("bcast", "data", "--hosts", "hosts", "--to", "out", "--shell", "./far"), marks=pytest.mark.slow),
        pytest.param(("doctor",), marks=pytest.mark.slow),
    ],
    ids=lambda words: "-".join(words[:2]),
)
def test_one_signal_ends_every_command_that_starts_processes(mark: str, deaf: Path, words: tuple[str, ...]) -> None:
    """Neither the launcher nor what it has started can be asked."""
    Path("far").write_text(FAR)
    Path("far").chmod(0o755)
    Path("hosts").write_text("a\nb\n")
    Path("data").write_text("content")
    np.save("square.npy", np.eye(64))
    environment = os.environ | {"MINGA_MPIEXEC": str(deaf)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command(*words), env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        wait_for(lambda: Path("started").exists() or process.poll() is not None)
        for _ in range(2):  # as timeout does
            process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        out, err = process.communicate(timeout=60)
    assert Path("started").exists(), err
    assert time.monotonic() - began < 10
    assert process.returncode == exit_codes.INTERRUPTED, err
    assert "Traceback" not in out + err
    assert left(mark) == []


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "rank"),
    [
        (("bench", "mpi", "life", "--mpi", "mpich", "--seconds", "60"), "minga.studies.cli.mpi_rank"),
        (("measure", "--network", "--seconds", "60", "--json"), "minga.network.measuring.cli.measure"),
    ],
    ids=["bench", "measure"],
)
def test_one_signal_ends_ranks(mark: str, words: tuple[str, ...], rank: str) -> None:
    """Also a rank that is stopped, for which launchers wait."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command(*words), stdout=pipe, stderr=pipe, text=True) as process:
        wait_for(lambda: len(_ranks(mark, rank)) >= 2 or process.poll() is not None)
        ranks = _ranks(mark, rank)
        assert len(ranks) >= 2
        os.kill(ranks[-1], signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        _, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 10
    assert process.returncode == exit_codes.INTERRUPTED, err
    assert "Traceback" not in err
    assert left(mark) == []


def _ranks(mark: str, module: str) -> list[int]:
    found = []
    for pid in left(mark):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if words[1:3] == ["-m", module]:
            found.append(pid)
    return found


# Exit statuses ------------------------------------------------------------------------------------------------------
def test_statuses_of_errors_are_those_of_the_table() -> None:
    assert (MingaError.exit_status, CaseError.exit_status) == (exit_codes.FAILED, exit_codes.USAGE)
    assert [exit_codes.status_of(reason) for reason in ("asked", "time limit", "converged")] == [130, 75, 0]
