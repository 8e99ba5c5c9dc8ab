"""Experiments of Bounanos, Fleury, Nicolas and Vickers, and further ones, as data and as statements that hold or not.

Each experiment returns the contents of its figure, and a `shape`: the paper's statements about it. The curves of the
paper are not available as numbers, so that only shapes can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.models.photodiode.pointwise.scheme import Pointwise
from minga.studies.bounanos.costs import (
    ABSORPTION,
    ROWS,
    SERIAL_SECONDS,
    SUBCYCLES,
    RowCosts,
    growth_law,
    synthetic_costs,
)
from minga.studies.bounanos.cuts import equal, even, fullest, ideal_speedup
from minga.studies.bounanos.emulator import DIRECTIONS, Emulated, emulate
from minga.studies.bounanos.systems import MINGA, SYSTEMS, System
from minga.studies.bounanos.weights import mean_cost, paper_area
from minga.studies.bounanos.workload import cut_rows, newton_seconds, paper_device, profile, solve

__all__ = ["EXPERIMENTS", "Bench", "Sizes", "sizes"]

Floats = NDArray[np.float64]
Result = dict[str, Any]

NODES: Final = 37
"""Nodes of the paper's cluster; its section 5.1 used one node fewer."""

PAPER_EFFICIENCY: Final = 0.68
"""Final efficiency of the paper, on 37 nodes."""

VOLTAGE: Final = -60.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """Extent of the study.

    Attributes
    ----------
    segments
        Numbers of segments of emulated runs.
    samples
        Iterations that represent an emulated run.
    coarsen
        Rows merged into one for real iterations.
    cuts
        Numbers of segments of real iterations.
    watched
        Windows of 2000 iterations for the costs of rows.
    """

    segments: tuple[int, ...]
    samples: int
    coarsen: int
    cuts: tuple[int, ...]
    watched: int


def sizes(*, quick: bool) -> Sizes:
    """Return sizes for a study of a few seconds, or of a minute or two."""
    if quick:
        return Sizes((1, 8, 15, 16, 24, 37, 38, 55, 74, 111), 60, 20, (1, 4, 16, 37, 74), 10)
    return Sizes(
        (1, 2, 4, 8, 12, 15, 16, 20, 24, 28, 32, 36, 37, 38, 40, 44, 48, 55, 60, 67, 74, 75, 85, 95, 111),
        200, 10, (1, 2, 4, 8, 16, 24, 32, 37, 48, 60, 74, 91, 111), 20,
    )  # fmt: skip


class Bench:
    """State shared by experiments: costs, weights, and emulated runs, each emulated once."""

    def __init__(self, how: Sizes) -> None:
        self.how = how
        self.costs: RowCosts = synthetic_costs(samples=how.samples)
        self.area = paper_area(self.costs, ABSORPTION)
        self.mean = mean_cost(self.costs)
        self._played: dict[tuple[Any, ...], Emulated] = {}
        self._iterations: dict[tuple[int, ...], int] = {}
        self.device = paper_device(how.coarsen)

    def ends(self, segments: int, balanced: bool) -> NDArray[np.int64]:
        """Return the paper's cuts: equal rows, or equal weights."""
        return fullest(self.area, segments) if balanced else equal(self.costs.rows, segments)

    def run(
        self,
        system: System,
        segments: int,
        *,
        balanced: bool = False,
        nodes: int = NODES,
        directions: tuple[int, ...] | None = None,
    ) -> Emulated:
        """Return an emulated run."""
        key = (system, segments, balanced, nodes, directions)
        if key not in self._played:
            self._played[key] = emulate(self.costs, self.ends(segments, balanced), nodes, system, directions=directions)
        return self._played[key]

    def speedups(self, system: System, **options: Any) -> list[float]:
        """Return the speed-ups for all numbers of segments."""
        return [self.run(system, segments, **options).speedup for segments in self.how.segments]

    def iterations(self, ends: Sequence[int]) -> int:
        """Return the actual iterations of the scheme with old boundaries at these cuts of the coarse mesh."""
        key = tuple(int(end) for end in ends)
        if key not in self._iterations:
            self._iterations[key] = solve(self.device, VOLTAGE, "lit", Pointwise(segments=key)).iterations
        return self._iterations[key]

    def at(self, values: Sequence[float], *segments: int) -> list[float]:
        """Return entries of a curve."""
        return [values[self.how.segments.index(p)] for p in segments]


