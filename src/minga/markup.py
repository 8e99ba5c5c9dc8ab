"""HTML of objects in notebooks: compact tables in the colours of the page, light or dark, that load nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

__all__ = ["block", "described", "details", "table"]

_LINE: Final = "border-bottom: 1px solid rgba(127, 127, 127, 0.35)"
_CELL: Final = f"padding: 0.1em 0.8em 0.1em 0; text-align: left; vertical-align: top; background: none; {_LINE}"
_MOST: Final = 400
"""Characters of a value, beyond which it is cut."""


def block(title: str, *parts: str) -> str:
    """Return a title, which is escaped, with parts below it, which are HTML."""
    return f'<div class="minga" style="line-height: 1.4"><strong>{escape(title)}</strong>{"".join(parts)}</div>'


def described(facts: Mapping[str, object]) -> str:
    """Return a table of names and values; empty values are left out."""
    rows = [(name, value) for name, value in facts.items() if value not in ("", None)]
    return table((), rows, named=True)


def table(head: Sequence[str], rows: Iterable[Sequence[object]], named: bool = False) -> str:
    """Return a table of values, which are escaped; `named`: the first column is a heading of the row.

    Parameters
    ----------
    head
        Headings of the columns; none for a table without.
    rows
        Values, which `str` turns into text.
    named
        Whether the first value of a row names it.
    """
    lines = ["".join(_cell(title, "th", "col") for title in head)] if head else []
    for first, *others in rows:
        begin = _cell(first, "th", "row") if named else _cell(first, "td")
        lines.append(begin + "".join(_cell(value, "td") for value in others))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table style="border-collapse: collapse; margin: 0.3em 0">{body}</table>' if lines else ""


def details(title: str, text: str) -> str:
    """Return text as it is written, which is shown when its title is clicked on."""
    shown = f'<pre style="margin: 0.3em 0; background: none; color: inherit">{escape(text)}</pre>'
    return f'<details><summary style="cursor: pointer">{escape(title)}</summary>{shown}</details>'


def _cell(value: object, tag: str, scope: str = "") -> str:
    text = str(value)
    shown = text if len(text) <= _MOST else f"{text[:_MOST]}…"
    where = f' scope="{scope}"' if scope else ""
    return f'<{tag}{where} style="{_CELL}">{escape(shown)}</{tag}>'
