"""Progress of a measurement on the terminal, and the description of the measured machine at its end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from minga.plan.links import Link
    from minga.plan.machine.machine import Machine, NodeKind

__all__ = ["MeasureDisplay", "Stage", "machine_text", "measure_display"]

Stage = Callable[[float, str], None]
"""A function of the fraction done, 0 to 1, and a description of what comes next."""

_MOST_NODES = 12
"""Most nodes that are described one by one."""


class MeasureDisplay(Protocol):
    """A display of the progress of a measurement."""

    def stage(self, name: str) -> Stage:
        """Add a stage, and return the function that reports its progress."""

    def note(self, text: str) -> None:
        """Show a note to the user."""


class _Lines:
    """A display for logs: one line whenever something begins."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def stage(self, name: str) -> Stage:
        return lambda part, what: self.note(f"{name} {100 * part:3.0f} %: {what}")

    def note(self, text: str) -> None:
        self._stream.write(f"minga: {text}\n")
        self._stream.flush()


@contextmanager
def measure_display(stream: TextIO | None = None) -> Iterator[MeasureDisplay]:
    """Show progress on ``stream``, by default standard error: bars on a terminal, lines otherwise."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield _Lines(stream)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(file=stream)
    columns = (TextColumn("{task.description:8}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[what]}"))
    with Progress(*columns, console=console) as bars:

        class Bars:
            def stage(self, name: str) -> Stage:
                task = bars.add_task(name, total=1.0, what="")
                return lambda part, what: bars.update(task, completed=part, what=what)

            def note(self, text: str) -> None:
                console.print(text, highlight=False, markup=False)

        yield Bars()


def machine_text(machine: Machine) -> str:
    """Describe a machine in text: its nodes with their cores, memory and speeds, and its links."""
    from minga.view.progress import rate_text

    nodes = sum(kind.count for kind in machine.nodes)
    cores = sum(kind.count * len(kind.cores) for kind in machine.nodes)
    lines = [f"{machine.name}: {_count(nodes, 'node')}, {_count(cores, 'core')}"]
    for kind in machine.nodes[:_MOST_NODES]:
        lines.append("  " + _node_text(kind))
        for key, entry in kind.speeds.get("cpu", {}).items():
            each = ", ".join(f"{rate_text(float(entry.speed.rate(cells)))} at {cells:.3g} cells"
                             for cells in entry.speed.cells)  # fmt: skip
            lines.append(f"    {entry.name or key}, a core: {each}")
    if len(machine.nodes) > _MOST_NODES:
        lines.append(f"  and {len(machine.nodes) - _MOST_NODES} more kinds of nodes")
    lines += [f"  {name}: {_link_text(link)}" for name, link in machine.links.items()]
    if machine.shared:
        lines.append("  the nodes share one medium (a hub)")
    network = machine.measured.get("network") or {}
    lines += [f"  note: {said}" for said in network.get("advice", ())]
    return "\n".join(lines)


def _node_text(kind: NodeKind) -> str:
    name = f"{kind.count} x {kind.name}" if kind.count > 1 else kind.name
    shape = " > ".join(
        _count(len(set(map(tuple, kind.cores.paths[:, : n + 1].tolist()))), level)
        for n, level in enumerate(kind.cores.levels)
        if n
    )
    parts = [name, shape, *([kind.cpu] if kind.cpu else [])]
    if kind.memory is not None:
        parts.append(f"{kind.memory / 1e9:.3g} GB")
    if kind.bandwidth is not None:
        alone = "" if kind.core_bandwidth is None else f", {kind.core_bandwidth / 1e9:.3g} for one core"
        parts.append(f"memory {kind.bandwidth / 1e9:.3g} GB/s{alone}")
    if kind.link is not None:
        parts.append(f"own link {_link_text(kind.link)}")
    return "; ".join(parts)


def _link_text(link: Link) -> str:
    latency, large = float(link.time(0)), 1 << 20
    rate = large / float(link.time(large))
    hidden = "" if link.overlap >= 1 else f", {100 * link.overlap:.0f} % hidden by computation"
    return f"latency {latency * 1e6:.3g} us, {rate / 1e6:.4g} MB/s for 1 MiB{hidden}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
