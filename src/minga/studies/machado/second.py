"""The second of two processes, which writes what the first puts into shared memory: arguments SHARED ORDER."""

from __future__ import annotations

import json
import mmap
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.studies.machado.files import Files

__all__ = ["main"]


def main(shared: str, order: dict[str, Any]) -> None:
    """Write a frame for each line "frame" of standard input, and print the counters after "end"."""
    with Path(shared).open("r+b") as file:
        buffer: NDArray[Any] = np.frombuffer(mmap.mmap(file.fileno(), order["size"] ** 3 * 4), np.float32)
    files = Files(Path(order["folder"]), order["rate"], order["depth"], order["copy"])
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "end":
            break
        files.write(buffer)
        print("written", flush=True)
    print(json.dumps({"backlog": files.cache.backlog, "slower_than_copy": files.slower}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
