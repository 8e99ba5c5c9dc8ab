"""Runs from beginning to end on one rank: what is printed, what is left, and that it can be repeated."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from matplotlib.image import imread

import minga
from command_line import SMALL, as_person, command, in_process, nothing_written
from minga.errors import RunError
from minga.output.digest import digest_of_arrays
from minga.output.directory import disk_errors
from minga.running.run_output import RunOutput


@pytest.fixture(autouse=True)
def case(in_tmp_path: Path) -> Path:
    """A correct small case, ``small.toml``, in the working directory."""
    path = in_tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def result_of(*words: object) -> dict[str, object]:
    said = in_process("run", *words, "--json")
    assert said.status == 0, said
    (line,) = said.out.splitlines()
    result: dict[str, object] = json.loads(line)
    return result


def life(cells: np.ndarray, steps: int) -> np.ndarray:
    """Conway's Life on a torus, as NumPy says it."""
    for _ in range(steps):
        around = sum(np.roll(cells, (dy, dx), (0, 1)).astype(int) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx)
        cells = ((around == 3) | ((cells == 1) & (around == 2))).astype(cells.dtype)
    return cells


def test_json_is_exactly_one_object() -> None:
    said = as_person("run", "small.toml", "--json")
    assert said.status == 0
    assert said.err == ""
    result = json.loads(said.out)
    assert list(result) == [
        *("model", "shape", "steps", "ended", "ranks", "threads", "seconds", "cells_per_second"),
        *("digest", "observables", "units", "run", "layout", "costs", "environment"),
    ]
    assert result["model"] == "automaton"
    assert result["shape"] == [40, 64]
    assert (result["steps"], result["ranks"], result["threads"]) == (10, 1, 1)
    assert result["seconds"] > 0
    assert result["cells_per_second"] == pytest.approx(40 * 64 * 10 / result["seconds"])
    assert len(result["digest"]) == 16
    assert result["run"] == "runs/small"
    assert json.loads(Path("runs/small/result.json").read_text()) == result


def test_what_a_run_leaves_is_right() -> None:
    result = result_of("small.toml", "--set", "output.pictures=3")
    run = Path("runs/small")
    names = {path.name for path in run.iterdir()}
    files = {"case.toml", "epoch", "ledger.json", "plan.json", "progress.json", "result.json", "series.json"}
    assert names == files | {"fields.zarr", "fields.manifest.jsonl", "pictures"}
    with xarray.open_zarr(run / "fields.zarr") as dataset:
        frames = dataset.cell.values
        assert dataset.time.values.tolist() == [0, 5, 10]
        assert dataset.attrs["title"] == "small"
        assert (dataset.attrs["steps"], dataset.attrs["digest"]) == (10, result["digest"])
        assert {name: dataset.attrs[name] for name in result["observables"]} == result["observables"]
    assert (frames[1] == life(frames[0], 5)).all()
    assert (frames[2] == life(frames[0], 10)).all()
    assert result["digest"] == digest_of_arrays([frames[2]])
    assert result["observables"]["population"] == frames[2].sum()  # type: ignore[index]
    (ledger,) = json.loads((run / "ledger.json").read_text())["ranks"]
    assert ledger["rank"] == 0
    assert ledger["seconds"]["compute"] > 0
    pictures = sorted(path.name for path in (run / "pictures").iterdir())
    assert pictures == ["cell-00.png", "cell-05.png", "cell-10.png"]
    assert imread(run / "pictures" / pictures[0]).std() > 0.1


def test_the_resolved_case_repeats_the_run(tmp_path: Path) -> None:
    """It spells out every setting and holds copies of the files: the originals may go."""
    Path("r.rle").write_text("x = 3, y = 3\nb2o$2o$bo!\n")
    Path("small.toml").write_text(SMALL.replace("{soup = 0.3, seed = 1}", '"r.rle"'))
    first = result_of("small.toml", "--set", "run.steps=7", "--set", "grid.shape=[30, 31]")
    Path("r.rle").unlink()
    Path("small.toml").unlink()
    table = tomllib.loads(Path("runs/small/case.toml").read_text())
    assert table["automaton"]["init"] == "inputs/r.rle"
    assert table["grid"]["shape"] == [30, 31]
    assert table["run"] == {
        "steps": 7, "ranks": 1, "threads": 1, "overlap": "auto", "halo_depth": "auto", "layout": "auto",
        "mapping": "auto", "balance": "auto", "device": "cpu", "poll": "auto", "watch": 8.0, "on_loss": "stop",
        "paint": False,
    }  # fmt: skip
    said = {"every": 5, "fields": ["cell"], "pictures": 0, "report": False, "trace": False}
    assert table["output"].items() >= (said | {"codec": "none", "buffers": 3, "policy": "block"}).items()
    for target in ("runs/small/case.toml", "runs/small"):
        again = result_of(target)
        assert again["digest"] == first["digest"]
    assert again["run"] == "runs/small-3"


