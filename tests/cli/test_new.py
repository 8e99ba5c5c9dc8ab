"""``minga new``: what it writes runs as it is, gives the same bits on any number of ranks, and overwrites nothing."""

from __future__ import annotations

import errno
import json
import re
import tomllib
from pathlib import Path

import pytest

import minga
from command_line import in_process, nothing_written
from minga.cli.new import KINDS
from minga.lang.neighbourhood import Neighbourhood
from thinned import thinned

QUICK = ("-n", 1, "--set", "output.pictures=0", "--set", "output.report=false", "--set", "run.steps=40", "--json")


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", thinned([None, *KINDS], None, "block", "pde"))
def test_a_python_file_runs_as_it_is(in_tmp_path: Path, kind: str | None) -> None:
    said = in_process("new", "glowing_ash.py", *(("--kind", kind) if kind else ()))
    assert (said.status, said.err) == (0, "")
    assert "minga run glowing_ash.py" in said.out
    text = Path("glowing_ash.py").read_text()
    assert "my_rule" not in text
    assert "def glowing_ash(" in text
    done = in_process("run", "glowing_ash.py", *QUICK)
    assert done.status == 0, done
    observables = json.loads(done.out)["observables"]
    assert {"rule": "burning", "block": "particles", "pde": "total"}[kind or "rule"] in observables
    assert Path("runs/glowing-ash/fields.zarr").is_dir()


def test_the_neighbourhoods_that_a_file_names_are_there(in_tmp_path: Path) -> None:
    assert in_process("new", "mine.py").status == 0
    written = re.findall(r"mg\.\w+\((?:[^()]|\([^()]*\))*\)", Path("mine.py").read_text().partition("Another")[2])
    assert len(written[:5]) == 5
    for text in written[:5]:
        assert isinstance(eval(text, {"mg": minga}), Neighbourhood), text


def test_a_rule_is_answered_in_its_own_dimensions(in_tmp_path: Path) -> None:
    with nothing_written(in_tmp_path):
        said = in_process("new", "mine.toml", "--rule", "W1844")
    assert said.status == 2
    assert "W0 .. W255" in said.err


def test_nothing_is_left_where_the_disk_is_full(in_tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with nothing_written(in_tmp_path):
        said = in_process("new", "mine.py")
    assert said.status != 0
    assert "make room" in said.err


@pytest.mark.slow
def test_what_the_files_promise(in_tmp_path: Path) -> None:
    """The words in them are true: parameters are changed from outside, and particles are not lost."""
    for kind in KINDS:
        assert in_process("new", f"{kind}_one.py", "--kind", kind).status == 0
    small = ("--set", "grid.shape=[60, 80]", *QUICK)
    observables = {}
    for file, parameter in (("block_one", "turning=0.5"), ("rule_one", "spark=0.001"), ("pde_one", "D=1.0")):
        done = in_process("run", f"{file}.py", *small, "--set", f"parameters.{parameter}")
        assert done.status == 0, done
        observables[file] = json.loads(done.out)["observables"]
    start = in_process("run", "block_one.py", *small, "--set", "run.steps=0")
    particles = json.loads(start.out)["observables"]["particles"]
    assert observables["block_one"]["particles"] == particles > 400
    assert observables["rule_one"]["burning"] > 0
    assert observables["pde_one"]["most"] <= 1.0


@pytest.mark.few(2)
@pytest.mark.parametrize(("rule", "ndim"), [(None, 2), ("/2/3", 2), ("W110", 1), ("R5,C0,M1,S34..58,B34..45,NM", 2)])
def test_a_case_runs_as_it_is(in_tmp_path: Path, rule: str | None, ndim: int) -> None:
    said = in_process("new", "my case.toml", *(("--rule", rule) if rule else ()))
    assert said.status == 0, said
    assert "minga run 'my case.toml'" in said.out
    table = tomllib.loads(Path("my case.toml").read_text())
    assert table["automaton"]["rule"] == (rule or "B3/S23")
    assert len(table["grid"]["shape"]) == ndim
    if rule is None or ndim == 1:
        assert in_process("run", "my case.toml", *QUICK).status == 0


@pytest.mark.slow
def test_a_rule_of_a_file_is_found_beside_the_case(in_tmp_path: Path) -> None:
    Path("sub").mkdir()
    assert in_process("new", "sub/ash.py").status == 0
    assert in_process("new", "sub/ash.toml", "--rule", "ash.py:ash").status == 0
    assert in_process("run", "sub/ash.toml", *QUICK, "--set", "grid.shape=[20, 20]").status == 0


@pytest.mark.few(2)
@pytest.mark.parametrize("stem", ["class", "1st", "model", "mg", "é", "a b'c", 'quote"d', "back\\slash", "-"])
def test_any_name_of_a_file_will_do(in_tmp_path: Path, stem: str) -> None:
    assert in_process("new", "--", f"{stem}.py").status == 0
    compile(Path(f"{stem}.py").read_text(), stem, "exec")
    if stem == "class":
        assert in_process("run", *QUICK, "--set", "grid.shape=[60, 80]", f"{stem}.py").status == 0
    assert in_process("new", "--", f"{stem}.toml").status == 0
    assert tomllib.loads(Path(f"{stem}.toml").read_text())["model"] == "automaton"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("taken.py",), "taken.py exists; nothing is overwritten"),
        (("taken.toml",), "nothing is overwritten"),
        (("rule",), "name rule.py for a rule of your own"),
        (("rule.txt",), "neither a Python file nor a case"),
        (("nowhere/rule.py",), "cannot write nowhere/rule.py: No such file or directory"),
        (("taken.py/rule.py",), "cannot write"),
        (("rule.py", "--kind", "blok"), "did you mean 'block'"),
        (("rule.py", "--rule", "B3/S23"), "minga new rule.toml"),
        (("case.toml", "--kind", "rule"), "a case has no kind"),
        (("case.toml", "--rule", "B3/S2x"), "is not a rule"),
        (("case.toml", "--rule", "rules.py:none"), "--rule"),
        (("new\nline.py",), "unprintable characters"),
        ((), "FILE"),
    ],
    ids=str,
)
def test_mistakes_are_told_and_nothing_is_written(in_tmp_path: Path, words: tuple[str, ...], text: str) -> None:
    Path("taken.py").write_text("mine")
    Path("taken.toml").write_text("mine")
    with nothing_written(in_tmp_path):
        said = in_process("new", *words)
    assert (said.status, said.out) == (2, "")
    assert text in said.err
    assert "Traceback" not in said.err


@pytest.mark.few(2)
@pytest.mark.parametrize("example", ["heat", "laplace", "rtm"])
def test_a_python_example_runs_as_it_is(in_tmp_path: Path, example: str) -> None:
    """A copy has the name of its file, and gives the bits of the example."""
    said = in_process("new", "mine.py", "--from", example)
    assert (said.status, said.err) == (0, "")
    assert Path("mine.py").read_bytes() == (Path(minga.__file__).parent / "examples" / f"{example}.py").read_bytes()
    digests = []
    for name in ("mine.py", example):
        done = in_process("run", name, *QUICK[:6], "--set", "run.steps=3", "--json")
        assert done.status == 0, done
        digests.append(json.loads(done.out)["digest"])
    assert digests[0] == digests[1]
