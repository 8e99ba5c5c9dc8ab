"""The comparison with other programs: what stands on the page runs in them, and prints what minga's version prints."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from loading import SCRIPTS, load

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".venv-peers" / "bin" / "python"
EXPECTED = {"Life": "121", "Gray-Scott": "4017.19 27.08"}
PROGRAMS = load(SCRIPTS / "comparison.py").programs()
CASES = [(system, tool) for system, texts in PROGRAMS.items() for tool in texts]


def test_the_page_has_them() -> None:
    assert set(CASES) == {
        ("Life", "minga"), ("Life", "Golly"), ("Life", "CellPyLib"), ("Life", "CAX"), ("Forest fire", "minga"),
        ("Forest fire", "CellPyLib"), ("Forest fire", "CAX"), ("Gray-Scott", "minga"), ("Gray-Scott", "CAX"),
    }  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize(("system", "tool"), [
    pytest.param(system, tool, marks=pytest.mark.slow if tool in ("CAX", "CellPyLib") else ())
    for system, tool in CASES
])  # fmt: skip
def test_it_prints_the_known_numbers(
    system: str, tool: str, in_tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if tool == "Golly" and shutil.which("bgolly") is None:
        pytest.skip("needs bgolly: apt-get install golly")
    if tool in ("CAX", "CellPyLib") and not PEERS.exists():
        pytest.skip("needs CellPyLib and CAX: `make bench-automata` installs them")
    script = in_tmp_path / "program.py"
    script.write_text(PROGRAMS[system][tool])
    if tool == "minga":
        runpy.run_path(str(script), run_name="__main__")
    else:
        interpreter = "sh" if tool == "Golly" else PEERS
        subprocess.run([interpreter, script], check=True, timeout=300, env=os.environ | {"JAX_PLATFORMS": "cpu"})
    printed = capfd.readouterr().out
    if system in EXPECTED:
        assert printed.split(":")[-1].strip() == EXPECTED[system]
    else:
        burning = [int(number) for number in printed.strip("[] \n").split(",")]
        assert burning[0] == 0
        assert 0 < max(burning) < 64 * 64 / 4
