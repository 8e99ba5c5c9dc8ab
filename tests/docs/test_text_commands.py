"""Commands of minga in text blocks run too, page by page, where they need neither hosts nor files of a reader."""

from __future__ import annotations

import re
import shlex
import subprocess
import threading
import time
import tomllib
from pathlib import Path

import pytest

from command_line import command
from minga.errors import LaunchError
from minga.lab.cluster import lab_rights
from minga.output.directory import RunDirectory
from minga.view.live.state import RunReader
from missing import missing

from .test_docs import ROOT, Block
from .test_text_blocks import TEXTS, kind_of

NOT_HERE = {
    r"--hosts|^minga submit|^minga bcast|^mpiexec|^ssh": "hosts that answer",
    r"--device gpu": "a GPU",
    r"^minga bench": "hours, or a laboratory for minutes",
    r"A\.npy|CASE|NAME|case\.toml": "files of a reader",
    r"mine\.toml": "the package that the page writes",
    r"\|": "another program",
}
"""Patterns of commands that are not run, and what these need."""
LINE = re.compile(r"^(?:\w*\$ )?((?:minga|pip|make|ssh|mpiexec|\w+ \w+ \|) .*?)(?:  .*)?$", re.MULTILINE)


def commands_of(block: Block) -> list[str]:
    """Return the commands of a block, without output and remarks."""
    return [line.partition(" #")[0].strip() for line in LINE.findall(block.text) if not line.startswith("minga:")]


def pages() -> dict[str, list[str]]:
    """Return the commands in the text blocks of each page, in their order."""
    found: dict[str, list[str]] = {}
    for block in TEXTS:
        if kind_of(block) == "commands":
            found.setdefault(block.page.stem, []).extend(commands_of(block))
    return found


def is_run(line: str) -> bool:
    """Return whether a command is one of minga that needs nothing of NOT_HERE."""
    return line.startswith("minga ") and not any(re.search(part, line) for part in NOT_HERE)


PAGES = pages()
RUN = {page: ours for page, lines in PAGES.items() if (ours := [line for line in lines if is_run(line)])}


@pytest.mark.parametrize("lines", PAGES.values(), ids=PAGES)
def test_packages_and_targets_exist(lines: list[str]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    targets = (ROOT / "Makefile").read_text()
    assert lines
    for line in lines:
        if line.startswith("pip "):
            assert set(re.findall(r"\[(\w+)\]", line)) <= set(extras), line
        elif line.startswith("make "):
            assert re.search(rf"^{line.split()[1]}:", targets, re.MULTILINE), line
        else:
            assert line.startswith("minga ") or any(re.search(part, line) for part in NOT_HERE), line


@pytest.mark.slow
@pytest.mark.parametrize("lines", RUN.values(), ids=RUN)
def test_commands_of_text_blocks_run(lines: list[str], in_tmp_path: Path) -> None:
    for line in lines:
        if line.startswith("minga lab"):
            _need_labs()
        # A page is served for minutes after the run; tests/cli/test_watch.py looks at it.
        words = [word for word in shlex.split(line)[1:] if word != "--serve"]
        painter = threading.Thread(target=paint, daemon=True) if "run.paint=true" in line else None
        if painter:
            words += ["--set", "run.steps=100000"]  # time for a page
            painter.start()
        done = subprocess.run(command(*words), capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        if painter:
            assert Path("painted/edits.jsonl").is_file()


def paint() -> None:
    """Set a cell of the run as its page does, until it has done so."""
    run = RunDirectory(Path("painted"))
    reader = RunReader(run)
    while not run.edits.is_file():
        reader.paint(b'{"field": "cell", "cells": [[1, 1, 1]]}')
        time.sleep(0.2)


def _need_labs() -> None:
    try:
        lab_rights()
    except LaunchError as error:
        pytest.skip(f"needs a laboratory: {missing(error)}")
