"""The notebooks of the documentation run from top to bottom, and are kept without outputs."""

from __future__ import annotations

import ast
import json
import linecache
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells_of(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def run_cells(sources: list[str], name: str) -> list[object]:
    """Run code cells in one namespace, as Jupyter does, and return what each shows: the value of its last line."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for number, source in enumerate(sources, 1):
        tree, where = ast.parse(source), f"<{name}, code cell {number}>"
        linecache.cache[where] = len(source), None, source.splitlines(keepends=True), where
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, where, "exec"), namespace)
        shown.append(eval(compile(ast.Expression(last.value), where, "eval"), namespace) if last else None)
    return shown


def slow_where_it_takes_seconds(path: Path) -> object:
    quick = path.stem in ("equation", "kernel")
    return pytest.param(path, marks=[] if quick else [pytest.mark.slow], id=path.stem)


@pytest.mark.parametrize("path", [slow_where_it_takes_seconds(path) for path in NOTEBOOKS])
def test_a_notebook_runs(path: Path, in_tmp_path: Path) -> None:
    shown = run_cells(["".join(c["source"]) for c in cells_of(path) if c["cell_type"] == "code"], path.name)
    pages = [item._repr_html_() for item in shown if hasattr(item, "_repr_html_")]
    assert len(pages) >= 2
    assert not any(re.search(r"(?:src|href)=[\"']?(?:https?:)?//", page) for page in pages)
    assert list(in_tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    cells = cells_of(path)
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert cells[0]["cell_type"] == "markdown"
    for cell in cells:
        assert cell["cell_type"] in ("markdown", "code")
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
    assert path.stat().st_size < 10_000


def test_the_page_names_every_notebook() -> None:
    page = (FOLDER.parent / "notebooks.md").read_text()
    assert NOTEBOOKS
    assert sorted(re.findall(r"\(notebooks/([\w-]+)\.ipynb\)", page)) == [path.stem for path in NOTEBOOKS]


def test_a_failing_cell_is_named() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_cells(["a = 1", "a / 0"], "name")
    assert "name, code cell 2" in str(caught.getrepr(style="native"))
