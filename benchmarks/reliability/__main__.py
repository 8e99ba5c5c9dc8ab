"""Faults of every kind, counted: kills, lost hosts, broken inputs, lost and forged datagrams.

python -m benchmarks.reliability                everything, over an hour; stores benchmarks/results/reliability.json
python -m benchmarks.reliability --only kills   a part; stores only where --out says
python -m benchmarks.reliability --only kills --update   a part anew, in the stored file
python -m benchmarks.reliability --quick        few of each
python -m benchmarks.reliability --table        show what is stored

The hosts are nodes of a lab with ssh servers, which needs root and the Debian package openssh-server.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.command import asked
from benchmarks.machine import in_a_line, measured_in_labs
from benchmarks.page import shown
from benchmarks.reliability.broadcasts import broadcasts
from benchmarks.reliability.hosts import LIMIT, lost
from benchmarks.reliability.inputs import fuzzed
from benchmarks.reliability.kills import killed
from benchmarks.reliability.soak.soak import STEPS, soaked

PAGE: Final = Path(__file__).parents[2] / "docs" / "reliability.md"


def kills(quick: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        return killed(4 if quick else 200, Path(name))


def hosts(quick: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        return lost(5 if quick else 50, Path(name))


def soak(quick: bool) -> dict[str, Any]:
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # hosts' disks are only written to be read again
    with tempfile.TemporaryDirectory(dir=memory) as name:
        return soaked(STEPS // 24 if quick else STEPS, Path(name))


PARTS: Final[dict[str, Callable[[bool], dict[str, Any]]]] = {
    "kills": kills,
    "hosts": hosts,
    "inputs": lambda quick: fuzzed(1000 if quick else 1_000_000),
    "broadcasts": broadcasts,
    "soak": soak,
}


def run(names: Sequence[str], quick: bool) -> dict[str, Any]:
    """Try the parts."""
    return measured_in_labs(PARTS, names, quick)


def markdown(content: Mapping[str, Any]) -> str:
    """Return the table of the page."""
    head = f"{in_a_line(content)}; hosts are nodes of a lab, which share these cores."
    return "\n".join(
        [head, "", "| what was tried | how often | what came of it |", "|---|---|---|", *_rows(content["results"]), ""]
    )


def _rows(results: Mapping[str, Any]) -> Iterator[str]:
    if found := results.get("kills"):
        seconds = found["seconds_until_all_processes_were_gone"]
        victims = ", ".join(f"{count} {name}" for name, count in found["by_victim"].items())
        yield (
            f"| runs, each killed by `kill -9` at random moments (in all {found['kills']} times: {victims}) and "
            f"resumed on other numbers of ranks, 1 to 4 | {found['runs']} | {found['equal']} of {found['runs']} "
            f"completed with every bit of one that was left alone; after a kill all other processes were gone in "
            f"{seconds['median']:.2f} s (median), {seconds['largest']:.1f} s at most |"
        )
    if found := results.get("hosts"):
        for kind, count in found["by_kind"].items():
            seconds = found["seconds_to_notice"].get(kind, {"median": float("nan"), "largest": float("nan")})
            wrong = sum(f", {kind} on " in problem for problem in found["problems"])
            yield (
                f"| {found['kinds'][kind]}, of 4 to 8 nodes | {count} | {count - wrong} told within {LIMIT:g} s and "
                f"completed with the same digest; told after {seconds['median']:.1f} s (median), "
                f"{seconds['largest']:.1f} s at most |"
            )
    if found := results.get("soak"):
        yield (
            f"| a soak: {found['simulated_hours']:.1f} simulated hours on 8 hosts to which things happen all day | "
            f"{found['events']} events | {found['losses']} losses of hosts and ranks, {found['starts']} starts, "
            f"{found['dropped']} hosts dropped, {found['moves']} moves of work; given up {found['given_up']} times; "
            f"{found['efficiency']:.3f} of what the hosts could do that were present; "
            f"{'the same digest as undisturbed' if found['digest'] == found['undisturbed'] else 'the digest DIFFERS'} |"
        )
    if found := results.get("inputs"):
        yield (
            f"| broken inputs to {len(found['by_parser'])} parsers | {found['inputs']:,} | "
            f"{found['inputs'] - found['faulty']:,} gave a result or a clear error within ten "
            f"seconds of computing |"
        )
    for name, each in results.get("broadcasts", {}).items():
        what = "messages of broadcasts, 0 to 20 % of datagrams lost" if name == "messages" else name
        done = "arrived once, complete, in order" if name == "messages" else "were refused, with no memory kept"
        yield f"| {what} | {each['count']:,} | {'all ' + done if each['passed'] else 'FAILED'} |"


def main() -> None:
    options = asked(
        "benchmarks.reliability",
        "Count faults and what came of them",
        PARTS,
        "reliability.json",
        table=True,
        update=True,
    )
    shown(options, "reliability", run, markdown, page=PAGE)


if __name__ == "__main__":
    main()