# Table 1 and Fig. 14 --------------------------------------------------------------------------------------------------
def layer_map(bench: Bench) -> Result:
    """Run E0, Table 1: rows of the layers."""
    expected = [(1, 400), (401, 800), (801, 1100), (1101, 1200), (1201, 1320), (1321, 1420), (1421, 1820)]
    layers = paper_device(1).layers
    rows = [(layer.first + 1, layer.last + 1) for layer in layers]
    table = [{"layer": layer.name, "first": a, "last": b} for layer, (a, b) in zip(layers, rows, strict=True)]
    return {"table": table, "shape": {"rows are those of Table 1": rows == expected}}


def subcycle_times(bench: Bench) -> Result:
    """Run E2, Fig. 14: costs of sub-cycles in the absorption layer over the iterations, by law and as measured."""
    progress = np.linspace(0.0, 1.0, 101)
    law = growth_law(progress, 4.0)
    seen = profile(bench.device, -5.0, "lit", Pointwise(), 2000, bench.how.watched)
    layers = seen.of_layers(bench.device)
    small_gap = min(layers["Absorp"][-1], layers["Hole"][-1])
    others = max(v[-1] for name, v in layers.items() if name not in ("Absorp", "Hole"))
    first = law[:51]
    return {
        "x": progress.tolist(),
        "curves": {"phi": law.tolist(), **{name: [1.0] * 101 for name in SUBCYCLES[2:]}},
        "measured": {
            "iterations": seen.iterations.tolist(),
            "steps a row": {name: np.round(v, 4).tolist() for name, v in layers.items()},
        },
        "shape": {
            "by law phi is level for half of the run, then grows exponentially": bool(
                (first == 1.0).all() and np.allclose(np.diff(np.log(law[51:]), 2), 0.0, atol=1e-12)
            ),
            "really, rows of the layers with a small gap cost most, and do not grow": bool(
                small_gap > 1.3 * others and layers["Absorp"][-1] <= layers["Absorp"][0]
            ),
        },
    }


# Figs. 15 to 18 -------------------------------------------------------------------------------------------------------
def systems_alone(bench: Bench) -> Result:
    """Run E3, Figs. 15 and 16: distributed and centralised, with and without balancing by the application."""
    few = NODES - 1
    charm, mosix = SYSTEMS["Charm++"], SYSTEMS["MOSIX"]
    curves = {
        f"{name}{', balanced' if balanced else ''}": bench.speedups(system, balanced=balanced, nodes=few)
        for name, system in (("Charm++", charm), ("MOSIX", mosix))
        for balanced in (False, True)
    }
    plain, weighted = curves["Charm++"], curves["Charm++, balanced"]
    centre = curves["MOSIX, balanced"]
    peak = bench.how.segments[int(np.argmax(centre))]
    upto = [k for k, p in enumerate(bench.how.segments) if 8 <= p <= few]
    return {
        "x": list(bench.how.segments),
        "curves": curves,
        "shape": {
            "balancing by the application is faster from 15 segments to the nodes": all(
                weighted[k] > plain[k] for k in upto if bench.how.segments[k] >= 15
            ),
            "and smoother": _roughness([weighted[k] for k in upto]) <= _roughness([plain[k] for k in upto]),
            "distributed: more segments than nodes still gain": max(plain[-2:]) > max(plain[k] for k in upto),
            "centralised: more segments than nodes lose": peak <= NODES + 1 and centre[-1] < 0.8 * max(centre),
            "distributed is faster than centralised from 15 segments on": all(
                a > b for p, a, b in zip(bench.how.segments, plain, curves["MOSIX"], strict=True) if p >= 15
            ),
        },
    }


def migrations(bench: Bench) -> Result:
    """Run E4, Fig. 17: migrations per node under MOSIX."""
    few, mosix = NODES - 1, SYSTEMS["MOSIX"]
    curves = {
        name: [bench.run(mosix, p, balanced=balanced, nodes=few).migrations / few for p in bench.how.segments]
        for name, balanced in (("MOSIX", False), ("MOSIX, balanced", True))
    }
    beyond = [k for k, p in enumerate(bench.how.segments) if p > few]
    within = [k for k, p in enumerate(bench.how.segments) if p <= few]
    both = list(curves.values())
    return {
        "x": list(bench.how.segments),
        "curves": curves,
        "shape": {
            "one migration a process as long as there are nodes": all(c[k] <= 1.0 for c in both for k in within),
            "many more beyond": max(max(c[k] for k in beyond) for c in both) > 2.0,
            "balancing by the application does not always lessen them": any(both[1][k] > both[0][k] for k in beyond),
        },
    }


