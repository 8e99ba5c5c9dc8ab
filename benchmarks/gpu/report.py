"""What a GPU was measured to do, as tables in Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from benchmarks.gpu.static import RESULTS as STATIC

_PREDICTED: Final = {"tti": "TTI, 6 arrays"}
"""Cases that `benchmarks.gpu.static` predicts."""


def markdown(content: Mapping[str, Any]) -> str:
    """The measured rates, beside what memory allows and what was predicted without a GPU."""
    return "\n".join(_lines(content)) + "\n"


def _lines(content: Mapping[str, Any]) -> Iterator[str]:
    about = content["about"]
    copied = f"a copy on the device moves {content['copy_bandwidth'] / 1e9:.0f} GB/s"
    yield f"{about['device']}, CuPy {about['cupy']}, llvmlite {about['llvmlite']}; {copied}."
    yield ""
    yield "| case | cells | schedule | 1e9 cells/s | bound by memory | of the bound | predicted |"
    yield "|---|---|---|---|---|---|---|"
    for line in content["lines"]:
        if line["same_as"]:
            continue
        shape = " x ".join(map(str, line["shape"]))
        bound = f"{_round(line['predicted'])} at {line['bytes']:g} B a cell | {100 * line['of_bound']:.0f} %"
        predicted = _predicted(line, about["device"])
        yield f"| {line['case']} | {shape} | {line['schedule']} | {_round(line['rate'])} | {bound} | {predicted} |"
    if solve := content.get("multigrid"):
        yield ""
        yield (
            f"Conjugate gradients with multigrid, Poisson's equation, f8, {' x '.join(map(str, solve['shape']))}: "
            f"{solve['iterations']} iterations to {solve['tolerance']:g}, {1e3 * solve['seconds']:.1f} ms each "
            f"({solve['kernels']} kernels on {solve['levels']} levels, which move {solve['bytes'] / 1e9:.1f} GB: "
            f"{100 * solve['of_bound']:.0f} % of what a copy reaches)."
        )


def _round(rate: float) -> str:
    return f"{rate / 1e9:.3g}" if rate < 1e12 else f"{rate / 1e9:.0f}"


def _predicted(line: Mapping[str, Any], device: str) -> str:
    kernel = _PREDICTED.get(line["case"])
    for report in json.loads(STATIC.read_text())["reports"]:
        if (report["kernel"], report["schedule"]) == (kernel, line["schedule"]):
            for name, rate in report["predicted"].items():
                if name.split()[0] in device:
                    return _round(rate)
    return ""
