"""What is kept of several turns of one way to make a product."""

from __future__ import annotations

import statistics
from typing import Any


def summed_up(n: int, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The turns of one way: medians, and of ours how well it was predicted and how much of the speeds was used."""
    seconds = [entry["seconds"] for entry in entries]
    found: dict[str, Any] = {
        "seconds": {"median": statistics.median(seconds), "least": min(seconds), "most": max(seconds)},
        "error_over_rounding": max(entry["error"] for entry in entries),
    }
    if "speeds" in entries[0]:
        found["prediction_error"] = statistics.median(
            abs(entry["seconds"] / entry["predicted_seconds"] - 1) for entry in entries
        )
        found["efficiency"] = statistics.median(
            2 * n**3 / entry["seconds"] / sum(entry["speeds"]) for entry in entries
        )  # fmt: skip
        found["turns"] = entries
    return found
