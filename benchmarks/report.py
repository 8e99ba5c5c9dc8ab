"""The results as tables: on a terminal, and in Markdown for the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

COLUMNS = ("", "minga kernel", "in the engine", "peer", "bound", "unit", "targets")
PEERS = {
    "gcc": "gcc",
    "libm": "libm",
    "numpy philox": "NumPy Philox",
    "usual": "untuned",
    "single": "round by round",
}


def rows(results: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """One a result: title, what was measured, and what it was compared with."""
    for result in results:
        values = result["values"]
        shown = [_value(values, way) for way in ("kernel", "engine")]
        peers = [f"{_value(values, way)} ({name})" for way, name in PEERS.items() if way in values]
        bound = f"{_value(values, 'copy')} (copy)" if "copy" in values else ""
        others = [way for way in values if way not in ("kernel", "engine", "copy", *PEERS)]
        if others and not any(shown):
            shown[0] = ", ".join(f"{way.replace('_', ' ')} {_value(values, way)}" for way in others)
        targets = "; ".join(_target(target) for target in result["targets"])
        title = f"{result['title']} ({result['date'][:10]})" if "date" in result else result["title"]
        yield title, *shown, ", ".join(peers), bound, result["unit"], targets or _ratios(result["ratios"])


def _value(values: Mapping[str, Mapping[str, float]], way: str) -> str:
    if way not in values:
        return ""
    return _number(values[way].get("median", values[way]["best"]))


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _target(target: Mapping[str, Any]) -> str:
    sign, unit = ("≥" if target["sense"] == "at least" else "≤"), f" {target['unit']}" if target["unit"] else ""
    found = f"{target['found']:.2f}" if not unit else _number(target["found"])
    return f"{target['what']} {found}{unit} ({sign} {target['limit']:g}: {'met' if target['met'] else 'MISSED'})"


def _ratios(ratios: Mapping[str, Mapping[str, float]]) -> str:
    return "; ".join(f"{pair} {ratio['median']:.2f}" for pair, ratio in ratios.items())


def summary(machine: Mapping[str, Any]) -> str:
    """The machine in one line."""
    bandwidth = ", ".join(
        f"{key.split('_')[0]} {value} GB/s" for key, value in machine["bandwidth"].items() if key != "bytes"
    )
    load = f"load {machine['load']}, " if machine["load"] is not None else ""
    return (
        f"{machine['processor']} ({machine['llvm_name']}), {machine['usable_cores']} cores, "
        f"{', '.join(machine['caches'])}; one core and memory: {bandwidth}; {load}"
        f"LLVM {machine['llvm']}, {machine['gcc'] or 'no gcc: peers are left out'}"
    )


def markdown(content: Mapping[str, Any]) -> str:
    """The table in Markdown, with the machine and the date above it."""
    lines = [f"{content['date'][:10]}, {summary(content['machine'])}.", ""]
    lines += ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(row) + " |" for row in rows(content["results"])]
    return "\n".join(lines) + "\n"


def terminal(content: Mapping[str, Any]) -> None:
    """The table for people who wait for it."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="minga benchmarks", caption=summary(content["machine"]))
    for number, column in enumerate(COLUMNS):
        table.add_column(column, justify="right" if 1 <= number <= 2 else "left", overflow="fold")
    for row in rows(content["results"]):
        *cells, targets = row
        table.add_row(*cells, f"[red]{targets}" if "MISSED" in targets else targets)
    Console().print(table)
