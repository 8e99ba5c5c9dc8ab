"""The reference names every public name, command, option, entry of a case and observable; no Sphinx is needed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from command_line import in_process
from loading import SCRIPTS, load
from minga.api import PUBLIC
from minga.case.spec import GROUP, model_spec
from minga.cli.case import read_case
from minga.models.waves.survey_settings import SurveySettings
from minga.options import RunOptions
from minga.plugins import names

ROOT = Path(__file__).parents[2]


@cache
def script() -> Any:
    """Return the script that makes the pages."""
    return load(SCRIPTS / "reference.py")


@cache
def pages() -> dict[str, str]:
    return script().pages()  # type: ignore[no-any-return]


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_has_an_entry(module: str) -> None:
    described = set(re.findall(rf"^\.\. [\w:]+:: {re.escape(module)}\.(\w+)$", pages()[f"{module}.md"], re.MULTILINE))
    loaded = import_module(module)
    expected = {name for name in loaded.__all__ if f"{module}.{name}" not in PUBLIC}
    assert described == expected


def test_every_object_is_described_in_full_once() -> None:
    text = "\n".join(pages()[f"{module}.md"] for module in PUBLIC)
    whole = re.findall(r"^\.\. auto\w+:: ([\w.]+)\n(?!   :no-index:)", text, re.MULTILINE)
    found = [id(getattr(import_module(name.rpartition(".")[0]), name.rpartition(".")[2])) for name in whole]
    assert len(found) == len(set(found)) > 250


def test_every_command_and_option_that_help_shows_is_there() -> None:
    page = pages()["commands.md"]
    listed = re.findall(r"^│\s(\w[\w-]*)\s", in_process("--help").out, re.MULTILINE)
    assert {"run", "plan", "lab", "survey"} <= set(listed)
    parts = re.split(r"^#{2,3} minga (.+)$", page, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert set(listed) <= set(sections)
    for name, text in sections.items():
        if name.partition(" ")[0] in ("run", "plan", "export", "lab", "submit"):
            options = set(re.findall(r"\s(--[a-z][\w-]+)", in_process(*name.split(), "--help").out)) - {"--help"}
            missing = {option for option in options if option not in text}
            assert not missing, name


def keys(kind: Any, prefix: str, outer: tuple[Any, ...] = ()) -> Iterator[str]:
    """Yield the keys of a table from the classes of its settings, not its JSON schema; ``outer`` surrounds it."""
    for name, field in kind.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        yield key
        for table in tables(field.annotation):
            if table not in outer:
                yield from keys(table, f"{key}.", (*outer, table))


def tables(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from tables(inner)


@pytest.mark.parametrize("model", [*names(GROUP), "survey"])
def test_every_entry_of_a_model_is_there(model: str) -> None:
    kind = SurveySettings if model == "survey" else model_spec(model).settings
    found = {key.replace("[]", "") for key in script().entries(model)}
    declared = set(keys(kind, f"{model}."))
    assert declared - found == set()
    assert all(f"| `{key}` |" in pages()["case-entries.md"] for key in script().entries(model))


def test_every_entry_says_what_it_means() -> None:
    silent = [k for m in (None, *names(GROUP), "survey") for k, (*_, text) in script().entries(m).items() if not text]
    assert silent == []


def test_every_setting_of_a_run_is_there() -> None:
    found = script().entries()
    for table, field in RunOptions.model_fields.items():
        assert field.annotation is not None
        for name in field.annotation.model_fields:
            assert f"{table}.{name}" in found


@pytest.mark.parametrize(
    "example",
    ["life", "sandpile", "gray-scott", "brusselator", "ginzburg-landau", "waves", "membrane", "si-1", "recovery"]
    + [pytest.param(name, marks=pytest.mark.slow) for name in ("growth", "land", "pin-ac", "si-qe", "apd", "planar")],
)
def test_every_observable_of_an_example_is_there(example: str) -> None:
    case = read_case(example)
    known = script().observables()[case.model.name]
    fields = {f.name for f in case.model.fields}
    for name in case.model.observables:
        plain = {name, *(name.removeprefix(f"{field}_") for field in fields)}
        patterns = [re.escape(key).replace(r"\*", ".+") for key in known]
        assert any(re.fullmatch(pattern, one) for pattern in patterns for one in plain), name
        assert name in case.model.quantities or case.model.name == "fletcher"


@pytest.mark.slow
def test_sphinx_builds_the_site_without_warnings() -> None:
    """The reference is built with Sphinx, which `make site` installs in an environment of its own."""
    python = ROOT / ".venv-site" / "bin" / "python"
    if not python.exists():
        pytest.skip("needs .venv-site, with Sphinx in it: run `make site` once")
    done = subprocess.run([python, ROOT / "scripts" / "site.py"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert (ROOT / "build" / "site" / "index.html").exists()
