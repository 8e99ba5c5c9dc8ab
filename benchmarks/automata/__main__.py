"""Measure automata beside their peers in one run, and store the numbers with a description of the machine.

python -m benchmarks.automata           some minutes; stores benchmarks/results/automata/FAMILY.json
python -m benchmarks.automata --quick   small grids: numbers that mean nothing

All rates are cell updates a second of one core's processor time. Everyone starts from the same cells, and a measurement
whose population at the end differs from minga's is an error. Peers that are not installed are left out, and the file
says so: bgolly is in Debian's package golly, the others come with `make bench-automata`.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.automata.ours import minga
from benchmarks.automata.peers import Measured, Peer, golly, numpy_rolls, script, versions
from benchmarks.automata.soup import States, soup
from benchmarks.command import asked
from benchmarks.machine import describe, load
from benchmarks.timing import Effort

BITS = {"storage": "bits", "skip_quiet": False}
BYTES = {"storage": "bytes", "skip_quiet": False}
SKIPPING = {"skip_quiet": True}
BOSCO = "R5,C0,M1,S34..58,B34..45,NM"


@dataclass(frozen=True, slots=True)
class Contest:
    """One grid and who runs on it: for each way how many generations a round takes.

    settle   generations before the measurement, so that most of the grid is at rest
    """

    name: str
    title: str
    shape: tuple[int, int]
    ways: Mapping[str, tuple[Peer | None, int]]
    settle: int = 0
    eighths: int = 3


@dataclass(slots=True)
class Result:
    """What a contest found; rates in cells/s, by way."""

    name: str
    title: str
    shape: tuple[int, int]
    rates: dict[str, dict[str, float]] = field(default_factory=dict)
    populations: dict[str, dict[str, int]] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def contests(quick: bool) -> list[Contest]:
    """Everything that is measured."""
    life = "B3/S23"
    torus = golly(life, "QuickLife")

    def ours(size: int) -> int:
        return max(1, (20_000_000 if quick else 4_000_000_000) // size**2 // 2 * 2)

    small, middle, large, huge = (64, 96, 128, 256) if quick else (64, 512, 2048, 8192)
    few = 2 if quick else 100
    return [
        Contest("life-64", "Life", (small, small), {
            "minga bits": (minga(life, **BITS), ours(small) // 8),
            "minga bytes": (minga(life, **BYTES), ours(small) // 8),
            "bgolly": (torus, 20 * few), "numpy": (numpy_rolls, few), "cellpylib": (script("cellpylib_life.py"), 20),
        }),
        Contest("life-512", "Life", (middle, middle), {
            "minga bits": (minga(life, **BITS), ours(middle)), "minga bytes": (minga(life, **BYTES), ours(middle) // 4),
            "bgolly": (torus, 5 * few), "numpy": (numpy_rolls, few), "jax rolls": (script("jax_life.py"), 5 * few),
            "cax": (script("cax_life.py"), max(2, few // 2)),
        }),
        Contest("life-2048", "Life", (large, large), {
            "minga bits": (minga(life, **BITS), ours(large)), "minga bytes": (minga(life, **BYTES), ours(large) // 4),
            "minga bits, skipping quiet tiles": (minga(life, **SKIPPING), ours(large)),
            "bgolly": (torus, 10 * few), "bgolly, first 200 generations": (torus, 2 * few),
            "numpy": (numpy_rolls, few // 5 + 1), "jax rolls": (script("jax_life.py"), few),
        }),
        Contest("life-8192", "Life", (huge, huge), {
            "minga bits": (minga(life, **BITS), ours(huge)), "minga bytes": (minga(life, **BYTES), ours(huge) // 4),
        }),
        Contest("life-2048-settled", "Life, after 5000 generations", (large, large), {
            "minga bits": (minga(life, **BITS), ours(large)),
            "minga bits, skipping quiet tiles": (minga(life, **SKIPPING), ours(large)),
            "minga bytes": (minga(life, **BYTES), ours(large) // 4), "bgolly": (torus, 5 * few),
        }, settle=100 if quick else 5000),
        Contest("brian-1024", "Brian's Brain", (large // 2, large // 2), {
            "minga": (minga("/2/3"), ours(large)), "bgolly": (golly("/2/3", "Generations"), few),
        }),
        Contest("bosco-1024", "Bosco's rule, radius 5", (large // 2, large // 2), {
            "minga": (minga(BOSCO), ours(4 * large)), "bgolly": (golly(BOSCO, "Larger than Life"), few // 5 + 1),
        }, eighths=4),
        Contest("high-life-2048", "HighLife", (large, large), {
            "minga bits": (minga("B36/S23", **BITS), ours(large)), "bgolly": (golly("B36/S23", "QuickLife"), 5 * few),
        }),
        Contest("hensel-1024", "B2-a/S12 (not totalistic)", (large // 2, large // 2), {
            "minga bits": (minga("B2-a/S12", **BITS), ours(large)), "bgolly": (golly("B2-a/S12", "QuickLife"), 5 * few),
        }),
    ]  # fmt: skip


def hold(contest: Contest, rounds: int, folder: Path) -> Result:
    """Run everyone; SystemExit where two populations differ."""
    result = Result(contest.name, contest.title, contest.shape)
    cells = _settled(contest)
    result.left_out = [way for way, (peer, _) in contest.ways.items() if peer is None]
    for way, measured in _measured(contest, cells, rounds, folder).items():
        updates = cells.size * measured.generations
        result.rates[way] = {
            "median": updates / statistics.median(measured.seconds),
            "best": updates / min(measured.seconds),
        }
        result.populations.setdefault(str(measured.generations), {})[way] = measured.population
    _check(contest, cells, result, folder)
    first = next(way for way in result.rates if way.startswith("minga"))
    result.ratios = {
        f"{first} / {way}": rates["median"] and result.rates[first]["median"] / rates["median"]
        for way, rates in result.rates.items()
        if way != first
    }
    return result


def _measured(contest: Contest, cells: States, rounds: int, folder: Path) -> dict[str, Measured]:
    """Everyone there is. minga's ways take turns, so that a busy moment meets all of them."""
    ways = {way: (peer, generations) for way, (peer, generations) in contest.ways.items() if peer is not None}
    found: dict[str, Measured] = {}
    for _ in range(rounds):
        for way, (peer, generations) in ways.items():
            if way.startswith("minga"):
                measured = peer(cells, generations, 1, folder)
                before = found[way].seconds if way in found else []
                found[way] = replace(measured, seconds=[*before, *measured.seconds])
    for way, (peer, generations) in ways.items():
        if way not in found:
            found[way] = peer(cells, generations, rounds, folder)
    return found


