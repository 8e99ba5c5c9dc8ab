"""What the linters do not look at: what modules are for, and locks that agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import minga

ROOT = Path(__file__).parent.parent
SOURCE = Path(minga.__file__).parent


def test_every_package_and_module_says_what_it_is_for() -> None:
    silent = [
        str(path) for path in sorted(SOURCE.rglob("*.py")) if not path.read_text().lstrip().startswith(('"""', 'r"""'))
    ]
    assert not silent, f"no docstring: {silent}"


OPENINGS = ("What", "How", "Whether", "Of", "Those", "Where", "As", "Who", "Which", "That")
"""Words that no docstring begins with: what follows would be no sentence."""


def test_docstrings_are_sentences() -> None:
    """Functions say what they do in the imperative (ruff, D401); other docstrings are noun phrases or sentences."""
    opening = re.compile(rf'^\s*r?"""({"|".join(OPENINGS)})\b')
    found = [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if opening.match(line)
    ]
    assert not found, "\n".join(found)


def test_locks_agree() -> None:
    """The requirement locks for pip hold the versions of uv.lock, and those for tests hold all that running needs."""
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    locked = {(package["name"], package["version"]) for package in packages if "version" in package}
    run, dev = (pins(ROOT / name) for name in ("requirements.lock", "requirements-dev.lock"))
    assert {name for name, _ in run} >= {"numpy", "llvmlite", "mpi4py", "mpich", "zarr", "hatchling"}
    assert {name for name, _ in dev} >= {"pytest", "ruff", "mypy", "hypothesis", "mpmath"}
    assert run <= dev, "run `make lock`"
    assert dev <= locked, "run `make lock`"


def test_locks_name_no_other_registry() -> None:
    hosts = set(re.findall(r"\b\w+://([^/\"' ]+)", (ROOT / "uv.lock").read_text()))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}
    for name in ("requirements.lock", "requirements-dev.lock"):
        assert "://" not in (ROOT / name).read_text()


def pins(path: Path) -> set[tuple[str, str]]:
    return set(re.findall(r"^([a-z0-9-]+)==([^ ;\\]+)", path.read_text(), flags=re.MULTILINE))
