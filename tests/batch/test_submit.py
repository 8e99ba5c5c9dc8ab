"""What `minga submit` writes and refuses, with a program in place of Slurm's sbatch."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from command_line import SMALL, in_process, nothing_written

ANY = SMALL.replace("ranks = 1\n", "")
SBATCH = """#!/bin/sh
printf '%s\\n' "$@" > {folder}/words
env > {folder}/environment
cat "$2" > {folder}/script
echo 17\\;cluster
"""
REFUSED = "#!/bin/sh\necho 'sbatch: error: invalid partition specified: gpu' >&2\nexit 1\n"


def program(folder: Path, name: str, text: str) -> None:
    """Write a program into a folder that is on the PATH."""
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.fixture
def slurm(in_tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an sbatch that accepts everything, alone on the PATH but for the system's, and a case beside it."""
    folder = in_tmp_path / "bin"
    folder.mkdir()
    program(folder, "sbatch", SBATCH.format(folder=folder))
    monkeypatch.setenv("PATH", f"{folder}:/bin")
    monkeypatch.setattr("shutil.which", lambda name: str(folder / name) if (folder / name).exists() else None)
    Path("small.toml").write_text(ANY)
    return folder


def lines_of(text: str) -> list[str]:
    """The options of sbatch in a script."""
    return [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH ")]


def test_the_first_job_is_submitted_with_the_directory_of_its_run(slurm: Path, in_tmp_path: Path) -> None:
    said = in_process("submit", "small.toml", "--nodes", "4", "--time", "2h", "--set", "run.steps=70")
    assert said.status == 0, said.err
    assert said.out.startswith("job 17 runs small on 4 nodes, at most 02:00:00 at a time, until it is complete\n")
    run = in_tmp_path / "runs" / "small"
    assert (slurm / "words").read_text().split() == ["--parsable", "runs/small/job.sh"]
    text = (run / "job.sh").read_text()
    assert text == (slurm / "script").read_text()
    assert lines_of(text) == [
        "--job-name=small", "--nodes=4", "--exclusive", "--time=02:00:00", f"--output={run}/job.log",
        "--open-mode=append", "--requeue", "--signal=B:USR1@360",
    ]  # fmt: skip
    assert text.startswith("#!/bin/bash\n")
    assert text.splitlines()[-1].endswith(f"python -m minga.batch.job {run} 360")
    case = tomllib.loads((run / "case.toml").read_text())
    assert case["run"]["steps"] == 70
    assert "ranks" not in case["run"]  # as many as the nodes of a job take
    assert (run / "job.id").read_text() == "17\n"


def test_ranks_threads_and_options_of_sbatch(slurm: Path) -> None:
    words = ["submit", "small.toml", "-N", "2", "--time", "1-00:00:00", "-n", "8", "--threads", "2", "-p", "long"]
    said = in_process(
        *words, "--margin", "90 s", "--dry-run", "--", "--account=ab12", "-C", "fast or new", "--mail-type=END"
    )
    assert said.status == 0, said.err
    assert not Path("runs").exists()
    assert not (slurm / "words").exists()
    assert [line for line in lines_of(said.out) if not line.startswith("--output")] == [
        "--job-name=small", "--nodes=2", "--ntasks=8", "--cpus-per-task=2", "--time=1-00:00:00", "--partition=long",
        "--open-mode=append", "--requeue", "--signal=B:USR1@90", "--account=ab12", "-C 'fast or new'",
        "--mail-type=END",
    ]  # fmt: skip
    shared = in_process("submit", "small.toml", "--time", "2h", "--dry-run", "--", "--ntasks-per-node=3")
    assert "--exclusive" not in lines_of(shared.out)


def test_json(slurm: Path, in_tmp_path: Path) -> None:
    words = ["submit", "small.toml", "--time", "90 min", "--out", "100% mine", "--json"]
    dry = json.loads(in_process(*words, "--dry-run").out)
    found = json.loads(in_process(*words).out)
    assert found == {**dry, "job": "17"}
    assert (dry["job"], dry["nodes"], dry["seconds"]) == (None, 1, 5400)
    assert found["run"] == str(in_tmp_path / "100% mine")
    assert f"--output='{in_tmp_path}/100%% mine/job.log'" in lines_of(found["script"])


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["small.toml", "--time", "10"], "--time: found '10'"),
        (["small.toml", "--time", "soon"], "--time: found 'soon'"),
        (["small.toml", "--time", "20 s"], "less than a minute"),
        (["small.toml", "--time", "10 min", "--margin", "10 min"], "--margin: 10 min before the limit of 00:10:00"),
        (["small.toml", "--time", "2h", "-N", "3", "-n", "2"], "2 ranks on 3 nodes would leave nodes idle"),
        (["small.toml", "--time", "2h", "--set", "run.stepz=1"], "run.stepz"),
        (["small.toml", "--time", "2h", "--set", "checkpoint.every=off"], "a run in several jobs needs checkpoints"),
        (["small.toml", "--time", "2h", "account=x"], "found 'account=x' where an option of sbatch was expected"),
        (["small.toml", "--time", "2h", "--", "--time=1"], "--time=1: minga submit has an option for this"),
        (["small.toml", "--time", "2h", "--", "-n4"], "fix: write -n"),
        (["small.toml", "--time", "2h", "--", "--array=1-4"], "minga submit sets this itself"),
        (["missing.toml", "--time", "2h"], "missing.toml"),
        (["small.toml", "--time", "2h", "--out", "full"], "full holds files already"),
        (["small.toml", "--time", "2h", "--out", "full", "--dry-run"], "full holds files already"),
        (["full", "--time", "2h", "--resume"], "full is not a run directory"),
        (["small.toml"], "Missing option"),
    ],
)
def test_nothing_is_written_or_submitted_if_anything_is_wrong(
    slurm: Path, in_tmp_path: Path, words: list[str], expected: str
) -> None:
    (in_tmp_path / "full").mkdir()
    (in_tmp_path / "full" / "file").touch()
    with nothing_written(in_tmp_path):
        said = in_process("submit", *words)
    assert said.status == 2
    assert expected in said.err, said.err


