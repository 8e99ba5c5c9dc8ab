"""The package of docs/extending.md, built and installed as pip does: what it adds behaves like minga's own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray

from command_line import Said, in_process
from minga import plugins
from minga.case.examples import first_example
from minga.case.spec import GROUP, model_spec
from minga.errors import CaseError

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tests" / "sample_package"
OWN = ("automaton", "electrodeposition", "fletcher", "photodiode")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that the package's wheel is installed in."""
    base = tmp_path_factory.mktemp("package")
    shutil.copytree(PACKAGE, base / "source")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    build = ["wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", base, base / "source"]
    subprocess.run([*pip, *build], capture_output=True, check=True)
    (wheel,) = base.glob("minga_heat-1.0-*.whl")
    install = ["install", "--no-deps", "--no-index", "--target", base / "site", wheel]
    subprocess.run([*pip, *install], capture_output=True, check=True)
    return base / "site"


@pytest.fixture
def site(built: Path, tmp_path: Path) -> Path:
    """A copy of the installed package, which tests may damage, with a case beside it."""
    shutil.copytree(built, tmp_path / "site")
    shutil.copy(built / "minga_heat" / "warm.toml", tmp_path / "warm.toml")
    return tmp_path / "site"


def run(site: Path, *words: str) -> Said:
    """Run minga in this process, as if it had been started with the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(site)
        patch.setenv("PYTHONPATH", path_with(site))  # for ranks
        patch.chdir(site.parent)
        forget()
        said = in_process(*words)
    forget()
    return said


def forget() -> None:
    """Have entry points and the package looked for again."""
    plugins._found.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "minga_heat"]:
        del sys.modules[name]


def path_with(site: Path) -> str:
    """Return the search path of a Python that has the package."""
    return f"{site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"


def run_apart(site: Path, *words: str, **environment: str) -> Said:
    """Run minga with the package in a process of its own, or with "-c" a piece of Python."""
    ended = subprocess.run(
        (sys.executable, *(("-m", "minga.cli.main") if words[0] != "-c" else ()), *words),
        env={**os.environ, "PYTHONPATH": path_with(site), **environment},
        cwd=site.parent,
        capture_output=True,
        text=True,
    )
    return Said(ended.returncode, ended.stdout, ended.stderr)


def change(site: Path, old: str, new: str) -> None:
    """Change the case."""
    case = site.parent / "warm.toml"
    assert old in case.read_text()
    case.write_text(case.read_text().replace(old, new))


def test_the_page_shows_the_package() -> None:
    page = (ROOT / "docs" / "extending.md").read_text()
    shown = re.findall(r"```(?:python|toml)\n(.*?)```", page, re.S)
    files = ["pyproject.toml", *(f"src/minga_heat/{name}" for name in NAMES)]
    assert shown == [(PACKAGE / file).read_text() for file in files]
    assert {path.name for path in (PACKAGE / "src" / "minga_heat").iterdir() if path.is_file()} - {"__init__.py"} == {
        *NAMES
    }


NAMES = ("model.py", "warm.toml", "observer.py", "text.py", "command.py")


@pytest.mark.slow
@pytest.mark.mpi
def test_its_model_runs_on_any_ranks(site: Path) -> None:
    options = ("--json", "--set", "output.pictures=0", "--set", "output.report=false")
    alone = run(site, "run", "warm.toml", "--out", "alone", "-n", "1", *options)
    assert alone.status == 0, alone.err
    several = run(site, "run", "warm.toml", "--out", "several", "-n", "2", "--set", "run.layout='slabs'", *options)
    assert several.status == 0, several.err
    assert json.loads(alone.out)["digest"] == json.loads(several.out)["digest"]
    hottest = (site.parent / "several" / "hottest.csv").read_text()
    assert hottest == (site.parent / "alone" / "hottest.csv").read_text()
    assert [line.split(",")[0] for line in hottest.split()] == ["0", "20", "40", "60", "80", "100"]


@pytest.mark.slow
def test_a_run_from_beginning_to_end(site: Path) -> None:
    """Its example begins a case; a unit is read; observer, format and command do their parts."""
    assert run(site, "new", "mine.toml", "--from", "heat").status == 0
    assert run(site, "new", "same.toml", "--from", "warm").status == 0
    said = run_apart(site, "run", "mine.toml", "-n", "1", "--out", "mine", "--set", "heat.spacing='1 cm'")
    assert said.status == 0, said.err
    with xarray.open_zarr(site.parent / "mine" / "fields.zarr") as found:
        assert found.time.values[-1] == pytest.approx(100 * 0.2 * 1e-4 / 1e-4)
        values = found.u.values[-1]
    said = run(site, "export", "mine", "--out", "u.txt")
    assert said.status == 0, said.err
    assert (np.loadtxt(site.parent / "u.txt") == values).all()
    assert "u after step 100" in (site.parent / "u.txt").read_text()
    said = run(site, "hottest", "mine")
    assert (said.status, said.out) == (0, "5.0\n"), said.err


@pytest.mark.slow
def test_its_observer_resumes_with_its_state(site: Path) -> None:
    quick = ("--set", "output.pictures=0", "--set", "output.report=false", "--set", "checkpoint.at_end=true", "-n", "1")
    assert run(site, "run", "warm.toml", "--out", "whole", *quick).status == 0
    assert run(site, "run", "warm.toml", "--out", "parts", *quick, "--set", "run.steps=50").status == 0
    resumed = run(site, "run", "parts", "--resume", "--set", "run.steps=100")
    assert resumed.status == 0, resumed.err
    rows = [(site.parent / name / "hottest.csv").read_text() for name in ("whole", "parts")]
    assert rows[0] == rows[1]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("old", "new", "texts"),
    [
        ("spot = 5.0", "spots = 5.0", ["heat.spots", "warm.toml:12", "did you mean 'spot'"]),
        ('"2 mm"', '"2 kg"', ["heat.spacing: expected metres, or a length such as", "warm.toml:11"]),
        ('"2 mm"', "-1.0", ["expected a number above 0", "warm.toml:11", 'spacing = "1 mm"']),
        ("every = 20", "every = 0", ["observers.hottest.every: expected a whole number of at least 1", "warm.toml:15"]),
        ("every = 20", "evry = 20", ["unknown key 'observers.hottest.evry'", "did you mean 'every'"]),
        (
            "[observers.hottest]",
            "[observers.hotest]",
            ["there is no observer 'hotest'", "did you mean 'hottest'", ":14"],
        ),
        ("shape = [64, 96]", 'boundary = "fixed"', ["grid.boundary", "no boundary to choose", "warm.toml:5"]),
        ('"heat"', '"haet"', ["there is no model 'haet'", "did you mean 'heat'", "warm.toml:2"]),
    ],
)
def test_mistakes_name_key_and_line(site: Path, old: str, new: str, texts: list[str]) -> None:
    change(site, old, new)
    said = run(site, "run", "warm.toml")
    assert said.status == 2
    for text in texts:
        assert text in said.err
    assert "Traceback" not in said.err


def test_lists_and_helps_show_it(site: Path) -> None:
    listed = json.loads(run(site, "list", "--json").out)
    assert {"name": "heat", "description": "heat in a plate", "examples": ["warm"]} in listed["models"]
    assert {"name": "warm", "description": "A warm spot on a cold plate", "model": "heat"} in listed["examples"]
    for kind, name in (("formats", "txt"), ("observers", "hottest"), ("commands", "hottest")):
        assert name in [entry["name"] for entry in listed[kind]]
    assert "Print the highest temperature" in run(site, "--help").out
    assert "RUN" in run(site, "hottest", "--help").out


OFFERED = {
    "minga run warm.toml --set heat.": ["heat.spacing=", "heat.diffusivity=", "heat.spot="],
    "minga run warm.toml --set observers.": ["observers.hottest.every="],
    "minga run warm --set heat.sp": ["heat.spacing=", "heat.spot="],
    "minga run war": ["warm", "warm.toml"],
    "minga new mine.toml --from hea": ["heat"],
    "minga export runs/mine --format t": ["txt"],
    "minga hott": ["hottest"],
}
"""What a shell offers for the last word of a line."""

ASK = """
import contextlib, io, json, os, sys
from minga.cli.main import app

