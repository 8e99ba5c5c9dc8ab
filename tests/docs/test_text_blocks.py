"""Blocks of pages that no reader can run as they stand: each is of a known kind, and whatever it says is checked.

Commands for other machines or for a long time exist (test_site.py); programs for other tools run where these are
installed; parts of cases consist of settings that there are; what remains is output, a formula or a file of another
program, and its page is listed here.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import runpy
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from minga.cli.completion import _keys

from .test_docs import ROOT, Block, blocks

COMMAND = re.compile(r"(?:\w*\$ )?(minga|pip|python|make|ssh|mpiexec|srun|sudo|git|docker)\b")
NOT_HERE = {
    "broadcast.md", "comparison.md", "electroconvection.md", "electrodeposition.md", "equations.md", "fft.md", "lab.md",
    "matmul.md", "photodiode.md", "rules.md", "survival.md", "waves.md", "wave-equations.md", "milano.md", "tinetti.md",
    "CONTRIBUTING.md", "phase-field.md", "gpu.md", "clusters.md", "machines.md", "cases.md",
}  # fmt: skip
"""Pages with blocks of output, formulas, and files and programs for other systems."""
PACKAGES = {"pde": "py-pde"}
"""Packages whose names are not those of their modules."""
TEXTS = blocks("text")


def kind_of(block: Block) -> str:
    """The kind of a block, by its first lines."""
    lines = [line for line in block.text.splitlines() if line.strip()]
    if COMMAND.match(lines[0]) and not lines[0].startswith("minga:"):
        return "commands"
    if re.match(r"(import|from) \w|for \w+ in ", lines[0]):
        return "program"
    if re.match(r"\s*(\[\[?[\w.]+\]\]?|[\w.]+ = [\[\"\d{])", lines[0]):
        return "case"
    return "other"


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(block, id=str(block)) for block in TEXTS if kind_of(block) == kind]


def test_blocks_of_other_kinds_are_listed() -> None:
    found = {block.page.name for block in TEXTS if kind_of(block) == "other"}
    assert found <= NOT_HERE, "run these blocks (python, console), or list the page"


@pytest.mark.filterwarnings("default")  # of other tools
@pytest.mark.parametrize("block", of_kind("program"))
def test_programs_for_other_tools(block: Block, in_tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run them where their packages are installed; parse parts of programs, and what needs other hosts, everywhere."""
    tree = ast.parse(block.text)
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [alias.name for node in imported if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in imported if isinstance(node, ast.ImportFrom)]
    known = {name.partition(".")[0] for name in names}
    absent = sorted(name for name in known if importlib.util.find_spec(name) is None)
    if not imported or "laboratory" in block.text or "mpi4py" in known:
        return
    if absent:
        pytest.skip(f"needs {', '.join(absent)}: pip install {' '.join(PACKAGES.get(name, name) for name in absent)}")
    script = in_tmp_path / "block.py"
    script.write_text(block.text)
    runpy.run_path(str(script), run_name="__main__")
    if block.page.name == "other-tools.md":
        printed = "0.826162" if "fipy" in known else "0.826260"  # implicit steps, and explicit ones
        assert capsys.readouterr().out.split()[-1] == printed


@pytest.mark.slow
@pytest.mark.parametrize("block", [one for one in of_kind("program") if "from devito" in one.values[0].text])
def test_programs_for_devito(block: Block, tmp_path: Path) -> None:
    """Devito, which asks for older versions of other packages than minga, has an environment of its own."""
    python = ROOT / ".venv-pde" / "bin" / "python"
    if not python.exists():
        pytest.skip("needs Devito: `make bench-pde` installs it")
    (tmp_path / "block.py").write_text(block.text)
    done = subprocess.run([python, "block.py"], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("block", [*of_kind("case"), *(pytest.param(block, id=str(block)) for block in blocks("toml"))])
def test_parts_of_cases_consist_of_settings(block: Block) -> None:
    try:
        table = tomllib.loads(block.text)
    except tomllib.TOMLDecodeError:
        assert "..." in block.text, f"{block} is no TOML"
        return
    known = {key.removesuffix("=") for key in _keys([])}
    tables = {key.partition(".")[0] for key in known}
    for key in leaves(
        {name: inner for name, inner in table.items() if name in tables - {"observers"} and isinstance(inner, dict)}
    ):
        assert any(key == each or key.startswith(f"{each}.") for each in known), f"{block}: there is no {key}"


def leaves(table: dict[str, Any], before: str = "") -> list[str]:
    """The dotted keys of a table, without those within lists."""
    found = []
    for name, value in table.items():
        key = f"{before}{name}"
        found += leaves(value, f"{key}.") if isinstance(value, dict) and value else [key]
    return found


def test_files_in_json_are_json() -> None:
    for block in TEXTS:
        if block.text.startswith("{"):
            json.loads(block.text)
