"""The results as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.machine import in_a_line
from benchmarks.page import tables


def markdown(content: Mapping[str, Any]) -> str:
    """Return the tables of all parts that were measured."""
    parts = tables(content, (("gallery", _rows), ("explicit", _rows), ("convolutions", _convolutions)))
    return "\n".join([f"{in_a_line(content)}. One core each.", *parts]) + "\n"


def _rows(found: Mapping[str, Any]) -> Iterator[str]:
    peer = found["peer"]
    if not found["rows"]:
        yield f"{peer} was not installed."
        return
    yield f"{peer} {found['version']}:"
    yield ""
    heads = ("a step: minga", peer, "times as fast", "first result: minga", peer, "times as soon", "difference")
    yield f"| equation, cells | {' | '.join(heads)} |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in found["rows"]:
        size = " x ".join(map(str, row["cells"]))
        step, first = row["seconds_a_step"], row["first_result_seconds"]
        fast = _said(row["times_as_fast"]["median"], row["required"])
        soon = _said(row["times_as_soon"], row.get("required_soon"))
        yield (
            f"| {row['title']}, {size} | {_microseconds(step['minga'])} | {_microseconds(step[peer])} | {fast} | "
            f"{first['minga']:.2f} s | {first[peer]:.1f} s | {soon} | {row['largest_difference']:.1e} |"
        )


def _convolutions(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"Convolutions on periodic boxes beside SciPy {found['version']}, milliseconds:"
    yield ""
    yield "| cells, radius | minga | fftconvolve | times as fast | by hand | times as fast | difference |"
    yield "|---|---|---|---|---|---|---|"
    for row in found["rows"]:
        ms, fast = row["milliseconds"], row["times_as_fast"]
        whole = _said(fast["fftconvolve"]["median"], row["required"])
        size = f"{row['size']}², {row['radius']} ({row['method']})"
        ours = f"{ms['minga']:.3g} | {ms['fftconvolve']:.3g} | {whole}"
        by_hand = f"{ms['product']:.3g} | {fast['product']['median']:.3g}"
        yield f"| {size} | {ours} | {by_hand} | {row['largest_difference']:.1e} |"


def _microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:.3g} us"


def _said(ratio: float, limit: float | None) -> str:
    missed = "" if limit is None or ratio >= limit else f" (≥ {limit:g}: MISSED)"
    return f"{ratio:.3g}{missed}"
