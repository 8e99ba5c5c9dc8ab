"""One program that solves a problem, ours or a peer's: it stores its first result, and advances on request.

A program is called with a file of the problem and a file for the fields. It takes the first steps, stores the fields,
and says that it is ready; it answers each line "n" with the processor seconds of n steps, and ends with its input.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.pde.problems import Problem

ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Solver(AbstractContextManager["Solver"]):
    """A running program, and the seconds from its start to the first result."""

    def __init__(
        self, words: Sequence[str], problem: Problem, fields: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        file = fields.with_suffix(".json")
        file.write_text(json.dumps(problem.as_json()))
        self.fields = fields
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [*words, str(file), str(fields)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **ONE_CORE, **(environment or {})},
        )  # fmt: skip
        self._answer("ready")
        self.first_result = time.perf_counter() - began

    def advance(self, steps: int) -> float:
        """Return the processor seconds of so many steps."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return float(self._answer("seconds"))

    def _answer(self, word: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(f"{word} "):
                return line.split()[1]
        raise RuntimeError(f"{self.process.args} ended with status {self.process.wait()}")

    def finish(self) -> dict[str, Any]:
        """End the program and return the fields of its first result by name."""
        import numpy as np

        assert self.process.stdin is not None
        self.process.stdin.close()
        if self.process.wait():
            raise RuntimeError(f"{self.process.args} ended with status {self.process.returncode}")
        with np.load(self.fields) as stored:
            return dict(stored)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        with self.process:  # closes its pipes
            pass
