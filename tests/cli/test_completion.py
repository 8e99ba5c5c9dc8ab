"""What a shell offers on Tab, asked for as a shell asks."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from command_line import SMALL, in_process


@pytest.fixture(autouse=True)
def files(in_tmp_path: Path) -> None:
    """A run, a case, a Python file and what is neither, in the working directory."""
    Path("small.toml").write_text(SMALL)
    assert in_process("run", "small.toml", "--out", "runs/small").status == 0
    Path("mine.py").write_text("import nothing\ndef model(shape=(3, 3), *, speed=1.0, size=2):\n    crash\n")
    Path("notes.txt").touch()
    Path("sub").mkdir()
    Path("sub/case.py").touch()


def asked(instruction: str, **environment: str) -> str:
    """What the command answers to a shell."""
    from minga.cli.main import app

    said = io.StringIO()
    with (
        mock.patch.dict(os.environ, {"_MINGA_COMPLETE": instruction, **environment}),
        contextlib.redirect_stdout(said),
        contextlib.suppress(SystemExit),
    ):
        app(prog_name="minga")
    return said.getvalue()


def offered(line: str) -> list[str]:
    """What is offered for the last word of a line in bash."""
    words = line.split(" ")
    return asked("complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1)).split()


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("line", "expected", "missing"),
    [
        ("minga w", ["watch"], ["run"]),
        ("minga run li", ["life"], ["laplace"]),
        ("minga run s", ["small.toml", "sub/"], ["notes.txt"]),
        ("minga run sub/", ["sub/case.py"], ["small.toml"]),
        ("minga watch ", ["runs/small"], ["sub"]),
        ("minga export runs/s", ["runs/small"], []),
        ("minga export runs/small --field ", ["cell"], ["time", "x", "y", "zarr.json"]),
        ("minga export runs/small --format ", ["npy", "png"], []),
        ("minga show runs/small --protocol s", ["sixel"], ["kitty"]),
        ("minga run small.toml --set run.s", ["run.steps="], ["run.ranks="]),
        ("minga run -n 2 small.toml --set automaton.", ["automaton.rule=", "automaton.init="], []),
        ("minga run small.toml --set ", ["automaton.rule=", "grid.shape="], ["fletcher.dt=", "photodiode.layers="]),
        ("minga run apd --set photodiode.light.", ["photodiode.light.power="], ["photodiode.light.wavelength"]),
        ("minga run --set electro", ["electrodeposition.species="], []),
        ("minga list f", ["formats"], ["models"]),
        ("minga new a.toml --from pho", ["photodiode"], []),
        ("minga run mine.py --set parameters.", ["parameters.speed=", "parameters.size="], ["parameters.shape="]),
        ("minga run heat --set ", ["parameters.r=", "stop.when=", "output.every="], ["automaton.rule="]),
        ("minga new rule.py --kind ", ["rule", "block", "pde"], []),
        ("minga run nowhere/at/all", [], []),
    ],
)
def test_offers(line: str, expected: list[str], missing: list[str]) -> None:
    found = offered(line)
    assert set(expected) <= set(found), found
    assert not set(missing) & set(found), found
    if not expected:
        assert found == []


@pytest.mark.few(2)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_its_script(shell: str) -> None:
    assert f"_MINGA_COMPLETE=complete_{shell}" in asked(f"source_{shell}")


@pytest.mark.slow
def test_as_a_shell_asks() -> None:
    """The installed command, in a process of its own."""
    environment = {"_MINGA_COMPLETE": "complete_bash", "COMP_WORDS": "minga run lif", "COMP_CWORD": "2"}
    done = subprocess.run(
        [Path(sys.executable).with_name("minga")],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "life" in done.stdout.split()
    assert done.stderr == ""