def test_the_machine_file_is_kept_with_the_run() -> None:
    """Also that of a case elsewhere, and one named on the command line, where the person is."""
    Path("pc.json").write_text(
        '{"format": "minga machine", "version": 1, "nodes": [{"name": "pc", "cores": 1, "speed": "1 Mcells/s"}]}'
    )
    result_of("small.toml", "--machine", "pc.json")
    Path("pc.json").unlink()
    table = tomllib.loads(Path("runs/small/case.toml").read_text())
    assert table["run"]["machine"] == "inputs/pc.json"
    result_of("runs/small")
    result_of("small.toml", "--set", "run.machine=two-ages")


def test_a_file_of_the_topology_lies_beside_the_case_and_is_kept() -> None:
    Path("cases").mkdir()
    Path("cases/topology.conf").write_text("SwitchName=s Nodes=a,b\n")
    small = Path("small.toml").read_text().replace("[run]\n", '[run]\ntopology = "topology.conf"\n', 1)
    Path("cases/small.toml").write_text(small)
    Path("topology.conf").write_text("not this one\n")
    run = result_of("cases/small.toml")["run"]
    assert tomllib.loads(Path(run, "case.toml").read_text())["run"]["topology"] == "inputs/topology.conf"
    assert Path(run, "inputs/topology.conf").read_text() == "SwitchName=s Nodes=a,b\n"
    Path("cases/topology.conf").unlink()
    assert result_of(run)["digest"] == result_of("small.toml")["digest"]


def test_options_win_over_set_which_wins_over_the_file() -> None:
    assert result_of("small.toml", "--set", "run.threads=3", "--threads", "2")["threads"] == 2
    assert result_of("small.toml", "--set", "run.steps=3", "--set", "run.steps=4")["steps"] == 4


def test_files_on_the_command_line_are_relative_to_the_person(in_tmp_path: Path) -> None:
    Path("cases").mkdir()
    Path("small.toml").rename("cases/small.toml")
    Path("block.rle").write_text("x = 2, y = 2\n2o$2o!\n")
    result = result_of("cases/small.toml", "--set", "automaton.init=block.rle")
    assert result["observables"]["population"] == 4  # type: ignore[index]


def test_a_python_file_defines_a_model() -> None:
    Path("decay.py").write_text("""\
import minga as mg
run = {"steps": 4, "ranks": 1}
output = {"every": 2, "pictures": 0, "report": False}
print("a word from the author")

@mg.kernel
def halve(u, new):
    new[0, 0] = 0.5 * u[0, 0]

def model(shape=(3, 5), *, start=1.0):
    grid = mg.Grid(shape)
    u = mg.Field("u", grid, slots=2)
    step = mg.Program("step")
    step.apply(halve, u, u.next)
    step.rotate(u)
    return mg.Model(name="decay", grid=grid, fields=(u,), step=step, initial={"u": start})
""")
    said = as_person("run", "decay.py", "--set", "parameters.start=8.0", "--set", "grid.shape=[2, 2]", "--json")
    assert said.status == 0, said
    assert said.err == "a word from the author\n"
    result = json.loads(said.out)
    assert result["shape"] == [2, 2]
    with xarray.open_zarr("runs/decay/fields.zarr") as dataset:
        assert dataset.u.values[:, 0, 0].tolist() == [8.0, 2.0, 0.5]
    assert result_of("runs/decay")["digest"] == result["digest"]


def test_without_every_the_first_and_the_last_state_are_kept() -> None:
    Path("small.toml").write_text(SMALL.replace("every = 5", ""))
    result_of("small.toml", "--set", "run.steps=6")
    with xarray.open_zarr("runs/small/fields.zarr") as dataset:
        assert dataset.time.values.tolist() == [0, 6]


