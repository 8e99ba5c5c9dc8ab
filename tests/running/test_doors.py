"""Each setting of a run is declared once, and every way to give or read it follows from the declaration."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

import minga as mg
from command_line import SMALL, in_process
from loading import SCRIPTS, load
from minga import options
from minga.options import COMMAND, RunOptions, marked
from minga.schema import tables_of

SOURCE = Path(mg.__file__).parent
TABLES = tables_of(RunOptions)
SETTINGS = [(table, name) for table, kind in TABLES.items() for name in kind.model_fields]
OTHERWISE = {("run", "ranks"): "comm"}
"""Settings whose keyword in Python has another name."""

GIVEN: dict[str, Any] = {
    "run.steps": 3, "run.until": 4.0,
    "run.ranks": 1, "run.threads": 2, "run.overlap": False, "run.halo_depth": 2, "run.layout": "slabs",
    "run.mapping": "sequential", "run.topology": "1x1x2", "run.machine": "two-ages", "run.weights": [1.0],
    "run.balance": "off",
    "run.device": "cpu", "run.poll": "off", "run.wall_time": 3600.0, "run.watch": 30.0,
    "run.paint": True, "run.edits": "edits.jsonl", "run.on_loss": "continue", "stop.when": "population < 0",
    "stop.fixed_point": True, "stop.period": 2, "stop.wall_time": 3600.0, "stop.every": 2, "checkpoint.every": 2,
    "checkpoint.seconds": 100.0, "checkpoint.at_end": True, "checkpoint.place": "local",
    "checkpoint.directory": f"{tempfile.gettempdir()}/minga-doors", "output.every": 2, "output.observe": 2,
    "output.fields": ["cell"], "output.pictures": 0, "output.report": False, "output.trace": True,
    "output.region": {"x": [0, 8]}, "output.decimate": 2, "output.codec": "blosc", "output.accuracy": 1e-3,
    "output.buffers": 2, "output.policy": "raise", "output.durable": True, "output.direct": False, "output.writers": 0,
    "output.chunk": 8192,
}  # fmt: skip
"""A valid value of each setting."""
TIMED = """
import minga as mg

def model(shape=(8, 8)):
    u = mg.Field("u", mg.Grid(shape))
    return mg.Model("timed", u.grid, (u,), mg.Program("step"), clock=mg.Clock(dt=1.0))
"""
"""A model with a clock, for settings that are times."""
TOGETHER = {"checkpoint.seconds": (), "stop.every": ("stop.period",)}
"""Settings that mean something only beside others."""


def test_all_settings_are_tried() -> None:
    assert [f"{table}.{name}" for table, name in SETTINGS] == list(GIVEN)


@pytest.mark.few(2)
@pytest.mark.parametrize("key", GIVEN)
def test_it_is_an_entry_of_a_case(in_tmp_path: Path, key: str) -> None:
    """The entry is taken from the command line, and stands in the resolved case."""
    Path("timed.py").write_text(TIMED)
    Path("small.toml").write_text('model = "timed.py"\nrun.steps = 10' if key == "run.until" else SMALL)
    Path("edits.jsonl").write_text('{"step": 1, "field": "cell", "cells": [[0, 0, 1]]}\n')
    words = [f"--set={each}={json.dumps(GIVEN[each])}" for each in (key, *TOGETHER.get(key, ()))]
    words = [word.replace(": ", " = ").replace('{"x"', "{x") for word in words]
    said = in_process("run", "small.toml", *words, "--out", "run", "--json")
    assert said.status == 0, said.err
    table, name = key.split(".")
    found = tomllib.loads(Path("run/case.toml").read_text())[table][name]
    assert found == GIVEN[key] or (name in ("machine", "edits") and GIVEN[key] in found)


@pytest.mark.parametrize(("table", "name"), SETTINGS)
def test_it_is_a_keyword_in_python(table: str, name: str) -> None:
    parameters = inspect.signature(mg.run).parameters
    if (table, name) in marked(COMMAND):
        assert name not in parameters
        with pytest.raises(mg.CaseError, match=f"{name}: only `minga run` starts ranks"):
            mg.run(mg.automaton("B3/S23", (8, 8), init={"soup": 0.5}), steps=1, **{name: GIVEN[f"{table}.{name}"]})
    elif table in ("run", "output"):
        name = OTHERWISE.get((table, name), name)
        assert name in parameters
        assert f"\n{name} : default" in (mg.run.__doc__ or "") or name in ("steps", "comm")
    else:
        assert table in parameters
        made = RunOptions.of(steps=1, **{table: {name: GIVEN[f"{table}.{name}"]}})
        assert getattr(getattr(made, table), name) == GIVEN[f"{table}.{name}"]


@pytest.mark.parametrize(("table", "name"), SETTINGS)
def test_something_reads_it(table: str, name: str) -> None:
    """A setting that no module reads would be accepted and do nothing."""
    texts = (text for path, text in sources().items() if f".{name}" in text or path == Path(options.__file__))
    assert any(name in attributes(text) for text in texts), f"nothing reads {table}.{name}"


@functools.cache
def sources() -> dict[Path, str]:
    """Return the text of each module but the examples."""
    return {path: path.read_text() for path in SOURCE.rglob("*.py") if "examples" not in path.parts}


@functools.cache
def attributes(text: str) -> set[str]:
    """Return the names of all attributes in a module."""
    return {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}


def test_shells_complete_it(in_tmp_path: Path) -> None:
    from minga.cli.completion import _keys

    assert {f"{table}.{name}=" for table, name in SETTINGS} <= set(_keys(["life"]))


def test_the_page_of_settings_is_made_from_the_declarations() -> None:
    script = load(SCRIPTS / "settings.py")
    assert script.PAGE.read_text() == script.page(), "run: python scripts/settings.py"


def test_an_unknown_setting_is_told_at_every_door(in_tmp_path: Path) -> None:
    Path("small.toml").write_text(SMALL)
    said = in_process("run", "small.toml", "--set", "run.halo_dept=2")
    assert said.status == 2
    assert "did you mean 'halo_depth'" in said.err
    with pytest.raises(mg.CaseError, match="did you mean 'halo_depth'"):
        mg.run(mg.automaton("B3/S23", (8, 8), init={"soup": 0.5}), 1, halo_dept=2)


def test_options_of_commands_describe_the_settings(in_tmp_path: Path) -> None:
    from minga.cli.flags import FLAGS

    help_text = " ".join(re.sub(r"[^\w.,;:\"()/ -]", " ", in_process("run", "--help").out).split())
    for key, flags in FLAGS.items():
        table, name = key.split(".")
        description = str(TABLES[table].model_fields[name].description)
        assert flags[-1] in help_text
        words = [word for word in re.sub(r"[^\w.,;:\"()/ -]", " ", description).split() if word.isalpha()]
        assert all(word.lower() in help_text.lower() for word in words), key


def test_an_option_gives_the_entry_of_the_case(in_tmp_path: Path) -> None:
    Path("small.toml").write_text(SMALL)
    words = ["--threads", "2", "--mapping", "sequential", "--topology", "1x1x2", "--device", "cpu", "--trace"]
    said = in_process("run", "small.toml", "-n", "1", *words, "--out", "run", "--json")
    assert said.status == 0, said.err
    case = tomllib.loads(Path("run/case.toml").read_text())
    found = [case["run"][name] for name in ("threads", "mapping", "device")]
    assert found == [2, "sequential", "cpu"]
    assert case["run"]["topology"].endswith("1x1x2")
    assert case["output"]["trace"] is True
