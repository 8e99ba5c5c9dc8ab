"""Decomposition of the grid among the ranks, drawn over a picture of the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minga.view.report.figures import Figure
from minga.view.report.svg import Element, drawing, element, text, titled

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["Block", "BlockRow", "Overlay", "Window", "block_rows", "blocks_of", "overlay", "rank_colour", "window_of"]

Floats = NDArray[np.float64]

_MOST_BLOCKS, _MOST_ROWS = 4096, 16
_LABEL_WIDTH, _LABEL_HEIGHT = 9, 16


@dataclass(frozen=True, slots=True)
class Block:
    """Cells from ``lo`` to before ``hi`` of the grid, and the rank that owns them."""

    rank: int
    lo: tuple[int, ...]
    hi: tuple[int, ...]

    @property
    def cells(self) -> int:
        """Number of cells."""
        count = 1
        for low, high in zip(self.lo, self.hi, strict=True):
            count *= high - low
        return count


@dataclass(frozen=True, slots=True)
class Overlay:
    """Blocks over a figure: their drawing, the number that the figure's plane cuts, and the number of all."""

    drawing: Markup
    shown: int
    total: int


@dataclass(frozen=True, slots=True)
class Window:
    """Cells of the grid that frames keep: from ``lo`` to before ``hi``, every ``stride``-th along each axis."""

    lo: tuple[int, ...]
    hi: tuple[int, ...]
    stride: tuple[int, ...]

    def cell(self, axis: int, index: int) -> int:
        """Return the cell of the grid that a frame has at an index."""
        return self.lo[axis] + index * self.stride[axis]


def window_of(output: object, shape: Sequence[int], names: Sequence[str]) -> Window:
    """Return the window that the table [output] of a case describes for a grid; all cells if it describes none."""
    table = output if isinstance(output, Mapping) else {}
    region, decimate = table.get("region", {}), table.get("decimate", 1)
    try:
        ends = [tuple(map(int, region.get(name, (0, length)))) for name, length in zip(names, shape)]
        stride = [int(decimate.get(name, 1) if isinstance(decimate, Mapping) else decimate) for name in names]
        return Window(tuple(low for low, _ in ends), tuple(high for _, high in ends), tuple(stride))
    except (AttributeError, TypeError, ValueError):
        return Window((0,) * len(shape), tuple(shape), (1,) * len(shape))


def blocks_of(layout: object, ndim: int) -> list[Block]:
    """Return the blocks listed in a run's result; an empty list if it lists something else."""
    if not isinstance(layout, Sequence):
        return []
    blocks = []
    for entry in layout:
        try:
            block = Block(int(entry["rank"]), tuple(map(int, entry["lo"])), tuple(map(int, entry["hi"])))
        except (KeyError, TypeError, ValueError):
            return []
        if len(block.lo) != ndim or len(block.hi) != ndim:
            return []
        blocks.append(block)
    return blocks


@dataclass(frozen=True, slots=True)
class BlockRow:
    """Rank in the table beside the drawing; ``waited``: the share of its time in steps, None if it is not known."""

    rank: int
    colour: str
    cells: int
    share: float
    compute: float | None
    waited: float | None


def block_rows(
    blocks: Sequence[Block], ranks: Sequence[Mapping[str, Any]], waiting: Mapping[int, float]
) -> list[BlockRow]:
    """Return the ranks with their cells and their time; an empty list if they are too many for a table."""
    cells: dict[int, int] = {}
    for block in blocks:
        cells[block.rank] = cells.get(block.rank, 0) + block.cells
    if len(cells) > _MOST_ROWS:
        return []
    compute = {int(line.get("rank", -1)): line["seconds"].get("compute") for line in ranks}
    total = sum(cells.values())
    return [
        BlockRow(rank, rank_colour(rank), count, count / total, compute.get(rank), waiting.get(rank))
        for rank, count in sorted(cells.items())
    ]


def overlay(figure: Figure, blocks: Sequence[Block], window: Window, waiting: Mapping[int, float]) -> Overlay:
    """Draw the blocks that cross the plane of a figure; ``waiting``: share of its time that each rank waited."""
    crossed = [block for block in blocks if _crosses(block, figure, window)]
    width, height = figure.size
    children: list[Element] = []
    for block in crossed[:_MOST_BLOCKS]:
        x, wide = _span(block, figure.shown[-1], window, width, figure.faces[-1])
        whole = 0.0, float(height)
        y, high = whole if figure.history else _span(block, figure.shown[0], window, height, figure.faces[0])
        if figure.upwards:
            y = height - y - high
        children += _drawn(block, (x, y, wide, high), waiting.get(block.rank))
    picture = drawing(width, height, *children, label="blocks and the ranks that own them", preserveAspectRatio="none")
    return Overlay(picture, len(crossed), len(blocks))


def _crosses(block: Block, figure: Figure, window: Window) -> bool:
    """Return whether a block appears in a figure, which is also so if it is empty along an axis."""
    through = all(block.lo[axis] <= window.cell(axis, index) < block.hi[axis] for axis, index in figure.across)
    return through and all(
        max(block.lo[axis], window.lo[axis]) < min(block.hi[axis], window.hi[axis]) or block.lo[axis] == block.hi[axis]
        for axis in figure.shown
    )


def _span(block: Block, axis: int, window: Window, pixels: int, faces: Floats | None) -> tuple[float, float]:
    """Return the beginning and the length of a block along an axis, in pixels. `faces`: as in Figure."""
    first, last = window.lo[axis], window.hi[axis]
    low, high = max(block.lo[axis], first), min(block.hi[axis], last)
    if faces is not None and faces.size == last - first + 1:
        return float(faces[low - first]) * pixels, float(faces[high - first] - faces[low - first]) * pixels
    scale = pixels / max(1, last - first)
    return (low - first) * scale, (high - low) * scale


def _drawn(block: Block, place: tuple[float, float, float, float], waited: float | None) -> list[Element]:
    x, y, wide, high = place
    box: dict[str, Any] = {"x": x, "y": y, "width": wide, "height": high}
    cells = " x ".join(f"{low}..{high - 1}" for low, high in zip(block.lo, block.hi, strict=True))
    says = f"rank {block.rank}: cells {cells} ({block.cells:,})"
    if waited is not None:
        says += f", {100 * waited:.0f} % of its time waiting"
    parts = [
        titled(says, element("rect", **box, class_="by-rank", fill=rank_colour(block.rank))),
        titled(says, element("rect", **box, class_="by-wait", fill_opacity=min(0.85, waited or 0.0))),
        element("rect", **box, class_="edge"),
    ]
    name = str(block.rank)
    if wide >= _LABEL_WIDTH * len(name) + 4 and high >= _LABEL_HEIGHT:
        parts.append(text(name, x + wide / 2, y + high / 2 + 4.5, text_anchor="middle", class_="owner"))
    return parts


def rank_colour(rank: int) -> str:
    """Return a colour by steps of the golden angle around the colour circle, so that ranks with near numbers differ.

    They differ in lightness too, for those who do not see their hues.
    """
    return f"hsl({(215 + 137.508 * rank) % 360:.0f} 65% {(42, 66, 54)[rank % 3]}%)"
