"""Packages of extras are imported where they are needed only, and their absence is a message."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from minga import extras
from minga.cli import doctor
from minga.errors import CaseError

ROOT = Path(__file__).parents[1]

WITHOUT = """
import importlib.abc, importlib.util, sys

HIDDEN = {"scipy", "xarray", "matplotlib", "pandas"}

class Hide(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition(".")[0])

sys.meta_path.insert(0, Hide())
import minga.extras
minga.extras.available = lambda package: package not in HIDDEN
"""


def without_extras(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in which the packages of extras cannot be imported."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + text],
        capture_output=True, text=True, cwd=folder, timeout=200, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip


def test_the_extras_are_those_of_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for package, extra in extras.EXTRAS.items():
        assert [entry.partition(">")[0] for entry in declared[extra]] == [package]
    assert declared["all"] == [f"minga[{','.join(sorted(extras.EXTRAS.values()))}]"]


def test_a_package_that_is_absent_is_named_with_its_extra() -> None:
    with pytest.raises(CaseError, match=r'sparse systems(.|\n)*pip install "minga\[solvers\]"'):
        raise extras.missing("scipy")
    extras.require("xarray")


def test_doctor_names_the_packages_of_extras_that_are_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.metadata.version

    def version(name: str) -> str:
        if name == "scipy":
            raise importlib.metadata.PackageNotFoundError(name)
        return found(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    finding = doctor._packages()
    assert finding.state == "ok"
    assert finding.text.endswith('; not installed: scipy (pip install "minga[all]")')


@pytest.mark.slow
def test_a_run_needs_no_extra(tmp_path: Path) -> None:
    text = """
sys.argv = ["minga", "run", "life", "-n", "1", "--set", "run.steps=4", "--set", "grid.shape=[32, 32]", "--out", "r"]
from minga.cli.main import main
main()
"""
    done = without_extras(text, tmp_path)
    assert "pictures, movies and reports need the package matplotlib" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "r" / "fields.zarr").is_dir()
    assert not (tmp_path / "r" / "report.html").exists()


@pytest.mark.parametrize(
    ("call", "extra"),
    [
        ("mg.run(mg.automaton('B3/S23', (8, 8), init={'soup': 0.4}), steps=1)", "data"),
        ("mg.open('nothing')", "data"),
    ],
)
def test_python_names_the_extra(call: str, extra: str, tmp_path: Path) -> None:
    done = without_extras(f"import minga as mg\n{call}", tmp_path)
    assert "CaseError: " in done.stderr
    assert f'pip install "minga[{extra}]"' in done.stderr
