"""Broadcasts under loss and floods of forged datagrams, in virtual time: the slow tests of both, counted."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

__all__ = ["broadcasts"]

ROOT: Final = Path(__file__).parents[2]
TESTS: Final = {
    "messages": ("test_faults.py::test_every_byte_arrives_right_once_and_in_order", 10_000, 200),
    "forged datagrams": ("test_forged.py::test_none_is_accepted_nothing_ends_and_memory_stays", 1_000_000, 20_000),
}
"""A test, and the numbers of which it has a variant: the thorough and the quick one."""


def broadcasts(quick: bool) -> dict[str, Any]:
    """Return how many messages arrived right, and how many forged datagrams were refused."""
    found = {}
    for name, (test, many, few) in TESTS.items():
        count = few if quick else many
        words = [sys.executable, "-m", "pytest", "-q", "-m", "", f"tests/network/broadcast/{test}[{count}]"]
        began = time.monotonic()
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        passed = done.returncode == 0 and "1 passed" in done.stdout
        found[name] = {"count": count, "passed": passed, "seconds": round(time.monotonic() - began, 1)}
        if not passed:
            found[name]["said"] = done.stdout[-2000:]
    return found
