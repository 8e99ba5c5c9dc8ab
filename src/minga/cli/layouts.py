"""Checks, before anything is started, that the layout and mapping of a case suit its grid and ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.engine.pin import available_cores
from minga.errors import CaseError, LayoutError, suggest
from minga.options import AUTO

if TYPE_CHECKING:
    from minga.engine.model import Model
    from minga.options import RunOptions, RunSettings

__all__ = ["check_layout", "check_mapping", "check_ranks", "computing_ranks"]

_FORMS = (
    'write "auto" (planned), "cartesian", "cartesian:2x3" (parts along each axis), "slabs", '
    '"slabs:1" (across the second axis), "bisection", "blocks:4" (blocks of each rank) or "single" (all on rank 0)'
)


def check_layout(layout: str, model: Model, ranks: int) -> None:
    """Raise CaseError if ``layout`` does not name a layout of the model's grid on this number of ranks."""
    if layout == AUTO:
        return  # always possible: a grid that cannot be cut becomes one block
    try:
        model.layouts(layout, ranks)
    except LayoutError as error:
        close = suggest(layout, (AUTO,))
        remedy = f"did you mean {close!r}? {_FORMS}" if close else error.remedy or _FORMS
        raise CaseError(error.message, key="run.layout", remedy=remedy[0].lower() + remedy[1:]) from error


def computing_ranks(ranks: int, options: RunOptions) -> int:
    """Return the number of ranks that own cells, without those that only write frames and those of weight 0.

    Raises CaseError if it is 0, or if there are not as many weights as ranks.
    """
    from minga.plan.busy import busy_ranks

    return len(busy_ranks(ranks, options))


def check_mapping(run: RunSettings, model: Model, ranks: int | None) -> None:
    """Raise CaseError if the mapping or topology of a case is invalid, or does not suit the number of ranks.

    The number of ranks is None if it is not known yet.
    """
    from minga.plan import placement
    from minga.plan.topology import Tree

    key = "run.topology"
    try:
        tree = None if run.topology is None else Tree.parse(run.topology)
        key = "run.mapping"
        placement.check_mapping(run.mapping)
        if tree is not None and ranks is not None:
            layout = "cartesian" if run.layout == AUTO else run.layout
            placement.place_all(model.layouts(layout, ranks), tree.seats(ranks), run.mapping)
    except LayoutError as error:
        raise CaseError(error.message, key=key, remedy=error.remedy) from error


def check_ranks(ranks: int) -> None:
    """Raise CaseError if more ranks are requested than this machine can run."""
    from minga.plan.machine.machine import MOST_RANKS_A_CORE

    cores = len(available_cores())
    most = MOST_RANKS_A_CORE * cores
    if ranks > most:
        raise CaseError(
            f"{ranks} ranks are too many for {cores} physical core{'s' if cores > 1 else ''}: at most {most} run here",
            key="run.ranks",
            remedy=f"try one for each core, -n {cores}; to test a layout, mg.run_virtual(RANKS, function) runs any "
            "number of ranks as threads of one process",
        )
