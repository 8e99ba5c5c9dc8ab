"""Tables 1 to 9 and Figs. 3, 6 and 7 of Milano, Mocskos and Marshall, repeated: ``minga bench milano``.

Tables 1 to 4 and Figs. 6 and 7 count sweeps and compare results, in two dimensions; they need nothing but time. Tables
5 to 9 and Fig. 3 are times on their cluster, which is emulated (:mod:`minga.lab`). The paper's statements are checked,
and its errors are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from minga.studies import report
from minga.studies.experiments import Bench, Experiment, run_all
from minga.studies.figures import draw_panels
from minga.studies.milano import errors, labs, sweeps

__all__ = ["EXPERIMENTS", "NAMES", "draw", "measure", "page"]

Say = Callable[[str], None]
Result = dict[str, Any]

EXPERIMENTS: Final[Mapping[str, Experiment]] = {
    "table-1": ("Differences between one process and several, %", sweeps.table_1),
    "table-2": ("Sweeps on 50 planes, here (there)", sweeps.TABLES["table-2"]),
    "table-3": ("Sweeps on 100 planes, here (there)", sweeps.TABLES["table-3"]),
    "table-4": ("Sweeps on 200 planes, here (there)", sweeps.TABLES["table-4"]),
    "table-5": ("Milliseconds in a call, here (there)", labs.messages),
    "table-6": ("MPI libraries, seconds per sweep", labs.libraries),
    "table-7": ("Times of 1 to 14 processes", labs.times),
    "table-8": ("Speed-up", labs.speed_ups),
    "table-9": ("Efficiency", labs.efficiencies),
    "figure-3": ("Time wasted with blocking messages", labs.wasted),
    "figure-6": ("Places where psi differs", sweeps.figure_6),
    "figure-7": ("Places where the anions differ, with fingers", sweeps.figure_7),
    "errors": ("What is printed, and what follows", errors.errors),
}
NAMES: Final = tuple(EXPERIMENTS)
TIMED: Final = ("table-5", "table-6", "table-7", "table-8", "table-9", "figure-3")
"""Experiments that measure times, in a lab."""

TITLE: Final = "Relaxation on a heterogeneous cluster"
PREFACE: Final = (
    "Tables and figures of P. Milano, E. Mocskos and G. Marshall's paper on electrodeposition on a Beowulf cluster. "
    "Sweeps and differences are those of real runs in two dimensions; the cluster is emulated on one computer. The "
    "paper states no test of convergence and no physical parameters: sweeps end when their largest update is small."
)


def measure(names: Sequence[str], say: Say, pictures: Path | None, *, quick: bool) -> Result:
    """Run experiments and return their results as data; figures are written to a directory.

    Parameters
    ----------
    names
        Names from EXPERIMENTS.
    say
        Function that reports progress.
    pictures
        Directory of the figures, or None.
    quick
        Whether to reduce the extent.
    """

    def drawn(name: str, result: Result) -> Path | None:
        places = result.pop("draw", None)
        if pictures is None or "panels" not in result:
            return None
        if places is None:
            return draw(name, result, pictures)
        path = pictures / f"milano-{name}.png"
        places(path, f"{_words(name)}: {result['title'].lower()}, %")
        return path

    return run_all(EXPERIMENTS, names, Bench(say, quick=quick), drawn, TIMED)


def draw(name: str, result: Mapping[str, Any], pictures: Path) -> Path:
    """Draw the curves of an experiment, with the paper's claim below them."""
    title = f"{_words(name)}: {result['title']}" + (" (emulated)" if name in TIMED else "")
    return draw_panels(result["panels"], pictures / f"milano-{name}.png", title=title, claim=result["claim"])


def _words(name: str) -> str:
    return name.replace("-", " ").capitalize()


def page(found: Mapping[str, Any]) -> str:
    """Return all results as one self-contained HTML page."""
    return report.page(found, TITLE, PREFACE)
