"""The time of a fixed piece of work on this host, ``python -m minga.launch.watchdog.tempo THREADS``.

It shows whether a host that was slow has become faster; for what it computes a case is not needed. As many threads work
as the host had ranks, since a host may have lost some of its cores only.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Final

import numpy as np

__all__ = ["main", "seconds_of_work"]

_CELLS: Final = 1 << 18
_ROUNDS: Final = 500


def seconds_of_work(threads: int, rounds: int = _ROUNDS) -> float:
    """Return the seconds until each of several threads has done the work: about 0.3 s on an idle host of 2020."""

    def work() -> None:
        old, new = np.ones(_CELLS), np.empty(_CELLS)
        for _ in range(rounds):
            np.multiply(old, 0.5, out=new)
            np.add(new, old, out=new)
            old, new = new, old

    workers = [threading.Thread(target=work) for _ in range(threads)]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - began


def main(arguments: list[str]) -> None:
    """Print the seconds."""
    sys.stdout.write(f"{seconds_of_work(int(arguments[0])):.6f}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
