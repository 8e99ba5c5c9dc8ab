"""Jobs of PBS, LSF and OAR, which are not installed: their variables, and programs in the place of theirs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from command_line import SMALL, command, in_process
from ssh_nodes import ssh_nodes

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(300)]

SURVIVAL = Path(__file__).parents[2] / "docs" / "survival.md"
CASE = SMALL.replace("[40, 64]", "[400, 512]").replace("ranks = 1\n", "")


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("system", ["PBS", "LSF", "OAR"])
def test_a_plain_run_uses_all_nodes_of_a_job(system: str, rights: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "case.toml").write_text(CASE)
    (tmp_path / "listed").write_text("ant\nant\nbee\n")
    program(tmp_path, "oarsh" if system == "OAR" else "ssh", f'exec /usr/bin/ssh -F {tmp_path}/client "$@"')
    told = {
        "PBS": "PBS_JOBID=7 PBS_ENVIRONMENT=PBS_BATCH PBS_NODEFILE=listed",
        "LSF": "LSB_JOBID=7 LSB_MCPU_HOSTS='ant 2 bee 1'",
        "OAR": "OAR_JOB_ID=7 OAR_NODEFILE=listed",
    }[system]
    words = shlex.join(command("run", "case.toml", "--out", "run", "--json"))
    job = f"cd {tmp_path} && env PATH={tmp_path}:$PATH {told} {words}"
    with ssh_nodes(("ant", "bee"), tmp_path, rights, "10.77.0.1 ant\n10.77.0.2 bee\n") as (cluster, own):
        done = cluster.execute(0, [*own, "sh", "-c", job], timeout=100, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"3 ranks on nodes of the 2 that {system} has given to this job" in done.stderr
    ranks = json.loads((tmp_path / "run/ledger.json").read_text())["ranks"]
    assert [line["host"] for line in ranks] == ["ant", "ant", "bee"]
    alone = json.loads(in_process("run", tmp_path / "case.toml", "-n", 1, "--out", tmp_path / "alone", "--json").out)
    assert json.loads(done.stdout)["digest"] == alone["digest"]


@pytest.mark.parametrize(
    ("system", "submit"), [("PBS", "qsub job.sh"), ("LSF", "bsub < job.sh"), ("OAR", "oarsub -S ./job.sh")]
)
def test_a_script_submits_itself_until_its_run_is_complete(in_tmp_path: Path, system: str, submit: str) -> None:
    """The script of the documentation, in jobs with time for a step each."""
    text = SURVIVAL.read_text()
    (script,) = re.findall(r"^#PBS .*?qsub job\.sh$", text, re.DOTALL | re.MULTILINE)
    assert submit in text
    Path("salt.toml").write_text(SMALL.replace("steps = 10", "steps = 3\nwall_time = 1"))
    Path("job.sh").write_text("#!/bin/sh\n" + script.replace("qsub job.sh", submit))
    for name in ("qsub", "bsub", "oarsub"):
        program(in_tmp_path, name, f'echo {name} "$@" >> queue')
    program(in_tmp_path, "minga", f'exec {shlex.join(command())} "$@"')
    environment = {**os.environ, "PATH": f"{in_tmp_path}:{os.environ['PATH']}", "PBS_O_WORKDIR": str(in_tmp_path)}
    said = []
    for _ in range(3):
        Path("queue").write_text("")
        done = subprocess.run(["sh", "job.sh"], env=environment, capture_output=True, text=True, check=False)
        said.append((Path("queue").read_text().strip(), done.stderr))
    assert [queued for queued, _ in said] == [submit.replace(" < job.sh", "")] * 2 + [""], said
    result = json.loads(Path("runs/salt/result.json").read_text())
    assert (result["ended"]["reason"], result["steps"]) == ("steps", 3)
    alone = in_process("run", "salt.toml", "--out", "alone", "--set", "run.wall_time=1 h", "--json")
    assert result["digest"] == json.loads(alone.out)["digest"]
