"""``minga run --resume``: interrupted runs that end as if nothing had happened, and what is refused."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from command_line import SMALL, Said, as_person, command, in_process, nothing_written
from killing import left
from minga.cli.case import read_case
from minga.engine.comm import SerialComm
from minga.errors import RunError
from minga.launch import rank_end
from minga.launch.watchdog.loss import Loss, LossError
from minga.output.directory import RunDirectory
from minga.output.progress import process_is_gone
from minga.running.past import Past
from minga.running.run_output import RunOutput

CASE = """\
model = "automaton"

[grid]
shape = [96, 130]
boundary = "periodic"

[automaton]
rule = "B3/S23"
init = {soup = 0.3, seed = 1}
update = {asynchronous = 0.9}

[run]
steps = 160
ranks = 1

[checkpoint]
every = 15

[output]
every = 20
observe = 10
pictures = 0
report = false
"""


@pytest.fixture(autouse=True)
def case(in_tmp_path: Path) -> Path:
    """A small case with chance in it, ``noisy.toml``, in the working directory."""
    path = in_tmp_path / "noisy.toml"
    path.write_text(CASE)
    return path


def run(*words: object) -> Said:
    return in_process("run", *words, "--json")


def whole(*words: object) -> dict[str, str]:
    """What the run leaves that nobody interrupts."""
    said = run("noisy.toml", "--out", "whole", *words)
    assert said.status == 0, said
    return left(Path("whole"))


def interrupted(out: str = "cut", *words: object) -> dict[str, Any]:
    """A run whose time is up after its first steps."""
    said = run("noisy.toml", "--out", out, "--set", "run.wall_time=1", *words)
    assert said.status == 75, said
    result: dict[str, Any] = json.loads(said.out)
    assert result["ended"]["reason"] == "time limit"
    assert "minga run --resume" in said.err
    return result


ON = ("--set", "run.wall_time=1 d")


def test_a_run_goes_on_as_if_nothing_had_happened() -> None:
    expected = whole()
    before = interrupted()
    assert 0 < before["steps"] < 160
    assert json.loads(Path("cut/progress.json").read_text())["state"] == "stopped"
    shown = [in_process("show", "cut", "--protocol", "none"), in_process("report", "cut")]
    assert [said.status for said in shown] == [0, 0], shown
    assert "its time was up" in Path("cut/report.html").read_text()
    said = run("--resume", "cut", *ON)
    assert said.status == 0, said
    assert f"resuming after step {before['steps']} of 160" in said.err
    assert left(Path("cut")) == expected
    result = json.loads(said.out)
    first, second = json.loads(Path("cut/ledger.json").read_text())["sessions"]
    assert (first["first"], first["last"], second["first"], second["last"]) == (0, *[before["steps"]] * 2, 160)
    assert first["seconds"] + second["seconds"] == pytest.approx(result["seconds"])
    assert json.loads(Path("cut/progress.json").read_text())["state"] == "finished"
    assert not Path("cut/checkpoints").exists()


@pytest.mark.slow
def test_a_finished_run_says_so() -> None:
    expected = whole()
    with nothing_written(Path("whole")):
        said = run("--resume", "whole")
    assert said.status == 2
    assert "finished: all 160 steps are done" in said.err
    assert left(Path("whole")) == expected


@pytest.mark.slow
def test_a_run_that_was_killed_after_its_result_gets_its_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    words = ("--set", "output.report=true", "--set", "output.pictures=2")
    with monkeypatch.context() as patch:
        patch.setattr("minga.running.finishing.finish", killed)
        assert run("noisy.toml", "--out", "cut", *words).status == 130
    expected, kept = left(Path("cut")), Path("cut/result.json").read_bytes()
    assert json.loads(Path("cut/progress.json").read_text())["state"] == "finishing"
    progress = json.loads(Path("cut/progress.json").read_text()) | {"born": "before"}
    Path("cut/progress.json").write_text(json.dumps(progress))
    said = run("--resume", "cut")
    assert said.status == 0, said
    assert json.loads(said.out)["steps"] == 160
    assert "all steps of cut were done" in said.err
    assert Path("cut/report.html").is_file()
    assert len(list(Path("cut/pictures").iterdir())) == 2
    assert (left(Path("cut")), Path("cut/result.json").read_bytes()) == (expected, kept)
    assert json.loads(Path("cut/progress.json").read_text())["state"] == "finished"
    assert run("--resume", "cut").status == 2


@pytest.mark.slow
def test_a_run_can_be_made_longer() -> None:
    expected = whole("--set", "run.steps=193")
    for steps, out in ((87, "short"), (160, "regular")):
        said = run("noisy.toml", "--out", out, "--set", f"run.steps={steps}", "--set", "checkpoint.at_end=true")
        assert said.status == 0, said
        assert run(out, "--resume").status == 2
        said = run(out, "--resume", "--set", "run.steps=193")
        assert said.status == 0, said
        assert left(Path(out)) == expected
        assert tomllib.loads(Path(out, "case.toml").read_text())["run"]["steps"] == 193


@pytest.mark.slow
def test_a_run_without_a_checkpoint_begins_again() -> None:
    expected = whole()
    interrupted()
    shutil.rmtree("cut/checkpoints")
    said = run("--resume", "cut", *ON)
    assert said.status == 0, said
    assert "no checkpoint was written yet" in said.err
    assert left(Path("cut")) == expected


@pytest.mark.slow
def test_frames_do_not_go_for_those_of_another_case() -> None:
    interrupted()
    shutil.rmtree("cut/checkpoints")
    with nothing_written(Path("cut")):
        said = run("--resume", "cut", *ON, "--set", 'automaton.rule="B36/S23"')
    assert said.status == 2
    assert "a resumed run must not change entries" in said.err


@pytest.mark.slow
def test_damage_is_told() -> None:
    expected = whole()
    steps = interrupted("cut", "--set", "checkpoint.every=1")["steps"]
    newest = max(Path("cut/checkpoints").iterdir(), key=lambda slot: (slot / "checkpoint.json").stat().st_mtime_ns)
    both = len(list(Path("cut/checkpoints").iterdir())) == 2
    with (newest / "blocks-000000.bin").open("r+b") as file:
        file.seek(200)
        file.write(b"\xff\xfe\xfd\xfc")
    said = run("--resume", "cut", *ON)
    if both:
        assert said.status == 0, said
        assert f"{newest.name}/blocks-000000.bin has changed" in said.err
        assert f"the checkpoint of step {steps - 1} is used" in said.err
        assert left(Path("cut")) == expected
    else:
        assert said.status == 1, said
        assert "can be used" in said.err


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--set", "automaton.rule=B36/S23"], ["automaton.rule: it was 'B3/S23', now it is 'B36/S23'"]),
        (["--set", "output.every=7"], ["output.every: it was 20, now it is 7"]),
        (["--set", "stop.when=step > 3"], ["stop.when: it was None, now it is 'step > 3'"]),
        (["--set", "run.steps=0"], ["steps are done, more than 0"]),
        (["--out", "there"], ["--out", "continues in its own directory"]),
        (["--force"], ["--force", "leave it out"]),
    ],
)
def test_what_may_not_change(in_tmp_path: Path, words: list[str], expected: list[str]) -> None:
    interrupted()
    with nothing_written(in_tmp_path):
        said = run("--resume", "cut", *words)
    assert said.status == 2, said
    for word in expected:
        assert word in said.err
    assert "Traceback" not in said.err


@pytest.mark.slow
def test_an_input_that_has_changed_is_told() -> None:
    Path("start.cells").write_text(".O\n..O\nOOO\n")
    said = run("noisy.toml", "--out", "cut", "--set", "automaton.init=start.cells", "--set", "run.wall_time=1")
    assert said.status == 75, said
    next(Path("cut/inputs").iterdir()).write_text("OOO\n")
    said = run("--resume", "cut", *ON)
    assert said.status == 2
    assert "inputs/start.cells: the file has changed" in said.err


@pytest.mark.slow
def test_what_is_no_interrupted_run() -> None:
    Path("nothing").mkdir()
    for target in ("nothing", "noisy.toml", "nowhere"):
        said = run("--resume", target)
        assert said.status == 2
        assert "is not a run directory" in said.err
    interrupted()
    progress = json.loads(Path("cut/progress.json").read_text())
    Path("cut/progress.json").write_text(json.dumps(progress | {"state": "running", "pid": os.getpid()}))
    said = run("--resume", "cut")
    assert said.status == 2
    assert f"is still active, as process {os.getpid()}" in said.err
    # Another process has its number now, as after a restart of a container.
    Path("cut/progress.json").write_text(
        json.dumps(progress | {"state": "running", "born": "before", "system": "before"})
    )
    # On a node of a lab: it has a name of its own, and its processes are those of this machine.
    Path("cut/progress.json").write_text(
        json.dumps(progress | {"state": "running", "host": "node1", "updated": time.time(), "pid": os.getpid()})
    )
    assert f"is still active, as process {os.getpid()} on node1" in run("--resume", "cut").err
    gone = progress | {"state": "running", "host": "node1", "updated": time.time(), "born": "before"}
    Path("cut/progress.json").write_text(json.dumps(gone))
    assert run("--resume", "cut", *ON).status == 0


def test_a_process_that_nobody_has_buried_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert process_is_gone({"pid": process.pid, "born": "before", "host": platform.node()})


@pytest.mark.slow
def test_frames_that_are_missing_are_told() -> None:
    expected, steps = whole(), interrupted()["steps"]
    shutil.copytree("cut", "gone")
    Path("cut/fields.zarr/cell/c.0.0.0").unlink()
    said = run("--resume", "cut", *ON)
    assert said.status == 0, said
    assert "frames 0 in cut/fields.zarr are damaged or missing" in said.err
    shutil.rmtree("gone/fields.zarr")
    said = run("--resume", "gone", *ON)
    assert said.status == 0, said
    assert f"gone/fields.zarr is gone, and with it the frames up to step {steps}" in said.err
    assert left(Path("gone"))["digest"] == expected["digest"]


@pytest.mark.slow
def test_a_run_that_cannot_begin_again_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted()
    shutil.rmtree("cut/checkpoints")

    def full(*_: object, **__: object) -> None:
        raise RunError("cannot write cut/fields.zarr: No space left on device")

    monkeypatch.setattr("minga.running.run_output.Snapshots", full)
    said = run("--resume", "cut", *ON)
    assert said.status == 1
    assert "No space left" in said.err
    assert Path("cut/case.toml").exists()


def test_what_all_ranks_find_wrong_is_said_by_the_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(seconds: float) -> None:
        assert seconds > 1
        raise SystemExit

    monkeypatch.setattr(rank_end.time, "sleep", ended)
    rank_end._report(RunError("the disk is full"), 0, 3)
    assert "the disk is full" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        rank_end._report(RunError("the disk is full"), 1, 3)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (["checkpoint.every=0"], ["checkpoint.every"]),
        (["checkpoint.seconds=-1"], ["checkpoint.seconds"]),
        (["run.wall_time=soon"], ["run.wall_time", "10 min"]),
        (["run.wall_time=1 h", "checkpoint.every=off"], ["run.wall_time", "stop.wall_time"]),
    ],
)
def test_settings_that_cannot_be_meant(in_tmp_path: Path, settings: list[str], expected: list[str]) -> None:
    with nothing_written(in_tmp_path):
        said = run("noisy.toml", *(word for text in settings for word in ("--set", text)))
    assert said.status == 2, said
    for word in expected:
        assert word in said.err


# Kills --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("seed", "kills"), [(1, 2), pytest.param(2, 60, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
@pytest.mark.slow
def test_kills_at_any_moment_change_nothing(in_tmp_path: Path, seed: int, kills: int) -> None:
    script = Path(__file__).parents[1] / "killing.py"
    words = [sys.executable, str(script), "noisy.toml", str(in_tmp_path), str(seed), str(kills)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=3600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "failed" not in found, found["failed"]
    assert (found["kills"], found["differing"]) == (kills, [])
    assert found["complete"] > 0


@pytest.mark.slow
def test_a_signal_writes_a_last_checkpoint() -> None:
    words = ["noisy.toml", "--out", "cut", "--set", "run.steps=100000000", "--set", "checkpoint.every=1000000"]
    process = subprocess.Popen(command("run", *words), stderr=subprocess.PIPE, text=True)
    while not Path("cut/fields.zarr/cell/c.1.0.0").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "resume it with: minga run --resume cut" in err
    head = json.loads(Path("cut/checkpoints/a/checkpoint.json").read_text())["checkpoint"]
    assert head["step"] == json.loads(Path("cut/result.json").read_text())["steps"] > 0


# The disk -----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_full_disk_is_one_clear_error(in_tmp_path: Path) -> None:
    """On a small file system of its own, where this may be mounted."""
    small = in_tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(small)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounts a small file system: run the tests as root, where that is allowed")
    try:
        said = in_process("run", "noisy.toml", "--out", small / "run")
        assert said.status == 1
        assert "No space left on device" in said.err
        assert "Traceback" not in said.err
        shutil.copytree(small / "run", "cut")
    finally:
        subprocess.run(["umount", str(small)], check=True)
    Path("cut/progress.json").unlink(missing_ok=True)  # for the process that it names is this one, and goes on
    expected = whole()
    said = run("--resume", "cut")
    assert said.status == 0, said
    assert left(Path("cut")) == expected


# Ranks --------------------------------------------------------------------------------------------------------------
@pytest.mark.slow  # tests/models/matmul/cli kills a rank as well
@pytest.mark.mpi
def test_a_rank_that_is_killed_ends_the_run_which_goes_on_with_fewer() -> None:
    seldom = ("--set", "output.every=200", "--set", "output.observe=100")
    words = ["noisy.toml", "--out", "cut", "-n", 3, *seldom, "--set", "checkpoint.every=40"]
    process = subprocess.Popen(
        command("run", *words, "--set", "run.steps=100000000"), stderr=subprocess.PIPE, text=True
    )
    while not Path("cut/checkpoints/a/checkpoint.json").exists() and process.poll() is None:
        time.sleep(0.02)
    ranks = _ranks_of(str(Path("cut").absolute()))
    assert len(ranks) == 3
    os.kill(ranks[1], signal.SIGKILL)
    _, err = process.communicate(timeout=10)  # seconds, as promised
    assert process.returncode == 1, err
    assert not _ranks_of(str(Path("cut").absolute()))
    assert "Traceback" not in err
    assert "minga run --resume" in err
    heads = [json.loads(path.read_text()) for path in Path("cut/checkpoints").glob("?/checkpoint.json")]
    steps = max(head["checkpoint"]["step"] for head in heads) + 20
    said = as_person("run", "--resume", "cut", "-n", 2, "--set", f"run.steps={steps}", "--json")
    assert said.status == 0, said
    assert json.loads(said.out)["ranks"] == 2
    assert left(Path("cut")) == whole(*seldom, "--set", f"run.steps={steps}")


def _ranks_of(run: str) -> list[int]:
    """The processes that are ranks of a run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            if "minga.cli.rank" in line[:4] and Path(json.loads(line[-2])["run"]).absolute() == Path(run):
                found.append(int(entry.name))
    return sorted(found)


