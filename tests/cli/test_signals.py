"""One request ends every run in time, whatever it waits for, and what a run has written stays."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import SMALL, command, in_process
from minga.cli import rank
from minga.engine import signal_thread
from minga.engine.comm import SerialComm
from minga.errors import RunError
from minga.launch import signals
from minga.launch.processes import descendants
from minga.launch.signals import StopRequest
from minga.output import interrupt
from minga.output.directory import RunDirectory
from minga.output.interrupt import Interrupt
from mpi_launch import mpiexec


@pytest.fixture(autouse=True)
def case(in_tmp_path: Path) -> Path:
    """A correct small case, ``small.toml``, in the working directory."""
    path = in_tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)


# The request --------------------------------------------------------------------------------------------------------
def test_copies_of_a_signal_are_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """``timeout`` sends two at once, launchers and batch systems send more; Ctrl-C is no exception."""
    told: list[str] = []
    with StopRequest(lambda: told.append("stop"), late=lambda: None).listening() as stop:
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGINT, signal.SIGUSR1):
            signal.raise_signal(number)
        assert stop()
        wait_for(lambda: told == ["stop"])
        monkeypatch.setattr(signals, "_COPIES", 0.0)
        signal.raise_signal(signal.SIGUSR1)
        for number in (signal.SIGINT, signal.SIGTERM):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
    assert told == ["stop"]


def test_a_second_request_is_none_of_the_copies_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread may note copies before or after their handlers are called, and the next signal before or after its."""
    late = threading.Event()
    monkeypatch.setattr(signal_thread.select, "select", lambda *_: late.wait(30))
    now = [100.0]
    monkeypatch.setattr(signals.time, "monotonic", lambda: now[0])
    with StopRequest(late=lambda: None).listening() as stop:
        stop._over.set()  # nobody waits for the end, by this clock
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            signal.raise_signal(number)
        now[0] += 1.5
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)  # a copy of that one
        late.set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_cannot_look_is_ended(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    """The main thread waits where Python runs no handlers."""
    monkeypatch.setattr(signals, "GRACE", 0.0)
    monkeypatch.setattr(signal_thread, "_QUIET", 0.0)
    held = threading.Lock()
    held.acquire()
    with StopRequest(late=held.release).listening() as stop:
        threading.Timer(0.01, os.kill, (os.getpid(), number)).start()
        signal.pthread_sigmask(signal.SIG_BLOCK, ())  # nothing is blocked: the handler waits for the main thread
        assert held.acquire(timeout=30)
        assert stop()
        assert stop.late


def test_what_writes_or_has_answered_has_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "GRACE", 0.0)
    monkeypatch.setattr(signal_thread, "_QUIET", 0.0)
    monkeypatch.setattr(signal_thread, "_PAUSE", 0.001)
    ended: list[float] = []
    with StopRequest(late=lambda: ended.append(0.0)).listening() as stop:
        stop.answer()
        signal.raise_signal(signal.SIGTERM)
        time.sleep(0.05)
        assert not ended
    monkeypatch.setattr(signal_thread, "_QUIET", 0.02)
    monkeypatch.setattr(signal_thread, "_BUSY", 0)
    written = iter(range(1000))
    with StopRequest(late=lambda: ended.append(0.0), written=lambda: next(written)).listening():
        signal.raise_signal(signal.SIGTERM)
        time.sleep(0.05)
        assert not ended
    with StopRequest(late=lambda: ended.append(0.0), written=lambda: 5).listening():
        signal.raise_signal(signal.SIGUSR1)  # sets no limit
        time.sleep(0.05)
        assert not ended
        signal.raise_signal(signal.SIGTERM)
        wait_for(lambda: bool(ended))


@pytest.mark.parametrize(
    "request_of", [lambda: signals.StopRequest(late=lambda: None), lambda: Interrupt(termination=True)]
)
def test_one_signal_in_native_code_is_one_request(
    monkeypatch: pytest.MonkeyPatch, request_of: Callable[[], signals.StopRequest | Interrupt]
) -> None:
    """The thread notes it at once, Python's handler only when the native code returns: that is no second signal."""
    monkeypatch.setattr(signals, "_COPIES", 0.0)
    monkeypatch.setattr(interrupt, "_COPIES", 0.0)
    noted = []
    with request_of().listening() as asked:
        timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGTERM))
        watcher = threading.Timer(0.1, lambda: noted.append(asked()))
        timer.start()
        watcher.start()
        while not noted:  # each round is native code, and lets other threads run
            hashlib.pbkdf2_hmac("sha256", b"", b"", 300_000)
        assert asked()


