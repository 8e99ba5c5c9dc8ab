"""From a case's tables to a Model: the models by name, Python files, and mistakes that name their key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import minga as mg
from minga.case.load import load_model, python_case
from minga.case.settings import GridSettings
from minga.engine.model import Model
from minga.schema import validate
from model_runs import run_model

LIFE: dict[str, Any] = {"rule": "B3/S23", "init": {"soup": 0.5}}


def load(table: dict[str, Any], directory: Path = Path(), **grid: Any) -> Model:
    settings = validate(GridSettings, {"shape": [8, 9], **grid}, "grid")
    return load_model("automaton", {"automaton": table}, settings, directory)


def test_an_automaton() -> None:
    model = load(LIFE | {"seed": 3}, boundary=["periodic", "fixed"])
    assert (model.name, model.grid.shape, model.grid.periodic) == ("automaton", (8, 9), (True, False))
    assert (model.output, model.seed, model.parameters) == (("cell",), 3, {"rule": "B3/S23"})
    assert load(LIFE).grid.periodic == (True, True)


def test_the_rule_of_the_pattern_file(tmp_path: Path) -> None:
    (tmp_path / "a.rle").write_text("x = 2, y = 1, rule = 23/36:T8,9\n2o!")
    (tmp_path / "b.rle").write_text("2o!")
    for init in ("a.rle", {"pattern": "a.rle", "at": [0, 0]}):
        assert load({"init": init}, tmp_path).parameters["rule"] == "B36/S23"
    for start in ("b.rle", {"soup": 0.5}):
        with pytest.raises(mg.CaseError, match=r"automaton\.rule: no rule"):
            load({"init": start}, tmp_path)


@pytest.mark.parametrize(("table", "key", "words"), [
    (LIFE | {"ruel": "B3/S23"}, "automaton.ruel", "did you mean 'rule'"),
    ({"rule": "B3/S23"}, "automaton.init", "is missing"),
    (LIFE | {"rule": 3}, "automaton.rule", "found 3"),
    (LIFE | {"seed": -1}, "automaton.seed", "found -1"),
    (LIFE | {"seed": "x"}, "automaton.seed", "found 'x'"),
    (LIFE | {"parameters": {"p": "x"}}, "automaton.parameters.p", "expected true or false or a number, found 'x'"),
    (LIFE | {"parameters": {"p": 1.0}}, "automaton.parameters.p", "no parameter 'p'"),
    (LIFE | {"init": "missing.rle"}, "automaton.init", "missing.rle"),
    (LIFE | {"init": [[1] * 10]}, "automaton.init", "larger than the grid"),
    (LIFE | {"rule": "rules.py:life"}, "automaton.rule", "there is no file"),
])  # fmt: skip
def test_mistakes_in_the_table(table: dict[str, Any], key: str, words: str) -> None:
    with pytest.raises(mg.CaseError) as caught:
        load(table)
    assert (caught.value.key or "").startswith(key)
    assert words in str(caught.value)
    assert key in str(caught.value)


@pytest.mark.parametrize(("grid", "key"), [
    ({"shape": []}, "grid.shape"), ({"shape": [0, 3]}, "grid.shape"), ({"shape": [3.5, 3]}, "grid.shape"),
    ({"shape": ["3", 3]}, "grid.shape"), ({"shape": [1] * 5}, "grid.shape"), ({"shape": 3}, "grid.shape"),
    ({"shpae": [3, 3]}, "grid.shpae"), ({"boundary": "perodic"}, "grid.boundary"), ({"shape": None}, "grid.shape"),
])  # fmt: skip
def test_mistakes_in_the_grid(grid: dict[str, Any], key: str) -> None:
    with pytest.raises(mg.CaseError) as caught:
        load(LIFE, **grid)
    assert (caught.value.key or "").startswith(key)


def test_unknown_models_and_missing_tables() -> None:
    with pytest.raises(mg.CaseError, match="did you mean 'automaton'"):
        load_model("automat", {}, GridSettings(), Path())
    with pytest.raises(mg.CaseError, match=r"no table \[automaton\]"):
        load_model("automaton", {}, GridSettings(shape=(3, 3)), Path())


# Python files
FILE = """
import minga as mg

run = {"steps": 7}
checkpoint = {"every": 3}
output = {"every": 2}
unrelated = 3

@mg.kernel
def double(u, new, *, factor):
    new[0] = u[0] * factor

def model(shape=(4,), *, factor=2.0):
    grid = mg.Grid(shape)
    u = mg.Field("u", grid, slots=2)
    step = mg.Program("step")
    step.apply(double, u, u.next, factor=factor)
    step.rotate(u)
    return mg.Model(name="doubling", grid=grid, fields=(u,), step=step, initial={"u": 1.0})
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "case.py"
    path.write_text(text)
    return path


def test_a_python_file(tmp_path: Path) -> None:
    case = python_case(written(tmp_path, FILE))
    assert case.defaults == {"run": {"steps": 7}, "checkpoint": {"every": 3}, "output": {"every": 2}}
    assert list(case.parameters) == ["shape", "factor"]
    model = case.model(GridSettings(shape=(6,)), {"factor": 3.0})
    assert run_model(model, 4).fields["u"].tolist() == [81.0] * 6
    again = load_model("case.py", {"parameters": {"factor": 5.0}}, GridSettings(), tmp_path)
    assert run_model(again, 2).fields["u"].tolist() == [25.0] * 4


