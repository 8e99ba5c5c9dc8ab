"""`minga run` on unequal nodes finds out who is slow and gives less to it; what is wrong with a host is told once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import SMALL, in_process
from minga.lab.cluster import Cluster, laboratory
from minga.lab.config import Lab, LabNode

pytestmark = pytest.mark.mpi

CASE = """\
model = "laplace.py"

[grid]
shape = [1535, 1535]

[run]
steps = 4000

[stop]
when = "step >= 150"
every = 50

[output]
pictures = 0
"""
"""Long enough to be planned for; the end comes early."""


@pytest.fixture
def words(in_tmp_path: Path) -> list[str]:
    """The beginning of a command that runs ``case.toml`` into ``run``."""
    import minga

    laplace = Path(minga.__file__).parent / "examples" / "laplace.py"
    (in_tmp_path / "laplace.py").write_text(laplace.read_text())
    (in_tmp_path / "case.toml").write_text(CASE)
    return ["minga", "run", str(in_tmp_path / "case.toml"), "--out", str(in_tmp_path / "run"), "--json"]


@pytest.fixture(scope="module")
def quick(rights: dict[str, Any]) -> Iterator[Cluster]:
    """Nodes without quotas, for what has nothing to do with speed."""
    nodes = (LabNode("ant", 1.0, None, 100e6), LabNode("bee", 1.0, None, 100e6))
    with laboratory(Lab("told", nodes), **rights | {"quota": False}) as cluster:
        yield cluster


@pytest.mark.slow
@pytest.mark.usefixtures("quotas")
def test_the_slow_node_gets_less(rights: dict[str, Any], words: list[str], in_tmp_path: Path) -> None:
    alone = in_process("run", "case.toml", "-n", 1, "--out", "alone", "--json")
    nodes = (LabNode("hare", 0.8, None, 1e9), LabNode("snail", 0.2, None, 1e9))
    with laboratory(Lab("unequal", nodes), **rights) as cluster:
        done = cluster.run(words, timeout=200)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["digest"] == json.loads(alone.out)["digest"]
    plan = json.loads((in_tmp_path / "run" / "plan.json").read_text())
    hare, snail = plan["ranks"]
    assert [hare["host"], snail["host"]] == ["hare", "snail"]
    assert hare["cells"] > 1.8 * snail["cells"]
    assert plan["source"] == "measured by the ranks"
    assert "minga: plan: " in done.stderr
    ledger = json.loads((in_tmp_path / "run" / "ledger.json").read_text())
    assert ledger["balance"] is not None  # ranks on several nodes are balanced unless somebody says no
    page = (in_tmp_path / "run" / "report.html").read_text()
    for text in ("What imbalance and network cost", "snail"):
        assert text in page


@pytest.mark.slow
def test_a_machine_file_of_other_hosts_is_refused_once(quick: Cluster, words: list[str], in_tmp_path: Path) -> None:
    node = {"name": "pc", "hosts": ["wasp", "bee"], "count": 2, "cores": 1, "speed": "1 Mcells/s"}
    links = {"inter-node": {"latency": "40 us", "bandwidth": "1 Gb/s"}}
    content = {"format": "minga machine", "version": 1, "nodes": [node], "links": links}
    (in_tmp_path / "two.json").write_text(json.dumps(content))
    done = quick.run([*words, "--machine", str(in_tmp_path / "two.json")], timeout=100)
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.count("describes wasp, bee, but ranks run on ant") == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert not (in_tmp_path / "run").exists()


@pytest.mark.slow
def test_a_host_with_another_case_is_named(quick: Cluster, in_tmp_path: Path) -> None:
    """Nodes of a lab share files, so the name of the host makes the difference here."""
    (in_tmp_path / "case.toml").write_text(SMALL.replace("ranks = 1\n", ""))
    (in_tmp_path / "odd.py").write_text(
        "import platform, sys\n"
        "from minga.cli.main import main\n"
        "steps = 5 if platform.node() == 'bee' else 6\n"
        "sys.argv = ['minga', 'run', 'case.toml', '--set', f'run.steps={steps}', '--out', 'run']\n"
        "main()\n"
    )
    done = quick.run(["python", str(in_tmp_path / "odd.py")], timeout=100)
    assert done.returncode != 0
    assert done.stderr.count("bee has another case, or other files that it names, than ant") == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert not (in_tmp_path / "run").exists()
