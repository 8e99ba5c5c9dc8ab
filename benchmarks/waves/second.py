"""The second process of two: writes what the first puts into shared memory. `second.py SHARED ORDER`."""

from __future__ import annotations

import json
import mmap
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.waves.files import Files


def main() -> None:
    shared, order = sys.argv[1], json.loads(sys.argv[2])
    with Path(shared).open("r+b") as file:
        buffer: np.ndarray[Any, Any] = np.frombuffer(mmap.mmap(file.fileno(), order["size"] ** 3 * 4), np.float32)
    files = Files(Path(order["folder"]), order["rate"], order["depth"], order["copy"])
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "end":
            break
        files.write(buffer)
        print("written", flush=True)
    print(json.dumps({"backlog": files.cache.backlog, "slower_than_copy": files.slower}), flush=True)


main()