def both_balancers(bench: Bench) -> Result:
    """Run E5, Fig. 18: balancing by the system, by the application, and by both."""
    few, plain, rc = NODES - 1, SYSTEMS["Charm++"], SYSTEMS["Charm++ rc"]
    curves = {
        "Charm++": bench.speedups(plain, nodes=few),
        "system (rc)": bench.speedups(rc, nodes=few),
        "application (lb)": bench.speedups(plain, balanced=True, nodes=few),
        "both": bench.speedups(rc, balanced=True, nodes=few),
        "minga": bench.speedups(MINGA, nodes=few),
    }
    beyond = [k for k, p in enumerate(bench.how.segments) if few < p < 70]
    gain = [b / a - 1.0 for a, b in zip(curves["Charm++"], curves["system (rc)"], strict=True)]
    return {
        "x": list(bench.how.segments),
        "curves": curves,
        "migrations": [bench.run(rc, p, nodes=few).migrations for p in bench.how.segments],
        "shape": {
            "the system's balancer alone gains little": max(gain) < 0.3,
            "it moves nothing as long as each segment has a node": all(
                bench.run(rc, p, nodes=few).migrations == 0 for p in bench.how.segments if p <= few
            ),
            "both together are better than either below 70 segments": all(
                curves["both"][k] >= max(curves["system (rc)"][k], curves["application (lb)"][k]) for k in beyond
            ),
        },
    }


# Figs. 19 and 20 ------------------------------------------------------------------------------------------------------
def iteration_counts(bench: Bench) -> Result:
    """Run E6, Fig. 19: iterations until the changes are small, actually computed on a coarser mesh."""
    rows = bench.device.grid.shape[0]
    alone = bench.iterations((0, rows))
    stale = {
        name: [bench.iterations(cut_rows(bench.ends(p, balanced), ROWS, rows)) for p in bench.how.cuts]
        for name, balanced in (("old boundaries", False), ("old boundaries, balanced", True))
    }
    first = stale["old boundaries"]
    return {
        "rows": rows,
        "x": list(bench.how.cuts),
        "curves": {"sub-cycles observed": [alone] * len(bench.how.cuts), **stale},
        "shape": {
            "with sub-cycles observed all numbers of segments take the fewest": all(
                value >= alone for values in stale.values() for value in values
            ),
            "with old boundaries they rise with the number of segments": first == sorted(first)
            and first[-1] > first[0],
            "and differ with where the cuts are": stale["old boundaries"] != stale["old boundaries, balanced"],
        },
    }


def observed_subcycles(bench: Bench) -> Result:
    """Run E7, Fig. 20: speed-up with sub-cycles observed, including the smaller number of iterations."""
    rows = bench.device.grid.shape[0]
    points = [p for p in bench.how.segments if p <= rows]
    alone = bench.iterations((0, rows))
    more = {p: bench.iterations(cut_rows(equal(ROWS, p), ROWS, rows)) / alone for p in points}
    charm, mosix = SYSTEMS["Charm++"], SYSTEMS["MOSIX"]
    curves = {
        "sub-cycles observed": [bench.run(charm, p, directions=DIRECTIONS).speedup for p in points],
        "sub-cycles observed, all down the rows": [
            bench.run(charm, p, directions=tuple(map(abs, DIRECTIONS))).speedup for p in points
        ],
        "Charm++": [bench.run(charm, p).speedup / more[p] for p in points],
        "MOSIX": [bench.run(mosix, p).speedup / more[p] for p in points],
    }
    exact = curves["sub-cycles observed, all down the rows"]
    few = [k for k, p in enumerate(points) if 1 < p <= 24]
    return {
        "x": points,
        "curves": curves,
        "more iterations": [more[p] for p in points],
        "shape": {
            "up to 24 segments observing them is slowest, though it takes fewest iterations": all(
                exact[k] < curves[name][k] for k in few for name in ("Charm++", "MOSIX")
            ),
            "with many segments MOSIX falls below": curves["MOSIX"][-1] < exact[-1],
        },
    }


