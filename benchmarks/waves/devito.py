"""Devito in an environment of its own, kept alive so that it takes turns with the others."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-waves" / "bin" / "python"


def installed() -> bool:
    """Whether `make .venv-waves/.ready` has been done, and Devito is in it."""
    return PYTHON.exists() and any((PYTHON.parents[1] / "lib").glob("python*/site-packages/devito"))


class Devito:
    """The TTI example's forward operator of one space order; see scripts/devito_tti.py."""

    def __init__(self, order: int, sizes: Sequence[int], threads: int) -> None:
        words = [str(PYTHON), str(HERE / "scripts" / "devito_tti.py"), str(order), *map(str, sizes)]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=environment
        )

    def run(self, size: int, threads: int, steps: int) -> dict[str, Any]:
        """Seconds a step: "update" of the section that updates the fields, "forward" of that and the source's."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"size": size, "threads": threads, "steps": steps}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise SystemExit(f"Devito ended with status {self._process.wait()}:\n{self._errors.read()[-4000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
        self._errors.close()
