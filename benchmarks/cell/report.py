"""The results as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.cell.multigrid import rows
from benchmarks.machine import in_a_line
from benchmarks.page import tables


def markdown(content: Mapping[str, Any]) -> str:
    """All parts that were measured."""
    parts = tables(content, (("schemes", _schemes), ("multigrid", _multigrid), ("line", _line)))
    return "\n".join([f"{in_a_line(content)}.", *parts]) + "\n"


def _schemes(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"A time step of {found['dt']:g} s to a residual of {found['tolerance']:g}, {found['threads']} thread:"
    yield ""
    yield "| cells | semi-implicit | relaxation | sweeps | times as fast |"
    yield "|---|---|---|---|---|"
    for row in found["rows"]:
        ours, other = row["semi_implicit"], row["relaxation"]
        expected = other.get("sweeps_expected")
        about = "about " if expected else ""
        size = " x ".join(map(str, row["cells"]))
        sweeps = f"{about}{expected or other['sweeps']:.0f}"
        seconds = f"{ours['seconds']:.3g} s | {about}{other['seconds']:.3g} s"
        yield f"| {size} | {seconds} | {sweeps} | {about}{row['times_as_fast']:.0f} |"


def _multigrid(found: list[Mapping[str, Any]]) -> Iterator[str]:
    yield "Iterations of conjugate gradients with one V-cycle each, to a residual of 1e-8 of a random right side:"
    yield ""
    yield from rows(found)


def _line(found: Mapping[str, Any]) -> Iterator[str]:
    if not found["rows"]:
        yield "FiPy and DEVSIM were not installed."
        return
    yield "| | cells, error, time | minga: cells, error, time | times as fast |"
    yield "|---|---|---|---|"
    for row in found["rows"]:
        cells = [
            "" if one is None else f"{one['cells']}, {one['error']:.1e}, {one['seconds']:.3g} s"
            for one in (row["theirs"], row["minga"])
        ]
        yield f"| {row['peer']} | {cells[0]} | {cells[1]} | {row.get('times_as_fast', '')} |"