# Figs. 21 to 24 -------------------------------------------------------------------------------------------------------
def all_systems(bench: Bench, *, balanced: bool) -> dict[str, list[float]]:
    """Return the speed-ups of every system."""
    return {name: bench.speedups(system, balanced=balanced) for name, system in SYSTEMS.items()}


def without_balancing(bench: Bench) -> Result:
    """Run E8, Fig. 21: all systems, equal rows."""
    curves = all_systems(bench, balanced=False)
    points = bench.how.segments
    within = [k for k, p in enumerate(points) if p <= NODES]
    message_passing = ("LAM", "MPICH", "Charm++")
    return {
        "x": list(points),
        "curves": curves,
        "shape": {
            "MPI and Charm++ are alike up to the nodes": all(
                curves[name][k] > 0.8 * curves["Charm++"][k] for name in ("LAM", "MPICH") for k in within
            ),
            "and go on rising beyond": all(curves[n][-1] > max(curves[n][k] for k in within) for n in message_passing),
            "AMPI is the weakest of them with most segments": all(
                curves["AMPI"][-1] < curves[name][-1] for name in message_passing
            ),
            "MOSIX falls beyond": curves["MOSIX"][-1] < max(curves["MOSIX"]),
        },
    }


def with_balancing(bench: Bench) -> Result:
    """Run E9, Fig. 22: all systems, rows by weight."""
    curves = all_systems(bench, balanced=True)
    plain = curves["Charm++"]
    steps = {p: bench.at(plain, p)[0] for p in (37, 38, 74, 75) if p in bench.how.segments}
    shape = {
        "Charm++ and MPI do best": min(max(curves[n]) for n in ("Charm++", "LAM", "MPICH"))
        > max(max(curves[n]) for n in ("AMPI", "MOSIX")),
        "a threshold where a node gets a second segment": steps[38] < 0.9 * steps[37],
        "with most segments MPICH is ahead of LAM": curves["MPICH"][-1] > curves["LAM"][-1],
    }
    if 75 in steps:
        shape["and where one gets a third"] = steps[75] < 0.9 * steps[74]
    return {"x": list(bench.how.segments), "curves": curves, "shape": shape}


def absolute_times(bench: Bench) -> Result:
    """Run E10, Figs. 23 and 24: times in minutes."""
    minutes = {
        label: {
            name: [SERIAL_SECONDS / 60.0 / s for s in values]
            for name, values in all_systems(bench, balanced=balanced).items()
        }
        for label, balanced in (("equal rows", False), ("by weight", True))
    }
    curves = {f"{name}, {label}": values for label, named in minutes.items() for name, values in named.items()}
    return {
        "x": list(bench.how.segments),
        "curves": curves,
        "shape": {
            "one segment takes 54 min": all(abs(values[0] - 54.0) < 1.0 for values in curves.values()),
            "MOSIX is slowest with most segments": all(
                max(named, key=lambda name: named[name][-1]) == "MOSIX" for named in minutes.values()
            ),
        },
    }


# Further experiments --------------------------------------------------------------------------------------------------
def optimum(bench: Bench) -> Result:
    """Run E11: the quality of cuts before the run by the rows' true mean costs, and section 2's table of ideal cuts."""
    points = [p for p in bench.how.segments if p > 1]
    cuts: dict[str, Callable[[int], NDArray[np.int64]]] = {
        "equal rows": lambda p: equal(ROWS, p),
        "area weights": lambda p: fullest(bench.area, p),
        "mean cost": lambda p: fullest(bench.mean, p),
        "mean cost, evened": lambda p: even(bench.mean, p),
    }
    curves = {name: [ideal_speedup(bench.mean, cut(p), NODES) for p in points] for name, cut in cuts.items()}
    at = points.index(37)
    heavy = np.ones(ROWS)
    heavy[slice(*ABSORPTION)] = 10.0
    table = {
        str(p): [round(ideal_speedup(heavy, cut, NODES), 3) for cut in (equal(ROWS, p), fullest(heavy, p))]
        for p in (2, 4, 8, 15, 16, 24, 37, 40, 48, 55, 74, 111)
    }
    return {
        "x": points,
        "curves": curves,
        "weight of an absorption row": {"area": float(bench.area.max()), "mean cost": float(bench.mean.max())},
        "ideal for weight 10, equal and balanced": table,
        "shape": {
            "area weights are too large": bool(bench.area.max() > 2.0 * bench.mean.max()),
            "cuts by mean cost are better on 37 nodes": curves["mean cost"][at] > curves["area weights"][at],
            "and within a few per cent of the nodes": curves["mean cost"][at] > 0.95 * NODES,
        },
    }


