"""Presentation of experiments that repeat a paper: as text, and as one self-contained HTML page.

``found["experiments"]`` holds results by name. A result has a ``title`` and a ``shape``: statements that hold or do
not. It may have a ``claim`` (the paper's statement), curves (``x`` and ``curves``, or several ``panels``), a ``table``
of rows, a ``picture``, ``left out`` (the reason why something is missing), ``disturbed`` (the reason why its statements
cannot be judged), and any other entries, which are printed unchanged.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

__all__ = ["body", "failed", "page", "statements", "tables"]

_OWN: Final = ("title", "claim", "curves", "panels", "x", "shape", "seconds", "picture", "measured", "disturbed")
_WIDEST: Final = 40
"""Number of points beyond which curves are drawn but not printed."""

STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}"
    "img{max-width:100%}pre{overflow-x:auto;font-size:12px}.no{color:#b00020}"
    "blockquote{margin:0 0 1rem;padding:.2rem 1rem;border-left:3px solid #999;color:#444}"
)


def failed(found: Mapping[str, Any]) -> list[str]:
    """Return the statements that do not hold; disturbed experiments are skipped."""
    return [
        f"{name}: {statement}"
        for name, result in found["experiments"].items()
        if not result.get("disturbed")
        for statement, holds in result["shape"].items()
        if not holds
    ]


def tables(found: Mapping[str, Any]) -> str:
    """Return all results as text."""
    lines: list[str] = []
    for name, result in found["experiments"].items():
        said = [f"  the paper: {result['claim']}"] if "claim" in result else []
        lines += [f"{name}. {result['title']}", *said, *body(result), *statements(result), ""]
    return "\n".join(lines).rstrip()


def body(result: Mapping[str, Any]) -> list[str]:
    """Return the numbers of a result as lines of text."""
    lines = []
    if "curves" in result:
        lines += _columns(result["x"], result["curves"])
    for panel in result.get("panels", ()):
        lines += _bars(panel) if "labels" in panel else [f"  {panel['ylabel']} by {panel['xlabel']}"]
        lines += [] if "labels" in panel else _columns(panel["x"], panel["curves"])
    for key, value in result.items():
        if key == "table":
            lines += ["  " + "  ".join(f"{k} {_words(v)}" for k, v in row.items()) for row in value]
        elif key not in _OWN:
            lines += _entry(key, value)
    return lines


def statements(result: Mapping[str, Any]) -> list[str]:
    """Return the statements of a result, and whether they hold, as lines of text."""
    why = result.get("disturbed")
    lines = [f"  not judged: {why}"] if why else []
    return lines + [
        f"  [{'holds' if holds else 'does not hold' if why else 'DOES NOT HOLD'}] {text}"
        for text, holds in result["shape"].items()
    ]


def page(found: Mapping[str, Any], title: str, preface: str, more: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return all results as one HTML page; ``more`` has lines of text for its end, by heading."""
    parts = [
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{html.escape(title)}</title>",
        f"<style>{STYLE}</style><h1>{html.escape(title)}</h1><p>{html.escape(preface)}</p>",
    ]
    for name, result in found["experiments"].items():
        parts += _section(f"{name}. {result['title']}", result)
    for heading, lines in (more or {}).items():
        text = "\n".join(lines)
        parts.append(f"<h2>{html.escape(heading)}</h2><pre>{html.escape(text)}</pre>")
    return "\n".join(parts) + "\n"


def _section(heading: str, result: Mapping[str, Any]) -> list[str]:
    title = html.escape(heading)
    parts = [f"<h2>{title}</h2>"]
    if "claim" in result:
        parts.append(f"<blockquote>{html.escape(result['claim'])}</blockquote>")
    if "picture" in result:
        image = base64.b64encode(Path(result["picture"]).read_bytes()).decode()
        parts.append(f"<img alt='{title}' src='data:image/png;base64,{image}'>")
    text = "\n".join(body(result))
    parts.append(f"<pre>{html.escape(text)}</pre>" if text else "")
    if result.get("disturbed"):
        parts.append(f"<p class='no'>Not judged: {html.escape(result['disturbed'])}</p>")
    parts.append("<ul>")
    for text, holds in result["shape"].items():
        said = html.escape(text)
        parts.append(f"<li>{said}" if holds else f"<li class='no'>{said}: does not hold")
    parts.append("</ul>")
    return parts


def _columns(x: Sequence[float], curves: Mapping[str, Sequence[float | None]]) -> list[str]:
    if len(x) > _WIDEST or not curves:
        return []
    width = max(len(name) for name in curves) + 2
    lines = ["  " + " " * width + "".join(f"{place:>8g}" for place in x)]
    lines += ["  " + name.ljust(width) + "".join(f"{_number(v):>8}" for v in values) for name, values in curves.items()]
    return lines


def _bars(panel: Mapping[str, Any]) -> list[str]:
    """Return a line for each label, with the values of all curves."""
    width = max(map(len, panel["labels"])) + 2
    head = "".join(f"{name:>14}" for name in panel["curves"])
    lines = [f"  {panel['ylabel']}".ljust(width + 2) + head]
    for place, label in enumerate(panel["labels"]):
        values = "".join(f"{_number(values[place]):>14}" for values in panel["curves"].values())
        lines.append(f"  {label.ljust(width)}{values}")
    return lines


def _entry(key: str, value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"  {key}:", *(f"    {name}: {_words(entry)}" for name, entry in value.items())]
    return [f"  {key}: {_words(value)}"]


def _words(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(_words(item) for item in value)
    return _number(value) if isinstance(value, float) else str(value)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