found = {}
for line in json.loads(sys.argv[1]):
    os.environ |= {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        app(prog_name="minga")
    found[line] = said.getvalue().split()
print(json.dumps(found))
"""


def test_the_shell_completes_it(site: Path) -> None:
    said = run_apart(site, "-c", ASK, json.dumps([*OFFERED]), _MINGA_COMPLETE="complete_bash")
    found = json.loads(said.out)
    assert {line: sorted(set(words) & set(found[line])) for line, words in OFFERED.items()} == {
        line: sorted(words) for line, words in OFFERED.items()
    }
    assert "automaton.rule=" not in found["minga run warm.toml --set heat."]


def test_a_package_that_fails_is_named(site: Path) -> None:
    for name in ("model", "command"):
        (site / "minga_heat" / f"{name}.py").write_text("import nothing_of_this_name\n")
    said = run(site, "run", "warm.toml")
    assert said.status == 2
    assert "the model 'heat' of package minga-heat cannot be imported: ModuleNotFoundError" in said.err
    assert "Traceback" not in said.err
    assert "Not available" in run(site, "--help").out
    assert "not available" in run(site, "list", "models").out
    assert run(site, "hottest").status == 2


def test_two_packages_of_one_name_are_refused(site: Path) -> None:
    about = site / "minga_other-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: minga-other\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[minga.models]\nheat = minga_other:SPEC\n")
    said = run(site, "run", "warm.toml")
    assert said.status == 2
    assert "several installed packages have a model 'heat'" in said.err


def test_models_of_minga_are_found_in_the_same_way() -> None:
    assert set(OWN) <= set(plugins.names(GROUP))
    for name in OWN:
        spec = model_spec(name)
        assert spec.description
        assert first_example(name) is not None
        assert all(isinstance(example, str) for example in spec.examples)
    with pytest.raises(CaseError, match=r"(?s)there is no model 'fletchr'.*fletcher"):
        model_spec("fletchr")
