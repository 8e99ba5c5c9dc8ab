"""The results as tables in Markdown, beside what the paper printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.machine import in_a_line
from benchmarks.milano.paper import PROCESSES, TIMES
from benchmarks.page import tables

WAYS = ("blocking", "overlapped")


def markdown(content: Mapping[str, Any]) -> str:
    """All parts that were measured."""
    parts = tables(content["results"], PARTS)
    return "\n".join([f"{in_a_line(content)}; nodes and network emulated.", *parts]) + "\n"


def _times(found: Mapping[str, Any]) -> Iterator[str]:
    processes = found["processes"]
    yield "Speed-up by nodes, the paper's in brackets (Table 8):"
    yield ""
    yield f"| cells (the paper's) | | {' | '.join(map(str, processes))} |"
    yield f"|---|---|{'---|' * len(processes)}"
    for mesh, name in zip(found["seconds_a_sweep"], TIMES, strict=False):
        for way in WAYS:
            printed = dict(zip(PROCESSES, TIMES[name][way], strict=True))
            cells = [
                f"{up:.2f} ({printed[1] / printed[p]:.2f})"
                for p, up in zip(processes, found["derived"][mesh][way]["speed_up"], strict=True)
            ]
            yield f"| {_by(mesh)} ({_by(name)}) | {way} | {' | '.join(cells)} |"


def _messages(found: Mapping[str, Any]) -> Iterator[str]:
    rows = found["milliseconds"]
    names = list(next(iter(rows.values())))
    yield "Milliseconds in a call between two nodes, by size of the message (Table 5):"
    yield ""
    yield f"| bytes | {' | '.join(f'`{name}`' for name in names)} |"
    yield f"|---|{'---|' * len(names)}"
    for size, row in rows.items():
        yield f"| {size} | {' | '.join(f'{row[name]:.3g}' for name in names)} |"


def _libraries(found: Mapping[str, Any]) -> Iterator[str]:
    yield "Seconds a sweep of five processes with each MPI library (Table 6):"
    yield ""
    yield "| | blocking | overlapped | gained |"
    yield "|---|---|---|---|"
    for name, row in found["libraries"].items():
        if row is None:
            yield f"| {name} | not installed | | |"
        else:
            yield f"| {name} | {row['blocking']:.3g} | {row['overlapped']:.3g} | {100 * row['gain']:.0f} % |"


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


PARTS = (("times", _times), ("losses", _losses), ("messages", _messages), ("libraries", _libraries))
