"""The results as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.machine import in_a_line

PEERS = {"netpipe": "NetPIPE over TCP", "mpich": "IMB on MPICH", "impi": "IMB on Intel MPI"}


def markdown(content: Mapping[str, Any]) -> str:
    """All parts that were measured."""
    results = content["results"]
    lines = [f"{in_a_line(content)}; nodes and network emulated."]
    pairs = {"netpipe": results.get("netpipe", {}), **results.get("intel", {})}
    lines += ["", *_agreement({name: found for name, found in pairs.items() if "sizes" in found})]
    ways = {**results.get("libraries", {}), **results.get("pvm", {})}
    ways |= {f"minga, TCP, {name}": row for name, row in results.get("encodings", {}).get("over_tcp", {}).items()}
    lines += ["", *_times({name: row for name, row in ways.items() if isinstance(row, Mapping)})]
    return "\n".join(lines) + "\n"


def _agreement(pairs: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    sizes = sorted({int(size) for found in pairs.values() for size in found["sizes"]})
    yield "Seconds of a message one way that minga measures, over those of a peer, medians of turns:"
    yield ""
    yield f"| bytes | {' | '.join(map(str, sizes))} | at worst |"
    yield f"|---|{'---|' * len(sizes)}---|"
    for name, found in pairs.items():
        known = {int(size): row["ratio"] for size, row in found["sizes"].items()}
        cells = [f"{known[size]:.3f}" if size in known else "" for size in sizes]
        yield f"| {PEERS[name]} | {' | '.join(cells)} | {100 * found['worst']:.1f} % |"


def _times(ways: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    sizes = sorted({int(size) for row in ways.values() for size in row})
    yield "Milliseconds of a message one way, medians:"
    yield ""
    yield f"| bytes | {' | '.join(map(str, sizes))} |"
    yield f"|---|{'---|' * len(sizes)}"
    for name, row in ways.items():
        known = {int(size): 1e3 * seconds for size, seconds in row.items()}
        yield f"| {name} | {' | '.join(f'{known[size]:.3g}' if size in known else '' for size in sizes)} |"
