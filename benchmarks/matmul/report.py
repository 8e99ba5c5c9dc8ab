"""The results as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.machine import in_a_line
from benchmarks.page import tables

OURS = "minga"


def markdown(content: Mapping[str, Any]) -> str:
    """All parts that were measured."""
    parts = tables(content["results"], (("compared", _compared), ("sizes", _sizes), ("lost", _lost)))
    return "\n".join([f"{in_a_line(content)}; nodes and network emulated.", *parts]) + "\n"


def _compared(found: Mapping[str, Any]) -> Iterator[str]:
    ways = found["ways"]
    ours = ways[OURS]
    yield (
        f"n = {found['n']}: {ours['efficiency']:.2f} of the sum of the speeds, prediction off by "
        f"{100 * ours['prediction_error']:.1f} %."
    )
    yield ""
    yield "| | seconds (least to most) | times minga's | away from NumPy's product |"
    yield "|---|---|---|---|"
    for name, way in ways.items():
        seconds = way["seconds"]
        spread = f"{seconds['median']:.1f} ({seconds['least']:.1f} to {seconds['most']:.1f})"
        times = seconds["median"] / ours["seconds"]["median"]
        yield f"| {'minga, rows by speed' if name == OURS else name} | {spread} | {times:.2f} | {_error(way)} |"
    yield ""
    yield (
        "The last column is agreement and not accuracy: the largest difference from NumPy's product on one node, over "
        "n eps |A_i| |B_j|. Who calls the same BLAS for blocks of the same shape has the same bits, whatever these are."
    )


def _error(way: Mapping[str, Any]) -> str:
    """Return the difference of a product from NumPy's, relative to the bound on rounding; neither is exact."""
    found = way.get("error_over_rounding")
    if found is None:
        return ""
    return "same bits" if found == 0 else f"{found:.1e}"


def _sizes(found: Mapping[str, Any]) -> Iterator[str]:
    yield "What it decides by size, operands on all ranks or (from one) on rank 0 alone:"
    yield ""
    yield "| n | | decided | seconds | predicted within | fastest node alone |"
    yield "|---|---|---|---|---|---|"
    for n, ways in found.items():
        alone = ways["numpy on the fastest node"]["seconds"]["median"]
        for name in (OURS, "minga, best layout from one"):
            way = ways[name]
            decided = ", ".join(dict.fromkeys(turn["plan"] for turn in way["turns"]))
            where = "from one" if name != OURS else "on all"
            error = 100 * way["prediction_error"]
            yield f"| {n} | {where} | {decided} | {way['seconds']['median']:.3g} | {error:.0f} % | {alone:.3g} |"


def _lost(found: Mapping[str, Any]) -> Iterator[str]:
    whole, one = found["undisturbed"], found["one_lost"]
    yield (
        f"n = {found['n']}, {whole['ranks_at_the_end']} nodes: {whole['seconds_with_start']:.0f} s with the start of "
        f"ranks and measuring; where one rank is killed after {one['killed_after']:.0f} s, "
        f"{one['seconds_with_start']:.0f} s on the {one['ranks_at_the_end']} that are left, which keep the "
        f"{100 * one['there_before']:.0f} % that were there."
    )
