"""Make the site in build/site from docs/ and the package: `make site`.

The pages of docs/ are readable where they are. This script copies them, adds the pages of `scripts/reference.py`, turns
the lists of docs/index.md into the table of contents and links that leave docs/ into links within the site, and runs
Sphinx.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
SOURCE: Final = ROOT / "build" / "site-source"
SITE: Final = ROOT / "build" / "site"
PROJECT: Final = {"README.md": "overview.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md",
                  "SECURITY.md": "security-policy.md"}  # fmt: skip
"""Names of pages of the site by the files outside of docs/ that they are made from."""
_LINK: Final = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")


def contents(index: str) -> dict[str, list[tuple[str, str]]]:
    """Return titles and targets of the links that each section of docs/index.md lists."""
    parts = re.split(r"^## (.+)$", index, flags=re.MULTILINE)
    return {
        name: re.findall(r"^- \[(.+)\]\(([^)]+)\)$", text, re.MULTILINE)
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def assemble() -> None:
    """Put the source of the site into build/site-source."""
    import reference

    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(DOCS, SOURCE, ignore=shutil.ignore_patterns("requirements.txt"))
    for name, page in PROJECT.items():
        shutil.copy(ROOT / name, SOURCE / page)
    for path in SOURCE.rglob("*.md"):
        original = DOCS / path.relative_to(SOURCE)
        if not original.exists():
            (original,) = (ROOT / name for name, page in PROJECT.items() if page == path.name)
        path.write_text(_LINK.sub(partial(_moved, original=original, page=path), path.read_text()))
    (SOURCE / "reference").mkdir()
    for name, text in reference.pages().items():
        (SOURCE / "reference" / name).write_text(text + (_tree("", _listed(text)) if name == "index.md" else ""))
    text = (SOURCE / "index.md").read_text()
    trees = []
    for section, links in contents(text).items():
        pages = [(title, page) for title, page in links if page.endswith(".md")]
        if section == "Reference":
            pages.insert(0, ("Names, commands, entries, observables", "reference/index.md"))
            text = text.replace("## Reference\n\n", f"## Reference\n\n- [{pages[0][0]}]({pages[0][1]})\n")
        trees.append(_tree(section, pages))
    (SOURCE / "index.md").write_text(text + "\n" + "\n".join(trees))
    decisions = SOURCE / "decisions" / "README.md"
    others = sorted(p.name for p in decisions.parent.glob("*.md") if p != decisions)
    decisions.write_text(decisions.read_text() + "\n" + _tree("", [("", name) for name in others]))


def _listed(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^- \[`?([^\]`]+)`?\]\(([^)]+)\)$", text, re.MULTILINE)


def _tree(caption: str, pages: list[tuple[str, str]]) -> str:
    """Return a hidden table of contents."""
    lines = ["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), ""]
    lines += [f"{title} <{page}>" if title else page for title, page in pages]
    return "\n".join([*lines, "```", ""])


def _moved(match: re.Match[str], original: Path, page: Path) -> str:
    """Return a link of a page as it is in the site; a file that is not a page is copied into the site."""
    begin, target, anchor, end = match.groups()
    meant = Path(os.path.normpath(original.parent / target))
    if meant.is_relative_to(DOCS):
        new = SOURCE / meant.relative_to(DOCS)
        if meant.is_dir():
            new /= "README.md"
    elif (name := os.path.relpath(meant, ROOT)) in PROJECT:
        new = SOURCE / PROJECT[name]
    elif meant.exists():
        new = SOURCE / "files" / meant.relative_to(ROOT)
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(meant, new)
    else:
        new = page.parent / target
    return f"{begin}{os.path.relpath(new, page.parent)}{anchor or ''}{end}"


def build() -> int:
    """Run Sphinx on the assembled source; return its status."""
    shutil.rmtree(SITE, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d",
               str(ROOT / "build" / "site-doctrees"), str(SOURCE), str(SITE)]  # fmt: skip
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    assemble()
    status = build()
    print(f"The site: {SITE / 'index.html'}" if status == 0 else "The site has faults; they are named above.")
    sys.exit(status)
