"""What a shell offers when a person presses Tab: cases, runs, fields, formats, kinds, and the keys of ``--set``.

The command asks these functions on every press, so they look at names only, and import what they need when called.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["cases", "fields", "files", "formats", "keys", "kinds", "labs", "mappings", "protocols", "runs"]

_MOST = 200
_CASES = (".toml", ".py")


def cases(incomplete: str) -> list[str]:
    """The examples, and the cases in the directory that was typed so far."""
    import minga

    shipped = Path(minga.__file__).parent / "examples"
    known = sorted(path.stem for path in shipped.iterdir() if path.suffix in _CASES)
    return [*_beginning(known, incomplete), *files(incomplete)]


def labs(incomplete: str) -> list[str]:
    """The labs that ship with minga, and TOML files."""
    import minga

    shipped = Path(minga.__file__).parent / "examples" / "labs"
    known = sorted(path.stem for path in shipped.glob("*.toml"))
    return [*_beginning(known, incomplete), *(name for name in files(incomplete) if not name.endswith(".py"))]


def files(incomplete: str) -> list[str]:
    """TOML and Python files, and directories to go on in."""
    return [name for name, path in _here(incomplete) if path.is_dir() or path.suffix in _CASES]


def runs(incomplete: str) -> list[str]:
    """Directories of runs, the newest first: those that were typed so far, and those under ``runs``."""
    inside = [child for _, path in _here(incomplete) if path.is_dir() for child in (path, *_children(path))]
    found = {str(path): path / "case.toml" for path in (*inside, *_children(Path("runs")))}
    begun = {name: case.stat().st_mtime for name, case in found.items() if case.is_file()}
    return _beginning(sorted(begun, key=lambda name: -begun[name]), incomplete)


def fields(context: typer.Context, incomplete: str) -> list[str]:
    """The fields of the run that the command line names."""
    stores = [Path(word) / "fields.zarr" for word in _words(context)]
    names = {child.name for store in stores for child in _children(store) if not _is_coordinate(child)}
    return _beginning(sorted(names), incomplete)


def keys(context: typer.Context, incomplete: str) -> list[str]:
    """Keys of a case with ``=``; the parameters of a Python file's model among them."""
    return _beginning(_keys(_words(context)), incomplete)


def formats(incomplete: str) -> list[str]:
    """What ``minga export`` can write."""
    from minga.cli.export import FORMATS

    return _beginning(FORMATS, incomplete)


def kinds(incomplete: str) -> list[tuple[str, str]]:
    """What ``minga new`` can write, each with what it is for."""
    from minga.cli.new import KINDS

    return [(name, about) for name, about in KINDS.items() if name.startswith(incomplete)]


def mappings(incomplete: str) -> list[str]:
    """Which block goes where in the machine."""
    from minga.plan.placement import MAPPINGS

    return _beginning(MAPPINGS, incomplete)


def protocols(incomplete: str) -> list[str]:
    """How a terminal can show a picture."""
    from minga.view.terminal import PROTOCOLS

    return _beginning(PROTOCOLS, incomplete)


def _words(context: typer.Context) -> list[str]:
    """The words on the command line so far that are no options; while an option lacks its value they are not sorted."""
    named = [str(context.params[name]) for name in ("run", "case") if context.params.get(name)]
    return [*named, *(word for word in context.args if not word.startswith("-"))]


def _keys(words: Iterable[str]) -> Iterator[str]:
    from minga.models.automaton.case import AutomatonSettings
    from minga.models.electrodeposition.settings import ElectrodepositionSettings
    from minga.models.photodiode.settings import PhotodiodeSettings
    from minga.models.settings import GridSettings
    from minga.models.waves.settings import FletcherSettings
    from minga.options import RunOptions
    from minga.schema import tables_of

    tables: dict[str, type[BaseModel]] = {**tables_of(RunOptions), "grid": GridSettings}
    python = next((path for path in map(_python_file, words) if path is not None), None)
    if python is None:
        tables |= {"automaton": AutomatonSettings, "fletcher": FletcherSettings}
        tables |= {"electrodeposition": ElectrodepositionSettings, "photodiode": PhotodiodeSettings}
    for name, settings in tables.items():
        yield from (f"{name}.{key}=" for key in settings.model_fields)
    if python is not None:
        yield from (f"parameters.{key}=" for key in _parameters(python))


def _python_file(case: str) -> Path | None:
    """The Python file that a case is, or that the example of this name is."""
    import minga

    paths = (Path(case), Path(minga.__file__).parent / "examples" / f"{case}.py")
    return next((path for path in paths if path.suffix == ".py" and path.is_file()), None)


def _parameters(file: Path) -> list[str]:
    """The parameters of the model in a Python file, from its text alone."""
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
    """What lies in the directory of an incomplete path and begins like it, as the person would type it."""
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
    """Whether an array of a store is the positions along an axis, or no array: fields have more axes than time."""
    import json

    with contextlib.suppress(OSError, ValueError):
        names = json.loads((array / "zarr.json").read_text()).get("dimension_names") or []
        return len(names) < 2
    return True


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
