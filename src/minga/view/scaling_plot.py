"""Pictures of predicted scaling: speedup of one grid on more and more ranks, and the used share of their speed."""

from __future__ import annotations

from pathlib import Path

from minga.output.directory import disk_errors
from minga.plan.scaling import Scaling

__all__ = ["draw_scaling"]

_DARK, _WARM = "#1f3b57", "#c2703d"
_MOST_TICKS = 10


def draw_scaling(curves: Scaling, file: Path, title: str) -> Path:
    """Draw both curves into ``file`` (.svg or .png) and return it.

    On the left is the speedup over the first point: planned, with equal parts, and if messages cost nothing. On the
    right is the used share of the sum of the speeds, for one grid (strong) and one that grows with the ranks (weak).
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    strong = curves.strong
    ranks = [point.ranks for point in strong]
    rate = strong[0].cells_per_second
    left.plot(ranks, [p.cells / p.ideal / rate for p in strong], "--", color="0.6", label="sum of the speeds")
    left.plot(ranks, [p.cells_per_second / rate for p in strong], "o-", color=_DARK, label="planned")
    left.plot(ranks, [p.cells / p.naive / rate for p in strong], ".:", color=_WARM, label="equal parts")
    left.set(title="Strong: one grid", xlabel="ranks", ylabel="speedup", xscale="log", yscale="log")
    for name, curve, style, colour in (("strong", strong, "o-", _DARK), ("weak", curves.weak, "s--", _WARM)):
        right.plot([p.ranks for p in curve], [100 * p.efficiency for p in curve], style, color=colour, label=name)
    right.set(title="Efficiency", xlabel="ranks", ylabel="% of the sum of the speeds", xscale="log", ylim=(0, 105))
    for axes in (left, right):
        axes.set_xticks(ranks[:: -(-len(ranks) // _MOST_TICKS)])
        axes.set_xticklabels([str(rank) for rank in axes.get_xticks().astype(int)], rotation=45)
        axes.minorticks_off()
        axes.grid(visible=True, alpha=0.3)
        axes.legend(frameon=False)
    figure.suptitle(title)
    with disk_errors(file):
        figure.savefig(file, dpi=110, metadata={"Date": None} if file.suffix == ".svg" else None)
    return file
