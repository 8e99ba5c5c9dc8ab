"""A process that compiles the kernels that it reads from standard input; started by :mod:`minga.compile.together`."""

from __future__ import annotations

import pickle
import sys

from minga.compile.together import perform

if __name__ == "__main__":
    perform(*pickle.load(sys.stdin.buffer))