def test_no_steps_are_a_run_too() -> None:
    result = result_of("small.toml", "--set", "run.steps=0")
    assert result["steps"] == 0
    with xarray.open_zarr("runs/small/fields.zarr") as dataset:
        assert dataset.time.values.tolist() == [0]


def test_out_and_force(in_tmp_path: Path) -> None:
    assert result_of("small.toml", "--out", "here")["run"] == "here"
    with nothing_written(in_tmp_path):
        assert in_process("run", "small.toml", "--out", "here").status == 2
    assert result_of("small.toml", "--out", "here", "--force", "--set", "run.steps=1")["steps"] == 1


def test_force_spares_a_run_that_this_one_begins_with(in_tmp_path: Path) -> None:
    Path("glider.rle").write_text("x = 3, y = 3, rule = B3/S23\nbo$2bo$3o!\n")
    setting = 'automaton.init="glider.rle"'
    assert result_of("small.toml", "--out", "here", "--set", setting)["run"] == "here"
    with nothing_written(in_tmp_path):
        for words in (["here"], ["small.toml", "--set", 'automaton.init="here/inputs/glider.rle"']):
            said = in_process("run", *words, "--out", "here", "--force")
            assert said.status == 2
            assert "the case reads here/inputs/glider.rle" in said.err
    assert result_of("here", "--out", "there")["digest"] == result_of("here", "--out", "there", "--force")["digest"]


