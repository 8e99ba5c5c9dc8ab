"""Real ranks that are killed, stopped or left alone: the run says so, ends them, and continues to the same digest."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import SMALL, Said, as_person, command, in_process
from minga.launch.processes import descendants, process_here
from minga.launch.watchdog.order import OVER, Order
from minga.launch.watchdog.pulse import Pulse, PulseFile, pulse_folder, read_pulses
from minga.launch.watchdog.watch import AGENT
from minga.launch.watchdog.watched import watch_limit
from mpi_launch import mpiexec

DYING = """
import os, pathlib, signal
import minga as mg

run = {"steps": 12, "halo_depth": 1, "layout": "slabs"}
output = {"every": 4, "pictures": 0, "report": False}


@mg.kernel
def grow(u, new):
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]) + mg.index(0, "f8")


def model(shape=(24, 32), *, times=1):
    grid = mg.Grid(shape)
    u = mg.Field("u", grid, slots=2, boundary=mg.fixed(0.0))
    step = mg.Program("step")
    step.apply(grow, u, u.next)
    step.rotate(u)

    def die(engine):
        marks = [pathlib.Path(f"died-{number}") for number in range(times)]
        left = [mark for mark in marks if not mark.exists()]
        kept = pathlib.Path("run/checkpoints/b/checkpoint.json").exists()
        if kept and left and engine.comm.rank == engine.comm.size - 1 and engine.comm.size > 1:
            left[0].touch()
            os.kill(os.getpid(), signal.SIGKILL)

    step.call(die)
    return mg.Model("dying", grid, (u,), step, initial={u: 1.0}, output=("u",))
"""
"""A case whose last rank is killed after its second checkpoint, a few times."""

ENDLESS = ("--set", "run.steps=100000000", "--set", "run.layout=slabs", "--set", "output.every=100000")
ENDLESS += ("--set", "checkpoint.every=2000", "-n", "2")


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)


def words_of(pid: int) -> list[str]:
    """The command line of a process; empty where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def ranks_of(pid: int) -> list[int]:
    return [one for one in descendants(pid) if "minga.cli.rank" in words_of(one)[:4]]


def state(run: str) -> dict[str, object]:
    content: dict[str, object] = json.loads(Path(run, "progress.json").read_text())
    return content


def digest(said: Said) -> str:
    assert said.status == 0, said
    return str(json.loads(said.out)["digest"])


def test_pulses_are_read_as_they_were_written(tmp_path: Path) -> None:
    folder = tmp_path / "pulses"
    folder.mkdir()
    files = [PulseFile(folder, rank) for rank in (1, 0)]
    files[0].write(5, 1 << 40, 7, "checkpoint")
    (folder / "0000002.pulse").write_bytes(b"nonsense")
    assert read_pulses(folder) == [
        Pulse(0, os.getpid(), 0, 0, 0, "starting"),
        Pulse(1, os.getpid(), 5, 1 << 40, 7, "checkpoint"),
    ]
    assert read_pulses(tmp_path / "none") == []


