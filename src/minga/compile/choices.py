"""Ways of executing loops that were fastest when they were tuned, remembered for later runs beside compiled kernels.

A file holds the choice for one loop: its kernels, the classes of their sizes, the processor and the number of threads
determine its name. All ways have the same bits, so a choice that no longer fits costs time only.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from minga.compile.alternative import PREFETCHING, ROWS, WIDTHS, Alternative
from minga.compile.cache import Cache, default_cache, object_key
from minga.compile.target import host_target
from minga.lang.graph import KernelGraph

__all__ = ["Choice", "all_choices", "choice_key", "load_choice", "store_choice"]

SUFFIX: Final = ".choice"
FORMAT: Final = 1
"""Number of the format of files; a file of another format is ignored."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The fastest way to execute a loop.

    cut      rows of a band, number of columns and rounds of its blocks; None: rounds one by one
    way      the way its kernels are compiled
    gain     time of the usual way, relative to this one
    kernels  names of its kernels that do much of the work, by the digests of their code
    cells    cells of the largest box
    """

    cut: tuple[int, int, int] | None
    way: Alternative
    gain: float
    kernels: dict[str, str]
    cells: int

    def __str__(self) -> str:
        """Return a description of the choice."""
        parts = ["rounds one by one" if self.cut is None else f"blocks of {self.cut[2]} rounds"]
        if self.way.vector:
            parts.append(f"vectors of {self.way.vector} bytes")
        if self.way.prefetch != "large":
            parts.append(f"prefetch {self.way.prefetch}")
        if not self.way.stream:
            parts.append("stores through the caches")
        if self.way.rows:
            parts.append("single rows" if self.way.rows == 1 else f"{self.way.rows} rows together")
        names = ", ".join(self.kernels.values())
        return f"{names} on {self.cells:,} cells: {', '.join(parts)}, {self.gain:.2f} times as fast as the usual way"


def choice_key(kernels: Sequence[tuple[KernelGraph, int]], threads: int, cuts: Sequence[tuple[int, int, int]]) -> str:
    """Return the key of the choice for a loop with these kernels, each with its number of cells, and possible cuts."""
    work = sorted(f"{graph.code_digest()} {cells.bit_length()}" for graph, cells in kernels)
    return object_key("\n".join(work), host_target(), f"choice {FORMAT}, threads={threads}, cuts={sorted(cuts)}")


def load_choice(key: str) -> Choice | None:
    """Return the remembered choice of a key; None if there is no valid one."""
    cache = default_cache()
    return None if cache is None else _read(cache, f"{key}{SUFFIX}")


def store_choice(key: str, choice: Choice) -> None:
    """Remember a choice, if the cache can be written."""
    cache = default_cache()
    if cache is not None:
        cache.write(f"{key}{SUFFIX}", json.dumps({"format": FORMAT, **asdict(choice)}).encode())


def all_choices() -> Iterator[Choice]:
    """Yield the choices that are remembered on this machine, those stored last first."""
    cache = default_cache()
    if cache is None:
        return
    paths = list(cache.directory.glob(f"*{SUFFIX}"))
    with contextlib.suppress(OSError):
        paths.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in paths:
        if (choice := _read(cache, path.name)) is not None:
            yield choice


def _read(cache: Cache, name: str) -> Choice | None:
    content = cache.read(name)
    try:
        found = json.loads(content or b"")
        if found["format"] != FORMAT:
            return None
        return Choice(
            None if found["cut"] is None else _cut(found["cut"]),
            _way(found["way"]),
            float(found["gain"]),
            {str(digest): str(name) for digest, name in found["kernels"].items()},
            int(found["cells"]),
        )
    except (ArithmeticError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _way(value: Any) -> Alternative:
    way = Alternative(**value)
    known = way.vector in (0, *WIDTHS) and way.prefetch in PREFETCHING and way.rows in (0, *ROWS)
    if not known or not isinstance(way.stream, bool):
        raise ValueError(value)
    return way


def _cut(value: Any) -> tuple[int, int, int]:
    rows, columns, rounds = map(int, value)
    return rows, columns, rounds
