"""The page that writes one equation in several programs: those that are installed print the same number."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "other-tools.md").read_text()
PROGRAMS = dict(re.findall(r"^## (\S+)\n.*?^```(?:python|text)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
PEERS = ROOT / ".venv-pde" / "bin" / "python"


@pytest.mark.slow
@pytest.mark.parametrize(
    "tool", ["minga", "NumPy", *(pytest.param(tool, marks=pytest.mark.slow) for tool in ("py-pde", "Devito"))]
)
def test_a_program_prints_the_number(tool: str, tmp_path: Path) -> None:
    ours = tool in ("minga", "NumPy")
    if not ours and not PEERS.exists():
        pytest.skip("needs py-pde and Devito: `make bench-pde` installs them")
    script = tmp_path / "program.py"
    script.write_text(PROGRAMS[tool])
    interpreter = sys.executable if ours else PEERS
    done = subprocess.run([interpreter, script], capture_output=True, text=True, check=True, timeout=600, cwd=tmp_path)
    assert done.stdout.split()[-1] == "0.826260"
