"""The command ``minga list``: list everything installed that cases and the command line can name."""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from minga.case.examples import examples
from minga.errors import CaseError, suggest
from minga.plugins import load, names

__all__ = ["KINDS", "listing", "text"]

Entry = dict[str, Any]
_END_OF_SENTENCE: Final = re.compile(r"(?<=[a-z0-9)][a-z0-9)])\.(?=\s|$)")
_WIDTH: Final = 100


def listing(kind: str | None, context: Any = None) -> dict[str, list[Entry]]:
    """Return the names and descriptions of the entries of one kind, or of all kinds.

    Parameters
    ----------
    kind
        One of `KINDS`, or None for all.
    context
        Context of typer, from which the commands are taken; they are left out of a full listing without it.

    Returns
    -------
    dict
        Entries by kind. An entry that cannot be imported has the reason in place of its description.

    Raises
    ------
    CaseError
        If the kind is unknown.
    """
    if kind is not None and kind not in KINDS:
        raise CaseError(
            f"there are no {kind!r} to list",
            key="KIND",
            suggestion=suggest(kind, KINDS),
            remedy=f"list {', '.join(KINDS)}, or all of them: minga list",
        )
    chosen = [name for name in KINDS if kind in (name, None) and not (name == "commands" and context is None)]
    return {name: list(KINDS[name](context)) for name in chosen}


def text(found: dict[str, list[Entry]]) -> str:
    """Return a listing as text for the terminal."""
    width = max((len(entry["name"]) for entries in found.values() for entry in entries), default=0)
    lines = []
    for kind, entries in found.items():
        lines.append(f"{kind}:" if entries else f"{kind}: none")
        lines += [
            f"  {entry['name']:{width}}  {textwrap.shorten(entry['description'], _WIDTH, placeholder=' ...')}"
            for entry in entries
        ]
        lines.append("")
    return "\n".join(lines[:-1])


def _models(context: Any) -> Iterator[Entry]:
    for name, spec, failure in _loaded("minga.models", "model"):
        given = [] if spec is None else [one.stem if isinstance(one, Path) else one for one in spec.examples]
        yield {"name": name, "description": failure or spec.description, "examples": given}


def _examples(context: Any) -> Iterator[Entry]:
    for name, path in sorted(examples().items()):
        content = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            about, model = ast.get_docstring(ast.parse(content)) or "", path.name
        else:
            comment = (line[1:].strip() for line in _comment(content))
            about, model = " ".join(comment), str(tomllib.loads(content).get("model", ""))
        yield {"name": name, "description": _first_sentence(about), "model": model}


def _comment(content: str) -> Iterator[str]:
    for line in content.splitlines():
        if not line.startswith("#"):
            return
        yield line


def _first_sentence(about: str) -> str:
    about = " ".join(about.split("\n\n")[0].split())
    end = _END_OF_SENTENCE.search(about)
    return about[: end.start()] if end else about


def _described(group: str, what: str) -> Callable[[Any], Iterator[Entry]]:
    def entries(context: Any) -> Iterator[Entry]:
        for name, found, failure in _loaded(group, what):
            yield {"name": name, "description": failure or found.description}

    return entries


def _loaded(group: str, what: str) -> Iterator[tuple[str, Any, str]]:
    for name in names(group):
        try:
            yield name, load(group, name, what), ""
        except CaseError as error:
            yield name, None, f"not available: {error.message}"


def _commands(context: Any) -> Iterator[Entry]:
    group = context.parent.command
    for name in group.list_commands(context.parent):
        command = group.get_command(context.parent, name)
        yield {"name": name, "description": command.get_short_help_str(limit=200)}


KINDS: Final[dict[str, Callable[[Any], Iterator[Entry]]]] = {
    "models": _models,
    "examples": _examples,
    "formats": _described("minga.formats", "format"),
    "observers": _described("minga.observers", "observer"),
    "routes": _described("minga.routes", "route"),
    "commands": _commands,
}
"""Functions that yield the entries of each kind, given the context of typer."""
