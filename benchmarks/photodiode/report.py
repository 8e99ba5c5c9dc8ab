"""The results as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from benchmarks.machine import in_a_line
from benchmarks.page import tables

ENOUGH_DIGITS, ENOUGH_SPEED, LONGEST = 9, 10.0, 2.0
"""Equal digits; times as fast as DEVSIM in extended precision; seconds of the example's curve."""
ENOUGH_OF_STEPS = 5
"""Equal digits of the change of currents in equal steps by the same method."""
ENOUGH_OF_C = 8
"""Equal digits of small-signal capacitances, which DEVSIM solves for in double precision."""


def markdown(content: Mapping[str, Any]) -> str:
    """All parts that were measured."""
    kinds = (("digits", _digits), ("speed", _speed), ("loop", _loop), ("ac", _ac), ("transients", _transients))
    parts = tables(content, kinds)
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
    """Yield each target: its name, its value, the text of its limit, and True if it is met."""
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
    if found := content.get("ac"):
        yield from _of_spectra(found)
    if found := content.get("transients"):
        yield from _of_steps(found)


def _of_spectra(found: Mapping[str, Any]) -> Iterator[tuple[str, float, str, bool]]:
    """Yield the targets of small-signal analysis."""
    for name in ("extended", "double"):
        ratio = found["seconds"][name] / found["seconds"]["minga"]
        yield f"a frequency: times as fast, {name}", ratio, f"≥ {ENOUGH_SPEED:g}", ratio >= ENOUGH_SPEED
    fewest = min(row["digits_C"] for row in found["rows"])
    yield "fewest equal digits of C", fewest, f"≥ {ENOUGH_OF_C}", fewest >= ENOUGH_OF_C


def _of_steps(found: Mapping[str, Any]) -> Iterator[tuple[str, float, str, bool]]:
    """Yield the targets of transients, where DEVSIM uses the method that minga has."""
    same = [row for row in found["rows"] if "digits" in row]
    if not same:
        return
    fewest = min([found["digits_of_both"], *(row["digits"] for row in same)])
    yield "transients: fewest equal digits in equal steps", fewest, f"≥ {ENOUGH_OF_STEPS}", fewest >= ENOUGH_OF_STEPS
    own = {row["steps"]: row["seconds"] for row in found["rows"] if row["name"] == "minga"}
    for name in ("extended", "double"):
        least = min(row["seconds"] / own[row["steps"]] for row in same if row["name"].endswith(name))
        yield f"a step in time: times as fast, {name}", least, f"≥ {ENOUGH_SPEED:g}", least >= ENOUGH_SPEED


def _ac(found: Mapping[str, Any]) -> Iterator[str]:
    seconds = ", ".join(
        f"{1e3 * value:.3g} ms in {'minga' if name == 'minga' else f'DEVSIM, {name} precision'}"
        for name, value in found["seconds"].items()
    )
    yield f"Small-signal admittance of SI-1, processor time a frequency: {seconds}. Equal digits:"
    yield ""
    yield "| V | Hz | G, S/cm2 | of DEVSIM | C, F/cm2 | equal digits of C |"
    yield "|---|---|---|---|---|---|"
    for row in found["rows"]:
        yield (
            f"| {row['V']:g} | {row['f']:g} | {row['G']:.6g} | {row['G_devsim']:.6g} | {row['C']:.9g} "
            f"| {row['digits_C']} |"
        )


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
    yield f"Steps of one length while light rises and after it, {1e12 * found['until']:g} ps, {found['nodes']} nodes:"
    yield ""
    yield "| steps | | largest error of the current | digits of minga's | milliseconds a step | iterations a step |"
    yield "|---|---|---|---|---|---|"
    for row in found["rows"]:
        name = "minga, TR-BDF2" if row["name"] == "minga" else f"DEVSIM, {row['name']} precision"
        digits = f"{row['digits']:.1f}" if "digits" in row else ""
        yield (
            f"| {row['steps']} | {name} | {row['error']:.1e} | {digits} | {1e3 * row['seconds']:.2g} "
            f"| {row['iterations']:.1f} |"
        )
    yield ""
    yield f"minga binds its Program in {found['preparation']:.2g} s at the beginning, which no step includes."
    if "digits_of_both" in found:
        yield ""
        yield f"With a ramp of the voltage besides, {found['digits_of_both']:.1f} digits agree in extended precision."
