"""Broken inputs to all parsers: each gives a result or a clear error within ten seconds of computing."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

__all__ = ["fuzzed"]

TESTS: Final = Path(__file__).parents[2] / "tests"
LONGEST: Final = 10
"""Seconds of the processor that one input may take: other programs do not matter."""
PORTION: Final = 5_000
"""Inputs that a process tries before it reports; each portion has random numbers of its own."""
_MEMORY: Final = Path("/dev/shm")
"""Where files are kept in memory: removing a directory from a disk can take longer than reading what was in it."""
_PIECES: Final = (
    b"", b"0", b"9" * 12, b"-1", b",", b"/", b"\n", b"\xff", b"..", b"$", b"(", b'"', b"1e400", b"nan", b"R500", b"{",
    b"\0", b"'", b"]", b"=", b"#", b"e", b"*" * 9,
)  # fmt: skip


def fuzzed(inputs: int, seed: int = 1) -> dict[str, Any]:
    """Return what came of so many inputs, each a seed of a parser with a few places changed.

    The parsers and seeds are those of ``make fuzz``, which is guided by coverage; this is counted and repeatable.
    """
    tried: Counter[str] = Counter()
    faults: list[str] = []
    portions = [(start, min(PORTION, inputs - start)) for start in range(0, inputs, PORTION)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=context, initializer=_prepare) as pool:
        for number, (counts, found) in enumerate(pool.map(partial(_portion, seed=seed), portions)):
            tried.update(counts)
            faults += found
            if number % 10 == 0:
                print(f"{tried.total()} of {inputs}", file=sys.stderr, flush=True)
    return {"inputs": tried.total(), "by_parser": dict(tried), "faults": faults[:50], "faulty": len(faults)}


def _prepare() -> None:
    """Find the parsers, and make files in memory."""
    sys.path.insert(0, str(TESTS))
    if os.access(_MEMORY, os.W_OK):
        tempfile.tempdir = str(_MEMORY)
    signal.signal(signal.SIGPROF, _too_long)


def _portion(portion: tuple[int, int], seed: int) -> tuple[Mapping[str, int], list[str]]:
    """Try a portion of the inputs: its first one's number, and how many there are."""
    from fuzz.targets import TARGETS  # type: ignore[import-not-found]

    start, count = portion
    chance = random.Random(f"{seed} {start}")
    tried: Counter[str] = Counter()
    faults: list[str] = []
    for number in range(start, start + count):
        name = list(TARGETS)[number % len(TARGETS)]
        target, seeds = TARGETS[name]
        data = _changed(chance.choice(seeds), chance)
        signal.setitimer(signal.ITIMER_PROF, LONGEST)
        try:
            target(data)
        except Exception as error:
            faults.append(f"{name}: {type(error).__name__} for {data!r}")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        tried[name] += 1
    return tried, faults


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"longer than {LONGEST} s")


def _changed(data: bytes, chance: random.Random) -> bytes:
    """Return an input with some places replaced, cut out or repeated."""
    for _ in range(chance.randrange(5)):
        start = chance.randint(0, len(data))
        stop = chance.randint(start, min(len(data), start + 12))
        piece = chance.choice((chance.choice(_PIECES), data[start:stop] * 2, chance.randbytes(chance.randrange(5))))
        data = data[:start] + piece + data[stop:]
    return data
