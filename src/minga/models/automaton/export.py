"""Pattern files as a format of ``minga export``: Golly resumes where the run ended, on a grid with the same ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.automaton.golly import CORNER, NOTE, PATTERN
from minga.output.directory import write_whole
from minga.output.export import Export, ExportFormat

__all__ = ["MACROCELL", "RLE", "PatternRule", "golly_rule"]


@dataclass(frozen=True, slots=True)
class PatternRule:
    """The head of a pattern file.

    Attributes
    ----------
    text
        The rule with the bounded grid it runs on, such as "B3/S23:T512,512"; None if Golly has no such rule.
    comments
        Facts of the run that the notation of rules cannot express.
    first
        Row and column of the first cell on an unbounded plane; None on a bounded grid.
    """

    text: str | None
    comments: tuple[str, ...]
    first: tuple[int, int] | None = None

    def corner(self, shape: tuple[int, ...]) -> tuple[int, int] | None:
        """Row and column of the upper left cell: Golly's bounded grids have cell (0, 0) in the middle."""
        if self.first is not None:
            return self.first
        return (-(shape[0] // 2), -(shape[1] // 2)) if self.text and ":" in self.text else None


def golly_rule(attributes: Mapping[str, Any]) -> PatternRule:
    """Return the rule that the attributes of a run's frames name."""
    if PATTERN not in attributes and NOTE not in attributes:
        model = attributes.get("model", "a run")
        return PatternRule(None, (f"cells of {model}, which names no rule; Golly takes this for Life, B3/S23",))
    note = attributes.get(NOTE)
    corner = str(attributes.get(CORNER, "")).split(",")
    first = (int(corner[0]), int(corner[1])) if len(corner) == 2 else None
    return PatternRule(attributes.get(PATTERN), (str(note),) if note else (), first)


def _write_rle(export: Export) -> None:
    from minga.models.automaton.patterns import write_rle

    cells, rule = _states(export, "run-length encoding"), golly_rule(export.reader.group.attrs)
    corner = rule.corner(cells.shape)
    text = write_rle(cells, rule.text, rule.comments, generation=export.step, position=corner)
    write_whole(export.path, text)


def _write_macrocell(export: Export) -> None:
    from minga.models.automaton.macrocell import write_macrocell

    cells, rule = _states(export, "a macrocell file"), golly_rule(export.reader.group.attrs)
    corner = rule.corner(cells.shape) or (0, 0)
    write_whole(export.path, write_macrocell(cells, rule.text, rule.comments, export.step, corner))


def _states(export: Export, what: str) -> NDArray[Any]:
    """Return the cells to write; raise CaseError unless they are states on two axes."""
    cells: NDArray[Any] = export.values()
    if cells.ndim != 2 or cells.dtype.kind not in "bui" or (cells.size and not 0 <= cells.min() <= cells.max() <= 255):
        raise CaseError(
            f"{what} is for states 0 to 255 on two axes; {export.field} is {cells.ndim}-dimensional "
            f"{cells.dtype}" + (f" from {cells.min()} to {cells.max()}" if cells.size else ""),
            key="--format",
            remedy="write it as npy",
        )
    return cells


RLE = ExportFormat("Golly and other programs for automata: states 0 to 255 on two axes", _write_rle)
MACROCELL = ExportFormat("Golly: states 0 to 255 on two axes, with equal squares written once", _write_macrocell)