def test_a_python_file_with_a_model_ready_made(tmp_path: Path) -> None:
    case = python_case(written(tmp_path, FILE.replace("def model", "def make") + "model = make()\n"))
    assert case.model(GridSettings(), {}).grid.shape == (4,)
    with pytest.raises(mg.CaseError, match=r"grid\.shape"):
        case.model(GridSettings(shape=(3,)), {})


@pytest.mark.parametrize(("text", "words"), [
    (FILE.replace("def model", "def modle"), "did you mean 'modle'"), ("model = 3\n", "model is an int, not a Model"),
    ("import minga as mg\n@mg.kernel\ndef k(u, *, h):\n    u[0] = x\n\nmodel = k\n", "model is a Kernel, not"),
    ("raise RuntimeError('no')\n", "RuntimeError: no"), ("x =\n", "not valid Python"),
])  # fmt: skip
def test_files_without_a_model(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(mg.CaseError, match="model") as caught:
        python_case(written(tmp_path, text))
    assert words in str(caught.value)
    assert "case.py" in str(caught.value)


@pytest.mark.parametrize(("change", "parameters", "words"), [
    ("", {"facter": 3}, "did you mean 'factor'"), ("", {"boundary2": 1}, "its parameters are shape, factor"),
    ('return mg.Model(name="doubling"', {}, "returns"), ("grid = mg.Grid(shape)", {}, "NameError"),
])  # fmt: skip
def test_models_that_fail(tmp_path: Path, change: str, parameters: dict[str, Any], words: str) -> None:
    broken = "x = dict(name=1" if change.startswith("return") else "y = undefined"
    text = FILE.replace(change, broken) if change else FILE
    with pytest.raises(mg.CaseError, match=words):
        python_case(written(tmp_path, text)).model(GridSettings(), parameters)


def test_a_missing_python_file() -> None:
    with pytest.raises(mg.CaseError, match="there is no file"):
        python_case(Path("nowhere.py"))


ANNOTATED = """
from __future__ import annotations
from typing import Annotated
from pydantic import Field
import minga as mg
from minga.extend import Seconds

def model(
    shape: tuple[int] = (4,),
    *,
    factor: Annotated[float, Field(gt=0, lt=5, description="growth a step")] = 2.0,
    time: Seconds = 40.0,
    r=0.2,
    flag=False,
    copy="x",
    table=None,
    **others,
):
    grid = mg.Grid(shape)
    u = mg.Field("u", grid)
    found = {"factor": factor, "time": time, "r": r, "flag": flag, "copy": copy, "table": table, **others}
    return mg.Model("m", grid, (u,), mg.Program("step"), parameters=found)
"""


def test_annotated_parameters_are_checked_and_converted(tmp_path: Path) -> None:
    case = python_case(written(tmp_path, ANNOTATED))
    given = {"time": "2 min", "factor": 3, "r": 1, "table": {"a": [1]}}
    found = case.model(GridSettings(shape=(3,)), given).parameters
    assert (found["time"], found["factor"], found["r"], found["table"]) == (120.0, 3.0, 1, {"a": [1]})
    assert (type(found["factor"]), type(found["r"])) == (float, int)  # without annotation values are as they were given
    assert case.model(GridSettings(), {}).parameters["time"] == 40.0


@pytest.mark.parametrize(("parameters", "words"), [
    ({"factor": 7}, "parameters.factor: expected a number above 0 and below 5, found 7"),
    ({"factor": 7}, "growth a step"),
    ({"time": "2 kg"}, 'parameters.time: expected seconds, or a time such as "20 ms", found \'2 kg\''),
    ({"r": "abc"}, "parameters.r: expected a number, found 'abc'"),
    ({"r": True}, "parameters.r: expected a number, found True"),
    ({"flag": 1}, "parameters.flag: expected true or false, found 1"),
    ({"copy": 3}, "parameters.copy: expected a word in quotes, found 3"),
    ({"fcator": 3}, "did you mean 'factor'"),
])  # fmt: skip
def test_mistakes_in_parameters(tmp_path: Path, parameters: dict[str, Any], words: str) -> None:
    case = python_case(written(tmp_path, ANNOTATED))
    with pytest.raises(mg.CaseError) as caught:
        case.model(GridSettings(), parameters)
    assert words in str(caught.value)
    assert caught.value.key == f"parameters.{next(iter(parameters))}"


def test_the_shape_is_checked_by_its_annotation(tmp_path: Path) -> None:
    with pytest.raises(mg.CaseError, match=r"grid\.shape: expected"):
        python_case(written(tmp_path, ANNOTATED)).model(GridSettings(shape=(3, 4)), {})


def test_annotations_that_mean_nothing(tmp_path: Path) -> None:
    case = python_case(written(tmp_path, ANNOTATED.replace("Seconds = 40.0", "Secnods = 40.0")))
    with pytest.raises(mg.CaseError, match="name 'Secnods' is not defined"):
        case.model(GridSettings(), {})
