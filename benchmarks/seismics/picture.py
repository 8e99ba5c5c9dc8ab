"""The picture of the inversion: the velocities that were sought and found, and both programs' way there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.seismics.section import Section

__all__ = ["draw"]

FILE: Final = Path(__file__).parents[2] / "docs" / "images" / "inversion.png"


def draw(section: Section, models: Mapping[str, np.ndarray], found: Mapping[str, Any]) -> None:
    """Draw the true section, the start, the last models, the misfits and the errors."""
    import matplotlib.pyplot as plt

    pictures = {"true": section.true(), "start": section.start(), **models}
    figure, axes = plt.subplots(4, 2, figsize=(10, 9.2), layout="constrained")
    height, width = (n * section.spacing / 1e3 for n in section.cells)
    drawn = None
    for panel, (name, values) in zip(axes.flat, pictures.items()):
        drawn = panel.imshow(
            values, extent=(0, width, height, 0), vmin=1500, vmax=section.true().max(), cmap="viridis", aspect="auto"
        )
        panel.set(title=name, xlabel="x in km", ylabel="z in km")
    for panel in axes.flat[len(pictures) : 6]:
        panel.remove()
    figure.colorbar(drawn, ax=list(axes.flat[: len(pictures)]), label="P velocity in m/s", shrink=0.8)
    for name in models:
        axes[3, 0].semilogy(found[name]["misfits"], marker=".", label=name)
        axes[3, 1].plot(found[name]["errors"], marker=".", label=name)
    axes[3, 0].set(xlabel="iteration", ylabel="misfit / first")
    axes[3, 1].set(xlabel="iteration", ylabel="error of the model in m/s", ylim=(0, None))
    for panel in axes[3]:
        panel.legend()
        panel.grid(alpha=0.3)
    FILE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FILE, dpi=80, metadata={"Software": None})
    plt.close(figure)
