"""The contents name every page once, links and anchors lead somewhere, and commands in text blocks exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from command_line import in_process

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")), *sorted(DOCS.rglob("*.md"))]


def prose(page: Path) -> str:
    """Return the text of a page without its code."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as repository browsers and MyST make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        name = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        found.add(name if name not in found else f"{name}-{sum(a.startswith(name) for a in found)}")
    return found


def test_the_contents_name_every_page_once() -> None:
    linked = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)$", (DOCS / "index.md").read_text(), re.MULTILINE)
    targets = [(DOCS / link).resolve() for link in linked]
    counts = {target: targets.count(target) for target in targets}
    assert [target.name for target, count in counts.items() if count > 1] == []
    pages = {page.resolve() for page in DOCS.glob("*.md")} - {(DOCS / "index.md").resolve()}
    assert sorted(page.name for page in pages - set(targets)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_anchors_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            assert target.startswith("https://"), target
            continue
        name, _, anchor = target.partition("#")
        meant = page.parent / name if name else page
        assert meant.exists(), target
        if anchor and meant.suffix == ".md":
            assert anchor in anchors(meant), target


def texts() -> list[object]:
    found = []
    for page in PAGES:
        whole = page.read_text()
        for match in re.finditer(r"^```text\n(.*?)^```$", whole, re.MULTILINE | re.DOTALL):
            name = f"{page.relative_to(ROOT)}:{whole[: match.start()].count(chr(10)) + 1}"
            found.append(pytest.param(match[1], id=name))
    return found


@pytest.mark.parametrize("text", texts())
def test_commands_of_a_text_block_exist(text: str) -> None:
    """Look up the commands of minga and their options."""
    for command in re.findall(r"^(?:\$ )?minga (.+?)(?:  .*)?$", text, re.MULTILINE):
        arguments = command.split(" -- ")[0].partition("#")[0].split()
        names = [argument for argument in arguments[:2] if re.fullmatch(r"[a-z]+", argument)]
        shown = in_process(*names, "--help")
        assert shown.status == 0, command
        options = {argument.partition("=")[0] for argument in arguments if argument.startswith("--")}
        assert {option for option in options if option not in shown.out} == set(), command


def test_every_extra_that_pages_name_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {extra for page in PAGES for extra in re.findall(r"minga\[(\w+)\]", page.read_text())}
    assert named <= set(extras)
    assert {"all", "data", "plots", "solvers", "gpu"} <= named
