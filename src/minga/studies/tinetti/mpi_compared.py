"""Comparison of MPI implementations on a case: Tables 5 and 6 of Milano, Mocskos and Marshall, for current ones.

``found`` is plain data: ``libraries`` by name (:data:`minga.launch.implementations.NAMES`), each with ``ways`` (seconds
per step, blocking and overlapped), ``alone`` (seconds per step of one rank) and ``calls`` (milliseconds until an MPI
call returns, by bytes); ``missing`` lists the implementations that were not found, with the reason.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from minga.launch.implementations import NAMES
from minga.studies.figures import draw_panels, panel
from minga.studies.tinetti.mpi_ranks import CALLS, WAYS

__all__ = ["SIZES", "combined", "draw", "failed", "tables"]

SIZES: Final = tuple(21_504 << k for k in range(7))
"""Milano's buffers in bytes, 21 kB to 1.31 MB."""

PAPER: Final[Mapping[str, tuple[float, float]]] = {
    "Scali": (84.15, 56.70),
    "MPICH": (83.80, 50.30),
    "LAM": (84.97, 52.05),
}
"""Table 6: minutes with blocking and with non-blocking messages."""

CLAIM: Final = (
    "MPI_Isend took 1.3, 3.0 and 7.3 ms at 21, 42 and 84 kB, and 0.011 ms at 168 kB (Table 5); with five processes "
    "non-blocking messages and polling took 33 to 40 % off the time of blocking ones (Table 6)."
)


def combined(
    case: str, lab: str | None, hosts: str | None, ranks: int, steps: int, libraries: Mapping[str, Any]
) -> dict[str, Any]:
    """Combine the results of each library, with the statement that must hold for all of them.

    ``libraries`` has the output of rank 0 of each job, or under ``missing`` the reason why there was none.
    """
    there = {name: one for name, one in libraries.items() if "missing" not in one}
    found: dict[str, Any] = {
        "case": case,
        "lab": lab,
        "hosts": hosts,
        "emulated": lab is not None,
        "ranks": ranks,
        "steps": steps,
        "libraries": {name: _summary(one) for name, one in there.items()},
        "missing": {name: one["missing"] for name, one in libraries.items() if "missing" in one},
    }
    digests = {way["digest"] for one in there.values() for way in one["ways"].values()}
    found["shape"] = (
        {"all libraries, blocking and overlapped, come to the same bits": len(digests) == 1} if there else {}
    )
    return found


def _summary(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of one library with medians, speed-ups over one rank, and the gain over blocking messages."""
    seconds = {way: statistics.median(entry["samples"]) for way, entry in one["ways"].items()}
    return {
        **one,
        "seconds": seconds,
        "speed_up": {way: one["alone"] / spent for way, spent in seconds.items()},
        "gain": 1.0 - seconds["overlapped"] / seconds["blocking"],
    }


def failed(found: Mapping[str, Any]) -> list[str]:
    """Return the statements that do not hold."""
    return [text for text, holds in found["shape"].items() if not holds]


def tables(found: Mapping[str, Any]) -> str:
    """Return both tables as text."""
    where = "on this machine" if found["hosts"] is None else f"on the hosts of {found['hosts']}"
    where = f"in the lab {found['lab']} (emulated)" if found["lab"] else where
    libraries, steps = found["libraries"], found["steps"]
    lines = [f"{found['case']}: {found['ranks']} ranks {where}, {steps} steps"]
    lines += [f"  without {NAMES[name]}: {reason}" for name, reason in found["missing"].items()]
    if not libraries:
        return "\n".join([*lines, "no MPI implementation could be measured"])

    def row(label: str, form: str, values: Sequence[float]) -> str:
        return f"  {label:40}" + "".join(f"{value:12{form}}" for value in values)

    each = list(libraries.values())
    lines += ["", f"Seconds for {steps} steps (Milano's Table 6)"]
    lines += [f"  {'':40}" + "".join(f"{NAMES[name]:>12}" for name in libraries)]
    lines += [row(way, ".4g", [one["seconds"][way] * steps for one in each]) for way in WAYS]
    lines += [row("one rank", ".4g", [one["alone"] * steps for one in each])]
    lines += [row(f"speed-up, {way}", ".2f", [one["speed_up"][way] for one in each]) for way in WAYS]
    lines += [row("overlap saves", ".0%", [one["gain"] for one in each])]
    lines.append("  Milano: " + ", ".join(f"{name} {a:g} -> {b:g} min" for name, (a, b) in PAPER.items()))
    for name, one in libraries.items():
        lines += ["", f"Milliseconds in calls, {NAMES[name]} (Milano's Table 5)"]
        lines.append(f"  {'bytes':>10}" + "".join(f"{call:>10}" for call in CALLS))
        for size, calls in one["calls"].items():
            lines.append(f"  {size:>10}" + "".join(f"{calls[call]:10.3f}" for call in CALLS))
    return "\n".join([*lines, "", *(f"[{'holds' if ok else 'DOES NOT HOLD'}] {s}" for s, ok in found["shape"].items())])


def draw(found: Mapping[str, Any], file: Path) -> Path:
    """Draw the time in Isend by size, and the times of all ways, into ``file``."""
    libraries = found["libraries"]
    sizes = sorted({int(size) for one in libraries.values() for size in one["calls"]})
    isend = {
        NAMES[name]: [one["calls"].get(str(size), {}).get("Isend") for size in sizes] for name, one in libraries.items()
    }
    seconds = {NAMES[name]: [one["seconds"][way] * found["steps"] for way in WAYS] for name, one in libraries.items()}
    panels = [
        panel(sizes, isend, "bytes", "ms in MPI_Isend", logarithmic="xy"),
        panel(range(len(WAYS)), seconds, "", f"seconds for {found['steps']} steps", labels=list(WAYS)),
    ]
    return draw_panels(panels, file, title=f"{found['case']}, {found['ranks']} ranks", claim=CLAIM)
