"""The tables of docs/performance.md: each benchmark puts its own between two marks of its name."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"


def put_into_page(name: str, table: str, page: Path = PAGE) -> None:
    """Put a table where the page says `name`, in place of the one there."""
    text, first = page.read_text(), f"<!-- {name} -->\n"
    start, end = text.index(first) + len(first), text.index(f"<!-- end of {name} -->")
    page.write_text(text[:start] + table + text[end:])
