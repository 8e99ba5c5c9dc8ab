"""Draw the figures of docs/comparison.md: `make gallery`.

The lines are those of the programs on the page, the speeds those of the newest file in benchmarks/results/automata,
or of the file that is named on the command line.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "comparison.md"
RESULTS = ROOT / "benchmarks" / "results" / "automata"
IMAGES = ROOT / "docs" / "images"
TOOLS = {"minga": "#1f3b57", "Golly": "#3b7a4b", "CellPyLib": "#e0a526", "CAX": "#c8381e"}
OTHERS = "#8a8f98"
TOOL_OF_WAY = {"bgolly": "Golly", "cellpylib": "CellPyLib", "cax": "CAX"}
CONTESTS = ("life-2048", "life-512", "life-64", "brian-1024", "bosco-1024")

_PROGRAM = re.compile(r"^\*\*(\w+)\*\*[^\n]*\n\n```(?:python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def programs() -> dict[str, dict[str, str]]:
    """The programs on the page: by system (its heading) and tool."""
    found: dict[str, dict[str, str]] = {}
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        if here := dict(_PROGRAM.findall(section)):
            found[section.split("\n", 1)[0]] = here
    return found


def draw_lines(path: Path) -> None:
    """Lines of the programs, without empty ones; nothing where a tool cannot."""
    systems = programs()
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    plot = figure.add_subplot()
    for number, tool in enumerate(TOOLS):
        for place, texts in enumerate(systems.values()):
            lines = sum(bool(line.strip()) for line in texts.get(tool, "").splitlines())
            bar = plot.bar(
                place + 0.2 * (number - 1.5), lines, 0.18, color=TOOLS[tool], label=tool if not place else None
            )
            plot.bar_label(bar, [str(lines) if lines else "–"], color="#555555", fontsize=8)
    plot.set_xticks(range(len(systems)), list(systems))
    plot.set_ylabel("lines")
    plot.legend(frameon=False, ncols=4, loc="upper left", fontsize=8)
    plot.margins(y=0.25)
    _save(figure, path)


def draw_speed(path: Path, measured: Mapping[str, Any]) -> None:
    """Cell updates a second, a bar for each way, on a logarithmic axis."""
    results: dict[str, Any] = {r["name"]: r for r in measured["results"]}
    shown = [results[name] for name in CONTESTS if name in results]
    heights = [len(result["rates"]) for result in shown]
    figure = Figure(figsize=(7, 0.8 + 0.27 * sum(heights) + 0.35 * len(shown)), layout="constrained")
    plots = figure.subplots(len(shown), 1, sharex=True, height_ratios=[h + 1 for h in heights], squeeze=False)[:, 0]
    for plot, result in zip(plots, shown, strict=True):
        rates = sorted(((rate["median"], way) for way, rate in result["rates"].items()), reverse=True)
        colours = [
            TOOLS["minga"] if way.startswith("minga") else TOOLS.get(TOOL_OF_WAY.get(way.partition(",")[0], ""), OTHERS)
            for _, way in rates
        ]
        bars = plot.barh([way for _, way in rates], [rate for rate, _ in rates], color=colours, height=0.75, log=True)
        plot.bar_label(bars, [f" {rate:.1e}".replace("e+0", "e").replace("e+", "e") for rate, _ in rates], fontsize=8)
        plot.invert_yaxis()
        plot.set_title(f"{result['title']}, {' x '.join(map(str, result['shape']))}", fontsize=9, loc="left")
        plot.tick_params(labelsize=8)
    for plot in plots:
        for side in ("top", "right"):
            plot.spines[side].set_visible(False)
    plots[-1].set_xlabel("cell updates a second on one core", fontsize=9)
    medians = [rate["median"] for result in shown for rate in result["rates"].values()]
    plots[-1].set_xlim(min(medians) / 10, max(medians) * 8)
    _save(figure, path)


def measured_last() -> dict[str, Any]:
    """The contests of the family of processors that was measured last."""
    contents = [json.loads(path.read_text()) for path in RESULTS.glob("*.json")]
    return max(contents, key=lambda content: content["date"])


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100, metadata={"Software": None})
    print(f"{path.relative_to(ROOT)}  {path.stat().st_size} bytes")


if __name__ == "__main__":
    draw_lines(IMAGES / "comparison-lines.png")
    draw_speed(
        IMAGES / "comparison-speed.png",
        json.loads(Path(sys.argv[1]).read_text()) if len(sys.argv) > 1 else measured_last(),
    )