@pytest.mark.parametrize("handled", [False, True], ids=["in native code", "before it"])
def test_copies_that_arrive_in_native_code_are_one_request(monkeypatch: pytest.MonkeyPatch, handled: bool) -> None:
    """Slurm sends SIGTERM to ranks, and their launcher other signals; handlers are called later for all of them."""
    monkeypatch.setattr(signals, "_COPIES", 0.1)

    def send() -> None:
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
            os.kill(os.getpid(), number)

    sender = threading.Timer(0.02, send)
    with StopRequest(late=lambda: None).listening() as stop:
        if handled:
            signal.raise_signal(signal.SIGTERM)
        sender.start()
        for _ in range(2):
            hashlib.pbkdf2_hmac("sha256", b"", b"", 400_000)  # takes longer than copies do
            sender.join()
        assert stop()


def test_the_first_termination_signal_after_a_request_to_stop_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm sends one at the time limit, while a run still writes the checkpoint for which SIGUSR1 has asked."""
    monkeypatch.setattr(signals, "_COPIES", 0.0)
    with StopRequest(late=lambda: None).listening() as stop:
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGTERM)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)


# The launcher -------------------------------------------------------------------------------------------------------
DEAF = """#!/bin/sh
case $* in *minga.cli.rank*) ;; *) exit;; esac
trap '' USR1 TERM INT
touch ready
(while :; do sleep 0.1; done) &
kill -STOP $$
"""


@pytest.mark.slow
def test_ranks_that_do_not_answer_are_ended(in_tmp_path: Path) -> None:
    """Neither the launcher nor what it started can be asked; one is stopped. The run can be begun again."""
    fake = in_tmp_path / "mpiexec"
    fake.write_text(DEAF)
    fake.chmod(0o755)
    words = [
        sys.executable,
        "-c",
        "import minga.launch.signals as s; s.GRACE = 0.3\nfrom minga.cli.main import main; main()",
    ]
    with subprocess.Popen(
        [*words, "run", "small.toml", "-n", "2", "--out", "here"],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"MINGA_MPIEXEC": str(fake)},
    ) as process:
        wait_for(Path("ready").exists)
        for _ in range(2):  # as timeout does
            process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert time.monotonic() - began < 10
    assert "minga: the ranks did not end their step within" in err
    assert " is stopped" in err
    assert "minga run --resume here starts from the first step" in err
    assert "Traceback" not in err
    assert Path("here/case.toml").exists()
    assert not _processes_with(str(fake))


def _processes_with(word: str) -> list[int]:
    """The processes that have a word in their command line, but for launchers."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if word in words and "-launcher" not in words and "--launcher" not in words:
            found.append(int(path.parent.name))
    return sorted(found)


ENDLESS = ("--set", "run.steps=100000000", "--set", "run.layout=slabs", "--set", "output.every=100000")
ENDLESS += ("--set", "checkpoint.every=2000", "--set", "run.ranks=2")


