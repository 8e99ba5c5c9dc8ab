"""Errors of the paper, each recomputed: what is printed, what follows, and why."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from minga.models.electrodeposition.soft import PECLET, POISSON
from minga.studies.experiments import Bench
from minga.studies.milano.paper import EFFICIENCIES, PROCESSES, SPEED_UPS, SWEEPS, TIMES, derived

__all__ = ["errors"]

Result = dict[str, Any]

ROUNDED: Final = 0.5e-2 + 1e-9
"""Largest error of a number that is printed with two decimals."""
CLOCKS: Final = (950.0,) * 6 + (1200.0,) * 4 + (733.0,) * 4
"""MHz of 14 nodes, those of 900 MHz left out."""


def errors(bench: Bench) -> Result:
    """List what the paper prints and what follows instead."""
    wrong = [*_derived_tables()]
    exchanged = [row["printed"] for row in wrong] == [row["follows"] for row in wrong[::-1]]
    rows = [*_signs(), *wrong, *_words(), *_assumptions()]
    return {
        "claim": "The paper's equations, tables and statements about them, as printed.",
        "table": rows,
        "shape": {
            "all percentages and totals of Tables 2 to 4 follow from their columns": not list(_sweep_tables()),
            "Table 8 follows from Table 7": all("Table 8" not in row["place"] for row in wrong),
            "Table 9 follows from Table 7 but for two entries, which are interchanged": len(wrong) == 2 and exchanged,
        },
    }


def _signs() -> Iterator[Result]:
    """Yield errors of the equations; rates are those of the soft cell at the bath's concentration."""
    # M_i Pe_i = z_i for potentials in RT/F, so that sum z_i M_i C_i = sum z_i^2 / Pe_i.
    rate = POISSON * math.fsum(4.0 / peclet for peclet in PECLET)
    yield {
        "place": "equation (3)",
        "printed": "lap phi = +Po sum z C",
        "follows": "lap phi = -Po sum z C",
        "why": f"with the flux (2), charge would grow at the rate Po sum z M C = {rate:.3g} instead of decaying at it",
    }
    yield {
        "place": "equation (4)",
        "printed": "-Gg curl (C g/|g|)",
        "follows": "+Gg curl (C g/|g|)",
        "why": "the curl of the weight rho0 (1 + sum alpha dC) g; as printed, dense fluid at the anode would rise",
    }
    yield {
        "place": "Ge, Gg",
        "printed": "e C_i, C_i",
        "follows": "F C_0, C_0",
        "why": "dimensionless numbers are constants: C_i is the unknown field; e needs number densities, C_0 is molar",
    }


def _sweep_tables() -> Iterator[str]:
    """Yield the percentages of Tables 2 to 4 that do not follow from the columns."""
    for planes, by_processes in SWEEPS.items():
        for processes, (one, two, printed) in by_processes.items():
            if abs(100.0 * (sum(two) / sum(one) - 1.0) - printed) > ROUNDED:
                yield f"{planes} planes, {processes} processes"


def _derived_tables() -> Iterator[Result]:
    """Yield the entries of Tables 8 and 9 that do not follow from Table 7."""
    for table, name, printed in ((8, "speed_up", SPEED_UPS), (9, "efficiency", EFFICIENCIES)):
        for mesh, ways in TIMES.items():
            for way, metrics in derived(PROCESSES, ways).items():
                for count, value, there in zip(PROCESSES, metrics[name], printed[mesh][way], strict=True):
                    if abs(value - there) > ROUNDED:
                        yield {
                            "place": f"Table {table}, {mesh}, {way}, {count} processes",
                            "printed": there,
                            "follows": round(value, 2),
                            "why": "from Table 7",
                        }


def _words() -> Iterator[Result]:
    """Yield errors of captions and statements."""
    yield {
        "place": "caption of Table 2",
        "printed": "100 points",
        "follows": "50",
        "why": "its head says DIM=50, and Table 3 is the one of 100 points",
    }
    yield {
        "place": "section 3.5",
        "printed": "24 runs",
        "follows": 3 * (2 * (len(PROCESSES) - 1) + 1),
        "why": "three meshes with 7 numbers of processes in two ways, and one serial run each; 24 counts one way",
    }
    yield {
        "place": "section 3.5",
        "printed": "50x200x50",
        "follows": "40x200x40",
        "why": "the tables' mesh; 21 kB in Table 5 are 51 x 51 doubles, so the size of planes is not certain",
    }
    yield {
        "place": "section 3.3",
        "printed": "Isend takes longer than a whole non-blocking operation",
        "follows": "than a whole blocking one",
        "why": "Table 5: 1.3 ms in Isend and 0.2 ms in Send, at 21 kB",
    }


def _assumptions() -> Iterator[Result]:
    """Yield statements that the paper's own numbers contradict or explain otherwise."""
    alone = [ways["blocking"][0] for ways in TIMES.values()]
    sweeps = [sum(SWEEPS[planes][2][0]) for planes in (100, 200)]
    yield {
        "place": "Table 1",
        "printed": "parallel results differ unless subdomains have a least size",
        "follows": "no difference",
        "why": "sweeps end when updates are small, not when the solution is reached; see table-1: with a smaller "
        "tolerance the differences vanish, and in red-black order there are none",
    }
    yield {
        "place": "section 3.5, 120x1200x120",
        "printed": "27 times the time of 40x400x40",
        "follows": "more",
        "why": "27 times the cells, and more sweeps: where a grid is finer, those of point relaxation grow with the "
        "square of the cells across",
    }
    yield {
        "place": "Tables 3, 4 and 7",
        "printed": f"serial times of 100 and 200 planes in a ratio of {alone[1] / alone[0]:.2f}",
        "follows": f"{2 * sweeps[1] / sweeps[0]:.2f}",
        "why": "twice the cells and the sweeps of Tables 3 and 4; the time of Table 7 must lie in other steps than the "
        "first five, with fewer sweeps on 200 planes",
    }
    yield {
        "place": "Tables 8 and 9",
        "printed": "efficiency 1 at 14 processes means a speed-up of 14",
        "follows": f"{sum(CLOCKS) / max(CLOCKS):.1f} to {sum(CLOCKS) / min(CLOCKS):.1f}",
        "why": "nodes are unequal: the largest speed-up depends on the node of the serial run, which is not named (by "
        "clock rate, of the fastest and the slowest)",
    }