def _settled(contest: Contest) -> States:
    cells = soup(*contest.shape, contest.eighths)
    if not contest.settle:
        return cells
    import minga as mg

    history = mg.run(mg.automaton("B3/S23", contest.shape, init=cells), contest.settle)
    settled: States = history.cell[-1].values
    return settled


def _check(contest: Contest, cells: States, result: Result, folder: Path) -> None:
    """Everyone's population is that of minga's bytes or only way after as many generations."""
    oracle = next(peer for way, (peer, _) in reversed(contest.ways.items()) if way.startswith("minga") and peer)
    for generations, populations in result.populations.items():
        reference: Measured = oracle(cells, int(generations), 1, folder)
        for way, population in populations.items():
            if population != reference.population:
                sys.exit(
                    f"{contest.name}: {way} has {population} live cells after {generations} generations, "
                    f"minga {reference.population}"
                )


def run(names: Sequence[str], quick: bool) -> dict[str, Any]:
    """Measure the contests of these names (all if there are none); what is stored."""
    began = time.perf_counter()
    machine = describe(Effort.least() if quick else Effort())
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for contest in contests(quick):
            if names and contest.name not in names:
                continue
            print(f"{contest.name} ...", file=sys.stderr, flush=True)
            results.append(hold(contest, 2 if quick else 5, Path(folder)))
            show(results[-1])
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - began, 1),
        "quick": quick,
        "machine": machine,
        "peers": versions(),
        "load_at_the_end": load(),
        "unit": "cell updates a second of one core's processor time",
        "results": [
            {
                "name": r.name, "title": r.title, "shape": r.shape, "rates": r.rates, "ratios": r.ratios,
                "populations": r.populations, "left_out": r.left_out,
            }
            for r in results
        ],
        "targets": targets(results),
    }  # fmt: skip


def targets(results: Sequence[Result]) -> list[dict[str, Any]]:
    """What should be reached, of what was measured."""
    wanted = [
        ("life-2048", "minga bits", "rate", 3e10),
        ("life-2048", "minga bits / bgolly", "ratio", 50),
        ("life-512", "minga bits / cax", "ratio", 500),
        ("bosco-1024", "minga / bgolly", "ratio", 20),
    ]
    by_name = {result.name: result for result in results}
    found = []
    for name, what, kind, limit in wanted:
        result = by_name.get(name)
        value = None
        if result is not None:
            value = result.ratios.get(what) if kind == "ratio" else result.rates.get(what, {}).get("median")
        found.append(
            {"contest": name, "what": what, "limit": limit, "found": value, "met": value is not None and value >= limit}
        )
    return found


def show(result: Result) -> None:
    """The result in a line for each way."""
    print(f"{result.title}, {result.shape[0]} x {result.shape[1]} torus")
    for way, rates in result.rates.items():
        print(f"  {way:34} {rates['median']:10.3g} cells/s")
    for pair, ratio in result.ratios.items():
        print(f"  {pair:60} {ratio:10.3g}")


def main() -> int:
    names = [contest.name for contest in contests(quick=True)]
    options = asked("benchmarks.automata", "Automata beside their peers", names, "automata")
    content = run(options.only, options.quick)
    for target in content["targets"]:
        if target["found"] is not None:
            verdict = "met   " if target["met"] else "MISSED"
            print(f"{verdict} {target['what']} {target['found']:.3g} (>= {target['limit']:.3g})")
    options.store(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
