"""Draw the images of elastic waves in docs/wave-equations.md, by the program on that page: `make gallery`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "wave-equations.md"
FILE = ROOT / "docs" / "images" / "elastic-images.png"
SECTION = "### Images of P and S waves"
DEPTHS = slice(8, None)
"""Rows below sources and receivers, where images are those of reflectors."""

_PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def program() -> str:
    """The program of the section."""
    found = _PROGRAM.search(PAGE.read_text().split(SECTION, 1)[1])
    assert found is not None, f"no program below {SECTION!r}"
    return found[1]


def draw(names: dict[str, Any]) -> Figure:
    """Both images of the program's variables; the edge of the rock below is the interface."""
    stack, below = names["stack"], names["below"]
    spacing = stack.pp.spacing[0]
    depth, width = (spacing * n for n in below.shape)
    extent = (-0.5 * spacing, width - 0.5 * spacing, depth - 0.5 * spacing, (DEPTHS.start - 0.5) * spacing)
    columns = np.arange(below.shape[1])
    interface = spacing * np.polyval(np.polyfit(columns, np.argmax(below, axis=0) - 0.5, 1), columns)
    figure = Figure(figsize=(9.2, 2.9), layout="constrained")
    for plot, (title, image) in zip(
        figure.subplots(1, 2, sharey=True), (("PP", stack.pp), ("PS", stack.ps)), strict=True
    ):
        shown = image.values[DEPTHS]
        most = np.quantile(abs(shown), 0.995)
        plot.imshow(shown, cmap="gray", vmin=-most, vmax=most, extent=extent, interpolation="bilinear")
        plot.plot(spacing * columns, interface, "--", color="#c8381e", linewidth=0.8)
        plot.set_title(title)
        plot.set_xlabel("x, m")
    figure.axes[0].set_ylabel("z, m")
    return figure


if __name__ == "__main__":
    names: dict[str, Any] = {}
    exec(compile(program(), str(PAGE), "exec"), names)
    draw(names).savefig(FILE, dpi=100, metadata={"Software": None})
    print(f"{FILE.relative_to(ROOT)}  {FILE.stat().st_size} bytes")
