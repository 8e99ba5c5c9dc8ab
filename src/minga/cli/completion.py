"""Shell completion of cases, runs, fields, formats, kinds, and the keys of ``--set``.

These functions are called at every press of Tab, so they only look at names, and import what they need when called.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = [
    "beginnings",
    "cases",
    "fields",
    "files",
    "formats",
    "keys",
    "kinds",
    "listed",
    "mappings",
    "protocols",
    "runs",
]

_MOST = 200
_CASES = (".toml", ".py")


def cases(incomplete: str) -> list[str]:
    """Return the examples, and the cases in the directory typed so far."""
    from minga.case.examples import examples

    return [*_beginning(sorted(examples()), incomplete), *files(incomplete)]


def beginnings(incomplete: str) -> list[str]:
    """Return the names of examples, and of models, which stand for their first examples."""
    from minga.case.examples import examples
    from minga.case.spec import GROUP
    from minga.plugins import names

    return _beginning(sorted({*examples(), *names(GROUP)}), incomplete)


def listed(incomplete: str) -> list[str]:
    """Return the kinds of entries that ``minga list`` can list."""
    from minga.cli.listing import KINDS

    return _beginning(KINDS, incomplete)


def files(incomplete: str) -> list[str]:
    """Return TOML and Python files, and directories that can be entered."""
    return [name for name, path in _here(incomplete) if path.is_dir() or path.suffix in _CASES]


def runs(incomplete: str) -> list[str]:
    """Return directories of runs, the newest first: those that match the path typed so far and those in ``runs``."""
    inside = [child for _, path in _here(incomplete) if path.is_dir() for child in (path, *_children(path))]
    found = {str(path): path / "case.toml" for path in (*inside, *_children(Path("runs")))}
    begun = {name: case.stat().st_mtime for name, case in found.items() if case.is_file()}
    return _beginning(sorted(begun, key=lambda name: -begun[name]), incomplete)


def fields(context: typer.Context, incomplete: str) -> list[str]:
    """Return the fields of the run that the command line names."""
    stores = [Path(word) / "fields.zarr" for word in _words(context)]
    names = {child.name for store in stores for child in _children(store) if not _is_coordinate(child)}
    return _beginning(sorted(names), incomplete)


def keys(context: typer.Context, incomplete: str) -> list[str]:
    """Return keys of a case followed by ``=``, including the parameters of a model in a Python file."""
    return _beginning(_keys(_words(context)), incomplete)


def formats(incomplete: str) -> list[str]:
    """Return the formats of ``minga export``."""
    from minga.output.export import GROUP
    from minga.plugins import names

    return _beginning(names(GROUP), incomplete)


def kinds(incomplete: str) -> list[tuple[str, str]]:
    """Return the kinds of files that ``minga new`` can write, each with its purpose."""
    from minga.cli.new import KINDS

    return [(name, about) for name, about in KINDS.items() if name.startswith(incomplete)]


def mappings(incomplete: str) -> list[str]:
    """Return the mappings of blocks to places in the machine."""
    from minga.plan.placement import MAPPINGS

    return _beginning(MAPPINGS, incomplete)


def protocols(incomplete: str) -> list[str]:
    """Return the protocols by which a terminal can show a picture."""
    from minga.view.terminal import PROTOCOLS

    return _beginning(PROTOCOLS, incomplete)


def _words(context: typer.Context) -> list[str]:
    """Return the arguments on the command line so far that are not options.

    While an option still lacks its value, click has not assigned the arguments to parameters yet.
    """
    named = [str(context.params[name]) for name in ("run", "case") if context.params.get(name)]
    return [*named, *(word for word in context.args if not word.startswith("-"))]


def _keys(words: Iterable[str]) -> Iterator[str]:
    """Yield the keys of a case: those of a run, of observers, and of the model of the first case that is named."""
    from minga.case.settings import GridSettings
    from minga.options import RunOptions
    from minga.schema import tables_of

    model = next((model for model in map(_model_of, words) if model is not None), None)
    run: dict[str, type[BaseModel]] = {**tables_of(RunOptions), "grid": GridSettings}
    for name, settings in run.items():
        yield from _keys_within(name, settings)
    if isinstance(model, Path):
        yield from (f"parameters.{key}=" for key in _parameters(model))
    else:
        for name, settings in _settings("minga.models"):
            if model in (name, None):
                yield from _keys_within(name, settings)
    for name, settings in _settings("minga.observers"):
        yield from _keys_within(f"observers.{name}", settings)


def _settings(group: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the settings class of each model or observer, leaving out packages that cannot be imported."""
    from minga.errors import CaseError
    from minga.plugins import load, names

    for name in names(group):
        with contextlib.suppress(CaseError):
            yield name, load(group, name, "entry").settings


def _keys_within(table: str, settings: type[BaseModel]) -> Iterator[str]:
    """Yield the keys of a table and of the tables within it."""
    from minga.schema import keys_of, tables_of

    yield from (f"{table}.{key}=" for key in keys_of(settings))
    for name, inner in tables_of(settings).items():
        yield from _keys_within(f"{table}.{name}", inner)


def _model_of(case: str) -> str | Path | None:
    """Return the model that a case names, or its Python file; None if ``case`` is not a case."""
    import tomllib

    from minga.case.examples import example

    path = Path(case) if Path(case).is_file() else example(case)
    if path is None or path.suffix == ".py":
        return path
    try:
        name = tomllib.loads(path.read_text(encoding="utf-8")).get("model")
    except (OSError, ValueError):
        return None
    if isinstance(name, str) and name.endswith(".py"):
        return path.parent / name
    return name if isinstance(name, str) else None


def _parameters(file: Path) -> list[str]:
    """Return the parameters of the model in a Python file, read from its text without running it."""
    import ast

    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "model":
            names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
            return [name for name in names if name not in ("shape", "boundary")]
    return []


def _here(incomplete: str) -> Iterator[tuple[str, Path]]:
    """Yield the entries of a directory that begin like an incomplete path, each as the user would type it."""
    folder, slash, begun = incomplete.rpartition("/")
    place = Path(folder or slash or ".").expanduser()
    for child in _children(place):
        if child.name.startswith(begun) and (begun or not child.name.startswith(".")):
            yield f"{folder}{slash}{child.name}{'/' if child.is_dir() else ''}", child


def _children(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(folder.iterdir())[:_MOST]
    return []


def _is_coordinate(array: Path) -> bool:
    """Return True if an entry of a store holds the positions along an axis, or is no array.

    A field has at least one axis besides time.
    """
    import json

    with contextlib.suppress(OSError, ValueError):
        names = json.loads((array / "zarr.json").read_text()).get("dimension_names") or []
        return len(names) < 2
    return True


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
