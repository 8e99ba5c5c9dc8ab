"""Control groups (versions 1 and 2) of this process, and the processor time that they allow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["cgroup_folders", "quota", "read_text"]

_ROOT: Final = Path("/")


def quota(root: Path = _ROOT) -> tuple[float, float] | None:
    """Return the tightest limit on processor time of this process's cgroups, as (seconds, period in seconds).

    Versions 1 and 2 are read; None without a limit.
    """
    found = []
    for folder in cgroup_folders("cpu", root):
        limit, _, period = read_text(folder / "cpu.max").partition(" ")
        if not limit:
            limit, period = read_text(folder / "cpu.cfs_quota_us"), read_text(folder / "cpu.cfs_period_us")
        if limit.isdigit() and period.isdigit() and int(period):
            found.append((int(limit) * 1e-6, int(period) * 1e-6))
    return min(found, key=lambda pair: pair[0] / pair[1], default=None)


def cgroup_folders(controller: str, root: Path) -> Iterator[Path]:
    """Yield the control groups of this process for a controller, innermost first, without the root's."""
    for line in read_text(root / "proc/self/cgroup").splitlines():
        _, controllers, place = [*line.split(":", 2), "", "", ""][:3]
        if controllers == "":  # version 2: one tree for all
            base = root / "sys/fs/cgroup"
        elif controller in controllers.split(","):
            base = next((root / "sys/fs/cgroup" / name for name in (controllers, controller)
                         if (root / "sys/fs/cgroup" / name).is_dir()), root / "nowhere")  # fmt: skip
        else:
            continue
        parts = [part for part in place.split("/") if part and part != ".."]
        for length in range(len(parts), -1, -1):
            yield base.joinpath(*parts[:length])


def read_text(file: Path) -> str:
    """Return the text of a file, or an empty text if it cannot be read."""
    with contextlib.suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace").strip()
    return ""