def test_a_job_that_slurm_refuses_leaves_nothing(slurm: Path, in_tmp_path: Path) -> None:
    program(slurm, "sbatch", REFUSED)
    with nothing_written(in_tmp_path):
        said = in_process("submit", "small.toml", "--time", "2h")
    assert said.status == 1
    assert "sbatch has not accepted the job: invalid partition specified: gpu" in said.err


def test_other_batch_systems_are_named(slurm: Path, in_tmp_path: Path) -> None:
    (slurm / "sbatch").unlink()
    with nothing_written(in_tmp_path):
        said = in_process("submit", "small.toml", "--time", "2h")
    assert said.status == 1
    assert "minga submit needs Slurm, but its command sbatch was not found" in said.err
    program(slurm, "qsub", "#!/bin/sh\n")
    assert "qsub is there, of PBS or Grid Engine" in in_process("submit", "small.toml", "--time", "2h").err
    assert in_process("submit", "small.toml", "--time", "2h", "--dry-run").status == 0


def test_a_run_that_has_a_job_gets_no_second_one(slurm: Path, in_tmp_path: Path) -> None:
    assert in_process("submit", "small.toml", "--time", "2h", "--out", "mine").status == 0
    again = ["submit", "mine", "--resume", "--time", "4h"]
    program(slurm, "squeue", "#!/bin/sh\necho PENDING\n")
    for words in (again, ["submit", "small.toml", "--time", "2h", "--out", "mine", "--force"]):
        with nothing_written(in_tmp_path):
            said = in_process(*words)
        assert said.status == 2
        assert "job 17 of the run in mine is pending; nothing is submitted" in said.err
    program(slurm, "squeue", "#!/bin/sh\necho COMPLETED\n")
    said = in_process(*again, "--set", "run.steps=90")
    assert said.status == 0, said.err
    assert "--time=04:00:00" in lines_of(Path("mine/job.sh").read_text())
    assert tomllib.loads(Path("mine/case.toml").read_text())["run"]["steps"] == 90


def test_a_job_is_no_part_of_the_one_that_submits_it(slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "5")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    assert in_process("submit", "small.toml", "--time", "2h").status == 0
    told = [line for line in (slurm / "environment").read_text().splitlines() if line.startswith("SLURM")]
    assert told == ["SLURM_CONF=/etc/slurm.conf"]


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--force", "--out", "mine"), ("--resume",)])
def test_a_run_stays_as_it_is_where_slurm_refuses_the_job(slurm: Path, words: tuple[str, ...]) -> None:
    assert in_process("run", "small.toml", "--out", "mine", "-n", 1).status == 0
    before = {path: path.read_bytes() for path in Path("mine").rglob("*") if path.is_file()}
    program(slurm, "sbatch", REFUSED)
    more = ["--set", "run.steps=20"] if "--resume" in words else []
    said = in_process("submit", "mine" if "--resume" in words else "small.toml", "--time", "2h", *words, *more)
    assert said.status == 1
    assert "invalid partition" in said.err
    assert {path: path.read_bytes() for path in Path("mine").rglob("*") if path.is_file()} == before