@pytest.mark.slow  # an agent reports once a second
def test_an_agent_goes_on_to_watch_when_a_batch_system_ends_the_job(tmp_path: Path) -> None:
    """SIGTERM reaches all processes of a job, and ranks have some time to end."""
    order = Order(secrets.token_hex(8), str(tmp_path), None)
    with subprocess.Popen(
        [sys.executable, "-m", AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as agent:
        try:
            assert agent.stdin is not None
            assert agent.stdout is not None
            agent.stdin.write(json.dumps(order.as_dict()) + "\n")
            assert json.loads(agent.stdout.readline())["ranks"] == []
            agent.send_signal(signal.SIGTERM)
            assert [json.loads(agent.stdout.readline())["ranks"] for _ in range(2)] == [[], []]
            agent.stdin.write(json.dumps(OVER) + "\n")
            assert agent.wait(30) == 0
        finally:
            agent.kill()


def test_the_limit_is_a_setting(in_tmp_path: Path) -> None:
    assert (watch_limit("off"), watch_limit(10), watch_limit("2 min")) == (None, 10.0, 120.0)
    Path("small.toml").write_text(SMALL)
    for wrong, said in (("1 s", "hosts report once a second"), ("soon", "found 'soon'")):
        refused = in_process("run", "small.toml", "--set", f'run.watch="{wrong}"')
        assert (refused.status, said in refused.err, "run.watch" in refused.err) == (2, True, True)
    assert not Path("runs").exists()


@pytest.mark.mpi
@pytest.mark.slow  # tests/launch/watchdog/test_judge.py and test_restarts.py have no processes
def test_a_run_continues_after_a_rank_was_killed(in_tmp_path: Path) -> None:
    Path("dying.py").write_text(DYING)
    expected = digest(in_process("run", "dying.py", "-n", 1, "--out", "alone", "--json"))
    said = as_person(
        "run",
        "dying.py",
        "-n",
        2,
        "--out",
        "run",
        "--set",
        "checkpoint.every=4",
        "--json",
        "--set",
        'run.on_loss="continue"',
    )
    assert digest(said) == expected
    assert "minga: rank 1 (process" in said.err
    assert "was lost: it was killed; the run goes back to its checkpoint of step 8" in said.err
    assert Path("run/epoch").read_text().startswith("2 ")
    assert state("run")["state"] == "finished"
    sessions = json.loads(Path("run/ledger.json").read_text())["sessions"]
    assert [(one["first"], one["last"]) for one in sessions] == [(0, 8), (8, 12)]


@pytest.mark.mpi
@pytest.mark.slow
def test_a_run_that_dies_at_the_same_place_again_is_given_up(in_tmp_path: Path) -> None:
    Path("dying.py").write_text(DYING)
    words = [
        "run",
        "dying.py",
        "-n",
        2,
        "--out",
        "run",
        "--set",
        "checkpoint.every=4",
        "--set",
        'run.on_loss="continue"',
        "--set",
        "parameters.times=9",
    ]
    said = as_person(*words)
    assert said.status == 1
    assert "the run is given up after 2 losses in a row, and no checkpoint was written between them" in said.err
    assert "resume it with: minga run --resume run" in said.err
    assert state("run")["state"] == "lost"


@pytest.mark.mpi
@pytest.mark.slow
def test_a_stopped_rank_is_named_within_the_limit_and_continued(in_tmp_path: Path) -> None:
    Path("small.toml").write_text(SMALL)
    settings = ["--set", 'run.watch="4 s"']
    with subprocess.Popen(
        command("run", "small.toml", *ENDLESS, *settings, "--out", "here"), stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(Path("here/checkpoints/a/checkpoint.json").exists)
        victim = ranks_of(process.pid)[1]
        for seconds in (3.0, 0.0):  # the first fault is a short one
            os.kill(victim, signal.SIGSTOP)
            began = time.monotonic()
            time.sleep(seconds)
            if seconds:
                os.kill(victim, signal.SIGCONT)
                time.sleep(2)
                assert process.poll() is None
        _, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 8
    assert process.returncode == 1
    assert f"minga: rank 1 (process {victim} on " in err
    assert "runs again, after " in err
    assert "was lost: it has been stopped for 4 s" in err
    assert process_here(victim) is None
    assert state("here")["state"] == "lost"


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("stopped", [False, True])
def test_a_launcher_that_is_killed_leaves_no_ranks(in_tmp_path: Path, stopped: bool) -> None:
    Path("small.toml").write_text(SMALL)
    with subprocess.Popen(command("run", "small.toml", *ENDLESS, "--out", "here"), stderr=subprocess.PIPE) as process:
        wait_for(Path("here/checkpoints/a/checkpoint.json").exists)
        started = descendants(process.pid)
        if stopped:
            os.kill(ranks_of(process.pid)[1], signal.SIGSTOP)
        process.kill()
    wait_for(lambda: not any(process_here(pid) for pid in started), 20)
    wait_for(lambda: state("here")["state"] == "lost", 5)
    assert "the process that started the run was killed" in str(state("here")["reason"])
    steps = json.loads(Path("here/checkpoints/a/checkpoint.json").read_text())["checkpoint"]["step"] + 5000
    said = in_process("run", "--resume", "here", "-n", 1, "--set", f"run.steps={steps}", "--json")
    assert said.status == 0, said


@pytest.mark.mpi
@pytest.mark.slow
def test_nothing_is_left_in_memory(in_tmp_path: Path) -> None:
    Path("small.toml").write_text(SMALL)
    folder = pulse_folder("x").parent
    before = set(folder.glob("minga-*"))
    assert as_person("run", "small.toml", "-n", 2).status == 0
    assert set(folder.glob("minga-*")) <= before


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize(("victim", "settings", "status"), [(1, [], 1), (1, ["continue"], 75), (0, [], None)])
def test_a_stopped_rank_ends_a_job_of_a_persons_own(
    in_tmp_path: Path, victim: int, settings: list[str], status: int | None
) -> None:
    Path("small.toml").write_text(SMALL)
    words = command(
        "run", "small.toml", *ENDLESS[:-2], "--set", "run.ranks=2", "--set", 'run.watch="4 s"', "--out", "own"
    )
    words += [f'--set=run.on_loss="{setting}"' for setting in settings]
    job = [str(mpiexec()), "-launcher", "fork", "-n", "2", *words]
    with subprocess.Popen(job, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        wait_for(Path("own/checkpoints/a/checkpoint.json").exists)
        time.sleep(1)
        first = int(str(state("own")["pid"]))
        (other,) = [pid for pid in descendants(process.pid) if pid != first and words_of(pid)[1:4] == words[1:4]]
        os.kill((first, other)[victim], signal.SIGSTOP)
        began = time.monotonic()
        _, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 8
    assert process.returncode != 0
    assert status is None or process.returncode == status
    if victim:
        assert f"minga: rank 1 (process {other} on " in err
        assert "was lost: it has been stopped for 4 s" in err
        assert "resume it with: minga run --resume own" in err
    wait_for(lambda: state("own")["state"] == "lost", 5)
    wait_for(lambda: not any(process_here(pid) for pid in (first, other)), 5)