def _checkpoint(run: str, process: subprocess.Popen[str]) -> Path:
    """The first checkpoint of a run, once it is there."""
    path = Path(run, "checkpoints/a/checkpoint.json")
    wait_for(lambda: path.exists() or process.poll() is not None)
    assert path.exists()
    return path


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("whom", ["launcher", "rank", "timeout"])
def test_a_stopped_rank_does_not_keep_a_run(whom: str) -> None:
    run = f"here-{whom}"
    words = command("run", "small.toml", *ENDLESS, "--out", run, "-n", 2)
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        _checkpoint(run, process)
        ranks = [pid for pid in descendants(process.pid) if "minga.cli.rank" in _words(pid)[:4]]
        assert len(ranks) == 2
        os.kill(ranks[1], signal.SIGSTOP)
        began = time.monotonic()
        for _ in range(2):
            os.kill(ranks[0] if whom == "rank" else process.pid, signal.SIGTERM)
        if whom == "timeout":
            os.killpg(process.pid, signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 10
    assert process.returncode == 130, err
    assert f"resume it with: minga run --resume {run}" in err
    assert "Traceback" not in err
    assert not any("minga.cli.rank" in _words(pid) for pid in ranks)
    assert json.loads(Path(run, "progress.json").read_text())["state"] == "stopped"
    heads = [path for slot in "ab" if (path := Path(run, "checkpoints", slot, "checkpoint.json")).exists()]
    steps = max(json.loads(path.read_text())["checkpoint"]["step"] for path in heads) + 5000
    said = in_process("run", "--resume", run, "-n", 1, "--set", f"run.steps={steps}", "--json")
    assert said.status == 0, said


def _words(process: int) -> list[str]:
    """The command line of a process; empty where it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


@pytest.mark.mpi
@pytest.mark.slow
def test_a_job_of_a_persons_own_ends_with_a_stopped_rank() -> None:
    words = [str(mpiexec()), "-launcher", "fork", *command("run", "small.toml", *ENDLESS, "--out", "own")]
    words[3:3] = ["-n", "2"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        _checkpoint("own", process)
        first = json.loads(Path("own/progress.json").read_text())["pid"]
        (other,) = set(_processes_with("own")) - {first}
        os.kill(other, signal.SIGSTOP)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 10
    assert process.returncode in (9, 130), err  # of the rank that was stopped, or of the one that says so
    assert "minga: rank 0 of 2 could not end its step" in err
    assert "resume it with: minga run --resume own" in err
    assert json.loads(Path("own/progress.json").read_text())["state"] == "stopped"


# What stays ---------------------------------------------------------------------------------------------------------
def test_only_a_run_that_never_began_is_removed(in_tmp_path: Path) -> None:
    files = {
        "fields.manifest.jsonl": "{}\n",
        "checkpoints/a/blocks-000000.bin": "x",
        "series.json": "{}",
        "ledger.json": "{}",
    }
    files |= {"result.json": "{}", "progress.json": '{"step": 3}'}
    for name, content in files.items():
        directory = RunDirectory.create(None, "life")
        directory.case.write_text("")
        directory.path.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        directory.path.joinpath(name).write_text(content)
        assert not directory.discard()
        assert directory.case.exists()
        assert directory.path.joinpath(name).read_text() == content
    began = RunDirectory.create(in_tmp_path / "new" / "one", "life")
    began.case.write_text("")
    began.progress.write_text('{"step": 0}')
    assert began.discard()
    assert not Path("new").exists()
    noted = RunDirectory.create(in_tmp_path / "noted", "life")
    noted.case.write_text("")
    Path("noted/notes.txt").write_text("what a person wrote down")
    noted.discard()
    assert [path.name for path in Path("noted").iterdir()] == ["notes.txt"]


GONE = """\
import os
import minga as mg
run = {"steps": 1000000, "ranks": %d}
checkpoint = {"every": 5}
output = {"every": 500000}

def model():
    grid = mg.Grid((8, 8))
    u = mg.Field("u", grid)
    step = mg.Program("step")
    count = [0]
    def work(engine):
        count[0] += 1
        if count[0] == %d and engine.comm.rank == 0:
            os.rename("runs/gone", "removed")
    step.call(work, reads=[u], writes=[u])
    return mg.Model(name="gone", grid=grid, fields=(u,), step=step, initial={"u": 1.0})
"""


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=[pytest.mark.mpi, pytest.mark.slow])])
@pytest.mark.parametrize("when", [4, 40])
def test_a_directory_that_is_removed_meanwhile_stays_removed(
    when: int, ranks: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is not recreated in part, and nobody says that something would be complete in it."""
    Path("gone.py").write_text(GONE % (ranks, when))
    said = in_process("run", "gone.py", "-n", ranks)
    err = said.err + capfd.readouterr().err
    assert said.status == 1
    assert "runs/gone was removed while the run went on" in err
    assert "intact" not in err
    assert "complete" not in err
    assert "results up to then are in" not in err
    assert "Traceback" not in err
    assert not Path("runs/gone").exists()


def test_a_rank_that_finds_no_directory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person may remove it while ranks start."""
    order = {"target": "runs/gone/case.toml", "overrides": [], "options": {}, "run": "runs/gone"}
    monkeypatch.setattr(rank, "silence_stdout", lambda: None)
    monkeypatch.setattr(rank, "EventWriter", lambda: None)
    monkeypatch.setattr("minga.engine.comm.MPIComm", SerialComm)
    with pytest.raises(RunError, match="runs/gone was removed while the run went on"):
        rank._run(order, StopRequest(), None)


def test_a_run_that_writes_nothing_for_long_notices_that_its_directory_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minga.output.progress._INTERVAL", 0.0)
    Path("gone.py").write_text(GONE.replace('"every": 5}', '"every": "off"}') % (1, 4))
    said = in_process("run", "gone.py")
    assert said.status == 1
    assert "runs/gone was removed while the run went on" in said.err
    assert not Path("runs/gone").exists()
