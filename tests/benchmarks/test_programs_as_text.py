"""Programs that benchmarks start as text import names that exist: no tool that renames functions sees them."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMPORT = re.compile(r"^\s*from (minga[\w.]*|benchmarks[\w.]*) import ([\w, ]+)$", re.MULTILINE)


def imports_in_texts(source: str) -> Iterator[tuple[str, str]]:
    """Yield the modules and names that strings of a file import."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for found in IMPORT.finditer(node.value):
                for name in found[2].split(","):
                    yield found[1], name.split(" as ")[0].strip()


def exists(module: str, name: str) -> bool:
    """Return True if a module defines a name or has a submodule of that name."""
    try:
        if hasattr(importlib.import_module(module), name):
            return True
        importlib.import_module(f"{module}.{name}")
    except ImportError:
        return False
    return True


def test_programs_as_text_import_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    texts = {path: path.read_text() for folder in ("benchmarks", "src") for path in (ROOT / folder).rglob("*.py")}
    found = {
        (path.relative_to(ROOT).as_posix(), *imported)
        for path, text in texts.items()
        if '"-c"' in text
        for imported in imports_in_texts(text)
    }
    assert found
    assert [one for one in sorted(found) if not exists(*one[1:])] == []


def test_a_name_that_is_gone_is_found() -> None:
    assert [*imports_in_texts('CODE = """\nfrom minga.engine import nothing\n"""')] == [("minga.engine", "nothing")]
    assert not exists("minga.engine", "nothing")
