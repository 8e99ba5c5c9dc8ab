"""The results as tables in Markdown, beside what the paper printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.machine import in_a_line
from benchmarks.page import tables
from minga.studies.milano.paper import DIFFERENCES, PROCESSES, TIMES, derived

WAYS = ("blocking", "overlapped")
SWEEPS_PAGE: Final = Path(__file__).parent.parent.parent / "docs" / "milano.md"


def markdown(content: Mapping[str, Any]) -> str:
    """The times, with what was measured of them."""
    parts = tables(content["results"], PARTS)
    return "\n".join([f"{in_a_line(content)}; nodes and network emulated.", *parts]) + "\n"


def sweeps_markdown(content: Mapping[str, Any]) -> str:
    """Tables 1 to 4: counts and differences, which no machine changes."""
    parts = list(tables(content["results"], [("table-1", _differences)]))
    counted = [content["results"].get(f"table-{number}") for number in (2, 3, 4)]
    parts += ["", *_sweeps(counted)] if all(counted) else []
    return "\n".join(parts[1:]) + "\n"


def _differences(found: Mapping[str, Any]) -> Iterator[str]:
    rows = found["table"]
    names = [key for key in rows[0] if key.endswith("blocks")]
    yield "Mean difference of one block and several, %, the paper's in brackets (Table 1):"
    yield ""
    yield f"| field | planes | {' | '.join(names)} |"
    yield f"|---|---|{'---|' * len(names)}"
    for row in rows:
        if row["end"] == "early":
            field = f"`{row['field']}`" if row["field"] in DIFFERENCES else row["field"]
            yield f"| {field.replace('|', chr(92) + '|')} | {row['planes']} | {' | '.join(row[n] for n in names)} |"


def _sweeps(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "Sweeps of five time steps, the paper's in brackets (Tables 2 to 4):"
    yield ""
    yield "| cells | processes | lexicographic, step by step | all | boundary-first | more |"
    yield "|---|---|---|---|---|---|"
    for one in found:
        for processes in dict.fromkeys(row["processes"] for row in one["table"]):
            *steps, whole = [row for row in one["table"] if row["processes"] == processes]
            counts = ", ".join(row["lexicographic"] for row in steps)
            totals = " | ".join(whole[name] for name in ("lexicographic", "boundary-first", "more"))
            yield f"| {' x '.join(map(str, one['cells']))} | {processes} | {counts} | {totals} |"


def _times(found: Mapping[str, Any]) -> Iterator[str]:
    measured = found.get("measured")
    if measured is None:  # left out
        return
    processes = measured["processes"]
    yield "Speed-up by nodes, the paper's in brackets (Table 8):"
    yield ""
    yield f"| cells (the paper's) | | {' | '.join(map(str, processes))} |"
    yield f"|---|---|{'---|' * len(processes)}"
    for mesh, name in zip(measured["seconds_a_sweep"], TIMES, strict=False):
        metrics = derived(processes, measured["seconds_a_sweep"][mesh])
        for way in WAYS:
            printed = dict(zip(PROCESSES, TIMES[name][way], strict=True))
            cells = [
                f"{up:.2f} ({printed[1] / printed[p]:.2f})"
                for p, up in zip(processes, metrics[way]["speed_up"], strict=True)
            ]
            yield f"| {_by(mesh)} ({_by(name)}) | {way} | {' | '.join(cells)} |"


def _messages(found: Mapping[str, Any]) -> Iterator[str]:
    rows = found.get("milliseconds")
    if rows is None:  # left out
        return
    names = list(next(iter(rows.values())))
    yield "Milliseconds in a call between two nodes, by size of the message (Table 5):"
    yield ""
    yield f"| bytes | {' | '.join(f'`{name}`' for name in names)} |"
    yield f"|---|{'---|' * len(names)}"
    for size, row in rows.items():
        yield f"| {size} | {' | '.join(f'{row[name]:.3g}' for name in names)} |"


def _libraries(found: Mapping[str, Any]) -> Iterator[str]:
    yield "Seconds a sweep of five processes with each MPI library, the paper's gains 33 to 40 % (Table 6):"
    yield ""
    if found.get("disturbed"):
        yield f"These times are to be measured again: {found['disturbed']}."
        yield ""
    yield "| | blocking | overlapped | gained |"
    yield "|---|---|---|---|"
    for row in found.get("table", ()):
        yield f"| {row['library']} | {row['blocking']:.3g} | {row['overlapped']:.3g} | {100 * row['gain']:.0f} % |"
    for name in found.get("left out", {}) if isinstance(found.get("left out"), dict) else ():
        yield f"| {name} | not installed | | |"


LOSSES = {
    "one": ("a sweep on one node", "{:.3f}"),
    "speeds": ("on 14, by their speeds alone", "{:.3f}"),
    "planes": ("a node has whole planes", "{:+.3f}"),
    "shared": ("the nodes share cores, caches and the phases of quotas", "{:+.3f}"),
    "messages": ("messages, and waiting for one another; the network is free", "{:+.3f}"),
    "rate": ("the network has its rate", "{:+.3f}"),
    "whole": ("**a sweep on 14 nodes**", "**{:.3f}**"),
    "speed_up": ("**speed-up**; the paper's 11.88", "**{:.2f}**"),
}
"""Parts of a sweep: what they are called, and how they are written."""


def _losses(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    networks = [each["networks"]["as in the paper"] for each in found]
    yield "Where the seconds of a sweep go, overlapped, on 14 nodes:"
    yield ""
    meshes = (f"{' x '.join(map(str, each['mesh']))}, frames of {each['frame']}" for each in found)
    yield f"| | {' | '.join(meshes)} |"
    yield f"|---|{'---|' * len(found)}"
    for name, (what, form) in LOSSES.items():
        yield f"| {what} | {' | '.join(form.format(each['parts'][name]) for each in found)} |"
    kernel = (f"{each['kernel']:.3f}" for each in networks)
    yield f"| the kernel's part of a node's time | {' | '.join(kernel)} |"
    for name, what in (("exchange", "exchange"), ("reductions", "two reductions")):
        times = (f"{each['messages'][name]:.3f}" for each in networks)
        yield f"| the {what} where nothing is computed | {' | '.join(times)} |"


def _by(mesh: str) -> str:
    return mesh.replace("x", " x ")


PARTS = (("table-7", _times), ("losses", _losses), ("table-5", _messages), ("table-6", _libraries))
