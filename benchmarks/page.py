"""What benchmarks show: tables of what was stored, each between two marks of its name in a page of docs/."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.command import Asked
from benchmarks.families import stored

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"

Content = dict[str, Any]
Table = Callable[[Any], Iterable[str]]


def shown(
    options: Asked,
    name: str,
    measure: Callable[[Sequence[str], bool], Content],
    markdown: Callable[[Mapping[str, Any]], str],
    *,
    headline: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda results: {},
    page: Path = PAGE,
) -> Content | None:
    """Measure what was asked for, print it as tables, and keep it: in the stored file and, where the page says `name`,
    on the page, with those of all families of processors where each has a file. `headline`: what of the results is
    stored first. None where only the stored tables were asked for."""
    if options.table:
        print(markdown(options.before()) if options.out else _all_stored(options, markdown), end="")
        return None
    content = options.whole(measure(options.only, options.quick))
    content |= headline(content.get("results", {}))
    print(markdown(content), end="")
    if options.store(content):
        put_into_page(name, _all_stored(options, markdown), page)
    return content


def _all_stored(options: Asked, markdown: Callable[[Mapping[str, Any]], str]) -> str:
    """The tables of the stored file, or of the files of all families of processors, one after the other."""
    if not options.by_family:
        return markdown(options.before())
    return "\n".join(markdown(content) for content in stored(options.stored.parent.name).values())


def tables(found: Mapping[str, Any], parts: Iterable[tuple[str, Table]]) -> Iterator[str]:
    """For each part that was measured an empty line and the lines of its table."""
    for part, table in parts:
        if found.get(part):
            yield ""
            yield from table(found[part])


def put_into_page(name: str, table: str, page: Path = PAGE) -> None:
    """Put a table where the page says `name`, in place of the one there."""
    text, first = page.read_text(), f"<!-- {name} -->\n"
    start, end = text.index(first) + len(first), text.index(f"<!-- end of {name} -->")
    page.write_text(text[:start] + table + text[end:])
