"""``--mapping``, ``--topology`` and ``--trace`` of ``minga run``."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from command_line import SMALL, in_process, nothing_written


@pytest.fixture(autouse=True)
def case(in_tmp_path: Path) -> Path:
    """A correct small case in the working directory."""
    path = in_tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--mapping", "tile"], ["run.mapping: 'tile' is not a mapping", "did you mean 'tiles'", "sequential"]),
        (["--topology", "2by2"], ["run.topology: '2by2' is not a topology", "16x2x2"]),
        (["--topology", "[[2], 3]"], ["run.topology", "levels deep"]),
        (["--topology", "9999x9999"], ["run.topology", "more than"]),
        (["--set", "run.topology=3"], ["run.topology", "a word in quotes"]),
        (["--set", "run.mapping=true"], ["run.mapping", "a word in quotes"]),
        (["--set", "output.trace=2"], ["output.trace", "true or false"]),
        (["--mapping", "tiles", "--topology", "[1, 2]", "-n", "3"], ["run.mapping: tiles need equal nodes"]),
    ],
)
def test_mistakes(words: list[str], expected: list[str]) -> None:
    with nothing_written(Path()):
        said = in_process("run", "small.toml", *words)
    assert said.status == 2
    assert "Traceback" not in said.err
    for text in expected:
        assert text in said.err


def test_a_traced_run_on_a_machine_in_words(in_tmp_path: Path) -> None:
    said = in_process("run", "small.toml", "--topology", "1x1x1", "--mapping", "tiles", "--trace", "--json")
    assert said.status == 0, said.err
    run = Path(json.loads(said.out)["run"])
    ledger = json.loads((run / "ledger.json").read_text())
    assert ledger["machine"]["topology"] == "1x1x1"
    assert ledger["machine"]["mapping"] == "tiles"
    assert json.loads((run / "result.json").read_text())["layout"] == [{"rank": 0, "lo": [0, 0], "hi": [40, 64]}]
    with gzip.open(run / "trace.json.gz", "rt") as stream:
        events = json.load(stream)["traceEvents"]
    assert {event["pid"] for event in events} == {0}
    assert {"compute", "output"} <= {event.get("cat") for event in events}
    again = in_process("run", run / "case.toml", "--json")
    assert json.loads(again.out)["digest"] == json.loads(said.out)["digest"]


def test_no_trace_unless_asked_for(in_tmp_path: Path) -> None:
    said = in_process("run", "small.toml", "--json")
    assert said.status == 0, said.err
    assert not list((in_tmp_path / "runs").rglob("trace*"))