def combined(bench: Bench) -> Result:
    """Compute the paper's last number: the efficiency on 37 nodes, for one balancing method after the other."""
    best: dict[str, float] = {}
    charm, rc = SYSTEMS["Charm++"], SYSTEMS["Charm++ rc"]
    ways: Mapping[str, tuple[System, Callable[[int], NDArray[np.int64]]]] = {
        "none": (charm, lambda p: equal(ROWS, p)),
        "system": (rc, lambda p: equal(ROWS, p)),
        "application, area weights": (charm, lambda p: fullest(bench.area, p)),
        "application, mean cost": (charm, lambda p: even(bench.mean, p)),
        "both, mean cost": (rc, lambda p: even(bench.mean, p)),
        "rows move, too (minga)": (MINGA, lambda p: equal(ROWS, p)),
    }
    points = [p for p in bench.how.segments if p >= NODES]
    for name, (system, cut) in ways.items():
        best[name] = max(emulate(bench.costs, cut(p), NODES, system).efficiency for p in points)
    at_37 = {name: emulate(bench.costs, cut(NODES), NODES, system).efficiency for name, (system, cut) in ways.items()}
    return {
        "efficiency with 37 segments": at_37,
        "best efficiency": best,
        "paper": PAPER_EFFICIENCY,
        "shape": {
            "combined balancing reaches 0.90 on 37 nodes (the paper: 0.68)": best["rows move, too (minga)"] >= 0.90
        },
    }


def newton_instead(bench: Bench) -> Result:
    """Run E12: Newton's method on one node, against the pointwise scheme on 37 nodes and the paper's time."""
    device = paper_device(10)
    rows = device.grid.shape[0]
    coarse = solve(device, VOLTAGE, "lit", Pointwise()).seconds
    # Iterations scale with the rows to the power 1.86 (from E6 with one segment), and each iteration with the rows.
    serial = coarse * (ROWS / rows) ** 2.86
    together = serial / bench.run(MINGA, NODES).speedup
    newton = min(newton_seconds(paper_device(1), VOLTAGE, "lit") for _ in range(3))
    paper = SERIAL_SECONDS / (PAPER_EFFICIENCY * NODES)
    return {
        "seconds for 1820 rows": {
            "Newton's method, one node (measured)": newton,
            f"pointwise, one node (from {rows} rows)": serial,
            "pointwise, 37 nodes (emulated)": together,
            "the paper's 37 nodes": paper,
        },
        "Newton's method is faster than": {"pointwise on 37 nodes": together / newton, "the paper": paper / newton},
        "shape": {
            "Newton's method on one node is 100 times as fast as the pointwise scheme on 37": newton < 0.01 * together,
            "and as the paper's 37 nodes": newton < 0.01 * paper,
        },
    }


def _roughness(values: Sequence[float]) -> float:
    """Return the largest relative drop from one number of segments to the next."""
    return max([0.0, *(1.0 - b / a for a, b in pairwise(values))])


EXPERIMENTS: Final[Mapping[str, tuple[str, Callable[[Bench], Result]]]] = {
    "E0": ("Table 1. Layers and rows", layer_map),
    "E2": ("Fig. 14. Sub-cycle times in the absorption layer", subcycle_times),
    "E3": ("Figs. 15, 16. Speed-up, distributed and centralised", systems_alone),
    "E4": ("Fig. 17. Migrations per node", migrations),
    "E5": ("Fig. 18. Balancing by system and application", both_balancers),
    "E6": ("Fig. 19. Iterations", iteration_counts),
    "E7": ("Fig. 20. Sub-cycles observed", observed_subcycles),
    "E8": ("Fig. 21. All systems, equal rows", without_balancing),
    "E9": ("Fig. 22. All systems, rows by weight", with_balancing),
    "E10": ("Figs. 23, 24. Minutes", absolute_times),
    "E11": ("Ideal speed-up of cuts", optimum),
    "E12": ("Newton's method instead", newton_instead),
    "efficiency": ("Efficiency on 37 nodes", combined),
}
"""Experiments by name: titles and functions; all but E1, which needs MPI."""
