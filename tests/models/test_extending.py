"""The package of docs/extending.md, put beside minga as pip would: its model behaves like one of minga's own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import minga
from minga import plugins
from minga.errors import CaseError
from minga.models.spec import GROUP, model_spec

PAGE = (Path(minga.__file__).parents[2] / "docs" / "extending.md").read_text()
OWN = ("automaton", "electrodeposition", "fletcher", "photodiode")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory with the package as an installer leaves it, and a case."""
    code = re.findall(r"```python\n(.*?)```", PAGE, re.S)[0]
    project, case = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    site = tmp_path / "site"
    install(site, "minga-heat", project[project.index("[project.entry-points") :])
    (site / "minga_heat.py").write_text(code)
    (tmp_path / "warm.toml").write_text(case)
    return site


def install(site: Path, name: str, entries: str) -> None:
    about = site / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    entries = entries.replace('[project.entry-points."', "[").replace('"]', "]").replace('"', "")
    (about / "entry_points.txt").write_text(entries)


def run(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    words = (sys.executable, "-m", "minga.cli.main", *words)
    return subprocess.run(words, env=environment, cwd=site.parent, capture_output=True, text=True)


@pytest.mark.mpi
def test_its_model_runs_on_any_ranks(site: Path) -> None:
    alone = run(site, "run", "warm.toml", "--out", "alone", "--json")
    assert alone.returncode == 0, alone.stderr
    several = run(site, "run", "warm.toml", "--out", "several", "--json", "--set", "run.layout='slabs'", "-n", "2")
    assert several.returncode == 0, several.stderr
    assert json.loads(alone.stdout)["digest"] == json.loads(several.stdout)["digest"]


def test_its_settings_are_checked_with_key_and_line(site: Path) -> None:
    case = site.parent / "warm.toml"
    case.write_text(case.read_text().replace("spot = 5.0", "spots = 5.0"))
    said = run(site, "run", "warm.toml")
    assert said.returncode == 2
    assert "heat.spots" in said.stderr
    assert "warm.toml" in said.stderr
    assert "did you mean" in said.stderr
    assert "Traceback" not in said.stderr


def test_its_name_is_suggested(site: Path) -> None:
    case = site.parent / "warm.toml"
    case.write_text(case.read_text().replace('"heat"', '"haet"'))
    said = run(site, "run", "warm.toml")
    assert said.returncode == 2
    assert "there is no model 'haet'" in said.stderr
    assert "heat" in said.stderr.replace("haet", "")


def test_a_package_that_fails_is_named(site: Path) -> None:
    (site / "minga_heat.py").write_text("import nothing_of_this_name\n")
    said = run(site, "run", "warm.toml")
    assert said.returncode == 2
    assert "the model 'heat' of package minga-heat cannot be imported: ModuleNotFoundError" in said.stderr
    assert "Traceback" not in said.stderr


def test_two_packages_of_one_name_are_refused(site: Path) -> None:
    install(site, "minga-other", "[minga.models]\nheat = minga_other:SPEC\n")
    said = run(site, "run", "warm.toml")
    assert said.returncode == 2
    assert "several installed packages have a model 'heat'" in said.stderr


def test_models_of_minga_are_found_in_the_same_way() -> None:
    assert set(OWN) <= set(plugins.names(GROUP))
    for name in OWN:
        assert callable(model_spec(name).load)
    with pytest.raises(CaseError, match=r"(?s)there is no model 'fletchr'.*fletcher"):
        model_spec("fletchr")
