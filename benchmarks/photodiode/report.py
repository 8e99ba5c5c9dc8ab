"""The results as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from benchmarks.machine import in_a_line
from benchmarks.page import tables

ENOUGH_DIGITS, ENOUGH_SPEED, LONGEST = 9, 10.0, 2.0
"""Equal digits; times as fast as DEVSIM in extended precision; seconds of the example's curve."""


def markdown(content: Mapping[str, Any]) -> str:
    """All parts that were measured."""
    parts = tables(content, (("digits", _digits), ("speed", _speed), ("loop", _loop), ("transients", _transients)))
    lines = [f"{in_a_line(content)}.", *parts]
    if reached := list(targets(content)):
        lines += ["", "| target | found | limit | |", "|---|---|---|---|"]
        lines += [
            f"| {name} | {value:.3g} | {limit} | {'met' if ok else 'MISSED'} |" for name, value, limit, ok in reached
        ]
    if not content.get("devsim"):
        lines += ["", "DEVSIM was not installed."]
    return "\n".join(lines) + "\n"


def targets(content: Mapping[str, Any]) -> Iterator[tuple[str, float, str, bool]]:
    """What was to be reached: what it is, the value, the limit in words, and whether it is met."""
    if found := content.get("digits"):
        yield "fewest equal digits", found["fewest"], f"≥ {ENOUGH_DIGITS}", found["fewest"] >= ENOUGH_DIGITS
    if found := content.get("speed"):
        for row in found["rows"]:
            if peer := row.get("extended"):
                name, ratio = f"{row['rows']} rows", peer["times_as_fast"]
                yield f"{name}: times as fast", ratio, f"≥ {ENOUGH_SPEED:g}", ratio >= ENOUGH_SPEED
                fewest = peer.get("fewest_digits", 0)
                yield f"{name}: fewest equal digits", fewest, f"≥ {ENOUGH_DIGITS}", fewest >= ENOUGH_DIGITS
        whole = found["whole"]
        name = f"{whole['rows']} rows, `cook`, both curves: seconds"
        yield name, whole["seconds"], f"≤ {LONGEST:g}", whole["seconds"] <= LONGEST


def _digits(found: Mapping[str, Any]) -> Iterator[str]:
    yield "| device | curve | equal digits, by voltage |"
    yield "|---|---|---|"
    for (device, curve), rows in groupby(found["rows"], lambda row: (row["device"], row["curve"])):
        each = ", ".join(f"{row['digits']} ({row['V']:g} V)" for row in rows)
        yield f"| {device} | {curve} | {each} |"


def _speed(found: Mapping[str, Any]) -> Iterator[str]:
    volts = found["volts"]
    yield f"Both curves from {volts[0]:g} to {volts[-1]:g} V at {len(volts)} voltages, with ionisation:"
    yield ""
    yield "| rows | | seconds | iterations | times as fast | voltages reached | equal digits | ends differ |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in found["rows"]:
        own = row["minga"]
        yield f"| {row['rows']} | minga | {own['seconds']:.3g} | {own['iterations']} | | | | |"
        for name, said in (("extended", "DEVSIM, extended precision"), ("double", "DEVSIM, double precision")):
            if peer := row.get(name):
                least = "at least " if peer["reached"] < peer["asked"] else ""
                digits = peer.get("fewest_digits", "")
                yield (
                    f"| {row['rows']} | {said} | {peer['seconds']:.3g} | {peer['iterations']} "
                    f"| {least}{peer['times_as_fast']:.0f} | {peer['reached']} of {peer['asked']} | {digits} "
                    f"| {peer['uneven']:.1e} |"
                )
    whole = found["whole"]
    yield f"| {whole['rows']} | minga, `cook` | {whole['seconds']:.3g} | {whole['iterations']} | | | | |"


def _loop(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"Microseconds an iteration of the pointwise scheme, of {found['iterations']} in a row:"
    yield ""
    yield "| rows | native loop | a call from Python each | every command by Python | times as fast | same bits |"
    yield "|---|---|---|---|---|---|"
    for row in found["rows"]:
        ratios = " and ".join(f"{row[name] / row['native']:.1f}" for name in ("driven", "interpreted"))
        times = " | ".join(f"{row[name]:.3g}" for name in ("native", "driven", "interpreted"))
        yield f"| {row['rows']} | {times} | {ratios} | {'yes' if row['same_bits'] else 'NO'} |"


def _transients(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"Steps of one length after a step of light, {1e12 * found['until']:g} ps, {found['nodes']} nodes:"
    yield ""
    yield "| steps | | largest error of the current | milliseconds a step | iterations a step |"
    yield "|---|---|---|---|---|"
    for row in found["rows"]:
        name = "minga, TR-BDF2" if row["name"] == "minga" else f"DEVSIM, {row['name']} precision"
        yield (
            f"| {row['steps']} | {name} | {row['error']:.1e} | {1e3 * row['seconds']:.2g} | {row['iterations']:.1f} |"
        )
