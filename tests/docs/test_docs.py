"""Every block of the README and the documentation does what it says: Python runs, commands run, TOML is a case."""

from __future__ import annotations

import re
import runpy
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from command_line import in_process

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    found = []
    for page in PAGES:
        text = page.read_text()
        for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            if match[1] in languages:
                found.append(Block(page, text[: match.start()].count("\n") + 1, match[1], match[2]))
    return found


def test_every_block_says_what_it_is() -> None:
    known = {"python", "console", "toml", "text"}
    for block in blocks("", *known, "sh", "bash", "py"):
        assert block.language in known, f"{block}: name the language (python, console, toml) or text"


def slow_where_it_takes_long(block: Block) -> object:
    """Each entry of the gallery compiles a rule of its own; the same cases run in tests/case/test_examples.py.

    What a page says of migration is tested in tests/models/waves/test_wave_migration.py, of sweeps and implicit steps
    in tests/cli/test_sweep.py and tests/solve/test_implicit.py, of alternating currents in
    tests/models/photodiode/test_analysis.py, of derivatives in tests/physics/test_photodiode_slopes.py.
    """
    long = ("migrate(", "mg.sweep(", "tr-bdf2", '"pin-ac"', "root_scalar(devi")
    slow = block.page.name == "gallery.md" or any(word in block.text for word in long)
    return pytest.param(block, marks=[pytest.mark.slow] if slow else [], id=str(block))


@pytest.mark.few(24)
@pytest.mark.parametrize("block", [slow_where_it_takes_long(block) for block in blocks("python")])
def test_python_blocks_run(block: Block, in_tmp_path: Path) -> None:
    script = in_tmp_path / "block.py"
    script.write_text(block.text)
    runpy.run_path(str(script), run_name="__main__")


LONG_PAGES = (
    "bounanos.md", "cases.md", "clusters.md", "electrochemistry.md", "electroconvection.md", "electrodeposition.md",
    "equations.md", "from-devsim.md", "gallery.md", "looking.md", "phase-field.md", "photodiode.md", "planning.md",
    "survival.md", "tutorial.md", "wave-density.md", "waves.md", "write-your-own-rule.md",
)  # fmt: skip
"""Run by ``make verify``; tests/cli tries the same commands on smaller cases."""


def pages_with_commands() -> list[object]:
    """Return the pages; those that ask for several ranks are tests of MPI."""
    texts: dict[Path, str] = {}
    for block in blocks("console"):
        texts[block.page] = texts.get(block.page, "") + block.text
    found = []
    for page, text in texts.items():
        marks = [pytest.mark.mpi] if re.search(r" -n [2-9]", text) else []
        marks += [pytest.mark.slow] if page.name in LONG_PAGES else []
        found.append(pytest.param(page, marks=marks, id=page.name))
    return found


@pytest.mark.parametrize("page", pages_with_commands())
def test_commands_of_a_page_run(page: Path, in_tmp_path: Path) -> None:
    for block in blocks("toml"):
        before = page.read_text().partition(block.text)[0].removesuffix("```toml\n")
        saved = re.findall(r"Saved as\s+`([\w.-]+)`", before.rpartition("```")[2])  # since the block before
        if block.page == page and saved:
            Path(saved[-1]).write_text(block.text)
    makefile = (ROOT / "Makefile").read_text()
    for block in blocks("console"):
        if block.page != page:
            continue
        for line in block.text.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["make"]:
                assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), f"{block}: no target {words[1]}"
                continue
            assert words[:1] == ["minga"], f"{block}: {line!r} is not a command of ours"
            said = in_process(*words[1:])
            assert said.status == 0, f"{block}: {line}\n{said.out}\n{said.err}"


def test_numpy_prints_the_number_that_minga_prints(in_tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for block in blocks("text", "python"):
        if block.page.name == "from-numpy.md":
            Path("block.py").write_text(block.text)
            runpy.run_path("block.py")
            printed.append(capsys.readouterr().out)
    assert len(printed) == 2
    assert float(printed[0]) > 0
    assert printed[0] == printed[1]
