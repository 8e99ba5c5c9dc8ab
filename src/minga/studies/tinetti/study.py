"""Figures of F. Tinetti's study of local networks (thesis, appendix C), repeated: ``minga bench tinetti``.

His laboratory is emulated, including its hub, with current software: MPI, PVM, TCP, and minga's own broadcast. The
study's statements about its figures are checked; where today's networks differ, the corresponding statements are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from minga.studies import report
from minga.studies.experiments import Bench, Experiment, run_all
from minga.studies.figures import draw_panels
from minga.studies.tinetti import broadcasts, messages, work
from minga.studies.tinetti.labs import check_quotas

__all__ = ["EXPERIMENTS", "NAMES", "draw", "measure", "page"]

Say = Callable[[str], None]
Result = dict[str, Any]

EXPERIMENTS: Final[Mapping[str, Experiment]] = {
    "E1": ("Figs. C.6, C.7. PVM through its daemons, XDR", messages.daemon_xdr),
    "E2": ("Figs. C.8, C.9. PVM through its daemons, translated", messages.daemon_translated),
    "E3": ("Figs. C.10, C.11. PVM from task to task, XDR", messages.direct_xdr),
    "E4": ("Figs. C.12, C.13. PVM from task to task, translated", messages.direct_translated),
    "E5": ("Two anomalous machines: TCP with small buffers", messages.anomalies),
    "E6": ("Figs. C.14, C.15. ping", messages.ping),
    "E7": ("Figs. C.16, C.17. Broadcast over UDP, one receiver", broadcasts.one_receiver),
    "E8": ("Figs. C.18, C.19. Broadcasts to several receivers", broadcasts.receivers),
    "E9": ("C.12. Ten times the bandwidth", broadcasts.networks),
    "E10": ("Broadcasts on switches", broadcasts.switched),
    "E11": ("Messages behind computation", work.overlap),
    "E12": ("Figs. C.7, C.9. A machine with little memory", work.memory),
    "E13": ("Matrix products on unequal machines", work.product),
    "E14": ("A machine that others begin to use", work.balance),
}
NAMES: Final = tuple(EXPERIMENTS)

TITLE: Final = "A laboratory's network, emulated"
PREFACE: Final = (
    "Experiments after F. Tinetti's study of local networks (thesis, appendix C). Programs and protocols are real; the "
    "wires, the speeds of the machines and their memory are emulated on one computer."
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

    Raises
    ------
    LaunchError
        If no lab can be built here.
    """
    check_quotas()

    def drawn(name: str, result: Result) -> Path | None:
        return draw(name, result, pictures) if pictures is not None and result.get("panels") else None

    return run_all(EXPERIMENTS, names, Bench(say, quick=quick), drawn)


def draw(name: str, result: Mapping[str, Any], pictures: Path) -> Path:
    """Draw the figure of an experiment, with the study's claim below it."""
    title = f"{name}. {result['title']} (emulated)"
    return draw_panels(result["panels"], pictures / f"tinetti-{name}.png", title=title, claim=result["claim"])


def page(found: Mapping[str, Any]) -> str:
    """Return all results as one self-contained HTML page."""
    return report.page(found, TITLE, PREFACE)
