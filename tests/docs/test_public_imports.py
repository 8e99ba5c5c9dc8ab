"""Documentation, examples and templates import only public names, which the public modules list and load lazily."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import minga
from minga.api import PUBLIC

SOURCE = Path(minga.__file__).parent
ROOT = Path(__file__).parents[2]


def sources() -> Iterator[tuple[str, str]]:
    """Yield name and text of all Python that readers see: blocks of pages, examples, rules and templates."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text()
        for match in re.finditer(r"^```(python|text)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            if match[1] == "python" or re.search(r"^(import|from) minga", match[2], re.MULTILINE):
                yield f"{page.relative_to(ROOT)}:{text[: match.start()].count(chr(10)) + 1}", match[2]
    for path in sorted((SOURCE / "examples").rglob("*.py")):
        yield str(path.relative_to(SOURCE)), path.read_text()


def problems(text: str) -> list[str]:
    """Return the imports and attributes of a piece of Python that are not public."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []  # parts of programs, marked as text
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "minga"]
            found += [f"import {name}" for name in names if name not in PUBLIC]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "minga":
            found += [f"from {node.module} import {a.name}" for a in node.names if not is_public(node.module, a.name)]
        elif isinstance(node, ast.Attribute) and re.fullmatch(r"mg(\.\w+)+", ast.unparse(node)):
            found += [ast.unparse(node)] if not reached(ast.unparse(node).split(".")[1:]) else []
    return found


def is_public(module: str, name: str) -> bool:
    return module in PUBLIC and (name in dir(import_module(module)) or f"{module}.{name}" in PUBLIC)


def reached(parts: list[str]) -> bool:
    """Return True if a dotted name below ``mg`` goes through public modules to a public name."""
    module = "minga"
    for part in parts:
        if f"{module}.{part}" not in PUBLIC:
            return is_public(module, part)
        module = f"{module}.{part}"
    return True


@pytest.mark.parametrize(("name", "text"), [pytest.param(*one, id=one[0]) for one in sources()])
def test_only_public_names_are_used(name: str, text: str) -> None:
    assert problems(text) == [], name


@pytest.mark.parametrize(
    "text",
    [
        "import minga.engine.model",
        "from minga.engine.model import Model",
        "from minga.solve.krylov import conjugate_gradients",
        "from minga.solve import xpby",
        "import minga as mg\nmg.solve.xpby",
        "import minga as mg\nmg.engine.model.Model",
    ],
)
def test_other_names_are_noticed(text: str) -> None:
    assert len(problems(text)) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "import minga as mg\nmg.solve.Multigrid",
        "from minga.models import waves",
        "import minga.models.waves",
        "import os",
    ],
)
def test_public_names_are_accepted(text: str) -> None:
    assert problems(text) == []


@pytest.mark.parametrize("module", PUBLIC)
def test_public_modules_show_only_public_names_that_exist(module: str) -> None:
    loaded = import_module(module)
    below = {name.removeprefix(f"{module}.") for name in PUBLIC if name.rpartition(".")[0] == module}
    assert set(dir(loaded)) == {*loaded.__all__, *below}
    assert loaded.__doc__
    for name in dir(loaded):
        assert inspect.ismodule(getattr(loaded, name)) == (f"{module}.{name}" in PUBLIC), f"{name}: a file has its name"
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nonsense'"):
        loaded.nonsense


@pytest.mark.parametrize("module", [name for name in PUBLIC if name != "minga.extend"])
def test_public_modules_load_nothing_until_a_name_is_used(module: str) -> None:
    code = f"import {module}, sys; print(*sorted(n for n in sys.modules if n.startswith('minga.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packages = {module.rsplit(".", n)[0] for n in range(3)}
    assert set(done.stdout.split()) <= packages | {"minga.lazy", "minga.errors", "minga.plugins"}