def test_settings_of_checkpoints_are_in_the_resolved_case() -> None:
    Path("small.toml").write_text(SMALL)
    result = json.loads(run("small.toml").out)
    table = tomllib.loads(Path(result["run"], "case.toml").read_text())
    assert table["checkpoint"] == {"seconds": 300.0, "at_end": False, "place": "partner"}
    assert not Path(result["run"], "checkpoints").exists()


def test_a_number_of_ranks_that_nobody_asked_for_is_left_open() -> None:
    """A resumed run uses what its machine, or its job, has then."""
    text = Path("noisy.toml").read_text()
    Path("noisy.toml").write_text(text.replace("ranks = 1\n", ""))

    def kept() -> int | None:
        found: int | None = tomllib.loads(Path("cut/case.toml").read_text())["run"].get("ranks")
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minga.cli.start._default_ranks", lambda case: 1)
        interrupted()
        assert kept() is None
        assert run("--resume", "cut").status == 75
        assert kept() is None
    assert run("--resume", "cut", "-n", 1).status == 75
    assert kept() == 1


def test_the_time_limit_is_that_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks that are started again after a loss get what is left of it."""
    orders: list[dict[str, Any]] = []
    now = [100.0]

    def lost(ranks: object, order: dict[str, Any], *_: object) -> int:
        orders.append(order)
        now[0] += 7.0
        raise LossError(Loss("a rank was lost", None))

    monkeypatch.setattr("minga.launch.launch.launch", lost)
    monkeypatch.setattr("minga.launch.watchdog.carry_on.time", SimpleNamespace(sleep=lambda _: None, monotonic=float))
    monkeypatch.setattr("minga.cli.run.time", SimpleNamespace(monotonic=lambda: now[0]))
    said = run("noisy.toml", "-n", 2, "--out", "cut", "--set", 'run.on_loss="continue"')
    assert "the run is given up after 2 losses in a row" in said.err
    assert [order["past"]["seconds"] for order in orders] == [0.0, 7.0]
    case = read_case("noisy.toml", options={"run.wall_time": 60.0})
    made = RunOutput.of(
        RunDirectory.create(Path("made"), "noisy"), case.model, case.fields, SerialComm(), case.options, past=Past(59.5)
    )
    assert made.keeper.wishes(0.0)[1]
    made.keeper.began += 50.0
    assert not made.keeper.wishes(0.0)[1]
