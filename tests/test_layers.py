"""Imports go downwards only, and importing minga needs nothing but NumPy and llvmlite."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import minga

SOURCE = Path(minga.__file__).parent
CORE = (
    "lang",
    "compile",
    "space",
    "engine",
    "plan",
    "output",
    "view",
    "running",
    "solve",
    "launch",
    "case",
    "cli",
)
SATELLITES = ("lab", "batch", "network", "models", "studies")
"""Rooms above the core, which finds what they add through entry points only."""
LAYERS = (*CORE, *SATELLITES)
# Modules of the root that all layers may import:
EVERYWHERE = {"errors", "expression", "extras", "lazy", "markup", "options", "paths", "plugins", "schema"}
HEAVY = ("mpi4py", "zarr", "matplotlib", "xarray", "typer", "rich", "cupy", "pandas", "numcodecs")


def modules_imported(tree: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Line and dotted path of all that a module imports, at any depth of nesting; ``package`` is the one it lies in.

    ``from a import b`` yields both ``a.b`` only, as ``b`` may be a module of ``a``.
    """
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            inside = tuple(node.module.split(".")) if node.module else ()
            for alias in node.names:
                yield node.lineno, (*base, *inside, alias.name)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all statements in it, at any depth of nesting: imports are nowhere else."""
    yield node
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        inner = getattr(node, name, None)
        for statement in inner if isinstance(inner, list) else ():
            yield from _statements(statement)


@functools.cache
def tree_of(path: Path, text: str) -> ast.Module:
    """Parse a file once for all tests of this module."""
    return ast.parse(text, str(path))


def upward_imports(path: Path, source: Path) -> list[str]:
    """The imports of one file that break the direction, as text a person can act on."""
    parts = path.relative_to(source).with_suffix("").parts
    package = (source.name, *parts[:-1])
    own = parts[0]
    if own in ("__init__", "__main__", "api"):
        return []  # the root offers names of all layers; what that costs is tested below
    if own == "examples":
        return []  # cases as people write them: nothing imports these
    problems = []
    for line, name in modules_imported(tree_of(path, path.read_text()), package):
        if name[0] != source.name or len(name) == 1:
            continue
        other = name[1]
        if own == "extend" and other in (*EVERYWHERE, *CORE):
            continue
        if other in EVERYWHERE or (own in LAYERS and other in LAYERS and LAYERS.index(other) <= LAYERS.index(own)):
            continue
        target = ".".join(name)
        if other in SATELLITES and own in (*CORE, "extend"):
            problems.append(f"{path}:{line}: {own} belongs to the core, and may not import {target}, a satellite")
        elif other in LAYERS and own in LAYERS:
            problems.append(f"{path}:{line}: {own} may not import {target}: {other} lies above {own}")
        elif own in EVERYWHERE:
            problems.append(f"{path}:{line}: {own} is imported by all, so it may import nothing of {source.name}")
        else:
            problems.append(f"{path}:{line}: {target} is no layer; import from the module that defines it")
    return problems


@pytest.mark.xdist_group("layers")
def test_imports_go_downwards_only() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > len(LAYERS)
    problems = [problem for path in files for problem in upward_imports(path, SOURCE)]
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("lang/a.py", "import minga.space.box"),
        ("lang/a.py", "from minga.space import box"),
        ("lang/a.py", "def f():\n    from ..engine import bind"),
        ("models/x/a.py", "from ...studies import report"),
        ("cli/a.py", "from minga.lab.cluster import find"),
        ("plan/x/a.py", "def f():\n    from minga.models import automaton"),
        ("extend.py", "from minga.models.automaton.rules import find_rule"),
        ("lang/a.py", "from minga import view"),
        ("lang/a.py", "from minga import kernel"),
        ("space/__init__.py", "from .. import cli"),
        ("errors.py", "from .lang import expr"),
    ],
)
def test_a_wrong_direction_is_noticed(tmp_path: Path, file: str, text: str) -> None:
    path = tmp_path / "minga" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert len(upward_imports(path, tmp_path / "minga")) == 1


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "engine/a.py",
            "from ..lang.expr import Expr\nimport minga.space.box\nfrom . import bind\nfrom .. import errors",
        ),
        ("models/x/a.py", "from ..y import b\nfrom ...errors import MingaError\nimport numpy.fft"),
        ("space/__init__.py", "from .box import Box\nfrom ..compile import llvm"),
    ],
)
def test_a_right_direction_is_accepted(tmp_path: Path, file: str, text: str) -> None:
    path = tmp_path / "minga" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert upward_imports(path, tmp_path / "minga") == []


def test_packages_are_known() -> None:
    found = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert found <= set(LAYERS), f"add the new layer to the order in this file: {sorted(found - set(LAYERS))}"


def test_importing_minga_is_light() -> None:
    loaded = modules_loaded("import minga; minga.run")
    assert {"minga", "numpy", "llvmlite"} <= loaded
    assert not loaded & set(HEAVY), "import these in the functions that use them"


def test_the_root_offers_names_when_they_are_used() -> None:
    """So `minga --help`, and Tab in a shell, wait for nothing."""
    assert "numpy" not in modules_loaded("import minga.cli.main")
    offered = dir(minga)
    assert set(minga.__all__) <= set(offered)
    assert all(getattr(minga, name) is not None for name in minga.__all__)
    with pytest.raises(AttributeError, match="module 'minga' has no attribute 'Feild'"):
        minga.Feild  # type: ignore[attr-defined]


def test_the_core_of_the_command_line_knows_no_command_of_others() -> None:
    """They are found through entry points, and loaded when they are asked for."""
    from minga.cli.commands import GROUP

    others = {point.module for point in entry_points(group=GROUP)}
    assert others
    code = "from minga.cli.main import app; import sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not others & set(loaded)


def modules_loaded(code: str) -> set[str]:
    """Names of the packages that are loaded after a piece of code ran in a process of its own."""
    code += "; import sys; print(*{name.split('.')[0] for name in sys.modules})"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def modules_loaded_by(path: Path, source: Path, known: set[str]) -> set[str]:
    """The modules that loading one module loads: its imports that stand in no function and are not for types alone."""
    package = (source.name, *path.relative_to(source).with_suffix("").parts[:-1])
    found = set()
    for statement in tree_of(path, path.read_text()).body:
        if isinstance(statement, ast.Import | ast.ImportFrom | ast.Try | ast.If):
            if "TYPE_CHECKING" in ast.dump(statement):
                continue
            for _, name in modules_imported(statement, package):
                found |= known & {".".join(name), ".".join(name[:-1])}
    return found


def circles(source: Path) -> list[str]:
    """Modules that load each other, directly or through others."""
    names = {path: ".".join(path.relative_to(source.parent).with_suffix("").parts) for path in source.rglob("*.py")}
    known = set(names.values())
    graph = {name: modules_loaded_by(path, source, known) - {name} for path, name in names.items()}
    while leaves := [name for name, others in graph.items() if not others & graph.keys()]:
        for name in leaves:
            del graph[name]
    return sorted(graph)  # each of these loads a module that is on a circle, or lies on one itself


@pytest.mark.xdist_group("layers")
def test_no_module_loads_itself_through_others() -> None:
    assert circles(SOURCE) == []


def test_a_circle_is_noticed(tmp_path: Path) -> None:
    source = tmp_path / "minga"
    source.mkdir()
    (source / "a.py").write_text("from minga.b import two\n")
    (source / "b.py").write_text("import minga.c\ntwo = 2\n")
    (source / "c.py").write_text("def later():\n    import minga.a\n")
    assert circles(source) == []
    (source / "c.py").write_text("from . import a\n")
    assert circles(source) == ["minga.a", "minga.b", "minga.c"]
