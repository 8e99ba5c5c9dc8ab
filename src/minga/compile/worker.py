"""A process that compiles the kernels that it reads from standard input; started by :mod:`minga.compile.together`."""

from __future__ import annotations

import itertools
import os
import pickle
import sys

from minga.compile.together import perform


def main() -> None:
    """Perform the jobs as long as the process that asked for them exists."""
    parent = os.getppid()
    jobs, cache, target = pickle.load(sys.stdin.buffer)
    perform(itertools.takewhile(lambda _: os.getppid() == parent, jobs), cache, target)


if __name__ == "__main__":
    main()