def test_force_spares_a_run_that_goes_on(in_tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minga.output.progress._LOOK", 0.01)
    result_of("small.toml", "--out", "here")
    progress = Path("here/progress.json")
    said = json.loads(progress.read_text())
    progress.write_text(json.dumps(said | {"state": "running"}))  # by this process, which is there
    with nothing_written(in_tmp_path):
        refused = in_process("run", "small.toml", "--out", "here", "--force")
    assert refused.status == 2
    assert "the run in here is still active" in refused.err
    progress.write_text(
        json.dumps(said | {"state": "running", "host": "elsewhere", "system": "another", "updated": 0.0})
    )
    assert result_of("small.toml", "--out", "here", "--force")["run"] == "here"


@pytest.mark.slow
def test_the_summary_says_where_everything_is() -> None:
    said = in_process("run", "small.toml", "--set", "output.pictures=1")
    assert said.status == 0
    for text in ("40 x 64 cells", "10 steps", "population", "digest", "runs/small/pictures/cell-10.png"):
        assert text in said.out
    assert said.err == ""


def test_the_report_is_written_and_named() -> None:
    said = in_process("run", "small.toml", "--set", "output.report=true", "--trace")
    assert said.status == 0
    assert said.err == ""
    assert "the report for a browser is runs/small/report.html" in said.out
    report = Path("runs/small/report.html").read_text()
    result = json.loads(Path("runs/small/result.json").read_text())
    assert result["digest"] in report
    assert Path("runs/small/trace.json.gz").exists()


@pytest.mark.parametrize("part", ["pictures.draw_run", "report.write_report"])
def test_what_comes_after_the_run_cannot_lose_it(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    def fails(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"minga.view.{part}", fails)
    said = in_process("run", "small.toml", "--set", "output.report=true", "--json")
    assert said.status == 0
    assert json.loads(said.out)["steps"] == 10
    assert json.loads(Path("runs/small/progress.json").read_text())["state"] == "finished"
    name = "pictures" if "pictures" in part else "report"
    assert f"the {name} could not be made, but the result is complete in runs/small" in said.err
    assert "No space left on device" in said.err
    assert "Traceback" not in said.err


def test_a_full_disk_at_the_end_leaves_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    from minga.running import run_output as module

    write = module.write_whole

    def fails(path: Path, *arguments: object, **options: object) -> None:
        if path.name == "ledger.json":
            raise RunError("cannot write ledger.json: No space left on device")
        write(path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "write_whole", fails)
    said = in_process("run", "small.toml", "--json")
    assert said.status == 1
    assert "No space left on device" in said.err
    assert json.loads(Path("runs/small/result.json").read_text())["steps"] == 10


def test_a_stop_is_no_interruption() -> None:
    said = in_process("run", "small.toml", "--set", 'stop.when="step >= 4"', "--json")
    assert said.status == 0
    result = json.loads(said.out)
    assert (result["steps"], result["ended"]["reason"]) == (4, "condition")
    assert json.loads(Path("runs/small/progress.json").read_text())["state"] == "finished"


def test_too_many_workers_are_one_line_of_warning() -> None:
    said = in_process("run", "small.toml", "--threads", "64", "--json")
    assert said.status == 0
    assert json.loads(said.out)["threads"] == 64
    (line,) = said.err.splitlines()
    assert "64 workers" in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere; run the tests as another user")
def test_a_directory_that_cannot_be_written(in_tmp_path: Path) -> None:
    locked = in_tmp_path / "locked"
    locked.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    said = in_process("run", "small.toml", "--out", str(locked / "run"))
    assert said.status == 2
    assert "cannot write" in said.err


def test_a_full_disk_is_one_error_and_keeps_what_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    from minga.output.snapshots.files import Disk

    write = Disk.write

    def full_later(self: Disk, path: Path, *arguments: object) -> None:
        if path.name.startswith("c.2."):
            raise OSError(28, "No space left on device")
        write(self, path, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Disk, "write", full_later)
        said = in_process("run", "small.toml", "--json")
    assert said.status == 1
    assert said.out == ""
    assert "No space left on device" in said.err
    assert "Traceback" not in said.err
    with xarray.open_zarr("runs/small/fields.zarr") as dataset:
        assert dataset.time.values.tolist() == [0, 5]


def test_observables_without_room_wait_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk ends no run that has everything it needs; a checkpoint without its observables does not count."""
    from minga.output import series as module

    write, full = module.write_whole, [True]

    def refused(path: Path, *arguments: object, **options: object) -> None:
        if full[0]:
            with disk_errors(path):
                raise OSError(errno.ENOSPC, "No space left on device")
        write(path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "write_whole", refused)
    monkeypatch.setattr("minga.running.run_output.RunOutput.finish", _with_room(full))
    said = in_process("run", "small.toml", "--set", "output.observe=1", "--set", "checkpoint.every=4", "--json")
    assert said.status == 0, said
    assert "the checkpoint of step 4 was not written, and there is none yet: cannot write " in said.err
    series = json.loads(Path("runs/small/series.json").read_text())
    assert series["step"] == list(range(11))


def _with_room(full: list[bool]) -> Callable[..., dict[str, Any]]:
    finish = RunOutput.finish

    def finished(*arguments: Any) -> dict[str, Any]:
        full[0] = False
        return finish(*arguments)

    return finished


EXPLOSION = """\
import minga as mg
run = {"steps": 3, "ranks": 1}

@mg.kernel
def square(u, new):
    new[0, 0] = u[0, 0] * u[0, 0]

def model():
    grid = mg.Grid((4, 4))
    u = mg.Field("u", grid, slots=2)
    step = mg.Program("step")
    step.apply(square, u, u.next)
    step.rotate(u)
    return mg.Model(name="x", grid=grid, fields=(u,), step=step, initial={"u": 1e200})
"""


@pytest.mark.slow
def test_a_value_that_is_not_finite_ends_the_run() -> None:
    Path("explosion.py").write_text(EXPLOSION)
    said = in_process("run", "explosion.py", "--json")
    assert said.status == 1
    assert said.out == ""
    assert "field 'u' is not finite at cell (0, 0)" in said.err
    with xarray.open_zarr("runs/explosion/fields.zarr") as dataset:  # what was computed before it stays
        assert dataset.time.values[0] == 0
    progress = json.loads(Path("runs/explosion/progress.json").read_text())
    assert progress["state"] == "failed"
    assert "not finite at cell (0, 0)" in progress["reason"]
    assert "not finite" in Path("runs/explosion/report.html").read_text()


SLOW = """\
import time
import minga as mg
run = {"steps": 100000, "ranks": %d}
output = {"every": 1, "pictures": 2}

def model():
    grid = mg.Grid((8, 8))
    u = mg.Field("u", grid)
    step = mg.Program("step")
    step.call(lambda engine: time.sleep(0.02), reads=[u], writes=[u])
    return mg.Model(name="slow", grid=grid, fields=(u,), step=step, initial={"u": 1.0})
"""


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=[pytest.mark.mpi, pytest.mark.slow])])
def test_an_interrupted_run_leaves_what_was_computed(ranks: int) -> None:
    Path("slow.py").write_text(SLOW % ranks)
    process = subprocess.Popen(
        command("run", "slow.py", "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    frames = Path("runs/slow/fields.zarr/u/c.3.0.0")
    while not frames.exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    result = json.loads(out)
    assert 3 <= result["steps"] < 100000
    assert f"stopped after step {result['steps']}" in err
    assert "Traceback" not in err
    with xarray.open_zarr("runs/slow/fields.zarr") as dataset:
        assert dataset.time.values[-1] == result["steps"]
    assert len(list(Path("runs/slow/pictures").iterdir())) == 2
    assert json.loads(Path("runs/slow/progress.json").read_text())["state"] == "stopped"
    assert result["digest"] in Path("runs/slow/report.html").read_text()


PROBED = """
import time
from pathlib import Path
import numpy as np
import minga as mg

def initial(box):
    Path("timed").touch()
    time.sleep(0.1)
    return np.ones(box.shape)

@mg.kernel
def halve(u, new):
    new[0, 0] = 0.5 * u[0, 1]

def model():
    grid = mg.Grid((64, 64), periodic=True)
    u = mg.Field("u", grid, slots=2)
    step = mg.Program("step")
    step.apply(halve, u, u.next)
    step.rotate(u)
    return mg.Model(name="probed", grid=grid, fields=(u,), step=step, initial={"u": initial})
"""


@pytest.mark.slow
@pytest.mark.mpi
def test_a_run_that_was_ended_while_ranks_are_timed_can_begin_again() -> None:
    words = ["--set", "run.ranks=2", "--set", "run.steps=1000000000000"]
    Path("probed.py").write_text(PROBED)
    with subprocess.Popen(
        command("run", "probed.py", *words), stderr=subprocess.PIPE, text=True,
        env=os.environ | {"MINGA_CACHE": str(Path("cache").absolute())},
    ) as process:  # fmt: skip
        while not Path("timed").exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err.count("minga: stopped at once") == 1
    assert "minga: no checkpoint was written; minga run --resume runs/probed starts from the first step" in err
    assert "Traceback" not in err
    assert json.loads(Path("runs/probed/progress.json").read_text())["state"] == "stopped"


@pytest.mark.slow
def test_an_interrupt_that_ranks_cannot_hear_yet_ends_the_run(in_tmp_path: Path) -> None:
    """What the launcher says of ranks that died of the signal is not the person's business."""
    fake = in_tmp_path / "mpiexec"
    fake.write_text(
        "#!/bin/sh\ncase $* in *minga.cli.rank*) ;; *) exit;; esac\n"
        "trap 'echo BAD TERMINATION; exit 10' USR1\ntouch ready\nwhile :; do sleep 0.1; done\n"
    )
    fake.chmod(0o755)
    with subprocess.Popen(
        command("run", "small.toml", "-n", 2, "--out", "here"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"MINGA_MPIEXEC": str(fake)},
    ) as process:
        while not Path("ready").exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Stopping after this step" in err
    assert "BAD TERMINATION" not in out + err
    assert "Traceback" not in err
    said = in_process("run", "--resume", "here", "-n", 1, "--json")
    assert said.status == 0, said
    assert json.loads(said.out)["steps"] == 10


def test_help_and_version() -> None:
    said = in_process("--help")
    assert said.status == 0
    commands = re.findall(r"^\W*([a-z]+) {2,}[A-Z]", said.out, re.MULTILINE)
    assert commands[:3] == ["run", "new", "show"]
    assert {"export", "doctor"} <= set(commands)
    assert in_process("run", "--help").status == 0
    assert in_process("--version").out == f"minga {minga.__version__}\n"
    module = as_person("--help")
    assert (module.status, " ".join(module.out.split()[:2])) == (0, "Usage: minga")
    script = Path(sys.executable).with_name("minga")
    assert subprocess.run([script, "--version"], capture_output=True, check=True).stdout.startswith(b"minga ")


def test_a_run_that_never_began_leaves_no_directory(in_tmp_path: Path) -> None:
    Path("never.py").write_text(EXPLOSION.replace('{"u": 1e200}', '{"u": lambda box: 1 / 0}'))
    for words in (("run", "never.py"), ("run", "never.py", "--out", "new/a/b")):
        with nothing_written(in_tmp_path):
            said = in_process(*words)
        assert said.status == 1
        assert "ZeroDivisionError" in said.err
