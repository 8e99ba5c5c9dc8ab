"""Broken inputs to all parsers: each gives a result or a clear error within ten seconds."""

from __future__ import annotations

import random
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any, Final

__all__ = ["fuzzed"]

TESTS: Final = Path(__file__).parents[2] / "tests"
LONGEST: Final = 10
"""Seconds that one input may take."""
_PIECES: Final = (
    b"", b"0", b"9" * 12, b"-1", b",", b"/", b"\n", b"\xff", b"..", b"$", b"(", b'"', b"1e400", b"nan", b"R500", b"{",
    b"\0", b"'", b"]", b"=", b"#", b"e", b"*" * 9,
)  # fmt: skip


def fuzzed(inputs: int, seed: int = 1) -> dict[str, Any]:
    """Return what came of so many inputs, each a seed of a parser with a few places changed.

    The parsers and seeds are those of ``make fuzz``, which is guided by coverage; this is counted and repeatable.
    """
    sys.path.insert(0, str(TESTS))
    from fuzz.targets import TARGETS  # type: ignore[import-not-found]

    chance = random.Random(seed)
    tried: Counter[str] = Counter()
    faults: list[str] = []
    before = signal.signal(signal.SIGALRM, _too_long)
    try:
        for number in range(inputs):
            name = list(TARGETS)[number % len(TARGETS)]
            target, seeds = TARGETS[name]
            data = _changed(chance.choice(seeds), chance)
            signal.alarm(LONGEST)
            try:
                target(data)
            except Exception as error:
                faults.append(f"{name}: {type(error).__name__} for {data!r}")
            tried[name] += 1
            if number % 50_000 == 0:
                print(f"{number} of {inputs}", file=sys.stderr, flush=True)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return {"inputs": tried.total(), "by_parser": dict(tried), "faults": faults[:50], "faulty": len(faults)}


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
