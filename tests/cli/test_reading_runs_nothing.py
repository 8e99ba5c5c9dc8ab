"""Commands on a run read data: the Python file of its case, which may be a stranger's, is never run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from command_line import in_process
from minga.output.directory import RunDirectory
from minga.space.field import Field
from minga.space.grid import Grid
from minga.view.live.state import RunReader
from run_files import make_run

PROGRAM = """from pathlib import Path
Path("ran").touch()
raise SystemExit(3)
"""


@pytest.fixture
def foreign(in_tmp_path: Path) -> Path:
    """A run whose case is a Python file, and whose rule is one."""
    cells = np.eye(4, 5, dtype="u1")
    run = in_tmp_path / "foreign"
    make_run(run, Field("cell", Grid((4, 5)), "u1"), {0: cells, 1: cells})
    for folder in (run, run / "inputs", in_tmp_path):
        folder.mkdir(exist_ok=True)
        (folder / "program.py").write_text(PROGRAM)
    case = run / "case.toml"
    case.write_text(
        case.read_text()
        .replace('model = "automaton"', 'model = "program.py"')
        .replace('rule = "B3/S23"', 'rule = "program.py"')
    )
    return run


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "words",
    [
        ["export", "foreign", "--out", "a.npy"],
        ["export", "foreign", "--out", "a.rle"],
        ["export", "foreign", "--out", "a.png"],
        ["show", "foreign", "--protocol", "none"],
        ["movie", "foreign"],
        ["report", "foreign"],
    ],
)
def test_nothing_of_it_runs(foreign: Path, words: list[str]) -> None:
    said = in_process(*words)
    assert said.status == 0, said.err
    assert not Path("ran").exists()


def test_nor_does_the_live_page_run_it(foreign: Path) -> None:
    assert RunReader(RunDirectory(foreign)).state("cell", look=False)["name"]
    assert not Path("ran").exists()


def test_and_the_file_would_say_so(foreign: Path) -> None:
    """What the tests above look for is what a run of it leaves."""
    assert in_process("run", "program.py").status != 0
    assert Path("ran").exists()
