"""Validation of the options of an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from minga.engine.comm import Comm
from minga.engine.device import Device
from minga.engine.native import POLL_NANOSECONDS
from minga.engine.routes import Broadcasting, Router, Routes
from minga.errors import LayoutError
from minga.space.grid import Grid
from minga.space.layout import Layout

__all__ = ["MOST_DEEP", "check_counts", "checked_layouts", "checked_routes", "poll_nanoseconds"]

MOST_DEEP = 32
"""Maximum halo depth, in steps: a loop's body is bound that many times."""


def checked_layouts(layouts: Layout | Mapping[Grid, Layout], grid: Grid | None, comm: Comm) -> dict[Grid, Layout]:
    """Return the layout of each grid. Raise LayoutError if a layout is not for the present number of ranks."""
    if isinstance(layouts, Layout):
        if grid is None:
            raise LayoutError(
                "one layout without its grid", remedy="pass Engine({grid: layout}) or Engine(layout, grid=grid)"
            )
        layouts = {grid: layouts}
    for layout in layouts.values():
        if layout.ranks != comm.size:
            raise LayoutError(
                f"a layout for {layout.ranks} ranks, but {comm.size} run",
                remedy="make the layout for the number of ranks that were started",
            )
    return dict(layouts)


def check_counts(threads: int, halo_depth: int) -> None:
    """Raise LayoutError for an invalid number of threads or halo depth."""
    if threads < 1:
        raise LayoutError(f"threads is {threads}", remedy="give 1 or more")
    if not 1 <= halo_depth <= MOST_DEEP:
        raise LayoutError(
            f"halo_depth is {halo_depth}",
            remedy=f"give 1 (an exchange in every step) to {MOST_DEEP}; deeper halos compute too many cells twice",
        )


def poll_nanoseconds(poll: object) -> tuple[int, int] | None:
    """Return the minimum and maximum time between two polls of messages in flight, or None for no polling."""
    if poll == "auto":
        return POLL_NANOSECONDS
    if poll == "off":
        return None
    if isinstance(poll, bool) or not isinstance(poll, int | float) or not 0 <= poll <= 3600:
        raise LayoutError(f"poll is {poll!r}", remedy='give seconds such as 20e-6, "auto", or "off"')
    every = max(1, round(poll * 1e9))
    return every, every


def checked_routes(
    route: str | Router, group: Broadcasting | Callable[[Comm], Broadcasting] | None, device: Device | None
) -> Routes:
    """Return the routes of equal payloads. Raise LayoutError for unknown routes, and for a group on a GPU."""
    if group is not None and device is not None:
        raise LayoutError(
            "a group broadcasts from the processor's memory, and the fields are on a GPU",
            remedy='leave group= out, or run with device="cpu"',
        )
    return Routes(route, group)
